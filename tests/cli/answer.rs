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

/// A run with a standing answer, driven as far as it goes.
fn left_alone(workflow: &str, instructions: &[(&str, &str)], exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    for (job, words) in instructions {
        repo.agent(job, words);
    }
    repo.trust();
    let words = ["run", "go", "-w", "w", "--standing-answer", "choose the simpler one", "--as-person"];
    repo.striatum(&words).exits(exit);
    repo
}

#[test]
fn a_standing_answer_is_given_once_a_job_and_the_next_question_waits() {
    let repo = left_alone(
        ONE,
        &[("draft.1", "ask 'which one'"), ("draft.2", "cp \"$STRIATUM_PROMPT\" \"$AGENT\"; ask 'and the colour'")],
        4,
    );
    let prompt = std::fs::read_to_string(repo.root().join("agent/prompt.md")).unwrap();
    assert!(prompt.contains("A person left this answer before you asked"), "{prompt}");
    assert!(prompt.contains("Asked: which one") && prompt.contains("choose the simpler one"), "{prompt}");
    assert_eq!(repo.rows("SELECT state, reason, attempt, strikes FROM job"), ["waiting_human needs_context 2 0"]);
    assert_eq!(
        repo.rows("SELECT kind, job_id IS NULL FROM decision ORDER BY id"),
        ["standing_answer 1", "standing_answer 0"]
    );
    assert_eq!(repo.story(&["answer.", "decision."]), ["decision.recorded", "answer.given draft"]);
    let summary = repo.striatum(&["run", "summary"]).ok().stdout;
    assert!(summary.contains("standing answer, given to draft: choose the simpler one"), "{summary}");
    let shown = repo.striatum(&["job", "show", "draft"]).ok().stdout;
    assert!(shown.contains("asked which one; the standing answer says: choose the simpler one"), "{shown}");
    // A person's own answer goes on from there.
    repo.striatum(&["answer", "draft", "blue", "--as-person"]).ok();
    repo.drive().ok();
    repo.check_sound();
}

#[test]
fn a_standing_answer_never_lifts_what_blocks_a_job() {
    let repo = left_alone(ONE, &[("draft", "block 'a key'")], 3);
    assert_eq!(repo.rows("SELECT state, reason, attempt FROM job"), ["waiting_human agent_blocked 1"]);
    assert_eq!(repo.count("event WHERE type = 'answer.given'"), 0);
}

#[test]
fn a_standing_answer_is_not_given_where_a_person_has_to_decide() {
    let outward = ONE.replace("id = \"draft\"", "id = \"draft\"\n    outward = true");
    let repo = left_alone(&outward, &[("draft", "ask 'which one'")], 4);
    repo.striatum(&["gate", "approve", "draft", "--as-person"]).ok();
    repo.drive().exits(4);
    assert_eq!(repo.rows("SELECT state, reason, attempt FROM job"), ["waiting_human needs_context 1"]);
    assert_eq!(repo.count("event WHERE type = 'answer.given'"), 0);
    let shown = repo.striatum(&["run", "summary"]).ok().stdout;
    assert!(shown.contains("standing answer, given to nobody yet"), "{shown}");
}

#[test]
fn only_a_person_leaves_a_standing_answer_and_it_may_be_a_file() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.trust();
    let prepare = |words: &str| repo.json(&["run", "prepare", "-w", "w", "--standing-answer", words, "--as-person"]);
    repo.json(&["run", "prepare", "-w", "w", "--standing-answer", "yes"]).refused(7, "person_required");
    prepare("  ").refused(2, "usage");
    prepare(&"x".repeat(20_000)).refused(6, "too_large");
    repo.write("answer.txt", "from a file\n");
    prepare("@answer.txt").ok();
    assert_eq!(repo.rows("SELECT json_extract(spec, '$.standing_answer.words') FROM run"), ["from a file"]);
    assert_eq!(repo.rows("SELECT body FROM decision"), ["from a file"]);
}

/// Two jobs one after the other, under a stop phrase.
fn with_phrase(draft: &str, exit: i32) -> TestRepo {
    let repo = TestRepo::new();
    repo.write(".striatum/config.toml", "[stop]\nphrases = [\"stop everything\"]\n");
    let second =
        "[[jobs]]\nid = \"second\"\nrole = \"author\"\nlane = \"script\"\ntree = \"none\"\nneeds = [\"draft\"]\n";
    repo.workflow("w", &format!("{ONE}\n{second}"));
    repo.agent("draft", draft);
    repo.start("w");
    repo.drive().exits(exit);
    repo
}

#[test]
fn a_stop_phrase_in_an_answer_stops_the_run_and_the_answer_stands() {
    let repo = with_phrase("complete --summary 'the base is broken: STOP  everything!'", 5);
    assert_eq!(repo.job_state("draft"), "completed");
    assert_eq!(repo.effects_of("second", "start"), 0);
    let body: String = repo.one("SELECT body FROM event WHERE type = 'run.stopped'", ());
    assert!(body.contains("\"phrase\":\"stop everything\"") && body.contains("\"job\":\"draft\""), "{body}");
    let inbox = repo.striatum(&["inbox"]).ok().stdout;
    assert!(inbox.contains("draft said the stop phrase `stop everything`"), "{inbox}");
    assert!(inbox.contains("striatum run resume --run-id w-1"), "{inbox}");
    repo.striatum(&["run", "resume"]).ok();
    repo.drive().ok();
    assert_eq!(repo.effects_of("second", "start"), 1);
    assert!(!repo.striatum(&["inbox"]).ok().stdout.contains("stop phrase"));
    repo.check_sound();
}

#[test]
fn a_stop_phrase_counts_in_whatever_an_agent_says_and_in_no_file() {
    for says in ["ask 'shall I stop everything?'", "block 'stop everything'", "fail 'Stop Everything'"] {
        let repo = with_phrase(says, 5);
        assert_eq!(repo.count("event WHERE type = 'run.stopped'"), 1, "{says}");
    }
    let quiet = "write notes.txt stop everything; echo stop everything; complete --summary 'nonstop everything'";
    let repo = with_phrase(quiet, 0);
    assert_eq!(repo.count("event WHERE type = 'run.stopped'"), 0);
}
