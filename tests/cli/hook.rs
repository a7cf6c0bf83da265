//! git's hooks, run by git: commits and pushes in a job's work tree, in the user's own, and beside other tools.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output as Ended;

use super::scope_check::{git_command, git_in, repository, working};
use crate::support::TestRepo;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn succeeds(ended: &Ended) -> String {
    assert!(ended.status.success(), "{}{}", text(&ended.stdout), text(&ended.stderr));
    text(&ended.stdout)
}

/// git refused because of a hook; what was said.
#[track_caller]
fn refuses(ended: &Ended) -> String {
    assert!(!ended.status.success(), "{}", text(&ended.stdout));
    text(&ended.stderr)
}

fn installed() -> TestRepo {
    let repo = repository();
    repo.striatum(&["hook", "install"]).ok();
    repo
}

fn hook(repo: &TestRepo, name: &str) -> PathBuf {
    repo.file(".git/hooks").join(name)
}

fn stage(repo: &TestRepo, tree: &Path, path: impl AsRef<OsStr>, bytes: &str) {
    let file = tree.join(Path::new(path.as_ref()));
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, bytes).unwrap();
    let mut add = git_command(repo, tree, &["add", "--force", "--"]);
    succeeds(&add.arg(path.as_ref()).output().unwrap());
}

fn commit(repo: &TestRepo, tree: &Path, args: &[&str]) -> Ended {
    git_in(repo, tree, &[&["commit", "--quiet"], args].concat())
}

#[test]
fn a_commit_out_of_scope_is_refused_before_it_exists_and_one_within_bears_its_job() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    let head = succeeds(&git_in(&repo, &tree, &["rev-parse", "HEAD"]));
    stage(&repo, &tree, "README.md", "changed\n");
    let said = refuses(&commit(&repo, &tree, &["-m", "Out"]));
    assert!(said.contains("path_outside_scope: README.md") && said.contains("src/ docs/**/*.md"), "{said}");
    assert_eq!(succeeds(&git_in(&repo, &tree, &["rev-parse", "HEAD"])), head);
    succeeds(&git_in(&repo, &tree, &["checkout", "-q", "HEAD", "--", "README.md"]));
    stage(&repo, &tree, "src/new.txt", "new\n");
    succeeds(&commit(&repo, &tree, &["-m", "In scope"]));
    let message = succeeds(&git_in(&repo, &tree, &["log", "-1", "--format=%B"]));
    assert_eq!(message.trim_end(), "In scope\n\nStriatum-Run: w-1\nStriatum-Job: draft\nStriatum-Attempt: 1");
    succeeds(&commit(&repo, &tree, &["--amend", "--no-edit", "--allow-empty"]));
    assert_eq!(succeeds(&git_in(&repo, &tree, &["log", "-1", "--format=%B"])), message);
}

#[test]
fn what_git_is_about_to_commit_is_judged_not_what_lies_around() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    stage(&repo, &tree, "src/a.txt", "one\n");
    std::fs::write(tree.join("README.md"), "not staged\n").unwrap();
    succeeds(&commit(&repo, &tree, &["-m", "Only what is staged"]));
    // `-a` and a path commit what was not staged, by an index of their own.
    refuses(&commit(&repo, &tree, &["-am", "All"]));
    refuses(&commit(&repo, &tree, &["-m", "A path", "README.md"]));
    std::fs::write(tree.join("src/a.txt"), "two\n").unwrap();
    succeeds(&commit(&repo, &tree, &["-m", "A path", "src/a.txt"]));
    let mut elsewhere = git_command(&repo, &tree, &["add", "README.md"]);
    let index = repo.root().join("another-index");
    std::fs::copy(repo.file(".git/worktrees/draft.1/index"), &index).unwrap();
    succeeds(&elsewhere.env("GIT_INDEX_FILE", &index).output().unwrap());
    let mut elsewhere = git_command(&repo, &tree, &["commit", "-qm", "Another index"]);
    refuses(&elsewhere.env("GIT_INDEX_FILE", &index).output().unwrap());
}

#[test]
fn a_commit_that_went_around_the_hook_is_seen_by_the_next() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    stage(&repo, &tree, "README.md", "changed\n");
    succeeds(&commit(&repo, &tree, &["--no-verify", "-m", "Around"]));
    stage(&repo, &tree, "src/a.txt", "in\n");
    assert!(refuses(&commit(&repo, &tree, &["-m", "Next"])).contains("path_outside_scope: README.md"));
    succeeds(&git_in(&repo, &tree, &["checkout", "-q", "HEAD~1", "--", "README.md"]));
    succeeds(&commit(&repo, &tree, &["-m", "Put back"]));
}

