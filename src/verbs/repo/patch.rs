//! `repo patch-preview`, `repo patch-apply`: a patch of a job's tree, judged by what it would change and not by what it says.
//!
//! It is applied to an index aside; the difference of the trees before and after tells every path. What is put in place is
//! exactly what was shown, or nothing.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::journal::{self, Step};
use super::{Content, Ground};
use crate::domain::change::{Change, Mode, Refused};
use crate::domain::escape::Surface;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::DecisionId;
use crate::domain::scope::Violation;
use crate::error::{Code, Error, Next, Result};
use crate::os::crash;
use crate::os::files::{self, Beneath};
use crate::os::git::{NotApplied, Unlistable};
use crate::store::Writing;
use crate::verbs::escape::{self, Asked};
use crate::verbs::flow::tell;
use crate::verbs::tree::Aside;
use crate::verbs::work::hold::{self, Credentials};
use crate::verbs::{Ctx, tree};

/// The largest patch, in bytes.
pub const LIMIT: u64 = 1 << 20;

/// How many files one patch may change.
const MOST_FILES: usize = 500;

/// How large the files that it changes may become, in bytes together.
const MOST_BYTES: u64 = 64 << 20;

/// What `repo patch-preview` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreviewRequest {
    /// Who asks.
    pub who: Credentials,
    /// The patch, as `git diff` writes it.
    pub patch: Content,
}

/// What a patch would change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PreviewReport {
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// What it comes to, path by path.
    pub files: Vec<FileLine>,
    /// What the scope refuses: a line a path, its word first.
    pub violations: Vec<String>,
    /// Binds an apply to this patch, this tree and this hold; none where nothing could let it pass.
    pub token: Option<String>,
    /// Hash of the patch: what an escape names.
    pub patch_sha256: String,
    /// What to do next.
    pub next: Vec<Next>,
}

/// A file that a patch changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileLine {
    /// The path.
    pub path: String,
    /// `added`, `changed`, `removed`, or `mode`.
    pub change: String,
}

/// What `repo patch-apply` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyRequest {
    /// Who asks.
    pub who: Credentials,
    /// The patch.
    pub patch: Content,
    /// What the preview told.
    pub token: String,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplyReport {
    /// The job.
    pub job: String,
    /// What was changed, path by path.
    pub files: Vec<FileLine>,
    /// The escape that let it pass.
    pub escape: Option<DecisionId>,
}

/// A patch as it would change a tree.
struct Plan {
    aside: Aside,
    base: String,
    changes: Vec<Change>,
    refused: Vec<Refused>,
    token: String,
    patch_sha256: String,
}

/// Tells what a patch would change.
pub fn preview(ctx: &Ctx, request: &PreviewRequest) -> Result<PreviewReport> {
    let ground = Ground::of(ctx, &request.who)?;
    let plan = plan(ctx, &ground, request.patch.bytes())?;
    let may_pass = plan.refused.iter().all(super::is_openable);
    let apply = ["striatum", "repo", "patch-apply", "--token", &plan.token, "--patch-file", "FILE"];
    Ok(PreviewReport {
        job: ground.hold.job.name.clone(),
        attempt: ground.hold.lease.attempt,
        files: lines(&plan.changes),
        violations: plan.refused.iter().map(ToString::to_string).collect(),
        next: if plan.refused.is_empty() {
            vec![Next::new("session", "apply exactly this", &apply)]
        } else {
            Vec::new()
        },
        token: may_pass.then_some(plan.token),
        patch_sha256: plan.patch_sha256,
    })
}

