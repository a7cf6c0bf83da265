//! The children of this process: whether there are any, and taking leave of those that ended.

use rustix::process::{WaitId, WaitIdOptions, waitid};

/// Whether any child exists, running or not reaped. Looks without taking: nobody's exit status is lost.
pub fn has_children() -> bool {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return false,
            Ok(_) | Err(_) => return true,
        }
    }
}

/// Reaps every ended child: for a process whose children are all alike and whose exit nobody asks for (a driver's
/// helpers). A helper must not use it: its agent's exit status is wanted.
pub fn reap_ended_children() {
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}
