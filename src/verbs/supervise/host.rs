//! A helper's life: attach, claim, work attempt after attempt of its slot, close the session, end.
//!
//! One thread, one plain connection, one poll loop. It does not know where its requests come from (`Inbox`), and
//! decides nothing about the run.

use std::rc::Rc;

use serde_json::json;

use super::inbox::{Desk, Inbox};
use super::orders::{Order, Orders};
use super::{life, recover, resident};
use crate::domain::event::EventType;
use crate::domain::frozen::LaneMode;
use crate::domain::id::SessionId;
use crate::domain::session::{SessionEvent, SessionState, SupervisorState};
use crate::error::{Code, Error, Result};
use crate::os::lock::Lock;
use crate::os::process::{Adopted, Identity};
use crate::os::signal::Signals;
use crate::store::event::About;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::store::{self, Writing};
use crate::verbs::ctx::LOG_AT_WORK;
use crate::verbs::flow::attempt;
use crate::verbs::notice::lookout::{self, Lookout};
use crate::verbs::run::agree;
use crate::verbs::session as sessions;
use crate::verbs::work::claim::{self, Granted, NoWork};
use crate::verbs::{Actor, Ctx, notice, tree, trust};

/// What a helper is launched for, from its arguments.
#[derive(Clone, Copy, Debug)]
pub struct Assignment {
    /// The session.
    pub session: SessionId,
    /// Its row of `supervisor`.
    pub supervisor: i64,
    /// It takes over from a dead helper.
    pub recovers: bool,
}

/// Everything a helper holds on to.
pub struct Host<'a> {
    /// The store, as the session.
    pub ctx: Rc<Ctx>,
    /// The session.
    pub session: SessionId,
    /// The agent's lock, to be inherited by it; none while an agent of a dead helper holds it.
    pub lane_lock: Option<Lock>,
    /// Requests of the agent.
    pub inbox: &'a mut dyn Inbox,
    /// What to obey.
    pub orders: Orders,
    /// TERM and the like.
    pub signals: Signals,
    /// What was planned, for the look before each attempt.
    pub plan: agree::Plan,
    /// Whether a driver follows.
    pub lookout: Lookout,
    _helper_lock: Lock,
}

/// What the slot gives a helper after an attempt.
pub enum Onward {
    /// Another attempt.
    Next(Granted),
    /// The session is closed.
    Closed,
}

/// How long a helper waits for a busy store with its own words, in milliseconds: it must not leave its agent for that.
const PATIENCE_MS: u64 = 10 * 60_000;

impl Host<'_> {
    /// Answers what the agent asks; the agent itself is told when the store is busy for longer than the run allows.
    pub fn serve(&mut self, desk: &Desk, busy_ms: u64) -> usize {
        self.ctx.wait_for_store(busy_ms);
        let served = self.inbox.serve(&self.ctx, desk);
        self.ctx.wait_for_store(PATIENCE_MS);
        served
    }
}

/// Lives a helper's life; returns when the session is closed or was taken away.
pub fn host(ctx: &Ctx, assignment: Assignment, locks: Adopted, inbox: &mut dyn Inbox) -> Result<()> {
    let mut host = Host {
        ctx: Rc::new(ctx.as_actor(Actor::Session(assignment.session)).with_busy(PATIENCE_MS)),
        session: assignment.session,
        lane_lock: locks.lane,
        inbox,
        orders: Orders::new(assignment.session),
        signals: Signals::install()?,
        plan: agree::Plan::default(),
        lookout: Lookout::default(),
        _helper_lock: locks.helper,
    };
    let Some((onward, mode)) = attach(&host, assignment)? else { return Ok(()) };
    crate::os::crash::point("helper.claimed");
    link_binary(&host)?;
    let mut onward = if assignment.recovers { recover::recover(&mut host)? } else { onward };
    if mode == LaneMode::Loop && !assignment.recovers {
        resident::live(&mut host)?;
    }
    let id = host.ctx.read(|read| Ok(sessions::must_exist(read, host.session)?.run))?;
    let mut watch = notice::Watch::from_now(&host.ctx, id)?;
    while let Onward::Next(granted) = onward {
        let run = host.ctx.read(|read| Ok(store::run::get(read, id)?))?;
        host.lookout.look(&host.ctx, &run)?;
        onward = match trust::may_launch(&host.ctx, &run) {
            true => life::live(&mut host, &granted)?,
            false => give_back(&host, &granted)?,
        };
        lookout::stand_in(&host.ctx, &run, &mut watch)?;
    }
    tree::release::at_end(&host.ctx, id)?;
    host.ctx.store()?.checkpoint_over(LOG_AT_WORK)?;
    Ok(())
}

