//! Breakers that trip: each is told once, with its limit and its value, until its limit is raised.
//!
//! It does not decide: a driver, a seal or an attempt's end has found that a limit is reached.

use serde_json::json;

use super::tell;
use crate::domain::breaker::of_cause;
use crate::domain::event::EventType;
use crate::domain::frozen::Budget;
use crate::domain::id::RunId;
use crate::domain::job::Cause;
use crate::domain::time::show_duration;
use crate::error::Result;
use crate::store::event::About;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};

/// A limit of a run and what stands against it, as people read both.
pub fn shown(run: &Run, cause: Cause) -> Option<(String, String)> {
    let Budget { launches, cost_micro_usd, active_time_ms, no_progress_ms, .. } = &run.spec.budget;
    let spending = run.spending();
    Some(match cause {
        Cause::Launches => (run.launches.to_string(), launches.to_string()),
        Cause::Cost => (dollars(spending.cost_micro_usd), dollars(cost_micro_usd.unwrap_or(u64::MAX))),
        Cause::ActiveTime => (show_duration(spending.active_ms), show_duration(*active_time_ms)),
        Cause::NoProgress => (show_duration(*no_progress_ms), show_duration(*no_progress_ms)),
        _ => return None,
    })
}

/// Dollars to the cent, and further where there is more.
pub fn dollars(micro: u64) -> String {
    let text = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
    let cut = text.trim_end_matches('0').len().max(text.len() - 4);
    format!("${}", text.get(..cut).unwrap_or(&text))
}

/// Tells that a breaker of a run has tripped, once; the line for people.
pub fn trip_run(tx: &Writing<'_>, run: RunId, cause: Cause) -> Result<Option<String>> {
    let run = store::run::get(tx, run)?;
    let Some((value, limit)) = shown(&run, cause).filter(|_| !run.tripped.contains_key(&cause)) else {
        return Ok(None);
    };
    let mut tripped = run.tripped.clone();
    tripped.insert(cause, tx.at);
    store::run::set_tripped(tx, run.id, &tripped)?;
    let key = of_cause(cause).and_then(|breaker| breaker.key);
    let body = json!({"breaker": cause, "key": key, "value": value, "limit": limit});
    let about = About { run: Some(run.id), job: None, session: None };
    store::event::append(tx, EventType::BreakerTripped, about, &body)?;
    Ok(Some(match cause {
        Cause::NoProgress => format!("no_progress: nothing in flight gave a sign of life for {limit}; it goes on"),
        _ => format!("{cause} is spent ({value} of {limit}): nothing more is launched"),
    }))
}

/// A breaker that was told has not tripped any more; false when it had not been told.
pub fn forget(tx: &Writing<'_>, run: &Run, cause: Cause) -> Result<bool> {
    let mut tripped = run.tripped.clone();
    if tripped.remove(&cause).is_none() {
        return Ok(false);
    }
    store::run::set_tripped(tx, run.id, &tripped)?;
    Ok(true)
}

/// Tells that a breaker of a job has tripped.
pub fn trip_job(tx: &Writing<'_>, job: &Job, breaker: &str, (value, limit): (String, String)) -> Result<()> {
    let body = json!({"breaker": breaker, "value": value, "limit": limit, "attempt": job.attempt});
    tell(tx, EventType::BreakerTripped, job, &body)
}
