//! Work trees of jobs: what an attempt changes is judged, verified, committed and integrated, and the checkout of the
//! user stays as it is.

use serde_json::Value;

use crate::support::{DRAFT, REVIEWED, TestRepo, wait_until};

/// Two that change the same line, side by side.
const TWO: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "left"
    role = "author"
    lane = "script"
    writes = ["src/"]
    allow_overlap = true
    [[jobs]]
    id = "right"
    role = "other"
    lane = "script"
    writes = ["src/"]
    allow_overlap = true
"#;

/// The packet of the newest session that worked on an attempt.
fn packet(repo: &TestRepo, attempt: &str) -> Value {
    let scratch = repo.dir().join("scratch");
    let sessions = std::fs::read_dir(scratch).unwrap().map(|entry| entry.unwrap().path());
    let found = sessions.map(|session| session.join(attempt).join("packet.json")).find(|path| path.exists());
    serde_json::from_slice(&std::fs::read(found.unwrap_or_else(|| panic!("no packet of {attempt}"))).unwrap()).unwrap()
}

#[test]
fn a_change_in_scope_is_committed_pinned_and_integrated_and_the_checkout_is_untouched() {
    let repo = TestRepo::with_code();
    let before = repo.said(&["rev-parse", "HEAD"]);
    repo.agent(
        "draft",
        "echo four >> src/main.txt; mkdir -p src/new; echo new > src/new/file.txt; echo no > x.ignored; complete",
    );
    repo.drive_through(DRAFT).ok();
    assert_eq!(repo.landed("w-1"), ["draft.1"]);
    assert_eq!(repo.on_branch("w-1", "src/main.txt"), "one\ntwo\nthree\nfour");
    assert_eq!(repo.on_branch("w-1", "src/new/file.txt"), "new");
    assert_eq!(repo.said(&["rev-parse", "striatum/w-1"]), repo.said(&["rev-parse", "refs/striatum/w-1/draft/1"]));
    assert_eq!(repo.said(&["rev-parse", "striatum/w-1^"]), before);
    assert_eq!(repo.said(&["log", "-1", "--format=%an <%ae>", "striatum/w-1"]), "striatum <striatum@localhost>");
    assert_eq!(repo.said(&["rev-parse", "HEAD"]), before);
    repo.check_untouched();
    repo.check_cleared("w-1");
    assert_eq!(repo.rows("SELECT state FROM tree"), ["removed"]);
}

#[test]
fn a_change_out_of_scope_is_refused_by_its_word_and_the_next_packet_tells_it() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo x > src/fine.txt; echo x >> README.md; complete");
    repo.agent("draft.2", "git checkout --quiet README.md; complete");
    repo.drive_through(DRAFT).ok();
    assert_eq!(repo.attempts(), ["draft.1 scope_failed: path_outside_scope: README.md", "draft.2 sealed"]);
    let packet = packet(&repo, "draft.2");
    assert!(packet.to_string().contains("path_outside_scope: README.md"), "{packet:#}");
    assert_eq!(repo.on_branch("w-1", "src/fine.txt"), "x");
    assert_eq!(repo.on_branch("w-1", "README.md"), "read me");
    repo.check_completed("w-1");
}

/// Two change the same line; the later one goes on as told.
fn in_conflict(later: &[(&str, &str)]) -> TestRepo {
    let repo = TestRepo::with_code();
    repo.agent("left", "sed -i s/two/left/ src/main.txt; hold left; complete");
    repo.agent("right.1", "sed -i s/two/right/ src/main.txt; hold right; complete");
    later.iter().for_each(|(attempt, script)| repo.agent(attempt, script));
    repo.workflow("w", TWO);
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    let holds = |word: &str| repo.notes().iter().any(|note| note.word == format!("holds {word}"));
    wait_until("both hold", || holds("left") && holds("right"));
    repo.go("left");
    wait_until("left is sealed", || repo.job_state("left") == "completed");
    repo.go("right");
    driver.wait().ok();
    repo
}

