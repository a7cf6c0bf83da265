//! `run check`: what a run would stumble over, before anything is made: programs that are missing, a full disk, and
//! setup and verification of the commit that it would start from, in a work tree that goes again.
//!
//! It says which checks are red before anybody has touched anything. Whether an agent is logged in it can't know.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use serde::{Deserialize, Serialize};

use super::prepare::{PrepareRequest, Proposal, propose};
use crate::domain::frozen::{LaneMode, Snapshot, TreeKind};
use crate::domain::word::word_enum;
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::os::lock::Lock;
use crate::os::process::find_program;
use crate::verbs::Ctx;
use crate::verbs::settle::verify::{LIMIT_MS, Verified};
use crate::verbs::tree::trial::{Interruptible, Place, Trial, Try};

/// Free space below which a run is likely to fail, in bytes.
const LEAST_FREE: u64 = 512 * 1024 * 1024;

/// What `run check` is asked: the run that would be prepared.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CheckRequest {
    /// The run.
    pub prepare: PrepareRequest,
}

word_enum! {
    /// What a check came to.
    CheckResult "check result" {
        /// As it should be.
        Passed "passed",
        /// Red.
        Failed "failed",
        /// It could not run to its end, which is not passed.
        NotRun "not_run",
    }
}

/// One thing that was checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// `lane`, `disk`, `setup` or `verify`.
    pub kind: String,
    /// What.
    pub what: String,
    /// What it came to.
    pub result: CheckResult,
    /// Why, or the end of what a command printed.
    pub detail: String,
}

/// What `run check` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckReport {
    /// The commit that setup and verification ran on; none when nothing had to.
    pub base: Option<String>,
    /// Everything that was checked.
    pub checks: Vec<Check>,
    /// What to do next.
    pub next: Vec<Next>,
}

impl CheckReport {
    /// What is not as it should be.
    pub fn bad(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.result != CheckResult::Passed)
    }

    /// The exit code: something is red, something could not run, or all is well.
    pub fn exit(&self) -> u8 {
        match self.bad().map(|check| check.result).next() {
            None => 0,
            Some(_) if self.bad().any(|check| check.result == CheckResult::Failed) => Code::Findings.kind().exit(),
            Some(_) => Code::NotRun.kind().exit(),
        }
    }
}

/// Checks a run before it is prepared.
///
/// # Errors
/// The workflow is wrong or not trusted, or the repository is in no state to start from.
pub fn check(ctx: &Ctx, request: &CheckRequest) -> Result<CheckReport> {
    let proposal = propose(ctx, &request.prepare)?;
    let mut checks = lanes(ctx, &proposal.snapshot);
    checks.push(disk(ctx)?);
    let commit = proposal.base.as_ref().and_then(|base| base.commit.clone());
    let commands = commands(&proposal.snapshot);
    let base = commit.filter(|_| !commands.is_empty());
    if let Some(commit) = &base {
        checks.extend(on_base(ctx, &proposal, commit, &commands)?);
    }
    let mut report = CheckReport { base, checks, next: Vec::new() };
    if report.exit() == 0 {
        let words = go(&request.prepare);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        report.next.push(Next::new("operator", "prepare, start and drive it", &words));
    }
    Ok(report)
}

/// The command that prepares, starts and drives the same.
fn go(prepare: &PrepareRequest) -> Vec<String> {
    let mut words = ["striatum", "run", "go", "-w", &prepare.workflow].map(str::to_owned).to_vec();
    for (key, value) in &prepare.params {
        words.extend(["--param".to_owned(), format!("{key}={value}")]);
    }
    if let Some(base) = &prepare.base {
        words.extend(["--base".to_owned(), base.clone()]);
    }
    words
}

