//! `striatum audit verify`

use clap::Subcommand;

use super::call::Session;
use super::output::Output;
use super::table::left_out;
use crate::error::Result;
use crate::verbs::read::audit::{AuditReport, AuditRequest};
use crate::verbs::read::one_line;

/// Characters of what was found.
const TEXT: usize = 300;

/// Verify the log
#[derive(Subcommand)]
pub enum Audit {
    /// Walk the chain of events, and look whether it bears out what the rows say
    Verify,
}

impl Audit {
    /// Calls the verb and shows its report; the exit code is the report's.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let Audit::Verify = self;
        let report = session.call(&AuditRequest {})?;
        output.report(&report, shown);
        Ok(report.exit)
    }
}

fn shown(report: &AuditReport) -> String {
    let mut text = String::new();
    for violation in &report.violations {
        text.push_str(&format!("{}  {}: {}\n", violation.code, violation.place, one_line(&violation.what, TEXT)));
    }
    text.push_str(&left_out(report.left_out, ""));
    for why in &report.not_run {
        text.push_str(&format!("not run  {}\n", one_line(why, TEXT)));
    }
    let count = report.violations.len() + report.left_out as usize;
    let end = match (count, report.not_run.len()) {
        (0, 0) => "the log is whole and bears out the rows".to_owned(),
        (0, _) => "could not be verified".to_owned(),
        (1, _) => "1 violation".to_owned(),
        (more, _) => format!("{more} violations"),
    };
    text.push_str(&format!("audit: {} events, {} rules: {end}\n", report.events, report.rules));
    text
}
