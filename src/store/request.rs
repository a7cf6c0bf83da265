//! The `request` table: the same key gets the first answer again.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::{StoreResult, Writing};

/// A first answer.
#[derive(Clone, Debug)]
pub struct Replied {
    /// What was asked.
    pub verb: String,
    /// Hash of the request.
    pub words_hash: String,
    /// The report.
    pub reply: String,
}

const GET: &str = "SELECT verb, words_hash, reply FROM request WHERE key = :key";

/// The first answer for a key.
pub fn get(read: &Connection, key: &str) -> StoreResult<Option<Replied>> {
    Ok(read
        .prepare_cached(GET)?
        .query_row(named_params! {":key": key}, |row| {
            Ok(Replied { verb: row.get("verb")?, words_hash: row.get("words_hash")?, reply: row.get("reply")? })
        })
        .optional()?)
}

const INSERT: &str = "INSERT INTO request (key, verb, words_hash, reply, replied_at)
  VALUES (:key, :verb, :words, :reply, :at) ON CONFLICT (key) DO NOTHING";

/// Keeps the first answer for a key.
pub fn insert(tx: &Writing<'_>, key: &str, replied: &Replied) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":key": key, ":verb": replied.verb, ":words": replied.words_hash, ":reply": replied.reply, ":at": tx.at,
    })?;
    Ok(())
}
