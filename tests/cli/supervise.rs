//! `supervise start / stop / status`: one helper, asked by hand.

use crate::support::{TestRepo, next_commands, wait_until};

/// One job of a lane that a helper hosts, and one of a person.
const HOSTED: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "job"
    role = "maker"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "look"
    role = "person"
    lane = "hand"
    tree = "none"
"#;

fn started(instructions: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.limits("grace = \"200ms\"");
    repo.workflow("w", HOSTED);
    repo.agent("job", instructions);
    repo.start("w");
    repo.register("maker", "script");
    repo
}

fn supervise(repo: &TestRepo, verb: &str, more: &[&str]) -> crate::support::Output {
    repo.striatum(&[&["supervise", verb, "--session-id", "s1"], more].concat())
}

fn is_closed(repo: &TestRepo) -> bool {
    repo.rows("SELECT state FROM session WHERE id = 1") == ["closed"]
}

#[test]
fn a_helper_asked_by_hand_works_its_slot_and_ends() {
    let repo = started("hold on; complete");
    insta::assert_snapshot!(supervise(&repo, "status", &[]).ok(), @r"
    $ striatum supervise status --session-id s1
    s1 is active; helper never started (gone), lane gone; holds nothing
    log: <root>/repo/.striatum/scratch/s1/helper.log
    ");
    insta::assert_snapshot!(supervise(&repo, "start", &[]).ok(), @r"
    $ striatum supervise start --session-id s1
    started the helper of s1 (pid <pid>)
    next: striatum supervise status --session-id s1   # see how it does
    ");
    wait_until("the agent works", || repo.effects().len() == 1);
    insta::assert_snapshot!(supervise(&repo, "status", &[]).ok(), @r"
    $ striatum supervise status --session-id s1
    s1 is active; helper attached (alive), lane alive; holds job
    log: <root>/repo/.striatum/scratch/s1/helper.log
    ");
    let twice = repo.json(&["supervise", "start", "--session-id", "s1"]).refused(5, "still_held");
    assert_eq!(next_commands(&twice), ["striatum supervise status --session-id s1"]);
    repo.go("on");
    wait_until("the session closes", || is_closed(&repo));
    wait_until("nothing is left running", || repo.processes().is_empty());
    insta::assert_snapshot!(supervise(&repo, "status", &[]).ok(), @r"
    $ striatum supervise status --session-id s1
    s1 is closed; helper stopped (gone), lane gone; holds nothing
    log: <root>/repo/.striatum/scratch/s1/helper.log
    ");
    assert_eq!(repo.job_state("job"), "completed");
    repo.json(&["supervise", "start", "--session-id", "s1"]).refused(5, "session_ended");
    insta::assert_snapshot!(repo.story(&["supervisor", "execution", "session"]).join("\n"), @r"
    session.registered s1
    supervisor.requested s1
    supervisor.attached s1
    execution.starting job
    execution.started job
    execution.ended job
    supervisor.stopped s1
    session.closed s1
    ");
}

#[test]
fn stopping_ends_the_agent_with_everything_it_started_and_costs_nothing() {
    let repo = started("ignore_term; daemon; hang");
    supervise(&repo, "start", &[]).ok();
    wait_until("the agent hangs", || repo.notes().len() == 1);
    insta::assert_snapshot!(supervise(&repo, "stop", &["--reason", "enough"]).ok(), @r"
    $ striatum supervise stop --session-id s1 --reason enough
    s1 was told to end
    ");
    wait_until("the session closes", || is_closed(&repo));
    wait_until("nothing is left running", || repo.processes().is_empty());
    assert_eq!(repo.rows("SELECT outcome FROM attempt WHERE number = 1 AND claimed_at IS NOT NULL"), ["interrupted"]);
    assert_eq!(repo.rows("SELECT state, strikes, requeues FROM job WHERE name = 'job'"), ["queued 0 0"]);
    insta::assert_snapshot!(supervise(&repo, "stop", &["--reason", "again"]).ok(), @r"
    $ striatum supervise stop --session-id s1 --reason again
    s1 has no helper to tell
    ");
}

#[test]
fn draining_lets_the_agent_finish_what_it_holds() {
    let repo = started("hold on; complete");
    supervise(&repo, "start", &[]).ok();
    wait_until("the agent works", || repo.effects().len() == 1);
    supervise(&repo, "stop", &["--reason", "enough", "--drain"]).ok();
    repo.go("on");
    wait_until("the session closes", || is_closed(&repo));
    assert_eq!(repo.job_state("job"), "completed");
}

#[test]
fn a_person_is_not_started_and_an_unknown_session_is_named() {
    let repo = started("complete");
    let person = repo.register("person", "hand");
    let error = repo.json(&["supervise", "start", "--session-id", &person.session]).refused(5, "invalid_transition");
    assert_eq!(error["message"], "lane hand is a person: nothing to start");
    for verb in ["start", "status"] {
        repo.json(&["supervise", verb, "--session-id", "s9"]).refused(2, "not_found");
    }
    assert_eq!(repo.effects(), []);
}

#[test]
fn sixteen_starts_at_once_launch_one_helper() {
    let repo = started("hold on; complete");
    let starts: Vec<_> = (0..16).map(|_| repo.spawn(&["supervise", "start", "--session-id", "s1", "--json"])).collect();
    let codes: Vec<i32> = starts.into_iter().map(|start| start.wait().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 5).count(), 15, "{codes:?}");
    wait_until("the agent works", || !repo.effects().is_empty());
    repo.go("on");
    wait_until("the session closes", || is_closed(&repo));
    assert_eq!(repo.effect_lines(), ["job.1 start"]);
    assert_eq!(repo.count("supervisor"), 1);
}

#[test]
fn a_missing_command_waits_for_a_person_and_is_not_retried() {
    let repo = TestRepo::new();
    repo.workflow("w", &HOSTED.replace("\"@agent\"", "[\"no-such-command-anywhere\"]"));
    repo.start("w");
    let driven = repo.drive().exits(3);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    look waits for a person (lane hand); striatum take look
    launched maker/script for job (s1)
    run w-1 -> needs_operator: job: environment
    --- stderr
    next: striatum run retry-job job --run-id w-1 --reason '...'   # job: environment
    --- exit 3
    ");
    assert_eq!(
        repo.rows("SELECT outcome FROM attempt JOIN job ON job.id = job_id WHERE name = 'job'"),
        ["environment"]
    );
}
