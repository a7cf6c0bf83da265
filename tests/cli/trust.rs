//! `trust`: what a repository names is inert until a person lets it run.

use serde_json::Value;

use super::control::{ONE, next_commands};
use crate::support::TestRepo;

/// `striatum trust` by a person.
fn trust(repo: &TestRepo, files: &[&str]) -> Value {
    let words = [&["trust", "--as-person"], files].concat();
    repo.json(&words).ok().value()
}

#[test]
fn a_workflow_that_came_with_the_repository_is_refused_with_what_it_would_run() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    let refused = repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
    let causes: Vec<&str> = refused["causes"].as_array().unwrap().iter().map(|cause| cause.as_str().unwrap()).collect();
    assert_eq!(causes[0], ".striatum/workflows/w.toml");
    assert!(causes[1].starts_with("  + lane script: command = [\"sh\","), "{causes:?}");
    assert_eq!(next_commands(&refused), ["striatum trust --show", "striatum trust"]);
    assert_eq!(repo.count("run"), 0);
}

#[test]
fn a_person_trusts_it_and_what_changes_after_that_is_told_line_by_line() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    let shown = repo.json(&["trust", "--show"]).ok().value();
    assert_eq!(shown["files"][1]["standing"], "new");
    assert_eq!(shown["granted"], false);
    let granted = trust(&repo, &[]);
    assert_eq!((&granted["granted"], &granted["files"][0]["standing"]), (&true.into(), &"nothing".into()));
    repo.json(&["run", "prepare", "-w", "w"]).ok();
    repo.workflow("w", &ONE.replace("lane = \"script\"", "lane = \"script\"\nverify = \"rm -rf x\""));
    let refused = repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
    assert_eq!(refused["causes"][1], r#"  + job draft: verify = [["rm","-rf","x"]]"#);
    assert_eq!(refused["causes"].as_array().unwrap().len(), 2);
}

#[test]
fn words_for_people_and_budgets_revoke_nothing() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    trust(&repo, &[]);
    let reworded =
        ONE.replace("[[jobs]]", "[budget]\nlaunches = 3\n[[jobs]]\nobjective = \"Do it well.\"\ntimeout = \"1h\"");
    repo.workflow("w", &reworded);
    repo.json(&["run", "prepare", "-w", "w"]).ok();
}

#[test]
fn trusting_is_a_persons() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    let refused = repo.json(&["trust"]).refused(7, "person_required");
    assert_eq!(next_commands(&refused).len(), 1);
    repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
}

#[test]
fn the_same_words_in_another_place_are_not_trusted() {
    let (one, other) = (TestRepo::new(), TestRepo::new());
    one.workflow("w", ONE);
    trust(&one, &[]);
    std::fs::create_dir_all(other.file(".striatum/workflows")).unwrap();
    std::fs::copy(one.file(".striatum/workflows/w.toml"), other.file(".striatum/workflows/w.toml")).unwrap();
    let mut prepare = other.command(&["run", "prepare", "-w", "w", "--json"]);
    prepare.env("XDG_STATE_HOME", one.root().join("state"));
    other.run(&mut prepare).refused(7, "untrusted");
}

#[test]
fn a_named_file_is_trusted_alone() {
    let repo = TestRepo::new();
    repo.workflow("one", ONE);
    repo.workflow("two", ONE);
    trust(&repo, &[".striatum/workflows/two.toml"]);
    repo.json(&["run", "prepare", "-w", "one"]).refused(7, "untrusted");
    repo.json(&["run", "prepare", "-w", "two"]).ok();
    repo.write("apart/three.toml", repo.read(".striatum/workflows/one.toml").replace("\"one\"", "\"three\""));
    let refused = repo.json(&["run", "prepare", "-w", "apart/three.toml"]).refused(7, "untrusted");
    assert_eq!(next_commands(&refused)[1], "striatum trust apart/three.toml");
    trust(&repo, &["apart/three.toml"]);
    repo.json(&["run", "prepare", "-w", "apart/three.toml"]).ok();
}

#[test]
fn a_hash_serves_where_nobody_can_be_asked() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        &format!("[params]\ntask = \"x\"\n{ONE}").replace("\"@agent\"", r#"["sh", "-c", "true", "${params.task}"]"#),
    );
    let refused = repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
    let hint = refused["hints"][0].as_str().unwrap();
    let hash = hint.split(' ').next_back().unwrap();
    let wrong = repo.json(&["run", "go", "-w", "w", "--trust-hash", "sha256:0"]).refused(7, "untrusted");
    assert_eq!(wrong["causes"][1], format!("these: {hash}"));
    repo.striatum(&["run", "go", "-w", "w", "--task", "any", "--trust-hash", hash]).ok();
    repo.json(&["run", "prepare", "-w", "w", "--trust-hash", hash]).ok();
    repo.json(&["run", "start"]).ok();
    repo.json(&["run", "drive", "--trust-hash", "sha256:0"]).refused(7, "untrusted");
    repo.striatum(&["run", "drive", "--trust-hash", hash]).ok();
    repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
}

