//! Processes: who one is, who descends from whom, starting them, waiting for them, ending them.
//!
//! A pid alone is no identity (it is reused within seconds on a busy machine): pid, start time and boot id are.
//! This room does not know sessions, jobs or locks' meaning.

mod apart;
mod carried;
mod children;
mod confined;
mod fds;
mod handle;
mod harness;
mod helper;
mod lane;
mod pty;
mod shim;
mod table;
mod tree;

pub use apart::{leave_session, spawn_apart};
pub use carried::{carriers, environment_of, holders, inherited_files, words_of};
pub use children::{has_children, reap_ended_children};
pub use confined::{CONFINED_VERB, Foreground, UNPREPARED as UNCONFINED, become_program, start as start_confined};
pub use handle::{Exit, Handle};
pub use harness::{by_environment, by_words, find_harness};
pub use helper::{Adopted, HelperCommand, adopt_locks, become_reaper, spawn_helper};
pub use lane::{LaneStdin, Launched, Limits, Program, StartError, spawn_command, spawn_lane};
pub use shim::{NOT_EXECUTABLE, NOT_FOUND, SHIM_VERB, run_lane_shim};
pub use table::{Entry, Table};
pub use tree::{Ended, Tree, end_tree, reap_orphans};

pub use rustix::process::Signal;

use serde::{Deserialize, Serialize};

use super::clock::boot_id;

/// One process, told apart from all others that ever had its pid.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: i32,
    /// When it started, in clock ticks since the boot (field 22 of `/proc/<pid>/stat`).
    pub start_ticks: u64,
    /// The boot it lives in.
    pub boot: String,
}

impl Identity {
    /// The process that has this pid now, zombies included; `None` if there is none.
    pub fn of(pid: i32) -> Option<Identity> {
        Entry::read(pid).map(|entry| entry.identity())
    }

    /// This process.
    pub fn own() -> Option<Identity> {
        Identity::of(own_pid())
    }

    /// Whether it still runs: same boot, same start time, and no zombie.
    pub fn is_alive(&self) -> bool {
        self.boot == boot_id()
            && Entry::read(self.pid).is_some_and(|entry| entry.start_ticks == self.start_ticks && !entry.is_zombie())
    }
}

/// Where a command is: by its path from a folder, or in a folder of the PATH. It must be a file that may be executed.
pub fn find_program(command: &std::ffi::OsStr, folder: &std::path::Path) -> Option<std::path::PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &std::path::PathBuf| {
        std::fs::metadata(path).is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    };
    if command.as_bytes().contains(&b'/') {
        return Some(folder.join(command)).filter(is_program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(command)).find(is_program)
}

/// The pid of this process.
pub fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// The parents of a process, nearest first, itself not among them. Bounded, should the table change underneath.
pub fn ancestors(pid: i32) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut next = Entry::read(pid).map_or(0, |entry| entry.parent);
    while next > 0 && found.len() < 128 {
        let Some(entry) = Entry::read(next) else { break };
        next = entry.parent;
        found.push(entry);
    }
    found
}

/// The session id (sid) of a process.
pub fn session_id_of(pid: i32) -> Option<i32> {
    Entry::read(pid).map(|entry| entry.session)
}
