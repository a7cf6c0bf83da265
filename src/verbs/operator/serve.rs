//! The parent's side of `operator exec`: takes what the program asks, runs each verb outside the sandbox with the
//! program's own streams, and tells how it ended.
//!
//! One connection a verb: three open files, one line that asks, one that tells the exit. A caller that goes away takes its
//! verb with it, as Ctrl-C would.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ALONG, HELD_VARIABLE, Prepared, SOCKET_VARIABLE, may_ask};
use crate::error::{Code, Error, Result};
use crate::os::process::{Handle, Identity, Signal, ancestors};
use crate::os::signal::Signals;
use crate::os::socket::{self, handover};
use crate::os::wait::Set;
use crate::verbs::Ctx;

/// How long a request or its end may take on the wire.
const WIRE_MS: u64 = 2_000;

/// How many verbs may run at once.
const MOST: usize = 32;

/// How long a verb that was told to end may still take.
const GRACE: Duration = Duration::from_secs(20);

/// What a program asks its parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ask {
    /// What was typed behind the program's name.
    pub words: Vec<String>,
    /// Where it was typed.
    pub cwd: PathBuf,
    /// Variables that go along.
    pub variables: BTreeMap<String, String>,
}

/// What the parent tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// The verb ran, and exited with this.
    Exit(u8),
    /// It did not run.
    Error(Value),
}

/// What every verb is run with.
struct Parent<'a> {
    exe: &'a Path,
    store: &'a Path,
    folder: &'a Path,
    held: &'static str,
    program: Identity,
    running: AtomicUsize,
}

/// Serves a program until it has ended; its exit code, as a shell would tell it.
pub fn serve(ctx: &Ctx, prepared: &Prepared, listener: &UnixListener, mut child: Child) -> Result<u8> {
    let program = Identity::of(i32::try_from(child.id()).unwrap_or(0));
    let (Some(program), mut signals) = (program, Signals::install()?) else {
        return Ok(code(child.wait()?));
    };
    let handle = Handle::open(&program);
    let parent = Parent {
        exe: &ctx.exe,
        store: ctx.layout().root(),
        folder: prepared.folder.path(),
        held: prepared.held(),
        program,
        running: AtomicUsize::new(0),
    };
    let status = std::thread::scope(|scope| -> Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            let mut set = Set::new();
            set.readable(listener.as_fd());
            set.readable(signals.as_fd());
            handle.iter().filter_map(Handle::pidfd).for_each(|fd| {
                set.readable(fd);
            });
            set.wait(Some(1_000))?;
            while let Ok((stream, _)) = listener.accept() {
                let parent = &parent;
                scope.spawn(move || parent.answer(&stream));
            }
            // Ctrl-C reaches the program itself, which shares the terminal; what is meant for this process goes on to it.
            if let Some(received) = signals.take().filter(|received| received.signal != Signal::INT.as_raw()) {
                let signal = Signal::from_named_raw(received.signal).unwrap_or(Signal::TERM);
                handle.iter().for_each(|handle| drop(handle.signal(signal)));
            }
        }
    })?;
    Ok(code(status))
}

/// 128 and the signal, where one ended it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

impl Parent<'_> {
    fn answer(&self, stream: &UnixStream) {
        let count = self.running.fetch_add(1, Ordering::SeqCst);
        let told = match self.run(stream, count) {
            Ok(code) => Told::Exit(code),
            Err(error) => Told::Error(error.to_json()),
        };
        self.running.fetch_sub(1, Ordering::SeqCst);
        let line = serde_json::to_vec(&told).unwrap_or_default();
        if let Err(error) = socket::write_line(stream, &line, WIRE_MS) {
            tracing::debug!("nobody waits for the end of a verb: {error}");
        }
    }

    fn run(&self, stream: &UnixStream, running: usize) -> Result<u8> {
        // All of it is read first: who is refused before its words were read would hear of a broken connection only.
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_millis(WIRE_MS)))?;
        let files = handover::receive(stream)?;
        let line = socket::read_line(stream, WIRE_MS)?;
        if !self.is_of_program(stream) {
            return Err(Error::new(Code::CapabilityDenied, "this socket serves one program and what it starts"));
        }
        if running >= MOST {
            return Err(Error::new(Code::TooLarge, format!("{MOST} verbs run already")));
        }
        let ask: Ask = serde_json::from_slice(&line)
            .map_err(|error| Error::new(Code::Usage, format!("the request is none: {error}")))?;
        may_ask(&ask.words)?;
        let child = self.start(&ask, files)?;
        Ok(code(watch(stream, child)?))
    }

    /// Whether the other end is the program or descends from it, by the kernel's word.
    fn is_of_program(&self, stream: &UnixStream) -> bool {
        let is_it = |identity: &Identity| *identity == self.program;
        socket::peer_pid(stream).is_ok_and(|peer| {
            Identity::of(peer).as_ref().is_some_and(is_it)
                || ancestors(peer).iter().any(|entry| is_it(&entry.identity()))
        })
    }

    fn start(&self, ask: &Ask, files: [OwnedFd; handover::FILES]) -> Result<Child> {
        let [input, output, complaints] = files.map(Stdio::from);
        let mut command = Command::new(self.exe);
        command.args(&ask.words).current_dir(&ask.cwd).stdin(input).stdout(output).stderr(complaints);
        // A group of its own: the terminal's Ctrl-C is for the program, which hangs up when it means the verb.
        command.process_group(0);
        command.env_remove(SOCKET_VARIABLE);
        ALONG.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(ask.variables.iter().filter(|(name, _)| ALONG.contains(&name.as_str())));
        command.env(HELD_VARIABLE, self.held).env("STRIATUM_DIR", self.store).env("STRIATUM_SCRATCH", self.folder);
        command.spawn().map_err(|error| Error::new(Code::Io, "the verb could not be started").cause(error))
    }
}

/// Waits for a verb; one whose caller has gone away is interrupted, and ended when it does not obey.
fn watch(stream: &UnixStream, mut child: Child) -> Result<ExitStatus> {
    let Some(handle) = Identity::of(i32::try_from(child.id()).unwrap_or(0)).and_then(|it| Handle::open(&it)) else {
        return Ok(child.wait()?);
    };
    let mut is_alone = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut set = Set::new();
        handle.pidfd().into_iter().for_each(|fd| {
            set.readable(fd);
        });
        let caller = set.readable(stream.as_fd());
        set.wait(Some(1_000))?;
        if !is_alone && set.is_ready(caller) && child.try_wait()?.is_none() {
            is_alone = true;
            handle.signal(Signal::INT)?;
            if !handle.wait_ended(u64::try_from(GRACE.as_millis()).unwrap_or(u64::MAX)) {
                handle.signal(Signal::KILL)?;
            }
        }
    }
}

/// The error document of a verb that did not run.
pub fn refusal(document: &Value) -> Error {
    let document = if document.is_null() { &json!({}) } else { document };
    Error::from_json(document)
}
