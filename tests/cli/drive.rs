//! `run drive`: what it launches, adopts and closes, and who drives when several do.

use nix::sys::signal::Signal;
use striatum::domain::action::{Action, Launch};
use striatum::domain::id::{GateId, JobId, LeaseId, ProposalId, SessionId};
use striatum::domain::job::Cause;

use crate::support::{STRIATUM, TestRepo, wait_until};

/// A draft, a fresh review of it.
pub const REVIEWED: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.eyes]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
"#;

/// The same with an author that stays.
fn resident_author() -> String {
    REVIEWED.replacen("command = \"@agent\"", "command = \"@agent\"\nmode = \"loop\"", 1)
}

/// Two jobs side by side in slots of their own, and one after both.
const SIDE_BY_SIDE: &str = r#"
    [lanes.one]
    command = "@agent"
    [lanes.two]
    command = "@agent"
    [[jobs]]
    id = "left"
    role = "maker"
    lane = "one"
    tree = "none"
    [[jobs]]
    id = "right"
    role = "maker"
    lane = "two"
    tree = "none"
    [[jobs]]
    id = "both"
    role = "joiner"
    lane = "two"
    tree = "none"
    needs = ["left", "right"]
"#;

fn started(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.start("w");
    repo
}

/// Both jobs in flight, held by their agents until the test says `go`.
fn holding_side_by_side() -> TestRepo {
    let repo = started(SIDE_BY_SIDE);
    repo.agent("left", "hold on; effect left; complete");
    repo.agent("right", "hold on; effect right; complete");
    repo
}

fn once(repo: &TestRepo) -> String {
    repo.striatum(&["run", "drive", "--once"]).ok().stdout
}

const EACH_ONCE: [&str; 5] = ["both.1 start", "left.1 left", "left.1 start", "right.1 right", "right.1 start"];

#[test]
fn a_draft_and_a_review_with_one_revision_go_to_completed_untouched() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("review.1", "verdict needs_revision --finding 'Title: say more'");
    repo.start("w");
    let driven = repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.1 start", "draft.2 start", "review.1 start", "review.2 start"]);
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched author/script for draft (s1)
    launched reviewer/eyes for review (s2)
    launched author/script for draft (s3)
    launched reviewer/eyes for review (s4)
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
}

#[test]
fn run_drive_reconcile_is_idempotent() {
    let repo = holding_side_by_side();
    let covering = repo.register("maker", "one");
    let first = once(&repo);
    assert_eq!(
        first.lines().collect::<Vec<_>>(),
        ["adopted s1 for left", "launched maker/two for right (s2)", "run w-1 -> running: still moving",]
    );
    // While helpers start, while agents work: every further turn finds nothing to do.
    for _ in 0..3 {
        assert_eq!(once(&repo), "run w-1 -> running: still moving\n");
    }
    wait_until("both agents work", || repo.effects().len() == 2);
    for _ in 0..3 {
        assert_eq!(once(&repo), "run w-1 -> running: still moving\n");
    }
    assert_eq!(repo.rows("SELECT 's' || id, role, lane FROM session"), ["s1 maker one", "s2 maker two"]);
    assert_eq!(covering.session, "s1");
    repo.go("on");
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), EACH_ONCE);
}

#[test]
fn run_drive_adopts_existing_sessions() {
    let repo = started(REVIEWED);
    repo.register("author", "script");
    let driven = repo.drive().ok();
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    adopted s1 for draft
    launched reviewer/eyes for review (s2)
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    assert_eq!(repo.count("session WHERE role = 'author'"), 1);
    assert_eq!(repo.rows("SELECT driven FROM session ORDER BY id"), ["1", "1"]);
}

#[test]
fn a_session_that_works_by_hand_covers_its_slot_and_is_never_closed_by_the_driver() {
    let repo = started(REVIEWED);
    let mut author = repo.register("author", "script");
    author.claims();
    assert_eq!(once(&repo), "run w-1 -> running: still moving\n");
    author.work(&["complete"]).ok();
    repo.drive().ok();
    // It ended with its run, not before.
    assert_eq!(repo.rows("SELECT end_reason FROM session WHERE role = 'author'"), ["the run is completed"]);
    assert_eq!(repo.effect_lines(), ["review.1 start"]);
}

#[test]
fn a_fresh_session_that_has_done_its_job_keeps_nobody_out_of_its_slot() {
    let repo = started(REVIEWED);
    let mut author = repo.register("author", "script");
    author.claims();
    author.work(&["complete"]).ok();
    let mut reviewer = repo.register("reviewer", "eyes");
    reviewer.claims();
    reviewer.work(&["verdict", "needs_revision", "--finding", "Short: say more"]).ok();
    // Both stay; the author may go on, the reviewer may not.
    repo.json(&["session", "close", "--session-id", &author.session, "--reason", "done"]).ok();
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), ["draft.2 start", "review.2 start"]);
}