#[test]
fn two_that_change_the_same_line_meet_in_a_conflict_that_the_later_one_resolves() {
    let resolve = "cp src/main.txt \"$AGENT/seen\"; printf 'one\\nboth\\nthree\\n' > src/main.txt; complete";
    let repo = in_conflict(&[("right.2", resolve)]);
    let attempts = repo.attempts();
    assert_eq!(attempts[1], "right.1 conflict: others have changed the same places meanwhile: src/main.txt");
    assert_eq!(attempts[2], "right.2 sealed");
    let packet = packet(&repo, "right.2");
    assert_eq!(packet["conflicts"], serde_json::json!(["src/main.txt"]));
    let seen = std::fs::read_to_string(repo.root().join("agent/seen")).unwrap();
    assert!(seen.contains("<<<<<<< ") && seen.contains("left") && seen.contains("right"), "{seen}");
    assert_eq!(repo.on_branch("w-1", "src/main.txt"), "one\nboth\nthree");
    assert_eq!(repo.landed("w-1"), ["left.1", "right.2"]);
    assert_eq!(repo.one::<i64>("SELECT strikes FROM job WHERE name = 'right'", ()), 0);
    repo.check_repository();
    repo.check_completed("w-1");
}

#[test]
fn marks_of_a_conflict_that_are_left_are_refused_and_never_reach_the_branch() {
    let resolve = "printf 'one\\nboth\\nthree\\n' > src/main.txt; complete";
    let repo = in_conflict(&[("right.2", "echo more > src/more.txt; complete"), ("right.3", resolve)]);
    let attempts = repo.attempts();
    assert_eq!(attempts[2], "right.2 unsealed: conflict marks are left in src/main.txt");
    assert_eq!(attempts[3], "right.3 sealed");
    let history = repo.said(&["log", "-p", "--format=", "striatum/w-1"]);
    assert!(!history.contains("<<<<<<< "), "{history}");
    repo.check_completed("w-1");
}

#[test]
fn two_that_change_different_files_are_both_integrated() {
    let repo = TestRepo::with_code();
    repo.agent("left", "echo l > src/left.txt; complete");
    repo.agent("right", "echo r > src/right.txt; complete");
    repo.drive_through(TWO).ok();
    let mut landed = repo.landed("w-1");
    landed.sort();
    assert_eq!(landed, ["left.1", "right.1"]);
    assert_eq!(
        (repo.on_branch("w-1", "src/left.txt"), repo.on_branch("w-1", "src/right.txt")),
        ("l".into(), "r".into())
    );
    repo.check_repository();
    repo.check_completed("w-1");
}

#[test]
fn a_revision_goes_on_in_the_same_tree_and_the_reviewer_sees_its_new_state() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo draft > src/text.txt; echo build > x.ignored; complete");
    repo.agent(
        "draft.2",
        "[ \"$(cat x.ignored)\" = build ] || fail 'another tree'; echo better > src/text.txt; complete",
    );
    repo.agent("review.1", "[ \"$(cat src/text.txt)\" = draft ] || fail old; cp \"${STRIATUM_PACKET%/*}\"/inputs/draft/change.patch \"$AGENT/patch.1\"; verdict needs_revision --finding 'Text: better'");
    repo.agent("review.2", "[ \"$(cat src/text.txt)\" = better ] || fail old; cp \"${STRIATUM_PACKET%/*}\"/inputs/draft/change.patch \"$AGENT/patch.2\"; verdict accept");
    repo.drive_through(REVIEWED).ok();
    assert_eq!(repo.landed("w-1"), ["draft.1", "draft.2"]);
    assert_eq!(repo.on_branch("w-1", "src/text.txt"), "better");
    let patch = std::fs::read_to_string(repo.root().join("agent/patch.2")).unwrap();
    assert!(patch.contains("+better") && !patch.contains("+draft"), "{patch}");
    assert_eq!(repo.rows("SELECT kind, count(*) FROM tree GROUP BY kind"), ["own 1", "tip 2"]);
    repo.check_cleared("w-1");
}

