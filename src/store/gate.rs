//! The `gate` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::gate::Tier;
use crate::domain::id::{GateId, JobId, RunId};
use crate::domain::session::GateState;
use crate::domain::time::{Moment, Timestamp};

/// A row of `gate`.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Shown as g3.
    pub id: GateId,
    /// Whose.
    pub run: RunId,
    /// What waits for it.
    pub job: JobId,
    /// Where it is.
    pub state: GateState,
    /// Why a person is needed.
    pub tier: Tier,
    /// In words.
    pub why: String,
    /// sha256 of what is shown.
    pub digest: String,
    /// Then it is opened anew.
    pub expires: Moment,
    /// When opened.
    pub opened_at: Timestamp,
    /// When decided.
    pub decided_at: Option<Timestamp>,
    /// By whom.
    pub decided_by: Option<String>,
    /// How it was known that a person decided.
    pub how: Option<String>,
    /// The person's words.
    pub note: Option<String>,
}

/// What a new gate is made of.
pub struct NewGate<'a> {
    /// Whose.
    pub run: RunId,
    /// What waits for it.
    pub job: JobId,
    /// Why a person is needed.
    pub tier: Tier,
    /// In words.
    pub why: &'a str,
    /// sha256 of what is shown.
    pub digest: &'a str,
    /// Then it is opened anew.
    pub expires: &'a Moment,
}

const INSERT: &str = "INSERT INTO gate (run_id, job_id, state, tier, why, digest, expires_boot, expires_ms, opened_at)
  VALUES (:run, :job, 'pending', :tier, :why, :digest, :boot, :ms, :at)";

/// Opens a gate.
pub fn insert(tx: &Writing<'_>, new: &NewGate<'_>) -> StoreResult<GateId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":tier": new.tier, ":why": new.why, ":digest": new.digest,
        ":boot": new.expires.boot, ":ms": new.expires.ms, ":at": tx.at,
    })?;
    Ok(GateId(tx.last_insert_rowid()))
}

const GET: &str = "SELECT * FROM gate WHERE id = :id";

/// A gate, if it exists.
pub fn get(read: &Connection, id: GateId) -> StoreResult<Option<Gate>> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":id": id}, gate_row).optional()?)
}

const PENDING_OF_JOB: &str = "SELECT * FROM gate WHERE job_id = :job AND state = 'pending'";

/// A job's open gate.
pub fn pending_of_job(read: &Connection, job: JobId) -> StoreResult<Option<Gate>> {
    Ok(read.prepare_cached(PENDING_OF_JOB)?.query_row(named_params! {":job": job}, gate_row).optional()?)
}

const PENDING: &str = "SELECT * FROM gate WHERE run_id = :run AND state = 'pending' ORDER BY id";

/// Open gates of a run.
pub fn pending(read: &Connection, run: RunId) -> StoreResult<Vec<Gate>> {
    let mut statement = read.prepare_cached(PENDING)?;
    let rows = statement.query_map(named_params! {":run": run}, gate_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// An open gate with the names that people know.
#[derive(Clone, Debug)]
pub struct OpenGate {
    /// Shown as g3.
    pub id: GateId,
    /// What waits for it.
    pub job: String,
    /// Why a person is needed.
    pub tier: Tier,
    /// In words.
    pub why: String,
    /// When opened.
    pub opened_at: Timestamp,
}

const OPEN: &str = "SELECT gate.id, job.name, gate.tier, gate.why, gate.opened_at
  FROM gate JOIN job ON job.id = gate.job_id
  WHERE gate.run_id = :run AND gate.state = 'pending' ORDER BY gate.id DESC LIMIT :limit";

/// The newest open gates of a run, newest first.
pub fn open(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<OpenGate>> {
    let mut statement = read.prepare_cached(OPEN)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, |row| {
        Ok(OpenGate {
            id: row.get("id")?,
            job: row.get("name")?,
            tier: row.get("tier")?,
            why: row.get("why")?,
            opened_at: row.get("opened_at")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_OPEN: &str = "SELECT count(*) FROM gate WHERE run_id = :run AND state = 'pending'";

/// How many gates of a run are open.
pub fn count_open(read: &Connection, run: RunId) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_OPEN)?.query_row(named_params! {":run": run}, |row| row.get(0))?)
}

const NEWEST_OF_JOB: &str = "SELECT * FROM gate WHERE job_id = :job ORDER BY id DESC LIMIT 1";

/// A job's newest gate, whatever its state.
pub fn newest_of_job(read: &Connection, job: JobId) -> StoreResult<Option<Gate>> {
    Ok(read.prepare_cached(NEWEST_OF_JOB)?.query_row(named_params! {":job": job}, gate_row).optional()?)
}

const OF_RUN: &str = "SELECT * FROM gate WHERE run_id = :run ORDER BY id DESC LIMIT :limit";

/// The newest gates of a run, newest first, decided ones too.
pub fn of_run(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Gate>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, gate_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A person's decision.
pub struct Decided<'a> {
    /// The new state.
    pub state: GateState,
    /// terminal, or `--as-person` with what was detected.
    pub how: &'a str,
    /// The person's words.
    pub note: Option<&'a str>,
}

const DECIDE: &str = "UPDATE gate SET state = :state, decided_at = :at, decided_by = :by, how = :how, note = :note
  WHERE id = :id AND state = 'pending'";

/// Decides an open gate; false when it had been decided.
pub fn decide(tx: &Writing<'_>, id: GateId, decided: &Decided<'_>) -> StoreResult<bool> {
    let changed = tx.prepare_cached(DECIDE)?.execute(named_params! {
        ":id": id, ":state": decided.state, ":by": tx.principal, ":how": decided.how, ":note": decided.note,
        ":at": tx.at,
    })?;
    Ok(changed == 1)
}

fn gate_row(row: &Row<'_>) -> rusqlite::Result<Gate> {
    Ok(Gate {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        state: row.get("state")?,
        tier: row.get("tier")?,
        why: row.get("why")?,
        digest: row.get("digest")?,
        expires: Moment { boot: row.get("expires_boot")?, ms: row.get("expires_ms")? },
        opened_at: row.get("opened_at")?,
        decided_at: row.get("decided_at")?,
        decided_by: row.get("decided_by")?,
        how: row.get("how")?,
        note: row.get("note")?,
    })
}