/// Applies a patch that was shown, exactly as it was shown.
pub fn apply(ctx: &Ctx, request: &ApplyRequest) -> Result<ApplyReport> {
    let ground = Ground::of(ctx, &request.who)?;
    let plan = plan(ctx, &ground, request.patch.bytes())?;
    if plan.token != request.token.trim() {
        let text = "stale_base: the patch, the tree or the hold is not what the preview showed";
        return Err(Error::new(Code::StaleBase, text).hint("look again with `striatum repo patch-preview`"));
    }
    let needs_escape = super::needs_escape(&plan.refused)?;
    let beneath = Beneath::open(&ground.folder)?;
    let prepared = Prepared::of(&ground, &plan, &beneath)?;
    crash::point("repo.drafted");
    let done = ctx.write("repo patch-apply", |tx| {
        let hold = hold::hold(ctx, tx, &request.who)?;
        hold::touch(ctx, tx, &hold.run, hold.session.id)?;
        let escape = if needs_escape { Some(let_pass(ctx, tx, &ground, &plan)?) } else { None };
        let body = json!({"patch": plan.patch_sha256, "token": plan.token, "files": prepared.told,
            "attempt": hold.lease.attempt, "decision": escape});
        tell(tx, EventType::RepoPatched, &hold.job, &body)?;
        journal::perform(&ground.folder, &beneath, &plan.token, &prepared.steps)?;
        Ok(escape)
    });
    // A commit that failed leaves files that the log does not know; a commit that did not leaves what was kept.
    journal::recover(ctx, &ground.tree, &ground.folder)?;
    Ok(ApplyReport { job: ground.hold.job.name.clone(), files: lines(&plan.changes), escape: done? })
}

fn let_pass(ctx: &Ctx, tx: &Writing<'_>, ground: &Ground, plan: &Plan) -> Result<DecisionId> {
    let words = [format!("sha256:{}", plan.patch_sha256)];
    let asked = Asked::of(&ground.hold, Surface::RepoPatchApply, &words);
    let refusal = || {
        let first = plan.refused.first().map_or_else(|| Error::new(Code::Bug, "nothing is refused"), super::violated);
        escape::way_out(first, &asked)
    };
    escape::spend(ctx, tx, &asked)?.ok_or_else(refusal)
}

/// Applies the patch aside and judges what comes out.
fn plan(ctx: &Ctx, ground: &Ground, patch: &[u8]) -> Result<Plan> {
    check(patch)?;
    let aside = tree::aside(ctx, &ground.tree)?;
    let git = &aside.git;
    let base = git.snapshot().map_err(unlistable)?;
    git.apply_to_index(patch).map_err(|error| match error {
        NotApplied::Refused(said) => Error::new(Code::InvalidPatch, format!("the patch does not apply: {said}"))
            .hint("make it against the tree as it is now, with `git diff`"),
        NotApplied::Git(error) => error.into(),
    })?;
    let after = git.write_tree()?;
    let changes = git.changes(&base, &after)?;
    if changes.is_empty() {
        return Err(Error::new(Code::InvalidPatch, "the patch changes nothing"));
    }
    if changes.len() > MOST_FILES {
        let text = format!("the patch changes {} files, {MOST_FILES} are allowed", changes.len());
        return Err(Error::new(Code::TooLarge, text).hint("split it"));
    }
    let refused = super::judge(ground, &changes, || Ok(git.paths_of(&after)?))?;
    let patch_sha256 = sha256_hex(patch);
    let (hold, lease) = (&ground.hold, &ground.hold.lease);
    let bound = format!(
        "striatum.patch/1\0{patch_sha256}\0{base}\0{after}\0{}\0{}\0{}\0{}",
        hold.session.id, hold.job.id.0, lease.attempt, lease.fence
    );
    let token = sha256_hex(bound.as_bytes());
    Ok(Plan { base, changes, refused, token, patch_sha256, aside })
}

/// What git would take and unfold without end is not given to it.
fn check(patch: &[u8]) -> Result<()> {
    if patch.len() as u64 > LIMIT {
        return Err(Error::new(Code::TooLarge, format!("the patch has more than {LIMIT} bytes")));
    }
    let mut unfolded: u64 = 0;
    for line in patch.split(|byte| *byte == b'\n') {
        if line.starts_with(b"delta ") {
            return Err(Error::new(
                Code::InvalidPatch,
                "the patch holds a binary delta, whose size can't be known before",
            )
            .hint("leave binary files to the job's own program"));
        }
        let size = line.strip_prefix(b"literal ").and_then(|size| std::str::from_utf8(size).ok()?.trim().parse().ok());
        unfolded = unfolded.saturating_add(size.unwrap_or(0));
    }
    if unfolded > MOST_BYTES {
        return Err(Error::new(Code::TooLarge, format!("the patch unfolds to more than {MOST_BYTES} bytes")));
    }
    Ok(())
}

