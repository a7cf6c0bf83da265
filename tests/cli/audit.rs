//! `audit verify --run-id`: driven runs are clean, and each rule is found broken by itself and nowhere else.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde_json::Value;
use striatum::domain::audit::RULES;
use striatum::domain::event::{GENESIS, Link, chain_hash};

use super::land::git;
use crate::support::TestRepo;

/// A draft that fails once and is sent back once, a checkpoint, and a landing.
const WHOLE: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    verify = "grep -q total src/total.txt"
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "script"
    [[jobs]]
    id = "ship"
    type = "checkpoint"
    needs = ["review"]
    [[jobs]]
    id = "land"
    type = "land"
    needs = ["ship"]
    into = "main"
"#;

/// The run, to its end.
fn landed() -> TestRepo {
    let repo = TestRepo::with_code();
    git(&repo, &["config", "user.name", "Ada Example"]);
    git(&repo, &["config", "user.email", "ada@example.com"]);
    repo.workflow("w", WHOLE);
    repo.agent("draft", "write src/total.txt total; complete");
    repo.agent("draft.1", "exit 3");
    repo.agent("draft.3", "write src/total.txt 'total of all'; complete");
    repo.agent("review", "verdict accept");
    repo.agent("review.1", "verdict needs_revision --finding 'Title: say all'");
    repo.start("w");
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    repo.drive().exits(4);
    repo.striatum(&["run", "land", "--as-person"]).ok();
    assert_eq!(repo.run_state("w-1"), "completed");
    repo
}

/// Changes rows and events as somebody would who can write the file, and makes the chain whole again.
fn lie(repo: &TestRepo, sql: &str) {
    let store = Connection::open(repo.db()).unwrap();
    let mut statement = store.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))).unwrap();
    let triggers: Vec<(String, String)> = rows.map(Result::unwrap).collect();
    store.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON").unwrap();
    for (name, _) in &triggers {
        store.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    // Room between events, so that a lie can put one there.
    store.execute_batch("UPDATE event SET id = -10 * id; UPDATE event SET id = -id").unwrap();
    store.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    rechain(&store);
    for (_, sql) in &triggers {
        store.execute_batch(sql).unwrap();
    }
}

fn rechain(store: &Connection) {
    let mut statement = store
        .prepare("SELECT id, at, run_id, job_id, session_id, type, principal, body FROM event ORDER BY id")
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut story = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let text = |at: usize| row.get::<_, String>(at).unwrap();
        let number = |at: usize| row.get::<_, Option<i64>>(at).unwrap();
        story.push((
            number(0).unwrap(),
            number(1).unwrap(),
            number(2),
            number(3),
            number(4),
            text(5),
            text(6),
            text(7),
        ));
    }
    let mut previous = GENESIS.to_vec();
    for (index, (old, at, run, job, session, kind, principal, body)) in story.iter().enumerate() {
        let id = i64::try_from(index).unwrap() + 1;
        let (run, job, session) = (*run, *job, *session);
        let link = Link { id, at: *at, run, job, session, kind, principal, body };
        let hash = chain_hash(&previous, &link);
        store
            .execute(
                "UPDATE event SET id = ?1, previous = ?2, hash = ?3 WHERE id = ?4",
                rusqlite::params![id, previous, &hash[..], old],
            )
            .unwrap();
        previous = hash.to_vec();
    }
}

fn judged(report: &Value, judgement: &str) -> BTreeSet<String> {
    let rules = report["checked"].as_array().unwrap().iter();
    rules.filter(|rule| rule["judgement"] == judgement).map(|rule| rule["code"].as_str().unwrap().to_owned()).collect()
}

fn words(list: &str) -> BTreeSet<String> {
    list.split_whitespace().map(str::to_owned).collect()
}

/// An event put right behind another one.
const BEHIND: &str = "INSERT INTO event SELECT id + {at}, at, run_id, {job}, session_id, '{type}', principal, '{body}',
    previous, hash FROM event WHERE id = (SELECT max(id) FROM event WHERE {where})";

fn behind(place: (&str, i64), kind: &str, body: &str, has_job: bool) -> String {
    let job = if has_job { "job_id" } else { "NULL" };
    BEHIND
        .replace("{at}", &place.1.to_string())
        .replace("{job}", job)
        .replace("{type}", kind)
        .replace("{body}", body)
        .replace("{where}", place.0)
}

