//! `work claim` and `work ack`: capacity, freshness and the take itself in one transaction.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::hold::{self, Credentials, Hold};
use super::layout::{self, Grant};
use crate::domain::breaker;
use crate::domain::event::EventType;
use crate::domain::frozen::{LaneMode, TreeKind};
use crate::domain::id::{JobId, LeaseId, MessageId, SessionId};
use crate::domain::job::{Cause, JobEvent, JobState, Outcome, Phase};
use crate::domain::run::RunState;
use crate::domain::session::{MessageEvent, SessionEvent, SessionState};
use crate::domain::time::Moment;
use crate::domain::word::word_enum;
use crate::error::{Code, Error, Next, Result};
use crate::os::process::Identity;
use crate::store::job::{Job, Move};
use crate::store::lease::NewLease;
use crate::store::message::Message;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::store::{self, Connection, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::{Step, agreement, attempt, step, tell};
use crate::verbs::resource::{self, Prepared};
use crate::verbs::session as sessions;
use crate::verbs::settle::verify::Foreground;
use crate::verbs::tree::provision::{self, Ground, Provided};

word_enum! {
    /// Why a claim got nothing.
    NoWork "no_work reason" {
        /// Nothing is offered to the slot.
        NoPending "no_pending",
        /// What is offered may not be claimed yet.
        NotBefore "not_before",
        /// As many jobs of the run are held as may be.
        Capacity "capacity",
        /// As many jobs of the lane are held, over all runs, as may be.
        LaneCapacity "lane_capacity",
        /// The run is paused.
        Paused "paused",
        /// The run is stopped.
        Stopped "stopped",
        /// The run is not running.
        RunNotRunning "run_not_running",
        /// The lane is parked.
        LaneParked "lane_parked",
        /// The lane cools down.
        LaneCooling "lane_cooling",
        /// The session has done its one job.
        OneJobDone "one_job_done",
        /// The review needs a session that held nothing upstream.
        FreshSessionRequired "fresh_session_required",
        /// The claiming process held something upstream, or the job under review.
        ProcessLineage "process_lineage",
        /// The session worked on the job under review.
        OwnWork "own_work",
        /// The run's money is spent.
        Cost "cost",
        /// The run's working time is spent.
        ActiveTime "active_time",
        /// What is offered may not be worked as things stand: the plan and the world disagree.
        PlanDisagrees "plan_disagrees",
        /// The session is to end.
        Stopping "stopping",
        /// The session has ended.
        SessionEnded "session_ended",
        /// Nothing came in time.
        TimedOut "timed_out",
    }
}

/// What `work claim` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClaimRequest {
    /// Who claims.
    pub who: Credentials,
    /// The claiming process of an unsupervised session: the caller's parent; set by the mouth.
    #[serde(skip)]
    pub process: Option<Identity>,
}

/// What `work claim` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ClaimReport {
    /// An attempt.
    Claimed {
        /// The run's name.
        run: String,
        /// The job's name.
        job: String,
        /// Which try.
        attempt: u32,
        /// The hold.
        lease: LeaseId,
        /// Named by each verb.
        fence: i64,
        /// Where to work.
        cwd: String,
        /// The packet's file.
        packet: String,
        /// The prompt's file.
        prompt: String,
        /// What to do next.
        next: Vec<Next>,
    },
    /// Nothing.
    NoWork {
        /// Why.
        reason: NoWork,
        /// The run is over, so nothing will come.
        is_final: bool,
    },
}

/// A granted hold.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The queue entry.
    pub message: MessageId,
    /// The job.
    pub job: JobId,
    /// Which try.
    pub attempt: u32,
    /// The hold.
    pub lease: LeaseId,
    /// Named by each verb.
    pub fence: i64,
}

