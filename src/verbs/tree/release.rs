//! Taking trees away: only those that are clean and whose commits are pinned. Everything else stays, with a reason.

use std::path::PathBuf;

use serde_json::json;

use super::guard;
use crate::domain::change::short;
use crate::domain::event::EventType;
use crate::domain::frozen::TreeKind;
use crate::domain::id::RunId;
use crate::domain::run::RunState;
use crate::domain::session::{SessionState, TreeEvent, TreeState};
use crate::error::{Code, Error, Result};
use crate::os::git::{Git, NewCommit};
use crate::os::lock::{Held, probe};
use crate::store;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::tree::Tree;
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::work::hold::Hold;

/// Why a released tree is no longer looked at: it was clean, and its removal has begun.
const GOING: &str = "it is being removed";

/// Nobody works in a tree any more: it goes if nothing in it would be lost. True when it is gone.
pub fn release(ctx: &Ctx, tree: &Tree, job: &Job) -> Result<bool> {
    let _lock = super::lock_removal(ctx)?;
    let tree = &ctx.read(|read| Ok(store::tree::get(read, tree.id)?))?;
    match tree.state {
        TreeState::Removed => return Ok(true),
        TreeState::Making => return give_up(ctx, tree, "it was never finished").map(|()| true),
        TreeState::Missing => return missing(ctx, tree, job).map(|()| true),
        TreeState::Active => {
            let state = tree.state.next(TreeEvent::Release)?;
            ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, state, None)?))?;
        }
        TreeState::Released | TreeState::Kept => {}
    }
    // Half of it may be gone already: that is no change of anybody's.
    let is_going = tree.state == TreeState::Released && tree.reason.as_deref() == Some(GOING);
    if !is_going {
        if !super::is_there(&super::folder(ctx, tree)) {
            return missing(ctx, tree, job).map(|()| true);
        }
        if let Some(why) = obstacle(ctx, &super::repository(ctx)?, tree, job)? {
            return keep(ctx, tree, &why).map(|()| false);
        }
    }
    match remove(ctx, tree, job) {
        Ok(()) => Ok(true),
        Err(error) => {
            ctx.notice(&format!("the work tree {} can't be removed: {error}", tree.path));
            Ok(false)
        }
    }
}

fn keep(ctx: &Ctx, tree: &Tree, why: &str) -> Result<()> {
    let state = TreeState::Released.next(TreeEvent::Keep)?;
    ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, state, Some(why))?))
}

/// What follows a seal: a tree that was only looked at goes, and so does one that no review can send its job back to;
/// with the run's end all others. What keeps one from going is said, and undoes no seal.
pub fn after_seal(ctx: &Ctx, hold: &Hold) -> Result<()> {
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
    let is_over = |tree: &Tree| tree.kind == TreeKind::Tip || (job.settled && reviews.is_empty());
    if let Some(tree) = tree.filter(|tree| tree.attempt == hold.lease.attempt && is_over(tree)) {
        try_release(ctx, &tree, &job);
    }
    Ok(())
}

/// Releases a tree; what stands in the way is said, and somebody else tries again.
fn try_release(ctx: &Ctx, tree: &Tree, job: &Job) {
    if let Err(error) = release(ctx, tree, job) {
        ctx.notice(&format!("the work tree of {} stays: {error}", job.name));
    }
}

/// Why a tree has to stay; none when nothing in it would be lost.
pub fn obstacle(ctx: &Ctx, repository: &Git, tree: &Tree, job: &Job) -> Result<Option<String>> {
    if tree.git_dir.is_none() {
        return Ok(Some("it was never finished".to_owned()));
    }
    if let Err(changed) = guard::must_have_its_filters(repository, tree) {
        return Ok(Some(changed.message));
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
    let sealed = ctx.read(|read| Ok(store::change::get(read, job.id, tree.attempt)?))?.map(|change| change.tree);
    if sealed.as_deref() == Some(held) || own.tree_of(&tree.base)? == held {
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

/// Takes a tree away although something in it was never sealed; everything in it is kept as a pinned commit, which is
/// returned.
pub fn discard(ctx: &Ctx, tree: &Tree, job: &Job, why: &str) -> Result<String> {
    let _lock = super::lock_removal(ctx)?;
    let repository = super::repository(ctx)?;
    let run = ctx.read(|read| Ok(store::run::get(read, tree.run)?))?;
    guard::must_have_its_filters(&repository, tree)?;
    let held = super::git(ctx, tree)?.snapshot();
    let held = held.map_err(|error| Error::new(Code::Git, format!("{}: {error}", tree.path)))?;
    let author = super::author();
    let message = format!("What was left of {} attempt {}\n\n{why}\n", job.name, tree.attempt);
    let at = ctx.clock.now().0.div_euclid(1000);
    let new = NewCommit { tree: &held, parents: &[&tree.base], message: &message, author: &author, at };
    let commit = repository.commit(&new)?;
    let pin = format!("{}-left-{}", super::pin(&run, job, tree.attempt), tree.id);
    repository.move_ref(&pin, repository.resolve(&pin)?.as_deref(), &commit)?;
    remove(ctx, tree, job)?;
    Ok(pin)
}

/// Takes a tree away whose contents are safe elsewhere; what a cut leaves of it is taken away the same way.
fn remove(ctx: &Ctx, tree: &Tree, job: &Job) -> Result<()> {
    ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, TreeState::Released, Some(GOING))?))?;
    crate::os::crash::point("tree.going");
    let repository = super::repository(ctx)?;
    let lock = super::lock_repository(ctx)?;
    if tree.git_dir.is_some() {
        repository.remove_worktree(&super::folder(ctx, tree), &super::git_dir(&repository, tree)?)?;
    }
    drop(lock);
    crate::os::crash::point("tree.gone");
    gone(ctx, tree, job, None)
}

