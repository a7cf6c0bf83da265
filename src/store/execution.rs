//! The `execution` table: intents and outcomes of processes, each told in the log as it is written.

use rusqlite::{Connection, OptionalExtension, Row, named_params};
use serde_json::{Value, json};

use super::event::{self, About};
use super::{StoreResult, Writing};
use crate::domain::event::EventType;
use crate::domain::id::{JobId, SessionId};
use crate::domain::session::ExecutionState;
use crate::domain::time::{Moment, Timestamp};

/// A row of `execution`.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Store number.
    pub id: i64,
    /// For what.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// By whom.
    pub session: SessionId,
    /// agent, verify, setup or process.
    pub kind: String,
    /// Of a process: the declared class, `any`, or the decision that let it pass.
    pub class: Option<String>,
    /// Where it is.
    pub state: ExecutionState,
    /// The process: pid, start, boot.
    pub process: Option<(i64, i64, String)>,
    /// The end of the attempt.
    pub deadline: Option<Moment>,
    /// When it exited by itself.
    pub exit_code: Option<i32>,
    /// When a signal ended it.
    pub signal: Option<i32>,
    /// What it wrote.
    pub output_bytes: Option<i64>,
    /// One line.
    pub detail: Option<String>,
    /// Intent.
    pub started_at: Timestamp,
    /// Outcome.
    pub ended_at: Option<Timestamp>,
}

/// What is about to be started.
pub struct NewExecution<'a> {
    /// For what.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// By whom.
    pub session: SessionId,
    /// agent, verify, setup or process.
    pub kind: &'a str,
    /// Of a process: the declared class, `any`, or the decision that let it pass.
    pub class: Option<&'a str>,
    /// The end of the attempt.
    pub deadline: Option<&'a Moment>,
    /// sha256 of the NUL-joined argv.
    pub argv_hash: Option<&'a str>,
}

const INSERT: &str = "INSERT INTO execution (job_id, attempt, session_id, kind, class, state, argv_hash,
    deadline_boot, deadline_ms, started_at)
  VALUES (:job, :attempt, :session, :kind, :class, 'starting', :argv, :boot, :ms, :at)";

/// Records the intent.
pub fn insert(tx: &Writing<'_>, new: &NewExecution<'_>) -> StoreResult<i64> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":job": new.job, ":attempt": new.attempt, ":session": new.session, ":kind": new.kind, ":class": new.class,
        ":argv": new.argv_hash,
        ":boot": new.deadline.map(|moment| moment.boot.as_str()), ":ms": new.deadline.map(|moment| moment.ms),
        ":at": tx.at,
    })?;
    let id = tx.last_insert_rowid();
    let mut body = json!({"argv": new.argv_hash});
    new.class.iter().for_each(|class| body["class"] = json!(class));
    tell(tx, id, EventType::ExecutionStarting, body)?;
    Ok(id)
}

const REFS: &str = "SELECT e.job_id, e.session_id, e.attempt, e.kind, job.run_id
  FROM execution AS e JOIN job ON job.id = e.job_id WHERE e.id = :id";

/// Tells in the log what became of an execution.
fn tell(tx: &Writing<'_>, id: i64, event: EventType, mut body: Value) -> StoreResult<()> {
    let (about, attempt, kind) = tx.prepare_cached(REFS)?.query_row(named_params! {":id": id}, |row| {
        let about = About { run: row.get("run_id")?, job: row.get("job_id")?, session: row.get("session_id")? };
        Ok((about, row.get::<_, u32>("attempt")?, row.get::<_, String>("kind")?))
    })?;
    body["kind"] = json!(kind);
    body["attempt"] = json!(attempt);
    event::append(tx, event, about, &body)
}

const STARTED: &str = "UPDATE execution SET state = 'running', pid = :pid, pid_start = :start, pid_boot = :boot
  WHERE id = :id AND state = 'starting'";

