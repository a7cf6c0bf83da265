//! Asking git: always its own command, with the repository from our records and an environment that can't lead
//! it elsewhere or make it run what the repository names.
//!
//! Nothing here follows a worktree's `.git` file, and nothing here knows what an answer is for.

mod commit;
mod history;
mod land;
mod merge;
mod patch;
mod snapshot;
mod staged;
mod state;
mod worktree;

pub use commit::{Author, NewCommit};
pub use history::Commit;
pub use land::{Checkout, HeldRef, InTheWay};
pub use merge::Merged;
pub use patch::NotApplied;
pub use snapshot::{LineCount, Unlistable};
pub use staged::HooksFolder;
pub use state::{Baseline, Dirt};

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::Fault;
use super::env::is_gits;
use super::layout::{Layout, Repository};

/// Why git gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No git on the PATH.
    #[error("git was not found")]
    Missing,
    /// There is no repository, or no work tree where one is needed.
    #[error("there is no git work tree here")]
    NoTree,
    /// git failed.
    #[error("git {verb} failed: {said}")]
    Failed {
        /// What was asked.
        verb: String,
        /// Its own words, the last line.
        said: String,
    },
    /// The system refused.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// The installed git's version, as it writes it after `git version `.
///
/// # Errors
/// git is missing, or failed.
pub fn version() -> Result<String, GitError> {
    let output = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => GitError::Missing,
        _ => GitError::Fault(Fault::new("run", "git", error)),
    })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.trim().strip_prefix("git version ").and_then(|rest| rest.split(' ').next());
    version
        .map(str::to_owned)
        .ok_or_else(|| GitError::Failed { verb: "--version".to_owned(), said: text.trim().to_owned() })
}

/// Whether a version, as git writes it, has everything that is asked of it here: 2.40 or newer.
pub fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 40)
}

/// How often a command that was killed runs again.
const AGAIN: u32 = 2;

/// How often a lock is looked at before it counts as left behind, and the pause between.
const LOCK_LOOKS: u32 = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// A repository that git is asked about.
#[derive(Clone, Debug)]
pub struct Git {
    git_dir: PathBuf,
    work_tree: Option<PathBuf>,
    index: Option<PathBuf>,
}

impl Git {
    /// The main work tree of a layout's repository; `None` without git.
    pub fn of(layout: &Layout) -> Option<Git> {
        layout.repository().map(Git::of_repository)
    }

    /// The work tree that the search for a layout's repository started in: a linked one, or else the main one.
    pub fn here(layout: &Layout) -> Option<Git> {
        let repository = layout.repository()?;
        let linked = repository.linked.as_ref().map(|linked| Git::of_tree(&linked.git_dir, &linked.top));
        Some(linked.unwrap_or_else(|| Git::of_repository(repository)))
    }

    fn of_repository(repository: &Repository) -> Git {
        Git { git_dir: repository.common_dir.clone(), work_tree: repository.work_tree.clone(), index: None }
    }

    /// Another work tree of a repository, by its own git directory (`<common>/worktrees/<name>`).
    pub fn of_tree(git_dir: &Path, work_tree: &Path) -> Git {
        Git { git_dir: git_dir.to_owned(), work_tree: Some(work_tree.to_owned()), index: None }
    }

    /// The same with an index of one's own, which nobody else writes.
    pub fn with_index(&self, index: &Path) -> Git {
        Git { index: Some(index.to_owned()), ..self.clone() }
    }

    /// The git directory that is asked.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The work tree, if there is one.
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    /// A git command for this repository, without arguments yet: scrubbed, silent, no prompt, no optional lock.
    pub fn command(&self) -> Command {
        let mut command = self.scrubbed();
        let quiet = [
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "core.pager=cat",
            "diff.external=",
            "protocol.ext.allow=never",
            "core.splitIndex=false",
            "core.untrackedCache=false",
            "advice.addEmbeddedRepo=false",
            "i18n.commitEncoding=UTF-8",
            "gc.auto=0",
            "maintenance.auto=false",
        ];
        command.args(quiet.iter().flat_map(|setting| ["-c", setting]));
        command
    }

    /// The output of a command that is asked what the settings say, and so gets none of ours. Only for commands that
    /// run nothing.
    fn obedient(&self, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let output = self.scrubbed().args(args).output().map_err(|error| self.not_started(error))?;
        succeeded(args, output)
    }

