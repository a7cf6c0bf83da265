//! `supervise stop`, `supervise status`: what a helper is told, and how it does.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::id::SessionId;
use crate::domain::session::{SessionState, StopKind, SupervisorState};
use crate::domain::time::Timestamp;
use crate::error::Result;
use crate::os::lock::{Held, probe};
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::session::must_exist;

/// What `supervise stop` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopRequest {
    /// The session.
    pub session: SessionId,
    /// Why.
    pub reason: String,
    /// Let it finish what it holds first.
    pub drain: bool,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StopReport {
    /// The session.
    pub session: SessionId,
    /// A helper was told; it obeys within 250 ms.
    pub asked: bool,
}

/// Tells a helper to end; its session closes with it.
pub fn stop(ctx: &Ctx, request: &StopRequest) -> Result<StopReport> {
    let kind = if request.drain { StopKind::Drain } else { StopKind::Now };
    ctx.write("supervise stop", |tx| {
        let session = must_exist(tx, request.session)?;
        let asked = session.state == SessionState::Active
            && store::supervisor::ask_stop(tx, session.id, kind, &request.reason)?;
        if asked {
            let about = store::event::About { run: Some(session.run), job: None, session: Some(session.id) };
            let body = json!({"why": request.reason, "kind": kind});
            store::event::append(tx, EventType::SupervisorStopRequested, about, &body)?;
        }
        Ok(StopReport { session: session.id, asked })
    })
}

/// What `supervise status` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusRequest {
    /// The session.
    pub session: SessionId,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// The session.
    pub session: SessionId,
    /// Where the session is.
    pub state: SessionState,
    /// Where its newest helper is.
    pub supervisor: Option<SupervisorState>,
    /// The helper's process.
    pub pid: Option<i64>,
    /// Somebody holds the helper's lock: it lives.
    pub helper_alive: bool,
    /// Somebody holds the agent's lock: helper or agent lives.
    pub lane_alive: bool,
    /// The job it works on.
    pub holds: Option<String>,
    /// When the helper was asked for.
    pub requested_at: Option<Timestamp>,
    /// When the helper ended.
    pub ended_at: Option<Timestamp>,
    /// Why.
    pub end_reason: Option<String>,
    /// Its own words.
    pub log: String,
}

/// Tells how a session's helper does.
pub fn status(ctx: &Ctx, request: &StatusRequest) -> Result<StatusReport> {
    let scratch = ctx.layout().scratch(&request.session.to_string());
    let (session, newest, holds) = ctx.read(|read| {
        let session = must_exist(read, request.session)?;
        let holds = match store::message::held(read, session.id)? {
            Some(message) => Some(store::job::get(read, message.job)?.name),
            None => None,
        };
        Ok((session, store::supervisor::newest(read, request.session)?, holds))
    })?;
    Ok(StatusReport {
        session: session.id,
        state: session.state,
        supervisor: newest.as_ref().map(|newest| newest.state),
        pid: newest.as_ref().and_then(|newest| newest.process.as_ref().map(|process| process.0)),
        helper_alive: probe(&scratch.helper_lock())? == Held::Held,
        lane_alive: probe(&scratch.lane_lock())? == Held::Held,
        holds,
        requested_at: newest.as_ref().map(|newest| newest.requested_at),
        ended_at: newest.as_ref().and_then(|newest| newest.ended_at),
        end_reason: newest.and_then(|newest| newest.end_reason),
        log: scratch.helper_log().display().to_string(),
    })
}