const OF: &str = "job_id = (SELECT id FROM job WHERE name = ";

/// Each lie, with the rules that find it; what a rule looks at may be what another needs.
fn lies() -> Vec<(&'static str, String)> {
    let of = |job: &str| format!("{OF}'{job}')");
    let snapshot = |path: &str, value: &str| format!("UPDATE snapshot SET body = json_set(body, '{path}', {value})");
    let newest = "id = (SELECT max(id) FROM verdict)";
    vec![
        ("step_illegal", behind(("type = 'job.acked'", 1), "job.acked", "{\"attempt\":1}", true)),
        ("state_untold", "UPDATE job SET state = 'skipped' WHERE name = 'ship'".to_owned()),
        (
            "launched_twice",
            "DROP INDEX execution_agent; UPDATE execution SET attempt = 2 WHERE kind = 'agent' AND attempt = 1
               AND job_id = (SELECT id FROM job WHERE name = 'draft')"
                .to_owned(),
        ),
        (
            "claimed_closed",
            format!(
                "{};{}",
                behind(("type = 'job.claimed'", -1), "run.paused", "{}", false),
                behind(("type = 'job.claimed'", 1), "run.resumed", "{}", false)
            ),
        ),
        ("capacity_passed", snapshot("$.run.max_active_jobs", "0")),
        ("completed_open", "UPDATE job SET settled = 0 WHERE name = 'ship'".to_owned()),
        (
            "cause_unlisted",
            format!(
                "{};{}",
                behind(("type = 'job.requeued'", 1), "run.needs_operator", "{\"cause\":\"bored\"}", false),
                behind(("type = 'job.requeued'", 2), "run.revived", "{\"was\":\"needs_operator\"}", false)
            ),
        ),
        (
            "cause_unlisted",
            format!(
                "{};{}",
                behind(("type = 'job.requeued'", 1), "run.needs_operator", "{\"cause\":\"gate\"}", false),
                behind(("type = 'job.requeued'", 2), "run.revived", "{\"was\":\"needs_operator\"}", false)
            ),
        ),
        ("gate_missing", format!("DELETE FROM event WHERE type = 'gate.approved' AND {}", of("ship"))),
        ("gate_unlike", format!("UPDATE gate SET digest = 'another' WHERE {}", of("ship"))),
        (
            "gate_ignored gate_missing",
            format!(
                "UPDATE event SET type = 'gate.rejected' WHERE type = 'gate.approved' AND {0};
                 UPDATE gate SET state = 'rejected' WHERE {0}",
                of("ship")
            ),
        ),
        ("person_unknown", format!("UPDATE gate SET how = 'a lane' WHERE {}", of("ship"))),
        ("landing_ungated", format!("UPDATE landing SET gate_id = (SELECT id FROM gate WHERE {})", of("ship"))),
        (
            "reject_ignored",
            format!(
                "UPDATE event SET body = json_set(body, '$.verdict', 'reject')
                 WHERE id = (SELECT max(id) FROM event WHERE type = 'verdict.recorded' AND {})",
                of("review")
            ),
        ),
        (
            "reviewer_stale",
            format!(
                "UPDATE event SET session_id = (SELECT min(session_id) FROM event WHERE type = 'job.claimed' AND {})
                 WHERE type = 'job.claimed' AND {}",
                of("draft"),
                of("review")
            ),
        ),
        (
            "reviewer_stale",
            "UPDATE event SET id = (SELECT min(id) + 1 FROM event WHERE type = 'job.claimed')
             WHERE id = (SELECT max(id) FROM event WHERE type = 'session.registered')"
                .to_owned(),
        ),
        ("panel_unmet verdict_stale", format!("UPDATE verdict SET generation = 0 WHERE {newest}")),
        ("panel_unmet", format!("UPDATE verdict SET verdict = 'needs_revision' WHERE {newest}")),
        ("tries_passed", snapshot("$.jobs[0].max_strikes", "1")),
        ("revisions_passed", snapshot("$.jobs[1].revisions", "0")),
        ("budget_passed", behind(("type = 'job.claimed'", -1), "breaker.tripped", "{\"breaker\":\"cost\"}", false)),
        ("launches_passed", "UPDATE run SET launches = 1000".to_owned()),
        (
            "seal_unproven",
            format!(
                "UPDATE attempt SET answer = json_set(answer, '$.summary', 'else') WHERE number = 3 AND {}",
                of("draft")
            ),
        ),
        (
            "escape_passed",
            behind(
                ("type = 'job.queued'", 3),
                "decision.used",
                r#"{"decision":"d9","surface":"process.run","action":"make","left":0}"#,
                true,
            ),
        ),
        (
            "standing_spread",
            "UPDATE event SET type = 'answer.given', body = json_object('standing', json('true'), 'attempt', 3)
             WHERE id = (SELECT max(id) FROM event WHERE type = 'tree.made')"
                .to_owned(),
        ),
        (
            "resource_left",
            "UPDATE event SET type = 'ephemeral.created', body = json_object('resource', 'db', 'attempt', 3)
             WHERE id = (SELECT max(id) FROM event WHERE type = 'tree.made')"
                .to_owned(),
        ),
        ("verify_missing", "UPDATE execution SET exit_code = 1 WHERE kind = 'verify'".to_owned()),
        ("branch_broken", "UPDATE change SET tip_before = 'elsewhere' WHERE attempt = 2".to_owned()),
        ("commit_unlike", "UPDATE change SET tree_hash = 'another'".to_owned()),
        ("scope_passed", snapshot("$.jobs[0].writes", "json('[\"docs/\"]')")),
    ]
}

