//! Running a command of a resource: where, with what in its environment, for how long.
//!
//! What a command leaves running is the resource's own, and is ended with it. It runs beside the principal checkout's
//! files and outside of every sandbox, as a verification does.

use std::path::PathBuf;
use std::time::Duration;

use crate::domain::id::SessionId;
use crate::domain::resource::{Part, words};
use crate::error::{Code, Error, Result};
use crate::os::files;
use crate::os::layout::Attempt as Folder;
use crate::os::lock::Lock;
use crate::os::process::{LaneStdin, Launched, Limits, Program};
use crate::store::job::Job;
use crate::store::resource::Resource;
use crate::store::run::Run;
use crate::verbs::Ctx;
use crate::verbs::settle::verify::{Runner, Verified, Waited, run_program};
use crate::verbs::supervise::environment;

/// How long one command may take, in milliseconds.
const LIMIT_MS: u64 = 10 * 60_000;

/// How long whoever wants to run one waits for another that runs, in milliseconds.
const WAIT_MS: u64 = LIMIT_MS + 60_000;

/// How much of a command's last words is told, in bytes.
const TAIL: u64 = 1024;

/// Where what belongs to a resource lies.
pub struct Place {
    folder: Folder,
}

impl Place {
    /// The place of an attempt's resource.
    pub fn of(ctx: &Ctx, session: SessionId, job: &str, attempt: u32) -> Place {
        Place { folder: ctx.layout().scratch(&session.to_string()).attempt(job, attempt) }
    }

    /// The folder for temporary files of its commands: everything that they start carries its name.
    pub fn tmp(&self) -> PathBuf {
        self.folder.folder().join("resource")
    }

    /// The lock of whoever runs its commands.
    pub fn lock_file(&self) -> PathBuf {
        self.folder.folder().join("resource.lock")
    }

    /// What a command says.
    pub fn log(&self, part: Part) -> PathBuf {
        self.folder.folder().join(format!("resource-{part}.log"))
    }

    /// Takes the lock, waiting for whoever runs a command.
    pub fn lock(&self, ctx: &Ctx) -> Result<Lock> {
        files::create_private_dirs(ctx.layout().root(), &self.tmp())?;
        Lock::exclusive_within(&self.lock_file(), WAIT_MS)?
            .ok_or_else(|| Error::new(Code::StillHeld, "somebody else has been making or destroying it for too long"))
    }
}

/// A resource, and whose it is.
pub struct Owned<'a> {
    /// The run.
    pub run: &'a Run,
    /// The job.
    pub job: &'a Job,
    /// Its row.
    pub row: &'a Resource,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ran {
    /// It exited 0.
    Passed,
    /// It did not; why.
    Failed(String),
    /// An order came meanwhile.
    Told(String),
}

impl Ran {
    /// The word in the log of events.
    pub const fn word(&self) -> &'static str {
        match self {
            Ran::Passed => "passed",
            Ran::Failed(_) => "failed",
            Ran::Told(_) => "not_run",
        }
    }
}

/// Runs a command to its end; the caller holds the lock. Whatever keeps it from running is a failure of its.
pub fn run(ctx: &Ctx, owned: &Owned<'_>, part: Part, runner: &mut dyn Runner) -> Result<Ran> {
    let Owned { run, job, row } = *owned;
    let Some(spec) = &job.spec.ephemeral else { return Ok(Ran::Failed("its job has no commands for it".to_owned())) };
    let lookup = |name: &str| match name {
        "resource" => Some(row.name.clone()),
        "run" => Some(run.name.clone()),
        "job" => Some(job.name.clone()),
        "attempt" => Some(row.attempt.to_string()),
        _ => None,
    };
    let argv = match words(part.argv(spec), &lookup) {
        Ok(argv) => argv,
        Err(error) => return Ok(Ran::Failed(error.to_string())),
    };
    let place = Place::of(ctx, row.session, &job.name, row.attempt);
    let log = place.log(part);
    let _ = std::fs::remove_file(&log);
    let program = Program {
        argv: argv.into_iter().map(Into::into).collect(),
        cwd: ctx.layout().project().to_owned(),
        env: environment::for_command(&place.tmp(), Some(&row.name))?,
        stdin: LaneStdin::Null,
        output: log,
        tty: false,
        limits: Limits::default(),
    };
    let ran = run_program(ctx, &program, LIMIT_MS, &mut Apart(runner), &mut |_| Ok(()));
    Ok(match ran.map(|(_, _, verified)| verified) {
        Ok(Verified::Passed) => Ran::Passed,
        Ok(Verified::Failed { .. }) => Ran::Failed(said(&place, part)),
        Ok(Verified::NotRun { why, .. }) => Ran::Failed(why),
        Ok(Verified::Told(why)) => Ran::Told(why),
        Err(error) => Ran::Failed(error.to_string()),
    })
}

/// The last line that a command said.
fn said(place: &Place, part: Part) -> String {
    let tail = files::tail_text(&place.log(part), TAIL).unwrap_or_default();
    match tail.lines().rev().find(|line| !line.trim().is_empty()) {
        Some(line) => format!("it failed: {}", line.trim()),
        None => "it failed without a word".to_owned(),
    }
}

/// Waits as another does, and leaves alone what a command leaves running.
struct Apart<'r>(&'r mut dyn Runner);

impl Runner for Apart<'_> {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        self.0.wait(launched, limit)
    }

    fn spare(&self) -> Vec<i32> {
        self.0.spare()
    }

    fn reaps(&self) -> bool {
        false
    }
}
