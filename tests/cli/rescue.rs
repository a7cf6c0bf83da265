//! Rescue verbs: `run retry-job`, `review override-verdict`, `work requeue-stale`, and lanes that are paused.

use super::control::ONE;
use super::drive::REVIEWED;
use crate::support::{TestRepo, is_alive, kill, next_commands, wait_until};

/// Three in a row; one strike ends each.
const CHAIN: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "a"
    role = "maker"
    lane = "script"
    tree = "none"
    max_strikes = 1
    [[jobs]]
    id = "b"
    role = "maker"
    lane = "script"
    tree = "none"
    max_strikes = 1
    needs = ["a"]
    [[jobs]]
    id = "c"
    role = "maker"
    lane = "script"
    tree = "none"
    max_strikes = 1
    needs = ["b"]
"#;

fn started(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.start("w");
    repo
}

#[test]
fn a_held_job_gets_its_tries_back_and_a_word_for_the_next_attempt() {
    let repo = started(CHAIN);
    repo.agent("b.1", "fail 'no luck'");
    repo.drive().exits(3);
    assert_eq!(repo.rows("SELECT name, state FROM job"), ["a completed", "b failed", "c waiting"]);
    let retried = repo.json(&["run", "retry-job", "b", "--note", "try harder", "--reason", "luck came"]).ok().value();
    assert_eq!((&retried["retried"][0]["was"], &retried["retried"][0]["state"]), (&"failed".into(), &"queued".into()));
    assert_eq!(next_commands(&retried), ["striatum run drive --run-id w-1"]);
    assert_eq!(repo.count("attempt WHERE json_extract(context, '$.note') = 'try harder'"), 1);
    assert_eq!(repo.rows("SELECT kind, reason, how FROM decision"), ["retry luck came operator"]);
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["a.1 start", "b.1 start", "b.2 start", "c.1 start"]);
}

#[test]
fn every_failed_job_is_retried_together_each_before_what_needs_it() {
    let repo = started(&CHAIN.replacen("needs = [\"a\"]", "", 1));
    repo.agent("a.1", "fail one");
    repo.agent("b.1", "fail two");
    repo.drive().exits(3);
    let retried = repo.json(&["run", "retry-job", "--failed", "--reason", "again"]).ok().value();
    assert_eq!(retried["retried"].as_array().unwrap().len(), 2);
    repo.drive().ok();
    assert_eq!(repo.effects_of("c", "start"), 1);
}

#[test]
fn a_job_that_is_fine_is_not_retried() {
    let repo = started(CHAIN);
    let refused = repo.json(&["run", "retry-job", "a", "--reason", "x"]).refused(5, "invalid_transition");
    assert_eq!(refused["message"], "a is queued: nothing to retry");
    repo.json(&["run", "retry-job", "--failed", "--reason", "x"]).refused(2, "not_found");
    repo.json(&["run", "retry-job", "a", "--reason", " "]).refused(2, "usage");
    repo.json(&["run", "retry-job", "a", "--lane", "nowhere", "--reason", "x"]).refused(5, "invalid_transition");
    assert_eq!(repo.count("attempt"), 1);
}

#[test]
fn the_next_attempt_can_go_to_another_lane() {
    let workflow = CHAIN.replacen("[[jobs]]", "[lanes.other]\ncommand = \"@agent\"\n[[jobs]]", 1);
    let repo = started(&workflow);
    repo.agent("a.1", "fail here");
    repo.drive().exits(3);
    repo.json(&["run", "retry-job", "a", "--lane", "nowhere", "--reason", "x"]).refused(2, "usage");
    repo.striatum(&["run", "retry-job", "a", "--lane", "other", "--reason", "that one works"]).ok();
    repo.drive().ok();
    let lanes = "SELECT session.lane FROM attempt JOIN session ON session.id = attempt.session_id
        JOIN job ON job.id = attempt.job_id WHERE job.name = 'a' ORDER BY number";
    assert_eq!(repo.rows(lanes), ["script", "other"]);
}

