//! Makes, recognises and upgrades the database file. The only reader of `schema.sql`.
//!
//! It does not know what the tables mean.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::StoreError;
use crate::domain::event::sha256_hex;

/// The text that makes an empty store.
pub const SCHEMA: &str = include_str!("../../schema.sql");

/// `STRI`: what `file` and we recognise the database by.
pub const APPLICATION_ID: i64 = 0x5354_5249;

/// Version of the schema; a store with a larger one is refused, with a smaller one upgraded.
pub const USER_VERSION: i64 = 1;

/// SQLite before this loses data when a checkpoint races a writer (sqlite.org, WAL-reset fault).
const OLDEST_SQLITE: i32 = 3_051_003;

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognised {
    /// Ours, at this version.
    Current,
    /// Ours, at an older version.
    Older(i64),
    /// A file without a single table.
    Empty,
}

/// Looks at an open file, reads two numbers, changes nothing.
pub fn recognise(connection: &Connection) -> Result<Recognised, StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::OldSqlite(rusqlite::version().to_owned()));
    }
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    match (application, version) {
        (APPLICATION_ID, USER_VERSION) => Ok(Recognised::Current),
        (APPLICATION_ID, newer) if newer > USER_VERSION => {
            let made_by = connection
                .query_row("SELECT made_by FROM store WHERE id = 1", [], |row| row.get(0))
                .unwrap_or_else(|_| format!("schema {newer}"));
            Err(StoreError::Newer { made_by, version: newer })
        }
        (APPLICATION_ID, older) => Ok(Recognised::Older(older)),
        (0, 0) if table_count(connection)? == 0 => Ok(Recognised::Empty),
        _ => Err(StoreError::Foreign(application)),
    }
}

/// Fails when the open file is no longer of this version.
pub fn check_version(connection: &Connection) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("PRAGMA user_version")?;
    if statement.query_row([], |row| row.get::<_, i64>(0))? == USER_VERSION {
        return Ok(());
    }
    match recognise(connection)? {
        Recognised::Current => Ok(()),
        Recognised::Older(version) => Err(StoreError::Foreign(version)),
        Recognised::Empty => Err(StoreError::Foreign(0)),
    }
}

fn table_count(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?)
}

/// Makes an empty file a store, in one transaction. Somebody else may have been faster: then nothing is done.
pub fn create(connection: &mut Connection, made_at: i64) -> Result<(), StoreError> {
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if table_count(&tx)? == 0 {
        fill(&tx, made_at)?;
    }
    tx.commit()?;
    Ok(())
}

/// The text without its comments and margins: SQLite keeps what it is given, and each process that opens a store reads
/// all of it again.
fn bare(text: &str) -> String {
    let code = text.lines().map(|line| match comment(line) {
        Some(start) => line[..start].trim(),
        None => line.trim(),
    });
    code.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Where the comment of a line starts, if it has one; two dashes inside quotes are none.
fn comment(line: &str) -> Option<usize> {
    line.match_indices("--")
        .map(|(start, _)| start)
        .find(|start| line[..*start].matches('\'').count().is_multiple_of(2))
}

fn fill(tx: &Transaction<'_>, made_at: i64) -> Result<(), StoreError> {
    tx.execute_batch(&bare(SCHEMA))?;
    tx.execute(
        "INSERT INTO store (id, made_by, made_at) VALUES (1, ?1, ?2)",
        params![env!("CARGO_PKG_VERSION"), made_at],
    )?;
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", USER_VERSION)?;
    Ok(())
}

/// Hash of what a database actually consists of, to be compared with one made from `schema.sql`.
pub fn live_digest(connection: &Connection) -> Result<String, StoreError> {
    let mut statement = connection.prepare(
        "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema
         WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name",
    )?;
    let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(sha256_hex(lines.join("\n").as_bytes()))
}

/// Hash of what `schema.sql` makes.
pub fn wanted_digest() -> Result<String, StoreError> {
    let memory = Connection::open_in_memory()?;
    memory.execute_batch(&bare(SCHEMA))?;
    live_digest(&memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_margins_are_not_kept() {
        let text = "-- A table.\nCREATE TABLE t (\n  a TEXT  -- its 'name'\n);\n\n";
        assert_eq!(bare(text), "CREATE TABLE t (\na TEXT\n);");
    }

    #[test]
    fn dashes_in_quotes_are_no_comment() {
        assert_eq!(bare("SELECT 'a--b', 'c'  -- d"), "SELECT 'a--b', 'c'");
        assert!(!bare(SCHEMA).contains("--"));
    }
}
