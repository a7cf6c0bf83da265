//! `run land`: what a person approved goes onto its branch, once, and the checkout that has it follows.

use crate::support::TestRepo;

/// A draft that changes code, and its landing.
pub const LANDS: &str = r#"
    title = "Totals"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    verify = "grep -q total src/total.txt"
    [[jobs]]
    id = "land"
    type = "land"
    needs = ["draft"]
    into = "main"
"#;

fn with(lines: &str) -> String {
    LANDS.replace("    into = \"main\"\n", &format!("    into = \"main\"\n{lines}\n"))
}

/// A repository with a commit, a person with a name, and a run whose change waits for landing.
pub fn waits(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    come_to_wait(&repo, workflow);
    repo
}

/// The same in a repository that is there.
pub fn come_to_wait(repo: &TestRepo, workflow: &str) {
    git(repo, &["config", "user.name", "Ada Example"]);
    git(repo, &["config", "user.email", "ada@example.com"]);
    repo.write("src/total.txt", "sum\n");
    repo.write("README", "one\n");
    repo.write(".gitignore", "*.log\n");
    git(repo, &["add", "src", "README", ".gitignore"]);
    git(repo, &["commit", "--quiet", "-m", "Begin"]);
    repo.workflow("w", workflow);
    repo.agent("draft", "write src/total.txt total; write src/new.txt more; complete --summary 'Say total'");
    repo.start("w");
    repo.drive().exits(4);
}

