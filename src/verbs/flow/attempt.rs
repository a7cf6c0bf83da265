//! The end of an attempt that was not sealed: what it costs, and what follows.

use serde_json::json;

use super::offer::{Offer, offer, settle};
use super::{Step, breaker, finish, panel, phrase, standing, step, tell};
use crate::domain::contract::BlockedReason;
use crate::domain::event::EventType;
use crate::domain::job::{Aftermath, Cause, JobEvent, Outcome, Tries, aftermath, on_failure};
use crate::domain::observation::Observation;
use crate::domain::packet::{Context, Previous};
use crate::domain::session::{LeaseState, MessageState};
use crate::domain::time::{Moment, show_duration};
use crate::error::Result;
use crate::store::event::Scope;
use crate::store::job::{Counter, Job};
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::settle::observation;

/// How an attempt ended.
pub struct Ended<'a> {
    /// The outcome.
    pub outcome: Outcome,
    /// One line about it.
    pub detail: String,
    /// How the lease ends.
    pub lease: LeaseState,
    /// What the next packet should also tell.
    pub lesson: Lesson,
    /// What is awaited, with BLOCKED and NEEDS_CONTEXT.
    pub question: Option<&'a BlockedReason>,
    /// The next attempt is not claimable before.
    pub not_before: Option<Moment>,
    /// The next attempt goes to another lane.
    pub fallback: Option<String>,
}

/// What a failed attempt teaches the next.
#[derive(Clone, Default)]
pub struct Lesson {
    /// The end of a failed verification's output.
    pub verify_tail: Option<String>,
    /// Paths that were refused, with their words.
    pub violations: Vec<String>,
}

impl<'a> Ended<'a> {
    /// An end without anything special about it.
    pub fn plain(outcome: Outcome, detail: impl Into<String>) -> Ended<'a> {
        Ended {
            outcome,
            detail: detail.into(),
            lease: LeaseState::Released,
            lesson: Lesson::default(),
            question: None,
            not_before: None,
            fallback: None,
        }
    }
}

/// Ends the job's open attempt, its lease and its message, and does what follows.
pub fn end(tx: &Writing<'_>, run: &Run, job: &Job, ended: Ended<'_>) -> Result<Aftermath> {
    if ended.outcome != Outcome::Lost {
        return follow(tx, run, job, ended);
    }
    let seen = observation::of_rows(tx, job)?;
    observe(tx, job, &seen)?;
    if !(seen.reaches_outside && seen.dispatched) {
        return follow(tx, run, job, ended);
    }
    let question = seen.question(&job.name);
    let asks = Ended { outcome: Outcome::UnknownOutcome, question: Some(&question), ..ended };
    follow(tx, run, job, asks)
}

/// Keeps what was seen of an attempt whose holder is gone; whoever looked closer before has kept it already.
fn observe(tx: &Writing<'_>, job: &Job, seen: &Observation) -> Result<()> {
    let newest = store::event::latest(tx, Scope::Job(job.id), 1)?;
    let is_kept = newest.first().is_some_and(|event| event.kind == EventType::ObservationRecorded.word());
    if is_kept { Ok(()) } else { tell(tx, EventType::ObservationRecorded, job, &json!(seen)) }
}

fn follow(tx: &Writing<'_>, run: &Run, job: &Job, ended: Ended<'_>) -> Result<Aftermath> {
    close(tx, job, ended.outcome, &ended.detail, ended.lease)?;
    let tries = Tries {
        strikes: job.strikes,
        max_strikes: job.spec.max_strikes,
        requeues: job.requeues,
        max_requeues: run.spec.budget.requeues,
    };
    let next = aftermath(ended.outcome, tries);
    count(tx, job, ended.outcome)?;
    tell_trip(tx, run, job, (ended.outcome, next))?;
    let asked = ended.question.filter(|_| ended.outcome != Outcome::UnknownOutcome);
    let is_stopped = phrase::heed_end(tx, run, job, asked)?;
    match next {
        Aftermath::Again => again(tx, job, &ended)?,
        Aftermath::Person(cause) => {
            ask(tx, job, cause, &ended)?;
            if !is_stopped && standing::give(tx, run, job, cause, &ended)? {
                return Ok(Aftermath::Again);
            }
        }
        Aftermath::OutOfTries(cause) => fail(tx, run, &store::job::get(tx, job.id)?, cause, &ended.detail)?,
        Aftermath::Done => {}
    }
    Ok(next)
}

/// Ends attempt, lease and message, whatever follows; raises the fence, so that late words are refused.
pub fn close(tx: &Writing<'_>, job: &Job, outcome: Outcome, detail: &str, lease_end: LeaseState) -> Result<()> {
    if job.attempt > 0 {
        let is_ended = store::attempt::end(tx, job.id, job.attempt, outcome, detail)?;
        if is_ended && outcome != Outcome::Sealed {
            charge_unsealed(tx, job)?;
        }
        store::execution::lose_checks(tx, job.id, job.attempt)?;
    }
    if let Some(lease) = store::lease::active_of_job(tx, job.id)? {
        store::lease::end(tx, lease.id, lease_end, outcome.word())?;
        store::job::raise_fence(tx, job.id)?;
        let kind = match lease_end {
            LeaseState::Expired => Some(EventType::LeaseExpired),
            LeaseState::Revoked => Some(EventType::LeaseRevoked),
            LeaseState::Released | LeaseState::Active => None,
        };
        if let Some(kind) = kind {
            tell(tx, kind, job, &json!({"lease": lease.id, "session": lease.session, "why": outcome.word()}))?;
        }
    }
    if let Some(message) = store::message::live_of_job(tx, job.id)? {
        let state = match message.state {
            MessageState::Pending => MessageState::Canceled,
            _ => MessageState::Done,
        };
        store::message::set_state(tx, message.id, state)?;
    }
    Ok(())
}