#[test]
fn a_canceled_run_comes_back_as_a_whole() {
    let repo = started(CHAIN);
    repo.agent("b.1", "hang");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("b is worked on", || repo.effects_of("b", "start") == 1);
    repo.striatum(&["run", "cancel", "--yes", "--reason", "wrong day"]).ok();
    driver.wait().exits(1);
    assert_eq!(repo.rows("SELECT name, state FROM job"), ["a completed", "b canceled", "c canceled"]);
    wait_until("its helper is gone", || repo.count("session WHERE state = 'active'") == 0);
    let retried = repo.json(&["run", "retry-job", "b", "--reason", "right day"]).ok().value();
    assert_eq!((&retried["revived"], &retried["back"]), (&true.into(), &1.into()));
    assert_eq!(repo.rows("SELECT name, state, unmet FROM job"), ["a completed 0", "b queued 0", "c waiting 1"]);
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["a.1 start", "b.1 start", "b.2 start", "c.1 start"]);
}

#[test]
fn a_rejected_draft_is_made_again_with_what_was_said_of_it() {
    let repo = started(REVIEWED);
    repo.agent("review.1", "verdict reject --finding 'Wrong: all of it'");
    repo.drive().exits(1);
    assert_eq!(repo.run_state("w-1"), "failed");
    repo.json(&[
        "review",
        "override-verdict",
        "review",
        "--run-id",
        "w-1",
        "--verdict",
        "accept",
        "--reason",
        "x",
        "--as-person",
    ])
    .refused(5, "not_running");
    let retried = repo.json(&["run", "retry-job", "--reason", "from the start"]).ok().value();
    assert_eq!(retried["retried"][0]["job"], "draft");
    assert_eq!(repo.count("attempt WHERE number = 2 AND context LIKE '%all of it%'"), 1);
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start", "review.1 start", "review.2 start"]);
}

#[test]
fn a_review_out_of_revisions_is_accepted_by_a_person() {
    let repo = started(&REVIEWED.replacen("lane = \"eyes\"", "lane = \"eyes\"\nrevisions = 1", 1));
    repo.agent("review", "verdict needs_revision --finding \"Title: say more, $ATTEMPT\"");
    repo.drive().exits(3);
    assert_eq!(repo.rows("SELECT cause, subject FROM run"), ["revisions review"]);
    let words =
        ["review", "override-verdict", "review", "--verdict", "accept", "--reason", "good enough", "--as-person"];
    let overridden = repo.json(&words).ok().value();
    assert_eq!((&overridden["was"], &overridden["state"]), (&"needs_revision".into(), &"completed".into()));
    assert_eq!(repo.rows("SELECT state, settled FROM job"), ["completed 1", "completed 1"]);
    assert_eq!(repo.rows("SELECT verdict, decision_id FROM verdict ORDER BY id DESC LIMIT 1"), ["accept 1"]);
    assert_eq!(repo.count("event WHERE type = 'verdict.overridden'"), 1);
}

#[test]
fn a_person_may_ask_for_one_revision_more() {
    let repo = started(&REVIEWED.replacen("lane = \"eyes\"", "lane = \"eyes\"\nrevisions = 1", 1));
    repo.agent("review", "verdict needs_revision --finding \"Title: say more, $ATTEMPT\"");
    repo.drive().exits(3);
    repo.agent("review", "verdict accept");
    let words =
        ["review", "override-verdict", "review", "--verdict", "needs_revision", "--reason", "shorter", "--as-person"];
    repo.striatum(&words).ok();
    assert_eq!(repo.count("attempt WHERE number = 3 AND context LIKE '%shorter%'"), 1);
    repo.drive().ok();
    assert_eq!(repo.effects_of("draft", "start"), 3);
}

