//! `run land`: lands a run's change by approving its one pending land gate, or says what is missing.

use serde::{Deserialize, Serialize};

use super::find;
use super::marker::Onward;
use crate::domain::frozen::JobType;
use crate::domain::id::{GateId, RunId};
use crate::domain::run::RunState;
use crate::error::{Code, Error, Next, Result};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::flow::gate::{self as flow, Decision, Said};
use crate::verbs::gate::{self, ApproveRequest, DecidedGate, Deciding};
use crate::verbs::{Ctx, land};

/// What `run land` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LandRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// Another branch than the workflow's.
    pub into: Option<String>,
    /// The person's words.
    #[serde(default)]
    pub note: Option<String>,
}

/// What `run land` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LandReport {
    /// The gate that was approved, and what landed.
    #[serde(flatten)]
    pub decided: DecidedGate,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Lands a run's change.
pub fn land(ctx: &Ctx, request: &LandRequest) -> Result<LandReport> {
    let how = ctx.person()?;
    let (run, job) = ctx.read(|read| {
        let run = meant(read, request.run.as_deref())?;
        Ok((run.clone(), land_job(read, &run)?))
    })?;
    if job.settled
        && let Some(landed) = land::of_job(ctx, &run, &job)?
    {
        let gate = ctx.read(|read| Ok(store::gate::newest_of_job(read, job.id)?))?;
        let decided = DecidedGate {
            run: run.name,
            gate: gate.map_or(GateId(0), |gate| gate.id),
            job: job.name,
            decision: Decision::Approve,
            already: true,
            landed: Some(landed),
        };
        return Ok(LandReport { decided, onward: Onward::look(ctx, run.id)? });
    }
    find::must_be_live(&run)?;
    if !flow::is_due(&job) {
        return Err(ctx.read(|read| missing(read, &run, &job))?);
    }
    let decided = match &request.into {
        None => by_gate(ctx, &run, &job, request)?,
        Some(into) => {
            let gate = open(ctx, run.id, &job)?;
            let said = Said { decision: Decision::Approve, how, note: request.note.as_deref() };
            gate::land_at(ctx, gate, &said, Some(into))?.1
        }
    };
    Ok(LandReport { decided, onward: Onward::look(ctx, run.id)? })
}

/// The same as approving the gate by its job's name.
fn by_gate(ctx: &Ctx, run: &Run, job: &Job, request: &LandRequest) -> Result<DecidedGate> {
    let (gates, note) = (vec![job.name.clone()], request.note.clone());
    let report = gate::approve(ctx, &ApproveRequest(Deciding { run: Some(run.name.clone()), gates, note, set: None }))?;
    report.decided.into_iter().next().ok_or_else(|| Error::new(Code::Bug, "a gate vanished"))
}

/// The open gate of the job; one that is due is opened. What changed since it was opened is not landed unseen.
fn open(ctx: &Ctx, run: RunId, job: &Job) -> Result<GateId> {
    let now = ctx.clock.moment();
    let (gate, is_anew) = ctx.write("gate open", |tx| {
        let run = store::run::get(tx, run)?;
        if let Some(gate) = store::gate::pending_of_job(tx, job.id)? {
            let anew = flow::renew(tx, &run, job, &gate, &now)?;
            return Ok((anew.unwrap_or(gate.id), anew.is_some()));
        }
        let opened = flow::open(tx, &run, job, &now)?;
        Ok((opened.ok_or_else(|| Error::new(Code::NotFound, "no gate waits"))?, false))
    })?;
    if is_anew { Err(gate::stale(&[(gate, job.name.clone())])) } else { Ok(gate) }
}

fn meant(read: &Connection, name: Option<&str>) -> Result<Run> {
    if name.is_none()
        && store::run::live(read, 1)?.is_empty()
        && let Some(newest) = store::run::newest(read, 1)?.pop()
    {
        return Ok(newest);
    }
    find::for_writing(read, name)
}

/// The run's one land job; of several the one that waits at its gate.
fn land_job(read: &Connection, run: &Run) -> Result<Job> {
    let mut jobs = Vec::new();
    for line in store::job::lines(read, run.id, u32::MAX)? {
        let job = store::job::get(read, line.id)?;
        if job.spec.kind == JobType::Land {
            jobs.push(job);
        }
    }
    if jobs.len() > 1 {
        let due: Vec<Job> = jobs.iter().filter(|job| flow::is_due(job)).cloned().collect();
        if due.len() != 1 {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            let message = format!("run {} has several jobs that land: {}", run.name, names.join(", "));
            return Err(Error::new(Code::Ambiguous, message).hint("name one: `striatum gate approve JOB`"));
        }
        jobs = due;
    }
    jobs.pop().ok_or_else(|| {
        let branch = format!("striatum/{}", run.name);
        Error::new(Code::NotFound, format!("run {} has no job that lands", run.name))
            .hint(format!("what it changed is on branch {branch}"))
            .next(Next::new("person", "take it by hand", &["git", "merge", "--squash", &branch]))
    })
}

/// Why there is nothing to land yet.
fn missing(read: &Connection, run: &Run, job: &Job) -> Result<Error> {
    let mut open = Vec::new();
    for needed in store::job::needs(read, job.id)? {
        let needed = store::job::get(read, needed)?;
        if !needed.settled {
            open.push(format!("{} is {}", needed.name, needed.state));
        }
    }
    let why = match (open.is_empty(), run.state) {
        (false, _) => open.join(", "),
        (true, RunState::Ready) => "the run is not started".to_owned(),
        (true, _) => {
            format!("{} is {}", job.name, job.reason.as_deref().unwrap_or(job.state.word()))
        }
    };
    let explain = ["striatum", "run", "explain", "--run-id", &run.name];
    Ok(Error::new(Code::InvalidTransition, format!("run {} can't land yet: {why}", run.name)).next(Next::new(
        "anyone",
        "see what would move it",
        &explain,
    )))
}
