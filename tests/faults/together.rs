//! Several at once: drivers, starters, deciders, stoppers; four runs over one store with a shared lane.

use std::process::Command;

use crate::support::{Output, TestRepo, wait_until};

const ONE: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "50s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
"#;

/// Starts all, then waits for all.
fn at_once(repo: &TestRepo, commands: Vec<Command>) -> Vec<Output> {
    let running: Vec<_> = commands.into_iter().map(|command| repo.spawn_command(command)).collect();
    running.into_iter().map(crate::support::Running::wait).collect()
}

fn same(repo: &TestRepo, words: &[&str], count: usize) -> Vec<Output> {
    at_once(repo, (0..count).map(|_| repo.command(words)).collect())
}

#[test]
fn a_run_is_started_once_however_many_start_it() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    let run = repo.prepare("w");
    for output in same(&repo, &["run", "start", "--run-id", &run], 6) {
        assert!(output.code == 0 || output.code == 5, "{output}");
    }
    assert_eq!(repo.count("event WHERE type = 'run.started'"), 1);
    assert_eq!(repo.count("event WHERE type = 'job.queued'"), 1);
    repo.drive().ok();
    repo.check_completed(&run);
}

#[test]
fn a_gate_is_decided_once_however_many_decide_it() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("{ONE}\n[[jobs]]\nid = \"look\"\ntype = \"checkpoint\"\nneeds = [\"draft\"]\n"));
    let run = repo.start("w");
    repo.drive().exits(4);
    for output in same(&repo, &["gate", "approve", "g1", "--as-person", "--yes"], 4) {
        assert!(output.code == 0 || output.code == 5, "{output}");
    }
    assert_eq!(repo.count("event WHERE type = 'gate.approved'"), 1);
    repo.check_completed(&run);
}

#[test]
fn opposite_decisions_at_once_are_one_decision() {
    for _ in 0..3 {
        let repo = TestRepo::new();
        repo.workflow("w", &format!("{ONE}\n[[jobs]]\nid = \"look\"\ntype = \"checkpoint\"\nneeds = [\"draft\"]\n"));
        repo.start("w");
        repo.drive().exits(4);
        let words = |word: &'static str| repo.command(&["gate", word, "g1", "--note", "so", "--as-person", "--yes"]);
        let told = at_once(&repo, vec![words("approve"), words("reject"), words("skip")]);
        assert_eq!(told.iter().filter(|output| output.code == 0).count(), 1, "{told:?}");
        assert_eq!(repo.count("gate WHERE state = 'pending'"), 0);
        assert_eq!(repo.count("event WHERE type IN ('gate.approved', 'gate.rejected', 'gate.skipped')"), 1);
        repo.check_nobody_left();
        repo.check_rows();
    }
}

#[test]
fn a_stopped_session_under_a_driver_gives_its_work_to_another() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the agent holds", || repo.notes().len() == 1);
    repo.striatum(&["supervise", "stop", "--session-id", "s1", "--reason", "enough"]).ok();
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 interrupted", "2 sealed"]);
}

#[test]
fn closing_a_hosted_session_is_refused_and_closing_a_registered_one_is_driven_around() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft", "hold work\ncomplete");
    let run = repo.start("w");
    let worker = repo.register("author", "script");
    repo.striatum(&["session", "close", "--session-id", &worker.session, "--reason", "not needed"]).ok();
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the agent holds", || repo.notes().len() == 1);
    repo.striatum(&["session", "close", "--session-id", "s2", "--reason", "enough"]).exits(5);
    repo.go("work");
    driver.wait().ok();
    repo.check_completed(&run);
}

#[test]
fn sessions_that_are_registered_and_closed_all_the_time_hold_up_no_driver() {
    let repo = TestRepo::new();
    let jobs: String = (0..6)
        .map(|number| {
            format!("\n[[jobs]]\nid = \"job{number}\"\nrole = \"author\"\nlane = \"script\"\ntree = \"none\"\n")
        })
        .collect();
    repo.workflow("w", &format!("[lanes.script]\ncommand = \"@agent\"\n{jobs}"));
    let run = repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    while !driver.has_ended() {
        let registered = repo.json(&["register-session", "--run-id", &run, "--role", "author", "--lane", "script"]);
        if registered.code == 0 {
            let session = registered.value()["session"].as_str().unwrap().to_owned();
            let closed = repo.striatum(&["session", "close", "--session-id", &session, "--reason", "again"]);
            // The driver adopted it meanwhile: then it works.
            assert!(closed.code == 0 || closed.code == 5, "{closed}");
        }
    }
    driver.wait().ok();
    repo.check_completed(&run);
}

/// Four in a row after a fan-out of four.
fn wide() -> String {
    let mut text = String::from("[lanes.script]\ncommand = \"@agent\"\ntimeout = \"50s\"\nmax_sessions = 2\n");
    for number in 0..4 {
        text.push_str(&format!(
            "[[jobs]]\nid = \"part{number}\"\nrole = \"author\"\nlane = \"script\"\ntree = \"none\"\n"
        ));
    }
    text.push_str("[[jobs]]\nid = \"sum\"\nrole = \"author\"\nlane = \"script\"\ntree = \"none\"\n");
    text.push_str("needs = [\"part0\", \"part1\", \"part2\", \"part3\"]\n");
    text
}

#[test]
fn four_runs_with_four_drivers_share_a_lane_and_never_exceed_it() {
    let repo = TestRepo::new();
    repo.workflow("w", &wide());
    let runs: Vec<String> = (0..4).map(|_| repo.start("w")).collect();
    let drive = |run: &String| repo.command(&["run", "drive", "--run-id", run, "--interval", "100ms"]);
    for output in at_once(&repo, runs.iter().map(drive).collect()) {
        assert_eq!(output.code, 0, "{output}\n{}", repo.told());
    }
    for run in &runs {
        assert_eq!(repo.run_state(run), "completed");
    }
    repo.check_nobody_left();
    repo.check_sound();
    assert_eq!(repo.effects().len(), 20);
    let most = repo.most_held();
    assert!(most["script"] <= 2, "{most:?}");
}

#[test]
fn a_killed_driver_of_several_is_replaced_by_whoever_stands_by() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft", "hold work\ncomplete");
    let run = repo.start("w");
    let mut first = repo.spawn(&["run", "drive"]);
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
    let others: Vec<_> = (0..2).map(|_| repo.spawn(&["run", "drive"])).collect();
    for other in &others {
        wait_until("it stands by", || other.stdout().contains("standing by") || other.stderr().contains("standing by"));
    }
    first.kill();
    crate::support::kill(repo.one("SELECT pid FROM supervisor", ()));
    repo.go("work");
    for other in others {
        other.wait().ok();
    }
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}
