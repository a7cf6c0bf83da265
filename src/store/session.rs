//! The `session` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{JobId, RunId, SessionId};
use crate::domain::session::SessionState;
use crate::domain::time::{Moment, Timestamp};

/// A row of `session`.
#[derive(Clone, Debug)]
pub struct Session {
    /// Shown as s12.
    pub id: SessionId,
    /// Whose.
    pub run: RunId,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// Where it is.
    pub state: SessionState,
    /// Does one job only.
    pub fresh: bool,
    /// A driver launched or adopted it.
    pub driven: bool,
    /// A helper hosts or hosted it.
    pub supervised: bool,
    /// Acts through mediated verbs, whatever its run says.
    pub constrained: bool,
    /// Packets held so far.
    pub packets: u32,
    /// The newest job it held.
    pub last_job: Option<JobId>,
    /// What it was launched for.
    pub offered: Option<(JobId, u32)>,
    /// Unsupervised only.
    pub deadline: Option<Moment>,
    /// Hash of its token.
    pub token_hash: String,
    /// Why a contaminated reviewer was accepted.
    pub non_fresh_reason: Option<String>,
    /// The claiming process of an unsupervised session: pid, start, boot.
    pub process: Option<(i64, i64, String)>,
    /// Principal.
    pub registered_by: String,
    /// When registered.
    pub created_at: Timestamp,
    /// Its last verb.
    pub active_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why.
    pub end_reason: Option<String>,
}

/// What a new session is made of.
pub struct NewSession<'a> {
    /// Whose.
    pub run: RunId,
    /// Kind of worker.
    pub role: &'a str,
    /// Way to execute.
    pub lane: &'a str,
    /// Does one job only.
    pub fresh: bool,
    /// A driver launches it.
    pub driven: bool,
    /// Acts through mediated verbs, whatever its run says.
    pub constrained: bool,
    /// What it is launched for.
    pub offered: Option<(JobId, u32)>,
    /// When it expires without a verb.
    pub deadline: &'a Moment,
    /// Hash of its token.
    pub token_hash: &'a str,
    /// Why a contaminated reviewer is accepted.
    pub non_fresh_reason: Option<&'a str>,
}

const INSERT: &str = "INSERT INTO session (run_id, role, lane, state, fresh, driven, supervised, constrained, packets,
    offered_job, offered_attempt, deadline_boot, deadline_ms, token_hash, non_fresh_reason, registered_by, created_at, active_at)
  VALUES (:run, :role, :lane, 'active', :fresh, :driven, 0, :constrained, 0, :job, :attempt, :boot, :ms, :token,
    :reason, :by, :at, :at)";

/// Adds an active session.
pub fn insert(tx: &Writing<'_>, new: &NewSession<'_>) -> StoreResult<SessionId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":role": new.role, ":lane": new.lane, ":fresh": new.fresh, ":driven": new.driven,
        ":constrained": new.constrained,
        ":job": new.offered.map(|offer| offer.0), ":attempt": new.offered.map(|offer| offer.1),
        ":boot": new.deadline.boot, ":ms": new.deadline.ms, ":token": new.token_hash,
        ":reason": new.non_fresh_reason, ":by": tx.principal, ":at": tx.at,
    })?;
    Ok(SessionId(tx.last_insert_rowid()))
}

const GET: &str = "SELECT * FROM session WHERE id = :id";

/// A session, if it exists.
pub fn get(read: &Connection, id: SessionId) -> StoreResult<Option<Session>> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":id": id}, session_row).optional()?)
}

const ACTIVE: &str = "SELECT * FROM session INDEXED BY session_active
  WHERE run_id = :run AND state = 'active' ORDER BY id";

