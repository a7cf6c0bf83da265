//! `job show`, `logs`, `supervise logs`, `events`: one job in full, what was printed, what happened.

use serde_json::Value;

use super::drive::REVIEWED;
use super::status::mixed;
use crate::support::{TestRepo, wait_until};

#[test]
fn a_job_is_shown_with_its_attempts_and_why_it_is_there() {
    let repo = mixed();
    let job = repo.json(&["job", "show", "fails"]).ok().value();
    assert_eq!((&job["state"], &job["reason"]), (&"failed".into(), &"strikes".into()));
    assert_eq!(job["strikes"], serde_json::json!({"used": 2, "limit": 2}));
    assert_eq!(job["attempts"].as_array().unwrap().len(), 2);
    assert_eq!((&job["attempts"][0]["number"], &job["attempts"][1]["number"]), (&2.into(), &1.into()));
    assert_eq!(job["attempts"][0]["outcome"], "failed");
    let agent = &job["attempts"][0]["executions"][0];
    assert_eq!((&agent["kind"], &agent["state"], &agent["exit_code"]), (&"agent".into(), &"exited".into(), &3.into()));
    assert_eq!(job["needed_by"][0]["job"], "last");
    assert_eq!(job["why"]["next"][0]["argv"][2], "retry-job");
    assert!(std::path::Path::new(job["paths"]["output"].as_str().unwrap()).exists());
    let kinds: Vec<&str> =
        job["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.last(), Some(&"job.failed"));

    let draft = repo.json(&["job", "show", "draft"]).ok().value();
    let artifact = &draft["attempts"][0]["artifacts"][0];
    assert_eq!(std::fs::read_to_string(artifact["path"].as_str().unwrap()).unwrap(), "done\n");
    let asks = repo.json(&["job", "show", "asks"]).ok().value();
    assert_eq!(asks["question"]["awaiting"], "which-currency");
    assert!(
        repo.striatum(&["job", "show", "asks"]).ok().stdout.contains("awaits which-currency from a-person: answer")
    );
    repo.json(&["job", "show", "nobody"]).refused(2, "not_found");
}

#[test]
fn a_reviewed_job_shows_its_verdicts_and_which_are_void() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("review.1", "verdict needs_revision --finding 'bad: worse'");
    repo.start("w");
    repo.drive().ok();
    let draft = repo.json(&["job", "show", "draft"]).ok().value();
    assert_eq!(draft["verdicts"][0]["verdict"], "accept");
    let review = repo.json(&["job", "show", "review"]).ok().value();
    let verdicts: Vec<(&str, bool)> = review["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["verdict"].as_str().unwrap(), line["void"].as_bool().unwrap()))
        .collect();
    assert_eq!(verdicts, [("accept", false), ("needs_revision", true)]);
    assert_eq!(review["reviews"], "draft");
    assert!(repo.striatum(&["job", "show", "review"]).ok().stdout.contains("  bad: worse\n"));
}

#[test]
fn logs_show_the_end_of_what_was_printed_and_nothing_that_controls_a_terminal() {
    let repo = mixed();
    assert_eq!(repo.striatum(&["logs", "fails"]).ok().stdout, "broken\n");
    let report = repo.json(&["logs", "fails", "--attempt", "1"]).ok().value();
    assert_eq!(
        (&report["text"], &report["attempt"], &report["is_over"]),
        (&"broken\n".into(), &1.into(), &true.into())
    );
    repo.json(&["logs", "fails", "--attempt", "3"]).refused(2, "not_found");
    let nobody = repo.striatum(&["logs", "mine"]).ok();
    assert_eq!((nobody.stdout.as_str(), nobody.stderr.as_str()), ("", "nobody has taken mine yet\n"));

    let session = report["session"].as_str().unwrap().to_owned();
    std::fs::write(repo.dir().join("scratch").join(&session).join("helper.log"), "one\ntwo\nthree\n").unwrap();
    assert_eq!(
        repo.striatum(&["supervise", "logs", "--session-id", &session, "--tail", "2"]).ok().stdout,
        "two\nthree\n"
    );
    let helper = repo.striatum(&["logs", "fails", "--attempt", "1", "--helper", "--tail", "1"]).ok();
    assert_eq!((helper.stdout.as_str(), helper.stderr.as_str()), ("three\n", "(8 bytes before this are not shown)\n"));
}

#[test]
fn whoever_follows_a_log_sees_it_grow_and_is_let_go_at_its_end() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("draft", "echo first; hold x; echo second; printf unended; complete");
    repo.start("w");
    let follower = repo.spawn(&["logs", "draft", "--follow"]);
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    follower.wait_for_line("first");
    repo.go("x");
    let followed = follower.wait().ok();
    let lines: Vec<&str> = followed.lines();
    assert_eq!(lines[..2], ["first", "second"]);
    assert!(lines[2].starts_with("unended"), "{followed}");
    driver.wait().ok();
}

fn ids(report: &Value) -> Vec<i64> {
    report["events"].as_array().unwrap().iter().map(|event| event["id"].as_i64().unwrap()).collect()
}

#[test]
fn events_come_in_parts_that_join_without_a_gap() {
    let repo = mixed();
    let total = repo.events().len();
    let newest = repo.json(&["events", "--limit", "5"]).ok().value();
    assert_eq!(newest["left_out"], total - 5);
    assert_eq!(ids(&newest), (total as i64 - 4..=total as i64).collect::<Vec<_>>());
    let (mut seen, mut cursor) = (Vec::new(), 0);
    loop {
        let part = repo.json(&["events", "--after", &cursor.to_string(), "--limit", "7"]).ok().value();
        assert_eq!(part["left_out"].as_u64().unwrap() as usize, total - seen.len() - ids(&part).len());
        if ids(&part).is_empty() {
            break;
        }
        seen.extend(ids(&part));
        cursor = part["cursor"].as_i64().unwrap();
    }
    assert_eq!(seen, (1..=total as i64).collect::<Vec<_>>());
    let job = repo.json(&["events", "--job", "asks", "--after", "0"]).ok().value();
    assert!(job["events"].as_array().unwrap().iter().all(|event| event["job"] == "asks"), "{job}");
    assert_eq!(
        repo.json(&["events", "--all", "--limit", "1000"]).ok().value()["events"].as_array().unwrap().len(),
        total
    );
}

#[test]
fn whoever_follows_events_gets_each_once_until_the_run_is_over() {
    let repo = TestRepo::new();
    repo.workflow("w", REVIEWED);
    repo.agent("draft", "hold x; complete");
    repo.start("w");
    let mut command = repo.command(&["events", "--follow", "--after", "0"]);
    command.arg("--json");
    let follower = repo.spawn_command(command);
    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    follower.wait_for_line("job.acked");
    repo.go("x");
    driver.wait().ok();
    let told = follower.wait().ok().values();
    let ids: Vec<i64> = told.iter().map(|event| event["id"].as_i64().unwrap()).collect();
    let until = repo.events().iter().find(|event| event.kind == "run.completed").unwrap().id;
    assert!(ids.contains(&until), "{ids:?}");
    assert_eq!(ids, (1..=*ids.last().unwrap()).collect::<Vec<_>>());
    wait_until("every lane has ended", || repo.count("supervisor WHERE ended_at IS NULL") == 0);
}
