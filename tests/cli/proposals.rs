//! Proposals in an answer's `next[]`: admitted as jobs that wait for a person, surfaced, or refused; `run admit` and
//! `run dismiss`.

use serde_json::{Value, json};

use crate::support::{TestRepo, wait_until};

/// A draft that may change `src/`, and the landing of what it makes.
const LANDED: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    [[jobs]]
    id = "land"
    type = "land"
    needs = ["draft"]
    into = "main"
"#;

/// One job that only looks.
const ALONE: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "notes", path = "notes.txt" }]
"#;

fn proposal(kind: &str, objective: &str, confidence: f64) -> Value {
    json!({"type": kind, "objective": objective, "reason": "it came up", "confidence": confidence})
}

/// The instructions of a job that answers with proposals.
pub fn proposes(before: &str, next: &[Value]) -> String {
    let answer =
        json!({"schema": "striatum.result/1", "status": "NEEDS_NEXT", "next": next, "summary": "there is more"});
    format!("{before}\nresult '{answer}'")
}

/// A run of [`ALONE`] whose draft proposes; driven as far as it goes.
fn alone(next: &[Value], exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ALONE);
    repo.agent("draft", &proposes("write notes.txt hello", next));
    repo.start("w");
    repo.drive().exits(exit);
    repo
}

fn states(repo: &TestRepo) -> Vec<String> {
    repo.rows("SELECT 'p' || id, state, coalesce(why, '-'), depth FROM proposal ORDER BY id")
}

#[test]
fn an_admitted_proposal_waits_at_a_gate_that_shows_it_and_runs_once_a_person_approves() {
    let repo = alone(&[proposal("test", "look at the edges", 0.8)], 4);
    assert_eq!(states(&repo), ["p1 admitted - 1"]);
    assert_eq!(
        repo.rows("SELECT name, state, reason FROM job ORDER BY id"),
        ["draft completed -", "draft-next-1 waiting gate"]
    );
    let shown = repo.striatum(&["gate", "show", "draft-next-1"]).ok().stdout;
    for part in [
        "draft.1 proposes it (confidence 0.80): it came up",
        "it would do: look at the edges",
        "p1 admitted as draft-next-1: test of draft.1",
        "as author/script, it changes nothing",
    ] {
        assert!(shown.contains(part), "{part} is missing:\n{shown}");
    }
    assert!(repo.effects().iter().all(|effect| effect.job == "draft"), "it runs before anybody approved it");
    repo.striatum(&["gate", "approve", "draft-next-1", "--as-person"]).ok();
    repo.drive().ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.job_state("draft-next-1"), "completed");
    assert_eq!(
        repo.story(&["next.", "gate.", "run.amended"]),
        ["run.amended draft", "next.admitted draft", "gate.opened draft-next-1", "gate.approved draft-next-1"]
    );
    repo.check_sound();
}

#[test]
fn a_proposed_job_is_part_of_a_new_generation_and_brings_no_command() {
    let repo = alone(&[proposal("draft", "go on", 0.8)], 4);
    let body: String = repo.one("SELECT body FROM snapshot WHERE generation = 2", ());
    let snapshot: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(snapshot["jobs"][1]["id"], "draft-next-1");
    assert_eq!(snapshot["jobs"][1]["origin"], "proposed");
    assert_eq!(repo.rows("SELECT generation, (SELECT count(*) FROM snapshot) FROM run"), ["2 2"]);
    let trust: i64 = repo.one("SELECT count(DISTINCT trust) FROM run", ());
    assert_eq!(trust, 1);
    // The snapshot is trusted as it was: the job goes without anybody trusting anything again.
    repo.striatum(&["gate", "approve", "draft-next-1", "--as-person"]).ok();
    repo.drive().ok();
    repo.striatum(&["audit", "verify"]).ok();
}

