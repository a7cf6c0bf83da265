//! `hook pre-commit` and `hook commit-msg`: whether git commits in a job's work tree, and what is said then.
//!
//! Everywhere else they cost a look at one folder. Where a job's tree is known to be, what can't be judged is refused;
//! where it isn't known, an error of ours is nobody's obstacle.

use std::path::{Path, PathBuf};

use crate::domain::trailer;
use crate::error::Result;
use crate::os::layout::{Found, LinkedTree, Search, discover};
use crate::verbs::ctx::{Actor, own_program};
use crate::verbs::scope_check::{Committing, Here, here, judge};
use crate::verbs::{Ctx, tree};

/// How long a hook waits for a busy store, in milliseconds.
const BUSY_MS: u64 = 2_000;

/// What git tells a hook by its environment.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// The working directory: the top of the work tree.
    pub cwd: PathBuf,
    /// `GIT_DIR`: the repository that git works on, whatever the folder looks like.
    pub git_dir: Option<PathBuf>,
    /// `GIT_INDEX_FILE`: what is about to be committed.
    pub index: Option<PathBuf>,
    /// `STRIATUM_TREE`: the tree of the lane that this process is in.
    pub tree: Option<PathBuf>,
    /// Nobody edits the message, so that it holds no comments.
    pub is_unedited: bool,
}

/// What a hook says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Whether git is to stop.
    pub refuses: bool,
    /// For people, on standard error; empty when there is nothing to say.
    pub text: String,
}

impl Said {
    fn allow(text: impl Into<String>) -> Said {
        Said { refuses: false, text: text.into() }
    }

    /// git is to stop.
    pub fn refuse(text: impl Into<String>) -> Said {
        Said { refuses: true, text: text.into() }
    }
}

/// Where git commits.
enum Where {
    /// In no job's tree.
    Elsewhere,
    /// In a job's tree.
    In(Box<(Ctx, Here)>),
    /// In a linked work tree that could not be looked up.
    Unknown {
        /// It lies where only jobs' trees lie, or the lane says so.
        is_lanes: bool,
        /// Why.
        why: String,
    },
}

/// Judges what is about to be committed.
pub fn pre_commit(around: &Surroundings) -> Said {
    let (ctx, here) = match look(around) {
        Where::Elsewhere => return Said::default(),
        Where::In(found) => *found,
        Where::Unknown { is_lanes: true, why } => {
            return Said::refuse(format!("striatum: this is a job's work tree, and its scope can't be read: {why}\n"));
        }
        Where::Unknown { is_lanes: false, why } => {
            return Said::allow(format!("striatum: not checked, the store can't be read: {why}\n"));
        }
    };
    let absolute = |path: &Option<PathBuf>| path.as_ref().map(|path| around.cwd.join(path));
    let committing = Committing { index: absolute(&around.index), git_dir: absolute(&around.git_dir) };
    match judge::staged(&ctx, &here, &committing) {
        Ok(judged) if judged.refused.is_empty() => Said::default(),
        Ok(judged) => Said::refuse(refusal(&here, &judged.refused)),
        Err(error) => Said::refuse(format!("striatum: the change of {} can't be judged: {error}\n", here.named())),
    }
}

fn refusal(here: &Here, refused: &[String]) -> String {
    let mut text = format!("striatum: {} may not commit this:\n", here.named());
    refused.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    let scope = &here.job.spec.writes;
    text.push_str(&format!("its scope: {}\n", if scope.is_empty() { "nothing".to_owned() } else { scope.join(" ") }));
    text.push_str("way out: `git restore --staged PATH` and put the file back as it was; if the job can't be done\n");
    text.push_str("within its scope, say so: `striatum work block --needs-context`. The seal refuses the same.\n");
    text
}

/// Says in a commit's message where it comes from.
pub fn commit_msg(around: &Surroundings, file: &Path) -> Said {
    let Where::In(found) = look(around) else { return Said::default() };
    let (ctx, here) = *found;
    match with_trailers(&ctx, &here, around, file) {
        Ok(()) => Said::default(),
        Err(error) => Said::allow(format!("striatum: the message got no trailers: {error}\n")),
    }
}

fn with_trailers(ctx: &Ctx, here: &Here, around: &Surroundings, file: &Path) -> Result<()> {
    let file = around.cwd.join(file);
    let message = std::fs::read(&file).map_err(|error| crate::os::Fault::new("read", &file, error))?;
    let sign = if around.is_unedited { None } else { Some(tree::git(ctx, &here.tree)?.comment_sign()?) };
    if let Some(message) = trailer::added(
        &message,
        sign.as_deref(),
        &trailer::of_attempt(&here.run.name, &here.job.name, here.tree.attempt),
    ) {
        crate::os::files::rewrite(&file, &message)?;
    }
    Ok(())
}

/// Finds out where git commits. A main work tree is known by one look at its `.git`.
fn look(around: &Surroundings) -> Where {
    let start = match &around.git_dir {
        Some(git_dir) => around.cwd.join(git_dir),
        None if around.cwd.join(".git").is_dir() => return Where::Elsewhere,
        None => around.cwd.clone(),
    };
    let Ok(start) = start.canonicalize() else { return Where::Elsewhere };
    let found = match discover(Search { flag: None, variable: None, cwd: &start }) {
        Ok(found) => found,
        Err(error) => return Where::Unknown { is_lanes: is_named(around, &around.cwd), why: error.to_string() },
    };
    let Some(linked) = found.layout().repository().and_then(|repository| repository.linked.clone()) else {
        return Where::Elsewhere;
    };
    // Another repository may lie inside a tree: a submodule.
    if start != linked.git_dir && start != linked.top {
        return Where::Elsewhere;
    }
    match found {
        Found::Store(_) => in_store(around, found, &linked),
        Found::Config(_) | Found::Nothing(_) => Where::Elsewhere,
    }
}

fn in_store(around: &Surroundings, found: Found, linked: &LinkedTree) -> Where {
    let is_lanes = linked.top.starts_with(found.layout().root().join("worktrees")) || is_named(around, &linked.top);
    let Some(name) = linked.git_dir.file_name().and_then(|name| name.to_str().map(str::to_owned)) else {
        return Where::Elsewhere;
    };
    let ctx = Ctx::new(found, Actor::User, own_program()).with_busy(BUSY_MS);
    match ctx.read(|read| here::of_git_dir(&ctx, read, &name)) {
        Ok(Some(here)) => Where::In(Box::new((ctx, here))),
        Ok(None) => Where::Elsewhere,
        Err(error) => Where::Unknown { is_lanes, why: error.to_string() },
    }
}

/// Whether the lane that this process is in says that this is its tree.
fn is_named(around: &Surroundings, top: &Path) -> bool {
    around.tree.as_ref().is_some_and(|tree| tree.canonicalize().ok() == top.canonicalize().ok())
}
