//! Somebody else writes for longer than anybody waits: a named error after a bounded wait, without burning time.

use rusqlite::Connection;
use striatum::os::lock::{WriteGuard, WriteRequest};

use crate::support::{Output, Running, TestRepo, is_alive, thread_cpu_ms, wait_until};

const ONE: &str =
    "[lanes.hand]\nmode = \"human\"\n[[jobs]]\nid = \"a\"\nrole = \"r\"\nlane = \"hand\"\ntree = \"none\"\n";

fn started() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    repo
}

fn register(repo: &TestRepo) -> Running {
    repo.spawn(&["register-session", "--role", "r", "--lane", "hand"])
}

/// The end of a command, and how much of the processor it used.
fn end_and_cpu(running: Running) -> (Output, u64) {
    let pid = running.pid();
    wait_until("it gives up", || !is_alive(pid));
    // Not reaped yet: the kernel still tells.
    let cpu = thread_cpu_ms(pid);
    (running.wait(), cpu)
}

#[test]
fn a_write_lock_that_is_held_for_long_is_told_with_its_holder_and_costs_no_cpu() {
    let repo = started();
    let request = WriteRequest { verb: "long write", timeout_ms: 1_000 };
    let guard = WriteGuard::acquire(&repo.dir().join("locks/write.lock"), request, &mut |_| {}).unwrap();
    let waiting = register(&repo);
    // Readers wait for nobody.
    repo.striatum(&["session", "list"]).ok();
    wait_until("it says whom it waits for", || waiting.stderr().contains("waiting for the store: pid "));
    let (output, cpu) = end_and_cpu(waiting);
    let output = output.exits(10);
    let holder = format!("pid {} (long write)", std::process::id());
    assert!(output.stderr.contains(&format!("waiting for the store: {holder} is writing")), "{output}");
    assert!(output.stderr.contains(&format!("error: the store is still held by {holder} after 10000 ms")), "{output}");
    assert!(cpu < 1_000, "{cpu} ms of processor time for a wait of 10 s");
    assert_eq!(repo.count("session"), 0);
    drop(guard);
    repo.register("r", "hand");
}

#[test]
fn a_browser_that_holds_the_database_itself_is_told_too() {
    let repo = started();
    let browser = Connection::open(repo.db()).unwrap();
    browser.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (output, cpu) = end_and_cpu(register(&repo));
    let output = output.exits(10);
    assert!(output.stderr.starts_with("error: the store is busy"), "{output}");
    assert!(!output.stderr.contains("database is locked"), "{output}");
    assert!(cpu < 1_000, "{cpu} ms of processor time for a wait of 10 s");
    browser.execute_batch("ROLLBACK").unwrap();
    repo.register("r", "hand");
}

#[test]
fn a_reader_that_never_ends_stops_no_writer() {
    let repo = started();
    let reader = Connection::open(repo.db()).unwrap();
    reader.execute_batch("BEGIN").unwrap();
    let count: i64 = reader.query_row("SELECT count(*) FROM event", (), |row| row.get(0)).unwrap();
    let mut worker = repo.register("r", "hand");
    worker.claims();
    worker.work(&["complete"]).ok();
    let still: i64 = reader.query_row("SELECT count(*) FROM event", (), |row| row.get(0)).unwrap();
    assert_eq!(still, count);
    assert!(repo.count("event") > count);
}
