//! `striatum run list`, `run summary`, `run graph`, `run explain`: looking at runs.

use clap::{Args, ValueEnum};

use super::call::Session;
use super::inbox::inbox;
use super::output::{Output, next_text, shell_words};
use super::table::{ago, clock, dollars, left_out, table, took};
use crate::error::Result;
use crate::verbs::read::explain::{ExplainReport, ExplainRequest, Why};
use crate::verbs::read::graph::{Drawing, GraphRequest};
use crate::verbs::read::meters::Meter;
use crate::verbs::read::one_line;
use crate::verbs::read::runs::{ListReport, ListRequest, RunLine};
use crate::verbs::read::standing::StandingAnswer;
use crate::verbs::read::summary::{FlightLine, JobLine, RunSummary, SummaryReport, SummaryRequest};

/// Characters of a reason.
const TEXT: usize = 160;

/// Which runs.
#[derive(Args)]
pub struct List {
    /// Most runs shown
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
}

impl List {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        output.report(&session.call(&ListRequest { limit: self.limit })?, listed);
        Ok(0)
    }
}

fn listed(report: &ListReport) -> String {
    if report.runs.is_empty() {
        return "no runs yet\n".to_owned();
    }
    let rows: Vec<Vec<String>> = report.runs.iter().map(run_row).collect();
    table("", &rows) + &left_out(report.left_out, "")
}

fn run_row(line: &RunLine) -> Vec<String> {
    let mut about: Vec<String> = Vec::new();
    about.extend(line.cause.map(|cause| match &line.subject {
        Some(subject) => format!("{subject}: {cause}"),
        None => cause.to_string(),
    }));
    about.extend(line.driven.then(|| "driven".to_owned()));
    about.extend(line.paused_at.map(|_| "paused".to_owned()));
    vec![
        line.run.clone(),
        line.state.clone(),
        format!("{} of {} settled", line.settled, line.jobs),
        line.created_at.to_string().get(..16).unwrap_or_default().replace('T', " "),
        one_line(&about.join(", "), TEXT),
    ]
}

/// Which run.
#[derive(Args)]
pub struct Summary {
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Summary {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        output.report(&session.call(&SummaryRequest { run: self.run_id })?, summarised);
        Ok(0)
    }
}

fn summarised(report: &SummaryReport) -> String {
    let Some(run) = &report.run else { return "no runs yet\n".to_owned() };
    let mut text = brief(run);
    let title = if run.title.is_empty() { String::new() } else { format!(": {}", one_line(&run.title, TEXT)) };
    text.push_str(&format!("  workflow {}{title}, generation {} ({})\n", run.workflow, run.generation, run.snapshot));
    text.push_str(&format!(
        "  sessions: {} active, {} ever; enforcement: {}\n",
        run.active_sessions, run.sessions, run.enforcement
    ));
    let sessions: Vec<Vec<String>> = run
        .session_lines
        .iter()
        .map(|line| {
            let holds = line.holds.as_deref().map_or_else(|| "holds nothing".to_owned(), |job| format!("holds {job}"));
            vec![line.session.to_string(), format!("{}/{}", line.role, line.lane), holds]
        })
        .collect();
    text.push_str(&table("    ", &sessions));
    text.push_str(&left_out(run.sessions_left_out, "    "));
    text.push_str(&run.standing.as_ref().map(standing).unwrap_or_default());
    text.push_str("\njobs\n");
    text.push_str(&table("  ", &run.job_lines.iter().map(job_row).collect::<Vec<_>>()));
    text.push_str(&left_out(run.jobs_left_out, "  "));
    text.push_str(&format!("\n{}{}", inbox(&report.inbox), next_text(&run.next)));
    text
}

fn job_row(line: &JobLine) -> Vec<String> {
    let who = match (&line.role, &line.lane) {
        (Some(role), Some(lane)) => format!("{role}/{lane}"),
        (Some(role), None) => role.clone(),
        (None, _) => String::new(),
    };
    let mut about: Vec<String> = Vec::new();
    about.extend(line.phase.map(|phase| phase.to_string()));
    about.extend(line.reason.clone());
    about.extend((line.unmet > 0).then(|| format!("needs {}", line.unmet)));
    about.extend((line.strikes > 0).then(|| format!("strikes {}", line.strikes)));
    let attempt = if line.attempt == 0 { String::new() } else { format!(".{}", line.attempt) };
    vec![format!("{}{attempt}", line.job), line.kind.clone(), who, line.state.to_string(), about.join(", ")]
}

/// A standing answer, and whom it was given.
pub fn standing(standing: &StandingAnswer) -> String {
    let used = if standing.given_to.is_empty() { "nobody yet".to_owned() } else { standing.given_to.join(", ") };
    format!("  standing answer, given to {used}: {}\n", one_line(&standing.answer, TEXT))
}

