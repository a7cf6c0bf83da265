//! The `message` table: the work queue.

use rusqlite::{Connection, OptionalExtension, Row, ToSql, named_params};

use super::{StoreResult, Writing};
use crate::domain::id::{JobId, MessageId, RunId, SessionId};
use crate::domain::session::{ExecutionState, MessageState};
use crate::domain::time::{Moment, Timestamp};

/// A row of `message`.
#[derive(Clone, Debug)]
pub struct Message {
    /// Shown as m12.
    pub id: MessageId,
    /// Whose.
    pub run: RunId,
    /// What it offers.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// Who may take it.
    pub role: String,
    /// None: any lane of the role.
    pub lane: Option<String>,
    /// Only for a session that holds nothing upstream.
    pub fresh: bool,
    /// Where it is.
    pub state: MessageState,
    /// Who took it.
    pub session: Option<SessionId>,
    /// Not claimable before.
    pub not_before: Option<Moment>,
    /// When.
    pub created_at: Timestamp,
}

/// What a new message is made of.
pub struct NewMessage<'a> {
    /// Whose.
    pub run: RunId,
    /// What it offers.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// Who may take it.
    pub role: &'a str,
    /// None: any lane of the role.
    pub lane: Option<&'a str>,
    /// Only for a session that holds nothing upstream.
    pub fresh: bool,
}

const INSERT: &str = "INSERT INTO message (run_id, job_id, attempt, kind, role, lane, fresh, state, created_at)
  VALUES (:run, :job, :attempt, 'work', :role, :lane, :fresh, 'pending', :at)";

/// Offers an attempt.
pub fn insert(tx: &Writing<'_>, new: &NewMessage<'_>) -> StoreResult<MessageId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":attempt": new.attempt, ":role": new.role, ":lane": new.lane,
        ":fresh": new.fresh, ":at": tx.at,
    })?;
    Ok(MessageId(tx.last_insert_rowid()))
}

const OLDEST_OF_LANE: &str = "SELECT * FROM message WHERE run_id = :run AND role = :role AND lane = :lane
    AND state = 'pending' AND id > :after ORDER BY id LIMIT 1";

const OLDEST_OF_ROLE: &str = "SELECT * FROM message WHERE run_id = :run AND role = :role AND lane IS NULL
    AND state = 'pending' AND id > :after ORDER BY id LIMIT 1";

/// The oldest pending message after `after` that a session of the slot may take.
pub fn oldest_pending(
    read: &Connection,
    run: RunId,
    role: &str,
    lane: &str,
    after: MessageId,
) -> StoreResult<Option<Message>> {
    let mine = read
        .prepare_cached(OLDEST_OF_LANE)?
        .query_row(named_params! {":run": run, ":role": role, ":lane": lane, ":after": after}, message_row)
        .optional()?;
    let anyones = read
        .prepare_cached(OLDEST_OF_ROLE)?
        .query_row(named_params! {":run": run, ":role": role, ":after": after}, message_row)
        .optional()?;
    Ok(match (mine, anyones) {
        (Some(mine), Some(anyones)) => Some(if mine.id < anyones.id { mine } else { anyones }),
        (mine, anyones) => mine.or(anyones),
    })
}

const LIVE_OF_JOB: &str = "SELECT * FROM message WHERE job_id = :job AND state IN ('pending', 'claimed', 'acked')";

/// A job's live message.
pub fn live_of_job(read: &Connection, job: JobId) -> StoreResult<Option<Message>> {
    Ok(read.prepare_cached(LIVE_OF_JOB)?.query_row(named_params! {":job": job}, message_row).optional()?)
}

const HELD: &str = "SELECT * FROM message WHERE session_id = :session AND state IN ('claimed', 'acked') LIMIT 1";

/// What a session holds.
pub fn held(read: &Connection, session: SessionId) -> StoreResult<Option<Message>> {
    Ok(read.prepare_cached(HELD)?.query_row(named_params! {":session": session}, message_row).optional()?)
}

/// What a session holds, as a look at the run sees it.
#[derive(Clone, Debug)]
pub struct Holding {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// How far its agent came; none before there is one.
    pub agent: Option<ExecutionState>,
}

const HOLDING: &str = "SELECT message.job_id, job.name, message.attempt, execution.state
  FROM message JOIN job ON job.id = message.job_id
    LEFT JOIN execution ON execution.job_id = message.job_id AND execution.attempt = message.attempt
      AND execution.kind = 'agent'
  WHERE message.session_id = :session AND message.state IN ('claimed', 'acked') LIMIT 1";

