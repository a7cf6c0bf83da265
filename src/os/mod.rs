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
        let uid = nix::unistd::geteuid().as_raw();
        let listed = std::fs::read_to_string("/etc/passwd").ok().and_then(|text| listed(&text, uid));
        listed.or_else(directory_name).unwrap_or_else(|| uid.to_string())
    })
}

/// The name of a user in the text of a `passwd` file.
fn listed(text: &str, uid: u32) -> Option<String> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The user's name as the directory of the machine tells it, asked by a process: what the C library would load for it
/// does not fit into a program that has the C library inside.
fn directory_name() -> Option<String> {
    let answer = std::process::Command::new("id").arg("-un").stdin(std::process::Stdio::null()).output().ok()?;
    let name = String::from_utf8(answer.stdout).ok()?.trim().to_owned();
    (answer.status.success() && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn a_user_is_found_by_number_and_by_nothing_else() {
        let text = "# users\nroot:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:0:/home/ann:/bin/sh\n+::::::\n:x:7::::\n";
        assert_eq!(listed(text, 0).as_deref(), Some("root"));
        assert_eq!(listed(text, 1000).as_deref(), Some("ann"));
        assert_eq!(listed(text, 7), None);
        assert_eq!(listed(text, 1), None);
    }
}