/// The process exists.
pub fn started(tx: &Writing<'_>, id: i64, process: (i64, i64, &str)) -> StoreResult<()> {
    let changed = tx
        .prepare_cached(STARTED)?
        .execute(named_params! {":id": id, ":pid": process.0, ":start": process.1, ":boot": process.2})?;
    if changed == 0 {
        return Ok(());
    }
    tell(tx, id, EventType::ExecutionStarted, json!({"pid": process.0}))
}

/// How a process ended.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// When it exited by itself.
    pub exit_code: Option<i32>,
    /// When a signal ended it.
    pub signal: Option<i32>,
    /// What it wrote.
    pub output_bytes: Option<i64>,
    /// Of a process: hash of that.
    pub output_hash: Option<String>,
    /// One line.
    pub detail: Option<String>,
}

const ENDED: &str = "UPDATE execution SET state = :state, exit_code = :code, signal = :signal, output_bytes = :bytes,
    output_hash = :hash, detail = :detail, ended_at = :at WHERE id = :id AND state IN ('starting', 'running')";

/// Records the outcome.
pub fn ended(tx: &Writing<'_>, id: i64, state: ExecutionState, ending: &Ending) -> StoreResult<()> {
    let changed = tx.prepare_cached(ENDED)?.execute(named_params! {
        ":id": id, ":state": state, ":code": ending.exit_code, ":signal": ending.signal,
        ":bytes": ending.output_bytes, ":hash": ending.output_hash, ":detail": ending.detail, ":at": tx.at,
    })?;
    if changed == 0 {
        return Ok(());
    }
    let mut body =
        json!({"state": state, "exit": ending.exit_code, "signal": ending.signal, "bytes": ending.output_bytes});
    ending.output_hash.iter().for_each(|hash| body["output"] = json!(hash));
    tell(tx, id, EventType::ExecutionEnded, body)
}

const LOSE_CHECKS: &str = "UPDATE execution SET state = 'lost', detail = 'nobody saw its end', ended_at = :at
  WHERE job_id = :job AND attempt = :attempt AND kind <> 'agent' AND state IN ('starting', 'running')
  RETURNING id";

/// Ends what is recorded of an attempt's checks whose owner died.
pub fn lose_checks(tx: &Writing<'_>, job: JobId, attempt: u32) -> StoreResult<()> {
    let mut statement = tx.prepare_cached(LOSE_CHECKS)?;
    let ids = statement.query_map(named_params! {":job": job, ":attempt": attempt, ":at": tx.at}, |row| row.get(0))?;
    tell_lost(tx, &ids.collect::<Result<Vec<i64>, _>>()?)
}

fn tell_lost(tx: &Writing<'_>, ids: &[i64]) -> StoreResult<()> {
    ids.iter().try_for_each(|id| tell(tx, *id, EventType::ExecutionEnded, json!({"state": ExecutionState::Lost})))
}

const LOSE_OF_SESSION: &str = "UPDATE execution SET state = 'lost', detail = 'nobody saw its end', ended_at = :at
  WHERE session_id = :session AND state IN ('starting', 'running') RETURNING id";

/// Ends what is recorded of everything that a session ran: the session is over.
pub fn lose_of_session(tx: &Writing<'_>, session: SessionId) -> StoreResult<()> {
    let mut statement = tx.prepare_cached(LOSE_OF_SESSION)?;
    let ids = statement.query_map(named_params! {":session": session, ":at": tx.at}, |row| row.get(0))?;
    tell_lost(tx, &ids.collect::<Result<Vec<i64>, _>>()?)
}

const AGENT: &str = "SELECT * FROM execution WHERE job_id = :job AND attempt = :attempt AND kind = 'agent'";

