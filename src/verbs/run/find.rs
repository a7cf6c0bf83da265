//! Which run is meant when nobody names one.
//!
//! Reads take the only live run, else the newest, and say so; writes need exactly one candidate.

use crate::domain::run::RunState;
use crate::domain::workflow::keys::nearest;
use crate::error::{Code, Error, Next, Result};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::Ctx;

/// How many candidates an error lists.
const SHOWN: u32 = 10;

/// The run that a reading verb means.
pub fn for_reading(ctx: &Ctx, read: &Connection, name: Option<&str>) -> Result<Run> {
    if let Some(name) = name {
        return named(read, name);
    }
    let live = store::run::live(read, 2)?;
    let chosen = match live.as_slice() {
        [only] => only.clone(),
        _ => store::run::newest(read, 1)?.into_iter().next().ok_or_else(no_runs)?,
    };
    if store::run::count(read)? > 1 {
        ctx.notice(&format!("run {}", chosen.name));
    }
    Ok(chosen)
}

/// The run that a reading verb means; none in a store without runs, unless one was named.
pub fn if_any(ctx: &Ctx, read: &Connection, name: Option<&str>) -> Result<Option<Run>> {
    if name.is_none() && store::run::count(read)? == 0 {
        return Ok(None);
    }
    for_reading(ctx, read, name).map(Some)
}

/// The run that a writing verb means, in a store that it may be the first to need.
pub fn to_change(ctx: &Ctx, name: Option<&str>) -> Result<Run> {
    ctx.ensure_store()?;
    ctx.read(|read| for_writing(read, name))
}

/// The run that a writing verb means.
pub fn for_writing(read: &Connection, name: Option<&str>) -> Result<Run> {
    if let Some(name) = name {
        return named(read, name);
    }
    let mut live = store::run::live(read, SHOWN)?;
    match live.len() {
        0 => Err(no_live_run(read)?),
        1 => Ok(live.remove(0)),
        _ => {
            let names: Vec<&str> = live.iter().map(|run| run.name.as_str()).collect();
            Err(Error::new(Code::Ambiguous, format!("several runs are live: {}", names.join(", ")))
                .hint("name one with --run-id"))
        }
    }
}

/// A run by its name.
pub fn named(read: &Connection, name: &str) -> Result<Run> {
    store::run::by_name(read, name)?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no run {name}")).next(Next::new(
            "anyone",
            "list the runs",
            &["striatum", "run", "list"],
        ))
    })
}

/// A job by its name.
pub fn job(read: &Connection, run: &Run, name: &str) -> Result<Job> {
    if let Some(job) = store::job::by_name(read, run.id, name)? {
        return Ok(job);
    }
    let lines = store::job::lines(read, run.id, u32::MAX)?;
    let error = Error::new(Code::NotFound, format!("run {} has no job {name}", run.name));
    Err(match nearest(name, lines.iter().map(|line| line.name.as_str())) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    })
}

/// The job that a writing verb means: of the named run, else of the only live run where it fits, else of the only
/// one that has it at all.
pub fn job_for_writing(
    read: &Connection,
    run: Option<&str>,
    name: &str,
    fits: impl Fn(&Job) -> bool,
) -> Result<(Run, Job)> {
    if let Some(run) = run {
        let run = named(read, run)?;
        let job = job(read, &run, name)?;
        return Ok((run, job));
    }
    let mut live = store::run::live(read, u32::MAX)?;
    if live.len() < 2 {
        let run = live.pop().map_or_else(|| Err(no_live_run(read)?), Ok)?;
        let job = job(read, &run, name)?;
        return Ok((run, job));
    }
    let mut having = Vec::new();
    for run in live {
        if let Some(job) = store::job::by_name(read, run.id, name)? {
            having.push((run, job));
        }
    }
    if having.iter().filter(|(_, job)| fits(job)).count() == 1 {
        having.retain(|(_, job)| fits(job));
    }
    if having.len() == 1 {
        return Ok(having.remove(0));
    }
    if having.is_empty() {
        return Err(Error::new(Code::NotFound, format!("no live run has a job {name}")));
    }
    let names: Vec<&str> = having.iter().take(SHOWN as usize).map(|(run, _)| run.name.as_str()).collect();
    Err(Error::new(Code::Ambiguous, format!("several live runs have a job {name}: {}", names.join(", ")))
        .hint("name one with --run-id"))
}

/// A run whose jobs a person or operator may still move.
pub fn must_be_live(run: &Run) -> Result<()> {
    match run.state {
        RunState::Running | RunState::NeedsOperator => Ok(()),
        RunState::Ready => Err(Error::new(Code::NotRunning, format!("run {} is not started", run.name))
            .next(Next::new("operator", "start it", &["striatum", "run", "start", "--run-id", &run.name]))),
        RunState::Failed | RunState::Canceled => {
            Err(Error::new(Code::NotRunning, format!("run {} is {}", run.name, run.state)).next(Next::new(
                "operator",
                "bring it back to life with one of its jobs",
                &["striatum", "run", "retry-job", "JOB", "--run-id", &run.name, "--reason", "WHY"],
            )))
        }
        RunState::Completed => Err(Error::new(Code::NotRunning, format!("run {} is completed", run.name))),
    }
}

fn no_runs() -> Error {
    Error::new(Code::NotFound, "there is no run yet").next(Next::new(
        "operator",
        "start the first one",
        &["striatum", "run", "go", "-w", "NAME"],
    ))
}

fn no_live_run(read: &Connection) -> Result<Error> {
    let error = no_runs();
    let Some(newest) = store::run::newest(read, 1)?.into_iter().next() else { return Ok(error) };
    Ok(Error::new(Code::NotFound, format!("no run is live; the newest, {}, is {}", newest.name, newest.state))
        .hint("name a run with --run-id"))
}
