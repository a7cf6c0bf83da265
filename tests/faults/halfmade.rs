//! What a killed `git worktree add` leaves, of each kind: taken away or adopted, and the job gets its tree.

use std::path::{Path, PathBuf};

use crate::support::{DRAFT, TestRepo, wait_until};

/// Something half made at a path.
type Leave = fn(repo: &TestRepo, path: &Path);

fn admin(repo: &TestRepo) -> PathBuf {
    repo.file(".git/worktrees/draft.1")
}

fn whole(repo: &TestRepo, path: &Path) {
    repo.said(&["worktree", "add", "--quiet", "--detach", path.to_str().unwrap(), "HEAD"]);
}

const KINDS: [(&str, Leave); 9] = [
    ("a folder", |_, path| std::fs::create_dir_all(path).unwrap()),
    ("a folder with files", |_, path| {
        std::fs::create_dir_all(path).unwrap();
        std::fs::write(path.join("half.txt"), "half").unwrap();
    }),
    ("an administrative folder that is only locked", |repo, _| {
        std::fs::create_dir_all(admin(repo)).unwrap();
        std::fs::write(admin(repo).join("locked"), "initializing\n").unwrap();
    }),
    ("a registration without a folder", |repo, path| {
        whole(repo, path);
        std::fs::remove_dir_all(path).unwrap();
    }),
    ("a locked registration with a folder and no pointer", |repo, path| {
        whole(repo, path);
        std::fs::write(admin(repo).join("locked"), "initializing\n").unwrap();
        std::fs::remove_file(path.join(".git")).unwrap();
    }),
    ("a registration without HEAD and commondir", |repo, path| {
        whole(repo, path);
        std::fs::remove_file(admin(repo).join("HEAD")).unwrap();
        std::fs::remove_file(admin(repo).join("commondir")).unwrap();
    }),
    ("a whole one with a locked index", |repo, path| {
        whole(repo, path);
        std::fs::write(admin(repo).join("index.lock"), "").unwrap();
    }),
    ("a whole one", whole),
    ("a folder without its registration", |repo, path| {
        whole(repo, path);
        std::fs::remove_dir_all(admin(repo)).unwrap();
    }),
];

