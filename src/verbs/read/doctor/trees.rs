//! What stands in the repository beside the rows that tell of it: work trees, the branches of runs, and the commits on
//! them. Nothing is asked of git that looks into a tree.

use std::path::Path;

use super::{Check, Finding};
use crate::domain::session::{ChangeState, TreeState};
use crate::error::{Next, Result};
use crate::os::git::Git;
use crate::store;
use crate::store::run::Run;
use crate::verbs::{Ctx, tree};

/// Ended runs whose branches are looked at, the newest; all that live are.
const ENDED: u32 = 5;

/// Trees and branches.
pub fn checks(ctx: &Ctx) -> Vec<Check> {
    let run = |name: &str, found: Result<Check>| found.unwrap_or_else(|error| Check::failed(name, &error));
    let Some(git) = Git::of(ctx.layout()) else { return Vec::new() };
    vec![run("work trees", trees(ctx, &git)), run("branches", branches(ctx, &git))]
}

/// Rows whose folder is gone, and registered work trees of this store that no row tells of.
fn trees(ctx: &Ctx, git: &Git) -> Result<Check> {
    let registered = git.worktrees()?;
    let rows = ctx.read(|read| Ok(store::tree::all_there(read)?))?;
    let mut findings = Vec::new();
    // One that is released is being taken away, and loses its folder first.
    let may_lack = |state| !matches!(state, TreeState::Active | TreeState::Kept);
    for row in rows.iter().filter(|row| !may_lack(row.state)) {
        let folder = tree::folder(ctx, row);
        if tree::is_there(&folder) || may_lack(ctx.read(|read| Ok(store::tree::get(read, row.id)?))?.state) {
            continue;
        }
        let run = ctx.read(|read| Ok(store::run::get(read, row.run)?))?;
        let fix = if run.state.is_terminal() {
            Next::new("operator", "let its registration go", &["striatum", "gc", "--yes"])
        } else {
            Next::new("operator", "a driver makes it anew", &["striatum", "run", "drive", "--run-id", &run.name])
        };
        let what = format!("the work tree is {} in the store, and its folder is gone", row.state);
        findings.push(Finding::new("tree_missing", what, folder.display().to_string(), Some(fix)));
    }
    let home = ctx.layout().root().join("worktrees");
    let known: Vec<_> = rows.iter().map(|row| resolved(&tree::folder(ctx, row))).collect();
    let is_ours = |path: &Path| resolved(path).starts_with(resolved(&home));
    for path in registered.iter().filter(|path| is_ours(path) && !known.contains(&resolved(path))) {
        if !git.worktrees()?.contains(path) {
            continue;
        }
        let shown = path.display().to_string();
        let fix = Next::new("operator", "look what is in it, then remove it", &["git", "worktree", "remove", &shown]);
        findings.push(Finding::new("tree_unknown", "git has a work tree here that no row tells of", shown, Some(fix)));
    }
    Ok(Check::found("work trees", format!("{} should be there", rows.len()), findings))
}

/// The same folder, whatever links lead there; one that is gone by its parent.
fn resolved(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path.to_owned(),
    })
}

/// A run's branch is where it was left, and every integrated change is on it.
fn branches(ctx: &Ctx, git: &Git) -> Result<Check> {
    let mut runs = ctx.read(|read| Ok(store::run::live(read, u32::MAX)?))?;
    let ended = ctx.read(|read| Ok(store::run::newest(read, ENDED)?))?;
    runs.extend(ended.into_iter().filter(|run| run.state.is_terminal()));
    let mut findings = Vec::new();
    let mut seen = 0;
    for run in runs.iter().filter(|run| run.base.is_some()) {
        seen += 1;
        findings.extend(branch(ctx, git, run)?);
    }
    Ok(Check::found("branches", format!("of {seen} runs"), findings))
}

fn branch(ctx: &Ctx, git: &Git, run: &Run) -> Result<Vec<Finding>> {
    let name = tree::branch(run);
    let there = git.resolve(&name)?;
    // Between the two looks it may have been moved as it should.
    let run = ctx.read(|read| Ok(store::run::get(read, run.id)?))?;
    let Some(left) = run.tip.clone() else { return Ok(Vec::new()) };
    let Some(there) = there else {
        // When a run is over, its branch is whoever's it belongs to.
        let what = format!("the branch is gone; it was left at {left}");
        let fix = Next::new("operator", "make it anew", &["git", "update-ref", &name, &left]);
        let gone = Finding::new("branch_gone", what, name, Some(fix));
        return Ok(if run.state.is_terminal() { Vec::new() } else { vec![gone] });
    };
    let mut findings = Vec::new();
    let is_aimed = || ctx.read(|read| Ok(store::change::is_aimed(read, run.id, &there, &left)?));
    let is_lately = || Ok::<bool, crate::error::Error>(git.resolve(&name)?.as_deref() == Some(&left));
    if there != left && !run.state.is_terminal() && !is_aimed()? && !is_lately()? {
        let what = format!("the branch is at {there}, and was left at {left}");
        let fix = Next::new("operator", "see what came in between", &["git", "log", &format!("{left}..{name}")]);
        findings.push(Finding::new("branch_moved", what, name.clone(), Some(fix)));
    }
    for change in ctx.read(|read| Ok(store::change::of_run(read, run.id)?))? {
        if change.state == ChangeState::Integrated && !git.is_ancestor(&change.commit, &there).unwrap_or(false) {
            let job = ctx.read(|read| Ok(store::job::get(read, change.job)?))?;
            let what = format!(
                "attempt {} of {} was integrated, and {} is not on it",
                change.attempt, job.name, change.commit
            );
            findings.push(Finding::new("change_lost", what, name.clone(), None));
        }
    }
    Ok(findings)
}
