//! What belongs to the store and lies beside it: locks, processes, scratch folders, artifacts.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::{Check, DoctorRequest, Finding};
use crate::domain::id::SessionId;
use crate::domain::session::SessionState;
use crate::error::{Next, Result};
use crate::os::files;
use crate::os::lock::{Held, probe};
use crate::os::process::{carriers, environment_of, words_of};
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::read::one_line;
use crate::verbs::resource::destroy;

/// Helpers, scratch folders and processes looked at.
const MOST: u32 = 1_000;

/// Artifacts that are hashed when not all are asked for.
const ARTIFACTS: u32 = 200;

/// Bytes of them.
const BYTES: i64 = 256 << 20;

/// Everything beside the database.
pub fn checks(ctx: &Ctx, request: &DoctorRequest) -> Vec<Check> {
    let run = |name: &str, found: Result<Check>| found.unwrap_or_else(|error| Check::failed(name, &error));
    vec![
        run("helpers", helpers(ctx)),
        run("processes", processes(ctx)),
        run("scratch", scratch(ctx)),
        run("artifacts", artifacts(ctx, request)),
        run("resources", resources(ctx)),
    ]
}

/// What was made for attempts that are over is gone.
fn resources(ctx: &Ctx) -> Result<Check> {
    let rows = ctx.read(|read| Ok(store::resource::abandoned(read)?))?;
    let mut findings = Vec::new();
    for row in &rows {
        let (run, job) =
            ctx.read(|read| Ok((store::run::get(read, row.run)?.name, store::job::name(read, row.job)?)))?;
        if destroy::is_at_work(ctx, row, &job)? == Held::Held {
            continue;
        }
        let what = match &row.reason {
            Some(why) => format!("it could not be destroyed: {why}"),
            None => "its attempt is over, and nobody has destroyed it".to_owned(),
        };
        let fix = Next::new("operator", "try to destroy it", &["striatum", "gc", "--yes"]);
        findings.push(Finding::new("resource_left", what, format!("{} of {run}/{job}", row.name), Some(fix)));
    }
    Ok(Check::found("resources", "what was made for an attempt goes with it", findings).mild())
}

/// A helper's row says that it lives; its lock says whether that is so.
fn helpers(ctx: &Ctx) -> Result<Check> {
    let hosted = ctx.read(|read| Ok(store::invariant::hosted(read, MOST)?))?;
    let mut findings = Vec::new();
    for helper in &hosted {
        let scratch = ctx.layout().scratch(&helper.session.to_string());
        if probe(&scratch.helper_lock())? == Held::Held {
            continue;
        }
        // A helper tells its end before it lets go: a row that still says otherwise was left by a dead one.
        if ctx.read(|read| Ok(store::supervisor::active(read, helper.session)?))?.is_none() {
            continue;
        }
        let agent =
            if probe(&scratch.lane_lock())? == Held::Held { "its agent lives on" } else { "its agent is gone too" };
        let what = format!("its helper is {} in the store and dead; {agent}", helper.state);
        let place = format!("{} of {}", helper.session, helper.run);
        let words = ["striatum", "run", "drive", "--run-id", &helper.run];
        let fix = Next::new("operator", "a driver recovers what it held", &words);
        findings.push(Finding::new("helper_dead", what, place, (!helper.run_state.is_terminal()).then_some(fix)));
    }
    Ok(Check::found("helpers", format!("{} should live", hosted.len()), findings))
}

/// Processes that carry a session of this store which is over.
fn processes(ctx: &Ctx) -> Result<Check> {
    let carriers = carriers(&[("STRIATUM_DIR", ctx.layout().root().as_os_str())]);
    let mut findings = Vec::new();
    let mut seen = 0;
    for process in carriers.iter().take(MOST as usize) {
        let environment = environment_of(process.pid);
        let session = environment.iter().find(|(name, _)| name == OsStr::new("STRIATUM_SESSION"));
        let Some(id) = session.and_then(|(_, value)| value.to_str()?.parse::<SessionId>().ok()) else { continue };
        seen += 1;
        let row = ctx.read(|read| Ok(store::session::get(read, id)?))?;
        if row.as_ref().is_some_and(|row| row.state == SessionState::Active) || !process.is_alive() {
            continue;
        }
        let words: Vec<String> = words_of(process.pid).iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let fix = Next::new("operator", "end it", &["kill", &process.pid.to_string()]);
        let what = format!("{} lives on after its session {id}", one_line(&words.join(" "), 80));
        findings.push(Finding::new("process_left", what, format!("pid {}", process.pid), Some(fix)));
    }
    Ok(Check::found("processes", format!("{seen} carry a session of this store"), findings))
}

/// Folders of sessions that the store never had: another store's, or a hand's.
fn scratch(ctx: &Ctx) -> Result<Check> {
    let folder = ctx.layout().scratches();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Check::ok("scratch", "0 folders")),
        Err(error) => return Err(error.into()),
    };
    // Files there are logs of drivers and notices, which belong to no session.
    let folders = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names: BTreeSet<String> =
        folders.take(MOST as usize).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let mut findings = Vec::new();
    for name in &names {
        let known = match name.parse::<SessionId>() {
            Ok(id) => ctx.read(|read| Ok(store::session::get(read, id)?))?.is_some(),
            Err(_) => false,
        };
        if !known {
            let path = folder.join(name).display().to_string();
            let fix = Next::new("operator", "take it away", &["rm", "-r", "--", &path]);
            findings.push(Finding::new(
                "scratch_left",
                "a folder of no session of this store",
                path.clone(),
                Some(fix),
            ));
        }
    }
    Ok(Check::found("scratch", format!("{} folders", names.len()), findings).mild())
}

/// Whether the newest artifacts, or all, are there with the bytes that they were published with.
fn artifacts(ctx: &Ctx, request: &DoctorRequest) -> Result<Check> {
    let most = if request.all { u32::MAX } else { ARTIFACTS };
    let (rows, total) = ctx.read(|read| Ok((store::artifact::newest(read, most)?, store::artifact::count(read)?)))?;
    let (mut looked, mut bytes, mut seen) = (0_u32, 0, BTreeSet::new());
    let mut findings = Vec::new();
    for row in &rows {
        if !request.all && bytes > BYTES {
            break;
        }
        looked += 1;
        if !seen.insert(row.sha256.clone()) {
            continue;
        }
        bytes += row.bytes;
        let path = ctx.layout().artifact(&row.sha256);
        if files::is_intact(&path, &row.sha256) {
            continue;
        }
        let what = if path.exists() { "its bytes are not those that were published" } else { "it is missing" };
        let job = ctx.read(|read| Ok(store::job::get(read, row.job)?.name))?;
        let what = format!("{} of {job}.{}: {what}", row.name, row.attempt);
        let words = ["striatum", "run", "retry-job", &job, "--reason", "'its artifact is damaged'"];
        let fix = Next::new("operator", "make it anew", &words);
        findings.push(Finding::new("artifact_damaged", what, path.display().to_string(), Some(fix)));
    }
    let rest = total.saturating_sub(looked);
    let rest = if rest == 0 { String::new() } else { format!("; {rest} older ones were not hashed (--all)") };
    Ok(Check::found("artifacts", format!("{looked} hashed{rest}"), findings))
}
