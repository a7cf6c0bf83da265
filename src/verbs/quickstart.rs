//! `quickstart`: a small new repository in which a fault is mended, tested, reviewed and revised, until only a person's
//! word is missing.
//!
//! It belongs to nobody's repository and to nobody's settings. It does not know how its lines are shown.

mod narrator;
mod place;
mod project;
mod story;

use std::path::PathBuf;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::error::{Kind, Next, Result};
use crate::os::layout::{Search, discover};
use crate::verbs::ctx::Actor;
use crate::verbs::read::diff::{DiffReport, DiffRequest, diff};
use crate::verbs::run::drive::{DriveReport, DriveRequest, Teller, Told, drive};
use crate::verbs::run::prepare::{PrepareRequest, prepare};
use crate::verbs::run::start::{StartRequest, start};
use crate::verbs::{Ctx, trust};
use narrator::Narrator;
pub use story::{AttemptStory, JobStory};

/// The workflow that is driven.
const WORKFLOW: &str = "fix";
/// The job that changes the repository.
const AUTHOR: &str = "fix";
/// The job that waits for a person.
const LAND: &str = "land";
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
    /// Exit code: 0 when it ended as it should, waiting for a person to land the change.
    pub exit: u8,
    /// From the first file to the last seal, in milliseconds.
    pub took_ms: u64,
    /// Each job with its attempts and what reviews said, in the order of the workflow.
    pub jobs: Vec<JobStory>,
    /// What would land; none when it did not come that far.
    pub change: Option<DiffReport>,
    /// What to look at.
    pub looks: Vec<Next>,
    /// What to do next: the command that lands.
    pub next: Vec<Next>,
}

/// Makes the repository and drives its workflow until a person is needed.
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
    let jobs = ctx.read(|read| story::read(read, &ended.run))?;
    let asked = DiffRequest { run: Some(ended.run.clone()), job: Some(AUTHOR.to_owned()), ..DiffRequest::default() };
    let folder = ctx.layout().project().to_owned();
    let is_well = ended.exit == Kind::WaitingHuman.exit() && ended.waiting.iter().all(|(job, _)| job == LAND);
    let shown = |list: Vec<Next>| -> Vec<Next> {
        list.into_iter().map(|next| from_anywhere(next, &request.program, ctx)).collect()
    };
    Ok(QuickstartReport {
        folder,
        run: ended.run,
        state: ended.state,
        reason: ended.reason,
        exit: if is_well { 0 } else { ended.exit },
        took_ms,
        jobs,
        change: diff(ctx, &asked).ok().filter(|_| is_well),
        looks: shown(looks()),
        next: shown(ended.next.into_iter().take(if is_well { 1 } else { usize::MAX }).collect()),
    })
}

/// What to look at when it went as it should.
fn looks() -> Vec<Next> {
    let look = |why: &str, words: &[&str]| Next::new("anyone", why, &[&["striatum"], words].concat());
    vec![
        look("where every job is", &["status"]),
        look("the author's attempts: what the tests said, what the reviews found", &["job", "show", AUTHOR]),
        look("what would land, and who looked at it", &["gate", "show", LAND]),
    ]
}

/// The same command as it works from anywhere.
fn from_anywhere(next: Next, program: &str, ctx: &Ctx) -> Next {
    let root = ctx.layout().root().display().to_string();
    let argv =
        [program.to_owned(), "--dir".to_owned(), root].into_iter().chain(next.argv.into_iter().skip(1)).collect();
    Next { argv, ..next }
}
