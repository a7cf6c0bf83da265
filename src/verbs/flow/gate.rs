//! A person's gate before a job: when it opens, and what each decision does to the job.
//!
//! It does not know how a person was recognised or what a gate is shown as.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::offer::{self, GATE, GATE_REJECTED, Offer};
use super::{Step, panel, step, tell};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::JobType;
use crate::domain::gate::{self as stakes, Stakes, tier_of};
use crate::domain::id::GateId;
use crate::domain::job::{JobEvent, JobState};
use crate::domain::session::{ChangeState, GateEvent, GateState};
use crate::domain::time::Moment;
use crate::error::{Code, Error, Result};
use crate::store::gate::{Decided, Gate, NewGate};
use crate::store::job::{Job, Move};
use crate::store::run::Run;
use crate::store::{self, Connection, Writing};

/// Opens the gate of a job that waits for one and has none open.
pub fn open(tx: &Writing<'_>, run: &Run, job: &Job, now: &Moment) -> Result<Option<GateId>> {
    if !is_due(job) || store::gate::pending_of_job(tx, job.id)?.is_some() {
        return Ok(None);
    }
    let tier = tier_of(&job.spec);
    let why = why(job);
    let digest = digest(tx, run, job)?;
    let new = NewGate {
        run: run.id,
        job: job.id,
        tier,
        why: &why,
        digest: &digest,
        expires: &now.after(run.spec.limits.gate_expiry_ms),
    };
    let gate = store::gate::insert(tx, &new)?;
    tell(tx, EventType::GateOpened, job, &json!({"gate": gate, "tier": tier, "why": why}))?;
    Ok(Some(gate))
}

/// Why a person is asked before a job: the workflow's words, else what is at stake.
pub fn why(job: &Job) -> String {
    let note = &job.spec.gate_note;
    if note.is_empty() { stakes::why(Stakes::of(&job.spec)).to_owned() } else { note.clone() }
}

/// Names everything that is shown at a job's gate: what the job is, and the commits behind it.
pub fn digest(read: &Connection, run: &Run, job: &Job) -> Result<String> {
    let mut shown = json!({"run": run.name, "job": job.name, "attempt": job.attempt, "spec": job.spec,
        "behind": behind(read, job)?});
    if job.spec.kind == JobType::Land {
        shown["tip"] = json!(run.tip.as_ref().or(run.base.as_ref()));
        shown["into"] = json!(job.spec.into);
        shown["style"] = json!(job.spec.land_style);
    }
    Ok(sha256_hex(serde_json::to_string(&shown)?.as_bytes()))
}

/// The commits of everything that a job needs, directly or not.
fn behind(read: &Connection, job: &Job) -> Result<Vec<String>> {
    let mut commits = Vec::new();
    for id in store::job::upstream(read, job.id)? {
        let changes = store::change::of_job(read, id)?.into_iter();
        commits.extend(changes.filter(|change| change.state == ChangeState::Integrated).map(|change| change.commit));
    }
    Ok(commits)
}

/// Opens a gate anew when what it was opened for has changed since; none when it still holds.
pub fn renew(tx: &Writing<'_>, run: &Run, job: &Job, gate: &Gate, now: &Moment) -> Result<Option<GateId>> {
    if gate.state != GateState::Pending || !is_due(job) || gate.digest == digest(tx, run, job)? {
        return Ok(None);
    }
    store::gate::decide(tx, gate.id, &Decided { state: GateState::Expired, how: "stale", note: None })?;
    tell(tx, EventType::GateExpired, job, &json!({"gate": gate.id, "why": "stale"}))?;
    open(tx, run, job, now)
}

/// Whether a job waits for a person's gate, open or not yet.
pub fn is_due(job: &Job) -> bool {
    job.state == JobState::Waiting && job.reason.as_deref() == Some(GATE)
}

/// What a person says at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Go on: a checkpoint is completed, any other job's attempt is offered.
    Approve,
    /// Stop here: the job is held.
    Reject,
    /// Pass the job over: its successors may go.
    Skip,
}

impl Decision {
    /// The verb that says it.
    pub const fn verb(self) -> &'static str {
        match self {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
            Decision::Skip => "skip",
        }
    }

    /// What it is to the gate's machine.
    pub const fn event(self) -> GateEvent {
        match self {
            Decision::Approve => GateEvent::Approve,
            Decision::Reject => GateEvent::Reject,
            Decision::Skip => GateEvent::Skip,
        }
    }

    /// What a gate is after it.
    pub const fn state(self) -> GateState {
        match self {
            Decision::Approve => GateState::Approved,
            Decision::Reject => GateState::Rejected,
            Decision::Skip => GateState::Skipped,
        }
    }
}

/// A decision with the person's words and how they were recognised.
pub struct Said<'a> {
    /// What.
    pub decision: Decision,
    /// How it is known that a person said it.
    pub how: &'a str,
    /// The person's words.
    pub note: Option<&'a str>,
}

/// Decides an open gate and moves its job.
pub fn decide(tx: &Writing<'_>, run: &Run, gate: &Gate, said: &Said<'_>) -> Result<()> {
    let job = store::job::get(tx, gate.job)?;
    let state = gate.state.next(said.decision.event())?;
    if !is_due(&job) {
        let why = format!("{} is {}: its gate {} has nothing to decide", job.name, job.state, gate.id);
        return Err(Error::new(Code::InvalidTransition, why));
    }
    store::gate::decide(tx, gate.id, &Decided { state, how: said.how, note: said.note })?;
    let kind = match said.decision {
        Decision::Approve => EventType::GateApproved,
        Decision::Reject => EventType::GateRejected,
        Decision::Skip => EventType::GateSkipped,
    };
    tell(tx, kind, &job, &json!({"gate": gate.id, "digest": gate.digest, "note": said.note.is_some()}))?;
    match said.decision {
        Decision::Approve => approve(tx, run, &job, said.note),
        Decision::Reject => {
            let to = Move { state: JobState::Waiting, phase: None, reason: Some(GATE_REJECTED), settled: false };
            Ok(store::job::set_state(tx, job.id, &to)?)
        }
        Decision::Skip => skip(tx, run, &job, gate.id),
    }
}

fn approve(tx: &Writing<'_>, run: &Run, job: &Job, note: Option<&str>) -> Result<()> {
    match job.spec.kind {
        JobType::Checkpoint | JobType::Land => {
            step(tx, job, &Step { event: JobEvent::Seal, reason: None, settled: true })?;
            tell(tx, EventType::JobSealed, job, &json!({"attempt": job.attempt, "by": "gate"}))?;
            offer::settle(tx, run, job.id)
        }
        _ => {
            let mut context = offer::carried(tx, job)?;
            context.note = note.map(str::to_owned).or(context.note);
            offer::offer(tx, job, &Offer { context, ..Offer::default() })?;
            Ok(())
        }
    }
}

fn skip(tx: &Writing<'_>, run: &Run, job: &Job, gate: GateId) -> Result<()> {
    step(tx, job, &Step { event: JobEvent::Skip, reason: Some("gate_skipped"), settled: true })?;
    tell(tx, EventType::JobSkipped, job, &json!({"gate": gate}))?;
    offer::settle(tx, run, job.id)?;
    match job.reviews {
        Some(subject) => panel::decide(tx, run, subject),
        None => Ok(()),
    }
}
