//! `run retry-job`: an operator gives jobs their tries back. The only way a failed or canceled run lives again.
//!
//! A rescue verb: no driver calls it, and each use is a decision with its reason. It opens no gate: a job that a
//! person stopped at one waits there again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::find;
use super::marker::Onward;
use crate::domain::event::EventType;
use crate::domain::id::JobId;
use crate::domain::job::{Cause, JobEvent, JobState};
use crate::domain::packet::Context;
use crate::domain::run::RunState;
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection, Writing};
use crate::verbs::flow::offer::{self, GATE_REJECTED, Offer};
use crate::verbs::flow::{Step, finish, panel, reopen, step, tell};
use crate::verbs::{Ctx, answer};

/// Why the reopening of a job says it happened.
const WHY: &str = "retried by an operator";

/// What `run retry-job` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RetryRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// The jobs; the one that the run stopped for when left out.
    pub jobs: Vec<String>,
    /// Every failed job that the run did not go on without.
    pub failed: bool,
    /// A word for whoever works them next.
    pub note: Option<String>,
    /// The lane of the next attempt.
    pub lane: Option<String>,
    /// Why.
    pub reason: String,
}

/// A job that was retried.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Retried {
    /// Its name.
    pub job: String,
    /// Where it was.
    pub was: JobState,
    /// Where it is.
    pub state: JobState,
    /// What it waits for now, if it waits.
    pub reason: Option<String>,
    /// Its newest attempt.
    pub attempt: u32,
}

/// What `run retry-job` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RetryReport {
    /// The run's name.
    pub run: String,
    /// The run was failed, canceled or stuck, and lives again.
    pub revived: bool,
    /// Each job.
    pub retried: Vec<Retried>,
    /// How many other jobs of a canceled run are back.
    pub back: usize,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Gives jobs their tries back and offers a new attempt of each.
pub fn retry(ctx: &Ctx, request: &RetryRequest) -> Result<RetryReport> {
    if request.reason.trim().is_empty() {
        return Err(Error::new(Code::Usage, "--reason is empty: it is recorded"));
    }
    let (id, mut report) = ctx.write("run retry-job", |tx| {
        let run = meant(tx, request.run.as_deref())?;
        let targets = targets(tx, &run, request)?;
        if let Some(lane) = &request.lane {
            for job in &targets {
                check_lane(&run, job, lane)?;
            }
        }
        let before: Vec<(JobId, JobState)> = targets.iter().map(|job| (job.id, job.state)).collect();
        let revived = !matches!(run.state, RunState::Running);
        finish::revive(tx, run.id, &request.reason)?;
        let run = store::run::get(tx, run.id)?;
        let back = bring_back(tx, &run, &before)?;
        for job in targets {
            record(ctx, tx, &job, request)?;
            one(tx, &run, job, request)?;
        }
        let retried = before.iter().map(|(id, was)| retried(tx, *id, *was)).collect::<Result<_>>()?;
        Ok((run.id, RetryReport { run: run.name, revived, retried, back, onward: Onward::default() }))
    })?;
    report.onward = Onward::look(ctx, id)?;
    Ok(report)
}

/// The run to rescue: a dead one can be meant too.
fn meant(read: &Connection, name: Option<&str>) -> Result<Run> {
    let run = match (name, store::run::live(read, 1)?.is_empty()) {
        (Some(name), _) => find::named(read, name)?,
        (None, false) => find::for_writing(read, None)?,
        (None, true) => match store::run::newest(read, 1)?.pop() {
            Some(run) => run,
            None => find::for_writing(read, None)?,
        },
    };
    match run.state {
        RunState::Ready | RunState::Completed => {
            Err(Error::new(Code::InvalidTransition, format!("run {} is {}: nothing to retry", run.name, run.state)))
        }
        RunState::Running | RunState::NeedsOperator | RunState::Failed | RunState::Canceled => Ok(run),
    }
}

fn targets(read: &Connection, run: &Run, request: &RetryRequest) -> Result<Vec<Job>> {
    let mut targets = Vec::new();
    for name in request.jobs.iter().collect::<BTreeSet<_>>() {
        let job = find::job(read, run, name)?;
        if !may_be_retried(read, run, &job)? {
            return Err(refusal(&job));
        }
        targets.push(job);
    }
    if request.failed {
        let failed = store::job::in_state(read, run.id, JobState::Failed, u32::MAX)?;
        targets.extend(failed.into_iter().filter(|job| !job.settled && !request.jobs.contains(&job.name)));
    }
    if request.jobs.is_empty() && !request.failed {
        targets.extend(stopped_for(read, run)?);
    }
    // A canceled run comes back as a whole.
    if targets.is_empty() && run.state != RunState::Canceled {
        return Err(Error::new(Code::NotFound, format!("no job of {} can be retried", run.name))
            .hint("name one that is failed, canceled, waiting for a person, or rejected at its gate"));
    }
    Ok(targets)
}

/// The job that the run says it stopped for.
fn stopped_for(read: &Connection, run: &Run) -> Result<Option<Job>> {
    let Some(subject) = run.subject.as_deref() else { return Ok(None) };
    match store::job::by_name(read, run.id, subject)? {
        Some(job) if may_be_retried(read, run, &job)? => Ok(Some(job)),
        _ => Ok(None),
    }
}

