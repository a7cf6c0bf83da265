//! `striatum lane ...`

use clap::Subcommand;

use super::call::Session;
use super::output::{Output, next_text};
use crate::error::Result;
use crate::verbs::lane::{ChangeReport, LaneLine, ListReport, ListRequest, PauseRequest, ResumeRequest};

/// See how lanes do, and pause them
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Lane {
    /// List the lanes of live runs, and what is known of them
    List,
    /// Launch and claim nothing in a lane, in any run; what works there goes on
    Pause {
        /// The lane
        lane: String,
        /// Why; kept
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Let a lane work again that is paused, parked or cooling down
    Resume {
        /// The lane
        lane: String,
        /// Why; kept
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

impl Lane {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Lane::List => output.report(&session.call(&ListRequest {})?, listed),
            Lane::Pause { lane, reason } => output.report(&session.call(&PauseRequest { lane, reason })?, changed),
            Lane::Resume { lane, reason } => output.report(&session.call(&ResumeRequest { lane, reason })?, changed),
        }
        Ok(0)
    }
}

fn listed(report: &ListReport) -> String {
    if report.lanes.is_empty() {
        return "no lanes are known\n".to_owned();
    }
    report.lanes.iter().map(|lane| format!("{}\n", line(lane))).collect()
}

fn line(lane: &LaneLine) -> String {
    let most = lane.max_sessions.map_or(String::new(), |most| format!(" of {most}"));
    let state = match (&lane.parked_at, lane.cooling_ms) {
        (Some(at), _) => {
            format!("parked since {at}: {}", lane.parked_reason.as_deref().unwrap_or("no reason kept"))
        }
        (None, Some(left)) => format!("cooling down for {} s ({} failures in a row)", left / 1_000, lane.failures),
        (None, None) => "well".to_owned(),
    };
    format!("{}: {state}; holds {}{most}", lane.lane, lane.holds)
}

fn changed(report: &ChangeReport) -> String {
    let state = if report.is_parked { "paused" } else { "at work" };
    let again = if report.already { " (it was before)" } else { "" };
    let holds = match (report.is_parked, report.holds) {
        (true, 1..) => format!("; {} at work there go on", report.holds),
        _ => String::new(),
    };
    let mut text = format!("{} is {state}{again}{holds}\n", report.lane);
    for run in &report.revived {
        text.push_str(&format!("run {run} can go on\n"));
    }
    text + &next_text(&report.next)
}
