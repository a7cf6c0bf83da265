//! The closed table from each cause that stops a run to the verbs that end it: every printed command is typed.

use serde_json::Value;
use striatum::domain::job::Cause;

use super::control::ONE;
use super::drive::REVIEWED;
use super::gate::CHECKED;
use super::land::{self, LANDS};
use crate::support::{TestRepo, kill, wait_until};

/// How a run comes to a stop for a cause, and what a person mends beside typing the command.
struct Stop {
    cause: Cause,
    /// The exit of `run drive`: 4 when nothing is broken.
    exit: i32,
    /// Brings the run to the stop.
    come: fn(&TestRepo),
    /// What changes in the world before the command helps.
    mend: fn(&TestRepo),
}

/// Causes that no run of this version comes to.
const LATER: [Cause; 1] = [Cause::Conflict];

const NOTHING: fn(&TestRepo) = |_| {};

const STOPS: [Stop; 20] = [
    Stop { cause: Cause::Gate, exit: 4, come: gate, mend: NOTHING },
    Stop { cause: Cause::NeedsContext, exit: 4, come: |repo| one(repo, "ask what"), mend: NOTHING },
    Stop { cause: Cause::AmbiguousLane, exit: 4, come: ambiguous, mend: NOTHING },
    Stop { cause: Cause::HumanLane, exit: 4, come: human, mend: NOTHING },
    Stop { cause: Cause::UnknownOutcome, exit: 4, come: unknown, mend: NOTHING },
    Stop { cause: Cause::Untrusted, exit: 4, come: untrusted, mend: NOTHING },
    Stop { cause: Cause::AgentBlocked, exit: 3, come: |repo| one(repo, "block key"), mend: NOTHING },
    Stop { cause: Cause::Strikes, exit: 3, come: |repo| struck(repo, "max_strikes = 1"), mend: NOTHING },
    Stop { cause: Cause::Requeues, exit: 3, come: requeued, mend: NOTHING },
    Stop { cause: Cause::Revisions, exit: 3, come: revised, mend: |repo| repo.agent("review", "verdict accept") },
    Stop { cause: Cause::Environment, exit: 3, come: environment, mend: make_tool },
    Stop { cause: Cause::Launches, exit: 3, come: launched, mend: NOTHING },
    Stop { cause: Cause::Cost, exit: 3, come: costly, mend: NOTHING },
    Stop { cause: Cause::ActiveTime, exit: 3, come: overtime, mend: NOTHING },
    Stop { cause: Cause::NoProgress, exit: 3, come: silent, mend: |repo| repo.go("on") },
    Stop { cause: Cause::PlanDisagrees, exit: 3, come: branch_moved, mend: branch_back },
    Stop { cause: Cause::LaneParked, exit: 3, come: parked, mend: NOTHING },
    Stop { cause: Cause::GateRejected, exit: 3, come: rejected, mend: NOTHING },
    Stop { cause: Cause::Landing, exit: 3, come: in_the_way, mend: merge_by_hand },
    Stop { cause: Cause::Other, exit: 3, come: damaged, mend: mend_artifact },
];

fn start(repo: &TestRepo, workflow: &str) {
    repo.workflow("w", workflow);
    repo.start("w");
}

fn one(repo: &TestRepo, instructions: &str) {
    repo.agent("draft.1", instructions);
    start(repo, ONE);
}

fn struck(repo: &TestRepo, limit: &str) {
    repo.agent("draft.1", "fail badly");
    start(repo, &ONE.replace("tree = \"none\"", &format!("tree = \"none\"\n{limit}")));
}

fn gate(repo: &TestRepo) {
    repo.agent("draft", "write notes.txt hello; complete");
    start(repo, CHECKED);
}

fn rejected(repo: &TestRepo) {
    gate(repo);
    repo.drive().exits(4);
    repo.striatum(&["gate", "reject", "ship", "--as-person"]).ok();
}

fn ambiguous(repo: &TestRepo) {
    let two = ONE.replacen("[[jobs]]", "[lanes.other]\ncommand = \"@agent\"\n[[jobs]]", 1);
    start(repo, &two.replace("    lane = \"script\"\n", ""));
}

fn human(repo: &TestRepo) {
    start(repo, &ONE.replace("command = \"@agent\"", "mode = \"human\""));
}

/// The helper and its agent die while the job reaches outside.
fn unknown(repo: &TestRepo) {
    repo.agent("draft.1", "hold word; complete");
    start(repo, &ONE.replace("tree = \"none\"", "tree = \"none\"\noutward = true"));
    repo.striatum(&["gate", "approve", "draft", "--as-person"]).ok();
    repo.striatum(&["run", "drive", "--once"]).ok();
    wait_until("the agent works", || repo.effects_of("draft", "start") == 1);
    kill(repo.one("SELECT pid FROM supervisor", ()));
    kill(repo.agent_pid("draft").unwrap());
}

