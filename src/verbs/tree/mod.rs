//! Worktrees of jobs: where they lie, making them, carrying work over, and taking them away.
//!
//! A tree has a row before it has a folder. Nothing here follows what stands in a worktree: its git directory and its
//! index come from our own records. What a change may hold is the seal's business.

pub mod carry;
pub mod furnish;
pub mod guard;
pub mod provision;
pub mod release;
pub mod shown;
pub mod trial;

use std::path::{Path, PathBuf};

use crate::domain::frozen::TreeKind;
use crate::error::{Code, Error, Result};
use crate::os::git::{Author, Git};
use crate::os::lock::Lock;
use crate::store;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::tree::Tree;
use crate::verbs::Ctx;

/// How long a verb waits for others to be done with the repository, in milliseconds.
const REPOSITORY_WAIT_MS: u64 = 10 * 60_000;

/// The repository that the store belongs to.
pub fn repository(ctx: &Ctx) -> Result<Git> {
    Git::of(ctx.layout())
        .ok_or_else(|| Error::new(Code::Git, "this store has no git repository").hint("trees and landing need one"))
}

/// The lock on whatever changes the repository: git itself races there.
pub fn lock_repository(ctx: &Ctx) -> Result<Lock> {
    crate::os::files::create_private_dirs(ctx.layout().root(), &ctx.layout().locks())?;
    let path = ctx.layout().repo_lock();
    Lock::exclusive_within(&path, REPOSITORY_WAIT_MS)?.ok_or_else(|| {
        Error::new(Code::Git, "another process has been changing the repository for ten minutes")
            .hint(format!("it holds {}", path.display()))
    })
}

/// The lock on taking trees away: who ends a run, a helper that ends and a driver may all come to it at once.
pub fn lock_removal(ctx: &Ctx) -> Result<Lock> {
    crate::os::files::create_private_dirs(ctx.layout().root(), &ctx.layout().locks())?;
    let path = ctx.layout().locks().join("trees.lock");
    Lock::exclusive_within(&path, REPOSITORY_WAIT_MS)?
        .ok_or_else(|| Error::new(Code::Git, "another process has been taking work trees away for ten minutes"))
}

/// A run's branch, as a full name.
pub fn branch(run: &Run) -> String {
    format!("refs/heads/striatum/{}", run.name)
}

/// The pin of an attempt's commit.
pub fn pin(run: &Run, job: &Job, attempt: u32) -> String {
    format!("refs/striatum/{}/{}/{attempt}", run.name, job.name)
}

/// Who makes the run's own commits.
pub fn author() -> Author {
    Author { name: "striatum".to_owned(), email: "striatum@localhost".to_owned() }
}

/// The folder of a tree.
pub fn folder(ctx: &Ctx, tree: &Tree) -> PathBuf {
    ctx.layout().root().join(&tree.path)
}

/// Whether a tree's folder is where it was made: a link in its place leads to somebody else's files.
pub fn is_there(folder: &Path) -> bool {
    folder.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// The end of the name of a folder for drafts.
pub const DRAFTS: &str = ".drafts";

/// The index that only the seal writes; it lies beside the tree, out of what the agent works in.
pub fn index(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(".index");
    PathBuf::from(name)
}

/// Where changes of a tree are prepared that are put in place by rename: beside it, on the same file system.
pub fn drafts(folder: &Path) -> PathBuf {
    let mut name = folder.as_os_str().to_owned();
    name.push(DRAFTS);
    PathBuf::from(name)
}

/// git for the files of a tree, with the seal's index and the repository's own git directory: what an agent did to the
/// tree's administrative files leads it nowhere.
pub fn git(ctx: &Ctx, tree: &Tree) -> Result<Git> {
    let folder = folder(ctx, tree);
    Ok(Git::of_tree(repository(ctx)?.git_dir(), &folder).with_index(&index(&folder)))
}

/// A copy of the seal's index, for looking without changing what the seal compares with; it goes when dropped.
pub struct Aside {
    /// git with the copy.
    pub git: Git,
    _folder: tempfile::TempDir,
}

/// Looks at a tree by a copy of the seal's index. Where an agent changed what git runs on files, nothing is looked at.
pub fn aside(ctx: &Ctx, tree: &Tree) -> Result<Aside> {
    guard::must_have_its_filters(&repository(ctx)?, tree)?;
    let folder = tempfile::tempdir()?;
    let (kept, copy) = (index(&self::folder(ctx, tree)), folder.path().join("index"));
    if kept.exists() {
        std::fs::copy(&kept, &copy).map_err(|error| crate::os::Fault::new("copy", &kept, error))?;
    }
    Ok(Aside { git: git(ctx, tree)?.with_index(&copy), _folder: folder })
}

/// git as the agent in a tree sees it: with its HEAD and the index that the agent may have written.
pub fn own(repository: &Git, tree: &Tree, folder: &Path) -> Result<Git> {
    Ok(Git::of_tree(&git_dir(repository, tree)?, folder))
}

/// A tree's administrative folder.
pub fn git_dir(repository: &Git, tree: &Tree) -> Result<PathBuf> {
    let name = tree.git_dir.as_ref().ok_or_else(|| Error::new(Code::Bug, "a tree without its git directory"))?;
    Ok(repository.git_dir().join("worktrees").join(name))
}

/// Makes a tree's administrative files what they were, where an agent changed or removed them.
pub fn restore(ctx: &Ctx, repository: &Git, tree: &Tree) -> Result<()> {
    let _lock = lock_repository(ctx)?;
    Ok(repository.restore_worktree(&folder(ctx, tree), &git_dir(repository, tree)?, &tree.base)?)
}

/// Where a job's attempt works: its tree, if it has one.
pub fn place(ctx: &Ctx, job: &Job) -> Result<Option<PathBuf>> {
    if job.spec.tree == TreeKind::None {
        return Ok(None);
    }
    let tree = ctx.read(|read| Ok(store::tree::active(read, job.id)?))?;
    Ok(tree.map(|tree| folder(ctx, &tree)))
}

/// The newest commit of a run; its branch is made if it is not there yet. The caller holds the repository's lock, or
/// can live with a branch that moves on.
pub fn tip(ctx: &Ctx, git: &Git, run: &Run) -> Result<String> {
    let branch = branch(run);
    if let Some(tip) = git.resolve(&branch)? {
        return Ok(tip);
    }
    let run = ctx.read(|read| Ok(store::run::get(read, run.id)?))?;
    let base = run.base.as_deref().ok_or_else(no_base)?;
    if run.tip.as_deref().is_some_and(|tip| tip != base) {
        let message = format!("branch {} is gone", branch.trim_start_matches("refs/heads/"));
        return Err(Error::new(Code::Git, message).hint("its commits are pinned under refs/striatum/; make it anew"));
    }
    match git.move_ref(&branch, None, base) {
        Ok(()) => Ok(base.to_owned()),
        // Somebody else made it meanwhile.
        Err(error) => git.resolve(&branch)?.ok_or_else(|| error.into()),
    }
}

fn no_base() -> Error {
    Error::new(Code::NoCommit, "the run has no commit to start from")
}
