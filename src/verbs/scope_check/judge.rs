//! The judgements: of everything that a tree holds, of what is staged in it, of paths by their names.
//!
//! All three end in the seal's own judgement. The seal's index is not touched: a copy of it is used and thrown away.

use std::path::{Component, Path, PathBuf};

use super::Here;
use crate::domain::change::Refused;
use crate::domain::frozen::TreeKind;
use crate::domain::scope::{self, Scope, Violation};
use crate::error::{Code, Error, Result};
use crate::os::git::Git;
use crate::verbs::repo::escaped;
use crate::verbs::settle::changes;
use crate::verbs::{Ctx, tree};

/// What a judgement came to.
#[derive(Debug, Default)]
pub struct Judged {
    /// How many changes or paths were looked at.
    pub count: usize,
    /// What is refused, a line a path: `word: path`.
    pub refused: Vec<String>,
}

impl Judged {
    fn of(count: usize, refused: &[Refused]) -> Judged {
        Judged { count, refused: refused.iter().map(ToString::to_string).collect() }
    }
}

/// What the seal would say to the tree as it stands.
pub fn everything(ctx: &Ctx, here: &Here) -> Result<Judged> {
    let around = tree::guard::trespasses(ctx, &tree::repository(ctx)?, &here.tree, here.run.spec.tree.foreign_write)?;
    let mut judged = match here.tree.kind {
        TreeKind::Own if !around.obeyed => contents(ctx, here)?,
        // Nothing in it is sealed.
        _ => Judged::default(),
    };
    judged.refused.splice(0..0, around.refused);
    Ok(judged)
}

fn contents(ctx: &Ctx, here: &Here) -> Result<Judged> {
    let aside = tree::aside(ctx, &here.tree)?;
    let git = &aside.git;
    match changes::differences(git, &here.run.spec, &here.tree.base)? {
        Err(embedded) => Ok(Judged::of(1, &[embedded])),
        Ok(listed) => {
            let refused = changes::refused(&here.job.spec, &here.folder, &listed, || Ok(git.indexed()?))?;
            let refused = escaped::without(ctx, &here.job, &here.folder, refused)?;
            Ok(Judged::of(listed.len(), &refused))
        }
    }
}

/// What an environment says that git has set for a hook: absolute paths.
#[derive(Clone, Debug, Default)]
pub struct Committing {
    /// `GIT_INDEX_FILE`.
    pub index: Option<PathBuf>,
    /// `GIT_DIR`.
    pub git_dir: Option<PathBuf>,
}

impl Committing {
    /// The index that git is about to commit in a tree; none when the environment speaks of another repository.
    fn index_of(&self, git: &Git) -> Option<&Path> {
        let index = self.index.as_deref()?;
        let is_own = |folder: &Path| folder.canonicalize().ok() == git.git_dir().canonicalize().ok();
        let speaks_of_it = self.git_dir.as_deref().is_some_and(is_own) || index.parent().is_some_and(is_own);
        speaks_of_it.then_some(index)
    }
}

/// What the seal would say to what is staged, by the agent's own index or (in a hook) the one that git is about to
/// commit.
pub fn staged(ctx: &Ctx, here: &Here, committing: &Committing) -> Result<Judged> {
    if here.tree.kind != TreeKind::Own {
        return Ok(Judged::default());
    }
    let git = here.git(ctx)?;
    let git = committing.index_of(&git).map(|index| git.with_index(index)).unwrap_or(git);
    let (_, changes) = changes::apart(&here.run.spec, git.staged(&here.tree.base)?)?;
    let refused = changes::refused(&here.job.spec, &here.folder, &changes, || Ok(git.indexed()?))?;
    let refused = escaped::without(ctx, &here.job, &here.folder, refused)?;
    Ok(Judged::of(changes.len(), &refused))
}

/// What the seal would say to changes of these paths, by their names and by what stands there; git is not asked.
pub fn named(here: &Here, folder: &Path, paths: &[PathBuf]) -> Result<Judged> {
    let scope = changes::scope_of(&here.job.spec)?;
    let discard = scope::glob_set(&here.run.spec.tree.discard)
        .map_err(|error| Error::new(Code::InvalidWorkflow, error.to_string()))?;
    let below = below(here, folder);
    let judge = |named: &PathBuf| match placed(&here.folder, &below, named) {
        None => Some(Refused { path: named.clone(), why: Violation::PathTraversal }),
        Some(path) if discard.is_match(&path) => None,
        Some(path) if is_folder(&here.folder, &path) => in_folder(here, &path),
        Some(path) => by_name(&scope, &here.folder, &path).map(|why| Refused { path, why }),
    };
    Ok(Judged::of(paths.len(), &paths.iter().filter_map(judge).collect::<Vec<_>>()))
}

/// Where in the tree the caller stands; at its top when elsewhere.
fn below(here: &Here, folder: &Path) -> PathBuf {
    let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    resolved(folder).strip_prefix(resolved(&here.folder)).map(Path::to_owned).unwrap_or_default()
}

/// A path as it was named, relative to the tree's top; none when it leads out.
fn placed(top: &Path, below: &Path, named: &Path) -> Option<PathBuf> {
    let named = match named.strip_prefix(top) {
        Ok(inside) => inside.to_owned(),
        Err(_) => below.join(named),
    };
    let mut path = PathBuf::new();
    for part in named.components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            Component::ParentDir if path.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

fn is_folder(top: &Path, path: &Path) -> bool {
    top.join(path).symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// A folder stands for what may come into it: refused when the scope takes in nothing there.
fn in_folder(here: &Here, path: &Path) -> Option<Refused> {
    let protected = scope::protected_part(path).map(|_| Violation::ProtectedPath);
    let outside = || (!scope::reaches(&here.job.spec.writes, path)).then_some(Violation::PathOutsideScope);
    let why = stands(&here.folder, path).or(protected).or_else(outside)?;
    Some(Refused { path: path.to_owned(), why })
}

/// The scope's word for a path, else what stands there and would be refused.
fn by_name(scope: &Scope, top: &Path, path: &Path) -> Option<Violation> {
    scope.refuses(path).or_else(|| stands(top, path))
}

fn stands(top: &Path, path: &Path) -> Option<Violation> {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let mut at = top.to_owned();
    for part in path.components() {
        if at != top && at.join(".git").symlink_metadata().is_ok() {
            return Some(Violation::SubmoduleRefused);
        }
        at.push(part);
        if is_link(&at) {
            return Some(Violation::SymlinkRefused);
        }
    }
    changes::has_other_names(&at).then_some(Violation::HardLinkRefused)
}
