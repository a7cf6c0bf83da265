//! Performs one action of a driver: an exhaustive match, no decisions.
//!
//! Lifecycle verbs are called as anybody calls them; settlements are transactions of their own.

use serde_json::json;

use crate::domain::action::{Action, Launch};
use crate::domain::event::EventType;
use crate::domain::frozen::RoleContext;
use crate::domain::id::{JobId, ProposalId, RunId, SessionId};
use crate::domain::job::{Cause, JobEvent, Outcome};
use crate::domain::run::RunState;
use crate::domain::session::{GateState, LeaseState, SessionEvent, SessionState, SupervisorState};
use crate::error::{Code, Error, Result};
use crate::os::process::Handle;
use crate::store::event::About;
use crate::store::gate::Decided;
use crate::store::{self, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::attempt::{self, Ended};
use crate::verbs::flow::{Step, breaker, finish, gate, proposal, step, tell};
use crate::verbs::resource::destroy::{self, Begun};
use crate::verbs::session::{self as sessions, CloseRequest, Driven, RegisterRequest};
use crate::verbs::settle::{self, evidence};
use crate::verbs::supervise::ending;
use crate::verbs::supervise::start::{self, Purpose};
use crate::verbs::supervise::stop::{self, StopRequest};
use crate::verbs::work::claim;
use crate::verbs::work::hold::Hold;

/// Why a driver closes a lane, in the words of the RFC.
pub const CLOSING: &str = "lane completed its job; closing for fresh-policy";

/// What performing an action came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Something changed; a line for people, if it is worth one.
    Changed(Option<String>),
    /// A genuine fresh refusal: the author still works.
    FreshRefused(SessionId),
    /// Somebody else was faster, or it is no longer so.
    Moot,
}

/// Helpers that were just launched, to be watched for their end.
pub type Launched = Vec<(SessionId, Handle)>;

/// Performs an action.
pub fn act(ctx: &Ctx, run: RunId, action: &Action, launched: &mut Launched) -> Result<Done> {
    match action {
        Action::MarkLost { session } => mark_lost(ctx, *session),
        Action::Recover { session, job } => recover(ctx, *session, job, launched),
        Action::ExpireLease { session, job, .. } => expire_lease(ctx, run, *session, job),
        Action::ExpireSession { session } => expire_session(ctx, *session),
        Action::Observe { job, .. } => observe(ctx, *job),
        Action::NeverStarted { job, attempt, .. } => never_started(ctx, *job, *attempt),
        Action::StopLane { session, role, lane } => stop_lane(ctx, *session, role, lane),
        Action::CloseSession { session, role, lane } => close_session(ctx, *session, role, lane),
        Action::Adopt { session, job } => adopt(ctx, *session, job, launched),
        Action::Launch(launch) => launch_lane(ctx, run, launch, launched),
        Action::AdmitNext { proposal, .. } => admit_next(ctx, *proposal),
        Action::OpenGate { job, .. } => open_gate(ctx, run, *job),
        Action::ExpireGate { gate, .. } => expire_gate(ctx, *gate),
        Action::Destroy { id, resource, job } => destroy_resource(ctx, *id, (resource, job), launched),
        Action::Trip { breaker } => trip(ctx, run, *breaker),
        Action::Calm => calm(ctx, run),
        Action::Revive => revive(ctx, run),
        Action::Escalate { cause, subject } => escalate(ctx, run, *cause, subject),
        Action::Complete => complete(ctx, run),
    }
}

fn changed(line: impl Into<String>) -> Result<Done> {
    Ok(Done::Changed(Some(line.into())))
}

fn mark_lost(ctx: &Ctx, id: SessionId) -> Result<Done> {
    let scratch = ctx.layout().scratch(&id.to_string());
    // Both locks in hand: whoever was there is dead, and nobody new comes meanwhile.
    let (Some(helper), Some(lane)) = (
        crate::os::lock::Lock::try_exclusive(&scratch.helper_lock())?,
        crate::os::lock::Lock::try_exclusive(&scratch.lane_lock())?,
    ) else {
        return Ok(Done::Moot);
    };
    let line = ctx.write("settle", |tx| {
        let session = sessions::must_exist(tx, id)?;
        if session.state != SessionState::Active {
            return Ok(None);
        }
        let about = About { run: Some(session.run), job: None, session: Some(id) };
        if store::supervisor::end(tx, id, SupervisorState::Lost, "found dead")? {
            store::event::append(tx, EventType::SupervisorLost, about, &json!({}))?;
        }
        if session.packets == 0 {
            store::run::add_launch(tx, session.run)?;
        }
        let outcome = end_execution(tx, id)?;
        let why = match outcome {
            Outcome::NeverStarted => "its helper died before its agent started",
            _ => "its helper died again and again; nobody could look at what it left",
        };
        let job = sessions::release(tx, &session, outcome, why)?;
        sessions::end(tx, &session, SessionEvent::Lose, "its helper is gone")?;
        Ok(Some(job.map_or_else(|| format!("lost {id}"), |job| format!("lost {id} before it started {job}"))))
    })?;
    drop((helper, lane));
    Ok(line.map_or(Done::Moot, |line| Done::Changed(Some(line))))
}

