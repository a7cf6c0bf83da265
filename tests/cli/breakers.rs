//! Breakers through the real program: each trips, is told, shows its value, and is raised by the command it prints.

use serde_json::Value;

use super::control::{ONE, next_commands};
use super::drive::REVIEWED;
use crate::support::{TestRepo, wait_until};

/// Two jobs, one after the other, in one lane.
const CHAIN: &str = r#"
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "after"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["draft"]
"#;

/// Two jobs side by side, one at a time in each lane.
const SIDE: &str = r#"
    [lanes.script]
    command = "@agent"
    [lanes.other]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "beside"
    role = "helper"
    lane = "other"
    tree = "none"
    [[jobs]]
    id = "after"
    role = "author"
    lane = "script"
    tree = "none"
    needs = ["draft"]
"#;

/// An answer that reports what it cost.
fn costs(usd: f64) -> String {
    format!(
        "result '{{\"schema\":\"striatum.result/1\",\"status\":\"DONE\",\
         \"usage\":{{\"cost_usd\":{usd},\"input_tokens\":100,\"output_tokens\":10}}}}'"
    )
}

fn start(repo: &TestRepo, budget: &str, workflow: &str) {
    repo.workflow("w", &format!("[budget]\n{budget}\n{workflow}"));
    repo.start("w");
}

/// A meter of the run's summary.
fn meter(repo: &TestRepo, breaker: &str, job: Option<&str>) -> Value {
    let summary = repo.json(&["run", "summary"]).ok().value();
    let meters = summary["run"]["budget"].as_array().unwrap().clone();
    let found = meters.into_iter().find(|meter| meter["breaker"] == breaker && meter["job"].as_str() == job);
    found.unwrap_or_else(|| panic!("no meter {breaker} {job:?}: {summary}"))
}

/// The bodies of the trips that were told.
fn trips(repo: &TestRepo) -> Vec<Value> {
    let bodies = repo.rows("SELECT body FROM event WHERE type = 'breaker.tripped' ORDER BY id");
    bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
}

fn names(trips: &[Value]) -> Vec<&str> {
    trips.iter().map(|trip| trip["breaker"].as_str().unwrap()).collect()
}

/// Drives to `needs_operator` for a cause; the commands that the driver proposes.
fn stops_for(repo: &TestRepo, cause: &str) -> Vec<String> {
    let driven = repo.json(&["run", "drive", "--interval", "200ms"]).exits(3).values();
    assert_eq!(repo.one::<String>("SELECT cause FROM run", ()), cause);
    next_commands(driven.last().unwrap())
}

/// Types a proposed command with a reason in the place of the dots.
fn type_it(repo: &TestRepo, command: &str) {
    let command = command.replace("'...'", "because");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    repo.striatum(&words).ok();
}

#[test]
fn what_costs_too_much_launches_nothing_more_until_the_budget_is_raised() {
    let repo = TestRepo::new();
    repo.agent("draft", &costs(1.5));
    repo.agent("after", &costs(0.25));
    start(&repo, "cost_usd = 1", CHAIN);
    let next = stops_for(&repo, "cost");
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
    assert_eq!(next, ["striatum run amend --run-id w-1 --set budget.cost_usd=3 --reason '...'"]);
    let told = trips(&repo);
    assert_eq!(names(&told), ["cost"]);
    assert_eq!((&told[0]["value"], &told[0]["limit"]), (&"$1.50".into(), &"$1.00".into()));
    let shown = meter(&repo, "cost", None);
    assert_eq!(
        (&shown["used"], &shown["limit"], &shown["tripped"]),
        (&1_500_000.into(), &1_000_000.into(), &true.into())
    );
    // Nothing has changed: the driver says the same again, and tells no second trip.
    assert_eq!(stops_for(&repo, "cost"), next);
    type_it(&repo, &next[0]);
    repo.drive().ok();
    assert_eq!(meter(&repo, "cost", None)["used"], 1_750_000);
    assert_eq!(trips(&repo).len(), 1);
    let summary = repo.json(&["run", "summary"]).ok().value();
    assert_eq!((&summary["run"]["input_tokens"], &summary["run"]["output_tokens"]), (&200.into(), &20.into()));
}

