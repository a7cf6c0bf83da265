//! `operator exec`: the operator's own program, held by the kernel, with every verb done by its parent outside.
//!
//! What the program may ask for and where it may write. It does not know sockets.

pub mod serve;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;

use tempfile::TempDir;

use super::run::find;
use super::session::{self, CloseRequest, RegisterReport, RegisterRequest};
use super::supervise::confinement::{self, ADVISORY, KERNEL};
use crate::domain::frozen::LaneMode;
use crate::domain::scope::{folder_holds, write_path_problem};
use crate::domain::workflow::adapters;
use crate::error::{Code, Error, Result};
use crate::os::process::{CONFINED_VERB, Foreground, become_program, start_confined};
use crate::os::{env, sandbox};
use crate::verbs::Ctx;

pub use crate::os::process::UNCONFINED as UNPREPARED;

/// The hidden verb of the step between.
pub const STEP: &str = CONFINED_VERB;

/// Where the program's verbs are sent: set for it alone.
pub const SOCKET_VARIABLE: &str = "STRIATUM_OPERATOR_SOCKET";

/// What holds the program whose verb this is: set by the parent for each verb, and for the program.
pub const HELD_VARIABLE: &str = "STRIATUM_OPERATED";

/// Variables of the program that go along with its verbs.
pub const ALONG: [&str; 6] =
    ["STRIATUM_SESSION", "STRIATUM_TOKEN_FILE", "STRIATUM_FENCE", "COLUMNS", "NO_COLOR", "TERM"];

/// What may be asked: a verb with the words that must follow; none means all of the noun.
const MAY_ASK: &[(&str, &[&str])] = &[
    ("status", &[]),
    ("inbox", &[]),
    ("job", &[]),
    ("logs", &[]),
    ("diff", &[]),
    ("events", &[]),
    ("audit", &[]),
    ("doctor", &[]),
    ("dashboard", &[]),
    (
        "run",
        &[
            "prepare",
            "check",
            "start",
            "go",
            "drive",
            "pause",
            "resume",
            "stop",
            "cancel",
            "list",
            "summary",
            "graph",
            "explain",
            "amend",
            "retry-job",
        ],
    ),
    ("register-session", &[]),
    ("session", &[]),
    ("supervise", &[]),
    ("work", &[]),
    ("gate", &["list", "show"]),
    ("lane", &[]),
    ("gc", &[]),
    ("workflow", &["validate", "show", "graph"]),
    ("config", &[]),
    ("scope-check", &[]),
    ("decision", &[]),
    ("process", &[]),
    ("repo", &[]),
    ("hook", &["print", "install", "uninstall", "pre-tool-use"]),
];

/// What `operator exec` is asked.
#[derive(Clone, Debug, Default)]
pub struct ExecRequest {
    /// The run of the operator's session; the only live one when left out.
    pub run: Option<String>,
    /// The role of a session to register for the program; none when left out.
    pub role: Option<String>,
    /// Its lane; the role's only human one when left out.
    pub lane: Option<String>,
    /// Folders outside the repository that the program may write.
    pub write_paths: Vec<String>,
    /// Goes on where the kernel can't hold it.
    pub prefers_scope: bool,
    /// The program and its words.
    pub argv: Vec<OsString>,
}

/// What is ready for the program.
pub struct Prepared {
    /// The session that was registered for it.
    pub session: Option<RegisterReport>,
    /// Its own folder: the socket, the program's name for this one, temporary files. It goes with the value.
    pub folder: TempDir,
    /// Where the kernel lets it write; none where it can't hold it.
    pub writable: Option<Vec<PathBuf>>,
    argv: Vec<OsString>,
}

impl Prepared {
    /// The socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("operator.sock")
    }

    /// What holds the program.
    pub fn held(&self) -> &'static str {
        if self.writable.is_some() { KERNEL } else { ADVISORY }
    }

    /// The program has ended: its session goes.
    pub fn finish(&self, ctx: &Ctx) -> Result<()> {
        let Some(made) = &self.session else { return Ok(()) };
        let request = CloseRequest { session: made.session, reason: "`operator exec` has ended".to_owned() };
        session::close(ctx, &request).map(|_| ())
    }

    /// Starts the program in the foreground.
    pub fn start(&self, ctx: &Ctx) -> Result<Child> {
        let mut given: Vec<(OsString, OsString)> = vec![
            (SOCKET_VARIABLE.into(), self.socket().into()),
            (HELD_VARIABLE.into(), self.held().into()),
            ("STRIATUM_DIR".into(), ctx.layout().root().into()),
            ("TMPDIR".into(), self.folder.path().into()),
            ("PATH".into(), env::path_with(self.folder.path())),
        ];
        if let Some(session) = &self.session {
            given.push(("STRIATUM_SESSION".into(), session.session.to_string().into()));
            given.push(("STRIATUM_TOKEN_FILE".into(), session.token_file.clone().into()));
        }
        let foreground = Foreground { argv: &self.argv, given: &given, writable: self.writable.as_deref() };
        Ok(start_confined(&ctx.exe, &foreground)?)
    }
}

