//! Stores that can't be read: each its own error, never "nothing here", and left as they are.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use rusqlite::Connection;

use super::status::READS;
use crate::support::{Output, TestRepo};

/// Nobody in particular, for tests that the superuser's rights would spoil.
const NOBODY: u32 = 65_534;

/// A store with one run, whole in its one file.
fn folded() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("gate", "[[jobs]]\nid = \"go\"\ntype = \"checkpoint\"\n");
    repo.start("gate");
    Connection::open(repo.db()).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(repo.dir().join(format!("striatum.db{end}")));
    }
    repo
}

/// Every read refuses the file with this code and leaves its bytes alone.
#[track_caller]
fn refused(repo: &TestRepo, code: &str) {
    let before = std::fs::read(repo.db()).unwrap();
    let more: [&[&str]; 3] = [&["job", "show", "go"], &["logs", "go"], &["run", "start"]];
    for words in READS.iter().chain(&more) {
        if words[0] == "doctor" && code == "store_corrupt" {
            let report = repo.json(words).exits(1).value();
            assert!(report.to_string().contains(code), "{report}");
        } else {
            repo.json(words).refused(9, code);
        }
        assert!(std::fs::read(repo.db()).unwrap() == before, "{words:?} changed the file");
    }
}

#[test]
fn a_file_without_anything_in_it_is_damage_and_stays_empty() {
    let repo = folded();
    std::fs::write(repo.db(), "").unwrap();
    refused(&repo, "store_corrupt");
}

#[test]
fn a_file_that_was_cut_off_is_damage() {
    let repo = folded();
    let bytes = std::fs::read(repo.db()).unwrap();
    std::fs::write(repo.db(), &bytes[..700]).unwrap();
    refused(&repo, "store_corrupt");
}

#[test]
fn a_file_whose_head_was_overwritten_is_damage() {
    let repo = folded();
    let mut bytes = std::fs::read(repo.db()).unwrap();
    bytes[..100].fill(b'x');
    std::fs::write(repo.db(), &bytes).unwrap();
    refused(&repo, "store_corrupt");
}

#[test]
fn another_programs_database_is_not_ours() {
    let repo = folded();
    std::fs::remove_file(repo.db()).unwrap();
    Connection::open(repo.db()).unwrap().execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)").unwrap();
    refused(&repo, "store_foreign");
}

#[test]
fn a_newer_store_is_refused_by_the_version_that_made_it() {
    let repo = folded();
    let connection = Connection::open(repo.db()).unwrap();
    connection.execute_batch("PRAGMA user_version = 99; UPDATE store SET made_by = '9.9.9'").unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    drop(connection);
    refused(&repo, "store_newer");
    let error = repo.json(&["status"]).refused(9, "store_newer");
    assert!(error["message"].as_str().unwrap().contains("9.9.9"), "{error}");
}

/// Gives the test's folder to somebody without the superuser's rights, with a copy of the program, when this is one.
fn as_somebody(repo: &TestRepo, words: &[&str]) -> Output {
    let program = repo.root().join("striatum");
    let mut command = repo.command_of(&program, words);
    if nix::unistd::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    repo.run(command.arg("--json"))
}

fn give_away(repo: &TestRepo) {
    std::fs::copy(crate::support::STRIATUM, repo.root().join("striatum")).unwrap();
    if nix::unistd::geteuid().is_root() {
        give(repo.root());
    }
}

fn give(path: &Path) {
    std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_may_not_be_read_is_unreadable_and_not_empty() {
    let repo = folded();
    give_away(&repo);
    as_somebody(&repo, &["status"]).ok();

    mode(&repo.db(), 0o000);
    let error = as_somebody(&repo, &["status"]).refused(9, "store_unreadable");
    assert!(!error["causes"].as_array().unwrap().is_empty(), "{error}");
    as_somebody(&repo, &["doctor"]).refused(9, "store_unreadable");
    mode(&repo.db(), 0o600);

    mode(&repo.dir(), 0o000);
    as_somebody(&repo, &["status"]).refused(9, "store_unreadable");
    as_somebody(&repo, &["run", "list"]).refused(9, "store_unreadable");
    mode(&repo.dir(), 0o700);
    assert_eq!(as_somebody(&repo, &["run", "list"]).ok().value()["runs"][0]["run"], "gate-1");
}

#[test]
fn a_folder_that_may_not_be_written_is_read_or_refused_and_never_taken_for_empty() {
    let repo = folded();
    give_away(&repo);
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(repo.dir().join(format!("striatum.db{end}")));
    }
    mode(&repo.dir(), 0o555);
    let output = as_somebody(&repo, &["run", "list"]);
    if output.code == 0 {
        assert_eq!(output.value()["runs"][0]["run"], "gate-1");
    } else {
        output.refused(9, "store_unreadable");
    }
    mode(&repo.dir(), 0o755);
    as_somebody(&repo, &["run", "list"]).ok();
    mode(&repo.dir(), 0o555);
    assert_eq!(as_somebody(&repo, &["run", "list"]).ok().value()["runs"][0]["run"], "gate-1");
    mode(&repo.dir(), 0o755);
}