/// Claims for an unsupervised session and lays out the work.
pub fn claim(ctx: &Ctx, request: &ClaimRequest) -> Result<ClaimReport> {
    let now = ctx.clock.moment();
    let taken = ctx.write("work claim", |tx| {
        let session = hold::session(ctx, tx, &request.who)?;
        if let Some(process) = request.process.as_ref().filter(|_| session.process.is_none()) {
            let (pid, start) = (i64::from(process.pid), ticks(process));
            store::session::set_process(tx, session.id, pid, start, &process.boot)?;
        }
        let session = sessions::must_exist(tx, session.id)?;
        let run = store::run::get(tx, session.run)?;
        hold::touch(ctx, tx, &run, session.id)?;
        expire_overdue(tx, &run, &now)?;
        Ok(match take(tx, &run, &session, &now)? {
            Ok(granted) => Ok((granted, run, session)),
            Err(reason) => Err((reason, run.state.is_terminal())),
        })
    })?;
    match taken {
        Ok((granted, run, session)) => {
            crate::os::crash::point("claim.taken");
            let ground = ground(ctx, &granted)?;
            let laid = layout::lay_out(ctx, &Grant { granted: &granted, run: &run, session: &session }, ground)?;
            Ok(report(&granted, &run, &session, laid))
        }
        Err((reason, is_final)) => Ok(ClaimReport::NoWork { reason, is_final }),
    }
}

/// The tree and the resource of a granted attempt, for a session that has no helper to make them ready: what can't be
/// made ready ends the attempt.
pub fn ground(ctx: &Ctx, granted: &Granted) -> Result<Option<Ground>> {
    let hold = ctx.read(|read| {
        let job = store::job::get(read, granted.job)?;
        if job.spec.tree == TreeKind::None && job.spec.ephemeral.is_none() {
            return Ok(None);
        }
        let lease = store::lease::active_of_job(read, granted.job)?
            .filter(|lease| lease.id == granted.lease)
            .ok_or_else(|| Error::new(Code::LeaseEnded, "the lease was taken away"))?;
        let session = sessions::must_exist(read, lease.session)?;
        Ok(Some(Hold { run: store::run::get(read, session.run)?, session, job, lease }))
    })?;
    let Some(hold) = hold else { return Ok(None) };
    let (what, outcome, why) = match provision::provide(ctx, &hold, &mut Foreground)? {
        Provided::Unusable(why) => ("work tree", Outcome::Environment, why),
        Provided::Told(why) => ("work tree", Outcome::Interrupted, why),
        provided @ (Provided::None | Provided::Ground(_)) => match resource::prepare(ctx, &hold, &mut Foreground)? {
            Prepared::None | Prepared::Ready => return Ok(provided.ground()),
            Prepared::Unusable(why) => ("resource", Outcome::Environment, why),
            Prepared::Told(why) => ("resource", Outcome::Interrupted, why),
        },
    };
    ctx.write("work claim", |tx| {
        let job = store::job::get(tx, granted.job)?;
        if job.state == JobState::Claimed {
            start(tx, &job, hold.session.id)?;
        }
        attempt::end(tx, &hold.run, &store::job::get(tx, job.id)?, attempt::Ended::plain(outcome, why.clone()))
    })?;
    Err(Error::new(Code::NotRun, format!("the {what} of {} could not be made ready", hold.job.name)).cause(why))
}

/// Start ticks as a column holds them.
pub fn ticks(process: &Identity) -> i64 {
    i64::try_from(process.start_ticks).unwrap_or(i64::MAX)
}

fn report(granted: &Granted, run: &Run, session: &Session, laid: layout::Laid) -> ClaimReport {
    let (sid, fence) = (session.id.to_string(), granted.fence.to_string());
    let token = laid.folder.folder().with_file_name("token").display().to_string();
    // The environment of an agent in a lane names its session.
    let who: &[&str] = if session.supervised { &[] } else { &["--session-id", &sid, "--token-file", &token] };
    let command = |verb: &str, why: &str| {
        let words = [&["striatum", "work", verb], who, &["--fence", &fence]].concat();
        Next::new("session", why, &words)
    };
    let next = vec![command("ack", "say that you start"), command("complete", "say that it is done")];
    ClaimReport::Claimed {
        run: run.name.clone(),
        job: laid.packet.job.clone(),
        attempt: granted.attempt,
        lease: granted.lease,
        fence: granted.fence,
        cwd: laid.packet.cwd.clone(),
        packet: laid.folder.packet().display().to_string(),
        prompt: laid.folder.prompt().display().to_string(),
        next,
    }
}

/// Lazy expiry: holds of unsupervised sessions of this run that ran out go back to the queue.
pub fn expire_overdue(tx: &Writing<'_>, run: &Run, now: &Moment) -> Result<()> {
    for lease in store::lease::active_of_run(tx, run.id)? {
        if lease.deadline.as_ref().is_some_and(|deadline| deadline.is_past(now)) {
            expire_lease(tx, run, &lease)?;
        }
    }
    Ok(())
}