/// Clears the repository of a tree in which nothing is to be kept: one that is gone, or in which nobody has worked.
fn clear(ctx: &Ctx, tree: &Tree, job: &Job, why: &str) -> Result<()> {
    let lock = super::lock_repository(ctx)?;
    super::repository(ctx)?.clear_half_made(&super::folder(ctx, tree))?;
    drop(lock);
    gone(ctx, tree, job, Some(why))
}

/// The outcome: a tree is gone, and so is its index.
fn gone(ctx: &Ctx, tree: &Tree, job: &Job, reason: Option<&str>) -> Result<()> {
    let folder = super::folder(ctx, tree);
    let _ = std::fs::remove_file(super::index(&folder));
    let _ = std::fs::remove_dir_all(super::drafts(&folder));
    ctx.write("tree", |tx| {
        store::tree::set_state(tx, tree.id, TreeState::Removed, reason)?;
        tell(tx, EventType::TreeRemoved, job, &json!({"attempt": tree.attempt, "path": tree.path, "why": reason}))
    })
}

/// A tree whose folder somebody took away: it is said, and its registration goes. Commits are pinned elsewhere.
pub fn missing(ctx: &Ctx, tree: &Tree, job: &Job) -> Result<()> {
    if tree.state != TreeState::Missing {
        let state = tree.state.next(TreeEvent::Lose)?;
        ctx.write("tree", |tx| Ok(store::tree::set_state(tx, tree.id, state, Some("its folder is gone"))?))?;
    }
    crate::os::crash::point("tree.missing");
    clear(ctx, tree, job, "its folder was gone")
}

/// A tree that could not be made usable, in which nobody has worked.
pub fn give_up(ctx: &Ctx, tree: &Tree, why: &str) -> Result<()> {
    let job = ctx.read(|read| Ok(store::job::get(read, tree.job)?))?;
    clear(ctx, tree, &job, why)
}

/// A run may have ended: its trees go, as far as they are clean and nobody works in them. Whoever may be the last one
/// says this: who ended it, a helper that ends, a driver.
pub fn at_end(ctx: &Ctx, run: RunId) -> Result<()> {
    let run = ctx.read(|read| Ok(store::run::get(read, run)?))?;
    if run.state.is_terminal() { tidy(ctx, &run) } else { Ok(()) }
}

/// Trees of a run that has ended: those that are clean go. One that can't go keeps no other from going.
fn tidy(ctx: &Ctx, run: &Run) -> Result<()> {
    for tree in ctx.read(|read| Ok(store::tree::there(read, run.id)?))? {
        if !is_used(ctx, &tree)? {
            let job = ctx.read(|read| Ok(store::job::get(read, tree.job)?))?;
            try_release(ctx, &tree, &job);
        }
    }
    Ok(())
}

/// Whether somebody may still be at the attempt that works in a tree: its session is open, and a lock says that its
/// helper or agent lives.
pub fn is_used(ctx: &Ctx, tree: &Tree) -> Result<bool> {
    let holder = ctx.read(|read| {
        let session = store::attempt::get(read, tree.job, tree.attempt)?.session;
        Ok(session.map(|session| store::session::get(read, session)).transpose()?.flatten())
    })?;
    let Some(holder) = holder.filter(|holder| holder.supervised && holder.state == SessionState::Active) else {
        return Ok(false);
    };
    let scratch = ctx.layout().scratch(&holder.id.to_string());
    Ok([scratch.helper_lock(), scratch.lane_lock()]
        .iter()
        .map(|lock| probe(lock))
        .collect::<std::result::Result<Vec<_>, _>>()?
        .contains(&Held::Held))
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
