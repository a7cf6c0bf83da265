//! `uninit`: takes the store and its scratch away, and lists what stays: what you wrote, and what git keeps.
//!
//! It acts only when told to, and never while something lives or a work tree holds what was never sealed.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Code, Error, Next, Result};
use crate::os::git::Git;
use crate::os::layout::{DATABASE, Layout};
use crate::store;
use crate::verbs::{Ctx, gc};

/// What `uninit` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UninitRequest {
    /// Do it, instead of showing it.
    pub yes: bool,
}

/// What `uninit` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UninitReport {
    /// What goes, or is gone.
    pub goes: Vec<PathBuf>,
    /// What stays, each with what it is.
    pub stays: Vec<(String, String)>,
    /// It was done; otherwise only shown.
    pub done: bool,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Takes the store away.
///
/// # Errors
/// A run is live, a helper is there, or a work tree holds what was never sealed.
pub fn uninit(ctx: &Ctx, request: &UninitRequest) -> Result<UninitReport> {
    let layout = ctx.layout();
    if ctx.has_store() {
        refuse_live(ctx)?;
        let kept = gc::gc(ctx, &gc::GcRequest { yes: request.yes, ..gc::GcRequest::default() })?;
        refuse_kept(&kept)?;
    }
    let goes = goes(layout);
    if request.yes {
        for path in &goes {
            remove(path)?;
        }
    }
    let next = if request.yes || goes.is_empty() {
        Vec::new()
    } else {
        vec![Next::new("operator", "do it", &["striatum", "uninit", "--yes"])]
    };
    Ok(UninitReport { goes, stays: stays(layout)?, done: request.yes, next })
}

fn refuse_live(ctx: &Ctx) -> Result<()> {
    let live = ctx.read(|read| Ok(store::run::live(read, 1)?))?;
    if let Some(run) = live.first() {
        let cancel = ["striatum", "run", "cancel", "--run-id", &run.name, "--reason", "'...'"];
        return Err(Error::new(Code::InvalidTransition, format!("run {} is {}", run.name, run.state)).next(Next::new(
            "operator",
            "end it first",
            &cancel,
        )));
    }
    let running = ctx.read(|read| Ok(store::execution::live(read)?))?;
    if let Some(one) = running.first() {
        return Err(Error::new(Code::StillHeld, format!("something of {} still runs", one.session)).next(Next::new(
            "anyone",
            "see what",
            &["striatum", "doctor"],
        )));
    }
    Ok(())
}

fn refuse_kept(report: &gc::GcReport) -> Result<()> {
    let kept = report.left.iter().find_map(|one| Some((one, one.stays.as_ref()?)));
    let Some((one, why)) = kept else { return Ok(()) };
    let refused = Error::new(Code::StillHeld, format!("{} at {} would be lost: {why}", one.what, one.path.display()));
    Err(refused
        .hint(
            "`striatum gc` lists everything that is kept; `gc --discard RUN/JOB --reason WHY --yes` pins its contents",
        )
        .hint("for a resource that was destroyed by hand: `gc --discard NAME --reason WHY --yes`"))
}

/// Everything in the folder that is the store's own.
fn goes(layout: &Layout) -> Vec<PathBuf> {
    let root = layout.root();
    let names = [DATABASE, "striatum.db-wal", "striatum.db-shm", "scratch", "worktrees", "artifacts", "locks", "STOP"];
    names.iter().map(|name| root.join(name)).filter(|path| path.symlink_metadata().is_ok()).collect()
}

fn remove(path: &Path) -> Result<()> {
    let found = std::fs::symlink_metadata(path);
    let removed = match found {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    Ok(removed.map_err(|error| crate::os::Fault::new("remove", path, error))?)
}

/// What is yours, and what git keeps.
fn stays(layout: &Layout) -> Result<Vec<(String, String)>> {
    let mut stays = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(layout.root()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    let gone = goes(layout);
    stays.extend(
        entries.iter().filter(|path| !gone.contains(path)).map(|path| (path.display().to_string(), "yours".to_owned())),
    );
    if let Some(git) = Git::of(layout) {
        for name in git.references("refs/heads/striatum/")?.into_iter().chain(git.references("refs/striatum/")?) {
            stays.push((name.clone(), format!("work of a run; gone with `git update-ref -d {name}`")));
        }
    }
    Ok(stays)
}
