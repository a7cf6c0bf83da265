//! Linked worktrees: made at a commit, found again, and cleared away in whatever state a kill left them.
//!
//! It does not know whose work lies in one; the caller has looked before it asks for a removal.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Git, GitError};
use crate::os::Fault;

impl Git {
    /// Makes a detached worktree at a commit, still without files; returns its own git directory.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn add_worktree(&self, path: &Path, commit: &str) -> Result<PathBuf, GitError> {
        let mut args: Vec<&OsStr> =
            ["worktree", "add", "--quiet", "--detach", "--no-checkout", "--force", "--"].map(OsStr::new).to_vec();
        args.extend([path.as_os_str(), commit.as_ref()]);
        self.ask(&args)?;
        self.worktree_dir(path)?.ok_or_else(|| GitError::Failed {
            verb: "worktree".to_owned(),
            said: "it made a worktree and does not know it".to_owned(),
        })
    }

    /// Fills a new worktree with the files of its commit.
    ///
    /// # Errors
    /// git is missing or failed, a filter's command among it.
    pub fn fill(&self) -> Result<(), GitError> {
        self.ask(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).map(|_| ())
    }

    /// Makes the files (and this index, which knew what they were) those of a tree; ignored files stay.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn check_out(&self, tree: &str) -> Result<(), GitError> {
        self.ask(&["read-tree", "-u", "--reset", tree]).map(|_| ())
    }

    /// Lets a worktree's detached HEAD and its own index mean a commit; its files stay as they are.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn point_at(&self, commit: &str) -> Result<(), GitError> {
        self.ask(&["update-ref", "--no-deref", "HEAD", commit])?;
        let own = Git { index: None, ..self.clone() };
        for name in ["index.lock", "index"] {
            let _ = std::fs::remove_file(self.git_dir.join(name));
        }
        own.ask(&["read-tree", commit])?;
        // Only speeds up what the agent asks git; a failure changes nothing.
        let _ = own.run(&["update-index", "-q", "--refresh"])?;
        Ok(())
    }

    /// The git directory of the worktree at a path, as the repository knows it; the worktree's own files are not read.
    ///
    /// # Errors
    /// The repository's folder can't be read.
    pub fn worktree_dir(&self, path: &Path) -> Result<Option<PathBuf>, GitError> {
        let folder = self.git_dir.join("worktrees");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Fault::new("read", &folder, error).into()),
        };
        let wanted = path.join(".git");
        for entry in entries.flatten() {
            if pointed_at(&entry.path()).is_some_and(|pointer| pointer == wanted || is_same(&pointer, &wanted)) {
                return Ok(Some(entry.path()));
            }
        }
        Ok(None)
    }

    /// Takes a worktree out of the repository, with its folder; the caller knows that nothing in it is wanted. The
    /// worktree's pointer is made anew first: an agent may have changed it.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn remove_worktree(&self, path: &Path, git_dir: &Path) -> Result<(), GitError> {
        if path.symlink_metadata().is_ok() {
            restore_pointer(path, git_dir)?;
        }
        self.unregister(path)
    }

    /// Lets git forget the worktree at a path; a folder there goes with it.
    fn unregister(&self, path: &Path) -> Result<(), GitError> {
        let mut args: Vec<&OsStr> = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new).to_vec();
        args.push(path.as_os_str());
        self.ask(&args).map(|_| ())
    }

    /// Clears what a killed [`Git::add_worktree`] may have left at a path in which nobody has worked: its registration
    /// goes, its folder is moved aside. True when something was there.
    ///
    /// # Errors
    /// git is missing, or failed, or the folder can't be moved.
    pub fn clear_half_made(&self, path: &Path) -> Result<bool, GitError> {
        let is_there = path.symlink_metadata().is_ok();
        let registered = self.worktree_dir(path)?;
        match &registered {
            Some(git_dir) if is_there && path.is_dir() => self.remove_worktree(path, git_dir)?,
            Some(_) => {
                move_aside(path)?;
                self.unregister(path)?;
            }
            None => move_aside(path)?,
        }
        Ok(is_there || registered.is_some())
    }
}

/// Where an administrative folder says its worktree is.
fn pointed_at(git_dir: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(git_dir.join("gitdir")).ok()?;
    let pointer = super::path(bytes.trim_ascii());
    Some(if pointer.is_absolute() { pointer } else { git_dir.join(pointer) })
}

/// Whether two paths of a `.git` file mean the same place, whatever links lead there.
fn is_same(one: &Path, other: &Path) -> bool {
    let folder = |path: &Path| path.parent().and_then(|parent| std::fs::canonicalize(parent).ok());
    matches!((folder(one), folder(other)), (Some(one), Some(other)) if one == other)
}

/// Writes a worktree's `.git` file anew.
fn restore_pointer(path: &Path, git_dir: &Path) -> Result<(), Fault> {
    use std::os::unix::ffi::OsStrExt;
    let file = path.join(".git");
    let mut wanted = b"gitdir: ".to_vec();
    wanted.extend_from_slice(git_dir.as_os_str().as_bytes());
    wanted.push(b'\n');
    let is_plain = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
    if is_plain && std::fs::read(&file).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    move_aside(&file)?;
    std::fs::write(&file, wanted).map_err(|error| Fault::new("write", &file, error))
}

/// Moves what stands at a path to a free name beside it.
fn move_aside(path: &Path) -> Result<(), Fault> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut number = 1;
    loop {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".left-{number}"));
        let aside = PathBuf::from(name);
        if aside.symlink_metadata().is_err() {
            return std::fs::rename(path, &aside).map_err(|error| Fault::new("move", path, error));
        }
        number += 1;
    }
}
