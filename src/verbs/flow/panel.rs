//! All reviews of one job together: pass, send back once with all findings, or fail.

use serde_json::json;

use super::offer::settle;
use super::{Step, breaker, finish, reopen, step, tell};
use crate::domain::event::EventType;
use crate::domain::id::JobId;
use crate::domain::job::{Cause, JobEvent, JobState, on_failure};
use crate::domain::packet::{Context, Previous, ReviewFindings};
use crate::domain::verdict::{PanelDecision, Seat, Verdict, decide as decide_seats};
use crate::error::Result;
use crate::store::job::{Counter, Job, Move};
use crate::store::run::Run;
use crate::store::verdict::VerdictRow;
use crate::store::{self, Writing};

/// Looks at a job's panel and does what it says, if it is complete.
pub fn decide(tx: &Writing<'_>, run: &Run, subject: JobId) -> Result<()> {
    let subject = store::job::get(tx, subject)?;
    let mut seats = Vec::new();
    // A review that a person or its own rule passed over has no seat.
    let seated = store::job::panel(tx, subject.id)?.into_iter().filter(|review| review.state != JobState::Skipped);
    for review in seated {
        let verdict = store::verdict::newest(tx, review.id)?.filter(|row| row.generation == subject.generation);
        seats.push((review, verdict));
    }
    let facts: Vec<Seat> = seats.iter().map(|(review, row)| seat(review, row.as_ref())).collect();
    match decide_seats(&facts, subject.spec.quorum) {
        PanelDecision::Open => Ok(()),
        PanelDecision::Short if seats.iter().any(|(review, _)| is_held(review)) => Ok(()),
        // Every review that failed was let go by its own `on_failure`: nobody could end a wait for more accepts.
        PanelDecision::Short | PanelDecision::Pass => pass(tx, run, &seats),
        PanelDecision::Reject => reject(tx, run, &subject, &seats),
        PanelDecision::Reopen => send_back(tx, &subject, &seats),
        PanelDecision::RevisionsSpent => spend(tx, run, &seats),
    }
}

/// Failed, and a person is to say what becomes of it.
fn is_held(review: &Job) -> bool {
    review.state == JobState::Failed && !review.settled
}

/// A review of commits has no job to send back: an accept settles it, anything else ends it.
pub fn decide_range(tx: &Writing<'_>, run: &Run, review: &Job, verdict: Verdict) -> Result<()> {
    match verdict {
        Verdict::Accept | Verdict::AcceptWithFindings => settle_review(tx, run, review),
        Verdict::Reject => finish::fail(tx, run, Cause::Other, &review.name, "the review rejects"),
        Verdict::NeedsRevision => exhaust(tx, run, review),
    }
}

fn seat(review: &Job, row: Option<&VerdictRow>) -> Seat {
    let is_over = match review.state {
        JobState::Completed => row.is_some(),
        JobState::Failed | JobState::Skipped | JobState::Canceled => true,
        JobState::Waiting
        | JobState::Queued
        | JobState::Claimed
        | JobState::Running
        | JobState::WaitingHuman
        | JobState::Stale => false,
    };
    Seat {
        verdict: row.map(|row| row.verdict),
        is_over,
        revisions_left: review.spec.revisions.saturating_sub(review.revisions),
    }
}

fn pass(tx: &Writing<'_>, run: &Run, seats: &[(Job, Option<VerdictRow>)]) -> Result<()> {
    for (review, row) in seats.iter().filter(|(review, _)| !review.settled) {
        if !row.as_ref().is_some_and(|row| row.verdict.is_accepting()) {
            let dissent = row.as_ref().map(|row| row.verdict);
            tell(tx, EventType::DecisionUsed, review, &json!({"quorum": "passed", "dissent": dissent}))?;
        }
        settle_review(tx, run, review)?;
    }
    Ok(())
}

fn settle_review(tx: &Writing<'_>, run: &Run, review: &Job) -> Result<()> {
    let to = Move { state: review.state, phase: None, reason: review.reason.as_deref(), settled: true };
    store::job::set_state(tx, review.id, &to)?;
    settle(tx, run, review.id)
}

fn reject(tx: &Writing<'_>, run: &Run, subject: &Job, seats: &[(Job, Option<VerdictRow>)]) -> Result<()> {
    let by: Vec<&str> = seats
        .iter()
        .filter(|(_, row)| row.as_ref().is_some_and(|row| row.verdict == Verdict::Reject))
        .map(|(review, _)| review.name.as_str())
        .collect();
    finish::fail(tx, run, Cause::Other, &subject.name, &format!("{} rejected {}", by.join(", "), subject.name))
}

/// What the panel of a job found in its present generation.
pub fn findings(tx: &Writing<'_>, subject: &Job) -> Result<Vec<ReviewFindings>> {
    let mut found = Vec::new();
    // A review that a person or its own rule passed over has no seat.
    let seated = store::job::panel(tx, subject.id)?.into_iter().filter(|review| review.state != JobState::Skipped);
    for review in seated {
        let row = store::verdict::newest(tx, review.id)?.filter(|row| row.generation == subject.generation);
        found.extend(row.map(|row| said(&review, &row)));
    }
    Ok(found)
}

fn said(review: &Job, row: &VerdictRow) -> ReviewFindings {
    ReviewFindings { review: review.name.clone(), verdict: row.verdict, findings: row.findings.clone() }
}

fn send_back(tx: &Writing<'_>, subject: &Job, seats: &[(Job, Option<VerdictRow>)]) -> Result<()> {
    let mut context = Context::default();
    for (review, row) in seats {
        let Some(row) = row else { continue };
        if row.verdict == Verdict::NeedsRevision {
            store::job::count_up(tx, review.id, Counter::Revisions)?;
        }
        context.findings.push(said(review, row));
    }
    context.previous = Some(Previous {
        attempt: subject.attempt,
        outcome: "needs_revision".to_owned(),
        detail: "its reviews ask for a revision".to_owned(),
    });
    reopen::reopen(tx, subject.id, "needs_revision", context)?;
    Ok(())
}

/// Revisions are spent: reviews that still want one fail, and their successors with them, as `on_failure` says.
fn spend(tx: &Writing<'_>, run: &Run, seats: &[(Job, Option<VerdictRow>)]) -> Result<()> {
    let wanting = seats.iter().filter(|(review, row)| {
        review.state == JobState::Completed
            && row.as_ref().is_some_and(|row| row.verdict == Verdict::NeedsRevision)
            && review.revisions >= review.spec.revisions
    });
    for (review, _) in wanting {
        exhaust(tx, run, review)?;
    }
    Ok(())
}

fn exhaust(tx: &Writing<'_>, run: &Run, review: &Job) -> Result<()> {
    let effect = on_failure(review.spec.on_failure);
    let counts = (review.revisions.to_string(), review.spec.revisions.to_string());
    breaker::trip_job(tx, review, Cause::Revisions.word(), counts)?;
    step(tx, review, &Step { event: JobEvent::Fail, reason: Some(Cause::Revisions.word()), settled: effect.settles })?;
    tell(tx, EventType::JobFailed, review, &json!({"cause": Cause::Revisions, "attempt": review.attempt}))?;
    if effect.fails_run {
        return finish::fail(tx, run, Cause::Revisions, &review.name, "no revisions are left");
    }
    if effect.settles {
        settle(tx, run, review.id)?;
    }
    Ok(())
}
