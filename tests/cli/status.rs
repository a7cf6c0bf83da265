//! `status`, `inbox`, `dashboard`, `run list / summary / graph / explain`: what waits, how runs do, and why.

use serde_json::Value;

use crate::support::{Output, TestRepo, wait_until};

/// A job of every kind that waits for a person, and one behind them.
pub const MIXED: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.me]
    mode = "human"
    [roles.any]
    lanes = ["script", "me"]
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    produces = [{ name = "out", path = "out.txt" }]
    [[jobs]]
    id = "asks"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "fails"
    role = "author"
    lane = "script"
    tree = "none"
    max_strikes = 2
    [[jobs]]
    id = "mine"
    role = "owner"
    lane = "me"
    tree = "none"
    [[jobs]]
    id = "unclear"
    role = "any"
    tree = "none"
    [[jobs]]
    id = "look"
    type = "checkpoint"
    needs = ["draft"]
    [[jobs]]
    id = "last"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["look", "fails"]
"#;

/// A run of it, driven until only a person can go on.
pub fn mixed() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("mixed", MIXED);
    repo.agent("draft", "write out.txt done; complete");
    repo.agent("asks", "ask which-currency");
    repo.agent("fails", "printf '\\033[31mbroken\\033[0m\\n'; exit 3");
    repo.start("mixed");
    repo.drive().exits(3);
    repo
}

/// Every verb that reads, but for those that need a job or a session.
pub const READS: [&[&str]; 11] = [
    &["status"],
    &["inbox"],
    &["run", "list"],
    &["run", "summary"],
    &["run", "graph"],
    &["run", "explain"],
    &["session", "list"],
    &["events"],
    &["dashboard", "--once"],
    &["doctor"],
    &["audit", "verify"],
];

/// A store without a run.
pub fn empty() -> TestRepo {
    let repo = TestRepo::new();
    repo.json(&["run", "start"]).refused(2, "not_found");
    assert!(repo.db().exists());
    repo
}

fn items(report: &Value) -> Vec<String> {
    let item = |item: &Value| {
        let text = |key: &str| item[key].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}", text("kind"), text("id"), text("cause"))
    };
    let mut items: Vec<String> = report["items"].as_array().unwrap().iter().map(item).collect();
    items.sort();
    items
}

fn item<'a>(report: &'a Value, id: &str) -> &'a Value {
    report["items"].as_array().unwrap().iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("{id}: {report}"))
}

/// The command of an item, with a person's words filled in.
fn typed(repo: &TestRepo, next: &Value) -> Output {
    let words: Vec<&str> = next["argv"].as_array().unwrap().iter().skip(1).map(|word| word.as_str().unwrap()).collect();
    let words: Vec<&str> = words.into_iter().map(|word| if word == "'...'" { "euro" } else { word }).collect();
    repo.striatum(&[&words[..], &["--as-person"]].concat())
}

#[test]
fn reads_of_an_empty_store_end_well_and_of_no_store_do_not() {
    let repo = empty();
    for words in READS {
        let text = repo.striatum(words).ok();
        assert!(!text.stdout.is_empty(), "{text}");
        repo.json(words).ok().value();
    }
    let none = TestRepo::new();
    for words in READS {
        let error = none.json(words).refused(9, "no_store");
        assert_eq!(error["next"][0]["argv"], serde_json::json!(["striatum", "init"]));
        none.striatum(words).exits(9);
    }
    assert!(!none.db().exists());
}

#[test]
fn the_inbox_shows_what_waits_with_its_cause_and_the_command_that_ends_it() {
    let repo = mixed();
    let report = repo.json(&["inbox"]).ok().value();
    assert_eq!(report["left_out"], 0);
    assert_eq!(
        items(&report),
        [
            "gate g1 gate",
            "held fails strikes",
            "question asks needs_context",
            "unlaunchable mine human_lane",
            "unlaunchable unclear ambiguous_lane"
        ]
    );
    assert_eq!(item(&report, "fails")["stops_run"], true);
    assert_eq!(item(&report, "asks")["question"]["awaiting"], "which-currency");
    let ages: Vec<&str> =
        report["items"].as_array().unwrap().iter().map(|item| item["since"].as_str().unwrap()).collect();
    assert!(ages.is_sorted_by(|one, other| one >= other), "newest first: {ages:?}");

    typed(&repo, &item(&report, "g1")["next"][0]).ok();
    typed(&repo, &item(&report, "asks")["next"][0]).ok();
    typed(&repo, &item(&report, "fails")["next"][0]).ok();
    let after = repo.json(&["inbox"]).ok().value();
    assert_eq!(items(&after), ["unlaunchable mine human_lane", "unlaunchable unclear ambiguous_lane"]);
}

