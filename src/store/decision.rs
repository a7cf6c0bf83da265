//! The `decision` table.

use rusqlite::{Connection, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::escape::Surface;
use crate::domain::id::{DecisionId, JobId, RunId, SessionId};
use crate::domain::time::{Moment, Timestamp};

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
    /// Of a recorded one.
    pub outcome: Option<&'a str>,
    /// The words.
    pub body: &'a str,
    /// Why.
    pub reason: &'a str,
    /// What is to be done later.
    pub follow_up: Option<&'a str>,
    /// terminal, or `--as-person` with what was detected.
    pub how: &'a str,
}

const INSERT: &str =
    "INSERT INTO decision (run_id, job_id, session_id, kind, outcome, body, reason, follow_up, principal,
    how, decided_at)
  VALUES (:run, :job, :session, :kind, :outcome, :body, :reason, :later, :by, :how, :at)";

/// Records a judgement.
pub fn insert(tx: &Writing<'_>, new: &NewDecision<'_>) -> StoreResult<DecisionId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":session": new.session, ":kind": new.kind, ":outcome": new.outcome,
        ":body": new.body, ":reason": new.reason, ":later": new.follow_up, ":by": tx.principal, ":how": new.how, ":at": tx.at,
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

/// A decision as it is listed.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Shown as d4.
    pub id: DecisionId,
    /// About which job.
    pub job: Option<String>,
    /// About which session.
    pub session: Option<SessionId>,
    /// answer, override, retry, ...
    pub kind: String,
    /// Of a recorded one.
    pub outcome: Option<String>,
    /// The words.
    pub body: String,
    /// Why.
    pub reason: String,
    /// What is to be done later.
    pub follow_up: Option<String>,
    /// Who.
    pub principal: String,
    /// How that is known.
    pub how: String,
    /// When.
    pub decided_at: Timestamp,
    /// What it lets leave the constrained surface.
    pub opens: Option<Opens>,
}

/// What an escape opens.
#[derive(Clone, Debug)]
pub struct Opens {
    /// Where.
    pub surface: Surface,
    /// The words of the act, or their hash.
    pub action: String,
    /// How often it may be used.
    pub uses: u32,
    /// How often it was.
    pub used: u32,
    /// It opens nothing afterwards.
    pub expires: Moment,
}

const LIST: &str = "SELECT d.id, job.name, d.session_id, d.kind, d.outcome, d.body, d.reason, d.follow_up, d.principal,
    d.how, d.decided_at, e.surface, e.action, e.uses, e.used, e.expires_boot, e.expires_ms
  FROM decision AS d LEFT JOIN job ON job.id = d.job_id LEFT JOIN escape_act AS e ON e.decision_id = d.id
  WHERE d.run_id = :run ORDER BY d.id DESC LIMIT :limit";

/// The decisions about a run, newest first.
pub fn of_run(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Listed>> {
    let mut statement = read.prepare_cached(LIST)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, listed)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn listed(row: &Row<'_>) -> rusqlite::Result<Listed> {
    let surface: Option<Surface> = row.get(11)?;
    Ok(Listed {
        id: row.get(0)?,
        job: row.get(1)?,
        session: row.get(2)?,
        kind: row.get(3)?,
        outcome: row.get(4)?,
        body: row.get(5)?,
        reason: row.get(6)?,
        follow_up: row.get(7)?,
        principal: row.get(8)?,
        how: row.get(9)?,
        decided_at: row.get(10)?,
        opens: surface.map(|surface| opens(surface, row)).transpose()?,
    })
}

fn opens(surface: Surface, row: &Row<'_>) -> rusqlite::Result<Opens> {
    Ok(Opens {
        surface,
        action: row.get(12)?,
        uses: row.get(13)?,
        used: row.get(14)?,
        expires: Moment { boot: row.get(15)?, ms: row.get(16)? },
    })
}
