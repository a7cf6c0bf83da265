//! What must hold between rows whatever happened, each as a statement that finds where it does not.
//!
//! Every commit keeps these; a hand that edits the file, a damaged page or a fault of this program may not. It does not
//! know what is done about it.

use rusqlite::{Connection, named_params};

use super::StoreResult;

/// Something that must hold.
pub struct Invariant {
    /// A stable word.
    pub code: &'static str,
    /// What holds, in words.
    pub what: &'static str,
    /// Finds where it does not: columns `run`, `subject` and `found`.
    pub(super) sql: &'static str,
}

/// A place where something does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// In which run.
    pub run: Option<String>,
    /// A job's name or a session's id.
    pub subject: String,
    /// What was found there.
    pub found: String,
}

/// Everything that must hold.
pub const ALL: &[Invariant] = &[
    Invariant { code: "lease_missing", what: "a held job has an active lease", sql: LEASE_MISSING },
    Invariant {
        code: "lease_stray",
        what: "an active lease is on a held job, its newest attempt and its fence",
        sql: LEASE_STRAY,
    },
    Invariant { code: "holder_over", what: "who holds a lease is active", sql: HOLDER_OVER },
    Invariant { code: "message_stray", what: "a taken message has its lease", sql: MESSAGE_STRAY },
    Invariant { code: "message_missing", what: "a lease has its message", sql: MESSAGE_MISSING },
    Invariant { code: "offer_missing", what: "a queued job has an offer", sql: OFFER_MISSING },
    Invariant { code: "offer_stray", what: "an offer is of a queued job's newest attempt", sql: OFFER_STRAY },
    Invariant {
        code: "attempt_open",
        what: "only the newest attempt of a job in the queue or at work is open",
        sql: ATTEMPT_OPEN,
    },
    Invariant {
        code: "attempt_closed",
        what: "a job in the queue or at work has an open attempt",
        sql: ATTEMPT_CLOSED,
    },
    Invariant { code: "attempt_number", what: "a job knows its newest attempt", sql: ATTEMPT_NUMBER },
    Invariant { code: "unmet_wrong", what: "a job knows how many needs are not settled", sql: UNMET_WRONG },
    Invariant { code: "settled_wrong", what: "what is settled fits the state", sql: SETTLED_WRONG },
    Invariant { code: "phase_stray", what: "only a running job has a phase", sql: PHASE_STRAY },
    Invariant { code: "gate_stray", what: "an open gate keeps a waiting job of a live run", sql: GATE_STRAY },
    Invariant { code: "run_open", what: "every job of a completed run is settled", sql: RUN_OPEN },
    Invariant { code: "run_unlike", what: "a run is as its workflow's newest snapshot says", sql: RUN_UNLIKE },
    Invariant { code: "supervisor_over", what: "only an active session has a helper", sql: SUPERVISOR_OVER },
    Invariant { code: "execution_over", what: "only an active session has a process", sql: EXECUTION_OVER },
];

const LEASE_MISSING: &str = "SELECT run.name AS run, job.name AS subject, job.state || ' without a lease' AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE job.state IN ('claimed', 'running')
    AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.job_id = job.id AND lease.state = 'active') LIMIT :limit";

const LEASE_STRAY: &str = "SELECT run.name AS run, job.name AS subject,
    'l' || lease.id || ' (attempt ' || lease.attempt || ', fence ' || lease.fence || ') on a job that is ' || job.state
      || ' (attempt ' || job.attempt || ', fence ' || job.fence || ')' AS found
  FROM lease JOIN job ON job.id = lease.job_id JOIN run ON run.id = lease.run_id
  WHERE lease.state = 'active' AND (job.state NOT IN ('claimed', 'running', 'stale') OR lease.attempt <> job.attempt
    OR lease.fence <> job.fence) LIMIT :limit";

const HOLDER_OVER: &str = "SELECT run.name AS run, job.name AS subject,
    'l' || lease.id || ' of s' || session.id || ', which is ' || session.state AS found
  FROM lease JOIN job ON job.id = lease.job_id JOIN run ON run.id = lease.run_id
    JOIN session ON session.id = lease.session_id
  WHERE lease.state = 'active' AND session.state <> 'active' LIMIT :limit";

const MESSAGE_STRAY: &str = "SELECT run.name AS run, job.name AS subject,
    'm' || message.id || ' is ' || message.state || ' by s' || coalesce(message.session_id, '?') || ' without a lease' AS found
  FROM message JOIN job ON job.id = message.job_id JOIN run ON run.id = message.run_id
  WHERE message.state IN ('claimed', 'acked') AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.job_id = message.job_id
    AND lease.state = 'active' AND lease.session_id = message.session_id AND lease.attempt = message.attempt) LIMIT :limit";

