//! Giving an attempt its tree: made at the run's tip, or carried over from the attempt before.
//!
//! Row, then folder, then row: whatever a kill leaves is found by the row and made again.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{carry, furnish, guard, release};
use crate::domain::event::EventType;
use crate::domain::frozen::{NextAttempt, TreeKind};
use crate::domain::id::JobId;
use crate::domain::session::{TreeEvent, TreeState};
use crate::error::{Code, Error, Result};
use crate::os::files;
use crate::os::git::Git;
use crate::store;
use crate::store::run::Run;
use crate::store::tree::{NewTree, Tree};
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::settle::verify::Runner;
use crate::verbs::work::hold::Hold;

/// Where an attempt works.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The tree's folder.
    pub path: PathBuf,
    /// The commit that changes are against, and that is checked out.
    pub base: String,
    /// Paths whose contents carry marks of a conflict between carried work and newer work of others.
    pub conflicts: Vec<String>,
}

/// What became of making ready.
pub enum Provided {
    /// The job has no tree.
    None,
    /// There it is.
    Ground(Ground),
    /// It could not be made usable; why.
    Unusable(String),
    /// An order came meanwhile.
    Told(String),
}

impl Provided {
    /// The tree, if there is one to work in.
    pub fn ground(self) -> Option<Ground> {
        match self {
            Provided::Ground(ground) => Some(ground),
            Provided::None | Provided::Unusable(_) | Provided::Told(_) => None,
        }
    }
}

/// Makes the tree of what a session holds ready; doing it twice changes nothing.
pub fn provide(ctx: &Ctx, hold: &Hold, runner: &mut dyn Runner) -> Result<Provided> {
    if hold.job.spec.tree == TreeKind::None {
        return Ok(Provided::None);
    }
    let git = super::repository(ctx)?;
    let (tree, conflicts) = match usable(ctx, hold)? {
        Some(tree) => {
            let has_begun = tree.attempt == hold.lease.attempt && tree.baseline.is_some();
            let changed = if has_begun { None } else { guard::changed_rules(ctx, &git, &tree)? };
            if let Some(why) = changed {
                return Ok(Provided::Unusable(why));
            }
            let conflicts =
                if has_begun { carry::unresolved(ctx, &tree) } else { carry::over(ctx, &git, hold, &tree)? };
            if !has_begun {
                guard::begin(ctx, &git, &tree)?;
            }
            (again(ctx, hold.job.id)?, conflicts)
        }
        None => {
            let tree = match make(ctx, &git, hold) {
                Ok(tree) => tree,
                Err(error) => return Err(given_up(ctx, hold, error)),
            };
            let why = match furnish::furnish(ctx, hold, &super::folder(ctx, &tree), runner)? {
                furnish::Furnished::Ready => None,
                furnish::Furnished::Failed(why) => Some(Provided::Unusable(why)),
                furnish::Furnished::Told(why) => Some(Provided::Told(why)),
            };
            if let Some(why) = why {
                // The next attempt starts with setup again.
                release::give_up(ctx, &tree, "it could not be set up")?;
                return Ok(why);
            }
            guard::begin(ctx, &git, &tree)?;
            (ready(ctx, hold, &tree)?, Vec::new())
        }
    };
    Ok(Provided::Ground(Ground { path: super::folder(ctx, &tree), base: tree.base, conflicts }))
}

/// What was made of a tree that can't be made goes at once; if that fails too, the next attempt does it.
fn given_up(ctx: &Ctx, hold: &Hold, error: Error) -> Error {
    if let Ok(Some(half)) = ctx.read(|read| Ok(store::tree::active(read, hold.job.id)?)) {
        let _ = release::give_up(ctx, &half, "it could not be made");
    }
    error
}

/// A new tree is furnished: from now on there may be work in it.
fn ready(ctx: &Ctx, hold: &Hold, tree: &Tree) -> Result<Tree> {
    ctx.write("tree", |tx| {
        tree.state.next(TreeEvent::Make)?;
        store::tree::made(tx, tree.id)?;
        let body =
            json!({"attempt": hold.lease.attempt, "kind": hold.job.spec.tree, "base": tree.base, "path": tree.path});
        tell(tx, EventType::TreeMade, &hold.job, &body)
    })?;
    crate::os::crash::point("tree.made");
    again(ctx, hold.job.id)
}

fn again(ctx: &Ctx, job: JobId) -> Result<Tree> {
    let tree = ctx.read(|read| Ok(store::tree::active(read, job)?))?;
    tree.ok_or_else(|| Error::new(Code::Bug, "a tree vanished while it was being used"))
}

