//! Every statement of the store, as it stands in the source: prepared against the schema, and looked at for scans.

use rusqlite::Connection;
use striatum::store::schema::SCHEMA;

/// A constant of `src/store` that is SQL.
struct Statement {
    name: String,
    sql: String,
}

/// Every `const NAME: &str = "SQL"` of the store.
fn statements() -> Vec<Statement> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    let mut statements = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let file = entry.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        for part in text.split("const ").skip(1) {
            let Some((name, rest)) = part.split_once(": &str =") else { continue };
            let Some(literal) = rest.trim_start().strip_prefix('"') else { continue };
            let sql = unescaped(literal);
            let is_sql =
                ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].iter().any(|word| sql.trim_start().starts_with(word));
            if is_sql
                && name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_' || letter.is_ascii_digit())
            {
                statements.push(Statement { name: format!("{file}::{name}"), sql });
            }
        }
    }
    statements.sort_by(|one, other| one.name.cmp(&other.name));
    statements
}

/// The text of a literal up to its closing quote.
fn unescaped(literal: &str) -> String {
    let mut out = String::new();
    let mut letters = literal.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next().unwrap() {
                '\n' => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                'n' => out.push('\n'),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    out
}

fn memory() -> Connection {
    let memory = Connection::open_in_memory().unwrap();
    memory.execute_batch(SCHEMA).unwrap();
    memory
}

#[test]
fn every_statement_fits_the_schema() {
    let (memory, statements) = (memory(), statements());
    assert!(statements.len() > 80, "only {} found", statements.len());
    for statement in &statements {
        memory.prepare(&statement.sql).unwrap_or_else(|error| panic!("{}: {error}\n{}", statement.name, statement.sql));
    }
}

#[test]
fn parameters_are_named() {
    let memory = memory();
    for statement in statements() {
        let prepared = memory.prepare(&statement.sql).unwrap();
        for number in 1..=prepared.parameter_count() {
            let name = prepared.parameter_name(number);
            assert!(name.is_some_and(|name| name.starts_with(':')), "{}: {name:?}", statement.name);
        }
    }
}

#[test]
fn no_statement_is_put_together_from_strings() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            let is_built = line.contains("format!(\"SELECT")
                || line.contains("format!(\"UPDATE")
                || line.contains("format!(\"INSERT")
                || line.contains("format!(\"DELETE");
            assert!(!is_built, "{:?}:{}: {line}", entry.file_name(), number + 1);
        }
    }
}

/// Statements that may walk a whole table, with the reason; a module's name stands for all of its statements.
const SCANS: [(&str, &str); 14] = [
    ("audit::", "`audit verify` looks at everything"),
    ("evidence::", "`audit verify` looks at everything of a run"),
    ("invariant::", "`doctor` looks at everything"),
    ("event::WALK", "`audit verify` looks at everything"),
    ("event::LAST", "newest first, one row"),
    ("event::LATEST", "newest first, bounded"),
    ("artifact::NEWEST", "newest first, bounded"),
    ("run::NEWEST", "newest first, bounded"),
    ("lane::", "a row a lane"),
    ("job::DOWNSTREAM", "over what it found"),
    ("job::UPSTREAM", "over what it found"),
    ("run::ENDED_BEFORE", "gc looks at every run that has ended"),
    ("landing::LEFT", "a row a landing, and only when a checkout moved during an attempt"),
    ("tree::OF_ENDED", "gc looks at the trees of every run that has ended"),
];

#[test]
fn no_statement_walks_a_whole_table_but_those_that_say_why() {
    let memory = memory();
    let mut scans = Vec::new();
    for statement in statements() {
        let mut plan = memory.prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sql)).unwrap();
        let mut rows = plan.raw_query();
        while let Some(row) = rows.next().unwrap() {
            let detail: String = row.get("detail").unwrap();
            // A walk along an index, or over what another walk gave, is bounded by what is asked.
            let is_bounded = [" INDEX ", "CONSTANT ROW", "(subquery"].iter().any(|word| detail.contains(word));
            let fits =
                |name: &str| statement.name == name || (name.ends_with("::") && statement.name.starts_with(name));
            if detail.starts_with("SCAN ") && !is_bounded && !SCANS.iter().any(|(name, _)| fits(name)) {
                scans.push(format!("{}: {detail}", statement.name));
            }
        }
    }
    assert_eq!(scans, Vec::<String>::new());
}
