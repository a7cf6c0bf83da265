//! Commit, pin, integrate: a verified change becomes one commit on the run's branch.
//!
//! Intent, effect, outcome: the row first, then the pin and the branch, each moved only from where it was seen; the
//! outcome is written with the seal. The same change gives the same commit, so that doing it again after a cut does
//! nothing twice.

use std::path::PathBuf;

use super::changes::Listed;
use super::must_still_hold;
use crate::domain::contract::Answer;
use crate::domain::job::Outcome;
use crate::domain::session::ChangeState;
use crate::domain::trailer;
use crate::error::Result;
use crate::os::git::{Git, Merged, NewCommit};
use crate::store;
use crate::store::change::NewChange;
use crate::verbs::flow::seal;
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, tree};

/// What integrating came to.
pub enum Integrated {
    /// On the run's branch; to be recorded with the seal.
    Done,
    /// Others have changed the same places meanwhile.
    Conflict(Vec<PathBuf>),
    /// The branch is not where it was left.
    Moved(String),
}

/// Commits, pins and integrates a change.
pub fn integrate(ctx: &Ctx, hold: &Hold, listed: &Listed, answer: &Answer) -> Result<Integrated> {
    let git = tree::repository(ctx)?;
    let commit = commit(ctx, &git, hold, listed, answer)?;
    pin(&git, hold, &commit)?;
    crate::os::crash::point("settle.pinned");
    let _lock = tree::lock_repository(ctx)?;
    let run = ctx.read(|read| Ok(store::run::get(read, hold.run.id)?))?;
    let tip = tree::tip(ctx, &git, &run)?;
    if let Some(why) = moved(ctx, &run, &tip)? {
        return Ok(Integrated::Moved(why));
    }
    let next = if tip == listed.base {
        commit.clone()
    } else if git.is_ancestor(&commit, &tip)? {
        // Moved before by a settling that was cut: where it was put stands in its row, and stays there.
        if ctx.read(|read| Ok(store::change::get(read, hold.job.id, hold.lease.attempt)?))?.is_some_and(is_aimed) {
            return Ok(Integrated::Done);
        }
        tip.clone()
    } else {
        match merge(ctx, &git, hold, (&tip, &commit), listed)? {
            Ok(merge) => merge,
            Err(paths) => return Ok(Integrated::Conflict(paths)),
        }
    };
    ctx.write("settle", |tx| {
        must_still_hold(tx, hold, &store::job::get(tx, hold.job.id)?)?;
        store::change::aim(tx, (hold.job.id, hold.lease.attempt), &tip, &next)?;
        Ok(store::run::set_tip(tx, hold.run.id, &next)?)
    })?;
    crate::os::crash::point("settle.aimed");
    if next != tip {
        git.move_ref(&tree::branch(&run), Some(&tip), &next)?;
    }
    crate::os::crash::point("settle.integrated");
    Ok(Integrated::Done)
}

/// It is known where the branch was to be moved for it.
fn is_aimed(change: store::change::Change) -> bool {
    change.tip_after.is_some()
}

/// Changes of earlier attempts that came onto the run's branch and were never sealed, because whoever settled them died
/// too often: their outcome is written now. True when there are some.
pub fn adopt(ctx: &Ctx, hold: &Hold) -> Result<bool> {
    let earlier = ctx.read(|read| {
        let attempts = store::attempt::of_job(read, hold.job.id, u32::MAX)?;
        let sealed = attempts.iter().find(|attempt| attempt.outcome == Some(Outcome::Sealed));
        let sealed = sealed.map_or(0, |attempt| attempt.number);
        let mut changes = store::change::of_job(read, hold.job.id)?;
        changes.retain(|change| change.attempt > sealed && change.attempt < hold.lease.attempt);
        Ok(changes)
    })?;
    if earlier.is_empty() {
        return Ok(false);
    }
    let git = tree::repository(ctx)?;
    let tip = tree::tip(ctx, &git, &hold.run)?;
    let mut found = false;
    for change in earlier {
        if change.state == ChangeState::Integrated {
            // Adopted before, by a settling that was cut too.
            found = true;
        } else if git.is_ancestor(&change.commit, &tip)? {
            ctx.write("settle", |tx| seal::integrated(tx, &hold.job, change.attempt))?;
            found = true;
        }
    }
    Ok(found)
}

