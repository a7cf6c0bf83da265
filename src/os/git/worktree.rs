//! Linked worktrees: made at a commit, found again, and cleared away in whatever state a kill left them.
//!
//! It does not know whose work lies in one; the caller has looked before it asks for a removal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
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
        let args = ["reset", "--hard", "--quiet", "--no-recurse-submodules"];
        if self.ask(&args).is_ok() {
            return Ok(());
        }
        // Nobody but us is at it yet: a lock was left by one that was killed.
        let _ = std::fs::remove_file(self.git_dir.join("index.lock"));
        self.ask(&args).map(|_| ())
    }

    /// Makes the files (and this index, which knew what they were) those of a tree; ignored files stay.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn check_out(&self, tree: &str) -> Result<(), GitError> {
        if let Some(index) = &self.index {
            super::wait_for(index);
        }
        self.ask(&["read-tree", "-u", "--reset", tree]).map(|_| ())
    }

    /// Lets a worktree's detached HEAD and its own index mean a commit; its files stay as they are.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn point_at(&self, commit: &str) -> Result<(), GitError> {
        for name in ["HEAD.lock", "index.lock", "index"] {
            let _ = std::fs::remove_file(self.git_dir.join(name));
        }
        self.ask(&["update-ref", "--no-deref", "HEAD", commit])?;
        // Named, so that the lock of one that is killed goes before it runs again.
        let own = self.with_index(&self.git_dir.join("index"));
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

    /// Where the repository's linked worktrees are, as it knows them, whether they are there or not.
    ///
    /// # Errors
    /// The repository's folder can't be read.
    pub fn worktrees(&self) -> Result<Vec<PathBuf>, GitError> {
        let folder = self.git_dir.join("worktrees");
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Fault::new("read", &folder, error).into()),
        };
        let pointers = entries.flatten().filter_map(|entry| pointed_at(&entry.path()));
        Ok(pointers.filter_map(|pointer| pointer.parent().map(Path::to_owned)).collect())
    }

    /// Makes what leads from a worktree to the repository and back what it was, where somebody changed or removed it;
    /// a HEAD that is gone is made to mean a commit. What stood in the way is moved aside.
    ///
    /// # Errors
    /// Files can't be written.
    pub fn restore_worktree(&self, path: &Path, git_dir: &Path, commit: &str) -> Result<(), GitError> {
        if !git_dir.is_dir() {
            move_aside(git_dir)?;
            std::fs::create_dir_all(git_dir).map_err(|error| Fault::new("create", git_dir, error))?;
        }
        let pointer = path.join(".git");
        if !pointed_at(git_dir).is_some_and(|found| is_same(&found, &pointer)) {
            replace(&git_dir.join("gitdir"), pointer.as_os_str().as_bytes())?;
        }
        let common = git_dir.join("commondir");
        let leads_home = |found: Vec<u8>| {
            let there = git_dir.join(super::path(found.trim_ascii()));
            matches!((there.canonicalize(), self.git_dir.canonicalize()), (Ok(one), Ok(other)) if one == other)
        };
        if !std::fs::read(&common).is_ok_and(leads_home) {
            replace(&common, b"../..")?;
        }
        let head = git_dir.join("HEAD");
        let is_head = |found: Vec<u8>| {
            let found = found.trim_ascii();
            found.starts_with(b"ref: refs/") || (found.len() >= 40 && found.iter().all(u8::is_ascii_hexdigit))
        };
        if !std::fs::read(&head).is_ok_and(is_head) {
            replace(&head, commit.as_bytes())?;
        }
        Ok(restore_pointer(path, git_dir)?)
    }

    /// Takes a worktree out of the repository, with its folder; the caller knows that nothing in it is wanted. What git
    /// can't make sense of any more goes all the same.
    ///
    /// # Errors
    /// The folder can't be removed.
    pub fn remove_worktree(&self, path: &Path, git_dir: &Path) -> Result<(), GitError> {
        if path.symlink_metadata().is_ok() {
            let _ = restore_pointer(path, git_dir);
        }
        let mut args: Vec<&OsStr> = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new).to_vec();
        args.push(path.as_os_str());
        if self.ask(&args).is_ok() {
            return Ok(());
        }
        for folder in [path, git_dir] {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Fault::new("remove", folder, error).into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Clears what a killed [`Git::add_worktree`] may have left at a path in which nobody has worked: its registration
    /// goes, its folder is moved aside. True when something was there.
    ///
    /// # Errors
    /// git is missing, or failed, or the folder can't be moved.
    pub fn clear_half_made(&self, path: &Path) -> Result<bool, GitError> {
        let is_there = path.symlink_metadata().is_ok();
        let registered = self.worktree_dir(path)?;
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if !is_folder || registered.is_none() {
            move_aside(path)?;
        }
        if let Some(git_dir) = &registered {
            self.remove_worktree(path, git_dir)?;
        }
        self.clear_nameless(path)?;
        Ok(is_there || registered.is_some())
    }

    /// Removes administrative folders for a worktree of this name that git was killed in before it wrote where the
    /// worktree is: it locked them, and would keep them for ever.
    fn clear_nameless(&self, path: &Path) -> Result<(), GitError> {
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return Ok(()) };
        let Ok(entries) = std::fs::read_dir(self.git_dir.join("worktrees")) else { return Ok(()) };
        for entry in entries.flatten().map(|entry| entry.path()) {
            let own = entry.file_name().map(|own| own.to_string_lossy().into_owned()).unwrap_or_default();
            let is_ours = own.strip_prefix(&name).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
            let pointer = std::fs::read(entry.join("gitdir")).unwrap_or_default();
            if is_ours && pointer.trim_ascii().is_empty() {
                std::fs::remove_dir_all(&entry).map_err(|error| Fault::new("remove", &entry, error))?;
            }
        }
        Ok(())
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

/// Writes a worktree's `.git` file anew, unless it leads where it should. A folder in its place, which may be a
/// repository with work in it, is moved out of the worktree, beside it.
fn restore_pointer(path: &Path, git_dir: &Path) -> Result<(), Fault> {
    let file = path.join(".git");
    let is_plain = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
    let leads_home = |found: Vec<u8>| {
        let named = found.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii).unwrap_or_default();
        let there = path.join(super::path(named));
        matches!((there.canonicalize(), git_dir.canonicalize()), (Ok(one), Ok(other)) if one == other)
    };
    if is_plain && std::fs::read(&file).is_ok_and(leads_home) {
        return Ok(());
    }
    match std::fs::symlink_metadata(&file) {
        Ok(found) if found.is_dir() => {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".git");
            let beside = PathBuf::from(beside);
            move_aside(&beside)?;
            std::fs::rename(&file, &beside).map_err(|error| Fault::new("move", &file, error))?;
        }
        Ok(_) => std::fs::remove_file(&file).map_err(|error| Fault::new("remove", &file, error))?,
        Err(_) => {}
    }
    replace(&file, &[b"gitdir: ", git_dir.as_os_str().as_bytes()].concat())
}

/// Writes one of git's one-line files.
fn replace(file: &Path, line: &[u8]) -> Result<(), Fault> {
    std::fs::write(file, [line, b"\n"].concat()).map_err(|error| Fault::new("write", file, error))
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