/// What a session holds, with its name and its agent.
pub fn holding(read: &Connection, session: SessionId) -> StoreResult<Option<Holding>> {
    let holding =
        |row: &Row<'_>| Ok(Holding { job: row.get(0)?, name: row.get(1)?, attempt: row.get(2)?, agent: row.get(3)? });
    Ok(read.prepare_cached(HOLDING)?.query_row(named_params! {":session": session}, holding).optional()?)
}

const LIVE_IN_SLOT: &str = "SELECT count(*) FROM (SELECT 1 FROM message WHERE run_id = :run AND role = :role
    AND lane = :lane AND state = 'pending' LIMIT :most)";

const HELD_IN_SLOT: &str = "SELECT count(*) FROM session JOIN message ON message.session_id = session.id
    AND message.state IN ('claimed', 'acked')
  WHERE session.run_id = :run AND session.role = :role AND session.lane = :lane AND session.state = 'active'";

const ANY_LANE: &str = "SELECT count(*) FROM (SELECT 1 FROM message WHERE run_id = :run AND role = :role
    AND lane IS NULL AND state = 'pending' LIMIT :most)";

/// Live messages of a slot: pending for it or for any lane of its role, or held by its sessions. Of the pending ones
/// `most` of each kind are counted: nobody starts more sessions than that.
pub fn live_in_slot(read: &Connection, run: RunId, (role, lane): (&str, &str), most: u32) -> StoreResult<u32> {
    let pending = named_params! {":run": run, ":role": role, ":lane": lane, ":most": most};
    let held = named_params! {":run": run, ":role": role, ":lane": lane};
    let pending: u32 = read.prepare_cached(LIVE_IN_SLOT)?.query_row(pending, |row| row.get(0))?;
    let held: u32 = read.prepare_cached(HELD_IN_SLOT)?.query_row(held, |row| row.get(0))?;
    Ok(pending + held + pending_for_any(read, run, role, most)?)
}

/// How many pending messages of a role name no lane, counted up to `most`.
pub fn pending_for_any(read: &Connection, run: RunId, role: &str, most: u32) -> StoreResult<u32> {
    let any = named_params! {":run": run, ":role": role, ":most": most};
    Ok(read.prepare_cached(ANY_LANE)?.query_row(any, |row| row.get(0))?)
}

const PENDING_IN_SLOT: &str = "SELECT count(*) FROM message WHERE run_id = :run AND role = :role AND lane = :lane
    AND state = 'pending'";

/// How many messages are pending for exactly this slot.
pub fn pending_in_slot(read: &Connection, run: RunId, role: &str, lane: &str) -> StoreResult<u32> {
    let slot = named_params! {":run": run, ":role": role, ":lane": lane};
    Ok(read.prepare_cached(PENDING_IN_SLOT)?.query_row(slot, |row| row.get(0))?)
}

const NEXT_LANE: &str = "SELECT role, lane FROM message WHERE run_id = :run AND state = 'pending' AND role = :role
    AND lane > :lane ORDER BY lane LIMIT 1";

const NEXT_ROLE: &str = "SELECT role, lane FROM message WHERE run_id = :run AND state = 'pending' AND role > :role
  ORDER BY role, lane LIMIT 1";

/// A slot: a role, and a lane unless any will do.
pub type Slot = (String, Option<String>);