fn unlistable(error: Unlistable) -> Error {
    match error {
        Unlistable::Embedded { path } => super::violated(&Refused { path, why: Violation::SubmoduleRefused }),
        Unlistable::Unreadable { path } => super::violated(&Refused { path, why: Violation::ModeRefused }),
        Unlistable::Git(error) => error.into(),
    }
}

/// Files that are ready to be put in place.
struct Prepared {
    steps: Vec<Step>,
    told: Vec<Value>,
    _room: tempfile::TempDir,
}

impl Prepared {
    fn of(ground: &Ground, plan: &Plan, beneath: &Beneath) -> Result<Prepared> {
        let git = &plan.aside.git;
        let paths = |wanted: &dyn Fn(&Change) -> bool| -> Vec<&Path> {
            plan.changes.iter().filter(|change| wanted(change)).map(|change| change.path.as_path()).collect()
        };
        let (new, old) = (paths(&|change| change.new != Mode::Absent), paths(&|change| change.old != Mode::Absent));
        if git.size_of(&git.write_tree()?, &new)?.max(git.size_of(&plan.base, &old)?) > MOST_BYTES {
            return Err(Error::new(Code::TooLarge, format!("the files are larger than {MOST_BYTES} bytes together")));
        }
        let room = tempfile::Builder::new().prefix("patch-").tempdir_in(&ground.drafts)?;
        let (after, before) = (room.path().join("after"), room.path().join("before"));
        git.files_into(&after, &new)?;
        git.reset_paths(&plan.base, &paths(&|_| true))?;
        git.files_into(&before, &old)?;
        let mut prepared = Prepared { steps: Vec::new(), told: Vec::new(), _room: room };
        for change in &plan.changes {
            prepared.add(change, beneath, &before, &after)?;
        }
        Ok(prepared)
    }

    /// One file, if it still is what the plan was made for.
    fn add(&mut self, change: &Change, beneath: &Beneath, before: &Path, after: &Path) -> Result<()> {
        let hash = |folder: &Path, mode: Mode| match mode {
            Mode::Absent => Ok(None),
            _ => files::sha256_of_path(&folder.join(&change.path)).map(|found| Some(found.0)),
        };
        let (was, becomes) = (hash(before, change.old)?, hash(after, change.new)?);
        let standing = beneath.standing(&change.path, MOST_BYTES).map_err(super::barred)?;
        let stands = standing.as_ref().map(|standing| sha256_hex(&standing.bytes));
        if stands != was {
            let text = format!("stale_base: {}: it was changed meanwhile", super::told(&change.path));
            return Err(Error::new(Code::StaleBase, text).hint("look again with `striatum repo patch-preview`"));
        }
        let draft = (change.new != Mode::Absent).then(|| after.join(&change.path));
        if let Some(draft) = &draft {
            settle(draft, change, standing.as_ref().map(|standing| standing.mode))?;
        }
        self.told.push(json!({"path": super::told(&change.path), "before": was, "after": becomes}));
        self.steps.push(Step { path: change.path.clone(), draft, had: standing.is_some() });
        Ok(())
    }
}

/// A file's mode and bytes are on the disk before it is put in place; who may read it stays as it was.
fn settle(draft: &Path, change: &Change, stood: Option<u32>) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let fresh = if change.new == Mode::Executable { 0o755 } else { 0o644 };
    let mode = match (stood, change.old == change.new) {
        (Some(mode), true) => mode,
        _ => fresh,
    };
    let fault = crate::os::Fault::new;
    std::fs::set_permissions(draft, std::fs::Permissions::from_mode(mode))
        .map_err(|error| fault("write", draft, error))?;
    let file = std::fs::File::open(draft).map_err(|error| fault("write", draft, error))?;
    Ok(file.sync_all().map_err(|error| fault("write", draft, error))?)
}

fn lines(changes: &[Change]) -> Vec<FileLine> {
    let word = |change: &Change| match (change.old, change.new) {
        (Mode::Absent, _) => "added",
        (_, Mode::Absent) => "removed",
        (old, new) if old != new => "mode",
        _ => "changed",
    };
    let line = |change: &Change| FileLine { path: super::told(&change.path), change: word(change).to_owned() };
    changes.iter().map(line).collect()
}
