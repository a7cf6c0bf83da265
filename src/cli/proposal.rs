//! `striatum run admit`, `run dismiss`.

use clap::Args;

use super::call::Session;
use super::gate::onward_text;
use super::output::{Output, next_text};
use crate::domain::id::ProposalId;
use crate::error::Result;
use crate::verbs::proposal::{AdmitRequest, DismissRequest, ProposalLine};

/// Which proposal.
#[derive(Args)]
pub struct Admit {
    /// The proposal, as the inbox names it
    #[arg(value_name = "PROPOSAL")]
    proposal: ProposalId,
}

impl Admit {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&AdmitRequest { proposal: self.proposal })?;
        output.report(&report, |report| {
            let at = report.gate.map_or("once its needs are settled".to_owned(), |gate| format!("at gate {gate}"));
            let text = format!("admitted {} as {}; it waits for you {at}\n", report.proposal, report.job);
            text + &next_text(&report.next)
        });
        Ok(0)
    }
}

/// Which proposal, and why.
#[derive(Args)]
pub struct Dismiss {
    /// The proposal, as the inbox names it
    #[arg(value_name = "PROPOSAL")]
    proposal: ProposalId,
    /// Why; kept
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Dismiss {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&DismissRequest { proposal: self.proposal, reason: self.reason })?;
        output.report(&report, |report| {
            format!("dismissed {}\n{}", report.proposal, onward_text(&report.run, &report.onward))
        });
        Ok(0)
    }
}

/// A proposal on one line.
pub fn line(line: &ProposalLine) -> String {
    let what = match (&line.job, &line.why) {
        (Some(job), _) => format!(" as {job}"),
        (None, Some(why)) if !why.is_empty() => format!(" ({why})"),
        _ => String::new(),
    };
    let reason = if line.reason.is_empty() { String::new() } else { format!("; because: {}", line.reason) };
    format!(
        "{} {}{what}: {} of {}.{}, confidence {:.2}: {}{reason}",
        line.proposal, line.state, line.kind, line.by, line.attempt, line.confidence, line.objective
    )
}
