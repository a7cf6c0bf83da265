//! What surrounds a tree: the principal checkout and the repository's settings, compared around each attempt.
//!
//! It sees that something changed, not who did it; nothing is put back.

use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::ForeignWrite;
use crate::domain::id::JobId;
use crate::domain::scope::Violation;
use crate::error::{Code, Error, Result};
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
    ctx.write("tree", |tx| Ok(store::tree::set_baseline(tx, tree.id, Some(&baseline))?))
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
    let now = git.rules_since(&before)?;
    let rules = before.other_rules(&now);
    if !rules.is_empty() {
        // Nothing more is asked of git: it would obey them.
        let refused = rules.into_iter().map(|what| format!("{}: {what}", Violation::ProtectedPath.word())).collect();
        return Ok(Trespasses { refused, obeyed: true, told: Vec::new() });
    }
    let later = git.with_checkout(now, FOLDER)?;
    let mut paths = before.other_paths(&later);
    paths.extend(committed(ctx, git, &before, &later)?);
    if rule == ForeignWrite::Tell {
        return Ok(Trespasses { refused: Vec::new(), obeyed: false, told: paths });
    }
    let project = ctx.layout().project().display().to_string();
    let foreign = paths.into_iter().map(|path| format!("{}: {path} in {project}", Violation::ForeignWrite.word()));
    Ok(Trespasses { refused: foreign.collect(), obeyed: false, told: Vec::new() })
}

/// Paths that came into the checkout by a commit meanwhile: not what was changed there before, and not what landed.
fn committed(ctx: &Ctx, git: &Git, before: &Baseline, later: &Baseline) -> Result<Vec<String>> {
    let (Some(from), Some(to)) = (&before.head, &later.head) else { return Ok(Vec::new()) };
    if from == to || ctx.read(|read| Ok(store::landing::left(read, to)?))? {
        return Ok(Vec::new());
    }
    let paths = git.changes(from, to)?.into_iter().map(|change| change.path.to_string_lossy().into_owned());
    Ok(paths.filter(|path| !before.dirt.contains_key(path)).collect())
}

/// Refuses where git would run other commands on a tree's files than when its attempt began.
pub fn must_have_its_filters(git: &Git, tree: &Tree) -> Result<()> {
    let Some(before) = tree.baseline.clone() else { return Ok(()) };
    let before: Baseline = serde_json::from_value(before)?;
    if before.has_other_filters(&git.rules_since(&before)?) {
        return Err(Error::new(Code::Git, "filters in git's settings have changed since its attempt began"));
    }
    Ok(())
}

/// What git obeys and an attempt in this tree has changed, whatever became of it; nobody is told twice.
pub fn changed_rules(ctx: &Ctx, git: &Git, tree: &Tree) -> Result<Option<String>> {
    let Some(before) = tree.baseline.clone() else { return Ok(None) };
    let before: Baseline = serde_json::from_value(before)?;
    let rules = before.other_rules(&git.rules_since(&before)?);
    if rules.is_empty() {
        return Ok(None);
    }
    leave_to_a_person(ctx, tree.job)?;
    Ok(Some(format!("{}: {}; look, put back what is not yours", Violation::ProtectedPath.word(), rules.join(", "))))
}

/// The attempt stops here, and no other begins by itself. When a person has looked and tries again, what is there then
/// is what later changes are compared with.
pub fn leave_to_a_person(ctx: &Ctx, job: JobId) -> Result<()> {
    ctx.write("tree", |tx| match store::tree::active(tx, job)? {
        Some(tree) => Ok(store::tree::set_baseline(tx, tree.id, None)?),
        None => Ok(()),
    })
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
