//! What a user is told when something can't be done: one type, one closed catalog, one table to exit codes.
//!
//! Each layer has typed errors of its own; the conversions here are the only place where a hint is chosen.
//! This file does not know how an error is rendered (`cli::output` does) or who asked.

use serde::{Deserialize, Serialize};

/// The result of every verb.
pub type Result<T> = std::result::Result<T, Error>;

/// A literal command that moves things on, why, and who may type it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Next {
    /// The command, word by word.
    pub argv: Vec<String>,
    /// What it is good for.
    pub why: String,
    /// `anyone`, `operator`, `person` or `session`.
    pub who: String,
}

impl Next {
    /// A next command from its words.
    pub fn new(who: &str, why: impl Into<String>, argv: &[impl AsRef<str>]) -> Self {
        Next { argv: argv.iter().map(|word| word.as_ref().to_owned()).collect(), why: why.into(), who: who.to_owned() }
    }
}

/// The class of an error; it decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The thing asked for was tried and failed.
    Failed,
    /// The words make no sense.
    Usage,
    /// The run needs an operator.
    NeedsOperator,
    /// The run waits for a person.
    WaitingHuman,
    /// Refused by state, lease, fence or freshness.
    Refused,
    /// Refused by scope or path.
    Scope,
    /// Refused by capability, trust or constrained mode.
    Capability,
    /// Invalid workflow, configuration, contract or patch.
    Invalid,
    /// Store missing, newer, foreign, corrupt, or on an unsuitable file system.
    Store,
    /// Store busy.
    Busy,
    /// git, sandbox, command, disk full.
    Environment,
    /// A fault of this program.
    Bug,
    /// Ended by a signal.
    Interrupted,
    /// A wait ran out of time.
    TimedOut,
}

impl Kind {
    /// The process exit code of the class.
    pub const fn exit(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 2,
            Kind::NeedsOperator => 3,
            Kind::WaitingHuman => 4,
            Kind::Refused => 5,
            Kind::Scope => 6,
            Kind::Capability => 7,
            Kind::Invalid => 8,
            Kind::Store => 9,
            Kind::Busy | Kind::TimedOut => 10,
            Kind::Environment => 11,
            Kind::Bug => 70,
            Kind::Interrupted => 130,
        }
    }
}

