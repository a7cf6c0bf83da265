//! `gc`: what ended runs have left that nobody needs any more. It lists, and takes away only when told to.
//!
//! A work tree goes when it is clean and its commits are pinned; anything else stays and is named with its reason.
//! Pins and branches are never touched: they are what keeps work. What was made for an attempt alone, and is still there,
//! is destroyed by its own command.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::session::TreeState;
use crate::domain::time::Timestamp;
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::os::lock::Held;
use crate::store;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::tree::Tree;
use crate::verbs::resource::destroy;
use crate::verbs::run::find;
use crate::verbs::{Ctx, tree};

/// How long what agents printed is kept after their run, in milliseconds.
const LOGS_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// What `gc` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GcRequest {
    /// Take away what is listed, instead of listing it.
    pub yes: bool,
    /// A tree that stays for a reason, as `RUN/JOB`: take it away all the same, its contents pinned as a commit. Or the
    /// name of a resource that its command can't destroy: somebody has done that by hand.
    pub discard: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Something that is left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Leftover {
    /// Where.
    pub path: PathBuf,
    /// What it is.
    pub what: String,
    /// Room that it takes, in bytes.
    pub bytes: u64,
    /// Why it stays; none when it goes.
    pub stays: Option<String>,
}

/// What `gc` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GcReport {
    /// What is left of ended runs.
    pub left: Vec<Leftover>,
    /// What goes was taken away; otherwise it was only listed.
    pub done: bool,
    /// The pin that holds what was discarded.
    pub pinned: Option<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Lists what ended runs have left, and takes it away when told to.
///
/// # Errors
/// The store, git or the disk refuses; `--discard` names nothing that is kept, or gives no reason.
pub fn gc(ctx: &Ctx, request: &GcRequest) -> Result<GcReport> {
    let pinned = match &request.discard {
        Some(named) if named.contains('/') => discard(ctx, named, request)?,
        Some(named) => forget(ctx, named, request).map(|()| None)?,
        None => None,
    };
    let mut left = resources(ctx, request.yes)?;
    left.extend(trees(ctx, request.yes)?);
    left.extend(unknown(ctx)?);
    left.extend(logs(ctx, request.yes)?);
    let goes = left.iter().any(|one| one.stays.is_none());
    let next = if goes && !request.yes {
        vec![Next::new("operator", "take away what goes", &["striatum", "gc", "--yes"])]
    } else {
        Vec::new()
    };
    Ok(GcReport { left, done: request.yes, pinned, next })
}

/// What was made for attempts that are over, and is still there or may be: each is tried again.
fn resources(ctx: &Ctx, yes: bool) -> Result<Vec<Leftover>> {
    let mut left = Vec::new();
    for row in ctx.read(|read| Ok(store::resource::abandoned(read)?))? {
        let (run, job) =
            ctx.read(|read| Ok((store::run::get(read, row.run)?.name, store::job::name(read, row.job)?)))?;
        if destroy::is_at_work(ctx, &row, &job)? == Held::Held {
            continue;
        }
        let stays = match yes {
            true => destroy::destroy(ctx, &row)?,
            false => None,
        };
        let what = format!("resource {} of {run}/{job}", row.name);
        left.push(Leftover { path: destroy::log(ctx, &row)?, what, bytes: 0, stays });
    }
    Ok(left)
}

fn trees(ctx: &Ctx, yes: bool) -> Result<Vec<Leftover>> {
    let trees = ctx.read(|read| Ok(store::tree::of_ended_runs(read)?))?;
    let mut left = Vec::new();
    for row in trees {
        let (run, job) = ctx.read(|read| Ok((store::run::get(read, row.run)?, store::job::get(read, row.job)?)))?;
        let path = tree::folder(ctx, &row);
        let what = format!("work tree of {}/{}", run.name, job.name);
        let bytes = files::room(&path).0;
        let stays = why_it_stays(ctx, &row, &job)?;
        if yes && stays.is_none() {
            tree::release::release(ctx, &row, &job)?;
        }
        left.push(Leftover { path, what, bytes, stays });
    }
    Ok(left)
}

fn why_it_stays(ctx: &Ctx, row: &Tree, job: &Job) -> Result<Option<String>> {
    if tree::release::is_used(ctx, row)? {
        return Ok(Some("its helper is still at it".to_owned()));
    }
    if row.state == TreeState::Making || !tree::is_there(&tree::folder(ctx, row)) {
        return Ok(None);
    }
    tree::release::obstacle(ctx, &tree::repository(ctx)?, row, job)
}

