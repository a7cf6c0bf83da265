//! The `job` and `need` tables.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::contract::BlockedReason;
use crate::domain::frozen::JobSpec;
use crate::domain::id::{JobId, RunId};
use crate::domain::job::{JobState, Phase};
use crate::domain::time::Timestamp;

/// A row of `job`.
#[derive(Clone, Debug)]
pub struct Job {
    /// Store number.
    pub id: JobId,
    /// Whose.
    pub run: RunId,
    /// Its id in the workflow.
    pub name: String,
    /// The frozen job.
    pub spec: JobSpec,
    /// The job it judges.
    pub reviews: Option<JobId>,
    /// Where it is.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Why.
    pub reason: Option<String>,
    /// Its successors may go.
    pub settled: bool,
    /// Needs that are not settled.
    pub unmet: u32,
    /// Newest attempt.
    pub attempt: u32,
    /// Rises at each claim, revoke, expiry and reopen.
    pub fence: i64,
    /// Failed attempts that count.
    pub strikes: u32,
    /// Attempts repeated without a strike.
    pub requeues: u32,
    /// Times this review sent its subject back.
    pub revisions: u32,
    /// Verdicts of older generations are void.
    pub generation: u32,
    /// What is awaited.
    pub question: Option<BlockedReason>,
    /// When the state last changed.
    pub changed_at: Timestamp,
}

/// A job without its frozen text, for lists.
#[derive(Clone, Debug)]
pub struct JobLine {
    /// Store number.
    pub id: JobId,
    /// Its id in the workflow.
    pub name: String,
    /// generic, draft, ...
    pub kind: String,
    /// Role.
    pub role: Option<String>,
    /// Lane.
    pub lane: Option<String>,
    /// Where it is.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Why.
    pub reason: Option<String>,
    /// Its successors may go.
    pub settled: bool,
    /// Needs that are not settled.
    pub unmet: u32,
    /// Newest attempt.
    pub attempt: u32,
    /// Failed attempts that count.
    pub strikes: u32,
    /// When the state last changed.
    pub changed_at: Timestamp,
}

/// What a new job is made of.
pub struct NewJob<'a> {
    /// Whose.
    pub run: RunId,
    /// Its place.
    pub position: usize,
    /// The frozen job.
    pub spec: &'a JobSpec,
    /// The job it judges.
    pub reviews: Option<JobId>,
}

const INSERT: &str = "INSERT INTO job (run_id, name, position, type, role, lane, spec, reviews, state, settled, unmet,
    attempt, fence, strikes, requeues, revisions, generation, changed_at)
  VALUES (:run, :name, :position, :type, :role, :lane, :spec, :reviews, 'waiting', 0, :unmet, 0, 0, 0, 0, 0, 1, :at)";

/// Adds a waiting job.
pub fn insert(tx: &Writing<'_>, new: &NewJob<'_>) -> StoreResult<JobId> {
    let kind = serde_json::to_value(new.spec.kind).ok();
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": new.run, ":name": new.spec.id, ":position": new.position as i64,
        ":type": kind.as_ref().and_then(serde_json::Value::as_str).unwrap_or("generic"),
        ":role": new.spec.role, ":lane": new.spec.lane, ":spec": Json(new.spec), ":reviews": new.reviews,
        ":unmet": new.spec.needs.len() as i64, ":at": tx.at,
    })?;
    Ok(JobId(tx.last_insert_rowid()))
}

const INSERT_NEED: &str = "INSERT INTO need (job_id, needs_id) VALUES (:job, :needs)";

/// Adds an edge.
pub fn insert_need(tx: &Writing<'_>, job: JobId, needs: JobId) -> StoreResult<()> {
    tx.prepare_cached(INSERT_NEED)?.execute(named_params! {":job": job, ":needs": needs})?;
    Ok(())
}

const BY_ID: &str = "SELECT * FROM job WHERE id = :id";

/// A job that must exist.
pub fn get(read: &Connection, id: JobId) -> StoreResult<Job> {
    Ok(read.prepare_cached(BY_ID)?.query_row(named_params! {":id": id}, job_row)?)
}

const NAME: &str = "SELECT name FROM job WHERE id = :id";

/// The name of a job that must exist, without the rest of it.
pub fn name(read: &Connection, id: JobId) -> StoreResult<String> {
    Ok(read.prepare_cached(NAME)?.query_row(named_params! {":id": id}, |row| row.get(0))?)
}