#[test]
fn a_prepared_run_is_not_launched_where_nobody_trusted_it() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    std::fs::rename(repo.root().join("state"), repo.root().join("elsewhere")).unwrap();
    let ended = repo.striatum(&["run", "drive"]).exits(4);
    assert!(ended.stdout.contains("draft waits for trust in lane script; striatum trust"), "{ended}");
    assert!(ended.stdout.contains("run w-1 -> waiting_human: draft: untrusted"), "{ended}");
    let session = repo.json(&["register-session", "--role", "author", "--lane", "script"]).ok().value();
    let sid = session["session"].as_str().unwrap();
    repo.json(&["supervise", "start", "--session-id", sid]).refused(7, "untrusted");
    assert_eq!(repo.effects(), []);
    assert_eq!(trust(&repo, &[])["runs"][0]["name"], "run w-1");
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
}

#[test]
fn a_driver_that_waits_for_trust_goes_on_when_it_is_given() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    std::fs::rename(repo.root().join("state"), repo.root().join("elsewhere")).unwrap();
    let driver = repo.spawn(&["run", "drive", "--wait-human", "--interval", "60s"]);
    driver.wait_for_line("draft waits for trust");
    trust(&repo, &[]);
    driver.wait().ok();
}

#[test]
fn rows_that_name_other_commands_than_were_prepared_are_not_launched() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    let tampered = rusqlite::Connection::open(repo.db()).unwrap();
    let changed = tampered.execute("UPDATE run SET spec = replace(spec, 'agent.sh', 'other.sh')", ()).unwrap();
    assert_eq!(changed, 1);
    drop(tampered);
    let refused = repo.json(&["run", "drive"]).refused(7, "untrusted");
    assert_eq!(refused["message"], "what w-1 would run is not what was prepared");
    assert_eq!(repo.effects(), []);
}

#[test]
fn what_this_program_writes_is_trusted_until_somebody_changes_it() {
    let repo = TestRepo::new();
    let path = ".striatum/workflows/review.toml";
    repo.json(&["workflow", "generate", "review", "--output", path]).ok();
    repo.json(&["run", "prepare", "-w", "review"]).ok();
    repo.write(path, repo.read(path).replace("note.txt", "notes.txt"));
    repo.json(&["run", "prepare", "-w", "review"]).refused(7, "untrusted");
}

#[test]
fn edits_after_prepare_do_nothing_to_the_run_and_it_says_so() {
    let repo = TestRepo::new();
    let prompted = ONE.replace("role = \"author\"", "role = \"author\"\nprompt = \"prompts/draft.md\"");
    repo.workflow("w", &prompted);
    repo.write(".striatum/prompts/draft.md", "Draft it.");
    repo.prepare("w");
    assert_eq!(repo.json(&["run", "start"]).ok().value()["warnings"], serde_json::json!([]));
    repo.write(".striatum/prompts/draft.md", "Draft it better.");
    let driven = repo.drive().ok();
    assert_eq!(
        driven.lines()[0],
        "warning: .striatum/prompts/draft.md was changed after w-1 was prepared; this run keeps what it was prepared from"
    );
    assert_eq!(driven.stdout.matches("warning:").count(), 1, "{driven}");
}

#[test]
fn prepare_tells_the_base_what_is_not_part_of_it_and_where_a_person_is_needed() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("{ONE}\n[[jobs]]\nid = \"look\"\ntype = \"checkpoint\"\nneeds = [\"draft\"]"));
    repo.trust();
    let before = repo.json(&["run", "prepare", "-w", "w"]).ok().value();
    assert_eq!(before["base"], serde_json::json!({"commit": null, "uncommitted": 0}));
    repo.write("a.txt", "1");
    repo.git(&["add", "a.txt"]);
    repo.git(&["commit", "-qm", "one"]);
    repo.write("a.txt", "2");
    repo.write("b.txt", "3");
    let prepared = repo.striatum(&["run", "prepare", "-w", "w"]).ok();
    let head = String::from_utf8(repo.git(&["rev-parse", "HEAD"]).stdout).unwrap();
    let lines = prepared.lines();
    assert_eq!(lines[1], format!("base {}; 2 uncommitted changes are not part of the run", &head[..12]));
    assert!(lines[2].starts_with("runs lane script: sh "), "{prepared}");
    assert_eq!(lines[3], "you will be needed: 1 time (gate before look)");
}