#[test]
fn run_drive_closes_completed_lanes_before_fresh_reviewer() {
    let repo = started(&resident_author());
    let driven = repo.drive().ok();
    insta::assert_snapshot!(driven, @r"
    $ striatum run drive --interval 500ms
    launched author/script for draft (s1)
    closed author/script (s1): lane completed its job; closing for fresh-policy
    launched reviewer/eyes for review (s2)
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    insta::assert_snapshot!(repo.story(&["session.reg", "supervisor.stop_req", "lease.granted", "job.sealed"]).join("\n"), @r"
    session.registered s1
    lease.granted draft
    job.sealed draft
    supervisor.stop_requested s1
    session.registered s2
    lease.granted review
    job.sealed review
    ");
}

#[test]
fn run_drive_never_calls_rescue_verbs() {
    const ALLOWED: [&str; 6] =
        ["run summary", "list sessions", "register-session", "supervise start", "supervise stop", "session close"];
    let verbs: Vec<&str> = every_action().iter().flat_map(|action| action.verbs().iter().copied()).collect();
    assert!(!verbs.is_empty() && verbs.iter().all(|verb| ALLOWED.contains(verb)), "{verbs:?}");

    // No code of the driver names one either.
    const RESCUE: [&str; 12] = [
        "verbs::work::stale",
        "requeue-stale",
        "retry",
        "override",
        "verbs::rescue",
        "force_non_fresh: true",
        "force: true",
        "--force",
        "escape",
        "amend",
        "approve(",
        "answer(",
    ];
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/verbs/run");
    for file in ["drive.rs", "act.rs", "observe.rs", "wait.rs", "marker.rs"] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let found = RESCUE.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{file}: {line}");
        }
    }
}

/// One of each: a new action does not compile until it stands here.
fn every_action() -> Vec<Action> {
    let (session, job, name) = (SessionId(1), JobId(1), || "j".to_owned());
    let (role, lane) = (|| "r".to_owned(), || "l".to_owned());
    let launch = Launch { role: role(), lane: lane(), job, name: name(), attempt: 1, fresh: true, lost: None };
    let all = vec![
        Action::MarkLost { session },
        Action::Recover { session, job: name() },
        Action::ExpireLease { lease: LeaseId(1), session, job: name() },
        Action::ExpireSession { session },
        Action::Observe { job, name: name() },
        Action::NeverStarted { job, name: name(), attempt: 1 },
        Action::StopLane { session, role: role(), lane: lane() },
        Action::CloseSession { session, role: role(), lane: lane() },
        Action::Adopt { session, job: name() },
        Action::Launch(launch),
        Action::AdmitNext { proposal: ProposalId(1), job: name() },
        Action::OpenGate { job, name: name() },
        Action::ExpireGate { gate: GateId(1), name: name() },
        Action::Destroy { id: 1, resource: "db-0".to_owned(), job: name() },
        Action::Trip { breaker: Cause::Cost },
        Action::Calm,
        Action::Revive,
        Action::Escalate { cause: Cause::Other, subject: name() },
        Action::Complete,
    ];
    for action in &all {
        match action {
            Action::MarkLost { .. }
            | Action::Recover { .. }
            | Action::ExpireLease { .. }
            | Action::ExpireSession { .. }
            | Action::Observe { .. }
            | Action::NeverStarted { .. }
            | Action::StopLane { .. }
            | Action::CloseSession { .. }
            | Action::Adopt { .. }
            | Action::Launch(_)
            | Action::AdmitNext { .. }
            | Action::OpenGate { .. }
            | Action::ExpireGate { .. }
            | Action::Destroy { .. }
            | Action::Trip { .. }
            | Action::Calm
            | Action::Revive
            | Action::Escalate { .. }
            | Action::Complete => {}
        }
    }
    all
}

#[test]
fn run_drive_two_concurrent_drivers_one_run() {
    let repo = holding_side_by_side();
    let drivers: Vec<_> = (0..2).map(|_| repo.spawn(&["run", "drive", "--interval", "500ms"])).collect();
    wait_until("one of them warns", || drivers.iter().any(|driver| driver.stdout().contains("standing by")));
    wait_until("both agents work", || repo.effects().len() == 2);
    repo.go("on");
    let ended: Vec<_> = drivers.into_iter().map(|driver| driver.wait().ok()).collect();
    let is_standby = |text: &str| text.contains("warning: another run drive appears active for this run (pid ");
    assert_eq!(ended.iter().filter(|output| is_standby(&output.stdout)).count(), 1);
    for output in &ended {
        assert_eq!(output.stdout.lines().last(), Some("run w-1 -> completed: every job is settled"), "{output}");
    }
    assert_eq!(repo.effect_lines(), EACH_ONCE);
    assert_eq!(repo.count("session"), 3);
}

#[test]
fn drivers_that_all_act_at_once_never_spawn_a_slot_twice() {
    let repo = holding_side_by_side();
    // `--once` never stands by: it warns and makes its turn.
    let drivers: Vec<_> = (0..8).map(|_| repo.spawn(&["run", "drive", "--once"])).collect();
    for driver in drivers {
        driver.wait().ok();
    }
    wait_until("both agents work", || repo.effects().len() == 2);
    assert_eq!(repo.count("session"), 2);
    repo.go("on");
    repo.drive().ok();
    assert_eq!(repo.effect_lines(), EACH_ONCE);
}

