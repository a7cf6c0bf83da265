//! What a work tree holds, as a tree object, and how two trees differ.
//!
//! Everything goes through an index of one's own: what an agent did to the worktree's index changes nothing here.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::{Git, GitError, failed, path, paths};
use crate::domain::change::{Change, Mode};

/// How much of a path differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineCount {
    /// The path.
    pub path: PathBuf,
    /// Lines added and removed; none for a binary file.
    pub lines: Option<(u64, u64)>,
}

/// Why the contents of a work tree can't be listed.
#[derive(Debug, thiserror::Error)]
pub enum Unlistable {
    /// A repository of its own lies in it, and has no commit.
    #[error("{} is a repository of its own", path.display())]
    Embedded {
        /// Where.
        path: PathBuf,
    },
    /// Something that git can't keep, or may not read, stands in a file's place.
    #[error("{} can't be read as a file", path.display())]
    Unreadable {
        /// Where.
        path: PathBuf,
    },
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Git {
    /// Writes what the work tree holds into the index (files that are ignored and not tracked stay out), and from
    /// there a tree object.
    ///
    /// # Errors
    /// git is missing or failed, or another repository or something that is no file lies in the tree.
    pub fn snapshot(&self) -> Result<String, Unlistable> {
        self.take_all()?;
        Ok(self.write_tree()?)
    }

    /// Writes what the work tree holds into the index, files that are ignored and not tracked left out.
    ///
    /// # Errors
    /// As [`Git::snapshot`].
    pub fn take_all(&self) -> Result<(), Unlistable> {
        if let Some(index) = &self.index {
            super::wait_for(index);
        }
        let args = ["-c", "core.safecrlf=false", "add", "--all", "--sparse", "--", ":/"];
        let output = self.run(&args)?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        if let Some(path) = embedded(&said).or_else(|| self.embedded_tree()) {
            return Err(Unlistable::Embedded { path });
        }
        match said.lines().find_map(unreadable) {
            Some(path) => Err(Unlistable::Unreadable { path }),
            None => Err(failed(&["add"], &output).into()),
        }
    }

    /// A tree object of what the index holds.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn write_tree(&self) -> Result<String, GitError> {
        self.ask_line(&["write-tree"])
    }

    /// Puts paths of the index back to what a tree says of them; those that it does not have leave the index.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn reset_paths(&self, treeish: &str, reset: &[&Path]) -> Result<(), GitError> {
        if reset.is_empty() {
            return Ok(());
        }
        let mut list = Vec::new();
        for path in reset {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(0);
        }
        let args =
            ["--literal-pathspecs", "reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul", treeish];
        self.ask_with(&args, &list).map(|_| ())
    }

    /// How two trees or commits differ, path by path; a rename is a removal and an addition.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn changes(&self, from: &str, to: &str) -> Result<Vec<Change>, GitError> {
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none"];
        self.raw(&[&args[..], &[from, to, "--"]].concat())
    }

    /// Raw differences, as a command lists them that was asked for `-z --raw`.
    pub(super) fn raw(&self, args: &[&str]) -> Result<Vec<Change>, GitError> {
        parse(&self.ask(args)?).ok_or_else(|| GitError::Failed {
            verb: args.first().copied().unwrap_or_default().to_owned(),
            said: "its output was not understood".to_owned(),
        })
    }

    /// Every path of a tree or commit.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn paths_of(&self, treeish: &str) -> Result<Vec<PathBuf>, GitError> {
        Ok(paths(&self.ask(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", treeish])?).collect())
    }

    /// The difference of two trees or commits as a patch for readers, of some paths or (none given) of all.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn patch(&self, from: &str, to: &str, only: &[&Path]) -> Result<Vec<u8>, GitError> {
        let args = ["--literal-pathspecs", "diff-tree", "-r", "-p", "--no-renames", "--no-ext-diff", "--no-textconv"];
        let mut args: Vec<std::ffi::OsString> = args.iter().map(Into::into).collect();
        args.extend(["--no-color", "--full-index", "--binary", from, to, "--"].map(Into::into));
        args.extend(only.iter().map(|path| path.as_os_str().to_owned()));
        self.ask(&args)
    }

    /// Lines added and removed, by path.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn line_counts(&self, from: &str, to: &str) -> Result<Vec<LineCount>, GitError> {
        let listed = self.ask(&["diff-tree", "-r", "-z", "--numstat", "--no-renames", from, to, "--"])?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
        Ok(entries.filter_map(counted).collect())
    }

    /// An untracked folder with a repository in it.
    fn embedded_tree(&self) -> Option<PathBuf> {
        let listed = self.ask(&["ls-files", "-z", "--others", "--directory", "--exclude-standard"]).ok()?;
        let top = self.work_tree()?;
        paths(&listed).find(|found| top.join(found).join(".git").symlink_metadata().is_ok())
    }
}

fn counted(entry: &[u8]) -> Option<LineCount> {
    let mut parts = entry.splitn(3, |byte| *byte == b'\t');
    let mut number = || std::str::from_utf8(parts.next()?).ok().map(|text| text.parse::<u64>().ok());
    let (added, removed) = (number()?, number()?);
    Some(LineCount { path: path(parts.next()?), lines: added.zip(removed) })
}

/// The path in git's complaint about what it can't take in as a file.
fn unreadable(line: &str) -> Option<PathBuf> {
    let line = line.trim_start_matches("error: ").trim_start_matches("fatal: ");
    if let Some((path, _)) = line.split_once(": can only add regular files") {
        return Some(PathBuf::from(path));
    }
    let quoted = |rest: &str, quote: char| rest.split_once(quote).map(|(path, _)| PathBuf::from(path));
    if let Some((path, _)) = line.strip_prefix("open(\"").and_then(|rest| rest.split_once("\"): ")) {
        return Some(PathBuf::from(path));
    }
    line.strip_prefix("unable to index file '")
        .or_else(|| line.strip_prefix("adding files failed at '"))
        .and_then(|rest| quoted(rest, '\''))
}

/// The path in git's complaint about a repository without a commit.
fn embedded(said: &str) -> Option<PathBuf> {
    let rest = said.split_once("does not have a commit checked out").map(|(before, _)| before)?;
    let name = rest.split('\'').nth(1)?;
    Some(PathBuf::from(name.trim_end_matches('/')))
}

/// Reads raw differences: `:OLDMODE NEWMODE OLD NEW STATUS NUL PATH NUL`.
fn parse(listed: &[u8]) -> Option<Vec<Change>> {
    let mut parts = listed.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let mut changes = Vec::new();
    while let Some(head) = parts.next() {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let mut words = head.split(' ');
        let (old, new) = (Mode::parse(words.next()?)?, Mode::parse(words.next()?)?);
        changes.push(Change { path: path(parts.next()?), old, new });
    }
    Some(changes)
}
