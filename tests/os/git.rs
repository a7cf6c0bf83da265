//! Asking git in repositories that try to lead it elsewhere or to make it run things.

use std::path::Path;
use std::process::Command;

use striatum::os::git::{Git, GitError};
use striatum::os::layout::{Search, discover};
use tempfile::TempDir;

use crate::alone::{child_env, only, this_program};

fn git(cwd: &Path, args: &[&str]) {
    let out = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(cwd)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", cwd)
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

fn repository(folder: &Path) -> Git {
    git(folder, &["init", "-q"]);
    let found = discover(Search { flag: None, variable: None, cwd: folder }).unwrap();
    Git::of(found.layout()).unwrap()
}

#[test]
fn a_repository_without_a_commit_has_no_head() {
    let folder = TempDir::new().unwrap();
    let asked = repository(folder.path());
    assert_eq!(asked.head().unwrap(), None);
    std::fs::write(folder.path().join("a"), "").unwrap();
    git(folder.path(), &["add", "a"]);
    git(folder.path(), &["commit", "-qm", "one"]);
    assert_eq!(asked.head().unwrap().unwrap().len(), 40);
}

#[test]
fn dirt_is_counted_by_path_and_only_in_a_work_tree() {
    let folder = TempDir::new().unwrap();
    let asked = repository(folder.path());
    assert_eq!(asked.dirty_count().unwrap(), 0);
    std::fs::create_dir(folder.path().join("new")).unwrap();
    std::fs::write(folder.path().join("new/a\nb"), "").unwrap();
    std::fs::write(folder.path().join("c"), "").unwrap();
    git(folder.path(), &["add", "c"]);
    assert_eq!(asked.dirty_count().unwrap(), 2);

    let bare = TempDir::new().unwrap();
    git(bare.path(), &["init", "-q", "--bare"]);
    let found = discover(Search { flag: None, variable: None, cwd: bare.path() }).unwrap();
    assert!(matches!(Git::of(found.layout()).unwrap().dirty_count(), Err(GitError::NoTree)));
}

#[test]
fn a_poisoned_environment_and_configured_commands_change_nothing() {
    let (folder, decoy) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    repository(folder.path());
    repository(decoy.path());
    std::fs::write(folder.path().join("a"), "").unwrap();
    let trap = format!("touch {}", folder.path().join("../trapped-").display())
        + folder.path().file_name().unwrap().to_str().unwrap();
    git(folder.path(), &["config", "core.fsmonitor", &trap]);
    git(folder.path(), &["config", "diff.external", &trap]);
    git(folder.path(), &["config", "core.pager", &trap]);
    let mut env = child_env("git::asking_child");
    env.extend([
        ("PLACE".into(), folder.path().into()),
        ("GIT_DIR".into(), decoy.path().join(".git").into()),
        ("GIT_WORK_TREE".into(), decoy.path().into()),
        ("GIT_INDEX_FILE".into(), decoy.path().join("index").into()),
        ("GIT_CONFIG_COUNT".into(), "1".into()),
        ("GIT_CONFIG_KEY_0".into(), "core.worktree".into()),
        ("GIT_CONFIG_VALUE_0".into(), decoy.path().into()),
    ]);
    let out = Command::new(this_program()).args(only("git::asking_child")).envs(env).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let trapped =
        folder.path().with_file_name(format!("trapped-{}", folder.path().file_name().unwrap().to_str().unwrap()));
    assert!(!trapped.exists());
    assert!(!decoy.path().join("index").exists());
}

#[test]
fn asking_child() {
    crate::alone::as_child("git::asking_child", || {
        let folder = std::path::PathBuf::from(std::env::var_os("PLACE").unwrap());
        let found = discover(Search { flag: None, variable: None, cwd: &folder }).unwrap();
        let asked = Git::of(found.layout()).unwrap();
        assert_eq!(asked.dirty_count().unwrap(), 1);
        assert_eq!(asked.head().unwrap(), None);
    });
}