const MESSAGE_MISSING: &str =
    "SELECT run.name AS run, job.name AS subject, 'l' || lease.id || ' without a message' AS found
  FROM lease JOIN job ON job.id = lease.job_id JOIN run ON run.id = lease.run_id
  WHERE lease.state = 'active' AND job.state IN ('claimed', 'running') AND NOT EXISTS (SELECT 1 FROM message
    WHERE message.job_id = lease.job_id AND message.state IN ('claimed', 'acked')
      AND message.session_id = lease.session_id AND message.attempt = lease.attempt) LIMIT :limit";

const OFFER_MISSING: &str =
    "SELECT run.name AS run, job.name AS subject, 'attempt ' || job.attempt || ' is not offered' AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE job.state = 'queued' AND NOT EXISTS (SELECT 1 FROM message WHERE message.job_id = job.id
    AND message.state = 'pending' AND message.attempt = job.attempt) LIMIT :limit";

const OFFER_STRAY: &str = "SELECT run.name AS run, job.name AS subject,
    'm' || message.id || ' offers attempt ' || message.attempt || ' of a job that is ' || job.state AS found
  FROM message JOIN job ON job.id = message.job_id JOIN run ON run.id = message.run_id
  WHERE message.state = 'pending' AND (job.state <> 'queued' OR message.attempt <> job.attempt) LIMIT :limit";

const ATTEMPT_OPEN: &str = "SELECT run.name AS run, job.name AS subject,
    'attempt ' || attempt.number || ' is open, the job is ' || job.state AS found
  FROM attempt JOIN job ON job.id = attempt.job_id JOIN run ON run.id = job.run_id
  WHERE attempt.outcome IS NULL AND (job.state NOT IN ('queued', 'claimed', 'running', 'stale')
    OR attempt.number <> job.attempt) LIMIT :limit";

const ATTEMPT_CLOSED: &str = "SELECT run.name AS run, job.name AS subject,
    job.state || ', and attempt ' || attempt.number || ' ended ' || attempt.outcome AS found
  FROM job JOIN attempt ON attempt.job_id = job.id AND attempt.number = job.attempt JOIN run ON run.id = job.run_id
  WHERE job.state IN ('queued', 'claimed', 'running') AND attempt.outcome IS NOT NULL LIMIT :limit";

const ATTEMPT_NUMBER: &str = "SELECT run.name AS run, job.name AS subject,
    'says ' || job.attempt || ', and the newest is '
      || (SELECT coalesce(max(number), 0) FROM attempt WHERE attempt.job_id = job.id) AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE job.attempt <> (SELECT coalesce(max(number), 0) FROM attempt WHERE attempt.job_id = job.id) LIMIT :limit";

const UNMET_WRONG: &str = "SELECT run.name AS run, job.name AS subject, 'says ' || job.unmet || ', counted '
      || (SELECT count(*) FROM need JOIN job AS needed ON needed.id = need.needs_id
          WHERE need.job_id = job.id AND needed.settled = 0) AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE job.unmet <> (SELECT count(*) FROM need JOIN job AS needed ON needed.id = need.needs_id
    WHERE need.job_id = job.id AND needed.settled = 0) LIMIT :limit";

const SETTLED_WRONG: &str = "SELECT run.name AS run, job.name AS subject,
    job.state || ' and ' || CASE job.settled WHEN 1 THEN 'settled' ELSE 'not settled' END AS found
  FROM job JOIN run ON run.id = job.run_id
  WHERE (job.settled = 1 AND job.state IN ('waiting', 'queued', 'claimed', 'running', 'waiting_human', 'stale'))
    OR (job.settled = 0 AND (job.state = 'skipped' OR (job.state = 'completed' AND job.type <> 'review'))) LIMIT :limit";

const PHASE_STRAY: &str = "SELECT run.name AS run, job.name AS subject, job.state || ' and ' || job.phase AS found
  FROM job JOIN run ON run.id = job.run_id WHERE job.phase IS NOT NULL AND job.state <> 'running' LIMIT :limit";

const GATE_STRAY: &str = "SELECT run.name AS run, job.name AS subject,
    'g' || gate.id || ' is open; the job is ' || job.state || ', the run ' || run.state AS found
  FROM gate JOIN job ON job.id = gate.job_id JOIN run ON run.id = gate.run_id
  WHERE gate.state = 'pending' AND (job.state <> 'waiting' OR run.state NOT IN ('ready', 'running', 'needs_operator'))
  LIMIT :limit";

const RUN_OPEN: &str = "SELECT run.name AS run, job.name AS subject, job.state || ' in a completed run' AS found
  FROM run JOIN job ON job.run_id = run.id AND job.settled = 0 WHERE run.state = 'completed' LIMIT :limit";

