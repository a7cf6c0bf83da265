//! `run list`: every run in one line, newest first.

use serde::{Deserialize, Serialize};

use super::summary::{driver, state};
use super::{bounded, look};
use crate::domain::job::Cause;
use crate::domain::time::Timestamp;
use crate::error::Result;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::Ctx;

/// Runs shown when nothing says otherwise.
const SHOWN: u32 = 20;

/// What `run list` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListRequest {
    /// Most runs shown.
    pub limit: Option<u32>,
}

/// A run in one line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunLine {
    /// Its name.
    pub run: String,
    /// The workflow's id.
    pub workflow: String,
    /// Where it is, `waiting_human` among the states.
    pub state: String,
    /// Code of needs_operator or failed.
    pub cause: Option<Cause>,
    /// What the cause is about.
    pub subject: Option<String>,
    /// How many jobs it has.
    pub jobs: u32,
    /// How many are settled.
    pub settled: u32,
    /// Somebody drives it.
    pub driven: bool,
    /// No launches since.
    pub paused_at: Option<Timestamp>,
    /// When prepared.
    pub created_at: Timestamp,
    /// When started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// What `run list` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// The runs, newest first.
    pub runs: Vec<RunLine>,
    /// How many are not shown.
    pub left_out: u32,
}

/// Lists the runs of the store.
pub fn list(ctx: &Ctx, request: &ListRequest) -> Result<ListReport> {
    let limit = request.limit.unwrap_or(SHOWN);
    ctx.read(|read| {
        let runs = store::run::newest(read, limit)?;
        let mut lines = runs.iter().map(|run| line(ctx, read, run)).collect::<Result<Vec<_>>>()?;
        let left_out = bounded(&mut lines, limit, store::run::count(read)?);
        Ok(ListReport { runs: lines, left_out })
    })
}

fn line(ctx: &Ctx, read: &Connection, run: &Run) -> Result<RunLine> {
    let counts = store::tally::counts(read, run.id)?;
    // Where an ended run stands needs no look at its frontier.
    let state = if run.state.is_terminal() { run.state.to_string() } else { state(&look(ctx, read, run.clone())?) };
    Ok(RunLine {
        run: run.name.clone(),
        workflow: run.workflow.clone(),
        state,
        cause: run.cause,
        subject: run.subject.clone(),
        jobs: counts.iter().map(|count| count.jobs).sum(),
        settled: counts.iter().map(|count| count.settled).sum(),
        driven: driver(ctx, run)?.is_some(),
        paused_at: run.paused_at,
        created_at: run.created_at,
        started_at: run.started_at,
        ended_at: run.ended_at,
    })
}
