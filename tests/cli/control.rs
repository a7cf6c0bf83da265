//! `run go`, `pause`, `resume`, `stop`, `cancel`, `amend`: a run held back, ended, changed.

use serde_json::Value;

use super::drive::REVIEWED;
use crate::support::{TestRepo, wait_until};

/// The literal commands that a document offers.
pub fn next_commands(document: &Value) -> Vec<String> {
    let words = |next: &Value| {
        next["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    document["next"].as_array().unwrap().iter().map(words).collect()
}

/// One job of one lane.
pub const ONE: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
"#;

#[test]
fn go_prepares_starts_and_drives() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.trust();
    let gone = repo.striatum(&["run", "go", "-w", "w"]).ok();
    let lines = gone.lines();
    assert!(lines[0].starts_with("prepared w-1 (1 job, sha256:"), "{gone}");
    assert_eq!(*lines.last().unwrap(), "run w-1 -> completed: every job is settled");
    let lines = repo.json(&["run", "go", "-w", "w"]).ok().values();
    assert_eq!((&lines[0]["action"], &lines[0]["run"]), (&"prepared".into(), &"w-2".into()));
    assert_eq!(lines.last().unwrap()["state"], "completed");
}

#[test]
fn go_ends_after_telling_when_the_workflow_only_plans() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("autonomy = \"plan\"\n{ONE}"));
    repo.trust();
    repo.striatum(&["run", "go", "-w", "w"]).ok();
    assert_eq!(repo.run_state("w-1"), "ready");
    assert_eq!(repo.effects(), []);
}

#[test]
fn a_paused_run_finishes_what_is_held_and_launches_nothing_more() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("draft", "hold word; complete");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the draft is worked on", || repo.effects_of("draft", "start") == 1);
    let paused = repo.json(&["run", "pause"]).ok().value();
    assert_eq!(paused["notes"][0], "1 lane is still at work and will finish");
    assert_eq!(repo.json(&["run", "pause"]).ok().value()["already"], true);
    repo.go("word");
    let ended = driver.wait().exits(5);
    assert_eq!(*ended.lines().last().unwrap(), "run w-1 -> running: paused");
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
    let resumed = repo.json(&["run", "resume"]).ok().value();
    assert_eq!(next_commands(&resumed), ["striatum run drive --run-id w-1"]);
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "review.1 start"]);
}

#[test]
fn a_stop_ends_driver_and_lanes_and_resume_gives_a_new_attempt() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", "ignore_term; daemon; hang");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the draft is worked on", || repo.effects_of("draft", "start") == 1);
    repo.json(&["run", "amend", "--set", "limits.grace=100ms", "--reason", "it ignores us"]).ok();
    repo.json(&["run", "stop"]).ok();
    let ended = driver.wait().exits(5);
    assert_eq!(*ended.lines().last().unwrap(), "run w-1 -> stopped: it was told to stop; `run resume` lets it go on");
    wait_until("every process is gone", || repo.processes().is_empty());
    assert_eq!(repo.one::<i64>("SELECT strikes FROM job", ()), 0);
    repo.drive().exits(5);
    repo.json(&["run", "resume"]).ok();
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start"]);
}

#[test]
fn a_stop_needs_no_driver() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", "hang");
    repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the draft is worked on", || repo.effects_of("draft", "start") == 1);
    driver.kill();
    repo.json(&["run", "stop"]).ok();
    wait_until("every process is gone", || repo.processes().is_empty());
    assert_eq!(repo.rows("SELECT outcome FROM attempt"), ["interrupted", "-"]);
}

#[test]
fn resume_says_when_a_stop_file_stands() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    repo.write(".striatum/STOP", "");
    repo.json(&["run", "pause"]).ok();
    let resumed = repo.json(&["run", "resume"]).ok().value();
    assert!(
        resumed["notes"][0]
            .as_str()
            .unwrap()
            .ends_with("/repo/.striatum/STOP stands: nothing is launched until a person removes it")
    );
    assert!(next_commands(&resumed)[0].starts_with("rm "));
    assert!(repo.file(".striatum/STOP").exists());
    let ended = repo.striatum(&["run", "drive"]).exits(5);
    assert!(ended.lines().last().unwrap().ends_with("/.striatum/STOP stands"), "{ended}");
}

