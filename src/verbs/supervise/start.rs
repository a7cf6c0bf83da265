//! `supervise start`: launches a session's helper. Intent, effect, and the helper's first words are the outcome.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::LaneMode;
use crate::domain::id::SessionId;
use crate::domain::job::JobEvent;
use crate::domain::session::SessionState;
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::os::lock::Lock;
use crate::os::process::{Handle, HelperCommand, spawn_helper};
use crate::store::{self, Writing};
use crate::verbs::flow::{Step, step, tell};
use crate::verbs::session::must_exist;
use crate::verbs::{Ctx, trust};

/// The hidden verb of a helper.
pub const HELPER_VERB: &str = "__supervise";

/// What `supervise start` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartRequest {
    /// The session.
    pub session: SessionId,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartReport {
    /// The session.
    pub session: SessionId,
    /// The helper's process.
    pub pid: i32,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Launches a helper for an active session.
pub fn start(ctx: &Ctx, request: &StartRequest) -> Result<StartReport> {
    let run = ctx.read(|read| Ok(store::run::get(read, must_exist(read, request.session)?.run)?))?;
    trust::check_run(ctx, &run, None)?;
    if !trust::may_launch(ctx, &run) {
        return Err(trust::nobody_trusts(&run));
    }
    let handle = launch(ctx, request.session, Purpose::Host)?;
    let sid = request.session.to_string();
    Ok(StartReport {
        session: request.session,
        pid: handle.identity().pid,
        next: vec![Next::new(
            "operator",
            "see how it does",
            &["striatum", "supervise", "status", "--session-id", &sid],
        )],
    })
}

/// What a helper is launched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Host agents.
    Host,
    /// Watch, observe and settle after a helper that died.
    Recover,
}

/// Takes the locks, records the intent, starts the helper with the locks in its hands.
pub fn launch(ctx: &Ctx, session: SessionId, purpose: Purpose) -> Result<Handle> {
    let scratch = ctx.layout().scratch(&session.to_string());
    files::create_private_dirs(ctx.layout().root(), scratch.folder())?;
    let helper = Lock::try_exclusive(&scratch.helper_lock())?.ok_or_else(|| hosted(session))?;
    let lane = Lock::try_exclusive(&scratch.lane_lock())?;
    if purpose == Purpose::Host && lane.is_none() {
        return Err(Error::new(Code::StillHeld, format!("an agent of {session} is still alive"))
            .hint("`run drive` recovers it"));
    }
    let supervisor = ctx.write("supervise start", |tx| intend(tx, session, purpose))?;
    crate::os::crash::point("start.intended");
    let mut args = vec![HELPER_VERB.to_owned(), session.to_string(), supervisor.to_string()];
    if purpose == Purpose::Recover {
        args.push("--recover".to_owned());
    }
    let command = HelperCommand {
        exe: ctx.exe.clone(),
        args: args.into_iter().map(Into::into).collect(),
        cwd: ctx.layout().project().to_owned(),
        env: vec![("STRIATUM_DIR".into(), ctx.layout().root().into())],
        log: scratch.helper_log(),
    };
    let handle = spawn_helper(&command, helper, lane)?;
    crate::os::crash::point("start.spawned");
    Ok(handle)
}

fn hosted(session: SessionId) -> Error {
    let sid = session.to_string();
    Error::new(Code::StillHeld, format!("{sid} has a helper already")).next(Next::new(
        "anyone",
        "see how it does",
        &["striatum", "supervise", "status", "--session-id", &sid],
    ))
}

fn intend(tx: &Writing<'_>, session: SessionId, purpose: Purpose) -> Result<i64> {
    use crate::domain::session::SupervisorState;
    let session = must_exist(tx, session)?;
    if session.state != SessionState::Active {
        return Err(Error::new(Code::SessionEnded, format!("{} is {}", session.id, session.state)));
    }
    let run = store::run::get(tx, session.run)?;
    let is_launchable = run.spec.lanes.get(&session.lane).is_some_and(|lane| lane.mode != LaneMode::Human);
    if !is_launchable {
        return Err(Error::new(
            Code::InvalidTransition,
            format!("lane {} is a person: nothing to start", session.lane),
        ));
    }
    let about = store::event::About { run: Some(session.run), job: None, session: Some(session.id) };
    // The locks are ours, so whoever was there before is dead.
    if store::supervisor::end(tx, session.id, SupervisorState::Lost, "found dead")? {
        store::event::append(tx, EventType::SupervisorLost, about, &json!({}))?;
    }
    if purpose == Purpose::Recover {
        lose_work(tx, session.id)?;
    }
    store::session::supervise(tx, session.id)?;
    let supervisor = store::supervisor::insert(tx, session.id, purpose == Purpose::Recover)?;
    let kind = match purpose {
        Purpose::Host => EventType::SupervisorRequested,
        Purpose::Recover => EventType::SupervisorRecovered,
    };
    store::event::append(tx, kind, about, &json!({}))?;
    Ok(supervisor)
}

/// What the session holds is stale until it was observed: nobody knows yet what became of it.
fn lose_work(tx: &Writing<'_>, session: SessionId) -> Result<()> {
    let Some(message) = store::message::held(tx, session)? else { return Ok(()) };
    let job = store::job::get(tx, message.job)?;
    if job.state.is_held() {
        step(tx, &job, &Step { event: JobEvent::Lose, reason: Some("its helper is gone"), settled: false })?;
        tell(tx, EventType::JobStale, &job, &json!({"attempt": message.attempt, "session": session}))?;
    }
    Ok(())
}
