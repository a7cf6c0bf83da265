//! Finding the store that a command is about: named, or the nearest one above the working directory.
//!
//! A handful of system calls a level, no git. It does not know what is done when there is none.

use std::path::{Path, PathBuf};

use super::super::Fault;
use super::place::{check, check_file_system, has_database};
use super::repository::{Home, Repository, Seen, look};
use super::{CONFIG, FOLDER, FOLDER_IN_GIT, Layout, LayoutError};

/// Where to look.
#[derive(Clone, Copy, Debug)]
pub struct Search<'a> {
    /// `--dir`: the store's folder.
    pub flag: Option<&'a Path>,
    /// `STRIATUM_DIR`: the store's folder.
    pub variable: Option<&'a Path>,
    /// The working directory, absolute, as the system gives it.
    pub cwd: &'a Path,
}

/// What there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A store.
    Store(Layout),
    /// A committed configuration whose store was never made: a fresh clone.
    Config(Layout),
    /// Nothing; the layout is where `init` would put a store. It has a repository exactly if there is git.
    Nothing(Layout),
}

impl Found {
    /// The layout, whatever is there.
    pub fn layout(&self) -> &Layout {
        match self {
            Found::Store(layout) | Found::Config(layout) | Found::Nothing(layout) => layout,
        }
    }

    /// The layout, whatever is there.
    pub fn into_layout(self) -> Layout {
        match self {
            Found::Store(layout) | Found::Config(layout) | Found::Nothing(layout) => layout,
        }
    }
}

/// Finds the store: `--dir`, else `STRIATUM_DIR`, else at each ancestor of the working directory `.git` before
/// `.striatum`.
///
/// # Errors
/// What is there can't be used: see [`LayoutError`].
pub fn discover(search: Search<'_>) -> Result<Found, LayoutError> {
    let named = search.flag.or(search.variable).filter(|path| !path.as_os_str().is_empty());
    match named {
        Some(root) => judge(explicit(&search.cwd.join(root), search.cwd)?),
        None => walk(search.cwd),
    }
}

/// A folder that was named. A linked worktree's committed folder is refused, with the name of the real one.
fn explicit(root: &Path, cwd: &Path) -> Result<Layout, LayoutError> {
    // The last part stays as it is: whether it is a link is looked at later.
    let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else {
        return Err(LayoutError::NotAFolder { path: root.to_owned() });
    };
    let parent = std::fs::canonicalize(parent).map_err(Fault::at("look at", parent))?;
    let root = parent.join(name);
    let seen = parent.ancestors().map(look).find(|seen| matches!(seen, Seen::Repository(..)));
    let Some(Seen::Repository(mut repository, home)) = seen else {
        return Ok(Layout::new(root, parent, None));
    };
    if let Some(linked) = repository.linked.take() {
        if linked.top == parent {
            return Err(LayoutError::LinkedWorktree { path: root, store: root_of(&repository, home) });
        }
        repository.linked = Some(linked);
    }
    if parent == repository.common_dir {
        repository.work_tree = repository.work_tree.or_else(|| work_tree_above(cwd, &parent));
    }
    Ok(layout_of(root, &parent, repository))
}

/// The work tree of a separate git directory is known only from inside it.
fn work_tree_above(cwd: &Path, common_dir: &Path) -> Option<PathBuf> {
    cwd.ancestors().find_map(|folder| match look(folder) {
        Seen::Repository(found, _) if found.common_dir == common_dir => found.work_tree,
        _ => None,
    })
}

fn walk(cwd: &Path) -> Result<Found, LayoutError> {
    let mut fresh: Option<&Path> = None;
    for folder in cwd.ancestors() {
        let seen = look(folder);
        if let Seen::Repository(repository, home) = seen {
            return at_repository(repository, home, fresh);
        }
        let root = folder.join(FOLDER);
        if is_there(&root) {
            if has_database(&root)? {
                return judge(Layout::new(root, folder.to_owned(), above(folder)));
            }
            // A submodule's committed folder is no store, and neither is an empty one.
            if fresh.is_none() && !matches!(seen, Seen::Submodule) && is_there(&root.join(CONFIG)) {
                fresh = Some(folder);
            }
        }
    }
    let folder = fresh.unwrap_or(cwd);
    judge(Layout::new(folder.join(FOLDER), folder.to_owned(), None))
}

/// The walk ends at a repository. A folder below it that was committed without a store counts only if the
/// repository has no store itself, and never in a linked worktree.
fn at_repository(repository: Repository, home: Home, fresh: Option<&Path>) -> Result<Found, LayoutError> {
    let root = root_of(&repository, home);
    let nested = fresh.filter(|_| repository.linked.is_none());
    if let Some(folder) = nested.filter(|_| !has_database(&root).unwrap_or(true)) {
        return judge(Layout::new(folder.join(FOLDER), folder.to_owned(), Some(repository)));
    }
    let project = root.parent().unwrap_or(&root).to_owned();
    judge(layout_of(root, &project, repository))
}

fn above(folder: &Path) -> Option<Repository> {
    folder.ancestors().find_map(|folder| match look(folder) {
        Seen::Repository(repository, _) => Some(repository),
        _ => None,
    })
}

fn root_of(repository: &Repository, home: Home) -> PathBuf {
    match (home, &repository.work_tree) {
        (Home::WorkTree, Some(tree)) => tree.join(FOLDER),
        _ => repository.common_dir.join(FOLDER_IN_GIT),
    }
}

/// A store in the git directory is about the work tree; elsewhere it is about the folder it lies in.
fn layout_of(root: PathBuf, parent: &Path, repository: Repository) -> Layout {
    let project = match &repository.work_tree {
        Some(tree) if parent == repository.common_dir => tree.clone(),
        _ => parent.to_owned(),
    };
    Layout::new(root, project, Some(repository))
}

fn judge(layout: Layout) -> Result<Found, LayoutError> {
    if !is_there(layout.root()) {
        check_file_system(layout.root())?;
        return Ok(Found::Nothing(layout));
    }
    check(layout.root())?;
    if has_database(layout.root())? {
        return Ok(Found::Store(layout));
    }
    Ok(if is_there(&layout.config()) { Found::Config(layout) } else { Found::Nothing(layout) })
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}