#[test]
fn commits_that_an_agent_made_itself_are_pinned_when_its_tree_goes_on() {
    let repo = TestRepo::with_code();
    let commit = "git add -A; git -c user.name=a -c user.email=b commit -qm mine; complete";
    repo.agent("draft.1", &format!("echo draft > src/text.txt; {commit}"));
    repo.agent("draft.2", "echo better > src/text.txt; complete");
    repo.agent("review.1", "verdict needs_revision --finding 'Text: better'");
    repo.drive_through(REVIEWED).ok();
    assert_eq!(repo.said(&["log", "-1", "--format=%s", "refs/striatum/w-1/draft/1-own"]), "mine");
    assert_eq!(repo.landed("w-1"), ["draft.1", "draft.2"]);
    repo.check_cleared("w-1");
}

#[test]
fn a_clean_next_attempt_gets_a_new_tree_and_the_old_one_is_kept_with_its_reason() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo half > src/half.txt; fail 'not today'");
    repo.agent("draft.2", "[ ! -e src/half.txt ] || fail 'the old tree'; echo whole > src/whole.txt; complete");
    repo.drive_through(&format!("{DRAFT}next_attempt = \"clean\"\n")).ok();
    assert_eq!(repo.attempts(), ["draft.1 failed: not today", "draft.2 sealed"]);
    repo.check_completed("w-1");
    let kept = repo.rows("SELECT state, reason FROM tree ORDER BY id");
    assert_eq!(kept, ["kept src/half.txt was never sealed", "removed -"]);
    assert!(repo.file(".striatum/worktrees/w-1/draft.1/src/half.txt").exists());
    repo.check_completed("w-1");
}

#[test]
fn what_is_to_be_discarded_is_never_sealed_and_keeps_no_tree() {
    let repo = TestRepo::with_code();
    repo.agent(
        "draft",
        "echo new > src/new.txt; mkdir -p logs; echo log > logs/agent.log; echo log > src/a.tmp; complete",
    );
    repo.drive_through(&format!("[tree]\ndiscard = [\"logs/\", \"**/*.tmp\"]\n{DRAFT}")).ok();
    let files = repo.said(&["ls-tree", "-r", "--name-only", "striatum/w-1", "--", "src", "logs"]);
    assert_eq!(files, "src/main.txt\nsrc/new.txt");
    repo.check_cleared("w-1");
}

#[test]
fn a_tree_is_set_up_with_copies_caches_and_commands_before_the_agent_comes() {
    let repo = TestRepo::with_code();
    repo.write("secret.ignored", "key\n");
    repo.write("target/old.o", "object\n");
    repo.agent("draft", "[ \"$(cat secret.ignored)\" = key ] && [ \"$(cat target/old.o)\" = object ] && [ -e target/setup ] || fail incomplete; echo changed >> target/old.o; echo x > src/x.txt; complete");
    let tree = "[tree]\ncopy = [\"secret.ignored\"]\ncache = [\"target\"]\nsetup = [[\"touch\", \"target/setup\"]]\n";
    repo.drive_through(&format!("{tree}{DRAFT}")).ok();
    assert_eq!(repo.read("target/old.o"), "object\n");
    assert!(!repo.file("target/setup").exists());
    repo.check_completed("w-1");
}

#[test]
fn a_setup_that_fails_is_the_environments_fault_and_a_person_is_asked() {
    let repo = TestRepo::with_code();
    let driven = repo.drive_through(&format!("[tree]\nsetup = [[\"sh\", \"-c\", \"echo no space; exit 1\"]]\n{DRAFT}"));
    assert!([3, 4].contains(&driven.code), "{driven}");
    let attempts = repo.attempts();
    assert!(attempts[0].starts_with("draft.1 environment: setup failed"), "{attempts:?}");
    assert_eq!(repo.effects(), []);
    assert_eq!(repo.one::<i64>("SELECT strikes FROM job", ()), 0);
    assert_eq!(repo.registered(), Vec::<String>::new());
    repo.check_sound();
}

