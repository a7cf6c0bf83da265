//! What surrounds a tree: the principal checkout and the repository's settings, compared around each attempt.
//!
//! It sees that something changed, not who did it; nothing is put back.

use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::ForeignWrite;
use crate::domain::scope::Violation;
use crate::error::Result;
use crate::os::git::{Baseline, Git};
use crate::os::layout::FOLDER;
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::work::hold::Hold;

/// Remembers what surrounds a tree when its attempt begins.
pub fn begin(ctx: &Ctx, git: &Git, tree: &Tree) -> Result<()> {
    let baseline = serde_json::to_value(git.baseline(FOLDER)?)?;
    ctx.write("tree", |tx| Ok(store::tree::set_baseline(tx, tree.id, &baseline)?))
}

/// What changed around a tree since its attempt began, each path with its word.
#[derive(Debug, Default)]
pub struct Trespasses {
    /// What keeps the attempt from being sealed.
    pub refused: Vec<String>,
    /// Some of it is what git obeys: settings, hooks, attributes.
    pub obeyed: bool,
    /// Paths of the checkout that the workflow only wants told.
    pub told: Vec<String>,
}

/// Looks what changed around a tree since its attempt began.
pub fn trespasses(ctx: &Ctx, git: &Git, tree: &Tree, rule: ForeignWrite) -> Result<Trespasses> {
    let Some(before) = tree.baseline.clone() else { return Ok(Trespasses::default()) };
    let before: Baseline = serde_json::from_value(before)?;
    let (settings, paths) = before.differences(&git.baseline_again(FOLDER, &before)?);
    let obeyed = !settings.is_empty();
    let mut refused: Vec<String> =
        settings.into_iter().map(|what| format!("{}: {what}", Violation::ProtectedPath.word())).collect();
    if rule == ForeignWrite::Tell {
        return Ok(Trespasses { refused, obeyed, told: paths });
    }
    let project = ctx.layout().project().display().to_string();
    let foreign = paths.into_iter().map(|path| format!("{}: {path} in {project}", Violation::ForeignWrite.word()));
    refused.extend(foreign);
    Ok(Trespasses { refused, obeyed, told: Vec::new() })
}

/// Notes in the log what changed in the checkout meanwhile.
pub fn tell_of(ctx: &Ctx, hold: &Hold, paths: &[String]) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let shown: Vec<&String> = paths.iter().take(20).collect();
    let body = json!({"attempt": hold.lease.attempt, "saw": Violation::ForeignWrite.word(), "paths": shown,
        "count": paths.len()});
    ctx.write("settle", |tx| tell(tx, EventType::ObservationRecorded, &hold.job, &body))
}
