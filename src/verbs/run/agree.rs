//! The look before a launch: whether plan and world agree about a job.
//!
//! A run's branch is read from its file; git is asked only where no such file is.

use crate::domain::action::Action;
use crate::domain::frozen::TreeKind;
use crate::domain::id::RunId;
use crate::error::Result;
use crate::os::git::Git;
use crate::store;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::verbs::flow::agreement::{self, Disagreement, Frozen};
use crate::verbs::{Ctx, tree};

/// What a process remembers of the plan between launches.
#[derive(Default)]
pub struct Plan {
    frozen: Option<Frozen>,
}

impl Plan {
    /// Looks before a driver launches; a disagreement stops the job. The line that tells it.
    pub fn before(&mut self, ctx: &Ctx, run: RunId, action: &Action) -> Result<Option<String>> {
        let Action::Launch(launch) = action else { return Ok(None) };
        let (run, job) = ctx.read(|read| Ok((store::run::get(read, run)?, store::job::get(read, launch.job)?)))?;
        let Some(found) = self.look(ctx, &run, &job)? else { return Ok(None) };
        ctx.write("settle", |tx| agreement::stop(tx, &run, job.id, &found))?;
        Ok(Some(format!("{} is not launched, the plan disagrees: {found}", job.name)))
    }

    /// The first field in which plan and world disagree about a job.
    pub fn look(&mut self, ctx: &Ctx, run: &Run, job: &Job) -> Result<Option<Disagreement>> {
        let changed = ctx.read(|read| {
            let frozen = match self.frozen.take().filter(|frozen| frozen.is_in_force(run)) {
                Some(frozen) => frozen,
                None => Frozen::load(read, run)?,
            };
            let found = frozen.check(run, job);
            self.frozen = Some(frozen);
            Ok(found)
        })?;
        match changed {
            Some(found) => Ok(Some(found)),
            None => around(ctx, run, job),
        }
    }
}

/// The same without reading the whole plan again: for a helper whose driver looked at this very job a moment ago.
pub fn around(ctx: &Ctx, run: &Run, job: &Job) -> Result<Option<Disagreement>> {
    let in_store = ctx.read(|read| match agreement::scopes(read, run, job)? {
        Some(found) => Ok(Some(found)),
        None => agreement::verification(read, job),
    })?;
    match in_store {
        Some(found) => Ok(Some(found)),
        None if job.spec.tree != TreeKind::None => branch(ctx, run),
        None => Ok(None),
    }
}

/// Whether the run's branch is where it was left. Others may be moving it: what looks wrong is looked at once more under
/// the repository's lock.
fn branch(ctx: &Ctx, run: &Run) -> Result<Option<Disagreement>> {
    let Some(git) = Git::of(ctx.layout()) else { return Ok(None) };
    let compare = || {
        let at = position(&git, run)?;
        ctx.read(|read| agreement::branch(read, &store::run::get(read, run.id)?, at.as_deref()))
    };
    if compare()?.is_none() {
        return Ok(None);
    }
    let _lock = tree::lock_repository(ctx)?;
    compare()
}

fn position(git: &Git, run: &Run) -> Result<Option<String>> {
    let branch = tree::branch(run);
    match std::fs::read_to_string(git.git_dir().join(&branch)) {
        Ok(text) if !text.starts_with("ref:") => Ok(Some(text.trim().to_owned())),
        _ => Ok(git.resolve(&branch)?),
    }
}