/// Ends the execution of what a session holds, if any: never started, or lost.
fn end_execution(tx: &Writing<'_>, session: SessionId) -> Result<Outcome> {
    use crate::domain::session::ExecutionState;
    let Some(message) = store::message::held(tx, session)? else { return Ok(Outcome::NeverStarted) };
    let Some(agent) = store::execution::agent(tx, message.job, message.attempt)? else {
        return Ok(Outcome::NeverStarted);
    };
    let (state, outcome, detail) = match agent.state {
        ExecutionState::Starting => (ExecutionState::NotRun, Outcome::NeverStarted, "never started"),
        _ => (ExecutionState::Lost, Outcome::Lost, "nobody saw its exit"),
    };
    let ending = store::execution::Ending { detail: Some(detail.to_owned()), ..Default::default() };
    store::execution::ended(tx, agent.id, state, &ending)?;
    Ok(outcome)
}

fn recover(ctx: &Ctx, session: SessionId, job: &str, launched: &mut Launched) -> Result<Done> {
    match start::launch(ctx, session, Purpose::Recover) {
        Ok(handle) => {
            launched.push((session, handle));
            changed(format!("recovering {job} of {session}: its helper is gone"))
        }
        Err(error) if error.code == Code::StillHeld || error.code == Code::SessionEnded => Ok(Done::Moot),
        Err(error) => Err(error),
    }
}

fn expire_lease(ctx: &Ctx, run: RunId, session: SessionId, job: &str) -> Result<Done> {
    if settle_for(ctx, session)? {
        return changed(format!("settled {job} for {session}: it had answered before its lease ran out"));
    }
    let now = ctx.clock.moment();
    let expired = ctx.write("settle", |tx| {
        let run = store::run::get(tx, run)?;
        let overdue = store::lease::active_of_run(tx, run.id)?.into_iter().find(|lease| {
            lease.session == session && lease.deadline.as_ref().is_some_and(|deadline| deadline.is_past(&now))
        });
        match overdue {
            Some(lease) => claim::expire_lease(tx, &run, &lease).map(|()| Some(lease.attempt)),
            None => Ok(None),
        }
    })?;
    let Some(attempt) = expired else { return Ok(Done::Moot) };
    ending::end_attempt(&ctx.layout().scratch(&session.to_string()).attempt(job, attempt).tmp());
    changed(format!("expired {session}: its lease on {job} ran out"))
}

/// An unsupervised session answered, and whoever was to settle died: it is settled for it, where nothing has to run.
fn settle_for(ctx: &Ctx, id: SessionId) -> Result<bool> {
    let answered = ctx.read(|read| {
        let session = sessions::must_exist(read, id)?;
        let Some(message) = store::message::held(read, id)? else { return Ok(None) };
        let Some(lease) = store::lease::active_of_job(read, message.job)? else { return Ok(None) };
        let (run, job) = (store::run::get(read, session.run)?, store::job::get(read, message.job)?);
        let attempt = store::attempt::get(read, job.id, message.attempt)?;
        let answer = attempt.answer.filter(|_| job.spec.verify.is_empty());
        Ok(answer.map(|answer| (Hold { session, run, job, lease }, answer)))
    })?;
    let Some((hold, answer)) = answered else { return Ok(false) };
    if settle::without_work(&answer).is_some() {
        return Ok(false);
    }
    match settle::check(ctx, &hold, &answer, &mut settle::verify::Foreground)? {
        settle::Checked::Good(work) => settle::seal_now(ctx, &hold, &answer, &work).map(|()| true),
        settle::Checked::Bad(_) => Ok(false),
    }
}

fn expire_session(ctx: &Ctx, id: SessionId) -> Result<Done> {
    let now = ctx.clock.moment();
    let expired = ctx.write("settle", |tx| {
        let session = sessions::must_exist(tx, id)?;
        let is_over = session.state == SessionState::Active
            && session.deadline.as_ref().is_some_and(|deadline| deadline.is_past(&now))
            && store::message::held(tx, id)?.is_none();
        if is_over {
            sessions::end(tx, &session, SessionEvent::Expire, "it held nothing and did nothing for too long")?;
        }
        Ok(is_over)
    })?;
    if expired { changed(format!("expired {id}: it did nothing for too long")) } else { Ok(Done::Moot) }
}

