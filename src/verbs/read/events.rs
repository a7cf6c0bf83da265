//! `events`: what happened, from the one log.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::count;
use super::explain::named;
use crate::domain::id::SessionId;
use crate::domain::time::Timestamp;
use crate::error::Result;
use crate::store::event::{EventRow, Scope};
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::run::find;

/// Events shown when nothing says otherwise.
const SHOWN: u32 = 50;

/// Most events in one report.
const MOST: u32 = 1_000;

/// What `events` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventsRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// Of the whole store.
    pub all: bool,
    /// About one job.
    pub job: Option<String>,
    /// After this number, oldest first; the newest ones when left out.
    pub after: Option<i64>,
    /// Most events.
    pub limit: Option<u32>,
}

/// Something that happened.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventLine {
    /// Its number.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// In which run.
    pub run: Option<String>,
    /// About which job.
    pub job: Option<String>,
    /// About which session.
    pub session: Option<SessionId>,
    /// A frozen word.
    #[serde(rename = "type")]
    pub kind: String,
    /// Who did it.
    pub principal: String,
    /// Names, numbers, hashes.
    pub body: Value,
}

/// What `events` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EventsReport {
    /// The run's name; none for the whole store.
    pub run: Option<String>,
    /// The events, oldest first.
    pub events: Vec<EventLine>,
    /// How many older ones (without `after`) or newer ones (with it) are not shown.
    pub left_out: u32,
    /// Ask for what comes after this.
    pub cursor: i64,
    /// Nothing more will come: the run is over.
    pub is_over: bool,
}

/// Tells what happened.
pub fn events(ctx: &Ctx, request: &EventsRequest) -> Result<EventsReport> {
    let limit = request.limit.unwrap_or(SHOWN).clamp(1, MOST);
    ctx.read(|read| {
        let (scope, run, is_over) = scope(ctx, read, request)?;
        let (rows, left_out) = match request.after {
            Some(after) => forward(read, scope, after, limit)?,
            None => newest(read, scope, limit)?,
        };
        let cursor = rows.last().map_or(request.after.unwrap_or(0), |row| row.id);
        Ok(EventsReport { run, events: rows.into_iter().map(line).collect(), left_out, cursor, is_over })
    })
}

/// Which events, the run's name, and whether more can come.
fn scope(ctx: &Ctx, read: &Connection, request: &EventsRequest) -> Result<(Scope, Option<String>, bool)> {
    if request.all && request.job.is_none() {
        return Ok((Scope::All, None, false));
    }
    let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else { return Ok((Scope::All, None, false)) };
    let is_over = run.state.is_terminal();
    let scope = match &request.job {
        Some(name) => Scope::Job(named(read, &run, name)?.id),
        None => Scope::Run(run.id),
    };
    Ok((scope, Some(run.name), is_over))
}

fn forward(read: &Connection, scope: Scope, after: i64, limit: u32) -> Result<(Vec<EventRow>, u32)> {
    let rows = store::event::after(read, scope, after, limit)?;
    let is_full = count(rows.len()) == limit;
    let left_out = match rows.last() {
        Some(last) if is_full => store::event::count_between(read, scope, last.id, i64::MAX)?,
        _ => 0,
    };
    Ok((rows, left_out))
}

fn newest(read: &Connection, scope: Scope, limit: u32) -> Result<(Vec<EventRow>, u32)> {
    let mut rows = store::event::latest(read, scope, limit)?;
    rows.reverse();
    let is_full = count(rows.len()) == limit;
    let left_out = match rows.first() {
        Some(first) if is_full => store::event::count_between(read, scope, 0, first.id)?,
        _ => 0,
    };
    Ok((rows, left_out))
}

/// An event for people and programs.
pub fn line(row: EventRow) -> EventLine {
    EventLine {
        id: row.id,
        at: row.at,
        run: row.run_name,
        job: row.job_name,
        session: row.about.session,
        kind: row.kind,
        principal: row.principal,
        body: serde_json::from_str(&row.body).unwrap_or(Value::String(row.body)),
    }
}
