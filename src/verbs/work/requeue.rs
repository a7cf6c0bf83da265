//! `work requeue-stale`: an operator puts back work whose holder is gone, without anybody looking what it did.
//!
//! A rescue verb: a driver looks first (`Observe`), and then settles, requeues or asks.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::job::{JobState, Outcome};
use crate::domain::session::{LeaseState, SessionState};
use crate::error::{Code, Error, Result};
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::{self, Connection, Writing};
use crate::verbs::flow::attempt;
use crate::verbs::flow::offer::{self, Offer};
use crate::verbs::flow::{finish, tell};
use crate::verbs::run::find;
use crate::verbs::run::marker::Onward;
use crate::verbs::{Ctx, answer, take};

/// What `work requeue-stale` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RequeueRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
    /// The jobs; every stale one when left out.
    pub jobs: Vec<String>,
    /// Why.
    pub reason: String,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RequeueReport {
    /// The run's name.
    pub run: String,
    /// Each job with its new attempt.
    pub requeued: Vec<(String, u32)>,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Puts stale jobs back into the queue; costs nothing.
pub fn requeue(ctx: &Ctx, request: &RequeueRequest) -> Result<RequeueReport> {
    if request.reason.trim().is_empty() {
        return Err(Error::new(Code::Usage, "--reason is empty: it is recorded"));
    }
    let (run, requeued) = ctx.write("work requeue-stale", |tx| {
        let run = find::for_writing(tx, request.run.as_deref())?;
        find::must_be_live(&run)?;
        let jobs = if request.jobs.is_empty() {
            stale(tx, &run)?
        } else {
            request.jobs.iter().map(|name| named(tx, &run, name)).collect::<Result<Vec<_>>>()?
        };
        let requeued = jobs.iter().map(|job| one(ctx, tx, job, &request.reason)).collect::<Result<Vec<_>>>()?;
        if !requeued.is_empty() {
            finish::revive(tx, run.id, &request.reason)?;
        }
        Ok((run, requeued))
    })?;
    Ok(RequeueReport { run: run.name, requeued, onward: Onward::look(ctx, run.id)? })
}

/// Stale jobs, and held ones whose session has ended without them.
fn stale(read: &Connection, run: &store::run::Run) -> Result<Vec<Job>> {
    let mut jobs = store::job::in_state(read, run.id, JobState::Stale, u32::MAX)?;
    for state in [JobState::Claimed, JobState::Running] {
        for job in store::job::in_state(read, run.id, state, u32::MAX)? {
            if is_forsaken(read, &job)? {
                jobs.push(job);
            }
        }
    }
    Ok(jobs)
}

fn is_forsaken(read: &Connection, job: &Job) -> Result<bool> {
    Ok(take::holder(read, job)?.is_none_or(|(_, session)| session.state != SessionState::Active))
}

fn named(read: &Connection, run: &store::run::Run, name: &str) -> Result<Job> {
    let job = find::job(read, run, name)?;
    if job.state == JobState::Stale || (job.state.is_held() && is_forsaken(read, &job)?) {
        return Ok(job);
    }
    let holder = take::holder(read, &job)?.map_or(String::new(), |(_, session)| format!(" by {}", session.id));
    Err(Error::new(Code::InvalidTransition, format!("{name} is {}{holder}, not stale", job.state))
        .hint("a driver finds out whether a holder is gone: `striatum run drive`"))
}

fn one(ctx: &Ctx, tx: &Writing<'_>, job: &Job, reason: &str) -> Result<(String, u32)> {
    let new = NewDecision {
        run: Some(job.run),
        job: Some(job.id),
        kind: "requeue",
        reason,
        how: ctx.person().unwrap_or("operator"),
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    tell(tx, EventType::DecisionRecorded, job, &json!({"decision": decision, "kind": "requeue", "was": job.state}))?;
    attempt::close(tx, job, Outcome::Lost, reason, LeaseState::Revoked)?;
    let job = store::job::get(tx, job.id)?;
    let context = answer::before(tx, &job)?;
    let number = offer::offer(tx, &job, &Offer { context, ..Offer::default() })?;
    tell(tx, EventType::JobRequeued, &job, &json!({"attempt": number, "after": Outcome::Lost, "why": reason}))?;
    Ok((job.name, number))
}
