//! Taking trees away: only those that are clean and whose commits are pinned. Everything else stays, with a reason.

use std::path::PathBuf;

use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::TreeKind;
use crate::domain::id::RunId;
use crate::domain::run::RunState;
use crate::domain::session::{SessionState, TreeEvent, TreeState};
use crate::error::{Code, Error, Kind, Result};
use crate::os::git::{Git, NewCommit};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::tree::Tree;
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::work::hold::Hold;

/// Nobody works in a tree any more: it goes if nothing in it would be lost. True when it is gone.
pub fn release(ctx: &Ctx, tree: &Tree, job: &Job) -> Result<bool> {
    let _lock = super::lock_removal(ctx)?;
    let tree = &ctx.read(|read| Ok(store::tree::get(read, tree.id)?))?;
    match tree.state {
        TreeState::Removed => return Ok(true),
        TreeState::Making => return give_up(ctx, tree, "it was never finished").map(|()| true),
        _ => {}
    }
    if matches!(tree.state, TreeState::Active) {
        ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, tree.state.next(TreeEvent::Release)?, None)?))?;
    }
    let repository = super::repository(ctx)?;
    let folder = super::folder(ctx, tree);
    if !super::is_there(&folder) {
        missing(ctx, &repository, tree, job)?;
        return Ok(true);
    }
    match obstacle(ctx, &repository, tree, job)? {
        Some(why) => keep(ctx, tree, &why).map(|()| false),
        None => match remove(ctx, &repository, tree, job) {
            Ok(()) => Ok(true),
            Err(error) => {
                keep(ctx, tree, &format!("it can't be removed: {error}"))?;
                Ok(false)
            }
        },
    }
}

fn keep(ctx: &Ctx, tree: &Tree, why: &str) -> Result<()> {
    let state = TreeState::Released.next(TreeEvent::Keep)?;
    ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, state, Some(why))?))
}

/// What follows a seal: a tree that was only looked at goes, and so does one that no review can send its job back to;
/// with the run's end all others. What keeps one from going is said, and undoes no seal.
pub fn after_seal(ctx: &Ctx, hold: &Hold) -> Result<()> {
    let Err(error) = clear(ctx, hold) else { return Ok(()) };
    if error.kind() != Kind::Environment {
        return Err(error);
    }
    ctx.notice(&format!("the work tree of {} stays: {error}", hold.job.name));
    Ok(())
}

fn clear(ctx: &Ctx, hold: &Hold) -> Result<()> {
    if hold.job.spec.tree == TreeKind::None {
        return Ok(());
    }
    let (tree, job, reviews, run) = ctx.read(|read| {
        let job = store::job::get(read, hold.job.id)?;
        let reviews = store::job::panel(read, job.id)?;
        Ok((store::tree::active(read, job.id)?, job, reviews, store::run::get(read, hold.run.id)?))
    })?;
    if run.state == RunState::Completed {
        return tidy(ctx, &run);
    }
    let Some(tree) = tree.filter(|tree| tree.attempt == hold.lease.attempt) else { return Ok(()) };
    let is_over = tree.kind == TreeKind::Tip || (job.settled && reviews.is_empty());
    if is_over { release(ctx, &tree, &job).map(|_| ()) } else { Ok(()) }
}

/// Why a tree has to stay; none when nothing in it would be lost.
pub fn obstacle(ctx: &Ctx, repository: &Git, tree: &Tree, job: &Job) -> Result<Option<String>> {
    if tree.git_dir.is_none() {
        return Ok(Some("it was never finished".to_owned()));
    }
    let git = super::git(ctx, tree)?;
    let held = match git.snapshot() {
        Ok(held) => held,
        Err(error) => return Ok(Some(format!("its contents can't be listed: {error}"))),
    };
    if let Some(what) = unsealed(ctx, &git, tree, job, &held)? {
        return Ok(Some(what));
    }
    let run = ctx.read(|read| Ok(store::run::get(read, tree.run)?))?;
    // Without its administrative files nobody can have committed in it.
    let head = super::own(repository, tree, &super::folder(ctx, tree))?.head().unwrap_or_default();
    if let Some(head) = head
        && !is_reachable(repository, &run, job, tree, &head)?
    {
        return Ok(Some(format!("commit {} in it is on no branch", short(&head))));
    }
    Ok(None)
}

