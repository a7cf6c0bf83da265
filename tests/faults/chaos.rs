//! Random deaths: any process of a run is killed at any moment, again and again; then the run is driven to its end.

use std::time::{Duration, Instant};

use crate::support::{Running, TestRepo, kill};

const STORY: &str = r#"
    [budget]
    requeues = 100
    launches = 1000
    [lanes.script]
    command = "@agent"
    timeout = "30s"
    [lanes.stay]
    command = "@agent"
    mode = "loop"
    timeout = "30s"
    [lanes.eyes]
    command = "@agent"
    timeout = "30s"
    [[jobs]]
    id = "one"
    role = "author"
    lane = "script"
    tree = "none"
    max_strikes = 100
    produces = [{ name = "text", path = "out.txt" }]
    verify = ["test -s out.txt"]
    [[jobs]]
    id = "two"
    role = "maker"
    lane = "stay"
    tree = "none"
    max_strikes = 100
    [[jobs]]
    id = "look"
    reviews = "one"
    lane = "eyes"
    tree = "none"
    max_strikes = 100
    revisions = 100
    [[jobs]]
    id = "look-too"
    reviews = "one"
    lane = "eyes"
    tree = "none"
    max_strikes = 100
    revisions = 100
    [[jobs]]
    id = "sum"
    role = "author"
    lane = "script"
    needs = ["look", "look-too", "two"]
    tree = "none"
    max_strikes = 100
    inputs = ["one.text"]
"#;

/// A small generator of numbers: the same seed kills alike, as far as time allows.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn drive(repo: &TestRepo) -> Running {
    repo.spawn(&["run", "drive", "--interval", "100ms"])
}

fn survives(seed: u64, deaths: u32) {
    let repo = TestRepo::new();
    repo.write(".striatum/config.toml", "[limits]\ngrace = \"100ms\"\n");
    repo.workflow("w", STORY);
    repo.agent("one", "write out.txt text $ATTEMPT\npublish text\nsleep 0.05\ncomplete");
    repo.agent("two", "sleep 0.05\ncomplete");
    repo.agent("look.1", "verdict needs_revision --finding 'Text: not yet'");
    let run = repo.start("w");
    let mut dice = Dice(seed);
    let mut driver = drive(&repo);
    let end = Instant::now() + Duration::from_secs(40);
    let mut killed = 0;
    while killed < deaths && repo.run_state(&run) == "running" && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5 + dice.roll(60)));
        let alive = repo.processes();
        if let Some(victim) = alive.get(dice.roll(alive.len().max(1) as u64) as usize) {
            kill(victim.pid);
            killed += 1;
        }
        if driver.has_ended() {
            driver = drive(&repo);
        }
    }
    let _ = driver.wait();
    // The last death may have come after that driver's last look.
    let driven = drive(&repo).wait();
    assert!(driven.code == 0 || repo.run_state(&run) == "completed", "seed {seed}: {driven}\n{}", repo.told());
    repo.check_completed(&run);
    assert!(killed > 3, "it was over too soon to be tried");
}

#[test]
fn a_run_survives_random_deaths() {
    for seed in [7, 4_099, 77_777_777] {
        survives(seed, 12);
    }
}

#[test]
#[ignore = "slow: minutes of random deaths"]
fn runs_survive_random_deaths_for_minutes() {
    let first = std::env::var("CHAOS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1_000);
    for seed in first..first + 60 {
        survives(seed * 7_919, 40);
    }
}
