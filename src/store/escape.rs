//! The `escape_act` table: what decisions open, and how often they did.

use rusqlite::{Connection, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::escape::Surface;
use crate::domain::id::{DecisionId, JobId, RunId, SessionId};
use crate::domain::time::Moment;

/// A row of `escape_act` with whom its decision names.
#[derive(Clone, Debug)]
pub struct Escape {
    /// Which judgement.
    pub decision: DecisionId,
    /// For this job only, where one is named.
    pub job: Option<JobId>,
    /// For this session only, where one is named.
    pub session: Option<SessionId>,
    /// How often it may still be used.
    pub left: u32,
    /// It opens nothing afterwards.
    pub expires: Moment,
}

/// What a new escape is made of.
pub struct NewEscape<'a> {
    /// Which judgement.
    pub decision: DecisionId,
    /// In which run.
    pub run: RunId,
    /// Where it leaves the constrained surface.
    pub surface: Surface,
    /// The words of the act, or their hash.
    pub action: &'a str,
    /// How often it may be used.
    pub uses: u32,
    /// It opens nothing afterwards.
    pub expires: &'a Moment,
}

const INSERT: &str =
    "INSERT INTO escape_act (decision_id, run_id, surface, action, uses, used, expires_boot, expires_ms)
  VALUES (:decision, :run, :surface, :action, :uses, 0, :boot, :ms)";

/// Records an escape.
pub fn insert(tx: &Writing<'_>, new: &NewEscape<'_>) -> StoreResult<()> {
    tx.prepare_cached(INSERT)?.execute(named_params! {
        ":decision": new.decision, ":run": new.run, ":surface": new.surface, ":action": new.action, ":uses": new.uses,
        ":boot": new.expires.boot, ":ms": new.expires.ms,
    })?;
    Ok(())
}

const OPEN: &str = "SELECT decision_id, job_id, session_id, uses - used, expires_boot, expires_ms
  FROM escape_act AS e JOIN decision ON decision.id = decision_id
  WHERE e.run_id = :run AND surface = :surface AND action IN (:words, :hash) AND used < uses ORDER BY decision_id";

/// The escapes of a run with uses left that name this act, by its words or their hash; oldest first.
pub fn open(read: &Connection, run: RunId, surface: Surface, actions: &[String; 2]) -> StoreResult<Vec<Escape>> {
    let mut statement = read.prepare_cached(OPEN)?;
    let [words, hash] = actions;
    let given = named_params! {":run": run, ":surface": surface, ":words": words, ":hash": hash};
    let rows = statement.query_map(given, row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn row(row: &Row<'_>) -> rusqlite::Result<Escape> {
    Ok(Escape {
        decision: row.get(0)?,
        job: row.get(1)?,
        session: row.get(2)?,
        left: row.get(3)?,
        expires: Moment { boot: row.get(4)?, ms: row.get(5)? },
    })
}

const USE: &str = "UPDATE escape_act SET used = used + 1 WHERE decision_id = :decision";

/// Counts one use.
pub fn count_use(tx: &Writing<'_>, decision: DecisionId) -> StoreResult<()> {
    tx.prepare_cached(USE)?.execute(named_params! {":decision": decision})?;
    Ok(())
}