/// Active sessions of a run.
pub fn active(read: &Connection, run: RunId) -> StoreResult<Vec<Session>> {
    let mut statement = read.prepare_cached(ACTIVE)?;
    let rows = statement.query_map(named_params! {":run": run}, session_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_RUN: &str = "SELECT * FROM session WHERE run_id = :run ORDER BY id DESC LIMIT :limit";

/// The newest sessions of a run, newest first.
pub fn of_run(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Session>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, session_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_OF_RUN: &str = "SELECT count(*) FROM session WHERE run_id = :run";

/// How many sessions a run has had.
pub fn count_of_run(read: &Connection, run: RunId) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_OF_RUN)?.query_row(named_params! {":run": run}, |row| row.get(0))?)
}

const ACTIVE_IN_SLOT: &str = "SELECT count(*) FROM session AS s
  WHERE s.run_id = :run AND s.role = :role AND s.lane = :lane AND s.state = 'active'
    AND NOT (s.fresh = 1 AND s.packets > 0 AND NOT EXISTS (
      SELECT 1 FROM message AS held WHERE held.session_id = s.id AND held.state IN ('claimed', 'acked')))";

/// How many active sessions a slot has; one whose one job is done covers nothing any more.
pub fn active_in_slot(read: &Connection, run: RunId, role: &str, lane: &str) -> StoreResult<u32> {
    Ok(read
        .prepare_cached(ACTIVE_IN_SLOT)?
        .query_row(named_params! {":run": run, ":role": role, ":lane": lane}, |row| row.get(0))?)
}

/// As much of a session as says how its launch went.
pub struct Launched {
    /// The session.
    pub id: SessionId,
    /// Whether it lives.
    pub state: SessionState,
    /// Jobs that it was given.
    pub packets: u32,
    /// Why it ended.
    pub end_reason: Option<String>,
}

const OFFERED: &str = "SELECT id, state, packets, end_reason FROM session
  WHERE offered_job = :job AND offered_attempt = :attempt ORDER BY id DESC LIMIT 1";

/// The newest session that was launched for an attempt.
pub fn offered(read: &Connection, job: JobId, attempt: u32) -> StoreResult<Option<Launched>> {
    let launched = |row: &Row<'_>| {
        Ok(Launched { id: row.get(0)?, state: row.get(1)?, packets: row.get(2)?, end_reason: row.get(3)? })
    };
    Ok(read
        .prepare_cached(OFFERED)?
        .query_row(named_params! {":job": job, ":attempt": attempt}, launched)
        .optional()?)
}

const END: &str = "UPDATE session SET state = :state, ended_at = :at, end_reason = :reason
  WHERE id = :id AND state = 'active'";

/// Ends an active session; false when it had ended.
pub fn end(tx: &Writing<'_>, id: SessionId, state: SessionState, reason: &str) -> StoreResult<bool> {
    let changed =
        tx.prepare_cached(END)?.execute(named_params! {":id": id, ":state": state, ":reason": reason, ":at": tx.at})?;
    Ok(changed == 1)
}

const TOUCH: &str = "UPDATE session SET active_at = :at,
    deadline_boot = CASE WHEN supervised = 0 THEN :boot END, deadline_ms = CASE WHEN supervised = 0 THEN :ms END
  WHERE id = :id AND state = 'active'";

/// Notes a verb of the session; an unsupervised one gets a new deadline.
pub fn touch(tx: &Writing<'_>, id: SessionId, deadline: &Moment) -> StoreResult<()> {
    tx.prepare_cached(TOUCH)?
        .execute(named_params! {":id": id, ":at": tx.at, ":boot": deadline.boot, ":ms": deadline.ms})?;
    Ok(())
}

const HOLD: &str = "UPDATE session SET packets = packets + 1, last_job = :job WHERE id = :id";

/// Notes one more packet.
pub fn hold(tx: &Writing<'_>, id: SessionId, job: JobId) -> StoreResult<()> {
    tx.prepare_cached(HOLD)?.execute(named_params! {":id": id, ":job": job})?;
    Ok(())
}

const SUPERVISE: &str = "UPDATE session SET supervised = 1, deadline_boot = NULL, deadline_ms = NULL WHERE id = :id";

