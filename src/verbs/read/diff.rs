//! `diff`: what a run, a job or one attempt changed, against what it started from.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::frozen::TreeKind;
use crate::error::{Code, Error, Result};
use crate::os::git::Git;
use crate::store;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::verbs::run::find;
use crate::verbs::{Ctx, tree};

/// Longest patch that a report holds, in bytes.
const LONGEST: usize = 8 * 1024 * 1024;

/// What `diff` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DiffRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// The job; the whole run when left out.
    pub job: Option<String>,
    /// One try of it: what it alone changed, sealed or not.
    pub attempt: Option<u32>,
    /// Only the paths with their counts.
    pub stat: bool,
}

/// A changed path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileDiff {
    /// The path; bytes that are no UTF-8 are replaced.
    pub path: String,
    /// Lines added; none for a binary file.
    pub added: Option<u64>,
    /// Lines removed.
    pub removed: Option<u64>,
}

/// What `diff` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DiffReport {
    /// The run.
    pub run: String,
    /// The job; none for the whole run.
    pub job: Option<String>,
    /// The attempt, if one was named or is at work.
    pub attempt: Option<u32>,
    /// The commit before.
    pub from: String,
    /// The commit after; none while the attempt still works.
    pub to: Option<String>,
    /// The changed paths.
    pub files: Vec<FileDiff>,
    /// The difference; bytes that are no UTF-8 are replaced. None with `--stat`.
    pub patch: Option<String>,
    /// The patch is longer than what is shown.
    pub truncated: bool,
}

/// Two ends of a difference and the paths that count.
struct Ends {
    from: String,
    to: String,
    /// The far end is a work tree as it stands, not a commit.
    is_open: bool,
    attempt: Option<u32>,
    only: Vec<PathBuf>,
}

/// Shows a change.
///
/// # Errors
/// No such run, job or attempt, or it has no change; git failed.
pub fn diff(ctx: &Ctx, request: &DiffRequest) -> Result<DiffReport> {
    let (run, job) = ctx.read(|read| {
        let run = find::for_reading(ctx, read, request.run.as_deref())?;
        let job = request.job.as_ref().map(|name| find::job(read, &run, name)).transpose()?;
        Ok((run, job))
    })?;
    let git = tree::repository(ctx)?;
    let ends = match (&job, request.attempt) {
        (None, _) => whole(&git, &run)?,
        (Some(job), Some(attempt)) => of_attempt(ctx, &git, job, attempt)?,
        (Some(job), None) => of_job(ctx, &git, job)?,
    };
    let only: Vec<&Path> = ends.only.iter().map(PathBuf::as_path).collect();
    let counts = git.line_counts(&ends.from, &ends.to)?;
    let counts = counts.into_iter().filter(|count| only.is_empty() || only.contains(&count.path.as_path()));
    let files = counts.map(|count| FileDiff {
        path: count.path.to_string_lossy().into_owned(),
        added: count.lines.map(|lines| lines.0),
        removed: count.lines.map(|lines| lines.1),
    });
    let files = files.collect();
    let mut patch = if request.stat { None } else { Some(git.patch(&ends.from, &ends.to, &only)?) };
    let truncated = patch.as_ref().is_some_and(|patch| patch.len() > LONGEST);
    if let Some(patch) = &mut patch {
        patch.truncate(LONGEST);
    }
    Ok(DiffReport {
        run: run.name,
        job: job.map(|job| job.name),
        attempt: ends.attempt,
        from: ends.from,
        to: (!ends.is_open).then_some(ends.to),
        files,
        patch: patch.map(|patch| String::from_utf8_lossy(&patch).into_owned()),
        truncated,
    })
}

fn whole(git: &Git, run: &Run) -> Result<Ends> {
    let from = run.base.clone().ok_or_else(|| nothing(&run.name))?;
    let to = git.resolve(&tree::branch(run))?.unwrap_or_else(|| from.clone());
    Ok(Ends { from, to, is_open: false, attempt: None, only: Vec::new() })
}

fn nothing(what: &str) -> Error {
    Error::new(Code::NotFound, format!("{what} has changed nothing"))
}

/// What one try changed: its commit, or its tree as it stands.
fn of_attempt(ctx: &Ctx, git: &Git, job: &Job, attempt: u32) -> Result<Ends> {
    if let Some(change) = ctx.read(|read| Ok(store::change::get(read, job.id, attempt)?))? {
        let only = paths(git, &change.base, &change.commit)?;
        return Ok(Ends { from: change.base, to: change.commit, is_open: false, attempt: Some(attempt), only });
    }
    match at_work(ctx, git, job)? {
        Some(ends) if ends.attempt == Some(attempt) => Ok(ends),
        _ => Err(nothing(&format!("attempt {attempt} of {}", job.name))),
    }
}

/// What a job's sealed attempts changed; before the first seal, what stands in its tree.
fn of_job(ctx: &Ctx, git: &Git, job: &Job) -> Result<Ends> {
    if let Some(shown) = tree::shown::of_job(ctx, job.id)? {
        return Ok(Ends { from: shown.from, to: shown.to, is_open: false, attempt: None, only: shown.paths });
    }
    at_work(ctx, git, job)?.ok_or_else(|| nothing(&job.name))
}

/// The tree of a job as it stands, listed without touching the index that the seal uses.
fn at_work(ctx: &Ctx, git: &Git, job: &Job) -> Result<Option<Ends>> {
    let Some(row) = ctx.read(|read| Ok(store::tree::active(read, job.id)?))? else { return Ok(None) };
    if row.git_dir.is_none() || row.kind != TreeKind::Own {
        return Ok(None);
    }
    let held = tree::aside(ctx, &row)?.git.snapshot();
    let held = held.map_err(|error| Error::new(Code::Git, format!("the tree of {}: {error}", job.name)))?;
    let only = paths(git, &row.base, &held)?;
    Ok(Some(Ends { from: row.base, to: held, is_open: true, attempt: Some(row.attempt), only }))
}

fn paths(git: &Git, from: &str, to: &str) -> Result<Vec<PathBuf>> {
    Ok(git.changes(from, to)?.into_iter().map(|change| change.path).collect())
}
