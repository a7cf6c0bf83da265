//! `schema.sql`: every table and column has its sentence, the words are those of the domain, history can't change.

use std::collections::BTreeMap;

use rusqlite::Connection;
use striatum::domain::gate::Tier;
use striatum::domain::job::{JobState, Outcome, Phase};
use striatum::domain::proposal::ProposalState;
use striatum::domain::resource::ResourceState;
use striatum::domain::run::RunState;
use striatum::domain::session::{
    ChangeState, ExecutionState, GateState, LandingKind, LandingState, LeaseState, MessageState, SessionState,
    StopKind, SupervisorState, TreeState,
};
use striatum::domain::verdict::Verdict;
use striatum::store::schema::{SCHEMA, live_digest, wanted_digest};

use crate::support::{TestRepo, connect};

fn memory() -> Connection {
    let memory = Connection::open_in_memory().unwrap();
    memory.execute_batch(SCHEMA).unwrap();
    memory
}

/// The lines between `CREATE TABLE x (` and `) STRICT`, with the table's name and the line before.
fn tables() -> Vec<(String, String, Vec<String>)> {
    let mut tables = Vec::new();
    let mut before = String::new();
    let mut lines = SCHEMA.lines();
    while let Some(line) = lines.next() {
        if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
            let name = rest.split(' ').next().unwrap().to_owned();
            let body = lines.by_ref().take_while(|line| !line.starts_with(')')).map(str::to_owned).collect();
            tables.push((name, before.clone(), body));
        }
        before = line.to_owned();
    }
    tables
}

#[test]
fn every_table_and_every_column_has_its_sentence() {
    let tables = tables();
    assert!(tables.len() > 15);
    let mut silent = Vec::new();
    for (table, before, body) in tables {
        if !before.starts_with("-- ") {
            silent.push(format!("table {table}"));
        }
        // A column starts with two spaces and a name; constraints of the table with a capital, the rest of a column
        // with four spaces.
        let mut column: Option<(String, bool)> = None;
        for line in body.iter().map(String::as_str).chain(["  END"]) {
            let is_new = line.starts_with("  ") && !line.starts_with("   ");
            if is_new {
                if let Some((name, false)) = column.take() {
                    silent.push(format!("{table}.{name}"));
                }
                let name = line.trim_start().split(' ').next().unwrap();
                column = name.starts_with(|letter: char| letter.is_lowercase()).then(|| (name.to_owned(), false));
            }
            if let Some((_, told)) = &mut column {
                *told |= line.contains("-- ");
            }
        }
    }
    assert_eq!(silent, Vec::<String>::new(), "without a sentence");
}

#[test]
fn every_index_says_which_question_it_answers() {
    let mut silent: Vec<&str> = Vec::new();
    for statement in SCHEMA.split("CREATE ").filter(|statement| statement.contains("INDEX ")) {
        let end = statement.find(';').unwrap();
        let line_end = statement[end..].lines().next().unwrap();
        if !line_end.contains("-- ") {
            silent.push(statement[..end].lines().next().unwrap());
        }
    }
    assert_eq!(silent, Vec::<&str>::new(), "without a question");
}

#[test]
fn the_words_that_a_column_may_hold_are_those_of_the_domain() {
    macro_rules! words {
        ($($column:literal $kind:ty;)*) => {
            BTreeMap::from([$(($column, <$kind>::ALL.iter().map(|word| word.word()).collect::<Vec<_>>()),)*])
        };
    }
    let wanted: BTreeMap<&str, Vec<&str>> = words! {
        "run.state" RunState;
        "job.state" JobState;
        "job.phase" Phase;
        "attempt.outcome" Outcome;
        "session.state" SessionState;
        "message.state" MessageState;
        "lease.state" LeaseState;
        "supervisor.state" SupervisorState;
        "supervisor.stop_kind" StopKind;
        "execution.state" ExecutionState;
        "verdict.verdict" Verdict;
        "gate.state" GateState;
        "gate.tier" Tier;
        "tree.state" TreeState;
        "proposal.state" ProposalState;
        "resource.state" ResourceState;
        "change.state" ChangeState;
        "landing.state" LandingState;
        "landing.kind" LandingKind;
    };
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table, _, body) in tables() {
        let text: String = body.iter().map(|line| line.split("-- ").next().unwrap()).collect::<Vec<_>>().join(" ");
        for part in text.split("CHECK (").skip(1).filter(|part| part.contains(" IN ('")) {
            let (column, list) = part.split_once(" IN (").unwrap();
            let words =
                list.split(')').next().unwrap().split(',').map(|word| word.trim().trim_matches('\'').to_owned());
            found.insert(format!("{table}.{column}"), words.collect());
        }
    }
    assert_eq!(found.remove("execution.kind").unwrap(), ["agent", "verify", "setup", "process"]);
    assert_eq!(found.remove("tree.kind").unwrap(), ["own", "tip"]);
    // `ask` is reserved: no word of the domain yet.
    assert_eq!(found.remove("message.kind").unwrap(), ["work", "ask"]);
    let wanted: BTreeMap<String, Vec<String>> = wanted
        .into_iter()
        .map(|(column, words)| (column.to_owned(), words.into_iter().map(str::to_owned).collect()))
        .collect();
    assert_eq!(found, wanted);
}

