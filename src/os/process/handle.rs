//! A hold on one process: signals and waits that can't hit another one that got its pid.
//!
//! On Linux a pidfd; elsewhere the start time is compared before each act, and waiting is looking again. It does
//! not know why a process is to end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use super::Identity;
use crate::os::wait::{Countdown, is_readable_within};

/// How a child ended; exactly one of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its exit code, if it left by itself.
    pub code: Option<i32>,
    /// The signal, if one ended it.
    pub signal: Option<i32>,
}

/// A hold on one process, of whatever parent.
#[derive(Debug)]
pub struct Handle {
    identity: Identity,
    pidfd: Option<OwnedFd>,
}

impl Handle {
    /// Takes hold of exactly this process; `None` if it is gone (a zombie can still be held).
    pub fn open(identity: &Identity) -> Option<Handle> {
        let pidfd = open_pidfd(identity.pid);
        // First the hold, then the look: what is held now can't change its start time any more.
        let same = Identity::of(identity.pid).is_some_and(|found| found == *identity);
        same.then(|| Handle { identity: identity.clone(), pidfd })
    }

    /// Who is held.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// A descriptor that is readable once the process has ended; `None` where there is no such thing, and the
    /// caller looks again every now and then.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// Whether it has ended, reaped or not.
    pub fn has_ended(&self) -> bool {
        match &self.pidfd {
            Some(fd) => is_readable_within(fd, 0).unwrap_or(false),
            None => !self.identity.is_alive(),
        }
    }

    /// Waits for its end, at most `timeout_ms`; whether it has ended.
    pub fn wait_ended(&self, timeout_ms: u64) -> bool {
        if let Some(fd) = &self.pidfd {
            return is_readable_within(fd, timeout_ms).unwrap_or(false);
        }
        let end = Countdown::start(timeout_ms);
        while self.identity.is_alive() {
            if end.is_over() {
                return false;
            }
            std::thread::sleep(Duration::from_millis(end.left_ms().min(20)));
        }
        true
    }

    /// Sends a signal; `false` if the process is gone.
    ///
    /// # Errors
    /// The process belongs to somebody else.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let sent = match &self.pidfd {
            Some(fd) => send_by_pidfd(fd, signal),
            None if self.identity.is_alive() => send_by_pid(self.identity.pid, signal),
            None => return Ok(false),
        };
        match sent {
            Err(rustix::io::Errno::SRCH) => Ok(false),
            other => other.map(|()| true).map_err(io::Error::from),
        }
    }

    /// Takes the exit status of an own child that has ended; `None` while it runs.
    ///
    /// # Errors
    /// It is no child of this process, or was reaped before.
    pub fn reap(&self) -> io::Result<Option<Exit>> {
        let target = wait_target(self.pidfd.as_ref(), self.identity.pid)?;
        loop {
            match rustix::process::waitid(target.clone(), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(status) => {
                    return Ok(
                        status.map(|status| Exit { code: status.exit_status(), signal: status.terminating_signal() })
                    );
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn wait_target(pidfd: Option<&OwnedFd>, pid: i32) -> io::Result<WaitId<'_>> {
    #[cfg(target_os = "linux")]
    if let Some(fd) = pidfd {
        return Ok(WaitId::PidFd(fd.as_fd()));
    }
    let _ = pidfd;
    Pid::from_raw(pid).map(WaitId::Pid).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
}

#[cfg(target_os = "linux")]
fn open_pidfd(pid: i32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(pid).filter(|_| pid > 0)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_pidfd(_pid: i32) -> Option<OwnedFd> {
    None
}

#[cfg(target_os = "linux")]
fn send_by_pidfd(fd: &OwnedFd, signal: Signal) -> rustix::io::Result<()> {
    rustix::process::pidfd_send_signal(fd, signal)
}

#[cfg(not(target_os = "linux"))]
fn send_by_pidfd(_fd: &OwnedFd, _signal: Signal) -> rustix::io::Result<()> {
    Err(rustix::io::Errno::SRCH)
}

fn send_by_pid(pid: i32, signal: Signal) -> rustix::io::Result<()> {
    match Pid::from_raw(pid) {
        Some(target) if pid > 1 => rustix::process::kill_process(target, signal),
        _ => Err(rustix::io::Errno::SRCH),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[expect(clippy::zombie_processes, reason = "the handle reaps it")]
    fn child(script: &str) -> Handle {
        let child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
        Handle::open(&Identity::of(i32::try_from(child.id()).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn an_exit_code_is_taken_once() {
        let held = child("exit 7");
        assert!(held.wait_ended(5_000));
        assert_eq!(held.reap().unwrap(), Some(Exit { code: Some(7), signal: None }));
        assert!(held.reap().is_err());
        assert!(held.has_ended());
    }

    #[test]
    fn a_signal_ends_it_and_is_told() {
        let held = child("exec sleep 60");
        assert_eq!(held.reap().unwrap(), None);
        assert!(!held.has_ended());
        assert!(held.signal(Signal::KILL).unwrap());
        assert!(held.wait_ended(5_000));
        assert_eq!(held.reap().unwrap(), Some(Exit { code: None, signal: Some(9) }));
        assert!(!held.signal(Signal::KILL).unwrap());
    }

    #[test]
    fn a_process_with_another_start_time_is_not_held() {
        let held = child("exec sleep 60");
        let impostor = Identity { start_ticks: held.identity().start_ticks + 1, ..held.identity().clone() };
        assert!(Handle::open(&impostor).is_none());
        held.signal(Signal::KILL).unwrap();
        held.wait_ended(5_000);
        held.reap().unwrap();
    }
}
