//! `striatum audit verify`

use clap::Subcommand;

use super::call::Session;
use super::output::Output;
use super::table::left_out;
use crate::error::Result;
use crate::verbs::read::audit::rules::{Checked, Judgement};
use crate::verbs::read::audit::{AuditReport, AuditRequest};
use crate::verbs::read::one_line;

/// Characters of what was found.
const TEXT: usize = 300;

/// Verify the log
#[derive(Subcommand)]
pub enum Audit {
    /// Walk the chain of events, and look whether it bears out what the rows say
    Verify {
        /// Look at this run alone, and whether it kept the rules of a driven run
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
    },
}

impl Audit {
    /// Calls the verb and shows its report; the exit code is the report's.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let Audit::Verify { run_id } = self;
        let report = session.call(&AuditRequest { run: run_id })?;
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
    report.checked.iter().for_each(|rule| text.push_str(&told(rule)));
    for why in &report.not_run {
        text.push_str(&format!("not run  {}\n", one_line(why, TEXT)));
    }
    let broken = report.checked.iter().map(|rule| rule.seen.len() + rule.left_out as usize).sum::<usize>();
    let count = report.violations.len() + report.left_out as usize + broken;
    let unseen = report.checked.iter().filter(|rule| rule.judgement == Judgement::NotRun).count();
    let end = match (count, report.not_run.len() + unseen) {
        (0, 0) if report.run.is_some() => "the log is whole and the run kept every rule".to_owned(),
        (0, 0) => "the log is whole and bears out the rows".to_owned(),
        (0, _) => "could not be verified".to_owned(),
        (1, _) => "1 violation".to_owned(),
        (more, _) => format!("{more} violations"),
    };
    text.push_str(&format!("audit: {} events, {} rules: {end}\n", report.events, report.rules));
    text
}

/// One rule: a line that it was kept, or one for each place where it was not.
fn told(rule: &Checked) -> String {
    let mut text = String::new();
    match rule.judgement {
        Judgement::Passed => text.push_str(&format!("passed   {}: {}\n", rule.code, rule.what)),
        Judgement::NotRun => {
            let why = one_line(rule.why.as_deref().unwrap_or(""), TEXT);
            text.push_str(&format!("not run  {}: {why}\n", rule.code));
        }
        Judgement::Violated => text.push_str(&format!("VIOLATED {}: {}\n", rule.code, rule.what)),
    }
    for seen in &rule.seen {
        let events: Vec<String> = seen.events.iter().map(ToString::to_string).collect();
        let shown = if events.is_empty() { String::new() } else { format!(" (event {})", events.join(", ")) };
        text.push_str(&format!("         {}: {}{shown}\n", one_line(&seen.subject, TEXT), one_line(&seen.found, TEXT)));
    }
    text.push_str(&left_out(rule.left_out, "         "));
    text
}