/// Ends an overdue hold: its session expires, its attempt is lost.
pub fn expire_lease(tx: &Writing<'_>, run: &Run, lease: &store::lease::Lease) -> Result<()> {
    use crate::domain::session::LeaseState;
    let job = store::job::get(tx, lease.job)?;
    let ended = attempt::Ended {
        lease: LeaseState::Expired,
        ..attempt::Ended::plain(Outcome::Lost, format!("lease {} of {} ran out", lease.id, lease.session))
    };
    attempt::end(tx, run, &job, ended)?;
    let session = sessions::must_exist(tx, lease.session)?;
    if session.state == SessionState::Active {
        sessions::end(tx, &session, SessionEvent::Expire, "its lease ran out")?;
    }
    Ok(())
}

/// Takes the oldest message that the session may have.
pub fn take(
    tx: &Writing<'_>,
    run: &Run,
    session: &Session,
    now: &Moment,
) -> Result<std::result::Result<Granted, NoWork>> {
    let mut refused = None;
    loop {
        let message = match choose(tx, run, session, now)? {
            Ok(message) => message,
            Err(NoWork::NoPending) => return Ok(Err(refused.unwrap_or(NoWork::NoPending))),
            Err(reason) => return Ok(Err(reason)),
        };
        // Two drivers, or two sessions, are kept apart by this transaction and nothing else.
        let Some(disagreement) = agreement::scopes(tx, run, &store::job::get(tx, message.job)?)? else {
            return grant(tx, run, session, &message).map(Ok);
        };
        agreement::stop(tx, run, message.job, &disagreement)?;
        refused = Some(NoWork::PlanDisagrees);
    }
}

/// The oldest message that the session may have.
pub fn choose(
    read: &Connection,
    run: &Run,
    session: &Session,
    now: &Moment,
) -> Result<std::result::Result<Message, NoWork>> {
    if let Some(reason) = run_refuses(run).or(session_refuses(session)).or(budget_refuses(run, session)) {
        return Ok(Err(reason));
    }
    if let Some(held) = store::message::held(read, session.id)? {
        let job = store::job::get(read, held.job)?;
        return Err(Error::new(Code::StillHeld, format!("{} still holds {}", session.id, job.name))
            .hint("answer it first: work complete, verdict, fail or block"));
    }
    if let Some(reason) = lane_refuses(read, run, session, now)? {
        return Ok(Err(reason));
    }
    let mut after = MessageId(0);
    let mut reason = NoWork::NoPending;
    while let Some(message) = store::message::oldest_pending(read, run.id, &session.role, &session.lane, after)? {
        match message_refuses(read, session, &message, now)? {
            None => return Ok(Ok(message)),
            Some(why) => reason = why,
        }
        after = message.id;
    }
    Ok(Err(reason))
}

fn run_refuses(run: &Run) -> Option<NoWork> {
    if run.state != RunState::Running && run.state != RunState::NeedsOperator {
        return Some(NoWork::RunNotRunning);
    }
    if run.stop_requested_at.is_some() {
        return Some(NoWork::Stopped);
    }
    run.paused_at.is_some().then_some(NoWork::Paused)
}

/// What a person does in a lane of their own costs the run neither money nor working time.
fn budget_refuses(run: &Run, session: &Session) -> Option<NoWork> {
    let is_agent = run.spec.lanes.get(&session.lane).is_some_and(|lane| lane.mode != LaneMode::Human);
    match breaker::spent(&run.spec.budget, &run.spending()).first() {
        Some(Cause::Cost) if is_agent => Some(NoWork::Cost),
        Some(_) if is_agent => Some(NoWork::ActiveTime),
        _ => None,
    }
}

fn session_refuses(session: &Session) -> Option<NoWork> {
    (session.fresh && session.packets > 0).then_some(NoWork::OneJobDone)
}

fn lane_refuses(read: &Connection, run: &Run, session: &Session, now: &Moment) -> Result<Option<NoWork>> {
    if store::lease::count_run(read, run.id)? >= run.spec.max_active_jobs {
        return Ok(Some(NoWork::Capacity));
    }
    if let Some(lane) = run.spec.lanes.get(&session.lane)
        && store::lease::count_lane(read, &session.lane)? >= lane.max_sessions
    {
        return Ok(Some(NoWork::LaneCapacity));
    }
    let known = store::lane::get(read, &session.lane)?;
    if known.parked_at.is_some() {
        return Ok(Some(NoWork::LaneParked));
    }
    let cools = known.cooling_until.as_ref().is_some_and(|until| !until.is_past(now));
    Ok(cools.then_some(NoWork::LaneCooling))
}

