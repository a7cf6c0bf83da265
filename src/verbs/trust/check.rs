//! Whether what is about to run was trusted: files when a run is prepared, its snapshot whenever it is driven.
//!
//! Cheap where it is asked often: a driver's turn looks for one file.

use std::path::Path;

use super::ledger::{Grant, Ledger, Subject};
use super::{lines_of, place_of};
use crate::domain::frozen::Snapshot;
use crate::domain::workflow::trusted::{self, FileKind};
use crate::domain::workflow::{Definition, SNAPSHOT_SCHEMA, Source};
use crate::error::{Code, Error, Next, Result};
use crate::store::run::Run;
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::run::files::{Files, Given};

/// How many changed lines a refusal shows.
const SHOWN: usize = 16;

/// How commands came to be trusted, for the record of the snapshot.
const BY_FILES: &str = "its files are trusted";
const BY_HASH: &str = "--trust-hash";

/// Refuses files whose commands nobody has trusted; how they are trusted otherwise.
///
/// # Errors
/// `untrusted`, with the lines that differ from what was trusted last.
pub fn check_files(ctx: &Ctx, files: &Files, definition: &Definition, named: Option<&str>) -> Result<&'static str> {
    let hash = trusted::hash(&trusted::of_definition(definition));
    if let Some(named) = named {
        return if named == hash { Ok(BY_HASH) } else { Err(other_hash(named, &hash)) };
    }
    let ledger = Ledger::of_user();
    let own = [(Some(&files.workflow), FileKind::Workflow), (files.config.as_ref(), FileKind::Config)];
    let mut refused = Vec::new();
    for (given, kind) in own {
        let Some(given) = given else { continue };
        if let Some(lines) = changed(&ledger, given, kind)? {
            refused.push((given, lines));
        }
    }
    if refused.is_empty() { Ok(BY_FILES) } else { Err(refusal(ctx, &refused, &hash)) }
}

/// Refuses the repository's configuration while nobody has trusted its commands.
///
/// # Errors
/// `untrusted`, with the lines that differ from what was trusted last.
pub fn check_config(ctx: &Ctx, path: &Path, source: Source) -> Result<()> {
    let given = Given { path: path.to_owned(), source };
    match changed(&Ledger::of_user(), &given, FileKind::Config)? {
        Some(lines) => Err(refusal(ctx, &[(&given, lines)], "")),
        None => Ok(()),
    }
}

/// The lines that differ from what was trusted, with their sign; none when nothing does.
fn changed(ledger: &Ledger, given: &Given, kind: FileKind) -> Result<Option<Vec<String>>> {
    let lines = lines_of(&given.source, kind)?;
    // What neither runs nor widens anything needs nobody's trust.
    if lines.is_empty() {
        return Ok(None);
    }
    let record = ledger.record(Subject::File(&place_of(&given.path)));
    if record.as_ref().is_some_and(|record| record.hash == trusted::hash(&lines)) {
        return Ok(None);
    }
    Ok(Some(difference(&record.map(|record| record.lines).unwrap_or_default(), &lines)))
}