#[track_caller]
pub fn git(repo: &TestRepo, args: &[&str]) {
    let done = repo.git(args);
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// What git says, one line.
pub fn said(repo: &TestRepo, args: &[&str]) -> String {
    String::from_utf8(repo.git(args).stdout).unwrap().trim().to_owned()
}

fn landed(repo: &TestRepo) -> serde_json::Value {
    repo.json(&["run", "land", "--as-person"]).ok().value()
}

/// Nothing moved, nothing was written, and the gate waits.
#[track_caller]
fn is_untouched(repo: &TestRepo, before: &str) {
    assert_eq!(said(repo, &["rev-parse", "main"]), before);
    assert_eq!(repo.count("gate WHERE state = 'pending'"), 1);
    assert_eq!(repo.count("landing WHERE state IN ('intended', 'done')"), 0);
    assert!(!repo.file("src/new.txt").exists());
    assert_eq!(repo.count("event WHERE type = 'land.intended'"), 0);
}

#[test]
fn approving_the_gate_squashes_the_change_onto_the_target_in_the_persons_name() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    let approved = repo.striatum(&["gate", "approve", "land", "--as-person"]).ok();
    assert!(approved.stdout.contains("landed striatum/w-1 on main as "), "{approved}");
    assert_eq!(said(&repo, &["rev-parse", "main^"]), before);
    assert_eq!(said(&repo, &["log", "-1", "--format=%an <%ae> %cn"]), "Ada Example <ada@example.com> Ada Example");
    assert_eq!(said(&repo, &["log", "-1", "--format=%B"]), "Say total\n\nStriatum-Run: w-1");
    assert_eq!(said(&repo, &["log", "-1", "--format=%P"]), before);
    assert_eq!(repo.run_state("w-1"), "completed");
    assert_eq!(
        repo.story(&["land.", "gate."]),
        ["gate.opened land", "land.intended land", "land.done land", "gate.approved land"]
    );
    // The checkout that has the target shows it, and nothing else changed there.
    assert_eq!(repo.read("src/total.txt"), "total\n");
    assert_eq!(repo.read("src/new.txt"), "more\n");
    assert_eq!(said(&repo, &["status", "--porcelain", "--", ".", ":!.striatum"]), "");
    assert_eq!(said(&repo, &["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[test]
fn a_merge_keeps_the_runs_commits() {
    let repo = waits(&with("land_style = \"merge\"\ncommit_message = \"Take the totals\"\ntrailers = false"));
    let tip = said(&repo, &["rev-parse", "striatum/w-1"]);
    let before = said(&repo, &["rev-parse", "main"]);
    assert_eq!(landed(&repo)["landed"]["kind"], "merge");
    assert_eq!(said(&repo, &["log", "-1", "--format=%P", "main"]), format!("{before} {tip}"));
    assert_eq!(said(&repo, &["log", "-1", "--format=%B", "main"]), "Take the totals");
    assert_eq!(repo.read("src/new.txt"), "more\n");
}

#[test]
fn a_fast_forward_moves_the_target_to_the_runs_own_commit_or_says_why_not() {
    let repo = waits(&with("land_style = \"ff\""));
    let tip = said(&repo, &["rev-parse", "striatum/w-1"]);
    assert_eq!(landed(&repo)["landed"]["kind"], "ff");
    assert_eq!(said(&repo, &["rev-parse", "main"]), tip);

    let repo = waits(&with("land_style = \"ff\""));
    repo.write("README", "two\n");
    git(&repo, &["commit", "--quiet", "-am", "Meanwhile"]);
    let before = said(&repo, &["rev-parse", "main"]);
    repo.json(&["run", "land", "--as-person"]).refused(5, "land_conflict");
    is_untouched(&repo, &before);
}

#[test]
fn a_target_that_went_on_is_merged_with() {
    let repo = waits(LANDS);
    repo.write("README", "two\n");
    git(&repo, &["commit", "--quiet", "-am", "Meanwhile"]);
    landed(&repo);
    assert_eq!((repo.read("README"), repo.read("src/total.txt")), ("two\n".to_owned(), "total\n".to_owned()));
    assert_eq!(said(&repo, &["log", "--format=%s", "main"]), "Say total\nMeanwhile\nBegin");
}

#[test]
fn uncommitted_changes_of_tracked_files_keep_the_gate_waiting_and_others_do_not() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    repo.write("README", "mine\n");
    let refused = repo.json(&["gate", "approve", "land", "--as-person"]).refused(5, "target_dirty");
    assert!(refused["message"].as_str().unwrap().contains("uncommitted changes: README"), "{refused}");
    assert_eq!(refused["next"][0]["argv"][3], "stash");
    is_untouched(&repo, &before);
    git(&repo, &["add", "README"]);
    repo.json(&["gate", "approve", "land", "--as-person"]).refused(5, "target_dirty");
    assert_eq!(repo.read("README"), "mine\n");
    git(&repo, &["reset", "--quiet", "--hard"]);
    // What nobody tracks elsewhere, and the store's own folder, are no matter.
    repo.write("notes.txt", "mine\n");
    repo.write("src/x.log", "mine\n");
    landed(&repo);
    assert_eq!((repo.read("notes.txt"), repo.read("src/x.log")), ("mine\n".to_owned(), "mine\n".to_owned()));
}

#[test]
fn an_untracked_file_where_the_landing_would_write_is_never_lost() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    repo.write("src/new.txt", "mine\n");
    let refused = repo.json(&["run", "land", "--as-person"]).refused(5, "target_dirty");
    assert!(refused["message"].as_str().unwrap().contains("in the way: src/new.txt"), "{refused}");
    assert_eq!(repo.read("src/new.txt"), "mine\n");
    assert_eq!(said(&repo, &["rev-parse", "main"]), before);
    std::fs::remove_file(repo.file("src/new.txt")).unwrap();
    landed(&repo);
}

#[test]
fn an_ignored_file_where_the_landing_would_write_is_never_lost() {
    let repo = waits(LANDS);
    std::fs::write(repo.file(".git/info/exclude"), "src/new.txt\n").unwrap();
    repo.write("src/new.txt", "mine\n");
    repo.json(&["run", "land", "--as-person"]).refused(5, "target_dirty");
    assert_eq!(repo.read("src/new.txt"), "mine\n");
}

#[test]
fn a_folder_of_untracked_files_where_a_file_would_be_written_is_never_lost() {
    let repo = waits(LANDS);
    repo.write("src/new.txt/deep", "mine\n");
    repo.json(&["run", "land", "--as-person"]).refused(5, "target_dirty");
    assert_eq!(repo.read("src/new.txt/deep"), "mine\n");
}

#[test]
fn a_conflict_is_a_landing_that_cant_be_until_somebody_merges_by_hand() {
    let repo = waits(LANDS);
    repo.write("src/total.txt", "mine\n");
    git(&repo, &["commit", "--quiet", "-am", "Meanwhile"]);
    let before = said(&repo, &["rev-parse", "main"]);
    let refused = repo.json(&["run", "land", "--as-person"]).refused(5, "land_conflict");
    assert!(refused["message"].as_str().unwrap().contains("src/total.txt"), "{refused}");
    is_untouched(&repo, &before);
    repo.drive().exits(3);
    assert_eq!(repo.rows("SELECT state, cause, subject FROM run"), ["needs_operator landing land"]);
    let inbox = repo.json(&["inbox"]).ok().value();
    assert_eq!((&inbox["items"][0]["cause"], &inbox["items"][0]["stops_run"]), (&"landing".into(), &true.into()));
    assert!(repo.striatum(&["run", "explain"]).ok().stdout.contains("have changed the same places: src/total.txt"));
    assert!(!repo.git(&["merge", "striatum/w-1"]).status.success());
    repo.write("src/total.txt", "total of mine\n");
    git(&repo, &["commit", "--quiet", "-am", "Merge by hand"]);
    let report = landed(&repo);
    assert_eq!((&report["landed"]["kind"], &report["state"]), (&"outside".into(), &"completed".into()));
}

#[test]
fn what_the_target_would_hold_is_verified_before_it_moves() {
    let repo = waits(&with("verify = \"test ! -e src/broken.txt\""));
    repo.write("src/broken.txt", "meanwhile\n");
    git(&repo, &["add", "src"]);
    git(&repo, &["commit", "--quiet", "-m", "Meanwhile"]);
    let before = said(&repo, &["rev-parse", "main"]);
    repo.json(&["run", "land", "--as-person"]).refused(1, "verify_failed");
    is_untouched(&repo, &before);
    assert_eq!(said(&repo, &["worktree", "list", "--porcelain"]).matches("landing").count(), 0);
    git(&repo, &["rm", "--quiet", "src/broken.txt"]);
    git(&repo, &["commit", "--quiet", "-m", "Mended"]);
    landed(&repo);
}

#[test]
fn a_verification_that_cant_run_is_not_passed() {
    let repo = waits(&with("verify = \"no-such-command-here\""));
    let before = said(&repo, &["rev-parse", "main"]);
    repo.json(&["run", "land", "--as-person"]).refused(11, "not_run");
    is_untouched(&repo, &before);
}

#[test]
fn every_verification_of_what_lands_runs_on_the_merged_tree() {
    let repo = waits(
        &LANDS.replace("grep -q total src/total.txt", "sh -c 'cat README >> $HOME/../seen; pwd >> $HOME/../seen'"),
    );
    let seen = || std::fs::read_to_string(repo.root().join("seen")).unwrap();
    assert_eq!(seen().lines().count(), 2);
    repo.write("README", "two\n");
    git(&repo, &["commit", "--quiet", "-am", "Meanwhile"]);
    landed(&repo);
    let seen = seen();
    let lines: Vec<&str> = seen.lines().collect();
    assert_eq!(lines[2], "two");
    assert!(lines[3].ends_with(".striatum/worktrees/w-1/land.landing"), "{seen}");
}

#[test]
fn landing_twice_is_said_and_does_nothing() {
    let repo = waits(LANDS);
    landed(&repo);
    let main = said(&repo, &["rev-parse", "main"]);
    let again = repo.striatum(&["run", "land", "--as-person"]).ok();
    assert!(again.stdout.contains("was landed before: nothing to do"), "{again}");
    assert_eq!(repo.json(&["gate", "approve", "g1", "--as-person"]).ok().value()["decided"][0]["already"], true);
    assert_eq!(said(&repo, &["rev-parse", "main"]), main);
    assert_eq!(repo.count("event WHERE type = 'land.done'"), 1);
}

#[test]
fn many_at_once_land_once() {
    let repo = waits(LANDS);
    let typing: Vec<_> = (0..4).map(|_| repo.spawn(&["gate", "approve", "land", "--as-person"])).collect();
    for typed in typing {
        typed.wait().ok();
    }
    assert_eq!(said(&repo, &["rev-list", "--count", "main"]), "2");
    assert_eq!(repo.count("event WHERE type = 'land.done'"), 1);
}

#[test]
fn a_merge_or_a_squash_by_hand_is_observed() {
    for by_hand in [&["merge", "--quiet", "striatum/w-1"][..], &["merge", "--quiet", "--squash", "striatum/w-1"]] {
        let repo = waits(LANDS);
        git(&repo, by_hand);
        if by_hand.contains(&"--squash") {
            git(&repo, &["commit", "--quiet", "-m", "By hand"]);
        }
        let main = said(&repo, &["rev-parse", "main"]);
        let report = landed(&repo);
        assert_eq!(report["landed"]["kind"], "outside", "{by_hand:?}");
        assert_eq!(said(&repo, &["rev-parse", "main"]), main);
        assert_eq!(repo.run_state("w-1"), "completed");
    }
}

#[test]
fn another_branch_or_a_detached_head_stays_as_it_is() {
    for elsewhere in [&["switch", "--quiet", "-c", "other"][..], &["switch", "--quiet", "--detach"]] {
        let repo = waits(LANDS);
        git(&repo, elsewhere);
        repo.write("README", "mine\n");
        let report = landed(&repo);
        assert_eq!(report["landed"]["followed"], serde_json::json!([]));
        assert_eq!(said(&repo, &["log", "-1", "--format=%s", "main"]), "Say total");
        assert_eq!((repo.read("README"), repo.read("src/total.txt")), ("mine\n".to_owned(), "sum\n".to_owned()));
        assert_eq!(said(&repo, &["status", "--porcelain", "--untracked-files=no"]), "M README");
    }
}

#[test]
fn a_linked_work_tree_that_has_the_target_follows() {
    let repo = waits(LANDS);
    git(&repo, &["switch", "--quiet", "-c", "other"]);
    let linked = repo.root().join("linked").display().to_string();
    git(&repo, &["worktree", "add", "--quiet", &linked, "main"]);
    std::fs::write(format!("{linked}/README"), "mine\n").unwrap();
    repo.json(&["run", "land", "--as-person"]).refused(5, "target_dirty");
    git(&repo, &["-C", &linked, "checkout", "--quiet", "README"]);
    let report = landed(&repo);
    assert_eq!(report["landed"]["followed"], serde_json::json!([linked]));
    assert_eq!(std::fs::read_to_string(format!("{linked}/src/new.txt")).unwrap(), "more\n");
    assert_eq!(said(&repo, &["-C", &linked, "status", "--porcelain"]), "");
    assert!(!repo.file("src/new.txt").exists());
}

#[test]
fn without_a_target_the_run_ends_at_its_branch_and_says_so() {
    let repo = waits(&LANDS.replace("    into = \"main\"\n", ""));
    let before = said(&repo, &["rev-parse", "main"]);
    let ended = repo.striatum(&["run", "land", "--as-person"]).ok();
    assert!(ended.stdout.contains("the run ends at its branch, striatum/w-1"), "{ended}");
    assert_eq!(said(&repo, &["rev-parse", "main"]), before);
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn another_target_may_be_named_and_must_be_there() {
    let repo = waits(LANDS);
    repo.json(&["run", "land", "--into", "release", "--as-person"]).refused(2, "not_found");
    repo.json(&["run", "land", "--into", "striatum/w-1", "--as-person"]).refused(2, "usage");
    let before = said(&repo, &["rev-parse", "main"]);
    git(&repo, &["branch", "release"]);
    let report = repo.json(&["run", "land", "w-1", "--into", "release", "--as-person"]).ok().value();
    assert_eq!(report["landed"]["into"], "release");
    assert_eq!(said(&repo, &["rev-parse", "main"]), before);
    assert_eq!(said(&repo, &["log", "-1", "--format=%s", "release"]), "Say total");
}

#[test]
fn a_run_that_is_not_there_yet_says_what_is_missing() {
    let repo = waits(LANDS);
    repo.start("w");
    let refused = repo.json(&["run", "land", "w-2", "--as-person"]).refused(5, "invalid_transition");
    assert!(refused["message"].as_str().unwrap().contains("draft is queued"), "{refused}");
}

#[test]
fn landing_is_a_persons() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    repo.json(&["run", "land"]).refused(7, "person_required");
    is_untouched(&repo, &before);
}

#[test]
fn a_branch_that_somebody_moved_is_not_landed() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    git(&repo, &["update-ref", "refs/heads/striatum/w-1", "main"]);
    repo.json(&["run", "land", "--as-person"]).refused(5, "stale_gate");
    is_untouched(&repo, &before);
}

#[test]
fn preparing_says_that_you_will_be_needed_for_the_landing() {
    let repo = TestRepo::new();
    repo.write("src/total.txt", "sum\n");
    git(&repo, &["add", "src"]);
    git(&repo, &["commit", "--quiet", "-m", "Begin"]);
    repo.workflow("w", LANDS);
    repo.trust();
    let prepared = repo.striatum(&["run", "prepare", "-w", "w"]).ok();
    assert!(prepared.stdout.contains("you will be needed: 1 time (land -> main)\n"), "{prepared}");
}

#[test]
fn a_person_without_a_name_is_told_how_to_have_one() {
    let repo = waits(LANDS);
    git(&repo, &["config", "--unset", "user.name"]);
    git(&repo, &["config", "--unset", "user.email"]);
    git(&repo, &["config", "user.useConfigOnly", "true"]);
    let refused = repo.json(&["run", "land", "--as-person"]).refused(11, "git");
    assert!(refused["hints"][0].as_str().unwrap().contains("user.name"), "{refused}");
}

#[test]
fn a_target_that_moves_while_what_would_land_is_verified_is_not_overwritten() {
    let moves = "test -e $HOME/moved || { touch $HOME/moved; cd $HOME/../repo && git -c user.name=x -c user.email=x@y commit -q --allow-empty -m Meanwhile; }";
    let repo = waits(&with(&format!("verify = [[\"sh\", \"-c\", \"{moves}\"]]")));
    let refused = repo.json(&["run", "land", "--as-person"]).refused(5, "target_moved");
    assert_eq!(refused["next"][0]["argv"], serde_json::json!(["striatum", "gate", "approve", "g1"]));
    assert_eq!(said(&repo, &["log", "--format=%s", "main"]), "Meanwhile\nBegin");
    assert_eq!((repo.read("src/total.txt"), repo.count("gate WHERE state = 'pending'")), ("sum\n".to_owned(), 1));
    landed(&repo);
    assert_eq!(said(&repo, &["log", "--format=%s", "main"]), "Say total\nMeanwhile\nBegin");
}

#[test]
fn the_commit_is_signed_when_the_person_signs() {
    let repo = waits(LANDS);
    let key = repo.root().join("key");
    let made = repo.command_of("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", key.to_str().unwrap()]).output();
    assert!(made.unwrap().status.success());
    for (name, value) in [("gpg.format", "ssh"), ("user.signingKey", key.to_str().unwrap()), ("commit.gpgSign", "true")]
    {
        git(&repo, &["config", name, value]);
    }
    landed(&repo);
    assert!(said(&repo, &["cat-file", "commit", "main"]).contains("gpgsig -----BEGIN SSH SIGNATURE-----"));
    // The run's own commits are not the person's.
    assert!(!said(&repo, &["cat-file", "commit", "striatum/w-1"]).contains("gpgsig"));
}

