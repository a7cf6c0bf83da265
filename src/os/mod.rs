//! The operating system: processes, files, locks, clock. It does not know the store or any rule.

pub mod clock;
pub mod crash;
pub mod env;
pub mod files;
pub mod git;
pub mod layout;
pub mod lock;
pub mod process;
pub mod sandbox;
pub mod signal;
pub mod socket;
pub mod wait;
pub mod watch;

use std::io;
use std::path::{Path, PathBuf};

/// The operating system refused something that normally works: what was tried, on what, and its word for it.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {}", subject.display())]
pub struct Fault {
    /// A verb with its object: `open`, `lock`, `start`.
    pub action: &'static str,
    /// The file, folder or program.
    pub subject: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl Fault {
    /// A fault of `action` on `subject`.
    pub fn new(action: &'static str, subject: impl AsRef<Path>, source: impl Into<io::Error>) -> Self {
        Fault { action, subject: subject.as_ref().to_owned(), source: source.into() }
    }

    /// For `map_err`: keeps the subject at hand until there is a fault.
    pub(crate) fn at<S: Into<io::Error>>(action: &'static str, subject: &Path) -> impl FnOnce(S) -> Fault {
        move |source| Fault::new(action, subject, source)
    }

    /// Whether the disk is full, which has an exit code of its own.
    pub fn is_disk_full(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
    }
}

/// The name of this machine, for people.
pub fn host_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Columns of the terminal on standard output; none when there is no terminal.
pub fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}

/// The number of this process's user.
pub fn user_id() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The login name of this process's user, for people. It is looked up once: that may open a dozen files.
pub fn user_name() -> &'static str {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| {
        let uid = nix::unistd::geteuid();
        nix::unistd::User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
    })
}
