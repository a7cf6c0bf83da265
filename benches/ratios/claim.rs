//! What a claim costs beside a history (G6): the tool's own transaction on stores that differ only in finished rows.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, StatementStatus};
use striatum::domain::id::{RunId, SessionId};
use striatum::store::session::NewSession;
use striatum::verbs::Ctx;
use striatum::verbs::ctx::open;
use striatum::verbs::session::must_exist;
use striatum::verbs::work::claim::take;

use crate::measure::median;
use crate::table::{AtMost, Table, Unit};
use crate::trial::Trial;
use crate::workload::Shape;
use crate::{Outcome, Plan, progress};

/// Claims whose steps are counted, after those that are timed.
const COUNTED: usize = 20;

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    let rows = if plan.quick { 100_000 } else { 1_000_000 };
    let timed = plan.rounds * plan.calls;
    progress(&format!("G6: stores with 1,000 and {rows} finished rows"));
    let (few, many) = (Queue::new(1_000, timed + COUNTED)?, Queue::new(rows, timed + COUNTED)?);
    let (mut few_times, mut many_times) = (Vec::new(), Vec::new());
    for call in 0..timed {
        few_times.push(few.claim(call)?);
        many_times.push(many.claim(call)?);
    }
    let (few_steps, many_steps) = (few.count(timed)?, many.count(timed)?);
    let absolute = format!("{:.3} ms; {:.3} ms with 1,000", median(&many_times), median(&few_times));
    let measured = median(&many_times) / median(&few_times);
    let case = AtMost { limit: 1.3, measured, unit: Unit::Times, absolute };
    table.at_most("G6", format!("claim, {rows} finished rows / 1,000"), case);
    let absolute = format!("{} steps; {} with 1,000", many_steps.steps, few_steps.steps);
    let measured = many_steps.steps as f64 / few_steps.steps as f64;
    table.at_most("G6", "SQLite steps of a claim", AtMost { limit: 1.05, measured, unit: Unit::Times, absolute });
    let measured = many_steps.scans as f64;
    let absolute = many_steps.scanning.clone();
    table.at_most("G6", "steps through whole tables", AtMost { limit: 0.0, measured, unit: Unit::Count, absolute });
    Ok(())
}

/// A run with enough offers and sessions for one claim each.
struct Queue {
    ctx: Ctx,
    sessions: Vec<SessionId>,
    _trial: Trial,
}

/// What the statements of a claim did, on average.
#[derive(Clone, Debug, Default)]
struct Steps {
    steps: i64,
    scans: i64,
    scanning: String,
}

impl Queue {
    fn new(finished: usize, claims: usize) -> Outcome<Queue> {
        let trial = Trial::started(Shape::Fan(claims), 1_000)?;
        remember(&Connection::open(trial.db())?, finished)?;
        let ctx = open(Some(&trial.path().join(".striatum")))?.lasting();
        let sessions = register(&ctx, claims)?;
        Ok(Queue { ctx, sessions, _trial: trial })
    }

    /// One claim by a session of its own, in milliseconds.
    fn claim(&self, call: usize) -> Outcome<f64> {
        let id = self.sessions.get(call).copied().ok_or("a session for each claim")?;
        let now = self.ctx.clock.moment();
        let start = Instant::now();
        let taken = self.ctx.write("work claim", |tx| {
            let session = must_exist(tx, id)?;
            let run = striatum::store::run::get(tx, session.run)?;
            take(tx, &run, &session, &now)
        })?;
        let took = start.elapsed().as_secs_f64() * 1e3;
        match taken {
            Ok(_) => Ok(took),
            Err(reason) => Err(format!("a claim got nothing: {reason}").into()),
        }
    }

