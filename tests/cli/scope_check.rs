//! What the seal would say, asked by the agent, the operator and in a hook: the same words for the same paths.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::{Output, STRIATUM, TestRepo, Worker};

/// One job that may change some of the repository.
pub const NARROW: &str = r#"
[lanes.script]
command = "@agent"
[tree]
discard = ["*.tmp"]
[[jobs]]
id = "draft"
role = "author"
lane = "script"
objective = "change it"
writes = ["src/", "docs/**/*.md"]
forbids = ["src/secret/"]
"#;

/// A repository with a commit, and a workflow of one job, `draft`.
pub fn repository() -> TestRepo {
    let repo = TestRepo::new();
    for (path, text) in
        [("src/a.txt", "a\n"), ("src/b/c.txt", "c\n"), ("README.md", "read\n"), ("src/secret/key", "k\n")]
    {
        repo.write(path, text);
    }
    repo.write(".gitignore", ".striatum/\n");
    commit_all(&repo);
    repo.workflow("w", NARROW);
    repo
}

pub fn commit_all(repo: &TestRepo) {
    assert!(repo.git(&["add", "--all"]).status.success());
    let made = repo.git(&["commit", "--quiet", "--message", "First"]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// A worker that holds `draft`, and its work tree.
pub fn working(repo: &TestRepo) -> (Worker<'_>, PathBuf) {
    repo.start("w");
    let mut worker = repo.register("author", "script");
    let report = worker.claim();
    assert_eq!(report["status"], "claimed", "{report}");
    (worker, repo.dir().join("worktrees/w-1/draft.1"))
}

/// `striatum scope-check ...` in a folder.
fn check(repo: &TestRepo, folder: &Path, args: &[&OsStr]) -> Output {
    repo.run(repo.command::<&str>(&["scope-check", "--json"]).args(args).current_dir(folder))
}

fn lines(report: &Value) -> Vec<String> {
    let lines = report["violations"].as_array().unwrap();
    lines.iter().map(|line| format!("{}: {}", line["word"].as_str().unwrap(), line["path"].as_str().unwrap())).collect()
}

fn words(args: &[&str]) -> Vec<std::ffi::OsString> {
    args.iter().map(Into::into).collect()
}

#[track_caller]
fn refused(repo: &TestRepo, folder: &Path, args: &[&str]) -> Vec<String> {
    let args = words(args);
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    let output = check(repo, folder, &args);
    let report = output.value();
    let lines = lines(&report);
    assert_eq!(output.code, if lines.is_empty() { 0 } else { 6 }, "{report}");
    lines
}

#[test]
fn outside_every_tree_there_is_no_scope() {
    let repo = TestRepo::bare();
    let said = repo.striatum(&["scope-check"]).ok().stdout;
    assert!(said.contains("there is no scope here"), "{said}");
    let repo = repository();
    let (_worker, _tree) = working(&repo);
    let said = repo.striatum(&["scope-check", "README.md"]).ok().stdout;
    assert!(said.contains("this is no job's work tree"), "{said}");
}

#[test]
fn each_change_out_of_scope_is_named_with_its_word() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    assert_eq!(refused(&repo, &tree, &[]), Vec::<String>::new());
    std::fs::write(tree.join("src/a.txt"), "changed\n").unwrap();
    std::fs::write(tree.join("left.tmp"), "dropping\n").unwrap();
    std::fs::create_dir_all(tree.join("docs/x")).unwrap();
    std::fs::write(tree.join("docs/x/new.md"), "new\n").unwrap();
    assert_eq!(refused(&repo, &tree, &[]), Vec::<String>::new());
    std::fs::write(tree.join("README.md"), "changed\n").unwrap();
    std::fs::remove_file(tree.join("src/secret/key")).unwrap();
    std::os::unix::fs::symlink("a.txt", tree.join("src/link")).unwrap();
    std::fs::write(tree.join("src/A.txt"), "other\n").unwrap();
    std::fs::hard_link(tree.join("src/b/c.txt"), repo.root().join("other-name")).unwrap();
    std::fs::write(tree.join("src/b/c.txt"), "through a link\n").unwrap();
    std::fs::create_dir(tree.join(".vscode")).unwrap();
    std::fs::write(tree.join(".vscode/tasks.json"), "{}\n").unwrap();
    let mut found = refused(&repo, &tree, &[]);
    found.sort();
    let expected = [
        "case_collision: src/A.txt",
        "hard_link_refused: src/b/c.txt",
        "path_forbidden: src/secret/key",
        "path_outside_scope: README.md",
        "protected_path: .vscode/tasks.json",
        "symlink_refused: src/link",
    ];
    assert_eq!(found, expected);
    let text = repo.run(repo.command(&["scope-check"]).current_dir(tree.join("src"))).exits(6).stdout;
    assert!(text.contains("path_outside_scope: README.md\n") && text.contains("striatum work block"), "{text}");
}

#[test]
fn looking_does_not_disturb_what_the_seal_will_see() {
    let repo = repository();
    let (worker, tree) = working(&repo);
    let index = repo.dir().join("worktrees/w-1/draft.1.index");
    std::fs::write(tree.join("src/new.txt"), "new\n").unwrap();
    let before = std::fs::read(&index).unwrap();
    assert_eq!(refused(&repo, &tree, &[]), Vec::<String>::new());
    assert!(std::fs::read(&index).unwrap() == before);
    let status = git_in(&repo, &tree, &["status", "--porcelain"]);
    assert_eq!(String::from_utf8_lossy(&status.stdout), "?? src/new.txt\n");
    worker.work(&["complete", "--summary", "done"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn what_the_check_refuses_is_what_the_seal_refuses() {
    let repo = repository();
    let (worker, tree) = working(&repo);
    std::fs::write(tree.join("README.md"), "changed\n").unwrap();
    std::fs::write(tree.join("odd\n\"name\""), "new\n").unwrap();
    std::fs::write(repo.file("README.md"), "by hand\n").unwrap();
    let mut found = refused(&repo, &tree, &[]);
    let settled = worker.work(&["complete", "--summary", "done"]);
    let report = settled.value();
    let sealed = report["settled"]["violations"].as_array().or(report["violations"].as_array()).cloned();
    let mut sealed: Vec<String> =
        sealed.unwrap_or_default().iter().map(|line| line.as_str().unwrap().to_owned()).collect();
    found.sort();
    sealed.sort();
    assert_eq!(found, sealed, "{report}");
    assert!(found.iter().any(|line| line == r#"path_outside_scope: "odd\n\"name\"""#), "{found:?}");
    assert!(found.iter().any(|line| line.starts_with("foreign_write: README.md")), "{found:?}");
}

#[test]
fn names_of_every_kind_are_judged_as_bytes() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    let names: [&[u8]; 9] = [
        b"with space",
        b"tab\there",
        b"new\nline",
        b"quote\"d",
        b"-dash",
        "日本語".as_bytes(),
        "caf\u{e9}".as_bytes(),
        "the\u{301}".as_bytes(),
        b"bytes\xff\xfe",
    ];
    for name in names {
        std::fs::write(tree.join("src").join(OsStr::from_bytes(name)), "in\n").unwrap();
        std::fs::write(tree.join(OsStr::from_bytes(name)), "out\n").unwrap();
    }
    let mut found = refused(&repo, &tree, &[]);
    found.sort();
    let mut expected = [
        "path_outside_scope: with space",
        r#"path_outside_scope: "tab\there""#,
        r#"path_outside_scope: "new\nline""#,
        r#"path_outside_scope: "quote\"d""#,
        "path_outside_scope: -dash",
        "path_outside_scope: 日本語",
        "path_outside_scope: caf\u{e9}",
        "path_outside_scope: the\u{301}",
        r#"path_outside_scope: "bytes\377\376""#,
    ];
    expected.sort_unstable();
    assert_eq!(found, expected);
    let by_name: Vec<&OsStr> = std::iter::once("--".as_ref()).chain(names.map(OsStr::from_bytes)).collect();
    let mut named = lines(&check(&repo, &tree, &by_name).exits(6).value());
    named.sort();
    assert_eq!(named, expected);
}

#[test]
fn paths_are_judged_by_their_names_from_where_one_stands() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    std::os::unix::fs::symlink("b", tree.join("src/way")).unwrap();
    std::os::unix::fs::symlink("/nowhere", tree.join("src/dangling")).unwrap();
    let none = Vec::<String>::new();
    let within = tree.join("src");
    assert_eq!(refused(&repo, &tree, &["src/not/yet.txt", "docs/a/b.md", "./src/a.txt", "x.tmp"]), none);
    assert_eq!(refused(&repo, &within, &["a.txt", "../docs/x.md", "../src/b/../a.txt"]), none);
    assert_eq!(refused(&repo, &tree, &[tree.join("src/a.txt").to_str().unwrap()]), none);
    let cases = [
        ("docs/a.txt", "path_outside_scope: docs/a.txt"),
        ("srcs/a.txt", "path_outside_scope: srcs/a.txt"),
        (".github/workflows/x.yml", "path_outside_scope: .github/workflows/x.yml"),
        ("src/.git/config", "protected_path: src/.git/config"),
        ("src/secret/new", "path_forbidden: src/secret/new"),
        ("../x", "path_traversal: ../x"),
        ("src/../../x", "path_traversal: src/../../x"),
        ("/etc/passwd", "path_traversal: /etc/passwd"),
        ("src/way/c.txt", "symlink_refused: src/way/c.txt"),
        ("src/dangling", "symlink_refused: src/dangling"),
    ];
    for (path, expected) in cases {
        assert_eq!(refused(&repo, &tree, &[path]), [expected]);
    }
}

#[test]
fn names_alone_need_no_git() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    let empty = repo.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let without = |args: &[&str]| {
        let mut command = repo.command(&["scope-check"]);
        command.args(args).current_dir(&tree).env("PATH", &empty);
        repo.run(&mut command)
    };
    without(&["src/x"]).ok();
    without(&["README.md"]).exits(6);
    without(&["--json"]).refused(11, "git");
}

#[test]
fn a_rename_out_of_scope_is_both_of_its_halves() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    std::fs::rename(tree.join("README.md"), tree.join("src/README.md")).unwrap();
    assert_eq!(refused(&repo, &tree, &[]), ["path_outside_scope: README.md"]);
    std::fs::rename(tree.join("src/b/c.txt"), tree.join("c.txt")).unwrap();
    assert_eq!(refused(&repo, &tree, &[]), ["path_outside_scope: README.md", "path_outside_scope: c.txt"]);
    git_in(&repo, &tree, &["mv", "src/a.txt", "src/A.TXT"]);
    assert!(!refused(&repo, &tree, &["--staged"]).iter().any(|line| line.contains("A.TXT")));
}

#[test]
fn a_job_is_judged_from_anywhere_by_its_name() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    std::fs::write(tree.join("README.md"), "changed\n").unwrap();
    let top = repo.path();
    assert_eq!(refused(&repo, &top, &["--job", "draft"]), ["path_outside_scope: README.md"]);
    assert_eq!(refused(&repo, &top, &["--job", "draft", "--run-id", "w-1", "src/x"]), Vec::<String>::new());
    let mut command = repo.command(&["scope-check"]);
    repo.run(command.env("STRIATUM_JOB", "draft").env("STRIATUM_RUN", "w-1")).exits(6);
    repo.json(&["scope-check", "--job", "nobody"]).refused(2, "not_found");
}

#[test]
fn only_what_is_staged_counts_when_that_is_asked() {
    let repo = repository();
    let (_worker, tree) = working(&repo);
    std::fs::write(tree.join("README.md"), "changed\n").unwrap();
    assert_eq!(refused(&repo, &tree, &["--staged"]), Vec::<String>::new());
    git_in(&repo, &tree, &["add", "README.md"]);
    assert_eq!(refused(&repo, &tree, &["--staged"]), ["path_outside_scope: README.md"]);
}

#[test]
fn an_agent_asks_through_its_helper() {
    let repo = repository();
    repo.agent(
        "draft.1",
        "echo x > README.md; striatum scope-check > \"$STRIATUM_SCRATCH/../said\"; note exit-$?; \
         striatum scope-check src/a.txt && note fine; git checkout -q README.md; echo y > src/a.txt; \
         striatum scope-check --json && complete",
    );
    repo.start("w");
    repo.drive().ok();
    let notes: Vec<String> = repo.notes().into_iter().map(|note| note.word).collect();
    assert_eq!(notes, ["exit-6", "fine"]);
    assert_eq!(repo.run_state("w-1"), "completed");
}

/// git in a folder, with nobody's environment but an identity.
pub fn git_in(repo: &TestRepo, folder: &Path, args: &[&str]) -> std::process::Output {
    git_command(repo, folder, args).output().unwrap()
}

/// The same, not run yet.
pub fn git_command(repo: &TestRepo, folder: &Path, args: &[&str]) -> Command {
    let mut command = repo.command_of("git", args);
    let poisoned: Vec<_> = repo
        .environment()
        .into_iter()
        .map(|(name, _)| name)
        .filter(|name| name.as_bytes().starts_with(b"GIT_"))
        .collect();
    for name in &poisoned {
        command.env_remove(name);
    }
    for (name, value) in [("NAME", "Somebody"), ("EMAIL", "somebody@example.com")] {
        command.env(format!("GIT_AUTHOR_{name}"), value).env(format!("GIT_COMMITTER_{name}"), value);
    }
    // The hooks find the program under test.
    let own = Path::new(STRIATUM).parent().unwrap().to_owned();
    let rest = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(std::iter::once(own).chain(std::env::split_paths(&rest))).unwrap();
    command.env("PATH", path).current_dir(folder);
    command
}