const RUN_UNLIKE: &str =
    "SELECT run.name AS run, run.name AS subject, 'generation ' || run.generation || ', and the newest is '
      || (SELECT coalesce(max(generation), 0) FROM snapshot WHERE snapshot.run_id = run.id) AS found
  FROM run WHERE run.generation <> (SELECT coalesce(max(generation), 0) FROM snapshot WHERE snapshot.run_id = run.id)
  LIMIT :limit";

const SUPERVISOR_OVER: &str = "SELECT run.name AS run, 's' || session.id AS subject,
    'its helper is ' || supervisor.state || ', the session ' || session.state AS found
  FROM supervisor JOIN session ON session.id = supervisor.session_id JOIN run ON run.id = session.run_id
  WHERE supervisor.state IN ('starting', 'attached') AND session.state <> 'active' LIMIT :limit";

const EXECUTION_OVER: &str = "SELECT run.name AS run, job.name AS subject,
    execution.kind || ' of s' || session.id || ' is ' || execution.state || ', the session ' || session.state AS found
  FROM execution JOIN session ON session.id = execution.session_id JOIN job ON job.id = execution.job_id
    JOIN run ON run.id = job.run_id
  WHERE execution.state IN ('starting', 'running') AND session.state <> 'active' LIMIT :limit";

/// The first places where something does not hold.
pub fn broken(read: &Connection, invariant: &Invariant, limit: u32) -> StoreResult<Vec<Broken>> {
    let mut statement = read.prepare(invariant.sql)?;
    let rows = statement.query_map(named_params! {":limit": limit}, |row| {
        Ok(Broken { run: row.get("run")?, subject: row.get("subject")?, found: row.get("found")? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const INTEGRITY: &str = "PRAGMA integrity_check(50)";

/// The first things that SQLite's own check of the whole file finds; nothing when it is sound.
pub fn integrity(read: &Connection) -> StoreResult<Vec<String>> {
    let mut statement = read.prepare(INTEGRITY)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    let lines: Vec<String> = rows.collect::<Result<_, _>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

const FOREIGN_KEYS: &str = "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check LIMIT :limit";

/// Rows that point to rows that are not there.
pub fn foreign_keys(read: &Connection, limit: u32) -> StoreResult<Vec<String>> {
    let mut statement = read.prepare(FOREIGN_KEYS)?;
    let rows = statement.query_map(named_params! {":limit": limit}, |row| {
        let (table, id, parent): (String, Option<i64>, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let id = id.map_or_else(|| "?".to_owned(), |id| id.to_string());
        Ok(format!("row {id} of {table} points to no row of {parent}"))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// How the file keeps its log: `wal`, unless somebody changed it.
pub fn journal_mode(read: &Connection) -> StoreResult<String> {
    Ok(read.query_row("PRAGMA journal_mode", [], |row| row.get(0))?)
}

const HOSTED: &str = "SELECT session.id, run.name, run.state, supervisor.state
  FROM supervisor JOIN session ON session.id = supervisor.session_id JOIN run ON run.id = session.run_id
  WHERE supervisor.state IN ('starting', 'attached') ORDER BY supervisor.id LIMIT :limit";

/// A session that says it has a helper.
#[derive(Clone, Debug)]
pub struct Hosted {
    /// The session.
    pub session: crate::domain::id::SessionId,
    /// Its run.
    pub run: String,
    /// Where that is.
    pub run_state: crate::domain::run::RunState,
    /// Where the helper is.
    pub state: crate::domain::session::SupervisorState,
}

/// Every session that says it has a helper.
pub fn hosted(read: &Connection, limit: u32) -> StoreResult<Vec<Hosted>> {
    let mut statement = read.prepare(HOSTED)?;
    let rows = statement.query_map(named_params! {":limit": limit}, |row| {
        Ok(Hosted { session: row.get(0)?, run: row.get(1)?, run_state: row.get(2)?, state: row.get(3)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const IDLE: &str = "SELECT session.id, run.name, run.state FROM session JOIN run ON run.id = session.run_id
  WHERE session.state = 'active' AND run.state IN ('completed', 'failed', 'canceled')
    AND NOT EXISTS (SELECT 1 FROM supervisor WHERE supervisor.session_id = session.id
      AND supervisor.state IN ('starting', 'attached')) LIMIT :limit";

/// Active sessions of ended runs that nothing hosts.
pub fn idle_in_ended_runs(read: &Connection, limit: u32) -> StoreResult<Vec<Broken>> {
    let mut statement = read.prepare(IDLE)?;
    let rows = statement.query_map(named_params! {":limit": limit}, |row| {
        let (session, run, state): (crate::domain::id::SessionId, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Broken { found: format!("active, and the run is {state}"), run: Some(run), subject: session.to_string() })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
