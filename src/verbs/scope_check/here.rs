//! Which work tree a folder lies in, and whose it is: the job, the run, the scope that it was given.
//!
//! It matches folders with our own records and follows nothing that stands in a tree.

use std::path::{Path, PathBuf};

use crate::domain::session::TreeState;
use crate::error::Result;
use crate::os::git::Git;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::tree::Tree;
use crate::store::{self, Connection};
use crate::verbs::{Ctx, tree};

/// A work tree in use.
pub struct Here {
    /// Its row.
    pub tree: Tree,
    /// Whose.
    pub job: Job,
    /// In which run.
    pub run: Run,
    /// Where it lies.
    pub folder: PathBuf,
}

impl Here {
    /// git for the tree, with the index that the agent uses.
    pub fn git(&self, ctx: &Ctx) -> Result<Git> {
        tree::own(&tree::repository(ctx)?, &self.tree, &self.folder)
    }

    /// `job draft of run notes-3 (attempt 2)`.
    pub fn named(&self) -> String {
        format!("job {} of run {} (attempt {})", self.job.name, self.run.name, self.tree.attempt)
    }
}

/// The tree in which a folder lies.
pub fn of_folder(ctx: &Ctx, read: &Connection, folder: &Path) -> Result<Option<Here>> {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let wanted = resolved(folder);
    among(ctx, read, |tree| wanted.starts_with(resolved(&tree::folder(ctx, tree))))
}

/// The tree with this git directory, by its name below the repository's `worktrees/`.
pub fn of_git_dir(ctx: &Ctx, read: &Connection, name: &str) -> Result<Option<Here>> {
    among(ctx, read, |tree| tree.git_dir.as_deref() == Some(name))
}

/// A job's tree.
pub fn of_job(ctx: &Ctx, read: &Connection, job: &Job) -> Result<Option<Here>> {
    among(ctx, read, |tree| tree.job == job.id)
}

fn among(ctx: &Ctx, read: &Connection, is_meant: impl Fn(&Tree) -> bool) -> Result<Option<Here>> {
    let live = store::tree::live(read)?;
    let found = live.into_iter().find(|tree| tree.state == TreeState::Active && is_meant(tree));
    let Some(tree) = found else { return Ok(None) };
    let (job, run) = (store::job::get(read, tree.job)?, store::run::get(read, tree.run)?);
    Ok(Some(Here { folder: tree::folder(ctx, &tree), tree, job, run }))
}
