//! `trust`: a person lets the commands run that a repository's files name.
//!
//! Config and workflows come with a repository that somebody else may have made. Until a person trusts what in them
//! runs something or lets something reach further, it is inert. Scripts that a command names are not covered.

mod check;
mod ledger;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

pub use check::{admit, check_config, check_files, check_run, may_launch, nobody_trusts};

use crate::domain::event::EventType;
use crate::domain::workflow::Source;
use crate::domain::workflow::trusted::{self, FileKind};
use crate::error::{Code, Error, Next, Result};
use crate::os::layout::CONFIG;
use crate::store::event::About;
use crate::store::run::Run;
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::run::files::{invalid, shown};
use ledger::{Grant, Ledger, Subject};

/// How many live runs are looked at.
const RUNS: u32 = 50;

/// What `trust` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TrustRequest {
    /// Files, absolute; config.toml, all of workflows/ and what live runs were prepared from when there are none.
    pub files: Vec<PathBuf>,
}

/// What `trust --show` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShowRequest {
    /// As with `trust`.
    pub files: Vec<PathBuf>,
}

/// How a file or run stood before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// It is trusted as it is.
    Trusted,
    /// Something else of it was trusted.
    Changed,
    /// Nothing of it was.
    New,
    /// It neither runs nor widens anything.
    Nothing,
    /// It can't be read.
    Unreadable,
}

/// A file or a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trusted {
    /// Its name.
    pub name: String,
    /// How it stood.
    pub standing: Standing,
    /// Hash over the lines.
    pub hash: String,
    /// Everything of it that runs or widens.
    pub lines: Vec<String>,
    /// What differs from what was trusted before: `- line`, `+ line`.
    pub changed: Vec<String>,
    /// Why it can't be read.
    pub fault: Option<String>,
}

/// What `trust` and `trust --show` tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TrustReport {
    /// The files.
    pub files: Vec<Trusted>,
    /// Live runs whose snapshot is not trusted otherwise.
    pub runs: Vec<Trusted>,
    /// It is trusted now, by this call.
    pub granted: bool,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Shows every command that would run.
pub fn show(ctx: &Ctx, request: &ShowRequest) -> Result<TrustReport> {
    let seen = look(ctx, &request.files)?;
    let report = seen.report(false);
    let is_open = report.files.iter().chain(&report.runs).any(|one| is_open(one.standing));
    let next = Next::new("person", "let them run as you", &words(&request.files));
    Ok(TrustReport { next: is_open.then_some(next).into_iter().collect(), ..report })
}

/// Trusts what the files say now.
pub fn trust(ctx: &Ctx, request: &TrustRequest) -> Result<TrustReport> {
    let how = ctx.person()?;
    let seen = look(ctx, &request.files)?;
    let principal = ctx.actor.principal();
    let grant = Grant { at: ctx.clock.now(), principal: &principal, how };
    let ledger = Ledger::of_user();
    for (path, file) in seen.files.iter().filter(|(_, file)| is_open(file.standing)) {
        ledger.grant(Subject::File(path), &file.hash, &file.lines, grant)?;
    }
    for (_, run) in seen.runs.iter().filter(|(_, run)| is_open(run.standing)) {
        ledger.grant(Subject::Snapshot(ctx.layout().root(), &run.hash), &run.hash, &run.lines, grant)?;
    }
    tell(ctx, &seen, how)?;
    Ok(seen.report(true))
}

fn words(files: &[PathBuf]) -> Vec<String> {
    let files = files.iter().map(|file| file.display().to_string());
    ["striatum", "trust"].into_iter().map(str::to_owned).chain(files).collect()
}

fn is_open(standing: Standing) -> bool {
    matches!(standing, Standing::Changed | Standing::New)
}

/// Everything that a call is about.
struct Seen {
    files: Vec<(PathBuf, Trusted)>,
    runs: Vec<(Run, Trusted)>,
}

impl Seen {
    fn report(&self, granted: bool) -> TrustReport {
        TrustReport {
            files: self.files.iter().map(|(_, file)| file.clone()).collect(),
            runs: self.runs.iter().map(|(_, run)| run.clone()).collect(),
            granted,
            next: Vec::new(),
        }
    }
}

fn look(ctx: &Ctx, named: &[PathBuf]) -> Result<Seen> {
    let ledger = Ledger::of_user();
    let paths = if named.is_empty() { own_files(ctx) } else { named.to_vec() };
    if named.is_empty() && !ctx.has_store() && !ctx.layout().root().exists() {
        return Err(crate::verbs::ctx::no_store(ctx.layout().project()));
    }
    let mut files = Vec::new();
    for path in paths {
        let file = look_at(ctx, &ledger, &path)?;
        // What was named must be readable; of all the others, one that is broken is no reason to trust none.
        if let Some(fault) = file.fault.as_ref().filter(|_| !named.is_empty()) {
            return Err(Error::new(
                Code::InvalidWorkflow,
                format!("nobody can trust what can't be read: {}", file.name),
            )
            .cause(fault));
        }
        files.push((place_of(&path), file));
    }
    let runs = if named.is_empty() { live_runs(ctx)? } else { Vec::new() };
    Ok(Seen { files, runs })
}

