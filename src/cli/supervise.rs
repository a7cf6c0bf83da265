//! `striatum supervise ...`, and the helper's own entry.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Subcommand;

use super::call::Session;
use super::output::{Output, complain, next_text};
use crate::broker::server::Server;
use crate::domain::id::SessionId;
use crate::error::{Code, Error, Result};
use crate::verbs::ctx;
use crate::verbs::resource::destroy::finish;
use crate::verbs::supervise::host::{self, Assignment};
use crate::verbs::supervise::start::StartRequest;
use crate::verbs::supervise::stop::{StatusReport, StatusRequest, StopRequest};

/// Start and stop helpers
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Supervise {
    /// Start the helper of a session
    Start {
        /// The session
        #[arg(long, value_name = "SESSION")]
        session_id: SessionId,
    },
    /// Tell a helper to end; its session closes with it
    Stop {
        /// The session
        #[arg(long, value_name = "SESSION")]
        session_id: SessionId,
        /// Why; recorded
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Let it finish what it holds
        #[arg(long)]
        drain: bool,
    },
    /// Show how a helper does
    Status {
        /// The session
        #[arg(long, value_name = "SESSION")]
        session_id: SessionId,
    },
    /// Show what a helper printed
    Logs(super::logs::HelperLogs),
}

impl Supervise {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Supervise::Start { session_id } => {
                let report = session.call(&StartRequest { session: session_id })?;
                output.report(&report, |report| {
                    format!(
                        "started the helper of {} (pid {})\n{}",
                        report.session,
                        report.pid,
                        next_text(&report.next)
                    )
                });
            }
            Supervise::Stop { session_id, reason, drain } => {
                let report = session.call(&StopRequest { session: session_id, reason, drain })?;
                output.report(&report, |report| {
                    let word = if report.asked { "was told to end" } else { "has no helper to tell" };
                    format!("{} {word}", report.session)
                });
            }
            Supervise::Status { session_id } => {
                let report = session.call(&StatusRequest { session: session_id })?;
                output.report(&report, status);
            }
            Supervise::Logs(logs) => return logs.run(session, output),
        }
        Ok(0)
    }
}

fn status(report: &StatusReport) -> String {
    let life = |alive: bool| if alive { "alive" } else { "gone" };
    let supervisor = report.supervisor.map_or("never started".to_owned(), |state| state.to_string());
    let holds = report.holds.as_deref().unwrap_or("nothing");
    format!(
        "{} is {}; helper {supervisor} ({}), lane {}; holds {holds}\nlog: {}\n",
        report.session,
        report.state,
        life(report.helper_alive),
        life(report.lane_alive),
        report.log
    )
}

/// `__supervise SESSION SUPERVISOR [--recover]`, started with its locks as standard input and output.
pub fn helper(words: &[OsString]) -> ExitCode {
    match host(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("helper ended: {error}\n"));
            for cause in &error.causes {
                complain(&format!("  {cause}\n"));
            }
            ExitCode::from(error.exit())
        }
    }
}

fn host(words: &[OsString]) -> Result<()> {
    // Before anything is opened: the locks stand where other programs have their standard streams.
    let locks = host::adopt()?;
    let word = |number: usize| words.get(number).and_then(|word| word.to_str()).unwrap_or_default();
    let wrong = || Error::new(Code::Usage, "not a helper's words");
    let assignment = Assignment {
        session: word(2).parse().map_err(|_| wrong())?,
        supervisor: word(3).parse().map_err(|_| wrong())?,
        recovers: word(4) == "--recover",
    };
    let ctx = ctx::open(None)?.lasting();
    let mut server = Server::bind(&host::socket_of(&ctx, assignment.session))?;
    host::host(&ctx, assignment, locks, &mut server)
}

/// `__resource NUMBER [--cut]`, started with the resource's lock as standard input.
pub fn destroyer(words: &[OsString]) -> ExitCode {
    match destroy(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("a resource was not destroyed: {error}\n"));
            ExitCode::from(error.exit())
        }
    }
}

fn destroy(words: &[OsString]) -> Result<()> {
    let locks = host::adopt()?;
    let word = |number: usize| words.get(number).and_then(|word| word.to_str()).unwrap_or_default();
    let number = word(2).parse().map_err(|_| Error::new(Code::Usage, "not a destroyer's words"))?;
    finish(&ctx::open(None)?.lasting(), number, word(3) == "--cut", &locks.helper)
}
