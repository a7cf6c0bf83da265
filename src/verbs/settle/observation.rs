//! Looking at what an attempt left whose holder is gone: rows, files, its tree, its lock. Nothing is changed.
//!
//! What follows from it is decided in `domain::observation`.

use std::path::{Path, PathBuf};

use super::artifacts::LIMIT;
use crate::domain::action::Action;
use crate::domain::frozen::TreeKind;
use crate::domain::gate::Stakes;
use crate::domain::job::JobState;
use crate::domain::observation::{Made, Observation, Then};
use crate::error::Result;
use crate::os::files;
use crate::os::lock::{Held, probe};
use crate::store::job::Job;
use crate::store::{self, Connection};
use crate::verbs::{Ctx, tree};

/// Paths of a tree that are named.
const SHOWN: usize = 20;

/// What the store knows of a job's newest attempt.
pub fn of_rows(read: &Connection, job: &Job) -> Result<Observation> {
    if job.attempt == 0 {
        return Ok(Observation::default());
    }
    let attempt = store::attempt::get(read, job.id, job.attempt)?;
    let rows = store::artifact::of_attempt(read, job.id, job.attempt)?;
    let is_made = |name: &str| rows.iter().any(|row| row.name == name);
    let required = job.spec.produces.iter().filter(|produce| produce.required);
    Ok(Observation {
        attempt: job.attempt,
        dispatched: matches!(job.state, JobState::Running | JobState::Stale),
        execution: store::execution::agent(read, job.id, job.attempt)?.map(|agent| agent.state),
        is_alive: false,
        answer: attempt.answer.map(|answer| answer.status),
        missing: required.filter(|produce| !is_made(&produce.name)).map(|produce| produce.name.clone()).collect(),
        made: rows.into_iter().map(|row| Made { name: row.name, sha256: row.sha256, published: true }).collect(),
        changed: Vec::new(),
        changes: 0,
        commit: store::change::get(read, job.id, job.attempt)?.map(|change| change.commit),
        reaches_outside: Stakes::of(&job.spec).reaches_outside(),
    })
}

/// What is found of a job's newest attempt anywhere.
pub fn look(ctx: &Ctx, job: &Job) -> Result<Observation> {
    let (mut seen, session) = ctx.read(|read| {
        let session = if job.attempt == 0 { None } else { store::attempt::get(read, job.id, job.attempt)?.session };
        Ok((of_rows(read, job)?, session))
    })?;
    let Some(session) = session else { return Ok(seen) };
    let scratch = ctx.layout().scratch(&session.to_string());
    seen.is_alive = probe(&scratch.lane_lock()).is_ok_and(|held| held == Held::Held);
    let work = tree::place(ctx, job)?.unwrap_or_else(|| scratch.attempt(&job.name, job.attempt).work());
    left_lying(&mut seen, job, &work);
    let changed = changed(ctx, job)?;
    seen.changes = changed.len();
    seen.changed = changed.iter().take(SHOWN).map(|path| path.to_string_lossy().into_owned()).collect();
    Ok(seen)
}

/// Files that were made and not published.
fn left_lying(seen: &mut Observation, job: &Job, work: &Path) {
    for produce in &job.spec.produces {
        let Some(path) = produce.path.as_ref().filter(|_| seen.made.iter().all(|made| made.name != produce.name))
        else {
            continue;
        };
        let hashed = files::open_inside(work, Path::new(path), LIMIT).ok();
        if let Some((sha256, _)) = hashed.and_then(|mut opened| files::sha256_of(&mut opened.file).ok()) {
            seen.missing.retain(|name| *name != produce.name);
            seen.made.push(Made { name: produce.name.clone(), sha256, published: false });
        }
    }
}

/// What differs in its tree; nothing where git must not be asked.
fn changed(ctx: &Ctx, job: &Job) -> Result<Vec<PathBuf>> {
    if job.spec.tree != TreeKind::Own {
        return Ok(Vec::new());
    }
    let tree = ctx.read(|read| Ok(store::tree::active(read, job.id)?))?;
    let Some(tree) = tree.filter(|tree| tree::is_there(&tree::folder(ctx, tree))) else { return Ok(Vec::new()) };
    if tree::guard::must_have_its_filters(&tree::repository(ctx)?, &tree).is_err() {
        return Ok(Vec::new());
    }
    Ok(tree::git(ctx, &tree)?.changed_paths()?)
}

/// What an act of a driver would find and do, in a line; none for acts that look at nothing.
pub fn foresee(ctx: &Ctx, action: &Action) -> Result<Option<String>> {
    let job = ctx.read(|read| match action {
        Action::Observe { job, .. } => Ok(Some(store::job::get(read, *job)?)),
        Action::Recover { session, .. } | Action::MarkLost { session } | Action::ExpireLease { session, .. } => {
            let held = store::message::held(read, *session)?;
            Ok(held.map(|message| store::job::get(read, message.job)).transpose()?)
        }
        _ => Ok(None),
    })?;
    let Some(job) = job else { return Ok(None) };
    let seen = look(ctx, &job)?;
    let then = match seen.then() {
        Then::Watch => "its agent lives: it is watched to its end first",
        Then::Settle => "it is settled for it",
        Then::Requeue => "it is offered again",
        Then::Ask => "a person is asked",
    };
    Ok(Some(format!("attempt {} of {}: {}; {then}", seen.attempt, job.name, seen.line())))
}
