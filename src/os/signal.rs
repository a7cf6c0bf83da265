//! Signals as bytes in a pipe, to be polled beside other descriptors.
//!
//! Handlers, never a blocked mask: children inherit a mask and become immune to SIGTERM. It does not know what
//! the first or the second Ctrl-C means.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The signals that end a long-running verb, counted.
pub struct Signals {
    pipe: UnixStream,
    last: Arc<AtomicUsize>,
    count: u32,
}

/// What has come so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The latest one's number.
    pub signal: i32,
    /// How many since the start: 1 asks to end well, 2 to end now.
    pub count: u32,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP for the rest of the process, but for those that whoever started us
    /// had set to be ignored (`nohup`, a shell's background job).
    ///
    /// # Errors
    /// No descriptors left.
    pub fn install() -> io::Result<Self> {
        let (pipe, bell) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let last = Arc::new(AtomicUsize::new(0));
        let ignored = ignored_at_start();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            // In this order: whoever reads the byte finds the number.
            let number = usize::try_from(signal).unwrap_or(0);
            signal_hook::flag::register_usize(signal, Arc::clone(&last), number)?;
            signal_hook::low_level::pipe::register(signal, bell.try_clone()?)?;
        }
        Ok(Signals { pipe, last, count: 0 })
    }

    /// Takes what has come since the last call; `None` if nothing has.
    pub fn take(&mut self) -> Option<Received> {
        let mut bytes = [0; 64];
        let mut fresh = 0;
        while let Ok(count @ 1..) = self.pipe.read(&mut bytes) {
            fresh += u32::try_from(count).unwrap_or(0);
        }
        self.count = self.count.saturating_add(fresh);
        let signal = i32::try_from(self.last.load(Ordering::SeqCst)).unwrap_or(SIGTERM);
        (fresh > 0).then_some(Received { signal, count: self.count })
    }

    /// How many have been taken so far.
    pub fn count(&self) -> u32 {
        self.count
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// The mask of ignored signals, from the kernel's account of this process; elsewhere none is known.
fn ignored_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::super::wait::is_readable_within;
    use super::*;

    #[test]
    fn signals_are_counted_and_the_latest_is_named() {
        let mut signals = Signals::install().unwrap();
        assert_eq!(signals.take(), None);
        signal_hook::low_level::raise(SIGTERM).unwrap();
        assert!(is_readable_within(&signals, 5_000).unwrap());
        assert_eq!(signals.take(), Some(Received { signal: SIGTERM, count: 1 }));
        signal_hook::low_level::raise(SIGHUP).unwrap();
        assert!(is_readable_within(&signals, 5_000).unwrap());
        assert_eq!(signals.take(), Some(Received { signal: SIGHUP, count: 2 }));
        assert_eq!(signals.count(), 2);
    }
}