#[test]
fn a_canceled_run_keeps_its_work_and_says_what_revives_it() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("review", "hang");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the review is worked on", || repo.effects_of("review", "start") == 1);
    repo.striatum(&["run", "cancel"]).exits(2);
    repo.json(&["run", "cancel", "--reason", "no need"]).ok();
    driver.wait().exits(1);
    wait_until("every process is gone", || repo.processes().is_empty());
    assert_eq!((repo.job_state("draft"), repo.job_state("review")), ("completed".into(), "canceled".into()));
    assert_eq!(repo.json(&["run", "cancel", "--run-id", "w-1", "--reason", "x"]).ok().value()["already"], true);
    let refused = repo.json(&["run", "pause", "--run-id", "w-1"]).refused(5, "invalid_transition");
    assert_eq!(refused["hints"][0], "`striatum run retry-job --run-id w-1` revives it");
}

#[test]
fn a_write_needs_exactly_one_candidate() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    let none = repo.json(&["run", "pause"]).refused(2, "not_found");
    assert_eq!(none["message"], "there is no run yet");
    repo.prepare("w");
    repo.prepare("w");
    let several = repo.json(&["run", "pause"]).refused(2, "ambiguous");
    assert_eq!(several["message"], "several runs are live: w-1, w-2");
    repo.json(&["run", "pause", "--run-id", "w-2"]).ok();
    assert_eq!(repo.json(&["run", "resume"]).ok().value()["run"], "w-2");
    repo.json(&["run", "start", "--run-id", "w-1"]).ok();
    assert_eq!(repo.json(&["run", "start"]).ok().value()["run"], "w-2");
}

#[test]
fn a_budget_that_is_spent_is_raised_and_the_run_goes_on() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("[budget]\nlaunches = 1\n{REVIEWED}"));
    repo.start("w");
    let ended = repo.json(&["run", "drive", "--interval", "200ms"]).exits(3).values();
    assert_eq!(
        next_commands(ended.last().unwrap()),
        ["striatum run amend --run-id w-1 --set budget.launches=2 --reason '...'"]
    );
    let amended = repo.striatum(&["run", "amend", "--set", "budget.launches=9", "--reason", "one more"]).ok();
    insta::assert_snapshot!(amended);
    repo.drive().ok();
    assert_eq!(repo.count("snapshot"), 2);
    assert_eq!(
        repo.story(&["run."]),
        ["run.prepared", "run.started", "run.needs_operator", "run.amended", "run.revived", "run.completed"]
    );
}

#[test]
fn a_pending_message_follows_the_lane_of_its_job() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        r#"
        [lanes.one]
        command = "@agent"
        [lanes.two]
        command = "@agent"
        [[jobs]]
        id = "draft"
        role = "author"
        tree = "none"
    "#,
    );
    repo.start("w");
    repo.drive().exits(4);
    let wrong = repo.json(&["run", "amend", "draft", "--set", "lane=tow", "--reason", "x"]).refused(2, "usage");
    assert_eq!(wrong["hints"][0], "did you mean `two`? it may go to: one, two");
    repo.json(&["run", "amend", "draft", "--set", "lane=two", "--reason", "pick one"]).ok();
    repo.drive().ok();
    assert_eq!(repo.one::<String>("SELECT lane FROM session", ()), "two");
}

#[test]
fn what_is_held_goes_on_as_it_was_and_the_next_attempt_is_amended() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", "hold word; fail 'not yet'");
    repo.agent("draft.2", "cp \"$STRIATUM_PROMPT\" \"$AGENT/prompt\"; complete");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "200ms"]);
    wait_until("the draft is worked on", || repo.effects_of("draft", "start") == 1);
    repo.write("new.md", "Do the other thing.");
    let amended =
        repo.json(&["run", "amend", "draft", "--set", "prompt=@new.md", "--set", "timeout=2h", "--reason", "x"]);
    let amended = amended.ok().value();
    assert_eq!(amended["notes"][0], "draft is at attempt 1, which goes on as it was; the next one is amended");
    repo.go("word");
    driver.wait().ok();
    let prompt = std::fs::read_to_string(repo.root().join("agent/prompt")).unwrap();
    assert!(prompt.contains("Do the other thing."), "{prompt}");
}

#[test]
fn what_was_agreed_on_does_not_change_under_a_run() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.prepare("w");
    let amend = |set: &str| repo.json(&["run", "amend", "draft", "--set", set, "--reason", "x"]);
    assert_eq!(amend("verify=true").refused(2, "usage")["message"], "`verify` stays as it was prepared");
    amend("needs=x").refused(2, "usage");
    amend("max_strikes=many").refused(2, "usage");
    let same = amend("max_strikes=3").ok().value();
    assert_eq!((&same["changed"], &same["generation"]), (&serde_json::json!([]), &1.into()));
    assert_eq!(repo.count("snapshot"), 1);
}
