//! The `resource` table: what is made for one attempt alone, from the intent to make it until it is gone.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing, attempt, session};
use crate::domain::id::{JobId, RunId, SessionId};
use crate::domain::resource::ResourceState;
use crate::domain::session::SessionState;
use crate::domain::time::Timestamp;

/// A row of `resource`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Store number.
    pub id: i64,
    /// In which run.
    pub run: RunId,
    /// For what.
    pub job: JobId,
    /// For which try.
    pub attempt: u32,
    /// Whose try that is.
    pub session: SessionId,
    /// What its commands call it.
    pub name: String,
    /// Where it is.
    pub state: ResourceState,
    /// Times that somebody set out to destroy it.
    pub tries: u32,
    /// Why it could not be destroyed.
    pub reason: Option<String>,
    /// Intent.
    pub made_at: Timestamp,
}

/// A resource that is about to be made.
pub struct NewResource<'a> {
    /// In which run.
    pub run: RunId,
    /// For what.
    pub job: JobId,
    /// For which try.
    pub attempt: u32,
    /// Whose try that is.
    pub session: SessionId,
    /// The process that makes it.
    pub maker: &'a str,
    /// What its commands call it.
    pub name: &'a str,
}

const INSERT: &str = "INSERT INTO resource (run_id, job_id, attempt, session_id, maker, name, state, tries, made_at)
  VALUES (:run, :job, :attempt, :session, :maker, :name, 'creating', 0, :at)";

/// Records the intent.
pub fn insert(tx: &Writing<'_>, new: &NewResource<'_>) -> StoreResult<i64> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":attempt": new.attempt, ":session": new.session, ":maker": new.maker,
        ":name": new.name, ":at": tx.at,
    })?;
    Ok(tx.last_insert_rowid())
}

const GET: &str = "SELECT * FROM resource WHERE id = :id";

/// A resource that must exist.
pub fn get(read: &Connection, id: i64) -> StoreResult<Resource> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":id": id}, resource_row)?)
}

const OPEN: &str = "SELECT * FROM resource WHERE run_id = :run AND state <> 'destroyed' AND state <> 'left'
    AND job_id = :job AND attempt = :attempt
  ORDER BY id DESC LIMIT 1";

/// The resource of an attempt, while it is there or may be.
pub fn open(read: &Connection, run: RunId, job: JobId, attempt: u32) -> StoreResult<Option<Resource>> {
    let named = named_params! {":run": run, ":job": job, ":attempt": attempt};
    Ok(read.prepare_cached(OPEN)?.query_row(named, resource_row).optional()?)
}

const OPEN_OF_RUN: &str = "SELECT * FROM resource
  WHERE run_id = :run AND state <> 'destroyed' AND state <> 'left' ORDER BY id";

/// Resources of a run whose attempt is over and whose holder is gone: nobody else destroys them.
pub fn due(read: &Connection, run: RunId) -> StoreResult<Vec<Resource>> {
    let mut statement = read.prepare_cached(OPEN_OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run}, resource_row)?;
    let mut due = Vec::new();
    // Mostly there is none, and a statement that joins three tables costs its preparing all the same.
    for row in rows {
        let row = row?;
        let is_over = attempt::get(read, row.job, row.attempt)?.outcome.is_some();
        let holder = session::get(read, row.session)?;
        let is_left = holder.is_none_or(|holder| holder.state != SessionState::Active || !holder.supervised);
        if is_over && is_left {
            due.push(row);
        }
    }
    Ok(due)
}

const LEFT: &str = "SELECT * FROM resource INDEXED BY resource_there WHERE state <> 'destroyed' AND state = 'left'
  ORDER BY id";

/// Resources of all runs that could not be destroyed.
pub fn left(read: &Connection) -> StoreResult<Vec<Resource>> {
    let mut statement = read.prepare_cached(LEFT)?;
    let rows = statement.query_map([], resource_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const ABANDONED: &str = "SELECT resource.* FROM resource INDEXED BY resource_there
    JOIN attempt ON attempt.job_id = resource.job_id AND attempt.number = resource.attempt
    JOIN session ON session.id = resource.session_id
  WHERE resource.state <> 'destroyed'
    AND (resource.state = 'left'
      OR (attempt.outcome IS NOT NULL AND (session.state <> 'active' OR session.supervised = 0)))
  ORDER BY resource.id";

/// Resources of all runs that nobody works with any more.
pub fn abandoned(read: &Connection) -> StoreResult<Vec<Resource>> {
    let mut statement = read.prepare_cached(ABANDONED)?;
    let rows = statement.query_map([], resource_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const READY: &str = "UPDATE resource SET state = 'ready' WHERE id = :id";

/// It is there and usable; the caller has asked the machine.
pub fn ready(tx: &Writing<'_>, id: i64) -> StoreResult<()> {
    tx.prepare_cached(READY)?.execute(named_params! {":id": id})?;
    Ok(())
}

const DESTROYING: &str = "UPDATE resource SET state = 'destroying', tries = tries + 1 WHERE id = :id";

/// The intent to destroy it; the caller has asked the machine.
pub fn destroying(tx: &Writing<'_>, id: i64) -> StoreResult<()> {
    tx.prepare_cached(DESTROYING)?.execute(named_params! {":id": id})?;
    Ok(())
}

const ENDED: &str = "UPDATE resource SET state = :state, reason = :reason,
    ended_at = CASE WHEN :state = 'destroyed' THEN :at END WHERE id = :id";

/// What destroying it came to; the caller has asked the machine.
pub fn ended(tx: &Writing<'_>, id: i64, state: ResourceState, reason: Option<&str>) -> StoreResult<()> {
    tx.prepare_cached(ENDED)?.execute(named_params! {":id": id, ":state": state, ":reason": reason, ":at": tx.at})?;
    Ok(())
}

fn resource_row(row: &Row<'_>) -> rusqlite::Result<Resource> {
    Ok(Resource {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        session: row.get("session_id")?,
        name: row.get("name")?,
        state: row.get("state")?,
        tries: row.get("tries")?,
        reason: row.get("reason")?,
        made_at: row.get("made_at")?,
    })
}
