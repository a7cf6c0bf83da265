//! `striatum gate ...`

use clap::{Args, Subcommand};

use super::call::Session;
use super::output::{Output, next_text};
use crate::domain::change::short;
use crate::domain::session::LandingKind;
use crate::domain::verdict::Finding;
use crate::error::Result;
use crate::verbs::gate::behind::{Behind, LandingView};
use crate::verbs::gate::revise::{ReviseReport, ReviseRequest};
use crate::verbs::gate::{
    ApproveRequest, DecideReport, Deciding, GateLine, ListReport, ListRequest, RejectRequest, ShowReport, ShowRequest,
    SkipRequest,
};
use crate::verbs::land::Landed;
use crate::verbs::read::harmless;
use crate::verbs::run::marker::Onward;

/// See what waits for a person's word, and say it
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Gate {
    /// List what waits
    List {
        /// Only what the pattern fits, with the digest that binds a decision to exactly that
        #[arg(value_name = "PATTERN")]
        pattern: Option<String>,
        /// The run; the only live one, else the newest, when left out
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Decided ones too
        #[arg(long)]
        all: bool,
    },
    /// Show what a gate is about
    Show {
        /// The gate, or the job that waits
        #[arg(value_name = "GATE")]
        gate: String,
        /// The run, when the gate is named by its job
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// The whole of every difference
        #[arg(long)]
        full: bool,
    },
    /// Let jobs go on; a checkpoint is completed by it
    Approve(Which),
    /// Stop jobs here
    Reject(Which),
    /// Pass jobs over; what needs them goes on
    Skip(Which),
    /// Send the work behind a gate back to its author, with what is to be done otherwise
    Revise {
        /// The gate, the job that waits, or a review whose revisions are spent
        #[arg(value_name = "GATE")]
        gate: String,
        /// The run, when the gate is named by its job
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// The job to send back, when several are behind the gate
        #[arg(long, value_name = "JOB")]
        job: Option<String>,
        /// What is to be done otherwise; the author finds it in the next packet
        #[arg(long, value_name = "TEXT")]
        note: String,
    },
}

/// Which gates, with which words.
#[derive(Args)]
pub struct Which {
    /// Gates, or the jobs that wait, or patterns of them (can be repeated)
    #[arg(value_name = "GATE", required = true)]
    gates: Vec<String>,
    /// The run, when gates are named by their jobs
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// A word about it; kept, and told to whoever works the job
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// With a pattern: the digest that `gate list PATTERN` shows
    #[arg(long, value_name = "DIGEST")]
    set: Option<String>,
}

impl Which {
    fn deciding(self) -> Deciding {
        Deciding { run: self.run_id, gates: self.gates, note: self.note, set: self.set }
    }
}

impl Gate {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Gate::List { pattern, run_id, all } => {
                output
                    .report(&session.call(&ListRequest { run: run_id, all, pattern })?, |list| harmless(&listed(list)));
            }
            Gate::Show { gate, run_id, full } => {
                output.report(&session.call(&ShowRequest { run: run_id, gate, full })?, |show| harmless(&shown(show)));
            }
            Gate::Approve(which) => output.report(&session.call(&ApproveRequest(which.deciding()))?, decided),
            Gate::Reject(which) => output.report(&session.call(&RejectRequest(which.deciding()))?, decided),
            Gate::Skip(which) => output.report(&session.call(&SkipRequest(which.deciding()))?, decided),
            Gate::Revise { gate, run_id, job, note } => {
                output.report(&session.call(&ReviseRequest { run: run_id, gate, job, note })?, revised);
            }
        }
        Ok(0)
    }
}

fn listed(report: &ListReport) -> String {
    let mut text: String = report.gates.iter().map(|gate| format!("{}\n", line(gate))).collect();
    if report.gates.is_empty() {
        text.push_str("no gate waits\n");
    }
    if report.left_out > 0 {
        text.push_str(&format!("and {} more\n", report.left_out));
    }
    if let Some(set) = &report.set {
        text.push_str(&format!("set {set}\n"));
    }
    text + &next_text(&report.next)
}

fn line(gate: &GateLine) -> String {
    let id = gate.gate.map_or("-".to_owned(), |id| id.to_string());
    let why = if gate.why.is_empty() { String::new() } else { format!(": {}", gate.why) };
    let by = match (&gate.decided_by, &gate.how) {
        (Some(by), Some(how)) => format!(" by {by} ({how})"),
        (Some(by), None) => format!(" by {by}"),
        (None, _) => String::new(),
    };
    let note = gate.note.as_deref().map_or(String::new(), |note| format!(" - {note}"));
    format!("{id} {} {} before {}{by}{note}{why}", gate.state, gate.tier, gate.job)
}