/// What the tree holds beside its base and what was sealed from it.
fn unsealed(ctx: &Ctx, own: &Git, tree: &Tree, job: &Job, held: &str) -> Result<Option<String>> {
    let base = own.tree_of(&tree.base)?;
    let sealed = ctx.read(|read| Ok(store::change::get(read, job.id, tree.attempt)?))?.map(|change| change.tree);
    if held == base || sealed.as_deref() == Some(held) {
        return Ok(None);
    }
    let dropped = dropped(ctx, tree)?;
    let changes = own.changes(sealed.as_deref().unwrap_or(&tree.base), held)?;
    let left: Vec<_> = changes.iter().filter(|change| !dropped.is_match(&change.path)).collect();
    Ok(left.first().map(|first| {
        let more = if left.len() > 1 { format!(" and {} more", left.len() - 1) } else { String::new() };
        format!("{}{more} was never sealed", first.path.display())
    }))
}

/// What is never sealed, and what was published as an artifact.
fn dropped(ctx: &Ctx, tree: &Tree) -> Result<globset::GlobSet> {
    let (run, job) = ctx.read(|read| Ok((store::run::get(read, tree.run)?, store::job::get(read, tree.job)?)))?;
    let mut patterns = run.spec.tree.discard;
    patterns.extend(job.spec.produces.iter().filter_map(|produce| produce.path.clone()));
    Ok(crate::domain::scope::glob_set(&patterns).unwrap_or_else(|_| globset::GlobSet::empty()))
}

