//! `repo write`: one file of a job's tree, whole, if its scope takes it in.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Content, Ground};
use crate::domain::change::{Change, Mode, Refused, fold};
use crate::domain::escape::Surface;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::DecisionId;
use crate::domain::scope::Violation;
use crate::error::{Code, Error, Result};
use crate::os::crash;
use crate::os::files::{Beneath, Standing, draft};
use crate::store::Writing;
use crate::verbs::Ctx;
use crate::verbs::escape::{self, Asked};
use crate::verbs::flow::tell;
use crate::verbs::work::hold::{self, Credentials};

/// The largest file that is written, in bytes.
pub const LIMIT: u64 = 1 << 20;

/// The largest file that is replaced, in bytes.
const REPLACED: u64 = 64 << 20;

/// The word for "nothing is there" in `expect_sha256`.
const ABSENT: &str = "absent";

/// What `repo write` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteRequest {
    /// Who writes.
    pub who: Credentials,
    /// Relative to the tree's top.
    pub path: String,
    /// The whole file.
    pub content: Content,
    /// What must stand there now: a hash, or `absent`.
    pub expect_sha256: Option<String>,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WriteReport {
    /// The job.
    pub job: String,
    /// The path.
    pub path: String,
    /// Hash of what stood there; none where nothing did.
    pub before: Option<String>,
    /// Hash of what stands there.
    pub after: String,
    /// Its size.
    pub bytes: u64,
    /// It stood there before.
    pub already: bool,
    /// The escape that let it pass.
    pub escape: Option<DecisionId>,
}

/// Writes a file.
pub fn write(ctx: &Ctx, request: &WriteRequest) -> Result<WriteReport> {
    let content = request.content.bytes();
    if std::str::from_utf8(content).is_err() {
        return Err(Error::new(Code::Usage, "the content is not UTF-8").hint("use `striatum repo patch-apply`"));
    }
    if content.len() as u64 > LIMIT {
        return Err(Error::new(Code::TooLarge, format!("the content has more than {LIMIT} bytes")));
    }
    let ground = Ground::of(ctx, &request.who)?;
    let path = super::placed(&ground, &request.path)?;
    let escapes = judge(&ground, &path)?;
    let beneath = Beneath::open(&ground.folder)?;
    let standing = beneath.standing(&path, REPLACED).map_err(super::barred)?;
    let report = report(&ground, &path, standing.as_ref(), content);
    expect(&report, request.expect_sha256.as_deref())?;
    if report.already {
        return Ok(report);
    }
    let mode = standing.as_ref().map_or(0o644, |standing| standing.mode);
    let draft = draft(&ground.drafts, content, mode)?;
    crash::point("repo.drafted");
    let report = ctx.write("repo write", |tx| {
        // The fence can't move between this look and the rename: whoever moves it waits for this transaction.
        let hold = hold::hold(ctx, tx, &request.who)?;
        hold::touch(ctx, tx, &hold.run, hold.session.id)?;
        let escape = if escapes.is_empty() { None } else { Some(let_pass(ctx, tx, &ground, &escapes, &path)?) };
        let body = json!({"path": report.path, "before": report.before, "after": report.after, "bytes": report.bytes,
            "attempt": hold.lease.attempt, "decision": escape});
        tell(tx, EventType::RepoWritten, &hold.job, &body)?;
        beneath.put(&path, &draft).map_err(super::barred)?;
        crash::point("repo.renamed");
        Ok(WriteReport { escape, ..report.clone() })
    })?;
    // It has its own name now.
    let _ = draft.keep();
    Ok(report)
}

/// What the scope refuses and an escape could open; anything else is refused here.
fn judge(ground: &Ground, path: &Path) -> Result<Vec<Refused>> {
    let is_there = ground.folder.join(path).symlink_metadata().is_ok();
    let change = |old| Change { path: path.to_owned(), old, new: Mode::File };
    // Names that collide are looked for on the way to this path alone.
    let mut refused = super::judge(ground, &[change(Mode::File)], || Ok(Vec::new()))?;
    let is_same = |one: &std::ffi::OsStr, other: &std::ffi::OsStr| fold(Path::new(one)) == fold(Path::new(other));
    let has_twin = || Beneath::open(&ground.folder)?.has_twin(path, &is_same).map_err(super::barred);
    if !is_there && has_twin()? {
        refused.push(Refused { path: path.to_owned(), why: Violation::CaseCollision });
    }
    super::needs_escape(&refused)?;
    Ok(refused)
}

fn let_pass(ctx: &Ctx, tx: &Writing<'_>, ground: &Ground, refused: &[Refused], path: &Path) -> Result<DecisionId> {
    let words = [super::told(path)];
    let asked = Asked::of(&ground.hold, Surface::RepoWrite, &words);
    let refusal = || {
        let first = refused.first().map_or_else(|| Error::new(Code::Bug, "nothing is refused"), super::violated);
        escape::way_out(first, &asked)
    };
    escape::spend(ctx, tx, &asked)?.ok_or_else(refusal)
}

fn report(ground: &Ground, path: &Path, standing: Option<&Standing>, content: &[u8]) -> WriteReport {
    let before = standing.map(|standing| sha256_hex(&standing.bytes));
    let after = sha256_hex(content);
    WriteReport {
        job: ground.hold.job.name.clone(),
        path: super::told(path),
        already: before.as_ref() == Some(&after),
        before,
        after,
        bytes: content.len() as u64,
        escape: None,
    }
}

/// What the caller means to replace is what stands there.
fn expect(report: &WriteReport, expected: Option<&str>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let expected = expected.strip_prefix("sha256:").unwrap_or(expected);
    let is_so = match &report.before {
        Some(before) => before == expected,
        None => expected == ABSENT,
    };
    if is_so {
        return Ok(());
    }
    let there = report.before.as_deref().unwrap_or("nothing");
    let path = PathBuf::from(&report.path);
    Err(Error::new(Code::StaleBase, format!("stale_base: {}: there is {there}, not {expected}", path.display()))
        .hint("read it again; somebody changed it"))
}
