//! What a helper needs of whoever brings it the verbs of its agent.

use std::os::fd::BorrowedFd;

use crate::verbs::Ctx;
use crate::verbs::settle::SettleReport;

/// Requests of a session's agent. `broker` implements it over a Unix socket.
pub trait Inbox {
    /// Readable when a request waits.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Takes every waiting request and answers it; returns how many there were.
    fn serve(&mut self, ctx: &Ctx, desk: &Desk) -> usize;

    /// Tells whoever waits for settling what it came to.
    fn settled(&mut self, report: &SettleReport);
}

/// What the requests are about.
#[derive(Clone, Debug)]
pub struct Desk {
    /// The hosted session.
    pub session: crate::domain::id::SessionId,
    /// The agent's process; requests of others are refused.
    pub agent: Option<i32>,
    /// An answer waits until it is settled.
    pub waits_for_settling: bool,
}

impl Desk {
    /// Whether a process is the agent, descends from it, or was orphaned by it: then it descends from this helper,
    /// its reaper.
    pub fn is_of_agent(&self, pid: i32) -> bool {
        let own = crate::os::process::own_pid();
        self.agent.is_some_and(|agent| {
            pid == agent
                || crate::os::process::ancestors(pid).iter().any(|entry| entry.pid == agent || entry.pid == own)
        })
    }
}

/// Nobody brings anything.
pub struct Silent;

impl Inbox for Silent {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn serve(&mut self, _ctx: &Ctx, _desk: &Desk) -> usize {
        0
    }

    fn settled(&mut self, _report: &SettleReport) {}
}
