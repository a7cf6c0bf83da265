//! `decision record`, `decision list`.

use super::control::ONE;
use crate::support::{TestRepo, next_commands};

const RECORD: [&str; 8] =
    ["decision", "record", "--outcome", "accepted", "--title", "Keep the old name", "--rationale", "scripts use it"];

const ESCAPE: [&str; 4] = ["--escape-surface", "process.run", "--escape-action", "make deploy"];

fn started() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    repo
}

#[test]
fn a_judgement_is_kept_with_its_reason_as_row_event_and_page() {
    let repo = started();
    let report = repo.json(&RECORD).ok().value();
    assert_eq!((&report["decision"], &report["run"]), (&"d1".into(), &"w-1".into()));
    let page = repo.read(".striatum/decisions/d1.md");
    let (head, prose) = page.strip_prefix("---\n").unwrap().split_once("---\n").unwrap();
    let keys: Vec<&str> = head.lines().filter_map(|line| line.split_once(':')).map(|(key, _)| key).collect();
    assert_eq!(keys, ["decision", "run", "outcome", "decided_at", "decided_by", "how"]);
    assert_eq!(prose, "\n# Keep the old name\n\nscripts use it\n");
    let told: Vec<serde_json::Value> =
        repo.events().into_iter().filter(|event| event.kind == "decision.recorded").map(|event| event.body).collect();
    assert_eq!((told.len(), &told[0]["sha256"]), (1, &report["sha256"]));
    let listed = repo.json(&["decision", "list"]).ok().value();
    assert_eq!(listed["decisions"][0]["rationale"], "scripts use it");
    assert_eq!(listed["decisions"][0]["escape"], serde_json::Value::Null);
}

#[test]
fn words_that_make_no_sense_together_record_nothing() {
    let repo = started();
    let base = ["decision", "record", "--title", "t", "--as-person"];
    for (words, said) in [
        (&["--outcome", "accepted", "--follow-up", "later"][..], "go together"),
        (&["--outcome", "accepted_with_follow_up"], "go together"),
        (&["--outcome", "perhaps"], "perhaps"),
        (&["--outcome", "accepted", "--escape-surface", "process.run"], "--escape-action"),
        (&["--outcome", "accepted", "--escape-surface", "elsewhere", "--escape-action", "x"], "no such surface"),
        (&["--outcome", "accepted", "--escape-surface", "process.run", "--escape-action", "x"], "needs --rationale"),
        (
            &["--outcome", "rejected", "--rationale", "r", "--escape-surface", "process.run", "--escape-action", "x"],
            "opens nothing",
        ),
        (&[&["--outcome", "accepted", "--rationale", "r", "--uses", "0"], &ESCAPE[..]].concat(), "--uses"),
    ] {
        let refused = repo.striatum(&[&base[..], words].concat()).exits(2);
        assert!(refused.stderr.contains(said), "{refused}");
    }
    assert_eq!(repo.count("decision"), 0);
    assert!(!repo.dir().join("decisions").exists());
}

#[test]
fn an_escape_is_a_persons() {
    let repo = started();
    let words = [&RECORD[..], &ESCAPE].concat();
    let refused = repo.json(&words).refused(7, "person_required");
    assert!(next_commands(&refused)[0].starts_with("striatum decision record --outcome accepted"), "{refused}");
    assert_eq!(repo.count("decision"), 0);
    let report = repo.json(&[&words[..], &["--as-person"]].concat()).ok().value();
    assert_eq!(report["escape"]["uses"], 1);
    let page = repo.read(".striatum/decisions/d1.md");
    assert!(page.contains("escape_decision: true\nescape_surface: \"process.run\"\n"), "{page}");
    let list = repo.striatum(&["decision", "list", "--escapes"]).ok();
    assert!(list.stdout.contains("    process.run make deploy: used 0 of 1\n"), "{list}");
}

#[test]
fn an_escape_names_a_session_that_can_use_it() {
    let repo = started();
    let words = [&RECORD[..], &ESCAPE, &["--as-person", "--session", "s9"]].concat();
    repo.json(&words).refused(2, "not_found");
    assert_eq!(repo.count("decision"), 0);
}

#[test]
fn other_judgements_are_listed_beside() {
    let repo = started();
    repo.agent("draft.1", "ask 'which one'");
    repo.drive().exits(4);
    assert_eq!(repo.job_state("draft"), "waiting_human", "{}", repo.told());
    repo.striatum(&["answer", "draft", "the first", "--as-person"]).ok();
    let list = repo.striatum(&["decision", "list"]).ok();
    assert!(list.stdout.starts_with("d1 answer draft: the first ("), "{list}");
}
