//! `repo write`, `repo patch-preview`, `repo patch-apply`: changes of a job's tree that are judged before they are there.
//!
//! The judgement is the seal's; here it comes first. Nothing is written but below the tree, through descriptors.

pub mod escaped;
pub mod journal;
pub mod patch;
pub mod write;

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::change::{Change, Refused};
use crate::domain::frozen::TreeKind;
use crate::domain::path::shown;
use crate::domain::scope::Violation;
use crate::error::{Code, Error, Next, Result};
use crate::os::files::Refusal;
use crate::os::lock::Lock;
use crate::store;
use crate::store::tree::Tree;
use crate::verbs::settle::changes;
use crate::verbs::work::hold::{self, Credentials, Hold};
use crate::verbs::{Ctx, tree};

/// How long a verb waits for another one at the same tree.
const WAIT_MS: u64 = 30_000;

/// Bytes in a request: text where they are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl Content {
    /// As text where they are.
    pub fn of(bytes: Vec<u8>) -> Content {
        String::from_utf8(bytes).map_or_else(|error| Content::Bytes(error.into_bytes()), Content::Text)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }
}

/// A job's tree with what its holder may do there; nobody else's `repo` verb is at it meanwhile.
pub struct Ground {
    /// The hold.
    pub hold: Hold,
    /// The tree's row.
    pub tree: Tree,
    /// Its folder.
    pub folder: PathBuf,
    /// Where files are prepared: beside the tree, on the same file system, and in no scope.
    pub drafts: PathBuf,
    _lock: Lock,
}

impl Ground {
    /// The tree of what a session holds; what a verb that died left half done there is put right first.
    pub fn of(ctx: &Ctx, who: &Credentials) -> Result<Ground> {
        let (hold, tree) = ctx.read(|read| {
            let hold = hold::hold(ctx, read, who)?;
            let tree = store::tree::active(read, hold.job.id)?;
            Ok((hold, tree))
        })?;
        let none = || {
            let text = format!("worktree_required: {} has no work tree of its own to write", hold.job.name);
            Error::new(Code::WorktreeRequired, text).hint("a job writes where its `writes` says so")
        };
        let tree = tree.filter(|tree| tree.kind == TreeKind::Own).ok_or_else(none)?;
        let folder = tree::folder(ctx, &tree);
        if !tree::is_there(&folder) {
            return Err(none());
        }
        let drafts = tree::drafts(&folder);
        crate::os::files::create_private_dir(&drafts)?;
        let lock = lock(&drafts)?;
        journal::recover(ctx, &tree, &folder)?;
        Ok(Ground { hold, tree, folder, drafts, _lock: lock })
    }
}

/// The lock of a tree's drafts.
fn lock(drafts: &Path) -> Result<Lock> {
    Lock::exclusive_within(&drafts.join("lock"), WAIT_MS)?
        .ok_or_else(|| Error::new(Code::StillHeld, "another `repo` verb is at this tree").hint("try again in a moment"))
}

/// Puts right what a `repo` verb left that died in the middle, before a tree is looked at.
pub fn put_right(ctx: &Ctx, tree: &Tree) -> Result<()> {
    let folder = tree::folder(ctx, tree);
    if !journal::is_there(&folder) {
        return Ok(());
    }
    let _lock = lock(&tree::drafts(&folder))?;
    journal::recover(ctx, tree, &folder)
}

/// A path as it was named, relative to the tree's top; one that begins with the tree itself may be absolute.
fn placed(ground: &Ground, named: &str) -> Result<PathBuf> {
    let refused = || violated(&Refused { path: PathBuf::from(named), why: Violation::PathTraversal });
    if named.contains(['\0', '\\']) {
        return Err(refused().hint("a path has neither NUL nor backslashes in it"));
    }
    let path = Path::new(named);
    let path = path.strip_prefix(&ground.folder).unwrap_or(path);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || path.as_os_str().is_empty() || named.ends_with('/') {
        return Err(refused());
    }
    Ok(path.to_owned())
}

/// The refusal of one change: its word first, as everywhere.
fn violated(refused: &Refused) -> Error {
    let ask = ["striatum", "scope-check"];
    Error::new(Code::from(refused.why), refused.to_string()).next(Next::new("session", "see what the scope is", &ask))
}

/// What stands in the way of a write, in the words of scopes.
fn barred(refusal: Refusal) -> Error {
    let word = |why: Violation, path: PathBuf| violated(&Refused { path, why });
    match refusal {
        Refusal::Traversal { path } => word(Violation::PathTraversal, path),
        Refusal::Symlink { path } => word(Violation::SymlinkRefused, path),
        Refusal::Linked { path } => word(Violation::HardLinkRefused, path),
        Refusal::NotRegular { path } => {
            word(Violation::ModeRefused, path).hint("a folder, a pipe or a device stands there or on the way")
        }
        other => other.into(),
    }
}

/// Whether an escape can let a change pass: it widens a scope, and nothing else. What is git's own stays out of it.
fn is_openable(refused: &Refused) -> bool {
    let is_gits = refused.path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
    let widens = [Violation::PathOutsideScope, Violation::PathForbidden, Violation::ProtectedPath];
    widens.contains(&refused.why) && !is_gits
}

/// The seal's judgement of changes that are not there yet.
fn judge(ground: &Ground, listed: &[Change], all: impl FnOnce() -> Result<Vec<PathBuf>>) -> Result<Vec<Refused>> {
    let mut refused = changes::refused(&ground.hold.job.spec, &ground.folder, listed, all)?;
    // In the place of a submodule's files nothing can be sealed.
    let in_submodule = |path: &Path| {
        path.ancestors()
            .skip(1)
            .filter(|folder| !folder.as_os_str().is_empty())
            .any(|folder| ground.folder.join(folder).join(".git").symlink_metadata().is_ok())
    };
    let inside = listed.iter().filter(|change| in_submodule(&change.path));
    refused.extend(inside.map(|change| Refused { path: change.path.clone(), why: Violation::SubmoduleRefused }));
    Ok(refused)
}

/// The first change that nothing lets pass, else whether an escape is needed.
fn needs_escape(refused: &[Refused]) -> Result<bool> {
    match refused.iter().find(|one| !is_openable(one)) {
        Some(hard) => Err(violated(hard)),
        None => Ok(!refused.is_empty()),
    }
}

/// A path as events name it.
fn told(path: &Path) -> String {
    shown(path)
}
