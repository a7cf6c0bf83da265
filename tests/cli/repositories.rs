//! Repositories of all kinds and in all states: a run works in them, or is refused by name before anything is made.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::support::{DRAFT, TestRepo};

/// An agent adds a file; the change arrives on the run's branch.
#[track_caller]
fn works(repo: &TestRepo) {
    repo.agent("draft", "echo x > src/x.txt; complete");
    let driven = repo.drive_through(DRAFT);
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    assert_eq!(repo.landed("w-1"), ["draft.1"]);
    assert_eq!(repo.said(&["diff", "--name-status", "striatum/w-1^", "striatum/w-1"]), "A\tsrc/x.txt");
    repo.check_cleared("w-1");
}

/// `run prepare` says no, and nothing was made.
#[track_caller]
fn refused(repo: &TestRepo, exit: i32, code: &str, word: &str) {
    repo.workflow("w", DRAFT);
    repo.trust();
    let error = repo.json(&["run", "prepare", "-w", "w"]).refused(exit, code);
    assert!(error.to_string().contains(word), "{error}");
    assert_eq!(repo.count("run"), 0);
    assert!(!repo.file(".striatum/worktrees").exists());
}

#[test]
fn a_repository_without_a_commit_is_refused_by_name() {
    refused(&TestRepo::new(), 11, "no_commit", "no commit");
}

#[test]
fn a_repository_in_the_middle_of_something_is_refused_by_name_unless_a_base_is() {
    for (verb, word) in
        [("merge", "a merge"), ("cherry-pick", "a cherry-pick"), ("rebase", "a rebase"), ("revert", "a revert")]
    {
        let repo = TestRepo::with_code();
        repo.said(&["branch", "side"]);
        repo.write("src/main.txt", "ours\n");
        repo.said(&["commit", "-aqm", "ours"]);
        repo.write("src/main.txt", "ours again\n");
        repo.said(&["commit", "-aqm", "ours again"]);
        repo.said(&["checkout", "-q", "side"]);
        repo.write("src/main.txt", "theirs\n");
        repo.said(&["commit", "-aqm", "theirs"]);
        let into: &[&str] = if verb == "revert" { &["revert", "--no-edit", "main^"] } else { &[verb, "main"] };
        assert!(!repo.git(into).status.success(), "{verb} must conflict");
        refused(&repo, 11, "repository_busy", word);
        repo.agent("draft", "echo x > src/x.txt; complete");
        repo.json(&["run", "prepare", "-w", "w", "--base", "main"]).ok();
        repo.striatum(&["run", "start"]).ok();
        repo.drive().ok();
        assert_eq!(repo.on_branch("w-1", "src/main.txt"), "ours again", "{verb}");
        repo.check_cleared("w-1");
    }
}

#[test]
fn a_branch_where_the_runs_branches_belong_is_refused_by_name() {
    let repo = TestRepo::with_code();
    repo.said(&["branch", "striatum"]);
    refused(&repo, 11, "git", "refs/heads/striatum");
    repo.said(&["pack-refs", "--all"]);
    refused(&repo, 11, "git", "refs/heads/striatum");
    repo.said(&["branch", "-m", "striatum", "other"]);
    works(&repo);
}

#[test]
fn without_git_a_job_that_writes_is_refused_by_name() {
    let repo = TestRepo::new();
    std::fs::remove_dir_all(repo.file(".git")).unwrap();
    refused(&repo, 8, "invalid_workflow", "there is no git repository");
}

#[test]
fn a_detached_head_is_as_good_as_a_branch() {
    let repo = TestRepo::with_code();
    repo.said(&["checkout", "-q", "--detach"]);
    works(&repo);
    assert!(!repo.git(&["symbolic-ref", "-q", "HEAD"]).status.success());
}

#[test]
fn paths_of_any_kind_are_walked() {
    let names: [&[u8]; 6] =
        [b"with space", b"it's \"quoted\"", b"new\nline", "漢字".as_bytes(), b"-dash", b"$(touch gone)"];
    for name in names {
        let repo = TestRepo::at(OsStr::from_bytes(name));
        repo.commit_code();
        works(&repo);
        repo.check_untouched();
    }
}

#[test]
fn a_path_that_is_not_utf8_works_or_is_refused_by_name() {
    let repo = TestRepo::at(OsStr::from_bytes(b"bad\xff\xfebytes"));
    repo.commit_code();
    repo.workflow("w", DRAFT);
    let trusted = repo.striatum(&["trust", "--as-person", "--yes"]);
    assert!(trusted.code == 0 || trusted.stderr.contains("UTF-8"), "{trusted}");
    if trusted.code == 0 {
        works(&repo);
    }
}

