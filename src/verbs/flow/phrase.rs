//! A stop phrase in an agent's answer: the run is stopped as by `run stop`, in the transaction that ends the attempt.
//!
//! The answer itself stands. It does not know where words are looked for; `domain::phrase` does.

use serde_json::json;

use super::tell;
use crate::domain::contract::{Answer, BlockedReason, Status};
use crate::domain::event::EventType;
use crate::domain::phrase::{spoken, words};
use crate::error::Result;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};

/// Stops the run when its agent's answer contains a phrase; whether it did. A run that this ended is left alone.
pub fn heed(tx: &Writing<'_>, run: &Run, job: &Job, answer: &Answer) -> Result<bool> {
    let Some(phrase) = spoken(&run.spec.stop_phrases, &words(answer)) else { return Ok(false) };
    let now = store::run::get(tx, run.id)?;
    if now.state.is_terminal() || now.stop_requested_at.is_some() {
        return Ok(false);
    }
    store::run::set_stop(tx, run.id, Some(tx.at))?;
    tell(tx, EventType::RunStopped, job, &json!({"phrase": phrase, "job": job.name, "attempt": job.attempt}))?;
    Ok(true)
}

/// The same for an attempt that ends without a seal: by what it answered, or what it awaits.
pub fn heed_end(tx: &Writing<'_>, run: &Run, job: &Job, asked: Option<&BlockedReason>) -> Result<bool> {
    if run.spec.stop_phrases.is_empty() || job.attempt == 0 {
        return Ok(false);
    }
    match store::attempt::get(tx, job.id, job.attempt)?.answer {
        Some(answer) => heed(tx, run, job, &answer),
        None => {
            let reason = asked.cloned();
            heed(tx, run, job, &Answer { blocked_reason: reason, ..Answer::plain(Status::Blocked) })
        }
    }
}
