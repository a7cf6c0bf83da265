//! The `lease` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{JobId, LeaseId, RunId, SessionId};
use crate::domain::job::{JobState, Phase};
use crate::domain::session::LeaseState;
use crate::domain::time::{Moment, Timestamp};

/// A row of `lease`.
#[derive(Clone, Debug)]
pub struct Lease {
    /// Shown as l12.
    pub id: LeaseId,
    /// Whose.
    pub run: RunId,
    /// What is held.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// Who holds it.
    pub session: SessionId,
    /// The job's fence when granted.
    pub fence: i64,
    /// Where it is.
    pub state: LeaseState,
    /// Unsupervised only.
    pub deadline: Option<Moment>,
    /// When granted.
    pub granted_at: Timestamp,
    /// Why it ended.
    pub end_reason: Option<String>,
}

/// What a new lease is made of.
pub struct NewLease<'a> {
    /// Whose.
    pub run: RunId,
    /// What is held.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// Who holds it.
    pub session: SessionId,
    /// For counting.
    pub lane: &'a str,
    /// The job's fence.
    pub fence: i64,
    /// Unsupervised only.
    pub deadline: Option<&'a Moment>,
}

const INSERT: &str = "INSERT INTO lease (run_id, job_id, attempt, session_id, lane, fence, state, deadline_boot,
    deadline_ms, granted_at)
  VALUES (:run, :job, :attempt, :session, :lane, :fence, 'active', :boot, :ms, :at)";

/// Grants a hold.
pub fn insert(tx: &Writing<'_>, new: &NewLease<'_>) -> StoreResult<LeaseId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":attempt": new.attempt, ":session": new.session, ":lane": new.lane,
        ":fence": new.fence, ":boot": new.deadline.map(|moment| moment.boot.as_str()),
        ":ms": new.deadline.map(|moment| moment.ms), ":at": tx.at,
    })?;
    Ok(LeaseId(tx.last_insert_rowid()))
}

const ACTIVE_OF_JOB: &str = "SELECT * FROM lease WHERE job_id = :job AND state = 'active'";

/// A job's active lease.
pub fn active_of_job(read: &Connection, job: JobId) -> StoreResult<Option<Lease>> {
    Ok(read.prepare_cached(ACTIVE_OF_JOB)?.query_row(named_params! {":job": job}, lease_row).optional()?)
}

const NEWEST_OF_SESSION: &str = "SELECT * FROM lease WHERE session_id = :session ORDER BY id DESC LIMIT 1";

/// The newest lease of a session, whatever its state.
pub fn newest_of_session(read: &Connection, session: SessionId) -> StoreResult<Option<Lease>> {
    Ok(read.prepare_cached(NEWEST_OF_SESSION)?.query_row(named_params! {":session": session}, lease_row).optional()?)
}

const OF_RUN: &str = "SELECT * FROM lease WHERE run_id = :run AND state = 'active' ORDER BY id";

/// Active leases of a run.
pub fn active_of_run(read: &Connection, run: RunId) -> StoreResult<Vec<Lease>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run}, lease_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// An active lease, as a look at the run sees it.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The lease.
    pub lease: LeaseId,
    /// Who holds it.
    pub session: SessionId,
    /// The job's name.
    pub name: String,
    /// Until when; none while a held lock protects it.
    pub deadline: Option<Moment>,
}

const HOLDS: &str = "SELECT lease.id, lease.session_id, job.name, lease.deadline_boot, lease.deadline_ms
  FROM lease JOIN job ON job.id = lease.job_id
  WHERE lease.run_id = :run AND lease.state = 'active' ORDER BY lease.id";

