//! `striatum notify ...`, and the hidden process that tells.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use super::call::Session;
use super::output::{Output, complain};
use crate::error::{Code, Error, Result};
use crate::verbs::ctx;
use crate::verbs::notice::send::send;
use crate::verbs::notice::test::{TestReport, TestRequest};

/// Try how you are told that something waits
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Notify {
    /// Run the command of `[notify]` once, with a notice that says it is a test
    Test {
        /// As this run's workflow says it, instead of the configuration
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
    },
}

impl Notify {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let Notify::Test { run_id } = self;
        let report = session.call(&TestRequest { run: run_id })?;
        output.report(&report, tried);
        Ok(report.exit())
    }
}

fn tried(report: &TestReport) -> String {
    let Some(result) = &report.result else { return format!("{}\n", report.detail) };
    let detail = report.detail.trim_end();
    let detail = if detail.is_empty() { String::new() } else { format!("{detail}\n") };
    format!("{}: {result}\ntold on: {}\n{detail}", report.command.join(" "), report.on.join(", "))
}

/// `__notify STORE RUN`: tells what is new, and ends.
pub fn tell(words: &[OsString]) -> ExitCode {
    let told = match words {
        [_, _, store, run] => ctx::open(Some(Path::new(store))).and_then(|ctx| send(&ctx, &run.to_string_lossy())),
        _ => Err(Error::new(Code::Usage, "not a teller's words")),
    };
    match told {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("nobody was told: {error}\n"));
            ExitCode::from(error.exit())
        }
    }
}