#[test]
fn a_budget_of_money_that_is_used_up_by_the_last_job_stops_nothing() {
    let repo = TestRepo::new();
    repo.agent("draft", &costs(5.0));
    start(&repo, "cost_usd = 1", ONE);
    repo.drive().ok();
    assert_eq!(names(&trips(&repo)), Vec::<&str>::new());
}

#[test]
fn a_cost_beyond_belief_spends_the_budget_and_one_below_nothing_is_no_answer() {
    for usd in [1e9, 1e300] {
        let repo = TestRepo::new();
        repo.agent("draft", &costs(usd));
        start(&repo, "cost_usd = 1", CHAIN);
        repo.drive().exits(3);
        assert_eq!(names(&trips(&repo)), ["cost"], "{usd}");
    }
    let repo = TestRepo::new();
    repo.agent("draft", &costs(-5.0));
    start(&repo, "cost_usd = 1", CHAIN);
    repo.drive().exits(3);
    assert_eq!(repo.rows("SELECT DISTINCT outcome FROM attempt"), ["invalid_result"]);
    assert_eq!(repo.count("run WHERE cost_micro_usd <> 0"), 0);
}

#[test]
fn a_refused_answer_costs_as_much_as_a_sealed_one() {
    let repo = TestRepo::new();
    repo.agent(
        "draft.1",
        &costs(0.5).replace(
            "DONE\"",
            "BLOCKED\",\"blocked_reason\":{\"awaiting\":\"key\",\"who\":\"a person\",\"action\":\"give it\"}",
        ),
    );
    start(&repo, "cost_usd = 3", ONE);
    repo.drive().exits(3);
    assert_eq!(meter(&repo, "cost", None)["used"], 500_000);
    repo.agent("draft.2", "echo '{\"type\":\"result\",\"total_cost_usd\":0.75}'; complete");
    repo.striatum(&["answer", "draft", "here", "--as-person"]).ok();
    repo.drive().ok();
    assert_eq!(meter(&repo, "cost", None)["used"], 1_250_000, "the output of an agent tells it too");
}

#[test]
fn a_session_that_nobody_hosts_gets_nothing_when_the_money_is_spent() {
    let repo = TestRepo::new();
    start(&repo, "cost_usd = 1", SIDE);
    let mut worker = repo.register("author", "script");
    worker.claim();
    worker.work(&["ack"]).ok();
    let answer = "{\"schema\":\"striatum.result/1\",\"status\":\"DONE\",\"usage\":{\"cost_usd\":2}}";
    repo.write("answer.json", answer);
    let file = repo.file("answer.json").display().to_string();
    worker.work(&["complete", "--result", &file]).ok();
    assert_eq!(worker.gets_no_work(), "cost");
    // A person may go on, whatever it costs.
    repo.striatum(&["take", "after", "--as-person"]).ok();
}

#[test]
fn working_time_is_charged_and_what_waits_for_a_person_is_not() {
    let repo = TestRepo::new();
    repo.agent("draft", "hold word; ask what");
    start(&repo, "active_time = \"1h\"", ONE);
    let charged = || repo.one::<i64>("SELECT active_ms FROM run", ());
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the agent works", || repo.effects_of("draft", "start") == 1);
    repo.clock(0, 59_000, None);
    wait_until("a minute is written down", || charged() >= 59_000);
    repo.go("word");
    driver.wait().exits(4);
    let worked = charged();
    assert!((59_000..110_000).contains(&worked), "{worked}");
    // Nobody drives.
    repo.clock(0, 2 * 3_600_000, None);
    repo.drive().exits(4);
    // A driver waits for a person.
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms", "--wait-human"]);
    wait_until("it drives", || !repo.json(&["run", "summary"]).ok().value()["run"]["driver"].is_null());
    repo.clock(0, 4 * 3_600_000, None);
    repo.agent("draft", "complete");
    repo.striatum(&["answer", "draft", "this", "--as-person"]).ok();
    driver.wait().ok();
    assert!(charged() < worked + 30_000, "{}", charged());
    assert_eq!(meter(&repo, "active_time", None)["used"], charged());
}