    /// A git command for this repository with an environment that leads it nowhere else.
    fn scrubbed(&self) -> Command {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_gits(name)) {
            command.env_remove(name);
        }
        command.env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0").env("GIT_PROTOCOL_FROM_USER", "0");
        command.env("LC_ALL", "C").stdin(Stdio::null());
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        let mut option = OsStr::new("--git-dir=").to_owned();
        option.push(&self.git_dir);
        command.arg(option);
        if let Some(tree) = &self.work_tree {
            let mut option = OsStr::new("--work-tree=").to_owned();
            option.push(tree);
            command.arg(option).current_dir(tree);
        }
        command
    }

    /// Runs a git command to its end and gives its standard output.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn ask<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Vec<u8>, GitError> {
        succeeded(args, self.run(args)?)
    }

    /// The same, one line as text.
    fn ask_line<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.ask(args)?).trim().to_owned())
    }

    /// The same with something to read on standard input.
    fn ask_with<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8]) -> Result<Vec<u8>, GitError> {
        self.ask_named(args, input, &[])
    }

    /// The same with variables that only this command gets.
    fn ask_named<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        input: &[u8],
        named: &[(String, &str)],
    ) -> Result<Vec<u8>, GitError> {
        let mut output = self.feed(args, input, named)?;
        for _ in 0..AGAIN {
            if output.status.signal().is_none() {
                break;
            }
            output = self.feed(args, input, named)?;
        }
        succeeded(args, output)
    }

    fn feed<S: AsRef<OsStr>>(&self, args: &[S], input: &[u8], named: &[(String, &str)]) -> Result<Output, GitError> {
        let mut command = self.command();
        command.envs(named.iter().map(|(name, value)| (name, value)));
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| self.not_started(error))?;
        let fault = |error| GitError::Fault(Fault::new("run", "git", error));
        let mut stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // What git prints may fill its pipe before it has read everything.
            scope.spawn(move || stdin.take().map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        output.map_err(fault)
    }

    /// Runs a command; one that somebody killed runs again, without the lock that it left on an index of one's own.
    fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<Output, GitError> {
        let mut tries = 0;
        loop {
            let output = self.command().args(args).output().map_err(|error| self.not_started(error))?;
            if output.status.signal().is_none() || tries == AGAIN {
                return Ok(output);
            }
            tries += 1;
            if let Some(index) = &self.index {
                let _ = std::fs::remove_file(lock_of(index));
            }
        }
    }

    fn not_started(&self, error: std::io::Error) -> GitError {
        match error.kind() {
            std::io::ErrorKind::NotFound if self.work_tree.as_ref().is_none_or(|tree| tree.is_dir()) => {
                GitError::Missing
            }
            _ => GitError::Fault(Fault::new("run", "git", error)),
        }
    }

    /// The commit that is checked out; `None` before the first one.
    ///
    /// # Errors
    /// git is missing, or the repository can't be read.
    pub fn head(&self) -> Result<Option<String>, GitError> {
        let output = self.run(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        match output.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())),
            Some(1) => Ok(None),
            _ => Err(GitError::Failed {
                verb: "rev-parse".to_owned(),
                said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            }),
        }
    }

    /// How many paths differ from the commit, untracked ones (not ignored) included; submodules count as one.
    ///
    /// # Errors
    /// git is missing or failed, or there is no work tree.
    pub fn dirty_count(&self) -> Result<usize, GitError> {
        self.dirty_among(&[])
    }

    /// The same, without what lies in a folder at the top of the work tree.
    ///
    /// # Errors
    /// As [`Git::dirty_count`].
    pub fn dirty_count_outside(&self, folder: &str) -> Result<usize, GitError> {
        let without = format!(":(top,exclude,literal){folder}");
        self.dirty_among(&["--", ":(top)", &without])
    }

    fn dirty_among(&self, paths: &[&str]) -> Result<usize, GitError> {
        if self.work_tree.is_none() {
            return Err(GitError::NoTree);
        }
        let status =
            ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"];
        let listed = self.ask(&[&status, paths].concat())?;
        Ok(listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).count())
    }
}

/// The output of a command that succeeded.
fn succeeded<S: AsRef<OsStr>>(args: &[S], output: Output) -> Result<Vec<u8>, GitError> {
    if output.status.success() { Ok(output.stdout) } else { Err(failed(args, &output)) }
}

/// The file by which git locks another.
fn lock_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Waits for a lock on a file that is one's own: only a git holds it that is about to end, or one that was killed.
fn wait_for(file: &Path) {
    let lock = lock_of(file);
    for _ in 0..LOCK_LOOKS {
        if lock.symlink_metadata().is_err() {
            return;
        }
        std::thread::sleep(LOCK_PAUSE);
    }
    let _ = std::fs::remove_file(&lock);
}

/// What a failed command said.
fn failed<S: AsRef<OsStr>>(args: &[S], output: &Output) -> GitError {
    let mut said = String::from_utf8_lossy(&output.stderr).trim().lines().last().unwrap_or_default().to_owned();
    if let Some(signal) = output.status.signal().filter(|_| said.is_empty()) {
        said = format!("signal {signal} ended it");
    }
    let verb = args.first().map(|word| word.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
    GitError::Failed { verb, said }
}

/// Paths separated by NUL.
fn paths(listed: &[u8]) -> impl Iterator<Item = PathBuf> + '_ {
    listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(path)
}

/// A path as git writes it with `-z`.
fn path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(OsStr::from_bytes(bytes))
}