fn untrusted(repo: &TestRepo) {
    start(repo, ONE);
    std::fs::remove_dir_all(repo.root().join("state/striatum")).unwrap();
}

fn requeued(repo: &TestRepo) {
    repo.crash_at("agent.intended");
    start(repo, &format!("[budget]\nrequeues = 0\n{ONE}"));
}

fn revised(repo: &TestRepo) {
    repo.agent("review", "verdict needs_revision --finding \"Title: say more, $ATTEMPT\"");
    start(repo, &REVIEWED.replacen("lane = \"eyes\"", "lane = \"eyes\"\nrevisions = 1", 1));
}

fn environment(repo: &TestRepo) {
    let tool = repo.root().join("agent/tool").display().to_string();
    start(repo, &ONE.replace("command = \"@agent\"", &format!("command = [\"{tool}\"]")));
}

fn make_tool(repo: &TestRepo) {
    use std::os::unix::fs::PermissionsExt;
    let tool = repo.root().join("agent/tool");
    std::fs::write(&tool, "#!/bin/sh\nexec striatum work complete\n").unwrap();
    std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn launched(repo: &TestRepo) {
    repo.agent("draft.1", "fail badly");
    start(repo, &format!("[budget]\nlaunches = 1\n{ONE}"));
}

fn costly(repo: &TestRepo) {
    repo.agent("draft.1", "echo '{\"total_cost_usd\": 2}'; fail badly");
    start(repo, &format!("[budget]\ncost_usd = 1\n{ONE}"));
}

/// The attempt works until all that the run may work is used up.
fn overtime(repo: &TestRepo) {
    repo.agent("draft.1", "until striatum run summary | grep -q 'active_time.*(spent)'; do :; done; fail badly");
    start(repo, &format!("[budget]\nactive_time = \"200ms\"\n{ONE}"));
}

fn silent(repo: &TestRepo) {
    repo.agent("draft.1", "hold on; complete");
    start(repo, &format!("[budget]\nno_progress = \"2s\"\n{ONE}"));
}

/// Somebody moved the branch of a run whose first change is on it.
fn branch_moved(repo: &TestRepo) {
    let ask = "[lanes.script]\ncommand = \"@agent\"\n[[jobs]]\nid = \"draft\"\nrole = \"author\"\nlane = \"script\"\nwrites = [\"src/\"]\n";
    repo.commit_code();
    repo.agent("draft", "write src/main.txt else; complete");
    start(repo, ask);
    repo.said(&["update-ref", "refs/heads/striatum/w-1", &repo.said(&["commit-tree", "-m", "stray", "HEAD^{tree}"])]);
}

fn branch_back(repo: &TestRepo) {
    repo.said(&["update-ref", "refs/heads/striatum/w-1", "main"]);
}

fn parked(repo: &TestRepo) {
    start(repo, ONE);
    repo.striatum(&["lane", "pause", "script"]).ok();
}

/// The target has changed the same place.
fn in_the_way(repo: &TestRepo) {
    land::come_to_wait(repo, LANDS);
    repo.write("src/total.txt", "mine\n");
    land::git(repo, &["commit", "--quiet", "-am", "Meanwhile"]);
    repo.json(&["run", "land", "--as-person"]).refused(5, "land_conflict");
}

fn merge_by_hand(repo: &TestRepo) {
    assert!(!repo.git(&["merge", "striatum/w-1"]).status.success());
    repo.write("src/total.txt", "both\n");
    land::git(repo, &["commit", "--quiet", "-am", "By hand"]);
}

/// The artifact of a job is overwritten while the last job works.
fn damaged(repo: &TestRepo) {
    repo.agent("draft", "write notes.txt hello; complete");
    repo.agent(
        "after",
        "for file in \"$STRIATUM_DIR\"/artifacts/*; do chmod u+w $file; echo bye > $file; done; complete",
    );
    start(repo, CHECKED);
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
}

/// What is shown leads to the artifact; with its bytes back, the run can end.
fn mend_artifact(repo: &TestRepo) {
    let folder = repo.dir().join("artifacts");
    for entry in std::fs::read_dir(folder).unwrap() {
        std::fs::write(entry.unwrap().path(), "hello\n").unwrap();
    }
}

/// Drives to the stop; the commands that the driver proposes.
fn stopped(stop: &Stop) -> (TestRepo, Vec<Vec<String>>) {
    let repo = TestRepo::new();
    (stop.come)(&repo);
    let driven = repo.striatum(&["run", "drive", "--interval", "500ms", "--json"]).exits(stop.exit);
    let end = driven.values().pop().unwrap();
    if stop.exit == 4 {
        assert_eq!(
            (&end["state"], &end["waiting"][0][1]),
            (&"waiting_human".into(), &stop.cause.word().into()),
            "{end}"
        );
    } else {
        assert_eq!(end["state"], "needs_operator", "{end}");
        assert_eq!(repo.one::<String>("SELECT cause FROM run", ()), stop.cause.word());
    }
    let words =
        |next: &Value| next["argv"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect();
    let next: Vec<Vec<String>> = end["next"].as_array().unwrap().iter().map(words).collect();
    assert_eq!(next.len(), stop.cause.ended_by().len(), "{}: {end}", stop.cause);
    (repo, next)
}

/// Types a proposed command as a person would: a word of theirs in the place of the dots.
fn type_it(repo: &TestRepo, argv: &[String]) {
    let words: Vec<String> = argv[1..]
        .iter()
        .map(|word| match word.as_str() {
            "'...'" => "because".to_owned(),
            _ => word.clone(),
        })
        .chain(["--as-person".to_owned(), "--yes".to_owned()])
        .collect();
    repo.striatum(&words).ok();
    if words[0] == "take" {
        repo.striatum(&["give", &words[1], "--done", "--as-person"]).ok();
    }
}

/// Every verb that the cause names ends it: the run is completed, but for a gate that was rejected.
fn ends(cause: Cause) {
    let stop = STOPS.iter().find(|stop| stop.cause == cause).unwrap();
    for way in 0..cause.ended_by().len() {
        let (repo, next) = stopped(stop);
        (stop.mend)(&repo);
        type_it(&repo, &next[way]);
        if repo.run_state("w-1") == "completed" {
            continue;
        }
        let is_gate_again = cause == Cause::GateRejected;
        // A lane that went on by itself may end the run meanwhile; driving it by name says so.
        let driven = repo.striatum(&["run", "drive", "--interval", "500ms", "--run-id", "w-1"]);
        if next[way].iter().any(|word| word == "reject") {
            driven.exits(3);
            assert_eq!(repo.one::<String>("SELECT cause FROM run", ()), "gate_rejected");
        } else if is_gate_again {
            driven.exits(4);
            repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
            repo.drive().ok();
        } else {
            driven.ok();
            assert_eq!(repo.run_state("w-1"), "completed", "{cause}: {:?}", next[way]);
        }
    }
}

#[test]
fn every_cause_is_in_the_table_or_comes_later() {
    for cause in Cause::ALL {
        let is_tried = STOPS.iter().filter(|stop| stop.cause == *cause).count();
        let comes_later = LATER.contains(cause);
        assert!(is_tried + usize::from(comes_later) == 1, "{cause}");
        let is_waiting = STOPS.iter().find(|stop| stop.cause == *cause).map(|stop| stop.exit == 4);
        assert!(is_waiting.is_none_or(|is_waiting| is_waiting == cause.is_mere_waiting()), "{cause}");
    }
}

macro_rules! ended_by_its_verbs {
    ($($name:ident $cause:ident;)*) => {
        $(#[test]
        fn $name() {
            ends(Cause::$cause);
        })*
    };
}

ended_by_its_verbs! {
    a_gate_is_ended_by_its_verbs Gate;
    a_question_is_ended_by_its_verbs NeedsContext;
    an_ambiguous_lane_is_ended_by_its_verbs AmbiguousLane;
    a_human_lane_is_ended_by_its_verbs HumanLane;
    an_unknown_outcome_is_ended_by_its_verbs UnknownOutcome;
    missing_trust_is_ended_by_its_verbs Untrusted;
    a_blocked_agent_is_ended_by_its_verbs AgentBlocked;
    strikes_are_ended_by_their_verbs Strikes;
    requeues_are_ended_by_their_verbs Requeues;
    revisions_are_ended_by_their_verbs Revisions;
    a_broken_environment_is_ended_by_its_verbs Environment;
    launches_are_ended_by_their_verbs Launches;
    cost_is_ended_by_its_verb Cost;
    working_time_is_ended_by_its_verb ActiveTime;
    silence_is_ended_by_its_verb NoProgress;
    a_plan_that_disagrees_is_ended_by_its_verb PlanDisagrees;
    a_parked_lane_is_ended_by_its_verbs LaneParked;
    a_rejected_gate_is_ended_by_its_verbs GateRejected;
    a_landing_that_cant_be_is_ended_by_its_verbs Landing;
    anything_else_is_shown_by_its_verbs Other;
}

#[test]
fn a_damaged_artifact_is_made_again_by_a_retry_of_its_job() {
    let stop = STOPS.iter().find(|stop| stop.cause == Cause::Other).unwrap();
    let (repo, _) = stopped(stop);
    // Nothing has changed: the driver says the same again, and does not spin.
    repo.drive().exits(3);
    repo.agent("after", "complete");
    repo.striatum(&["run", "retry-job", "draft", "--reason", "its notes are damaged"]).ok();
    repo.drive().exits(4);
    repo.striatum(&["gate", "approve", "ship", "--as-person"]).ok();
    repo.drive().ok();
}
