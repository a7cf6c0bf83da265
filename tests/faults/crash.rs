//! A process dies by SIGKILL at one named point; another drive ends the run.

use crate::support::TestRepo;

/// A draft that publishes, is verified and judged twice, and what follows from it.
const STORY: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "30s"
    [lanes.eyes]
    command = "@agent"
    timeout = "30s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "text", path = "out.txt" }]
    verify = ["test -s out.txt"]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "eyes"
    tree = "none"
    [[jobs]]
    id = "sum"
    role = "author"
    lane = "script"
    needs = ["review"]
    tree = "none"
"#;

fn told() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", STORY);
    repo.agent("draft", "write out.txt text $ATTEMPT\npublish text\ncomplete");
    repo.agent("review.1", "verdict needs_revision --finding 'Text: not yet'");
    repo
}

/// Drives, again after each death, until a driver ends by itself; how often one died.
fn drive_on(repo: &TestRepo) -> (crate::support::Output, u32) {
    for deaths in 0.. {
        let driven = repo.drive();
        if driven.code != -9 {
            return (driven, deaths);
        }
        assert!(deaths < 3, "{driven}");
    }
    unreachable!()
}

fn dies_at(point: &str) {
    let repo = told();
    let run = repo.start("w");
    repo.crash_at(point);
    let (driven, _) = drive_on(&repo);
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
    assert_eq!(repo.count("verdict"), 2, "{}", repo.told());
}

macro_rules! points {
    ($($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            dies_at($point);
        }
    )* };
}

points! {
    a_driver_dies_before_a_registration_is_committed: "register-session.uncommitted",
    a_driver_dies_after_a_registration: "launch.registered",
    a_driver_dies_before_a_launch_is_committed: "supervise start.uncommitted",
    a_driver_dies_after_it_intended_a_launch: "start.intended",
    a_driver_dies_after_it_spawned_a_helper: "start.spawned",
    a_helper_dies_before_it_attached: "supervise attach.uncommitted",
    a_helper_dies_after_it_claimed: "helper.claimed",
    a_helper_dies_before_its_intent_is_committed: "work ack.uncommitted",
    a_helper_dies_after_it_intended_an_agent: "agent.intended",
    a_helper_dies_after_it_spawned_an_agent: "agent.spawned",
    a_helper_dies_after_it_recorded_an_agent: "agent.started",
    a_helper_dies_after_its_agent_ended: "agent.ended",
    a_helper_dies_when_an_artifact_is_kept: "publish.kept",
    a_helper_dies_before_an_artifact_is_published: "work publish.uncommitted",
    a_helper_dies_after_an_artifact_is_published: "work publish.committed",
    a_helper_dies_before_an_answer_is_stored: "work complete.uncommitted",
    a_helper_dies_after_an_answer_is_stored: "work complete.committed",
    a_helper_dies_before_it_intends_a_verification: "verify.uncommitted",
    a_helper_dies_after_it_intended_a_verification: "verify.committed",
    a_helper_dies_while_it_verifies: "verify.spawned",
    a_helper_dies_after_it_checked: "settle.checked",
    a_helper_dies_before_a_seal_is_committed: "seal.uncommitted",
    a_helper_dies_after_it_sealed: "settle.sealed",
}
