//! The `run` table.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::breaker::Spending;
use crate::domain::contract::Usage;
use crate::domain::frozen::RunSpec;
use crate::domain::id::RunId;
use crate::domain::job::Cause;
use crate::domain::run::RunState;
use crate::domain::time::Timestamp;

/// A row of `run`.
#[derive(Clone, Debug)]
pub struct Run {
    /// Store number.
    pub id: RunId,
    /// `<workflow>-<number>`.
    pub name: String,
    /// The workflow's id.
    pub workflow: String,
    /// The snapshot in force.
    pub generation: i64,
    /// The run-level part of it.
    pub spec: RunSpec,
    /// Hash over the commands that may run.
    pub trust: Option<String>,
    /// Where it is.
    pub state: RunState,
    /// Code of needs_operator or failed.
    pub cause: Option<Cause>,
    /// What the cause is about.
    pub subject: Option<String>,
    /// One line.
    pub reason: Option<String>,
    /// No launches while set.
    pub paused_at: Option<Timestamp>,
    /// Everything ends while set.
    pub stop_requested_at: Option<Timestamp>,
    /// Agents started.
    pub launches: u32,
    /// Reported cost.
    pub cost_micro_usd: i64,
    /// Tokens that agents reported to have read.
    pub input_tokens: i64,
    /// And written.
    pub output_tokens: i64,
    /// Charged working time, in milliseconds.
    pub active_ms: i64,
    /// Breakers that were told to have tripped, each with when.
    pub tripped: BTreeMap<Cause, Timestamp>,
    /// The commit it starts from.
    pub base: Option<String>,
    /// Where its branch was left; none before the first change.
    pub tip: Option<String>,
    /// Principal.
    pub created_by: String,
    /// When prepared.
    pub created_at: Timestamp,
    /// When started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

impl Run {
    /// What it has used up of its budget.
    pub fn spending(&self) -> Spending {
        let positive = |number: i64| u64::try_from(number).unwrap_or(0);
        Spending { cost_micro_usd: positive(self.cost_micro_usd), active_ms: positive(self.active_ms) }
    }
}

/// What a new run is made of.
pub struct NewRun<'a> {
    /// The workflow's id.
    pub workflow: &'a str,
    /// The run-level part of the snapshot.
    pub spec: &'a RunSpec,
    /// Hash over the commands that may run.
    pub trust: Option<&'a str>,
    /// The commit it starts from.
    pub base: Option<&'a str>,
    /// Numbers up to this one are taken by what an earlier store left in the repository.
    pub taken: i64,
}

const NEXT_NUMBER: &str = "SELECT max(coalesce(max(number), 0), :taken) + 1 FROM run WHERE workflow = :workflow";

const INSERT: &str =
    "INSERT INTO run (name, workflow, number, generation, spec, trust, state, launches, cost_micro_usd,
    input_tokens, output_tokens, active_ms, tripped, told, base, created_by, created_at)
  VALUES (:name, :workflow, :number, 1, :spec, :trust, 'ready', 0, 0, 0, 0, 0, '{}', 0, :base, :by, :at)";

/// Adds a run in state `ready`; returns its id and name.
pub fn insert(tx: &Writing<'_>, new: &NewRun<'_>) -> StoreResult<(RunId, String)> {
    let number: i64 = tx
        .prepare_cached(NEXT_NUMBER)?
        .query_row(named_params! {":workflow": new.workflow, ":taken": new.taken}, |row| row.get(0))?;
    let name = format!("{}-{number}", new.workflow);
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":name": name, ":workflow": new.workflow, ":number": number, ":spec": Json(new.spec), ":trust": new.trust,
        ":base": new.base, ":by": tx.principal, ":at": tx.at,
    })?;
    Ok((RunId(tx.last_insert_rowid()), name))
}

const BY_ID: &str = "SELECT * FROM run WHERE id = :id";

/// A run that must exist.
pub fn get(read: &Connection, id: RunId) -> StoreResult<Run> {
    Ok(read.prepare_cached(BY_ID)?.query_row(named_params! {":id": id}, run_row)?)
}

const BY_NAME: &str = "SELECT * FROM run WHERE name = :name";