/// The slots that have pending messages. The index is asked for one slot after the other: how many messages there are
/// does not matter.
pub fn pending_slots(read: &Connection, run: RunId) -> StoreResult<Vec<Slot>> {
    let one = |sql: &str, params: &[(&str, &dyn ToSql)]| -> StoreResult<Option<Slot>> {
        Ok(read.prepare_cached(sql)?.query_row(params, |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    };
    let mut slots: Vec<Slot> = Vec::new();
    // Nothing stands before every role.
    let mut next = one(NEXT_ROLE, named_params! {":run": run, ":role": ""})?;
    while let Some((role, lane)) = next {
        // No lane stands before every name of one.
        let after = lane.as_deref().unwrap_or("");
        next = match one(NEXT_LANE, named_params! {":run": run, ":role": role, ":lane": after})? {
            None => one(NEXT_ROLE, named_params! {":run": run, ":role": role})?,
            found => found,
        };
        slots.push((role, lane));
    }
    Ok(slots)
}

const PENDING_OF_LANE: &str = "SELECT * FROM message WHERE run_id = :run AND role = :role AND lane = :lane
    AND state = 'pending' ORDER BY id LIMIT :limit";

const PENDING_OF_ROLE: &str = "SELECT * FROM message WHERE run_id = :run AND role = :role AND lane IS NULL
    AND state = 'pending' ORDER BY id LIMIT :limit";

/// Pending messages of a slot, oldest first, up to a limit.
pub fn pending(read: &Connection, run: RunId, role: &str, lane: Option<&str>, limit: u32) -> StoreResult<Vec<Message>> {
    let rows = match lane {
        Some(lane) => read
            .prepare_cached(PENDING_OF_LANE)?
            .query_map(named_params! {":run": run, ":role": role, ":lane": lane, ":limit": limit}, message_row)?
            .collect::<Result<_, _>>()?,
        None => read
            .prepare_cached(PENDING_OF_ROLE)?
            .query_map(named_params! {":run": run, ":role": role, ":limit": limit}, message_row)?
            .collect::<Result<_, _>>()?,
    };
    Ok(rows)
}

/// As much of a pending message as a driver looks at.
pub struct Offered {
    /// What it offers.
    pub job: JobId,
    /// The job's name.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// Only for a session that holds nothing upstream.
    pub fresh: bool,
    /// Not claimable before.
    pub not_before: Option<Moment>,
}

const OFFERS: &str = "SELECT message.job_id, message.attempt, message.fresh, message.not_before_boot,
    message.not_before_ms, job.name
  FROM message JOIN job ON job.id = message.job_id
  WHERE message.run_id = :run AND message.role = :role AND message.lane = :lane AND message.state = 'pending'
  ORDER BY message.id LIMIT :limit";

/// What is offered to exactly this slot, oldest first, up to a limit.
pub fn offers(read: &Connection, run: RunId, (role, lane): (&str, &str), limit: u32) -> StoreResult<Vec<Offered>> {
    let mut statement = read.prepare_cached(OFFERS)?;
    let slot = named_params! {":run": run, ":role": role, ":lane": lane, ":limit": limit};
    let rows = statement.query_map(slot, |row| {
        Ok(Offered {
            job: row.get(0)?,
            attempt: row.get(1)?,
            fresh: row.get(2)?,
            not_before: super::moment(row, "not_before_boot", "not_before_ms")?,
            name: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const CLAIM: &str = "UPDATE message SET state = 'claimed', session_id = :session WHERE id = :id AND state = 'pending'";

/// Takes a pending message; false when somebody else did.
pub fn claim(tx: &Writing<'_>, id: MessageId, session: SessionId) -> StoreResult<bool> {
    Ok(tx.prepare_cached(CLAIM)?.execute(named_params! {":id": id, ":session": session})? == 1)
}

const SET_STATE: &str = "UPDATE message SET state = :state WHERE id = :id AND state IN ('pending', 'claimed', 'acked')";

/// Moves a live message; the caller has asked the machine.
pub fn set_state(tx: &Writing<'_>, id: MessageId, state: MessageState) -> StoreResult<()> {
    tx.prepare_cached(SET_STATE)?.execute(named_params! {":id": id, ":state": state})?;
    Ok(())
}

const DELAY: &str =
    "UPDATE message SET not_before_boot = :boot, not_before_ms = :ms WHERE id = :id AND state = 'pending'";

/// Keeps a pending message from being claimed before a moment.
pub fn delay(tx: &Writing<'_>, id: MessageId, until: &Moment) -> StoreResult<()> {
    tx.prepare_cached(DELAY)?.execute(named_params! {":id": id, ":boot": until.boot, ":ms": until.ms})?;
    Ok(())
}

const SET_LANE: &str = "UPDATE message SET lane = :lane WHERE id = :id AND state = 'pending'";

/// Sends a pending message to another lane.
pub fn set_lane(tx: &Writing<'_>, id: MessageId, lane: &str) -> StoreResult<()> {
    tx.prepare_cached(SET_LANE)?.execute(named_params! {":id": id, ":lane": lane})?;
    Ok(())
}

fn message_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        role: row.get("role")?,
        lane: row.get("lane")?,
        fresh: row.get("fresh")?,
        state: row.get("state")?,
        session: row.get("session_id")?,
        not_before: super::moment(row, "not_before_boot", "not_before_ms")?,
        created_at: row.get("created_at")?,
    })
}
