//! Verification: declared commands in the attempt's working directory. Passed, failed, or not run.
//!
//! Exit 0 passed, another exit failed, everything else (missing command, time-out, a signal) is *not run*, which is
//! not passed.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::domain::event::{EventType, sha256_hex};
use crate::domain::session::ExecutionState;
use crate::domain::time::Moment;
use crate::error::Result;
use crate::os::files;
use crate::os::process::{LaneStdin, Launched, Limits, Program, StartError, spawn_command};
use crate::store;
use crate::store::execution::{Ending, NewExecution};
use crate::verbs::flow::tell;
use crate::verbs::supervise::{ending, life};
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, resource};

/// How long one verification command may take when the job has no limit.
pub const LIMIT_MS: u64 = 45 * 60_000;

/// How much of the output's end the next packet shows, in bytes.
const TAIL: u64 = 4096;

/// What a verification came to.
pub enum Verified {
    /// Every command exited 0.
    Passed,
    /// One exited otherwise.
    Failed {
        /// Which.
        command: String,
        /// The end of its output.
        tail: String,
    },
    /// One could not run to its end.
    NotRun {
        /// Which.
        command: String,
        /// Why.
        why: String,
    },
    /// An order came meanwhile.
    Told(String),
}

/// Why a wait for a command is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It ended by itself.
    Ended,
    /// It took too long.
    TooLong,
    /// An order came meanwhile.
    Told(String),
}

/// How a command's end is awaited: a helper goes on obeying its orders meanwhile.
pub trait Runner {
    /// Waits until the process has ended, the limit has passed, or an order came.
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited;

    /// Processes of this one that a command's end must spare.
    fn spare(&self) -> Vec<i32>;

    /// Whether this process is the reaper of what a command leaves behind.
    fn reaps(&self) -> bool;
}

/// Waits and does nothing else.
pub struct Foreground;

impl Runner for Foreground {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        let ended = launched.process.wait_ended(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        if ended { Waited::Ended } else { Waited::TooLong }
    }

    fn spare(&self) -> Vec<i32> {
        Vec::new()
    }

    fn reaps(&self) -> bool {
        false
    }
}

/// Waits as another does, and spares what the attempt's resource consists of, too.
struct Sparing<'r> {
    processes: Vec<i32>,
    runner: &'r mut dyn Runner,
}

impl Runner for Sparing<'_> {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        self.runner.wait(launched, limit)
    }

    fn spare(&self) -> Vec<i32> {
        [self.processes.clone(), self.runner.spare()].concat()
    }

    fn reaps(&self) -> bool {
        self.runner.reaps()
    }
}

/// A command of an attempt that is no agent.
pub struct Command<'a> {
    /// `verify` or `setup`.
    pub kind: &'static str,
    /// Its place among those of its kind.
    pub number: usize,
    /// Program and arguments.
    pub argv: &'a [String],
    /// Where it runs.
    pub cwd: &'a Path,
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// Runs the job's verification commands in order, until one does not pass.
pub fn run_all(ctx: &Ctx, hold: &Hold, cwd: &Path, runner: &mut dyn Runner) -> Result<Verified> {
    let limit_ms = hold.job.spec.timeout_ms.unwrap_or(LIMIT_MS);
    for (number, argv) in hold.job.spec.verify.iter().enumerate() {
        let command = Command { kind: "verify", number, argv, cwd, limit_ms };
        let verified = run_command(ctx, hold, &command, runner)?;
        if !matches!(verified, Verified::Passed) {
            return Ok(verified);
        }
    }
    Ok(Verified::Passed)
}