#[test]
fn a_standby_takes_over_the_moment_the_driver_is_killed() {
    let repo = holding_side_by_side();
    let mut first = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("both agents work", || repo.effects().len() == 2);
    let second = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    second.wait_for_line("standing by");
    first.kill();
    // The lanes live on without any driver.
    repo.go("on");
    let second = second.wait().ok();
    insta::assert_snapshot!(second, @r"
    $ striatum run drive --interval 500ms
    warning: another run drive appears active for this run (pid <pid> on <host>); standing by
    launched joiner/two for both (s3)
    run w-1 -> completed: every job is settled
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    assert_eq!(repo.effect_lines(), EACH_ONCE);
}

#[test]
fn an_exclusive_driver_refuses_to_be_the_second() {
    let repo = holding_side_by_side();
    let mut first = repo.spawn(&["run", "drive", "--exclusive", "--interval", "500ms"]);
    wait_until("both agents work", || repo.effects().len() == 2);
    let second = repo.striatum(&["run", "drive", "--exclusive"]).exits(2);
    insta::assert_snapshot!(second, @r"
    $ striatum run drive --exclusive
    --- stderr
    error: another run drive appears active for this run (pid <pid> on <host>); refused by --exclusive
    next: striatum status   # see how it does
    --- exit 2
    ");
    let dry = repo.striatum(&["run", "drive", "--dry-run"]).ok();
    insta::assert_snapshot!(dry, @r"
    $ striatum run drive --dry-run
    warning: another run drive appears active for this run (pid <pid> on <host>); looking only
    run w-1 -> running: still moving
    --- stderr
    next: striatum run summary --run-id w-1   # see what happened
    ");
    first.kill();
}

#[test]
fn run_drive_two_runs_two_drivers_stay_apart() {
    let repo = TestRepo::new();
    for workflow in ["one", "two"] {
        repo.workflow(workflow, SIDE_BY_SIDE);
        repo.start(workflow);
    }
    repo.agent("left", "hold $RUN; effect left; complete");
    repo.agent("right", "hold $RUN; effect right; complete");
    let drive = |run: &str| repo.spawn(&["run", "drive", "--run-id", run, "--interval", "500ms"]);
    let (one, two) = (drive("one-1"), drive("two-1"));
    wait_until("all four agents work", || repo.effects().len() == 4);
    repo.go("one-1");
    let one = one.wait().ok();
    assert_eq!(repo.run_state("one-1"), "completed");
    assert_eq!(repo.run_state("two-1"), "running");
    repo.go("two-1");
    let two = two.wait().ok();
    assert!(!one.stdout.contains("warning") && !two.stdout.contains("warning"), "{one}{two}");
    for run in ["one-1", "two-1"] {
        let mut lines: Vec<String> = repo
            .effects()
            .iter()
            .filter(|effect| effect.run == run)
            .map(|effect| format!("{}.{} {}", effect.job, effect.attempt, effect.word))
            .collect();
        lines.sort();
        assert_eq!(lines, EACH_ONCE);
    }
    assert_eq!(repo.count("session AS s JOIN job AS j ON j.id = s.last_job WHERE j.run_id <> s.run_id"), 0);
}

#[test]
fn an_interrupted_driver_says_how_to_go_on_and_its_lanes_live() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let repo = holding_side_by_side();
        let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
        wait_until("both agents work", || repo.effects().len() == 2);
        driver.signal(signal);
        let driver = driver.wait().exits(130);
        assert_eq!(driver.stdout.lines().last(), Some("run w-1 -> running: interrupted; lanes live on"), "{driver}");
        assert!(driver.stderr.contains("striatum run drive --run-id w-1"), "{driver}");
        repo.go("on");
        repo.drive().ok();
        assert_eq!(repo.effect_lines(), EACH_ONCE);
    }
}

#[test]
fn a_driver_that_is_told_to_stop_its_lanes_leaves_no_process() {
    let repo = TestRepo::new();
    repo.limits("grace = \"200ms\"");
    repo.workflow("w", SIDE_BY_SIDE);
    repo.start("w");
    repo.agent("left", "ignore_term; daemon; hang");
    repo.agent("right", "daemon; hang");
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms", "--stop-lanes"]);
    wait_until("both agents hang", || repo.notes().iter().filter(|note| note.word == "hangs").count() == 2);
    driver.signal(Signal::SIGINT);
    driver.wait().exits(130);
    assert_eq!(repo.processes(), []);
}

#[test]
fn a_driver_may_be_called_by_any_path_and_from_below_the_repository() {
    let repo = started(REVIEWED);
    repo.write("deep/down/file", "");
    let mut command = repo.command_of(STRIATUM, &["run", "drive"]);
    command.current_dir(repo.file("deep/down"));
    repo.run(&mut command).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
}