#[test]
fn names_of_every_kind_are_refused_by_their_bytes() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    let names: [(&[u8], &str); 9] = [
        (b"with space", "with space"),
        (b"tab\there", r#""tab\there""#),
        (b"new\nline", r#""new\nline""#),
        (b"quote\"d", r#""quote\"d""#),
        (b"-dash", "-dash"),
        ("日本語".as_bytes(), "日本語"),
        ("caf\u{e9}".as_bytes(), "caf\u{e9}"),
        ("the\u{301}".as_bytes(), "the\u{301}"),
        (b"bytes\xff\xfe", r#""bytes\377\376""#),
    ];
    for (name, _) in names {
        stage(&repo, &tree, Path::new("src/deep").join(OsStr::from_bytes(name)), "in\n");
    }
    succeeds(&commit(&repo, &tree, &["-m", "In scope"]));
    for (name, _) in names {
        stage(&repo, &tree, OsStr::from_bytes(name), "out\n");
    }
    let said = refuses(&commit(&repo, &tree, &["-m", "Out"]));
    for (_, shown) in names {
        assert!(said.contains(&format!("  path_outside_scope: {shown}\n")), "{shown}\n{said}");
    }
    succeeds(&git_in(&repo, &tree, &["reset", "-q", "--hard"]));
    succeeds(&git_in(&repo, &tree, &["mv", "src/b/c.txt", "c.txt"]));
    let said = refuses(&commit(&repo, &tree, &["-m", "A rename out"]));
    assert!(said.contains("path_outside_scope: c.txt") && !said.contains("src/b/c.txt"), "{said}");
}

#[test]
fn a_new_name_that_differs_only_by_case_is_refused_and_a_rename_of_case_is_not() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    succeeds(&git_in(&repo, &tree, &["mv", "src/a.txt", "src/A.txt"]));
    succeeds(&commit(&repo, &tree, &["-m", "Renamed"]));
    stage(&repo, &tree, "src/a.TXT", "another\n");
    assert!(refuses(&commit(&repo, &tree, &["-m", "Two"])).contains("case_collision: src/a.TXT"));
}

#[test]
fn everywhere_else_the_hooks_are_silent() {
    let repo = installed();
    let (_worker, _tree) = working(&repo);
    let own = repo.root().join("own tree");
    succeeds(&git_in(&repo, &repo.path(), &["worktree", "add", "-q", "-b", "own", own.to_str().unwrap()]));
    for folder in [repo.path(), own.clone()] {
        stage(&repo, &folder, "anything.txt", "mine\n");
        let made = commit(&repo, &folder, &["-m", "Mine"]);
        succeeds(&made);
        assert_eq!(text(&made.stderr), "");
        assert_eq!(succeeds(&git_in(&repo, &folder, &["log", "-1", "--format=%B"])), "Mine\n\n");
    }
    // A store that can't be read is no obstacle there, and one line.
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::rename(repo.dir().join(format!("striatum.db{end}")), repo.root().join(format!("db{end}")));
    }
    std::fs::write(repo.db(), "not a database, but long enough to be looked at as one\n".repeat(40)).unwrap();
    stage(&repo, &own, "more.txt", "mine\n");
    let made = commit(&repo, &own, &["-m", "Mine"]);
    succeeds(&made);
    assert_eq!(text(&made.stderr).lines().count(), 1, "{}", text(&made.stderr));
}

#[test]
fn what_can_not_be_judged_in_a_jobs_tree_is_refused() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    stage(&repo, &tree, "src/a.txt", "in\n");
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::rename(repo.dir().join(format!("striatum.db{end}")), repo.root().join(format!("db{end}")));
    }
    std::fs::write(repo.db(), "not a database, but long enough to be looked at as one\n".repeat(40)).unwrap();
    let said = refuses(&commit(&repo, &tree, &["-m", "Unknown"]));
    assert!(said.contains("its scope can't be read"), "{said}");
}

#[test]
fn the_hooks_never_wait_for_who_writes() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    let writer = rusqlite::Connection::open(repo.db()).unwrap();
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    stage(&repo, &tree, "src/a.txt", "in\n");
    succeeds(&commit(&repo, &tree, &["-m", "In scope"]));
    stage(&repo, &tree, "README.md", "out\n");
    refuses(&commit(&repo, &tree, &["-m", "Out"]));
}

