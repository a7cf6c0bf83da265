//! `striatum process ...`

use clap::Subcommand;

use super::call::Session;
use super::output::{Output, complain, harmless, print};
use super::work::Speaker;
use crate::error::{Code, Result};
use crate::verbs::process::run::{Desk, ProcessReport, run};
use crate::verbs::process::{BeginReport, BeginRequest, LIMIT_MS, MarkRequest};

/// Run declared commands of a job, with evidence
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Process {
    /// Run a command that the job declares (`process`, `verify`), without a shell
    Run {
        #[command(flatten)]
        who: Speaker,
        /// End it after this time; at most 30m
        #[arg(long, value_name = "TIME", value_parser = super::drive::duration, default_value = "300s")]
        timeout: Option<u64>,
        /// The command and its words
        #[arg(value_name = "COMMAND", required = true, last = true)]
        argv: Vec<String>,
    },
}

impl Desk for &Session {
    fn begin(&mut self, request: &BeginRequest) -> Result<BeginReport> {
        self.unkeyed().call(request)
    }

    fn mark(&mut self, request: &MarkRequest) -> Result<()> {
        self.unkeyed().call(request).map(|_| ())
    }
}

impl Process {
    /// Runs the command and shows what it came to.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let Process::Run { who, timeout, argv } = self;
        let request = BeginRequest { who: who.credentials()?, argv, limit_ms: timeout.unwrap_or(LIMIT_MS) };
        let report = run(&session.ctx()?, &mut &*session, &request)?;
        if output.is_json() {
            output.report(&report, |_| String::new());
        } else {
            show(&report);
        }
        Ok(match report.result.as_str() {
            "passed" => 0,
            "failed" => Code::Failed.kind().exit(),
            _ => Code::NotRun.kind().exit(),
        })
    }
}

/// The command's own output goes where output goes, the evidence beside it.
fn show(report: &ProcessReport) {
    if report.truncated {
        complain(&format!("the last of {} bytes:\n", report.output_bytes));
    }
    print(&report.output);
    let how = match (&report.why, report.exit_code, report.signal) {
        (Some(why), _, _) => format!("not run: {}", harmless(why)),
        (None, Some(code), _) => format!("{}: exit {code}", report.result),
        (None, None, Some(signal)) => format!("{}: signal {signal}", report.result),
        (None, None, None) => report.result.clone(),
    };
    complain(&format!(
        "{how} after {} ms ({} of {}, {} bytes, {})\n",
        report.duration_ms, report.class, report.job, report.output_bytes, report.enforcement
    ));
}
