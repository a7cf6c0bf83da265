//! `striatum review ...`

use clap::Subcommand;

use super::call::Session;
use super::gate::onward_text;
use super::output::Output;
use super::work::{VerdictWord, finding};
use crate::error::Result;
use crate::verbs::review::{OverrideReport, OverrideRequest};

/// Judge over reviews
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Review {
    /// Put your own verdict in the place of a review's
    OverrideVerdict {
        /// The review
        job: String,
        /// The judgement
        #[arg(long)]
        verdict: VerdictWord,
        /// A remark, `TITLE: DETAIL` (can be repeated)
        #[arg(long = "finding", value_name = "TITLE: DETAIL")]
        findings: Vec<String>,
        /// Why; recorded
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// The run; the only live one that has the review, when left out
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
    },
}

impl Review {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Review::OverrideVerdict { job, verdict, findings, reason, run_id } => {
                let request = OverrideRequest {
                    run: run_id,
                    job,
                    verdict: serde_json::from_value(verdict.word().into())?,
                    findings: findings
                        .iter()
                        .map(|text| serde_json::from_value(finding(text)))
                        .collect::<std::result::Result<_, _>>()?,
                    reason,
                };
                output.report(&session.call(&request)?, overridden);
            }
        }
        Ok(0)
    }
}

fn overridden(report: &OverrideReport) -> String {
    let was = report.was.map_or("had no verdict".to_owned(), |was| format!("said {was}"));
    let OverrideReport { job, verdict, decision, .. } = report;
    format!("{job} {was}; {verdict} holds now ({decision})\n{}", onward_text(&report.run, &report.onward))
}
