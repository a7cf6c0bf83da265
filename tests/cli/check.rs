//! `run check`, and `run go` that does so first.

use crate::support::TestRepo;

fn repo(test: &str, lane: &str) -> TestRepo {
    let repo = TestRepo::with_code();
    repo.write("test.sh", test);
    repo.said(&["add", "--all"]);
    repo.said(&["commit", "-qm", "Test"]);
    repo.workflow(
        "w",
        &format!(
            "[lanes.author]\ncommand = [{lane:?}, \"-c\", \"echo four > src/main.txt\"]\n[[jobs]]\nid = \"draft\"\n\
             role = \"author\"\nlane = \"author\"\nobjective = \"x\"\nwrites = [\"src/\"]\nverify = \"sh test.sh\"\n"
        ),
    );
    repo.trust();
    repo
}

#[test]
fn what_is_red_before_anybody_touched_anything_is_told_and_stops_go() {
    let repo = repo("echo no four yet; grep -q four src/main.txt\n", "sh");
    let report = repo.json(&["run", "check", "-w", "w"]).exits(1).value();
    let verify = report["checks"].as_array().unwrap().iter().find(|check| check["kind"] == "verify").unwrap().clone();
    assert_eq!((verify["result"].as_str(), verify["what"].as_str()), (Some("failed"), Some("sh test.sh")));
    assert_eq!(verify["detail"], "no four yet\n");
    let refused = repo.striatum(&["run", "go", "-w", "w"]).exits(1);
    assert!(refused.stderr.contains("red before anybody touched anything: verify `sh test.sh` failed"), "{refused}");
    assert!(refused.stderr.contains("--base-red"), "{refused}");
    assert_eq!(repo.count("run"), 0);
    repo.striatum(&["run", "go", "-w", "w", "--base-red"]).ok();
}

#[test]
fn a_green_base_is_said_to_be_and_nothing_is_left_of_looking() {
    let repo = repo("grep -q . src/main.txt\n", "sh");
    repo.striatum(&["run", "check", "-w", "w"]).ok();
    let trees = repo.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(String::from_utf8_lossy(&trees.stdout).matches("worktree ").count(), 1);
    assert!(!repo.file(".striatum/worktrees/.check").exists());
    repo.striatum(&["run", "go", "-w", "w"]).ok();
}

#[test]
fn a_check_that_can_not_run_is_not_passed() {
    let repo = repo("exit 127\n", "sh");
    let report = repo.json(&["run", "check", "-w", "w"]).exits(11).value();
    assert!(report["checks"].to_string().contains("\"not_run\""), "{report}");
}

#[test]
fn a_program_that_is_missing_is_named_before_anything_is_made() {
    let repo = repo("true\n", "no-such-agent");
    repo.json(&["run", "check", "-w", "w"]).exits(1);
    let refused = repo.striatum(&["run", "go", "-w", "w"]).exits(11);
    assert!(refused.stderr.contains("no-such-agent is not on the PATH"), "{refused}");
    assert_eq!(repo.count("run"), 0);
}
