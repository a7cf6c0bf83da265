//! What stands where the store should be: newer, foreign, damaged, empty, moved away. Nothing is ever written to it.

use std::os::unix::fs::MetadataExt;

use rusqlite::Connection;

use crate::support::{TestRepo, wait_until};

const ONE: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "job"
    role = "maker"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "look"
    role = "person"
    lane = "hand"
    tree = "none"
"#;

fn started() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    repo
}

/// Folds the log into the file, so that the file alone is the store.
fn change(repo: &TestRepo, sql: &str) {
    let connection = Connection::open(repo.db()).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    drop(connection);
}

/// Every verb that reads, and some that write, refuse with this code and leave the file as it is.
fn everything_refuses(repo: &TestRepo, code: &str) -> String {
    let before = std::fs::read(repo.db()).unwrap();
    let verbs: [&[&str]; 6] = [
        &["session", "list"],
        &["register-session", "--role", "person", "--lane", "hand"],
        &["run", "prepare", "-w", "w"],
        &["run", "start"],
        &["run", "drive"],
        &["status"],
    ];
    let mut message = String::new();
    for verb in verbs {
        message = repo.json(verb).refused(9, code)["message"].as_str().unwrap().to_owned();
    }
    assert!(std::fs::read(repo.db()).unwrap() == before, "the file was changed");
    message
}

#[test]
fn a_store_of_a_newer_version_is_refused_and_stays_byte_for_byte() {
    let repo = started();
    change(&repo, "PRAGMA user_version = 99; UPDATE store SET made_by = '7.5.0'");
    let message = everything_refuses(&repo, "store_newer");
    assert!(message.starts_with("the store was made by 7.5.0 (schema 99), this is "), "{message}");
}

#[test]
fn a_database_of_another_program_is_refused_and_stays_byte_for_byte() {
    let repo = started();
    change(&repo, "PRAGMA application_id = 1234");
    everything_refuses(&repo, "store_foreign");

    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.trust();
    change(&repo, "CREATE TABLE bookmarks (url TEXT); INSERT INTO bookmarks VALUES ('x')");
    everything_refuses(&repo, "store_foreign");
}

#[test]
fn a_file_that_is_no_database_is_refused_and_stays_byte_for_byte() {
    let repo = started();
    change(&repo, "PRAGMA user_version = 1");
    let mut bytes = std::fs::read(repo.db()).unwrap();
    bytes[..16].copy_from_slice(b"not a database!!");
    std::fs::write(repo.db(), bytes).unwrap();
    everything_refuses(&repo, "store_corrupt");

    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.trust();
    std::fs::write(repo.db(), vec![b'x'; 4096]).unwrap();
    everything_refuses(&repo, "store_corrupt");
}

#[test]
fn a_file_that_was_cut_off_is_not_taken_for_a_new_store() {
    let repo = started();
    change(&repo, "PRAGMA user_version = 1");
    for file in ["striatum.db-wal", "striatum.db-shm"] {
        let _ = std::fs::remove_file(repo.dir().join(file));
    }
    std::fs::write(repo.db(), "").unwrap();
    let refused = repo.json(&["session", "list"]).exits(9).value();
    assert!(refused["code"].as_str().unwrap().starts_with("store_"), "{refused}");
    repo.json(&["run", "start"]).exits(9).value();
    assert_eq!(std::fs::metadata(repo.db()).unwrap().size(), 0);
}

#[test]
fn a_driver_whose_store_is_replaced_writes_to_neither_file() {
    let repo = started();
    repo.agent("job", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms", "--wait-human"]);
    wait_until("the agent works", || repo.effects().len() == 1);
    // Somebody restores an old copy, or git checks another one out.
    let (away, other) = (repo.dir().join("away.db"), repo.dir().join("other.db"));
    let copy = Connection::open(&other).unwrap();
    copy.execute_batch("CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('untouched')").unwrap();
    drop(copy);
    let before = std::fs::read(&other).unwrap();
    std::fs::rename(repo.db(), &away).unwrap();
    std::fs::rename(&other, repo.db()).unwrap();
    repo.go("on");
    let driver = driver.wait().exits(9);
    assert!(driver.stderr.contains("was moved, replaced or deleted while in use"), "{driver}");
    assert!(std::fs::read(repo.db()).unwrap() == before, "the other file was written");
    wait_until("its helper ends", || repo.processes().is_empty());
    // The way back: put the store where it was and drive on; the agent's work is not lost twice.
    std::fs::remove_file(repo.db()).unwrap();
    std::fs::rename(&away, repo.db()).unwrap();
    repo.striatum(&["run", "drive"]).exits(4);
    assert_eq!(repo.job_state("job"), "completed");
    assert_eq!(repo.rows("PRAGMA integrity_check"), ["ok"]);
}

#[test]
fn a_driver_whose_store_is_deleted_makes_no_new_one() {
    let repo = started();
    repo.agent("job", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms", "--wait-human"]);
    wait_until("the agent works", || repo.effects().len() == 1);
    for file in ["striatum.db", "striatum.db-wal", "striatum.db-shm"] {
        std::fs::remove_file(repo.dir().join(file)).unwrap();
    }
    // Nor does anybody else while the run lives.
    repo.json(&["run", "prepare", "-w", "w"]).exits(9).value();
    repo.go("on");
    driver.wait().exits(9);
    assert!(!repo.db().exists());
}