/// What the lane would run is not trusted any more: the attempt goes back, nothing is started.
fn give_back(host: &Host<'_>, granted: &Granted) -> Result<Onward> {
    const WHY: &str = "its commands are not trusted any more";
    let now = host.ctx.clock.moment();
    host.ctx.write("give back", |tx| {
        let (job, session) = (store::job::get(tx, granted.job)?, sessions::must_exist(tx, host.session)?);
        let run = store::run::get(tx, session.run)?;
        if store::lease::active_of_job(tx, job.id)?.is_some_and(|lease| lease.id == granted.lease) {
            attempt::end(tx, &run, &job, life::interrupted(WHY))?;
        }
        onward(tx, &run, &session, &now, &Order::EndNow(WHY.to_owned()))
    })
}

/// The first words: the helper exists, and claims in the same transaction. None when it was given up meanwhile.
fn attach(host: &Host<'_>, assignment: Assignment) -> Result<Option<(Onward, LaneMode)>> {
    let own = Identity::own().ok_or_else(|| Error::new(Code::Io, "this process can't be identified"))?;
    let now = host.ctx.clock.moment();
    host.ctx.write("supervise attach", |tx| {
        let process = (i64::from(own.pid), claim::ticks(&own), own.boot.as_str());
        if !store::supervisor::attach(tx, assignment.supervisor, process)? {
            return Ok(None);
        }
        let session = sessions::must_exist(tx, assignment.session)?;
        let about = About { run: Some(session.run), job: None, session: Some(session.id) };
        store::event::append(tx, EventType::SupervisorAttached, about, &json!({"pid": own.pid}))?;
        let run = store::run::get(tx, session.run)?;
        let mode = run.spec.lanes.get(&session.lane).map_or(LaneMode::Oneshot, |lane| lane.mode);
        // A resident agent claims by itself, and after a death there is something to look at first.
        if assignment.recovers || mode == LaneMode::Loop {
            return Ok(Some((Onward::Closed, mode)));
        }
        Ok(Some((onward(tx, &run, &session, &now, &Order::GoOn)?, mode)))
    })
}

/// Claims the next attempt of the slot, or closes the session.
pub fn onward(
    tx: &Writing<'_>,
    run: &Run,
    session: &Session,
    now: &crate::domain::time::Moment,
    order: &Order,
) -> Result<Onward> {
    let is_spent = run.launches >= run.spec.budget.launches;
    let reason = match order {
        Order::GoOn | Order::Abandon if is_spent && claim::choose(tx, run, session, now)?.is_ok() => {
            format!("{NO_WORK}the run's launches are spent")
        }
        Order::GoOn | Order::Abandon => match claim::take(tx, run, session, now)? {
            Ok(granted) => return Ok(Onward::Next(granted)),
            Err(NoWork::OneJobDone) => "its job is done".to_owned(),
            Err(NoWork::NoPending) => "its slot is empty".to_owned(),
            Err(reason) => format!("{NO_WORK}{reason}"),
        },
        Order::Drain(reason) | Order::EndNow(reason) => reason.clone(),
    };
    close(tx, session, &reason)?;
    Ok(Onward::Closed)
}

/// How the end reason of a session starts that found work which it could not have now.
pub const NO_WORK: &str = "no_work: ";

/// The helper's last words: it stops and its session closes.
pub fn close(tx: &Writing<'_>, session: &Session, reason: &str) -> Result<()> {
    let about = About { run: Some(session.run), job: None, session: Some(session.id) };
    if store::supervisor::end(tx, session.id, SupervisorState::Stopped, reason)? {
        store::event::append(tx, EventType::SupervisorStopped, about, &json!({"why": reason}))?;
    }
    if session.state == SessionState::Active {
        sessions::end(tx, session, SessionEvent::Close, reason)?;
    }
    Ok(())
}

/// `striatum` means this very program in the lane.
fn link_binary(host: &Host<'_>) -> Result<()> {
    let bin = host.ctx.layout().scratch(&host.session.to_string()).bin();
    let link = bin.join("striatum");
    if link.symlink_metadata().is_ok() {
        return Ok(());
    }
    crate::os::files::create_private_dirs(host.ctx.layout().root(), &bin)?;
    let target = std::fs::read_link(&host.ctx.exe).unwrap_or_else(|_| host.ctx.exe.clone());
    Ok(std::os::unix::fs::symlink(target, link)?)
}

/// Takes over the locks that a helper is started with.
pub fn adopt() -> Result<Adopted> {
    Ok(crate::os::process::adopt_locks()?)
}

/// Where a session's requests arrive.
pub fn socket_of(ctx: &Ctx, session: SessionId) -> std::path::PathBuf {
    ctx.layout().scratch(&session.to_string()).socket()
}
