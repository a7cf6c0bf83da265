//! The `proposal` table: proposed jobs of sealed answers.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::contract::Proposal;
use crate::domain::id::{JobId, ProposalId, RunId};
use crate::domain::proposal::{Earlier, ProposalState};
use crate::domain::time::Timestamp;

/// A row of `proposal`.
#[derive(Clone, Debug)]
pub struct ProposalRow {
    /// Shown as p3.
    pub id: ProposalId,
    /// Whose.
    pub run: RunId,
    /// Who proposes it.
    pub job: JobId,
    /// In the answer of which try.
    pub attempt: u32,
    /// 1 from a job of the workflow.
    pub depth: u32,
    /// What was proposed.
    pub body: Proposal,
    /// What became of it.
    pub state: ProposalState,
    /// Why it was not admitted.
    pub why: Option<String>,
    /// The job that it is.
    pub made: Option<JobId>,
    /// When its answer was sealed.
    pub proposed_at: Timestamp,
}

/// What a new proposal is made of.
pub struct NewProposal<'a> {
    /// Whose.
    pub run: RunId,
    /// Who proposes it.
    pub job: JobId,
    /// In the answer of which try.
    pub attempt: u32,
    /// 1 from a job of the workflow.
    pub depth: u32,
    /// Its type and inputs.
    pub likeness: &'a str,
    /// What is proposed.
    pub body: &'a Proposal,
}

const INSERT: &str = "INSERT INTO proposal (run_id, job_id, attempt, depth, likeness, body, state, proposed_at)
  VALUES (:run, :job, :attempt, :depth, :likeness, :body, 'pending', :at)";

/// Keeps a proposal until a driver looks at it.
pub fn insert(tx: &Writing<'_>, new: &NewProposal<'_>) -> StoreResult<ProposalId> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":job": new.job, ":attempt": new.attempt, ":depth": new.depth, ":likeness": new.likeness,
        ":body": Json(new.body), ":at": tx.at,
    })?;
    Ok(ProposalId(tx.last_insert_rowid()))
}

const GET: &str = "SELECT * FROM proposal WHERE id = :id";

/// A proposal, if it exists.
pub fn get(read: &Connection, id: ProposalId) -> StoreResult<Option<ProposalRow>> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":id": id}, row).optional()?)
}

const IN_STATE: &str = "SELECT * FROM proposal WHERE run_id = :run AND state = :state ORDER BY id LIMIT :limit";

/// Proposals of a run in one state, oldest first.
pub fn in_state(read: &Connection, run: RunId, state: ProposalState, limit: u32) -> StoreResult<Vec<ProposalRow>> {
    let mut statement = read.prepare_cached(IN_STATE)?;
    let rows = statement.query_map(named_params! {":run": run, ":state": state, ":limit": limit}, row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_IN_STATE: &str = "SELECT count(*) FROM proposal WHERE run_id = :run AND state = :state";

/// How many proposals of a run are in one state.
pub fn count_in_state(read: &Connection, run: RunId, state: ProposalState) -> StoreResult<u32> {
    Ok(read
        .prepare_cached(COUNT_IN_STATE)?
        .query_row(named_params! {":run": run, ":state": state}, |row| row.get(0))?)
}

const HAS_PENDING: &str = "SELECT EXISTS (SELECT 1 FROM proposal WHERE run_id = :run AND state = 'pending')";

/// Whether a driver has something to look at.
pub fn has_pending(read: &Connection, run: RunId) -> StoreResult<bool> {
    Ok(read.prepare_cached(HAS_PENDING)?.query_row(named_params! {":run": run}, |row| row.get(0))?)
}

const OF_JOB: &str = "SELECT * FROM proposal WHERE run_id = :run AND job_id = :job ORDER BY id DESC LIMIT :limit";

/// What a job proposed, newest first.
pub fn of_job(read: &Connection, run: RunId, job: JobId, limit: u32) -> StoreResult<Vec<ProposalRow>> {
    let mut statement = read.prepare_cached(OF_JOB)?;
    let rows = statement.query_map(named_params! {":run": run, ":job": job, ":limit": limit}, row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const MADE: &str = "SELECT * FROM proposal WHERE run_id = :run AND state = 'admitted' AND made_id = :job";

/// What a job was before it was admitted; none for a job of the workflow.
pub fn made(read: &Connection, run: RunId, job: JobId) -> StoreResult<Option<ProposalRow>> {
    Ok(read.prepare_cached(MADE)?.query_row(named_params! {":run": run, ":job": job}, row).optional()?)
}

const EARLIER: &str = "SELECT likeness, body, state = 'admitted' FROM proposal
  WHERE run_id = :run AND state IN ('admitted', 'surfaced', 'dismissed') AND id <> :id AND likeness = :likeness";

/// Those of the same type and inputs that were not refused.
pub fn earlier(read: &Connection, run: RunId, id: ProposalId, likeness: &str) -> StoreResult<Vec<Earlier>> {
    let mut statement = read.prepare_cached(EARLIER)?;
    let rows = statement.query_map(named_params! {":run": run, ":id": id, ":likeness": likeness}, |row| {
        Ok(Earlier {
            key: row.get(0)?,
            objective: row.get::<_, Json<Proposal>>(1)?.0.objective,
            is_admitted: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What became of a proposal.
pub struct Decided<'a> {
    /// The new state.
    pub state: ProposalState,
    /// Why.
    pub why: Option<&'a str>,
    /// The job that it is now.
    pub made: Option<JobId>,
}

const DECIDE: &str = "UPDATE proposal SET state = :state, why = :why, made_id = :made, decided_at = :at
  WHERE id = :id AND state IN ('pending', 'surfaced')";

/// Decides an open proposal; false when it was decided before.
pub fn decide(tx: &Writing<'_>, id: ProposalId, decided: &Decided<'_>) -> StoreResult<bool> {
    let changed = tx.prepare_cached(DECIDE)?.execute(named_params! {
        ":id": id, ":state": decided.state, ":why": decided.why, ":made": decided.made, ":at": tx.at,
    })?;
    Ok(changed == 1)
}

fn row(row: &Row<'_>) -> rusqlite::Result<ProposalRow> {
    Ok(ProposalRow {
        id: row.get("id")?,
        run: row.get("run_id")?,
        job: row.get("job_id")?,
        attempt: row.get("attempt")?,
        depth: row.get("depth")?,
        body: row.get::<_, Json<Proposal>>("body")?.0,
        state: row.get("state")?,
        why: row.get("why")?,
        made: row.get("made_id")?,
        proposed_at: row.get("proposed_at")?,
    })
}
