//! The last step before a foreign command: a single-threaded process that arranges descriptors, session, terminal,
//! limits and folder, and then becomes the command.
//!
//! It tells its parent through standard output, a pipe that closes at the exec, why it could not. It does not
//! know what it starts.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use super::fds::{close_inherited, keep_at_exec, move_up, open_null};
use super::lane::{Limits, StartError};

/// The hidden verb that `main` looks for before anything else.
pub const SHIM_VERB: &str = "__lane";
/// The exit code when there is no such command, as in a shell.
pub const NOT_FOUND: u8 = 127;
/// The exit code when the command can't be executed, as in a shell.
pub const NOT_EXECUTABLE: u8 = 126;
/// The exit code when something before the exec failed.
const UNPREPARED: u8 = 125;
/// Written right before the exec.
const MARK: u8 = b'>';

/// Becomes the command that `args` (everything after [`SHIM_VERB`]) describe. Comes back only if it can't, with
/// the code to exit with; standard error and the parent have been told why by then.
pub fn run_lane_shim(args: impl Iterator<Item = OsString>) -> u8 {
    let order = Order::parse(args);
    let report = match claim_streams(order.has_lock) {
        Ok(streams) => streams,
        Err(error) => return complain(&order, &Failure::at("descriptors", error), None),
    };
    let failure = become_command(&order, &report.pipe);
    complain(&order, &failure, Some(report.pipe))
}

/// What the shim was told.
#[derive(Debug, Default)]
struct Order {
    cwd: PathBuf,
    has_lock: bool,
    stdin: Option<PathBuf>,
    tty: Option<PathBuf>,
    limits: Limits,
    argv: Vec<OsString>,
}

impl Order {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Order {
        let mut order = Order::default();
        for word in args.by_ref().take_while(|word| word != "--") {
            let bytes = word.into_vec();
            let Some(at) = bytes.iter().position(|byte| *byte == b'=') else { continue };
            let (key, value) = (bytes.get(..at).unwrap_or_default(), bytes.get(at + 1..).unwrap_or_default());
            let path = || PathBuf::from(OsStr::from_bytes(value));
            match key {
                b"cwd" => order.cwd = path(),
                b"lock" => order.has_lock = true,
                b"stdin" => order.stdin = Some(path()),
                b"tty" => order.tty = Some(path()),
                b"limits" => order.limits = serde_json::from_slice(value).unwrap_or_default(),
                b"confine" => order.limits.writable = Some(Vec::new()),
                b"writable" => order.limits.writable.get_or_insert_default().push(path()),
                _ => {}
            }
        }
        order.argv = args.collect();
        order
    }

    fn command(&self) -> &OsStr {
        self.argv.first().map_or(OsStr::new(""), OsString::as_os_str)
    }
}

/// The streams that the shim came with, out of the way of the command's own.
struct Streams {
    pipe: OwnedFd,
    /// Kept open over the exec: the command's share of the lane lock.
    _lock: Option<OwnedFd>,
}

fn claim_streams(has_lock: bool) -> io::Result<Streams> {
    close_inherited()?;
    let lock = has_lock.then(|| move_up(rustix::stdio::stdin())).transpose()?;
    if let Some(lock) = &lock {
        keep_at_exec(lock)?;
    }
    Ok(Streams { pipe: move_up(rustix::stdio::stdout())?, _lock: lock })
}

/// A step that failed, and how.
struct Failure {
    step: &'static str,
    error: io::Error,
}

impl Failure {
    fn at(step: &'static str, error: impl Into<io::Error>) -> Failure {
        Failure { step, error: error.into() }
    }
}

fn become_command(order: &Order, pipe: &OwnedFd) -> Failure {
    match prepare(order) {
        Err(failure) => failure,
        Ok(()) => {
            let mut arguments = order.argv.iter();
            let Some(word) = arguments.next() else {
                return Failure::at("command", io::Error::from(io::ErrorKind::InvalidInput));
            };
            if let Err(error) = tell(pipe, &[MARK]) {
                return Failure::at("report", error);
            }
            Failure::at("exec", Command::new(word).args(arguments).exec())
        }
    }
}

