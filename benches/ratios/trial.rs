//! A repository in a temporary folder, with a store, seen only through the real binary.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Outcome;
use crate::workload::Shape;

/// The binary under measurement.
pub const STRIATUM: &str = env!("CARGO_BIN_EXE_striatum");

/// Where temporary folders are made: on the file system of the build, which is a disk.
pub fn base() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// A temporary folder on that file system.
pub fn folder() -> Outcome<TempDir> {
    std::fs::create_dir_all(base())?;
    Ok(TempDir::new_in(base())?)
}

/// An environment that is the same for both sides of a comparison.
pub fn cleared(mut command: Command, home: &Path) -> Command {
    command.env_clear().env("HOME", home).env("XDG_STATE_HOME", home.join("state")).current_dir(home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A repository with a store.
pub struct Trial {
    folder: TempDir,
}

impl Trial {
    /// An empty repository whose folder holds an empty configuration.
    pub fn new() -> Outcome<Trial> {
        let trial = Trial { folder: folder()? };
        std::fs::create_dir_all(trial.path().join(".striatum/workflows"))?;
        std::fs::write(trial.path().join(".striatum/config.toml"), "")?;
        let mut git = trial.cleared(Command::new("git"));
        succeed(git.args(["init", "--quiet", "--initial-branch=main"]))?;
        Ok(trial)
    }

    /// A repository with a started run of a shape.
    pub fn started(shape: Shape, parallel: usize) -> Outcome<Trial> {
        Trial::with_workflow(&shape.workflow(parallel, "any"))
    }

    /// A repository with a started run of a workflow, trusted.
    pub fn with_workflow(text: &str) -> Outcome<Trial> {
        let trial = Trial::new()?;
        std::fs::write(trial.path().join(".striatum/workflows/w.toml"), text)?;
        if trial.knows(&["trust"]) {
            succeed(&mut trial.striatum(["trust", "--as-person", "--yes"]))?;
        }
        succeed(&mut trial.striatum(["run", "prepare", "-w", "w"]))?;
        succeed(&mut trial.striatum(["run", "start"]))?;
        Ok(trial)
    }

    /// The work tree.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The database.
    pub fn db(&self) -> PathBuf {
        self.path().join(".striatum/striatum.db")
    }

    /// A call of the binary in this repository.
    pub fn striatum(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = self.cleared(Command::new(STRIATUM));
        command.args(words);
        command
    }

    /// Whether the binary has a verb.
    pub fn knows(&self, verb: &[&str]) -> bool {
        let mut help = self.striatum(verb);
        help.arg("--help").output().is_ok_and(|output| output.status.success())
    }

    /// A command in this repository, in the common environment.
    pub fn cleared(&self, command: Command) -> Command {
        cleared(command, self.path())
    }

    /// Drives the run to its end; milliseconds of the whole process.
    pub fn drive(&self) -> Outcome<f64> {
        let start = Instant::now();
        succeed(&mut self.striatum(["run", "drive"]))?;
        Ok(start.elapsed().as_secs_f64() * 1e3)
    }
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Outcome<Output> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
}

/// Looks until something is there, for at most a minute.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Outcome<Option<T>>) -> Outcome<T> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if let Some(found) = look()? {
            return Ok(found);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(format!("waited a minute for {what}").into())
}
