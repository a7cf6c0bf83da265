//! The `verdict` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::id::{DecisionId, JobId, SessionId};
use crate::domain::time::Timestamp;
use crate::domain::verdict::{Finding, Verdict};

/// A row of `verdict`.
#[derive(Clone, Debug)]
pub struct VerdictRow {
    /// The review.
    pub job: JobId,
    /// Its try.
    pub attempt: u32,
    /// The job judged.
    pub subject: Option<JobId>,
    /// The subject's generation that was judged.
    pub generation: u32,
    /// Who judged.
    pub session: Option<SessionId>,
    /// The override.
    pub decision: Option<DecisionId>,
    /// The judgement.
    pub verdict: Verdict,
    /// Remarks.
    pub findings: Vec<Finding>,
    /// Hash of them.
    pub findings_hash: String,
    /// Author and reviewer declare the same model.
    pub same_model: bool,
    /// When.
    pub recorded_at: Timestamp,
}

const INSERT: &str = "INSERT INTO verdict (job_id, attempt, subject_id, generation, session_id, decision_id, verdict,
    findings, findings_hash, same_model, recorded_at)
  VALUES (:job, :attempt, :subject, :generation, :session, :decision, :verdict, :findings, :hash, :same_model, :at)";

/// Records a judgement; `recorded_at` of the row is not used, the transaction's time is.
pub fn insert(tx: &Writing<'_>, row: &VerdictRow) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":job": row.job, ":attempt": row.attempt, ":subject": row.subject, ":generation": row.generation,
        ":session": row.session, ":decision": row.decision, ":verdict": row.verdict,
        ":findings": Json(&row.findings), ":hash": row.findings_hash, ":same_model": row.same_model, ":at": tx.at,
    })?;
    Ok(())
}

const NEWEST: &str = "SELECT * FROM verdict WHERE job_id = :job ORDER BY id DESC LIMIT 1";

/// The newest judgement of a review, of whatever generation.
pub fn newest(read: &Connection, job: JobId) -> StoreResult<Option<VerdictRow>> {
    Ok(read.prepare_cached(NEWEST)?.query_row(named_params! {":job": job}, verdict_row).optional()?)
}

const OF_JOB: &str = "SELECT * FROM verdict WHERE job_id = :job ORDER BY id";

/// Every judgement of a review, oldest first.
pub fn of_job(read: &Connection, job: JobId) -> StoreResult<Vec<VerdictRow>> {
    let mut statement = read.prepare_cached(OF_JOB)?;
    let rows = statement.query_map(named_params! {":job": job}, verdict_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn verdict_row(row: &Row<'_>) -> rusqlite::Result<VerdictRow> {
    Ok(VerdictRow {
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        subject: row.get("subject_id")?,
        generation: row.get("generation")?,
        session: row.get("session_id")?,
        decision: row.get("decision_id")?,
        verdict: row.get("verdict")?,
        findings: row.get::<_, Json<Vec<Finding>>>("findings")?.0,
        findings_hash: row.get("findings_hash")?,
        same_model: row.get("same_model")?,
        recorded_at: row.get("recorded_at")?,
    })
}