#[test]
fn a_made_store_is_what_the_text_says_and_every_table_is_strict() {
    let repo = TestRepo::new();
    repo.workflow(
        "w",
        "[lanes.hand]\nmode = \"human\"\n[[jobs]]\nid = \"a\"\nrole = \"r\"\nlane = \"hand\"\ntree = \"none\"\n",
    );
    repo.prepare("w");
    let store = connect(&repo.db());
    assert_eq!(live_digest(&store).unwrap(), wanted_digest().unwrap());
    let loose = "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%'";
    assert_eq!(repo.rows(loose), Vec::<String>::new());
    assert_eq!(repo.rows("PRAGMA journal_mode"), ["wal"]);
    assert_eq!(repo.rows("PRAGMA integrity_check"), ["ok"]);
    assert_eq!(repo.rows("PRAGMA foreign_key_check"), Vec::<String>::new());
}

#[test]
fn history_can_neither_be_changed_nor_removed() {
    let memory = memory();
    memory.pragma_update(None, "foreign_keys", "OFF").unwrap();
    let rows = [
        ("event", "INSERT INTO event VALUES (1, 0, NULL, NULL, NULL, 'x', 'x', '{}', x'00', x'01')"),
        ("snapshot", "INSERT INTO snapshot VALUES (1, 1, 'h', '{}', 'prepare', 0)"),
        ("artifact", "INSERT INTO artifact VALUES (1, 1, 1, 'n', 'k', 'h', 0, 0)"),
        ("verdict", "INSERT INTO verdict VALUES (1, 1, 1, NULL, 1, NULL, NULL, 'accept', '[]', 'h', 0, 0)"),
        ("decision", "INSERT INTO decision VALUES (1, NULL, NULL, NULL, 'k', NULL, 'b', 'r', NULL, 'p', 'h', 0)"),
    ];
    for (table, insert) in rows {
        memory.execute(insert, ()).unwrap_or_else(|error| panic!("{table}: {error}"));
        for change in [format!("DELETE FROM {table}"), format!("UPDATE {table} SET rowid = rowid")] {
            let change = if table == "snapshot" { change.replace("rowid = rowid", "hash = hash") } else { change };
            let error = memory.execute(&change, ()).unwrap_err().to_string();
            assert_eq!(error, format!("{table} is append-only"), "{change}");
        }
        let replaced = memory.execute(&insert.replacen("INSERT", "INSERT OR REPLACE", 1), ());
        let count: i64 = memory.query_row(&format!("SELECT count(*) FROM {table}"), (), |row| row.get(0)).unwrap();
        assert_eq!(count, 1, "{replaced:?}");
    }
    // Every table that says so has its two triggers.
    for (table, before, _) in tables() {
        let is_told = before.contains("Append-only");
        let triggers = SCHEMA.matches(&format!(" ON {table} BEGIN SELECT RAISE")).count();
        assert_eq!(triggers, if is_told { 2 } else { 0 }, "{table}");
    }
}

#[test]
fn the_schema_alone_keeps_one_lease_a_job_one_message_a_job_and_one_agent_an_attempt() {
    let memory = memory();
    memory.pragma_update(None, "foreign_keys", "OFF").unwrap();
    let twice = [
        "INSERT INTO lease (run_id, job_id, attempt, session_id, lane, fence, state, granted_at)
           VALUES (1, 1, 1, 1, 'l', 1, 'active', 0)",
        "INSERT INTO message (run_id, job_id, attempt, kind, role, fresh, state, created_at)
           VALUES (1, 1, 1, 'work', 'r', 0, 'pending', 0)",
        "INSERT INTO execution (job_id, attempt, session_id, kind, state, started_at)
           VALUES (1, 1, 1, 'agent', 'exited', 0)",
        "INSERT INTO supervisor (session_id, state, recovers, requested_at) VALUES (1, 'starting', 0, 0)",
    ];
    for insert in twice {
        memory.execute(insert, ()).unwrap();
        let error = memory.execute(insert, ()).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::ConstraintViolation), "{insert}");
    }
}
