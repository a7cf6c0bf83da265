//! Who asks: a lane of this store, or a person, and how that is known.
//!
//! Against the same user this is advice, not a wall, and said to be. It does not know what a
//! person decides.

use std::io::IsTerminal;
use std::path::Path;

use super::{Ctx, operator};
use crate::domain::id::SessionId;
use crate::domain::session::SessionState;
use crate::error::{Code, Error, Next, Result};
use crate::os::process::{Entry, Identity, ancestors, find_harness, inherited_files, own_pid};
use crate::store;

/// The lane of a person who works a job: it is no lane of any workflow, whose names begin with a letter or digit.
pub const LANE: &str = "@person";

/// What a mouth knows of its caller.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// `--as-person`: whatever is detected, a person stands behind it.
    pub as_person: bool,
    /// What was typed, from the name of the program on.
    pub words: Vec<String>,
    /// The words to act on came through standard input, so that it can't be a terminal.
    pub words_on_stdin: bool,
}

/// How it is known that a person asks: `terminal`, or `--as-person` with what was detected.
///
/// A person sits at a terminal: standard error is one, and standard input unless their words come through it.
/// Standard output may go anywhere. Where an agent's harness is known to stand above, a terminal proves nothing.
pub fn require(caller: &Caller) -> Result<String> {
    if operator::is_operated() {
        return Err(Error::new(
            Code::CapabilityDenied,
            "a program under `operator exec` is no person, whatever it says",
        )
        .hint("a person types it in a terminal of their own"));
    }
    match (detect(caller.words_on_stdin), caller.as_person) {
        (None, false) => Ok("terminal".to_owned()),
        (None, true) => Ok("--as-person".to_owned()),
        (Some(detected), true) => Ok(format!("--as-person; detected {detected}")),
        (Some(detected), false) => Err(refusal(caller, &detected)),
    }
}

fn refusal(caller: &Caller, detected: &str) -> Error {
    let argv: Vec<&str> = caller.words.iter().map(String::as_str).collect();
    Error::new(Code::PersonRequired, format!("only a person may do this, and what asks is {detected}"))
        .hint("a person types it in a terminal of their own")
        .next(Next::new("person", "what was asked for", &argv))
}

/// What speaks against a person.
fn detect(words_on_stdin: bool) -> Option<String> {
    if let Some(harness) = find_harness() {
        return Some(harness);
    }
    let missing = |stream: &str| Some(format!("no terminal ({stream} is none)"));
    if !std::io::stderr().is_terminal() {
        return missing("standard error");
    }
    if !words_on_stdin && !std::io::stdin().is_terminal() {
        return missing("standard input");
    }
    None
}

/// The session of this store in whose lane this process runs, if in any: an ancestor or the leader of its terminal
/// session is an agent, it inherited a lane's lock, or its environment names an active session.
pub fn own_lane(ctx: &Ctx) -> Result<Option<SessionId>> {
    if !ctx.has_store() {
        return Ok(None);
    }
    if let Some(session) = by_descriptor(ctx) {
        return Ok(Some(session));
    }
    let own = own_pid();
    for entry in ancestors(own) {
        if let Some(session) = by_process(ctx, &entry.identity())? {
            return Ok(Some(session));
        }
    }
    if let Some(session) = by_leader(ctx, own)? {
        return Ok(Some(session));
    }
    by_environment(ctx)
}

fn by_process(ctx: &Ctx, process: &Identity) -> Result<Option<SessionId>> {
    let start = i64::try_from(process.start_ticks).unwrap_or(i64::MAX);
    let process = (i64::from(process.pid), start, process.boot.as_str());
    ctx.read(|read| Ok(store::execution::session_of_process(read, process)?))
}

/// Whoever the agent left behind is still in its terminal session; a leader that is gone keeps its number there.
fn by_leader(ctx: &Ctx, own: i32) -> Result<Option<SessionId>> {
    let Some(me) = Entry::read(own) else { return Ok(None) };
    match Entry::read(me.session) {
        Some(leader) => by_process(ctx, &leader.identity()),
        None => {
            ctx.read(|read| Ok(store::execution::session_of_pid(read, i64::from(me.session), &me.identity().boot)?))
        }
    }
}

/// The lock of a lane is the only descriptor above 2 that its agent gets.
fn by_descriptor(ctx: &Ctx) -> Option<SessionId> {
    let scratches = ctx.layout().scratches().canonicalize().ok()?;
    let of_lane = |path: &Path| {
        let folder = path.parent()?;
        let session = folder.file_name()?.to_str()?.parse::<SessionId>().ok()?;
        let lock = ctx.layout().scratch(&session.to_string()).lane_lock();
        (folder.parent() == Some(&scratches) && path.file_name() == lock.file_name()).then_some(session)
    };
    inherited_files().iter().find_map(|path| of_lane(path))
}

/// `STRIATUM_SESSION` speaks of this store unless `STRIATUM_DIR` beside it names another.
fn by_environment(ctx: &Ctx) -> Result<Option<SessionId>> {
    let Some(named) = std::env::var("STRIATUM_SESSION").ok().and_then(|text| text.parse::<SessionId>().ok()) else {
        return Ok(None);
    };
    let canonical = |path: &Path| path.canonicalize().ok();
    let is_other = std::env::var_os("STRIATUM_DIR")
        .filter(|dir| !dir.is_empty())
        .is_some_and(|dir| canonical(Path::new(&dir)) != canonical(ctx.layout().root()));
    if is_other {
        return Ok(None);
    }
    let session = ctx.read(|read| Ok(store::session::get(read, named)?))?;
    Ok(session.filter(|session| session.state == SessionState::Active).map(|session| session.id))
}
