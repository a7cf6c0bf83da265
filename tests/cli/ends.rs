//! `run drive`: how it ends, with which exit, and what it says on the way (design sections 9.5 and 9.6).

use std::os::fd::AsFd;

use nix::sys::signal::Signal;

use crate::drive::REVIEWED;
use crate::support::{Output, TestRepo, kill, wait_until};

/// One job that an agent does.
const ONE: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "job"
    role = "maker"
    lane = "script"
    tree = "none"
"#;

/// A workflow with one job of which the agent does what it is told.
fn with_agent(workflow: &str, job: &str, instructions: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.agent(job, instructions);
    repo.start("w");
    repo
}

fn last_line(output: &Output) -> &str {
    output.stdout.lines().last().unwrap_or_default()
}

#[test]
fn a_run_that_is_not_started_exits_5_with_the_literal_command() {
    let repo = TestRepo::new();
    let nothing = repo.striatum(&["run", "drive"]).exits(9);
    insta::assert_snapshot!(nothing, @r"
    $ striatum run drive
    --- stderr
    error: there is no striatum store in <root>/repo or above it
    hint: `striatum init` sets one up in this repository
    next: striatum init   # set up a store here
    --- exit 9
    ");
    repo.workflow("w", ONE);
    repo.prepare("w");
    let ready = repo.striatum(&["run", "drive"]).exits(5);
    insta::assert_snapshot!(ready, @r"
    $ striatum run drive
    --- stderr
    error: run w-1 is not started
    next: striatum run start --run-id w-1   # start it
    --- exit 5
    ");
    repo.striatum(&["run", "start"]).ok();
    repo.drive().ok();
    let over = repo.striatum(&["run", "drive"]).exits(5);
    insta::assert_snapshot!(over, @r"
    $ striatum run drive
    --- stderr
    error: no run is live; the newest, w-1, is completed
    hint: name a run with --run-id
    --- exit 5
    ");
    let again = repo.striatum(&["run", "drive", "--run-id", "w-1"]).ok();
    insta::assert_snapshot!(again, @r"
    $ striatum run drive --run-id w-1
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    let unknown = repo.striatum(&["run", "drive", "--run-id", "w-2"]).exits(2);
    insta::assert_snapshot!(unknown, @r"
    $ striatum run drive --run-id w-2
    --- stderr
    error: there is no run w-2
    next: striatum run list   # list the runs
    --- exit 2
    ");
}

#[test]
fn a_reject_fails_the_run_and_exits_1() {
    let repo = with_agent(REVIEWED, "review", "verdict reject --finding 'No: this is not it'");
    let driven = repo.drive().exits(1);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched author/script for draft (s1)
    launched reviewer/eyes for review (s2)
    run w-1 -> failed: review rejected draft
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    --- exit 1
    ");
    assert_eq!(repo.run_state("w-1"), "failed");
}

#[test]
fn a_job_out_of_tries_fails_the_run_when_it_says_so() {
    let repo = with_agent(&format!("{ONE}\n    on_failure = \"fail_run\"\n    max_strikes = 2"), "job", "exit 3");
    let driven = repo.drive().exits(1);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched maker/script for job (s1)
    run w-1 -> failed: exit 3 without an answer
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    --- exit 1
    ");
    assert_eq!(repo.effect_lines(), ["job.1 start", "job.2 start"]);
}

#[test]
fn a_job_out_of_tries_is_held_and_the_run_needs_an_operator_exit_3() {
    let repo = with_agent(ONE, "job", "fail 'it does not compile'");
    let driven = repo.drive().exits(3);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched maker/script for job (s1)
    run w-1 -> needs_operator: job: strikes
    --- stderr
    next: striatum run retry-job job --run-id w-1 --reason '...'   # job: strikes
    --- exit 3
    ");
    // At most one launch for each attempt, and no attempt after the third strike.
    assert_eq!(repo.effect_lines(), ["job.1 start", "job.2 start", "job.3 start"]);
    // Driving once more changes nothing and says the same.
    let again = repo.drive().exits(3);
    assert_eq!(last_line(&again), last_line(&driven));
    assert_eq!(repo.effects().len(), 3);
}

#[test]
fn an_exit_without_an_answer_is_not_success() {
    let repo = with_agent(REVIEWED, "review", "exit 0");
    let driven = repo.drive().exits(3);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched author/script for draft (s1)
    launched reviewer/eyes for review (s2)
    launched reviewer/eyes for review (s3)
    launched reviewer/eyes for review (s4)
    run w-1 -> needs_operator: review: strikes
    --- stderr
    next: striatum run retry-job review --run-id w-1 --reason '...'   # review: strikes
    --- exit 3
    ");
    assert_eq!(
        repo.rows("SELECT outcome FROM attempt JOIN job ON job.id = job_id WHERE name = 'review'"),
        ["unsealed"; 3]
    );
}

#[test]
fn a_question_of_an_agent_waits_for_a_person_exit_4() {
    let repo = with_agent(ONE, "job", "ask 'which of the two'");
    let driven = repo.drive().exits(4);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched maker/script for job (s1)
    waits for you: job: needs_context
    run w-1 -> waiting_human: job: needs_context
    --- stderr
    next: striatum answer job '...' --run-id w-1   # job: needs_context
    next: striatum take job --run-id w-1   # job: needs_context
    --- exit 4
    ");
    assert_eq!(repo.run_state("w-1"), "running");
}

#[test]
fn a_blocked_agent_needs_an_operator_exit_3() {
    let repo = with_agent(ONE, "job", "block 'a licence'");
    let driven = repo.drive().exits(3);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched maker/script for job (s1)
    run w-1 -> needs_operator: job: agent_blocked
    --- stderr
    next: striatum answer job '...' --run-id w-1   # job: agent_blocked
    next: striatum take job --run-id w-1   # job: agent_blocked
    --- exit 3
    ");
}

#[test]
fn a_human_lane_waits_for_its_person_while_the_rest_goes_on() {
    let by_hand = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "look"
    role = "person"
    lane = "hand"
    tree = "none"
"#;
    let repo = with_agent(&format!("{ONE}{by_hand}"), "job", "complete");
    let driven = repo.drive().exits(4);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    look waits for a person (lane hand); striatum take look
    launched maker/script for job (s1)
    waits for you: look: human_lane
    run w-1 -> waiting_human: look: human_lane
    --- stderr
    next: striatum take look --run-id w-1   # look: human_lane
    --- exit 4
    ");
    assert_eq!(repo.job_state("job"), "completed");
}

#[test]
fn a_job_with_several_lanes_is_told_and_skipped_and_whoever_registers_may_take_it() {
    let several = r#"
    [lanes.other]
    command = "@agent"
    [[jobs]]
    id = "any"
    role = "helper"
    tree = "none"
    [roles.helper]
    lanes = ["script", "other"]
"#;
    let repo = with_agent(&format!("{ONE}{several}"), "job", "complete");
    let driven = repo.drive().exits(4);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    cannot resolve lane for any (role helper has lanes script, other); register manually
    launched maker/script for job (s1)
    waits for you: any: ambiguous_lane
    run w-1 -> waiting_human: any: ambiguous_lane
    --- stderr
    next: striatum run amend any --run-id w-1 --set lane=script --reason '...'   # any: ambiguous_lane
    next: striatum register-session --run-id w-1 --role helper --lane script   # any: ambiguous_lane
    next: striatum take any --run-id w-1   # any: ambiguous_lane
    --- exit 4
    ");
    let mut worker = repo.register("helper", "other");
    assert_eq!(worker.claims(), "any.1");
    worker.work(&["complete"]).ok();
    repo.drive().exits(5);
    assert_eq!(repo.run_state("w-1"), "completed");
}

#[test]
fn the_stop_file_ends_the_driver_and_only_its_removal_lets_it_go_on() {
    let repo = with_agent(ONE, "job", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the agent works", || repo.effects().len() == 1);
    repo.write(".striatum/STOP", "");
    let driver = driver.wait().exits(5);
    insta::assert_snapshot!(driver, @r"
    $ striatum run drive --interval 500ms
    launched maker/script for job (s1)
    run w-1 -> running: stopped
    --- stderr
    next: striatum run resume --run-id w-1   # go on
    --- exit 5
    ");
    repo.drive().exits(5);
    // The lane lives on.
    repo.go("on");
    wait_until("the lane seals", || repo.job_state("job") == "completed");
    std::fs::remove_file(repo.file(".striatum/STOP")).unwrap();
    repo.striatum(&["run", "drive", "--run-id", "w-1"]).ok();
    assert_eq!(repo.effects().len(), 1);
}

#[test]
fn a_lane_that_dies_is_relaunched_in_these_words() {
    let repo = with_agent(ONE, "job.1", "hang");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the agent hangs", || repo.notes().len() == 1);
    // Both at once: nobody can tell what the agent did, and nothing but its folder was touched.
    let helper: i32 = repo.one("SELECT pid FROM supervisor", ());
    let agent = repo.agent_pid("job").unwrap();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(helper), Signal::SIGSTOP).unwrap();
    kill(agent);
    kill(helper);
    let driver = driver.wait().ok();
    assert!(driver.stdout.contains("relaunched maker/script for job (prior session s1 went non-live)\n"), "{driver}");
    assert_eq!(repo.effect_lines(), ["job.1 start", "job.2 start"]);
    assert_eq!(repo.rows("SELECT number, outcome FROM attempt"), ["1 lost", "2 sealed"]);
}

#[test]
fn a_fresh_reviewer_waits_for_a_working_author_and_that_is_said_once() {
    let more = r#"
    [[jobs]]
    id = "notes"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["draft"]
"#;
    let repo = with_agent(&format!("{REVIEWED}{more}"), "notes", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "20ms", "--heartbeat", "1ms"]);
    driver.wait_for_line("reviewer slot blocked: author still working; waiting");
    // Many turns later it has still been said once, and nothing was forced.
    wait_until("a dozen turns", || {
        driver.stderr().lines().filter(|line| line.starts_with("notes (script)")).count() > 12
    });
    repo.go("on");
    let driver = driver.wait().ok();
    assert_eq!(driver.stdout.matches("reviewer slot blocked").count(), 1, "{driver}");
    assert_eq!(repo.count("event WHERE type = 'session.forced_non_fresh'"), 0);
    assert_eq!(repo.effect_lines(), ["draft.1 start", "notes.1 start", "review.1 start"]);
}

#[test]
fn a_busy_store_makes_the_driver_back_off_and_say_so_once() {
    let repo = with_agent(ONE, "job", "complete");
    // Who writes right now has died or hangs: its lock stays.
    let lock = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(repo.file(".striatum/locks/write.lock"))
        .unwrap();
    rustix::fs::flock(lock.as_fd(), rustix::fs::FlockOperation::LockExclusive).unwrap();
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    driver.wait_for_line("store read failed, backing off");
    drop(lock);
    let driver = driver.wait().ok();
    insta::assert_snapshot!(driver, @r"
    $ striatum run drive --interval 500ms
    store read failed, backing off
    launched maker/script for job (s1)
    reconciled 1 sessions after restart
    run w-1 -> completed: every job is settled
    --- stderr
    waiting for the store: pid <pid> (run start) is writing
    next: striatum run summary --run-id w-1   # see what happened
    ");
}

#[test]
fn json_lines_tell_each_action() {
    let repo = with_agent(REVIEWED, "review.1", "verdict needs_revision --finding 'More: say more'");
    let lines = repo.json(&["run", "drive"]).ok();
    for line in lines.values() {
        let end = line["action"] == "end";
        for key in ["job", "role", "lane", "session_id"] {
            assert!(end || line.get(key).is_some(), "{line}");
        }
        assert!(end || line["ts"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    let told: Vec<String> = lines
        .values()
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or("-").to_owned();
            let slot = format!("{}/{} {}", text("role"), text("lane"), text("session_id"));
            format!("{} {} {slot}: {}", text("action"), text("job"), text("result"))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    launch draft author/script s1: done
    launch review reviewer/eyes s2: done
    launch draft author/script s3: done
    launch review reviewer/eyes s4: done
    end - -/- -: every job is settled
    ");
}

#[test]
fn a_dry_run_tells_what_it_would_do_and_does_nothing() {
    let repo = with_agent(REVIEWED, "draft", "complete");
    let events = repo.events();
    let dry = repo.striatum(&["run", "drive", "--dry-run"]).ok();
    insta::assert_snapshot!(dry, @r"
    $ striatum run drive --dry-run
    would launch/draft.1
    run w-1 -> running: still moving
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    assert_eq!(repo.events(), events);
    assert_eq!(repo.effects(), []);
}

#[test]
fn once_makes_one_turn_and_exits_0_while_the_run_lives() {
    let repo = with_agent(ONE, "job", "hold on; complete");
    let once = repo.striatum(&["run", "drive", "--once"]).ok();
    insta::assert_snapshot!(once, @r"
    $ striatum run drive --once
    launched maker/script for job (s1)
    run w-1 -> running: still moving
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    wait_until("the agent works", || repo.effects().len() == 1);
    repo.go("on");
    wait_until("the lane seals", || repo.job_state("job") == "completed");
    let once = repo.striatum(&["run", "drive", "--once", "--run-id", "w-1"]).ok();
    assert_eq!(last_line(&once), "run w-1 -> completed: every job is settled");
}

#[test]
fn without_a_terminal_a_heartbeat_says_what_is_in_flight() {
    let repo = with_agent(ONE, "job", "hold on; complete");
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms", "--heartbeat", "50ms"]);
    wait_until("a heartbeat", || driver.stderr().lines().any(|line| line.starts_with("job (script), ")));
    repo.go("on");
    driver.wait().ok();
}

#[test]
fn a_driver_that_waits_for_people_stays_until_they_have_answered() {
    let by_hand = ONE.replace("command = \"@agent\"", "mode = \"human\"");
    let repo = with_agent(&by_hand, "job", "");
    let driver = repo.spawn(&["run", "drive", "--wait-human", "--interval", "500ms"]);
    driver.wait_for_line("job waits for a person");
    let mut person = repo.register("maker", "script");
    assert_eq!(person.claims(), "job.1");
    person.work(&["complete"]).ok();
    let driver = driver.wait().ok();
    insta::assert_snapshot!(driver, @r"
    $ striatum run drive --wait-human --interval 500ms
    job waits for a person (lane script); striatum take job
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
}
