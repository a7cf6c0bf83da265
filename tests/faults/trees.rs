//! Deaths while a tree is made or carried over, and while a change is committed, pinned, integrated and sealed: each
//! job's change is on the run's branch exactly once, and nothing is left behind.

use crate::support::{DRAFT, Output, REVIEWED, TestRepo, wait_until};

/// Two authors side by side, of whom one is sent back, and a conflict between them.
const STORY: &str = r#"
    [tree]
    setup = [["sh", "-c", "echo set >> setup.ignored"]]
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    allow_overlap = true
    verify = [["test", "-s", "setup.ignored"]]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "script"
    [[jobs]]
    id = "other"
    role = "other"
    lane = "script"
    writes = ["src/"]
    allow_overlap = true
"#;

fn told() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.workflow("w", STORY);
    // Whatever is killed, the work is the same: an agent that finds its own or newer work in its tree goes on from there.
    let write = "printf 'one\\n%s\\nthree\\n'";
    repo.agent(
        "draft",
        &format!("{write} \"draft $ATTEMPT\" > src/main.txt; echo \"$ATTEMPT\" > src/draft.txt; complete"),
    );
    repo.agent("other", &format!("echo other > src/other.txt; {write} both > src/other-main.txt; complete"));
    repo.agent("review.1", "verdict needs_revision --finding 'Text: not yet'");
    repo
}

/// Drives, again after each death, until a driver ends by itself.
fn drive_on(repo: &TestRepo) -> Output {
    for deaths in 0.. {
        let driven = repo.drive();
        if driven.code != -9 {
            return driven;
        }
        assert!(deaths < 3, "{driven}");
    }
    unreachable!()
}

/// Each job's newest change is on the branch, each change once; the repository is sound and nothing is left.
#[track_caller]
fn check_whole(repo: &TestRepo, run: &str) {
    repo.check_cleared(run);
    let landed = repo.landed(run);
    let mut once = landed.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), landed.len(), "{landed:?}");
    let sealed: Vec<String> = repo.rows(
        "SELECT job.name || '.' || attempt.number FROM attempt JOIN job ON job.id = attempt.job_id
         WHERE outcome = 'sealed' AND job.type <> 'review' ORDER BY 1",
    );
    assert_eq!(once, sealed, "{}", repo.told());
    assert_eq!(repo.count("change WHERE state <> 'integrated'"), 0, "{}", repo.told());
    assert_eq!(repo.one::<String>("SELECT tip FROM run", ()), repo.said(&["rev-parse", &format!("striatum/{run}")]));
    assert_eq!(repo.on_branch(run, "src/other.txt"), "other");
    let newest = sealed.iter().filter_map(|name| name.strip_prefix("draft.")).next_back().unwrap().to_owned();
    assert_eq!(repo.on_branch(run, "src/draft.txt"), newest);
    assert_eq!(repo.on_branch(run, "src/main.txt"), format!("one\ndraft {newest}\nthree"));
    repo.check_untouched();
    repo.striatum(&["audit", "verify"]).ok();
}

fn dies_at(point: &str) {
    let repo = told();
    let run = repo.start("w");
    repo.crash_at(point);
    let driven = drive_on(&repo);
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    check_whole(&repo, &run);
}

/// The point is armed while the reviewer holds: what follows is the second attempt in a tree that is carried over.
fn dies_in_the_second_attempt_at(point: &str) {
    let repo = told();
    repo.agent("review.1", "hold review; verdict needs_revision --finding 'Text: not yet'");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the reviewer holds", || repo.notes().iter().any(|note| note.word == "holds review"));
    wait_until("the other is sealed", || repo.job_state("other") == "completed");
    repo.crash_at(point);
    repo.go("review");
    let mut driven = driver.wait();
    if driven.code == -9 {
        driven = drive_on(&repo);
    }
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    check_whole(&repo, &run);
}

macro_rules! points {
    ($dies:ident: $($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            $dies($point);
        }
    )* };
}

points! { dies_at:
    a_helper_dies_before_a_tree_is_intended: "tree.uncommitted",
    a_helper_dies_after_it_intended_a_tree: "tree.intended",
    a_helper_dies_after_it_added_a_tree: "tree.added",
    a_helper_dies_after_it_filled_a_tree: "tree.filled",
    a_helper_dies_before_its_setup_is_started: "setup.committed",
    a_helper_dies_after_its_setup: "setup ended.committed",
    a_helper_dies_after_it_made_a_tree: "tree.made",
    a_helper_dies_before_its_change_is_intended: "settle.uncommitted",
    a_helper_dies_after_it_committed: "settle.committed",
    a_helper_dies_after_it_pinned: "settle.pinned",
    a_helper_dies_after_it_aimed: "settle.aimed",
    a_helper_dies_after_it_integrated: "settle.integrated",
    a_helper_dies_after_it_sealed_a_change: "settle.sealed",
    a_helper_dies_before_it_seals_a_change: "seal.uncommitted",
    a_helper_dies_before_it_removes_a_tree: "tree.going",
    a_helper_dies_after_it_removed_a_tree: "tree.gone",
}

