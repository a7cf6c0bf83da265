//! `process run`: a declared command of a job, with evidence of what it came to.
//!
//! Whoever asks runs the command (an agent inside its sandbox, an operator's verb in one of the same kind); what may run
//! and what came of it is judged and kept here, before and after. No output is kept, only its size and hash.

pub mod run;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::domain::escape::Surface;
use crate::domain::event::sha256_hex;
use crate::domain::frozen::{JobSpec, LaneSpec, Sandbox};
use crate::domain::session::ExecutionState;
use crate::error::{Code, Error, Result};
use crate::os::process::Identity;
use crate::store;
use crate::store::execution::{Ending, NewExecution};
use crate::verbs::escape::{self, Asked};
use crate::verbs::settle::artifacts;
use crate::verbs::supervise::confinement;
use crate::verbs::supervise::environment::Seat;
use crate::verbs::work::claim;
use crate::verbs::work::hold::{self, Credentials, Hold};
use crate::verbs::{Ctx, tree};

/// How long a command may take when nobody says, and at most; in milliseconds.
pub const LIMIT_MS: u64 = 300_000;
/// The longest limit.
pub const LONGEST_MS: u64 = 1_800_000;

/// How many commands one attempt may run.
const MOST: u32 = 1_000;

/// What is asked before a command starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginRequest {
    /// Who asks.
    pub who: Credentials,
    /// Program and arguments; no shell reads them.
    pub argv: Vec<String>,
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// What may start, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BeginReport {
    /// The intent.
    pub execution: i64,
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// The declared class, `any`, or the decision that lets it pass.
    pub class: String,
    /// sha256 of the NUL-joined words.
    pub argv_sha256: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its folder for temporary files.
    pub tmp: PathBuf,
    /// Where its output goes until it is over.
    pub output: PathBuf,
    /// Names of variables that pass through.
    pub env: Vec<String>,
    /// Where the kernel lets it write; none means that nothing holds it beside what holds its caller.
    pub writable: Option<Vec<PathBuf>>,
}

/// Lets a command start, or refuses it.
pub fn begin(ctx: &Ctx, request: &BeginRequest) -> Result<BeginReport> {
    check(request)?;
    let hold = ctx.read(|read| hold::hold(ctx, read, &request.who))?;
    let report = place(ctx, &hold, request)?;
    ctx.write("process run", |tx| {
        let hold = hold::hold(ctx, tx, &request.who)?;
        let limit_ms = request.limit_ms + 60_000;
        hold::touch_for(ctx, tx, &hold, limit_ms)?;
        if store::execution::count_commands(tx, hold.job.id, hold.lease.attempt)? >= MOST {
            let text = format!("attempt {} of {} has run {MOST} commands", hold.lease.attempt, hold.job.name);
            return Err(Error::new(Code::TooLarge, text).hint("put them into one script that the job declares"));
        }
        let class = match declared(&hold.job.spec, &request.argv) {
            Some(class) => class.to_owned(),
            None => opened(ctx, tx, &hold, &request.argv)?,
        };
        let deadline = ctx.clock.moment().after(request.limit_ms);
        let execution = store::execution::insert(
            tx,
            &NewExecution {
                job: hold.job.id,
                attempt: hold.lease.attempt,
                session: hold.session.id,
                kind: "process",
                class: Some(&class),
                deadline: Some(&deadline),
                argv_hash: Some(&report.argv_sha256),
            },
        )?;
        let output = report.output.with_file_name(format!("process-{execution}.log"));
        Ok(BeginReport { execution, class, output, ..report })
    })
}

fn check(request: &BeginRequest) -> Result<()> {
    let usage = |text: String| Err(Error::new(Code::Usage, text));
    if request.argv.first().is_none_or(String::is_empty) {
        return usage("name the command behind --".to_owned());
    }
    if request.argv.iter().any(|word| word.contains('\0')) {
        return usage("a word of the command has a NUL byte in it".to_owned());
    }
    if !(1..=LONGEST_MS).contains(&request.limit_ms) {
        return usage(format!("--timeout is at most {} minutes", LONGEST_MS / 60_000));
    }
    Ok(())
}