/// What went and what came: `- line`, `+ line`.
pub fn difference(before: &[String], now: &[String]) -> Vec<String> {
    let gone = before.iter().filter(|line| !now.contains(line)).map(|line| format!("- {line}"));
    gone.chain(now.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"))).collect()
}

fn refusal(ctx: &Ctx, refused: &[(&Given, Vec<String>)], hash: &str) -> Error {
    let names: Vec<&str> = refused.iter().map(|(given, _)| given.source.name.as_str()).collect();
    let mut error =
        Error::new(Code::Untrusted, format!("nobody has trusted what {} would run or open up", names.join(" and ")));
    for (given, lines) in refused {
        error = error.cause(&given.source.name);
        for line in lines.iter().take(SHOWN) {
            error = error.cause(format!("  {line}"));
        }
        if lines.len() > SHOWN {
            error = error.cause(format!("  and {} more lines", lines.len() - SHOWN));
        }
    }
    // What `trust` covers by itself need not be named.
    let is_own = |path: &Path| *path == ctx.layout().config() || path.parent() == Some(&ctx.layout().workflows());
    let paths = refused.iter().map(|(given, _)| given.path.as_path()).filter(|path| !is_own(path));
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let mut trust = vec!["striatum", "trust"];
    trust.extend(paths.iter().map(String::as_str));
    let mut show = trust.clone();
    show.push("--show");
    error
        .hint(format!("where nobody can be asked, as in CI: --trust-hash {hash}"))
        .next(Next::new("anyone", "read every command that would run", &show))
        .next(Next::new("person", "let them run as you", &trust))
}

fn other_hash(named: &str, hash: &str) -> Error {
    Error::new(Code::Untrusted, "--trust-hash is the hash of other commands")
        .cause(format!("given: {named}"))
        .cause(format!("these: {hash}"))
        .hint("read them with `striatum trust --show` before you put the new hash in its place")
}

/// Records that a snapshot's commands may be launched in this store; their hash.
pub fn admit(ctx: &Ctx, snapshot: &Snapshot, how: &str) -> Result<String> {
    let lines = trusted::of_snapshot(snapshot);
    let hash = trusted::hash(&lines);
    let subject = Subject::Snapshot(ctx.layout().root(), &hash);
    let ledger = Ledger::of_user();
    if !lines.is_empty() && !ledger.has(subject) {
        let grant = Grant { at: ctx.clock.now(), principal: &ctx.actor.principal(), how };
        ledger.grant(subject, &hash, &lines, grant)?;
    }
    Ok(hash)
}

/// Whether a run's commands may be launched, by the hash that it bears. One look at the disk.
pub fn may_launch(ctx: &Ctx, run: &Run) -> bool {
    run.trust.as_deref().is_some_and(|hash| is_admitted(ctx, hash))
}

fn is_admitted(ctx: &Ctx, hash: &str) -> bool {
    hash == trusted::hash(&[]) || Ledger::of_user().has(Subject::Snapshot(ctx.layout().root(), hash))
}

/// Checks that a run bears the hash of what it would really launch, before anything is launched from it; a hash that
/// the caller names is admitted.
///
/// # Errors
/// `untrusted`: the rows say something else than what was prepared, or the caller named another hash.
pub fn check_run(ctx: &Ctx, run: &Run, named: Option<&str>) -> Result<()> {
    if run.state.is_terminal() {
        return Ok(());
    }
    let snapshot = in_force(ctx, run)?;
    let hash = trusted::hash(&trusted::of_snapshot(&snapshot));
    if let Some(named) = named.filter(|named| *named != hash) {
        // The hash that prepare took, before parameters had values, is as good for what it admitted.
        let is_prepared_by = prepared_by(ctx, run)?.as_deref() == Some(named);
        if !is_prepared_by || run.trust.as_deref() != Some(hash.as_str()) || !is_admitted(ctx, &hash) {
            return Err(other_hash(named, &hash));
        }
    }
    if run.trust.as_deref() != Some(hash.as_str()) {
        return Err(ways(Error::new(Code::Untrusted, format!("what {} would run is not what was prepared", run.name))));
    }
    if named == Some(hash.as_str()) {
        admit(ctx, &snapshot, BY_HASH)?;
    }
    Ok(())
}

/// The hash over the files that a run was prepared from, as prepare told it.
fn prepared_by(ctx: &Ctx, run: &Run) -> Result<Option<String>> {
    let body = ctx.read(|read| Ok(store::event::first_of_run(read, run.id)?))?;
    let body: serde_json::Value = serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default();
    Ok(body.get("trust_hash").and_then(serde_json::Value::as_str).map(str::to_owned))
}

/// A run whose commands nobody trusts here.
pub fn nobody_trusts(run: &Run) -> Error {
    ways(Error::new(Code::Untrusted, format!("nobody has trusted here what {} would run", run.name)))
}

fn ways(error: Error) -> Error {
    error
        .next(Next::new("anyone", "read every command that would run", &["striatum", "trust", "--show"]))
        .next(Next::new("person", "let them run as you", &["striatum", "trust"]))
}

/// What a run would launch, from the rows that helpers read.
pub fn in_force(ctx: &Ctx, run: &Run) -> Result<Snapshot> {
    let jobs = ctx.read(|read| Ok(store::job::specs(read, run.id)?))?;
    Ok(Snapshot { schema: SNAPSHOT_SCHEMA.to_owned(), run: run.spec.clone(), jobs })
}