fn observe(ctx: &Ctx, job: JobId) -> Result<Done> {
    crate::verbs::supervise::recover::observe_orphan(ctx, job)
}

fn never_started(ctx: &Ctx, job: JobId, number: u32) -> Result<Done> {
    let name = ctx.write("settle", |tx| {
        let job = store::job::get(tx, job)?;
        let message = store::message::live_of_job(tx, job.id)?;
        let is_pending = message.is_some_and(|message| {
            message.attempt == number && message.state == crate::domain::session::MessageState::Pending
        });
        if !is_pending {
            return Ok(None);
        }
        let run = store::run::get(tx, job.run)?;
        // It leaves the queue before it is put there again.
        step(tx, &job, &Step { event: JobEvent::Block, reason: None, settled: false })?;
        let job = store::job::get(tx, job.id)?;
        attempt::end(tx, &run, &job, Ended::plain(Outcome::NeverStarted, "its session ended without taking it"))?;
        Ok(Some(job.name))
    })?;
    match name {
        Some(name) => changed(format!("requeued {name}: its session ended without taking it")),
        None => Ok(Done::Moot),
    }
}

fn stop_lane(ctx: &Ctx, session: SessionId, role: &str, lane: &str) -> Result<Done> {
    let request = StopRequest { session, reason: CLOSING.to_owned(), drain: true };
    if stop::stop(ctx, &request)?.asked {
        changed(format!("closed {role}/{lane} ({session}): {CLOSING}"))
    } else {
        Ok(Done::Moot)
    }
}

fn close_session(ctx: &Ctx, session: SessionId, role: &str, lane: &str) -> Result<Done> {
    let request = CloseRequest { session, reason: CLOSING.to_owned() };
    match sessions::close(ctx, &request) {
        Ok(_) => changed(format!("closed {role}/{lane} ({session}): {CLOSING}")),
        Err(error) if error.code == Code::StillHeld => Ok(Done::Moot),
        Err(error) => Err(error),
    }
}

fn adopt(ctx: &Ctx, session: SessionId, job: &str, launched: &mut Launched) -> Result<Done> {
    ctx.write("run drive", |tx| Ok(store::session::adopt(tx, session)?))?;
    match start::launch(ctx, session, Purpose::Host) {
        Ok(handle) => {
            launched.push((session, handle));
            changed(format!("adopted {session} for {job}"))
        }
        Err(error) if is_moot(&error) => Ok(Done::Moot),
        Err(error) => Err(error),
    }
}

fn is_moot(error: &Error) -> bool {
    matches!(error.code, Code::StillHeld | Code::SessionEnded | Code::SlotCovered | Code::NotRunning)
}

fn launch_lane(ctx: &Ctx, run: RunId, launch: &Launch, launched: &mut Launched) -> Result<Done> {
    let request = RegisterRequest {
        role: launch.role.clone(),
        lane: launch.lane.clone(),
        fresh: launch.fresh,
        ..RegisterRequest::default()
    };
    let driven = Driven { offered: Some((launch.job, launch.attempt)), by_driver: true };
    let registered = match sessions::register_in(ctx, run, &request, driven) {
        Err(error) if error.code == Code::FreshRefused => {
            close_drained_authors(ctx, run)?;
            sessions::register_in(ctx, run, &request, driven)
        }
        other => other,
    };
    let report = match registered {
        Ok(report) => report,
        Err(error) if error.code == Code::FreshRefused => {
            let author = ctx.read(|read| sessions::blocking(read, &store::run::get(read, run)?))?;
            return Ok(author.map_or(Done::Moot, Done::FreshRefused));
        }
        Err(error) if is_moot(&error) => return Ok(Done::Moot),
        Err(error) => return Err(error),
    };
    crate::os::crash::point("launch.registered");
    match start::launch(ctx, report.session, Purpose::Host) {
        Ok(handle) => launched.push((report.session, handle)),
        Err(error) if is_moot(&error) => return Ok(Done::Moot),
        Err(error) => return Err(error),
    }
    let Launch { role, lane, name, .. } = launch;
    match launch.lost {
        Some(lost) => changed(format!("relaunched {role}/{lane} for {name} (prior session {lost} went non-live)")),
        None => changed(format!("launched {role}/{lane} for {name} ({})", report.session)),
    }
}

/// Sessions of author roles whose job is completed and which hold nothing are told to end, once.
fn close_drained_authors(ctx: &Ctx, run: RunId) -> Result<()> {
    let drained = ctx.read(|read| {
        let run = store::run::get(read, run)?;
        let is_fresh = |role: &str| run.spec.roles.get(role).is_some_and(|role| role.context == RoleContext::Fresh);
        let mut drained = Vec::new();
        for session in store::session::active(read, run.id)? {
            let idle = store::message::held(read, session.id)?.is_none() && session.packets > 0;
            if session.driven && idle && !is_fresh(&session.role) && run.spec.author_roles.contains(&session.role) {
                drained.push(session);
            }
        }
        Ok(drained)
    })?;
    for session in drained {
        stop_lane(ctx, session.id, &session.role, &session.lane)?;
    }
    Ok(())
}

