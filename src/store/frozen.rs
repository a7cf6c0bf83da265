//! The `snapshot` table: the frozen workflow, one row a generation.

use rusqlite::{Connection, named_params};

use super::columns::Json;
use super::{StoreResult, Writing};
use crate::domain::frozen::Snapshot;
use crate::domain::id::RunId;

/// A generation of a snapshot.
pub struct Generation<'a> {
    /// 1 at prepare.
    pub number: i64,
    /// sha256 of the body.
    pub hash: &'a str,
    /// The whole snapshot.
    pub body: &'a Snapshot,
    /// `prepare`, or why it was amended.
    pub reason: &'a str,
}

const INSERT: &str = "INSERT INTO snapshot (run_id, generation, hash, body, reason, created_at)
  VALUES (:run, :generation, :hash, :body, :reason, :at)";

/// Adds a generation.
pub fn insert(tx: &Writing<'_>, run: RunId, new: &Generation<'_>) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":run": run, ":generation": new.number, ":hash": new.hash, ":body": Json(new.body), ":reason": new.reason,
        ":at": tx.at,
    })?;
    Ok(())
}

const GET: &str = "SELECT hash, body FROM snapshot WHERE run_id = :run AND generation = :generation";

/// A generation's hash and body.
pub fn get(read: &Connection, run: RunId, generation: i64) -> StoreResult<(String, Snapshot)> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":run": run, ":generation": generation}, |row| {
        Ok((row.get("hash")?, row.get::<_, Json<Snapshot>>("body")?.0))
    })?)
}

const HASH: &str = "SELECT hash FROM snapshot WHERE run_id = :run AND generation = :generation";

/// A generation's hash.
pub fn hash(read: &Connection, run: RunId, generation: i64) -> StoreResult<String> {
    Ok(read
        .prepare_cached(HASH)?
        .query_row(named_params! {":run": run, ":generation": generation}, |row| row.get(0))?)
}