#[test]
fn status_begins_with_the_inbox() {
    let repo = mixed();
    let text = repo.striatum(&["status"]).ok();
    assert_eq!(text.lines()[0], "inbox: 5 wait for you");
    let line = text.lines().into_iter().find(|line| line.contains("needs_context")).unwrap().to_owned();
    assert!(line.contains("asks") && line.contains("striatum answer asks '...' --run-id mixed-1"), "{text}");
    assert!(text.stdout.contains("awaits which-currency from a-person: answer"), "{text}");
    assert!(text.stdout.contains("mixed-1  needs_operator: fails: strikes"), "{text}");
    assert!(text.stdout.contains("driver: none: striatum run drive --run-id mixed-1"), "{text}");
    assert!(text.stdout.contains("enforcement: advisory"), "{text}");
}

#[test]
fn status_tells_who_drives_and_what_is_in_flight() {
    let repo = TestRepo::new();
    repo.workflow("mixed", MIXED);
    repo.agent("draft", "echo hello; hold x; write out.txt done; complete");
    repo.agent("asks", "hold x; complete");
    repo.agent("fails", "hold x; complete");
    repo.start("mixed");
    let before = repo.json(&["status"]).ok().value();
    assert_eq!(before["runs"][0]["driver"], Value::Null);
    assert_eq!(before["next"][0]["argv"], serde_json::json!(["striatum", "run", "drive", "--run-id", "mixed-1"]));

    let driver = repo.spawn(&["run", "drive", "--interval", "500ms"]);
    wait_until("the draft prints", || {
        let run = &repo.json(&["status"]).ok().value()["runs"][0];
        run["in_flight"].as_array().unwrap().iter().any(|line| line["job"] == "draft" && line["output_bytes"] == 6)
    });
    let run = repo.json(&["run", "summary"]).ok().value()["run"].clone();
    assert_eq!(run["driver"]["pid"], driver.pid());
    assert_eq!(run["state"], "running");
    let draft = run["in_flight"].as_array().unwrap().iter().find(|line| line["job"] == "draft").unwrap();
    assert_eq!((&draft["lane"], &draft["state"], &draft["attempt"]), (&"script".into(), &"running".into(), &1.into()));
    assert!(draft["elapsed_ms"].is_u64());
    let text = repo.striatum(&["status"]).ok();
    assert!(text.stdout.contains(&format!("driver: pid {} on ", driver.pid())), "{text}");
    repo.go("x");
    let _ = driver.wait();
}

#[test]
fn a_run_that_only_waits_is_shown_as_waiting_for_a_person() {
    let repo = TestRepo::new();
    repo.workflow(
        "ask",
        "[lanes.s]\ncommand = \"@agent\"\n[[jobs]]\nid = \"a\"\nrole = \"r\"\nlane = \"s\"\ntree = \"none\"\n",
    );
    repo.agent("a", "ask what");
    repo.start("ask");
    repo.drive().exits(4);
    let summary = repo.json(&["run", "summary"]).ok().value();
    assert_eq!(summary["run"]["state"], "waiting_human");
    assert_eq!(summary["inbox"]["items"][0]["id"], "a");
    assert_eq!(repo.json(&["run", "list"]).ok().value()["runs"][0]["state"], "waiting_human");
}

#[test]
fn what_is_left_out_is_counted() {
    let repo = TestRepo::new();
    let jobs: String =
        (0..120).map(|number| format!("[[jobs]]\nid = \"c{number}\"\ntype = \"checkpoint\"\n")).collect();
    repo.workflow("wide", &jobs);
    repo.start("wide");
    let _ = repo.striatum(&["run", "drive", "--once"]);
    let inbox = repo.json(&["inbox"]).ok().value();
    assert_eq!((inbox["items"].as_array().unwrap().len(), &inbox["left_out"]), (50, &70.into()));
    assert_eq!(repo.json(&["inbox", "--limit", "120"]).ok().value()["left_out"], 0);
    let status = repo.json(&["status"]).ok().value();
    assert_eq!(
        status["inbox"]["items"].as_array().unwrap().len() as u64 + status["inbox"]["left_out"].as_u64().unwrap(),
        120
    );
    let summary = repo.json(&["run", "summary"]).ok().value();
    assert_eq!(summary["run"]["jobs_left_out"], 20);
    assert_eq!(summary["run"]["by_state"]["waiting"], 120);
    assert_eq!(repo.json(&["run", "explain"]).ok().value()["left_out"], 70);
    assert!(repo.striatum(&["status"]).ok().stdout.len() < 4_000);
}

#[test]
fn a_parked_lane_is_one_item_that_names_what_it_keeps() {
    let repo = TestRepo::new();
    repo.workflow("mixed", MIXED);
    repo.start("mixed");
    repo.striatum(&["lane", "pause", "script", "--reason", "the key ran out"]).ok();
    let report = repo.json(&["inbox"]).ok().value();
    let lane = item(&report, "script");
    assert_eq!(
        (&lane["kind"], &lane["cause"], &lane["text"]),
        (&"lane".into(), &"lane_parked".into(), &"the key ran out".into())
    );
    assert!(lane["job"].is_string(), "{lane}");
    typed(&repo, &lane["next"][0]).ok();
    assert!(!items(&repo.json(&["inbox"]).ok().value()).iter().any(|item| item.starts_with("lane")));
}

