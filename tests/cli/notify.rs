//! `[notify]` and `notify test`: who is not looking is told once, of what waits, by a command that can't hurt the run.

use serde_json::Value;

use super::gate::CHECKED;
use crate::support::{TestRepo, wait_until};

/// A configuration whose command keeps each notice in a file of its own.
fn keeps_notices(repo: &TestRepo, more: &str) {
    let script = "n=$(ls \"$0\" | wc -l); cat > \"$0/.new\"; mv \"$0/.new\" \"$0/$n.json\"";
    let folder = repo.root().join("notices");
    std::fs::create_dir_all(&folder).unwrap();
    let command = serde_json::to_string(&["sh", "-c", script, folder.to_str().unwrap()]).unwrap();
    repo.write(".striatum/config.toml", format!("[limits]\npoll = \"20ms\"\n[notify]\ncommand = {command}\n{more}\n"));
}

/// Every notice that came, in order.
fn notices(repo: &TestRepo) -> Vec<Value> {
    let folder = repo.root().join("notices");
    let read = |number: usize| std::fs::read_to_string(folder.join(format!("{number}.json"))).ok();
    (0..).map_while(read).map(|text| serde_json::from_str(&text).unwrap()).collect()
}

fn occasions(repo: &TestRepo) -> Vec<String> {
    notices(repo).iter().map(|notice| notice["occasion"].as_str().unwrap().to_owned()).collect()
}

/// Nobody tells anything any more: what was taken has been handed over.
fn wait_for_notices(repo: &TestRepo, wanted: &[&str]) {
    wait_until(&format!("{wanted:?} were told"), || occasions(repo) == wanted);
    let told = i64::try_from(wanted.len()).unwrap();
    wait_until("the log says so", || repo.count("event WHERE type = 'person.notified'") == told);
}

#[test]
fn a_gate_and_the_end_are_told_once_each_with_the_command_to_type() {
    let repo = TestRepo::new();
    keeps_notices(&repo, "");
    repo.workflow("w", CHECKED);
    repo.agent("draft", "write notes.txt hello; complete");
    repo.start("w");
    repo.drive().exits(4);
    wait_for_notices(&repo, &["inbox"]);
    let notice = notices(&repo).remove(0);
    assert_eq!(notice["schema"], "striatum.notice/1");
    assert_eq!(notice["text"], "w-1 waits for you: g1 (gate)");
    assert_eq!(notice["items"][0]["text"], "L2: read the notes");
    let argv: Vec<&str> = notice["next"][0]["argv"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(argv.join(" "), "striatum gate approve g1 --run-id w-1");
    // Nothing is new: whoever drives again tells nothing again.
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    repo.drive().ok();
    wait_for_notices(&repo, &["inbox", "completed"]);
    assert_eq!(repo.count("event WHERE type = 'person.notified' AND json_extract(body, '$.result') = 'passed'"), 2);
}

#[test]
fn work_that_no_lane_can_be_launched_for_is_told_once_whoever_drives() {
    let repo = TestRepo::new();
    keeps_notices(&repo, "");
    repo.workflow("w", "[lanes.hand]\nmode = \"human\"\n[[jobs]]\nid = \"look\"\nrole = \"r\"\nlane = \"hand\"\n");
    repo.start("w");
    repo.drive().exits(4);
    wait_for_notices(&repo, &["inbox"]);
    assert_eq!(notices(&repo)[0]["text"], "w-1 waits for you: look (human_lane)");
    repo.drive().exits(4);
    assert_eq!(repo.count("event WHERE type = 'job.surfaced'"), 1);
    assert_eq!(occasions(&repo), ["inbox"]);
}

#[test]
fn only_the_occasions_that_were_chosen_are_told() {
    let repo = TestRepo::new();
    keeps_notices(&repo, "on = [\"completed\"]");
    repo.workflow("w", CHECKED);
    repo.agent("draft", "write notes.txt hello; complete");
    repo.start("w");
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    repo.drive().ok();
    wait_for_notices(&repo, &["completed"]);
}

#[test]
fn lanes_at_work_tell_that_their_driver_is_gone() {
    let repo = TestRepo::new();
    keeps_notices(&repo, "");
    repo.workflow(
        "w",
        r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "a"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "b"
    role = "author"
    lane = "script"
    tree = "none"
"#,
    );
    for job in ["a", "b"] {
        repo.agent(job, "hold work; complete");
    }
    repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    let holds = || repo.notes().iter().filter(|note| note.word == "holds work").count();
    wait_until("both work", || holds() == 2);
    // Each helper has seen its driver: it looks before it starts an agent.
    driver.kill();
    wait_for_notices(&repo, &["driver_ended"]);
    assert_eq!(notices(&repo)[0]["text"], "lanes of w-1 work, and nothing drives it any more");
    assert_eq!(repo.count("event WHERE type = 'driver.ended'"), 1);
    // What the lanes then finish without a driver is told by them.
    repo.go("work");
    wait_for_notices(&repo, &["driver_ended", "completed"]);
}

#[test]
fn a_command_that_fails_or_hangs_is_kept_in_the_log_and_hurts_nothing() {
    for (argv, result) in [("[\"false\"]", "failed"), ("[\"sleep\", \"600\"]", "not_run"), ("[\"no-such\"]", "not_run")]
    {
        let repo = TestRepo::new();
        let text = format!("[notify]\ncommand = {argv}\ntimeout = \"100ms\"\non = [\"completed\"]\n");
        repo.write(".striatum/config.toml", text);
        repo.workflow(
            "w",
            "[lanes.script]\ncommand = \"@agent\"\n[[jobs]]\nid = \"a\"\nrole = \"r\"\nlane = \"script\"\n",
        );
        repo.start("w");
        repo.drive().ok();
        wait_until("the attempt is in the log", || repo.count("event WHERE type = 'person.notified'") == 1);
        assert_eq!(
            repo.rows("SELECT json_extract(body, '$.result') FROM event WHERE type = 'person.notified'"),
            [result]
        );
        let report = repo.json(&["doctor"]).ok().value();
        assert_eq!(report["warnings"], 0, "the log of notices is no leftover: {report}");
    }
}

#[test]
fn a_notice_can_be_tried() {
    let repo = TestRepo::new();
    repo.striatum(&["init"]).ok();
    let bell = repo.striatum(&["notify", "test"]).ok();
    assert_eq!(
        bell.stdout,
        "no command is configured: a driver on a terminal rings its bell; a workflow may name one: --run-id tries that of a run\n"
    );
    repo.write(".striatum/config.toml", "[notify]\ncommand = [\"sh\", \"-c\", \"grep -o 'this is a test'\"]\n");
    repo.json(&["notify", "test"]).refused(7, "untrusted");
    repo.trust();
    let tried = repo.json(&["notify", "test"]).ok().value();
    assert_eq!((&tried["result"], &tried["detail"]), (&"passed".into(), &"this is a test\n".into()));
    repo.write(".striatum/config.toml", "[notify]\ncommand = [\"sh\", \"-c\", \"echo no bus; exit 3\"]\n");
    repo.trust();
    let failed = repo.striatum(&["notify", "test"]).exits(1);
    assert!(failed.stdout.contains("no bus"), "{failed}");
}