    /// Counts what claims do, after `claimed` ones.
    fn count(&self, claimed: usize) -> Outcome<Steps> {
        let trace = |how: Option<fn(TraceEvent<'_>)>| {
            self.ctx.write("bench", |tx| {
                tx.trace_v2(TraceEventCodes::SQLITE_TRACE_PROFILE, how);
                Ok(())
            })
        };
        trace(Some(note))?;
        let before = taken_down();
        for call in claimed..claimed + COUNTED {
            self.claim(call)?;
        }
        let after = taken_down();
        trace(None)?;
        let mut found = Steps::default();
        for (sql, (steps, scans)) in after {
            let (old_steps, old_scans) = before.get(&sql).copied().unwrap_or_default();
            found.steps += steps - old_steps;
            found.scans += scans - old_scans;
            if scans > old_scans {
                found.scanning = sql;
            }
        }
        found.steps /= COUNTED as i64;
        found.scans /= COUNTED as i64;
        Ok(found)
    }
}

/// Finished rows of the same run, lane and role: jobs, attempts, messages and leases.
fn remember(connection: &Connection, rows: usize) -> Outcome<()> {
    connection.execute_batch(&format!(
        "PRAGMA foreign_keys = OFF; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;
         BEGIN;
         CREATE TEMP TABLE past (n INTEGER PRIMARY KEY);
         WITH RECURSIVE count (n) AS (SELECT 1000001 UNION ALL SELECT n + 1 FROM count WHERE n < 1000000 + {rows})
           INSERT INTO past SELECT n FROM count;
         INSERT INTO job (id, run_id, name, position, type, role, lane, spec, state, settled, unmet, attempt, fence,
             strikes, requeues, revisions, generation, changed_at)
           SELECT n, 1, 'past' || n, n, 'generic', 'worker', 't', '{{}}', 'completed', 1, 0, 1, 2, 0, 0, 0, 1, 0 FROM past;
         INSERT INTO attempt (job_id, number, session_id, fence, context, settles, outcome, queued_at)
           SELECT n, 1, n, 1, '{{}}', 0, 'sealed', 0 FROM past;
         INSERT INTO message (id, run_id, job_id, attempt, kind, role, lane, fresh, state, session_id, created_at)
           SELECT n, 1, n, 1, 'work', 'worker', 't', 0, 'done', n, 0 FROM past;
         INSERT INTO lease (id, run_id, job_id, attempt, session_id, lane, fence, state, granted_at, ended_at)
           SELECT n, 1, n, 1, n, 't', 1, 'released', 0, 0 FROM past;
         DROP TABLE past;
         COMMIT;
         PRAGMA journal_mode = WAL;"
    ))?;
    Ok(())
}

fn register(ctx: &Ctx, count: usize) -> Outcome<Vec<SessionId>> {
    let deadline = ctx.clock.moment().after(3_600_000);
    let sessions = ctx.write("register-session", |tx| {
        let new = NewSession {
            run: RunId(1),
            role: "worker",
            lane: "t",
            fresh: false,
            constrained: false,
            driven: false,
            offered: None,
            deadline: &deadline,
            token_hash: "",
            non_fresh_reason: None,
        };
        Ok((0..count).map(|_| striatum::store::session::insert(tx, &new)).collect::<Result<Vec<_>, _>>()?)
    })?;
    Ok(sessions)
}

/// Steps and steps through whole tables of each statement since the first look, by its text.
type Ledger = BTreeMap<String, (i64, i64)>;

/// The sums so far, and the counters of each statement when it was seen last: they only rise.
static SEEN: Mutex<(Ledger, Ledger)> = Mutex::new((BTreeMap::new(), BTreeMap::new()));

/// A statement ended.
fn note(event: TraceEvent<'_>) {
    let TraceEvent::Profile(statement, _) = event else { return };
    let counter = |which| i64::from(statement.get_status(which));
    let now = (counter(StatementStatus::VmStep), counter(StatementStatus::FullscanStep));
    let Ok(mut seen) = SEEN.lock() else { return };
    let (sums, last) = &mut *seen;
    let sql = statement.sql().into_owned();
    let before = last.insert(sql.clone(), now).filter(|before| before.0 <= now.0).unwrap_or_default();
    let sum = sums.entry(sql).or_default();
    *sum = (sum.0 + now.0 - before.0, sum.1 + now.1 - before.1);
}

fn taken_down() -> Ledger {
    SEEN.lock().map(|seen| seen.0.clone()).unwrap_or_default()
}