/// A bare repository to push to.
fn remote(repo: &TestRepo) -> PathBuf {
    let remote = repo.root().join("remote.git");
    succeeds(&git_in(repo, &repo.path(), &["init", "-q", "--bare", remote.to_str().unwrap()]));
    succeeds(&git_in(repo, &repo.path(), &["remote", "add", "origin", remote.to_str().unwrap()]));
    remote
}

#[test]
fn branches_and_pins_of_runs_are_not_pushed() {
    let repo = installed();
    let remote = remote(&repo);
    let (worker, tree) = working(&repo);
    std::fs::write(tree.join("src/a.txt"), "changed\n").unwrap();
    worker.work(&["complete", "--summary", "done"]).ok();
    let push = |args: &[&str]| git_in(&repo, &repo.path(), &[&["push", "--quiet", "origin"], args].concat());
    succeeds(&push(&["main"]));
    let refusals: [&[&str]; 6] = [
        &["striatum/w-1"],
        &["striatum/w-1:refs/heads/theirs"],
        &["main:refs/heads/striatum/w-9"],
        &["refs/striatum/*:refs/striatum/*"],
        &["--all"],
        &["--mirror"],
    ];
    for refspec in refusals {
        let said = refuses(&push(refspec));
        assert!(said.contains("stay in this repository") && said.contains("striatum/w-"), "{refspec:?}: {said}");
    }
    assert_eq!(succeeds(&git_in(&repo, &remote, &["for-each-ref", "--format=%(refname)"])), "refs/heads/main\n");
    // Named as one's own, it is one's own; and what somehow got there may be taken away.
    succeeds(&git_in(&repo, &repo.path(), &["branch", "mine", "striatum/w-1"]));
    succeeds(&push(&["mine"]));
    succeeds(&push(&["--no-verify", "striatum/w-1"]));
    succeeds(&push(&["--delete", "striatum/w-1"]));
}

#[test]
fn a_repository_without_a_store_pushes_what_it_likes() {
    let repo = TestRepo::bare();
    repo.striatum(&["hook", "install"]).ok();
    stage(&repo, &repo.path(), "a", "a\n");
    succeeds(&commit(&repo, &repo.path(), &["-m", "First"]));
    remote(&repo);
    succeeds(&git_in(&repo, &repo.path(), &["push", "-q", "origin", "main:refs/heads/striatum/x"]));
}

#[test]
fn installing_twice_changes_nothing_and_uninstalling_takes_only_what_is_ours() {
    let repo = installed();
    let report = repo.json(&["hook", "install"]).ok().value();
    let became: Vec<&str> =
        report["hooks"].as_array().unwrap().iter().map(|line| line["became"].as_str().unwrap()).collect();
    assert_eq!(became, ["there", "there", "there"]);
    let edited = std::fs::read_to_string(hook(&repo, "commit-msg")).unwrap() + "echo more\n";
    std::fs::write(hook(&repo, "commit-msg"), &edited).unwrap();
    std::fs::write(hook(&repo, "pre-push"), "#!/bin/sh\nexit 0\n").unwrap();
    let report = repo.json(&["hook", "uninstall"]).ok().value();
    let became: Vec<&str> =
        report["hooks"].as_array().unwrap().iter().map(|line| line["became"].as_str().unwrap()).collect();
    assert_eq!(became, ["removed", "edited", "absent"]);
    assert!(!hook(&repo, "pre-commit").exists());
    assert_eq!(std::fs::read_to_string(hook(&repo, "commit-msg")).unwrap(), edited);
    assert_eq!(std::fs::read_to_string(hook(&repo, "pre-push")).unwrap(), "#!/bin/sh\nexit 0\n");
}

