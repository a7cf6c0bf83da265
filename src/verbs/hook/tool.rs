//! `hook pre-tool-use`: whether an agent's client may use a tool, judged by paths as the seal will.
//!
//! In a lane everything but a clear yes refuses; elsewhere an error of ours is nobody's obstacle. A shell's command line
//! is not judged: that is the sandbox's and the seal's.

use std::path::{Path, PathBuf};

use super::Said;
use crate::domain::tool_call::{self, Does, ToolCall};
use crate::error::Result;
use crate::verbs::scope_check::{Name, ScopeReport, ScopeRequest};

/// What a lane tells its processes by the environment.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Where this process stands.
    pub cwd: PathBuf,
    /// `STRIATUM_TREE`: the agent's working directory.
    pub tree: Option<PathBuf>,
    /// `STRIATUM_SCRATCH`: the attempt's own folder; of an operator's program its folder for temporary files.
    pub scratch: Option<PathBuf>,
    /// The session is an operator's, and constrained.
    pub is_constrained: bool,
}

/// Judges a tool call that a client announces; `scope` asks what the seal would say, as the caller may ask it.
pub fn pre_tool_use(
    lane: &Lane,
    announced: &[u8],
    scope: &mut dyn FnMut(&ScopeRequest) -> Result<ScopeReport>,
) -> Said {
    if lane.is_constrained {
        return super::bound::pre_tool_use(lane, announced, scope);
    }
    let is_lane = lane.tree.is_some();
    let call = match tool_call::read(announced) {
        Ok(call) => call,
        Err(why) if is_lane => return Said::refuse(format!("striatum: the tool call can't be read: {why}\n")),
        Err(why) => return Said { refuses: false, text: format!("striatum: not checked: {why}\n") },
    };
    let paths = match &call.does {
        Does::Other | Does::Runs(_) => return Said::default(),
        Does::WritesUnknown => None,
        Does::Writes(paths) => Some(paths.as_slice()),
    };
    let folder = call.cwd.as_ref().or(lane.tree.as_ref()).unwrap_or(&lane.cwd);
    let in_tree = paths.unwrap_or_default().iter().filter(|path| !is_scratch(lane, path));
    let request = ScopeRequest {
        folder: Name::of(lane.tree.as_ref().unwrap_or(folder)),
        job: None,
        run: None,
        paths: in_tree.map(|path| Name::of(folder.join(path))).collect(),
        staged: false,
        index: None,
        git_dir: None,
    };
    if request.paths.is_empty() && paths.is_some() {
        return Said::default();
    }
    match scope(&request) {
        Ok(report) if report.job.is_none() && is_lane => outside_a_tree(lane, folder, paths),
        Ok(report) if report.job.is_none() || (report.violations.is_empty() && paths.is_some()) => Said::default(),
        Ok(report) => Said::refuse(refusal(&report, &call, paths.is_some())),
        Err(error) if is_lane => Said::refuse(format!("striatum: the scope of this lane can't be read: {error}\n")),
        Err(error) => Said { refuses: false, text: format!("striatum: not checked: {error}\n") },
    }
}

/// A lane that works in a folder for files: it writes there, and in the attempt's own folder.
fn outside_a_tree(lane: &Lane, folder: &Path, paths: Option<&[PathBuf]>) -> Said {
    let Some(paths) = paths else { return Said::refuse("striatum: this tool does not say what it writes\n") };
    match paths.iter().find(|path| !is_own(lane, &folder.join(path))) {
        Some(path) => {
            let path = path.display();
            Said::refuse(format!("striatum: path_outside_scope: {path}: this job writes in its own folder only\n"))
        }
        None => Said::default(),
    }
}

/// Whether a path lies in the lane's working directory or its attempt's folder, as it is written.
fn is_own(lane: &Lane, path: &Path) -> bool {
    let base = lane.tree.as_ref().unwrap_or(&lane.cwd);
    let whole = plain(&base.join(path));
    let folders = [Some(base), lane.scratch.as_ref()];
    folders.into_iter().flatten().any(|folder| whole.starts_with(plain(folder)))
}

/// The path without `.` and `..`; the part that exists resolved, so that a link is what it leads to.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            other => out.push(other),
        }
        if let Ok(resolved) = out.canonicalize() {
            out = resolved;
        }
    }
    out
}

/// Whether a path lies in the attempt's own folder: answers and notes are written there.
fn is_scratch(lane: &Lane, path: &Path) -> bool {
    path.is_absolute() && lane.scratch.as_ref().is_some_and(|folder| is_below(path, folder))
}

/// Whether a path lies in a folder, links resolved.
pub fn is_below(path: &Path, folder: &Path) -> bool {
    plain(path).starts_with(plain(folder))
}

fn refusal(report: &ScopeReport, call: &ToolCall, is_told: bool) -> String {
    let job = report.job.as_deref().unwrap_or_default();
    if !is_told {
        return format!("striatum: job {job} may not use {}: it does not say what it writes\n", call.tool);
    }
    let scope = if report.writes.is_empty() { "nothing".to_owned() } else { report.writes.join(" ") };
    let mut text = format!("striatum: {} is refused in job {job}:\n", call.tool);
    report.violations.iter().for_each(|line| text.push_str(&format!("  {}: {}\n", line.word, line.path)));
    text.push_str(&format!("its scope: {scope}\n"));
    text.push_str(
        "`striatum scope-check` says what the seal would; if the job can't be done within its scope, say so:\n",
    );
    text.push_str("`striatum work block --needs-context`\n");
    text
}
