//! The event log: append, walk, verify. One chain a store.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::Value;

use super::{StoreResult, Writing};
use crate::domain::event::{EventType, GENESIS, Link, chain_hash};
use crate::domain::id::{JobId, RunId, SessionId};
use crate::domain::time::Timestamp;

/// What an event is about.
#[derive(Clone, Copy, Debug, Default)]
pub struct About {
    /// In which run.
    pub run: Option<RunId>,
    /// About which job.
    pub job: Option<JobId>,
    /// About which session.
    pub session: Option<SessionId>,
}

/// An event as it is stored.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// Dense number.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// About what.
    pub about: About,
    /// The run's name, for people.
    pub run_name: Option<String>,
    /// The job's name, for people.
    pub job_name: Option<String>,
    /// Frozen word.
    pub kind: String,
    /// Who.
    pub principal: String,
    /// Small JSON.
    pub body: String,
}

const LAST: &str = "SELECT id, hash FROM event ORDER BY id DESC LIMIT 1";

const APPEND: &str = "INSERT INTO event (id, at, run_id, job_id, session_id, type, principal, body, previous, hash)
  VALUES (:id, :at, :run, :job, :session, :type, :principal, :body, :previous, :hash)";

/// Appends one event to the chain.
pub fn append(tx: &Writing<'_>, kind: EventType, about: About, body: &Value) -> StoreResult<()> {
    let last: Option<(i64, Vec<u8>)> =
        tx.prepare_cached(LAST)?.query_row([], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (last_id, previous) = last.unwrap_or_else(|| (0, GENESIS.to_vec()));
    let body = body.to_string();
    let link = Link {
        id: last_id + 1,
        at: tx.at.0,
        run: about.run.map(|id| id.0),
        job: about.job.map(|id| id.0),
        session: about.session.map(|id| id.0),
        kind: kind.word(),
        principal: tx.principal,
        body: &body,
    };
    let hash = chain_hash(&previous, &link);
    tx.prepare_cached(APPEND)?.execute(named_params! {
        ":id": link.id, ":at": link.at, ":run": link.run, ":job": link.job, ":session": link.session,
        ":type": link.kind, ":principal": link.principal, ":body": body, ":previous": previous, ":hash": &hash[..],
    })?;
    Ok(())
}

const NEWEST: &str = "SELECT coalesce(max(id), 0) FROM event";

/// Number of the newest event; 0 in an empty store.
pub fn newest(read: &Connection) -> StoreResult<i64> {
    Ok(read.prepare_cached(NEWEST)?.query_row([], |row| row.get(0))?)
}

const AFTER: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.id > :after AND (:run IS NULL OR e.run_id = :run) ORDER BY e.id LIMIT :limit";

/// Events after a number, oldest first, of one run or of all.
pub fn after(read: &Connection, run: Option<RunId>, after: i64, limit: u32) -> StoreResult<Vec<EventRow>> {
    let mut statement = read.prepare_cached(AFTER)?;
    let rows = statement.query_map(named_params! {":after": after, ":run": run, ":limit": limit}, event_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const FIRST_OF_RUN: &str = "SELECT body FROM event WHERE run_id = :run ORDER BY id LIMIT 1";

/// What the first event of a run tells: how it was prepared.
pub fn first_of_run(read: &Connection, run: RunId) -> StoreResult<Option<String>> {
    Ok(read.prepare_cached(FIRST_OF_RUN)?.query_row(named_params! {":run": run}, |row| row.get(0)).optional()?)
}

const OF_JOB: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.job_id = :job ORDER BY e.id DESC LIMIT :limit";

/// The newest events of a job, newest first.
pub fn of_job(read: &Connection, job: JobId, limit: u32) -> StoreResult<Vec<EventRow>> {
    let mut statement = read.prepare_cached(OF_JOB)?;
    let rows = statement.query_map(named_params! {":job": job, ":limit": limit}, event_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn event_row(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        id: row.get("id")?,
        at: row.get("at")?,
        about: About { run: row.get("run_id")?, job: row.get("job_id")?, session: row.get("session_id")? },
        run_name: row.get("run_name")?,
        job_name: row.get("job_name")?,
        kind: row.get("type")?,
        principal: row.get("principal")?,
        body: row.get("body")?,
    })
}

/// A place where the chain is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenLink {
    /// Number of the event.
    pub id: i64,
    /// What is wrong with it.
    pub what: &'static str,
}

const WALK: &str =
    "SELECT id, at, run_id, job_id, session_id, type, principal, body, previous, hash FROM event ORDER BY id";

/// Walks the whole chain; returns its length and every broken link.
pub fn verify(read: &Connection) -> StoreResult<(i64, Vec<BrokenLink>)> {
    let mut statement = read.prepare_cached(WALK)?;
    let mut rows = statement.query([])?;
    let (mut expected, mut previous, mut broken) = (1, GENESIS.to_vec(), Vec::new());
    while let Some(row) = rows.next()? {
        let id: i64 = row.get("id")?;
        let (kind, principal, body): (String, String, String) =
            (row.get("type")?, row.get("principal")?, row.get("body")?);
        let link = Link {
            id,
            at: row.get("at")?,
            run: row.get("run_id")?,
            job: row.get("job_id")?,
            session: row.get("session_id")?,
            kind: &kind,
            principal: &principal,
            body: &body,
        };
        let (stored_previous, stored): (Vec<u8>, Vec<u8>) = (row.get("previous")?, row.get("hash")?);
        if id != expected {
            broken.push(BrokenLink { id, what: "events before it are missing" });
        } else if stored_previous != previous {
            broken.push(BrokenLink { id, what: "it does not continue the event before" });
        } else if chain_hash(&previous, &link)[..] != stored[..] {
            broken.push(BrokenLink { id, what: "its content was changed" });
        }
        expected = id + 1;
        previous = stored;
    }
    Ok((expected - 1, broken))
}
