//! `kill -9` of the driver, a helper, its agent, or all of them, at each phase of an attempt; then the run is driven to
//! its end. Phases are seen in the store.

use crate::support::{Running, TestRepo, is_alive, kill, wait_until};

/// Where an attempt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent works.
    Running,
    /// It has answered and is still there.
    Answered,
    /// Its answer is verified.
    Settling,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victims {
    Driver,
    Helper,
    /// The agent; while its answer is verified, the verification.
    Agent,
    DriverAndHelper,
    HelperAndAgent,
    All,
}

impl Victims {
    fn take_driver(self) -> bool {
        matches!(self, Victims::Driver | Victims::DriverAndHelper | Victims::All)
    }

    fn take_helper(self) -> bool {
        matches!(self, Victims::Helper | Victims::DriverAndHelper | Victims::HelperAndAgent | Victims::All)
    }

    fn take_agent(self) -> bool {
        matches!(self, Victims::Agent | Victims::HelperAndAgent | Victims::All)
    }
}

/// One job in a lane of a mode, verified by a command that waits for a word, and one behind it.
fn laned(mode: &str) -> TestRepo {
    let repo = TestRepo::new();
    let text = r#"
    [lanes.script]
    command = "@agent"
    mode = "MODE"
    timeout = "50s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "text", path = "out.txt" }]
    verify = [["sh", "-c", "until [ -e 'ROOT/agent/go-verify' ]; do sleep 0.02; done; test -s out.txt"]]
    [[jobs]]
    id = "sum"
    role = "author"
    lane = "script"
    needs = ["draft"]
    tree = "none"
"#;
    repo.workflow("w", &text.replace("MODE", mode).replace("ROOT", &repo.root().display().to_string()));
    repo.agent("draft", "write out.txt text\nhold work\npublish text\ncomplete\nhold leave");
    repo
}

/// The helper of the only session that has one.
fn helper(repo: &TestRepo) -> i32 {
    repo.one("SELECT pid FROM supervisor WHERE state = 'attached' ORDER BY id DESC LIMIT 1", ())
}

/// The verification that runs, if any.
fn verification(repo: &TestRepo) -> Option<i32> {
    const NEWEST: &str =
        "SELECT (SELECT pid FROM execution WHERE kind = 'verify' AND state = 'running' ORDER BY id DESC LIMIT 1)";
    repo.one(NEWEST, ())
}

fn reach(repo: &TestRepo, phase: Phase) {
    let held = |word: &str| repo.notes().iter().any(|note| note.word == format!("holds {word}"));
    wait_until("the agent works", || {
        held("work") && repo.count("execution WHERE kind = 'agent' AND state = 'running'") == 1
    });
    if phase == Phase::Running {
        return;
    }
    repo.go("work");
    if phase == Phase::Answered {
        return wait_until("the agent waits after its answer", || held("leave"));
    }
    repo.go("leave");
    wait_until("the answer is verified", || verification(repo).is_some());
}

/// Kills, lets everybody go on, and drives to the end; gives what agents did.
fn end_after(repo: &TestRepo, phase: Phase, victims: Victims) -> Vec<String> {
    let run = repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    reach(repo, phase);
    let verified = verification(repo);
    let (helper, agent) = (helper(repo), verified.or(repo.agent_pid("draft")).unwrap());
    if victims.take_driver() {
        driver.kill();
    }
    if victims.take_helper() {
        kill(helper);
    }
    if victims.take_agent() {
        kill(agent);
    }
    if victims.take_driver() {
        driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    }
    if phase == Phase::Settling && victims.take_helper() {
        // Nothing goes on until the next helper verifies: then the verification of the dead one is gone.
        wait_until("the next helper verifies", || verification(repo).is_some_and(|pid| Some(pid) != verified));
        assert!(!is_alive(agent), "two verifications side by side\n{}", repo.told());
    }
    for word in ["work", "leave", "verify"] {
        repo.go(word);
    }
    ends_well(repo, driver, &run);
    repo.effect_lines()
}

fn ends_well(repo: &TestRepo, driver: Running, run: &str) {
    let driven = driver.wait();
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(run);
}

const ONCE: [&str; 2] = ["draft.1 start", "sum.1 start"];
const AGAIN: [&str; 3] = ["draft.1 start", "draft.2 start", "sum.1 start"];

macro_rules! kills {
    ($($name:ident: $mode:literal $phase:ident $victims:ident => $effects:ident,)*) => { $(
        #[test]
        fn $name() {
            let repo = laned($mode);
            let effects = end_after(&repo, Phase::$phase, Victims::$victims);
            assert_eq!(effects, $effects, "{}", repo.told());
        }
    )* };
}

