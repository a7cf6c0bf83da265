//! Plan agreement: each field, disagreeing by damage made by hand, is named before anything is launched, and nothing
//! repairs itself.

use rusqlite::Connection;
use striatum::domain::frozen::Snapshot;
use striatum::domain::workflow::hash;

use super::control::next_commands;
use crate::support::{TestRepo, wait_until};

/// Two jobs that write apart, and one that builds on the first.
const APART: &str = r#"
    [lanes.script]
    command = "@agent"
    max_sessions = 2
    [[jobs]]
    id = "one"
    role = "author"
    lane = "script"
    writes = ["src/one/"]
    verify = "true"
    [[jobs]]
    id = "two"
    role = "author"
    lane = "script"
    writes = ["src/two/"]
    needs = ["one"]
"#;

/// Writes into the store what no verb would write.
fn damage(repo: &TestRepo, sql: &str) {
    let connection = Connection::open(repo.db()).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// A repository in which a run stands before its second job.
fn between() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.agent("one", "write src/one/a.txt hello; complete; hold seen");
    repo.agent("two", "write src/two/b.txt hello; complete");
    repo.workflow("w", APART);
    repo.start("w");
    repo.striatum(&["run", "drive", "--once"]).ok();
    wait_until("the first works", || repo.effects_of("one", "start") == 1);
    repo.striatum(&["run", "pause"]).ok();
    repo.go("seen");
    wait_until("it is sealed", || repo.job_state("one") == "completed");
    repo.drive().exits(5);
    repo.striatum(&["run", "resume"]).ok();
    repo
}

/// Drives to the disagreement about a field; the job, and what was planned and found.
fn disagrees(repo: &TestRepo, job: &str, field: &str) -> (String, String) {
    let before = repo.effects().len();
    let driven = repo.json(&["run", "drive", "--interval", "200ms"]).exits(3).values();
    assert_eq!(repo.effects().len(), before, "nothing was launched");
    assert_eq!(repo.one::<String>("SELECT cause || ' ' || subject FROM run", ()), format!("plan_disagrees {job}"));
    let events = repo.events();
    let told = events.iter().rfind(|event| event.kind == "plan.disagreed").unwrap();
    assert_eq!(told.body["field"], field, "{}", told.body);
    let detail: String =
        repo.one("SELECT detail FROM attempt WHERE outcome = 'plan_disagrees' ORDER BY rowid DESC", ());
    assert!(detail.starts_with(&format!("{field}: planned ")), "{detail}");
    let retry = format!("striatum run retry-job {job} --run-id w-1 --reason '...'");
    assert_eq!(next_commands(driven.last().unwrap()), [retry]);
    let text = |key: &str| told.body[key].as_str().unwrap().to_owned();
    (text("planned"), text("found"))
}

/// After the damage is mended by hand, the verb that the cause names ends it.
fn agrees_again(repo: &TestRepo, job: &str) {
    repo.striatum(&["run", "retry-job", job, "--reason", "mended"]).ok();
    repo.drive().ok();
}

#[test]
fn a_branch_that_somebody_moved_stops_the_next_launch() {
    let repo = between();
    let left = repo.said(&["rev-parse", "striatum/w-1"]);
    let other = repo.said(&["rev-parse", "main"]);
    repo.said(&["update-ref", "refs/heads/striatum/w-1", &other]);
    assert_eq!(disagrees(&repo, "two", "branch"), (left.clone(), other));
    // It is not put back; a retry before that finds the same.
    repo.striatum(&["run", "retry-job", "two", "--reason", "look again"]).ok();
    disagrees(&repo, "two", "branch");
    repo.said(&["update-ref", "refs/heads/striatum/w-1", &left]);
    agrees_again(&repo, "two");
}

#[test]
fn a_branch_in_packed_references_is_found_and_one_that_is_gone_is_named() {
    let repo = between();
    repo.said(&["pack-refs", "--all"]);
    let left = repo.said(&["rev-parse", "striatum/w-1"]);
    repo.said(&["update-ref", "-d", "refs/heads/striatum/w-1"]);
    assert_eq!(disagrees(&repo, "two", "branch"), (left.clone(), "no branch".to_owned()));
    repo.said(&["update-ref", "refs/heads/striatum/w-1", &left]);
    repo.said(&["pack-refs", "--all"]);
    agrees_again(&repo, "two");
}

#[test]
fn work_whose_verification_is_not_there_is_not_built_upon() {
    let repo = between();
    damage(&repo, "UPDATE execution SET exit_code = 1 WHERE kind = 'verify'");
    let (planned, found) = disagrees(&repo, "two", "verification");
    assert_eq!((planned.as_str(), found.as_str()), ("1 verifications of one.1", "0 that passed"));
    damage(&repo, "UPDATE execution SET exit_code = 0 WHERE kind = 'verify'");
    agrees_again(&repo, "two");
}