#[test]
fn a_hook_of_somebody_elses_stays_and_the_line_to_add_works() {
    let repo = repository();
    std::fs::create_dir_all(repo.file(".git/hooks")).unwrap();
    let own = "#!/bin/sh\necho linted >&2\n";
    let program = |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(&hook(&repo, "pre-commit"), own);
    std::os::unix::fs::symlink("/bin/true", hook(&repo, "pre-push")).unwrap();
    let report = repo.json(&["hook", "install", "--force-beside"]).ok().value();
    assert_eq!(std::fs::read_to_string(hook(&repo, "pre-commit")).unwrap(), own);
    assert!(hook(&repo, "pre-push").is_symlink());
    let note = report["hooks"][0]["note"].as_str().unwrap();
    let line = note.strip_prefix("somebody else's; add to it: ").unwrap();
    program(&hook(&repo, "pre-commit"), &format!("{own}{line}\n"));
    assert_eq!(repo.json(&["hook", "install"]).ok().value()["hooks"][0]["became"], "called");
    let (_worker, tree) = working(&repo);
    stage(&repo, &tree, "README.md", "out\n");
    let said = refuses(&commit(&repo, &tree, &["-m", "Out"]));
    assert!(said.contains("linted") && said.contains("path_outside_scope"), "{said}");
}

#[test]
fn tools_that_own_the_hooks_are_told_apart_and_their_files_stay() {
    let repo = repository();
    let folder = repo.file(".git/hooks");
    std::fs::create_dir_all(&folder).unwrap();
    let framework = "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n";
    let lefthook = "#!/bin/sh\ncall_lefthook run \"commit-msg\" \"$@\"\n";
    std::fs::write(folder.join("pre-commit"), framework).unwrap();
    std::fs::write(folder.join("commit-msg"), lefthook).unwrap();
    let text = repo.striatum(&["hook", "install"]).ok().stdout;
    assert!(text.contains(".pre-commit-config.yaml") && text.contains("lefthook.yml"), "{text}");
    assert!(!folder.join("pre-commit.legacy").exists());
    repo.striatum(&["hook", "install", "--force-beside"]).ok();
    assert!(folder.join("pre-commit.legacy").exists());
    assert_eq!(std::fs::read_to_string(folder.join("pre-commit")).unwrap(), framework);
    assert_eq!(std::fs::read_to_string(folder.join("commit-msg")).unwrap(), lefthook);
    repo.striatum(&["hook", "uninstall"]).ok();
    assert!(!folder.join("pre-commit.legacy").exists() && !folder.join("pre-push").exists());

    let husky = repository();
    succeeds(&git_in(&husky, &husky.path(), &["config", "core.hooksPath", ".husky/_"]));
    husky.write(".husky/_/pre-commit", "#!/usr/bin/env sh\n. \"$(dirname -- \"$0\")/h\"\n");
    let text = husky.striatum(&["hook", "install"]).ok().stdout;
    assert!(text.contains("husky's; add to") && text.contains(".husky/pre-commit"), "{text}");
    husky.striatum(&["hook", "install", "--force-beside"]).ok();
    let placed = husky.read(".husky/pre-commit");
    assert!(placed.contains("striatum hook pre-commit") || placed.contains("hook pre-commit"), "{placed}");
}

#[test]
fn the_folder_that_git_really_uses_is_found() {
    let relative = repository();
    succeeds(&git_in(&relative, &relative.path(), &["config", "core.hooksPath", "tools/git hooks"]));
    relative.run(relative.command(&["hook", "install"]).current_dir(relative.file("src"))).ok();
    let shim = relative.read("tools/git hooks/pre-commit");
    assert!(!shim.contains("/target/"), "a committed script names nobody's program: {shim}");

    let own = repository();
    let tree = own.root().join("own");
    succeeds(&git_in(&own, &own.path(), &["worktree", "add", "-q", tree.to_str().unwrap()]));
    succeeds(&git_in(&own, &own.path(), &["config", "extensions.worktreeConfig", "true"]));
    let folder = own.root().join("hooks of one tree");
    succeeds(&git_in(&own, &tree, &["config", "--worktree", "core.hooksPath", folder.to_str().unwrap()]));
    own.run(own.command(&["hook", "install"]).current_dir(&tree)).ok();
    assert!(folder.join("pre-push").exists() && !hook(&own, "pre-push").exists());

    let off = repository();
    succeeds(&git_in(&off, &off.path(), &["config", "core.hooksPath", "/dev/null"]));
    off.json(&["hook", "install"]).refused(11, "git");

    let shared = repository();
    let folder = shared.root().join("everybodys");
    succeeds(&git_in(&shared, &shared.path(), &["config", "--global", "core.hooksPath", folder.to_str().unwrap()]));
    shared.json(&["hook", "install"]).refused(11, "git");
    assert!(!folder.exists());
    shared.striatum(&["hook", "install", "--force-beside"]).ok();
    assert!(folder.join("pre-commit").exists());
}