macro_rules! catalog {
    ($($(#[doc = $doc:literal])* $variant:ident $word:literal $kind:ident;)*) => {
        /// The closed catalog: a stable word a code, one class a code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $($(#[doc = $doc])* $variant,)* }

        impl Code {
            /// Every code, in the order of the catalog.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable word.
            pub const fn word(self) -> &'static str {
                match self { $(Code::$variant => $word,)* }
            }

            /// The class.
            pub const fn kind(self) -> Kind {
                match self { $(Code::$variant => Kind::$kind,)* }
            }

            /// The code that a word stands for.
            pub fn from_word(word: &str) -> Option<Code> {
                match word { $($word => Some(Code::$variant),)* _ => None }
            }
        }
    };
}

catalog! {
    /// Something that was tried failed.
    Failed "failed" Failed;
    /// A verification failed.
    VerifyFailed "verify_failed" Failed;
    /// Findings of an audit or a check.
    Findings "findings" Failed;
    /// Wrong words.
    Usage "usage" Usage;
    /// Several candidates, none named.
    Ambiguous "ambiguous" Usage;
    /// Another driver holds the run and `--exclusive` was asked for.
    DriverActive "driver_active" Usage;
    /// The named thing does not exist.
    NotFound "not_found" Usage;
    /// The run needs an operator.
    NeedsOperator "needs_operator" NeedsOperator;
    /// The run waits for a person.
    WaitingHuman "waiting_human" WaitingHuman;
    /// The state does not allow it.
    InvalidTransition "invalid_transition" Refused;
    /// The run is not started, stopped or paused.
    NotRunning "not_running" Refused;
    /// Another answer was given before.
    AlreadyAnswered "already_answered" Refused;
    /// The lease is over.
    LeaseEnded "lease_ended" Refused;
    /// The fence has moved on.
    StaleFence "stale_fence" Refused;
    /// The session is closed, lost or expired.
    SessionEnded "session_ended" Refused;
    /// A working author blocks the fresh reviewer.
    FreshRefused "fresh_refused" Refused;
    /// The slot has as many sessions as work.
    SlotCovered "slot_covered" Refused;
    /// A review of one's own work, or by a contaminated process.
    NotIndependent "not_independent" Refused;
    /// A finding that was published before, byte for byte.
    FindingRepeated "finding_repeated" Refused;
    /// The same request key with another request.
    RequestReused "request_reused" Refused;
    /// A request's effect is recorded, its answer is not known.
    RequestUnfinished "request_unfinished" Refused;
    /// What a gate is about has changed since it was shown.
    StaleGate "stale_gate" Refused;
    /// The target of a landing has uncommitted changes in the way.
    TargetDirty "target_dirty" Refused;
    /// The target of a landing moved meanwhile.
    TargetMoved "target_moved" Refused;
    /// The target of a landing and the run changed the same places, or the style does not fit.
    LandConflict "land_conflict" Refused;
    /// Something is still held.
    StillHeld "still_held" Refused;
    /// A path leaves its folder.
    PathTraversal "path_traversal" Scope;
    /// A symbolic link where none may be.
    SymlinkRefused "symlink_refused" Scope;
    /// No `writes` glob covers it.
    PathOutsideScope "path_outside_scope" Scope;
    /// A `forbids` glob covers it.
    PathForbidden "path_forbidden" Scope;
    /// Never in a scope by a glob.
    ProtectedPath "protected_path" Scope;
    /// A submodule.
    SubmoduleRefused "submodule_refused" Scope;
    /// A file mode that git does not keep.
    ModeRefused "mode_refused" Scope;
    /// A file with other names.
    HardLinkRefused "hard_link_refused" Scope;
    /// Differs from another path only by case or by how its letters are put together.
    CaseCollision "case_collision" Scope;
    /// Changed outside the job's tree.
    ForeignWrite "foreign_write" Scope;
    /// What is there is not what the caller meant.
    StaleBase "stale_base" Scope;
    /// The scope is not the one that was frozen.
    WriteScopeDrift "write_scope_drift" Scope;
    /// A change without a work tree of its own.
    WorktreeRequired "worktree_required" Scope;
    /// An artifact that is not a plain file.
    NotARegularFile "not_a_regular_file" Scope;
    /// Larger than allowed.
    TooLarge "too_large" Scope;
    /// A lane may not do this.
    CapabilityDenied "capability_denied" Capability;
    /// Only a person may do this.
    PersonRequired "person_required" Capability;
    /// It leaves the constrained surface, and no escape opens it.
    EscapeRequired "escape_required" Capability;
    /// Commands that nobody has trusted.
    Untrusted "untrusted" Capability;
    /// The token does not belong to the session.
    BadToken "bad_token" Capability;
    /// The workflow is wrong.
    InvalidWorkflow "invalid_workflow" Invalid;
    /// The configuration is wrong.
    InvalidConfig "invalid_config" Invalid;
    /// The patch is wrong.
    InvalidPatch "invalid_patch" Invalid;
    /// The answer is wrong.
    InvalidResult "invalid_result" Invalid;
    /// A tree that this version can't make.
    TreeUnsupported "tree_unsupported" Invalid;
    /// Reserved for a later version.
    NotYet "not_yet" Invalid;
    /// There is no store here.
    NoStore "no_store" Store;
    /// The store was made by a newer version.
    StoreNewer "store_newer" Store;
    /// The file belongs to another program.
    StoreForeign "store_foreign" Store;
    /// The file is damaged.
    StoreCorrupt "store_corrupt" Store;
    /// The file can't be read.
    StoreUnreadable "store_unreadable" Store;
    /// The file was moved, replaced or deleted while in use.
    StoreReplaced "store_replaced" Store;
    /// The folder is a link, another user's, or on a network file system.
    StoreUnsafe "store_unsafe" Store;
    /// Somebody else writes for too long.
    StoreBusy "store_busy" Busy;
    /// A wait ran out of time.
    TimedOut "timed_out" TimedOut;
    /// The disk is full.
    DiskFull "disk_full" Environment;
    /// A command is missing or could not be started.
    CommandMissing "command_missing" Environment;
    /// The operating system refused.
    Io "io" Environment;
    /// The repository has no commit to start from.
    NoCommit "no_commit" Environment;
    /// The repository is in the middle of something.
    RepositoryBusy "repository_busy" Environment;
    /// The kernel can't hold a lane to its folders.
    Sandbox "sandbox" Environment;
    /// git is missing, too old, or failed.
    Git "git" Environment;
    /// A check could not run.
    NotRun "not_run" Environment;
    /// A fault of this program.
    Bug "bug" Bug;
    /// Ended by a signal.
    Interrupted "interrupted" Interrupted;
}

/// What, why, and what to do next.
#[derive(Debug)]
pub struct Error {
    /// The stable code.
    pub code: Code,
    /// A lowercase fragment: what, who, until when.
    pub message: String,
    /// What lies underneath, outermost first.
    pub causes: Vec<String>,
    /// Sentences that help.
    pub hints: Vec<String>,
    /// Literal commands that help, at most three.
    pub next: Vec<Next>,
}

impl From<crate::domain::scope::Violation> for Code {
    /// One word for it everywhere.
    fn from(why: crate::domain::scope::Violation) -> Code {
        use crate::domain::scope::Violation;
        match why {
            Violation::PathOutsideScope => Code::PathOutsideScope,
            Violation::PathForbidden => Code::PathForbidden,
            Violation::PathTraversal => Code::PathTraversal,
            Violation::ProtectedPath => Code::ProtectedPath,
            Violation::SymlinkRefused => Code::SymlinkRefused,
            Violation::SubmoduleRefused => Code::SubmoduleRefused,
            Violation::ModeRefused => Code::ModeRefused,
            Violation::HardLinkRefused => Code::HardLinkRefused,
            Violation::CaseCollision => Code::CaseCollision,
            Violation::ForeignWrite => Code::ForeignWrite,
            Violation::StaleBase => Code::StaleBase,
            Violation::WriteScopeDrift => Code::WriteScopeDrift,
            Violation::WorktreeRequired => Code::WorktreeRequired,
        }
    }
}

impl Error {
    /// An error with nothing but its message.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error { code, message: message.into(), causes: Vec::new(), hints: Vec::new(), next: Vec::new() }
    }

    /// Adds a sentence that helps.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds what lies underneath.
    pub fn cause(mut self, cause: impl std::fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// Adds a literal command that helps.
    pub fn next(mut self, next: Next) -> Self {
        self.next.push(next);
        self
    }

    /// The class.
    pub const fn kind(&self) -> Kind {
        self.code.kind()
    }

    /// The process exit code.
    pub const fn exit(&self) -> u8 {
        self.code.kind().exit()
    }

    /// The JSON form, `striatum.error/1`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "schema": "striatum.error/1",
            "code": self.code.word(),
            "kind": self.kind(),
            "exit": self.exit(),
            "message": self.message,
            "causes": self.causes,
            "hints": self.hints,
            "next": self.next,
        })
    }

    /// Reads the JSON form back, as a client of a session's socket does.
    pub fn from_json(value: &serde_json::Value) -> Self {
        let text = |key: &str| value.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let list =
            |key: &str| value.get(key).and_then(|item| serde_json::from_value(item.clone()).ok()).unwrap_or_default();
        Error {
            code: Code::from_word(&text("code")).unwrap_or(Code::Bug),
            message: text("message"),
            causes: list("causes"),
            hints: list("hints"),
            next: value.get("next").and_then(|item| serde_json::from_value(item.clone()).ok()).unwrap_or_default(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(source: std::io::Error) -> Self {
        if source.kind() == std::io::ErrorKind::StorageFull {
            return Error::new(Code::DiskFull, "the disk is full").cause(source);
        }
        Error::new(Code::Io, source.to_string())
    }
}

impl From<serde_json::Error> for Error {
    fn from(source: serde_json::Error) -> Self {
        Error::new(Code::Bug, "a stored document could not be read").cause(source)
    }
}

impl From<crate::os::Fault> for Error {
    fn from(fault: crate::os::Fault) -> Self {
        if fault.is_disk_full() {
            return Error::new(Code::DiskFull, "the disk is full").cause(&fault).hint("free some space and try again");
        }
        Error::new(Code::Io, fault.to_string()).cause(fault.source)
    }
}

impl From<crate::os::layout::LayoutError> for Error {
    fn from(error: crate::os::layout::LayoutError) -> Self {
        match error {
            crate::os::layout::LayoutError::Fault(fault) => {
                Error::new(Code::StoreUnreadable, format!("the store can't be reached: {fault}")).cause(fault.source)
            }
            crate::os::layout::LayoutError::Network { .. } => Error::new(Code::StoreUnsafe, error.to_string())
                .hint("SQLite's log needs a local disk; name a folder on one with --dir or STRIATUM_DIR"),
            other => Error::new(Code::StoreUnsafe, other.to_string()),
        }
    }
}

impl From<crate::os::lock::LockError> for Error {
    fn from(error: crate::os::lock::LockError) -> Self {
        match error {
            crate::os::lock::LockError::Busy { .. } => Error::new(Code::StoreBusy, format!("the store is {error}"))
                .hint("try again; if it stays so, end the process that is named"),
            crate::os::lock::LockError::Fault(fault) => fault.into(),
        }
    }
}

impl From<crate::os::files::Refusal> for Error {
    fn from(refusal: crate::os::files::Refusal) -> Self {
        use crate::os::files::Refusal;
        let text = refusal.to_string();
        match refusal {
            Refusal::Fault(fault) => fault.into(),
            Refusal::Traversal { .. } => Error::new(Code::PathTraversal, text),
            Refusal::Symlink { .. } => Error::new(Code::SymlinkRefused, text),
            Refusal::Linked { .. } => Error::new(Code::HardLinkRefused, text),
            Refusal::NotRegular { .. } => Error::new(Code::NotARegularFile, text),
            Refusal::TooLarge { .. } => Error::new(Code::TooLarge, text),
            Refusal::Missing { .. } => Error::new(Code::NotFound, text),
        }
    }
}

impl From<crate::os::git::GitError> for Error {
    fn from(error: crate::os::git::GitError) -> Self {
        match error {
            crate::os::git::GitError::Fault(fault) => fault.into(),
            crate::os::git::GitError::Missing => {
                Error::new(Code::Git, "git was not found").hint("install git 2.40 or newer")
            }
            other => Error::new(Code::Git, other.to_string()),
        }
    }
}

impl From<crate::os::process::StartError> for Error {
    fn from(error: crate::os::process::StartError) -> Self {
        match error {
            crate::os::process::StartError::Fault(fault) => fault.into(),
            error @ crate::os::process::StartError::Lost { .. } => Error::new(Code::Io, error.to_string()),
            other => Error::new(Code::CommandMissing, other.to_string()),
        }
    }
}

impl From<crate::os::socket::SocketError> for Error {
    fn from(error: crate::os::socket::SocketError) -> Self {
        match error {
            crate::os::socket::SocketError::Fault(fault) => fault.into(),
            crate::os::socket::SocketError::TooLong => Error::new(Code::TooLarge, error.to_string()),
            other => Error::new(Code::Io, format!("the helper's socket: {other}")),
        }
    }
}

impl From<crate::os::env::EnvError> for Error {
    fn from(error: crate::os::env::EnvError) -> Self {
        Error::new(Code::CommandMissing, error.to_string()).hint("the lane's `env` lists it")
    }
}

impl From<crate::domain::word::Illegal> for Error {
    fn from(illegal: crate::domain::word::Illegal) -> Self {
        Error::new(Code::InvalidTransition, illegal.to_string())
    }
}

impl From<crate::domain::workflow::amend::AmendFault> for Error {
    fn from(fault: crate::domain::workflow::amend::AmendFault) -> Self {
        use crate::domain::workflow::amend::{AmendFault, JOB_KEYS};
        let error = Error::new(Code::Usage, fault.to_string());
        match fault {
            AmendFault::Unknown { hint, .. } | AmendFault::Value { hint, .. } if hint.is_empty() => error,
            AmendFault::Unknown { hint, .. } | AmendFault::Value { hint, .. } => error.hint(hint),
            AmendFault::Fixed { .. } => error
                .hint("scope, edges, commands and verify never change under a run: cancel it and prepare a new one"),
            AmendFault::NeedsJob { .. } => {
                error.hint(format!("`striatum run amend JOB --set ..`; a job's keys are {}", JOB_KEYS.join(", ")))
            }
            AmendFault::NoJob { known, .. } => error.hint(format!("it has {}", known.join(", "))),
        }
    }
}

impl From<crate::store::StoreError> for Error {
    fn from(error: crate::store::StoreError) -> Self {
        use crate::store::StoreError;
        if error.is_busy() {
            return Error::new(Code::StoreBusy, "the store is busy: another program holds it")
                .hint("a backup tool or a database browser may have it open");
        }
        let text = error.to_string();
        match &error {
            StoreError::Missing(_) => Error::new(Code::NoStore, text).next(Next::new(
                "operator",
                "set up a store here",
                &["striatum", "init"],
            )),
            StoreError::Newer { .. } => Error::new(Code::StoreNewer, text).hint("use that version, or a newer one"),
            StoreError::Foreign(_) => Error::new(Code::StoreForeign, text),
            StoreError::Empty(_) => Error::new(Code::StoreCorrupt, text)
                .hint("nothing was changed; bring back a copy of the file, or move it away and start anew"),
            StoreError::Replaced(_) => Error::new(Code::StoreReplaced, text)
                .hint("nothing was written; bring the file back, or start anew with `striatum init`"),
            StoreError::OldSqlite(_) | StoreError::Pool(_) => Error::new(Code::StoreUnreadable, text),
            StoreError::Io(_) => Error::new(Code::StoreUnreadable, text),
            StoreError::Sqlite(_) => sqlite(&error, text),
        }
    }
}

/// Chooses what to say about SQLite's own errors.
fn sqlite(error: &crate::store::StoreError, text: String) -> Error {
    use crate::store::SqliteClass;
    match error.sqlite_class() {
        SqliteClass::Corrupt => Error::new(Code::StoreCorrupt, "the store is damaged").cause(text).next(Next::new(
            "operator",
            "say what is wrong with it",
            &["striatum", "doctor"],
        )),
        SqliteClass::Full => Error::new(Code::DiskFull, "the disk is full; nothing was written").cause(text),
        SqliteClass::Unreadable => Error::new(Code::StoreUnreadable, "the store can't be opened or read").cause(text),
        SqliteClass::ReadOnly => Error::new(Code::StoreUnreadable, "the store can't be written").cause(text),
        SqliteClass::Other => Error::new(Code::Bug, "the store refused a statement").cause(text),
    }
}
