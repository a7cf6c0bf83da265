//! What surrounds a tree: the principal checkout and the repository's settings, compared around each attempt.
//!
//! It sees that something changed, not who did it; nothing is put back.

use crate::domain::scope::Violation;
use crate::error::Result;
use crate::os::git::{Baseline, Git};
use crate::os::layout::FOLDER;
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::Ctx;

/// Remembers what surrounds a tree when its attempt begins.
pub fn begin(ctx: &Ctx, git: &Git, tree: &Tree) -> Result<()> {
    let baseline = serde_json::to_value(git.baseline(FOLDER)?)?;
    ctx.write("tree", |tx| Ok(store::tree::set_baseline(tx, tree.id, &baseline)?))
}

/// What changed around a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trespasses {
    /// Each path with its word.
    pub said: Vec<String>,
    /// Some of it is what git obeys: settings, hooks, attributes.
    pub obeyed: bool,
}

/// What changed around a tree since its attempt began.
pub fn trespasses(ctx: &Ctx, git: &Git, tree: &Tree) -> Result<Trespasses> {
    let Some(before) = tree.baseline.clone() else { return Ok(Trespasses::default()) };
    let before: Baseline = serde_json::from_value(before)?;
    let (settings, paths) = before.differences(&git.baseline(FOLDER)?);
    let obeyed = !settings.is_empty();
    let protected = settings.into_iter().map(|what| format!("{}: {what}", Violation::ProtectedPath.word()));
    let project = ctx.layout().project().display().to_string();
    let foreign = paths.into_iter().map(|path| format!("{}: {path} in {project}", Violation::ForeignWrite.word()));
    Ok(Trespasses { said: protected.chain(foreign).collect(), obeyed })
}
