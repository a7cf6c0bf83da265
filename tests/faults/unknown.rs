//! Attempts whose holder is gone: what they left is recorded, and then they are settled for, offered again, or asked
//! about, by what they could reach. `run drive --dry-run` says the same before.

use crate::support::{TestRepo, kill, wait_until};

/// One job with these keys that makes two files.
fn one(keys: &str) -> TestRepo {
    let repo = TestRepo::with_code();
    repo.workflow(
        "w",
        &format!(
            r#"
    [lanes.script]
    command = "@agent"
    timeout = "50s"
    [[jobs]]
    id = "deploy"
    role = "author"
    lane = "script"
    {keys}
"#
        ),
    );
    repo
}

const OUTWARD: &str = r#"tree = "none"
    outward = true
    produces = [{ name = "plan", path = "plan.txt" }, { name = "receipt", path = "receipt.txt" }]"#;

/// Driver, helper and agent die while the agent works; gives what a dry run says then.
fn all_die(repo: &TestRepo) -> String {
    repo.start("w");
    let mut driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    if repo.count("gate WHERE state = 'pending'") > 0 || repo.read(".striatum/workflows/w.toml").contains("outward") {
        driver.wait().exits(4);
        repo.striatum(&["gate", "approve", "deploy", "--as-person"]).ok();
        driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    }
    let holds = || repo.notes().iter().any(|note| note.word == "holds work");
    wait_until("the agent works", || holds() && repo.count("execution WHERE state = 'running'") == 1);
    let helper: i32 = repo.one("SELECT pid FROM supervisor WHERE state = 'attached'", ());
    let agent = repo.agent_pid("deploy").unwrap();
    driver.kill();
    kill(helper);
    kill(agent);
    // What the agent had started ends by itself within moments.
    wait_until("nobody is left in the lane", || is_lane_free(repo));
    let before = repo.count("event");
    let foreseen = repo.striatum(&["run", "drive", "--dry-run"]).ok().stdout;
    assert_eq!(repo.count("event"), before, "a dry run wrote");
    foreseen
}

/// Nobody holds the lock of the lane that works.
fn is_lane_free(repo: &TestRepo) -> bool {
    let session: i64 = repo.one("SELECT session_id FROM execution WHERE state = 'running'", ());
    let lock = std::fs::File::open(repo.dir().join(format!("scratch/s{session}/lane.lock"))).unwrap();
    fs2::FileExt::try_lock_exclusive(&lock).is_ok()
}

/// A field of the newest observation.
fn seen(repo: &TestRepo, field: &str) -> String {
    let sql = format!(
        "SELECT json_extract(body, '$.{field}') FROM event WHERE type = 'observation.recorded' ORDER BY id DESC LIMIT 1"
    );
    repo.rows(&sql).concat()
}

#[test]
fn partial_effects_outside_are_asked_about_with_what_exists_and_what_is_missing() {
    let repo = one(OUTWARD);
    repo.agent("deploy.1", "write plan.txt first; publish plan; write receipt.tmp half; hold work; complete");
    repo.agent("deploy.2", "write plan.txt first; write receipt.txt all; complete");
    let foreseen = all_die(&repo);
    assert!(foreseen.contains("there is plan (sha256 "), "{foreseen}");
    assert!(foreseen.contains("missing is an answer, receipt, the agent's exit; a person is asked"), "{foreseen}");
    let driven = repo.drive().exits(4);
    assert!(driven.stdout.contains("waits for you: deploy: unknown_outcome"), "{driven}");
    let job = repo.json(&["job", "show", "deploy"]).ok().value();
    let awaits = job["question"]["awaiting"].as_str().unwrap();
    assert!(awaits.contains("plan (sha256 ") && awaits.contains("missing is an answer, receipt"), "{awaits}");
    assert_eq!((seen(&repo, "then"), seen(&repo, "missing")), ("unknown_outcome".into(), "[\"receipt\"]".into()));
    // Never twice by itself.
    repo.drive().exits(4);
    assert_eq!(repo.effect_lines(), ["deploy.1 start"]);
    repo.go("work");
    repo.striatum(&["answer", "deploy", "the plan is in force", "--resolved", "--as-person"]).ok();
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["deploy.1 start", "deploy.2 start"]);
    assert_eq!(repo.count("job WHERE strikes > 0 OR requeues > 0"), 0);
    repo.check_completed("w-1");
}

#[test]
fn what_is_contained_in_its_own_tree_is_offered_again_with_what_was_there() {
    let repo = one("writes = [\"src/\"]");
    repo.agent("deploy.1", "echo half > src/half; hold work; complete");
    repo.agent("deploy.2", "test \"$(cat src/half)\" = half && echo whole > src/whole; complete");
    let foreseen = all_die(&repo);
    assert!(foreseen.contains("there is a change of src/half in its tree"), "{foreseen}");
    assert!(foreseen.contains("it is offered again"), "{foreseen}");
    repo.drive().ok();
    assert_eq!(repo.attempts(), ["deploy.1 lost: its helper died, and it left no answer", "deploy.2 sealed"]);
    assert_eq!((seen(&repo, "then"), seen(&repo, "changes")), ("lost".into(), "1".into()));
    assert_eq!(repo.on_branch("w-1", "src/whole"), "whole");
}

#[test]
fn an_answer_that_is_there_is_settled_for_whatever_it_reached() {
    let repo = one(OUTWARD);
    repo.agent("deploy", "write plan.txt a; write receipt.txt b; complete; hold work");
    let foreseen = all_die(&repo);
    assert!(foreseen.contains("there is the answer DONE"), "{foreseen}");
    assert!(foreseen.contains("it is settled for it"), "{foreseen}");
    repo.drive().ok();
    assert_eq!((seen(&repo, "then"), seen(&repo, "answer")), ("settled".into(), "DONE".into()));
    assert_eq!(repo.effect_lines(), ["deploy.1 start"]);
}

#[test]
fn a_review_that_was_cut_is_offered_again() {
    let repo = TestRepo::with_code();
    repo.workflow(
        "w",
        "[lanes.script]\ncommand = \"@agent\"\n[[jobs]]\nid = \"draft\"\nrole = \"author\"\nlane = \"script\"\n\
         tree = \"none\"\n[[jobs]]\nid = \"deploy\"\nreviews = \"draft\"\nlane = \"script\"\ntree = \"none\"\n",
    );
    repo.agent("deploy.1", "hold work; verdict accept");
    let foreseen = all_die(&repo);
    assert!(foreseen.contains("there is an agent that was running; missing is an answer"), "{foreseen}");
    repo.drive().ok();
    assert_eq!(repo.effects_of("deploy", "start"), 2);
    assert_eq!(seen(&repo, "then"), "lost");
}

#[test]
fn a_session_without_a_helper_that_ran_out_is_asked_about_when_it_reaches_outside() {
    for (keys, outcome, exit) in [(OUTWARD, "unknown_outcome", 4), ("tree = \"none\"", "lost", 0)] {
        let repo = one(keys);
        repo.start("w");
        if exit == 4 {
            repo.drive().exits(4);
            repo.striatum(&["gate", "approve", "deploy", "--as-person"]).ok();
        }
        let mut worker = repo.register("author", "script").sharing_process();
        worker.claim();
        repo.run(&mut worker.command(&["ack"])).ok();
        repo.clock(0, 3_600_000, None);
        repo.drive().exits(exit);
        let ended = repo.rows("SELECT outcome FROM attempt WHERE number = 1");
        assert_eq!(ended, [outcome], "{}", repo.told());
        assert_eq!(repo.count("event WHERE type = 'observation.recorded'"), 1);
    }
}
