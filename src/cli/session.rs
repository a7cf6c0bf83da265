//! `striatum register-session`, `striatum session ...`

use clap::{Args, Subcommand};

use super::call;
use super::output::{Output, next_text};
use crate::domain::id::SessionId;
use crate::error::Result;
use crate::verbs::session::{CloseRequest, ListReport, ListRequest, RegisterRequest, SessionLine};

/// A slot of a run.
#[derive(Args)]
pub struct Register {
    /// The run; the only live one when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// The kind of worker
    #[arg(long)]
    role: String,
    /// The way to execute
    #[arg(long)]
    lane: String,
    /// One job only
    #[arg(long)]
    fresh: bool,
    /// Work through mediated verbs only, whatever the run says
    #[arg(long)]
    constrained: bool,
    /// Register a reviewer though an author still works; needs --reason
    #[arg(long)]
    force_non_fresh: bool,
    /// Why; recorded
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Register {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &call::Session, output: &Output) -> Result<u8> {
        let request = RegisterRequest {
            run: self.run_id,
            role: self.role,
            lane: self.lane,
            fresh: self.fresh,
            constrained: self.constrained,
            force_non_fresh: self.force_non_fresh,
            reason: self.reason,
        };
        let report =
            if request.force_non_fresh { session.call_as_person(&request)? } else { session.call(&request)? };
        output.report(&report, |report| {
            format!(
                "registered {} as {}/{} in {}\ntoken file: {}\n{}",
                report.session,
                report.role,
                report.lane,
                report.run,
                report.token_file,
                next_text(&report.next)
            )
        });
        Ok(0)
    }
}

/// List and close sessions
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Session {
    /// List the sessions of a run
    List {
        /// The run; the only live one, else the newest, when left out
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Ended ones too
        #[arg(long)]
        all: bool,
    },
    /// Close a session; what it held goes back to the queue
    Close {
        /// The session
        #[arg(long, value_name = "SESSION")]
        session_id: SessionId,
        /// Why; recorded
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
}

impl Session {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &call::Session, output: &Output) -> Result<u8> {
        match self {
            Session::List { run_id, all } => {
                let report = session.call(&ListRequest { run: run_id, all })?;
                output.report(&report, listed);
            }
            Session::Close { session_id, reason } => {
                let report = session.call(&CloseRequest { session: session_id, reason })?;
                output.report(&report, |report| match &report.requeued {
                    Some(job) => format!("{} is {}; {job} goes back to the queue", report.session, report.state),
                    None => format!("{} is {}", report.session, report.state),
                });
            }
        }
        Ok(0)
    }
}

fn listed(report: &ListReport) -> String {
    let mut text = String::new();
    for line in &report.sessions {
        let holds = line.holds.as_deref().map_or(String::new(), |job| format!(" holds {job}"));
        let why = line.end_reason.as_deref().map_or(String::new(), |why| format!(" ({why})"));
        let mode = if line.constrained { " constrained" } else { "" };
        let SessionLine { session, role, lane, state, .. } = line;
        text.push_str(&format!("{session} {role}/{lane} {state}{mode}{holds}{why}\n"));
    }
    if report.sessions.is_empty() {
        text.push_str("no sessions\n");
    }
    if report.left_out > 0 {
        text.push_str(&format!("and {} more\n", report.left_out));
    }
    text
}
