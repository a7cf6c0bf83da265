//! `striatum answer`, `take`, `give`: what a person does for a job.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::call::Session;
use super::gate::onward_text;
use super::output::{Output, next_text};
use super::work::{VerdictWord, document, document_of, finding};
use crate::error::{Code, Error, Result};
use crate::verbs::answer::{AnswerReport, AnswerRequest, LIMIT};
use crate::verbs::give::{GiveReport, GiveRequest};
use crate::verbs::take::{TakeReport, TakeRequest};

/// Answer a job that asked; its next attempt is told
#[derive(Args)]
pub struct Answer {
    /// The job
    job: String,
    /// The answer; - reads it from standard input
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    text: Option<String>,
    /// A file with the answer
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The obstacle is gone
    #[arg(long)]
    resolved: bool,
    /// The run; the only live one where the job waits, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Answer {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let text = match (self.text, self.file) {
            (Some(dash), _) if dash == "-" => Some(session.read_stdin(LIMIT)?),
            (None, Some(file)) => Some(read(&file)?),
            (text, _) => text,
        };
        let request = AnswerRequest { run: self.run_id, job: self.job, text, resolved: self.resolved };
        output.report(&session.call(&request)?, answered);
        Ok(0)
    }
}

/// The text of a file that a person named.
pub fn read(file: &std::path::Path) -> Result<String> {
    let unreadable =
        |error: std::io::Error| Error::new(Code::Usage, format!("{} can't be read", file.display())).cause(error);
    if std::fs::metadata(file).map_err(unreadable)?.len() > LIMIT {
        return Err(Error::new(Code::TooLarge, format!("{} has more than {LIMIT} bytes", file.display())));
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

fn answered(report: &AnswerReport) -> String {
    let AnswerReport { job, attempt, decision, .. } = report;
    format!("answered {job} ({decision}); attempt {attempt} is told\n{}", onward_text(&report.run, &report.onward))
}

/// Work a job yourself
#[derive(Args)]
pub struct Take {
    /// The job
    job: String,
    /// The run; the only live one that has the job, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Take {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = TakeRequest { run: self.run_id, job: self.job, stop_lane: session.globals.yes };
        output.report(&session.call(&request)?, taken);
        Ok(0)
    }
}

fn taken(report: &TakeReport) -> String {
    let TakeReport { run, job, attempt, session, cwd, prompt, .. } = report;
    let from = report.taken_from.map_or(String::new(), |from| format!(" from {from}, whose agent is told to end"));
    let again = if report.already { "you have" } else { "took" };
    format!(
        "{again} {job}.{attempt} of {run} ({session}){from}\nwork in {cwd}\nwhat to do: {prompt}\n{}",
        next_text(&report.next)
    )
}

/// Give a job back that you took
#[derive(Args)]
pub struct Give {
    /// The job
    job: String,
    /// It is done
    #[arg(long, conflicts_with_all = ["verdict", "result"])]
    done: bool,
    /// The judgement, in a review
    #[arg(long, conflicts_with = "result")]
    verdict: Option<VerdictWord>,
    /// A whole answer, `striatum.result/1`, from a file
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// A remark, `TITLE: DETAIL` (can be repeated)
    #[arg(long = "finding", value_name = "TITLE: DETAIL", requires = "verdict")]
    findings: Vec<String>,
    /// One line about what was done
    #[arg(long, value_name = "TEXT")]
    summary: Option<String>,
    /// A word for whoever works it next, when it is put back
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["done", "verdict", "result"])]
    note: Option<String>,
    /// The run; the only live one that has the job, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Give {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let answer = self.answer()?;
        let request = GiveRequest { run: self.run_id, job: self.job, answer, note: self.note };
        let report = session.call(&request)?;
        output.report(&report, given);
        Ok(u8::from(report.is_still_held))
    }

    fn answer(&self) -> Result<Option<Value>> {
        if let Some(file) = &self.result {
            return document(file).map(Some);
        }
        let findings: Vec<Value> = self.findings.iter().map(|text| finding(text)).collect();
        let verdict = self.verdict.map(VerdictWord::word);
        let said = json!({"status": "DONE", "verdict": verdict, "findings": findings, "summary": self.summary});
        Ok((self.done || verdict.is_some()).then(|| document_of(said)))
    }
}

fn given(report: &GiveReport) -> String {
    let what = match &report.settled {
        None => "is put back".to_owned(),
        Some(settled) => settled.message.clone(),
    };
    let mut text = format!("{}: {what}\n", report.job);
    if let Some(settled) = &report.settled {
        for violation in &settled.violations {
            text.push_str(&format!("  {violation}\n"));
        }
        if let Some(tail) = &settled.verify_tail {
            text.push_str(&format!("{}\n", tail.trim_end()));
        }
    }
    text + &onward_text(&report.run, &report.onward)
}