#[test]
fn a_skipped_proposal_is_passed_over_and_the_run_completes_without_it() {
    let repo = alone(&[proposal("test", "look", 0.8)], 4);
    repo.striatum(&["gate", "skip", "draft-next-1", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.effects().iter().filter(|effect| effect.job == "draft-next-1").count(), 0);
}

#[test]
fn what_the_driver_does_not_admit_is_surfaced_or_refused_and_the_run_goes_on() {
    let next = [
        proposal("test", "sure", 0.9),
        proposal("test", "sure", 0.9),
        proposal("test", "other words", 0.9),
        proposal("build", "not so sure", 0.3),
        json!({"type": "synthesis", "objective": "no number", "confidence": "high"}),
        proposal("land", "ship it", 0.9),
        json!({"type": "generic", "objective": "x", "role": "boss", "confidence": 0.9}),
        json!({"type": "generic", "objective": "x", "lane": "nobody", "confidence": 0.9}),
        json!({"type": "generic", "objective": "x", "inputs": ["draft.nothing"], "confidence": 0.9}),
    ];
    let repo = alone(&next, 4);
    assert_eq!(
        states(&repo),
        [
            "p1 admitted - 1",
            "p2 refused repeated 1",
            "p3 surfaced alike 1",
            "p4 surfaced low_confidence 1",
            "p5 surfaced low_confidence 1",
            "p6 refused reserved_type 1",
            "p7 refused unknown_role 1",
            "p8 refused unknown_lane 1",
            "p9 refused unknown_input 1"
        ]
    );
    let inbox = repo.striatum(&["inbox"]).ok().stdout;
    assert!(inbox.contains("striatum run admit p4"), "{inbox}");
    assert!(inbox.contains("draft proposes a build: not so sure (its confidence is under 0.5)"), "{inbox}");
    let shown = repo.striatum(&["job", "show", "draft"]).ok().stdout;
    assert!(shown.contains("p7 refused (unknown_role)"), "{shown}");
    repo.striatum(&["gate", "skip", "draft-next-1", "--as-person"]).ok();
    // What is only shown keeps nothing from ending.
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn what_is_left_of_an_ended_run_can_not_be_admitted() {
    let repo = alone(&[proposal("test", "maybe", 0.2)], 0);
    assert_eq!(states(&repo), ["p1 surfaced low_confidence 1"]);
    assert_eq!(repo.run_state("w-1"), "completed");
    let refused = repo.json(&["run", "admit", "p1", "--as-person"]).refused(5, "not_running");
    assert!(refused["message"].as_str().unwrap().contains("completed"), "{refused}");
}

/// A draft that proposes, and a checkpoint that keeps the run alive.
const KEPT: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "ship"
    type = "checkpoint"
    needs = ["draft"]
"#;

fn kept(next: &[Value]) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", KEPT);
    repo.agent("draft", &proposes("", next));
    repo.start("w");
    repo.drive().exits(4);
    repo
}

#[test]
fn a_person_admits_what_was_surfaced_and_still_approves_it() {
    let repo = kept(&[proposal("test", "maybe", 0.2)]);
    repo.json(&["run", "admit", "p1"]).refused(7, "person_required");
    let admitted = repo.striatum(&["run", "admit", "p1", "--as-person"]).ok();
    insta::assert_snapshot!(admitted, @r"
    $ striatum run admit p1 --as-person
    admitted p1 as draft-next-1; it waits for you at gate g2
    next: striatum gate show g2   # see what it would do
    next: striatum gate approve g2   # let it go
    ");
    assert_eq!(repo.effects_of("draft-next-1", "start"), 0);
    repo.json(&["run", "admit", "p1", "--as-person"]).refused(5, "invalid_transition");
    repo.striatum(&["gate", "approve", "draft-next-1", "--as-person"]).ok();
    repo.drive().exits(4);
    assert_eq!(repo.effects_of("draft-next-1", "start"), 1);
    assert_eq!(repo.rows("SELECT kind, body FROM decision"), ["admit p1"]);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    repo.check_sound();
}

#[test]
fn a_dismissed_proposal_leaves_the_inbox_and_does_not_come_back() {
    let repo = kept(&[proposal("test", "maybe", 0.2)]);
    repo.striatum(&["run", "dismiss", "p1", "--reason", "no use", "--as-person"]).ok();
    assert_eq!(states(&repo), ["p1 dismissed no use 1"]);
    assert!(!repo.striatum(&["inbox"]).ok().stdout.contains("p1"));
    repo.json(&["run", "admit", "p1", "--as-person"]).refused(5, "invalid_transition");
    // The same words once more are no news.
    repo.agent("draft", &proposes("", &[proposal("test", "maybe", 0.9)]));
    repo.striatum(&["gate", "revise", "ship", "--note", "again", "--as-person"]).ok();
    repo.drive().exits(4);
    assert_eq!(states(&repo), ["p1 dismissed no use 1", "p2 refused repeated 1"]);
}

#[test]
fn what_a_job_proposed_is_void_when_it_is_sent_back() {
    let repo = kept(&[proposal("test", "maybe", 0.2), proposal("build", "surely", 0.9)]);
    assert_eq!(states(&repo), ["p1 surfaced low_confidence 1", "p2 admitted - 1"]);
    repo.agent("draft", "complete");
    repo.striatum(&["gate", "revise", "ship", "--note", "again", "--as-person"]).ok();
    assert_eq!(states(&repo), ["p1 refused void 1", "p2 admitted - 1"]);
    // What was admitted is a job of the run: it waits for its proposer again, and for a person again.
    repo.drive().exits(4);
    assert_eq!(repo.rows("SELECT state, reason FROM job WHERE name = 'draft-next-1'"), ["waiting gate"]);
    repo.check_sound();
}

#[test]
fn proposals_of_proposals_end_at_the_depth_that_the_budget_names() {
    let repo = kept(&[proposal("test", "first", 0.9)]);
    let deeper = |objective: &str| proposes("", &[proposal("test", objective, 0.9)]);
    repo.agent("draft-next-1", &proposes("", &[proposal("build", "second", 0.9)]));
    repo.agent("draft-next-1-next-1", &deeper("third"));
    for job in ["draft-next-1", "draft-next-1-next-1"] {
        repo.striatum(&["gate", "approve", job, "--as-person"]).ok();
        repo.drive().exits(4);
    }
    assert_eq!(states(&repo), ["p1 admitted - 1", "p2 admitted - 2", "p3 surfaced next_depth 3"]);
    assert_eq!(repo.story(&["breaker."]), ["breaker.tripped draft-next-1-next-1"]);
    let refused = repo.json(&["run", "admit", "p3", "--as-person"]).refused(5, "invalid_transition");
    let raise: Vec<String> = serde_json::from_value(refused["next"][0]["argv"].clone()).unwrap();
    assert!(raise.contains(&"budget.next_depth=3".to_owned()), "{raise:?}");
    repo.striatum(&raise[1..]).ok();
    repo.striatum(&["run", "admit", "p3", "--as-person"]).ok();
    assert_eq!(repo.job_state("draft-next-1-next-1-next-1"), "waiting");
    repo.check_sound();
}

#[test]
fn a_landing_waits_for_what_was_proposed_before_it() {
    let repo = TestRepo::with_code();
    repo.workflow("w", LANDED);
    repo.agent("draft", &proposes("write src/new.txt one", &[proposal("draft", "go on", 0.9)]));
    repo.agent("draft-next-1", "write src/more.txt two; complete");
    repo.start("w");
    repo.drive().exits(4);
    assert_eq!(
        repo.rows("SELECT name, state, reason, unmet FROM job ORDER BY id"),
        ["draft completed - 0", "land waiting - 1", "draft-next-1 waiting gate 0"]
    );
    repo.json(&["run", "land", "--as-person"]).exits(5);
    repo.striatum(&["gate", "approve", "draft-next-1", "--as-person"]).ok();
    repo.drive().exits(4);
    assert_eq!(repo.landed("w-1"), ["draft.1", "draft-next-1.1"]);
    repo.said(&["config", "user.name", "Somebody"]);
    repo.said(&["config", "user.email", "somebody@example.com"]);
    repo.striatum(&["run", "land", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.read("src/more.txt"), "two\n");
    repo.check_sound();
}

#[test]
fn a_proposed_change_is_held_to_the_scope_of_its_proposer() {
    let repo = TestRepo::with_code();
    repo.workflow("w", LANDED);
    repo.agent("draft", &proposes("write src/new.txt one", &[proposal("draft", "go on", 0.9)]));
    repo.agent("draft-next-1", "write README.md mine; complete");
    repo.start("w");
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "draft-next-1", "--as-person"]).ok();
    repo.drive().exits(3);
    let outcomes =
        repo.rows("SELECT DISTINCT outcome FROM attempt JOIN job ON job.id = job_id WHERE name = 'draft-next-1'");
    assert_eq!(outcomes, ["scope_failed"]);
}

#[test]
fn drivers_that_all_act_at_once_admit_a_proposal_once() {
    let repo = TestRepo::new();
    repo.workflow("w", KEPT);
    let next = [proposal("test", "one", 0.9), proposal("build", "two", 0.9), proposal("generic", "three", 0.1)];
    repo.agent("draft", &proposes("", &next));
    repo.start("w");
    repo.striatum(&["run", "drive", "--once"]).ok();
    wait_until("the draft is sealed", || repo.count("proposal WHERE state = 'pending'") == 3);
    let drivers: Vec<_> = (0..8).map(|_| repo.spawn(&["run", "drive", "--once"])).collect();
    for driver in drivers {
        driver.wait().ok();
    }
    assert_eq!(states(&repo), ["p1 admitted - 1", "p2 admitted - 1", "p3 surfaced low_confidence 1"]);
    assert_eq!(repo.rows("SELECT name FROM job ORDER BY id"), ["draft", "ship", "draft-next-1", "draft-next-2"]);
    assert_eq!(repo.rows("SELECT count(*), max(generation) FROM snapshot"), ["3 3"]);
    assert_eq!(repo.story(&["next."]), ["next.admitted draft", "next.admitted draft", "next.surfaced draft"]);
    repo.check_sound();
}

#[test]
fn what_an_agent_proposes_has_no_power_over_the_terminal_of_who_decides() {
    let odd = |words: &str| format!("{words} \u{1b}[2J\u{1b}[1A\u{202e}\u{9b}31m\u{7}.");
    let step = json!({"type": "test", "objective": odd("look"), "reason": odd("since"), "confidence": 0.8});
    let repo = alone(std::slice::from_ref(&step), 4);
    let said = [
        repo.striatum(&["gate", "show", "draft-next-1"]).ok().stdout,
        repo.striatum(&["gate", "list"]).ok().stdout,
        repo.striatum(&["status"]).ok().stdout,
        repo.striatum(&["inbox"]).ok().stdout,
        repo.striatum(&["run", "explain"]).ok().stdout,
        repo.striatum(&["run", "summary"]).ok().stdout,
        repo.striatum(&["job", "show", "draft-next-1"]).ok().stdout,
        repo.striatum(&["gate", "approve", "\u{1b}[2J"]).exits(7).stderr,
    ];
    for text in said {
        let has_power = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
        assert!(!text.contains(has_power), "{text:?}");
    }
}
