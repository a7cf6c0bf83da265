//! `scope-check`: what the seal would say to a job's change, now.
//!
//! It changes nothing: not the tree, not its indexes, not the store. Outside every work tree there is no scope, and it
//! says so.

pub mod here;
pub mod judge;

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::frozen::TreeKind;
use crate::error::{Next, Result};
use crate::store::Connection;
use crate::verbs::Ctx;
use crate::verbs::run::find;
pub use here::Here;
pub use judge::{Committing, Judged};

/// A path in a document: text, or its bytes where it is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name {
    /// UTF-8.
    Text(String),
    /// Anything else.
    Bytes(Vec<u8>),
}

impl Name {
    /// The name of a path.
    pub fn of(path: impl AsRef<OsStr>) -> Name {
        let path = path.as_ref();
        path.to_str().map_or_else(|| Name::Bytes(path.as_bytes().to_vec()), |text| Name::Text(text.to_owned()))
    }

    /// The path.
    pub fn path(&self) -> PathBuf {
        match self {
            Name::Text(text) => PathBuf::from(text),
            Name::Bytes(bytes) => PathBuf::from(std::ffi::OsString::from_vec(bytes.clone())),
        }
    }
}

/// What `scope-check` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScopeRequest {
    /// Where the caller stands.
    pub folder: Name,
    /// Whose scope; that of the tree around the folder when none is named.
    pub job: Option<String>,
    /// Its run.
    pub run: Option<String>,
    /// Paths to judge by their names; everything in the tree when there are none.
    pub paths: Vec<Name>,
    /// Only what is staged.
    pub staged: bool,
    /// The index that is about to be committed, as the environment says; absolute.
    pub index: Option<Name>,
    /// The repository that the environment speaks of; absolute.
    pub git_dir: Option<Name>,
}

/// What `scope-check` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ScopeReport {
    /// The run; none where there is no scope.
    pub run: Option<String>,
    /// The job.
    pub job: Option<String>,
    /// Which try.
    pub attempt: Option<u32>,
    /// What it may change.
    pub writes: Vec<String>,
    /// What it may not, though it may.
    pub forbids: Vec<String>,
    /// How many changes or paths were looked at.
    pub judged: usize,
    /// What the seal would refuse.
    pub violations: Vec<ViolationLine>,
    /// One line.
    pub message: String,
    /// The ways out.
    pub next: Vec<Next>,
}

/// A path that would be refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ViolationLine {
    /// Why, as one word.
    pub word: String,
    /// The path, quoted where it is odd.
    pub path: String,
}

/// Judges the change of the tree in which the caller stands, or of a job.
pub fn check(ctx: &Ctx, request: &ScopeRequest) -> Result<ScopeReport> {
    if !ctx.has_store() {
        return Ok(no_scope("there is no scope here: no store"));
    }
    let folder = request.folder.path();
    let found = ctx.read(|read| meant(ctx, read, request, &folder))?;
    let here = match found {
        Some(here) => here,
        None if request.job.is_some() => return Ok(no_scope("there is no scope here: the job has no work tree now")),
        None => return Ok(no_scope("there is no scope here: this is no job's work tree")),
    };
    let paths: Vec<PathBuf> = request.paths.iter().map(Name::path).collect();
    let judged = if !paths.is_empty() {
        judge::named(&here, &folder, &paths)?
    } else if request.staged {
        let path = |name: &Option<Name>| name.as_ref().map(Name::path);
        let committing = Committing { index: path(&request.index), git_dir: path(&request.git_dir) };
        judge::staged(ctx, &here, &committing)?
    } else {
        judge::everything(ctx, &here)?
    };
    Ok(report(&here, judged))
}

fn meant(ctx: &Ctx, read: &Connection, request: &ScopeRequest, folder: &Path) -> Result<Option<Here>> {
    let Some(job) = request.job.as_deref() else { return here::of_folder(ctx, read, folder) };
    let run = find::for_reading(ctx, read, request.run.as_deref())?;
    here::of_job(ctx, read, &find::job(read, &run, job)?)
}

fn no_scope(message: &str) -> ScopeReport {
    ScopeReport {
        run: None,
        job: None,
        attempt: None,
        writes: Vec::new(),
        forbids: Vec::new(),
        judged: 0,
        violations: Vec::new(),
        message: message.to_owned(),
        next: Vec::new(),
    }
}

fn report(here: &Here, judged: Judged) -> ScopeReport {
    let message = match judged.refused.len() {
        0 if here.tree.kind != TreeKind::Own => format!("{}: a tree to look at; nothing in it is sealed", here.named()),
        0 => format!("{}: in scope ({} looked at)", here.named(), judged.count),
        count => format!("{}: {count} would be refused", here.named()),
    };
    let line = |text: &String| {
        let (word, path) = text.split_once(": ").unwrap_or(("", text));
        ViolationLine { word: word.to_owned(), path: path.to_owned() }
    };
    ScopeReport {
        run: Some(here.run.name.clone()),
        job: Some(here.job.name.clone()),
        attempt: Some(here.tree.attempt),
        writes: here.job.spec.writes.clone(),
        forbids: here.job.spec.forbids.clone(),
        judged: judged.count,
        violations: judged.refused.iter().map(line).collect(),
        message,
        next: if judged.refused.is_empty() { Vec::new() } else { ways_out() },
    }
}

fn ways_out() -> Vec<Next> {
    let ask = [
        "striatum",
        "work",
        "block",
        "--needs-context",
        "--awaiting",
        "a wider scope",
        "--who-can",
        "a person",
        "--action",
        "widen it, or say what else to do",
    ];
    vec![Next::new("session", "when the job can't be done within its scope; else put back what is named above", &ask)]
}
