//! The closed list of reasons to stop, on real runs: small workflows as chance has them, driven by the real driver with
//! real processes until it ends by itself. It ends for reasons of the list alone, each thing waited for is in the inbox,
//! and the auditor finds nothing.

use std::collections::BTreeSet;

use serde_json::Value;
use striatum::domain::job::Cause;

use crate::chance::Chance;
use crate::support::TestRepo;

/// Runs of each time.
const RUNS: u64 = 16;

/// What an agent does, most often its work.
const DEEDS: [&str; 8] =
    ["complete", "complete", "complete", "exit 3", "block key", "ask what", "fail no", "result '{\"status\":1}'"];

const VERDICTS: [&str; 4] = [
    "verdict accept",
    "verdict accept",
    "verdict needs_revision --finding 'Title: say more'",
    "verdict reject --finding 'Title: no'",
];

/// A workflow of two to four jobs.
fn workflow(repo: &TestRepo, chance: &mut Chance) -> String {
    let mut text =
        "[lanes.script]\ncommand = \"@agent\"\ntimeout = \"60s\"\n[lanes.person]\nmode = \"human\"\n".to_owned();
    let mut workers: Vec<usize> = Vec::new();
    for number in 0..2 + chance.below(3) {
        text.push_str(&format!("[[jobs]]\nid = \"j{number}\"\n"));
        match chance.below(10) {
            0 | 1 if !workers.is_empty() => {
                let subject = chance.one(&workers);
                text.push_str(&format!("reviews = \"j{subject}\"\nlane = \"script\"\nrevisions = 1\n"));
                let deed = *chance.one(&VERDICTS);
                repo.agent(&format!("j{number}"), deed);
                continue;
            }
            2 => text.push_str("type = \"checkpoint\"\n"),
            kind => {
                let lane = if kind == 3 { "person" } else { "script" };
                text.push_str(&format!("role = \"author\"\nlane = \"{lane}\"\ntree = \"none\"\nmax_strikes = 2\n"));
                text.push_str(if kind == 4 { "outward = true\n" } else { "" });
                let rules = ["hold", "continue", "skip", "fail_run"];
                text.push_str(&format!("on_failure = \"{}\"\n", chance.one(&rules)));
                let deed = *chance.one(&DEEDS);
                repo.agent(&format!("j{number}"), deed);
                workers.push(number);
            }
        }
        let mut needs: Vec<String> =
            (0..number).filter(|_| chance.percent(40)).map(|need| format!("\"j{need}\"")).collect();
        chance.shuffle(&mut needs);
        text.push_str(&format!("needs = [{}]\n", needs.join(", ")));
    }
    text
}

/// Jobs that nothing but a person can move, as the store has them.
fn waiting(repo: &TestRepo) -> BTreeSet<String> {
    let jobs = repo.rows(
        "SELECT name FROM job WHERE settled = 0 AND (state IN ('waiting_human', 'failed')
           OR (state = 'waiting' AND reason IN ('gate', 'gate_rejected')) OR (state = 'queued' AND lane = 'person'))",
    );
    jobs.into_iter().collect()
}

fn words(value: &Value, key: &str) -> Option<String> {
    value[key].as_str().map(str::to_owned)
}

/// Each thing that waits is in the inbox, with a cause of the list and a command.
fn check_inbox(repo: &TestRepo, seed: u64) {
    let inbox = repo.json(&["inbox"]).ok().value();
    let items = inbox["items"].as_array().unwrap();
    let named: BTreeSet<String> =
        items.iter().flat_map(|item| [words(item, "id"), words(item, "job")]).flatten().collect();
    let unnamed: Vec<String> = waiting(repo).difference(&named).cloned().collect();
    assert!(unnamed.is_empty(), "seed {seed}: {unnamed:?} wait and are in no inbox\n{inbox:#}\n{}", repo.told());
    assert!(!items.is_empty(), "seed {seed}: it waits for nothing\n{}", repo.told());
    for item in items {
        assert!(words(item, "cause").unwrap().parse::<Cause>().is_ok(), "seed {seed}: {item:#}");
        assert!(!item["next"].as_array().unwrap().is_empty(), "seed {seed}: {item:#}");
    }
}

#[test]
fn a_driver_ends_for_reasons_of_the_closed_list_alone() {
    let mut ends = BTreeSet::new();
    for seed in 0..RUNS {
        let repo = TestRepo::with_code();
        let mut chance = Chance::of(seed);
        let text = workflow(&repo, &mut chance);
        repo.workflow("w", &text);
        repo.start("w");
        let driven = repo.drive();
        let state = repo.run_state("w-1");
        let fits = matches!(
            (driven.code, state.as_str()),
            (0, "completed") | (1 | 3, "failed") | (3, "needs_operator") | (4, "running")
        );
        assert!(fits, "seed {seed}: it is {state}\n{text}\n{driven}");
        if matches!(state.as_str(), "running" | "needs_operator") {
            check_inbox(&repo, seed);
        }
        repo.check_rules();
        ends.insert(state);
    }
    for end in ["completed", "running", "needs_operator"] {
        assert!(ends.contains(end), "no run was {end}: {ends:?}");
    }
}
