//! `striatum hook ...`: git's hooks, and what installs them.
//!
//! The hooks themselves are matched before clap is built: they read no configuration and start nothing.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;

use super::Globals;
use super::call::Session;
use super::output::{Output, complain};
use crate::error::Result;
use crate::verbs::constrained;
use crate::verbs::hook::install::{
    Became, HookLine, HooksReport, InstallRequest, PrintReport, PrintRequest, UninstallRequest,
};
use crate::verbs::hook::{self, Lane, Said, Surroundings};

/// What git needs is said by this code; the scripts let every other one pass.
const REFUSED: u8 = 1;

/// What stops a client's tool.
pub const STOPPED: u8 = 2;

/// The longest announcement that is read; what is cut off can't be read, and refuses in a lane.
const LONGEST_CALL: u64 = 16 * 1024 * 1024;

/// The longest time that a judgement of a tool call may take.
const TOOL_DEADLINE: std::time::Duration = std::time::Duration::from_secs(2);

/// The longest list of references that is read from a push.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Install git hooks, and what they call
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Hook {
    /// Put scripts where git looks for hooks; other people's are left alone
    Install {
        /// Also in a tool's place for further hooks, or in a folder that all your repositories share
        #[arg(long)]
        force_beside: bool,
    },
    /// Take the scripts away
    Uninstall,
    /// Show the scripts
    Print {
        /// The hook; every one when left out
        hook: Option<String>,
    },
    /// Called by git: judge what is staged in a job's work tree
    PreCommit,
    /// Called by git: say in the message where a commit in a job's work tree comes from
    CommitMsg {
        /// The file with the message
        file: PathBuf,
    },
    /// Called by an agent's client before it uses a tool: judge what it would write
    PreToolUse,
    /// Called by git: keep a run's branches and pins in this repository
    PrePush {
        /// The remote's name and address, as git tells them
        #[arg(value_name = "REMOTE")]
        remote: Vec<OsString>,
    },
}

impl Hook {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Hook::Install { force_beside } => output.report(&session.call(&InstallRequest { force_beside })?, told),
            Hook::Uninstall => output.report(&session.call(&UninstallRequest {})?, told),
            Hook::Print { hook } => output.report(&session.call(&PrintRequest { hook })?, printed),
            Hook::PreCommit => return Ok(say(&hook::pre_commit(&surroundings()))),
            Hook::CommitMsg { file } => return Ok(say(&hook::commit_msg(&surroundings(), &file))),
            Hook::PreToolUse => return Ok(answered(&announced())),
            Hook::PrePush { .. } => return Ok(say(&pushed())),
        }
        Ok(0)
    }
}

/// What git calls, by the words after the program's name; none when they are anything else.
pub fn called(words: &[OsString]) -> Option<ExitCode> {
    let word = |number: usize| words.get(number).and_then(|word| word.to_str());
    if word(0) != Some("hook") {
        return None;
    }
    if word(1) == Some("pre-tool-use") && words.len() == 2 {
        return Some(ExitCode::from(answered(&announced())));
    }
    let said = match (word(1)?, words.len()) {
        ("pre-commit", 2) => hook::pre_commit(&surroundings()),
        ("commit-msg", 3) if !word(2).is_some_and(|file| file.starts_with('-')) => {
            hook::commit_msg(&surroundings(), &PathBuf::from(words.get(2)?))
        }
        ("pre-push", 4) => pushed(),
        _ => return None,
    };
    Some(ExitCode::from(say(&said)))
}

/// A client does not wait for ever, and takes silence for a yes.
fn announced() -> Said {
    let lane = lane();
    let refuses = lane.tree.is_some() || lane.is_constrained;
    let (said, heard) = std::sync::mpsc::channel();
    std::thread::spawn(move || drop(said.send(judged(&lane))));
    let late = || Said { refuses, text: "striatum: the tool call could not be judged in time\n".to_owned() };
    heard.recv_timeout(TOOL_DEADLINE).unwrap_or_else(|_| late())
}

fn lane() -> Lane {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let (tree, scratch) = (path("STRIATUM_TREE"), path("STRIATUM_SCRATCH"));
    let is_constrained = tree.is_none() && constrained::is_own_session(Globals::default().dir.as_deref());
    Lane { cwd: std::env::current_dir().unwrap_or_default(), tree, scratch, is_constrained }
}

fn judged(lane: &Lane) -> Said {
    let refuses = lane.tree.is_some() || lane.is_constrained;
    let mut call = Vec::new();
    match std::io::stdin().lock().take(LONGEST_CALL + 1).read_to_end(&mut call) {
        Ok(read) if read as u64 > LONGEST_CALL => {
            let text = format!("striatum: the announcement is longer than {} MiB\n", LONGEST_CALL >> 20);
            Said { refuses, text }
        }
        Ok(_) => hook::pre_tool_use(lane, &call, &mut |request| Session::new(Globals::default()).call(request)),
        Err(error) => Said { refuses, text: format!("striatum: the call can't be read: {error}\n") },
    }
}

/// Clients stop a tool for this code alone; every other one lets it through.
fn answered(said: &Said) -> u8 {
    if say(said) == 0 { 0 } else { STOPPED }
}

fn pushed() -> Said {
    let mut lines = Vec::new();
    match std::io::stdin().lock().take(LONGEST).read_to_end(&mut lines) {
        Ok(_) => hook::pre_push(&surroundings(), &lines),
        Err(error) => {
            Said { refuses: false, text: format!("striatum: not checked, git's list can't be read: {error}\n") }
        }
    }
}

fn say(said: &Said) -> u8 {
    if !said.text.is_empty() {
        complain(&said.text);
    }
    if said.refuses { REFUSED } else { 0 }
}

/// What git tells by its environment; only here is it believed.
fn surroundings() -> Surroundings {
    let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    Surroundings {
        cwd: std::env::current_dir().unwrap_or_default(),
        git_dir: path("GIT_DIR"),
        index: path("GIT_INDEX_FILE"),
        tree: path("STRIATUM_TREE"),
        // git's own way to tell a hook that no editor is opened.
        is_unedited: std::env::var_os("GIT_EDITOR").is_some_and(|editor| editor == ":"),
    }
}

fn told(report: &HooksReport) -> String {
    let lines: String = report.hooks.iter().map(line).collect();
    format!("{lines}git looks for hooks in {}\n", report.folder)
}

fn line(line: &HookLine) -> String {
    let word = match line.became {
        Became::Installed => "installed",
        Became::There => "is installed",
        Became::Called => "is called by a hook of somebody else's",
        Became::Edited => "left: ours, and edited",
        Became::Left => "left alone",
        Became::Removed => "removed",
        Became::Absent => "was not installed",
    };
    let note = line.note.as_ref().map_or(String::new(), |note| format!("\n  {note}"));
    format!("{} {word} ({}){note}\n", line.hook, line.path)
}

fn printed(report: &PrintReport) -> String {
    report.scripts.iter().map(|script| script.text.as_str()).collect::<Vec<_>>().join("\n")
}
