//! `striatum run pause`, `resume`, `stop`, `cancel`, `amend`.

use clap::Args;

use super::call::Session;
use super::output::{Output, next_text};
use crate::domain::workflow::amend::Set;
use crate::error::{Code, Error, Result};
use crate::verbs::run::amend::{AmendReport, AmendRequest};
use crate::verbs::run::control::{CancelRequest, ControlReport, PauseRequest, ResumeRequest, StopRequest};

/// Which run.
#[derive(Args)]
pub struct Which {
    /// The run; the only live one when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Which {
    /// `run pause`.
    pub fn pause(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&PauseRequest { run: self.run_id })?;
        show(output, &report, "paused: nothing is launched, lanes finish");
        Ok(0)
    }

    /// `run resume`.
    pub fn resume(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&ResumeRequest { run: self.run_id })?;
        show(output, &report, "goes on");
        Ok(0)
    }

    /// `run stop`.
    pub fn stop(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&StopRequest { run: self.run_id })?;
        show(output, &report, "stopped: drivers end, lanes are stopped");
        Ok(0)
    }
}

/// Which run, and why.
#[derive(Args)]
pub struct Cancel {
    #[command(flatten)]
    which: Which,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Cancel {
    /// `run cancel`.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&CancelRequest { run: self.which.run_id, reason: self.reason })?;
        show(output, &report, "canceled: what it made is kept");
        Ok(0)
    }
}

fn show(output: &Output, report: &ControlReport, became: &str) {
    output.report(report, |report| {
        let already = if report.already { " (it stood so before)" } else { "" };
        let mut text = format!("{} {became}{already}\n", report.run);
        for note in &report.notes {
            text.push_str(&format!("{note}\n"));
        }
        text.push_str(&next_text(&report.next));
        text
    });
}

/// What changes, for attempts not yet claimed.
#[derive(Args)]
pub struct Amend {
    /// The job, for timeout, max_strikes, lane, prompt and objective
    #[arg(value_name = "JOB")]
    job: Option<String>,
    #[command(flatten)]
    which: Which,
    /// A new value; prompt=@FILE reads it from a file (can be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE", required = true)]
    set: Vec<String>,
    /// Why; it is recorded
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

impl Amend {
    /// `run amend`.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let set = self.set.iter().map(|word| parsed(word)).collect::<Result<Vec<Set>>>()?;
        let request = AmendRequest { run: self.which.run_id, job: self.job, set, reason: self.reason };
        let report = session.call(&request)?;
        output.report(&report, amended);
        Ok(0)
    }
}

/// `KEY=VALUE`; the texts of `prompt` and `objective` may stand in a file.
fn parsed(word: &str) -> Result<Set> {
    let (key, value) =
        word.split_once('=').ok_or_else(|| Error::new(Code::Usage, format!("--set {word}: write it as KEY=VALUE")))?;
    let file = value.strip_prefix('@').filter(|_| matches!(key, "prompt" | "objective"));
    let value = match file {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| Error::new(Code::NotFound, format!("--set {key}=@{path} can't be read")).cause(error))?,
        None => value.to_owned(),
    };
    Ok(Set { key: key.to_owned(), value })
}

fn amended(report: &AmendReport) -> String {
    let of = report.job.as_ref().map(|job| format!(" {job}")).unwrap_or_default();
    let mut text = match report.changed.is_empty() {
        true => format!("{}{of} stood so before\n", report.run),
        false => format!("amended {}{of} (generation {}, {})\n", report.run, report.generation, report.snapshot),
    };
    for change in &report.changed {
        text.push_str(&format!("{}: {} -> {}\n", change.key, change.was, change.is));
    }
    if report.revived {
        text.push_str(&format!("{} goes on\n", report.run));
    }
    for note in &report.notes {
        text.push_str(&format!("{note}\n"));
    }
    text.push_str(&next_text(&report.next));
    text
}
