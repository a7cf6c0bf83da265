//! `gate list / show / approve / reject / skip / revise`: a person lets a job through, stops it, passes it over, or
//! sends the work before it back.

use super::land::{self, LANDS, git, said};
use crate::support::{TestRepo, next_commands, wait_until};

/// A draft, a checkpoint behind it, and what comes after.
pub const CHECKED: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "notes", path = "notes.txt" }]
    [[jobs]]
    id = "ship"
    type = "checkpoint"
    needs = ["draft"]
    gate_note = "read the notes"
    [[jobs]]
    id = "after"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["ship"]
"#;

/// Two jobs that reach outside, and nothing else.
const OUTWARD: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "deploy-a"
    role = "author"
    lane = "script"
    tree = "none"
    outward = true
    [[jobs]]
    id = "deploy-b"
    role = "author"
    lane = "script"
    tree = "none"
    outward = true
"#;

/// At the gate: the draft is done, and the run waits for a person.
fn at_the_gate() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", CHECKED);
    repo.agent("draft", "write notes.txt hello; complete --summary 'wrote notes'");
    repo.start("w");
    repo.drive().exits(4);
    repo
}

#[test]
fn a_run_at_a_gate_says_who_is_needed_and_with_which_commands() {
    let repo = at_the_gate();
    let again = repo.drive().exits(4);
    insta::assert_snapshot!(again, @r"
    $ striatum run drive --interval 500ms
    waits for you: ship: gate
    run w-1 -> waiting_human: ship: gate
    --- stderr
    next: striatum gate approve ship --run-id w-1   # ship: gate
    next: striatum gate reject ship --run-id w-1 --note '...'   # ship: gate
    next: striatum gate skip ship --run-id w-1 --note '...'   # ship: gate
    --- exit 4
    ");
    let listed = repo.striatum(&["gate", "list"]).ok();
    insta::assert_snapshot!(listed, @r"
    $ striatum gate list
    g1 pending L2 before ship: read the notes
    next: striatum gate show g1   # see what it is about
    next: striatum gate approve g1   # let it go on
    next: striatum gate reject g1   # stop it here
    ");
    let shown = repo.json(&["gate", "show", "ship"]).ok().value();
    assert_eq!(shown["needs"][0]["summary"], "wrote notes");
    let artifact = shown["artifacts"][0]["path"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(artifact).unwrap(), "hello\n");
}

#[test]
fn approving_a_checkpoint_completes_it_and_tells_what_drives_on() {
    let repo = at_the_gate();
    let approved = repo.striatum(&["gate", "approve", "ship", "--as-person", "--note", "looks right"]).ok();
    insta::assert_snapshot!(approved, @r"
    $ striatum gate approve ship --as-person --note 'looks right'
    approved g1 before ship
    run w-1 is running
    next: striatum run drive --run-id w-1   # nothing drives it: go on
    ");
    assert_eq!(repo.job_state("ship"), "completed");
    assert_eq!(repo.job_state("after"), "queued");
    let how: String = repo.one("SELECT how FROM gate", ());
    assert!(how.starts_with("--as-person; detected "), "{how}");
    repo.drive().ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.story(&["gate."]), ["gate.opened ship", "gate.approved ship"]);
}

#[test]
fn the_gate_that_is_the_last_job_closes_the_run() {
    let repo = TestRepo::new();
    repo.workflow("w", "[[jobs]]\nid = \"only\"\ntype = \"checkpoint\"\n");
    repo.start("w");
    // No driver has opened it: the first word does.
    let listed = repo.json(&["gate", "list"]).ok().value();
    assert_eq!((&listed["gates"][0]["job"], &listed["gates"][0]["gate"]), (&"only".into(), &serde_json::Value::Null));
    let approved = repo.json(&["gate", "approve", "only", "--as-person"]).ok().value();
    assert_eq!(approved["state"], "completed");
    assert_eq!(approved["next"], serde_json::json!([]));
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn a_live_driver_is_named_and_goes_on_by_itself() {
    let repo = at_the_gate();
    let driver = repo.spawn(&["run", "drive", "--wait-human", "--interval", "10s"]);
    wait_until("a driver is at it", || {
        let shown = repo.striatum(&["run", "drive", "--dry-run"]).ok();
        shown.stdout.contains("another run drive appears active")
    });
    let approved = repo.json(&["gate", "approve", "g1", "--as-person"]).ok().value();
    assert_eq!(approved["driver"], driver.pid());
    assert_eq!(approved["next"], serde_json::json!([]));
    driver.wait().ok();
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn a_rejected_job_is_held_with_the_word_that_was_said() {
    let repo = at_the_gate();
    repo.striatum(&["gate", "reject", "g1", "--note", "not yet", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT state, reason FROM job WHERE name = 'ship'"), ["waiting gate_rejected"]);
    repo.drive().exits(3);
    assert_eq!(repo.rows("SELECT state, cause, subject FROM run"), ["needs_operator gate_rejected ship"]);
    let refused = repo.json(&["gate", "approve", "g1", "--as-person"]).refused(5, "invalid_transition");
    assert!(refused["message"].as_str().unwrap().starts_with("gate g1 before ship was rejected by user:"), "{refused}");
    // The operator's rescue opens the gate anew; it opens no way around it.
    repo.striatum(&["run", "retry-job", "ship", "--reason", "it is better now"]).ok();
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "g2", "--as-person"]).ok();
    repo.drive().ok();
    assert_eq!(
        repo.story(&["gate."]),
        ["gate.opened ship", "gate.rejected ship", "gate.opened ship", "gate.approved ship"]
    );
}

#[test]
fn a_skipped_job_lets_its_successors_go() {
    let repo = at_the_gate();
    repo.striatum(&["gate", "skip", "ship", "--as-person"]).ok();
    assert_eq!(repo.job_state("ship"), "skipped");
    repo.drive().ok();
    assert_eq!(repo.job_state("after"), "completed");
}

#[test]
fn the_same_word_twice_is_one_decision() {
    let repo = at_the_gate();
    let first = repo.json(&["gate", "approve", "g1", "--as-person"]).ok().value();
    let second = repo.json(&["gate", "approve", "ship", "g1", "--as-person"]).ok().value();
    assert_eq!(first["decided"][0]["already"], false);
    assert_eq!(second["decided"].as_array().unwrap().len(), 1);
    assert_eq!(second["decided"][0]["already"], true);
    assert_eq!(repo.count("event WHERE type = 'gate.approved'"), 1);
}

#[test]
fn several_gates_are_decided_together_or_not_at_all() {
    let repo = TestRepo::new();
    repo.workflow("w", OUTWARD);
    repo.start("w");
    repo.drive().exits(4);
    repo.json(&["gate", "approve", "deploy-a", "nothing", "--as-person"]).refused(2, "not_found");
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 2);
    let unbound = repo.json(&["gate", "approve", "deploy-*", "--note", "both", "--as-person"]).refused(2, "usage");
    assert_eq!(unbound["message"], "a pattern decides only what was shown; it means deploy-a, deploy-b");
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 2);
    let set = repo.json(&["gate", "list", "deploy-*"]).ok().value()["set"].as_str().unwrap().to_owned();
    let bound = format!("striatum gate approve deploy-* --set {set} --run-id w-1 --note both");
    assert_eq!(next_commands(&unbound), [bound]);
    let approved =
        repo.json(&["gate", "approve", "deploy-*", "--set", &set, "--note", "both", "--as-person"]).ok().value();
    assert_eq!(approved["decided"].as_array().unwrap().len(), 2);
    repo.drive().ok();
    // The word reaches whoever works the job.
    assert_eq!(repo.count("attempt WHERE json_extract(context, '$.note') = 'both'"), 2);
    assert_eq!(repo.effects_of("deploy-a", "start"), 1);
}

#[test]
fn a_word_for_many_does_not_reach_what_came_after_it_was_shown() {
    let repo = TestRepo::new();
    repo.workflow("w", OUTWARD);
    repo.start("w");
    repo.drive().exits(4);
    let set = repo.json(&["gate", "list", "deploy-*"]).ok().value()["set"].as_str().unwrap().to_owned();
    repo.striatum(&["gate", "reject", "deploy-b", "--note", "not now", "--as-person"]).ok();
    let stale = repo.json(&["gate", "approve", "deploy-*", "--set", &set, "--as-person"]).refused(5, "stale_gate");
    assert_eq!(stale["hints"][0], "it means now: deploy-a");
    assert_eq!(repo.count("gate WHERE state = 'approved'"), 0);
    let alone = repo.json(&["gate", "list", "deploy-*"]).ok().value();
    assert_eq!(alone["gates"].as_array().unwrap().len(), 1);
    assert_ne!(alone["set"], set);
}

#[test]
fn a_job_of_several_live_runs_is_found_where_its_gate_waits() {
    let repo = at_the_gate();
    repo.start("w");
    let driven = repo.striatum(&["run", "drive", "--run-id", "w-1", "--json"]).exits(4);
    let end = driven.values().pop().unwrap();
    let commands = next_commands(&end);
    assert_eq!(commands[0], "striatum gate approve ship --run-id w-1");
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT run_id, state FROM job WHERE name = 'ship'"), ["1 completed", "2 waiting"]);
}

#[test]
fn a_gate_of_a_canceled_run_decides_nothing() {
    let repo = at_the_gate();
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    let refused = repo.json(&["gate", "approve", "g1", "--as-person"]).refused(5, "invalid_transition");
    assert!(refused["message"].as_str().unwrap().contains("expired"), "{refused}");
}

#[test]
fn many_at_once_make_one_decision() {
    let repo = at_the_gate();
    let typing: Vec<_> = (0..6).map(|_| repo.spawn(&["gate", "approve", "ship", "--as-person"])).collect();
    for typed in typing {
        typed.wait().ok();
    }
    assert_eq!(repo.count("event WHERE type = 'gate.approved'"), 1);
    assert_eq!(repo.count("attempt JOIN job ON job.id = attempt.job_id WHERE job.name = 'after'"), 1);
}

#[test]
fn a_gate_that_nobody_decided_is_opened_anew() {
    let repo = at_the_gate();
    repo.clock(0, 8 * 24 * 3_600_000, None);
    let driven = repo.drive().exits(4);
    assert!(driven.stdout.contains("gate g1 expired; it is opened anew"), "{driven}");
    let refused = repo.json(&["gate", "approve", "g1", "--as-person"]).refused(5, "invalid_transition");
    assert_eq!(refused["hints"][0], "another gate before ship waits: name the job instead");
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    repo.drive().ok();
}

#[test]
fn a_decision_in_a_paused_run_says_what_keeps_it() {
    let repo = at_the_gate();
    repo.striatum(&["run", "pause"]).ok();
    let approved = repo.json(&["gate", "approve", "ship", "--as-person"]).ok().value();
    assert_eq!(next_commands(&approved), ["striatum run resume --run-id w-1"]);
}

/// The landing waits behind a review of the draft.
fn reviewed() -> String {
    let review = "    [[jobs]]\n    id = \"review\"\n    reviews = \"draft\"\n    lane = \"script\"\n    [[jobs]]\n    id = \"land\"";
    LANDS.replace("    [[jobs]]\n    id = \"land\"", review).replace("needs = [\"draft\"]", "needs = [\"review\"]")
}

#[test]
fn a_gate_shows_the_change_its_review_its_verification_and_where_it_would_land() {
    let repo = TestRepo::new();
    repo.agent("review", "verdict accept_with_findings --finding 'Name: say which total'");
    land::come_to_wait(&repo, &reviewed());
    let shown = repo.json(&["gate", "show", "land"]).ok().value();
    assert_eq!(shown["changes"][0]["files"][1]["path"], "src/total.txt");
    assert!(shown["changes"][0]["patch"].as_str().unwrap().contains("+total\n"), "{shown}");
    assert_eq!(shown["reviews"][0]["findings"][0]["title"], "Name");
    assert_eq!((&shown["checks"][0]["job"], &shown["checks"][0]["exit"]), (&"draft".into(), &0.into()));
    let landing = &shown["landing"];
    assert_eq!((&landing["into"], &landing["style"]), (&"main".into(), &"squash".into()));
    assert_eq!(landing["target"], said(&repo, &["rev-parse", "main"]));
    assert_eq!(landing["tip"], said(&repo, &["rev-parse", "striatum/w-1"]));
    assert_eq!(landing["commits"][0]["subject"], "Say total");
    assert_eq!(landing["obstacle"], serde_json::Value::Null);
    repo.write("README", "mine\n");
    let text = repo.striatum(&["gate", "show", "land"]).ok().stdout;
    assert!(text.contains("it can't land now: the target is checked out in "), "{text}");
    assert!(text.contains("review says accept_with_findings\n  Name: say which total\n"), "{text}");
    assert!(text.contains("the run changes 2 files\n  src/new.txt +1 -0\n  src/total.txt +1 -1\n"), "{text}");
}

#[test]
fn a_large_difference_is_cut_and_told_in_full_when_asked_for() {
    let repo = TestRepo::new();
    git(&repo, &["commit", "--quiet", "--allow-empty", "-m", "Begin"]);
    repo.workflow("w", &LANDS.replace("grep -q total src/total.txt", "true"));
    repo.agent("draft", "mkdir -p src; seq 1 20000 > src/total.txt; complete");
    repo.start("w");
    repo.drive().exits(4);
    let cut = repo.json(&["gate", "show", "land"]).ok().value();
    assert_eq!(cut["changes"][0]["truncated"], true);
    assert!(cut["changes"][0]["patch"].as_str().unwrap().len() < 40_000);
    let full = repo.json(&["gate", "show", "land", "--full"]).ok().value();
    assert_eq!(full["changes"][0]["truncated"], false);
    assert!(full["changes"][0]["patch"].as_str().unwrap().ends_with("+20000\n"));
}

#[test]
fn what_changed_since_a_gate_was_opened_is_not_approved_unseen() {
    let repo = TestRepo::new();
    git(&repo, &["commit", "--quiet", "--allow-empty", "-m", "Begin"]);
    git(&repo, &["config", "user.name", "Ada Example"]);
    git(&repo, &["config", "user.email", "ada@example.com"]);
    let beside = "    [lanes.other]\n    command = \"@agent\"\n    [[jobs]]\n    id = \"docs\"\n    role = \"writer\"\n    lane = \"other\"\n    writes = [\"docs/\"]\n";
    repo.workflow("w", &format!("{LANDS}{beside}"));
    repo.agent("draft", "write src/total.txt total; complete");
    repo.agent("docs", "hold docs; write docs/a.txt text; complete");
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the gate is open", || repo.count("gate WHERE state = 'pending'") == 1);
    repo.go("docs");
    driver.wait().exits(4);
    let refused = repo.json(&["gate", "approve", "g1", "--as-person"]).refused(5, "stale_gate");
    assert_eq!(next_commands(&refused), ["striatum gate show g2"]);
    assert_eq!(repo.rows("SELECT id, state FROM gate"), ["1 expired", "2 pending"]);
    assert_eq!(said(&repo, &["rev-list", "--count", "main"]), "1");
    repo.json(&["gate", "approve", "g2", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(repo.read("docs/a.txt"), "text\n");
}

#[test]
fn a_landing_is_approved_on_its_own() {
    let second = "    [[jobs]]\n    id = \"ship\"\n    type = \"checkpoint\"\n    needs = [\"draft\"]\n";
    let repo = land::waits(&format!("{LANDS}{second}"));
    let set = repo.json(&["gate", "list", "*"]).ok().value()["set"].as_str().unwrap().to_owned();
    let refused = repo.json(&["gate", "approve", "*", "--set", &set, "--as-person"]).refused(2, "usage");
    assert_eq!(refused["message"], "a landing is approved on its own");
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 2);
}

#[test]
fn work_that_is_sent_back_is_done_again_with_the_note_and_costs_nothing() {
    let repo = TestRepo::new();
    land::come_to_wait(&repo, &reviewed());
    let main = said(&repo, &["rev-parse", "main"]);
    repo.agent(
        "draft.2",
        "cp \"$STRIATUM_PROMPT\" \"$AGENT/seen\"; write src/total.txt the total; complete --summary Better",
    );
    let report = repo.json(&["gate", "revise", "land", "--note", "call it the total", "--as-person"]).ok().value();
    assert_eq!((&report["job"], &report["attempt"], &report["gate"]), (&"draft".into(), &2.into(), &"g1".into()));
    assert_eq!(repo.rows("SELECT state, note FROM gate"), ["revised call it the total"]);
    assert_eq!(
        repo.rows("SELECT name, state FROM job ORDER BY id"),
        ["draft queued", "review waiting", "land waiting"]
    );
    let twice = repo.json(&["gate", "revise", "g1", "--note", "again", "--as-person"]).refused(5, "invalid_transition");
    assert!(twice["message"].as_str().unwrap().contains("was revised by user:"), "{twice}");
    repo.drive().exits(4);
    let seen = std::fs::read_to_string(repo.root().join("agent/seen")).unwrap();
    assert!(seen.contains("call it the total"), "{seen}");
    assert_eq!(repo.count("job WHERE strikes + requeues + revisions > 0"), 0);
    assert_eq!(said(&repo, &["rev-parse", "main"]), main);
    repo.json(&["gate", "approve", "land", "--as-person"]).ok();
    assert_eq!(repo.read("src/total.txt"), "the total\n");
    assert_eq!(said(&repo, &["log", "-1", "--format=%s", "main"]), "Better");
    assert_eq!(
        repo.story(&["gate."]),
        ["gate.opened land", "gate.revised land", "gate.opened land", "gate.approved land"]
    );
}

#[test]
fn of_several_the_work_to_send_back_is_named() {
    let repo = TestRepo::new();
    let other = "    [[jobs]]\n    id = \"docs\"\n    role = \"author\"\n    lane = \"script\"\n    writes = [\"docs/\"]\n    [[jobs]]\n    id = \"land\"";
    repo.agent("docs", "write docs/a.txt text; complete");
    let both =
        LANDS.replace("    [[jobs]]\n    id = \"land\"", other).replace("[\"draft\"]\n", "[\"draft\", \"docs\"]\n");
    land::come_to_wait(&repo, &both);
    let refused = repo.json(&["gate", "revise", "land", "--note", "more", "--as-person"]).refused(2, "ambiguous");
    assert_eq!(next_commands(&refused)[1], "striatum gate revise g1 --job docs --note WHY");
    repo.json(&["gate", "revise", "land", "--job", "land", "--note", "more", "--as-person"]).refused(2, "usage");
    repo.agent("docs.2", "write docs/a.txt more text; complete");
    repo.json(&["gate", "revise", "land", "--job", "docs", "--note", "more", "--as-person"]).ok();
    assert_eq!(repo.job_state("draft"), "completed");
    repo.drive().exits(4);
    repo.json(&["run", "land", "--as-person"]).ok();
    assert_eq!((repo.read("docs/a.txt"), repo.read("src/total.txt")), ("more text\n".to_owned(), "total\n".to_owned()));
}

#[test]
fn sending_back_is_a_persons_and_says_why() {
    let repo = at_the_gate();
    repo.json(&["gate", "revise", "ship", "--note", "more"]).refused(7, "person_required");
    repo.json(&["gate", "revise", "ship", "--note", " ", "--as-person"]).refused(2, "usage");
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 1);
    // A checkpoint behind a job without a tree: what it needs is what is sent back.
    repo.json(&["gate", "revise", "ship", "--note", "more", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT name, state FROM job ORDER BY id"), ["draft queued", "ship waiting", "after waiting"]);
}