/// What is held in a run, oldest first.
pub fn holds(read: &Connection, run: RunId) -> StoreResult<Vec<Hold>> {
    let mut statement = read.prepare_cached(HOLDS)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| {
        let deadline = super::moment(row, "deadline_boot", "deadline_ms")?;
        Ok(Hold { lease: row.get(0)?, session: row.get(1)?, name: row.get(2)?, deadline })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A held job with who works on it.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// Where it is.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// Who holds it.
    pub session: SessionId,
    /// Since when.
    pub granted_at: Timestamp,
    /// The session's last verb.
    pub active_at: Timestamp,
}

const FLIGHTS: &str = "SELECT lease.job_id, job.name, lease.attempt, job.state, job.phase, session.role, lease.lane,
    lease.session_id, lease.granted_at, session.active_at
  FROM lease JOIN job ON job.id = lease.job_id JOIN session ON session.id = lease.session_id
  WHERE lease.run_id = :run AND lease.state = 'active' ORDER BY lease.id LIMIT :limit";

/// What is held in a run and by whom, oldest first.
pub fn flights(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Flight>> {
    let mut statement = read.prepare_cached(FLIGHTS)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, |row| {
        Ok(Flight {
            job: row.get("job_id")?,
            name: row.get("name")?,
            attempt: row.get("attempt")?,
            state: row.get("state")?,
            phase: row.get("phase")?,
            role: row.get("role")?,
            lane: row.get("lane")?,
            session: row.get("session_id")?,
            granted_at: row.get("granted_at")?,
            active_at: row.get("active_at")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_RUN: &str = "SELECT count(*) FROM lease WHERE run_id = :run AND state = 'active'";

/// How many jobs of a run are held.
pub fn count_run(read: &Connection, run: RunId) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_RUN)?.query_row(named_params! {":run": run}, |row| row.get(0))?)
}

const COUNT_LANE: &str = "SELECT count(*) FROM lease WHERE lane = :lane AND state = 'active'";

/// How many jobs a lane holds over all runs.
pub fn count_lane(read: &Connection, lane: &str) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_LANE)?.query_row(named_params! {":lane": lane}, |row| row.get(0))?)
}

const HELD_JOBS: &str = "SELECT DISTINCT job_id FROM lease WHERE session_id = :session";

/// Every job a session ever held.
pub fn jobs_of_session(read: &Connection, session: SessionId) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(HELD_JOBS)?;
    let rows = statement.query_map(named_params! {":session": session}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const LINEAGE: &str = "SELECT DISTINCT lease.job_id FROM session JOIN lease ON lease.session_id = session.id
  WHERE session.run_id = :run AND session.pid = :pid AND session.pid_start = :start AND session.pid_boot = :boot";

/// Every job of a run that sessions of one process held.
pub fn jobs_of_process(read: &Connection, run: RunId, process: (i64, i64, &str)) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(LINEAGE)?;
    let rows = statement
        .query_map(named_params! {":run": run, ":pid": process.0, ":start": process.1, ":boot": process.2}, |row| {
            row.get(0)
        })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const END: &str = "UPDATE lease SET state = :state, ended_at = :at, end_reason = :reason
  WHERE id = :id AND state = 'active'";

/// Ends an active lease.
pub fn end(tx: &Writing<'_>, id: LeaseId, state: LeaseState, reason: &str) -> StoreResult<()> {
    tx.prepare_cached(END)?.execute(named_params! {":id": id, ":state": state, ":reason": reason, ":at": tx.at})?;
    Ok(())
}

const EXTEND: &str = "UPDATE lease SET deadline_boot = :boot, deadline_ms = :ms
  WHERE session_id = :session AND state = 'active' AND deadline_ms IS NOT NULL";

/// Moves the deadline of what an unsupervised session holds.
pub fn extend(tx: &Writing<'_>, session: SessionId, deadline: &Moment) -> StoreResult<()> {
    tx.prepare_cached(EXTEND)?
        .execute(named_params! {":session": session, ":boot": deadline.boot, ":ms": deadline.ms})?;
    Ok(())
}

fn lease_row(row: &Row<'_>) -> rusqlite::Result<Lease> {
    Ok(Lease {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        session: row.get("session_id")?,
        fence: row.get("fence")?,
        state: row.get("state")?,
        deadline: super::moment(row, "deadline_boot", "deadline_ms")?,
        granted_at: row.get("granted_at")?,
        end_reason: row.get("end_reason")?,
    })
}
