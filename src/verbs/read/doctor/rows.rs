//! The file itself, and what must hold between its rows.

use super::{Check, Finding};
use crate::error::{Next, Result};
use crate::store::invariant::{self, Broken, Invariant};
use crate::store::{Connection, schema};
use crate::verbs::Ctx;

/// Places looked for of one fault.
const PLACES: u32 = 50;

/// A log that nobody folds into the file any more.
const LARGE_LOG: u64 = 256 << 20;

/// Everything that the database alone can tell.
pub fn checks(ctx: &Ctx) -> Vec<Check> {
    vec![
        run(ctx, "integrity", |_, read| {
            let lines = invariant::integrity(read)?;
            let path = ctx.layout().db().display().to_string();
            let found = |line: String| Finding::new("store_corrupt", line, path.clone(), None);
            Ok(Check::found("integrity", "SQLite's check of the whole file", lines.into_iter().map(found).collect()))
        }),
        run(ctx, "foreign keys", |_, read| {
            let lines = invariant::foreign_keys(read, PLACES)?;
            let path = ctx.layout().db().display().to_string();
            let found = |line: String| Finding::new("row_dangling", line, path.clone(), None);
            Ok(Check::found(
                "foreign keys",
                "rows that rows point to are there",
                lines.into_iter().map(found).collect(),
            ))
        }),
        run(ctx, "schema", schema_check),
        run(ctx, "log", log),
        run(ctx, "invariants", invariants),
        run(ctx, "sessions", sessions),
    ]
}

/// A check that reads.
fn run(ctx: &Ctx, name: &str, check: impl FnOnce(&Ctx, &Connection) -> Result<Check>) -> Check {
    ctx.read(|read| check(ctx, read)).unwrap_or_else(|error| Check::failed(name, &error))
}

fn schema_check(ctx: &Ctx, read: &Connection) -> Result<Check> {
    let (live, wanted) = (schema::live_digest(read)?, schema::wanted_digest()?);
    let path = ctx.layout().db().display().to_string();
    let what = "tables, indexes or triggers are not those that this version makes";
    let findings = if live == wanted { Vec::new() } else { vec![Finding::new("schema_drift", what, path, None)] };
    Ok(Check::found("schema", format!("version {}, digest {}", schema::USER_VERSION, &wanted[..12]), findings))
}

fn log(ctx: &Ctx, read: &Connection) -> Result<Check> {
    let mode = invariant::journal_mode(read)?;
    let path = ctx.layout().db().display().to_string();
    if mode != "wal" {
        let what = format!("the log is kept as {mode}, and several processes need wal");
        return Ok(Check::found("log", "", vec![Finding::new("log_mode", what, path, None)]));
    }
    let log = format!("{path}-wal");
    let bytes = std::fs::metadata(&log).map_or(0, |about| about.len());
    let large = (bytes > LARGE_LOG).then(|| {
        let fix = Next::new("operator", "a driver folds it into the file at its end", &["striatum", "run", "drive"]);
        Finding::new("log_large", format!("{bytes} bytes: somebody reads without end"), log, Some(fix))
    });
    Ok(Check::found("log", format!("wal, {bytes} bytes"), large.into_iter().collect()).mild())
}

fn invariants(_: &Ctx, read: &Connection) -> Result<Check> {
    let mut findings = Vec::new();
    for invariant in invariant::ALL {
        findings.extend(invariant::broken(read, invariant, PLACES)?.into_iter().map(|broken| found(invariant, broken)));
    }
    Ok(Check::found("invariants", format!("{} rules between rows", invariant::ALL.len()), findings))
}

fn found(invariant: &Invariant, broken: Broken) -> Finding {
    let story = broken.run.as_deref().map(|run| {
        let is_session =
            broken.subject.strip_prefix('s').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        let job: &[&str] = if is_session || broken.subject == run { &[] } else { &["--job", &broken.subject] };
        Next::new("anyone", "see how it came about", &[&["striatum", "events", "--run-id", run], job].concat())
    });
    let place = broken.run.map_or_else(|| broken.subject.clone(), |run| format!("{run}/{}", broken.subject));
    Finding::new(invariant.code, format!("{}; here: {}", invariant.what, broken.found), place, story)
}

fn sessions(_: &Ctx, read: &Connection) -> Result<Check> {
    let idle = invariant::idle_in_ended_runs(read, PLACES)?;
    let findings = idle.into_iter().map(|broken| {
        let words = ["striatum", "session", "close", "--session-id", &broken.subject, "--reason", "'its run is over'"];
        let fix = Next::new("operator", "close it", &words);
        Finding::new("session_left", broken.found, broken.subject.clone(), Some(fix))
    });
    Ok(Check::found("sessions", "no session outlives its run", findings.collect()))
}
