//! `run amend`: a new snapshot generation for attempts that nobody has claimed yet.
//!
//! What may change stands in `domain::workflow::amend`. A hold that exists keeps what it was given.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::find;
use crate::domain::breaker::of_key;
use crate::domain::event::EventType;
use crate::domain::frozen::Snapshot;
use crate::domain::job::JobState;
use crate::domain::run::RunState;
use crate::domain::session::MessageState;
use crate::domain::workflow::amend::{Changed, Set, amend as apply};
use crate::domain::workflow::hash;
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::frozen::Generation;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::{breaker, finish};

/// What `run amend` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AmendRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
    /// The job, for a job's keys.
    pub job: Option<String>,
    /// The new values.
    pub set: Vec<Set>,
    /// Why; it is recorded.
    pub reason: String,
}

/// What `run amend` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AmendReport {
    /// The run's name.
    pub run: String,
    /// The job, if one was named.
    pub job: Option<String>,
    /// The generation in force.
    pub generation: i64,
    /// The snapshot's hash.
    pub snapshot: String,
    /// What is different now; empty when everything stood so before.
    pub changed: Vec<Changed>,
    /// The run needed an operator and goes on.
    pub revived: bool,
    /// From when it holds.
    pub notes: Vec<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Changes what may change while a run lives.
pub fn amend(ctx: &Ctx, request: &AmendRequest) -> Result<AmendReport> {
    if request.reason.trim().is_empty() {
        return Err(Error::new(Code::Usage, "`run amend` needs --reason: it is recorded"));
    }
    if request.set.is_empty() {
        return Err(Error::new(Code::Usage, "name what changes with --set KEY=VALUE"));
    }
    ctx.ensure_store()?;
    let found = ctx.read(|read| match &request.job {
        // A job's name may tell which run is meant.
        Some(job) if request.run.is_none() => {
            find::job_for_writing(read, None, job, |job| !job.settled).map(|(run, _)| run)
        }
        _ => find::for_writing(read, request.run.as_deref()),
    })?;
    ctx.write("run amend", |tx| {
        let run = store::run::get(tx, found.id)?;
        if run.state == RunState::Completed {
            return Err(Error::new(Code::InvalidTransition, format!("run {} is completed already", run.name)));
        }
        let (old_hash, mut snapshot) = store::frozen::get(tx, run.id, run.generation)?;
        let changed = apply(&mut snapshot, request.job.as_deref(), &request.set)?;
        let job = match &request.job {
            Some(name) => store::job::by_name(tx, run.id, name)?,
            None => None,
        };
        let mut report = AmendReport {
            run: run.name.clone(),
            job: request.job.clone(),
            generation: run.generation,
            snapshot: old_hash,
            revived: false,
            notes: job.iter().filter_map(from_when).collect(),
            next: Vec::new(),
            changed,
        };
        if !report.changed.is_empty() {
            report.snapshot = write(tx, &run, &snapshot, request)?;
            report.generation += 1;
            tell(tx, &run, request, &report)?;
            forget_trips(tx, &run, &report.changed)?;
            report.revived = revive(tx, &run, &report.changed)?;
        }
        report.next = next(&run, job.as_ref(), &report);
        Ok(report)
    })
}

/// Puts the generation in force; returns its hash.
fn write(tx: &Writing<'_>, run: &Run, snapshot: &Snapshot, request: &AmendRequest) -> Result<String> {
    let hash = hash(snapshot);
    let number = run.generation + 1;
    let generation = Generation { number, hash: &hash, body: snapshot, reason: &request.reason };
    store::frozen::insert(tx, run.id, &generation)?;
    store::run::amend(tx, run.id, number, &snapshot.run, run.trust.as_deref())?;
    for spec in &snapshot.jobs {
        let Some(job) = store::job::by_name(tx, run.id, &spec.id)?.filter(|job| job.spec != *spec) else { continue };
        store::job::respec(tx, job.id, spec)?;
        let message = store::message::live_of_job(tx, job.id)?;
        let pending = message.filter(|message| message.state == MessageState::Pending && job.spec.lane != spec.lane);
        if let (Some(message), Some(lane)) = (pending, &spec.lane) {
            store::message::set_lane(tx, message.id, lane)?;
        }
    }
    Ok(hash)
}

fn tell(tx: &Writing<'_>, run: &Run, request: &AmendRequest, report: &AmendReport) -> Result<()> {
    let job = match &request.job {
        Some(name) => store::job::by_name(tx, run.id, name)?.map(|job| job.id),
        None => None,
    };
    let body = json!({"generation": report.generation, "snapshot": report.snapshot, "job": request.job,
        "changed": report.changed, "why": request.reason});
    Ok(store::event::append(tx, EventType::RunAmended, About { run: Some(run.id), job, session: None }, &body)?)
}

/// A breaker whose limit was moved trips anew where it still is in the way.
fn forget_trips(tx: &Writing<'_>, run: &Run, changed: &[Changed]) -> Result<()> {
    for cause in changed.iter().filter_map(|change| of_key(&change.key)?.cause) {
        breaker::forget(tx, &store::run::get(tx, run.id)?, cause)?;
    }
    Ok(())
}

/// What may make something launchable lets the run go on; a driver that finds nothing says so again.
fn revive(tx: &Writing<'_>, run: &Run, changed: &[Changed]) -> Result<bool> {
    let may_move = |key: &str| {
        matches!(
            key,
            "budget.launches"
                | "budget.cost_usd"
                | "budget.active_time"
                | "budget.no_progress"
                | "max_active_jobs"
                | "lane"
        )
    };
    let is_revived = run.state == RunState::NeedsOperator && changed.iter().any(|change| may_move(&change.key));
    if is_revived {
        finish::revive(tx, run.id, "amended")?;
    }
    Ok(is_revived)
}

/// From when a job's new values hold, where that is not at once.
fn from_when(job: &Job) -> Option<String> {
    match job.state {
        JobState::Claimed | JobState::Running => Some(format!(
            "{} is at attempt {}, which goes on as it was; the next one is amended",
            job.name, job.attempt
        )),
        JobState::Completed | JobState::Skipped => {
            Some(format!("{} is {}; it would hold if something sends it back", job.name, job.state))
        }
        JobState::Failed | JobState::WaitingHuman | JobState::Canceled | JobState::Stale => {
            Some(format!("{} is {}; it holds from its next attempt on", job.name, job.state))
        }
        JobState::Waiting | JobState::Queued => None,
    }
}

fn next(run: &Run, job: Option<&Job>, report: &AmendReport) -> Vec<Next> {
    let name = run.name.as_str();
    if let Some(job) = job.filter(|job| matches!(job.state, JobState::Failed | JobState::Canceled)) {
        let argv = ["striatum", "run", "retry-job", &job.name, "--run-id", name, "--reason", "..."];
        return vec![Next::new("operator", "give it another attempt", &argv)];
    }
    let is_live = run.state == RunState::Running || report.revived;
    match run.state {
        RunState::Ready => vec![Next::new("operator", "start it", &["striatum", "run", "start", "--run-id", name])],
        _ if is_live => vec![Next::new("operator", "drive it", &["striatum", "run", "drive", "--run-id", name])],
        _ => vec![Next::new("anyone", "see where it is", &["striatum", "run", "summary", "--run-id", name])],
    }
}