#[test]
fn only_a_verdict_that_still_counts_is_judged_over() {
    let repo = started(REVIEWED);
    let words = |job| ["review", "override-verdict", job, "--verdict", "accept", "--reason", "x", "--as-person"];
    repo.json(&words("draft")).refused(2, "usage");
    repo.json(&words("review")).refused(5, "invalid_transition");
    repo.drive().ok();
    let named: Vec<&str> = words("review").into_iter().chain(["--run-id", "w-1"]).collect();
    repo.json(&named).refused(5, "not_running");
}

#[test]
fn work_whose_holder_is_gone_is_put_back_without_looking() {
    let repo = started(ONE);
    repo.agent("draft.1", "hang");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the agent works", || repo.effects_of("draft", "start") == 1);
    let refused = repo.json(&["work", "requeue-stale", "draft", "--reason", "x"]).refused(5, "invalid_transition");
    assert_eq!(refused["message"], "draft is running by s1, not stale");
    let agent = repo.agent_pid("draft").unwrap();
    kill(repo.one("SELECT pid FROM supervisor", ()));
    wait_until("somebody noticed", || repo.job_state("draft") == "stale");
    let requeued = repo.json(&["work", "requeue-stale", "--reason", "it hangs"]).ok().value();
    assert_eq!(requeued["requeued"], serde_json::json!([["draft", 2]]));
    wait_until("what was left of the agent is ended", || !is_alive(agent));
    driver.wait().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start"]);
    assert_eq!(repo.rows("SELECT strikes, requeues FROM job"), ["0 0"]);
}

#[test]
fn a_paused_lane_launches_and_claims_nothing_in_any_run() {
    let repo = started(ONE);
    repo.json(&["lane", "pause", "skript"]).refused(2, "not_found");
    let paused = repo.json(&["lane", "pause", "script", "--reason", "too dear"]).ok().value();
    assert_eq!((&paused["is_parked"], &paused["already"]), (&true.into(), &false.into()));
    assert_eq!(repo.json(&["lane", "pause", "script"]).ok().value()["already"], true);
    let mut worker = repo.register("author", "script");
    assert_eq!(worker.gets_no_work(), "lane_parked");
    let driven = repo.drive().exits(3);
    assert!(driven.stderr.contains("next: striatum lane resume script"), "{driven}");
    let listed = repo.json(&["lane", "list"]).ok().value();
    assert_eq!(
        (&listed["lanes"][0]["lane"], &listed["lanes"][0]["parked_reason"]),
        (&"script".into(), &"too dear".into())
    );
    let resumed = repo.json(&["lane", "resume", "script"]).ok().value();
    assert_eq!((&resumed["revived"][0], &resumed["is_parked"]), (&"w-1".into(), &false.into()));
    assert_eq!(
        repo.rows("SELECT type, json_extract(body, '$.lane') FROM event WHERE type LIKE 'lane.%'"),
        ["lane.parked script", "lane.resumed script"]
    );
    assert_eq!(worker.claims(), "draft.1");
}

#[test]
fn a_pause_lets_what_works_in_the_lane_go_on() {
    let repo = started(ONE);
    repo.agent("draft", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the agent works", || repo.effects_of("draft", "start") == 1);
    assert_eq!(repo.json(&["lane", "pause", "script"]).ok().value()["holds"], 1);
    repo.go("on");
    driver.wait().ok();
}

#[test]
fn a_panel_that_lets_its_failed_reviewers_go_does_not_wait_for_their_accepts() {
    let second =
        "\n    [[jobs]]\n    id = \"second\"\n    reviews = \"draft\"\n    lane = \"eyes\"\n    tree = \"none\"
    max_strikes = 1\n    on_failure = \"continue\"\n";
    let repo = started(&format!("{REVIEWED}{second}"));
    repo.agent("second", "fail 'no eyes'");
    repo.drive().ok();
    assert_eq!(
        repo.rows("SELECT name, state, settled FROM job"),
        ["draft completed 1", "review completed 1", "second failed 1"]
    );
}
