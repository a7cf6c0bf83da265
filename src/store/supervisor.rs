//! The `supervisor` table.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{RunId, SessionId};
use crate::domain::session::{StopKind, SupervisorState};
use crate::domain::time::Timestamp;

/// A row of `supervisor`.
#[derive(Clone, Debug)]
pub struct Supervisor {
    /// Store number.
    pub id: i64,
    /// Whom it hosts.
    pub session: SessionId,
    /// Where it is.
    pub state: SupervisorState,
    /// It took over from a dead one.
    pub recovers: bool,
    /// The helper: pid, start, boot.
    pub process: Option<(i64, i64, String)>,
    /// Why it is to end.
    pub stop_reason: Option<String>,
    /// How it is to end.
    pub stop_kind: Option<StopKind>,
    /// When asked for.
    pub requested_at: Timestamp,
    /// When it spoke first.
    pub attached_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why.
    pub end_reason: Option<String>,
}

const INSERT: &str = "INSERT INTO supervisor (session_id, state, recovers, requested_at)
  VALUES (:session, 'starting', :recovers, :at)";

/// Asks for a helper.
pub fn insert(tx: &Writing<'_>, session: SessionId, recovers: bool) -> StoreResult<i64> {
    tx.prepare_cached(INSERT)?.execute(named_params! {":session": session, ":recovers": recovers, ":at": tx.at})?;
    Ok(tx.last_insert_rowid())
}

const ACTIVE: &str = "SELECT * FROM supervisor WHERE session_id = :session AND state IN ('starting', 'attached')";

/// A session's helper that has not ended.
pub fn active(read: &Connection, session: SessionId) -> StoreResult<Option<Supervisor>> {
    Ok(read.prepare_cached(ACTIVE)?.query_row(named_params! {":session": session}, supervisor_row).optional()?)
}

const NEWEST: &str = "SELECT * FROM supervisor WHERE session_id = :session ORDER BY id DESC LIMIT 1";

/// A session's newest helper.
pub fn newest(read: &Connection, session: SessionId) -> StoreResult<Option<Supervisor>> {
    Ok(read.prepare_cached(NEWEST)?.query_row(named_params! {":session": session}, supervisor_row).optional()?)
}

const RECOVERIES: &str = "SELECT count(*) FROM supervisor WHERE session_id = :session AND recovers = 1";

/// How many helpers took over after one that died.
pub fn recoveries(read: &Connection, session: SessionId) -> StoreResult<u32> {
    Ok(read.prepare_cached(RECOVERIES)?.query_row(named_params! {":session": session}, |row| row.get(0))?)
}

const ATTACH: &str = "UPDATE supervisor SET state = 'attached', attached_at = :at, pid = :pid, pid_start = :start,
    pid_boot = :boot WHERE id = :id AND state = 'starting'";

/// The helper speaks; false when it was given up meanwhile.
pub fn attach(tx: &Writing<'_>, id: i64, process: (i64, i64, &str)) -> StoreResult<bool> {
    let changed = tx.prepare_cached(ATTACH)?.execute(named_params! {
        ":id": id, ":at": tx.at, ":pid": process.0, ":start": process.1, ":boot": process.2,
    })?;
    Ok(changed == 1)
}

const END: &str = "UPDATE supervisor SET state = :state, ended_at = :at, end_reason = :reason
  WHERE session_id = :session AND state IN ('starting', 'attached')";

/// Ends a session's helper; false when there was none.
pub fn end(tx: &Writing<'_>, session: SessionId, state: SupervisorState, reason: &str) -> StoreResult<bool> {
    let changed = tx
        .prepare_cached(END)?
        .execute(named_params! {":session": session, ":state": state, ":reason": reason, ":at": tx.at})?;
    Ok(changed == 1)
}

const ASK_STOP: &str = "UPDATE supervisor SET stop_reason = :reason, stop_kind = :kind
  WHERE session_id = :session AND state IN ('starting', 'attached') AND (stop_kind IS NULL OR stop_kind = 'drain')";

/// Tells a helper to end; false when there is none, or it was told already.
pub fn ask_stop(tx: &Writing<'_>, session: SessionId, kind: StopKind, reason: &str) -> StoreResult<bool> {
    let changed =
        tx.prepare_cached(ASK_STOP)?.execute(named_params! {":session": session, ":kind": kind, ":reason": reason})?;
    Ok(changed == 1)
}

/// What a helper must obey, read in one look.
#[derive(Clone, Debug)]
pub struct Orders {
    /// The session is still active.
    pub session_active: bool,
    /// How this helper is to end.
    pub stop_kind: Option<StopKind>,
    /// Why.
    pub stop_reason: Option<String>,
    /// The run is to end.
    pub run_stopped: bool,
    /// The run is in state `running`.
    pub run_running: bool,
}

const ORDERS: &str = "SELECT session.state = 'active' AS session_active, supervisor.stop_kind, supervisor.stop_reason,
    run.stop_requested_at IS NOT NULL AS run_stopped, run.state IN ('running', 'needs_operator') AS run_running
  FROM session JOIN run ON run.id = session.run_id
  LEFT JOIN supervisor ON supervisor.session_id = session.id AND supervisor.state IN ('starting', 'attached')
  WHERE session.id = :session";

/// Reads a helper's orders.
pub fn orders(read: &Connection, session: SessionId) -> StoreResult<Orders> {
    Ok(read.prepare_cached(ORDERS)?.query_row(named_params! {":session": session}, |row| {
        Ok(Orders {
            session_active: row.get("session_active")?,
            stop_kind: row.get("stop_kind")?,
            stop_reason: row.get("stop_reason")?,
            run_stopped: row.get("run_stopped")?,
            run_running: row.get("run_running")?,
        })
    })?)
}

const ACTIVE_OF_RUN: &str =
    "SELECT supervisor.* FROM session INDEXED BY session_active JOIN supervisor ON supervisor.session_id = session.id
    AND supervisor.state IN ('starting', 'attached')
  WHERE session.run_id = :run AND session.state = 'active' ORDER BY supervisor.id";

/// Helpers of a run's active sessions.
pub fn active_of_run(read: &Connection, run: RunId) -> StoreResult<Vec<Supervisor>> {
    let mut statement = read.prepare_cached(ACTIVE_OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run}, supervisor_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn supervisor_row(row: &Row<'_>) -> rusqlite::Result<Supervisor> {
    Ok(Supervisor {
        id: row.get("id")?,
        session: row.get("session_id")?,
        state: row.get("state")?,
        recovers: row.get("recovers")?,
        process: match row.get::<_, Option<i64>>("pid")? {
            Some(pid) => Some((pid, row.get("pid_start")?, row.get("pid_boot")?)),
            None => None,
        },
        stop_reason: row.get("stop_reason")?,
        stop_kind: row.get("stop_kind")?,
        requested_at: row.get("requested_at")?,
        attached_at: row.get("attached_at")?,
        ended_at: row.get("ended_at")?,
        end_reason: row.get("end_reason")?,
    })
}
