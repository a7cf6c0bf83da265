//! A landing dies at one named point; the next approval, or the next drive, ends it: one commit, and a checkout that
//! shows it.

use crate::support::TestRepo;

const LANDS: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    [[jobs]]
    id = "land"
    type = "land"
    needs = ["draft"]
    into = "main"
    verify = "grep -q total src/total.txt"
"#;

fn git(repo: &TestRepo, args: &[&str]) -> String {
    let done = repo.git(args);
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

fn waits() -> TestRepo {
    let repo = TestRepo::new();
    git(&repo, &["config", "user.name", "Ada Example"]);
    git(&repo, &["config", "user.email", "ada@example.com"]);
    repo.write("src/total.txt", "sum\n");
    repo.write("src/old.txt", "old\n");
    git(&repo, &["add", "src"]);
    git(&repo, &["commit", "--quiet", "-m", "Begin"]);
    repo.workflow("w", LANDS);
    repo.agent(
        "draft",
        "write src/total.txt total; write src/deep/new.txt more; rm src/old.txt; complete --summary Total",
    );
    repo.start("w");
    repo.drive().exits(4);
    repo
}

/// Exactly one commit on the target, shown by the checkout; nothing half-made is left.
#[track_caller]
fn is_landed_once(repo: &TestRepo) {
    assert_eq!(git(repo, &["log", "--format=%s", "main"]), "Total\nBegin", "{}", repo.told());
    assert_eq!(git(repo, &["status", "--porcelain", "--", ".", ":!.striatum"]), "");
    assert_eq!(repo.read("src/total.txt"), "total\n");
    assert_eq!(repo.read("src/deep/new.txt"), "more\n");
    assert!(!repo.file("src/old.txt").exists());
    assert_eq!(repo.count("landing WHERE state = 'done'"), 1);
    assert_eq!(repo.count("landing WHERE state = 'intended'"), 0);
    assert_eq!(repo.count("event WHERE type = 'land.done'"), 1);
    assert_eq!(git(repo, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
    git(repo, &["fsck", "--strict", "--no-dangling"]);
    repo.check_completed("w-1");
}

fn dies_at(point: &str) -> TestRepo {
    let repo = waits();
    repo.crash_at(point);
    let died = repo.striatum(&["gate", "approve", "land", "--as-person"]);
    assert_eq!(died.code, -9, "{point}: {died}");
    // A checkout is never left showing the landing taken back.
    if git(&repo, &["log", "--format=%s", "-1", "main"]) == "Total" {
        assert_eq!(repo.read("src/total.txt"), "total\n", "{point}");
    }
    repo
}

macro_rules! cut_and_approved_again {
    ($($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            let repo = dies_at($point);
            repo.striatum(&["gate", "approve", "land", "--as-person"]).ok();
            is_landed_once(&repo);
        }
    )* };
}

cut_and_approved_again! {
    a_landing_dies_while_its_work_tree_is_made: "trial.made",
    a_landing_dies_while_it_verifies: "verify.spawned",
    a_landing_dies_before_its_verification_is_told: "land verify.uncommitted",
    a_landing_dies_before_its_intent: "land.uncommitted",
    a_landing_dies_after_its_intent: "land.intended",
    a_landing_dies_when_the_checkout_has_followed: "land.followed",
    a_landing_dies_when_the_target_has_moved: "land.moved",
    a_landing_dies_when_its_outcome_is_told: "land.done",
}

macro_rules! cut_and_driven {
    ($($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            let repo = dies_at($point);
            let driven = repo.drive().ok();
            assert!(driven.stderr.contains("finished landing land") || driven.stdout.contains("finished landing land"),
                "{driven}");
            is_landed_once(&repo);
        }
    )* };
}

cut_and_driven! {
    a_driver_finishes_what_was_intended: "land.intended",
    a_driver_finishes_what_the_checkout_has: "land.followed",
    a_driver_finishes_what_the_target_has: "land.moved",
}

#[test]
fn a_landing_that_was_cut_after_its_intent_gives_way_to_what_came_meanwhile() {
    let repo = dies_at("land.intended");
    repo.write("README", "two\n");
    git(&repo, &["add", "README"]);
    git(&repo, &["commit", "--quiet", "-m", "Meanwhile"]);
    repo.striatum(&["gate", "approve", "land", "--as-person"]).ok();
    assert_eq!(git(&repo, &["log", "--format=%s", "main"]), "Total\nMeanwhile\nBegin");
    assert_eq!(git(&repo, &["status", "--porcelain", "--", ".", ":!.striatum"]), "");
    assert_eq!(repo.rows("SELECT state FROM landing ORDER BY id"), ["void", "done"]);
}

#[test]
fn what_a_cut_left_staged_may_be_taken_back_or_committed_by_hand() {
    let repo = dies_at("land.followed");
    assert_ne!(git(&repo, &["diff", "--cached", "--name-only"]), "");
    git(&repo, &["reset", "--quiet", "--hard"]);
    repo.striatum(&["run", "land", "--as-person"]).ok();
    is_landed_once(&repo);

    let repo = dies_at("land.followed");
    git(&repo, &["commit", "--quiet", "-m", "By hand"]);
    let landed = repo.json(&["run", "land", "--as-person"]).ok().value();
    assert_eq!(landed["landed"]["kind"], "outside");
    assert_eq!(git(&repo, &["log", "--format=%s", "main"]), "By hand\nBegin");
}

/// The power went away while git wrote files: some are there, its index is not.
#[test]
fn files_that_a_cut_left_written_are_taken_over_and_others_are_not() {
    let repo = dies_at("land.intended");
    repo.write("src/total.txt", "total\n");
    repo.write("src/deep/new.txt", "more\n");
    repo.striatum(&["gate", "approve", "land", "--as-person"]).ok();
    is_landed_once(&repo);

    let repo = dies_at("land.intended");
    repo.write("src/total.txt", "total\n");
    repo.write("src/deep/new.txt", "mine\n");
    repo.json(&["gate", "approve", "land", "--as-person"]).refused(5, "target_dirty");
    assert_eq!(repo.read("src/deep/new.txt"), "mine\n");
    assert_eq!(git(&repo, &["log", "--format=%s", "main"]), "Begin");
}

#[test]
fn a_landing_that_has_begun_is_not_rejected() {
    let repo = dies_at("land.intended");
    repo.json(&["gate", "reject", "land", "--as-person"]).refused(5, "still_held");
    repo.json(&["gate", "revise", "land", "--note", "no", "--as-person"]).refused(5, "still_held");
    repo.striatum(&["gate", "approve", "land", "--as-person"]).ok();
    is_landed_once(&repo);
}

#[test]
fn a_run_that_is_canceled_while_it_lands_has_landed_once_and_stays_canceled() {
    let repo = dies_at("land.moved");
    repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    repo.json(&["gate", "approve", "g1", "--as-person"]).ok();
    assert_eq!(git(&repo, &["log", "--format=%s", "main"]), "Total\nBegin");
    assert_eq!(repo.run_state("w-1"), "canceled");
}
