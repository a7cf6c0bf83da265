//! The store as another process sees it: real SQLite, read-only.

use std::path::Path;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OpenFlags, Params};
use serde_json::Value;

use super::TestRepo;

/// One event of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its number.
    pub id: i64,
    /// Its frozen word.
    pub kind: String,
    /// The job's name.
    pub job: Option<String>,
    /// The session, as `s12`.
    pub session: Option<String>,
    /// Who did it.
    pub principal: String,
    /// What it tells.
    pub body: Value,
}

/// Opens a store to read it.
pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    connection
}

impl TestRepo {
    /// One value of the store.
    #[track_caller]
    pub fn one<T: rusqlite::types::FromSql>(&self, sql: &str, params: impl Params) -> T {
        connect(&self.db()).query_row(sql, params, |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// How many rows a table or a join with its condition has.
    #[track_caller]
    pub fn count(&self, from: &str) -> i64 {
        self.one(&format!("SELECT count(*) FROM {from}"), ())
    }

    /// Rows of the store, each as its columns joined by a space.
    #[track_caller]
    pub fn rows(&self, sql: &str) -> Vec<String> {
        let connection = connect(&self.db());
        let mut statement = connection.prepare(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let width = statement.column_count();
        let mut rows = statement.query(()).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let columns: Vec<String> = (0..width).map(|column| shown(row.get(column).unwrap())).collect();
            lines.push(columns.join(" "));
        }
        lines
    }

    /// Every event, oldest first.
    pub fn events(&self) -> Vec<Event> {
        const EVENTS: &str = "SELECT e.id, e.type, j.name, e.session_id, e.principal, e.body
            FROM event e LEFT JOIN job j ON j.id = e.job_id ORDER BY e.id";
        let connection = connect(&self.db());
        let mut statement = connection.prepare(EVENTS).unwrap();
        let rows = statement.query_map((), |row| {
            let session: Option<i64> = row.get(3)?;
            let body: String = row.get(5)?;
            Ok(Event {
                id: row.get(0)?,
                kind: row.get(1)?,
                job: row.get(2)?,
                session: session.map(|id| format!("s{id}")),
                principal: row.get(4)?,
                body: serde_json::from_str(&body).unwrap(),
            })
        });
        rows.unwrap().map(Result::unwrap).collect()
    }

    /// The words of the events that begin so, with the job they are about.
    pub fn story(&self, beginnings: &[&str]) -> Vec<String> {
        self.events()
            .into_iter()
            .filter(|event| beginnings.iter().any(|beginning| event.kind.starts_with(beginning)))
            .map(|event| {
                format!("{} {}", event.kind, event.job.or(event.session).unwrap_or_default()).trim_end().to_owned()
            })
            .collect()
    }

    /// The state of a job of the newest run that has it.
    #[track_caller]
    pub fn job_state(&self, job: &str) -> String {
        self.one("SELECT state FROM job WHERE name = ?1 ORDER BY id DESC LIMIT 1", [job])
    }

    /// The state of a run.
    #[track_caller]
    pub fn run_state(&self, run: &str) -> String {
        self.one("SELECT state FROM run WHERE name = ?1", [run])
    }
}

fn shown(value: Sql) -> String {
    match value {
        Sql::Null => "-".to_owned(),
        Sql::Integer(number) => number.to_string(),
        Sql::Real(number) => number.to_string(),
        Sql::Text(text) => text,
        Sql::Blob(bytes) => format!("<{} bytes>", bytes.len()),
    }
}
