//! `striatum run ...`

use std::collections::BTreeMap;

use clap::{Args, Subcommand};

use super::call::Session;
use super::check;
use super::control::{Amend, Cancel, Which};
use super::drive::Drive;
use super::gate::{landed, onward_text};
use super::go::Go;
use super::output::{Output, next_text};
use super::proposal::{Admit, Dismiss};
use super::summary;
use crate::domain::change::short;
use crate::error::{Code, Error, Result};
use crate::verbs::run::land::LandRequest;
use crate::verbs::run::prepare::{Base, PrepareReport, PrepareRequest};
use crate::verbs::run::retry::{RetryReport, RetryRequest};
use crate::verbs::run::start::StartRequest;

/// Prepare, start, drive and look at runs
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Run {
    /// Prepare, start and drive in one
    Go(Go),
    /// Check what a run would stumble over: programs, disk, setup and verification of its base
    Check(Prepare),
    /// Freeze a workflow into a new run
    Prepare(Prepare),
    /// Enqueue the first jobs of a prepared run
    Start(Start),
    /// Take a started run to done, or to one clear question
    Drive(Drive),
    /// Give failed, canceled or stopped jobs their tries back
    RetryJob(RetryJob),
    /// Put what the run changed onto its target, as approving its land gate does
    Land(Land),
    /// Launch nothing more; lanes finish
    Pause(Which),
    /// Undo pause and stop
    Resume(Which),
    /// End drivers and lanes; resume undoes it
    Stop(Which),
    /// End the run; what it made is kept
    Cancel(Cancel),
    /// Change budgets, limits or a job's lane, time or words, for attempts not yet claimed
    Amend(Amend),
    /// Make a proposal a job of its run; it waits at its gate
    Admit(Admit),
    /// Put a proposal aside; the same is refused from then on
    Dismiss(Dismiss),
    /// List the runs, newest first
    List(summary::List),
    /// Show how a run does
    Summary(summary::Summary),
    /// Draw a run's jobs in the order in which they can run, with their states
    Graph(summary::Graph),
    /// Tell why each job is where it is, and what would move it
    Explain(summary::Explain),
}

impl Run {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Run::Go(go) => go.run(session, output),
            Run::Check(prepare) => check::run(&prepare, session, output),
            Run::Prepare(prepare) => prepare.run(session, output),
            Run::Start(start) => start.run(session, output),
            Run::Drive(drive) => drive.run(session, output),
            Run::RetryJob(retry) => retry.run(session, output),
            Run::Land(land) => land.run(session, output),
            Run::Pause(which) => which.pause(session, output),
            Run::Resume(which) => which.resume(session, output),
            Run::Stop(which) => which.stop(session, output),
            Run::Cancel(cancel) => cancel.run(session, output),
            Run::Amend(amend) => amend.run(session, output),
            Run::Admit(admit) => admit.run(session, output),
            Run::Dismiss(dismiss) => dismiss.run(session, output),
            Run::List(list) => list.run(session, output),
            Run::Summary(summary) => summary.run(session, output),
            Run::Graph(graph) => graph.run(session, output),
            Run::Explain(explain) => explain.run(session, output),
        }
    }
}

/// Which workflow, with which parameters.
#[derive(Args)]
pub struct Prepare {
    /// A name in .striatum/workflows, or a path with `/` or `.toml`
    #[arg(short, long, value_name = "NAME or PATH")]
    workflow: String,
    /// A parameter (can be repeated)
    #[arg(long = "param", value_name = "KEY=VALUE")]
    params: Vec<String>,
    /// The parameter `task`
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Commands with this hash may run though nobody trusted them here (for CI)
    #[arg(long, value_name = "sha256:..")]
    trust_hash: Option<String>,
    /// The operator acts only through mediated verbs, whatever the workflow says
    #[arg(long)]
    constrained: bool,
    /// Start from this commit, branch or tag instead of what is checked out
    #[arg(long, value_name = "REV")]
    base: Option<String>,
}

impl Prepare {
    /// What was typed, as a request.
    pub fn request(&self) -> Result<PrepareRequest> {
        let mut params = BTreeMap::new();
        for param in &self.params {
            let (key, value) = param
                .split_once('=')
                .ok_or_else(|| Error::new(Code::Usage, format!("--param {param}: write it as KEY=VALUE")))?;
            params.insert(key.to_owned(), value.to_owned());
        }
        if let Some(task) = &self.task {
            params.insert("task".to_owned(), task.clone());
        }
        Ok(PrepareRequest {
            workflow: self.workflow.clone(),
            params,
            trust_hash: self.trust_hash.clone(),
            constrained: self.constrained,
            base: self.base.clone(),
        })
    }

