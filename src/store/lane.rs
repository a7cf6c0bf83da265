//! The `lane` table: what is known of a lane over all runs.

use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::{StoreResult, Writing};
use crate::domain::time::{Moment, Timestamp};

/// A row of `lane`.
#[derive(Clone, Debug, Default)]
pub struct LaneRow {
    /// A person or the give-up limit parked it.
    pub parked_at: Option<Timestamp>,
    /// Why.
    pub parked_reason: Option<String>,
    /// No launches before.
    pub cooling_until: Option<Moment>,
    /// First failure of this series.
    pub cooling_since: Option<Moment>,
    /// Failures in a row.
    pub cooling_step: u32,
}

const ALL: &str = "SELECT * FROM lane";

/// Every lane of which anything is known, by name. A lane is a name that somebody chose: there are few.
pub fn all(read: &Connection) -> StoreResult<Vec<(String, LaneRow)>> {
    let mut statement = read.prepare_cached(ALL)?;
    let rows = statement.query_map([], |row| Ok((row.get("name")?, lane_row(row)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const GET: &str = "SELECT * FROM lane WHERE name = :name";

/// What is known of a lane; nothing is known of most.
pub fn get(read: &Connection, name: &str) -> StoreResult<LaneRow> {
    Ok(read.prepare_cached(GET)?.query_row(named_params! {":name": name}, lane_row).optional()?.unwrap_or_default())
}

/// A lane that gets no launches until a person resumes it.
#[derive(Clone, Debug)]
pub struct ParkedLane {
    /// The lane.
    pub name: String,
    /// Since when.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
}

/// Every parked lane, newest first.
pub fn parked(read: &Connection) -> StoreResult<Vec<ParkedLane>> {
    let lanes = all(read)?.into_iter();
    let mut parked: Vec<ParkedLane> = lanes
        .filter_map(|(name, row)| Some(ParkedLane { name, at: row.parked_at?, reason: row.parked_reason }))
        .collect();
    parked.sort_by_key(|lane| std::cmp::Reverse(lane.at));
    Ok(parked)
}

const NAMES: &str = "SELECT name FROM lane ORDER BY name";

/// Every lane that something is known of.
pub fn names(read: &Connection) -> StoreResult<Vec<String>> {
    let mut statement = read.prepare_cached(NAMES)?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const PUT: &str = "INSERT INTO lane (name, parked_at, parked_reason, cooling_boot, cooling_ms, cooling_since_boot,
    cooling_since_ms, cooling_step)
  VALUES (:name, :parked_at, :parked_reason, :boot, :ms, :since_boot, :since_ms, :step)
  ON CONFLICT (name) DO UPDATE SET parked_at = excluded.parked_at, parked_reason = excluded.parked_reason,
    cooling_boot = excluded.cooling_boot, cooling_ms = excluded.cooling_ms,
    cooling_since_boot = excluded.cooling_since_boot, cooling_since_ms = excluded.cooling_since_ms,
    cooling_step = excluded.cooling_step";

/// Keeps what is known of a lane.
pub fn put(tx: &Writing<'_>, name: &str, row: &LaneRow) -> StoreResult<()> {
    let boot = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.boot.clone());
    let ms = |moment: &Option<Moment>| moment.as_ref().map(|moment| moment.ms);
    tx.prepare_cached(PUT)?.execute(named_params! {
        ":name": name, ":parked_at": row.parked_at, ":parked_reason": row.parked_reason,
        ":boot": boot(&row.cooling_until), ":ms": ms(&row.cooling_until),
        ":since_boot": boot(&row.cooling_since), ":since_ms": ms(&row.cooling_since), ":step": row.cooling_step,
    })?;
    Ok(())
}

fn lane_row(row: &Row<'_>) -> rusqlite::Result<LaneRow> {
    Ok(LaneRow {
        parked_at: row.get("parked_at")?,
        parked_reason: row.get("parked_reason")?,
        cooling_until: super::moment(row, "cooling_boot", "cooling_ms")?,
        cooling_since: super::moment(row, "cooling_since_boot", "cooling_since_ms")?,
        cooling_step: row.get("cooling_step")?,
    })
}
