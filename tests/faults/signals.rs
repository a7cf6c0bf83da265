//! What a terminal does to a driver, what a crowd of processes does to a helper, and what must never be written down.

use std::path::Path;

use crate::support::{TestRepo, wait_until};
use nix::sys::signal::Signal;

const ONE: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "50s"
    LANE
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
"#;

fn one(lane: &str, instructions: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.write(".striatum/config.toml", "[limits]\ngrace = \"200ms\"\n");
    repo.workflow("w", &ONE.replace("LANE", lane));
    repo.agent("draft", instructions);
    repo
}

fn holds(repo: &TestRepo) {
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
}

#[test]
fn a_driver_whose_reader_has_gone_harms_no_run() {
    let repo = one("", "hold work\ncomplete");
    let run = repo.start("w");
    let mut command = repo.command(&["run", "drive", "--interval", "50ms", "--heartbeat", "20ms"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut driver = command.spawn().unwrap();
    holds(&repo);
    drop(driver.stdout.take());
    drop(driver.stderr.take());
    repo.go("work");
    let status = driver.wait().unwrap();
    assert!(status.code().is_some(), "a signal ended it: {status}");
    if repo.run_state(&run) != "completed" {
        repo.drive().ok();
    }
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

#[test]
fn a_hang_up_ends_the_driver_and_its_lanes_live() {
    for signal in [Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT] {
        let repo = one("", "hold work\ncomplete");
        let run = repo.start("w");
        // Whoever runs the tests may ignore hang-ups, and what is ignored stays so.
        let words = ["--default-signal", crate::support::STRIATUM, "run", "drive"];
        let driver = repo.spawn_command(repo.command_of("env", &words));
        holds(&repo);
        driver.signal(signal);
        driver.wait().exits(130);
        assert!(crate::support::is_alive(repo.agent_pid("draft").unwrap()));
        repo.go("work");
        repo.drive_if_live(&run);
        repo.check_completed(&run);
        assert_eq!(repo.effect_lines(), ["draft.1 start"]);
    }
}

#[test]
fn a_driver_that_is_suspended_and_continued_goes_on() {
    let repo = one("", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    holds(&repo);
    driver.signal(Signal::SIGTSTP);
    driver.signal(Signal::SIGCONT);
    repo.go("work");
    driver.wait().ok();
    repo.check_completed(&run);
}

#[test]
fn a_helper_that_is_told_to_end_ends_its_agent_and_the_attempt_costs_nothing() {
    let repo = one("", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    holds(&repo);
    crate::support::send(repo.one("SELECT pid FROM supervisor", ()), Signal::SIGTERM);
    repo.go("work");
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 interrupted", "2 sealed"]);
    assert_eq!(repo.rows("SELECT strikes, requeues FROM job"), ["0 0"]);
}

#[test]
fn a_crowd_of_processes_is_ended() {
    let crowd =
        "n=0; while [ $n -lt 120 ]; do setsid sh -c 'trap \"\" TERM HUP; exec sleep 3600' & n=$((n+1)); done\ncomplete";
    let repo = one("", crowd);
    let run = repo.start("w");
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}");
    repo.check_completed(&run);
}

/// Every file below a folder that holds these bytes.
fn files_with(folder: &Path, wanted: &[u8], found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_with(&entry.path(), wanted, found);
        } else if kind.is_file() {
            let bytes = std::fs::read(entry.path()).unwrap();
            if bytes.windows(wanted.len()).any(|part| part == wanted) {
                found.push(entry.path().display().to_string());
            }
        }
    }
}

#[test]
fn values_of_the_environment_are_written_nowhere() {
    const CANARY: &str = "canary-5f0d2c7e";
    let repo = one("env = [\"SECRET\"]", "[ \"$SECRET\" = canary-5f0d2c7e ] && complete");
    std::fs::remove_file(repo.root().join("agent/do/draft")).unwrap();
    repo.agent("draft", "[ \"${SECRET%-*}\" = canary ] && complete");
    let run = repo.start("w");
    let mut command = repo.command(&["run", "drive"]);
    command.env("SECRET", CANARY).env("UNLISTED", CANARY);
    repo.run(&mut command).ok();
    repo.check_completed(&run);
    let mut found = Vec::new();
    files_with(&repo.path(), CANARY.as_bytes(), &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_token_is_in_no_command_line_no_environment_and_no_row() {
    let repo = one("", "hold work\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    holds(&repo);
    let token = std::fs::read_to_string(repo.dir().join("scratch/s1/token")).unwrap();
    let token = token.trim().as_bytes().to_vec();
    assert!(token.len() >= 16);
    for process in repo.processes() {
        for file in ["cmdline", "environ"] {
            let bytes = std::fs::read(format!("/proc/{}/{file}", process.pid)).unwrap_or_default();
            assert!(!bytes.windows(token.len()).any(|part| part == token), "{file} of {process:?}");
        }
    }
    repo.go("work");
    driver.wait().ok();
    let mut found = Vec::new();
    files_with(&repo.path(), &token, &mut found);
    assert!(found.iter().all(|path| path.ends_with("/token")), "{found:?}");
    repo.check_completed(&run);
}

#[test]
fn an_artifact_that_was_damaged_later_keeps_the_run_from_completing() {
    let repo = TestRepo::new();
    let two = ONE
        .replace("LANE", "")
        .replace("id = \"draft\"", "id = \"draft\"\nproduces = [{ name = \"text\", path = \"out.txt\" }]");
    repo.workflow("w", &format!("{two}\n[[jobs]]\nid = \"sum\"\nrole = \"author\"\nlane = \"script\"\nneeds = [\"draft\"]\ntree = \"none\"\n"));
    repo.agent("draft", "write out.txt text\ncomplete");
    repo.agent(
        "sum",
        "for file in \"$STRIATUM_DIR\"/artifacts/*; do chmod u+w \"$file\"; echo more >> \"$file\"; done\ncomplete",
    );
    let run = repo.start("w");
    let driven = repo.drive().exits(3);
    assert_eq!(repo.run_state(&run), "needs_operator", "{driven}");
    assert!(format!("{driven}").contains("damaged"), "{driven}");
    repo.check_nobody_left();
    let doctor = repo.striatum(&["doctor"]).exits(1);
    assert!(doctor.stdout.contains("artifact"), "{doctor}");
}

impl TestRepo {
    /// Drives a run that may be over by now.
    fn drive_if_live(&self, run: &str) {
        let driven = self.striatum(&["run", "drive", "--run-id", run]);
        assert_eq!(driven.code, 0, "{driven}\n{}", self.told());
    }
}