/// Whether the programs of the lanes that may be used are there.
fn lanes(ctx: &Ctx, snapshot: &Snapshot) -> Vec<Check> {
    let used = super::outlook::used_lanes(snapshot);
    let lanes = snapshot.run.lanes.iter().filter(|(name, _)| used.contains(name.as_str()));
    lanes
        .filter(|(_, lane)| lane.mode != LaneMode::Human)
        .filter_map(|(name, lane)| Some((name, lane.command.first()?)))
        .filter(|(_, program)| !program.contains("${"))
        .map(|(name, program)| {
            let found = find_program(OsStr::new(program), ctx.layout().project());
            let (result, detail) = match found {
                Some(path) => (CheckResult::Passed, path.display().to_string()),
                None => (CheckResult::Failed, format!("{program} is not on the PATH")),
            };
            Check { kind: "lane".to_owned(), what: name.clone(), result, detail }
        })
        .collect()
}

fn disk(ctx: &Ctx) -> Result<Check> {
    let free = files::free_bytes(ctx.layout().root())?;
    let result = if free < LEAST_FREE { CheckResult::Failed } else { CheckResult::Passed };
    let detail = format!("{} MiB free", free / (1024 * 1024));
    Ok(Check { kind: "disk".to_owned(), what: ctx.layout().root().display().to_string(), result, detail })
}

/// A command that must succeed on the base, with its limit.
struct Wanted {
    kind: &'static str,
    argv: Vec<String>,
    limit_ms: u64,
}

/// Setup, then each verification of a job that changes the repository, once.
fn commands(snapshot: &Snapshot) -> Vec<Wanted> {
    let own: Vec<_> = snapshot.jobs.iter().filter(|job| job.tree == TreeKind::Own).collect();
    let limit_ms = snapshot.run.tree.setup_timeout_ms;
    let has_trees = snapshot.jobs.iter().any(|job| job.tree != TreeKind::None);
    let setup = snapshot.run.tree.setup.iter().filter(|_| has_trees);
    let mut wanted: Vec<Wanted> = setup.map(|argv| Wanted { kind: "setup", argv: argv.clone(), limit_ms }).collect();
    let mut seen = BTreeSet::new();
    for job in own {
        let new = job.verify.iter().filter(|argv| seen.insert(argv.as_slice()));
        let limit_ms = job.timeout_ms.unwrap_or(LIMIT_MS);
        wanted.extend(new.map(|argv| Wanted { kind: "verify", argv: argv.clone(), limit_ms }));
    }
    wanted
}

/// Runs the commands in a work tree of the base that goes again.
fn on_base(ctx: &Ctx, proposal: &Proposal, commit: &str, commands: &[Wanted]) -> Result<Vec<Check>> {
    let _alone = Lock::try_exclusive(&ctx.layout().locks().join("check.lock"))?
        .ok_or_else(|| Error::new(Code::StillHeld, "another `run check` of this repository is at work"))?;
    let home = ctx.layout().root().join("worktrees");
    let place = Place { folder: home.join(".check"), logs: home.join(".check.logs") };
    let trial = Trial::make(ctx, place, commit, None)?;
    let checks = run_all(ctx, &trial, proposal, commands);
    trial.clear(false)?;
    checks
}

fn run_all(ctx: &Ctx, trial: &Trial<'_>, proposal: &Proposal, commands: &[Wanted]) -> Result<Vec<Check>> {
    let principal = |name: &str| Ok(Some(ctx.layout().project().join(name)).filter(|folder| folder.is_dir()));
    trial.furnish(&proposal.snapshot.run.tree, principal)?;
    let mut runner = Interruptible::new()?;
    let mut checks = Vec::new();
    for (number, wanted) in commands.iter().enumerate() {
        let what = wanted.argv.join(" ");
        ctx.notice(&format!("{} on the base: {what}", wanted.kind));
        let asked = Try { kind: wanted.kind, number, argv: &wanted.argv, limit_ms: wanted.limit_ms };
        let (result, detail) = match trial.run(&asked, &mut runner)? {
            Verified::Passed => (CheckResult::Passed, String::new()),
            Verified::Failed { tail, .. } => (CheckResult::Failed, tail),
            Verified::NotRun { why, .. } => (CheckResult::NotRun, why),
            Verified::Told(why) => return Err(Error::new(Code::Interrupted, why)),
        };
        let is_over = wanted.kind == "setup" && result != CheckResult::Passed;
        checks.push(Check { kind: wanted.kind.to_owned(), what, result, detail });
        if is_over {
            break;
        }
    }
    Ok(checks)
}
