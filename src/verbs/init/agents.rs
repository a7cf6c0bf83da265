//! Agents that are installed: looked for by name on the PATH, none of them started.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::workflow::adapters;
use crate::os::process::find_program;

/// The programs that are looked for, the usual author first.
pub const NAMES: [&str; 5] = ["claude", "codex", "opencode", "gemini", "aider"];

/// An installed agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its program.
    pub program: PathBuf,
    /// The lane that calls it; none when no adapter knows how.
    pub lane: Option<String>,
}

/// Every agent on the PATH.
pub fn find() -> Vec<Agent> {
    NAMES
        .iter()
        .filter_map(|name| {
            let program = find_program(OsStr::new(name), Path::new("/"))?;
            let lane = adapters::find(name).map(|adapter| adapter.name.to_owned());
            Some(Agent { name: (*name).to_owned(), program, lane })
        })
        .collect()
}