/// A tree whose removal was cut in the middle is clean still: what is gone of it is nobody's change.
#[test]
fn a_tree_that_was_half_removed_when_its_helper_died_goes() {
    let repo = TestRepo::with_code();
    repo.workflow("w", DRAFT);
    repo.agent("draft", "echo new > src/new.txt; complete");
    let run = repo.start("w");
    repo.crash_at("tree.going");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("somebody dies", || !repo.is_crash_pending());
    let tree = repo.dir().join("worktrees").join(&run).join("draft.1");
    // What git would have removed first; a driver may have come to the rest already.
    let _ = std::fs::remove_file(tree.join("src/new.txt"));
    let _ = driver.wait();
    // The run is over, and its tree may be left: whoever drives it again takes it away.
    repo.striatum(&["run", "drive", "--run-id", &run]).ok();
    repo.check_cleared(&run);
    assert_eq!(repo.landed(&run), ["draft.1"]);
}

/// Whoever finds a folder gone and dies over it leaves the next one no riddle.
#[test]
fn a_tree_that_is_found_gone_by_one_that_dies_keeps_nobody_from_driving_on() {
    let repo = TestRepo::with_code();
    repo.workflow("w", REVIEWED);
    repo.agent("draft", "echo \"$ATTEMPT\" > src/new.txt; complete");
    repo.agent("review.1", "hold review; verdict needs_revision --finding 'Text: not yet'");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the reviewer holds", || repo.notes().iter().any(|note| note.word == "holds review"));
    std::fs::remove_dir_all(repo.dir().join("worktrees").join(&run).join("draft.1")).unwrap();
    repo.crash_at("tree.missing");
    repo.go("review");
    let _ = driver.wait();
    assert!(!repo.is_crash_pending(), "nobody came by");
    repo.striatum(&["run", "drive", "--run-id", &run]).ok();
    repo.check_cleared(&run);
}

points! { dies_in_the_second_attempt_at:
    a_helper_dies_before_a_carry_over_is_recorded: "tree carry.uncommitted",
    a_helper_dies_after_a_carry_over_is_recorded: "tree.carrying",
    a_helper_dies_after_it_carried_over: "tree.carried",
    a_helper_dies_after_it_committed_again: "settle.committed",
    a_helper_dies_after_it_pinned_again: "settle.pinned",
    a_helper_dies_after_it_aimed_again: "settle.aimed",
    a_helper_dies_after_it_integrated_again: "settle.integrated",
}

#[test]
fn a_conflict_is_told_even_when_the_helper_dies_while_it_carries_over() {
    for point in ["tree.carrying", "tree.carried", "agent.intended"] {
        let repo = TestRepo::with_code();
        repo.workflow("w", STORY);
        repo.agent("draft.1", "sed -i s/two/draft/ src/main.txt; hold draft; complete");
        repo.agent(
            "draft",
            "cp src/main.txt \"$AGENT/seen\"; cp \"$STRIATUM_PACKET\" \"$AGENT/packet\"
            printf 'one\\nboth\\nthree\\n' > src/main.txt; complete",
        );
        repo.agent("other", "sed -i s/two/other/ src/main.txt; hold other; complete");
        let run = repo.start("w");
        let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
        let holds = |word: &str| repo.notes().iter().any(|note| note.word == format!("holds {word}"));
        wait_until("both hold", || holds("draft") && holds("other"));
        repo.go("other");
        wait_until("the other is sealed", || repo.job_state("other") == "completed");
        repo.crash_at(point);
        repo.go("draft");
        let mut driven = driver.wait();
        if driven.code == -9 {
            driven = drive_on(&repo);
        }
        assert!(!repo.is_crash_pending(), "nobody came by {point}");
        assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
        let seen = std::fs::read_to_string(repo.root().join("agent/seen")).unwrap();
        assert_eq!(seen.matches("<<<<<<< ").count(), 1, "{point}: {seen}");
        let packet = std::fs::read_to_string(repo.root().join("agent/packet")).unwrap();
        let packet: serde_json::Value = serde_json::from_str(&packet).unwrap();
        assert_eq!(packet["conflicts"], serde_json::json!(["src/main.txt"]), "{point}");
        assert_eq!(repo.on_branch(&run, "src/main.txt"), "one\nboth\nthree", "{point}");
        repo.check_cleared(&run);
    }
}
