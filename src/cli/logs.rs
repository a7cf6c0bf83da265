//! `striatum logs`, `striatum supervise logs`

use std::time::Duration;

use clap::Args;

use super::call::Session;
use super::output::{Output, complain, is_read, print};
use crate::domain::id::SessionId;
use crate::error::Result;
use crate::verbs::api::Verb;
use crate::verbs::read::logs::{HelperLogsRequest, LogsReport, LogsRequest};

/// How often a follower asks again.
const PAUSE: Duration = Duration::from_millis(200);

/// Whose output.
#[derive(Args)]
pub struct Logs {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Which try; the newest that somebody held when left out
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    /// The helper's words instead of the agent's
    #[arg(long)]
    helper: bool,
    #[command(flatten)]
    how: How,
}

/// How much of it.
#[derive(Args)]
pub struct How {
    /// Go on until it ends
    #[arg(short, long)]
    follow: bool,
    /// Most lines, from the end
    #[arg(long, value_name = "NUMBER")]
    tail: Option<u32>,
}

impl Logs {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = LogsRequest {
            run: self.run_id,
            job: self.job,
            attempt: self.attempt,
            helper: self.helper,
            tail: self.how.tail,
            after: None,
        };
        show(&request, self.how.follow, session, output, |report, request| LogsRequest {
            // The first report says which run and attempt; later ones stay with them.
            run: Some(report.run.clone()),
            attempt: report.attempt.or(request.attempt),
            after: Some(report.cursor),
            ..request.clone()
        })
    }
}

/// The helper of a session.
#[derive(Args)]
pub struct HelperLogs {
    /// The session
    #[arg(long, value_name = "SESSION")]
    session_id: SessionId,
    #[command(flatten)]
    how: How,
}

impl HelperLogs {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = HelperLogsRequest { session: self.session_id, tail: self.how.tail, after: None };
        show(&request, self.how.follow, session, output, |report, request| HelperLogsRequest {
            after: Some(report.cursor),
            ..request.clone()
        })
    }
}

fn show<V: Verb<Report = LogsReport>>(
    request: &V,
    follow: bool,
    session: &Session,
    output: &Output,
    onward: impl Fn(&LogsReport, &V) -> V,
) -> Result<u8> {
    let mut report = session.call(request)?;
    if !output.is_json() && !follow {
        head(&report);
    }
    if !told(&report, output) || !follow {
        return Ok(0);
    }
    let mut next = onward(&report, request);
    while !report.is_over {
        report = session.call(&next)?;
        next = onward(&report, &next);
        if report.text.is_empty() {
            std::thread::sleep(PAUSE);
        } else if !told(&report, output) {
            break;
        }
    }
    Ok(0)
}

fn told(report: &LogsReport, output: &Output) -> bool {
    if output.is_json() {
        return is_read(&(serde_json::to_string(report).unwrap_or_default() + "\n"));
    }
    is_read(&report.text)
}

/// What is not shown, or that there is nothing, beside the text itself.
fn head(report: &LogsReport) {
    let job = report.job.as_deref().unwrap_or_default();
    match (report.session, report.attempt) {
        (None, _) => complain(&format!("nobody has taken {job} yet\n")),
        (Some(_), Some(number)) if report.bytes == 0 => complain(&format!("{job}.{number} has printed nothing\n")),
        _ if report.left_out > 0 => complain(&format!("({} bytes before this are not shown)\n", report.left_out)),
        _ => print(""),
    }
}
