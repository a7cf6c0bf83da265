//! The `artifact` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{JobId, RunId};
use crate::domain::time::Timestamp;

/// A row of `artifact`.
#[derive(Clone, Debug)]
pub struct Artifact {
    /// By which job.
    pub job: JobId,
    /// In which try.
    pub attempt: u32,
    /// As `produces` names it.
    pub name: String,
    /// A free word.
    pub kind: String,
    /// Of the bytes, and its file name.
    pub sha256: String,
    /// Size.
    pub bytes: i64,
    /// When.
    pub published_at: Timestamp,
}

const INSERT: &str = "INSERT INTO artifact (job_id, attempt, name, kind, sha256, bytes, published_at)
  VALUES (:job, :attempt, :name, :kind, :sha256, :bytes, :at)";

/// Records a published file, whose bytes are already under artifacts/.
pub fn insert(tx: &Writing<'_>, artifact: &Artifact) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":job": artifact.job, ":attempt": artifact.attempt, ":name": artifact.name, ":kind": artifact.kind,
        ":sha256": artifact.sha256, ":bytes": artifact.bytes, ":at": tx.at,
    })?;
    Ok(())
}

const FIND: &str = "SELECT * FROM artifact WHERE job_id = :job AND attempt = :attempt AND name = :name";

/// One artifact of an attempt.
pub fn find(read: &Connection, job: JobId, attempt: u32, name: &str) -> StoreResult<Option<Artifact>> {
    Ok(read
        .prepare_cached(FIND)?
        .query_row(named_params! {":job": job, ":attempt": attempt, ":name": name}, artifact_row)
        .optional()?)
}

const OF_ATTEMPT: &str = "SELECT * FROM artifact WHERE job_id = :job AND attempt = :attempt ORDER BY name";

/// Artifacts of an attempt.
pub fn of_attempt(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Vec<Artifact>> {
    let mut statement = read.prepare_cached(OF_ATTEMPT)?;
    let rows = statement.query_map(named_params! {":job": job, ":attempt": attempt}, artifact_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_NEWEST_SEALED: &str = "SELECT artifact.* FROM artifact WHERE job_id = :job AND attempt = (
    SELECT max(number) FROM attempt WHERE job_id = :job AND outcome = 'sealed') ORDER BY name";

/// Artifacts of a job's newest sealed attempt.
pub fn of_newest_sealed(read: &Connection, job: JobId) -> StoreResult<Vec<Artifact>> {
    let mut statement = read.prepare_cached(OF_NEWEST_SEALED)?;
    let rows = statement.query_map(named_params! {":job": job}, artifact_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_RUN: &str = "SELECT artifact.* FROM job JOIN artifact ON artifact.job_id = job.id WHERE job.run_id = :run
  ORDER BY artifact.id";

/// Every artifact of a run.
pub fn of_run(read: &Connection, run: RunId) -> StoreResult<Vec<Artifact>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run}, artifact_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const NEWEST: &str = "SELECT * FROM artifact ORDER BY id DESC LIMIT :limit";

/// The newest artifacts of the store, newest first.
pub fn newest(read: &Connection, limit: u32) -> StoreResult<Vec<Artifact>> {
    let mut statement = read.prepare_cached(NEWEST)?;
    let rows = statement.query_map(named_params! {":limit": limit}, artifact_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT: &str = "SELECT count(*) FROM artifact";

/// How many artifacts there are.
pub fn count(read: &Connection) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT)?.query_row([], |row| row.get(0))?)
}

fn artifact_row(row: &Row<'_>) -> rusqlite::Result<Artifact> {
    Ok(Artifact {
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        name: row.get("name")?,
        kind: row.get("kind")?,
        sha256: row.get("sha256")?,
        bytes: row.get("bytes")?,
        published_at: row.get("published_at")?,
    })
}
