//! Starting an agent's command, or a check's, through the shim: its own session, its own environment, a bounded
//! set of descriptors, and a sure answer whether it was started at all.
//!
//! It does not know what the command is for.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::helper::hold;
use super::shim::{Report, SHIM_VERB};
use super::{Handle, Signal};
use crate::os::Fault;
use crate::os::lock::Lock;
use crate::os::wait::{Countdown, is_readable_within};

/// How long the shim may take to get to its exec.
const START_LIMIT_MS: u64 = 20_000;

/// What a command reads. An open pipe is no choice: several agents wait on one for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneStdin {
    /// Nothing.
    Null,
    /// A file, from its start.
    File(PathBuf),
}

/// Limits that the kernel holds; core dumps are always off.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Open descriptors.
    pub open_files: Option<u64>,
    /// Processes of this user (RLIMIT_NPROC counts all of the user's).
    pub processes: Option<u64>,
    /// Bytes in one written file.
    pub file_bytes: Option<u64>,
    /// Bytes of address space.
    pub address_bytes: Option<u64>,
    /// Seconds of CPU time.
    pub cpu_seconds: Option<u64>,
    /// Where it and its children may write, devices aside; none means anywhere.
    #[serde(skip)]
    pub writable: Option<Vec<PathBuf>>,
}

/// A command, complete: nothing is inherited but what stands here.
#[derive(Clone, Debug)]
pub struct Program {
    /// The command and its arguments; a bare name is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads; ignored with `tty`.
    pub stdin: LaneStdin,
    /// Where stdout and stderr go, appended, 0600. With `tty` only the shim writes here; the caller copies.
    pub output: PathBuf,
    /// Whether it gets a pseudo-terminal.
    pub tty: bool,
    /// Limits.
    pub limits: Limits,
}

/// A command that runs.
#[derive(Debug)]
pub struct Launched {
    /// The hold on it; it is a child of this process.
    pub process: Handle,
    /// The near end of its terminal, not blocking; what can be read there is its output.
    pub terminal: Option<OwnedFd>,
}

/// Why a command was never started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No such command.
    #[error("command not found: {command}")]
    NotFound {
        /// The word that was looked for.
        command: String,
    },
    /// There is such a file, and it can't be executed.
    #[error("{command} can't be executed: {reason}")]
    NotExecutable {
        /// The command.
        command: String,
        /// The system's word.
        reason: String,
    },
    /// Something before the exec failed: the folder, the input, a limit, the terminal.
    #[error("could not prepare {command}: {step}: {reason}")]
    Unprepared {
        /// The command.
        command: String,
        /// What failed.
        step: String,
        /// The system's word.
        reason: String,
    },
    /// Whoever was to start it died or hung before; nothing is wrong with the command.
    #[error("{command} was not started: {reason}")]
    Lost {
        /// The command.
        command: String,
        /// What is known.
        reason: String,
    },
    /// The system refused earlier.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Starts an agent: it inherits the lane lock, as its only descriptor above 2.
///
/// # Errors
/// See [`StartError`]; the command has then not run.
pub fn spawn_lane(exe: &Path, program: &Program, lane_lock: &Lock) -> Result<Launched, StartError> {
    let lock = lane_lock.share().map_err(Fault::at("share the lock of", &program.cwd))?;
    start(exe, program, Some(lock))
}

/// Starts a check or a setup command: like an agent, without the lock.
///
/// # Errors
/// See [`StartError`]; the command has then not run.
pub fn spawn_command(exe: &Path, program: &Program) -> Result<Launched, StartError> {
    start(exe, program, None)
}

fn start(exe: &Path, program: &Program, lock: Option<File>) -> Result<Launched, StartError> {
    // Whatever stands there already: no link is followed, no pipe waited for.
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(flags.bits());
    let log = options.open(&program.output);
    let log = log.map_err(Fault::at("open", &program.output))?;
    let terminal =
        if program.tty { Some(super::pty::open().map_err(Fault::at("open", Path::new("/dev/ptmx")))?) } else { None };
    let (answer, tell) = io::pipe().map_err(Fault::at("start", exe))?;
    let mut command = Command::new(exe);
    command
        .arg0("striatum")
        .args(words(program, lock.is_some(), terminal.as_ref().map(|terminal| terminal.name.as_os_str())))
        .env_clear()
        .envs(program.env.iter().map(|(name, value)| (name, value)))
        .stdin(lock.map_or_else(Stdio::null, Stdio::from))
        .stdout(tell)
        .stderr(log);
    let child = command.spawn().map_err(Fault::at("start", exe))?;
    // The command keeps this process's copies of the streams open.
    drop(command);
    let process = hold(child.id()).ok_or_else(|| Fault::new("start", exe, io::Error::other("it vanished")))?;
    confirm(&process, answer, program)?;
    Ok(Launched { process, terminal: terminal.map(|terminal| terminal.near) })
}

/// The shim's instructions as arguments: nothing secret, that is all in the environment it passes on.
fn words(program: &Program, has_lock: bool, terminal: Option<&OsStr>) -> Vec<OsString> {
    let pair = |key: &str, value: &OsStr| {
        let mut word = OsString::from(key);
        word.push("=");
        word.push(value);
        word
    };
    let mut words = vec![OsString::from(SHIM_VERB), pair("cwd", program.cwd.as_os_str())];
    if has_lock {
        words.push("lock=stdin".into());
    }
    match (&program.stdin, terminal) {
        (_, Some(name)) => words.push(pair("tty", name)),
        (LaneStdin::File(path), None) => words.push(pair("stdin", path.as_os_str())),
        (LaneStdin::Null, None) => {}
    }
    let limits = serde_json::to_string(&program.limits).unwrap_or_default();
    words.push(pair("limits", OsStr::new(&limits)));
    if let Some(writable) = &program.limits.writable {
        words.push("confine=".into());
        words.extend(writable.iter().map(|path| pair("writable", path.as_os_str())));
    }
    words.push("--".into());
    words.extend(program.argv.iter().cloned());
    words
}

/// Waits for the exec: the pipe closes by itself when it succeeds, and carries the reason when it fails.
fn confirm(process: &Handle, answer: PipeReader, program: &Program) -> Result<(), StartError> {
    let command = program.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let error = match read_report(answer) {
        Ok(None) => return Ok(()),
        Ok(Some(report)) => report.into_error(command),
        Err(reason) => StartError::Lost { command, reason },
    };
    let _ = process.signal(Signal::KILL);
    process.wait_ended(START_LIMIT_MS);
    let _ = process.reap();
    Err(error)
}

/// `None`: executed. The shim's mark comes first; without it an end of the pipe means that the shim died.
fn read_report(mut answer: PipeReader) -> Result<Option<Report>, String> {
    let end = Countdown::start(START_LIMIT_MS);
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    loop {
        if !is_readable_within(&answer, end.left_ms()).map_err(|error| error.to_string())? {
            return Err(format!("no exec within {START_LIMIT_MS} ms"));
        }
        match answer.read(&mut part).map_err(|error| error.to_string())? {
            0 => break,
            count => bytes.extend_from_slice(part.get(..count).unwrap_or_default()),
        }
    }
    Report::read(&bytes)
}
