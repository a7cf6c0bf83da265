//! Descriptors at the start of a process that was started to host something: which are open, and closing the rest.
//!
//! It does not know what the remaining ones are for.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

/// The kernel's list of this process's descriptors.
#[cfg(target_os = "linux")]
const LIST: &str = "/proc/self/fd";
/// The kernel's list of this process's descriptors.
#[cfg(not(target_os = "linux"))]
const LIST: &str = "/dev/fd";

/// Closes everything above 2 that whoever started us left open (a shell's `9>lock`, a build tool's pipes).
/// Only at the start of a process, before it has opened anything itself.
pub(super) fn close_inherited() -> io::Result<()> {
    let numbers = std::fs::read_dir(LIST)?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // Gathered first: the folder's own descriptor is in the list, and closed by then.
    let open: Vec<RawFd> = numbers.filter(|number| *number > 2).collect();
    for number in open {
        let _ = nix::unistd::close(number);
    }
    Ok(())
}

/// A copy of a standard stream above 2 that is not inherited.
pub(super) fn move_up(stream: impl AsFd) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(stream, 3)?)
}

/// Lets a descriptor be inherited by whatever is executed next.
pub(super) fn keep_at_exec(fd: &OwnedFd) -> io::Result<()> {
    Ok(fcntl_setfd(fd, FdFlags::empty())?)
}

/// `/dev/null`, for reading and writing.
pub(super) fn open_null() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/null")
}
