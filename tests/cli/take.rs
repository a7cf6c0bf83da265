//! `take` and `give`: a person works a job, and gives it back.

use super::control::ONE;
use super::drive::REVIEWED;
use crate::support::{TestRepo, is_alive, next_commands, wait_until};

/// A job of a person's lane, checked before it counts.
const BY_HAND: &str = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "sign"
    role = "owner"
    lane = "hand"
    tree = "none"
    produces = [{ name = "signature", path = "signed.txt" }]
    verify = "grep -q agreed signed.txt"
"#;

fn waiting_for_a_hand() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", BY_HAND);
    repo.start("w");
    repo.drive().exits(4);
    repo
}

fn take(repo: &TestRepo, job: &str) -> serde_json::Value {
    repo.json(&["take", job, "--as-person"]).ok().value()
}

#[test]
fn a_person_takes_a_job_works_it_and_gives_it_back_done() {
    let repo = waiting_for_a_hand();
    let taken = take(&repo, "sign");
    assert_eq!((&taken["attempt"], &taken["already"]), (&1.into(), &false.into()));
    assert_eq!(next_commands(&taken), ["striatum give sign --run-id w-1 --done", "striatum give sign --run-id w-1"]);
    let cwd = taken["cwd"].as_str().unwrap();
    let prompt = std::fs::read_to_string(taken["prompt"].as_str().unwrap()).unwrap();
    assert!(prompt.contains("striatum give sign --run-id w-1 --done"), "{prompt}");
    std::fs::write(format!("{cwd}/signed.txt"), "agreed\n").unwrap();
    let given = repo.json(&["give", "sign", "--done", "--summary", "signed", "--as-person"]).ok().value();
    assert_eq!((&given["settled"]["outcome"], &given["state"]), (&"sealed".into(), &"completed".into()));
    assert_eq!(repo.rows("SELECT state, end_reason FROM session"), ["closed the run is completed"]);
    assert_eq!(
        repo.story(&["job.taken", "job.given", "job.sealed"]),
        ["job.taken sign", "job.given sign", "job.sealed sign"]
    );
    assert_eq!(repo.rows("SELECT kind FROM decision ORDER BY id"), ["take", "give"]);
    assert_eq!(repo.count("event WHERE type = 'job.sealed' AND principal LIKE 'user:%'"), 1);
}

