//! Where a sandboxed agent may write: the literal folders of its job's scope, what builds need, its own scratch.
//!
//! Finer rules are the seal's. It does not know how the kernel is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::domain::frozen::{JobSpec, LaneMode, LaneSpec, OwnSandbox, RunSpec, Sandbox, TreeKind};
use crate::domain::scope::{Root, writable_roots};
use crate::domain::workflow::adapters;
use crate::error::{Code, Error, Result};
use crate::os::files::{Last, folder_within};
use crate::os::sandbox;
use crate::verbs::Ctx;
use crate::verbs::supervise::environment::Seat;

/// The word for folders that the kernel holds an agent to.
pub const KERNEL: &str = "kernel (directories)";

/// The word for rules that bind only who keeps them.
pub const ADVISORY: &str = "advisory";

/// What holds a lane's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing: the lane asks for none.
    Off,
    /// Nothing, though the lane prefers it: this kernel can't.
    Advisory,
    /// The agent's own sandbox, which nobody here looks at.
    Own,
    /// The kernel: only these paths, and devices.
    Kernel(Vec<PathBuf>),
}

impl Hold {
    /// The word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Hold::Off => "off",
            Hold::Advisory => ADVISORY,
            Hold::Own => "own",
            Hold::Kernel(_) => KERNEL,
        }
    }

    /// The paths, for the start of a process.
    pub fn writable(&self) -> Option<Vec<PathBuf>> {
        match self {
            Hold::Kernel(writable) => Some(writable.clone()),
            Hold::Off | Hold::Advisory | Hold::Own => None,
        }
    }
}

/// What holds the lanes of a run, in few words: for people.
pub fn in_force(run: &RunSpec) -> String {
    let mut held: Vec<(&str, &str)> = Vec::new();
    for (name, lane) in run.lanes.iter().filter(|(_, lane)| lane.mode != LaneMode::Human) {
        held.push((name, kind(lane).word()));
    }
    let first = held.first().map_or(ADVISORY, |(_, word)| plain(word));
    if held.iter().all(|(_, word)| plain(word) == first) {
        return first.to_owned();
    }
    let each: Vec<String> = held.iter().map(|(name, word)| format!("{name}: {}", plain(word))).collect();
    each.join(", ")
}

/// What holds a lane, in a word.
pub fn word_of(lane: &LaneSpec) -> &'static str {
    if lane.mode == LaneMode::Human { ADVISORY } else { plain(kind(lane).word()) }
}

fn plain(word: &'static str) -> &'static str {
    if word == "off" { ADVISORY } else { word }
}

/// What holds a lane, its paths left out.
fn kind(lane: &LaneSpec) -> Hold {
    match (lane.sandbox, lane.own_sandbox) {
        (Sandbox::Off, _) => Hold::Off,
        (_, OwnSandbox::Instead) => Hold::Own,
        (Sandbox::Scope | Sandbox::PreferScope, _) if sandbox::is_supported() => Hold::Kernel(Vec::new()),
        (Sandbox::Scope | Sandbox::PreferScope, _) => Hold::Advisory,
    }
}

/// What is to hold an agent that is about to start.
///
/// # Errors
/// The lane demands the kernel, and it can't; or a folder of the scope could not be made.
pub fn of(ctx: &Ctx, seat: &Seat<'_>, lane: &LaneSpec) -> Result<Hold> {
    match kind(lane) {
        Hold::Kernel(_) => Ok(Hold::Kernel(paths(ctx, seat, lane)?)),
        Hold::Advisory if lane.sandbox == Sandbox::Scope => Err(cannot(&seat.session.lane)),
        other => Ok(other),
    }
}

/// The agent's command line: its own sandbox is switched off where ours holds it, since one can't stand in the other.
pub fn inside(held: &Hold, lane: &LaneSpec, argv: Vec<OsString>) -> Vec<OsString> {
    let words = adapters::find(&lane.adapter).and_then(|adapter| adapter.own_sandbox);
    match (held, lane.own_sandbox, words) {
        (Hold::Kernel(_), OwnSandbox::OffInside, Some((on, off))) => {
            argv.into_iter().map(|word| if word == on { OsString::from(off) } else { word }).collect()
        }
        _ => argv,
    }
}

/// The refusal where the kernel can't.
pub fn cannot(lane: &str) -> Error {
    let message =
        format!("lane {lane} asks for sandbox = \"scope\", and this kernel can't hold a process to its folders");
    Error::new(Code::Sandbox, message).hint("it takes Landlock ABI 3 (Linux 6.2); `prefer-scope` goes on without")
}

fn paths(ctx: &Ctx, seat: &Seat<'_>, lane: &LaneSpec) -> Result<Vec<PathBuf>> {
    let mut paths = vec![seat.folder.folder().to_owned()];
    match seat.work {
        Some(hold) => paths.extend(in_tree(seat.cwd, &hold.job.spec, &seat.run.spec, lane)?),
        // It works in one tree after the other; which ones is not known yet.
        None => paths.push(ctx.layout().worktrees(&seat.run.name)),
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let state =
        adapters::find(&lane.adapter).map_or(&[][..], |adapter| adapter.state).iter().map(|path| (*path).to_owned());
    paths.extend(
        state.chain(lane.write_paths.iter().flat_map(|path| adapters::folders_of(path))).map(|path| at(&home, &path)),
    );
    Ok(paths)
}

/// A path that may begin at home.
pub fn below_home(path: &str) -> PathBuf {
    at(&std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default(), path)
}

fn at(home: &Path, path: &str) -> PathBuf {
    path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |below| home.join(below))
}

/// The folders of a job's tree.
fn in_tree(tree: &Path, job: &JobSpec, run: &RunSpec, lane: &LaneSpec) -> Result<Vec<PathBuf>> {
    if job.tree == TreeKind::None {
        return Ok(vec![tree.to_owned()]);
    }
    let mut roots = writable_roots(&job.writes);
    let folders = lane.build_dirs.iter().chain(&run.tree.cache);
    roots.extend(folders.map(|folder| Root { path: folder.trim_end_matches('/').to_owned(), is_folder: true }));
    let files = job.produces.iter().filter_map(|produce| produce.path.as_ref());
    roots.extend(files.map(|path| Root { path: path.clone(), is_folder: false }));
    let mut paths = Vec::new();
    for root in roots {
        let last = if root.is_folder { Last::Folder } else { Last::Either };
        paths.extend(folder_within(tree, Path::new(&root.path), last)?);
    }
    Ok(paths)
}