    fn run(&self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&self.request()?)?;
        output.report(&report, prepared);
        Ok(0)
    }
}

/// A prepared run for people.
pub fn prepared(report: &PrepareReport) -> String {
    let jobs = if report.jobs == 1 { "job" } else { "jobs" };
    let mut text = format!("prepared {} ({} {jobs}, {})\n", report.run, report.jobs, report.snapshot);
    for warning in &report.warnings {
        text.push_str(&format!("{warning}\n"));
    }
    text.push_str(&report.base.as_ref().map(base_text).unwrap_or_default());
    for command in report.commands.iter().take(COMMANDS) {
        text.push_str(&format!("runs {}\n", cut(command)));
    }
    if report.commands.len() > COMMANDS {
        let more = report.commands.len() - COMMANDS;
        text.push_str(&format!("runs {more} more; `striatum trust --show` tells all\n"));
    }
    let count = report.needed.len();
    let times = if count == 1 { "time" } else { "times" };
    let named = report.needed.iter().take(NEEDS).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if count > NEEDS { ", .." } else { "" };
    let what = if count == 0 { String::new() } else { format!(" ({named}{more})") };
    text.push_str(&format!("you will be needed: {count} {times}{what}\n"));
    text.push_str(&next_text(&report.next));
    text
}

/// How many commands are shown.
const COMMANDS: usize = 20;

/// How many of a person's turns are named.
const NEEDS: usize = 8;

/// How much of a command is shown; `trust --show` shows all of it.
const COMMAND_LETTERS: usize = 160;

fn cut(command: &str) -> String {
    match command.char_indices().nth(COMMAND_LETTERS) {
        Some((at, _)) => format!("{}...", &command[..at]),
        None => command.to_owned(),
    }
}

fn base_text(base: &Base) -> String {
    let commit = base.commit.as_deref().map_or("no commit yet", short);
    match base.uncommitted {
        None | Some(0) => format!("base {commit}\n"),
        Some(1) => format!("base {commit}; 1 uncommitted change is not part of the run\n"),
        Some(count) => format!("base {commit}; {count} uncommitted changes are not part of the run\n"),
    }
}

/// Which run.
#[derive(Args)]
pub struct Start {
    /// The run; the only live one when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Start {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&StartRequest { run: self.run_id })?;
        output.report(&report, |report| {
            let word = if report.already { "was started before" } else { "started" };
            let warnings: String = report.warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
            format!("{} {word}\n{warnings}{}", report.run, next_text(&report.next))
        });
        Ok(0)
    }
}

/// Which run, and where to.
#[derive(Args)]
pub struct Land {
    /// The run; the only live one, else the newest, when left out
    #[arg(value_name = "RUN", conflicts_with = "run_id")]
    run: Option<String>,
    /// The same
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Another branch than the workflow's
    #[arg(long, value_name = "BRANCH")]
    into: Option<String>,
    /// A word about it; kept
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

impl Land {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = LandRequest { run: self.run.or(self.run_id), into: self.into, note: self.note };
        output.report(&session.call(&request)?, |report| {
            let landed = report.decided.landed.as_ref().map(landed).unwrap_or_default();
            landed + &onward_text(&report.decided.run, &report.onward)
        });
        Ok(0)
    }
}

/// Which jobs, and why.
#[derive(Args)]
pub struct RetryJob {
    /// The jobs; the one that the run stopped for when left out (can be repeated)
    #[arg(value_name = "JOB")]
    jobs: Vec<String>,
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Every failed job that the run did not go on without
    #[arg(long)]
    failed: bool,
    /// A word for whoever works them next
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// The lane of the next attempt
    #[arg(long, value_name = "LANE")]
    lane: Option<String>,
    /// Why; recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl RetryJob {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let RetryJob { jobs, run_id, failed, note, lane, reason } = self;
        let report = session.call(&RetryRequest { run: run_id, jobs, failed, note, lane, reason })?;
        output.report(&report, retried);
        Ok(0)
    }
}

fn retried(report: &RetryReport) -> String {
    let mut text = String::new();
    for job in &report.retried {
        let why = job.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
        text.push_str(&format!("{} was {} and is {}{why}\n", job.job, job.was, job.state));
    }
    if report.back > 0 {
        text.push_str(&format!("{} other canceled jobs are back\n", report.back));
    }
    text + &onward_text(&report.run, &report.onward)
}
