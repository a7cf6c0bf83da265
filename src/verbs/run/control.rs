//! `run pause`, `resume`, `stop`, `cancel`: rows that drivers and helpers obey.
//!
//! Nothing is signalled here: whoever drives or hosts looks at the run within 250 ms. A run that is paused launches
//! nothing and lets its lanes finish; one that is stopped ends drivers and lanes.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::find;
use crate::domain::event::EventType;
use crate::domain::id::RunId;
use crate::domain::run::RunState;
use crate::domain::time::Timestamp;
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::flow::finish;
use crate::verbs::{Ctx, tree};

/// What `run pause` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PauseRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
}

/// What `run resume` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ResumeRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
}

/// What `run stop` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StopRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
}

/// What `run cancel` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CancelRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
    /// Why; it is recorded.
    pub reason: String,
}

/// How a run stands after one of these verbs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ControlReport {
    /// The run's name.
    pub run: String,
    /// Where it is.
    pub state: RunState,
    /// When it was paused, if it is.
    pub paused_at: Option<Timestamp>,
    /// When it was stopped, if it is.
    pub stop_requested_at: Option<Timestamp>,
    /// It stood so before.
    pub already: bool,
    /// What else keeps it from moving, or lives on.
    pub notes: Vec<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// No new launches; what is held is finished.
pub fn pause(ctx: &Ctx, request: &PauseRequest) -> Result<ControlReport> {
    let fits = |run: &Run| run.paused_at.is_none();
    control(ctx, "run pause", request.run.as_deref(), fits, |tx, run| {
        if run.paused_at.is_some() {
            return Ok(false);
        }
        store::run::set_paused(tx, run.id, Some(tx.at))?;
        tell(tx, run.id, EventType::RunPaused, &json!({}))
    })
}

/// Drivers and standbys end, lanes are stopped; what they held is tried again after `run resume`.
pub fn stop(ctx: &Ctx, request: &StopRequest) -> Result<ControlReport> {
    let fits = |run: &Run| run.stop_requested_at.is_none();
    control(ctx, "run stop", request.run.as_deref(), fits, |tx, run| {
        if run.stop_requested_at.is_some() {
            return Ok(false);
        }
        store::run::set_stop(tx, run.id, Some(tx.at))?;
        tell(tx, run.id, EventType::RunStopped, &json!({}))
    })
}

/// Undoes `pause` and `stop`.
pub fn resume(ctx: &Ctx, request: &ResumeRequest) -> Result<ControlReport> {
    let fits = |run: &Run| run.paused_at.is_some() || run.stop_requested_at.is_some();
    control(ctx, "run resume", request.run.as_deref(), fits, |tx, run| {
        if run.paused_at.is_none() && run.stop_requested_at.is_none() {
            return Ok(false);
        }
        store::run::set_paused(tx, run.id, None)?;
        store::run::set_stop(tx, run.id, None)?;
        let was = json!({"paused": run.paused_at.is_some(), "stopped": run.stop_requested_at.is_some()});
        tell(tx, run.id, EventType::RunResumed, &was)
    })
}

/// Ends the run; work that exists is kept, and only `run retry-job` revives it.
pub fn cancel(ctx: &Ctx, request: &CancelRequest) -> Result<ControlReport> {
    if request.reason.trim().is_empty() {
        return Err(Error::new(Code::Usage, "`run cancel` needs --reason: it is recorded"));
    }
    let found = find::to_change(ctx, request.run.as_deref(), |_| false)?;
    let (run, already) = ctx.write("run cancel", |tx| {
        let run = store::run::get(tx, found.id)?;
        let already = run.state == RunState::Canceled;
        if !already {
            refuse_over(&run)?;
            finish::cancel(tx, &run, &request.reason)?;
        }
        Ok((store::run::get(tx, run.id)?, already))
    })?;
    tree::release::at_end(ctx, run.id)?;
    report(ctx, &run, already)
}

fn control(
    ctx: &Ctx,
    verb: &str,
    name: Option<&str>,
    fits: impl Fn(&Run) -> bool,
    change: impl FnOnce(&Writing<'_>, &Run) -> Result<bool>,
) -> Result<ControlReport> {
    let found = find::to_change(ctx, name, fits)?;
    let (run, changed) = ctx.write(verb, |tx| {
        let run = store::run::get(tx, found.id)?;
        refuse_over(&run)?;
        let changed = change(tx, &run)?;
        Ok((store::run::get(tx, run.id)?, changed))
    })?;
    report(ctx, &run, !changed)
}

/// A run that is over has nothing to be held back or ended.
fn refuse_over(run: &Run) -> Result<()> {
    if !run.state.is_terminal() {
        return Ok(());
    }
    let error = Error::new(Code::InvalidTransition, format!("run {} is {} already", run.name, run.state));
    Err(match run.state {
        RunState::Completed => error,
        _ => error.hint(format!("`striatum run retry-job --run-id {}` revives it", run.name)),
    })
}

fn tell(tx: &Writing<'_>, run: RunId, kind: EventType, body: &serde_json::Value) -> Result<bool> {
    store::event::append(tx, kind, About { run: Some(run), job: None, session: None }, body)?;
    Ok(true)
}

fn report(ctx: &Ctx, run: &Run, already: bool) -> Result<ControlReport> {
    let hosted = ctx.read(|read| {
        let active = store::session::active(read, run.id)?;
        Ok(active.iter().filter(|session| session.supervised).count())
    })?;
    let is_held_back = run.paused_at.is_some() || run.stop_requested_at.is_some();
    let mut notes = Vec::new();
    let mut next = Vec::new();
    if hosted > 0 && run.stop_requested_at.is_none() && run.paused_at.is_some() {
        notes.push(format!("{hosted} lane{} still at work and will finish", if hosted == 1 { " is" } else { "s are" }));
    }
    if run.state.is_terminal() {
        next.push(Next::new("anyone", "see what became of it", &["striatum", "run", "summary", "--run-id", &run.name]));
    } else if is_held_back {
        next.push(Next::new("operator", "let it go on", &["striatum", "run", "resume", "--run-id", &run.name]));
    } else {
        go_on(ctx, run, &mut notes, &mut next);
    }
    Ok(ControlReport {
        run: run.name.clone(),
        state: run.state,
        paused_at: run.paused_at,
        stop_requested_at: run.stop_requested_at,
        already,
        notes,
        next,
    })
}

/// What drives a run that nothing holds back any more.
fn go_on(ctx: &Ctx, run: &Run, notes: &mut Vec<String>, next: &mut Vec<Next>) {
    let file = ctx.layout().stop();
    if file.exists() {
        let shown = file.display().to_string();
        notes.push(format!("{shown} stands: nothing is launched until a person removes it"));
        next.push(Next::new("person", "lift the stop of the whole store", &["rm", &shown]));
    }
    if run.state == RunState::Ready {
        next.push(Next::new("operator", "start it", &["striatum", "run", "start", "--run-id", &run.name]));
        return;
    }
    match super::marker::holder(ctx, run) {
        Some(holder) => notes.push(format!("pid {} on {} drives it", holder.pid, holder.host)),
        None => next.push(Next::new("operator", "drive it", &["striatum", "run", "drive", "--run-id", &run.name])),
    }
}