kills! {
    a_driver_is_killed_while_an_agent_works: "oneshot" Running Driver => ONCE,
    a_helper_is_killed_while_its_agent_works: "oneshot" Running Helper => ONCE,
    an_agent_is_killed_at_work: "oneshot" Running Agent => AGAIN,
    a_driver_and_a_helper_are_killed_while_an_agent_works: "oneshot" Running DriverAndHelper => ONCE,
    a_helper_and_its_agent_are_killed_at_work: "oneshot" Running HelperAndAgent => AGAIN,
    all_are_killed_at_work: "oneshot" Running All => AGAIN,
    a_driver_is_killed_after_an_answer: "oneshot" Answered Driver => ONCE,
    a_helper_is_killed_after_an_answer: "oneshot" Answered Helper => ONCE,
    an_agent_is_killed_after_its_answer: "oneshot" Answered Agent => ONCE,
    a_driver_and_a_helper_are_killed_after_an_answer: "oneshot" Answered DriverAndHelper => ONCE,
    a_helper_and_its_agent_are_killed_after_its_answer: "oneshot" Answered HelperAndAgent => ONCE,
    all_are_killed_after_an_answer: "oneshot" Answered All => ONCE,
    a_driver_is_killed_while_an_answer_is_verified: "oneshot" Settling Driver => ONCE,
    a_helper_is_killed_while_it_verifies: "oneshot" Settling Helper => ONCE,
    a_verification_is_killed_and_has_not_passed: "oneshot" Settling Agent => AGAIN,
    a_driver_and_a_helper_are_killed_while_it_verifies: "oneshot" Settling DriverAndHelper => ONCE,
    a_helper_and_its_verification_are_killed: "oneshot" Settling HelperAndAgent => ONCE,
    all_are_killed_while_an_answer_is_verified: "oneshot" Settling All => ONCE,
    a_residents_driver_is_killed_while_it_works: "loop" Running Driver => ONCE,
    a_residents_helper_is_killed_while_it_works: "loop" Running Helper => ONCE,
    a_resident_is_killed_at_work: "loop" Running Agent => AGAIN,
    a_resident_and_its_helper_are_killed_at_work: "loop" Running HelperAndAgent => AGAIN,
    a_resident_its_helper_and_the_driver_are_killed_at_work: "loop" Running All => AGAIN,
    a_residents_helper_is_killed_while_it_verifies: "loop" Settling Helper => ONCE,
    a_residents_helper_and_driver_are_killed_while_it_verifies: "loop" Settling DriverAndHelper => ONCE,
    a_residents_helper_and_verification_are_killed: "loop" Settling HelperAndAgent => ONCE,
    all_of_a_residents_are_killed_while_it_is_verified: "loop" Settling All => ONCE,
}

/// The run ends by a verb while its agent has neither helper nor driver; the next driver ends the agent.
fn ends_what_was_left(verb: &[&str], exit: i32) {
    let repo = laned("oneshot");
    repo.agent("draft", "ignore_term\nhold work");
    let run = repo.start("w");
    let mut driver = repo.spawn(&["run", "drive"]);
    reach(&repo, Phase::Running);
    driver.kill();
    kill(helper(&repo));
    repo.striatum(verb).ok();
    let agent = repo.agent_pid("draft").unwrap();
    assert!(is_alive(agent));
    repo.striatum(&["run", "drive", "--run-id", &run]).exits(exit);
    assert!(!is_alive(agent), "{}", repo.told());
    repo.check_nobody_left();
    repo.check_sound();
    assert_eq!(repo.count("session WHERE state = 'active'"), 0, "{}", repo.told());
}

#[test]
fn an_agent_without_helper_is_ended_after_its_run_was_canceled() {
    ends_what_was_left(&["run", "cancel", "--reason", "enough", "--yes"], 1);
}

#[test]
fn an_agent_without_helper_is_ended_after_its_run_was_stopped() {
    ends_what_was_left(&["run", "stop"], 5);
}

#[test]
fn an_agent_that_answered_and_hangs_is_ended_by_the_helper_that_took_over() {
    let repo = laned("oneshot");
    repo.write(".striatum/config.toml", "[limits]\ngrace = \"200ms\"\nstarting = \"400ms\"\n");
    repo.agent("draft", "write out.txt text\nhold work\ncomplete\nkill -9 $PPID\nignore_term\nhang");
    for word in ["work", "verify"] {
        repo.go(word);
    }
    let run = repo.start("w");
    let driver = repo.spawn(&["run", "drive"]);
    ends_well(&repo, driver, &run);
    assert_eq!(repo.effect_lines(), ONCE);
}
