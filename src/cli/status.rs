//! `striatum status`

use clap::Args;

use super::call::Session;
use super::inbox::inbox;
use super::output::{Output, next_text};
use super::summary::brief;
use crate::error::Result;
use crate::verbs::read::status::{StatusReport, StatusRequest};

/// How everything does.
#[derive(Args)]
pub struct Status {
    /// One run; the live ones, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Status {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&StatusRequest { run: self.run_id })?;
        output.report(&report, |report| format!("{}{}", status(report), next_text(&report.next)));
        Ok(0)
    }
}

/// The inbox, then each run, then what holds the rules.
pub fn status(report: &StatusReport) -> String {
    let mut text = inbox(&report.inbox);
    if report.stop_file {
        text.push_str("STOP: a person's file keeps everything from being launched\n");
    }
    for run in &report.runs {
        text.push_str(&format!("\n{}", brief(run)));
    }
    if report.runs.is_empty() {
        text.push_str("no runs yet\n");
    }
    if report.runs_left_out > 0 {
        text.push_str(&format!("\nand {} more live runs: striatum run list\n", report.runs_left_out));
    }
    text.push_str(&format!("\nenforcement: {}\n", report.enforcement));
    text
}
