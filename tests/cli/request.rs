//! `--request-id`: the same key gets the first answer again, and the effect happens once.

use super::control::{ONE, next_commands};
use crate::support::TestRepo;

fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.trust();
    repo
}

const PREPARE: [&str; 6] = ["run", "prepare", "-w", "w", "--request-id", "k1"];

#[test]
fn the_same_key_gets_the_first_answer_again() {
    let repo = repo();
    let first = repo.json(&PREPARE).ok().value();
    assert_eq!(repo.json(&PREPARE).ok().value(), first);
    assert_eq!(repo.count("run"), 1);
    repo.json(&["run", "prepare", "-w", "w", "--request-id", "k2"]).ok();
    assert_eq!(repo.count("run"), 2);
}

#[test]
fn a_key_stands_for_one_request() {
    let repo = repo();
    repo.json(&PREPARE).ok();
    let other = repo.json(&["run", "prepare", "-w", "w", "--constrained", "--request-id", "k1"]);
    assert_eq!(
        other.refused(5, "request_reused")["message"],
        "the key k1 was used before, and is for `run prepare` with other words"
    );
    let other = repo.json(&["run", "start", "--request-id", "k1"]).refused(5, "request_reused");
    assert_eq!(other["message"], "the key k1 was used before, and is for `run prepare`");
    assert_eq!(repo.run_state("w-1"), "ready");
}

#[test]
fn a_refusal_that_changed_nothing_takes_no_key() {
    let repo = repo();
    repo.json(&["run", "start", "--request-id", "k1"]).refused(2, "not_found");
    repo.json(&PREPARE).ok();
}

#[test]
fn a_crash_before_the_effect_leaves_the_key_free() {
    let repo = repo();
    repo.crash_at("run prepare.uncommitted");
    repo.json(&PREPARE).exits(-9);
    repo.json(&PREPARE).ok();
    assert_eq!(repo.count("run"), 1);
}

#[test]
fn a_crash_after_the_effect_never_repeats_it_and_says_so() {
    let repo = repo();
    for point in ["run prepare.committed", "request.unanswered"] {
        let prepare = ["run", "prepare", "-w", "w", "--request-id", point];
        let before = if repo.db().exists() { repo.count("run") } else { 0 };
        repo.crash_at(point);
        repo.json(&prepare).exits(-9);
        let refused = repo.json(&prepare).refused(5, "request_unfinished");
        assert_eq!(
            refused["message"],
            format!("`run prepare` with the key {point} was begun before, and its answer is not known")
        );
        assert_eq!(next_commands(&refused), ["striatum events"]);
        assert_eq!(repo.count("run"), before + 1);
    }
}

#[test]
fn of_many_at_once_one_does_it_and_all_get_its_answer() {
    let repo = repo();
    repo.json(&["run", "prepare", "-w", "w"]).ok();
    let all: Vec<_> = (0..8)
        .map(|_| {
            repo.spawn_command({
                let mut command = repo.command(&PREPARE);
                command.arg("--json");
                command
            })
        })
        .collect();
    let mut answers: Vec<String> = all.into_iter().map(|one| one.wait().ok().stdout).collect();
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(repo.count("run"), 2);
}

#[test]
fn go_takes_up_the_run_that_its_key_prepared() {
    let repo = repo();
    let go = ["run", "go", "-w", "w", "--request-id", "k1"];
    repo.crash_at("launch.registered");
    repo.striatum(&go).exits(-9);
    repo.striatum(&go).ok();
    repo.striatum(&go).ok();
    assert_eq!(repo.count("run"), 1);
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

#[test]
fn an_agent_uses_keys_too() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("{ONE}\nproduces = [{{ name = \"note\", path = \"a.txt\" }}]"));
    repo.agent(
        "draft",
        "write a.txt one; publish note --request-id k1; publish note --request-id k1
         publish other --request-id k1 2> \"$AGENT/refusal\"; complete --request-id k2",
    );
    repo.start("w");
    repo.drive().ok();
    let refusal = std::fs::read_to_string(repo.root().join("agent/refusal")).unwrap();
    assert!(refusal.starts_with("error: the key k1 was used before"), "{refusal}");
    assert_eq!(
        repo.rows("SELECT key, verb, principal FROM request ORDER BY key"),
        ["k1 work_publish session:s1", "k2 work_answer session:s1"]
    );
}