#[test]
fn working_time_that_is_spent_launches_nothing_more_until_it_is_raised() {
    let repo = TestRepo::new();
    repo.agent("draft", "hold word; complete");
    start(&repo, "active_time = \"200ms\"", CHAIN);
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("the time is up", || repo.one::<i64>("SELECT active_ms FROM run", ()) >= 200);
    repo.go("word");
    driver.wait().exits(3);
    assert_eq!(repo.one::<String>("SELECT cause FROM run", ()), "active_time");
    assert_eq!(repo.effect_lines(), ["draft.1 start"]);
    assert_eq!((names(&trips(&repo)), &trips(&repo)[0]["limit"]), (vec!["active_time"], &"200ms".into()));
    let shown = meter(&repo, "active_time", None);
    assert!(shown["used"].as_u64().unwrap() >= 200 && shown["tripped"] == true, "{shown}");
    let next = next_commands(&shown)[0].clone();
    assert!(next.starts_with("striatum run amend --run-id w-1 --set budget.active_time="), "{next}");
    type_it(&repo, "striatum run amend --run-id w-1 --set budget.active_time=1h --reason '...'");
    repo.drive().ok();
}

#[test]
fn silence_is_told_at_once_and_stops_the_run_when_nothing_else_can_move() {
    let repo = TestRepo::new();
    repo.agent("draft", "hold word; complete");
    repo.agent("beside", "until [ -e \"$AGENT/go-on\" ]; do echo alive; sleep 0.05; done; complete");
    start(&repo, "no_progress = \"600ms\"", SIDE);
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    wait_until("both work", || repo.effects().len() == 2);
    repo.go("on");
    driver.wait().exits(3);
    assert_eq!(repo.one::<String>("SELECT cause || ' ' || subject FROM run", ()), "no_progress draft");
    assert_eq!((names(&trips(&repo)), repo.job_state("draft")), (vec!["no_progress"], "running".to_owned()));
    let inbox = repo.json(&["inbox"]).ok().value();
    assert_eq!(inbox["items"][0]["cause"], "no_progress", "{inbox}");
    let shown = meter(&repo, "no_progress", None);
    assert!(shown["tripped"] == true && shown["limit"] == 600, "{shown}");
    // Still silent: the next driver says so at once, and nothing was ended by any of this.
    let next = stops_for(&repo, "no_progress");
    assert_eq!(next, ["striatum run amend --run-id w-1 --set budget.no_progress=1s --reason '...'"]);
    type_it(&repo, "striatum run amend --run-id w-1 --set budget.no_progress=1h --reason '...'");
    assert_eq!(repo.run_state("w-1"), "running");
    let driver = repo.spawn(&["run", "drive", "--interval", "50ms"]);
    repo.go("word");
    driver.wait().ok();
    assert_eq!(repo.effect_lines(), ["after.1 start", "beside.1 start", "draft.1 start"]);
}

#[test]
fn what_was_silent_and_moves_again_goes_on_by_itself() {
    let repo = TestRepo::new();
    repo.agent("draft", "hold word; complete");
    start(&repo, "no_progress = \"300ms\"", ONE);
    repo.striatum(&["run", "drive", "--interval", "50ms"]).exits(3);
    repo.go("word");
    // The helper seals without a driver, and the run ends with its last job.
    wait_until("it is sealed", || repo.run_state("w-1") == "completed");
}

#[test]
fn the_breakers_of_a_job_are_told_and_raised_by_name() {
    let repo = TestRepo::new();
    repo.agent("draft.1", "fail badly");
    repo.agent("draft.2", "hang");
    start(
        &repo,
        "launches = 9",
        &ONE.replace("tree = \"none\"", "tree = \"none\"\nmax_strikes = 2\ntimeout = \"300ms\""),
    );
    stops_for(&repo, "strikes");
    assert_eq!(names(&trips(&repo)), ["timeout", "strikes"]);
    let shown = meter(&repo, "strikes", Some("draft"));
    assert_eq!((&shown["used"], &shown["limit"], &shown["tripped"]), (&2.into(), &2.into(), &true.into()));
    let next = next_commands(&shown);
    assert_eq!(next[1], "striatum run amend draft --run-id w-1 --set max_strikes=4 --reason '...'");
    type_it(&repo, &next[1]);
    type_it(&repo, "striatum run amend draft --run-id w-1 --set timeout=1m --reason '...'");
    type_it(&repo, &next[0]);
    repo.drive().ok();
}

