//! The ends of a run: completed, failed, canceled, needs_operator, and back to running.

use serde_json::json;

use super::attempt::{self, Ended};
use super::{Step, step};
use crate::domain::event::EventType;
use crate::domain::id::RunId;
use crate::domain::job::{Cause, JobEvent, JobState, Outcome};
use crate::domain::run::{RunEvent, RunState};
use crate::domain::session::{GateState, LeaseState, SessionState};
use crate::error::{Error, Result};
use crate::store::event::About;
use crate::store::gate::Decided;
use crate::store::run::{Run, StateChange};
use crate::store::{self, Writing};

/// What is known of a run's artifacts when its last job is settled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Evidence {
    /// Nobody looked; the run is not completed by this transaction.
    #[default]
    Unchecked,
    /// Every artifact's bytes have their hash.
    Intact,
    /// One has not.
    Damaged(String),
}

fn tell(tx: &Writing<'_>, run: RunId, kind: EventType, body: &serde_json::Value) -> Result<()> {
    Ok(store::event::append(tx, kind, About { run: Some(run), job: None, session: None }, body)?)
}

fn change(tx: &Writing<'_>, run: &Run, event: RunEvent, to: (Option<Cause>, Option<&str>, Option<&str>)) -> Result<()> {
    let state = run.state.next(event)?;
    let (cause, subject, reason) = to;
    Ok(store::run::set_state(tx, run.id, &StateChange { state, cause, subject, reason })?)
}

/// Completes the run when nothing is open and its artifacts are known to be intact.
pub fn complete_if_done(tx: &Writing<'_>, run: RunId, evidence: &Evidence) -> Result<()> {
    let run = store::run::get(tx, run)?;
    let is_live = matches!(run.state, RunState::Running | RunState::NeedsOperator);
    let is_open = |tx: &Writing<'_>| {
        Ok::<_, Error>(store::job::has_open(tx, run.id)? || store::proposal::has_pending(tx, run.id)?)
    };
    if !is_live || *evidence == Evidence::Unchecked || is_open(tx)? {
        return Ok(());
    }
    if let Evidence::Damaged(what) = evidence {
        return escalate(tx, &run, Cause::Other, what, &format!("artifact {what} is damaged or missing"));
    }
    change(tx, &run, RunEvent::Complete, (None, None, None))?;
    tell(tx, run.id, EventType::RunCompleted, &json!({}))?;
    close_idle_sessions(tx, run.id, "the run is completed")
}

/// Nothing can move and something is broken or spent.
pub fn escalate(tx: &Writing<'_>, run: &Run, cause: Cause, subject: &str, reason: &str) -> Result<()> {
    if run.state != RunState::Running {
        return Ok(());
    }
    change(tx, run, RunEvent::Escalate, (Some(cause), Some(subject), Some(reason)))?;
    tell(tx, run.id, EventType::RunNeedsOperator, &json!({"cause": cause, "subject": subject, "why": reason}))
}

/// The run fails; helpers see it and end their agents.
pub fn fail(tx: &Writing<'_>, run: &Run, cause: Cause, subject: &str, reason: &str) -> Result<()> {
    let run = store::run::get(tx, run.id)?;
    if run.state.is_terminal() {
        return Ok(());
    }
    change(tx, &run, RunEvent::Fail, (Some(cause), Some(subject), Some(reason)))?;
    tell(tx, run.id, EventType::RunFailed, &json!({"cause": cause, "subject": subject, "why": reason}))?;
    release_unhosted(tx, &run)?;
    close_idle_sessions(tx, run.id, "the run failed")
}

/// What sessions without a helper hold goes back to the queue, for the day when the run is revived: nobody would
/// end their holds, and a lane's capacity counts them over all runs.
fn release_unhosted(tx: &Writing<'_>, run: &Run) -> Result<()> {
    for lease in store::lease::active_of_run(tx, run.id)? {
        if store::supervisor::active(tx, lease.session)?.is_none() {
            let job = store::job::get(tx, lease.job)?;
            let ended = Ended { lease: LeaseState::Revoked, ..Ended::plain(Outcome::Interrupted, "the run failed") };
            attempt::end(tx, run, &job, ended)?;
        }
    }
    Ok(())
}

/// A person ends the run; work that exists is kept.
pub fn cancel(tx: &Writing<'_>, run: &Run, reason: &str) -> Result<()> {
    change(tx, run, RunEvent::Cancel, (None, None, Some(reason)))?;
    tell(tx, run.id, EventType::RunCanceled, &json!({"why": reason}))?;
    for line in store::job::lines(tx, run.id, u32::MAX)? {
        // What has ended keeps its end and the reason for it.
        if matches!(line.state, JobState::Completed | JobState::Skipped | JobState::Canceled | JobState::Failed) {
            continue;
        }
        let job = store::job::get(tx, line.id)?;
        attempt::close(tx, &job, Outcome::Canceled, reason, LeaseState::Revoked)?;
        step(tx, &job, &Step { event: JobEvent::Cancel, reason: Some("canceled"), settled: job.settled })?;
        super::tell(tx, EventType::JobCanceled, &job, &json!({"was": job.state}))?;
    }
    for gate in store::gate::pending(tx, run.id)? {
        store::gate::decide(tx, gate.id, &Decided { state: GateState::Expired, how: "canceled", note: Some(reason) })?;
    }
    close_idle_sessions(tx, run.id, "the run was canceled")
}

/// Something can move again: whoever's verb it was, the run goes on.
pub fn revive(tx: &Writing<'_>, run: RunId, why: &str) -> Result<()> {
    let run = store::run::get(tx, run)?;
    if matches!(run.state, RunState::Running | RunState::Ready | RunState::Completed) {
        return Ok(());
    }
    change(tx, &run, RunEvent::Revive, (None, None, None))?;
    tell(tx, run.id, EventType::RunRevived, &json!({"was": run.state, "why": why}))
}

/// Sessions that nothing hosts end with their run; hosted ones are ended by their helpers.
fn close_idle_sessions(tx: &Writing<'_>, run: RunId, reason: &str) -> Result<()> {
    for session in store::session::active(tx, run)? {
        if session.supervised && store::supervisor::active(tx, session.id)?.is_some() {
            continue;
        }
        store::session::end(tx, session.id, SessionState::Closed, reason)?;
        let about = About { run: Some(run), job: None, session: Some(session.id) };
        store::event::append(tx, EventType::SessionClosed, about, &json!({"why": reason}))?;
    }
    Ok(())
}
