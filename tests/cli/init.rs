//! `init`: what a first run needs, and nothing else touched.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::control::next_commands;
use crate::support::{Output, TestRepo};

/// `init` in a folder where only these programs are on the PATH, beside git and a shell.
fn init(repo: &TestRepo, folder: &Path, agents: &[&str]) -> Command {
    let bin = repo.root().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for agent in agents {
        std::fs::write(bin.join(agent), "#!/bin/sh\nexit 1\n").unwrap();
        std::fs::set_permissions(bin.join(agent), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var_os("PATH").unwrap();
    for program in ["git", "sh", "grep"] {
        let found = std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.exists()).unwrap();
        let _ = symlink(found, bin.join(program));
    }
    let mut command = repo.command(&["init", "--json"]);
    command.current_dir(folder).env("PATH", bin);
    command
}

fn run(repo: &TestRepo, agents: &[&str]) -> Output {
    repo.run(&mut init(repo, &repo.path(), agents))
}

#[test]
fn a_repository_is_set_up_and_its_first_workflow_runs_at_once() {
    let repo = TestRepo::bare();
    let report = run(&repo, &[]).ok().value();
    assert_eq!(report["kept"], serde_json::json!([]));
    assert_eq!(report["agents"], serde_json::json!([]));
    assert_eq!(next_commands(&report), ["striatum run go -w review"]);
    let driven = repo.striatum(&["run", "go", "-w", "review"]).ok();
    assert_eq!(*driven.lines().last().unwrap(), "run review-1 -> completed: every job is settled");
}

#[test]
fn git_sees_what_is_yours_and_nothing_else() {
    let repo = TestRepo::bare();
    run(&repo, &[]).ok();
    repo.striatum(&["run", "go", "-w", "review"]).ok();
    for path in ["STOP", "worktrees/x", "decisions/d1.md", "prompts/p.md", "roles/r.md"] {
        repo.write(&format!(".striatum/{path}"), "x");
    }
    let status = repo.git(&["status", "--short", "-uall"]);
    let seen = String::from_utf8(status.stdout).unwrap().replace("?? .striatum/", "");
    let seen: Vec<&str> = seen.lines().collect();
    assert_eq!(
        seen,
        [".gitignore", "config.toml", "decisions/d1.md", "prompts/p.md", "roles/r.md", "workflows/review.toml"]
    );
}

#[test]
fn what_is_the_stores_own_is_private() {
    let repo = TestRepo::bare();
    run(&repo, &[]).ok();
    let mode = |path: &str| std::fs::metadata(repo.dir().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(["locks", "scratch", "artifacts"].map(mode), [0o700; 3]);
    assert_eq!(["striatum.db"].map(mode), [0o600]);
}

#[test]
fn twice_changes_nothing_and_a_persons_files_are_kept() {
    let repo = TestRepo::bare();
    repo.write(".striatum/config.toml", "# mine\n");
    repo.write(".striatum/workflows/own.toml", "id = 3");
    let first = run(&repo, &[]).ok().value();
    assert!(first["kept"].as_array().unwrap().contains(&".striatum/config.toml".into()), "{first}");
    assert!(!repo.file(".striatum/workflows/review.toml").exists());
    let second = run(&repo, &[]).ok().value();
    assert_eq!(second["made"], serde_json::json!([]));
    assert_eq!(repo.read(".striatum/config.toml"), "# mine\n");
    assert_eq!(repo.count("store"), 1);
}

#[test]
fn commands_that_stood_there_before_are_not_trusted_by_it() {
    let repo = TestRepo::bare();
    repo.workflow("w", super::control::ONE);
    let report = run(&repo, &[]).ok().value();
    assert_eq!(next_commands(&report), ["striatum trust --show", "striatum trust"]);
    repo.json(&["run", "prepare", "-w", "w"]).refused(7, "untrusted");
}

#[test]
fn agents_on_the_path_become_lanes_and_it_says_which_it_chose() {
    let repo = TestRepo::bare();
    let report = run(&repo, &["aider", "codex", "gemini"]).ok().value();
    let names: Vec<&str> =
        report["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["codex", "gemini", "aider"]);
    assert_eq!((&report["author"], &report["reviewer"]), (&"codex".into(), &"aider".into()));
    let config = repo.read(".striatum/config.toml");
    assert!(config.contains("\n[lanes.codex]\nadapter = \"codex\"\n"), "{config}");
    assert!(config.contains("\n# [lanes.claude]\n"), "{config}");
    repo.striatum(&["config", "show"]).ok();
}

#[test]
fn without_git_and_in_a_bare_repository_it_works_and_says_so() {
    let repo = TestRepo::bare();
    let plain = repo.root().join("plain");
    std::fs::create_dir(&plain).unwrap();
    let report = repo.run(&mut init(&repo, &plain, &[])).ok().value();
    assert_eq!(report["git"], "none");
    repo.run(repo.command(&["run", "go", "-w", "review"]).current_dir(&plain)).ok();
    let bare = repo.root().join("bare.git");
    repo.git(&["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    let report = repo.run(&mut init(&repo, &bare, &[])).ok().value();
    let store = bare.join("striatum");
    assert_eq!(report["notes"][0], format!("this repository has no work tree: its store is {}", store.display()));
    assert!(store.join("striatum.db").exists());
}

#[test]
fn in_a_linked_worktree_the_store_is_the_repositorys() {
    let repo = TestRepo::bare();
    repo.git(&["commit", "--quiet", "--allow-empty", "-m", "one"]);
    let linked = repo.root().join("linked");
    repo.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let report = repo.run(&mut init(&repo, &linked, &[])).ok().value();
    assert_eq!(report["root"], repo.dir().to_str().unwrap());
    assert!(!linked.join(".striatum").exists());
}

#[test]
fn unsuitable_places_are_refused_by_name() {
    let repo = TestRepo::bare();
    let home = repo.root().join("home");
    let refused = repo.run(&mut init(&repo, &home, &[])).refused(9, "store_unsafe");
    assert_eq!(refused["message"], format!("{} is your home, and no repository", home.display()));
    symlink(repo.root().join("tmp"), repo.dir()).unwrap();
    let refused = run(&repo, &[]).refused(9, "store_unsafe");
    assert_eq!(refused["message"], format!("{} is a symbolic link", repo.dir().display()));
    assert_eq!(std::fs::read_dir(repo.root().join("tmp")).unwrap().count(), 0);
}

#[test]
fn several_at_once_make_one_store() {
    let repo = TestRepo::bare();
    let all: Vec<_> = (0..6).map(|_| repo.spawn_command(init(&repo, &repo.path(), &[]))).collect();
    for one in all {
        one.wait().ok();
    }
    assert_eq!(repo.count("store"), 1);
    repo.striatum(&["run", "go", "-w", "review"]).ok();
}
