//! Agents that do to their work tree, to the repository and to the checkout what they may not: named and refused, and
//! the run goes on.

use std::os::unix::fs::PermissionsExt;

use crate::support::{DRAFT, TestRepo};

/// What an agent does in its only try; how the attempt ended. Whatever it did, the repository and the store are sound.
fn tried(script: &str) -> (TestRepo, String) {
    let repo = TestRepo::with_code();
    let ended = tried_in(&repo, script, "");
    (repo, ended)
}

fn tried_in(repo: &TestRepo, script: &str, keys: &str) -> String {
    repo.agent("draft", &format!("{script}\ncomplete"));
    let driven = repo.drive_through(&format!("{DRAFT}max_strikes = 1\n{keys}\n"));
    assert!([0, 3].contains(&driven.code), "{script}\n{driven}\n{}", repo.told());
    repo.check_nobody_left();
    repo.check_sound();
    repo.check_repository();
    let attempts = repo.attempts();
    assert_eq!(attempts.len(), 1, "{script}: {attempts:?}\n{}", repo.told());
    attempts[0].clone()
}

/// Each script and what its attempt ends with.
#[track_caller]
fn each_ends(cases: &[(&str, &str)]) {
    for (script, wanted) in cases {
        let (repo, ended) = tried(script);
        assert!(ended.contains(wanted), "{script}\n  {ended}\nand not {wanted}\n{}", repo.told());
        let landed = repo.landed("w-1");
        assert_eq!(landed.len(), usize::from(*wanted == "sealed"), "{script}: {landed:?}");
    }
}

#[test]
fn what_git_would_not_keep_as_a_file_is_refused_by_its_word() {
    each_ends(&[
        ("ln -s /etc/passwd src/link", "symlink_refused: src/link"),
        ("ln -s main.txt src/link", "symlink_refused: src/link"),
        ("rm src/main.txt; ln -s ../README.md src/main.txt", "symlink_refused: src/main.txt"),
        ("echo x > src/a; ln src/a src/b", "hard_link_refused: src/a"),
        ("git init --quiet src/own", "submodule_refused: src/own"),
        (
            "git init --quiet src/own; cd src/own; git -c user.name=a -c user.email=b commit --quiet --allow-empty -m x; cd ../..",
            "submodule_refused: src/own",
        ),
        ("rm src/main.txt; mkfifo src/main.txt", "src/main.txt"),
        ("rm -rf src; ln -s /tmp src", "path_outside_scope: src"),
        ("echo x > src/MAIN.txt", "case_collision: src/MAIN.txt"),
    ]);
}

#[test]
fn what_is_protected_stays_so_at_any_depth_and_in_any_case() {
    each_ends(&[
        ("mkdir -p src/.claude; echo {} > src/.claude/settings.json", "protected_path: src/.claude/settings.json"),
        ("echo '* -text' > src/.gitattributes", "protected_path: src/.gitattributes"),
        ("mkdir src/.VSCODE; echo {} > src/.VSCODE/tasks.json", "protected_path: src/.VSCODE/tasks.json"),
        ("mkdir src/.github; echo x > src/.github/fine", "sealed"),
    ]);
}

