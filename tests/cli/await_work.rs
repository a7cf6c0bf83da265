//! `work await`: waits until the slot has something, or nothing can come.

use super::control::ONE;
use crate::support::{Running, TestRepo, wait_until};

/// Two in a row, in one slot.
const TWO: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "first"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "second"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["first"]
"#;

fn waiting(repo: &TestRepo, worker: &crate::support::Worker<'_>, args: &[&str]) -> Running {
    let words: Vec<&str> = std::iter::once("await").chain(args.iter().copied()).collect();
    repo.spawn_command(worker.command(&words))
}

#[test]
fn what_is_there_is_told_and_taken_only_when_asked() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    let worker = repo.register("author", "script");
    let told = worker.work(&["await"]).ok().value();
    assert_eq!(told, serde_json::json!({"status": "ready", "job": "draft"}));
    assert_eq!(repo.job_state("draft"), "queued");
    let claimed = worker.work(&["await", "--claim"]).ok().value();
    assert_eq!((&claimed["status"], &claimed["job"]), (&"claimed".into(), &"draft".into()));
}

#[test]
fn one_piece_after_the_other_until_nothing_will_come() {
    let repo = TestRepo::new();
    repo.workflow("w", TWO);
    repo.start("w");
    let mut worker = repo.register("author", "script");
    assert_eq!(worker.claims(), "first.1");
    worker.work(&["await"]).refused(5, "still_held");
    worker.work(&["complete"]).ok();
    let claimed = worker.work(&["await", "--claim"]).ok().value();
    assert_eq!(claimed["job"], "second");
    worker.fence = claimed["fence"].as_i64();
    worker.work(&["complete"]).ok();
    let over = worker.work(&["await", "--claim"]).ok().value();
    assert_eq!(over, serde_json::json!({"status": "no_work", "reason": "session_ended", "is_final": true}));
}

#[test]
fn a_wait_ends_with_its_time() {
    let repo = TestRepo::new();
    repo.workflow("w", ONE);
    repo.start("w");
    let worker = repo.register("author", "script");
    repo.striatum(&["lane", "pause", "script"]).ok();
    let over = worker.work(&["await", "--claim", "--timeout", "50ms"]).ok().value();
    assert_eq!(over, serde_json::json!({"status": "no_work", "reason": "timed_out", "is_final": false}));
    // Opened again while somebody waits.
    let waits = waiting(&repo, &worker, &["--claim"]);
    wait_until("it is waiting", || repo.count("session WHERE active_at > created_at") == 1);
    repo.striatum(&["lane", "resume", "script"]).ok();
    let claimed = waits.wait().ok().value();
    assert_eq!(claimed["job"], "draft");
}

#[test]
fn a_resident_agent_waits_through_its_helpers_socket() {
    let repo = TestRepo::new();
    std::fs::write(
        repo.root().join("agent/resident.sh"),
        r#"
while claimed=$(striatum work await --claim --json); do
  printf '%s\n' "$claimed" >> "${0%/*}/heard"
  case $claimed in *'"no_work"'*) exit 0 ;; esac
  fence=$(printf '%s' "$claimed" | sed -n 's/.*"fence":\([0-9]*\).*/\1/p')
  striatum work complete --fence "$fence" || exit 1
done
"#,
    )
    .unwrap();
    let script = repo.root().join("agent/resident.sh").display().to_string();
    let lane = format!("command = [\"sh\", \"{script}\"]\n    mode = \"loop\"");
    repo.workflow("w", &TWO.replacen("command = \"@agent\"", &lane, 1));
    repo.start("w");
    repo.drive().ok();
    let heard = std::fs::read_to_string(repo.root().join("agent/heard")).unwrap();
    let words: Vec<serde_json::Value> = heard.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&words[0]["job"], &words[1]["job"]), (&"first".into(), &"second".into()), "{heard}");
    assert_eq!(repo.count("session"), 1);
}
