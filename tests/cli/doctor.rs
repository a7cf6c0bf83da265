//! `doctor`, `audit verify`: what they find, what they leave alone, and what they say when they could not look.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

use nix::sys::signal::Signal;
use rusqlite::Connection;
use serde_json::Value;
use striatum::store::{audit, invariant};

use super::drive::REVIEWED;
use super::status::mixed;
use crate::support::{Output, TestRepo, send, wait_until};

/// A reviewed run, done, with an artifact, a void verdict, a decided gate and a decision.
fn done() -> TestRepo {
    let repo = TestRepo::new();
    let more = "[[jobs]]\nid = \"look\"\ntype = \"checkpoint\"\nneeds = [\"review\"]\n";
    let produces = "tree = \"none\"\n    produces = [{ name = \"out\", path = \"out.txt\" }]";
    repo.workflow("w", &(REVIEWED.replacen("tree = \"none\"", produces, 1) + more));
    repo.agent("draft", "write out.txt $ATTEMPT; complete");
    repo.agent("review.1", "verdict needs_revision --finding 'bad: worse'");
    repo.start("w");
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "g1", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    wait_until("every lane has ended", || repo.count("supervisor WHERE ended_at IS NULL") == 0);
    repo
}

/// A hand in the file; rules and triggers are away meanwhile.
fn meddle(repo: &TestRepo, sql: &str) {
    let connection = Connection::open(repo.db()).unwrap();
    let mut statement = connection.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let triggers: Vec<(String, String)> = rows.map(Result::unwrap).collect();
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    for (name, _) in &triggers {
        connection.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    for (_, sql) in &triggers {
        connection.execute_batch(sql).unwrap();
    }
}

fn codes(report: &Value) -> BTreeSet<String> {
    let checks = report["checks"].as_array().unwrap().iter();
    let findings = checks.flat_map(|check| check["findings"].as_array().unwrap());
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn finds(repo: &TestRepo, code: &str) -> Value {
    let report = repo.json(&["doctor"]).exits(1).value();
    assert!(codes(&report).contains(code), "{code}: {report:#}");
    report
}

#[test]
fn a_sound_store_has_no_findings_before_during_and_after_a_run() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("draft", "hold x; complete");
    repo.prepare("w");
    repo.striatum(&["doctor"]).ok();
    repo.striatum(&["run", "start"]).ok();
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the draft is at work", || repo.agent_pid("draft").is_some());
    let during = repo.striatum(&["doctor"]).ok();
    assert!(during.stdout.contains("doctor: nothing is wrong"), "{during}");
    repo.striatum(&["audit", "verify"]).ok();
    repo.go("x");
    driver.wait().ok();
    wait_until("every lane has ended", || repo.count("supervisor WHERE ended_at IS NULL") == 0);
    assert_eq!(repo.json(&["doctor", "--all"]).ok().value()["findings"], 0);
    repo.striatum(&["audit", "verify"]).ok();
}

#[test]
fn runs_that_wait_for_a_person_or_were_repaired_are_sound_too() {
    let repo = mixed();
    repo.striatum(&["doctor"]).ok();
    repo.striatum(&["audit", "verify"]).ok();
    repo.striatum(&["answer", "asks", "euro", "--as-person"]).ok();
    repo.striatum(&["gate", "skip", "g1", "--note", "no", "--as-person"]).ok();
    repo.striatum(&["run", "retry-job", "fails", "--reason", "again"]).ok();
    repo.striatum(&["take", "mine", "--as-person"]).ok();
    repo.striatum(&["doctor"]).ok();
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    let report = repo.striatum(&["doctor"]).ok();
    assert!(report.stdout.contains("nothing is wrong"), "{report}");
    let audit = repo.striatum(&["audit", "verify"]).ok();
    assert!(audit.stdout.contains("the log is whole and bears out the rows"), "{audit}");
    done().striatum(&["audit", "verify"]).ok();
}

/// For each rule between rows a hand that breaks it, in a run that is under way.
const BREAKS: &[(&str, &str)] = &[
    ("lease_missing", "UPDATE lease SET state = 'expired' WHERE state = 'active'"),
    ("lease_stray", "UPDATE job SET fence = fence + 1 WHERE state = 'running'"),
    ("holder_over", "UPDATE session SET state = 'lost' WHERE state = 'active'"),
    ("message_stray", "UPDATE lease SET state = 'expired' WHERE state = 'active'"),
    ("message_missing", "UPDATE message SET state = 'done' WHERE state = 'acked'"),
    ("offer_missing", "UPDATE message SET state = 'canceled' WHERE state = 'pending'"),
    ("offer_stray", "UPDATE job SET state = 'waiting' WHERE name = 'other'"),
    ("attempt_open", "UPDATE job SET state = 'failed' WHERE state = 'running'"),
    ("attempt_closed", "UPDATE attempt SET outcome = 'failed' WHERE outcome IS NULL"),
    ("attempt_number", "UPDATE job SET attempt = 4 WHERE name = 'other'"),
    ("unmet_wrong", "UPDATE job SET unmet = 0 WHERE name = 'after'"),
    ("settled_wrong", "UPDATE job SET settled = 1 WHERE state = 'running'"),
    ("phase_stray", "UPDATE job SET phase = 'working' WHERE name = 'after'"),
    ("gate_stray", "UPDATE run SET state = 'failed'"),
    ("run_open", "UPDATE run SET state = 'completed'"),
    ("run_unlike", "UPDATE run SET generation = 7"),
    ("supervisor_over", "UPDATE session SET state = 'closed' WHERE state = 'active'"),
    ("execution_over", "UPDATE session SET state = 'closed' WHERE state = 'active'"),
];

const UNDER_WAY: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.me]
    mode = "human"
    [[jobs]]
    id = "work"
    role = "r"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "other"
    role = "p"
    lane = "me"
    tree = "none"
    [[jobs]]
    id = "after"
    role = "r"
    lane = "script"
    tree = "none"
    needs = ["work", "other"]
    [[jobs]]
    id = "gate"
    type = "checkpoint"
