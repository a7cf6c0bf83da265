//! Waiting for an agent's end while obeying orders, serving its requests and keeping its limits.

use std::path::PathBuf;
use std::time::Duration;

use super::host::Host;
use super::inbox::Desk;
use super::orders::Order;
use crate::domain::frozen::{LaneMode, LaneSpec};
use crate::domain::time::Moment;
use crate::error::Result;
use crate::os::files::BoundedLog;
use crate::os::process::{Handle, Launched, Tree};
use crate::os::wait::{Countdown, Set};
use crate::store;
use crate::verbs::settle::verify::{Runner, Waited};
use crate::verbs::work::hold::Hold;

/// Output kept of one attempt, in bytes; beyond it the middle is cut out.
pub const OUTPUT_LIMIT: u64 = 8 * 1024 * 1024;

/// Output beyond which an agent is ended, in bytes.
const OUTPUT_FLOOD: u64 = 1024 * 1024 * 1024;

/// Why the wait is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// The agent exited.
    Exited,
    /// It is resident, its helper died, and it answered: it has nobody to go on with.
    Answered,
    /// Longer than its limit.
    TimedOut,
    /// Nothing happened for too long.
    Idle,
    /// It wrote too much.
    Flooded,
    /// An order to end.
    Told(String),
    /// What it works on was taken away.
    Abandoned,
}

/// What is waited for.
pub struct Watch<'a> {
    /// What it works on.
    pub hold: &'a Hold,
    /// The lane.
    pub lane: &'a LaneSpec,
    /// Where its output goes.
    pub output: PathBuf,
    /// The end of the attempt.
    pub deadline: Moment,
    /// The agent.
    pub agent: &'a Handle,
    /// A helper before this one watched it: it may have answered already.
    pub takes_over: bool,
}

/// Waits until the agent's attempt is over, for whatever reason.
pub fn watch(host: &mut Host<'_>, watch: &Watch<'_>) -> Result<Watched> {
    let desk = Desk { session: host.session, agent: Some(watch.agent.identity().pid), waits_for_settling: false };
    let poll_ms = watch.hold.run.spec.limits.poll_ms;
    let mut pulse = Pulse::new(host, watch);
    let mut log = BoundedLog::new(&watch.output, OUTPUT_LIMIT);
    let mut deadline = watch.deadline.clone();
    let (mut written, mut is_answered, mut is_loud) = (0, false, false);
    let mut may_have_answered = watch.takes_over;
    loop {
        let now = host.ctx.clock.moment();
        if deadline.is_past(&now) {
            return Ok(Watched::TimedOut);
        }
        let left = u64::try_from(deadline.ms.saturating_sub(now.ms)).unwrap_or(0);
        let poll = if is_loud { LOUD_POLL_MS } else { poll_ms };
        let asked = wait_once(host, watch, poll.min(left), &desk)?;
        may_have_answered |= asked;
        if std::mem::take(&mut may_have_answered) && !is_answered && has_answer(host, watch)? {
            if watch.lane.mode == LaneMode::Loop {
                return Ok(Watched::Answered);
            }
            is_answered = true;
            deadline = sooner(deadline, now.after(watch.hold.run.spec.limits.starting_ms));
        }
        if watch.agent.has_ended() {
            host.serve(&desk, watch.hold.run.spec.limits.busy_ms);
            bounded(&mut log, written);
            return Ok(Watched::Exited);
        }
        match host.orders.look(&host.ctx, true)? {
            Order::GoOn | Order::Drain(_) => {}
            Order::EndNow(reason) => return Ok(Watched::Told(reason)),
            Order::Abandon => return Ok(Watched::Abandoned),
        }
        if host.signals.take().is_some() {
            return Ok(Watched::Told("the helper was told to end by a signal".to_owned()));
        }
        host.lookout.look(&host.ctx, &watch.hold.run)?;
        let before = written;
        written = bounded(&mut log, before);
        is_loud = written.saturating_sub(before) > LOUD;
        if written > OUTPUT_FLOOD {
            return Ok(Watched::Flooded);
        }
        if pulse.is_silent(host, watch, asked, written) {
            return Ok(Watched::Idle);
        }
    }
}

/// Bounds the output; how much was ever written. What the agent put in its place is not its output, and not bounded.
pub fn bounded(log: &mut BoundedLog, before: u64) -> u64 {
    log.check().map_or(before, |state| state.written)
}

