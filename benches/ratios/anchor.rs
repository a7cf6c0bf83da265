//! The anchors: the least programs that do the same work, as modes of this binary.
//!
//! - `read DB`: open, the usual pragmas, one indexed read (R)
//! - `write DB`: the same with one immediate, durable write instead (W)
//! - `dag DB SHAPE PARALLEL`: a durable driver of a graph, two transactions a job, whose jobs run below `helper` (D)
//! - `helper DB`: the least supervisor: open, a transaction, `true` in a session of its own, a transaction
//! - `peak COMMAND..`: runs a command and prints its peak resident size in KiB

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension};

use crate::Outcome;
use crate::workload::Shape;

/// The first argument of this binary when it is to be an anchor.
pub const WORD: &str = "__anchor";

/// This binary as an anchor.
pub fn command(mode: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([WORD, mode]);
    command
}

/// Becomes an anchor.
pub fn run(mut words: impl Iterator<Item = String>) -> Outcome<()> {
    let mut word = || words.next().ok_or("an anchor's words are incomplete");
    match word()?.as_str() {
        "read" => read(&open(word()?)?),
        "write" => write(&mut open(word()?)?),
        "helper" => helper(&open(word()?)?),
        "dag" => dag(&word()?, word()?.parse()?, word()?.parse()?),
        "peak" => peak(&word()?, words.collect()),
        mode => Err(format!("there is no anchor {mode}").into()),
    }
}

/// Makes the database that `read` and `write` use.
pub fn make(path: &Path) -> Outcome<()> {
    let connection = open(path)?;
    connection.execute_batch(
        "CREATE TABLE item (id INTEGER PRIMARY KEY, value INTEGER NOT NULL);
         WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 1000)
         INSERT INTO item SELECT n, 0 FROM count;",
    )?;
    Ok(())
}

fn open(path: impl AsRef<Path>) -> Outcome<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;")?;
    Ok(connection)
}

fn read(connection: &Connection) -> Outcome<()> {
    connection.query_row("SELECT value FROM item WHERE id = ?1", [1], |row| row.get::<_, i64>(0))?;
    Ok(())
}

fn write(connection: &mut Connection) -> Outcome<()> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.execute("UPDATE item SET value = value + 1 WHERE id = ?1", [1])?;
    Ok(tx.commit()?)
}

fn helper(connection: &Connection) -> Outcome<()> {
    let note = |what: &str| connection.execute("INSERT INTO note (what) VALUES (?1)", [what]);
    note("started")?;
    rustix::process::setsid()?;
    let status = Command::new("true").stdin(Stdio::null()).status()?;
    note(if status.success() { "ended" } else { "failed" })?;
    Ok(())
}

fn peak(program: &str, words: Vec<String>) -> Outcome<()> {
    let status = Command::new(program).args(words).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN)?;
    println!("{}", usage.max_rss());
    if status.success() { Ok(()) } else { Err(format!("{program} failed").into()) }
}

const GRAPH: &str = "
  CREATE TABLE job (id INTEGER PRIMARY KEY, state TEXT NOT NULL, unmet INTEGER NOT NULL, fence INTEGER NOT NULL);
  CREATE INDEX job_ready ON job (id) WHERE state = 'ready';
  CREATE TABLE need (needed INTEGER NOT NULL, job INTEGER NOT NULL, PRIMARY KEY (needed, job)) WITHOUT ROWID;
  CREATE TABLE event (id INTEGER PRIMARY KEY, job INTEGER NOT NULL, what TEXT NOT NULL);
  CREATE TABLE note (id INTEGER PRIMARY KEY, what TEXT NOT NULL);";

const START: &str = "UPDATE job SET state = 'running', fence = fence + 1
  WHERE id = (SELECT id FROM job WHERE state = 'ready' ORDER BY id LIMIT 1) RETURNING id";

const DONE: &str = "UPDATE job SET state = 'done' WHERE id = ?1 AND state = 'running'";

const MEET: &str = "UPDATE job SET unmet = unmet - 1, state = CASE WHEN unmet = 1 THEN 'ready' ELSE state END
  WHERE id IN (SELECT job FROM need WHERE needed = ?1)";

const TELL: &str = "INSERT INTO event (job, what) VALUES (?1, ?2)";

fn dag(path: &str, shape: Shape, parallel: usize) -> Outcome<()> {
    let mut connection = open(path)?;
    let needs = shape.needs();
    fill(&mut connection, &needs)?;
    let mut running: HashMap<i32, i64> = HashMap::new();
    let mut left = needs.len();
    while left > 0 {
        while running.len() < parallel {
            let Some(job) = start(&mut connection)? else { break };
            let child = command("helper").arg(path).stdin(Stdio::null()).spawn()?;
            running.insert(i32::try_from(child.id())?, job);
        }
        let ended = nix::sys::wait::wait()?;
        let pid = ended.pid().ok_or("a child ended without a number")?.as_raw();
        done(&mut connection, running.remove(&pid).ok_or("a child that nobody started")?)?;
        left -= 1;
    }
    Ok(())
}

fn fill(connection: &mut Connection, needs: &[Vec<usize>]) -> Outcome<()> {
    connection.execute_batch(GRAPH)?;
    let tx = connection.transaction()?;
    for (job, needs) in needs.iter().enumerate() {
        let state = if needs.is_empty() { "ready" } else { "waiting" };
        tx.prepare_cached("INSERT INTO job VALUES (?1, ?2, ?3, 0)")?.execute((
            job as i64,
            state,
            needs.len() as i64,
        ))?;
        for need in needs {
            tx.prepare_cached("INSERT INTO need VALUES (?1, ?2)")?.execute((*need as i64, job as i64))?;
        }
    }
    Ok(tx.commit()?)
}

fn start(connection: &mut Connection) -> Outcome<Option<i64>> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let job = tx.prepare_cached(START)?.query_row([], |row| row.get(0)).optional()?;
    if let Some(job) = job {
        tx.prepare_cached(TELL)?.execute((job, "started"))?;
    }
    tx.commit()?;
    Ok(job)
}

fn done(connection: &mut Connection, job: i64) -> Outcome<()> {
    let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    tx.prepare_cached(DONE)?.execute([job])?;
    tx.prepare_cached(MEET)?.execute([job])?;
    tx.prepare_cached(TELL)?.execute((job, "done"))?;
    Ok(tx.commit()?)
}