"#;

#[test]
fn every_rule_between_rows_is_found_broken_where_it_is() {
    let repo = TestRepo::new();
    repo.workflow("w", UNDER_WAY);
    repo.agent("work", "hang");
    repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("work and gate", || repo.agent_pid("work").is_some() && repo.count("gate") == 1);
    driver.kill();
    for process in repo.processes() {
        send(process.pid, Signal::SIGKILL);
    }
    wait_until("everything is still", || repo.processes().is_empty());
    let copy = std::fs::read(repo.db()).unwrap();
    let log = std::fs::read(repo.dir().join("striatum.db-wal")).unwrap();
    for rule in invariant::ALL {
        let (_, sql) = BREAKS.iter().find(|(code, _)| *code == rule.code).unwrap_or_else(|| panic!("{}", rule.code));
        let before = repo.json(&["doctor"]).exits(1).value();
        assert!(!codes(&before).contains(rule.code), "{}: {before:#}", rule.code);
        meddle(&repo, sql);
        finds(&repo, rule.code);
        let _ = std::fs::remove_file(repo.dir().join("striatum.db-shm"));
        std::fs::write(repo.db(), &copy).unwrap();
        std::fs::write(repo.dir().join("striatum.db-wal"), &log).unwrap();
    }
}

#[test]
fn a_dead_helper_is_named_with_the_command_that_recovers_it() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("draft.1", "hang");
    repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the draft hangs", || repo.agent_pid("draft").is_some() && !repo.notes().is_empty());
    driver.kill();
    for process in repo.processes() {
        send(process.pid, Signal::SIGKILL);
    }
    wait_until("everything is still", || repo.processes().is_empty());
    let report = finds(&repo, "helper_dead");
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["check"] == "helpers").unwrap();
    assert_eq!(check["findings"][0]["fix"]["argv"], serde_json::json!(["striatum", "run", "drive", "--run-id", "w-1"]));
    repo.drive().ok();
    wait_until("every lane has ended", || repo.count("supervisor WHERE ended_at IS NULL") == 0);
    repo.striatum(&["doctor"]).ok();
}

#[test]
fn what_lies_beside_the_store_is_looked_at() {
    let repo = done();
    std::fs::create_dir(repo.dir().join("scratch/s99")).unwrap();
    let report = repo.json(&["doctor"]).ok().value();
    assert_eq!((report["warnings"].as_u64(), codes(&report)), (Some(1), ["scratch_left".to_owned()].into()));

    let mut left = repo.command_of("sleep", &["600"]);
    left.env("STRIATUM_DIR", repo.dir()).env("STRIATUM_SESSION", "s1");
    let mut running = repo.spawn_command(left);
    let report = finds(&repo, "process_left");
    assert!(report.to_string().contains(&format!("[\"kill\",\"{}\"]", running.pid())), "{report}");
    running.kill();

    let sha256: String = repo.one("SELECT sha256 FROM artifact ORDER BY id DESC LIMIT 1", ());
    let path = repo.dir().join("artifacts").join(sha256);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, "other\n").unwrap();
    finds(&repo, "artifact_damaged");
    std::fs::remove_file(&path).unwrap();
    assert!(finds(&repo, "artifact_damaged").to_string().contains("it is missing"));
}

