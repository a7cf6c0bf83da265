//! `answer`: what a job asks, a person says, and the next attempt is told.

use std::io::Write;
use std::process::Stdio;

use super::control::ONE;
use crate::support::{TestRepo, next_commands};

fn asking(instructions: &str, exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.agent("draft.1", instructions);
    repo.start("w");
    repo.drive().exits(exit);
    repo
}

#[test]
fn a_question_and_its_answer_stand_in_the_next_packet() {
    let repo = asking("ask 'the tax rate'", 4);
    repo.agent(
        "draft.2",
        "cp \"$STRIATUM_PACKET\" \"$AGENT/packet.json\"; cp \"$STRIATUM_PROMPT\" \"$AGENT\"; complete",
    );
    let answered = repo.json(&["answer", "draft", "it is 19 %", "--as-person"]).ok().value();
    assert_eq!((&answered["attempt"], &answered["state"]), (&2.into(), &"running".into()));
    assert_eq!(next_commands(&answered), ["striatum run drive --run-id w-1"]);
    repo.drive().ok();
    let packet = std::fs::read_to_string(repo.root().join("agent/packet.json")).unwrap();
    let packet: serde_json::Value = serde_json::from_str(&packet).unwrap();
    let told = &packet["context"]["answers"][0];
    assert_eq!((&told["question"]["awaiting"], &told["answer"]), (&"the tax rate".into(), &"it is 19 %".into()));
    let prompt = std::fs::read_to_string(repo.root().join("agent/prompt.md")).unwrap();
    assert!(prompt.contains("Asked: the tax rate") && prompt.contains("it is 19 %"), "{prompt}");
    assert_eq!(repo.rows("SELECT kind, body FROM decision"), ["answer it is 19 %"]);
    assert_eq!(repo.count("event WHERE type = 'answer.given'"), 1);
}

#[test]
fn an_answer_costs_no_try_and_wakes_a_stuck_run() {
    let repo = asking("block 'a key'", 3);
    assert_eq!(repo.run_state("w-1"), "needs_operator");
    repo.striatum(&["answer", "draft", "--resolved", "--as-person"]).ok();
    assert_eq!(repo.rows("SELECT state, cause FROM run"), ["running -"]);
    assert_eq!(repo.rows("SELECT state, strikes, requeues, question FROM job"), ["queued 0 0 -"]);
    repo.drive().ok();
}

#[test]
fn every_earlier_answer_is_still_told() {
    let repo = asking("ask first", 4);
    repo.agent("draft.2", "ask second");
    repo.striatum(&["answer", "draft", "one", "--as-person"]).ok();
    repo.drive().exits(4);
    repo.striatum(&["answer", "draft", "two", "--as-person"]).ok();
    let context = "SELECT json_extract(context, '$.answers[0].answer'), json_extract(context, '$.answers[1].answer')
        FROM attempt WHERE number = 3";
    assert_eq!(repo.rows(context), ["one two"]);
    repo.drive().ok();
}

#[test]
fn an_answer_comes_from_a_file_or_through_standard_input() {
    let repo = asking("ask first", 4);
    repo.agent("draft.2", "ask second");
    repo.write("answer.md", "from a file\n");
    repo.striatum(&["answer", "draft", "--file", "answer.md", "--as-person"]).ok();
    repo.drive().exits(4);
    let mut command = repo.command(&["answer", "draft", "-", "--as-person"]);
    let mut typing = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    typing.stdin.take().unwrap().write_all(b"through a pipe\n").unwrap();
    assert!(typing.wait().unwrap().success());
    assert_eq!(repo.rows("SELECT body FROM decision ORDER BY id"), ["from a file", "through a pipe"]);
}

#[test]
fn who_asks_nothing_gets_no_answer() {
    let repo = asking("ask something", 4);
    repo.json(&["answer", "draft", "  ", "--as-person"]).refused(2, "usage");
    repo.json(&["answer", "drafd", "x", "--as-person"]).refused(2, "not_found");
    repo.striatum(&["answer", "draft", "x", "--as-person"]).ok();
    let refused = repo.json(&["answer", "draft", "y", "--as-person"]).refused(5, "invalid_transition");
    assert_eq!(refused["message"], "draft is queued and asks nothing");
    assert_eq!(repo.count("attempt"), 2);
}