fn message_refuses(read: &Connection, session: &Session, message: &Message, now: &Moment) -> Result<Option<NoWork>> {
    if message.not_before.as_ref().is_some_and(|moment| !moment.is_past(now)) {
        return Ok(Some(NoWork::NotBefore));
    }
    let job = store::job::get(read, message.job)?;
    if !message.fresh && job.reviews.is_none() {
        return Ok(None);
    }
    let held = store::lease::jobs_of_session(read, session.id)?;
    let by_process = match &session.process {
        Some((pid, start, boot)) => store::lease::jobs_of_process(read, session.run, (*pid, *start, boot))?,
        None => Vec::new(),
    };
    if job.reviews.is_some_and(|subject| held.contains(&subject)) {
        return Ok(Some(NoWork::OwnWork));
    }
    if job.reviews.is_some_and(|subject| by_process.contains(&subject)) {
        return Ok(Some(NoWork::ProcessLineage));
    }
    if !message.fresh {
        return Ok(None);
    }
    let upstream = store::job::upstream(read, job.id)?;
    if upstream.iter().any(|above| held.contains(above)) {
        return Ok(Some(NoWork::FreshSessionRequired));
    }
    Ok(upstream.iter().any(|above| by_process.contains(above)).then_some(NoWork::ProcessLineage))
}

/// Gives a pending message to a session: lease, fence and job move together.
pub fn grant(tx: &Writing<'_>, run: &Run, session: &Session, message: &Message) -> Result<Granted> {
    let job = store::job::get(tx, message.job)?;
    message.state.next(MessageEvent::Claim)?;
    store::message::claim(tx, message.id, session.id)?;
    let fence = store::job::raise_fence(tx, job.id)?;
    step(tx, &job, &Step { event: JobEvent::Claim, reason: None, settled: false })?;
    store::attempt::claim(tx, job.id, message.attempt, session.id, fence)?;
    let new = NewLease {
        run: run.id,
        job: job.id,
        attempt: message.attempt,
        session: session.id,
        lane: &session.lane,
        fence,
        deadline: session.deadline.as_ref(),
    };
    let lease = store::lease::insert(tx, &new)?;
    store::session::hold(tx, session.id, job.id)?;
    let about = store::event::About { run: Some(run.id), job: Some(job.id), session: Some(session.id) };
    let body = json!({"lease": lease, "fence": fence, "attempt": message.attempt});
    store::event::append(tx, EventType::LeaseGranted, about, &body)?;
    store::event::append(tx, EventType::JobClaimed, about, &json!({"attempt": message.attempt}))?;
    Ok(Granted { message: message.id, job: job.id, attempt: message.attempt, lease, fence })
}

/// What `work ack` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AckRequest {
    /// Who starts.
    pub who: Credentials,
}

/// What `work ack` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AckReport {
    /// The session.
    pub session: SessionId,
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// It had been said before.
    pub already: bool,
}

/// `work ack`: the session starts.
pub fn ack(ctx: &Ctx, request: &AckRequest) -> Result<AckReport> {
    ctx.write("work ack", |tx| {
        let hold = hold::hold(ctx, tx, &request.who)?;
        hold::touch(ctx, tx, &hold.run, hold.session.id)?;
        let already = hold.job.state == JobState::Running;
        if !already {
            start(tx, &hold.job, hold.session.id)?;
        }
        Ok(AckReport { session: hold.session.id, job: hold.job.name, attempt: hold.lease.attempt, already })
    })
}

/// Moves a claimed job to running.
pub fn start(tx: &Writing<'_>, job: &Job, session: SessionId) -> Result<()> {
    let state = job.state.next(JobEvent::Start)?;
    store::job::set_state(tx, job.id, &Move { state, phase: Some(Phase::Working), reason: None, settled: false })?;
    if let Some(message) = store::message::live_of_job(tx, job.id)? {
        store::message::set_state(tx, message.id, message.state.next(MessageEvent::Ack)?)?;
    }
    tell(tx, EventType::JobAcked, job, &json!({"session": session, "attempt": job.attempt}))
}

/// The process that calls: the agent, not this short-lived program.
pub fn parent_process() -> Option<Identity> {
    let own = crate::os::process::own_pid();
    crate::os::process::ancestors(own).first().map(|entry| entry.identity())
}