#[test]
fn names_of_any_bytes_are_sealed_or_refused_as_they_are() {
    let names: [&[u8]; 10] = [
        b"with space",
        b"tab\there",
        b"new\nline",
        b"quote\"d",
        b"it's",
        b"-leading",
        "漢字".as_bytes(),
        "e\u{301}".as_bytes(),
        b"bad\xff\xfebytes",
        b"back\\slash",
    ];
    let repo = TestRepo::with_code();
    let folder = repo.root().join("names");
    std::fs::create_dir(&folder).unwrap();
    for name in names {
        use std::os::unix::ffi::OsStrExt;
        std::fs::write(folder.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let ended = tried_in(&repo, &format!("cp '{}'/* src/", folder.display()), "");
    assert!(ended.contains("sealed"), "{ended}");
    let listed = repo.git(&["ls-tree", "-z", "--name-only", "striatum/w-1", "--", "src/"]).stdout;
    for name in names {
        let wanted = [b"src/", name].concat();
        assert!(listed.split(|byte| *byte == 0).any(|path| path == wanted), "{}", String::from_utf8_lossy(name));
    }
    let repo = TestRepo::with_code();
    let ended = tried_in(&repo, &format!("cp '{}'/* .", folder.display()), "");
    assert_eq!(ended.matches("path_outside_scope").count(), names.len(), "{ended}");
    assert_eq!(ended.lines().count(), 1, "{ended}");
}

#[test]
fn a_rename_by_case_only_is_a_removal_and_an_addition() {
    each_ends(&[
        ("git mv src/main.txt src/Main.txt", "sealed"),
        ("git mv src/main.txt Main.txt", "path_outside_scope: Main.txt"),
    ]);
}

#[test]
fn a_file_may_become_executable_and_everything_may_go() {
    each_ends(&[("chmod +x src/main.txt", "sealed"), ("rm -r src", "sealed"), ("git rm -rq .", "path_outside_scope")]);
}

#[test]
fn what_an_agent_does_with_its_own_git_changes_nothing() {
    let who = "-c user.name=a -c user.email=a@b";
    let cases = [
        format!("echo x > src/x; git add -A; git {who} commit -qm mine"),
        format!("git checkout -qb mine; echo x > src/x; git add -A; git {who} commit -qm mine"),
        "echo x > src/x; rm -f .git".to_owned(),
        "echo x > src/x; rm -f .git; git init -q .; git add -A".to_owned(),
        "echo x > src/x; echo 'gitdir: /nowhere' > .git".to_owned(),
        "echo x > src/x; rm -rf \"$(git rev-parse --git-dir)\"".to_owned(),
        "echo x > src/x; git update-index --assume-unchanged src/main.txt; echo y > src/main.txt".to_owned(),
        "echo x > src/x; git update-index --skip-worktree src/main.txt; echo y > src/main.txt".to_owned(),
        "echo x > src/x; touch \"$(git rev-parse --git-dir)/index.lock\"".to_owned(),
        "echo x > src/x; echo junk > \"$(git rev-parse --git-dir)/index\"".to_owned(),
        "echo x > src/x; echo junk > \"$(git rev-parse --git-dir)/HEAD\"".to_owned(),
        "echo x > src/x; git worktree prune; git gc -q".to_owned(),
        "echo x > src/x; echo /nowhere > \"$(git rev-parse --git-dir)/commondir\"".to_owned(),
    ];
    for script in &cases {
        let (repo, ended) = tried(script);
        assert!(ended.contains("sealed"), "{script}: {ended}");
        assert_eq!(repo.on_branch("w-1", "src/x"), "x", "{script}");
        assert_eq!(repo.landed("w-1"), ["draft.1"], "{script}");
        let is_changed = script.contains("echo y");
        assert_eq!(repo.on_branch("w-1", "src/main.txt") == "y", is_changed, "{script}");
        repo.check_untouched();
    }
}

#[test]
fn the_next_attempt_finds_a_tree_that_git_knows_whatever_the_last_one_did_to_it() {
    for spoil in [
        "rm -f .git",
        "rm -f .git; git init -q .; git add -A",
        "echo 'gitdir: /nowhere' > .git",
        "rm -f .git; ln -s \"${STRIATUM_DIR%/.striatum}/.git\" .git",
        "rm -rf \"$(git rev-parse --git-dir)\"",
        "echo /nowhere > \"$(git rev-parse --git-dir)/commondir\"",
        "echo junk > \"$(git rev-parse --git-dir)/HEAD\"",
        "touch \"$(git rev-parse --git-dir)/index.lock\"",
    ] {
        let repo = TestRepo::with_code();
        repo.agent("draft.1", &format!("echo half > src/half.txt; {spoil}; fail 'not yet'"));
        repo.agent("draft.2", "git status > /dev/null || fail 'git does not know it'; [ \"$(git log --format=%s)\" = Begin ] || fail 'another HEAD'; echo x > src/x.txt; complete");
        let driven = repo.drive_through(&format!("{DRAFT}max_strikes = 2\n"));
        assert_eq!(driven.code, 0, "{spoil}: {:?}", repo.attempts());
        assert_eq!(repo.on_branch("w-1", "src/half.txt"), "half", "{spoil}");
        assert_eq!(repo.landed("w-1"), ["draft.2"], "{spoil}");
        repo.check_completed("w-1");
        repo.check_repository();
    }
}

#[test]
fn a_change_hidden_from_git_is_found_out_of_scope_too() {
    each_ends(&[
        ("git update-index --assume-unchanged README.md; echo y > README.md", "path_outside_scope: README.md"),
        ("git update-index --skip-worktree README.md; echo y > README.md", "path_outside_scope: README.md"),
        (
            "echo README.md >> \"$(git rev-parse --git-common-dir)/info/exclude\"; echo x > src/x",
            "protected_path: .git/info/exclude",
        ),
    ]);
}

#[test]
fn an_ignored_file_that_was_added_by_force_is_not_sealed() {
    let (repo, ended) = tried("echo x > src/x; echo y > src/y.ignored; git add -f src/y.ignored");
    assert!(ended.contains("sealed"), "{ended}");
    assert_eq!(repo.said(&["ls-tree", "-r", "--name-only", "striatum/w-1", "--", "src"]), "src/main.txt\nsrc/x");
}

#[test]
fn settings_and_hooks_of_the_repository_that_changed_refuse_the_seal_and_run_nothing() {
    for (script, what) in [
        ("git config core.fsmonitor \"touch $AGENT/ran\"", "protected_path: .git/config (core.fsmonitor)"),
        ("git config core.hooksPath /tmp", "protected_path: .git/config (core.hookspath)"),
        ("git config alias.status \"!touch $AGENT/ran\"", "protected_path: .git/config (alias.status)"),
        (
            "git config filter.x.clean \"touch $AGENT/ran\"; echo '* filter=x' > \"$(git rev-parse --git-common-dir)/info/attributes\"",
            "protected_path: .git/config (filter.x.clean)",
        ),
        (
            "printf '#!/bin/sh\\ntouch '$AGENT'/ran\\n' > \"$(git rev-parse --git-common-dir)/hooks/post-checkout\"; chmod +x \"$(git rev-parse --git-common-dir)/hooks/post-checkout\"",
            "protected_path: .git/hooks/post-checkout",
        ),
        (
            "git config --worktree core.fsmonitor x 2> /dev/null || git config extensions.worktreeConfig true",
            "protected_path: .git/config",
        ),
        (
            "echo '[core] fsmonitor = x' > $AGENT/more; git config include.path $AGENT/more",
            "protected_path: .git/config (include.path)",
        ),
    ] {
        let (repo, ended) = tried(&format!("echo x > src/x; {script}"));
        assert!(ended.starts_with("draft.1 environment: ") && ended.contains(what), "{script}: {ended}");
        assert!(!repo.root().join("agent/ran").exists(), "{script}: it ran");
        assert_eq!(repo.landed("w-1"), Vec::<String>::new());
    }
}

#[test]
fn a_person_who_has_looked_at_changed_settings_lets_the_job_go_on() {
    for ends in ["complete", "fail 'something else'"] {
        let repo = TestRepo::with_code();
        let filter = "git config filter.x.clean \"touch $AGENT/ran\"";
        repo.agent("draft.1", &format!("echo x > src/x; {filter}; {ends}"));
        repo.drive_through(DRAFT).exits(3);
        repo.check_nobody_left();
        let attempts = repo.attempts();
        let last = attempts.last().unwrap();
        assert!(last.contains("protected_path: .git/config (filter.x.clean)"), "{attempts:?}");
        assert_eq!(repo.effects().len(), 1, "nobody was started after that");
        repo.said(&["config", "--unset", "filter.x.clean"]);
        repo.striatum(&["run", "retry-job", "draft", "--reason", "put back"]).ok();
        let driven = repo.drive();
        assert_eq!(driven.code, 0, "{driven} {:?}", repo.attempts());
        assert!(!repo.root().join("agent/ran").exists());
        assert_eq!(repo.on_branch("w-1", "src/x"), "x");
        repo.check_completed("w-1");
    }
}

#[test]
fn a_write_into_the_principal_checkout_is_named_and_refused_and_stays() {
    for script in ["echo x > ../../../../stray.txt", "echo x > \"${STRIATUM_DIR%/.striatum}/stray.txt\""] {
        let (repo, ended) = tried(&format!("echo x > src/x; {script}"));
        let wanted = format!("draft.1 scope_failed: foreign_write: stray.txt in {}", repo.path().display());
        assert_eq!(ended, wanted, "{script}");
        assert_eq!(repo.read("stray.txt"), "x\n");
    }
    for (script, path) in [
        ("echo x >> ../../../../src/main.txt", "src/main.txt"),
        ("rm ../../../../README.md", "README.md"),
        ("chmod +x ../../../../README.md", "README.md"),
    ] {
        let (_, ended) = tried(&format!("echo x > src/x; {script}"));
        assert!(ended.contains(&format!("foreign_write: {path} in ")), "{script}: {ended}");
    }
}

#[test]
fn a_commit_in_the_principal_checkout_is_a_write_into_it() {
    let commit =
        "git -C \"${STRIATUM_DIR%/.striatum}\" -c user.name=a -c user.email=a@b commit --quiet --message stray";
    let (repo, ended) = tried(&format!(
        "echo x > src/x; root=\"${{STRIATUM_DIR%/.striatum}}\"; echo x > \"$root/stray.txt\"; git -C \"$root\" add stray.txt; {commit}"
    ));
    let wanted = format!("draft.1 scope_failed: foreign_write: stray.txt in {}", repo.path().display());
    assert_eq!(ended, wanted);
    assert_eq!(repo.said(&["log", "-1", "--format=%s", "main"]), "stray");
}

#[test]
fn what_the_user_had_changed_before_is_blamed_on_nobody() {
    let repo = TestRepo::with_code();
    repo.write("src/main.txt", "the user's own\n");
    repo.write("untracked.txt", "the user's own\n");
    repo.said(&["rm", "--quiet", "README.md"]);
    let ended = tried_in(&repo, "echo x > src/x", "");
    assert!(ended.contains("sealed"), "{ended}");
    assert_eq!(repo.read("src/main.txt"), "the user's own\n");
    assert_eq!(repo.on_branch("w-1", "src/main.txt"), "one\ntwo\nthree");
    assert_eq!(repo.on_branch("w-1", "README.md"), "read me");
}

#[test]
fn what_the_user_stages_or_commits_meanwhile_as_it_was_is_no_foreign_write() {
    let repo = TestRepo::with_code();
    repo.write("src/main.txt", "the user's own\n");
    repo.write("staged.txt", "the user's own\n");
    repo.agent("draft", "echo x > src/x; hold user; complete");
    repo.workflow("w", DRAFT);
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    crate::support::wait_until("the agent holds", || repo.notes().iter().any(|note| note.word == "holds user"));
    repo.said(&["commit", "--quiet", "--message", "mine", "src/main.txt"]);
    repo.said(&["add", "staged.txt"]);
    repo.go("user");
    driver.wait().ok();
    assert_eq!(repo.attempts(), ["draft.1 sealed"]);
    repo.check_completed("w-1");
}

#[test]
fn another_tree_in_the_place_of_ones_own_is_not_looked_at() {
    let (repo, ended) =
        tried("tree=$(pwd); cd /; mv \"$tree\" \"$tree.aside\"; ln -s \"${STRIATUM_DIR%/.striatum}\" \"$tree\"");
    assert!(ended.contains("worktree_required"), "{ended}");
    repo.check_untouched();
}

#[test]
fn ten_thousand_files_are_sealed() {
    let (repo, ended) = tried("mkdir src/many; cd src/many; seq 10000 | xargs touch; cd ../..");
    assert!(ended.contains("sealed"), "{ended}");
    assert_eq!(repo.one::<i64>("SELECT files FROM change", ()), 10_000);
}

#[test]
fn a_folder_that_can_not_be_read_or_written_holds_up_nothing() {
    let repo = TestRepo::with_code();
    let ended = tried_in(&repo, "mkdir src/shut; echo x > src/shut/x; chmod 000 src/shut; chmod 555 src", "");
    // Root reads everything; others are told what could not be read.
    assert!(ended.contains("sealed") || ended.contains("src/shut"), "{ended}");
    for path in [".striatum/worktrees/w-1/draft.1/src", ".striatum/worktrees/w-1/draft.1/src/shut"] {
        let _ = std::fs::set_permissions(repo.file(path), std::fs::Permissions::from_mode(0o755));
    }
}

#[test]
fn a_pipe_that_is_nothing_to_git_is_left_out() {
    let (repo, ended) = tried("echo x > src/x; mkfifo src/pipe");
    assert!(ended.contains("sealed"), "{ended}");
    assert_eq!(repo.said(&["ls-tree", "-r", "--name-only", "striatum/w-1", "--", "src"]), "src/main.txt\nsrc/x");
}
