//! `lane list / pause / resume`: what is known of lanes over all runs of the store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::{LaneMode, LaneSpec};
use crate::domain::job::Cause;
use crate::domain::run::RunState;
use crate::domain::time::{Moment, Timestamp};
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::lane::LaneRow;
use crate::store::{self, Connection, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::finish;

/// What `lane list` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListRequest {}

/// A lane, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneLine {
    /// Its name.
    pub lane: String,
    /// How its agents live; none when no live run has it.
    pub mode: Option<LaneMode>,
    /// Concurrent sessions over all runs.
    pub max_sessions: Option<u32>,
    /// Jobs that it holds now.
    pub holds: u32,
    /// Live runs that have it.
    pub runs: Vec<String>,
    /// A person or the give-up limit parked it.
    pub parked_at: Option<Timestamp>,
    /// Why.
    pub parked_reason: Option<String>,
    /// Milliseconds until it is tried again, while it cools down.
    pub cooling_ms: Option<i64>,
    /// Failures in a row.
    pub failures: u32,
}

/// What `lane list` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// Lanes of live runs, and every one that something is known of, by name.
    pub lanes: Vec<LaneLine>,
}

/// Lists lanes.
pub fn list(ctx: &Ctx, _request: &ListRequest) -> Result<ListReport> {
    let now = ctx.clock.moment();
    ctx.read(|read| {
        let mut known: BTreeMap<String, (Option<LaneSpec>, Vec<String>)> = BTreeMap::new();
        for run in store::run::live(read, u32::MAX)? {
            for (name, spec) in run.spec.lanes {
                let entry = known.entry(name).or_default();
                entry.0 = Some(spec);
                entry.1.push(run.name.clone());
            }
        }
        for name in store::lane::names(read)? {
            known.entry(name).or_default();
        }
        let lanes = known.into_iter().map(|(name, lane)| line(read, name, lane, &now)).collect::<Result<_>>()?;
        Ok(ListReport { lanes })
    })
}

fn line(read: &Connection, lane: String, of: (Option<LaneSpec>, Vec<String>), now: &Moment) -> Result<LaneLine> {
    let (spec, runs) = of;
    let row = store::lane::get(read, &lane)?;
    let cooling = row.cooling_until.filter(|until| row.parked_at.is_none() && !until.is_past(now));
    Ok(LaneLine {
        mode: spec.as_ref().map(|spec| spec.mode),
        max_sessions: spec.as_ref().map(|spec| spec.max_sessions),
        holds: store::lease::count_lane(read, &lane)?,
        runs,
        parked_at: row.parked_at,
        parked_reason: row.parked_reason,
        cooling_ms: cooling.map(|until| until.ms.saturating_sub(now.ms)),
        failures: row.cooling_step,
        lane,
    })
}

/// What `lane pause` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PauseRequest {
    /// The lane.
    pub lane: String,
    /// Why.
    pub reason: Option<String>,
}

/// What `lane resume` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResumeRequest {
    /// The lane.
    pub lane: String,
    /// Why.
    pub reason: Option<String>,
}

/// What pausing and resuming tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangeReport {
    /// The lane.
    pub lane: String,
    /// No launches and no claims now.
    pub is_parked: bool,
    /// It had been so before.
    pub already: bool,
    /// Jobs that go on there to their end.
    pub holds: u32,
    /// Runs that were stuck for want of it and live again.
    pub revived: Vec<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// No launches and no claims in a lane, in any run; what works there goes on.
pub fn pause(ctx: &Ctx, request: &PauseRequest) -> Result<ChangeReport> {
    let reason = request.reason.as_deref().unwrap_or("paused by an operator");
    ctx.write("lane pause", |tx| {
        must_be_known(tx, &request.lane)?;
        let row = store::lane::get(tx, &request.lane)?;
        let already = row.parked_at.is_some();
        if !already {
            let parked = LaneRow { parked_at: Some(tx.at), parked_reason: Some(reason.to_owned()), ..row };
            store::lane::put(tx, &request.lane, &parked)?;
            tell(tx, EventType::LaneParked, &request.lane, reason)?;
        }
        Ok(ChangeReport {
            lane: request.lane.clone(),
            is_parked: true,
            already,
            holds: store::lease::count_lane(tx, &request.lane)?,
            revived: Vec::new(),
            next: vec![Next::new("operator", "let it work again", &["striatum", "lane", "resume", &request.lane])],
        })
    })
}

/// A lane works again at once: parked or cooling down, its trouble is forgotten.
pub fn resume(ctx: &Ctx, request: &ResumeRequest) -> Result<ChangeReport> {
    let reason = request.reason.as_deref().unwrap_or("resumed by an operator");
    ctx.write("lane resume", |tx| {
        must_be_known(tx, &request.lane)?;
        let row = store::lane::get(tx, &request.lane)?;
        let already = row.parked_at.is_none() && row.cooling_until.is_none();
        if !already {
            store::lane::put(tx, &request.lane, &LaneRow::default())?;
            tell(tx, EventType::LaneResumed, &request.lane, reason)?;
        }
        let revived = revive(tx, &request.lane, reason)?;
        let next =
            revived.first().map(|run| Next::new("operator", "go on", &["striatum", "run", "drive", "--run-id", run]));
        Ok(ChangeReport {
            lane: request.lane.clone(),
            is_parked: false,
            already,
            holds: store::lease::count_lane(tx, &request.lane)?,
            revived,
            next: next.into_iter().collect(),
        })
    })
}

/// Runs that stopped because this lane was parked.
fn revive(tx: &Writing<'_>, lane: &str, reason: &str) -> Result<Vec<String>> {
    let mut revived = Vec::new();
    for run in store::run::live(tx, u32::MAX)? {
        let is_stuck = run.state == RunState::NeedsOperator && run.cause == Some(Cause::LaneParked);
        if is_stuck && run.spec.lanes.contains_key(lane) {
            finish::revive(tx, run.id, reason)?;
            revived.push(run.name);
        }
    }
    Ok(revived)
}

fn tell(tx: &Writing<'_>, kind: EventType, lane: &str, why: &str) -> Result<()> {
    let about = About { run: None, job: None, session: None };
    Ok(store::event::append(tx, kind, about, &json!({"lane": lane, "why": why}))?)
}

/// A typing error would park nothing, silently.
fn must_be_known(read: &Connection, lane: &str) -> Result<()> {
    let mut known: Vec<String> =
        store::run::live(read, u32::MAX)?.into_iter().flat_map(|run| run.spec.lanes.into_keys()).collect();
    known.extend(store::lane::names(read)?);
    if known.iter().any(|name| name == lane) {
        return Ok(());
    }
    known.sort();
    known.dedup();
    let hint =
        if known.is_empty() { "no live run has a lane".to_owned() } else { format!("there are {}", known.join(", ")) };
    Err(Error::new(Code::NotFound, format!("no live run has a lane {lane}")).hint(hint))
}