#[test]
fn a_submodule_stays_what_it_was() {
    let repo = TestRepo::with_code();
    let lib = repo.root().join("lib");
    let lib = lib.to_str().unwrap();
    repo.said(&["init", "--quiet", lib]);
    repo.said(&["-C", lib, "commit", "--quiet", "--allow-empty", "--message", "lib"]);
    repo.said(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", lib, "src/lib"]);
    repo.said(&["commit", "--quiet", "--message", "With a submodule"]);
    works(&repo);
    assert!(repo.said(&["ls-tree", "striatum/w-1", "src/lib"]).starts_with("160000 commit"));
    for (script, word) in
        [("rm -rf src/lib", "submodule_refused: src/lib"), ("rmdir src/lib; echo x > src/lib", "sealed")]
    {
        repo.agent("draft", &format!("{script}; complete"));
        repo.workflow("again", &format!("{DRAFT}max_strikes = 1\n"));
        repo.start("again");
        let _ = repo.drive();
        assert!(repo.attempts().pop().unwrap().contains(word), "{script}: {:?}", repo.attempts());
        let _ = repo.striatum(&["run", "cancel", "--reason", "next"]);
    }
}

#[test]
fn a_sparse_checkout_loses_nothing_of_what_it_does_not_show() {
    for cone in ["--cone", "--no-cone"] {
        let repo = TestRepo::with_code();
        repo.write("docs/a.txt", "a\n");
        repo.said(&["add", "docs"]);
        repo.said(&["commit", "--quiet", "--message", "Docs"]);
        repo.said(&["sparse-checkout", "set", cone, "src", ".striatum"]);
        assert!(!repo.file("docs").exists());
        works(&repo);
        assert_eq!(repo.on_branch("w-1", "docs/a.txt"), "a");
    }
}

#[test]
fn a_file_outside_a_sparse_checkout_is_judged_all_the_same() {
    let repo = TestRepo::with_code();
    repo.write("docs/a.txt", "a\n");
    repo.said(&["add", "docs"]);
    repo.said(&["commit", "--quiet", "--message", "Docs"]);
    repo.said(&["sparse-checkout", "set", "src", ".striatum"]);
    repo.agent("draft", "mkdir -p docs; echo b > docs/b.txt; complete");
    repo.drive_through(&format!("{DRAFT}max_strikes = 1\n")).exits(3);
    assert_eq!(repo.attempts(), ["draft.1 scope_failed: path_outside_scope: docs/b.txt"]);
}

#[test]
fn pointer_files_of_a_filter_that_is_missing_stay_pointers_or_are_the_environments_fault() {
    let repo = TestRepo::with_code();
    repo.write(".gitattributes", "*.bin filter=lfs\n");
    repo.write("src/big.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
    repo.said(&["add", "--all"]);
    repo.said(&["commit", "--quiet", "--message", "Big"]);
    works(&repo);
    repo.said(&["config", "filter.lfs.required", "true"]);
    repo.said(&["config", "filter.lfs.smudge", "no-such-filter-here smudge"]);
    repo.said(&["config", "filter.lfs.clean", "no-such-filter-here clean"]);
    repo.said(&["branch", "-D", "striatum/w-1"]);
    repo.start("w");
    let driven = repo.striatum(&["run", "drive", "--interval", "500ms"]);
    assert!([3, 4].contains(&driven.code), "{driven}");
    let ended = repo.attempts().pop().unwrap();
    assert!(ended.contains("environment: ") && ended.contains("src/big.bin"), "{ended}");
    repo.check_nobody_left();
    assert_eq!(repo.registered(), Vec::<String>::new(), "{}", repo.told());
}

#[test]
fn a_configured_filter_is_used_both_ways() {
    let repo = TestRepo::with_code();
    repo.said(&["config", "filter.turn.clean", "tr a-m n-z"]);
    repo.said(&["config", "filter.turn.smudge", "tr n-z a-m"]);
    repo.write(".gitattributes", "*.turn filter=turn\n");
    repo.write("src/a.turn", "aaa\n");
    repo.said(&["add", "--all"]);
    repo.said(&["commit", "--quiet", "--message", "Turned"]);
    assert_eq!(repo.said(&["show", "HEAD:src/a.turn"]), "nnn");
    repo.agent("draft", "[ \"$(cat src/a.turn)\" = aaa ] || fail turned; echo bbb > src/b.turn; complete");
    repo.drive_through(DRAFT).ok();
    assert_eq!(repo.on_branch("w-1", "src/b.turn"), "ooo");
    assert_eq!(repo.said(&["diff", "--name-only", "striatum/w-1^", "striatum/w-1"]), "src/b.turn");
    repo.check_cleared("w-1");
}

#[test]
fn line_ends_that_git_converts_are_no_change() {
    let repo = TestRepo::with_code();
    repo.said(&["config", "core.autocrlf", "true"]);
    repo.said(&["config", "core.safecrlf", "true"]);
    repo.agent(
        "draft",
        "grep -q \"$(printf '\\r')\" src/main.txt || fail 'no conversion'; printf 'a\\r\\nb\\n' > src/x.txt; complete",
    );
    repo.drive_through(DRAFT).ok();
    assert_eq!(repo.said(&["diff", "--name-only", "striatum/w-1^", "striatum/w-1"]), "src/x.txt");
    assert_eq!(repo.on_branch("w-1", "src/x.txt"), "a\nb");
}

#[test]
fn a_configured_merge_driver_does_not_run() {
    let repo = TestRepo::new();
    repo.write(".gitattributes", "*.txt merge=mine\n");
    repo.commit_code();
    let ran = repo.root().join("ran");
    repo.said(&["config", "merge.mine.driver", &format!("touch {} && true", ran.display())]);
    repo.said(&["config", "merge.default", "mine"]);
    let lane = "[lanes.script]\ncommand = \"@agent\"\n";
    let job = |name: &str| {
        format!(
            "[[jobs]]\nid = \"{name}\"\nrole = \"{name}\"\nlane = \"script\"\nwrites = [\"src/\"]\nallow_overlap = true\n"
        )
    };
    repo.agent("left.1", "sed -i s/one/left/ src/main.txt; hold both; complete");
    repo.agent("right.1", "sed -i s/three/right/ src/main.txt; hold both; complete");
    for name in ["left", "right"] {
        repo.agent(name, "printf 'left\\ntwo\\nright\\n' > src/main.txt; complete");
    }
    repo.workflow("w", &format!("{lane}{}{}", job("left"), job("right")));
    repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    crate::support::wait_until("both hold", || {
        repo.notes().iter().filter(|note| note.word == "holds both").count() == 2
    });
    repo.go("both");
    driver.wait().ok();
    assert!(!ran.exists(), "the driver ran");
    assert!(repo.attempts().iter().any(|ended| ended.contains("conflict")), "{:?}", repo.attempts());
    assert_eq!(repo.on_branch("w-1", "src/main.txt"), "left\ntwo\nright");
    repo.check_cleared("w-1");
}

#[test]
fn what_the_repository_would_run_is_not_run() {
    let repo = TestRepo::with_code();
    let ran = repo.root().join("ran");
    for hook in
        ["post-checkout", "pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"]
    {
        let path = repo.file(&format!(".git/hooks/{hook}"));
        std::fs::write(&path, format!("#!/bin/sh\necho {hook} >> {}\n", ran.display())).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let note = |word: &str| format!("sh -c 'echo {word} >> {}; false'", ran.display());
    repo.said(&["config", "core.fsmonitor", &note("fsmonitor")]);
    repo.said(&["config", "diff.external", &note("diff")]);
    repo.said(&["config", "diff.noisy.textconv", &note("textconv")]);
    repo.said(&["config", "core.pager", &note("pager")]);
    repo.said(&["config", "core.editor", &note("editor")]);
    repo.said(&["config", "gpg.program", &note("gpg")]);
    repo.said(&["config", "commit.gpgSign", "true"]);
    std::fs::remove_file(&ran).ok();
    repo.agent("draft", "echo x > src/x.txt; complete");
    repo.drive_through(DRAFT).ok();
    repo.check_nobody_left();
    repo.striatum(&["diff", "draft", "--run-id", "w-1"]).ok();
    repo.striatum(&["doctor"]).ok();
    assert!(!ran.exists(), "{}", std::fs::read_to_string(&ran).unwrap_or_default());
    assert_eq!(repo.landed("w-1"), ["draft.1"]);
}

/// The repository becomes another one, made by git with these words.
fn replaced(args: &[&str]) -> TestRepo {
    let repo = TestRepo::bare();
    std::fs::remove_dir_all(repo.file(".git")).unwrap();
    repo.said(args);
    repo.write(".striatum/config.toml", "");
    repo
}

#[test]
fn a_repository_of_longer_hashes_is_as_good() {
    let repo = replaced(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256", "."]);
    repo.commit_code();
    assert_eq!(repo.said(&["rev-parse", "HEAD"]).len(), 64);
    works(&repo);
}

#[test]
fn a_shallow_clone_is_as_good() {
    let from = TestRepo::with_code();
    from.said(&["commit", "--quiet", "--allow-empty", "--message", "More"]);
    let repo = TestRepo::bare();
    std::fs::remove_dir_all(repo.file(".git")).unwrap();
    let url = format!("file://{}", from.path().display());
    repo.said(&["clone", "--quiet", "--depth", "1", &url, "."]);
    works(&repo);
}

#[test]
fn a_linked_worktree_starts_from_what_is_checked_out_there() {
    let repo = TestRepo::with_code();
    let linked = repo.root().join("linked");
    repo.said(&["worktree", "add", "--quiet", "-b", "side", linked.to_str().unwrap()]);
    std::fs::write(linked.join("side.txt"), "side\n").unwrap();
    repo.said(&["-C", linked.to_str().unwrap(), "add", "side.txt"]);
    repo.said(&["-C", linked.to_str().unwrap(), "commit", "--quiet", "--message", "Side"]);
    repo.agent("draft", "echo x > src/x.txt; complete");
    repo.workflow("w", DRAFT);
    repo.trust();
    let there = |args: &[&str]| repo.run(repo.command(args).current_dir(&linked));
    there(&["run", "prepare", "-w", "w"]).ok();
    there(&["run", "start"]).ok();
    there(&["run", "drive", "--interval", "500ms"]).ok();
    assert_eq!(repo.on_branch("w-1", "side.txt"), "side");
    assert_eq!(repo.said(&["rev-parse", "striatum/w-1^"]), repo.said(&["rev-parse", "side"]));
    repo.check_nobody_left();
    assert_eq!(repo.registered(), [linked.display().to_string()]);
}

#[test]
fn a_bare_repository_is_worked_in_too() {
    let from = TestRepo::with_code();
    let bare = from.root().join("bare.git");
    from.said(&["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let there = |args: &[&str]| from.run(from.command(args).current_dir(&bare));
    there(&["init"]).ok();
    let store = bare.join("striatum");
    from.workflow("w", DRAFT);
    std::fs::create_dir_all(store.join("workflows")).unwrap();
    std::fs::copy(from.file(".striatum/workflows/w.toml"), store.join("workflows/w.toml")).unwrap();
    from.agent("draft", "echo x > src/x.txt; complete");
    there(&["trust", "--as-person", "--yes"]).ok();
    there(&["run", "prepare", "-w", "w"]).ok();
    there(&["run", "start"]).ok();
    there(&["run", "drive", "--interval", "500ms"]).ok();
    assert_eq!(from.said(&["--git-dir", bare.to_str().unwrap(), "show", "striatum/w-1:src/x.txt"]), "x");
}

#[test]
fn a_repository_that_was_moved_between_two_attempts_goes_on() {
    let repo = TestRepo::with_code();
    repo.agent("draft.1", "echo half > src/half.txt; fail 'not yet'");
    repo.agent("draft.2", "[ -e src/half.txt ] || fail 'another tree'; echo x > src/x.txt; complete");
    repo.workflow("w", &format!("{DRAFT}max_strikes = 1\n"));
    repo.start("w");
    repo.drive().exits(3);
    repo.check_nobody_left();
    let (here, there) = (repo.path(), repo.root().join("elsewhere"));
    std::fs::rename(&here, &there).unwrap();
    let said = |args: &[&str]| repo.run(repo.command(args).current_dir(Path::new(&there)));
    said(&["trust", "--as-person", "--yes"]).ok();
    said(&["run", "retry-job", "draft", "--reason", "again"]).ok();
    let driven = said(&["run", "drive", "--interval", "500ms"]);
    std::fs::rename(&there, &here).unwrap();
    assert_eq!(driven.code, 0, "{:?}", repo.attempts());
    assert_eq!(repo.on_branch("w-1", "src/half.txt"), "half");
    assert_eq!(repo.landed("w-1"), ["draft.2"]);
}
