//! A process dies by SIGKILL at one named point; another drive ends the run.

use crate::support::{TestRepo, Worker};

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

/// Says it again when the program dies meanwhile.
#[track_caller]
fn says(worker: &Worker<'_>, args: &[&str]) -> crate::support::Output {
    let said = worker.work(args);
    // A shell stands between, which tells of a signal by its number.
    if said.code == 128 + 9 { worker.work(args) } else { said }
}

/// Claims; after a death in between it finds out what it holds.
#[track_caller]
fn takes(worker: &mut Worker<'_>) {
    let claimed = says(worker, &["claim"]);
    worker.fence = if claimed.code == 5 {
        claimed.refused(5, "still_held");
        worker.work(&["show"]).ok().value()["packet"]["fence"].as_i64()
    } else {
        claimed.ok().value()["fence"].as_i64()
    };
    assert!(worker.fence.is_some());
}

/// Nobody drives: workers take the draft, its review and the end, one after the other.
fn worker_dies_at(point: &str) {
    let repo = told();
    let run = repo.start("w");
    let mut author = repo.register("author", "script");
    repo.crash_at(point);
    takes(&mut author);
    says(&author, &["ack"]).ok();
    let work = author.work(&["show"]).ok().value()["packet"]["cwd"].as_str().unwrap().to_owned();
    std::fs::write(std::path::Path::new(&work).join("out.txt"), "text").unwrap();
    says(&author, &["publish", "text"]).ok();
    says(&author, &["complete"]).ok();
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{}", repo.told());
    assert_eq!(repo.job_state("draft"), "completed", "{}", repo.told());
    let mut reviewer = repo.register("reviewer", "eyes");
    takes(&mut reviewer);
    reviewer.work(&["verdict", "accept"]).ok();
    takes(&mut author);
    author.work(&["complete"]).ok();
    repo.check_completed(&run);
}

/// The point is armed while the agent of a job holds.
fn dies_later(job: &str, point: &str) {
    let repo = told();
    repo.agent("sum", "hold sum\ncomplete");
    repo.agent("review.1", "hold review\nverdict needs_revision --finding 'Text: not yet'");
    let run = repo.start("w");
    let mut driver = repo.spawn(&["run", "drive"]);
    let holds = |word: &str| repo.notes().iter().any(|note| note.word == format!("holds {word}"));
    for word in ["review", "sum"] {
        crate::support::wait_until("the agent holds", || holds(word) || driver.has_ended());
        if word == job {
            repo.crash_at(point);
        }
        repo.go(word);
    }
    let mut driven = driver.wait();
    if driven.code == -9 {
        driven = drive_on(&repo).0;
    }
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
    assert_eq!(repo.count("verdict"), 2, "{}", repo.told());
}

#[test]
fn a_helper_dies_before_the_seal_that_reopens_a_job_is_committed() {
    dies_later("review", "seal.uncommitted");
}

#[test]
fn a_helper_dies_after_the_seal_that_reopened_a_job() {
    dies_later("review", "seal.committed");
}

#[test]
fn a_helper_dies_before_the_last_seal_of_a_run_is_committed() {
    dies_later("sum", "seal.uncommitted");
}

#[test]
fn a_helper_dies_after_the_last_seal_of_a_run() {
    dies_later("sum", "seal.committed");
}

#[test]
fn an_operators_verb_that_died_is_said_again() {
    let repo = told();
    repo.trust();
    let says = |point: &str, words: &[&str]| {
        repo.crash_at(point);
        let died = repo.striatum(words);
        assert_eq!(died.code, -9, "{point}: {died}");
        let again = repo.striatum(words);
        assert!([0, 5].contains(&again.code), "{again}");
    };
    says("run prepare.uncommitted", &["run", "prepare", "-w", "w"]);
    assert_eq!(repo.count("run"), 1);
    for place in ["uncommitted", "committed"] {
        says(&format!("run start.{place}"), &["run", "start"]);
        says(&format!("run pause.{place}"), &["run", "pause"]);
        says(&format!("run resume.{place}"), &["run", "resume"]);
        says(&format!("run stop.{place}"), &["run", "stop"]);
        repo.striatum(&["run", "resume"]).ok();
        if place == "uncommitted" {
            repo.striatum(&["run", "cancel", "--reason", "again"]).ok();
            repo.prepare("w");
        }
    }
    repo.drive().ok();
    repo.check_completed("w-2");
}

