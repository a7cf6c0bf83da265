//! `striatum job show`

use clap::{Args, Subcommand};

use super::call::Session;
use super::events::event;
use super::output::{Output, shell_words};
use super::summary::because;
use super::table::{left_out, table, took};
use crate::error::Result;
use crate::verbs::read::job::{AttemptLine, ExecutionLine, JobReport, JobRequest, PlaceLine, Used, VerdictLine};
use crate::verbs::read::one_line;

/// Characters of a text of unknown length.
const TEXT: usize = 200;

/// Look at jobs
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Job {
    /// Show everything about one job
    Show(Show),
}

impl Job {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let Job::Show(show) = self;
        output.report(&session.call(&JobRequest { run: show.run_id, job: show.job })?, shown);
        Ok(0)
    }
}

/// Which job.
#[derive(Args)]
pub struct Show {
    /// The job
    #[arg(value_name = "JOB")]
    job: String,
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

fn shown(report: &JobReport) -> String {
    let mut text = head(report);
    text.push_str(&verdicts(&report.verdicts));
    for attempt in &report.attempts {
        text.push_str(&tried(attempt));
    }
    text.push_str(&left_out(report.attempts_left_out, "  "));
    for proposal in &report.proposals {
        text.push_str(&format!("{}\n", super::proposal::line(proposal)));
    }
    if let Some(paths) = &report.paths {
        let rows = [
            ("folder", &paths.folder),
            ("prompt", &paths.prompt),
            ("output", &paths.output),
            ("helper", &paths.helper_log),
        ];
        let rows: Vec<Vec<String>> =
            rows.iter().map(|(name, path)| vec![(*name).to_owned(), (*path).clone()]).collect();
        text.push_str(&format!("files\n{}", table("  ", &rows)));
    }
    text.push_str("events\n");
    text.push_str(&table("  ", &report.events.iter().map(event).collect::<Vec<_>>()));
    text
}

fn head(report: &JobReport) -> String {
    let who = match (&report.role, &report.lane) {
        (Some(role), Some(lane)) => format!(", {role}/{lane}"),
        (Some(role), None) => format!(", {role}"),
        (None, _) => String::new(),
    };
    let kind = serde_json::to_value(report.kind).ok().and_then(|kind| kind.as_str().map(str::to_owned));
    let mut text =
        format!("{}/{} ({}{who})\n{}", report.run, report.job, kind.unwrap_or_default(), because(&report.why));
    for next in report.why.next.iter().skip(1) {
        text.push_str(&format!("          or: {}\n", shell_words(&next.argv)));
    }
    if let Some(question) = &report.question {
        text.push_str(&format!(
            "  awaits {} from {}: {}\n",
            plain(&question.awaiting),
            plain(&question.who),
            plain(&question.action)
        ));
    }
    if !report.objective.is_empty() {
        text.push_str(&format!("  objective: {}\n", plain(&report.objective)));
    }
    let tries = [("strikes", report.strikes), ("requeues", report.requeues), ("revisions", report.revisions)];
    let tries: Vec<String> =
        tries.iter().filter(|(_, tries)| tries.limit > 0).map(|(name, tries)| used(name, *tries)).collect();
    text.push_str(&format!("  {}\n", tries.join(", ")));
    text.push_str(&places("needs", &report.needs, report.needs_left_out));
    text.push_str(&places("needed by", &report.needed_by, report.needed_by_left_out));
    text
}

fn plain(text: &str) -> String {
    one_line(text, TEXT)
}

fn used(name: &str, tries: Used) -> String {
    format!("{name} {} of {}", tries.used, tries.limit)
}

fn places(word: &str, places: &[PlaceLine], more: u32) -> String {
    if places.is_empty() {
        return String::new();
    }
    let named: Vec<String> = places.iter().map(|place| format!("{} ({})", place.job, place.state)).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("  {word}: {}{more}\n", named.join(", "))
}

fn verdicts(verdicts: &[VerdictLine]) -> String {
    let mut text = String::new();
    for line in verdicts {
        let flags = [(line.void, "void"), (line.overridden, "by a person"), (line.same_model, "same model")];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, word)| format!(", {word}")).collect();
        text.push_str(&format!("verdict of {}.{}: {}{flags}\n", line.review, line.attempt, line.verdict));
        for finding in &line.findings {
            text.push_str(&format!("  {}: {}\n", plain(&finding.title), plain(&finding.detail)));
        }
        text.push_str(&left_out(line.findings_left_out, "  "));
    }
    text
}

fn tried(attempt: &AttemptLine) -> String {
    let outcome = attempt.outcome.map_or_else(|| "open".to_owned(), |outcome| outcome.to_string());
    let session = attempt.session.map_or(String::new(), |session| format!(" by {session}"));
    let lane = attempt.lane.as_deref().map_or(String::new(), |lane| format!(" in lane {lane}"));
    let time = attempt.elapsed_ms.map_or(String::new(), |ms| format!(", {}", took(ms)));
    let detail = attempt.detail.as_deref().filter(|detail| *detail != outcome);
    let detail = detail.map_or(String::new(), |detail| format!(": {}", plain(detail)));
    let mut text = format!("attempt {}: {outcome}{session}{lane}{time}{detail}\n", attempt.number);
    let summary = attempt.summary.as_deref().filter(|summary| attempt.detail.as_deref() != Some(summary));
    if let Some(summary) = summary {
        text.push_str(&format!("  says: {}\n", plain(summary)));
    }
    for concern in &attempt.concerns {
        text.push_str(&format!("  concern: {}\n", plain(concern)));
    }
    for line in &attempt.executions {
        text.push_str(&format!("  {}\n", ran(line)));
    }
    for line in &attempt.artifacts {
        text.push_str(&format!("  artifact {} ({} bytes): {}\n", plain(&line.name), line.bytes, line.path));
    }
    text
}

fn ran(line: &ExecutionLine) -> String {
    let end = match (line.exit_code, line.signal) {
        (Some(code), _) => format!(" with {code}"),
        (None, Some(signal)) => format!(" by signal {signal}"),
        (None, None) => String::new(),
    };
    let bytes = line.output_bytes.map_or(String::new(), |bytes| format!(", {bytes} bytes of output"));
    let detail = line.detail.as_deref().map_or(String::new(), |detail| format!("; {}", plain(detail)));
    format!("{} {}{end}{bytes}{detail}", line.kind, line.state)
}
