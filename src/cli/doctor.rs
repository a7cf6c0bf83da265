//! `striatum doctor`

use clap::Args;

use super::call::Session;
use super::output::{Output, shell_words};
use super::table::{left_out, table};
use crate::error::Result;
use crate::verbs::read::doctor::{Check, DoctorReport, DoctorRequest, Finding, Outcome};
use crate::verbs::read::one_line;

/// Characters of what was found.
const TEXT: usize = 300;

/// What to look at.
#[derive(Args)]
pub struct Doctor {
    /// Hash every artifact, not only the newest
    #[arg(long)]
    all: bool,
}

impl Doctor {
    /// Calls the verb and shows its report; the exit code is the report's.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&DoctorRequest { all: self.all })?;
        output.report(&report, shown);
        Ok(report.exit)
    }
}

fn shown(report: &DoctorReport) -> String {
    let rows: Vec<Vec<String>> = report.checks.iter().map(row).collect();
    let mut text = String::new();
    for (line, check) in table("", &rows).lines().zip(&report.checks) {
        text.push_str(&format!("{line}\n"));
        text.extend(check.findings.iter().map(finding));
        text.push_str(&left_out(check.left_out, "    "));
    }
    text.push_str(&format!("doctor: {}\n", summed(report)));
    text
}

fn row(check: &Check) -> Vec<String> {
    let outcome = if check.outcome == Outcome::NotRun { "not run".to_owned() } else { check.outcome.to_string() };
    vec![outcome, check.check.clone(), one_line(&check.note, TEXT)]
}

fn finding(finding: &Finding) -> String {
    let fix = finding.fix.as_ref();
    let fix = fix.map_or(String::new(), |fix| format!("      {}   # {}\n", shell_words(&fix.argv), fix.why));
    format!("    {}  {}: {}\n{fix}", finding.code, finding.place, one_line(&finding.what, TEXT))
}

fn summed(report: &DoctorReport) -> String {
    let counted = |count: u32, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        more => Some(format!("{more} {word}s")),
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(counted(report.findings, "finding"));
    parts.extend(counted(report.warnings, "warning"));
    parts.extend((report.not_run > 0).then(|| format!("{} not run", report.not_run)));
    if parts.is_empty() { "nothing is wrong".to_owned() } else { parts.join(", ") }
}
