//! Everything that the store knows of one run, as the facts that the auditor's rules look at.
//!
//! It reads whole histories and is for an audit alone. What the repository holds is added by the caller.

use rusqlite::{Connection, Row, named_params};

use super::StoreResult;
use super::columns::Json;
use crate::domain::audit::{
    AttemptFacts, ChangeFacts, DecisionFacts, Evidence, ExecutionFacts, GateFacts, JobFacts, LandingFacts, RunFacts,
    SessionFacts, Told, VerdictFacts,
};
use crate::domain::frozen::Snapshot;
use crate::domain::id::RunId;

const RUN: &str = "SELECT name, state, base, tip, launches FROM run WHERE id = :run";

const SNAPSHOTS: &str = "SELECT body FROM snapshot WHERE run_id = :run ORDER BY generation";

const JOBS: &str = "SELECT name, state, settled, generation FROM job WHERE run_id = :run ORDER BY position";

const ATTEMPTS: &str = "SELECT job.name AS job, attempt.number, attempt.outcome, attempt.answer, attempt.answer_hash
  FROM job CROSS JOIN attempt ON attempt.job_id = job.id WHERE job.run_id = :run ORDER BY job.id, attempt.number";

const EXECUTIONS: &str = "SELECT job.name AS job, execution.attempt, execution.kind, execution.state,
    execution.exit_code, execution.argv_hash
  FROM job CROSS JOIN execution ON execution.job_id = job.id WHERE job.run_id = :run ORDER BY execution.id";

const CHANGES: &str = "SELECT job.name AS job, change.attempt, change.state, change.base, change.commit_id,
    change.tree_hash, change.tip_before, change.tip_after
  FROM job CROSS JOIN change ON change.job_id = job.id WHERE job.run_id = :run ORDER BY job.id, change.attempt";

const VERDICTS: &str = "SELECT job.name AS job, verdict.attempt, verdict.generation, verdict.verdict
  FROM job CROSS JOIN verdict ON verdict.job_id = job.id WHERE job.run_id = :run ORDER BY verdict.id";

const GATES: &str = "SELECT gate.id, job.name AS job, gate.state, gate.digest, gate.decided_by, gate.how
  FROM gate JOIN job ON job.id = gate.job_id WHERE gate.run_id = :run ORDER BY gate.id";

const LANDINGS: &str = "SELECT job.name AS job, landing.gate_id, landing.state
  FROM job CROSS JOIN landing ON landing.job_id = job.id WHERE job.run_id = :run ORDER BY landing.id";

const SESSIONS: &str = "SELECT id, role, lane, fresh, non_fresh_reason FROM session WHERE run_id = :run ORDER BY id";

const DECISIONS: &str = "SELECT decision.id, decision.kind, decision.principal, decision.how
  FROM decision WHERE decision.run_id = :run ORDER BY decision.id";

const EVENTS: &str = "SELECT event.id, event.type, event.session_id, event.principal, event.body, job.name AS job
  FROM event LEFT JOIN job ON job.id = event.job_id WHERE event.run_id = :run ORDER BY event.id";

/// Reads a run's rows and events.
pub fn gather(read: &Connection, run: RunId) -> StoreResult<Evidence> {
    let facts = read.prepare_cached(RUN)?.query_row(named_params! {":run": run}, run_facts)?;
    Ok(Evidence {
        run: facts,
        generations: all(read, run, SNAPSHOTS, |row| Ok(row.get::<_, Json<Snapshot>>(0)?.0))?,
        jobs: all(read, run, JOBS, job)?,
        attempts: all(read, run, ATTEMPTS, attempt)?,
        executions: all(read, run, EXECUTIONS, execution)?,
        changes: all(read, run, CHANGES, change)?,
        verdicts: all(read, run, VERDICTS, verdict)?,
        gates: all(read, run, GATES, gate)?,
        landings: all(read, run, LANDINGS, landing)?,
        sessions: all(read, run, SESSIONS, session)?,
        decisions: all(read, run, DECISIONS, decision)?,
        events: all(read, run, EVENTS, told)?,
        commits: Err("nobody looked into a repository".to_owned()),
    })
}

