//! Running a command that may run: in the caller's own process, between its intent and its outcome.
//!
//! It does not know how a verb is reached: through the store, or through a helper's socket.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{BeginReport, BeginRequest, Mark, MarkRequest};
use crate::domain::session::ExecutionState;
use crate::error::Result;
use crate::os::files;
use crate::os::process::{LaneStdin, Launched, Limits, Program, become_reaper};
use crate::store::execution::Ending;
use crate::verbs::Ctx;
use crate::verbs::settle::verify::{Runner, Verified, Waited, run_program};
use crate::verbs::supervise::environment;
use crate::verbs::tree::trial::Interruptible;
use crate::verbs::work::hold::Credentials;

/// How much of the output's end is told, in bytes.
const SHOWN: u64 = 64 * 1024;

/// How much a command may write before it is ended, in bytes.
const OUTPUT_LIMIT: u64 = 64 << 20;

/// How the two verbs are reached.
pub trait Desk {
    /// Asks whether the command may start.
    fn begin(&mut self, request: &BeginRequest) -> Result<BeginReport>;

    /// Tells what happened to it.
    fn mark(&mut self, request: &MarkRequest) -> Result<()>;
}

/// What `process run` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessReport {
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// The declared class, `any`, or the decision that let it pass.
    pub class: String,
    /// `passed`, `failed` or `not_run`.
    pub result: String,
    /// Why it was not run to its end.
    pub why: Option<String>,
    /// When it exited by itself.
    pub exit_code: Option<i32>,
    /// When a signal ended it.
    pub signal: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// The end of what it wrote.
    pub output: String,
    /// How much it wrote.
    pub output_bytes: u64,
    /// Hash of that.
    pub output_sha256: String,
    /// `output` is not all of it.
    pub truncated: bool,
    /// sha256 of the NUL-joined words.
    pub argv_sha256: String,
    /// What held it: `kernel (directories)`, or `advisory`.
    pub enforcement: String,
}

/// Runs a command to its end.
pub fn run(ctx: &Ctx, desk: &mut dyn Desk, request: &BeginRequest) -> Result<ProcessReport> {
    let begun = desk.begin(request)?;
    let started_at = Instant::now();
    let ended = execute(ctx, desk, request, &begun);
    let output = Written::of(&begun.output);
    let (state, ending, verified) = match ended {
        Ok(ended) => ended,
        Err(error) => {
            let detail = error.message.clone();
            let ending = Ending { detail: Some(detail), ..Ending::default() };
            finish(desk, &request.who, &begun, (ExecutionState::NotRun, &ending, &output))?;
            return Err(error);
        }
    };
    finish(desk, &request.who, &begun, (state, &ending, &output))?;
    let (result, why) = match verified {
        Verified::Passed => ("passed", None),
        Verified::Failed { .. } => ("failed", None),
        Verified::NotRun { why, .. } => ("not_run", Some(why.lines().next().unwrap_or_default().to_owned())),
        Verified::Told(why) => ("not_run", Some(why)),
    };
    Ok(ProcessReport {
        job: begun.job,
        attempt: begun.attempt,
        class: begun.class,
        result: result.to_owned(),
        why,
        exit_code: ending.exit_code,
        signal: ending.signal,
        duration_ms: u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX),
        truncated: output.bytes > SHOWN,
        output: output.tail,
        output_bytes: output.bytes,
        output_sha256: output.sha256,
        argv_sha256: begun.argv_sha256,
        enforcement: held(begun.writable.as_ref()).to_owned(),
    })
}

fn held(writable: Option<&Vec<PathBuf>>) -> &'static str {
    use crate::verbs::supervise::confinement::{ADVISORY, KERNEL};
    if writable.is_some() { KERNEL } else { ADVISORY }
}

fn execute(
    ctx: &Ctx,
    desk: &mut dyn Desk,
    request: &BeginRequest,
    begun: &BeginReport,
) -> Result<(ExecutionState, Ending, Verified)> {
    let program = Program {
        argv: request.argv.iter().map(Into::into).collect(),
        cwd: begun.cwd.clone(),
        env: environment::for_process(&begun.tmp, &begun.env)?,
        stdin: LaneStdin::Null,
        output: begun.output.clone(),
        tty: false,
        limits: Limits { writable: begun.writable.clone(), ..Limits::default() },
    };
    // What the command leaves behind comes to this process, which does nothing else, and can be ended.
    become_reaper()?;
    let mut runner = Bounded { output: &begun.output, signals: Interruptible::new()? };
    let mut started = |launched: &Launched| {
        let process = launched.process.identity().clone();
        let mark = Mark::Started { process };
        desk.mark(&MarkRequest { who: request.who.clone(), execution: begun.execution, mark })
    };
    run_program(ctx, &program, request.limit_ms, &mut runner, &mut started)
}

/// The outcome; the output itself goes.
fn finish(
    desk: &mut dyn Desk,
    who: &Credentials,
    begun: &BeginReport,
    (state, ending, output): (ExecutionState, &Ending, &Written),
) -> Result<()> {
    let mark = Mark::Ended {
        state,
        exit_code: ending.exit_code,
        signal: ending.signal,
        output_bytes: i64::try_from(output.bytes).ok(),
        output_sha256: Some(output.sha256.clone()),
        detail: ending.detail.clone(),
    };
    let _ = std::fs::remove_file(&begun.output);
    desk.mark(&MarkRequest { who: who.clone(), execution: begun.execution, mark })
}

/// What a command wrote.
#[derive(Default)]
struct Written {
    tail: String,
    bytes: u64,
    sha256: String,
}

impl Written {
    fn of(output: &Path) -> Written {
        let tail = files::tail_text(output, SHOWN).unwrap_or_default();
        let (sha256, bytes) = files::sha256_of_path(output).unwrap_or_default();
        Written { tail, bytes, sha256 }
    }
}

/// Waits as a foreground command does, and ends what writes without end.
struct Bounded<'a> {
    output: &'a Path,
    signals: Interruptible,
}

impl Runner for Bounded<'_> {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.signals.wait(launched, left.min(Duration::from_millis(200))) {
                Waited::TooLong if left.is_zero() => return Waited::TooLong,
                Waited::TooLong => {}
                over => return over,
            }
            if std::fs::metadata(self.output).is_ok_and(|found| found.size() > OUTPUT_LIMIT) {
                return Waited::Told(format!("it wrote more than {} MiB", OUTPUT_LIMIT >> 20));
            }
        }
    }

    fn spare(&self) -> Vec<i32> {
        self.signals.spare()
    }

    fn reaps(&self) -> bool {
        true
    }
}
