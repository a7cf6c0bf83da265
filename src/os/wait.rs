//! Waiting for several descriptors at once, with an end.
//!
//! It does not know what the descriptors mean.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::monotonic_ms;

/// A set of descriptors to wait on; built anew for each wait, as cheap as the array it is.
#[derive(Default)]
pub struct Set<'fd> {
    fds: Vec<PollFd<'fd>>,
}

impl<'fd> Set<'fd> {
    /// An empty set: waiting on it is sleeping.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a descriptor to be read from; the number names it in [`Set::is_ready`].
    pub fn readable(&mut self, fd: BorrowedFd<'fd>) -> usize {
        self.add(fd, PollFlags::IN)
    }

    /// Adds a descriptor to be written to; the number names it in [`Set::is_ready`].
    pub fn writable(&mut self, fd: BorrowedFd<'fd>) -> usize {
        self.add(fd, PollFlags::OUT)
    }

    fn add(&mut self, fd: BorrowedFd<'fd>, flags: PollFlags) -> usize {
        self.fds.push(PollFd::from_borrowed_fd(fd, flags));
        self.fds.len() - 1
    }

    /// Waits until something is ready, a signal came, or `timeout_ms` are over (`None`: as long as it takes).
    /// Answers how many are ready; a signal answers 0.
    ///
    /// # Errors
    /// What poll(2) says, but for EINTR.
    pub fn wait(&mut self, timeout_ms: Option<u64>) -> io::Result<usize> {
        let limit = timeout_ms.map(timespec);
        match poll(&mut self.fds, limit.as_ref()) {
            Err(rustix::io::Errno::INTR) => {
                self.fds.iter_mut().for_each(PollFd::clear_revents);
                Ok(0)
            }
            other => Ok(other?),
        }
    }

    /// Whether the descriptor of that number was ready, at its end, or in error at the last wait.
    pub fn is_ready(&self, number: usize) -> bool {
        self.fds.get(number).is_some_and(|fd| !fd.revents().is_empty())
    }
}

fn timespec(ms: u64) -> Timespec {
    // A year is as good as for ever and fits everywhere.
    let time = Duration::from_millis(ms.min(31_536_000_000));
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Waits for one descriptor, through signals, until it can be read (or is at its end) or `timeout_ms` are over;
/// whether it can.
///
/// # Errors
/// What poll(2) says, but for EINTR.
pub fn is_readable_within(fd: impl AsFd, timeout_ms: u64) -> io::Result<bool> {
    is_ready_within(fd.as_fd(), PollFlags::IN, timeout_ms)
}

/// The same for writing.
///
/// # Errors
/// What poll(2) says, but for EINTR.
pub fn is_writable_within(fd: impl AsFd, timeout_ms: u64) -> io::Result<bool> {
    is_ready_within(fd.as_fd(), PollFlags::OUT, timeout_ms)
}

fn is_ready_within(fd: BorrowedFd<'_>, flags: PollFlags, timeout_ms: u64) -> io::Result<bool> {
    let end = Countdown::start(timeout_ms);
    loop {
        let mut set = Set::new();
        let number = set.add(fd, flags);
        set.wait(Some(end.left_ms()))?;
        if set.is_ready(number) {
            return Ok(true);
        }
        if end.is_over() {
            return Ok(false);
        }
    }
}

/// A bounded wait inside this process, by the monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Countdown {
    end_ms: i64,
}

impl Countdown {
    /// Ends `ms` from now.
    pub fn start(ms: u64) -> Self {
        Countdown { end_ms: monotonic_ms().saturating_add(i64::try_from(ms).unwrap_or(i64::MAX)) }
    }

    /// Milliseconds that are left.
    pub fn left_ms(&self) -> u64 {
        u64::try_from(self.end_ms.saturating_sub(monotonic_ms())).unwrap_or(0)
    }

    /// Whether nothing is left.
    pub fn is_over(&self) -> bool {
        self.left_ms() == 0
    }
}
