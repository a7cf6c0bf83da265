//! The command line and environment of an agent.
//!
//! An allow list, the session's own variables, and what the lane names; the token is a file's path, never a value.

use std::ffi::OsString;
use std::path::Path;

use crate::domain::frozen::LaneSpec;
use crate::domain::template;
use crate::error::{Code, Error, Result};
use crate::os::env::{LaneEnvironment, lane_environment, path_with};
use crate::os::layout::Attempt as Folder;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::verbs::work::hold::Hold;
use crate::verbs::work::layout::Laid;
use crate::verbs::{Ctx, resource};

/// Longest argument the kernel takes with room to spare, in bytes.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// For whom a command is filled in: a session, and the attempt it works on, if there is one already.
pub struct Seat<'a> {
    /// The run.
    pub run: &'a Run,
    /// The session.
    pub session: &'a Session,
    /// Where its files are.
    pub folder: &'a Folder,
    /// Where it works: its tree, or the folder for files.
    pub cwd: &'a Path,
    /// What it holds; none for a resident agent, which takes work itself.
    pub work: Option<&'a Hold>,
}

impl<'a> Seat<'a> {
    /// The seat of a laid-out attempt.
    pub fn of(hold: &'a Hold, laid: &'a Laid) -> Seat<'a> {
        Seat { run: &hold.run, session: &hold.session, folder: &laid.folder, cwd: &laid.cwd, work: Some(hold) }
    }
}

/// The agent's argv, templates replaced.
pub fn argv(ctx: &Ctx, seat: &Seat<'_>, lane: &LaneSpec) -> Result<Vec<OsString>> {
    let folder = seat.folder;
    let prompt = || std::fs::read_to_string(folder.prompt()).ok();
    let show = |path: &Path| Some(path.display().to_string());
    let session = seat.session.id.to_string();
    let word = |of: &dyn Fn(&Hold) -> String| Some(seat.work.map_or_else(String::new, of));
    let scratch = ctx.layout().scratch(&session);
    let resource = seat.work.map(|hold| resource::name(ctx, hold)).transpose()?.flatten();
    let lookup = |name: &str| -> Option<String> {
        match name {
            "prompt" => prompt(),
            "prompt_file" => show(&folder.prompt()),
            "packet_file" => show(&folder.packet()),
            "result_file" => show(&folder.result()),
            "inputs" => show(&folder.inputs()),
            "cwd" => show(seat.cwd),
            "scratch" => show(folder.folder()),
            "tmp" => show(&folder.tmp()),
            "run" => Some(seat.run.name.clone()),
            "job" => word(&|hold| hold.job.name.clone()),
            "attempt" => word(&|hold| hold.lease.attempt.to_string()),
            "session" => Some(session.clone()),
            "role" => Some(seat.session.role.clone()),
            "lane" => Some(seat.session.lane.clone()),
            "model" => Some(lane.model.clone()),
            "resource" => Some(resource.clone().unwrap_or_default()),
            "budget.cost_left" => cost_left(seat.run),
            "striatum" => show(&scratch.bin().join("striatum")),
            _ => name.strip_prefix("params.").and_then(|param| seat.run.spec.params.get(param).cloned()),
        }
    };
    lane.command.iter().map(|word| expand(word, &lookup)).collect()
}

fn expand(word: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<OsString> {
    let expanded = template::expand(word, lookup).map_err(|error| {
        Error::new(Code::InvalidWorkflow, format!("the lane's command can't be filled in: {error}"))
    })?;
    if expanded.len() > LONGEST_ARGUMENT {
        return Err(Error::new(Code::InvalidWorkflow, format!("an argument of {} bytes is too long", expanded.len()))
            .hint("give the prompt on standard input instead: stdin = \"prompt\""));
    }
    Ok(OsString::from(expanded))
}

/// Dollars left of the run's cost budget; none when it has none, which `run prepare` refuses.
fn cost_left(run: &Run) -> Option<String> {
    let left = run.spec.budget.cost_micro_usd?.saturating_sub(run.spending().cost_micro_usd);
    Some(format!("{}.{:02}", left / 1_000_000, left % 1_000_000 / 10_000))
}

/// The agent's whole environment.
pub fn for_agent(ctx: &Ctx, seat: &Seat<'_>, lane: &LaneSpec) -> Result<Vec<(OsString, OsString)>> {
    let session = seat.session.id.to_string();
    let scratch = ctx.layout().scratch(&session);
    let folder = seat.folder;
    let mut given: Vec<(&str, OsString)> = vec![
        ("DIR", ctx.layout().root().into()),
        ("RUN", seat.run.name.clone().into()),
        ("SESSION", session.into()),
        ("ROLE", seat.session.role.clone().into()),
        ("LANE", seat.session.lane.clone().into()),
        ("TOKEN_FILE", scratch.token().into()),
        ("SOCKET", scratch.socket().into()),
        ("PROMPT", folder.prompt().into()),
        ("SCRATCH", folder.folder().into()),
        ("TREE", seat.cwd.into()),
        ("BIN", scratch.bin().into()),
    ];
    if let Some(hold) = seat.work {
        given.extend([
            ("JOB", OsString::from(hold.job.name.clone())),
            ("ATTEMPT", hold.lease.attempt.to_string().into()),
            ("LEASE", hold.lease.id.to_string().into()),
            ("FENCE", hold.lease.fence.to_string().into()),
            ("PACKET", folder.packet().into()),
            ("RESULT", folder.result().into()),
        ]);
    }
    let mut given: Vec<(String, OsString)> =
        given.into_iter().map(|(name, value)| (format!("STRIATUM_{name}"), value)).collect();
    if let Some(name) = seat.work.map(|hold| resource::name(ctx, hold)).transpose()?.flatten() {
        given.push((RESOURCE.to_owned(), name.into()));
    }
    given.push(("TMPDIR".to_owned(), folder.tmp().into()));
    given.push(("PATH".to_owned(), path_with(&scratch.bin())));
    Ok(lane_environment(std::env::vars_os(), LaneEnvironment { named: &lane.env, given: &given })?)
}

/// The environment of a verification: the same allow list, nothing of the session but the name of its resource.
pub fn for_check(ctx: &Ctx, hold: &Hold, folder: &Folder) -> Result<Vec<(OsString, OsString)>> {
    for_command(&folder.tmp(), resource::name(ctx, hold)?.as_deref())
}

/// The environment of a command that is no agent.
pub fn for_command(tmp: &Path, resource: Option<&str>) -> Result<Vec<(OsString, OsString)>> {
    let mut given = vec![("TMPDIR".to_owned(), tmp.into())];
    given.extend(resource.map(|name| (RESOURCE.to_owned(), name.into())));
    Ok(lane_environment(std::env::vars_os(), LaneEnvironment { named: &[], given: &given })?)
}

/// The environment of a command that `process run` runs: the lane's, without anything of the session.
pub fn for_process(tmp: &Path, named: &[String]) -> Result<Vec<(OsString, OsString)>> {
    let given = [("TMPDIR".to_owned(), OsString::from(tmp))];
    Ok(lane_environment(std::env::vars_os(), LaneEnvironment { named, given: &given })?)
}

/// The variable that names what was made for the attempt alone.
const RESOURCE: &str = "STRIATUM_RESOURCE";
