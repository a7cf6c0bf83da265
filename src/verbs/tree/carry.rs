//! Carrying work over: the next attempt goes on in the same tree, on top of what others have integrated meanwhile.
//!
//! What the files will become is recorded before the first of them changes, so that a cut in between is finished and
//! never begun again on half of it.

use std::path::Path;

use crate::error::{Code, Error, Result};
use crate::os::git::{Git, Merged, NewCommit, Unlistable};
use crate::store;
use crate::store::job::Job;
use crate::store::tree::{Carried, Tree};
use crate::verbs::Ctx;
use crate::verbs::work::hold::Hold;

/// Most of a file that is looked through for marks of a conflict, in bytes.
const LOOKED_THROUGH: u64 = 16 * 1024 * 1024;

/// Brings a tree up to the run's tip, with everything that is in it; the paths where both changed the same place.
pub fn over(ctx: &Ctx, git: &Git, hold: &Hold, tree: &Tree) -> Result<Vec<String>> {
    super::restore(ctx, git, tree)?;
    let mut tree = tree.clone();
    if let Some(cut_off) = tree.carried.clone().filter(|carried| carried.tip != tree.base) {
        tree.base = put(ctx, git, hold, &tree, &cut_off)?;
    }
    let tip = super::tip(ctx, git, &hold.run)?;
    if tip == tree.base {
        keep(ctx, hold, &tree, &tip)?;
        return Ok(unresolved(ctx, &tree));
    }
    let own = super::git(ctx, &tree)?;
    let held = match own.snapshot() {
        Ok(held) => held,
        Err(Unlistable::Git(error)) => return Err(error.into()),
        // The seal will name it; the work stays as it is.
        Err(_) => {
            keep(ctx, hold, &tree, &tree.base)?;
            return Ok(unresolved(ctx, &tree));
        }
    };
    let before = unresolved(ctx, &tree);
    let mut carried = rebased(&own, &tree, &held, &tip)?;
    carried.conflicts.extend(before);
    carried.conflicts.sort();
    carried.conflicts.dedup();
    ctx.write("tree carry", |tx| Ok(store::tree::carry(tx, tree.id, &carried)?))?;
    crate::os::crash::point("tree.carrying");
    put(ctx, git, hold, &tree, &carried)?;
    Ok(carried.conflicts)
}

/// Paths of an earlier conflict that still carry its marks.
pub fn unresolved(ctx: &Ctx, tree: &Tree) -> Vec<String> {
    let folder = super::folder(ctx, tree);
    let conflicts = tree.carried.as_ref().map(|carried| carried.conflicts.clone()).unwrap_or_default();
    conflicts.into_iter().filter(|path| is_marked(&folder, path)).collect()
}

/// The same for a job's active tree.
pub fn left_unresolved(ctx: &Ctx, job: &Job) -> Result<Vec<String>> {
    let tree = ctx.read(|read| Ok(store::tree::active(read, job.id)?))?;
    Ok(tree.map(|tree| unresolved(ctx, &tree)).unwrap_or_default())
}

fn is_marked(folder: &Path, path: &str) -> bool {
    let Ok(mut opened) = crate::os::files::open_inside(folder, Path::new(path), LOOKED_THROUGH) else { return false };
    let mut bytes = Vec::new();
    if std::io::Read::read_to_end(&mut opened.file, &mut bytes).is_err() {
        return false;
    }
    bytes.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"<<<<<<< "))
}

fn keep(ctx: &Ctx, hold: &Hold, tree: &Tree, base: &str) -> Result<()> {
    ctx.write("tree", |tx| Ok(store::tree::take_over(tx, tree.id, hold.lease.attempt, base)?))
}

/// What the tree holds, on top of the tip.
fn rebased(own: &Git, tree: &Tree, held: &str, tip: &str) -> Result<Carried> {
    let author = super::author();
    let carried = NewCommit { tree: held, parents: &[&tree.base], message: "carried over", author: &author, at: 0 };
    let carried = own.commit(&carried)?;
    let (merged, conflicts) = match own.merge(tip, &carried)? {
        Merged::Clean { tree } => (tree, Vec::new()),
        Merged::Conflict { tree, paths } => (tree, paths),
    };
    let conflicts = conflicts.iter().map(|path| path.display().to_string()).collect();
    Ok(Carried { tip: tip.to_owned(), tree: merged, conflicts })
}

/// Commits that an agent made itself stay reachable when its HEAD moves on; what they hold is in the files as well.
fn pin_own(git: &Git, hold: &Hold, tree: &Tree, head: Option<String>) -> Result<()> {
    let Some(head) = head else { return Ok(()) };
    if git.is_ancestor(&head, &tree.base)? || git.is_ancestor(&head, &super::branch(&hold.run))? {
        return Ok(());
    }
    let pin = format!("{}-own", super::pin(&hold.run, &hold.job, tree.attempt));
    Ok(git.move_ref(&pin, git.resolve(&pin)?.as_deref(), &head)?)
}

/// Makes the tree what was recorded; doing it again changes nothing more.
fn put(ctx: &Ctx, git: &Git, hold: &Hold, tree: &Tree, carried: &Carried) -> Result<String> {
    super::git(ctx, tree)?
        .check_out(&carried.tree)
        .map_err(|error| Error::new(Code::Git, "the work of the attempt before can't be carried over").cause(error))?;
    let own = super::own(git, tree, &super::folder(ctx, tree))?;
    pin_own(git, hold, tree, own.head().unwrap_or_default())?;
    own.point_at(&carried.tip)?;
    crate::os::crash::point("tree.carried");
    keep(ctx, hold, tree, &carried.tip)?;
    Ok(carried.tip.clone())
}
