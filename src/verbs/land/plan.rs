//! What a landing would do, found out without changing anything.

use crate::domain::change::short;
use crate::domain::session::LandingKind;
use crate::error::{Code, Error, Next, Result};
use crate::os::git::{Git, Merged};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::verbs::{Ctx, tree};

/// What is to be done.
pub enum Way {
    /// Nothing has to be moved.
    Done {
        /// Why not.
        kind: LandingKind,
        /// The target, as a full name.
        target: Option<String>,
        /// The run's newest commit.
        tip: String,
        /// Where the target is.
        before: Option<String>,
    },
    /// The target is to be moved.
    Move(Plan),
}

/// A landing that moves its target.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How.
    pub kind: LandingKind,
    /// The target, as a full name.
    pub target: String,
    /// Where it is.
    pub before: String,
    /// The run's newest commit.
    pub tip: String,
    /// What the target will hold.
    pub tree: String,
}

/// The target of a land job: what the caller names, else the workflow.
pub fn target(job: &Job, into: Option<&str>) -> Option<String> {
    let named = into.or(job.spec.into.as_deref())?;
    Some(format!("refs/heads/{}", named.trim_start_matches("refs/heads/")))
}

/// Finds out what a landing would do.
pub fn plan(ctx: &Ctx, git: &Git, (run, job): (&Run, &Job), into: Option<&str>) -> Result<Way> {
    let tip = tip(ctx, git, run)?;
    let Some(target) = target(job, into) else {
        return Ok(Way::Done { kind: LandingKind::Branch, target: None, tip, before: None });
    };
    let before = resolve(git, run, &target)?;
    let done = |kind| Way::Done { kind, target: Some(target.clone()), tip: tip.clone(), before: Some(before.clone()) };
    let base = run.base.as_deref().unwrap_or_default();
    if tip == base || git.tree_of(&tip)? == git.tree_of(base)? {
        return Ok(done(LandingKind::Nothing));
    }
    if git.is_ancestor(&tip, &before)? {
        return Ok(done(LandingKind::Outside));
    }
    let tree = match git.merge(&before, &tip)? {
        Merged::Clean { tree } => tree,
        Merged::Conflict { paths, .. } => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            return Err(conflict(run, &target, &paths.join(", ")));
        }
    };
    if git.tree_of(&before)? == tree {
        return Ok(done(LandingKind::Outside));
    }
    let kind = match job.spec.land_style.as_deref() {
        Some("merge") => LandingKind::Merge,
        Some("ff") if git.is_ancestor(&before, &tip)? => LandingKind::Ff,
        Some("ff") => return Err(not_ahead(run, &target)),
        _ => LandingKind::Squash,
    };
    Ok(Way::Move(Plan { kind, target, before, tip, tree }))
}

/// The run's newest commit; its branch must be where it was left, for nobody has looked at anything else.
fn tip(ctx: &Ctx, git: &Git, run: &Run) -> Result<String> {
    let tip = tree::tip(ctx, git, run)?;
    let left = run.tip.as_deref().or(run.base.as_deref());
    if left.is_some_and(|left| left != tip) {
        let (branch, left) = (tree::branch(run), left.unwrap_or_default());
        let message = format!("branch striatum/{} is at {}, and was left at {}", run.name, short(&tip), short(left));
        return Err(Error::new(Code::StaleGate, message)
            .hint("nobody has reviewed what came onto it")
            .next(Next::new("person", "put it back", &["git", "update-ref", &branch, left, &tip])));
    }
    Ok(tip)
}

/// Where the target is; it must be an ordinary branch of the user's.
fn resolve(git: &Git, run: &Run, target: &str) -> Result<String> {
    let name = plain(target);
    if name.starts_with("striatum/") || !git.may_be_branch(name)? {
        return Err(Error::new(Code::Usage, format!("{name} can't be landed on")).hint("name a branch of your own"));
    }
    if git.is_symbolic(target)? {
        let message = format!("{name} stands for another branch");
        return Err(Error::new(Code::Usage, message).hint("name the branch that it stands for with `run land --into`"));
    }
    git.resolve(target)?.ok_or_else(|| {
        let base = run.base.as_deref().unwrap_or("HEAD");
        Error::new(Code::NotFound, format!("there is no branch {name} to land on"))
            .hint("name another one with `run land --into`")
            .next(Next::new("person", "make it where the run began", &["git", "branch", name, base]))
    })
}

fn conflict(run: &Run, target: &str, paths: &str) -> Error {
    let (name, branch) = (plain(target), format!("striatum/{}", run.name));
    Error::new(Code::LandConflict, format!("{name} and {branch} have changed the same places: {paths}"))
        .hint(format!("merge {branch} into {name} by hand; then approve the gate: it sees that it is there"))
        .next(Next::new("person", "go to the target", &["git", "switch", name]))
        .next(Next::new("person", "merge by hand, and commit", &["git", "merge", &branch]))
        .next(Next::new("person", "see it landed", &["striatum", "run", "land", "--run-id", &run.name]))
}

fn not_ahead(run: &Run, target: &str) -> Error {
    let name = plain(target);
    let message = format!("{name} has commits that striatum/{} has not: it can't be fast-forwarded", run.name);
    Error::new(Code::LandConflict, message)
        .hint("`land_style = \"squash\"` or `\"merge\"` would do it; or merge by hand, which is seen")
        .next(Next::new("person", "merge by hand", &["git", "merge", &format!("striatum/{}", run.name)]))
        .next(Next::new("person", "see it landed", &["striatum", "run", "land", "--run-id", &run.name]))
}

/// A branch's name as people write it.
pub fn plain(target: &str) -> &str {
    target.trim_start_matches("refs/heads/")
}