#[test]
fn every_rule_of_a_driven_run_is_found_broken_by_itself_and_nowhere_else() {
    let repo = landed();
    let clean = repo.json(&["audit", "verify", "--run-id", "w-1"]).ok().value();
    let all: BTreeSet<String> = RULES.iter().map(|rule| rule.code.to_owned()).collect();
    assert_eq!(judged(&clean, "passed"), all, "{clean:#}");
    Connection::open(repo.db()).unwrap().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    let copy = std::fs::read(repo.db()).unwrap();
    let mut tried = BTreeSet::new();
    for (wanted, sql) in lies() {
        lie(&repo, &sql);
        let report = repo.json(&["audit", "verify", "--run-id", "w-1"]).exits(1).value();
        assert_eq!(judged(&report, "violated"), words(wanted), "{sql}\n{report:#}");
        assert!(!report["violations"].to_string().contains("chain_broken"), "{sql}");
        tried.extend(words(wanted));
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(repo.dir().join(format!("striatum.db{end}")));
        }
        std::fs::write(repo.db(), &copy).unwrap();
    }
    assert_eq!(tried, all, "a rule that nobody has seen broken");
}

#[test]
fn what_is_gone_from_the_repository_is_violated_or_said_not_to_be_run() {
    let repo = landed();
    repo.said(&["update-ref", "-d", "refs/striatum/w-1/draft/3"]);
    let report = repo.json(&["audit", "verify", "--run-id", "w-1"]).exits(1).value();
    assert_eq!(judged(&report, "violated"), words("commit_unlike"));
    let place = report["checked"].as_array().unwrap().iter().find(|rule| rule["code"] == "commit_unlike").unwrap();
    assert_eq!(place["seen"][0]["subject"], "draft.3");
    assert_eq!(place["seen"][0]["found"], "its pin is gone");
    lie(&repo, "UPDATE change SET commit_id = '0123456789012345678901234567890123456789' WHERE attempt = 2");
    let report = repo.json(&["audit", "verify", "--run-id", "w-1"]).exits(1).value();
    assert_eq!(judged(&report, "not_run"), words("scope_passed"));
    let shown = repo.striatum(&["audit", "verify", "--run-id", "w-1"]).exits(1);
    assert!(shown.stdout.contains("not run  scope_passed: what draft.2 changed can't be listed"), "{shown}");
    assert!(shown.stdout.contains("VIOLATED commit_unlike"), "{shown}");
}

#[test]
fn a_live_run_is_looked_at_too_and_an_unknown_one_is_refused() {
    let repo = TestRepo::new();
    repo.workflow("w", super::gate::CHECKED);
    repo.agent("draft", "out notes.txt notes; complete");
    repo.start("w");
    let shown = repo.striatum(&["audit", "verify", "--run-id", "w-1"]).ok();
    assert!(shown.stdout.contains("the log is whole and the run kept every rule"), "{shown}");
    repo.json(&["audit", "verify", "--run-id", "w-9"]).refused(2, "not_found");
}