/// A helper hosts it from now on: a held lock protects it, no deadline.
pub fn supervise(tx: &Writing<'_>, id: SessionId) -> StoreResult<()> {
    tx.prepare_cached(SUPERVISE)?.execute(named_params! {":id": id})?;
    Ok(())
}

const SET_TOKEN: &str = "UPDATE session SET token_hash = :hash WHERE id = :id";

/// It has another token from now on.
pub fn set_token(tx: &Writing<'_>, id: SessionId, hash: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_TOKEN)?.execute(named_params! {":id": id, ":hash": hash})?;
    Ok(())
}

const ADOPT: &str = "UPDATE session SET driven = 1 WHERE id = :id AND driven = 0";

/// A driver may close it from now on.
pub fn adopt(tx: &Writing<'_>, id: SessionId) -> StoreResult<()> {
    tx.prepare_cached(ADOPT)?.execute(named_params! {":id": id})?;
    Ok(())
}

const SET_PROCESS: &str = "UPDATE session SET pid = :pid, pid_start = :start, pid_boot = :boot WHERE id = :id";

/// Keeps the claiming process of an unsupervised session.
pub fn set_process(tx: &Writing<'_>, id: SessionId, pid: i64, start: i64, boot: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_PROCESS)?.execute(named_params! {":id": id, ":pid": pid, ":start": start, ":boot": boot})?;
    Ok(())
}

/// A session of an author role, as the freshness rule sees it.
#[derive(Clone, Copy, Debug)]
pub struct AuthorRow {
    /// The session.
    pub id: SessionId,
    /// (a) It holds a `work` message in `claimed` or `acked`.
    pub holds_work: bool,
    /// (b) Its role still has a pending `work` message.
    pub role_has_pending: bool,
}

const AUTHORS: &str = "SELECT s.id,
    EXISTS (SELECT 1 FROM message AS held WHERE held.session_id = s.id AND held.state IN ('claimed', 'acked')
      AND held.kind = 'work' AND held.run_id = s.run_id) AS holds_work,
    EXISTS (SELECT 1 FROM message AS open WHERE open.run_id = s.run_id AND open.role = s.role
      AND open.state = 'pending' AND open.kind = 'work') AS role_has_pending
  FROM session AS s INDEXED BY session_active WHERE s.run_id = :run AND s.role = :role AND s.state = 'active' ORDER BY s.id";

/// Active sessions of one author role (RFC 0116, verb 3).
pub fn authors(read: &Connection, run: RunId, role: &str) -> StoreResult<Vec<AuthorRow>> {
    let mut statement = read.prepare_cached(AUTHORS)?;
    let rows = statement.query_map(named_params! {":run": run, ":role": role}, |row| {
        Ok(AuthorRow {
            id: row.get("id")?,
            holds_work: row.get("holds_work")?,
            role_has_pending: row.get("role_has_pending")?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn session_row(row: &Row<'_>) -> rusqlite::Result<Session> {
    let offered_job: Option<JobId> = row.get("offered_job")?;
    let offered_attempt: Option<u32> = row.get("offered_attempt")?;
    Ok(Session {
        id: row.get("id")?,
        run: row.get("run_id")?,
        role: row.get("role")?,
        lane: row.get("lane")?,
        state: row.get("state")?,
        fresh: row.get("fresh")?,
        driven: row.get("driven")?,
        supervised: row.get("supervised")?,
        constrained: row.get("constrained")?,
        packets: row.get("packets")?,
        last_job: row.get("last_job")?,
        offered: offered_job.zip(offered_attempt),
        deadline: super::moment(row, "deadline_boot", "deadline_ms")?,
        token_hash: row.get("token_hash")?,
        non_fresh_reason: row.get("non_fresh_reason")?,
        process: match row.get::<_, Option<i64>>("pid")? {
            Some(pid) => Some((pid, row.get("pid_start")?, row.get("pid_boot")?)),
            None => None,
        },
        registered_by: row.get("registered_by")?,
        created_at: row.get("created_at")?,
        active_at: row.get("active_at")?,
        ended_at: row.get("ended_at")?,
        end_reason: row.get("end_reason")?,
    })
}
