//! `striatum quickstart`: the driver's lines while it goes on, and at the end what happened and where to look.

use std::path::{Path, PathBuf};

use clap::Args;

use super::call::Session;
use super::drive::Screen;
use super::output::{Output, complain, harmless, shell_words};
use crate::domain::world::World;
use crate::error::{Code, Error, Next, Result};
use crate::verbs::quickstart::{AttemptStory, JobStory, QuickstartReport, QuickstartRequest, quickstart};
use crate::verbs::run::drive::{Teller, Told};

/// Where.
#[derive(Args)]
pub struct Quickstart {
    /// A new or empty folder outside every repository; a temporary one when left out
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl Quickstart {
    /// Drives the small workflow and tells the way.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        if session.globals.dir.is_some() {
            return Err(Error::new(
                Code::Usage,
                "--dir names the folder of a store that is there; quickstart makes its own",
            )
            .hint("name the new repository without it: `striatum quickstart DIR`"));
        }
        let dir = self.folder.map(std::path::absolute).transpose()?;
        let request = QuickstartRequest { dir, program: program() };
        let exe = crate::verbs::ctx::own_program();
        let report = if output.is_json() {
            quickstart(exe, &request, &mut Aside)?
        } else {
            let mut screen = Screen::new(false, HEARTBEAT_MS);
            let report = quickstart(exe, &request, &mut screen)?;
            screen.clear();
            report
        };
        output.report(&report, |report| told(report, &request.program));
        Ok(report.exit)
    }
}

/// Without a terminal, a line at this interval, in milliseconds.
const HEARTBEAT_MS: u64 = 10_000;

/// This program as a shell finds it: by its name when the PATH leads here, else by its path.
fn program() -> String {
    let Ok(own) = std::env::current_exe() else { return "striatum".to_owned() };
    let is_first = std::env::var_os("PATH")
        .and_then(|path| std::env::split_paths(&path).map(|folder| folder.join("striatum")).find(|file| file.is_file()))
        .and_then(|file| file.canonicalize().ok())
        .is_some_and(|found| own.canonicalize().is_ok_and(|own| own == found));
    if is_first { "striatum".to_owned() } else { own.display().to_string() }
}

/// Progress beside a JSON document.
struct Aside;

impl Teller for Aside {
    fn tell(&mut self, told: &Told) {
        if let Some(line) = &told.line {
            complain(&format!("{line}\n"));
        }
    }

    fn show(&mut self, _run: &str, _world: &World) {}
}

fn told(report: &QuickstartReport, program: &str) -> String {
    let seconds = report.took_ms / 1_000;
    let tenths = report.took_ms % 1_000 / 100;
    let mut text = format!("run {} -> {}: {} ({seconds}.{tenths}s)\n", report.run, report.state, report.reason);
    text.push_str("\nWhat happened\n");
    for job in &report.jobs {
        text.push_str(&job_text(job));
    }
    if let Some(change) = &report.change {
        text.push_str("\nThe change, which nobody has landed yet\n");
        let patch = change.patch.as_deref().unwrap_or_default();
        text.push_str(&patch.lines().map(|line| format!("  {}\n", harmless(line))).collect::<String>());
    }
    text.push_str(&look_text(report, program));
    text.push_str(&onward_text(report));
    text
}

fn job_text(job: &JobStory) -> String {
    job.attempts.iter().map(|attempt| attempt_text(&job.job, attempt)).collect()
}

fn attempt_text(job: &str, attempt: &AttemptStory) -> String {
    let outcome = attempt.verdict.as_ref().or(attempt.outcome.as_ref()).cloned().unwrap_or_else(|| "open".to_owned());
    let detail = attempt.detail.as_deref().unwrap_or_default();
    let mut text = format!("  {:12} {:20} {detail}\n", format!("{job}.{}", attempt.number), outcome);
    for finding in &attempt.findings {
        text.push_str(&format!("  {:33} - {}: {}\n", "", finding.title, finding.detail));
    }
    text
}

fn look_text(report: &QuickstartReport, program: &str) -> String {
    let mut text = format!("\nLook around\n  cd {}\n", word(&report.folder));
    for next in &report.looks {
        text.push_str(&format!("  {}   # {}\n", shell_words(&short(next)), next.why));
    }
    text.push_str(&format!(
        "\nIn a repository of your own\n  {program} init   # finds your agents, writes a workflow\n"
    ));
    text.push_str(&format!("\nTo throw this one away\n  rm -rf {}\n", word(&report.folder)));
    text
}

/// The last line is the command that goes on.
fn onward_text(report: &QuickstartReport) -> String {
    let is_well = report.exit == 0;
    let title = if is_well { "It waits for your word: this lands it on main" } else { "What to do now" };
    let commands = report.next.iter().map(|next| format!("  {}\n", shell_words(&next.argv)));
    let commands: Vec<String> = commands.collect();
    if commands.is_empty() { String::new() } else { format!("\n{title}\n{}", commands.concat()) }
}

fn word(path: &Path) -> String {
    shell_words(&[path.display().to_string()])
}

/// A command as it is typed in the folder: without `--dir`.
fn short(next: &Next) -> Vec<String> {
    let mut words = next.argv.clone();
    if let Some(at) = words.iter().position(|word| word == "--dir") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words
}