fn is_reachable(git: &Git, run: &Run, job: &Job, tree: &Tree, head: &str) -> Result<bool> {
    if head == tree.base || git.is_ancestor(head, &tree.base)? {
        return Ok(true);
    }
    for name in [super::pin(run, job, tree.attempt), super::branch(run)] {
        if let Some(there) = git.resolve(&name)?
            && git.is_ancestor(head, &there)?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Takes a tree away although something in it was never sealed; everything in it is kept as a pinned commit, which is
/// returned.
pub fn discard(ctx: &Ctx, tree: &Tree, job: &Job, why: &str) -> Result<String> {
    let repository = super::repository(ctx)?;
    let run = ctx.read(|read| Ok(store::run::get(read, tree.run)?))?;
    let own = super::git(ctx, tree)?;
    let held = own.snapshot().map_err(|error| Error::new(Code::Git, format!("{}: {error}", tree.path)))?;
    let author = super::author();
    let message = format!("What was left of {} attempt {}\n\n{why}\n", job.name, tree.attempt);
    let at = ctx.clock.now().0.div_euclid(1000);
    let new = NewCommit { tree: &held, parents: &[&tree.base], message: &message, author: &author, at };
    let commit = repository.commit(&new)?;
    let pin = format!("{}-left-{}", super::pin(&run, job, tree.attempt), tree.id);
    repository.move_ref(&pin, None, &commit)?;
    remove(ctx, &repository, tree, job)?;
    Ok(pin)
}

fn remove(ctx: &Ctx, repository: &Git, tree: &Tree, job: &Job) -> Result<()> {
    let folder = super::folder(ctx, tree);
    let lock = super::lock_repository(ctx)?;
    if let Some(name) = &tree.git_dir {
        repository.remove_worktree(&folder, &repository.git_dir().join("worktrees").join(name))?;
    }
    drop(lock);
    let _ = std::fs::remove_file(super::index(&folder));
    gone(ctx, tree, job, None)
}

fn gone(ctx: &Ctx, tree: &Tree, job: &Job, reason: Option<&str>) -> Result<()> {
    ctx.write("tree", |tx| {
        store::tree::set_state(tx, tree.id, TreeState::Removed, reason)?;
        tell(tx, EventType::TreeRemoved, job, &json!({"attempt": tree.attempt, "path": tree.path, "why": reason}))
    })
}

/// A tree whose folder somebody took away: it is said, and its registration goes. Commits are pinned elsewhere.
pub fn missing(ctx: &Ctx, git: &Git, tree: &Tree, job: &Job) -> Result<()> {
    ctx.write("tree", |tx| {
        let state = tree.state.next(TreeEvent::Lose)?;
        store::tree::set_state(tx, tree.id, state, Some("its folder is gone"))?;
        Ok(())
    })?;
    let lock = super::lock_repository(ctx)?;
    git.clear_half_made(&super::folder(ctx, tree))?;
    drop(lock);
    let _ = std::fs::remove_file(super::index(&super::folder(ctx, tree)));
    gone(ctx, tree, job, Some("its folder was gone"))
}

/// A tree that could not be made usable, in which nobody has worked.
pub fn give_up(ctx: &Ctx, tree: &Tree, why: &str) -> Result<()> {
    let job = ctx.read(|read| Ok(store::job::get(read, tree.job)?))?;
    let repository = super::repository(ctx)?;
    let lock = super::lock_repository(ctx)?;
    repository.clear_half_made(&super::folder(ctx, tree))?;
    drop(lock);
    let _ = std::fs::remove_file(super::index(&super::folder(ctx, tree)));
    gone(ctx, tree, &job, Some(why))
}

/// A run may have ended: its trees go, as far as they are clean and nobody works in them. Whoever may be the last one
/// says this: who ended it, a helper that ends, a driver.
pub fn at_end(ctx: &Ctx, run: RunId) -> Result<()> {
    let run = ctx.read(|read| Ok(store::run::get(read, run)?))?;
    if !run.state.is_terminal() {
        return Ok(());
    }
    match tidy(ctx, &run) {
        Err(error) if error.kind() == Kind::Environment => {
            ctx.notice(&format!("work trees of {} stay: {error}", run.name));
            Ok(())
        }
        tidied => tidied,
    }
}

/// Trees of a run that has ended: those that are clean go.
fn tidy(ctx: &Ctx, run: &Run) -> Result<()> {
    for tree in ctx.read(|read| Ok(store::tree::there(read, run.id)?))? {
        let (job, is_used) = ctx.read(|read| Ok((store::job::get(read, tree.job)?, is_used(read, &tree)?)))?;
        if !is_used {
            release(ctx, &tree, &job)?;
        }
    }
    Ok(())
}

/// Whether a helper may still be at the attempt that works in a tree.
fn is_used(read: &Connection, tree: &Tree) -> Result<bool> {
    let holder = store::attempt::get(read, tree.job, tree.attempt)?.session;
    let holder = holder.map(|session| store::session::get(read, session)).transpose()?.flatten();
    Ok(holder.is_some_and(|session| session.supervised && session.state == SessionState::Active))
}

/// The folder of the newest tree of the run that has it, for seeding another.
pub fn newest_folder(ctx: &Ctx, hold: &Hold, name: &str) -> Result<Option<PathBuf>> {
    newest_of_run(ctx, hold.run.id, name, |tree| tree.job != hold.job.id || tree.kind == TreeKind::Own)
}

/// The same among the trees that fit.
pub fn newest_of_run(ctx: &Ctx, run: RunId, name: &str, fits: impl Fn(&Tree) -> bool) -> Result<Option<PathBuf>> {
    let trees = ctx.read(|read| Ok(store::tree::there(read, run)?))?;
    let others = trees.iter().rev().filter(|tree| fits(tree));
    let here = others.map(|tree| super::folder(ctx, tree).join(name)).find(|folder| folder.is_dir());
    let principal = || Some(ctx.layout().project().join(name)).filter(|folder| folder.is_dir());
    Ok(here.or_else(principal))
}