/// The lane's agent stays; the same two stories through it.
const RESIDENT: &str = r#"
    [lanes.script]
    command = "@agent"
    mode = "loop"
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
"#;

fn resident_dies_at(point: &str) {
    let repo = TestRepo::new();
    repo.workflow("w", RESIDENT);
    repo.agent("draft", "write out.txt text $ATTEMPT\npublish text\ncomplete");
    repo.agent("review.1", "verdict needs_revision --finding 'Text: not yet'");
    let run = repo.start("w");
    repo.crash_at(point);
    let (driven, _) = drive_on(&repo);
    assert!(!repo.is_crash_pending(), "nobody came by {point}\n{driven}");
    assert_eq!(driven.code, 0, "{driven}\n{}", repo.told());
    repo.check_completed(&run);
    assert_eq!(repo.count("verdict"), 2, "{}", repo.told());
}

macro_rules! points {
    ($dies:ident: $($name:ident: $point:literal,)*) => { $(
        #[test]
        fn $name() {
            $dies($point);
        }
    )* };
}

points! { worker_dies_at:
    a_worker_dies_before_its_claim_is_committed: "work claim.uncommitted",
    a_worker_dies_after_it_claimed: "claim.taken",
    a_worker_dies_before_its_ack_is_committed: "work ack.uncommitted",
    a_worker_dies_after_it_acked: "work ack.committed",
    a_worker_dies_when_an_artifact_is_kept: "publish.kept",
    a_worker_dies_before_an_artifact_is_published: "work publish.uncommitted",
    a_worker_dies_after_an_artifact_is_published: "work publish.committed",
    a_worker_dies_before_its_answer_is_stored: "work complete.uncommitted",
    a_worker_dies_after_its_answer_is_stored: "work complete.committed",
    a_worker_dies_after_it_intended_a_verification: "verify.committed",
    a_worker_dies_while_it_verifies: "verify.spawned",
    a_worker_dies_after_it_verified: "verify started.committed",
    a_worker_dies_before_a_seal_is_committed: "seal.uncommitted",
    a_worker_dies_after_it_sealed: "seal.committed",
}

points! { resident_dies_at:
    a_driver_dies_before_a_lane_is_told_to_end: "supervise stop.uncommitted",
    a_driver_dies_after_a_lane_was_told_to_end: "supervise stop.committed",
    a_residents_helper_dies_after_it_attached: "helper.claimed",
    a_residents_helper_dies_before_a_claim_is_committed: "work claim.uncommitted",
    a_residents_helper_dies_after_a_claim: "claim.taken",
    a_residents_helper_dies_before_it_noted_the_claim: "work ack.uncommitted",
    a_residents_helper_dies_after_it_noted_the_claim: "work ack.committed",
    a_residents_helper_dies_after_an_answer: "work complete.committed",
    a_residents_helper_dies_while_it_verifies: "verify.spawned",
    a_residents_helper_dies_before_it_seals: "seal.uncommitted",
    a_residents_helper_dies_after_it_sealed: "seal.committed",
    a_residents_helper_dies_before_it_ends: "supervise end.uncommitted",
    a_residents_helper_dies_after_it_ended: "supervise end.committed",
}

points! { dies_at:
    a_driver_dies_before_a_registration_is_committed: "register-session.uncommitted",
    a_driver_dies_before_it_wrote_a_token: "register-session.committed",
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

#[test]
fn a_run_whose_last_helper_dies_as_it_ends_is_over_whole() {
    let repo = TestRepo::new();
    let job = "[lanes.stay]\ncommand = \"@agent\"\nmode = \"loop\"\ntimeout = \"30s\"\n\
        [[jobs]]\nid = \"two\"\nrole = \"maker\"\nlane = \"stay\"\ntree = \"none\"\n";
    repo.workflow("w", job);
    let run = repo.start("w");
    repo.crash_at("supervise end.uncommitted");
    repo.drive().exits(0);
    assert!(!repo.is_crash_pending(), "{}", repo.told());
    repo.check_completed(&run);
}
