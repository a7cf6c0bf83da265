//! `run start`: the roots go into the queue.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::find;
use crate::domain::event::EventType;
use crate::domain::run::{RunEvent, RunState};
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::run::StateChange;
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::flow::offer;

/// What `run start` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StartRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
}

/// What `run start` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartReport {
    /// The run's name.
    pub run: String,
    /// Where it is now.
    pub state: RunState,
    /// It had been started before.
    pub already: bool,
    /// Files that say something else than when it was prepared.
    pub warnings: Vec<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Starts a prepared run.
pub fn start(ctx: &Ctx, request: &StartRequest) -> Result<StartReport> {
    let run = find::to_change(ctx, request.run.as_deref())?;
    let warnings = super::files::edited(ctx, &run)?;
    ctx.write("run start", |tx| {
        let run = store::run::get(tx, run.id)?;
        if run.state.is_terminal() {
            return Err(Error::new(Code::NotRunning, format!("run {} is {}", run.name, run.state)));
        }
        let already = run.state != RunState::Ready;
        if !already {
            let state = run.state.next(RunEvent::Start)?;
            store::run::set_state(tx, run.id, &StateChange { state, cause: None, subject: None, reason: None })?;
            let about = About { run: Some(run.id), job: None, session: None };
            store::event::append(tx, EventType::RunStarted, about, &json!({}))?;
            for job in store::job::kept(tx, run.id, u32::MAX)? {
                offer::release(tx, &run, job.id)?;
            }
        }
        let next = Next::new("operator", "take it to done", &["striatum", "run", "drive", "--run-id", &run.name]);
        Ok(StartReport { run: run.name.clone(), state: RunState::Running, already, warnings, next: vec![next] })
    })
}
