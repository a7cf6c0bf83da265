//! Constrained operator mode: what is shown, and what an operator needs an escape for.

use std::process::Command;

use crate::support::{Output, TestRepo, next_commands};

/// A job that fails once, and one that a person's lane works.
const WORKFLOW: &str = r#"
    operator_mode = "constrained"
    [lanes.script]
    command = "@agent"
    write_paths = ["@notes"]
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "a"
    role = "maker"
    lane = "script"
    tree = "none"
    max_strikes = 1
    [[jobs]]
    id = "b"
    role = "operator"
    lane = "hand"
    tree = "none"
"#;

/// A held agent of the tests writes its notes outside the repository.
fn workflow(repo: &TestRepo, text: &str) {
    let notes = repo.root().join("agent");
    std::fs::create_dir_all(&notes).unwrap();
    repo.workflow("w", &text.replace("@notes", notes.to_str().unwrap()));
}

fn constrained() -> TestRepo {
    let repo = TestRepo::new();
    workflow(&repo, WORKFLOW);
    repo.agent("a.1", "fail 'no luck'");
    repo.start("w");
    let _ = repo.drive();
    assert_eq!(repo.job_state("a"), "failed", "{}", repo.told());
    repo
}

const RETRY: [&str; 5] = ["run", "retry-job", "a", "--reason", "again"];

/// A person lets an act pass.
#[track_caller]
fn escape(repo: &TestRepo, surface: &str, action: &str, more: &[&str]) -> Output {
    let words = ["decision", "record", "--outcome", "accepted", "--title", "Once", "--rationale", "why not"];
    let opens = ["--escape-surface", surface, "--escape-action", action, "--as-person"];
    repo.json(&[&words[..], &opens, more].concat()).ok()
}

#[test]
fn a_constrained_run_says_so_everywhere() {
    let repo = constrained();
    for verb in [&["status"][..], &["run", "summary"], &["dashboard", "--once"]] {
        let shown = repo.striatum(verb).ok();
        assert!(shown.stdout.contains("constrained: the operator acts through mediated verbs ("), "{shown}");
    }
    let mut hand = repo.register("operator", "hand");
    let file = hand.claim()["packet"].as_str().unwrap().to_owned();
    let packet: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(packet["operator_mode"]["mode"], "constrained", "{packet}");
    assert_eq!(packet["operator_mode"]["enforcement"], "advisory");
}

#[test]
fn what_lies_beyond_the_control_plane_needs_an_escape_once_for_each_use() {
    let repo = constrained();
    repo.striatum(&["run", "pause"]).ok();
    repo.striatum(&["run", "resume"]).ok();
    let refused = repo.json(&RETRY).refused(7, "escape_required");
    assert_eq!(
        next_commands(&refused),
        ["striatum decision record --outcome accepted --title TITLE --rationale WHY --run-id w-1 \
            --escape-surface admin:run-retry-job --escape-action 'run retry-job a --reason again'"]
    );
    escape(&repo, "admin:run-retry-job", "run retry-job a --reason again", &[]);
    repo.json(&["run", "retry-job", "a", "--reason", "other words"]).refused(7, "escape_required");
    repo.json(&RETRY).ok();
    assert_eq!(repo.rows("SELECT used, uses FROM escape_act"), ["1 1"]);
    let used: Vec<_> = repo.events().into_iter().filter(|event| event.kind == "decision.used").collect();
    assert_eq!((used.len(), &used[0].body["left"]), (1, &0.into()));
    repo.json(&RETRY).refused(7, "escape_required");
    repo.check_sound();
}

#[test]
fn an_escape_is_for_its_run_its_surface_and_its_time() {
    let repo = constrained();
    escape(&repo, "admin:gc", "run retry-job a --reason again", &[]);
    repo.json(&RETRY).refused(7, "escape_required");
    escape(&repo, "admin:run-retry-job", "run retry-job a --reason again", &["--expires", "10m"]);
    repo.clock(0, 11 * 60_000, None);
    repo.json(&RETRY).refused(7, "escape_required");
    repo.clock(0, 0, Some("another-boot"));
    repo.json(&RETRY).refused(7, "escape_required");
    assert_eq!(repo.count("escape_act WHERE used > 0"), 0);
}

#[test]
fn to_look_at_what_is_left_needs_none() {
    let repo = constrained();
    repo.striatum(&["gc"]).ok();
    repo.json(&["gc", "--yes"]).refused(7, "escape_required");
    repo.json(&["lane", "pause", "script", "--reason", "x"]).refused(7, "escape_required");
    repo.json(&["hook", "install"]).refused(7, "escape_required");
}

/// A command as the operator types it whose session works constrained.
fn of_operator(repo: &TestRepo, session: &str, words: &[&str]) -> Command {
    let mut command = repo.command(&[words, &["--json"]].concat());
    command.env("STRIATUM_SESSION", session);
    command
}

#[test]
fn an_operator_binds_themselves_for_one_session() {
    let repo = TestRepo::new();
    workflow(&repo, &WORKFLOW.replace("operator_mode = \"constrained\"", ""));
    repo.start("w");
    let hand = repo.register_with(&["--role", "operator", "--lane", "hand", "--constrained"]);
    let list = repo.striatum(&["session", "list"]).ok();
    assert!(list.stdout.contains("operator/hand active constrained"), "{list}");
    let asked = |words: &[&str]| repo.run(&mut of_operator(&repo, &hand.session, words));
    asked(&["run", "pause"]).ok();
    asked(&["status"]).ok();
    asked(&["run", "amend", "--set", "budget.launches=9", "--reason", "more"]).refused(7, "escape_required");
    asked(&["answer", "a", "yes", "--as-person"]).refused(7, "capability_denied");
    let record = ["decision", "record", "--outcome", "accepted", "--title", "x", "--rationale", "y", "--as-person"];
    let opens = ["--escape-surface", "admin:gc", "--escape-action", "gc --yes"];
    asked(&[&record[..], &opens].concat()).refused(7, "capability_denied");
    // Somebody else is not bound.
    repo.striatum(&["run", "amend", "--set", "budget.launches=9", "--reason", "more"]).ok();
}

#[test]
fn a_session_that_is_not_constrained_stays_a_lane() {
    let repo = TestRepo::new();
    workflow(&repo, &WORKFLOW.replace("operator_mode = \"constrained\"", ""));
    repo.start("w");
    let hand = repo.register("operator", "hand");
    repo.run(&mut of_operator(&repo, &hand.session, &["run", "pause"])).refused(7, "capability_denied");
}
