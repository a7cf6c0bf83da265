//! `status`: what waits for a person first, then how each live run does.

use serde::{Deserialize, Serialize};

use super::inbox::{self, InboxReport};
use super::summary::{BRIEF, RunSummary, of};
use super::{Look, bounded, count, look};
use crate::error::{Next, Result};
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::run::find;

/// Live runs shown.
const RUNS: u32 = 10;

/// Items of the inbox shown.
const ITEMS: u32 = 10;

/// What `status` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatusRequest {
    /// One run; the live ones, else the newest, when left out.
    pub run: Option<String>,
}

/// What `status` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StatusReport {
    /// What waits for a person, newest first.
    pub inbox: InboxReport,
    /// The live runs, newest first; the newest run when none is live.
    pub runs: Vec<RunSummary>,
    /// How many live ones are not shown.
    pub runs_left_out: u32,
    /// A person touched the STOP file: nothing is launched.
    pub stop_file: bool,
    /// What holds the rules: `advisory`, or the kernel.
    pub enforcement: String,
    /// The store's folder.
    pub store: String,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Tells how everything does.
pub fn status(ctx: &Ctx, request: &StatusRequest) -> Result<StatusReport> {
    ctx.read(|read| {
        let (mut looks, is_live) = chosen(ctx, read, request.run.as_deref())?;
        let lanes = request.run.is_none();
        let waiting = if is_live { looks.iter().collect::<Vec<_>>() } else { Vec::new() };
        let inbox = inbox::collect(ctx, read, &waiting, lanes, ITEMS)?;
        looks.reverse();
        let total = count(looks.len());
        let runs_left_out = bounded(&mut looks, RUNS, total);
        let runs = looks.iter().map(|look| of(ctx, read, look, BRIEF)).collect::<Result<Vec<_>>>()?;
        let stop_file = ctx.layout().stop().exists();
        Ok(StatusReport {
            next: next(ctx, &runs, stop_file),
            enforcement: enforcement(&runs),
            inbox,
            runs,
            runs_left_out,
            stop_file,
            store: ctx.layout().root().display().to_string(),
        })
    })
}

/// What holds every run that is shown; each tells its own where they differ.
fn enforcement(runs: &[RunSummary]) -> String {
    match runs {
        [] => "advisory".to_owned(),
        [first, rest @ ..] if rest.iter().all(|run| run.enforcement == first.enforcement) => first.enforcement.clone(),
        _ => "see each run".to_owned(),
    }
}

/// The runs to show, oldest first, and whether any of them can wait for a person.
fn chosen(ctx: &Ctx, read: &Connection, name: Option<&str>) -> Result<(Vec<Look>, bool)> {
    if let Some(name) = name {
        return Ok((vec![look(ctx, read, find::named(read, name)?)?], true));
    }
    let live = inbox::live(ctx, read)?;
    if !live.is_empty() {
        return Ok((live, true));
    }
    let newest = store::run::newest(read, 1)?;
    Ok((newest.into_iter().map(|run| look(ctx, read, run)).collect::<Result<_>>()?, false))
}

/// The next steps of the runs, at most three; the inbox has commands of its own.
fn next(ctx: &Ctx, runs: &[RunSummary], stop_file: bool) -> Vec<Next> {
    if runs.is_empty() {
        return vec![Next::new("operator", "start the first run", &["striatum", "run", "go", "-w", "NAME"])];
    }
    let stop = ctx.layout().stop().display().to_string();
    let remove = stop_file.then(|| Next::new("person", "the STOP file keeps everything from going on", &["rm", &stop]));
    remove.into_iter().chain(runs.iter().flat_map(|run| run.next.iter().cloned())).take(3).collect()
}