#[test]
fn hooks_do_not_change_while_a_job_is_worked_on() {
    let repo = repository();
    let (worker, tree) = working(&repo);
    repo.json(&["hook", "install"]).refused(5, "still_held");
    std::fs::write(tree.join("src/a.txt"), "changed\n").unwrap();
    worker.work(&["complete", "--summary", "done"]).ok();
    repo.striatum(&["hook", "install"]).ok();
}

#[test]
fn a_program_that_is_missing_or_does_not_know_the_hook_blocks_nothing() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    let script = std::fs::read_to_string(hook(&repo, "pre-commit")).unwrap();
    assert!(script.contains("/striatum'"), "the installing program is the fallback: {script}");
    stage(&repo, &tree, "README.md", "out\n");
    // Without one on the PATH, the one that installed answers.
    let path = std::env::var_os("PATH").unwrap();
    let commit = |message: &str| {
        let mut command = git_command(&repo, &tree, &["commit", "-qm", message]);
        command.env("PATH", &path);
        command.output().unwrap()
    };
    refuses(&commit("By the fallback"));
    let older = repo.root().join("older");
    std::fs::write(&older, "#!/bin/sh\necho 'error: unrecognized subcommand' >&2\nexit 2\n").unwrap();
    std::fs::set_permissions(&older, std::fs::Permissions::from_mode(0o755)).unwrap();
    let fallback = script.lines().find(|line| line.starts_with("for ")).unwrap();
    for program in [older.to_str().unwrap(), "/nowhere/striatum"] {
        let changed = format!("for striatum in \"\" striatum '{program}'; do");
        for name in ["pre-commit", "commit-msg"] {
            let text = std::fs::read_to_string(hook(&repo, name)).unwrap();
            std::fs::write(hook(&repo, name), text.replace(fallback, &changed)).unwrap();
        }
        std::fs::write(tree.join("README.md"), program).unwrap();
        succeeds(&git_in(&repo, &tree, &["add", "README.md"]));
        succeeds(&commit(program));
        std::fs::write(hook(&repo, "pre-commit"), &script).unwrap();
    }
}

#[test]
fn the_script_is_shown_as_it_would_be_installed() {
    let repo = installed();
    let shown = repo.striatum(&["hook", "print", "pre-commit"]).ok().stdout;
    assert_eq!(shown, std::fs::read_to_string(hook(&repo, "pre-commit")).unwrap());
    assert_eq!(repo.json(&["hook", "print"]).ok().value()["scripts"].as_array().unwrap().len(), 3);
    repo.json(&["hook", "print", "post-commit"]).refused(2, "usage");
}

#[test]
fn a_message_that_is_edited_keeps_its_comments_below_the_trailers() {
    let repo = installed();
    let (_worker, tree) = working(&repo);
    stage(&repo, &tree, "src/a.txt", "in\n");
    let mut command = git_command(&repo, &tree, &["commit", "-q", "--verbose"]);
    command.env("GIT_EDITOR", "sh -c 'printf \"Edited\\n\" | cat - \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"' edit");
    succeeds(&command.output().unwrap());
    let message = succeeds(&git_in(&repo, &tree, &["log", "-1", "--format=%B"]));
    assert_eq!(message.trim_end(), "Edited\n\nStriatum-Run: w-1\nStriatum-Job: draft\nStriatum-Attempt: 1");
}

#[test]
fn a_hook_asked_with_more_words_than_git_gives_is_a_verb_like_any_other() {
    let repo = repository();
    repo.striatum(&["hook", "pre-commit"]).ok();
    repo.striatum(&["hook", "pre-commit", "--help"]).ok();
    assert_eq!(repo.striatum(&["hook", "commit-msg"]).code, 2);
    repo.striatum(&["hook", "pre-push", "origin", "url"]).ok();
}

#[test]
fn an_agents_own_commits_are_judged_by_the_program_that_hosts_it() {
    let repo = installed();
    repo.agent(
        "draft.1",
        "git() { command git -c user.name=A -c user.email=a@example.org \"$@\"; }; \
         echo x > README.md; git commit -qam Out || note refused; git checkout -q HEAD -- README.md; \
         echo y > src/a.txt; git commit -qam In && note made; complete",
    );
    repo.start("w");
    repo.drive().ok();
    let notes: Vec<String> = repo.notes().into_iter().map(|note| note.word).collect();
    assert_eq!(notes, ["refused", "made"]);
    assert_eq!(repo.run_state("w-1"), "completed");
}
