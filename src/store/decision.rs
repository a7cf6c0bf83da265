//! The `decision` table.

use rusqlite::{Connection, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{DecisionId, JobId, RunId, SessionId};

/// A judgement to record.
#[derive(Default)]
pub struct NewDecision<'a> {
    /// About which run.
    pub run: Option<RunId>,
    /// About which job.
    pub job: Option<JobId>,
    /// About which session.
    pub session: Option<SessionId>,
    /// answer, override, retry, ...
    pub kind: &'a str,
    /// The words.
    pub body: &'a str,
    /// Why.
    pub reason: &'a str,
    /// terminal, or `--as-person` with what was detected.
    pub how: &'a str,
}

const INSERT: &str = "INSERT INTO decision (run_id, job_id, session_id, kind, body, reason, principal, how, decided_at)
  VALUES (:run, :job, :session, :kind, :body, :reason, :by, :how, :at)";

/// Records a judgement.
pub fn insert(tx: &Writing<'_>, new: &NewDecision<'_>) -> StoreResult<DecisionId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":session": new.session, ":kind": new.kind, ":body": new.body,
        ":reason": new.reason, ":by": tx.principal, ":how": new.how, ":at": tx.at,
    })?;
    Ok(DecisionId(tx.last_insert_rowid()))
}

const IS_OF_KIND: &str = "SELECT EXISTS (SELECT 1 FROM decision WHERE job_id = :job AND kind = :kind)";

/// Whether anything was ever decided in this way about a job.
pub fn is_of_kind(read: &Connection, job: JobId, kind: &str) -> StoreResult<bool> {
    Ok(read.prepare_cached(IS_OF_KIND)?.query_row(named_params! {":job": job, ":kind": kind}, |row| row.get(0))?)
}

const JOBS_OF_KIND: &str = "SELECT job.name FROM job JOIN decision ON decision.job_id = job.id
  WHERE job.run_id = :run AND decision.kind = :kind ORDER BY decision.id LIMIT :limit";

/// The jobs of a run about which something was decided in this way, in that order.
pub fn jobs_of_kind(read: &Connection, run: RunId, kind: &str, limit: u32) -> StoreResult<Vec<String>> {
    let mut statement = read.prepare_cached(JOBS_OF_KIND)?;
    let rows = statement.query_map(named_params! {":run": run, ":kind": kind, ":limit": limit}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const HAS: &str = "SELECT EXISTS (SELECT 1 FROM decision WHERE job_id = :job AND kind = :kind AND principal = :by)";

/// Whether somebody ever decided in this way about a job.
pub fn has(read: &Connection, job: JobId, kind: &str, principal: &str) -> StoreResult<bool> {
    Ok(read
        .prepare_cached(HAS)?
        .query_row(named_params! {":job": job, ":kind": kind, ":by": principal}, |row| row.get(0))?)
}
