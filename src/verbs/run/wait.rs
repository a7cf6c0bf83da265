//! What a driver waits for: a commit, a helper's end, a signal, a due moment, the interval at the latest.
//!
//! The file watch fires before a commit is visible, so the version is looked at again for about 2 ms; a poll every
//! 250 ms is the net under it. The watching connection never writes.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::domain::id::SessionId;
use crate::domain::time::Moment;
use crate::error::Result;
use crate::os::process::{Handle, Identity};
use crate::os::signal::Signals;
use crate::os::wait::Set;
use crate::os::watch::Watch;
use crate::verbs::{Actor, Ctx};

/// The net under the file watch, in milliseconds.
const POLL_MS: u64 = 250;

/// How long the version is looked at again after the file watch fired.
const SETTLE: Duration = Duration::from_millis(2);

/// How many times as long as an idle turn a driver rests after it at most, and the longest rest.
const REST: u32 = 4;
const MOST_REST: Duration = Duration::from_millis(20);

/// How long a driver waits for lanes that it told to stop.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is something to look at, or it is time.
    Look,
    /// A signal; how many so far.
    Signal(u32),
}

/// Everything a driver waits on.
pub struct Waiter {
    watching: Ctx,
    watch: Option<Watch>,
    signals: Signals,
    helpers: BTreeMap<SessionId, Handle>,
    /// Processes that host nothing and are waited for all the same.
    others: Vec<Handle>,
    version: Option<i64>,
    interval_ms: u64,
    backed_off: u64,
}

impl Waiter {
    /// Starts watching a store.
    pub fn start(ctx: &Ctx, interval_ms: u64) -> Result<Waiter> {
        // Without a watch (the system's limit), the poll does.
        let watch = Watch::start(ctx.layout().root()).ok();
        Ok(Waiter {
            watching: ctx.as_actor(Actor::User).plain(),
            watch,
            signals: Signals::install()?,
            helpers: BTreeMap::new(),
            others: Vec::new(),
            version: None,
            interval_ms: jittered(interval_ms),
            backed_off: 0,
        })
    }

    /// Notes the version that a turn is about to look at.
    pub fn seen(&mut self, _ctx: &Ctx) -> Result<()> {
        self.backed_off = 0;
        if let Some(watch) = &self.watch {
            watch.take();
        }
        self.version = Some(self.watching.store()?.data_version()?);
        Ok(())
    }

    /// Watches helpers that this driver launched.
    pub fn adopt(&mut self, launched: Vec<(SessionId, Handle)>) {
        self.helpers.extend(launched);
    }

    /// Waits, too, for processes that host nothing.
    pub fn await_also(&mut self, started: Vec<(SessionId, Handle)>) {
        self.others.extend(started.into_iter().map(|(_, handle)| handle));
    }

    /// Follows the helpers of these sessions, whoever launched them; the ended ones of before are forgotten.
    pub fn follow(&mut self, hosted: Vec<(SessionId, Option<Identity>)>) {
        crate::os::process::reap_ended_children();
        self.helpers.retain(|session, _| hosted.iter().any(|(wanted, _)| wanted == session));
        for (session, identity) in hosted {
            let Some(identity) = identity else { continue };
            let is_followed = self.helpers.get(&session).is_some_and(|handle| *handle.identity() == identity);
            if !is_followed && let Some(handle) = Handle::open(&identity) {
                self.helpers.insert(session, handle);
            }
        }
    }

    /// Rests after a turn that found nothing to do, longer when the turns before it found nothing either: helpers commit
    /// all the time, and a driver that looked at each commit would take the processor that they need. A signal ends it.
    pub fn rest(&mut self, turn: Duration, idle_turns: u32) -> Result<()> {
        let rest = (turn * idle_turns.saturating_sub(1).min(REST)).min(MOST_REST);
        let mut set = Set::new();
        set.readable(self.signals.as_fd());
        set.wait(Some(u64::try_from(rest.as_millis()).unwrap_or(0)))?;
        Ok(())
    }

    /// Waits.
    pub fn wait(&mut self, ctx: &Ctx, wake_at: Option<&Moment>) -> Result<Reason> {
        let end = Instant::now() + Duration::from_millis(self.until(ctx, wake_at));
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Reason::Look);
            }
            let (rang, ended) = self.poll(left.min(Duration::from_millis(POLL_MS)))?;
            if let Some(count) = self.signal() {
                return Ok(Reason::Signal(count));
            }
            if ended || ctx.layout().stop().exists() || self.has_changed(rang)? {
                return Ok(Reason::Look);
            }
        }
    }

    fn until(&self, ctx: &Ctx, wake_at: Option<&Moment>) -> u64 {
        let now = ctx.clock.moment();
        let due = wake_at.map_or(u64::MAX, |moment| u64::try_from(moment.ms.saturating_sub(now.ms)).unwrap_or(0));
        self.interval_ms.min(due.max(1))
    }

    /// One poll: whether the file watch rang, and whether a helper ended.
    fn poll(&mut self, most: Duration) -> Result<(bool, bool)> {
        let mut set = Set::new();
        set.readable(self.signals.as_fd());
        let bell = self.watch.as_ref().map(|watch| set.readable(watch.as_fd()));
        for handle in self.helpers.values().chain(&self.others) {
            if let Some(pidfd) = handle.pidfd() {
                set.readable(pidfd);
            }
        }
        set.wait(Some(u64::try_from(most.as_millis()).unwrap_or(POLL_MS).max(1)))?;
        let rang = bell.is_some_and(|number| set.is_ready(number));
        drop(set);
        if rang && let Some(watch) = &self.watch {
            watch.take();
        }
        let before = self.helpers.len() + self.others.len();
        self.helpers.retain(|_, handle| !handle.has_ended());
        self.others.retain(|handle| !handle.has_ended());
        Ok((rang, self.helpers.len() + self.others.len() != before))
    }

    fn has_changed(&mut self, rang: bool) -> Result<bool> {
        let end = Instant::now() + SETTLE;
        loop {
            let version = self.watching.store()?.data_version()?;
            if self.version != Some(version) {
                self.version = Some(version);
                return Ok(true);
            }
            if !rang || Instant::now() >= end {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Signals so far, if a new one came.
    pub fn signal(&mut self) -> Option<u32> {
        self.signals.take().map(|received| received.count)
    }

    /// The store was busy: wait a little longer each time, at most two seconds.
    pub fn back_off(&mut self) {
        self.backed_off = (self.backed_off * 2).clamp(50, 2_000);
        std::thread::sleep(Duration::from_millis(jittered(self.backed_off)));
    }

    /// Waits until the followed helpers are gone, for a while.
    pub fn wait_for_helpers(&mut self) {
        let end = Instant::now() + STOP_LIMIT;
        while !(self.helpers.is_empty() && self.others.is_empty()) && Instant::now() < end {
            if self.poll(Duration::from_millis(POLL_MS)).is_err() {
                return;
            }
        }
    }
}

/// Between 85 and 115 percent, so that several drivers do not look in step.
fn jittered(ms: u64) -> u64 {
    let nanos = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.subsec_nanos());
    let spread = (u64::from(nanos) ^ u64::from(std::process::id())) % 31;
    (ms * (85 + spread) / 100).max(1)
}
