//! `striatum diff`

use std::io::IsTerminal;

use clap::Args;

use super::call::Session;
use super::output::{Output, harmless};
use crate::error::Result;
use crate::verbs::read::diff::{DiffReport, DiffRequest, FileDiff};

/// Whose change.
#[derive(Args)]
pub struct Diff {
    /// The job; the whole run when left out
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// What this try alone changed, sealed or not
    #[arg(long, value_name = "NUMBER", requires = "job")]
    attempt: Option<u32>,
    /// Only the paths, with lines added and removed
    #[arg(long)]
    stat: bool,
}

impl Diff {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = DiffRequest { run: self.run_id, job: self.job, attempt: self.attempt, stat: self.stat };
        let report = session.call(&request)?;
        output.report(&report, if std::io::stdout().is_terminal() { shown } else { text });
        Ok(0)
    }
}

/// What an agent wrote must not rule a terminal.
fn shown(report: &DiffReport) -> String {
    text(report).lines().map(|line| harmless(line) + "\n").collect()
}

fn text(report: &DiffReport) -> String {
    match &report.patch {
        Some(patch) if report.truncated => format!("{patch}\n(cut off here: it is longer)\n"),
        Some(patch) => patch.clone(),
        None => stat_text(report),
    }
}

fn stat_text(report: &DiffReport) -> String {
    let count = |lines: Option<u64>, sign: char| lines.map_or_else(|| "-".to_owned(), |lines| format!("{sign}{lines}"));
    let line = |file: &FileDiff| {
        let path = harmless(&file.path);
        format!("{:>6} {:>6}  {path}\n", count(file.added, '+'), count(file.removed, '-'))
    };
    let mut text: String = report.files.iter().map(line).collect();
    let sum = |lines: fn(&FileDiff) -> Option<u64>| -> u64 { report.files.iter().filter_map(lines).sum() };
    let (added, removed) = (sum(|file| file.added), sum(|file| file.removed));
    let files = if report.files.len() == 1 { "1 file".to_owned() } else { format!("{} files", report.files.len()) };
    text.push_str(&format!("{files}, +{added} -{removed}\n"));
    text
}
