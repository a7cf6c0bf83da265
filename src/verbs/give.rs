//! `give`: a person gives back a job they took: done, with a verdict, or as it was.
//!
//! Done is settled in this process, as for any session that nothing hosts.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::flow::offer::{self, Offer};
use super::flow::{attempt, tell};
use super::person;
use super::run::find;
use super::run::marker::Onward;
use super::session::{self as sessions, must_exist};
use super::settle::{self, SettleReport};
use super::take;
use super::work::answer::store_answer;
use super::work::hold::Hold;
use crate::domain::event::EventType;
use crate::domain::id::SessionId;
use crate::domain::job::Outcome;
use crate::domain::session::{LeaseState, SessionEvent, SessionState};
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::Ctx;

/// What `give` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GiveRequest {
    /// The run; the only live one that has the job, when left out.
    pub run: Option<String>,
    /// The job.
    pub job: String,
    /// The answer, `striatum.result/1`; none puts the job back.
    pub answer: Option<Value>,
    /// A word for whoever works it next.
    pub note: Option<String>,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GiveReport {
    /// The run's name.
    pub run: String,
    /// The job.
    pub job: String,
    /// The person's session.
    pub session: SessionId,
    /// What settling came to; none when it was put back.
    pub settled: Option<SettleReport>,
    /// The person still has it: what was refused can be mended.
    pub is_still_held: bool,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Gives a taken job back.
pub fn give(ctx: &Ctx, request: &GiveRequest) -> Result<GiveReport> {
    let how = ctx.person()?;
    let hold = match &request.answer {
        None => ctx.write("give", |tx| {
            let hold = held(tx, request)?;
            put_back(tx, &hold, request.note.as_deref())?;
            record(tx, &hold, "put back", how)?;
            Ok(hold)
        })?,
        Some(document) => ctx.write("give", |tx| {
            let hold = held(tx, request)?;
            store_answer(tx, &hold, document)?;
            record(tx, &hold, "done", how)?;
            Ok(hold)
        })?,
    };
    crate::os::crash::point("give.answered");
    let settled = match request.answer {
        None => None,
        Some(_) => Some(settle::settle_unsupervised(ctx, &hold)?),
    };
    let is_still_held = settled.as_ref().is_some_and(|settled| !settled.over);
    if !is_still_held {
        ctx.write("give", |tx| close(tx, hold.session.id))?;
    }
    Ok(GiveReport {
        session: hold.session.id,
        settled,
        is_still_held,
        onward: Onward::look(ctx, hold.run.id)?,
        run: hold.run.name,
        job: hold.job.name,
    })
}

/// What the person holds.
fn held(tx: &Writing<'_>, request: &GiveRequest) -> Result<Hold> {
    let (run, job) = find::job_for_writing(tx, request.run.as_deref(), &request.job, |job| job.state.is_held())?;
    match take::holder(tx, &job)? {
        Some((lease, session)) if session.lane == person::LANE => Ok(Hold { session, run, job, lease }),
        other => Err(not_taken(&run, &job.name, other.map(|(_, session)| session.id))),
    }
}

fn not_taken(run: &Run, job: &str, holder: Option<SessionId>) -> Error {
    let by = holder.map_or(String::new(), |holder| format!("; {holder} works on it"));
    Error::new(Code::InvalidTransition, format!("no person has taken {job}{by}")).next(Next::new(
        "person",
        "take it first",
        &["striatum", "take", job, "--run-id", &run.name],
    ))
}

/// The attempt is over without cost; another is offered.
fn put_back(tx: &Writing<'_>, hold: &Hold, note: Option<&str>) -> Result<()> {
    attempt::close(tx, &hold.job, Outcome::Interrupted, "a person gave it back", LeaseState::Released)?;
    let job = store::job::get(tx, hold.job.id)?;
    let mut context = super::answer::before(tx, &job)?;
    context.note = note.map(str::to_owned).or(context.note);
    offer::offer(tx, &job, &Offer { context, ..Offer::default() })?;
    Ok(())
}

fn record(tx: &Writing<'_>, hold: &Hold, what: &str, how: &str) -> Result<()> {
    let new = NewDecision {
        run: Some(hold.run.id),
        job: Some(hold.job.id),
        session: Some(hold.session.id),
        kind: "give",
        body: what,
        reason: "",
        how,
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    let body = json!({"session": hold.session.id, "attempt": hold.lease.attempt, "as": what, "decision": decision});
    tell(tx, EventType::JobGiven, &hold.job, &body)
}

/// The person's session is over with its one job; a run that ended with it has closed it already.
fn close(tx: &Writing<'_>, id: SessionId) -> Result<()> {
    let session = must_exist(tx, id)?;
    if session.state == SessionState::Active {
        sessions::end(tx, &session, SessionEvent::Close, "its job was given back")?;
    }
    Ok(())
}
