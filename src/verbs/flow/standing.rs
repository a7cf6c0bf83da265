//! Standing answers: what a person said before a run began, given once a job when it asks and nobody is there.
//!
//! Never where a job is blocked, and never at L2. It does not know how it is shown.

use serde_json::json;

use super::attempt::{Ended, lesson};
use super::offer::{Offer, offer};
use super::tell;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::gate::{Tier, tier_of};
use crate::domain::job::Cause;
use crate::domain::packet::PersonAnswer;
use crate::error::Result;
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};

/// The word of its decisions: one of the run when it is left, one of each job that it was given to.
pub const KIND: &str = "standing_answer";

/// Answers a job that has just asked; whether it did.
pub fn give(tx: &Writing<'_>, run: &Run, asked: &Job, cause: Cause, ended: &Ended<'_>) -> Result<bool> {
    let Some(left) = &run.spec.standing_answer else { return Ok(false) };
    let fits = cause == Cause::NeedsContext && tier_of(&asked.spec) != Tier::L2;
    if !fits || store::decision::is_of_kind(tx, asked.id, KIND)? {
        return Ok(false);
    }
    let job = store::job::get(tx, asked.id)?;
    let new = NewDecision {
        run: Some(run.id),
        job: Some(job.id),
        kind: KIND,
        body: &left.words,
        reason: cause.word(),
        how: &left.how,
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    let sha256 = sha256_hex(left.words.as_bytes());
    let body = json!({"decision": decision, "attempt": job.attempt, "sha256": sha256, "standing": true});
    tell(tx, EventType::AnswerGiven, &job, &body)?;
    let mut context = lesson(tx, &job, ended)?;
    let question = job.question.clone();
    context.answers.push(PersonAnswer { question, answer: left.words.clone(), is_standing: true });
    offer(tx, &job, &Offer { context, ..Offer::default() })?;
    Ok(true)
}
