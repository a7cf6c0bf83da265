//! Carrying work over: the next attempt goes on in the same tree, on top of what others have integrated meanwhile.

use std::path::PathBuf;

use crate::error::{Code, Error, Result};
use crate::os::git::{Git, Merged, NewCommit, Unlistable};
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::Ctx;
use crate::verbs::work::hold::Hold;

/// Brings a tree up to the run's tip, with everything that is in it; the paths where both changed the same place.
pub fn over(ctx: &Ctx, git: &Git, hold: &Hold, tree: &Tree) -> Result<Vec<PathBuf>> {
    let tip = super::tip(ctx, git, &hold.run)?;
    let mut conflicts = Vec::new();
    if tip != tree.base {
        let own = super::git(ctx, tree)?;
        match own.snapshot() {
            Ok(held) => conflicts = rebase(&own, tree, &held, &tip)?,
            // The seal will name it; the work stays as it is.
            Err(Unlistable::Embedded { .. }) => return keep(ctx, hold, tree, &tree.base),
            Err(Unlistable::Git(error)) => return Err(error.into()),
        }
    }
    crate::os::crash::point("tree.carried");
    keep(ctx, hold, tree, &tip)?;
    Ok(conflicts)
}

fn keep(ctx: &Ctx, hold: &Hold, tree: &Tree, base: &str) -> Result<Vec<PathBuf>> {
    ctx.write("tree", |tx| Ok(store::tree::take_over(tx, tree.id, hold.lease.attempt, base)?))?;
    Ok(Vec::new())
}

/// Puts what the tree holds on top of the tip. Doing it again after a cut changes nothing more: what is there then
/// already holds the tip's changes.
fn rebase(own: &Git, tree: &Tree, held: &str, tip: &str) -> Result<Vec<PathBuf>> {
    let carried =
        NewCommit { tree: held, parents: &[&tree.base], message: "carried over", author: &super::author(), at: 0 };
    let carried = own.commit(&carried)?;
    let (merged, conflicts) = match own.merge(tip, &carried)? {
        Merged::Clean { tree } => (tree, Vec::new()),
        Merged::Conflict { tree, paths } => (tree, paths),
    };
    own.check_out(&merged)
        .map_err(|error| Error::new(Code::Git, "the work of the attempt before can't be carried over").cause(error))?;
    own.point_at(tip)?;
    Ok(conflicts)
}