#[test]
fn whatever_a_killed_git_left_the_job_gets_its_tree_and_nothing_stays_registered() {
    for (what, leave) in KINDS {
        let repo = TestRepo::with_code();
        repo.workflow("w", DRAFT);
        let run = repo.start("w");
        let mut worker = repo.register("author", "script");
        // A claim dies after it said what it would make; what git made of it is made here by hand.
        repo.crash_at("tree.intended");
        let _ = worker.work(&["claim"]);
        assert!(!repo.is_crash_pending(), "{what}");
        leave(&repo, &repo.file(".striatum/worktrees/w-1/draft.1"));
        let shown = worker.work(&["show"]).ok().value();
        worker.fence = shown["packet"]["fence"].as_i64();
        let tree = PathBuf::from(shown["packet"]["cwd"].as_str().unwrap());
        assert!(!tree.join("half.txt").exists() && tree.join("src/main.txt").exists(), "{what}");
        std::fs::write(tree.join("src/x.txt"), "x\n").unwrap();
        worker.work(&["ack"]).ok();
        worker.work(&["complete"]).ok();
        repo.check_cleared(&run);
        assert_eq!(repo.landed(&run), ["draft.1"], "{what}");
        let left = std::fs::read_dir(repo.file(".git/worktrees")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{what}: administrative folders stay");
    }
}

#[test]
fn sixteen_trees_are_made_at_once_while_somebody_holds_the_repository() {
    let repo = TestRepo::with_code();
    let mut workflow =
        "parallelism = { max_active_jobs = 16 }\n[lanes.script]\ncommand = \"@agent\"\nmax_sessions = 16\ntimeout = \"120s\"\n".to_owned();
    for number in 0..16 {
        workflow += &format!(
            "[[jobs]]\nid = \"job{number}\"\nrole = \"role{number}\"\nlane = \"script\"\nwrites = [\"src/{number}/\"]\n"
        );
        repo.agent(&format!("job{number}"), &format!("mkdir src/{number}; echo x > src/{number}/x; complete"));
    }
    repo.workflow("w", &workflow);
    let run = repo.start("w");
    std::fs::create_dir_all(repo.file(".striatum/locks")).unwrap();
    let lock = std::fs::File::create(repo.file(".striatum/locks/repo.lock")).unwrap();
    lock.lock().unwrap();
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("all are claimed", || repo.count("job WHERE state <> 'queued'") == 16);
    let held = std::time::Instant::now();
    wait_until("three seconds are over", || held.elapsed().as_secs() >= 3);
    assert_eq!(repo.count("tree WHERE state <> 'making'"), 0);
    drop(lock);
    driver.wait().ok();
    assert_eq!(repo.landed(&run).len(), 16);
    assert!(repo.attempts().iter().all(|ended| ended.ends_with("sealed")), "{:?}", repo.attempts());
    repo.check_cleared(&run);
}

#[test]
fn killed_at_any_moment_while_trees_are_made_and_changes_settled_the_run_comes_to_its_end() {
    let kills: u32 = (1..=8).map(killed_again_and_again).sum();
    assert!(kills > 8, "{kills}");
}

/// How often somebody was killed.
fn killed_again_and_again(seed: u64) -> u32 {
    let repo = TestRepo::with_code();
    let mut workflow = "[lanes.script]\ncommand = \"@agent\"\ntimeout = \"60s\"\n".to_owned();
    for number in 0..4 {
        workflow += &format!(
            "[[jobs]]\nid = \"job{number}\"\nrole = \"role{number}\"\nlane = \"script\"\nwrites = [\"src/{number}/\"]\n"
        );
        repo.agent(&format!("job{number}"), &format!("mkdir -p src/{number}; echo x > src/{number}/x; complete"));
    }
    workflow += "[budget]\nrequeues = 100\nlaunches = 500\n";
    repo.workflow("w", &workflow);
    let run = repo.start("w");
    let mut kills = 0_u32;
    let mut wait_us = seed * 997;
    let end = loop {
        let mut driver = repo.spawn(&["run", "drive", "--run-id", &run, "--interval", "200ms"]);
        let begun = std::time::Instant::now();
        wait_us = (wait_us * 48_271) % 2_147_483_647;
        let patience = std::time::Duration::from_micros(20_000 + wait_us % 150_000);
        wait_until("it is time, or the driver ends", || driver.has_ended() || begun.elapsed() > patience);
        if driver.has_ended() || kills >= 20 {
            break driver.wait();
        }
        // git first, then who started it: what git had half made stays.
        let found = repo.processes();
        let is_git = |words: &[String]| words.first().is_some_and(|word| word == "git" || word.ends_with("/git"));
        let is_ours = |words: &[String]| words.iter().any(|word| word == "__supervise" || word == "drive");
        for process in found.iter().filter(|found| is_git(&found.words)) {
            crate::support::kill(process.pid);
        }
        for process in found.iter().filter(|found| is_ours(&found.words)) {
            crate::support::kill(process.pid);
        }
        kills += 1;
        let _ = driver.wait();
    };
    assert_eq!(end.code, 0, "{kills} kills: {end}\n{}", repo.told());
    repo.check_nobody_left();
    let trees = repo.rows("SELECT path, state, reason FROM tree ORDER BY id");
    assert_eq!(repo.registered(), Vec::<String>::new(), "{kills} kills\n{trees:#?}\n{end}\n{}", repo.helper_words());
    repo.check_cleared(&run);
    let mut landed = repo.landed(&run);
    landed.sort();
    // An attempt whose settling was killed too often may be lost and its change integrated: then the next has none.
    let jobs: Vec<&str> = landed.iter().filter_map(|name| name.split('.').next()).collect();
    assert_eq!(jobs, ["job0", "job1", "job2", "job3"], "{landed:?}, {kills} kills\n{}", repo.told());
    assert_eq!(repo.count("change WHERE state = 'integrated'"), 4, "{}", repo.told());
    for number in 0..4 {
        assert_eq!(repo.on_branch(&run, &format!("src/{number}/x")), "x");
    }
    repo.check_untouched();
    kills
}
