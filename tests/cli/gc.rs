//! `gc` and `uninit`: what ended runs leave, what goes, what stays and why.

use crate::support::TestRepo;

/// An author that leaves a file which its review never sees sealed.
const WORKFLOW: &str = r#"
[lanes.author]
command = ["sh", "-c", "echo one > src/new.txt"]
[lanes.careless]
command = ["sh", "-c", "echo half > src/half.txt; exit 1"]
[[jobs]]
id = "draft"
role = "author"
lane = "author"
objective = "Write"
writes = ["src/new.txt"]
[[jobs]]
id = "half"
role = "author"
lane = "careless"
objective = "Give up"
writes = ["src/half.txt"]
max_strikes = 1
"#;

fn canceled() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.drive_through(WORKFLOW).exits(3);
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    repo
}

#[test]
fn what_was_never_sealed_stays_and_is_named_until_it_is_discarded_into_a_pin() {
    let repo = canceled();
    let listed = repo.json(&["gc", "--yes"]).ok().value();
    let left = listed["left"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{listed}");
    assert_eq!(left[0]["stays"], "src/half.txt was never sealed");
    assert!(repo.file(".striatum/worktrees/w-1/half.1/src/half.txt").exists());

    let error = repo.json(&["uninit", "--yes"]).refused(5, "still_held");
    assert!(error["message"].as_str().unwrap().contains("src/half.txt was never sealed"), "{error}");
    assert!(repo.db().exists());

    repo.striatum(&["gc", "--discard", "w-1/half", "--reason", "not needed"]).ok();
    assert!(repo.file(".striatum/worktrees/w-1/half.1").exists(), "it only showed");
    let done = repo.json(&["gc", "--discard", "w-1/half", "--reason", "not needed", "--yes"]).ok().value();
    assert!(!repo.file(".striatum/worktrees/w-1/half.1").exists());
    let pin = done["pinned"].as_str().unwrap();
    let kept = repo.git(&["show", &format!("{pin}:src/half.txt")]);
    assert_eq!(String::from_utf8_lossy(&kept.stdout), "half\n");
}

#[test]
fn a_store_goes_and_what_you_wrote_and_what_git_keeps_stays() {
    let repo = canceled();
    repo.striatum(&["gc", "--discard", "w-1/half", "--reason", "not needed", "--yes"]).ok();
    repo.striatum(&["uninit"]).ok();
    assert!(repo.db().exists(), "it only showed");
    let report = repo.json(&["uninit", "--yes"]).ok().value();
    assert!(!repo.db().exists());
    assert!(repo.file(".striatum/workflows/w.toml").exists());
    assert!(report["stays"].to_string().contains("refs/heads/striatum/w-1"), "{report}");
    // A new store does not go on in the branches of the old one.
    assert_eq!(repo.prepare("w"), "w-2");
}

#[test]
fn nothing_goes_while_a_run_is_live() {
    let repo = TestRepo::with_code();
    repo.workflow("w", WORKFLOW);
    repo.start("w");
    repo.json(&["uninit", "--yes"]).refused(5, "invalid_transition");
    assert!(repo.db().exists());
}
