//! Landing: a person's own commit, a branch that is moved while its checkouts follow.
//!
//! It decides nothing: whether a checkout may follow, and what is landed, is the caller's.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};

use super::{Git, GitError, failed, path};
use crate::domain::change::{Change, Mode};
use crate::os::Fault;

/// A work tree of the user's that has a branch checked out.
#[derive(Clone, Debug)]
pub struct Checkout {
    /// Its folder.
    pub path: PathBuf,
    git: Git,
}

/// Why a checkout can't follow its branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InTheWay {
    /// Tracked paths that are staged or modified.
    Changed(Vec<PathBuf>),
    /// Files that nobody tracks, where the landing would write.
    Untracked(Vec<PathBuf>),
    /// git says so.
    Other(String),
}

impl Git {
    /// The work trees of the user's in which a branch (a full name) is checked out.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn checkouts(&self, branch: &str) -> Result<Vec<Checkout>, GitError> {
        let mut found = Vec::new();
        if let Some(tree) = &self.work_tree
            && self.branch()?.as_deref() == Some(branch)
        {
            found.push(Checkout { path: tree.clone(), git: self.clone() });
        }
        let listed = self.ask(&["worktree", "list", "--porcelain", "-z"])?;
        let mut folder = None;
        for line in listed.split(|byte| *byte == 0) {
            if let Some(name) = line.strip_prefix(b"worktree ") {
                folder = Some(path(name));
            } else if line.strip_prefix(b"branch ") == Some(branch.as_bytes())
                && let Some(folder) = folder.take().filter(|folder| folder.is_dir())
                && let Some(git_dir) = self.worktree_dir(&folder)?
            {
                found.push(Checkout { git: Git::of_tree(&git_dir, &folder), path: folder });
            }
        }
        Ok(found)
    }

    /// Whether a name is a branch that stands for another one.
    ///
    /// # Errors
    /// git is missing.
    pub fn is_symbolic(&self, name: &str) -> Result<bool, GitError> {
        Ok(self.run(&["symbolic-ref", "--quiet", name])?.status.success())
    }

    /// Whether a text can name a branch.
    ///
    /// # Errors
    /// git is missing.
    pub fn may_be_branch(&self, name: &str) -> Result<bool, GitError> {
        Ok(self.run(&["check-ref-format", &format!("refs/heads/{name}")])?.status.success() && !name.starts_with('-'))
    }

    /// The commits between two, newest first, each with its first line.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn subjects(&self, from: &str, to: &str, limit: u32) -> Result<Vec<(String, String)>, GitError> {
        let (range, count) = (format!("{from}..{to}"), format!("--max-count={limit}"));
        let args = ["log", "--no-decorate", "--no-show-signature", "--format=%H %s", &count, &range, "--"];
        let listed = String::from_utf8_lossy(&self.ask(&args)?).into_owned();
        let lines = listed.lines().filter_map(|line| line.split_once(' '));
        Ok(lines.map(|(commit, subject)| (commit.to_owned(), subject.to_owned())).collect())
    }

    /// Makes a commit in the name of whoever uses this repository, signed if their configuration says so.
    ///
    /// # Errors
    /// git is missing or failed; they have no name, or their signature can't be made.
    pub fn commit_as_user(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, GitError> {
        self.ask(&["var", "GIT_AUTHOR_IDENT"])?;
        let signs = self.run(&["config", "--type=bool", "--get", "commit.gpgSign"])?;
        let signs = signs.status.success() && signs.stdout.trim_ascii() == b"true";
        let mut args = vec!["commit-tree", if signs { "-S" } else { "--no-gpg-sign" }, tree, "-F", "-"];
        args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        let said = self.ask_with(&args, message.as_bytes())?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// Takes a reference that is where the caller saw it: nobody moves it until it is moved or let go.
    ///
    /// # Errors
    /// git is missing, or somebody else moved or holds it.
    pub fn hold_ref(&self, name: &str, from: &str, to: &str) -> Result<HeldRef, GitError> {
        let mut command = self.command();
        command.args(["update-ref", "--no-deref", "-m", "striatum: land", "--stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn().map_err(|error| self.not_started(error))?;
        let answers = child.stdout.take().map(BufReader::new);
        let mut held = HeldRef { child, answers };
        held.say(&format!("start\nupdate {name} {to} {from}\nprepare\n"), &["start: ok", "prepare: ok"])?;
        Ok(held)
    }

    /// Tracked paths of a work tree that are not as its index says.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn modified(&self) -> Result<Vec<PathBuf>, GitError> {
        let args = ["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"];
        Ok(super::paths(&self.ask(&args)?).collect())
    }

    fn status(&self, only: &[&str]) -> Result<Vec<PathBuf>, GitError> {
        let status =
            ["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames", "--ignore-submodules=dirty"];
        let listed = self.ask(&[&status, only].concat())?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Ok(entries.map(|entry| path(entry.get(3..).unwrap_or_default())).collect())
    }
}

/// A reference that is held where it was seen; dropped, it stays there.
pub struct HeldRef {
    child: Child,
    answers: Option<BufReader<ChildStdout>>,
}

impl HeldRef {
    /// Moves it.
    ///
    /// # Errors
    /// git failed.
    pub fn move_it(mut self) -> Result<(), GitError> {
        self.say("commit\n", &["commit: ok"])?;
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        Ok(())
    }

    fn say(&mut self, words: &str, wanted: &[&str]) -> Result<(), GitError> {
        let fault = |error| GitError::Fault(Fault::new("ask", "git update-ref", error));
        let written = self.child.stdin.as_mut().map(|stdin| stdin.write_all(words.as_bytes()));
        let mut line = String::new();
        for wanted in wanted {
            line.clear();
            if let Some(answers) = self.answers.as_mut() {
                answers.read_line(&mut line).map_err(fault)?;
            }
            if line.trim() != *wanted || matches!(written, Some(Err(_))) {
                return Err(self.refused());
            }
        }
        Ok(())
    }

    /// What git said before it gave up.
    fn refused(&mut self) -> GitError {
        drop(self.child.stdin.take());
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
        }
        let _ = self.child.wait();
        let said = said.lines().last().unwrap_or("it gave up").trim().to_owned();
        GitError::Failed { verb: "update-ref".to_owned(), said }
    }
}

impl Drop for HeldRef {
    fn drop(&mut self) {
        // Without its commit the transaction is rolled back when its input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Checkout {
    /// What it is in the middle of.
    pub fn in_progress(&self) -> Option<&'static str> {
        self.git.in_progress()
    }

    /// Whether its index holds exactly a tree or commit, a folder at its top left out.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn holds(&self, treeish: &str, without: &str) -> Result<bool, GitError> {
        let exclude = format!(":(top,exclude,literal){without}");
        let all = ["diff-index", "--cached", "--quiet", "--ignore-submodules=none", treeish, "--", ":(top)"];
        let args = [&all[..], &[&exclude]].concat();
        let output = self.git.run(&args)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(failed(&args, &output)),
        }
    }

    /// What keeps it from going from one tree to another; `without` is a folder at its top that is nobody's business.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn in_the_way(&self, from: &str, to: &str, without: &str) -> Result<Option<InTheWay>, GitError> {
        self.in_the_way_but(from, to, without, &[])
    }

    /// The same, where a step that was cut off has already brought some paths to where they go.
    ///
    /// # Errors
    /// As [`Checkout::in_the_way`].
    pub fn in_the_way_but(
        &self,
        from: &str,
        to: &str,
        without: &str,
        brought: &[PathBuf],
    ) -> Result<Option<InTheWay>, GitError> {
        let exclude = format!(":(top,exclude,literal){without}");
        let mut changed = self.git.status(&["--", ":(top)", &exclude])?;
        changed.retain(|path| !brought.contains(path));
        if !changed.is_empty() {
            return Ok(Some(InTheWay::Changed(changed)));
        }
        let added = self.git.changes(from, to)?.into_iter().filter(|change| {
            let there = self.path.join(&change.path).symlink_metadata();
            let is_ours = brought.contains(&change.path);
            change.old == Mode::Absent && !is_ours && there.is_ok_and(|found| !found.is_dir())
        });
        let untracked: Vec<PathBuf> = added.map(|change| change.path).collect();
        if !untracked.is_empty() {
            return Ok(Some(InTheWay::Untracked(untracked)));
        }
        let tried = self.read_tree(&["--dry-run"], from, to)?;
        Ok(tried.map(InTheWay::Other))
    }

    /// Takes paths that already are what another tree has there into the index: a step that wrote them was cut off.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn take_in(&self, from: &str, to: &str) -> Result<Vec<PathBuf>, GitError> {
        let fault = |error| GitError::Fault(Fault::new("make", std::env::temp_dir(), error));
        let aside = tempfile::tempdir().map_err(fault)?;
        let wanted = self.git.with_index(&aside.path().join("index"));
        wanted.ask(&["read-tree", to])?;
        let unlike: BTreeSet<PathBuf> = wanted.modified()?.into_iter().collect();
        let is_there = |change: &Change| match change.new {
            Mode::Absent => self.path.join(&change.path).symlink_metadata().is_err(),
            _ => !unlike.contains(&change.path),
        };
        let brought = self.git.changes(from, to)?.into_iter().filter(is_there);
        let brought: Vec<PathBuf> = brought.map(|change| change.path).collect();
        let mut list = Vec::new();
        for path in &brought {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(0);
        }
        self.git.ask_with(&["update-index", "--add", "--remove", "--replace", "-z", "--stdin"], &list)?;
        Ok(brought)
    }

    /// Undoes [`Checkout::take_in`]; files stay as they are.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn put_back(&self, from: &str, brought: &[PathBuf]) -> Result<(), GitError> {
        let paths: Vec<&Path> = brought.iter().map(PathBuf::as_path).collect();
        self.git.reset_paths(from, &paths)
    }

    /// Makes index and files those of another commit.
    ///
    /// # Errors
    /// git is missing, or failed; something came in the way meanwhile.
    pub fn follow(&self, from: &str, to: &str) -> Result<(), GitError> {
        match self.read_tree(&[], from, to)? {
            None => Ok(()),
            Some(said) => Err(GitError::Failed { verb: "read-tree".to_owned(), said }),
        }
    }

    /// What git says against it; none when it went well.
    fn read_tree(&self, options: &[&str], from: &str, to: &str) -> Result<Option<String>, GitError> {
        // Files whose times alone differ are no changes, and read-tree looks at times.
        let _ = self.git.run(&["update-index", "-q", "--refresh"])?;
        let args = [&["read-tree", "-m", "-u", "--no-recurse-submodules"], options, &[from, to]].concat();
        // Ctrl-C in the terminal would end it in the middle of the user's files.
        let mut command = self.git.command();
        let output = command.process_group(0).args(&args).output().map_err(|error| self.git.not_started(error))?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Ok(Some(said.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")))
    }

    /// Its folder, for people.
    pub fn folder(&self) -> &Path {
        &self.path
    }
}