fn may_be_retried(read: &Connection, run: &Run, job: &Job) -> Result<bool> {
    Ok(match job.state {
        JobState::Failed | JobState::WaitingHuman | JobState::Canceled => true,
        JobState::Waiting => job.reason.as_deref() == Some(GATE_REJECTED),
        // Its artifacts were found damaged.
        JobState::Completed if run.cause == Some(Cause::Other) && run.state == RunState::NeedsOperator => true,
        // What its panel rejected, and the review that did.
        JobState::Completed if run.state == RunState::Failed => {
            !job.settled || store::job::panel(read, job.id)?.iter().any(|review| !review.settled)
        }
        JobState::Completed
        | JobState::Queued
        | JobState::Claimed
        | JobState::Running
        | JobState::Stale
        | JobState::Skipped => false,
    })
}

fn refusal(job: &Job) -> Error {
    let reason = job.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    let error = Error::new(Code::InvalidTransition, format!("{} is {}{reason}: nothing to retry", job.name, job.state));
    match job.state {
        JobState::Stale => error.next(Next::new(
            "operator",
            "put it back without looking what it did",
            &["striatum", "work", "requeue-stale", &job.name, "--reason", "WHY"],
        )),
        _ => error.hint("a job that is failed, canceled, waiting for a person, or rejected at its gate can be retried"),
    }
}

fn check_lane(run: &Run, job: &Job, lane: &str) -> Result<()> {
    if !run.spec.lanes.contains_key(lane) {
        let known: Vec<&str> = run.spec.lanes.keys().map(String::as_str).collect();
        return Err(
            Error::new(Code::Usage, format!("the run has no lane {lane}")).hint(format!("it has {}", known.join(", ")))
        );
    }
    let role = job.spec.role.as_deref().and_then(|role| run.spec.roles.get(role));
    match role {
        Some(role) if !role.lanes.is_empty() && !role.lanes.iter().any(|known| known == lane) => {
            Err(Error::new(Code::Usage, format!("{} can't go to lane {lane}", job.name))
                .hint(format!("lanes of its role: {}", role.lanes.join(", "))))
        }
        Some(_) => Ok(()),
        None => Err(Error::new(Code::Usage, format!("{} has no lane: it is a person's", job.name))),
    }
}

fn record(ctx: &Ctx, tx: &Writing<'_>, job: &Job, request: &RetryRequest) -> Result<()> {
    let new = NewDecision {
        run: Some(job.run),
        job: Some(job.id),
        kind: "retry",
        body: request.note.as_deref().unwrap_or_default(),
        reason: &request.reason,
        how: ctx.person().unwrap_or("operator"),
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    tell(tx, EventType::DecisionRecorded, job, &json!({"decision": decision, "kind": "retry", "was": job.state}))
}

/// Jobs that ended with their run go back to where they can go on from; returns how many beside the targets.
fn bring_back(tx: &Writing<'_>, run: &Run, targets: &[(JobId, JobState)]) -> Result<usize> {
    let canceled = store::job::in_state(tx, run.id, JobState::Canceled, u32::MAX)?;
    for job in &canceled {
        step(tx, job, &Step { event: JobEvent::Block, reason: None, settled: false })?;
    }
    for job in &canceled {
        store::job::recount(tx, job.id)?;
    }
    let is_target = |job: &&Job| targets.iter().any(|(id, _)| *id == job.id);
    let others: Vec<&Job> = canceled.iter().filter(|job| !is_target(job)).collect();
    for job in &others {
        if store::job::get(tx, job.id)?.unmet == 0 {
            offer::release(tx, run, job.id)?;
        }
    }
    Ok(others.len())
}

/// One job: its tries are back; what is behind it waits; a new attempt is offered where nothing else keeps it.
fn one(tx: &Writing<'_>, run: &Run, was: Job, request: &RetryRequest) -> Result<()> {
    store::job::forgive(tx, was.id)?;
    let job = store::job::get(tx, was.id)?;
    if was.state == JobState::Waiting {
        return offer::release(tx, run, job.id);
    }
    // Another job of the same request stands before it and was sent back meanwhile.
    if job.state == JobState::Waiting && job.unmet > 0 {
        return Ok(());
    }
    let mut context = answer::before(tx, &job)?;
    context.note = request.note.clone().or(context.note);
    if was.state == JobState::Completed && !panel::findings(tx, &job)?.is_empty() {
        context.findings = panel::findings(tx, &job)?;
    }
    if was.state == JobState::Canceled {
        return put_back(tx, run, &job, request, context);
    }
    reopen::reopen_with(tx, job.id, WHY, &Offer { context, lane: request.lane.as_deref(), ..Offer::default() })?;
    Ok(())
}

/// A job that was canceled stands where it stood before: behind its needs, at its gate, or in the queue.
fn put_back(tx: &Writing<'_>, run: &Run, job: &Job, request: &RetryRequest, context: Context) -> Result<()> {
    if offer::waits_for_gate(run, job) {
        return offer::release(tx, run, job.id);
    }
    offer::offer(tx, job, &Offer { context, lane: request.lane.as_deref(), ..Offer::default() })?;
    Ok(())
}

fn retried(read: &Connection, id: JobId, was: JobState) -> Result<Retried> {
    let job = store::job::get(read, id)?;
    Ok(Retried { job: job.name, was, state: job.state, reason: job.reason, attempt: job.attempt })
}