/// A run by its name.
pub fn by_name(read: &Connection, name: &str) -> StoreResult<Option<Run>> {
    Ok(read.prepare_cached(BY_NAME)?.query_row(named_params! {":name": name}, run_row).optional()?)
}

const LIVE: &str = "SELECT * FROM run WHERE state IN ('ready', 'running', 'needs_operator') ORDER BY id LIMIT :limit";

/// Runs that are neither completed, failed nor canceled, oldest first.
pub fn live(read: &Connection, limit: u32) -> StoreResult<Vec<Run>> {
    let mut statement = read.prepare_cached(LIVE)?;
    let rows = statement.query_map(named_params! {":limit": limit}, run_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const NEWEST: &str = "SELECT * FROM run ORDER BY id DESC LIMIT :limit";

/// The newest runs, newest first.
pub fn newest(read: &Connection, limit: u32) -> StoreResult<Vec<Run>> {
    let mut statement = read.prepare_cached(NEWEST)?;
    let rows = statement.query_map(named_params! {":limit": limit}, run_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const ENDED_BEFORE: &str = "SELECT * FROM run WHERE state IN ('completed', 'failed', 'canceled') AND ended_at < :at
  ORDER BY id";

/// Runs that ended before a moment, oldest first.
pub fn ended_before(read: &Connection, at: Timestamp) -> StoreResult<Vec<Run>> {
    let mut statement = read.prepare_cached(ENDED_BEFORE)?;
    let rows = statement.query_map(named_params! {":at": at}, run_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT: &str = "SELECT count(*) FROM run";

/// How many runs there are.
pub fn count(read: &Connection) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT)?.query_row([], |row| row.get(0))?)
}

/// What a state change writes.
pub struct StateChange<'a> {
    /// The new state.
    pub state: RunState,
    /// Its cause.
    pub cause: Option<Cause>,
    /// What the cause is about.
    pub subject: Option<&'a str>,
    /// One line.
    pub reason: Option<&'a str>,
}

const SET_STATE: &str = "UPDATE run SET state = :state, cause = :cause, subject = :subject, reason = :reason,
    started_at = CASE WHEN :state = 'running' AND started_at IS NULL THEN :at ELSE started_at END,
    ended_at = CASE WHEN :state IN ('completed', 'failed', 'canceled') THEN :at ELSE NULL END
  WHERE id = :id";

/// Moves a run; the caller has asked the machine.
pub fn set_state(tx: &Writing<'_>, id: RunId, change: &StateChange<'_>) -> StoreResult<()> {
    tx.prepare_cached(SET_STATE)?.execute(named_params! {
        ":id": id, ":state": change.state, ":cause": change.cause, ":subject": change.subject,
        ":reason": change.reason, ":at": tx.at,
    })?;
    Ok(())
}

const SET_PAUSED: &str = "UPDATE run SET paused_at = :at WHERE id = :id";

/// Sets or clears the pause.
pub fn set_paused(tx: &Writing<'_>, id: RunId, at: Option<Timestamp>) -> StoreResult<()> {
    tx.prepare_cached(SET_PAUSED)?.execute(named_params! {":id": id, ":at": at})?;
    Ok(())
}

const SET_STOP: &str = "UPDATE run SET stop_requested_at = :at WHERE id = :id";

/// Sets or clears the stop.
pub fn set_stop(tx: &Writing<'_>, id: RunId, at: Option<Timestamp>) -> StoreResult<()> {
    tx.prepare_cached(SET_STOP)?.execute(named_params! {":id": id, ":at": at})?;
    Ok(())
}

const ADD_LAUNCH: &str = "UPDATE run SET launches = launches + 1 WHERE id = :id";

/// Counts one more agent launch.
pub fn add_launch(tx: &Writing<'_>, id: RunId) -> StoreResult<()> {
    tx.prepare_cached(ADD_LAUNCH)?.execute(named_params! {":id": id})?;
    Ok(())
}

const ADD_USAGE: &str = "UPDATE run SET cost_micro_usd = cost_micro_usd + :cost, input_tokens = input_tokens + :input,
    output_tokens = output_tokens + :output WHERE id = :id";

/// Adds what an agent reported to have spent.
pub fn add_usage(tx: &Writing<'_>, id: RunId, usage: &Usage) -> StoreResult<()> {
    let count = |tokens: Option<u64>| tokens.map_or(0, |tokens| i64::from(u32::try_from(tokens).unwrap_or(u32::MAX)));
    tx.prepare_cached(ADD_USAGE)?.execute(named_params! {
        ":id": id, ":cost": usage.micro_usd(), ":input": count(usage.input_tokens),
        ":output": count(usage.output_tokens),
    })?;
    Ok(())
}

const ADD_ACTIVE: &str = "UPDATE run SET active_ms = active_ms + :ms WHERE id = :id";

/// Charges working time, in milliseconds.
pub fn add_active(tx: &Writing<'_>, id: RunId, ms: u64) -> StoreResult<()> {
    tx.prepare_cached(ADD_ACTIVE)?.execute(named_params! {":id": id, ":ms": i64::try_from(ms).unwrap_or(i64::MAX)})?;
    Ok(())
}

const SET_TRIPPED: &str = "UPDATE run SET tripped = :tripped WHERE id = :id";

/// Notes which breakers were told to have tripped.
pub fn set_tripped(tx: &Writing<'_>, id: RunId, tripped: &BTreeMap<Cause, Timestamp>) -> StoreResult<()> {
    tx.prepare_cached(SET_TRIPPED)?.execute(named_params! {":id": id, ":tripped": Json(tripped)})?;
    Ok(())
}

const SET_TIP: &str = "UPDATE run SET tip = :tip WHERE id = :id";

/// Notes where the run's branch was left.
pub fn set_tip(tx: &Writing<'_>, id: RunId, tip: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_TIP)?.execute(named_params! {":id": id, ":tip": tip})?;
    Ok(())
}

const SET_TRUST: &str = "UPDATE run SET trust = :trust WHERE id = :id";

/// Notes the hash over the commands that may run.
pub fn set_trust(tx: &Writing<'_>, id: RunId, trust: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_TRUST)?.execute(named_params! {":id": id, ":trust": trust})?;
    Ok(())
}

const AMEND: &str = "UPDATE run SET generation = :generation, spec = :spec, trust = :trust WHERE id = :id";

/// Puts a new snapshot generation in force.
pub fn amend(tx: &Writing<'_>, id: RunId, generation: i64, spec: &RunSpec, trust: Option<&str>) -> StoreResult<()> {
    tx.prepare_cached(AMEND)?
        .execute(named_params! {":id": id, ":generation": generation, ":spec": Json(spec), ":trust": trust})?;
    Ok(())
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<Run> {
    Ok(Run {
        id: row.get("id")?,
        name: row.get("name")?,
        workflow: row.get("workflow")?,
        generation: row.get("generation")?,
        spec: row.get::<_, Json<RunSpec>>("spec")?.0,
        trust: row.get("trust")?,
        state: row.get("state")?,
        cause: row.get("cause")?,
        subject: row.get("subject")?,
        reason: row.get("reason")?,
        paused_at: row.get("paused_at")?,
        stop_requested_at: row.get("stop_requested_at")?,
        launches: row.get("launches")?,
        cost_micro_usd: row.get("cost_micro_usd")?,
        input_tokens: row.get("input_tokens")?,
        output_tokens: row.get("output_tokens")?,
        active_ms: row.get("active_ms")?,
        tripped: row.get::<_, Json<BTreeMap<Cause, Timestamp>>>("tripped")?.0,
        base: row.get("base")?,
        tip: row.get("tip")?,
        created_by: row.get("created_by")?,
        created_at: row.get("created_at")?,
        started_at: row.get("started_at")?,
        ended_at: row.get("ended_at")?,
    })
}

const TOLD: &str = "SELECT told FROM run WHERE id = :id";

/// The last event of a run that a person was told of, if it was worth telling.
pub fn told(read: &Connection, id: RunId) -> StoreResult<i64> {
    Ok(read.prepare_cached(TOLD)?.query_row(named_params! {":id": id}, |row| row.get(0))?)
}

const SET_TOLD: &str = "UPDATE run SET told = :event WHERE id = :id";

/// Moves that mark.
pub fn set_told(tx: &Writing<'_>, id: RunId, event: i64) -> StoreResult<()> {
    tx.prepare_cached(SET_TOLD)?.execute(named_params! {":id": id, ":event": event})?;
    Ok(())
}