/// Makes ready what the program needs.
pub fn prepare(ctx: &Ctx, request: &ExecRequest) -> Result<Prepared> {
    if is_operated() {
        return Err(Error::new(Code::CapabilityDenied, "`operator exec` runs already; one stands in no other"));
    }
    if !ctx.has_store() {
        return Err(super::ctx::no_store(ctx.layout().project()));
    }
    if !sandbox::is_supported() && !request.prefers_scope {
        let error = Error::new(Code::Sandbox, "this kernel can't hold a program to its folders");
        return Err(error.hint("it takes Landlock ABI 3 (Linux 6.2); --prefer-scope goes on without"));
    }
    let paths = written(ctx, request)?;
    let folder = tempfile::Builder::new().prefix("striatum-operator-").tempdir()?;
    let own = std::env::current_exe()?;
    std::os::unix::fs::symlink(own, folder.path().join("striatum"))?;
    let writable = sandbox::is_supported().then(|| std::iter::once(folder.path().to_owned()).chain(paths).collect());
    let session = request.role.as_ref().map(|role| register(ctx, request, role)).transpose()?;
    Ok(Prepared { session, folder, writable, argv: request.argv.clone() })
}

/// A constrained session on a person's lane.
fn register(ctx: &Ctx, request: &ExecRequest, role: &str) -> Result<RegisterReport> {
    let run = ctx.read(|read| find::for_writing(read, request.run.as_deref()))?;
    let humans = || run.spec.lanes.iter().filter(|(_, lane)| lane.mode == LaneMode::Human).map(|(name, _)| name);
    let of_role = run.spec.roles.get(role).map(|role| role.lanes.clone()).unwrap_or_default();
    let fits: Vec<&String> = humans().filter(|name| of_role.is_empty() || of_role.contains(name)).collect();
    let lane = match (&request.lane, fits.as_slice()) {
        (Some(lane), _) if humans().any(|human| human == lane) => lane.clone(),
        (Some(lane), _) => {
            let text = format!("lane {lane} of run {} is no person's (mode = \"human\")", run.name);
            return Err(Error::new(Code::Usage, text));
        }
        (None, [only]) => (*only).clone(),
        (None, several) => {
            let text = format!("run {} has {} lanes of people for role {role}", run.name, several.len());
            return Err(Error::new(Code::Usage, text).hint("name one with --lane; it needs mode = \"human\""));
        }
    };
    let register = RegisterRequest {
        run: Some(run.name),
        role: role.to_owned(),
        lane,
        constrained: true,
        ..RegisterRequest::default()
    };
    session::register(ctx, &register)
}

/// Folders outside the repository: what was named, and where a known agent keeps its state.
fn written(ctx: &Ctx, request: &ExecRequest) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for named in &request.write_paths {
        if let Some(problem) = write_path_problem(named) {
            return Err(Error::new(Code::Usage, format!("--write-path {named} {problem}")));
        }
        // The kernel is told of folders that are there; one that comes later would be out of reach, and nobody would know why.
        if !named.starts_with('@') && !confinement::below_home(named).is_dir() {
            let text = format!("--write-path {named} is no folder that is there");
            return Err(Error::new(Code::Usage, text).hint("make it first"));
        }
        paths.extend(adapters::folders_of(named));
    }
    let name = request.argv.first().and_then(|word| Path::new(word).file_name()?.to_str());
    let state = name.and_then(adapters::find).map_or(&[][..], |adapter| adapter.state);
    let resolved = paths.iter().map(String::as_str).chain(state.iter().copied()).map(confinement::below_home);
    let resolved: Vec<PathBuf> = resolved.map(|path| path.canonicalize().unwrap_or(path)).collect();
    let kept = super::workflow::kept(ctx);
    match resolved.iter().find_map(|path| Some((path, kept.iter().find(|kept| folder_holds(path, kept))?))) {
        Some((path, kept)) => {
            let text = format!("{} reaches {}, which the program may not write", path.display(), kept.display());
            Err(Error::new(Code::Usage, text).hint("name a folder outside the repository"))
        }
        None => Ok(resolved),
    }
}

/// Whether a verb may be asked through the parent, by its words.
pub fn may_ask(words: &[String]) -> Result<()> {
    let denied = |what: String| {
        Err(Error::new(Code::CapabilityDenied, format!("{what} is not for a program under `operator exec`"))
            .hint("it is for the person who started it, in a terminal of their own"))
    };
    // What stands before the noun are flags that change the store or the speaker.
    let Some((noun, rest)) = words.split_first() else { return denied("nothing".to_owned()) };
    let is_other_store = |word: &String| word == "--dir" || word.starts_with("--dir=");
    if words.iter().take_while(|word| *word != "--").any(is_other_store) {
        return denied("--dir".to_owned());
    }
    let Some((_, verbs)) = MAY_ASK.iter().find(|(known, _)| known == noun) else { return denied(format!("`{noun}`")) };
    let verb = rest.iter().find(|word| !word.starts_with('-'));
    match verb {
        _ if verbs.is_empty() => Ok(()),
        Some(verb) if verbs.contains(&verb.as_str()) => Ok(()),
        Some(verb) => denied(format!("`{noun} {verb}`")),
        None => Ok(()),
    }
}

/// Whether this verb was asked for by a program under `operator exec`.
pub fn is_operated() -> bool {
    std::env::var_os(HELD_VARIABLE).is_some_and(|held| !held.is_empty())
}

/// What holds the program that asks, where one stands behind this verb.
pub fn enforcement() -> Option<&'static str> {
    let held = std::env::var(HELD_VARIABLE).ok().filter(|held| !held.is_empty())?;
    Some(if held == KERNEL { KERNEL } else { ADVISORY })
}

/// The step between: takes on the hold and becomes the program; what went wrong, if it can't.
pub fn become_harness(words: impl Iterator<Item = OsString>) -> Error {
    let (error, name) = become_program(words);
    Error::new(Code::CommandMissing, format!("{} could not be started", name.display())).cause(error)
}
