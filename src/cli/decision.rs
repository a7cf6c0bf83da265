//! `striatum decision ...`

use clap::{Args, Subcommand};

use super::call::Session;
use super::output::Output;
use crate::domain::escape::Surface;
use crate::domain::id::SessionId;
use crate::error::{Code, Error, Result};
use crate::verbs::decision::{DecisionLine, Escape, ListReport, ListRequest, RecordReport, RecordRequest, Verdict};
use crate::verbs::read::harmless;

/// Record judgements with their reasons, and list them
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Decision {
    /// Record a judgement; as a person, also one that lets an act leave the constrained surface
    Record(Record),
    /// List the decisions of a run, newest first
    List {
        /// The run; the only live one, else the newest, when left out
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Only what opens something
        #[arg(long)]
        escapes: bool,
    },
}

/// A judgement.
#[derive(Args)]
pub struct Record {
    /// accepted, rejected or accepted_with_follow_up
    #[arg(long, value_name = "WORD")]
    outcome: Verdict,
    /// What was decided, in a line
    #[arg(long, value_name = "TEXT")]
    title: String,
    /// Why
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    rationale: String,
    /// What is to be done later
    #[arg(long, value_name = "TEXT")]
    follow_up: Option<String>,
    /// The run; the only live one when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// The job that it is about
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// The session that it is about
    #[arg(long, value_name = "SESSION")]
    session: Option<SessionId>,
    /// What may pass once: process.run, repo.write, repo.patch-apply or admin:VERB
    #[arg(long, value_name = "SURFACE", value_parser = surface, requires = "escape_action")]
    escape_surface: Option<Surface>,
    /// The act, word for word, or sha256: of its words joined by NUL
    #[arg(long, value_name = "WORDS", requires = "escape_surface")]
    escape_action: Option<String>,
    /// How often it may pass
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "escape_surface")]
    uses: u32,
    /// For how long; a day when left out
    #[arg(long, value_name = "TIME", value_parser = super::drive::duration, requires = "escape_surface")]
    expires: Option<u64>,
}

fn surface(text: &str) -> std::result::Result<Surface, String> {
    let known = || Surface::ALL.iter().map(|surface| surface.word()).collect::<Vec<_>>().join(", ");
    Surface::read(text).ok_or_else(|| format!("there is no such surface; there are {}", known()))
}

impl Decision {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Decision::Record(record) => record.run(session, output),
            Decision::List { run_id, escapes } => {
                output.report(&session.call(&ListRequest { run: run_id, escapes })?, listed);
                Ok(0)
            }
        }
    }
}

impl Record {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let escape = match (self.escape_surface, self.escape_action) {
            (Some(surface), Some(action)) => Some(Escape { surface, action, uses: self.uses, life_ms: self.expires }),
            (None, None) => None,
            _ => return Err(Error::new(Code::Usage, "--escape-surface and --escape-action go together")),
        };
        let request = RecordRequest {
            run: self.run_id,
            job: self.job,
            session: self.session,
            outcome: self.outcome,
            title: self.title,
            rationale: self.rationale,
            follow_up: self.follow_up,
            escape,
        };
        let report =
            if request.escape.is_some() { session.call_as_person(&request)? } else { session.call(&request)? };
        output.report(&report, recorded);
        Ok(0)
    }
}

fn recorded(report: &RecordReport) -> String {
    let opens = report.escape.as_ref().map_or(String::new(), |escape| {
        format!("lets pass {} time(s): {} {}\n", escape.uses, escape.surface, harmless(&escape.action))
    });
    format!("recorded {} for {}: {}\n{opens}", report.decision, report.run, report.file.display())
}

fn listed(report: &ListReport) -> String {
    let mut text: String = report.decisions.iter().map(line).collect();
    if report.decisions.is_empty() {
        text.push_str("no decisions\n");
    }
    if report.has_more {
        text.push_str("and older ones\n");
    }
    text
}

fn line(line: &DecisionLine) -> String {
    let outcome = line.outcome.as_deref().unwrap_or(&line.kind);
    let about = line.job.as_ref().map_or(String::new(), |job| format!(" {job}"));
    let mut text =
        format!("{} {outcome}{about}: {} ({}, {})\n", line.decision, harmless(&line.title), line.by, line.how);
    if let Some(escape) = &line.escape {
        let over = if escape.is_expired { ", expired" } else { "" };
        let action = harmless(&escape.action);
        text.push_str(&format!("    {} {action}: used {} of {}{over}\n", escape.surface, escape.used, escape.uses));
    }
    text
}
