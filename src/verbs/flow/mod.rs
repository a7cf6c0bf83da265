//! The transitions that several verbs share, each inside somebody's transaction.
//!
//! Here the tables of `domain` meet the rows of `store`: whoever moves a job, an attempt or a run does it through
//! these functions, so that rows, counters and events always agree.

pub mod agreement;
pub mod attempt;
pub mod breaker;
pub mod finish;
pub mod gate;
pub mod offer;
pub mod panel;
pub mod proposal;
pub mod reopen;
pub mod seal;

use serde_json::Value;

use crate::domain::event::EventType;
use crate::domain::job::{JobEvent, JobState};
use crate::error::Result;
use crate::store::event::About;
use crate::store::job::{Job, Move};
use crate::store::{self, Writing};

/// Appends an event about a job.
pub fn tell(tx: &Writing<'_>, kind: EventType, job: &Job, body: &Value) -> Result<()> {
    let about = About { run: Some(job.run), job: Some(job.id), session: None };
    Ok(store::event::append(tx, kind, about, body)?)
}

/// Where a job goes, and why.
pub struct Step<'a> {
    /// What happens to it.
    pub event: JobEvent,
    /// Why, as a word.
    pub reason: Option<&'a str>,
    /// Its successors may go.
    pub settled: bool,
}

/// Moves a job through its machine; returns the new state.
pub fn step(tx: &Writing<'_>, job: &Job, step: &Step<'_>) -> Result<JobState> {
    let state = job.state.next(step.event)?;
    let to = Move { state, phase: None, reason: step.reason, settled: step.settled };
    store::job::set_state(tx, job.id, &to)?;
    Ok(state)
}
