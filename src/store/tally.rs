//! Sums over the jobs of a run: how many are in each state, what keeps it, what was tried.
//!
//! It does not know what follows from them.

use rusqlite::{Connection, named_params};

use super::StoreResult;
use super::columns::Json;
use crate::domain::frozen::JobSpec;
use crate::domain::id::RunId;
use crate::domain::job::JobState;

/// How many jobs of a run are in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// The state.
    pub state: JobState,
    /// How many there are.
    pub jobs: u32,
    /// How many of them are settled.
    pub settled: u32,
}

const COUNTS: &str = "SELECT state, count(*), sum(settled) FROM job WHERE run_id = :run GROUP BY state";

/// How many jobs are in each state that occurs.
pub fn counts(read: &Connection, run: RunId) -> StoreResult<Vec<Count>> {
    let mut statement = read.prepare_cached(COUNTS)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| {
        Ok(Count { state: row.get(0)?, jobs: row.get(1)?, settled: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What a job has used of its tries.
#[derive(Clone, Debug)]
pub struct Tried {
    /// Its id in the workflow.
    pub name: String,
    /// The frozen job.
    pub spec: JobSpec,
    /// Why it waits or failed.
    pub reason: Option<String>,
    /// Failed attempts that count.
    pub strikes: u32,
    /// Attempts repeated without a strike.
    pub requeues: u32,
    /// Times this review sent its subject back.
    pub revisions: u32,
}

const TRIED: &str = "SELECT name, spec, reason, strikes, requeues, revisions FROM job INDEXED BY job_tried
  WHERE run_id = :run AND settled = 0 AND (strikes > 0 OR requeues > 0 OR revisions > 0)
  ORDER BY strikes DESC, requeues DESC, position LIMIT :limit";

/// Open jobs that have used some of their tries, the worst first.
pub fn tried(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Tried>> {
    let mut statement = read.prepare_cached(TRIED)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, |row| {
        Ok(Tried {
            name: row.get(0)?,
            spec: row.get::<_, Json<JobSpec>>(1)?.0,
            reason: row.get(2)?,
            strikes: row.get(3)?,
            requeues: row.get(4)?,
            revisions: row.get(5)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// What may keep a run from going on by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Obstacles {
    /// Some job is stale, failed, or waits for a person.
    pub is_stuck: bool,
    /// Some job waits though its needs are settled.
    pub is_kept: bool,
    /// Some gate is open.
    pub has_gates: bool,
    /// Some job is not settled.
    pub has_open: bool,
    /// Some proposal was not looked at.
    pub has_proposals: bool,
}

const OBSTACLES: &str = "SELECT
    EXISTS (SELECT 1 FROM job WHERE run_id = :run AND state IN ('stale', 'waiting_human', 'failed')),
    EXISTS (SELECT 1 FROM job WHERE run_id = :run AND state = 'waiting' AND unmet = 0),
    EXISTS (SELECT 1 FROM gate WHERE run_id = :run AND state = 'pending'),
    EXISTS (SELECT 1 FROM job WHERE run_id = :run AND settled = 0),
    EXISTS (SELECT 1 FROM proposal WHERE run_id = :run AND state = 'pending')";

/// Whether there is anything to look at beside the queue: mostly there is not.
pub fn obstacles(read: &Connection, run: RunId) -> StoreResult<Obstacles> {
    Ok(read.prepare_cached(OBSTACLES)?.query_row(named_params! {":run": run}, |row| {
        Ok(Obstacles {
            is_stuck: row.get(0)?,
            is_kept: row.get(1)?,
            has_gates: row.get(2)?,
            has_open: row.get(3)?,
            has_proposals: row.get(4)?,
        })
    })?)
}