const BY_NAME: &str = "SELECT * FROM job WHERE run_id = :run AND name = :name";

/// A job by its name.
pub fn by_name(read: &Connection, run: RunId, name: &str) -> StoreResult<Option<Job>> {
    Ok(read.prepare_cached(BY_NAME)?.query_row(named_params! {":run": run, ":name": name}, job_row).optional()?)
}

const SPECS: &str = "SELECT spec FROM job WHERE run_id = :run ORDER BY position";

/// What the jobs of a run are, in the order of the workflow.
pub fn specs(read: &Connection, run: RunId) -> StoreResult<Vec<JobSpec>> {
    let mut statement = read.prepare_cached(SPECS)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| Ok(row.get::<_, Json<JobSpec>>(0)?.0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const LINES: &str =
    "SELECT id, name, type, role, lane, state, phase, reason, settled, unmet, attempt, strikes, changed_at
  FROM job WHERE run_id = :run ORDER BY position LIMIT :limit";

/// The jobs of a run in the order of the workflow, without their frozen text.
pub fn lines(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<JobLine>> {
    let mut statement = read.prepare_cached(LINES)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, line_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const BUSY_LINES: &str =
    "SELECT id, name, type, role, lane, state, phase, reason, settled, unmet, attempt, strikes, changed_at
  FROM job WHERE run_id = :run AND state NOT IN ('completed', 'waiting') ORDER BY position LIMIT :limit";

/// Jobs that are neither waiting nor completed.
pub fn busy_lines(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<JobLine>> {
    let mut statement = read.prepare_cached(BUSY_LINES)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, line_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const IN_STATE: &str = "SELECT * FROM job WHERE run_id = :run AND state = :state ORDER BY id LIMIT :limit";

/// Jobs in one state, oldest first.
pub fn in_state(read: &Connection, run: RunId, state: JobState, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(IN_STATE)?;
    let rows = statement.query_map(named_params! {":run": run, ":state": state, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const HELD: &str = "SELECT * FROM job WHERE run_id = :run AND state = :state AND settled = 0
  ORDER BY changed_at DESC, id DESC LIMIT :limit";

/// Jobs in one state whose successors may not go, newest change first: what waits for a person.
pub fn held(read: &Connection, run: RunId, state: JobState, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(HELD)?;
    let rows = statement.query_map(named_params! {":run": run, ":state": state, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_HELD: &str = "SELECT count(*) FROM job WHERE run_id = :run AND state = :state AND settled = 0";

/// How many jobs are in one state and keep their successors waiting.
pub fn count_held(read: &Connection, run: RunId, state: JobState) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_HELD)?.query_row(named_params! {":run": run, ":state": state}, |row| row.get(0))?)
}

const KEPT_FOR: &str = "SELECT * FROM job WHERE run_id = :run AND reason = :reason AND state = 'waiting' AND unmet = 0
  ORDER BY changed_at DESC, id DESC LIMIT :limit";

/// Waiting jobs whose needs are settled and which one reason keeps, newest change first.
pub fn kept_for(read: &Connection, run: RunId, reason: &str, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(KEPT_FOR)?;
    let rows = statement.query_map(named_params! {":run": run, ":reason": reason, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_KEPT_FOR: &str =
    "SELECT count(*) FROM job WHERE run_id = :run AND reason = :reason AND state = 'waiting' AND unmet = 0";

/// How many jobs one reason keeps.
pub fn count_kept_for(read: &Connection, run: RunId, reason: &str) -> StoreResult<u32> {
    Ok(read
        .prepare_cached(COUNT_KEPT_FOR)?
        .query_row(named_params! {":run": run, ":reason": reason}, |row| row.get(0))?)
}

const GATES_DUE: &str = "SELECT * FROM job WHERE run_id = :run AND state = 'waiting' AND unmet = 0 AND reason = 'gate'
    AND NOT EXISTS (SELECT 1 FROM gate WHERE gate.job_id = job.id AND gate.state = 'pending') ORDER BY id LIMIT :limit";

/// Jobs that a gate keeps which is not open yet, oldest first.
pub fn gates_due(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(GATES_DUE)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OF_RUN: &str = "SELECT * FROM job WHERE run_id = :run ORDER BY position LIMIT :limit";

/// The jobs of a run with their frozen text, in the order of the workflow.
pub fn of_run(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const SLOTS: &str = "SELECT DISTINCT role, lane FROM job WHERE run_id = :run AND settled = 0 AND role IS NOT NULL";

/// Roles, with the lane where one is named, of the jobs that are not settled.
pub fn slots(read: &Connection, run: RunId) -> StoreResult<Vec<(String, Option<String>)>> {
    let mut statement = read.prepare_cached(SLOTS)?;
    let rows = statement.query_map(named_params! {":run": run}, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OPEN: &str = "SELECT * FROM job WHERE run_id = :run AND settled = 0
  ORDER BY (state = 'waiting' AND unmet > 0), position LIMIT :limit";

/// Jobs that are not settled; those that only wait for others come last.
pub fn open(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(OPEN)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const KEPT: &str = "SELECT * FROM job WHERE run_id = :run AND state = 'waiting' AND unmet = 0 ORDER BY id LIMIT :limit";

/// Waiting jobs whose needs are settled: a gate, a rejection or a panel keeps them.
pub fn kept(read: &Connection, run: RunId, limit: u32) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(KEPT)?;
    let rows = statement.query_map(named_params! {":run": run, ":limit": limit}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const HAS_OPEN: &str = "SELECT EXISTS (SELECT 1 FROM job WHERE run_id = :run AND settled = 0)";

/// Whether any job is not settled.
pub fn has_open(read: &Connection, run: RunId) -> StoreResult<bool> {
    Ok(read.prepare_cached(HAS_OPEN)?.query_row(named_params! {":run": run}, |row| row.get(0))?)
}

const OPEN_UP_TO: &str = "SELECT count(*) FROM (SELECT 1 FROM job WHERE run_id = :run AND settled = 0 LIMIT :limit)";

/// How many jobs are not settled, counted up to a limit.
pub fn open_up_to(read: &Connection, run: RunId, limit: u32) -> StoreResult<u32> {
    Ok(read.prepare_cached(OPEN_UP_TO)?.query_row(named_params! {":run": run, ":limit": limit}, |row| row.get(0))?)
}

const PANEL: &str = "SELECT * FROM job WHERE reviews = :subject ORDER BY id";

/// All reviews of a job.
pub fn panel(read: &Connection, subject: JobId) -> StoreResult<Vec<Job>> {
    let mut statement = read.prepare_cached(PANEL)?;
    let rows = statement.query_map(named_params! {":subject": subject}, job_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const NEEDS: &str = "SELECT needs_id FROM need WHERE job_id = :job ORDER BY needs_id";

/// Direct predecessors.
pub fn needs(read: &Connection, job: JobId) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(NEEDS)?;
    let rows = statement.query_map(named_params! {":job": job}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const NEED_LINES: &str = "SELECT job.name, job.state, job.settled FROM need JOIN job ON job.id = need.needs_id
  WHERE need.job_id = :job ORDER BY job.settled, job.position LIMIT :limit";

/// A job's place, for people.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its id in the workflow.
    pub name: String,
    /// Where it is.
    pub state: JobState,
    /// Its successors may go.
    pub settled: bool,
}

/// Direct predecessors, those that are not settled first.
pub fn need_places(read: &Connection, job: JobId, limit: u32) -> StoreResult<Vec<Place>> {
    places(read, NEED_LINES, job, limit)
}

const FOLLOWER_LINES: &str = "SELECT job.name, job.state, job.settled FROM need JOIN job ON job.id = need.job_id
  WHERE need.needs_id = :job ORDER BY job.settled, job.position LIMIT :limit";

/// Direct successors, those that are not settled first.
pub fn follower_places(read: &Connection, job: JobId, limit: u32) -> StoreResult<Vec<Place>> {
    places(read, FOLLOWER_LINES, job, limit)
}

fn places(read: &Connection, statement: &str, job: JobId, limit: u32) -> StoreResult<Vec<Place>> {
    let mut statement = read.prepare_cached(statement)?;
    let rows = statement.query_map(named_params! {":job": job, ":limit": limit}, |row| {
        Ok(Place { name: row.get(0)?, state: row.get(1)?, settled: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const COUNT_NEEDS: &str = "SELECT count(*) FROM need WHERE job_id = :job";

/// How many direct predecessors a job has.
pub fn count_needs(read: &Connection, job: JobId) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_NEEDS)?.query_row(named_params! {":job": job}, |row| row.get(0))?)
}

const COUNT_FOLLOWERS: &str = "SELECT count(*) FROM need WHERE needs_id = :job";

/// How many direct successors a job has.
pub fn count_followers(read: &Connection, job: JobId) -> StoreResult<u32> {
    Ok(read.prepare_cached(COUNT_FOLLOWERS)?.query_row(named_params! {":job": job}, |row| row.get(0))?)
}

const DOWNSTREAM: &str = "WITH RECURSIVE below (id) AS (
    SELECT job_id FROM need WHERE needs_id = :job
    UNION SELECT need.job_id FROM need JOIN below ON need.needs_id = below.id)
  SELECT id FROM below ORDER BY id";

/// Every job that needs this one, directly or not.
pub fn downstream(read: &Connection, job: JobId) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(DOWNSTREAM)?;
    let rows = statement.query_map(named_params! {":job": job}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const UPSTREAM: &str = "WITH RECURSIVE above (id) AS (
    SELECT needs_id FROM need WHERE job_id = :job
    UNION SELECT need.needs_id FROM need JOIN above ON need.job_id = above.id)
  SELECT id FROM above ORDER BY id";

/// Every job that this one needs, directly or not.
pub fn upstream(read: &Connection, job: JobId) -> StoreResult<Vec<JobId>> {
    let mut statement = read.prepare_cached(UPSTREAM)?;
    let rows = statement.query_map(named_params! {":job": job}, |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// A job's new place.
pub struct Move<'a> {
    /// The new state.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Why.
    pub reason: Option<&'a str>,
    /// Its successors may go.
    pub settled: bool,
}

const MOVE: &str = "UPDATE job SET state = :state, phase = :phase, reason = :reason, settled = :settled,
    question = NULL, changed_at = :at WHERE id = :id";

/// Moves a job; the caller has asked the machine.
pub fn set_state(tx: &Writing<'_>, id: JobId, to: &Move<'_>) -> StoreResult<()> {
    tx.prepare_cached(MOVE)?.execute(named_params! {
        ":id": id, ":state": to.state, ":phase": to.phase, ":reason": to.reason, ":settled": to.settled, ":at": tx.at,
    })?;
    Ok(())
}

const SET_PHASE: &str = "UPDATE job SET phase = :phase WHERE id = :id AND state = 'running'";

/// Moves a running job within running.
pub fn set_phase(tx: &Writing<'_>, id: JobId, phase: Phase) -> StoreResult<()> {
    tx.prepare_cached(SET_PHASE)?.execute(named_params! {":id": id, ":phase": phase})?;
    Ok(())
}

const SET_QUESTION: &str = "UPDATE job SET question = :question WHERE id = :id";

/// Keeps what is awaited.
pub fn set_question(tx: &Writing<'_>, id: JobId, question: &BlockedReason) -> StoreResult<()> {
    tx.prepare_cached(SET_QUESTION)?.execute(named_params! {":id": id, ":question": Json(question)})?;
    Ok(())
}

const RAISE_FENCE: &str = "UPDATE job SET fence = fence + 1 WHERE id = :id RETURNING fence";

/// Raises the fence; returns it.
pub fn raise_fence(tx: &Writing<'_>, id: JobId) -> StoreResult<i64> {
    Ok(tx.prepare_cached(RAISE_FENCE)?.query_row(named_params! {":id": id}, |row| row.get(0))?)
}

const NEXT_ATTEMPT: &str = "UPDATE job SET attempt = attempt + 1 WHERE id = :id RETURNING attempt";

/// Begins another attempt; returns its number.
pub fn next_attempt(tx: &Writing<'_>, id: JobId) -> StoreResult<u32> {
    Ok(tx.prepare_cached(NEXT_ATTEMPT)?.query_row(named_params! {":id": id}, |row| row.get(0))?)
}

/// A counter of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Failed attempts that count.
    Strikes,
    /// Attempts repeated without a strike.
    Requeues,
    /// Times a review sent its subject back.
    Revisions,
    /// Verdict generation.
    Generation,
}

const ADD_STRIKE: &str = "UPDATE job SET strikes = strikes + 1 WHERE id = :id";
const ADD_REQUEUE: &str = "UPDATE job SET requeues = requeues + 1 WHERE id = :id";
const ADD_REVISION: &str = "UPDATE job SET revisions = revisions + 1 WHERE id = :id";
const ADD_GENERATION: &str = "UPDATE job SET generation = generation + 1 WHERE id = :id";

/// Counts one more.
pub fn count_up(tx: &Writing<'_>, id: JobId, counter: Counter) -> StoreResult<()> {
    let statement = match counter {
        Counter::Strikes => ADD_STRIKE,
        Counter::Requeues => ADD_REQUEUE,
        Counter::Revisions => ADD_REVISION,
        Counter::Generation => ADD_GENERATION,
    };
    tx.prepare_cached(statement)?.execute(named_params! {":id": id})?;
    Ok(())
}

const FORGIVE: &str = "UPDATE job SET strikes = 0, requeues = 0, revisions = 0 WHERE id = :id";

/// A person gives the job its tries back.
pub fn forgive(tx: &Writing<'_>, id: JobId) -> StoreResult<()> {
    tx.prepare_cached(FORGIVE)?.execute(named_params! {":id": id})?;
    Ok(())
}

const MEET: &str = "UPDATE job SET unmet = unmet - 1
  WHERE id IN (SELECT job_id FROM need WHERE needs_id = :needed) RETURNING id, unmet";

/// Tells the successors that one of their needs is settled; returns those that need nothing more.
pub fn meet(tx: &Writing<'_>, needed: JobId) -> StoreResult<Vec<JobId>> {
    let mut statement = tx.prepare_cached(MEET)?;
    let rows =
        statement.query_map(named_params! {":needed": needed}, |row| Ok((row.get::<_, JobId>(0)?, row.get(1)?)))?;
    let mut ready = Vec::new();
    for row in rows {
        let (id, unmet): (JobId, i64) = row?;
        if unmet == 0 {
            ready.push(id);
        }
    }
    ready.sort_unstable();
    Ok(ready)
}

const RECOUNT: &str = "UPDATE job SET unmet = (SELECT count(*) FROM need JOIN job AS other ON other.id = need.needs_id
    WHERE need.job_id = :id AND other.settled = 0) WHERE id = :id RETURNING unmet";

/// Counts a job's unsettled needs anew.
pub fn recount(tx: &Writing<'_>, id: JobId) -> StoreResult<u32> {
    Ok(tx.prepare_cached(RECOUNT)?.query_row(named_params! {":id": id}, |row| row.get(0))?)
}

const RESPEC: &str = "UPDATE job SET spec = :spec, lane = :lane WHERE id = :id";

/// Puts an amended frozen job in force.
pub fn respec(tx: &Writing<'_>, id: JobId, spec: &JobSpec) -> StoreResult<()> {
    tx.prepare_cached(RESPEC)?.execute(named_params! {":id": id, ":spec": Json(spec), ":lane": spec.lane})?;
    Ok(())
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<Job> {
    Ok(Job {
        id: row.get("id")?,
        run: row.get("run_id")?,
        name: row.get("name")?,
        spec: row.get::<_, Json<JobSpec>>("spec")?.0,
        reviews: row.get("reviews")?,
        state: row.get("state")?,
        phase: row.get("phase")?,
        reason: row.get("reason")?,
        settled: row.get("settled")?,
        unmet: row.get("unmet")?,
        attempt: row.get("attempt")?,
        fence: row.get("fence")?,
        strikes: row.get("strikes")?,
        requeues: row.get("requeues")?,
        revisions: row.get("revisions")?,
        generation: row.get("generation")?,
        question: row.get::<_, Option<Json<BlockedReason>>>("question")?.map(|json| json.0),
        changed_at: row.get("changed_at")?,
    })
}

// By number: a hundred lines of names to look up are felt. Both statements above list the columns in this order.
fn line_row(row: &Row<'_>) -> rusqlite::Result<JobLine> {
    Ok(JobLine {
        id: row.get(0)?,
        name: row.get(1)?,
        kind: row.get(2)?,
        role: row.get(3)?,
        lane: row.get(4)?,
        state: row.get(5)?,
        phase: row.get(6)?,
        reason: row.get(7)?,
        settled: row.get(8)?,
        unmet: row.get(9)?,
        attempt: row.get(10)?,
        strikes: row.get(11)?,
        changed_at: row.get(12)?,
    })
}
