//! `striatum run go`: prepare, start and drive in one.

use clap::Args;
use serde_json::json;

use super::call::Session;
use super::check;
use super::drive::Driving;
use super::output::{Output, print};
use super::run::{Prepare, prepared};
use crate::error::{Code, Result};
use crate::verbs::run::prepare::PrepareReport;
use crate::verbs::run::start::StartRequest;

/// Which workflow, with which parameters, and how to drive it.
#[derive(Args)]
pub struct Go {
    #[command(flatten)]
    prepare: Prepare,
    /// Go on though setup or a verification is red on the base already
    #[arg(long)]
    base_red: bool,
    #[command(flatten)]
    driving: Driving,
}

impl Go {
    /// Prepares, tells, starts and drives; a workflow under `autonomy = "plan"` ends after the telling.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        check::before(&self.prepare.request()?, self.base_red, session)?;
        let report = self.prepare.prepare(session)?;
        tell(output, &report);
        if report.plans_only {
            return Ok(0);
        }
        match session.unkeyed().call(&StartRequest { run: Some(report.run.clone()) }) {
            // The same key as before may mean a run that is over; driving tells its end.
            Err(error) if error.code == Code::NotRunning => {}
            started => drop(started?),
        }
        self.driving.drive(&self.driving.request(Some(report.run)), session, output)
    }
}

/// The report, as the first of the lines that driving will add to.
fn tell(output: &Output, report: &PrepareReport) {
    if output.is_json() {
        let line = json!({"ts": crate::verbs::ctx::now(), "action": "prepared", "run": report.run, "report": report});
        print(&format!("{line}\n"));
    } else {
        let next = if report.plans_only { report.next.clone() } else { Vec::new() };
        print(&prepared(&PrepareReport { next, ..report.clone() }));
    }
}