/// Growth of the output between two looks, in bytes, that makes the next look come sooner.
const LOUD: u64 = 4 * 1024 * 1024;

/// How soon, in milliseconds.
const LOUD_POLL_MS: u64 = 10;

/// Whether the agent has answered: then it has as long to go as it had to come (`limits.starting`).
fn has_answer(host: &Host<'_>, watch: &Watch<'_>) -> Result<bool> {
    let (job, number) = (watch.hold.job.id, watch.hold.lease.attempt);
    Ok(host.ctx.read(|read| Ok(store::attempt::get(read, job, number)?))?.answer.is_some())
}

fn sooner(one: Moment, other: Moment) -> Moment {
    if other.ms < one.ms { other } else { one }
}

/// One wait on everything that can happen; whether the agent asked something.
fn wait_once(host: &mut Host<'_>, watch: &Watch<'_>, timeout_ms: u64, desk: &Desk) -> Result<bool> {
    let mut set = Set::new();
    if let Some(pidfd) = watch.agent.pidfd() {
        set.readable(pidfd);
    }
    let inbox = host.inbox.fd().map(|fd| set.readable(fd));
    set.readable(std::os::fd::AsFd::as_fd(&host.signals));
    set.wait(Some(timeout_ms))?;
    let is_asked = inbox.is_some_and(|number| set.is_ready(number));
    drop(set);
    Ok(is_asked && host.serve(desk, watch.hold.run.spec.limits.busy_ms) > 0)
}

/// Awaits verification commands on behalf of a helper, which goes on obeying its orders.
pub struct Obedient<'h, 'a> {
    /// The helper.
    pub host: &'h mut Host<'a>,
    /// A resident agent, which lives on.
    pub agent: Option<i32>,
}

impl Runner for Obedient<'_, '_> {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        let end = Countdown::start(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        loop {
            if launched.process.wait_ended(end.left_ms().min(POLL_MS)) {
                return Waited::Ended;
            }
            if end.is_over() {
                return Waited::TooLong;
            }
            if self.host.signals.take().is_some() {
                return Waited::Told("the helper was told to end by a signal".to_owned());
            }
            match self.host.orders.look(&self.host.ctx, true) {
                Ok(Order::EndNow(reason)) => return Waited::Told(reason),
                Ok(Order::Abandon) => return Waited::Told("its work was taken away".to_owned()),
                // A store that can't be read now is no order.
                Ok(Order::GoOn | Order::Drain(_)) | Err(_) => {}
            }
        }
    }

    fn spare(&self) -> Vec<i32> {
        self.agent.into_iter().collect()
    }

    fn reaps(&self) -> bool {
        true
    }
}

/// How often orders are looked at while a command runs, in milliseconds.
const POLL_MS: u64 = 250;

/// Signs of life, looked at only where a lane has an idle limit.
struct Pulse {
    limit_ms: Option<u64>,
    since: Moment,
    written: u64,
    cpu: u64,
    looked: Moment,
}

/// How often the tree's CPU time is read, in milliseconds: it costs a walk over all processes.
const CPU_LOOK_MS: u64 = 1_000;

impl Pulse {
    fn new(host: &Host<'_>, watch: &Watch<'_>) -> Pulse {
        let now = host.ctx.clock.moment();
        Pulse { limit_ms: watch.lane.idle_timeout_ms, since: now.clone(), written: 0, cpu: 0, looked: now }
    }

    /// Whether nothing has happened for as long as the limit: no output, no verb, no CPU time in the tree.
    fn is_silent(&mut self, host: &Host<'_>, watch: &Watch<'_>, asked: bool, written: u64) -> bool {
        let Some(limit) = self.limit_ms else { return false };
        let now = host.ctx.clock.moment();
        if asked || written != self.written {
            self.written = written;
            self.since = now.clone();
        }
        let look_every = CPU_LOOK_MS.min(limit / 4);
        if self.looked.after(look_every).is_past(&now) {
            let root = watch.agent.identity().clone();
            let cpu = Tree { root, adopts_orphans: true, spare: Vec::new() }.cpu_ticks();
            if cpu != self.cpu {
                self.cpu = cpu;
                self.since = now.clone();
            }
            self.looked = now.clone();
        }
        self.since.after(limit).is_past(&now)
    }
}
