//! The `attempt` table.

use rusqlite::{Connection, Row, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::contract::Answer;
use crate::domain::id::{JobId, SessionId};
use crate::domain::job::Outcome;
use crate::domain::packet::Context;
use crate::domain::time::Timestamp;

/// A row of `attempt`.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Whose.
    pub job: JobId,
    /// 1, 2, ...
    pub number: u32,
    /// Who holds or held it.
    pub session: Option<SessionId>,
    /// The fence of its claim.
    pub fence: Option<i64>,
    /// What the packet tells of earlier attempts.
    pub context: Context,
    /// The first valid answer.
    pub answer: Option<Answer>,
    /// Hash of the answer's canonical form.
    pub answer_hash: Option<String>,
    /// Settle tries.
    pub settles: u32,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// One line about it.
    pub detail: Option<String>,
    /// When enqueued.
    pub queued_at: Timestamp,
    /// When claimed.
    pub claimed_at: Option<Timestamp>,
    /// When ended.
    pub ended_at: Option<Timestamp>,
}

const INSERT: &str = "INSERT INTO attempt (job_id, number, context, settles, queued_at)
  VALUES (:job, :number, :context, 0, :at)";

/// Adds an open attempt.
pub fn insert(tx: &Writing<'_>, job: JobId, number: u32, context: &Context) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?
        .execute(named_params! {":job": job, ":number": number, ":context": Json(context), ":at": tx.at})?;
    Ok(())
}

const GET: &str = "SELECT * FROM attempt WHERE job_id = :job AND number = :number";

/// An attempt that must exist.
pub fn get(read: &Connection, job: JobId, number: u32) -> StoreResult<Attempt> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":job": job, ":number": number}, attempt_row)?)
}

const OF_JOB: &str = "SELECT * FROM attempt WHERE job_id = :job ORDER BY number DESC LIMIT :limit";

/// The newest attempts of a job, newest first.
pub fn of_job(read: &Connection, job: JobId, limit: u32) -> StoreResult<Vec<Attempt>> {
    let mut statement = read.prepare_cached(OF_JOB)?;
    let rows = statement.query_map(named_params! {":job": job, ":limit": limit}, attempt_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const CLAIM: &str = "UPDATE attempt SET session_id = :session, fence = :fence, claimed_at = :at
  WHERE job_id = :job AND number = :number";

/// Notes who holds it.
pub fn claim(tx: &Writing<'_>, job: JobId, number: u32, session: SessionId, fence: i64) -> StoreResult<()> {
    tx.prepare_cached(CLAIM)?
        .execute(named_params! {":job": job, ":number": number, ":session": session, ":fence": fence, ":at": tx.at})?;
    Ok(())
}

const SET_PACKET: &str = "UPDATE attempt SET packet_hash = :hash WHERE job_id = :job AND number = :number";

/// Keeps the hash of the packet that was given.
pub fn set_packet(tx: &Writing<'_>, job: JobId, number: u32, hash: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_PACKET)?.execute(named_params! {":job": job, ":number": number, ":hash": hash})?;
    Ok(())
}

const ANSWER: &str = "UPDATE attempt SET answer = :answer, answer_hash = :hash, answered_at = :at
  WHERE job_id = :job AND number = :number AND answer IS NULL AND outcome IS NULL";

/// Stores the first valid answer; false when there is one already.
pub fn set_answer(tx: &Writing<'_>, job: JobId, number: u32, answer: &Answer, hash: &str) -> StoreResult<bool> {
    let changed = tx.prepare_cached(ANSWER)?.execute(
        named_params! {":job": job, ":number": number, ":answer": Json(answer), ":hash": hash, ":at": tx.at},
    )?;
    Ok(changed == 1)
}

const CLEAR_ANSWER: &str = "UPDATE attempt SET answer = NULL, answer_hash = NULL, answered_at = NULL,
    settles = settles + 1 WHERE job_id = :job AND number = :number AND outcome IS NULL RETURNING settles";

/// A settle try failed and the agent still lives: it may answer again. Returns the tries so far.
pub fn clear_answer(tx: &Writing<'_>, job: JobId, number: u32) -> StoreResult<u32> {
    Ok(tx.prepare_cached(CLEAR_ANSWER)?.query_row(named_params! {":job": job, ":number": number}, |row| row.get(0))?)
}

const END: &str = "UPDATE attempt SET outcome = :outcome, detail = :detail, ended_at = :at
  WHERE job_id = :job AND number = :number AND outcome IS NULL";

/// Ends an open attempt; false when it had ended.
pub fn end(tx: &Writing<'_>, job: JobId, number: u32, outcome: Outcome, detail: &str) -> StoreResult<bool> {
    let changed = tx.prepare_cached(END)?.execute(
        named_params! {":job": job, ":number": number, ":outcome": outcome, ":detail": detail, ":at": tx.at},
    )?;
    Ok(changed == 1)
}

fn attempt_row(row: &Row<'_>) -> rusqlite::Result<Attempt> {
    Ok(Attempt {
        job: row.get("job_id")?,
        number: row.get("number")?,
        session: row.get("session_id")?,
        fence: row.get("fence")?,
        context: row.get::<_, Json<Context>>("context")?.0,
        answer: row.get::<_, Option<Json<Answer>>>("answer")?.map(|json| json.0),
        answer_hash: row.get("answer_hash")?,
        settles: row.get("settles")?,
        outcome: row.get("outcome")?,
        detail: row.get("detail")?,
        queued_at: row.get("queued_at")?,
        claimed_at: row.get("claimed_at")?,
        ended_at: row.get("ended_at")?,
    })
}