/// The declared class that a command belongs to: one of its commands is how it begins, word by word.
fn declared<'a>(spec: &'a JobSpec, argv: &[String]) -> Option<&'a str> {
    let begins = |prefix: &Vec<String>| !prefix.is_empty() && argv.starts_with(prefix);
    let class = spec.process.iter().find(|(_, commands)| commands.iter().any(begins));
    class.map(|(name, _)| name.as_str()).or_else(|| spec.process_execution.then_some("any"))
}

/// The decision that lets a command pass that nobody declared.
fn opened(ctx: &Ctx, tx: &store::Writing<'_>, hold: &Hold, argv: &[String]) -> Result<String> {
    let asked = Asked::of(hold, Surface::ProcessRun, argv);
    if let Some(decision) = escape::spend(ctx, tx, &asked)? {
        return Ok(decision.to_string());
    }
    let declared: Vec<String> = hold.job.spec.process.values().flatten().map(|argv| argv.join(" ")).collect();
    let known = if declared.is_empty() { "nothing".to_owned() } else { declared.join(", ") };
    Err(escape::required(format!("{} does not declare this command", hold.job.name), &asked)
        .hint(format!("`process run` may run what begins with: {known}")))
}

/// Where the command runs and what holds it.
fn place(ctx: &Ctx, hold: &Hold, request: &BeginRequest) -> Result<BeginReport> {
    let folder = artifacts::folder(ctx, hold);
    let cwd = tree::place(ctx, &hold.job)?.unwrap_or_else(|| folder.work());
    let lane = lane(hold);
    let seat = Seat { run: &hold.run, session: &hold.session, folder: &folder, cwd: &cwd, work: Some(hold) };
    let held = confinement::of(ctx, &seat, &lane)?;
    Ok(BeginReport {
        execution: 0,
        job: hold.job.name.clone(),
        attempt: hold.lease.attempt,
        class: String::new(),
        argv_sha256: sha256_hex(request.argv.join("\0").as_bytes()),
        tmp: folder.tmp(),
        output: folder.folder().join("process.log"),
        env: lane.env.clone(),
        writable: held.writable(),
        cwd,
    })
}

/// The lane's way to execute; on a constrained surface the kernel holds a command wherever it can.
fn lane(hold: &Hold) -> LaneSpec {
    let lane = hold.run.spec.lanes.get(&hold.session.lane).cloned().unwrap_or_default();
    let is_constrained = hold.run.spec.constrained || hold.session.constrained;
    match lane.sandbox {
        Sandbox::Off if is_constrained => LaneSpec { sandbox: Sandbox::PreferScope, ..lane },
        Sandbox::Off | Sandbox::PreferScope | Sandbox::Scope => lane,
    }
}

/// What is told of a command while it runs and when it is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MarkRequest {
    /// Who ran it.
    pub who: Credentials,
    /// The intent.
    pub execution: i64,
    /// What happened.
    pub mark: Mark,
}

/// What happened to a command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It runs.
    Started {
        /// The process.
        process: Identity,
    },
    /// It is over.
    Ended {
        /// How far it came.
        state: ExecutionState,
        /// When it exited by itself.
        exit_code: Option<i32>,
        /// When a signal ended it.
        signal: Option<i32>,
        /// What it wrote.
        output_bytes: Option<i64>,
        /// Hash of that.
        output_sha256: Option<String>,
        /// One line.
        detail: Option<String>,
    },
}

/// What `process_mark` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MarkReport {}

/// Keeps what happened to a command of the caller's own session.
pub fn mark(ctx: &Ctx, request: &MarkRequest) -> Result<MarkReport> {
    ctx.write("process mark", |tx| {
        let session = hold::speaker(ctx, tx, &request.who)?;
        if !store::execution::is_command_of(tx, request.execution, session.id)? {
            return Err(Error::new(Code::NotFound, format!("{} runs no such command", session.id)));
        }
        match &request.mark {
            Mark::Started { process } => {
                let who = (i64::from(process.pid), claim::ticks(process), process.boot.as_str());
                store::execution::started(tx, request.execution, who)?;
            }
            Mark::Ended { state, exit_code, signal, output_bytes, output_sha256, detail } => {
                let ending = Ending {
                    exit_code: *exit_code,
                    signal: *signal,
                    output_bytes: *output_bytes,
                    output_hash: output_sha256.clone(),
                    detail: detail.clone(),
                };
                store::execution::ended(tx, request.execution, *state, &ending)?;
            }
        }
        Ok(MarkReport {})
    })
}