fn all<T>(
    read: &Connection,
    run: RunId,
    sql: &str,
    each: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> StoreResult<Vec<T>> {
    let mut statement = read.prepare_cached(sql)?;
    let rows = statement.query_map(named_params! {":run": run}, each)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn run_facts(row: &Row<'_>) -> rusqlite::Result<RunFacts> {
    Ok(RunFacts {
        name: row.get("name")?,
        state: row.get("state")?,
        base: row.get("base")?,
        tip: row.get("tip")?,
        launches: row.get("launches")?,
    })
}

fn job(row: &Row<'_>) -> rusqlite::Result<JobFacts> {
    Ok(JobFacts {
        name: row.get("name")?,
        state: row.get("state")?,
        settled: row.get("settled")?,
        generation: row.get("generation")?,
    })
}

fn attempt(row: &Row<'_>) -> rusqlite::Result<AttemptFacts> {
    Ok(AttemptFacts {
        job: row.get("job")?,
        number: row.get("number")?,
        outcome: row.get("outcome")?,
        answer: row.get::<_, Option<Json<_>>>("answer")?.map(|answer| answer.0),
        answer_hash: row.get("answer_hash")?,
    })
}

fn execution(row: &Row<'_>) -> rusqlite::Result<ExecutionFacts> {
    Ok(ExecutionFacts {
        job: row.get("job")?,
        attempt: row.get("attempt")?,
        kind: row.get("kind")?,
        state: row.get("state")?,
        exit: row.get("exit_code")?,
        argv_hash: row.get("argv_hash")?,
    })
}

fn change(row: &Row<'_>) -> rusqlite::Result<ChangeFacts> {
    Ok(ChangeFacts {
        job: row.get("job")?,
        attempt: row.get("attempt")?,
        state: row.get("state")?,
        base: row.get("base")?,
        commit: row.get("commit_id")?,
        tree: row.get("tree_hash")?,
        before: row.get("tip_before")?,
        after: row.get("tip_after")?,
    })
}

fn verdict(row: &Row<'_>) -> rusqlite::Result<VerdictFacts> {
    Ok(VerdictFacts {
        job: row.get("job")?,
        attempt: row.get("attempt")?,
        generation: row.get("generation")?,
        verdict: row.get("verdict")?,
    })
}

fn gate(row: &Row<'_>) -> rusqlite::Result<GateFacts> {
    Ok(GateFacts {
        id: row.get("id")?,
        job: row.get("job")?,
        state: row.get("state")?,
        digest: row.get("digest")?,
        by: row.get("decided_by")?,
        how: row.get("how")?,
    })
}

fn landing(row: &Row<'_>) -> rusqlite::Result<LandingFacts> {
    Ok(LandingFacts { job: row.get("job")?, gate: row.get("gate_id")?, state: row.get("state")? })
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionFacts> {
    Ok(SessionFacts {
        id: row.get("id")?,
        role: row.get("role")?,
        lane: row.get("lane")?,
        fresh: row.get("fresh")?,
        non_fresh_reason: row.get("non_fresh_reason")?,
    })
}

fn decision(row: &Row<'_>) -> rusqlite::Result<DecisionFacts> {
    Ok(DecisionFacts { id: row.get("id")?, kind: row.get("kind")?, by: row.get("principal")?, how: row.get("how")? })
}

fn told(row: &Row<'_>) -> rusqlite::Result<Told> {
    let kind: String = row.get("type")?;
    Ok(Told {
        id: row.get("id")?,
        kind: kind.parse().ok(),
        job: row.get("job")?,
        session: row.get("session_id")?,
        by: row.get("principal")?,
        body: row.get::<_, Json<_>>("body")?.0,
    })
}