fn admit_next(ctx: &Ctx, id: ProposalId) -> Result<Done> {
    match ctx.write("settle", |tx| proposal::settle(tx, id))? {
        Some(line) => changed(line),
        None => Ok(Done::Moot),
    }
}

fn open_gate(ctx: &Ctx, run: RunId, job: JobId) -> Result<Done> {
    let now = ctx.clock.moment();
    let opened = ctx.write("settle", |tx| {
        let (run, job) = (store::run::get(tx, run)?, store::job::get(tx, job)?);
        Ok(gate::open(tx, &run, &job, &now)?.map(|gate| (gate, job.name)))
    })?;
    match opened {
        Some((gate, name)) => changed(format!("opened gate {gate} before {name}; striatum gate approve {gate}")),
        None => Ok(Done::Moot),
    }
}

fn expire_gate(ctx: &Ctx, gate: crate::domain::id::GateId) -> Result<Done> {
    let expired = ctx.write("settle", |tx| {
        let decided = store::gate::decide(tx, gate, &Decided { state: GateState::Expired, how: "time", note: None })?;
        if decided && let Some(row) = store::gate::get(tx, gate)? {
            tell(tx, EventType::GateExpired, &store::job::get(tx, row.job)?, &json!({"gate": gate}))?;
        }
        Ok(decided)
    })?;
    if expired { changed(format!("gate {gate} expired; it is opened anew")) } else { Ok(Done::Moot) }
}

fn destroy_resource(ctx: &Ctx, id: i64, (name, job): (&str, &str), launched: &mut Launched) -> Result<Done> {
    match destroy::begin(ctx, id)? {
        Begun::Started(session, handle) => {
            launched.push((session, handle));
            changed(format!("destroying {name} of {job}: its holder is gone"))
        }
        Begun::Left => changed(format!("{name} of {job} could not be destroyed; striatum gc")),
        Begun::Moot => Ok(Done::Moot),
    }
}

fn revive(ctx: &Ctx, run: RunId) -> Result<Done> {
    ctx.write("settle", |tx| finish::revive(tx, run, "something can move again"))?;
    changed("the run goes on")
}

fn trip(ctx: &Ctx, run: RunId, cause: Cause) -> Result<Done> {
    match ctx.write("settle", |tx| breaker::trip_run(tx, run, cause))? {
        Some(line) => changed(line),
        None => Ok(Done::Moot),
    }
}

fn calm(ctx: &Ctx, run: RunId) -> Result<Done> {
    let calmed = ctx.write("settle", |tx| {
        let run = store::run::get(tx, run)?;
        if !breaker::forget(tx, &run, Cause::NoProgress)? {
            return Ok(false);
        }
        if run.state == RunState::NeedsOperator && run.cause == Some(Cause::NoProgress) {
            finish::revive(tx, run.id, "what is in flight makes progress again")?;
        }
        Ok(true)
    })?;
    if calmed { changed("what is in flight makes progress again") } else { Ok(Done::Moot) }
}

fn escalate(ctx: &Ctx, run: RunId, cause: Cause, subject: &str) -> Result<Done> {
    ctx.write("settle", |tx| {
        let run = store::run::get(tx, run)?;
        finish::escalate(tx, &run, cause, subject, &format!("{subject}: {cause}"))
    })?;
    Ok(Done::Changed(None))
}

fn complete(ctx: &Ctx, run: RunId) -> Result<Done> {
    let state = || ctx.read(|read| Ok(store::run::get(read, run)?.state));
    let before = state()?;
    evidence::complete(ctx, run)?;
    // What is damaged stays so until somebody mends it.
    Ok(if state()? == before { Done::Moot } else { Done::Changed(None) })
}

/// A stale job goes back to the queue: what it did is contained or nothing.
pub fn requeue_stale(ctx: &Ctx, job: JobId, detail: &str) -> Result<Done> {
    let name = ctx.write("settle", |tx| {
        let job = store::job::get(tx, job)?;
        if job.state != crate::domain::job::JobState::Stale {
            return Ok(None);
        }
        let run = store::run::get(tx, job.run)?;
        let ended = Ended { lease: LeaseState::Revoked, ..Ended::plain(Outcome::Lost, detail) };
        attempt::end(tx, &run, &job, ended)?;
        Ok(Some(job.name))
    })?;
    match name {
        Some(name) => changed(format!("requeued {name}: {detail}")),
        None => Ok(Done::Moot),
    }
}
