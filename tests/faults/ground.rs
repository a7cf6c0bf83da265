//! The ground gives way: a busy store, a moved, deleted or newer one, a full or read-only disk, odd paths and umasks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Output, TestRepo, wait_until};

/// One job of one lane, and one behind it.
const TWO: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "50s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "text", path = "out.txt" }]
    verify = ["test -s out.txt"]
    [[jobs]]
    id = "sum"
    role = "author"
    lane = "script"
    needs = ["draft"]
    tree = "none"
"#;

const LIMITS: &str = "[limits]\nbusy = \"200ms\"\ngrace = \"200ms\"\n";

fn ready(repo: TestRepo) -> TestRepo {
    repo.write(".striatum/config.toml", LIMITS);
    repo.workflow("w", TWO);
    repo.agent("draft", "write out.txt text\nhold work\ncomplete");
    repo
}

fn holds(repo: &TestRepo) {
    wait_until("the agent holds", || {
        repo.notes().iter().any(|note| note.word == "holds work")
            && repo.count("execution WHERE state = 'running'") == 1
    });
}

/// The lock of whoever writes, in the hands of somebody who hangs.
fn hold_writing(repo: &TestRepo) -> std::fs::File {
    let lock = std::fs::File::options().write(true).open(repo.dir().join("locks/write.lock")).unwrap();
    fs2::FileExt::lock_exclusive(&lock).unwrap();
    lock
}

#[test]
fn an_agent_is_told_of_a_busy_store_and_may_ask_again() {
    let repo = ready(TestRepo::new());
    repo.agent("draft", "write out.txt text\nhold work\nuntil complete; do note \"busy $?\"; done");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    let lock = hold_writing(&repo);
    repo.go("work");
    wait_until("the agent is told", || repo.notes().iter().any(|note| note.word == "busy 10"));
    drop(lock);
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start", "sum.1 start"]);
}

#[test]
fn a_helper_outwaits_a_busy_store_with_its_seal() {
    let repo = ready(TestRepo::new());
    let verify = format!(
        "verify = [[\"sh\", \"-c\", \"until [ -e '{}' ]; do sleep 0.02; done\"]]",
        repo.root().join("agent/go-verify").display()
    );
    repo.workflow("w", &TWO.replace("verify = [\"test -s out.txt\"]", &verify));
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    repo.go("work");
    wait_until("it verifies", || repo.count("execution WHERE kind = 'verify' AND state = 'running'") == 1);
    let helper: i32 = repo.one("SELECT pid FROM supervisor", ());
    let lock = hold_writing(&repo);
    repo.go("verify");
    let threads = || std::fs::read_dir(format!("/proc/{helper}/task")).map_or(0, Iterator::count);
    wait_until("the helper waits for the store", || threads() == 2);
    // Longer than any verb would wait.
    let busy = std::time::Instant::now();
    wait_until("it is busy for long", || busy.elapsed().as_millis() > 700 && threads() == 2);
    drop(lock);
    driver.wait().ok();
    repo.check_completed(&run);
    assert_eq!(repo.count("supervisor"), 1, "{}", repo.told());
}

/// Where the database's files are put.
fn aside(repo: &TestRepo) -> PathBuf {
    repo.root().join("aside")
}

fn take_away(repo: &TestRepo) {
    std::fs::create_dir(aside(repo)).unwrap();
    for name in ["striatum.db", "striatum.db-wal", "striatum.db-shm"] {
        std::fs::rename(repo.dir().join(name), aside(repo).join(name)).unwrap();
    }
}

fn bring_back(repo: &TestRepo) {
    for name in ["striatum.db", "striatum.db-wal", "striatum.db-shm"] {
        std::fs::rename(aside(repo).join(name), repo.dir().join(name)).unwrap();
    }
}

#[test]
fn a_database_that_is_taken_away_ends_the_driver_and_nothing_new_is_made() {
    let repo = ready(TestRepo::new());
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    take_away(&repo);
    repo.go("work");
    let driven = driver.wait().exits(9);
    assert!(driven.stderr.contains("moved, replaced or deleted") || driven.stderr.contains("no store"), "{driven}");
    for words in [&["status"][..], &["run", "list"], &["run", "drive"], &["session", "list"]] {
        repo.striatum(words).exits(9);
    }
    assert!(!repo.db().exists(), "a new store was made over a live run");
    bring_back(&repo);
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
}