#[test]
fn a_checkout_in_the_middle_of_something_is_not_moved_under_it() {
    let repo = waits(LANDS);
    let before = said(&repo, &["rev-parse", "main"]);
    git(&repo, &["branch", "side"]);
    git(&repo, &["switch", "--quiet", "side"]);
    repo.write("README", "side\n");
    git(&repo, &["commit", "--quiet", "-am", "Side"]);
    git(&repo, &["switch", "--quiet", "main"]);
    git(&repo, &["merge", "--quiet", "--no-commit", "--no-ff", "-s", "ours", "side"]);
    let refused = repo.json(&["run", "land", "--as-person"]).refused(5, "target_dirty");
    assert!(refused["message"].as_str().unwrap().contains("in the middle of a merge"), "{refused}");
    is_untouched(&repo, &before);
}

#[test]
fn nothing_of_the_users_checkout_changes_but_what_lands() {
    let repo = waits(LANDS);
    repo.write("notes.txt", "mine\n");
    repo.write(".striatum/config.toml", "# mine\n");
    git(&repo, &["stash", "list"]);
    let (config, branches) = (repo.read(".git/config"), said(&repo, &["branch", "--format=%(refname)"]));
    landed(&repo);
    assert_eq!(repo.read(".striatum/config.toml"), "# mine\n");
    assert_eq!((repo.read(".git/config"), said(&repo, &["branch", "--format=%(refname)"])), (config, branches));
    assert_eq!(repo.read("notes.txt"), "mine\n");
    assert_eq!(said(&repo, &["diff", "--name-only", "main^", "main"]), "src/new.txt\nsrc/total.txt");
    // The way back is git's own.
    assert!(said(&repo, &["reflog", "main"]).contains("striatum: land"));
}