#[test]
fn trees_may_stand_elsewhere() {
    let repo = TestRepo::with_code();
    repo.agent("draft", "pwd > \"$AGENT/where\"; echo x > src/x.txt; complete");
    repo.drive_through(&format!("[tree]\ndir = \"../trees\"\n{DRAFT}")).ok();
    let place = std::fs::read_to_string(repo.root().join("agent/where")).unwrap();
    let wanted = repo.root().join("trees/w-1/draft.1").display().to_string();
    assert_eq!(place.trim(), wanted);
    assert_eq!(repo.landed("w-1"), ["draft.1"]);
    repo.check_cleared("w-1");
}

#[test]
fn nothing_changed_is_a_strike_unless_the_job_allows_it() {
    let repo = TestRepo::with_code();
    repo.drive_through(&format!("{DRAFT}max_strikes = 1\n")).exits(3);
    assert_eq!(repo.attempts(), ["draft.1 unsealed: nothing was changed, and the job does not say allow_empty"]);
    let repo = TestRepo::with_code();
    repo.drive_through(&format!("{DRAFT}allow_empty = true\n")).ok();
    assert_eq!(repo.landed("w-1"), Vec::<String>::new());
    repo.check_completed("w-1");
}

/// An agent that changes something, whose verification is this; how its attempt ended.
fn verified_by(verify: &str) -> String {
    let repo = TestRepo::with_code();
    repo.agent("draft", "echo x > src/x.txt; complete");
    repo.drive_through(&format!("{DRAFT}max_strikes = 1\ntimeout = \"2s\"\nverify = [{verify}]\n")).exits(3);
    assert_eq!(repo.landed("w-1"), Vec::<String>::new(), "{verify}");
    repo.check_sound();
    repo.attempts().remove(0)
}

#[test]
fn a_verification_that_did_not_pass_integrates_nothing() {
    assert_eq!(verified_by("[\"sh\", \"-c\", \"exit 7\"]"), "draft.1 verify_failed: verification failed: sh -c exit 7");
    let missing = verified_by("[\"no-such-command-here\"]");
    assert!(missing.starts_with("draft.1 verify_failed: verification not run: no-such-command-here"), "{missing}");
    let late = verified_by("[\"sleep\", \"60\"]");
    assert_eq!(late, "draft.1 verify_failed: verification not run: sleep 60: it took too long");
}

#[test]
fn a_verification_is_void_when_it_changed_what_would_be_sealed() {
    for (script, path) in [
        ("echo y > src/x.txt", "src/x.txt"),
        ("echo y > src/more.txt", "src/more.txt"),
        ("rm src/main.txt", "src/main.txt"),
        ("chmod +x src/x.txt", "src/x.txt"),
    ] {
        let said = verified_by(&format!("[\"sh\", \"-c\", \"{script}\"]"));
        assert_eq!(said, format!("draft.1 verify_failed: verification is void: it changed {path}"));
    }
    let outside = verified_by("[\"sh\", \"-c\", \"echo y > top.txt\"]");
    assert_eq!(outside, "draft.1 verify_failed: verification is void: it changed path_outside_scope: top.txt");
}

#[test]
fn a_verification_may_leave_what_git_ignores() {
    let repo = TestRepo::with_code();
    repo.agent("draft", "echo x > src/x.txt; complete");
    repo.drive_through(&format!("{DRAFT}verify = [[\"sh\", \"-c\", \"mkdir -p target; touch target/log\"]]\n")).ok();
    assert_eq!(repo.landed("w-1"), ["draft.1"]);
    repo.check_completed("w-1");
}

#[test]
fn the_end_of_a_failed_verification_stands_in_the_next_packet() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo wrong > src/x.txt; complete");
    repo.agent("draft.2", "echo right > src/x.txt; complete");
    let verify = "verify = [[\"sh\", \"-c\", \"cat src/x.txt; grep -q right src/x.txt\"]]\n";
    repo.drive_through(&format!("{DRAFT}{verify}")).ok();
    assert_eq!(repo.landed("w-1"), ["draft.2"]);
    let packet = packet(&repo, "draft.2");
    assert!(packet["context"].to_string().contains("wrong"), "{packet:#}");
    repo.check_completed("w-1");
}

