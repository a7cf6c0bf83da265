//! Starting the process that hosts a lane, and its own first steps.
//!
//! The locks travel as its standard streams: a plain spawn, no code between fork and exec, and whoever looks
//! finds them held from before the helper exists until it is dead. This file does not know what a helper does.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::fds::{close_inherited, move_up, open_null};
use super::{Handle, Identity};
use crate::os::Fault;
use crate::os::lock::Lock;

/// How a helper is to be started.
#[derive(Debug)]
pub struct HelperCommand {
    /// The binary; `main` alone knows it (`/proc/self/exe` survives an upgrade).
    pub exe: PathBuf,
    /// Its arguments, the hidden verb first.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Variables on top of this process's environment.
    pub env: Vec<(OsString, OsString)>,
    /// Where its own words go, 0600, appended.
    pub log: PathBuf,
}

/// Starts a helper that holds `helper_lock`, and `lane_lock` unless an agent holds that already. The caller's
/// copies are closed: from here on the locks are free exactly when the helper and its agent are gone.
///
/// # Errors
/// The log can't be opened or the binary not started; then both locks are free again.
pub fn spawn_helper(command: &HelperCommand, helper_lock: Lock, lane_lock: Option<Lock>) -> Result<Handle, Fault> {
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&command.log);
    let log = log.map_err(Fault::at("open", &command.log))?;
    let lane = lane_lock.map_or_else(Stdio::null, |lock| Stdio::from(lock.into_file()));
    let mut helper = Command::new(&command.exe);
    super::apart::leave_repository(&mut helper);
    let spawned = helper
        .arg0("striatum")
        .args(&command.args)
        .current_dir(&command.cwd)
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(helper_lock.into_file())
        .stdout(lane)
        .stderr(log)
        .spawn();
    let child = spawned.map_err(Fault::at("start", &command.exe))?;
    hold(child.id()).ok_or_else(|| Fault::new("start", &command.exe, io::Error::other("it vanished")))
}

/// Takes hold of a child that was just started: nobody else can have its pid before it is reaped.
pub(super) fn hold(pid: u32) -> Option<Handle> {
    Handle::open(&Identity::of(i32::try_from(pid).ok()?)?)
}

/// The locks that a helper came with.
#[derive(Debug)]
pub struct Adopted {
    /// Held by the helper alone.
    pub helper: Lock,
    /// Also inherited by its agent; `None` in a recovery helper.
    pub lane: Option<Lock>,
}

/// A helper's first step, before it opens anything: takes its locks from the standard streams, leaves those at
/// /dev/null, and becomes a session of its own and the reaper of whatever its agent leaves behind.
///
/// # Errors
/// It was not started with its locks as standard streams.
pub fn adopt_locks() -> Result<Adopted, Fault> {
    let fault = |source| Fault::new("take over", "the locks from standard input and output", source);
    close_inherited().map_err(fault)?;
    let helper = File::from(move_up(rustix::stdio::stdin()).map_err(fault)?);
    let lane = File::from(move_up(rustix::stdio::stdout()).map_err(fault)?);
    let is_file = |file: &File| file.metadata().is_ok_and(|found| found.is_file());
    if !is_file(&helper) {
        return Err(fault(io::Error::other("standard input is no lock file")));
    }
    let lane = is_file(&lane).then_some(lane);
    let null = open_null().map_err(fault)?;
    rustix::stdio::dup2_stdin(&null).map_err(|error| fault(error.into()))?;
    rustix::stdio::dup2_stdout(&null).map_err(|error| fault(error.into()))?;
    let adopted = Adopted {
        helper: Lock::adopt(helper).map_err(fault)?,
        lane: lane.map(Lock::adopt).transpose().map_err(fault)?,
    };
    super::leave_session().map_err(fault)?;
    become_reaper().map_err(fault)?;
    Ok(adopted)
}

/// Orphans among the descendants become this process's children, and so can be found, ended and reaped.
#[cfg(target_os = "linux")]
pub fn become_reaper() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// There is no such thing here: what an agent orphans goes to init, and is found by what it carries.
#[cfg(not(target_os = "linux"))]
pub fn become_reaper() -> io::Result<()> {
    Ok(())
}