#[test]
fn revisions_that_are_spent_are_told_and_raised() {
    let repo = TestRepo::new();
    repo.agent("review", "verdict needs_revision --finding \"Title: say more, $ATTEMPT\"");
    start(&repo, "launches = 20", &REVIEWED.replacen("lane = \"eyes\"", "lane = \"eyes\"\nrevisions = 1", 1));
    stops_for(&repo, "revisions");
    assert_eq!(names(&trips(&repo)), ["revisions"]);
    let shown = meter(&repo, "revisions", Some("review"));
    let next = next_commands(&shown).pop().unwrap();
    assert_eq!(next, "striatum run amend review --run-id w-1 --set revisions=2 --reason '...'");
    type_it(&repo, &next);
    repo.agent("review", "verdict accept");
    type_it(&repo, "striatum run retry-job review --run-id w-1 --reason '...'");
    repo.drive().ok();
}

#[test]
fn requeues_and_limits_of_lanes_are_raised_by_name() {
    let repo = TestRepo::new();
    repo.crash_at("agent.intended");
    start(&repo, "requeues = 0", ONE);
    stops_for(&repo, "requeues");
    assert_eq!(names(&trips(&repo)), ["requeues"]);
    let next = next_commands(&meter(&repo, "requeues", Some("draft"))).pop().unwrap();
    assert_eq!(next, "striatum run amend --run-id w-1 --set budget.requeues=2 --reason '...'");
    type_it(&repo, &next);
    type_it(&repo, "striatum run amend --set lanes.script.idle_timeout=10m --reason '...'");
    type_it(&repo, "striatum run amend --set lanes.script.timeout=10m --reason '...'");
    repo.striatum(&["run", "amend", "--set", "lanes.other.timeout=10m", "--reason", "why"]).exits(2);
    type_it(&repo, "striatum run retry-job draft --run-id w-1 --reason '...'");
    repo.drive().ok();
}

#[test]
fn an_idle_attempt_is_told_as_a_breaker_of_its_own() {
    let repo = TestRepo::new();
    repo.agent("draft.1", "exec sleep 3600");
    let idle = ONE.replacen("command = \"@agent\"", "command = \"@agent\"\nidle_timeout = \"300ms\"", 1);
    start(&repo, "launches = 9", &idle);
    repo.drive().ok();
    let told = trips(&repo);
    assert_eq!((names(&told), &told[0]["limit"]), (vec!["idle_timeout"], &"300ms".into()));
}

#[test]
fn prepare_names_lanes_that_report_no_cost_and_refuses_a_remainder_of_nothing() {
    let repo = TestRepo::new();
    repo.workflow("w", &format!("[budget]\ncost_usd = 1\n{ONE}"));
    repo.trust();
    let prepared = repo.striatum(&["run", "prepare", "--workflow", "w"]).ok();
    assert!(
        prepared.stdout.contains("not known to report a cost") && prepared.stdout.contains("lane script"),
        "{prepared}"
    );
    let asks = ONE.replace("command = \"@agent\"", "command = [\"sh\", \"-c\", \"echo $0\", \"${budget.cost_left}\"]");
    repo.workflow("x", &asks);
    repo.trust();
    let refused = repo.json(&["run", "prepare", "--workflow", "x"]).refused(8, "invalid_workflow");
    assert_eq!(refused["message"], "lane script is given ${budget.cost_left}, and the run has no budget.cost_usd");
    repo.workflow("x", &format!("[budget]\ncost_usd = 2.5\n{asks}"));
    repo.start("x");
    repo.striatum(&["run", "drive", "--run-id", "x-1"]).ok();
    let logs = repo.striatum(&["logs", "draft", "--run-id", "x-1"]).ok();
    assert!(logs.stdout.contains("2.50"), "{logs}");
}