#[test]
fn a_tree_whose_folder_is_gone_is_made_anew_and_its_registration_goes() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo x > src/x.txt; cd /; rm -rf \"$OLDPWD\"; fail 'it is gone'");
    repo.agent(
        "draft.2",
        "[ -e src/main.txt ] && [ ! -e src/x.txt ] || fail 'no new tree'; echo y > src/y.txt; complete",
    );
    repo.drive_through(DRAFT).ok();
    assert_eq!(repo.attempts(), ["draft.1 failed: it is gone", "draft.2 sealed"]);
    repo.check_cleared("w-1");
    let trees = repo.rows("SELECT attempt, state, reason FROM tree ORDER BY id");
    assert_eq!(trees, ["1 removed its folder was gone", "2 removed -"]);
    repo.check_cleared("w-1");
}

#[test]
fn a_canceled_run_keeps_work_and_lets_clean_trees_go() {
    let repo = TestRepo::with_code();
    repo.agent("left", "echo l > src/left.txt; hold left");
    repo.agent("right", "hold right");
    repo.workflow("w", TWO);
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    let holds = |word: &str| repo.notes().iter().any(|note| note.word == format!("holds {word}"));
    wait_until("both hold", || holds("left") && holds("right"));
    let canceled = repo.striatum(&["run", "cancel", "--reason", "enough"]).ok();
    driver.wait().exits(1);
    repo.check_nobody_left();
    let trees = repo
        .rows("SELECT job.name, tree.state, tree.reason FROM tree JOIN job ON job.id = tree.job_id ORDER BY job.id");
    assert_eq!(trees, ["left kept src/left.txt was never sealed", "right removed -"], "{canceled}");
    assert!(repo.file(".striatum/worktrees/w-1/left.1/src/left.txt").exists());
    assert_eq!(repo.registered().len(), 1);
    repo.check_sound();
}

#[test]
fn doctor_finds_trees_without_folders_folders_without_rows_and_branches_that_were_moved() {
    let repo = TestRepo::with_code();
    repo.agent("left", "echo l > src/left.txt; complete");
    repo.agent("right", "echo r > src/right.txt; hold right; complete");
    repo.workflow("w", TWO);
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("left is sealed", || repo.job_state("left") == "completed");
    wait_until("right holds", || repo.notes().iter().any(|note| note.word == "holds right"));
    let codes = || -> Vec<String> {
        let report = repo.json(&["doctor"]).value();
        let checks = report["checks"].as_array().unwrap().iter();
        let found = checks.flat_map(|check| check["findings"].as_array().unwrap().clone());
        found.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(codes(), Vec::<String>::new());
    let tree = repo.file(".striatum/worktrees/w-1/right.1");
    let aside = repo.root().join("aside");
    std::fs::rename(&tree, &aside).unwrap();
    assert_eq!(codes(), ["tree_missing"]);
    std::fs::rename(&aside, &tree).unwrap();
    let stray = repo.file(".striatum/worktrees/w-1/stray");
    repo.said(&["worktree", "add", "--quiet", "--detach", stray.to_str().unwrap()]);
    assert_eq!(codes(), ["tree_unknown"]);
    repo.said(&["worktree", "remove", stray.to_str().unwrap()]);
    let tip = repo.said(&["rev-parse", "striatum/w-1"]);
    repo.said(&["update-ref", "refs/heads/striatum/w-1", "HEAD"]);
    assert_eq!(codes(), ["branch_moved", "change_lost"]);
    repo.said(&["update-ref", "-d", "refs/heads/striatum/w-1"]);
    assert_eq!(codes(), ["branch_gone"]);
    repo.said(&["update-ref", "refs/heads/striatum/w-1", &tip]);
    assert_eq!(codes(), Vec::<String>::new());
    repo.go("right");
    driver.wait().ok();
    repo.check_cleared("w-1");
}
