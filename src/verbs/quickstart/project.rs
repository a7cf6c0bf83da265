//! The small project: its files, and its repository with one commit and an identity of its own.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{Code, Error, Result};
use crate::os::Fault;
use crate::os::env::is_gits;

/// A file of the project: path, text, whether it can be executed.
type File = (&'static str, &'static str, bool);

/// Everything that is written.
const FILES: &[File] = &[
    ("README.md", include_str!("project/README.md"), false),
    ("bin/note", include_str!("project/bin/note"), true),
    ("bin/list.sh", include_str!("project/bin/list.sh"), true),
    ("bin/find.sh", include_str!("project/bin/find.sh"), true),
    ("lib/dates.sh", include_str!("project/lib/dates.sh"), false),
    ("docs/format.md", include_str!("project/docs/format.md"), false),
    ("CHANGES.md", include_str!("project/CHANGES.md"), false),
    ("tests/all.sh", include_str!("project/tests/all.sh"), true),
    ("tests/list_test.sh", include_str!("project/tests/list_test.sh"), false),
    ("tests/find_test.sh", include_str!("project/tests/find_test.sh"), false),
    (".striatum/config.toml", include_str!("store/config.toml"), false),
    (".striatum/.gitignore", include_str!("store/gitignore"), false),
    (".striatum/workflows/fix.toml", include_str!("store/workflows/fix.toml"), false),
    (".striatum/lanes/author.sh", include_str!("store/lanes/author.sh"), false),
    (".striatum/lanes/tester.sh", include_str!("store/lanes/tester.sh"), false),
    (".striatum/lanes/editor.sh", include_str!("store/lanes/editor.sh"), false),
];

/// Settings of the new repository alone.
const SETTINGS: &[(&str, &str)] = &[
    ("user.name", "striatum quickstart"),
    ("user.email", "quickstart@striatum.invalid"),
    ("commit.gpgSign", "false"),
    ("core.autocrlf", "false"),
    ("core.hooksPath", "/dev/null"),
];

/// A git that works.
pub struct Git {
    program: OsString,
}

/// Makes sure that there is a git, before anything is made.
///
/// # Errors
/// There is none.
pub fn find_git() -> Result<Git> {
    let git = Git { program: "git".into() };
    git.ask(Path::new("/"), &["version"])?;
    Ok(git)
}

/// Writes the project into an empty folder and commits it.
///
/// # Errors
/// What the disk or git says.
pub fn make(git: &Git, folder: &Path) -> Result<()> {
    for file in FILES {
        write(folder, file)?;
    }
    git.ask(folder, &["init", "--quiet", "--template=", "--initial-branch=main", "."])?;
    for (key, value) in SETTINGS {
        git.ask(folder, &["config", "--local", key, value])?;
    }
    git.ask(folder, &["add", "--all", "."])?;
    git.ask(folder, &["commit", "--quiet", "--no-verify", "--message", "Fieldnotes, and a workflow that mends it"])
}

fn write(folder: &Path, (path, text, executable): &File) -> Result<()> {
    let path = folder.join(path);
    let mode = if *executable { 0o755 } else { 0o644 };
    let made = || {
        std::fs::create_dir_all(path.parent().unwrap_or(folder))?;
        OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?.write_all(text.as_bytes())
    };
    Ok(made().map_err(Fault::at("write", &path))?)
}

impl Git {
    /// A git command that sees neither the caller's `GIT_*` nor anybody's settings.
    fn ask(&self, folder: &Path, args: &[&str]) -> Result<()> {
        let mut command = Command::new(&self.program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_gits(name)) {
            command.env_remove(name);
        }
        for (name, value) in [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_SYSTEM", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C"),
        ] {
            command.env(name, value);
        }
        let output = command.args(args).current_dir(folder).stdin(Stdio::null()).output().map_err(missing)?;
        if output.status.success() {
            return Ok(());
        }
        let verb = args.first().copied().unwrap_or_default();
        Err(Error::new(Code::Io, format!("git {verb} failed in {}", folder.display()))
            .cause(String::from_utf8_lossy(&output.stderr).trim()))
    }
}

fn missing(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::new(Code::CommandMissing, "git was not found on the PATH")
            .hint("install git (2.40 or newer) and try again; quickstart makes a small repository with it"),
        _ => Error::new(Code::CommandMissing, "git could not be started").cause(error),
    }
}
