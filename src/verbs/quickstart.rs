//! `quickstart`: a small new repository in which a reviewed workflow is driven to its end, to look at.
//!
//! It belongs to nobody's repository and to nobody's settings. It does not know how its lines are shown.

mod narrator;
mod place;
mod project;
mod story;

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::{Next, Result};
use crate::os::layout::{Search, discover};
use crate::verbs::ctx::Actor;
use crate::verbs::run::drive::{DriveReport, DriveRequest, Teller, Told, drive};
use crate::verbs::run::prepare::{PrepareRequest, prepare};
use crate::verbs::run::start::{StartRequest, start};
use crate::verbs::{Ctx, trust};
use narrator::Narrator;
pub use story::{AttemptStory, JobStory};

/// The workflow that is driven.
const WORKFLOW: &str = "map";
/// The job whose artifact is the result, and the artifact.
const RESULT: (&str, &str) = ("synthesis", "document");
/// Longest time between two looks of the driver, in milliseconds.
const INTERVAL_MS: u64 = 15_000;

/// What `quickstart` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuickstartRequest {
    /// An empty or missing folder; a new one among the temporary files when left out.
    pub dir: Option<PathBuf>,
    /// This program as a person types it.
    pub program: String,
}

/// What `quickstart` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QuickstartReport {
    /// The new repository.
    pub folder: PathBuf,
    /// The run's name.
    pub run: String,
    /// Where the run ended.
    pub state: String,
    /// Why the driver ended.
    pub reason: String,
    /// Exit code, the run's own.
    pub exit: u8,
    /// From the first file to the last seal, in milliseconds.
    pub took_ms: u64,
    /// Each job with its attempts and what reviews said, in the order of the workflow.
    pub jobs: Vec<JobStory>,
    /// What came out; none when the run did not complete.
    pub result: Option<PathBuf>,
    /// What to look at.
    pub next: Vec<Next>,
}

/// Makes the repository and drives its workflow to the end.
///
/// # Errors
/// The folder is taken or lies in a repository, git is missing, or what the verbs of a run say.
pub fn quickstart(exe: PathBuf, request: &QuickstartRequest, teller: &mut dyn Teller) -> Result<QuickstartReport> {
    let begun = Instant::now();
    let git = project::find_git()?;
    let folder = place::choose(request.dir.as_deref())?;
    project::make(&git, &folder)?;
    teller.tell(&Told::note(format!("made {} with a small project in it", folder.display())));
    let ctx = open(exe, &folder)?;
    let run = begin(&ctx, teller)?;
    let ended = drive_to_end(&ctx, &run, teller)?;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    report(&ctx, request, ended, took_ms)
}

/// The new store, and nobody's settings.
fn open(exe: PathBuf, folder: &std::path::Path) -> Result<Ctx> {
    let found = discover(Search { flag: None, variable: None, cwd: folder })?;
    Ok(Ctx::new(found, Actor::User, exe).without_user_settings().pooled())
}

fn begin(ctx: &Ctx, teller: &mut dyn Teller) -> Result<String> {
    for file in [ctx.layout().config(), ctx.layout().workflows().join(format!("{WORKFLOW}.toml"))] {
        trust::grant_written(ctx, &file, "quickstart")?;
    }
    let prepared = prepare(ctx, &PrepareRequest { workflow: WORKFLOW.to_owned(), ..PrepareRequest::default() })?;
    teller.tell(&Told::note(format!("prepared {}: {} jobs", prepared.run, prepared.jobs)));
    start(ctx, &StartRequest { run: Some(prepared.run.clone()) })?;
    teller.tell(&Told::note(format!("started {}", prepared.run)));
    Ok(prepared.run)
}

fn drive_to_end(ctx: &Ctx, run: &str, teller: &mut dyn Teller) -> Result<DriveReport> {
    let request = DriveRequest {
        run: Some(run.to_owned()),
        interval_ms: INTERVAL_MS,
        once: false,
        dry_run: false,
        exclusive: true,
        wait_human: false,
        stop_lanes: false,
        trust_hash: None,
    };
    let mut narrator = Narrator::new(ctx, teller)?;
    let ended = drive(ctx, &request, &mut narrator)?;
    narrator.catch_up();
    Ok(ended)
}

fn report(ctx: &Ctx, request: &QuickstartRequest, ended: DriveReport, took_ms: u64) -> Result<QuickstartReport> {
    let (jobs, artifact) = ctx.read(|read| story::read(read, &ended.run, RESULT))?;
    let result = artifact.map(|sha256| ctx.layout().artifact(&sha256));
    let folder = ctx.layout().project().to_owned();
    let next = if ended.exit == 0 { looks() } else { ended.next };
    let next = next.into_iter().map(|next| from_anywhere(next, &request.program, ctx)).collect();
    Ok(QuickstartReport {
        folder,
        run: ended.run,
        state: ended.state,
        reason: ended.reason,
        exit: ended.exit,
        took_ms,
        jobs,
        result,
        next,
    })
}

/// What to look at when it went as it should.
fn looks() -> Vec<Next> {
    let look = |why: &str, words: &[&str]| Next::new("anyone", why, &[&["striatum"], words].concat());
    vec![
        look("where every job is", &["status"]),
        look("the draft's attempts, with what the reviews found", &["job", "show", "draft"]),
        look("what the author's last attempt printed", &["logs", "draft"]),
    ]
}

/// The same command as it works from anywhere.
fn from_anywhere(next: Next, program: &str, ctx: &Ctx) -> Next {
    let root = ctx.layout().root().display().to_string();
    let argv =
        [program.to_owned(), "--dir".to_owned(), root].into_iter().chain(next.argv.into_iter().skip(1)).collect();
    Next { argv, ..next }
}
