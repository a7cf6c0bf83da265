//! `striatum quickstart`, on machines of several kinds.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::world::{Ended, STRIATUM, World};

fn jobs(report: &Value) -> BTreeMap<String, Value> {
    let jobs = report["jobs"].as_array().unwrap();
    jobs.iter().map(|job| (job["job"].as_str().unwrap().to_owned(), job.clone())).collect()
}

fn verdicts(report: &Value, job: &str) -> Vec<String> {
    let attempts = jobs(report)[job]["attempts"].as_array().unwrap().clone();
    attempts.iter().map(|attempt| attempt["verdict"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn a_change_fails_its_tests_is_mended_is_sent_back_once_and_waits_to_be_landed() {
    let world = World::new();
    let report = world.striatum(&["quickstart", "--json"]).ok().json();
    assert_eq!(report["state"], "waiting_human");
    let folder = world.made();
    assert_eq!(report["folder"], folder.display().to_string());
    let outcomes: Vec<String> = jobs(&report)["fix"]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|attempt| attempt["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, ["verify_failed", "sealed", "sealed"]);
    assert_eq!(verdicts(&report, "record"), ["needs_revision", "accept"]);
    assert_eq!(verdicts(&report, "behaviour"), ["accept", "accept"]);
    let patch = report["change"]["patch"].as_str().unwrap();
    assert!(patch.contains("+    awk -v day=\"$day\" '{ print day \" \" $0 }' \"$file\""), "{patch}");
}

#[test]
fn nothing_reaches_main_before_the_last_line_is_typed_and_then_the_tests_pass_there() {
    let world = World::new();
    let printed = world.striatum(&["quickstart"]).ok().stdout;
    let folder = world.made();
    let before = world.git(&folder, &["log", "--format=%s", "main"]);
    assert_eq!(before.lines().count(), 1, "{before}");
    assert_eq!(world.git(&folder, &["status", "--porcelain"]), "");
    let tests = || Ended::of(world.command("sh").current_dir(&folder).arg("tests/all.sh")).exit;
    assert_ne!(tests(), 0);
    let last = printed.lines().last().unwrap().trim().to_owned();
    Ended::of(world.command("sh").args(["-c", &format!("{last} --as-person")])).ok();
    assert_eq!(world.git(&folder, &["log", "--format=%s", "main"]).lines().count(), 2);
    assert_eq!(world.git(&folder, &["status", "--porcelain"]), "");
    assert_eq!(tests(), 0);
}

#[test]
fn the_reviews_look_at_the_work_and_not_at_a_script() {
    let world = World::new();
    world.striatum(&["quickstart", "--json"]).ok();
    let folder = world.made();
    // A fault that the tests don't know, in the file that the author changes.
    let list = std::fs::read_to_string(folder.join("bin/list.sh")).unwrap();
    std::fs::write(folder.join("bin/list.sh"), list.replace("*.txt; do", "*[1-8].txt; do")).unwrap();
    world.git(&folder, &["commit", "-qam", "Lose the ninth of each month"]);
    let striatum = |words: &[&str]| Ended::of(world.command(STRIATUM).current_dir(&folder).args(words));
    striatum(&["run", "prepare", "-w", "fix"]).ok();
    striatum(&["run", "start", "--run-id", "fix-2"]).ok();
    let driven = striatum(&["run", "drive", "--run-id", "fix-2"]);
    assert_eq!(driven.exit, 3, "nobody here can mend that: {driven:?}");
    let said = said_by(&folder, "behaviour.1");
    assert!(said.contains("needs_revision"), "{said}");
}

/// What the newest attempt of this name printed.
fn said_by(folder: &Path, attempt: &str) -> String {
    let mut scratches: Vec<_> = std::fs::read_dir(folder.join(".striatum/scratch"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join(attempt).join("output.log"))
        .filter(|log| log.exists())
        .collect();
    scratches.sort_by_key(|log| std::fs::metadata(log).unwrap().modified().unwrap());
    std::fs::read_to_string(scratches.last().unwrap()).unwrap()
}

#[test]
fn people_see_each_act_the_findings_and_what_to_type_next() {
    let world = World::new();
    let ended = world.striatum(&["quickstart"]).ok();
    for line in [
        "launched author/author for fix (s1)",
        "record.1 says needs_revision",
        "    not told in CHANGES.md: bin/list.sh",
        "fix goes on: attempt 3",
        "record.2 says accept",
        "run fix-1 -> waiting_human: ",
    ] {
        assert!(ended.stdout.lines().any(|shown| shown.starts_with(line)), "{line}: {}", ended.stdout);
    }
    assert!(ended.stdout.contains(&format!("  cd {}\n", world.made().display())), "{}", ended.stdout);
}

/// Settings of a person that would spoil a commit, a checkout or a merge.
const ODD_SETTINGS: &str = "[commit]\ngpgSign = true\n[user]\nsigningKey = nobody\n[core]\nautocrlf = true\n\
    hooksPath = /nowhere\nfsmonitor = false\n[init]\ndefaultBranch = odd\n[merge]\nff = only\n[status]\nshowUntrackedFiles = no\n";

#[test]
fn what_the_caller_has_around_him_does_not_matter() {
    let world = World::new();
    let decoy = world.path("decoy");
    std::fs::create_dir(&decoy).unwrap();
    world.git(&decoy, &["init", "-q"]);
    std::fs::create_dir_all(decoy.join(".striatum")).unwrap();
    std::fs::write(decoy.join(".striatum/config.toml"), "nonsense = 1\n").unwrap();
    std::fs::create_dir_all(world.path("home/.config/striatum")).unwrap();
    std::fs::write(world.path("home/.config/striatum/config.toml"), "[lanes.author]\ncommand = 'false'\n").unwrap();
    std::fs::write(world.path("home/.gitconfig"), ODD_SETTINGS).unwrap();
    let before = everything_in(&decoy);
    let mut command = world.command(STRIATUM);
    command.current_dir(&decoy).args(["quickstart", "--json"]);
    for (name, value) in [
        ("GIT_DIR", decoy.join(".git")),
        ("GIT_WORK_TREE", decoy.clone()),
        ("GIT_INDEX_FILE", decoy.join(".git/index")),
        ("STRIATUM_DIR", decoy.join(".striatum")),
        ("STRIATUM_SOCKET", decoy.join("socket")),
        ("STRIATUM_SESSION", "s1".into()),
    ] {
        command.env(name, value);
    }
    assert_eq!(Ended::of(&mut command).ok().json()["state"], "waiting_human");
    assert_eq!(everything_in(&decoy), before);
}

#[test]
fn a_store_s_folder_is_not_taken_for_the_new_repository_s() {
    let world = World::new();
    let ended = world.striatum(&["quickstart", "--dir", "there"]);
    assert_eq!(ended.exit, 2, "{ended:?}");
    assert!(ended.stderr.contains("striatum quickstart DIR"), "{ended:?}");
}

#[test]
fn every_command_that_it_prints_works() {
    let world = World::new();
    let printed = world.striatum(&["quickstart"]).ok().stdout;
    let (_, rest) = printed.split_once("Look around\n").unwrap();
    let (look, _) = rest.split_once("\n\n").unwrap();
    let lines: Vec<&str> = look.lines().map(|line| line.split("   # ").next().unwrap().trim()).collect();
    assert_eq!(lines.len(), 4, "{look}");
    for line in &lines[1..] {
        let ended = Ended::of(world.command("sh").args(["-c", &format!("{} && {line}", lines[0])])).ok();
        assert!(!ended.stdout.is_empty(), "{line}");
    }
    let report = world.striatum(&["quickstart", "again", "--json"]).ok().json();
    for next in report["next"].as_array().unwrap() {
        let words: Vec<&str> = next["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let person: &[&str] = if next["who"] == "person" { &["--as-person"] } else { &[] };
        Ended::of(world.command(words[0]).args(&words[1..]).args(person)).ok();
    }
}

/// Every path below a folder with its bytes.
fn everything_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.insert(path.display().to_string(), Vec::new());
            found.extend(everything_in(&path));
        } else {
            found.insert(path.display().to_string(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn it_needs_no_home_and_no_identity() {
    let world = World::new();
    let mut command = world.command(STRIATUM);
    let ended = Ended::of(command.env_remove("HOME").args(["quickstart", "--json"])).ok();
    assert_eq!(ended.json()["state"], "waiting_human");
    let author = world.git(&world.made(), &["log", "-1", "--format=%an <%ae>"]);
    assert_eq!(author, "striatum quickstart <quickstart@striatum.invalid>\n");
}

#[test]
fn a_home_that_can_not_be_written_is_no_obstacle() {
    let world = World::new();
    std::fs::write(world.path("no-home"), "a file").unwrap();
    let mut command = world.command(STRIATUM);
    let ended = Ended::of(command.env("HOME", world.path("no-home")).args(["quickstart", "--json"])).ok();
    assert_eq!(ended.json()["state"], "waiting_human");
}

#[test]
fn without_git_it_says_so_and_makes_nothing() {
    let world = World::new();
    let ended = Ended::of(world.command(STRIATUM).env("PATH", world.path("home")).arg("quickstart"));
    assert_eq!(ended.exit, 11, "{ended:?}");
    assert!(ended.stderr.starts_with("error: git was not found on the PATH\n"), "{ended:?}");
    assert_eq!(std::fs::read_dir(world.path("tmp")).unwrap().count(), 0);
}

#[test]
fn a_folder_for_temporary_files_that_does_not_serve_is_passed_over() {
    let world = World::new();
    world.git(&world.path("tmp"), &["init", "-q"]);
    for unfit in ["tmp", "missing"] {
        let mut command = world.command(STRIATUM);
        let ended = Ended::of(command.env("TMPDIR", world.path(unfit)).args(["quickstart", "--json"])).ok();
        let folder = ended.json()["folder"].as_str().unwrap().to_owned();
        assert!(!Path::new(&folder).starts_with(world.path("")), "{folder}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}

#[test]
fn a_named_folder_is_taken_only_when_it_is_free() {
    let world = World::new();
    let report = world.striatum(&["quickstart", "new/place", "--json"]).ok().json();
    assert_eq!(report["folder"], world.path("new/place").display().to_string());
    let again = world.striatum(&["quickstart", "new/place"]);
    assert_eq!((again.exit, again.stdout.as_str()), (2, ""), "{again:?}");
    assert!(again.stderr.contains("new/place is not empty"), "{again:?}");
    let inside = world.striatum(&["quickstart", "new/place/inside", "--json"]);
    assert_eq!(inside.json()["code"], "usage");
    assert!(!world.path("new/place/inside").exists());
}
