//! The machine under the store: disk, permissions, git, the commands of lanes.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Check, Finding};
use crate::domain::frozen::LaneMode;
use crate::domain::workflow::adapters;
use crate::error::{Next, Result};
use crate::os::{files, git, process};
use crate::store;
use crate::verbs::Ctx;

/// Less than this is worth knowing.
const LOW: u64 = 1 << 30;

/// Less than this stops work.
const FULL: u64 = 64 << 20;

/// The oldest git whose `merge-tree` does what is needed (design section 12).
const OLDEST_GIT: (u32, u32) = (2, 40);

/// Everything beside the store and its traces.
pub fn checks(ctx: &Ctx) -> Vec<Check> {
    vec![disk(ctx), permissions(ctx), git_check(ctx), commands(ctx)]
}

fn disk(ctx: &Ctx) -> Check {
    let root = ctx.layout().root();
    let free = match files::free_bytes(root) {
        Ok(free) => free,
        Err(fault) => return Check::not_run("disk", fault.to_string()),
    };
    let note = format!("{} MiB free, on a file system that can hold a store", free >> 20);
    let place = root.display().to_string();
    let finding = |code: &str, what: &str| vec![Finding::new(code, what, place.clone(), None)];
    match free {
        free if free < FULL => Check::found("disk", note, finding("disk_full", "nothing more can be written soon")),
        free if free < LOW => Check::found("disk", note, finding("disk_low", "less than 1 GiB is free")).mild(),
        _ => Check::ok("disk", note),
    }
}

/// Whoever may write the files is not bound by any rule.
fn permissions(ctx: &Ctx) -> Check {
    let layout = ctx.layout();
    let paths: [PathBuf; 6] = [
        layout.root().to_owned(),
        layout.db(),
        layout.config(),
        layout.locks(),
        layout.scratches(),
        layout.artifacts(),
    ];
    let open = |path: &&PathBuf| std::fs::metadata(path).is_ok_and(|about| about.mode() & 0o022 != 0);
    let findings = paths.iter().filter(open).map(|path| {
        let place = path.display().to_string();
        let fix = Next::new("operator", "close it", &["chmod", "go-w", &place]);
        Finding::new("writable_by_others", "others of this machine may write it", place.clone(), Some(fix))
    });
    Check::found("permissions", "only you may write the store", findings.collect())
}

fn git_check(ctx: &Ctx) -> Check {
    if ctx.layout().repository().is_none() {
        return Check::ok("git", "no repository: no isolation, no landing");
    }
    let version = match git::version() {
        Ok(version) => version,
        Err(error) => return Check::not_run("git", error.to_string()),
    };
    let numbers = |text: &str| {
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        Some((parts.next()??, parts.next()??))
    };
    let is_old = numbers(&version).is_none_or(|version| version < OLDEST_GIT);
    let what = format!("2.{} or newer is needed", OLDEST_GIT.1);
    let finding = is_old.then(|| Finding::new("git_old", what, version.clone(), None));
    Check::found("git", version.clone(), finding.into_iter().collect())
}

/// Whether the commands of live runs' lanes are there; without a live run, which known agents are.
fn commands(ctx: &Ctx) -> Check {
    let lanes = match lanes(ctx) {
        Ok(lanes) => lanes,
        Err(error) => return Check::failed("commands", &error),
    };
    let project = ctx.layout().project();
    let installed: Vec<&str> = adapters::NAMES
        .iter()
        .copied()
        .filter(|name| process::find_program(name.as_ref(), project).is_some())
        .collect();
    let agents = if installed.is_empty() { "none".to_owned() } else { installed.join(", ") };
    let missing = lanes.iter().filter(|lane| !is_there(&lane.command, project));
    let findings = missing.map(|lane| {
        let what = format!("lane {} starts {}, which is not there", lane.name, lane.command);
        let fix = Next::new("anyone", "install it, or give its jobs another lane", &["striatum", "lane", "list"]);
        Finding::new("command_missing", what, lane.run.clone(), Some(fix))
    });
    Check::found(
        "commands",
        format!("{} lanes of live runs; known agents here: {agents}", lanes.len()),
        findings.collect(),
    )
}

fn is_there(command: &str, project: &Path) -> bool {
    // What a template names is known only when it is filled in.
    command.contains("${") || process::find_program(command.as_ref(), project).is_some()
}

/// A lane that a live run may start.
struct Lane {
    run: String,
    name: String,
    command: String,
}

/// Live runs looked at.
const RUNS: u32 = 20;

fn lanes(ctx: &Ctx) -> Result<Vec<Lane>> {
    if ctx.store().is_err() {
        return Ok(Vec::new());
    }
    ctx.read(|read| {
        let mut lanes = Vec::new();
        for run in store::run::live(read, RUNS)? {
            let slots = store::job::slots(read, run.id)?;
            for (name, lane) in run.spec.lanes.iter().filter(|(_, lane)| lane.mode != LaneMode::Human) {
                let is_used = slots.iter().any(|(role, named)| match named {
                    Some(named) => named == name,
                    None => {
                        run.spec.roles.get(role).is_some_and(|role| role.lanes.is_empty() || role.lanes.contains(name))
                    }
                });
                if let Some(command) = lane.command.first().filter(|_| is_used) {
                    lanes.push(Lane { run: run.name.clone(), name: name.clone(), command: command.clone() });
                }
            }
        }
        Ok(lanes)
    })
}