#[test]
fn a_gate_that_no_driver_has_opened_waits_too() {
    let repo = TestRepo::new();
    repo.workflow("gate", "[[jobs]]\nid = \"go\"\ntype = \"checkpoint\"\n");
    repo.start("gate");
    let report = repo.json(&["inbox"]).ok().value();
    assert_eq!(items(&report), ["gate go gate"]);
    typed(&repo, &report["items"][0]["next"][0]).ok();
    assert_eq!(repo.run_state("gate-1"), "completed");
}

#[test]
fn every_open_job_is_explained_with_what_moves_it() {
    let repo = mixed();
    let report = repo.json(&["run", "explain"]).ok().value();
    let why = |job: &str| report["jobs"].as_array().unwrap().iter().find(|why| why["job"] == job).unwrap().clone();
    let way = |job: &str| {
        why(job)["next"][0]["argv"]
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(report["jobs"].as_array().unwrap().len(), 6);
    assert_eq!(why("asks")["why"], "needs_context: awaits which-currency from a-person");
    assert_eq!(why("fails")["cause"], "strikes");
    assert_eq!(way("mine"), "striatum take mine --run-id mixed-1");
    assert_eq!(way("unclear"), "striatum run amend unclear --run-id mixed-1 --set lane=script --reason '...'");
    assert_eq!(way("look"), "striatum gate approve g1 --run-id mixed-1");
    assert_eq!(why("last")["why"], "needs fails (failed), look (waiting)");
    assert_eq!(way("last"), "striatum run explain fails --run-id mixed-1");
    let one = repo.json(&["run", "explain", "draft"]).ok().value();
    assert_eq!(one["jobs"][0]["moved_by"], "nothing: it is settled");
    repo.json(&["run", "explain", "nobody"]).refused(2, "not_found");
}

#[test]
fn a_queued_job_without_a_driver_says_what_one_would_do() {
    let repo = TestRepo::new();
    repo.workflow("mixed", MIXED);
    repo.start("mixed");
    let report = repo.json(&["run", "explain", "draft"]).ok().value();
    assert_eq!(report["jobs"][0]["why"], "offered to author/script; a driver would launch/draft.1 now");
    assert_eq!(report["jobs"][0]["next"][0]["argv"][2], "drive");
    assert!(report["planned"].as_array().unwrap().contains(&"launch/draft.1".into()), "{report}");
    repo.striatum(&["run", "pause"]).ok();
    assert_eq!(repo.json(&["run", "explain", "draft"]).ok().value()["jobs"][0]["why"], "offered; the run is paused");
}

#[test]
fn the_graph_shows_where_each_job_is() {
    let repo = mixed();
    insta::assert_snapshot!(repo.striatum(&["run", "graph"]).ok(), @r"
    $ striatum run graph
    1  draft    generic     author/script  [completed]
       asks     generic     author/script  [waiting_human]
       fails    generic     author/script  [failed]
       mine     generic     owner/me       [queued]
       unclear  generic     any            [queued]
    2  look     checkpoint                 [waiting] <- draft
    3  last     generic     author/script  [waiting] <- look, fails
    ");
    assert!(repo.striatum(&["run", "graph", "--format", "mermaid"]).ok().stdout.starts_with("flowchart TD\n"));
    assert!(repo.striatum(&["run", "graph", "--format", "dot"]).ok().stdout.starts_with("digraph run {\n"));
}

#[test]
fn the_dashboard_fits_the_screen_and_cuts_no_command() {
    let repo = mixed();
    let screen = repo.run(repo.command(&["dashboard", "--once"]).env("COLUMNS", "60")).ok();
    for line in screen.lines() {
        assert!(line.chars().count() <= 60 || line.contains("striatum "), "{line}");
    }
    assert!(screen.stdout.contains("striatum gate approve g1 --run-id mixed-1"), "{screen}");
    assert!(screen.stdout.contains("run.needs_operator"), "{screen}");
    repo.json(&["dashboard"]).refused(8, "not_yet");
}

#[test]
fn of_several_runs_reads_take_the_live_one_and_say_which() {
    let repo = TestRepo::new();
    repo.workflow("gate", "[[jobs]]\nid = \"go\"\ntype = \"checkpoint\"\n");
    let first = repo.start("gate");
    repo.striatum(&["run", "cancel", "--run-id", &first, "--reason", "no"]).ok();
    let second = repo.start("gate");
    let third = repo.prepare("gate");
    repo.striatum(&["run", "cancel", "--run-id", &third, "--reason", "no"]).ok();
    let summary = repo.striatum(&["run", "summary"]).ok();
    assert!(summary.stdout.starts_with(&format!("{second}  ")), "{summary}");
    assert!(summary.stderr.contains(&second), "{summary}");
    let status = repo.json(&["status"]).ok().value();
    assert_eq!(status["runs"].as_array().unwrap().len(), 1);
    assert_eq!(status["runs"][0]["run"], second);
    assert_eq!(repo.json(&["run", "summary", "--run-id", &first]).ok().value()["run"]["state"], "canceled");
    repo.json(&["run", "summary", "--run-id", "gate-9"]).refused(2, "not_found");
}