/// The agent of an attempt.
pub fn agent(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Option<Execution>> {
    Ok(read
        .prepare_cached(AGENT)?
        .query_row(named_params! {":job": job, ":attempt": attempt}, execution_row)
        .optional()?)
}

const OF_ATTEMPT: &str = "SELECT * FROM execution WHERE job_id = :job AND attempt = :attempt
  AND kind IN ('verify', 'setup') ORDER BY id";

/// Verify and setup commands of an attempt.
pub fn checks(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Vec<Execution>> {
    let mut statement = read.prepare_cached(OF_ATTEMPT)?;
    let rows = statement.query_map(named_params! {":job": job, ":attempt": attempt}, execution_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const ALL_OF_ATTEMPT: &str = "SELECT * FROM execution WHERE job_id = :job AND attempt = :attempt ORDER BY id";

/// Every process of an attempt, in the order of their intents.
pub fn of_attempt(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Vec<Execution>> {
    let mut statement = read.prepare_cached(ALL_OF_ATTEMPT)?;
    let rows = statement.query_map(named_params! {":job": job, ":attempt": attempt}, execution_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_COMMANDS: &str = "SELECT count(*) FROM execution
  WHERE job_id = :job AND attempt = :attempt AND kind = 'process'";

/// How many commands an attempt has run by `process run`.
pub fn count_commands(read: &Connection, job: JobId, attempt: u32) -> StoreResult<u32> {
    let given = named_params! {":job": job, ":attempt": attempt};
    Ok(read.prepare_cached(COUNT_COMMANDS)?.query_row(given, |row| row.get(0))?)
}

const IS_COMMAND_OF: &str = "SELECT EXISTS (SELECT 1 FROM execution
  WHERE id = :id AND session_id = :session AND kind = 'process')";

/// Whether a command was run by this session with `process run`.
pub fn is_command_of(read: &Connection, id: i64, session: SessionId) -> StoreResult<bool> {
    let given = named_params! {":id": id, ":session": session};
    Ok(read.prepare_cached(IS_COMMAND_OF)?.query_row(given, |row| row.get(0))?)
}

const LIVE: &str = "SELECT * FROM execution WHERE state IN ('starting', 'running') ORDER BY id";

/// Every process that may exist.
pub fn live(read: &Connection) -> StoreResult<Vec<Execution>> {
    let mut statement = read.prepare_cached(LIVE)?;
    let rows = statement.query_map([], execution_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const BY_PROCESS: &str = "SELECT session_id FROM execution WHERE pid = :pid AND pid_start = :start AND pid_boot = :boot
  LIMIT 1";

/// The session whose execution a process is.
pub fn session_of_process(read: &Connection, process: (i64, i64, &str)) -> StoreResult<Option<SessionId>> {
    Ok(read
        .prepare_cached(BY_PROCESS)?
        .query_row(named_params! {":pid": process.0, ":start": process.1, ":boot": process.2}, |row| row.get(0))
        .optional()?)
}

const BY_PID: &str = "SELECT session_id FROM execution WHERE pid = :pid AND pid_boot = :boot ORDER BY id DESC LIMIT 1";

/// The session whose execution had this number last: of use only where the number can't have been given again.
pub fn session_of_pid(read: &Connection, pid: i64, boot: &str) -> StoreResult<Option<SessionId>> {
    Ok(read
        .prepare_cached(BY_PID)?
        .query_row(named_params! {":pid": pid, ":boot": boot}, |row| row.get(0))
        .optional()?)
}

fn execution_row(row: &Row<'_>) -> rusqlite::Result<Execution> {
    Ok(Execution {
        id: row.get("id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        session: row.get("session_id")?,
        kind: row.get("kind")?,
        class: row.get("class")?,
        state: row.get("state")?,
        process: match row.get::<_, Option<i64>>("pid")? {
            Some(pid) => Some((pid, row.get("pid_start")?, row.get("pid_boot")?)),
            None => None,
        },
        deadline: super::moment(row, "deadline_boot", "deadline_ms")?,
        exit_code: row.get("exit_code")?,
        signal: row.get("signal")?,
        output_bytes: row.get("output_bytes")?,
        detail: row.get("detail")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
    })
}
