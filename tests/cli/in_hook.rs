//! Every verb called from inside a hook that git runs, in the main work tree and in a linked one, with what git sets
//! there and with an environment that leads to another repository.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use striatum::verbs::api;

use super::scope_check::{git_command, git_in, repository};
use crate::support::{STRIATUM, TestRepo};

/// Every verb, as it is typed. Most are refused; what counts is where they look.
const LINES: &[&str] = &[
    "init",
    "trust --show",
    "trust --as-person --yes",
    "workflow validate w",
    "workflow show w",
    "workflow graph w",
    "workflow generate panel",
    "workflow import nothing.toml",
    "config show",
    "config schema",
    "notify test",
    "run prepare -w w",
    "run start --run-id w-1",
    "run pause",
    "run resume",
    "run amend --set budget.launches=20 --reason because",
    "run admit p9 --as-person",
    "run dismiss p9 --as-person",
    "run drive --interval 500ms",
    "run go -w w",
    "run list",
    "run summary --run-id w-1",
    "run graph --run-id w-1",
    "run explain --run-id w-1",
    "run stop",
    "run cancel --reason because",
    "run retry-job draft --run-id w-1 --reason because",
    "register-session --role author --lane script",
    "session list",
    "session close s99 --reason because",
    "list sessions",
    "supervise start --session-id s99",
    "supervise stop --session-id s99 --reason because",
    "supervise status --session-id s99",
    "supervise logs --session-id s99",
    "status",
    "inbox",
    "events",
    "logs draft",
    "job show draft",
    "dashboard --once",
    "doctor",
    "audit verify",
    "gate list",
    "decision record --outcome rejected --title no --run-id w-1",
    "decision list --run-id w-1",
    "process run --session-id s99 -- true",
    "repo write --session-id s99 --path src/x",
    "repo patch-preview --session-id s99",
    "repo patch-apply --session-id s99 --token x",
    "gate show g9",
    "gate approve g9 --as-person",
    "gate reject g9 --as-person",
    "gate skip g9 --as-person",
    "gate revise g9 --note x --as-person",
    "answer draft because --as-person",
    "take draft --as-person",
    "give draft --as-person",
    "review override-verdict draft --verdict accept --reason because --as-person",
    "lane list",
    "lane pause script",
    "lane resume script",
    "work await --session-id s99 --timeout 10ms",
    "work claim --session-id s99",
    "work ack --session-id s99",
    "work heartbeat --session-id s99",
    "work publish notes --session-id s99",
    "work show --session-id s99",
    "work complete --session-id s99",
    "work requeue-stale --reason because",
    "scope-check",
    "scope-check src/a.txt",
    "scope-check --staged",
    "scope-check --job draft --run-id w-1",
    "diff",
    "diff draft --run-id w-1 --attempt 1",
    "run check -w w",
    "run land w-9 --as-person",
    "gc",
    "uninit",
    "hook print",
    "hook install",
    "hook uninstall",
    "hook pre-commit",
    "hook commit-msg nothing",
    "hook pre-push origin nowhere",
    "quickstart",
];

/// Verbs of the table that are typed by another word.
const TYPED: [(&str, &str); 4] = [
    ("work_answer", "work_complete"),
    ("trust_show", "trust_--show"),
    ("process_begin", "process_run"),
    ("process_mark", "process_run"),
];

/// A hook that calls every verb, first as git lets it, then poisoned, and writes down what it saw.
fn hook_with_every_verb(repo: &TestRepo, log: &Path) {
    let mut script = format!("#!/bin/sh\nexec >> '{}' 2>&1 < /dev/null\n", log.display());
    let calls: String = LINES.iter().map(|line| format!("'{STRIATUM}' {line}\necho \"$? {line}\"\n")).collect();
    script.push_str(&calls);
    for (name, value) in repo.environment() {
        if name.to_string_lossy().starts_with("GIT_") {
            script.push_str(&format!("export {}='{}'\n", name.display(), value.display()));
        }
    }
    script.push_str(&calls);
    script.push_str("exit 0\n");
    let hook = repo.file(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, script).unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Commits in a folder while the hook calls every verb; nothing but the commit and the runs' own may have happened.
fn commits_in(repo: &TestRepo, folder: &Path) {
    let log = repo.root().join("hook.log");
    hook_with_every_verb(repo, &log);
    repo.agent("draft", "write src/a.txt \"$RUN\"; complete");
    std::fs::write(folder.join("mine.txt"), "mine\n").unwrap();
    std::fs::write(folder.join("README.md"), "not staged\n").unwrap();
    assert!(git_in(repo, folder, &["add", "mine.txt"]).status.success());
    let commit = git_command(repo, folder, &["commit", "-qm", "Mine"]).output().unwrap();
    let said = std::fs::read_to_string(&log).unwrap();
    assert!(commit.status.success(), "{}\n{said}", String::from_utf8_lossy(&commit.stderr));
    for line in LINES {
        let ended = |exit: &str| said.lines().filter(|said| *said == format!("{exit} {line}")).count();
        let seen = said.lines().filter(|said| said.ends_with(&format!(" {line}"))).count();
        assert!(seen >= 2, "{line}\n{said}");
        assert_eq!(ended("70") + ended("101") + ended("9"), 0, "{line}\n{said}");
    }
    let read = |args: &[&str]| String::from_utf8(git_in(repo, folder, args).stdout).unwrap();
    assert_eq!(read(&["show", "--name-only", "--format=%s", "HEAD"]), "Mine\n\nmine.txt\n");
    assert_eq!(read(&["status", "--porcelain"]), " M README.md\n");
    for run in ["w-2", "w-4"] {
        assert_eq!(repo.run_state(run), "completed", "{said}");
        assert_eq!(read(&["show", &format!("striatum/{run}:src/a.txt")]), format!("{run}\n"));
    }
    assert!(git_in(repo, folder, &["fsck", "--strict"]).status.success());
    repo.check_decoy();
}

#[test]
fn every_verb_stays_in_its_repository_when_a_hook_of_the_main_tree_calls_it() {
    let repo = repository();
    commits_in(&repo, &repo.path());
}

#[test]
fn every_verb_stays_in_its_repository_when_a_hook_of_a_linked_tree_calls_it() {
    let repo = repository();
    let own = repo.root().join("own");
    assert!(git_in(&repo, &repo.path(), &["worktree", "add", "-q", own.to_str().unwrap()]).status.success());
    commits_in(&repo, &own);
}

#[test]
fn every_verb_is_in_the_list() {
    let typed: Vec<String> = LINES.iter().map(|line| line.replace([' ', '-'], "_")).collect();
    let missing: Vec<&str> = api::ALL
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| {
            let words = TYPED.iter().find(|(verb, _)| verb == name).map_or(*name, |(_, words)| words);
            !typed.iter().any(|line| line.starts_with(&words.replace('-', "_")))
        })
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}
