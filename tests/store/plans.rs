//! Every statement of the store: that it can be prepared, and how SQLite would go about it.
//!
//! Statements are read out of the source, so that none is forgotten. A scan of a table is allowed only where it is
//! named here with its reason.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use striatum::store::schema::SCHEMA;

/// Statements that go through a whole table or index, and why they may.
const SCANS: &[(&str, &str)] = &[
    ("artifact::COUNT", "doctor counts"),
    ("artifact::NEWEST", "from the end, up to a limit"),
    ("audit::*", "an audit goes through everything"),
    ("event::LAST", "the last row only"),
    ("event::LATEST", "from the end, up to a limit"),
    ("event::WALK", "an audit goes through everything"),
    ("invariant::*", "doctor goes through everything"),
    ("lane::NAMES", "a handful of rows"),
    ("lane::PARKED", "a handful of rows"),
    ("run::COUNT", "an index without the rows"),
    ("run::LIVE", "an index of the live ones alone"),
    ("run::NEWEST", "from the end, up to a limit"),
    ("schema::*", "the schema itself"),
    ("tree::LIVE", "an index of those in use alone"),
];

/// `const NAME: &str = "..."` of a file, by its name.
fn statements(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find("const ") {
        rest = &rest[at + 6..];
        let Some((name, after)) = rest.split_once(": &str =") else { break };
        let literal = after.trim_start();
        if !name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_') || !literal.starts_with('"') {
            continue;
        }
        found.push((name.to_owned(), literal_text(literal)));
        rest = after;
    }
    found
}

/// A string literal's text; the statements use no escape but a quote.
fn literal_text(literal: &str) -> String {
    let mut text = String::new();
    let mut letters = literal.chars().skip(1);
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => text.extend(letters.next()),
            plain => text.push(plain),
        }
    }
    text
}

fn all() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read_to_string(&path).unwrap();
        let is_sql =
            |text: &str| ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|word| text.starts_with(word));
        for (name, text) in statements(&source).into_iter().filter(|(_, text)| is_sql(text)) {
            all.insert(format!("{module}::{name}"), text);
        }
    }
    all
}

fn store() -> Connection {
    let memory = Connection::open_in_memory().unwrap();
    memory.execute_batch(SCHEMA).unwrap();
    memory
}

fn plan(store: &Connection, statement: &str) -> Vec<String> {
    let mut explain = store
        .prepare(&format!("EXPLAIN QUERY PLAN {statement}"))
        .unwrap_or_else(|error| panic!("{statement}\n{error}"));
    let mut rows = explain.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        steps.push(row.get::<_, String>("detail").unwrap());
    }
    steps
}

fn may_scan(name: &str) -> bool {
    let module = name.split("::").next().unwrap_or_default();
    SCANS.iter().any(|(allowed, _)| *allowed == name || *allowed == format!("{module}::*"))
}

#[test]
fn no_statement_goes_through_a_table_that_it_could_look_into() {
    let store = store();
    let all = all();
    assert!(all.len() > 100, "only {} statements were found", all.len());
    let mut wrong = Vec::new();
    for (name, statement) in &all {
        let scans: Vec<String> = plan(&store, statement)
            .into_iter()
            .filter(|step| {
                step.starts_with("SCAN") && !step.starts_with("SCAN below") && !step.starts_with("SCAN above")
            })
            .filter(|step| *step != "SCAN CONSTANT ROW" && !step.starts_with("SCAN (subquery"))
            .collect();
        if !scans.is_empty() && !may_scan(name) {
            wrong.push(format!("{name}: {scans:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_reason_to_scan_is_one() {
    let store = store();
    let all = all();
    let scans = |name: &str| {
        let statement = all.get(name).unwrap_or_else(|| panic!("there is no {name}"));
        plan(&store, statement).iter().any(|step| step.starts_with("SCAN"))
    };
    let idle: Vec<&str> = SCANS.iter().map(|scan| scan.0).filter(|name| !name.ends_with('*') && !scans(name)).collect();
    assert!(idle.is_empty(), "these scan nothing: {idle:?}");
}

/// What is asked at each turn, each claim and each look, and the index that answers it.
const HOT: &[(&str, &str)] = &[
    ("job::HAS_OPEN", "job_open"),
    ("job::IN_STATE", "job_state"),
    ("job::COUNTS", "COVERING INDEX job_state"),
    ("job::KEPT", "job_state (run_id=? AND state=? AND unmet=?)"),
    ("job::HELD", "job_state"),
    ("job::OPEN", "job_open"),
    ("job::OPEN_UP_TO", "job_open"),
    ("job::PANEL", "job_reviews"),
    ("job::MEET", "need_by_needed"),
    ("message::FIRST_SLOT", "message_pending"),
    ("message::NEXT_LANE", "message_pending"),
    ("message::NEXT_ROLE", "message_pending"),
    ("message::OLDEST_OF_LANE", "message_pending"),
    ("message::HELD", "message_held"),
    ("message::LIVE_OF_JOB", "message_live"),
    ("lease::ACTIVE_OF_JOB", "lease_active"),
    ("lease::COUNT_RUN", "lease_run"),
    ("lease::COUNT_LANE", "lease_lane"),
    ("lease::FLIGHTS", "lease_run"),
    ("session::ACTIVE", "session_active"),
    ("session::OFFERED", "session_offered"),
    ("supervisor::ACTIVE", "supervisor_active"),
    ("execution::AGENT", "execution_agent"),
    ("execution::LIVE", "execution_live"),
    ("execution::BY_PROCESS", "execution_pid"),
    ("gate::PENDING_OF_JOB", "gate_pending"),
    ("gate::OPEN", "gate_open"),
    ("verdict::NEWEST", "verdict_by_job"),
    ("event::AFTER_OF_RUN", "event_by_run"),
    ("event::LATEST_OF_JOB", "event_by_job"),
    ("run::LIVE", "run_live"),
];

#[test]
fn what_is_asked_at_every_turn_has_an_index_of_its_own() {
    let store = store();
    let all = all();
    let mut wrong = Vec::new();
    for (name, index) in HOT {
        let statement = all.get(*name).unwrap_or_else(|| panic!("there is no {name}"));
        let steps = plan(&store, statement);
        if !steps.iter().any(|step| step.contains(index)) {
            wrong.push(format!("{name}: {steps:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