#[test]
fn a_job_that_is_not_what_was_prepared_is_not_launched() {
    let repo = between();
    let spec: String = repo.one("SELECT spec FROM job WHERE name = 'two'", ());
    damage(&repo, "UPDATE job SET spec = replace(spec, '\"max_strikes\":3', '\"max_strikes\":9') WHERE name = 'two'");
    disagrees(&repo, "two", "job");
    damage(&repo, &format!("UPDATE job SET spec = '{}' WHERE name = 'two'", spec.replace('\'', "''")));
    agrees_again(&repo, "two");
}

#[test]
fn a_run_that_is_not_what_was_prepared_launches_nothing() {
    let repo = between();
    damage(&repo, "UPDATE run SET spec = replace(spec, '\"launches\":14', '\"launches\":99')");
    disagrees(&repo, "two", "run");
    damage(&repo, "UPDATE run SET spec = replace(spec, '\"launches\":99', '\"launches\":14')");
    agrees_again(&repo, "two");
}

#[test]
fn a_snapshot_that_is_not_what_its_hash_says_launches_nothing() {
    let repo = between();
    let trigger: String = repo.one("SELECT sql FROM sqlite_schema WHERE name = 'snapshot_no_update'", ());
    let change = |from: &str, to: &str| {
        damage(
            &repo,
            &format!(
                "DROP TRIGGER snapshot_no_update; UPDATE snapshot SET body = replace(body, '{from}', '{to}'); {trigger}"
            ),
        );
    };
    change("src/two/", "src/three/");
    disagrees(&repo, "two", "snapshot");
    change("src/three/", "src/two/");
    agrees_again(&repo, "two");
}

#[test]
fn two_sessions_can_not_hold_scopes_that_overlap() {
    let repo = TestRepo::with_code();
    repo.workflow("w", &APART.replace("    needs = [\"one\"]\n", ""));
    repo.start("w");
    damage(&repo, "UPDATE job SET spec = replace(spec, 'src/two/', 'src/') WHERE name = 'two'");
    let mut first = repo.register("author", "script");
    let mut second = repo.register("author", "script");
    assert_eq!(first.claims(), "one.1");
    assert_eq!(second.gets_no_work(), "plan_disagrees");
    let events = repo.events();
    let told = events.iter().find(|event| event.kind == "plan.disagreed").unwrap();
    assert_eq!(
        (&told.body["field"], &told.body["planned"], &told.body["found"]),
        (&"scopes".into(), &"src/ for two alone".into(), &"src/one/ held by one".into())
    );
    assert_eq!((repo.job_state("one"), repo.job_state("two")), ("claimed".to_owned(), "waiting_human".to_owned()));
}

#[test]
fn two_drivers_never_launch_scopes_that_overlap() {
    let repo = TestRepo::with_code();
    for job in ["one", "two"] {
        repo.agent(job, "hold on; write src/one/$JOB.txt hello; complete");
    }
    let meet = APART.replace("    needs = [\"one\"]\n", "").replace("src/two/", "src/one/");
    repo.workflow("w", &meet.replace("verify = \"true\"", "allow_overlap = true"));
    repo.start("w");
    may_no_longer_overlap(&repo);
    let drivers: Vec<_> = (0..4).map(|_| repo.spawn(&["run", "drive", "--once"])).collect();
    for driver in drivers {
        driver.wait().ok();
    }
    let (held, other) = ("job.state = 'running'", "job.state = 'waiting_human' AND reason = 'plan_disagrees'");
    wait_until("one works and the other waits for a person", || {
        repo.count(&format!("job WHERE {held}")) == 1 && repo.count(&format!("job WHERE {other}")) == 1
    });
    wait_until("it has started", || repo.effects().len() == 1);
    repo.go("on");
    repo.drive().exits(3);
    // Nothing is in flight any more: now they agree.
    repo.striatum(&["run", "retry-job", "--reason", "the other is done"]).ok();
    repo.drive().ok();
    assert_eq!((repo.effects_of("one", "start"), repo.effects_of("two", "start")), (1, 1));
}

/// Takes `allow_overlap` out of everything that a run goes by, as nobody ever would.
fn may_no_longer_overlap(repo: &TestRepo) {
    let body: String = repo.one("SELECT body FROM snapshot", ());
    let mut snapshot: Snapshot = serde_json::from_str(&body).unwrap();
    for job in &mut snapshot.jobs {
        job.allow_overlap = false;
    }
    let trigger: String = repo.one("SELECT sql FROM sqlite_schema WHERE name = 'snapshot_no_update'", ());
    damage(
        repo,
        &format!(
            "UPDATE job SET spec = replace(spec, '\"allow_overlap\":true', '\"allow_overlap\":false');
             DROP TRIGGER snapshot_no_update; UPDATE snapshot SET hash = '{}',
             body = replace(body, '\"allow_overlap\":true', '\"allow_overlap\":false'); {trigger}",
            hash(&snapshot)
        ),
    );
}
