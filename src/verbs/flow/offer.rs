//! Offering attempts: a job whose needs are settled goes into the queue, or waits for a person's gate.

use serde_json::json;

use super::{Step, step, tell};
use crate::domain::event::EventType;
use crate::domain::gate::{is_due, tier_of};
use crate::domain::id::JobId;
use crate::domain::job::{JobEvent, JobState};
use crate::domain::packet::Context;
use crate::domain::time::Moment;
use crate::error::{Code, Error, Result};
use crate::store::job::{Job, Move};
use crate::store::message::NewMessage;
use crate::store::run::Run;
use crate::store::{self, Writing};

/// The reason of a waiting job that a person must let through.
pub const GATE: &str = "gate";

/// The reason of a waiting job whose gate a person rejected.
pub const GATE_REJECTED: &str = "gate_rejected";

/// What an offer carries beside the job.
#[derive(Default)]
pub struct Offer<'a> {
    /// What the packet tells of earlier attempts.
    pub context: Context,
    /// Not claimable before.
    pub not_before: Option<&'a Moment>,
    /// Another lane than the job's.
    pub lane: Option<&'a str>,
}

/// Puts the job's next attempt into the queue; returns its number.
pub fn offer(tx: &Writing<'_>, job: &Job, offer: &Offer<'_>) -> Result<u32> {
    let Some(role) = job.spec.role.as_deref() else {
        return Err(Error::new(Code::Bug, format!("{} has no role to be offered to", job.name)));
    };
    let attempt = store::job::next_attempt(tx, job.id)?;
    store::attempt::insert(tx, job.id, attempt, &offer.context)?;
    let lane = offer.lane.or(job.spec.lane.as_deref());
    let message = NewMessage { run: job.run, job: job.id, attempt, role, lane, fresh: job.spec.fresh };
    let message = store::message::insert(tx, &message)?;
    if let Some(moment) = offer.not_before {
        store::message::delay(tx, message, moment)?;
    }
    step(tx, job, &Step { event: JobEvent::Enqueue, reason: None, settled: false })?;
    tell(tx, EventType::JobQueued, job, &json!({"attempt": attempt, "role": role, "lane": lane}))?;
    Ok(attempt)
}

/// A job has no unsettled need left: offer it, or let it wait for a person.
pub fn release(tx: &Writing<'_>, run: &Run, job: JobId) -> Result<()> {
    let job = store::job::get(tx, job)?;
    if job.state != JobState::Waiting {
        return Ok(());
    }
    if waits_for_gate(run, &job) {
        let to = Move { state: JobState::Waiting, phase: None, reason: Some(GATE), settled: false };
        store::job::set_state(tx, job.id, &to)?;
        return Ok(());
    }
    let context = carried(tx, &job)?;
    offer(tx, &job, &Offer { context, ..Offer::default() })?;
    Ok(())
}

/// Whether a person must let the job through before it goes.
pub fn waits_for_gate(run: &Run, job: &Job) -> bool {
    is_due(tier_of(&job.spec), run.spec.autonomy)
}

/// A settled job: its successors need one thing less.
pub fn settle(tx: &Writing<'_>, run: &Run, job: JobId) -> Result<()> {
    for ready in store::job::meet(tx, job)? {
        release(tx, run, ready)?;
    }
    Ok(())
}

/// What an earlier attempt's packet told and the next one should still know.
pub fn carried(tx: &Writing<'_>, job: &Job) -> Result<Context> {
    if job.attempt == 0 {
        return Ok(Context::default());
    }
    let last = store::attempt::get(tx, job.id, job.attempt)?;
    Ok(Context { answers: last.context.answers, note: last.context.note, ..Context::default() })
}