/// Folders among the trees that no row tells of: nobody knows whose they are.
fn unknown(ctx: &Ctx) -> Result<Vec<Leftover>> {
    let home = ctx.layout().root().join("worktrees");
    let known = ctx.read(|read| Ok(store::tree::paths(read)?))?;
    let known: Vec<PathBuf> = known.iter().map(|path| ctx.layout().root().join(path)).collect();
    let mut left = Vec::new();
    for run in entries(&home) {
        let is_log = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(LANDING_LOGS));
        let is_draft = |path: &PathBuf| known.iter().any(|tree| tree::drafts(tree) == *path);
        let is_unknown = |path: &PathBuf| path.is_dir() && !known.contains(path) && !is_log(path) && !is_draft(path);
        for path in entries(&run).into_iter().filter(is_unknown) {
            let bytes = files::room(&path).0;
            let stays = Some("nothing tells whose it is; look, and remove it yourself".to_owned());
            left.push(Leftover { path, what: "folder among the work trees".to_owned(), bytes, stays });
        }
    }
    Ok(left)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// What agents, checks and helpers printed, a week after the end of their run.
fn logs(ctx: &Ctx, yes: bool) -> Result<Vec<Leftover>> {
    let before = Timestamp(ctx.clock.now().0 - LOGS_KEPT_MS);
    let mut left = Vec::new();
    for run in ctx.read(|read| Ok(store::run::ended_before(read, before)?))? {
        let printed = printed(ctx, &run)?;
        let Some(first) = printed.first() else { continue };
        let bytes = printed.iter().map(|path| files::room(path).0).sum();
        let path = first.ancestors().nth(2).map(Path::to_owned).unwrap_or_default();
        if yes {
            for path in &printed {
                std::fs::remove_file(path).map_err(|error| crate::os::Fault::new("remove", path, error))?;
            }
        }
        left.push(Leftover { path, what: format!("{} logs of {}", printed.len(), run.name), bytes, stays: None });
    }
    Ok(left)
}

/// How the folder ends in which a refused landing's logs lie.
const LANDING_LOGS: &str = ".landing.logs";

fn printed(ctx: &Ctx, run: &Run) -> Result<Vec<PathBuf>> {
    let sessions = ctx.read(|read| Ok(store::session::of_run(read, run.id, u32::MAX)?))?;
    let is_log = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "log")
            && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
    };
    let landings = entries(&ctx.layout().worktrees(&run.name)).into_iter();
    let refused = landings.filter(|path| path.to_str().is_some_and(|name| name.ends_with(LANDING_LOGS)));
    let mut printed: Vec<PathBuf> = refused.flat_map(|folder| entries(&folder)).filter(is_log).collect();
    for session in sessions {
        let folder = ctx.layout().scratch(&session.id.to_string()).folder().to_owned();
        let attempts = entries(&folder).into_iter().filter(|path| path.is_dir());
        let logs = attempts.flat_map(|attempt| entries(&attempt)).chain(entries(&folder));
        printed.extend(logs.filter(is_log));
    }
    Ok(printed)
}

/// Somebody says that a resource is gone, whatever its command says.
fn forget(ctx: &Ctx, named: &str, request: &GcRequest) -> Result<()> {
    let reason = reason(request, "say with --reason how it went; it stands in the log")?;
    let left = ctx.read(|read| Ok(store::resource::left(read)?))?.into_iter().find(|row| row.name == named);
    let row = left.ok_or_else(|| {
        Error::new(Code::NotFound, format!("no resource {named} is left, and a work tree is named RUN/JOB"))
    })?;
    if request.yes { destroy::forget(ctx, &row, reason) } else { Ok(()) }
}

fn reason<'a>(request: &'a GcRequest, hint: &str) -> Result<&'a str> {
    request.reason.as_deref().ok_or_else(|| Error::new(Code::Usage, hint.to_owned()))
}

fn discard(ctx: &Ctx, named: &str, request: &GcRequest) -> Result<Option<String>> {
    let (run, job) = named.split_once('/').unwrap_or((named, ""));
    let reason = reason(request, "say why with --reason; it stands in the commit")?;
    let (run, job, row) = ctx.read(|read| {
        let run = find::named(read, run)?;
        let job = find::job(read, &run, job)?;
        let row = store::tree::newest(read, job.id)?;
        Ok((run, job, row))
    })?;
    let row = row.filter(|row| row.state != TreeState::Removed && run.state.is_terminal());
    let row = row.ok_or_else(|| Error::new(Code::NotFound, format!("{named} has no work tree that is kept")))?;
    if tree::release::is_used(ctx, &row)? {
        return Err(Error::new(Code::StillHeld, format!("a helper is still at the work tree of {named}")));
    }
    if !request.yes {
        return Ok(None);
    }
    tree::release::discard(ctx, &row, &job, reason).map(Some)
}
