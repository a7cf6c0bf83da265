//! The one reopen path: a job is sent back, and everything behind it waits again.

use serde_json::json;

use super::offer::{Offer, offer};
use super::{Step, attempt, proposal, step, tell};
use crate::domain::event::EventType;
use crate::domain::id::JobId;
use crate::domain::job::{JobEvent, JobState, Outcome};
use crate::domain::packet::Context;
use crate::domain::session::{GateState, LeaseState};
use crate::error::Result;
use crate::store::gate::Decided;
use crate::store::job::{Counter, Job};
use crate::store::{self, Writing};

/// Sends a job back: ends leases, raises fences, cancels messages, puts downstream back to waiting, voids verdicts,
/// and offers the next attempt with a context.
pub fn reopen(tx: &Writing<'_>, target: JobId, why: &str, context: Context) -> Result<u32> {
    reopen_with(tx, target, why, &Offer { context, ..Offer::default() })
}

/// The same, with more to say about the next attempt.
pub fn reopen_with(tx: &Writing<'_>, target: JobId, why: &str, next: &Offer<'_>) -> Result<u32> {
    let below = store::job::downstream(tx, target)?;
    void(tx, &store::job::get(tx, target)?, why)?;
    for id in &below {
        let job = store::job::get(tx, *id)?;
        let is_untouched = job.state == JobState::Waiting && job.attempt == 0 && job.reason.is_none();
        if !is_untouched {
            void(tx, &job, why)?;
        }
    }
    for id in &below {
        store::job::recount(tx, *id)?;
    }
    offer(tx, &store::job::get(tx, target)?, next)
}

/// Takes back whatever a job has: it waits, unsettled, in a new verdict generation.
fn void(tx: &Writing<'_>, job: &Job, why: &str) -> Result<()> {
    let had_lease = store::lease::active_of_job(tx, job.id)?.is_some();
    attempt::close(tx, job, Outcome::Reopened, why, LeaseState::Revoked)?;
    if !had_lease {
        store::job::raise_fence(tx, job.id)?;
    }
    if let Some(gate) = store::gate::pending_of_job(tx, job.id)? {
        store::gate::decide(tx, gate.id, &Decided { state: GateState::Expired, how: "reopened", note: Some(why) })?;
    }
    proposal::void(tx, job)?;
    store::job::count_up(tx, job.id, Counter::Generation)?;
    step(tx, job, &Step { event: JobEvent::Block, reason: None, settled: false })?;
    tell(tx, EventType::JobReopened, job, &json!({"was": job.state, "attempt": job.attempt, "why": why}))
}
