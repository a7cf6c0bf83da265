//! Clocks that jump: wall time, suspend, another boot.

use crate::support::{TestRepo, Worker, wait_until};

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

const HOUR: i64 = 3_600_000;

fn started(instructions: &str) -> (TestRepo, String) {
    let repo = TestRepo::new();
    repo.write(".striatum/config.toml", "[limits]\nlease = \"30m\"\n");
    repo.workflow("w", ONE);
    repo.agent("draft", instructions);
    let run = repo.start("w");
    (repo, run)
}

#[test]
fn a_wall_clock_that_jumps_burns_nothing_of_a_hosted_agent() {
    let (repo, run) = started("hold work\ncomplete");
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
    for wall in [8 * HOUR, -24 * HOUR, 24 * 365 * HOUR] {
        repo.clock(wall, 0, None);
        repo.striatum(&["run", "drive", "--once"]).ok();
        assert_eq!(repo.job_state("draft"), "running");
    }
    repo.go("work");
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

/// A worker that holds the job, while nothing hosts it.
fn holding(repo: &TestRepo) -> Worker<'_> {
    let mut worker = repo.register("author", "script").sharing_process();
    assert_eq!(worker.claims(), "draft.1");
    worker.work(&["ack"]).ok();
    worker
}

#[test]
fn a_wall_clock_that_jumps_expires_no_lease() {
    let (repo, run) = started("complete");
    let worker = holding(&repo);
    for wall in [8 * HOUR, -24 * HOUR] {
        repo.clock(wall, 0, None);
        repo.striatum(&["run", "drive", "--once"]).ok();
        worker.work(&["heartbeat"]).ok();
    }
    worker.work(&["complete"]).ok();
    repo.check_completed(&run);
}

#[test]
fn a_suspended_machine_expires_no_lease_until_its_own_time_is_over() {
    let (repo, _) = started("complete");
    let worker = holding(&repo);
    // What a suspended machine counts on: the wall, not the monotonic clock.
    repo.clock(8 * HOUR, 29 * 60_000, None);
    repo.striatum(&["run", "drive", "--once"]).ok();
    assert_eq!(repo.job_state("draft"), "running");
    repo.clock(8 * HOUR, 31 * 60_000, None);
    worker.work(&["complete"]).refused(5, "lease_ended");
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 lost", "2 sealed"]);
    assert_eq!(repo.story(&["session.expired"]), ["session.expired s1"]);
    worker.work(&["complete"]).refused(5, "session_ended");
    repo.check_completed("w-1");
}

#[test]
fn a_verb_extends_a_lease_by_its_whole_length() {
    let (repo, run) = started("complete");
    let worker = holding(&repo);
    for minutes in [20, 40, 60] {
        repo.clock(0, minutes * 60_000, None);
        worker.work(&["heartbeat"]).ok();
        repo.striatum(&["run", "drive", "--once"]).ok();
    }
    worker.work(&["complete"]).ok();
    repo.check_completed(&run);
    assert_eq!(repo.count("lease"), 1);
}

#[test]
fn after_a_reboot_no_process_lives_and_the_lease_of_before_is_over() {
    let (repo, run) = started("complete");
    let worker = holding(&repo);
    repo.clock(60_000, -1_000_000_000, Some("another-boot"));
    worker.work(&["complete"]).refused(5, "lease_ended");
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 lost", "2 sealed"]);
    repo.check_completed(&run);
}

#[test]
fn a_reboot_under_a_hosted_agent_is_recovered() {
    let (repo, run) = started("hold work\ncomplete");
    let mut driver = repo.spawn(&["run", "drive"]);
    wait_until("the agent holds", || repo.notes().len() == 1 && repo.count("execution WHERE state = 'running'") == 1);
    let helper: i32 = repo.one("SELECT pid FROM supervisor", ());
    driver.kill();
    crate::support::kill(helper);
    crate::support::kill(repo.agent_pid("draft").unwrap());
    repo.go("work");
    repo.clock(60_000, -1_000_000, Some("another-boot"));
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start"]);
    repo.check_completed(&run);
}
