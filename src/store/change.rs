//! The `change` table: what attempts changed, each one commit on its way to the run's branch.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{JobId, RunId};
use crate::domain::session::ChangeState;

/// A row of `change`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Whose.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// How far it came.
    pub state: ChangeState,
    /// The commit that it is against.
    pub base: String,
    /// The change, as the pin names it.
    pub commit: String,
    /// What was verified.
    pub tree: String,
    /// How many paths it changes.
    pub files: u32,
    /// The run's branch before it.
    pub tip_before: Option<String>,
    /// And after it.
    pub tip_after: Option<String>,
}

/// A change whose commit is made.
pub struct NewChange<'a> {
    /// Whose.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// The commit that it is against.
    pub base: &'a str,
    /// The change.
    pub commit: &'a str,
    /// What was verified.
    pub tree: &'a str,
    /// How many paths it changes.
    pub files: u32,
}

const INTEND: &str = "INSERT INTO change (job_id, attempt, state, base, commit_id, tree_hash, files, intended_at)
  VALUES (:job, :attempt, 'intended', :base, :commit, :tree, :files, :at)
  ON CONFLICT (job_id, attempt) DO UPDATE SET base = excluded.base, commit_id = excluded.commit_id,
    tree_hash = excluded.tree_hash, files = excluded.files,
    tip_before = CASE WHEN commit_id = excluded.commit_id THEN tip_before END,
    tip_after = CASE WHEN commit_id = excluded.commit_id THEN tip_after END
  WHERE state = 'intended'";

/// Records the intent to pin and integrate; one that was cut off before is taken up again.
pub fn intend(tx: &Writing<'_>, new: &NewChange<'_>) -> StoreResult<()> {
    tx.prepare_cached(INTEND)?.execute(named_params! {
        ":job": new.job, ":attempt": new.attempt, ":base": new.base, ":commit": new.commit, ":tree": new.tree,
        ":files": new.files, ":at": tx.at,
    })?;
    Ok(())
}

const AIM: &str = "UPDATE change SET tip_before = :before, tip_after = :after
  WHERE job_id = :job AND attempt = :attempt AND state = 'intended'";

/// Records where the run's branch is about to be moved.
pub fn aim(tx: &Writing<'_>, (job, attempt): (JobId, u32), before: &str, after: &str) -> StoreResult<()> {
    tx.prepare_cached(AIM)?
        .execute(named_params! {":job": job, ":attempt": attempt, ":before": before, ":after": after})?;
    Ok(())
}

const INTEGRATED: &str = "UPDATE change SET state = 'integrated', integrated_at = :at
  WHERE job_id = :job AND attempt = :attempt";

/// The outcome, with the seal.
pub fn integrated(tx: &Writing<'_>, job: JobId, attempt: u32) -> StoreResult<()> {
    tx.prepare_cached(INTEGRATED)?.execute(named_params! {":job": job, ":attempt": attempt, ":at": tx.at})?;
    Ok(())
}

const GET: &str = "SELECT * FROM change WHERE job_id = :job AND attempt = :attempt";

/// The change of an attempt, if it made one.
pub fn get(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Option<Change>> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":job": job, ":attempt": attempt}, change_row).optional()?)
}

const OF_JOB: &str = "SELECT * FROM change WHERE job_id = :job ORDER BY attempt";

/// Every change of a job, oldest first.
pub fn of_job(read: &Connection, job: JobId) -> StoreResult<Vec<Change>> {
    let mut statement = read.prepare_cached(OF_JOB)?;
    let rows = statement.query_map(named_params! {":job": job}, change_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_RUN: &str = "SELECT change.* FROM change JOIN job ON job.id = change.job_id WHERE job.run_id = :run
  ORDER BY change.job_id, change.attempt";

/// Every change of a run, by job and attempt.
pub fn of_run(read: &Connection, run: RunId) -> StoreResult<Vec<Change>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run}, change_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const IS_AIMED: &str = "SELECT EXISTS (SELECT 1 FROM change JOIN job ON job.id = change.job_id
  WHERE change.state = 'intended' AND change.tip_after = :after AND change.tip_before = :before
    AND job.run_id = :run)";

/// Whether some change of the run was about to move its branch so when it was cut off.
pub fn is_aimed(read: &Connection, run: RunId, before: &str, after: &str) -> StoreResult<bool> {
    let named = named_params! {":run": run, ":before": before, ":after": after};
    Ok(read.prepare_cached(IS_AIMED)?.query_row(named, |row| row.get(0))?)
}

fn change_row(row: &Row<'_>) -> rusqlite::Result<Change> {
    Ok(Change {
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        state: row.get("state")?,
        base: row.get("base")?,
        commit: row.get("commit_id")?,
        tree: row.get("tree_hash")?,
        files: row.get("files")?,
        tip_before: row.get("tip_before")?,
        tip_after: row.get("tip_after")?,
    })
}
