//! The `request` table: the same key gets the first answer again.

use rusqlite::{Connection, OptionalExtension, named_params};

use super::{StoreResult, Writing};

/// What was asked under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The caller's key.
    pub key: String,
    /// The verb.
    pub verb: String,
    /// Hash of the request.
    pub words_hash: String,
    /// Who asked.
    pub principal: String,
}

/// What is known of a key.
#[derive(Clone, Debug)]
pub struct Kept {
    /// What was asked first.
    pub asked: Asked,
    /// The first answer; none while it is not known.
    pub reply: Option<String>,
}

const GET: &str = "SELECT key, verb, words_hash, principal, reply FROM request WHERE key = :key";

/// What is known of a key.
pub fn get(read: &Connection, key: &str) -> StoreResult<Option<Kept>> {
    Ok(read
        .prepare_cached(GET)?
        .query_row(named_params! {":key": key}, |row| {
            let asked = Asked {
                key: row.get("key")?,
                verb: row.get("verb")?,
                words_hash: row.get("words_hash")?,
                principal: row.get("principal")?,
            };
            Ok(Kept { asked, reply: row.get("reply")? })
        })
        .optional()?)
}

const RESERVE: &str = "INSERT INTO request (key, verb, words_hash, principal, reserved_at)
  VALUES (:key, :verb, :words, :by, :at) ON CONFLICT (key) DO NOTHING";

/// Reserves a key beside the first effect; false when it is taken.
pub fn reserve(tx: &Writing<'_>, asked: &Asked) -> StoreResult<bool> {
    let changed = tx.prepare_cached(RESERVE)?.execute(named_params! {
        ":key": asked.key, ":verb": asked.verb, ":words": asked.words_hash, ":by": asked.principal, ":at": tx.at,
    })?;
    Ok(changed == 1)
}

const REPLY: &str = "UPDATE request SET reply = :reply, replied_at = :at WHERE key = :key AND reply IS NULL";

/// Keeps the first answer.
pub fn reply(tx: &Writing<'_>, key: &str, reply: &str) -> StoreResult<()> {
    tx.prepare_cached(REPLY)?.execute(named_params! {":key": key, ":reply": reply, ":at": tx.at})?;
    Ok(())
}
