//! `register-session`, `session list`, `session close`.

use crate::support::{TestRepo, next_commands, wait_until};

/// Two jobs of one slot, by hand, and one that a helper could host.
const SLOTS: &str = r#"
    [lanes.hand]
    mode = "human"
    [lanes.script]
    command = "@agent"
    [roles.maker]
    lanes = ["hand", "script"]
    [[jobs]]
    id = "a"
    role = "maker"
    lane = "hand"
    tree = "none"
    [[jobs]]
    id = "b"
    role = "maker"
    lane = "hand"
    tree = "none"
    [[jobs]]
    id = "c"
    role = "maker"
    lane = "script"
    tree = "none"
"#;

fn started() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", SLOTS);
    repo.start("w");
    repo
}

#[test]
fn registering_listing_and_closing_read_like_this() {
    let repo = started();
    insta::assert_snapshot!(repo.striatum(&["session", "list"]).ok(), @r"
    $ striatum session list
    no sessions
    ");
    insta::assert_snapshot!(repo.striatum(&["register-session", "--role", "maker", "--lane", "hand"]).ok(), @r"
    $ striatum register-session --role maker --lane hand
    registered s1 as maker/hand in w-1
    token file: <root>/repo/.striatum/scratch/s1/token
    next: striatum supervise start --session-id s1   # let a helper host it
    next: striatum work claim --session-id s1 --token-file <root>/repo/.striatum/scratch/s1/token   # take work yourself
    ");
    let mut worker = repo.register("maker", "hand");
    assert_eq!(worker.claims(), "a.1");
    insta::assert_snapshot!(repo.striatum(&["session", "list"]).ok(), @r"
    $ striatum session list
    s2 maker/hand active holds a
    s1 maker/hand active
    ");
    insta::assert_snapshot!(repo.striatum(&["session", "close", "--session-id", "s2", "--reason", "enough"]).ok(), @r"
    $ striatum session close --session-id s2 --reason enough
    s2 is closed; a goes back to the queue
    ");
    insta::assert_snapshot!(repo.striatum(&["session", "close", "--session-id", "s1", "--reason", "enough"]).ok(), @r"
    $ striatum session close --session-id s1 --reason enough
    s1 is closed
    ");
    insta::assert_snapshot!(repo.striatum(&["session", "list", "--all"]).ok(), @r"
    $ striatum session list --all
    s2 maker/hand closed (enough)
    s1 maker/hand closed (enough)
    ");
    // What it held is offered again, and it cost nothing.
    assert_eq!(repo.rows("SELECT state, attempt, strikes, requeues FROM job WHERE name = 'a'"), ["queued 2 0 0"]);
}

#[test]
fn a_slot_takes_another_session_only_while_it_has_more_work_than_sessions() {
    let repo = started();
    repo.register("maker", "hand");
    repo.register("maker", "hand");
    let error = repo.json(&["register-session", "--role", "maker", "--lane", "hand"]).refused(5, "slot_covered");
    assert_eq!(error["message"], "slot maker/hand has 2 active session(s) for 2 live message(s)");
    assert_eq!(next_commands(&error), ["striatum session list --run-id w-1"]);
    repo.register("maker", "script");
}

#[test]
fn sixteen_registrations_at_once_cover_a_slot_exactly() {
    let repo = started();
    let words = ["register-session", "--role", "maker", "--lane", "hand", "--json"];
    let all: Vec<_> = (0..16).map(|_| repo.spawn(&words)).collect();
    let codes: Vec<i32> = all.into_iter().map(|one| one.wait().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 2, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 5).count(), 14, "{codes:?}");
    assert_eq!(repo.count("session WHERE state = 'active'"), 2);
}

#[test]
fn a_slot_must_exist() {
    let repo = started();
    let register = |role: &str, lane: &str| repo.json(&["register-session", "--role", role, "--lane", lane]);
    register("nobody", "hand").refused(2, "usage");
    let error = register("maker", "nowhere").refused(2, "usage");
    assert_eq!(error["message"], "the run has no lane nowhere");
    assert_eq!(error["hints"][0], "it has hand, script");
    repo.json(&["register-session", "--role", "maker", "--lane", "hand", "--run-id", "w-9"]).refused(2, "not_found");
}

#[test]
fn a_run_that_is_over_takes_no_session() {
    let repo = started();
    repo.json(&["run", "cancel", "--reason", "enough", "--yes"]).ok();
    let words = ["register-session", "--role", "maker", "--lane", "hand", "--run-id", "w-1"];
    repo.json(&words).refused(5, "not_running");
}

#[test]
fn with_several_live_runs_a_writer_names_one_and_a_reader_is_told_which() {
    let repo = started();
    repo.start("w");
    let error = repo.json(&["register-session", "--role", "maker", "--lane", "hand"]).refused(2, "ambiguous");
    assert_eq!(error["message"], "several runs are live: w-1, w-2");
    let listed = repo.striatum(&["session", "list"]).ok();
    insta::assert_snapshot!(listed, @r"
    $ striatum session list
    no sessions
    --- stderr
    run w-2
    ");
}

#[test]
fn a_hosted_session_is_ended_through_its_helper() {
    let repo = started();
    repo.agent("c", "hang");
    let worker = repo.register("maker", "script");
    repo.striatum(&["supervise", "start", "--session-id", &worker.session]).ok();
    wait_until("the agent hangs", || repo.notes().len() == 1);
    let close = ["session", "close", "--session-id", &worker.session, "--reason", "enough"];
    let error = repo.json(&close).refused(5, "still_held");
    assert_eq!(
        next_commands(&error),
        [format!("striatum supervise stop --session-id {} --reason enough", worker.session)]
    );
}

#[test]
fn closing_twice_is_a_no_op_and_an_unknown_session_is_named() {
    let repo = started();
    let worker = repo.register("maker", "hand");
    let close = ["session", "close", "--session-id", &worker.session, "--reason", "enough"];
    repo.json(&close).ok();
    let events = repo.count("event");
    assert_eq!(repo.json(&close).ok().value()["state"], "closed");
    assert_eq!(repo.count("event"), events);
    let error = repo.json(&["session", "close", "--session-id", "s77", "--reason", "x"]).refused(2, "not_found");
    assert_eq!(next_commands(&error), ["striatum session list"]);
}

#[test]
fn tokens_are_private_and_only_their_hash_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    let repo = started();
    let worker = repo.register("maker", "hand");
    let token = std::fs::read_to_string(&worker.token_file).unwrap();
    assert_eq!(token.trim().len(), 64);
    assert_eq!(std::fs::metadata(&worker.token_file).unwrap().permissions().mode() & 0o777, 0o600);
    let scratch = std::path::Path::new(&worker.token_file).parent().unwrap();
    assert_eq!(std::fs::metadata(scratch).unwrap().permissions().mode() & 0o777, 0o700);
    for file in ["striatum.db", "striatum.db-wal"] {
        let bytes = std::fs::read(repo.dir().join(file)).unwrap();
        assert!(!bytes.windows(token.trim().len()).any(|window| window == token.trim().as_bytes()), "{file}");
    }
}

#[test]
fn an_unsupervised_session_that_does_nothing_expires_in_the_drivers_sweep() {
    let repo = started();
    repo.agent("c", "hold on; complete");
    repo.register("maker", "hand");
    repo.clock(0, 31 * 60_000, None);
    let driven = repo.striatum(&["run", "drive", "--once"]).ok();
    assert!(driven.stdout.contains("expired s1: it did nothing for too long\n"), "{driven}");
    assert_eq!(repo.rows("SELECT state FROM session WHERE id = 1"), ["expired"]);
}