fn shown(report: &ShowReport) -> String {
    let mut text = format!("{}\nrun {}\n", line(&report.gate), report.run);
    if !report.objective.is_empty() {
        text.push_str(&format!("it would do: {}\n", report.objective));
    }
    text.push_str(&report.standing.as_ref().map(super::summary::standing).unwrap_or_default());
    if let Some(proposed) = &report.proposal {
        let or = |word: &Option<String>| word.clone().unwrap_or_else(|| "any".to_owned());
        let reach = match proposed.writes.as_slice() {
            [] => "changes nothing".to_owned(),
            writes => format!("may change {}", writes.join(", ")),
        };
        let line = super::proposal::line(&proposed.line);
        text.push_str(&format!("{line}\nas {}/{}, it {reach}\n", or(&proposed.role), or(&proposed.lane)));
    }
    for before in &report.needs {
        let summary = before.summary.as_deref().map_or(String::new(), |summary| format!(": {summary}"));
        text.push_str(&format!("after {} ({}){summary}\n", before.job, before.state));
    }
    for artifact in &report.artifacts {
        text.push_str(&format!("{}.{} ({} bytes): {}\n", artifact.job, artifact.name, artifact.bytes, artifact.path));
    }
    if report.left_out > 0 {
        text.push_str(&format!("and {} more\n", report.left_out));
    }
    text + &behind(&report.behind) + &next_text(&report.next)
}

/// Reviews, verifications, the landing, and the difference last.
fn behind(behind: &Behind) -> String {
    let mut text = String::new();
    for review in &behind.reviews {
        text.push_str(&format!("{} says {}\n", review.review, review.verdict));
        text.extend(review.findings.iter().map(finding));
    }
    for check in &behind.checks {
        let exit = check.exit.map_or(String::new(), |exit| format!(", exit {exit}"));
        text.push_str(&format!(
            "verified {}.{}: {} ({}{exit})\n",
            check.job, check.attempt, check.command, check.state
        ));
    }
    text.push_str(&behind.landing.as_ref().map(landing).unwrap_or_default());
    for change in &behind.changes {
        let of = change.job.as_deref().unwrap_or("the run");
        text.push_str(&format!("{of} changes {} files\n", change.files.len()));
        for file in &change.files {
            let lines =
                file.added.zip(file.removed).map_or("binary".to_owned(), |(more, less)| format!("+{more} -{less}"));
            text.push_str(&format!("  {} {lines}\n", file.path));
        }
        text.push_str(change.patch.as_deref().unwrap_or_default());
        if change.truncated {
            text.push_str("the rest is not shown; --full shows it\n");
        }
    }
    text
}

fn finding(finding: &Finding) -> String {
    let place = finding.path.as_deref().map_or(String::new(), |path| format!(" ({path})"));
    let detail = finding.detail.trim();
    let detail = if detail.is_empty() || detail == finding.title { String::new() } else { format!(": {detail}") };
    format!("  {}{place}{detail}\n", finding.title)
}

fn landing(landing: &LandingView) -> String {
    let of = |commit: &Option<String>| commit.as_deref().map_or("-", short).to_owned();
    let into = landing.into.as_deref().unwrap_or("its own branch");
    let at = if landing.target.is_some() { format!(" (at {})", of(&landing.target)) } else { String::new() };
    let mut text = format!("lands {} ({}) on {into}{at}, {}\n", landing.branch, of(&landing.tip), landing.style);
    for commit in &landing.commits {
        text.push_str(&format!("  {} {}\n", short(&commit.commit), commit.subject));
    }
    if let Some(finds) = landing.finds {
        text.push_str(&format!("nothing would be moved: {finds}\n"));
    }
    if let Some(obstacle) = &landing.obstacle {
        text.push_str(&format!("it can't land now: {obstacle}\n"));
    }
    text
}

fn revised(report: &ReviseReport) -> String {
    let gate = report.gate.map_or(String::new(), |gate| format!("gate {gate} is revised: "));
    let text = format!("{gate}{} goes on with attempt {}, which is told\n", report.job, report.attempt);
    text + &onward_text(&report.run, &report.onward)
}

fn decided(report: &DecideReport) -> String {
    let mut text = String::new();
    for gate in &report.decided {
        let word = gate.decision.state();
        let again = if gate.already { " (it was before)" } else { "" };
        text.push_str(&format!("{word} {} before {}{again}\n", gate.gate, gate.job));
        text.push_str(&gate.landed.as_ref().map(landed).unwrap_or_default());
    }
    let run = report.decided.first().map_or("", |gate| gate.run.as_str());
    text + &onward_text(run, &report.onward)
}

/// What landed, and where.
pub fn landed(landed: &Landed) -> String {
    let into = landed.into.as_deref().unwrap_or("-");
    let at = landed.commit.as_deref().map_or("", short);
    let again = if landed.already { ", and was landed before: nothing to do" } else { "" };
    let mut text = match landed.kind {
        LandingKind::Squash => format!("landed {} on {into} as {at}{again}\n", landed.branch),
        LandingKind::Merge => format!("merged {} into {into} as {at}{again}\n", landed.branch),
        LandingKind::Ff => format!("moved {into} on to {at}{again}\n"),
        LandingKind::Outside => format!("landed outside: {into} has what {} changed{again}\n", landed.branch),
        LandingKind::Nothing => format!("{} changed nothing: {into} stays as it is{again}\n", landed.branch),
        LandingKind::Branch => format!("the run ends at its branch, {}: no target is named\n", landed.branch),
    };
    for folder in &landed.followed {
        text.push_str(&format!("{folder} shows it\n"));
    }
    text
}

/// Who takes a run on from here.
pub fn onward_text(run: &str, onward: &Onward) -> String {
    let driver = onward.driver.map_or(String::new(), |pid| format!("; a driver is at it (pid {pid})"));
    format!("run {run} is {}{driver}\n{}", onward.state, next_text(&onward.next))
}