/// The change as a commit on its base, with its intent recorded.
fn commit(ctx: &Ctx, git: &Git, hold: &Hold, listed: &Listed, answer: &Answer) -> Result<String> {
    let commit = make(ctx, git, hold, (&listed.tree, &[&listed.base]), &message(hold, answer))?;
    ctx.write("settle", |tx| {
        let new = NewChange {
            job: hold.job.id,
            attempt: hold.lease.attempt,
            base: &listed.base,
            commit: &commit,
            tree: &listed.tree,
            files: u32::try_from(listed.changes.len()).unwrap_or(u32::MAX),
        };
        Ok(store::change::intend(tx, &new)?)
    })?;
    crate::os::crash::point("settle.committed");
    Ok(commit)
}

fn pin(git: &Git, hold: &Hold, commit: &str) -> Result<()> {
    let pin = tree::pin(&hold.run, &hold.job, hold.lease.attempt);
    // Mostly there is none yet, and asking first would be one process more.
    if git.move_ref(&pin, None, commit).is_err() {
        git.move_ref(&pin, git.resolve(&pin)?.as_deref(), commit)?;
    }
    Ok(())
}

/// Why the branch is not where it was left; none when it is, or when a move of ours was cut off.
fn moved(ctx: &Ctx, run: &store::run::Run, tip: &str) -> Result<Option<String>> {
    let Some(left) = run.tip.as_deref().or(run.base.as_deref()) else { return Ok(None) };
    if left == tip || ctx.read(|read| Ok(store::change::is_aimed(read, run.id, tip, left)?))? {
        return Ok(None);
    }
    Ok(Some(format!("plan_disagrees: branch striatum/{} is at {tip}, and was left at {left}", run.name)))
}

/// The change on top of what others integrated meanwhile; the inner error names the conflicting paths.
fn merge(
    ctx: &Ctx,
    git: &Git,
    hold: &Hold,
    (tip, commit): (&str, &str),
    listed: &Listed,
) -> Result<std::result::Result<String, Vec<PathBuf>>> {
    let tree = match git.merge(tip, commit)? {
        Merged::Clean { tree } => tree,
        Merged::Conflict { paths, .. } => return Ok(Err(paths)),
    };
    // What the merge changes on the branch was judged before: nothing else may come along.
    let strays: Vec<PathBuf> = git
        .changes(tip, &tree)?
        .into_iter()
        .map(|change| change.path)
        .filter(|path| !listed.changes.iter().any(|change| change.path == *path))
        .collect();
    if !strays.is_empty() {
        return Ok(Err(strays));
    }
    let message = format!("Merge {} into {}\n", hold.job.name, hold.run.name);
    make(ctx, git, hold, (&tree, &[tip, commit]), &message).map(Ok)
}

/// A commit of the run's own, dated by the attempt's row: the same parts give the same commit.
fn make(ctx: &Ctx, git: &Git, hold: &Hold, (tree, parents): (&str, &[&str]), message: &str) -> Result<String> {
    let at = ctx.read(|read| Ok(store::attempt::get(read, hold.job.id, hold.lease.attempt)?))?.queued_at;
    let author = tree::author();
    let new = NewCommit { tree, parents, message, author: &author, at: at.0.div_euclid(1000) };
    Ok(git.commit(&new)?)
}

/// What the commit says: the workflow's words, else the answer's, else the job's objective; then where it comes from.
fn message(hold: &Hold, answer: &Answer) -> String {
    let spec = &hold.job.spec;
    let said = [Some(spec.commit_message.as_str()), answer.commit_message.as_deref(), answer.summary.as_deref()];
    let said = said.into_iter().flatten().map(str::trim).find(|text| !text.is_empty());
    let body = said.map_or_else(|| headline(&hold.job.name, &spec.objective), str::to_owned);
    trailer::below(&body, &trailer::of_attempt(&hold.run.name, &hold.job.name, hold.lease.attempt))
}

/// The first line of an objective, short enough for a commit's.
fn headline(job: &str, objective: &str) -> String {
    let first = objective.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(job);
    let mut line: String = first.chars().take(68).collect();
    if first.chars().count() > 68 {
        line.push_str("...");
    }
    line
}
