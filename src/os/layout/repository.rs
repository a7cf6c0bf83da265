//! A git repository as it lies on disk, read without git: which directory all its work trees share, and which of
//! them is the main one.
//!
//! Its variables (`GIT_DIR` and its kin) are not looked at: in a hook the working directory tells as much, and
//! elsewhere they lead to somebody else's repository. This file does not know where a store lies.

use std::path::{Path, PathBuf};

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// What all work trees share: objects, branches, configuration.
    pub common_dir: PathBuf,
    /// The main work tree; `None` in a bare repository, or where only a linked one was seen.
    pub work_tree: Option<PathBuf>,
    /// The linked work tree that the search started in, if it did.
    pub linked: Option<LinkedTree>,
}

/// A work tree that `git worktree add` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedTree {
    /// Its top.
    pub top: PathBuf,
    /// Its own git directory, below the common one.
    pub git_dir: PathBuf,
}

/// What an ancestor of the working directory is to git.
pub(super) enum Seen {
    /// Nothing.
    No,
    /// The top of a submodule: the search goes on above it.
    Submodule,
    /// A repository, and whether the place where its store lies is in the work tree or in the git directory.
    Repository(Repository, Home),
}

/// Where a repository's store lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// In the main work tree.
    WorkTree,
    /// In the common directory: bare, separate, or with a work tree set by configuration.
    CommonDir,
}

/// Looks at one folder.
pub(super) fn look(folder: &Path) -> Seen {
    let entry = folder.join(".git");
    match std::fs::symlink_metadata(&entry) {
        Ok(found) if found.is_file() => follow_file(folder, &entry),
        Ok(found) if found.is_dir() => main_tree(folder, entry),
        Ok(_) => std::fs::canonicalize(&entry).map_or(Seen::No, |there| linked_folder(folder, there)),
        Err(_) => inside_git_dir(folder),
    }
}

/// An ordinary `.git` folder.
fn main_tree(folder: &Path, git_dir: PathBuf) -> Seen {
    if !is_git_dir(&git_dir) {
        return Seen::No;
    }
    let configured = Configured::read(&git_dir);
    let (work_tree, home) = match configured {
        Configured { work_tree: Some(tree), .. } => (Some(tree), Home::CommonDir),
        Configured { bare: true, .. } => (None, Home::CommonDir),
        _ => (Some(folder.to_owned()), Home::WorkTree),
    };
    Seen::Repository(Repository { common_dir: git_dir, work_tree, linked: None }, home)
}

/// A `.git` that is a symbolic link to a git directory elsewhere: as if it were separate.
fn linked_folder(folder: &Path, git_dir: PathBuf) -> Seen {
    if !is_git_dir(&git_dir) {
        return Seen::No;
    }
    let tree = Configured::read(&git_dir).work_tree.unwrap_or_else(|| folder.to_owned());
    Seen::Repository(Repository { common_dir: git_dir, work_tree: Some(tree), linked: None }, Home::CommonDir)
}

/// A `.git` file: a linked work tree, a submodule, or a separate git directory.
fn follow_file(folder: &Path, file: &Path) -> Seen {
    let Some(git_dir) = read_pointer(file, "gitdir:", folder) else { return Seen::No };
    match read_pointer(&git_dir.join("commondir"), "", &git_dir) {
        Some(common) => {
            let linked = LinkedTree { top: folder.to_owned(), git_dir };
            of_common_dir(common, Some(linked))
        }
        None if is_submodule(&git_dir) => Seen::Submodule,
        None if is_git_dir(&git_dir) => {
            let tree = Configured::read(&git_dir).work_tree.unwrap_or_else(|| folder.to_owned());
            Seen::Repository(Repository { common_dir: git_dir, work_tree: Some(tree), linked: None }, Home::CommonDir)
        }
        None => Seen::No,
    }
}

/// The folder itself is a git directory: a bare repository, or the inside of `.git`, where some hooks run.
fn inside_git_dir(folder: &Path) -> Seen {
    if !is_git_dir(folder) {
        return Seen::No;
    }
    if is_submodule(folder) {
        return Seen::Submodule;
    }
    match read_pointer(&folder.join("commondir"), "", folder) {
        Some(common) => {
            let top =
                read_pointer(&folder.join("gitdir"), "", folder).and_then(|file| file.parent().map(Path::to_owned));
            let linked = top.map(|top| LinkedTree { top, git_dir: folder.to_owned() });
            of_common_dir(common, linked)
        }
        None => of_common_dir(folder.to_owned(), None),
    }
}

/// What a common directory alone tells: the main work tree is around a directory named `.git`, unless the
/// configuration says otherwise or a store was put inside (a separate directory that happens to have that name).
fn of_common_dir(common_dir: PathBuf, linked: Option<LinkedTree>) -> Seen {
    if !is_git_dir(&common_dir) {
        return Seen::No;
    }
    let configured = Configured::read(&common_dir);
    let around = common_dir.parent().filter(|_| common_dir.file_name().is_some_and(|name| name == ".git"));
    let is_separate =
        configured.work_tree.is_some() || configured.bare || common_dir.join(super::FOLDER_IN_GIT).is_dir();
    let (work_tree, home) = match around {
        Some(tree) if !is_separate => (Some(tree.to_owned()), Home::WorkTree),
        _ => (configured.work_tree, Home::CommonDir),
    };
    Seen::Repository(Repository { common_dir, work_tree, linked }, home)
}

/// As git judges it.
fn is_git_dir(folder: &Path) -> bool {
    // The first look decides for almost every folder that is none.
    std::fs::symlink_metadata(folder.join("HEAD")).is_ok()
        && (folder.join("commondir").is_file() || (folder.join("objects").is_dir() && folder.join("refs").is_dir()))
}

/// A submodule's directory lies below `modules/` in the git directory of what it is part of.
fn is_submodule(git_dir: &Path) -> bool {
    let is_modules = |folder: &&Path| folder.file_name().is_some_and(|name| name == "modules");
    git_dir.ancestors().skip(1).filter(is_modules).any(|folder| folder.parent().is_some_and(is_git_dir))
}

/// A one-line file that names a path, relative to `base`.
fn read_pointer(file: &Path, prefix: &str, base: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = std::fs::read(file).ok()?;
    if !bytes.starts_with(prefix.as_bytes()) {
        return None;
    }
    bytes.drain(..prefix.len());
    let text = bytes.trim_ascii().to_vec();
    let path = PathBuf::from(std::ffi::OsString::from_vec(text));
    std::fs::canonicalize(base.join(path)).ok()
}

/// The two settings that move a work tree.
#[derive(Default)]
struct Configured {
    bare: bool,
    work_tree: Option<PathBuf>,
}

impl Configured {
    /// Reads them from the repository's own file. What is included from elsewhere is not looked at, and neither is
    /// what stands in a worktree's own file.
    fn read(git_dir: &Path) -> Configured {
        let text = std::fs::read_to_string(git_dir.join("config")).unwrap_or_default();
        let mut found = Configured::default();
        let mut in_core = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                in_core = section.trim_start().to_ascii_lowercase().starts_with("core]");
                continue;
            }
            let Some((key, value)) = line.split_once('=').filter(|_| in_core) else { continue };
            let value = value.trim().trim_matches('"');
            match key.trim().to_ascii_lowercase().as_str() {
                "bare" => found.bare = matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1"),
                "worktree" => found.work_tree = std::fs::canonicalize(git_dir.join(value)).ok(),
                _ => {}
            }
        }
        found
    }
}