/// The job's active tree, if the attempt may go on in it; one that may not is retired.
fn usable(ctx: &Ctx, hold: &Hold) -> Result<Option<Tree>> {
    let Some(tree) = ctx.read(|read| Ok(store::tree::active(read, hold.job.id)?))? else {
        return taken_up(ctx, hold);
    };
    let path = super::folder(ctx, &tree);
    if tree.state == TreeState::Making {
        release::give_up(ctx, &tree, "it was never finished")?;
        return Ok(None);
    }
    if !super::is_there(&path) {
        release::missing(ctx, &tree, &hold.job)?;
        return Ok(None);
    }
    let goes_on = hold.job.spec.next_attempt == NextAttempt::Continue && tree.kind == TreeKind::Own;
    if goes_on || tree.attempt == hold.lease.attempt {
        return Ok(Some(tree));
    }
    release::release(ctx, &tree, &hold.job)?;
    Ok(None)
}

/// The job's newest tree, if it was kept when its run ended and the job is tried again.
fn taken_up(ctx: &Ctx, hold: &Hold) -> Result<Option<Tree>> {
    let newest = ctx.read(|read| Ok(store::tree::newest(read, hold.job.id)?))?;
    let goes_on = hold.job.spec.next_attempt == NextAttempt::Continue;
    let kept = newest.filter(|tree| goes_on && tree.state == TreeState::Kept && tree.kind == TreeKind::Own);
    let Some(tree) = kept.filter(|tree| tree.git_dir.is_some() && super::is_there(&super::folder(ctx, tree))) else {
        return Ok(None);
    };
    let state = tree.state.next(TreeEvent::Resume)?;
    ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, state, None)?))?;
    Ok(Some(Tree { state, reason: None, ..tree }))
}

/// A new tree at the run's tip.
fn make(ctx: &Ctx, git: &Git, hold: &Hold) -> Result<Tree> {
    let path = free_path(ctx, hold);
    let lock = super::lock_repository(ctx)?;
    let tip = match hold.job.spec.reviewed_range() {
        Some((_, newer)) => newer.to_owned(),
        None => super::tip(ctx, git, &hold.run)?,
    };
    let shown = path.strip_prefix(ctx.layout().root()).unwrap_or(&path).to_string_lossy().into_owned();
    let id = ctx.write("tree", |tx| {
        let new = NewTree {
            run: hold.run.id,
            job: hold.job.id,
            attempt: hold.lease.attempt,
            kind: hold.job.spec.tree,
            path: &shown,
            base: &tip,
        };
        Ok(store::tree::insert(tx, &new)?)
    })?;
    crate::os::crash::point("tree.intended");
    make_parent(ctx, &path)?;
    let git_dir = match git.add_worktree(&path, &tip) {
        Ok(git_dir) => git_dir,
        Err(_) => {
            git.clear_half_made(&path)?;
            git.add_worktree(&path, &tip)?
        }
    };
    crate::os::crash::point("tree.added");
    let name = git_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ctx.write("tree", |tx| Ok(store::tree::set_git_dir(tx, id, &name)?))?;
    // Other trees may be made while this one's files are written.
    drop(lock);
    let checked_out = Git::of_tree(&git_dir, &path);
    checked_out.fill()?;
    let index = super::index(&path);
    std::fs::copy(git_dir.join("index"), &index).map_err(|error| crate::os::Fault::new("copy", &index, error))?;
    crate::os::crash::point("tree.filled");
    again(ctx, hold.job.id)
}

/// Where the trees of a run stand.
pub fn home(ctx: &Ctx, run: &Run) -> PathBuf {
    let Some(dir) = run.spec.tree.dir.as_deref() else { return ctx.layout().worktrees(&run.name) };
    let folder = match dir.strip_prefix("~/") {
        Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
        None => ctx.layout().project().join(dir),
    };
    folder.join(&run.name)
}

/// A path that nothing stands at: a tree that was kept is not disturbed.
fn free_path(ctx: &Ctx, hold: &Hold) -> PathBuf {
    let home = home(ctx, &hold.run);
    let name = format!("{}.{}", hold.job.name, hold.lease.attempt);
    let mut path = home.join(&name);
    let mut number = 1;
    while path.symlink_metadata().is_ok() {
        number += 1;
        path = home.join(format!("{name}.{number}"));
    }
    path
}

/// Makes the folder that a tree stands in.
pub fn make_parent(ctx: &Ctx, path: &Path) -> Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    if parent.starts_with(ctx.layout().root()) {
        files::create_private_dirs(ctx.layout().root(), parent)?;
    } else {
        std::fs::create_dir_all(parent).map_err(|error| crate::os::Fault::new("create", parent, error))?;
    }
    Ok(())
}