fn prepare(order: &Order) -> Result<(), Failure> {
    heed_signals().map_err(|error| Failure::at("signals", error))?;
    rustix::process::setsid().map_err(|error| Failure::at("session", error))?;
    match &order.tty {
        Some(name) => take_terminal(name).map_err(|error| Failure::at("terminal", error))?,
        None => connect(order.stdin.as_deref())?,
    }
    limit(&order.limits).map_err(|error| Failure::at("limits", error))?;
    std::env::set_current_dir(&order.cwd).map_err(|error| Failure::at("working directory", error))?;
    match &order.limits.writable {
        Some(writable) => crate::os::sandbox::confine(writable).map_err(|error| Failure::at("sandbox", error)),
        None => Ok(()),
    }
}

/// A signal that whoever started us ignored (`nohup`, a script's background) would be ignored by the command too,
/// and it could not be asked to end. What has a handler is back at its default after the exec.
fn heed_signals() -> io::Result<()> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD] {
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(())
}

/// Standard error is the log already; standard output joins it.
fn connect(stdin: Option<&Path>) -> Result<(), Failure> {
    let input = stdin.map_or_else(open_null, File::open).map_err(|error| Failure::at("standard input", error))?;
    rustix::stdio::dup2_stdin(&input).map_err(|error| Failure::at("standard input", error))?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr()).map_err(|error| Failure::at("standard output", error))
}

/// The far end of the pseudo-terminal becomes all three streams and the session's terminal.
fn take_terminal(name: &Path) -> io::Result<()> {
    let far = File::options().read(true).write(true).open(name)?;
    rustix::process::ioctl_tiocsctty(&far)?;
    rustix::stdio::dup2_stdin(&far)?;
    rustix::stdio::dup2_stdout(&far)?;
    Ok(rustix::stdio::dup2_stderr(&far)?)
}

fn limit(limits: &Limits) -> io::Result<()> {
    let wanted = [
        (Resource::Core, Some(0)),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::As, limits.address_bytes),
        (Resource::Cpu, limits.cpu_seconds),
    ];
    for (resource, most) in wanted {
        if most.is_some() {
            setrlimit(resource, Rlimit { current: most, maximum: most })?;
        }
    }
    Ok(())
}

/// Tells the parent, and whoever reads the log, why there is no command.
fn complain(order: &Order, failure: &Failure, pipe: Option<OwnedFd>) -> u8 {
    let (code, reason) = explain(order.command(), failure);
    let command = order.command().to_string_lossy();
    let line = format!("striatum: {command}: {}: {reason}\n", failure.step);
    let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    let report = Report { code, step: failure.step.to_owned(), reason };
    let text = serde_json::to_vec(&report).unwrap_or_default();
    let _ = match pipe {
        Some(pipe) => tell(&pipe, &text),
        None => tell(rustix::stdio::stdout(), &text),
    };
    code
}

fn tell(pipe: impl AsFd, bytes: &[u8]) -> io::Result<()> {
    File::from(move_up(pipe)?).write_all(bytes)
}

/// The exit code and the reason. A file that is there and still "not found" names an interpreter that is not; a
/// "permission denied" may be about a folder of the PATH that has nothing to do with the command.
fn explain(command: &OsStr, failure: &Failure) -> (u8, String) {
    let reason = failure.error.to_string();
    match (failure.step, failure.error.kind()) {
        ("exec", _) if !is_somewhere(command) => (NOT_FOUND, "no such command".to_owned()),
        ("exec", io::ErrorKind::NotFound) => (NOT_EXECUTABLE, "its interpreter was not found".to_owned()),
        ("exec", _) => (NOT_EXECUTABLE, reason),
        _ => (UNPREPARED, reason),
    }
}

/// Whether there is a file that the command may have meant: by its path, or in a folder of the PATH.
fn is_somewhere(command: &OsStr) -> bool {
    if command.as_bytes().contains(&b'/') {
        return Path::new(command).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).exists())
}

/// What the shim tells its parent when it could not become the command.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Report {
    code: u8,
    step: String,
    reason: String,
}

impl Report {
    /// Reads what came through the pipe until its end; `None`: the command runs.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<Report>, String> {
        match bytes {
            [] => Err("the starting process ended early".to_owned()),
            [MARK] => Ok(None),
            [MARK, rest @ ..] => serde_json::from_slice(rest).map(Some).map_err(|error| error.to_string()),
            rest => serde_json::from_slice(rest).map(Some).map_err(|error| error.to_string()),
        }
    }

    /// The caller's form.
    pub(super) fn into_error(self, command: String) -> StartError {
        match self.code {
            NOT_FOUND => StartError::NotFound { command },
            NOT_EXECUTABLE => StartError::NotExecutable { command, reason: self.reason },
            _ => StartError::Unprepared { command, step: self.step, reason: self.reason },
        }
    }
}