/// config.toml and every workflow.
fn own_files(ctx: &Ctx) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(ctx.layout().workflows()).into_iter().flatten().flatten();
    let is_workflow = |path: &PathBuf| path.extension().is_some_and(|word| word == "toml" || word == "json");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_workflow).collect();
    files.sort();
    let config = Some(ctx.layout().config()).filter(|path| path.exists());
    config.into_iter().chain(files).collect()
}

fn look_at(ctx: &Ctx, ledger: &Ledger, path: &Path) -> Result<Trusted> {
    let name = shown(ctx, path);
    let kind = if path.file_name().is_some_and(|file| file == CONFIG) { FileKind::Config } else { FileKind::Workflow };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::new(Code::NotFound, format!("{name} can't be read")).cause(error))?;
    match lines_of(&Source { name: name.clone(), text }, kind) {
        Ok(lines) => {
            let record = ledger.record(Subject::File(&place_of(path)));
            Ok(compared(name, lines, record.map(|record| record.lines)))
        }
        Err(error) => Ok(Trusted {
            name,
            standing: Standing::Unreadable,
            hash: String::new(),
            lines: Vec::new(),
            changed: Vec::new(),
            fault: error.causes.first().cloned(),
        }),
    }
}

fn compared(name: String, lines: Vec<String>, before: Option<Vec<String>>) -> Trusted {
    let standing = match &before {
        _ if lines.is_empty() => Standing::Nothing,
        Some(before) if *before == lines => Standing::Trusted,
        Some(_) => Standing::Changed,
        None => Standing::New,
    };
    let changed = check::difference(&before.unwrap_or_default(), &lines);
    Trusted { name, standing, hash: trusted::hash(&lines), lines, changed, fault: None }
}

/// Live runs whose commands may not be launched as things are.
fn live_runs(ctx: &Ctx) -> Result<Vec<(Run, Trusted)>> {
    if !ctx.has_store() {
        return Ok(Vec::new());
    }
    let live = ctx.read(|read| Ok(store::run::live(read, RUNS)?))?;
    let mut open = Vec::new();
    for run in live {
        let lines = trusted::of_snapshot(&check::in_force(ctx, &run)?);
        let is_true = run.trust.as_deref() == Some(trusted::hash(&lines).as_str());
        if !is_true || !may_launch(ctx, &run) {
            open.push((run.clone(), compared(format!("run {}", run.name), lines, None)));
        }
    }
    Ok(open)
}

/// The event wakes drivers that wait for it.
fn tell(ctx: &Ctx, seen: &Seen, how: &str) -> Result<()> {
    if !ctx.has_store() {
        return Ok(());
    }
    let files: Vec<_> = seen
        .files
        .iter()
        .filter(|(_, file)| is_open(file.standing))
        .map(|(path, file)| json!({"file": path, "hash": file.hash}))
        .collect();
    if files.is_empty() && seen.runs.is_empty() {
        return Ok(());
    }
    ctx.write("trust", |tx| {
        if !files.is_empty() {
            store::event::append(tx, EventType::TrustGranted, About::default(), &json!({"files": files, "how": how}))?;
        }
        for (run, trusted) in &seen.runs {
            store::run::set_trust(tx, run.id, &trusted.hash)?;
            let about = About { run: Some(run.id), ..About::default() };
            store::event::append(tx, EventType::TrustGranted, about, &json!({"hash": trusted.hash, "how": how}))?;
        }
        Ok(())
    })
}

/// Trusts a file that this program itself has just written.
///
/// # Errors
/// The file can't be read, or the record not be written.
pub fn grant_written(ctx: &Ctx, path: &Path, verb: &str) -> Result<()> {
    let ledger = Ledger::of_user();
    let file = look_at(ctx, &ledger, path)?;
    if !is_open(file.standing) {
        return Ok(());
    }
    let principal = ctx.actor.principal();
    let grant = Grant { at: ctx.clock.now(), principal: &principal, how: verb };
    ledger.grant(Subject::File(&place_of(path)), &file.hash, &file.lines, grant)
}

/// What of a file runs something or widens something.
fn lines_of(source: &Source, kind: FileKind) -> Result<Vec<String>> {
    trusted::of_file(source, kind).map_err(invalid)
}

/// Where a file really stands: trust goes by that.
fn place_of(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