/// Runs one command to its end and records what it came to.
pub fn run_command(ctx: &Ctx, hold: &Hold, asked: &Command<'_>, runner: &mut dyn Runner) -> Result<Verified> {
    let Command { kind, number, argv, .. } = *asked;
    let folder = super::artifacts::folder(ctx, hold);
    let log = folder.folder().join(format!("{kind}-{number}.log"));
    let _ = std::fs::remove_file(&log);
    let deadline = ctx.clock.moment().after(asked.limit_ms);
    let id = ctx.write(kind, |tx| intend(tx, hold, asked, &deadline))?;
    let program = Program {
        argv: argv.iter().map(Into::into).collect(),
        cwd: asked.cwd.to_owned(),
        env: crate::verbs::supervise::environment::for_check(ctx, hold, &folder)?,
        stdin: LaneStdin::Null,
        output: log,
        tty: false,
        limits: Limits::default(),
    };
    let mut started = |launched: &Launched| ctx.write(&format!("{kind} started"), |tx| life::started(tx, id, launched));
    let runner = &mut Sparing { processes: resource::processes(ctx, hold), runner };
    let (state, ending, verified) = run_program(ctx, &program, asked.limit_ms, runner, &mut started)?;
    ctx.write(&format!("{kind} ended"), |tx| {
        store::execution::ended(tx, id, state, &ending)?;
        let result = match &verified {
            Verified::Passed => "passed",
            Verified::Failed { .. } => "failed",
            Verified::NotRun { .. } | Verified::Told(_) => "not_run",
        };
        let body = json!({"attempt": hold.lease.attempt, "number": number, "result": result, "exit": ending.exit_code});
        if kind == "verify" { tell(tx, EventType::VerifyEnded, &hold.job, &body) } else { Ok(()) }
    })?;
    Ok(verified)
}

/// Runs a command to its end, whoever asked for it; `started` hears of it as soon as it runs.
pub fn run_program(
    ctx: &Ctx,
    program: &Program,
    limit_ms: u64,
    runner: &mut dyn Runner,
    started: &mut dyn FnMut(&Launched) -> Result<()>,
) -> Result<(ExecutionState, Ending, Verified)> {
    let command = program.argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    match spawn_command(&ctx.exe, program) {
        Ok(launched) => {
            crate::os::crash::point("verify.spawned");
            started(&launched)?;
            let waited = runner.wait(&launched, Duration::from_millis(limit_ms));
            ending::end_command(&launched, runner);
            Ok(judge(&launched, waited, command, &program.output))
        }
        Err(StartError::Fault(fault)) => Err(fault.into()),
        Err(error) => {
            let why = error.to_string();
            let ending = Ending { detail: Some(why.clone()), ..Ending::default() };
            Ok((ExecutionState::NotRun, ending, Verified::NotRun { command, why }))
        }
    }
}

fn intend(tx: &store::Writing<'_>, hold: &Hold, asked: &Command<'_>, deadline: &Moment) -> Result<i64> {
    let new = NewExecution {
        job: hold.job.id,
        attempt: hold.lease.attempt,
        session: hold.session.id,
        kind: asked.kind,
        class: None,
        deadline: Some(deadline),
        argv_hash: Some(&sha256_hex(asked.argv.join("\0").as_bytes())),
    };
    Ok(store::execution::insert(tx, &new)?)
}

fn judge(launched: &Launched, waited: Waited, command: String, log: &Path) -> (ExecutionState, Ending, Verified) {
    let exit = launched.process.reap().ok().flatten();
    let bytes = std::fs::metadata(log).map_or(0, |found| found.len());
    let ending = Ending {
        exit_code: exit.and_then(|exit| exit.code),
        signal: exit.and_then(|exit| exit.signal),
        output_bytes: i64::try_from(bytes).ok(),
        output_hash: None,
        detail: None,
    };
    match waited {
        Waited::Ended => {}
        Waited::TooLong => {
            return (
                ExecutionState::TimedOut,
                ending,
                Verified::NotRun { command, why: "it took too long".to_owned() },
            );
        }
        Waited::Told(reason) => return (ExecutionState::Exited, ending, Verified::Told(reason)),
    }
    let tail = || files::tail_text(log, TAIL).unwrap_or_default();
    let verified = match ending.exit_code {
        Some(0) => Verified::Passed,
        Some(127) => Verified::NotRun { command, why: format!("command not found\n{}", tail()) },
        Some(_) => Verified::Failed { command, tail: tail() },
        None => Verified::NotRun { command, why: "a signal ended it".to_owned() },
    };
    (ExecutionState::Exited, ending, verified)
}
