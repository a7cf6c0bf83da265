//! A change of several files, kept so that all of it or nothing of it is there, whoever dies in between.
//!
//! What stood there is kept under a second name, and a page says what is about to be done. The page of a change that
//! the log tells of is thrown away; any other is undone.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::event::EventType;
use crate::error::{Error, Result};
use crate::os::crash;
use crate::os::files::{self, Beneath};
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::scope_check::Name;
use crate::verbs::{Ctx, tree};

/// What is about to be done.
#[derive(Debug, Serialize, Deserialize)]
struct Page {
    /// What the event will be known by.
    token: String,
    /// In the order in which they are put in place.
    files: Vec<Entry>,
}

/// A file of a change.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Where, below the tree.
    path: Name,
    /// Something stood there; it is kept under the entry's number.
    had: bool,
}

/// One step of a change.
pub struct Step {
    /// Where, below the tree.
    pub path: PathBuf,
    /// What is put there; none takes the file away.
    pub draft: Option<PathBuf>,
    /// Something stands there.
    pub had: bool,
}

fn page(folder: &Path) -> PathBuf {
    tree::drafts(folder).join("change.json")
}

fn kept(folder: &Path, number: usize) -> PathBuf {
    tree::drafts(folder).join(format!("kept-{number}"))
}

/// Whether a change was begun and not finished.
pub fn is_there(folder: &Path) -> bool {
    page(folder).symlink_metadata().is_ok()
}

/// Does all steps or none.
pub fn perform(folder: &Path, beneath: &Beneath, token: &str, steps: &[Step]) -> Result<()> {
    for (number, step) in steps.iter().enumerate().filter(|(_, step)| step.had) {
        let aside = kept(folder, number);
        let _ = std::fs::remove_file(&aside);
        beneath.keep(&step.path, &aside).map_err(super::barred)?;
    }
    let entry = |step: &Step| Entry { path: Name::of(&step.path), had: step.had };
    let text = serde_json::to_vec(&Page { token: token.to_owned(), files: steps.iter().map(entry).collect() })?;
    files::write_private(&page(folder), &text)?;
    crash::point("repo.journaled");
    for step in steps {
        let done = match &step.draft {
            Some(draft) => beneath.put(&step.path, draft),
            None => beneath.remove(&step.path),
        };
        if let Err(refusal) = done {
            undo(folder, beneath, &read(folder)?)?;
            return Err(super::barred(refusal).hint("nothing was changed"));
        }
        crash::point("repo.stepped");
    }
    Ok(())
}

/// Throws away what was kept of a change that is told.
pub fn close(folder: &Path) {
    if let Ok(page) = read(folder) {
        (0..page.files.len()).for_each(|number| drop(std::fs::remove_file(kept(folder, number))));
    }
    let _ = std::fs::remove_file(page(folder));
}

/// Finishes or undoes what somebody began who died; whoever calls has the lock.
pub fn recover(ctx: &Ctx, tree: &Tree, folder: &Path) -> Result<()> {
    if !is_there(folder) {
        return Ok(());
    }
    let page = read(folder)?;
    let is_told = ctx.read(|read| {
        let bodies = store::event::bodies_of_job(read, tree.job, [EventType::RepoPatched, EventType::RepoPatched])?;
        Ok(bodies.iter().any(|body| body.contains(&page.token)))
    })?;
    if !is_told {
        undo(folder, &Beneath::open(folder)?, &page)?;
    }
    close(folder);
    Ok(())
}

fn read(folder: &Path) -> Result<Page> {
    let text = std::fs::read(page(folder))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::from(error).hint("a kept change can't be read; look beside the tree"))
}

/// Puts back what stood there, and takes away what did not.
fn undo(folder: &Path, beneath: &Beneath, page: &Page) -> Result<()> {
    for (number, entry) in page.files.iter().enumerate() {
        let (path, aside) = (entry.path.path(), kept(folder, number));
        if !entry.had {
            beneath.remove(&path).map_err(super::barred)?;
        } else if aside.symlink_metadata().is_ok() {
            beneath.put(&path, &aside).map_err(super::barred)?;
        }
    }
    close(folder);
    Ok(())
}