#[test]
fn what_a_person_gives_is_checked_and_can_be_mended() {
    let repo = waiting_for_a_hand();
    let cwd = take(&repo, "sign")["cwd"].as_str().unwrap().to_owned();
    std::fs::write(format!("{cwd}/signed.txt"), "never\n").unwrap();
    let refused = repo.json(&["give", "sign", "--done", "--as-person"]).exits(1).value();
    assert_eq!((&refused["settled"]["outcome"], &refused["is_still_held"]), (&"verify_failed".into(), &true.into()));
    std::fs::write(format!("{cwd}/signed.txt"), "agreed\n").unwrap();
    repo.striatum(&["give", "sign", "--done", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT state, strikes FROM job"), ["completed 0"]);
}

#[test]
fn a_job_given_back_with_nothing_waits_again_and_has_cost_nothing() {
    let repo = waiting_for_a_hand();
    take(&repo, "sign");
    assert_eq!(repo.job_state("sign"), "running");
    repo.striatum(&["give", "sign", "--note", "ask legal first", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT state, strikes, requeues, attempt FROM job"), ["queued 0 0 2"]);
    assert_eq!(repo.rows("SELECT state FROM session"), ["closed"]);
    assert_eq!(repo.count("attempt WHERE json_extract(context, '$.note') = 'ask legal first'"), 1);
    repo.json(&["give", "sign", "--as-person"]).refused(5, "invalid_transition");
    repo.drive().exits(4);
}

#[test]
fn taking_twice_is_taking_once() {
    let repo = waiting_for_a_hand();
    let first = take(&repo, "sign");
    let second = take(&repo, "sign");
    assert_eq!((&second["already"], &second["cwd"]), (&true.into(), &first["cwd"]));
    assert_eq!(repo.count("session"), 1);
}

#[test]
fn no_deadline_burns_while_a_person_works_and_the_driver_waits() {
    let repo = waiting_for_a_hand();
    let cwd = take(&repo, "sign")["cwd"].as_str().unwrap().to_owned();
    repo.clock(0, 3 * 24 * 3_600_000, None);
    let shown = repo.striatum(&["run", "drive", "--once"]).ok();
    assert_eq!(shown.stdout, "run w-1 -> running: still moving\n");
    assert_eq!(repo.job_state("sign"), "running");
    std::fs::write(format!("{cwd}/signed.txt"), "agreed\n").unwrap();
    repo.striatum(&["give", "sign", "--done", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn a_working_lane_keeps_its_job_until_the_person_insists() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", "hang");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the agent works", || repo.effects_of("draft", "start") == 1);
    let agent = repo.agent_pid("draft").unwrap();
    let refused = repo.json(&["take", "draft", "--as-person"]).refused(5, "still_held");
    assert_eq!(next_commands(&refused), ["striatum take draft --run-id w-1 --yes"]);
    let taken = repo.json(&["take", "draft", "--yes", "--as-person"]).ok().value();
    assert_eq!((&taken["attempt"], &taken["taken_from"]), (&2.into(), &"s1".into()));
    wait_until("the agent is ended", || !is_alive(agent));
    assert_eq!(repo.rows("SELECT strikes, requeues FROM job"), ["0 0"]);
    repo.striatum(&["give", "draft", "--done", "--as-person"]).ok();
    driver.wait().ok();
    assert_eq!(repo.rows("SELECT outcome FROM attempt ORDER BY number"), ["interrupted", "sealed"]);
    assert_eq!(repo.effects_of("draft", "start"), 1);
}

#[test]
fn a_person_judges_a_review_but_never_their_own_work() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.start("w");
    take(&repo, "draft");
    repo.striatum(&["give", "draft", "--done", "--as-person"]).ok();
    let refused = repo.json(&["take", "review", "--as-person"]).refused(5, "not_independent");
    assert!(next_commands(&refused)[0].starts_with("striatum review override-verdict review"), "{refused}");
    repo.drive().ok();
    // Of another run, whose draft a lane made, the person is a reviewer like any other.
    repo.agent("draft.1", "complete");
    repo.start("w");
    repo.striatum(&["lane", "pause", "eyes"]).ok();
    repo.drive().exits(3);
    let taken = take(&repo, "review");
    assert_eq!(next_commands(&taken)[0], "striatum give review --run-id w-2 --verdict accept");
    repo.json(&["give", "review", "--done", "--as-person"]).refused(8, "invalid_result");
    repo.striatum(&["give", "review", "--verdict", "needs_revision", "--finding", "Title: more", "--as-person"]).ok();
    assert_eq!(repo.job_state("draft"), "queued");
    assert_eq!(repo.count("attempt WHERE context LIKE '%\"title\":\"Title\"%'"), 1);
}

#[test]
fn a_taken_job_goes_back_when_its_run_fails_and_lives_again_with_it() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        r#"
        [lanes.script]
        command = "@agent"
        [[jobs]]
        id = "risky"
        role = "author"
        lane = "script"
        tree = "none"
        max_strikes = 1
        on_failure = "fail_run"
        [[jobs]]
        id = "beside"
        role = "helper"
        lane = "script"
        tree = "none"
    "#,
    );
    repo.agent("risky.1", "fail nothing-works");
    repo.start("w");
    take(&repo, "beside");
    repo.drive().exits(1);
    assert_eq!(repo.run_state("w-1"), "failed");
    assert_eq!(repo.count("lease WHERE state = 'active'"), 0);
    repo.json(&["take", "beside", "--run-id", "w-1", "--as-person"]).refused(5, "not_running");
    let retried = repo.json(&["run", "retry-job", "--reason", "it works now"]).ok().value();
    assert_eq!((&retried["retried"][0]["job"], &retried["revived"]), (&"risky".into(), &true.into()));
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["beside.2 start", "risky.1 start", "risky.2 start"]);
}