#[test]
fn a_changed_schema_and_open_files_are_found() {
    let repo = done();
    std::fs::set_permissions(repo.db(), std::fs::Permissions::from_mode(0o666)).unwrap();
    finds(&repo, "writable_by_others");
    std::fs::set_permissions(repo.db(), std::fs::Permissions::from_mode(0o600)).unwrap();
    meddle(&repo, "DROP INDEX job_open");
    let report = finds(&repo, "schema_drift");
    assert_eq!(report["findings"], 1);
    meddle(&repo, "UPDATE attempt SET session_id = 999 WHERE number = 1");
    finds(&repo, "row_dangling");
}

#[test]
fn a_check_that_could_not_run_is_no_check_that_found_nothing() {
    let repo = done();
    let mut command = repo.command(&["doctor"]);
    command.env("PATH", repo.root().join("tmp"));
    let output = Output::of(&mut command, repo.root()).exits(11);
    let line = output.lines().into_iter().find(|line| line.starts_with("not run")).unwrap().to_owned();
    assert!(line.contains("git was not found"), "{output}");
    assert!(output.stdout.contains("doctor: 1 not run"), "{output}");
}

#[test]
fn damage_is_told_and_nothing_is_changed() {
    let repo = done();
    Connection::open(repo.db()).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let mut bytes = std::fs::read(repo.db()).unwrap();
    let (start, end) = (bytes.len() / 2 / 4096 * 4096, bytes.len() / 2 / 4096 * 4096 + 8192);
    bytes[start..end].fill(0x5a);
    std::fs::write(repo.db(), &bytes).unwrap();
    finds(&repo, "store_corrupt");
    assert_eq!(std::fs::read(repo.db()).unwrap(), bytes);
}

/// For each rule of the log a hand that breaks it, in a finished run.
const LIES: &[(&str, &str)] = &[
    ("seal_untold", "UPDATE event SET type = 'job.acked' WHERE type = 'job.sealed'"),
    ("seal_unmade", "UPDATE attempt SET outcome = 'failed' WHERE outcome = 'sealed'"),
    ("completion_untold", "UPDATE event SET type = 'job.acked' WHERE type = 'job.sealed'"),
    ("run_untold", "UPDATE run SET state = 'failed'"),
    ("verdict_untold", "DELETE FROM verdict WHERE verdict = 'needs_revision'"),
    ("artifact_untold", "UPDATE artifact SET name = 'else'"),
    ("gate_untold", "UPDATE gate SET state = 'rejected'"),
    (
        "decision_untold",
        "INSERT INTO decision (run_id, kind, body, reason, principal, how, decided_at)
        VALUES (1, 'retry', '{}', 'x', 'user:x', 'x', 0)",
    ),
    ("session_untold", "UPDATE event SET type = 'session.registered' WHERE type = 'session.closed'"),
    ("lease_untold", "UPDATE event SET body = '{}' WHERE type = 'lease.granted'"),
];

#[test]
fn every_rule_of_the_log_is_found_broken() {
    let repo = done();
    Connection::open(repo.db()).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let copy = std::fs::read(repo.db()).unwrap();
    for rule in audit::ALL {
        let (_, sql) = LIES.iter().find(|(code, _)| *code == rule.code).unwrap_or_else(|| panic!("{}", rule.code));
        repo.striatum(&["audit", "verify"]).ok();
        meddle(&repo, sql);
        let report = repo.json(&["audit", "verify"]).exits(1).value();
        assert!(
            report["violations"].as_array().unwrap().iter().any(|one| one["code"] == rule.code),
            "{}: {report:#}",
            rule.code
        );
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(repo.dir().join(format!("striatum.db{end}")));
        }
        std::fs::write(repo.db(), &copy).unwrap();
    }
}

#[test]
fn a_changed_an_inserted_and_a_missing_event_break_the_chain_where_they_are() {
    let broken = |sql: &str| {
        let repo = done();
        meddle(&repo, sql);
        let report = repo.json(&["audit", "verify"]).exits(1).value();
        let is_chain = |one: &&Value| one["code"] == "chain_broken";
        let links: Vec<String> = report["violations"]
            .as_array()
            .unwrap()
            .iter()
            .filter(is_chain)
            .map(|one| format!("{}: {}", one["place"].as_str().unwrap(), one["what"].as_str().unwrap()))
            .collect();
        links
    };
    assert_eq!(broken("UPDATE event SET principal = 'user:nobody' WHERE id = 7"), ["event 7: its content was changed"]);
    assert_eq!(broken("DELETE FROM event WHERE id = 7"), ["event 8: events before it are missing"]);
    let snapshot = done();
    meddle(&snapshot, "UPDATE snapshot SET body = replace(body, 'draft', 'drift')");
    let report = snapshot.json(&["audit", "verify"]).exits(1).value();
    assert_eq!(report["violations"][0]["code"], "snapshot_changed");
}
