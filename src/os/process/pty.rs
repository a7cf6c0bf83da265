//! A pseudo-terminal for a command that insists on one.
//!
//! It does not know what is written to it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Both ends, the far one by name.
pub(super) struct Terminal {
    pub near: OwnedFd,
    pub name: PathBuf,
}

/// Opens a pair of 120 by 40 characters. The near end does not block and is not inherited.
pub(super) fn open() -> io::Result<Terminal> {
    let near = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | cloexec())?;
    grantpt(&near)?;
    unlockpt(&near)?;
    fcntl_setfl(&near, fcntl_getfl(&near)? | OFlags::NONBLOCK)?;
    rustix::io::fcntl_setfd(&near, rustix::io::FdFlags::CLOEXEC)?;
    tcsetwinsize(&near, Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 })?;
    let name = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&near, Vec::new())?.into_bytes()));
    Ok(Terminal { near, name })
}

/// At once where the kernel can; elsewhere right after.
#[cfg(target_os = "linux")]
fn cloexec() -> OpenptFlags {
    OpenptFlags::CLOEXEC
}

/// At once where the kernel can; elsewhere right after.
#[cfg(not(target_os = "linux"))]
fn cloexec() -> OpenptFlags {
    OpenptFlags::empty()
}