/// A limit of the job or of this attempt was reached.
fn tell_trip(tx: &Writing<'_>, run: &Run, job: &Job, (outcome, next): (Outcome, Aftermath)) -> Result<()> {
    let lane = run.spec.lanes.get(job.spec.lane.as_deref().unwrap_or_default());
    let length = |ms: Option<u64>| ms.map_or_else(|| "the lane's".to_owned(), show_duration);
    let of_attempt = match outcome {
        Outcome::TimedOut => Some(("timeout", job.spec.timeout_ms.or(lane.map(|lane| lane.timeout_ms)))),
        Outcome::Idle => Some(("idle_timeout", lane.and_then(|lane| lane.idle_timeout_ms))),
        _ => None,
    };
    if let Some((name, limit)) = of_attempt {
        breaker::trip_job(tx, job, name, (length(limit), length(limit)))?;
    }
    match next {
        Aftermath::OutOfTries(Cause::Strikes) => {
            let counts = ((job.strikes + 1).to_string(), job.spec.max_strikes.to_string());
            breaker::trip_job(tx, job, Cause::Strikes.word(), counts)
        }
        Aftermath::OutOfTries(cause) => {
            let counts = ((job.requeues + 1).to_string(), run.spec.budget.requeues.to_string());
            breaker::trip_job(tx, job, cause.word(), counts)
        }
        Aftermath::Again | Aftermath::Person(_) | Aftermath::Done => Ok(()),
    }
}

/// An answer that was not sealed has cost as much as one that was.
fn charge_unsealed(tx: &Writing<'_>, job: &Job) -> Result<()> {
    let answer = store::attempt::get(tx, job.id, job.attempt)?.answer;
    match answer.and_then(|answer| answer.usage) {
        Some(usage) => Ok(store::run::add_usage(tx, job.run, &usage)?),
        None => Ok(()),
    }
}

fn count(tx: &Writing<'_>, job: &Job, outcome: Outcome) -> Result<()> {
    use crate::domain::job::Cost;
    match outcome.cost() {
        Cost::Strike => store::job::count_up(tx, job.id, Counter::Strikes)?,
        Cost::Requeue => store::job::count_up(tx, job.id, Counter::Requeues)?,
        Cost::Free | Cost::Person | Cost::Final => {}
    }
    Ok(())
}

fn again(tx: &Writing<'_>, job: &Job, ended: &Ended<'_>) -> Result<()> {
    let context = lesson(tx, job, ended)?;
    let number =
        offer(tx, job, &Offer { context, not_before: ended.not_before.as_ref(), lane: ended.fallback.as_deref() })?;
    let body = json!({"attempt": number, "after": ended.outcome.word(), "why": ended.detail, "lane": ended.fallback});
    tell(tx, EventType::JobRequeued, job, &body)
}

/// What the next packet tells: everything that is still true, and this end.
pub fn lesson(tx: &Writing<'_>, job: &Job, ended: &Ended<'_>) -> Result<Context> {
    let last = store::attempt::get(tx, job.id, job.attempt)?;
    let previous =
        Previous { attempt: job.attempt, outcome: ended.outcome.word().to_owned(), detail: ended.detail.clone() };
    Ok(Context {
        previous: Some(previous),
        verify_tail: ended.lesson.verify_tail.clone(),
        violations: ended.lesson.violations.clone(),
        ..last.context
    })
}

fn ask(tx: &Writing<'_>, job: &Job, cause: Cause, ended: &Ended<'_>) -> Result<()> {
    step(tx, job, &Step { event: JobEvent::Ask, reason: Some(cause.word()), settled: false })?;
    if let Some(question) = ended.question {
        store::job::set_question(tx, job.id, question)?;
    }
    tell(tx, EventType::JobWaiting, job, &json!({"cause": cause, "why": ended.detail, "attempt": job.attempt}))
}

/// The job is out of tries, or its panel refuses: what that means for the rest stands in `on_failure`.
pub fn fail(tx: &Writing<'_>, run: &Run, job: &Job, cause: Cause, detail: &str) -> Result<()> {
    let effect = on_failure(job.spec.on_failure);
    let event = match effect.state {
        crate::domain::job::JobState::Skipped => JobEvent::Skip,
        _ => JobEvent::Fail,
    };
    step(tx, job, &Step { event, reason: Some(cause.word()), settled: effect.settles })?;
    let kind = if event == JobEvent::Skip { EventType::JobSkipped } else { EventType::JobFailed };
    tell(tx, kind, job, &json!({"cause": cause, "why": detail, "attempt": job.attempt}))?;
    if effect.fails_run {
        return finish::fail(tx, run, cause, &job.name, detail);
    }
    if effect.settles {
        settle(tx, run, job.id)?;
    }
    if let Some(subject) = job.reviews {
        panel::decide(tx, run, subject)?;
    }
    Ok(())
}