/// A run in a few lines.
pub fn brief(run: &RunSummary) -> String {
    let mut text = format!("{}  {}", run.run, run.state);
    if let Some(reason) = &run.reason {
        text.push_str(&format!(": {}", one_line(reason, TEXT)));
    }
    let flags = [(run.paused_at, "paused"), (run.stop_requested_at, "stopped")];
    for (_, flag) in flags.iter().filter(|(at, _)| at.is_some()) {
        text.push_str(&format!(", {flag}"));
    }
    text.push_str(&format!("{}\n", run.elapsed_ms.map_or(String::new(), |ms| format!(", {}", took(ms)))));
    if let Some(held) = &run.operator_enforcement {
        text.push_str(&format!("  constrained: the operator acts through mediated verbs ({held})\n"));
    }
    let states: Vec<String> = run.by_state.iter().map(|(state, count)| format!("{count} {state}")).collect();
    text.push_str(&format!("  jobs: {} of {} settled ({})\n", run.settled, run.jobs, states.join(", ")));
    if run.ended_at.is_none() && run.started_at.is_some() {
        text.push_str(&format!("  driver: {}\n", driver(run)));
    }
    text.push_str(&table("    ", &run.in_flight.iter().map(flight_row).collect::<Vec<_>>()));
    text.push_str(&left_out(run.in_flight_left_out, "    "));
    text.push_str(&format!("  budget: {}\n", run.budget.iter().map(meter).collect::<Vec<_>>().join(", ")));
    text
}

fn driver(run: &RunSummary) -> String {
    let Some(driver) = &run.driver else {
        let way = run.next.first().map_or(String::new(), |next| format!(": {}", shell_words(&next.argv)));
        return format!("none{way}");
    };
    match (driver.pid, &driver.host, driver.started_at) {
        (Some(pid), Some(host), Some(at)) => format!("pid {pid} on {} since {} UTC", one_line(host, 40), clock(at)),
        _ => "somebody".to_owned(),
    }
}

fn flight_row(line: &FlightLine) -> Vec<String> {
    let state = line.phase.map_or_else(|| line.state.to_string(), |phase| phase.to_string());
    let quiet = line.quiet_ms.map_or_else(|| "no output yet".to_owned(), |ms| format!("last output {} ago", ago(ms)));
    vec![
        format!("{}.{}", line.job, line.attempt),
        state,
        format!("{}/{}", line.role, line.lane),
        line.session.to_string(),
        took(line.elapsed_ms),
        quiet,
    ]
}

/// A limit in a few words.
fn meter(meter: &Meter) -> String {
    let shown = |value: u64| match meter.unit.as_str() {
        "micro_usd" => dollars(value),
        "ms" => took(value),
        _ => value.to_string(),
    };
    let job = meter.job.as_deref().map_or(String::new(), |job| format!("{job} "));
    let limit = meter.limit.map_or(String::new(), |limit| format!(" of {}", shown(limit)));
    let spent = if meter.tripped { " (spent)" } else { "" };
    format!("{job}{} {}{limit}{spent}", meter.breaker, shown(meter.used))
}

/// How a graph is drawn.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum GraphFormat {
    /// One line a job, in the order in which they can run
    #[default]
    Text,
    /// A mermaid flowchart
    Mermaid,
    /// Graphviz
    Dot,
}

/// Which run, and how.
#[derive(Args)]
pub struct Graph {
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// How it is drawn
    #[arg(long, value_enum, default_value_t)]
    format: GraphFormat,
}

impl Graph {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let format = match self.format {
            GraphFormat::Text => Drawing::Text,
            GraphFormat::Mermaid => Drawing::Mermaid,
            GraphFormat::Dot => Drawing::Dot,
        };
        let report = session.call(&GraphRequest { run: self.run_id, format })?;
        output.report(&report, |report| match report.run {
            Some(_) => report.graph.clone() + &left_out(report.left_out, ""),
            None => "no runs yet\n".to_owned(),
        });
        Ok(0)
    }
}

/// Which run, and which job.
#[derive(Args)]
pub struct Explain {
    /// One job; every job that is not settled when left out
    #[arg(value_name = "JOB")]
    job: Option<String>,
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Explain {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        output.report(&session.call(&ExplainRequest { run: self.run_id, job: self.job })?, explained);
        Ok(0)
    }
}

fn explained(report: &ExplainReport) -> String {
    let (Some(run), Some(state)) = (&report.run, &report.state) else { return "no runs yet\n".to_owned() };
    let mut text = format!("{run}  {state}\n");
    for why in &report.jobs {
        text.push_str(&because(why));
    }
    if report.jobs.is_empty() {
        text.push_str("every job is settled\n");
    }
    text.push_str(&left_out(report.left_out, ""));
    if !report.planned.is_empty() {
        text.push_str(&format!("a driver would now: {}\n", report.planned.join(", ")));
    }
    text
}

/// One job's why, and what moves it.
pub fn because(why: &Why) -> String {
    let way = why.next.first().map_or_else(|| why.moved_by.clone(), |next| shell_words(&next.argv));
    format!("{}  {}: {}\n    moved by: {}\n", why.job, why.state, one_line(&why.why, TEXT), way)
}
