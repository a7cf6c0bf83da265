//! The command line and environment of an agent (design sections 4 and 6).
//!
//! An allow list, the session's own variables, and what the lane names; the token is a file's path, never a value.

use std::ffi::OsString;
use std::path::Path;

use crate::domain::frozen::LaneSpec;
use crate::domain::template;
use crate::error::{Code, Error, Result};
use crate::os::env::{LaneEnvironment, lane_environment};
use crate::os::layout::Attempt as Folder;
use crate::verbs::Ctx;
use crate::verbs::work::hold::Hold;
use crate::verbs::work::layout::Laid;

/// Longest argument the kernel takes with room to spare, in bytes.
const LONGEST_ARGUMENT: usize = 120 * 1024;

/// The agent's argv, templates replaced.
pub fn argv(ctx: &Ctx, hold: &Hold, laid: &Laid, lane: &LaneSpec) -> Result<Vec<OsString>> {
    let prompt = || std::fs::read_to_string(laid.folder.prompt()).ok();
    let show = |path: &Path| Some(path.display().to_string());
    let session = hold.session.id.to_string();
    let scratch = ctx.layout().scratch(&session);
    let lookup = |name: &str| -> Option<String> {
        match name {
            "prompt" => prompt(),
            "prompt_file" => show(&laid.folder.prompt()),
            "packet_file" => show(&laid.folder.packet()),
            "result_file" => show(&laid.folder.result()),
            "inputs" => show(&laid.folder.inputs()),
            "cwd" => show(&laid.folder.work()),
            "scratch" => show(laid.folder.folder()),
            "tmp" => show(&laid.folder.tmp()),
            "run" => Some(hold.run.name.clone()),
            "job" => Some(hold.job.name.clone()),
            "attempt" => Some(hold.lease.attempt.to_string()),
            "session" => Some(session.clone()),
            "role" => Some(hold.session.role.clone()),
            "lane" => Some(hold.session.lane.clone()),
            "model" => Some(lane.model.clone()),
            "budget.cost_left" => Some(cost_left(hold)),
            "striatum" => show(&scratch.bin().join("striatum")),
            _ => name.strip_prefix("params.").and_then(|param| hold.run.spec.params.get(param).cloned()),
        }
    };
    lane.command.iter().map(|word| expand(word, &lookup)).collect()
}

fn expand(word: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<OsString> {
    let expanded = template::expand(word, lookup)
        .map_err(|error| Error::new(Code::InvalidWorkflow, format!("the lane's command can't be filled in: {error}")))?;
    if expanded.len() > LONGEST_ARGUMENT {
        return Err(Error::new(Code::InvalidWorkflow, format!("an argument of {} bytes is too long", expanded.len()))
            .hint("give the prompt on standard input instead: stdin = \"prompt\""));
    }
    Ok(OsString::from(expanded))
}

/// Dollars left of the run's cost budget; a very large number when it has none.
fn cost_left(hold: &Hold) -> String {
    let left = hold.run.spec.budget.cost_micro_usd.map_or(1_000_000_000_000, |budget| {
        i64::try_from(budget).unwrap_or(i64::MAX).saturating_sub(hold.run.cost_micro_usd).max(0)
    });
    format!("{}.{:02}", left / 1_000_000, left % 1_000_000 / 10_000)
}

/// The agent's whole environment.
pub fn for_agent(ctx: &Ctx, hold: &Hold, laid: &Laid, lane: &LaneSpec) -> Result<Vec<(OsString, OsString)>> {
    let session = hold.session.id.to_string();
    let scratch = ctx.layout().scratch(&session);
    let own: [(&str, OsString); 17] = [
        ("DIR", ctx.layout().root().into()),
        ("RUN", hold.run.name.clone().into()),
        ("JOB", hold.job.name.clone().into()),
        ("ATTEMPT", hold.lease.attempt.to_string().into()),
        ("SESSION", session.into()),
        ("ROLE", hold.session.role.clone().into()),
        ("LANE", hold.session.lane.clone().into()),
        ("LEASE", hold.lease.id.to_string().into()),
        ("FENCE", hold.lease.fence.to_string().into()),
        ("TOKEN_FILE", scratch.token().into()),
        ("SOCKET", scratch.socket().into()),
        ("PACKET", laid.folder.packet().into()),
        ("PROMPT", laid.folder.prompt().into()),
        ("RESULT", laid.folder.result().into()),
        ("SCRATCH", laid.folder.folder().into()),
        ("TREE", laid.folder.work().into()),
        ("BIN", scratch.bin().into()),
    ];
    let mut given: Vec<(String, OsString)> =
        own.into_iter().map(|(name, value)| (format!("STRIATUM_{name}"), value)).collect();
    given.push(("TMPDIR".to_owned(), laid.folder.tmp().into()));
    given.push(("PATH".to_owned(), path_with(&scratch.bin())));
    Ok(lane_environment(std::env::vars_os(), LaneEnvironment { named: &lane.env, given: &given })?)
}

/// The search path with this very program first, so that `striatum` means the same in every lane.
fn path_with(bin: &Path) -> OsString {
    let mut path = bin.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    path
}

/// The environment of a verification: the same allow list, nothing of the session.
pub fn for_check(folder: &Folder) -> Result<Vec<(OsString, OsString)>> {
    let given = [("TMPDIR".to_owned(), folder.tmp().into())];
    Ok(lane_environment(std::env::vars_os(), LaneEnvironment { named: &[], given: &given })?)
}
