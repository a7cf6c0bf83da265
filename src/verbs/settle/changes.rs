//! What an attempt changed: listed from its tree by an index of our own, and judged against the frozen scope.
//!
//! Nothing is put back and nothing is sealed here.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::domain::change::{self, Change, Mode, Refused};
use crate::domain::frozen::{JobSpec, RunSpec, TreeKind};
use crate::domain::scope::{self, Scope, Violation};
use crate::error::{Code, Error, Result};
use crate::os::git::{Git, Unlistable};
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::repo::{self, escaped};
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, tree};

/// An attempt's change, as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The commit that it is against.
    pub base: String,
    /// Everything in the tree, as a tree object; droppings are left out.
    pub tree: String,
    /// What differs.
    pub changes: Vec<Change>,
}

/// What looking came to.
pub enum Look {
    /// There is nothing to seal: the job has no tree of its own.
    Nothing,
    /// In scope.
    Good(Listed),
    /// Out of scope, or outside the tree: a line a path.
    Refused(Vec<String>),
    /// What git obeys has changed, a line each: a person has to look before git is asked anything more.
    Obeyed(Vec<String>),
}

/// Lists and judges what an attempt changed.
pub fn look(ctx: &Ctx, hold: &Hold) -> Result<Look> {
    if hold.job.spec.tree == TreeKind::None {
        return Ok(Look::Nothing);
    }
    let tree = ctx.read(|read| Ok(store::tree::active(read, hold.job.id)?))?;
    let tree = tree.ok_or_else(|| Error::new(Code::Git, format!("the work tree of {} is gone", hold.job.name)))?;
    let folder = tree::folder(ctx, &tree);
    if !tree::is_there(&folder) {
        tree::release::missing(ctx, &tree, &hold.job)?;
        let what = format!("{}: {} is gone", Violation::WorktreeRequired.word(), folder.display());
        return Ok(Look::Refused(vec![what]));
    }
    repo::put_right(ctx, &tree)?;
    let rule = hold.run.spec.tree.foreign_write;
    let around = tree::guard::trespasses(ctx, &tree::repository(ctx)?, &tree, rule)?;
    if around.obeyed {
        // Nothing is listed with settings that may name commands of the agent's.
        return Ok(Look::Obeyed(around.refused));
    }
    tree::guard::tell_of(ctx, hold, &around.told)?;
    let mut refused = around.refused;
    let listed = if tree.kind == TreeKind::Own {
        match list(ctx, hold, &tree)? {
            Ok(listed) => {
                refused.extend(judge(ctx, hold, &tree, &listed)?.iter().map(ToString::to_string));
                Some(listed)
            }
            Err(found) => {
                refused.push(found.to_string());
                None
            }
        }
    } else {
        None
    };
    Ok(match listed {
        _ if !refused.is_empty() => Look::Refused(refused),
        Some(listed) => Look::Good(listed),
        None => Look::Nothing,
    })
}

/// What a tree holds beside its base; an embedded repository can't be listed.
pub fn list(ctx: &Ctx, hold: &Hold, tree: &Tree) -> Result<std::result::Result<Listed, Refused>> {
    list_by(&tree::git(ctx, tree)?, &hold.run.spec, &tree.base)
}

/// The same by an index of the caller's own, which it may change.
fn list_by(git: &Git, run: &RunSpec, base: &str) -> Result<std::result::Result<Listed, Refused>> {
    let held = match taken(git.snapshot())? {
        Ok(held) => held,
        Err(refused) => return Ok(Err(refused)),
    };
    let (droppings, changes) = apart(run, git.changes(base, &held)?)?;
    let held = if droppings.is_empty() { held } else { without(git, base, &droppings)? };
    Ok(Ok(Listed { base: base.to_owned(), tree: held, changes }))
}

/// What differs, without a tree of it: for a look that seals nothing. The index is the caller's own.
pub fn differences(git: &Git, run: &RunSpec, base: &str) -> Result<std::result::Result<Vec<Change>, Refused>> {
    match taken(git.take_all())? {
        Ok(()) => Ok(Ok(apart(run, git.staged(base)?)?.1)),
        Err(refused) => Ok(Err(refused)),
    }
}

/// What could be taken in, or what can't be.
fn taken<T>(took: std::result::Result<T, Unlistable>) -> Result<std::result::Result<T, Refused>> {
    match took {
        Ok(taken) => Ok(Ok(taken)),
        Err(Unlistable::Embedded { path }) => Ok(Err(Refused { path, why: Violation::SubmoduleRefused })),
        Err(Unlistable::Unreadable { path }) => Ok(Err(Refused { path, why: Violation::ModeRefused })),
        Err(Unlistable::Git(error)) => Err(error.into()),
    }
}

/// Droppings, which are not sealed, and everything else.
pub fn apart(run: &RunSpec, changes: Vec<Change>) -> Result<(Vec<Change>, Vec<Change>)> {
    let dropped =
        scope::glob_set(&run.tree.discard).map_err(|error| Error::new(Code::InvalidWorkflow, error.to_string()))?;
    Ok(changes.into_iter().partition(|change| dropped.is_match(&change.path)))
}

/// The tree without its droppings.
fn without(git: &Git, base: &str, droppings: &[Change]) -> Result<String> {
    let paths: Vec<&Path> = droppings.iter().map(|change| change.path.as_path()).collect();
    git.reset_paths(base, &paths)?;
    Ok(git.write_tree()?)
}

/// Every change that is refused.
fn judge(ctx: &Ctx, hold: &Hold, tree: &Tree, listed: &Listed) -> Result<Vec<Refused>> {
    let all = || Ok(tree::git(ctx, tree)?.paths_of(&listed.tree)?);
    let folder = tree::folder(ctx, tree);
    let refused = refused(&hold.job.spec, &folder, &listed.changes, all)?;
    escaped::without(ctx, &hold.job, &folder, refused)
}

/// Every change that a job's scope refuses; `all` tells every path that there would be.
pub fn refused(
    spec: &JobSpec,
    folder: &Path,
    changes: &[Change],
    all: impl FnOnce() -> Result<Vec<PathBuf>>,
) -> Result<Vec<Refused>> {
    let mut refused = change::refused(&scope_of(spec)?, changes);
    if changes.iter().any(|change| change.old == Mode::Absent) {
        refused.extend(change::case_collisions(changes, &all()?));
    }
    let linked = changes.iter().filter(|change| has_other_names(&folder.join(&change.path)));
    refused.extend(linked.map(|change| Refused { path: change.path.clone(), why: Violation::HardLinkRefused }));
    Ok(refused)
}

/// A job's frozen scope.
pub fn scope_of(spec: &JobSpec) -> Result<Scope> {
    Scope::new(&spec.writes, &spec.forbids).map_err(|error| Error::new(Code::InvalidWorkflow, error.to_string()))
}

/// A file that other names reach too: what is written through it reaches them.
pub fn has_other_names(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.nlink() > 1)
}
