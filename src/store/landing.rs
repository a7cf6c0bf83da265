//! The `landing` table: a run's change on its way to the branch that a person named.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{GateId, JobId, RunId};
use crate::domain::session::{LandingKind, LandingState};

/// A row of `landing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Store number.
    pub id: i64,
    /// In which run.
    pub run: RunId,
    /// The land job.
    pub job: JobId,
    /// The gate that is approved with it.
    pub gate: GateId,
    /// How far it came.
    pub state: LandingState,
    /// How it was done, or found to be done.
    pub kind: LandingKind,
    /// The branch, as a full name; none when the run ends at its own.
    pub target: Option<String>,
    /// The run's newest commit.
    pub tip: String,
    /// Where the target was.
    pub before: Option<String>,
    /// Where it is moved; none when nothing is.
    pub after: Option<String>,
    /// How it was known that a person approved.
    pub how: String,
    /// The person's words.
    pub note: Option<String>,
    /// Refused: why.
    pub reason: Option<String>,
}

/// A landing to be recorded.
pub struct NewLanding<'a> {
    /// In which run.
    pub run: RunId,
    /// The land job.
    pub job: JobId,
    /// The gate that is approved with it.
    pub gate: GateId,
    /// How far it came.
    pub state: LandingState,
    /// How it is done, or was found to be done.
    pub kind: LandingKind,
    /// The branch, as a full name.
    pub target: Option<&'a str>,
    /// The run's newest commit.
    pub tip: &'a str,
    /// Where the target is.
    pub before: Option<&'a str>,
    /// Where it is moved.
    pub after: Option<&'a str>,
    /// How it was known that a person approved.
    pub how: &'a str,
    /// The person's words.
    pub note: Option<&'a str>,
    /// Refused: why.
    pub reason: Option<&'a str>,
}

const INSERT: &str = "INSERT INTO landing (run_id, job_id, gate_id, state, kind, target, tip, before_id, after_id, how,
    note, reason, intended_at)
  VALUES (:run, :job, :gate, :state, :kind, :target, :tip, :before, :after, :how, :note, :reason, :at)";

/// Records an intent, or a refusal.
pub fn insert(tx: &Writing<'_>, new: &NewLanding<'_>) -> StoreResult<i64> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":gate": new.gate, ":state": new.state, ":kind": new.kind,
        ":target": new.target, ":tip": new.tip, ":before": new.before, ":after": new.after, ":how": new.how,
        ":note": new.note, ":reason": new.reason, ":at": tx.at,
    })?;
    Ok(tx.last_insert_rowid())
}

const SET_STATE: &str = "UPDATE landing SET state = :state,
    done_at = CASE WHEN :state = 'done' THEN :at ELSE done_at END WHERE id = :id";

/// Moves it.
pub fn set_state(tx: &Writing<'_>, id: i64, state: LandingState) -> StoreResult<()> {
    tx.prepare_cached(SET_STATE)?.execute(named_params! {":id": id, ":state": state, ":at": tx.at})?;
    Ok(())
}

const FORGET_REFUSALS: &str = "UPDATE landing SET state = 'void' WHERE job_id = :job AND state = 'refused'";

/// Earlier refusals of a job are over: it is tried again.
pub fn forget_refusals(tx: &Writing<'_>, job: JobId) -> StoreResult<()> {
    tx.prepare_cached(FORGET_REFUSALS)?.execute(named_params! {":job": job})?;
    Ok(())
}

const INTENDED: &str = "SELECT * FROM landing WHERE job_id = :job AND state = 'intended'";

/// The landing of a job that was begun and has no outcome.
pub fn intended(read: &Connection, job: JobId) -> StoreResult<Option<Landing>> {
    Ok(read.prepare_cached(INTENDED)?.query_row(named_params! {":job": job}, landing_row).optional()?)
}

const NEWEST: &str = "SELECT * FROM landing WHERE job_id = :job AND state <> 'void' ORDER BY id DESC LIMIT 1";

/// The newest landing of a job.
pub fn newest(read: &Connection, job: JobId) -> StoreResult<Option<Landing>> {
    Ok(read.prepare_cached(NEWEST)?.query_row(named_params! {":job": job}, landing_row).optional()?)
}

/// A landing that can't be as things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Obstacle {
    /// The gate that still waits.
    pub gate: GateId,
    /// The land job's name.
    pub job: String,
    /// Why, one line.
    pub reason: String,
}

const IN_WAY: &str = "SELECT landing.gate_id, job.name, landing.reason FROM landing
    JOIN gate ON gate.id = landing.gate_id JOIN job ON job.id = landing.job_id
  WHERE landing.run_id = :run AND landing.state = 'refused' AND gate.state = 'pending' ORDER BY job.id";

/// The landings of a run that can't be as things are.
pub fn refused(read: &Connection, run: RunId) -> StoreResult<Vec<Obstacle>> {
    let mut statement = read.prepare_cached(IN_WAY)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| {
        let reason = row.get::<_, Option<String>>(2)?.unwrap_or_default();
        Ok(Obstacle { gate: row.get(0)?, job: row.get(1)?, reason })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const LEFT: &str = "SELECT EXISTS (SELECT 1 FROM landing WHERE after_id = :commit)";

/// Whether a branch was left at a commit by a landing.
pub fn left(read: &Connection, commit: &str) -> StoreResult<bool> {
    Ok(read.prepare_cached(LEFT)?.query_row(named_params! {":commit": commit}, |row| row.get(0))?)
}

const UNFINISHED: &str = "SELECT job_id FROM landing WHERE run_id = :run AND state = 'intended' ORDER BY id";

/// The land jobs of a run whose landing was begun and has no outcome.
pub fn unfinished(read: &Connection, run: RunId) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(UNFINISHED)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn landing_row(row: &Row<'_>) -> rusqlite::Result<Landing> {
    Ok(Landing {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        gate: row.get("gate_id")?,
        state: row.get("state")?,
        kind: row.get("kind")?,
        target: row.get("target")?,
        tip: row.get("tip")?,
        before: row.get("before_id")?,
        after: row.get("after_id")?,
        how: row.get("how")?,
        note: row.get("note")?,
        reason: row.get("reason")?,
    })
}
