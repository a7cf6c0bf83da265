//! Breakers as a summary shows them: each with its limit, its value, and what raises it.
//!
//! Values that a driver counts by its own clock are told here by the wall clock, which is near enough to read.

use serde::{Deserialize, Serialize};

use super::summary::FlightLine;
use super::ways::{Subject, out_of, raise};
use crate::domain::frozen::LaneMode;
use crate::domain::job::Cause;
use crate::error::{Next, Result};
use crate::store::run::Run;
use crate::store::tally::Tried;
use crate::store::{self, Connection};

/// A limit and how much of it is used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Meter {
    /// launches, cost, strikes, timeout, ...
    pub breaker: String,
    /// The job that it counts for; none for the run.
    pub job: Option<String>,
    /// How much is used, in the unit.
    pub used: u64,
    /// How much may be; none means unlimited.
    pub limit: Option<u64>,
    /// count, micro_usd or ms.
    pub unit: String,
    /// Nothing is left.
    pub tripped: bool,
    /// What raises it, once tripped.
    pub next: Vec<Next>,
}

/// Jobs and attempts whose meters are shown.
const SHOWN: u32 = 10;

/// The breakers of a run, of jobs that have used some tries, and of attempts in flight.
pub fn budget(read: &Connection, run: &Run, flights: &[FlightLine]) -> Result<Vec<Meter>> {
    let (budget, spending) = (&run.spec.budget, run.spending());
    let silent = silence(run, flights);
    let mut meters = vec![
        of_run(run, Cause::Launches, "count", (run.launches.into(), Some(budget.launches.into()))),
        of_run(run, Cause::Cost, "micro_usd", (spending.cost_micro_usd, budget.cost_micro_usd)),
        of_run(run, Cause::ActiveTime, "ms", (spending.active_ms, Some(budget.active_time_ms))),
        of_run(run, Cause::NoProgress, "ms", (silent, Some(budget.no_progress_ms))),
    ];
    for job in store::tally::tried(read, run.id, SHOWN)? {
        meters.extend(tries(run, &job));
    }
    meters.extend(flights.iter().take(SHOWN as usize).flat_map(|flight| of_attempt(run, flight)));
    Ok(meters)
}

fn of_run(run: &Run, cause: Cause, unit: &str, (used, limit): (u64, Option<u64>)) -> Meter {
    let is_full = cause != Cause::NoProgress && limit.is_some_and(|limit| used >= limit);
    let tripped = run.cause == Some(cause) || run.tripped.contains_key(&cause) || is_full;
    let subject = Subject { run: &run.name, of: Some(run), ..Subject::default() };
    let next = if tripped && !run.state.is_terminal() { out_of(cause, &subject) } else { Vec::new() };
    Meter { breaker: cause.word().to_owned(), job: None, used, limit, unit: unit.to_owned(), tripped, next }
}

/// For how long nothing that agents have in flight gave a sign of life.
fn silence(run: &Run, flights: &[FlightLine]) -> u64 {
    let is_agent =
        |flight: &&FlightLine| run.spec.lanes.get(&flight.lane).is_some_and(|lane| lane.mode != LaneMode::Human);
    flights.iter().filter(is_agent).map(|flight| flight.silent_ms).min().unwrap_or(0)
}

/// What a job has used of its tries; after the last one, the commands that give it more.
fn tries(run: &Run, job: &Tried) -> Vec<Meter> {
    let counters = [
        (Cause::Strikes, job.strikes, job.spec.max_strikes),
        (Cause::Requeues, job.requeues, run.spec.budget.requeues),
        (Cause::Revisions, job.revisions, job.spec.revisions),
    ];
    let used = counters.into_iter().filter(|(_, used, _)| *used > 0);
    let meter = |(cause, used, limit): (Cause, u32, u32)| {
        let tripped = job.reason.as_deref() == Some(cause.word());
        let subject = Subject { run: &run.name, job: Some(&job.name), ..Subject::default() };
        let limited =
            [("max_strikes", Cause::Strikes), ("budget.requeues", Cause::Requeues), ("revisions", Cause::Revisions)];
        let key = limited.into_iter().find(|(_, of)| *of == cause).map_or("", |(key, _)| key);
        let named = Some(job.name.as_str()).filter(|_| !key.starts_with("budget."));
        let more = raise(run, named, &format!("{key}={}", used.max(limit).saturating_mul(2).max(1)));
        let next = if tripped { out_of(cause, &subject).into_iter().chain([more]).collect() } else { Vec::new() };
        Meter {
            breaker: cause.word().to_owned(),
            job: Some(job.name.clone()),
            used: used.into(),
            limit: Some(limit.into()),
            unit: "count".to_owned(),
            tripped,
            next,
        }
    };
    used.map(meter).collect()
}

/// The limits of an attempt: its whole length, and its silence where a lane limits that.
fn of_attempt(run: &Run, flight: &FlightLine) -> Vec<Meter> {
    let meter = |breaker: &str, used: u64, limit: u64| Meter {
        breaker: breaker.to_owned(),
        job: Some(flight.job.clone()),
        used,
        limit: Some(limit),
        unit: "ms".to_owned(),
        tripped: false,
        next: Vec::new(),
    };
    let whole = flight.timeout_ms.map(|limit| meter("timeout", flight.elapsed_ms, limit));
    let idle = run.spec.lanes.get(&flight.lane).and_then(|lane| lane.idle_timeout_ms);
    let idle = idle.map(|limit| meter("idle_timeout", flight.quiet_ms.unwrap_or(flight.elapsed_ms), limit));
    whole.into_iter().chain(idle).collect()
}
