//! A process that goes on when the terminal that started it is gone.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::os::Fault;

/// Starts this program again, reading nothing and writing to a log (0600, appended); returns its pid. The new process
/// leaves the session of its terminal itself, by [`leave_session`].
///
/// # Errors
/// The log can't be opened or the program not started.
pub fn spawn_apart(exe: &Path, args: &[OsString], cwd: &Path, log: &Path) -> Result<u32, Fault> {
    let open = || OpenOptions::new().create(true).append(true).mode(0o600).open(log);
    let (out, err) = (open().map_err(Fault::at("open", log))?, open().map_err(Fault::at("open", log))?);
    let mut command = Command::new(exe);
    leave_repository(&mut command);
    let spawned =
        command.arg0("striatum").args(args).current_dir(cwd).stdin(Stdio::null()).stdout(out).stderr(err).spawn();
    Ok(spawned.map_err(Fault::at("start", exe))?.id())
}

/// Keeps from a child what leads git to the repository of whoever called: git sets that for its hooks. Who commits may
/// stay, a lane may list it.
pub(super) fn leave_repository(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(crate::os::env::leads_git) {
            command.env_remove(name);
        }
    }
}

/// A session of its own: the terminal of whoever started this process, its Ctrl-C and its hang-up, are not its.
///
/// # Errors
/// What setsid(2) says; being a leader already is none.
pub fn leave_session() -> io::Result<()> {
    match rustix::process::setsid() {
        Ok(_) => Ok(()),
        // A leader already (started by hand from a shell): it has at least a group of its own.
        Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
