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

/// Which events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Of the whole store.
    All,
    /// Of one run.
    Run(RunId),
    /// Of one job.
    Job(JobId),
}

const AFTER: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.id > :after AND :of IS NULL ORDER BY e.id LIMIT :limit";

const AFTER_OF_RUN: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.run_id = :of AND e.id > :after ORDER BY e.id LIMIT :limit";

const AFTER_OF_JOB: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.job_id = :of AND e.id > :after ORDER BY e.id LIMIT :limit";

/// Events after a number, oldest first.
pub fn after(read: &Connection, scope: Scope, after: i64, limit: u32) -> StoreResult<Vec<EventRow>> {
    let (statement, of) = match scope {
        Scope::All => (AFTER, None),
        Scope::Run(run) => (AFTER_OF_RUN, Some(run.0)),
        Scope::Job(job) => (AFTER_OF_JOB, Some(job.0)),
    };
    let mut statement = read.prepare_cached(statement)?;
    let rows = statement.query_map(named_params! {":after": after, ":of": of, ":limit": limit}, event_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const FIRST_OF_RUN: &str = "SELECT body FROM event WHERE run_id = :run ORDER BY id LIMIT 1";

/// What the first event of a run tells: how it was prepared.
pub fn first_of_run(read: &Connection, run: RunId) -> StoreResult<Option<String>> {
    Ok(read.prepare_cached(FIRST_OF_RUN)?.query_row(named_params! {":run": run}, |row| row.get(0)).optional()?)
}

const LATEST: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE :of IS NULL ORDER BY e.id DESC LIMIT :limit";

const LATEST_OF_RUN: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.run_id = :of ORDER BY e.id DESC LIMIT :limit";

const LATEST_OF_JOB: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.job_id = :of ORDER BY e.id DESC LIMIT :limit";

/// The newest events, newest first.
pub fn latest(read: &Connection, scope: Scope, limit: u32) -> StoreResult<Vec<EventRow>> {
    let (statement, of) = match scope {
        Scope::All => (LATEST, None),
        Scope::Run(run) => (LATEST_OF_RUN, Some(run.0)),
        Scope::Job(job) => (LATEST_OF_JOB, Some(job.0)),
    };
    let mut statement = read.prepare_cached(statement)?;
    let rows = statement.query_map(named_params! {":of": of, ":limit": limit}, event_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const BODIES_OF_JOB: &str = "SELECT body FROM event WHERE job_id = :job AND type IN (:one, :other) ORDER BY id";

/// The bodies of a job's events of two types, oldest first.
pub fn bodies_of_job(read: &Connection, job: JobId, kinds: [EventType; 2]) -> StoreResult<Vec<String>> {
    let [one, other] = kinds;
    let mut statement = read.prepare_cached(BODIES_OF_JOB)?;
    let rows = statement.query_map(named_params! {":job": job, ":one": one, ":other": other}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const NEWEST_OF_RUN_AND_TYPE: &str =
    "SELECT e.id, e.at, e.run_id, e.job_id, e.session_id, e.type, e.principal, e.body, r.name AS run_name, j.name AS job_name
  FROM event e LEFT JOIN run r ON r.id = e.run_id LEFT JOIN job j ON j.id = e.job_id
  WHERE e.run_id = :run AND e.type = :type ORDER BY e.id DESC LIMIT 1";

/// The newest event of one type in a run; looks backwards from the end of the run's story.
pub fn newest_of_type(read: &Connection, run: RunId, kind: EventType) -> StoreResult<Option<EventRow>> {
    Ok(read
        .prepare_cached(NEWEST_OF_RUN_AND_TYPE)?
        .query_row(named_params! {":run": run, ":type": kind}, event_row)
        .optional()?)
}

/// What an event is, without what it says.
#[derive(Clone, Debug)]
pub struct Head {
    /// Its number.
    pub id: i64,
    /// What it is.
    pub kind: EventType,
    /// The job that it is about.
    pub job: Option<String>,
}

const HEADS: &str = "SELECT e.id, e.type, j.name FROM event e LEFT JOIN job j ON j.id = e.job_id
  WHERE e.run_id = :run AND e.id > :after ORDER BY e.id";

/// The events of a run after a number, oldest first, but for words that this program does not know.
pub fn heads_after(read: &Connection, run: RunId, after: i64) -> StoreResult<Vec<Head>> {
    let mut statement = read.prepare_cached(HEADS)?;
    let mut rows = statement.query(named_params! {":run": run, ":after": after})?;
    let mut heads = Vec::new();
    while let Some(row) = rows.next()? {
        let word: String = row.get(1)?;
        if let Ok(kind) = word.parse() {
            heads.push(Head { id: row.get(0)?, kind, job: row.get(2)? });
        }
    }
    Ok(heads)
}

const COUNT: &str = "SELECT count(*) FROM event WHERE id > :after AND id < :before AND :of IS NULL";
const COUNT_OF_RUN: &str = "SELECT count(*) FROM event WHERE run_id = :of AND id > :after AND id < :before";
const COUNT_OF_JOB: &str = "SELECT count(*) FROM event WHERE job_id = :of AND id > :after AND id < :before";

/// How many events lie between two numbers, both left out.
pub fn count_between(read: &Connection, scope: Scope, after: i64, before: i64) -> StoreResult<u32> {
    let (statement, of) = match scope {
        Scope::All => (COUNT, None),
        Scope::Run(run) => (COUNT_OF_RUN, Some(run.0)),
        Scope::Job(job) => (COUNT_OF_JOB, Some(job.0)),
    };
    let numbers = named_params! {":of": of, ":after": after, ":before": before};
    Ok(read.prepare_cached(statement)?.query_row(numbers, |row| row.get(0))?)
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
