//! What a job changed in all, for readers: from before its first change to the newest state, at the paths it touched.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::domain::id::JobId;
use crate::domain::session::ChangeState;
use crate::error::Result;
use crate::os::git::Git;
use crate::store;
use crate::store::change::Change;
use crate::verbs::Ctx;

/// A job's change.
pub struct Shown {
    /// The commit before it.
    pub from: String,
    /// The commit with it.
    pub to: String,
    /// The paths that it touched.
    pub paths: Vec<PathBuf>,
    /// The difference.
    pub patch: Vec<u8>,
}

/// What a job's sealed attempts changed; none when they changed nothing.
pub fn of_job(ctx: &Ctx, job: JobId) -> Result<Option<Shown>> {
    let changes: Vec<Change> = ctx
        .read(|read| Ok(store::change::of_job(read, job)?))?
        .into_iter()
        .filter(|change| change.state == ChangeState::Integrated)
        .collect();
    let (Some(first), Some(last)) = (changes.first(), changes.last()) else { return Ok(None) };
    let git = super::repository(ctx)?;
    let from = first.tip_before.clone().unwrap_or_else(|| first.base.clone());
    let to = last.tip_after.clone().unwrap_or_else(|| last.commit.clone());
    let paths = touched(&git, &changes)?;
    let only: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let patch = git.patch(&from, &to, &only)?;
    Ok(Some(Shown { from, to, paths, patch }))
}

/// Every path that one of the changes touched.
fn touched(git: &Git, changes: &[Change]) -> Result<Vec<PathBuf>> {
    let mut paths = BTreeSet::new();
    for change in changes {
        paths.extend(git.changes(&change.base, &change.commit)?.into_iter().map(|change| change.path));
    }
    Ok(paths.into_iter().collect())
}