#[test]
fn a_database_that_is_replaced_ends_the_driver_and_stays_as_it_is() {
    let repo = ready(TestRepo::new());
    let run = repo.start("w");
    let other = ready(TestRepo::new());
    other.prepare("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    take_away(&repo);
    let bytes = std::fs::read(other.db()).unwrap();
    std::fs::write(repo.db(), &bytes).unwrap();
    repo.go("work");
    driver.wait().exits(9);
    repo.check_nobody_left();
    assert_eq!(std::fs::read(repo.db()).unwrap(), bytes);
    bring_back(&repo);
    repo.drive().ok();
    repo.check_completed(&run);
}

#[test]
fn a_store_that_became_newer_ends_the_driver_and_burns_no_try() {
    let repo = ready(TestRepo::new());
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    let set = |version: i64| {
        let connection = rusqlite::Connection::open(repo.db()).unwrap();
        connection.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    let version: i64 = repo.one("PRAGMA user_version", ());
    set(version + 1);
    let driven = driver.wait().exits(9);
    assert!(driven.stderr.contains("schema"), "{driven}");
    set(version);
    repo.go("work");
    repo.drive().ok();
    repo.check_completed(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start", "sum.1 start"]);
}

/// A file system of its own in the place of the store's folder, as long as this lives.
struct Disk(PathBuf);

impl Disk {
    /// None where this user may not mount.
    #[expect(clippy::print_stderr, reason = "what was not tried must be seen")]
    fn mount(repo: &TestRepo, size: &str) -> Option<Disk> {
        let place = repo.dir();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=0700"), "none"])
            .arg(&place)
            .output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Disk(place));
        }
        eprintln!("NOT RUN: mounting a small file system needs root");
        None
    }

    fn remount(&self, options: &str) {
        let output = Command::new("mount").args(["-o", &format!("remount,{options}")]).arg(&self.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Fills it to the last byte.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.0.join("ballast")).unwrap();
        let block = [0; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_ends_the_driver_cleanly_and_it_goes_on_when_there_is_room() {
    let repo = TestRepo::new();
    let Some(disk) = Disk::mount(&repo, "48m") else { return };
    let repo = ready(repo);
    let run = repo.start("w");
    disk.fill();
    let driven = repo.drive().exits(11);
    assert!(driven.stderr.contains("disk") || driven.stderr.contains("space"), "{driven}");
    for words in [&["status"][..], &["run", "list"], &["inbox"]] {
        repo.striatum(words).ok();
    }
    repo.striatum(&["run", "pause"]).exits(11);
    repo.check_rows();
    disk.free();
    repo.go("work");
    repo.drive().ok();
    repo.check_done(&run);
    assert_eq!(repo.effect_lines(), ["draft.1 start", "sum.1 start"]);
}

#[test]
fn a_disk_that_fills_while_an_agent_works_loses_nothing() {
    let repo = TestRepo::new();
    let Some(disk) = Disk::mount(&repo, "48m") else { return };
    let repo = ready(repo);
    repo.agent("draft", "write out.txt text\nhold work\ncomplete || note \"full $?\"\nhold more\ncomplete");
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive", "--interval", "100ms"]);
    holds(&repo);
    disk.fill();
    repo.go("work");
    wait_until("the agent was answered", || repo.notes().iter().any(|note| note.word == "holds more"));
    assert!(repo.notes().iter().any(|note| note.word == "full 11"), "{:?}", repo.notes());
    disk.free();
    repo.go("more");
    let mut driven = driver.wait();
    if driven.code == 11 {
        driven = repo.drive();
    }
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_done(&run);
    assert_eq!(repo.effects_of("draft", "start"), 1, "{}", repo.told());
}

#[test]
fn a_read_only_disk_is_told_and_reads_go_on() {
    let repo = TestRepo::new();
    let Some(disk) = Disk::mount(&repo, "48m") else { return };
    let repo = ready(repo);
    repo.go("work");
    let run = repo.start("w");
    disk.remount("ro");
    let driven = repo.drive();
    assert!([9, 11].contains(&driven.code), "{driven}");
    let status = repo.striatum(&["status"]);
    assert!(status.code == 0 && status.stdout.contains(&run) || status.code == 9, "{status}");
    disk.remount("rw");
    repo.drive().ok();
    repo.check_done(&run);
}

/// A whole run in a repository at this place.
fn runs_at(place: impl AsRef<Path>) {
    let repo = ready(TestRepo::at(place));
    repo.go("work");
    let run = repo.start("w");
    let driven = repo.drive();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
}

#[test]
fn a_path_with_spaces_quotes_and_a_line_break_is_a_path() {
    runs_at("it's a \"repo\"\nof $(mine); # é 日本");
}

#[test]
fn a_path_that_is_not_utf8_is_refused_by_name() {
    let repo = ready(TestRepo::at(OsStr::from_bytes(b"caf\xe9 \xff repo")));
    for words in [&["status"][..], &["run", "prepare", "-w", "w"], &["trust", "--yes", "--as-person"]] {
        let refused = repo.striatum(words).exits(9);
        assert!(refused.stderr.contains("UTF-8"), "{refused}");
    }
    assert!(!repo.db().exists());
}

#[test]
fn a_path_deeper_than_a_socket_address_is_a_path() {
    runs_at("folder/".repeat(30));
}

#[test]
fn a_folder_for_temporary_files_that_does_not_exist_is_not_missed() {
    let repo = ready(TestRepo::new());
    repo.go("work");
    let run = repo.start("w");
    let mut command = repo.command(&["run", "drive"]);
    command.env("TMPDIR", repo.root().join("no/such/folder"));
    repo.run(&mut command).ok();
    repo.check_completed(&run);
}

#[test]
fn a_store_behind_a_link_is_refused() {
    let repo = ready(TestRepo::new());
    std::fs::rename(repo.dir(), repo.root().join("elsewhere")).unwrap();
    symlink(repo.root().join("elsewhere"), repo.dir()).unwrap();
    for words in [&["status"][..], &["run", "prepare", "-w", "w"], &["doctor"]] {
        let refused = repo.striatum(words);
        assert!(refused.code != 0 && format!("{refused}").contains("symbolic link"), "{refused}");
    }
    assert!(!repo.root().join("elsewhere/striatum.db").exists());
}

#[test]
fn a_store_that_anybody_may_write_is_refused() {
    let repo = ready(TestRepo::new());
    std::fs::set_permissions(repo.dir(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = repo.striatum(&["run", "prepare", "-w", "w"]);
    assert!(refused.code != 0 && !repo.db().exists(), "{refused}");
}

/// Whatever the store's folder holds that others may read or write.
fn open_to_others(folder: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let about = std::fs::symlink_metadata(entry.path()).unwrap();
        // What an agent wrote has the agent's modes; the folder around it is closed.
        let is_agents = entry.file_name() == "work" || entry.file_name() == "inputs";
        if !about.is_symlink() && !is_agents && about.mode() & 0o077 != 0 {
            found.push(format!("{:o} {}", about.mode() & 0o777, entry.path().display()));
        }
        if about.is_dir() && !is_agents {
            open_to_others(&entry.path(), found);
        }
    }
}

fn with_umask(repo: &TestRepo, umask: &str, words: &[&str]) -> Output {
    let script = format!("umask {umask}; exec \"$@\"");
    let words: Vec<&str> = ["-c", &script, "sh", crate::support::STRIATUM].iter().chain(words).copied().collect();
    repo.run(&mut repo.command_of("sh", &words))
}

#[test]
fn the_state_is_closed_to_others_whatever_the_umask() {
    for umask in ["000", "077"] {
        let repo = ready(TestRepo::new());
        repo.go("work");
        repo.trust();
        for words in [&["run", "prepare", "-w", "w"][..], &["run", "start"], &["run", "drive"]] {
            with_umask(&repo, umask, words).ok();
        }
        repo.check_completed("w-1");
        let mut found = Vec::new();
        for entry in ["striatum.db", "striatum.db-wal", "striatum.db-shm"] {
            let mode = std::fs::metadata(repo.dir().join(entry)).map_or(0, |about| about.mode() & 0o777);
            if mode & 0o077 != 0 {
                found.push(format!("{mode:o} {entry}"));
            }
        }
        for folder in ["locks", "scratch", "artifacts"] {
            assert_eq!(std::fs::metadata(repo.dir().join(folder)).unwrap().mode() & 0o777, 0o700, "{folder}");
            open_to_others(&repo.dir().join(folder), &mut found);
        }
        assert_eq!(found, Vec::<String>::new(), "umask {umask}");
    }
}
