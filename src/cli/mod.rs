//! The command line: parse words, call one verb, render its report.
//!
//! It decides nothing. Hidden verbs (helpers and their shims) and git's hooks are matched before clap is built.

mod audit;
mod call;
mod check;
mod clean;
mod config;
mod control;
mod dashboard;
mod decision;
mod diff;
mod doctor;
mod drive;
mod events;
mod gate;
mod go;
mod help;
mod hook;
mod inbox;
mod init;
mod job;
mod lane;
mod logs;
mod notice;
mod operator;
mod output;
mod pages;
mod person;
mod process;
mod proposal;
mod quickstart;
mod repo;
mod review;
mod run;
mod scope_check;
mod session;
mod status;
mod summary;
mod supervise;
mod table;
mod trust;
mod words;
mod work;
mod workflow;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::error::Result;
use call::Session;
use output::Output;

/// Run several AI coding agents through a reviewed workflow, unattended, in one repository
#[derive(Parser)]
#[command(name = "striatum", version, max_term_width = 100, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    verb: Verb,
}

/// Flags that every verb takes.
#[derive(Args, Clone, Debug, Default)]
pub struct Globals {
    /// The store's folder, instead of looking for one
    #[arg(long, global = true, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// One JSON document on standard output
    #[arg(long, global = true)]
    json: bool,
    /// The same key gets the first answer again
    #[arg(long, global = true, value_name = "KEY")]
    request_id: Option<String>,
    /// Say more on standard error (can be repeated)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Act as a person though no terminal or an agent was detected; recorded
    #[arg(long, global = true)]
    as_person: bool,
    /// Do what would lose something, instead of showing it
    #[arg(long, global = true)]
    yes: bool,
}

#[derive(Subcommand)]
#[command(defer = true)]
enum Verb {
    /// Set up striatum in this repository, with a first workflow
    Init(init::Init),
    /// Take striatum's state away, and list what stays
    Uninit(clean::Uninit),
    /// List what ended runs have left, and take it away with --yes
    Gc(clean::Gc),
    /// See a reviewed workflow run, in a new small repository
    Quickstart(quickstart::Quickstart),
    /// Let the commands run that config.toml and workflows name
    Trust(trust::Trust),
    /// Print what completes words in a shell
    Completion(pages::Completion),
    /// Print a manual page, or write all of them
    Man(pages::Man),
    /// Show what waits for you, and how every live run does
    Status(status::Status),
    /// Show what waits for you, each with the command that ends it
    Inbox(inbox::Inbox),
    /// Look at jobs
    #[command(subcommand)]
    Job(job::Job),
    /// Show what an agent printed
    Logs(logs::Logs),
    /// Show what a run, a job or an attempt changed
    Diff(diff::Diff),
    /// Show what happened
    Events(events::Events),
    /// Verify the log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Look whether the store, what belongs to it and the machine under it are sound
    Doctor(doctor::Doctor),
    /// Show everything on one screen
    Dashboard(dashboard::Dashboard),
    /// Prepare, start, drive and look at runs
    #[command(subcommand)]
    Run(run::Run),
    /// Register a session in a slot of a run
    RegisterSession(session::Register),
    /// List and close sessions
    #[command(subcommand)]
    Session(session::Session),
    /// Start and stop helpers
    #[command(subcommand)]
    Supervise(supervise::Supervise),
    /// The agent's side: claim, publish, answer
    #[command(subcommand)]
    Work(work::Work),
    /// See what waits for a person's word, and say it
    #[command(subcommand)]
    Gate(gate::Gate),
    /// Answer a job that asked; its next attempt is told
    Answer(person::Answer),
    /// Work a job yourself
    Take(person::Take),
    /// Give a job back that you took
    Give(person::Give),
    /// Judge over reviews
    #[command(subcommand)]
    Review(review::Review),
    /// Change a job's work tree, judged before anything is there
    #[command(subcommand)]
    Repo(repo::Repo),
    /// Run declared commands of a job, with evidence
    #[command(subcommand)]
    Process(process::Process),
    /// Run the operator's own program so that the kernel holds it
    #[command(subcommand)]
    Operator(operator::Operator),
    /// Record judgements with their reasons, and list them
    #[command(subcommand)]
    Decision(decision::Decision),
    /// See how lanes do, and pause them
    #[command(subcommand)]
    Lane(lane::Lane),
    /// Try how you are told that something waits
    #[command(subcommand)]
    Notify(notice::Notify),
    /// Check, show, draw and write workflows
    #[command(subcommand)]
    Workflow(workflow::Workflow),
    /// Say what the seal would refuse in this job's work tree
    ScopeCheck(scope_check::ScopeCheck),
    /// Install git hooks, and what they call
    #[command(subcommand)]
    Hook(hook::Hook),
    /// What holds here, where it comes from, and what may be written
    #[command(subcommand)]
    Config(config::Config),
}

/// Runs the command line; the exit code is the table's.
pub fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    match words.get(1).and_then(|word| word.to_str()) {
        Some(crate::verbs::supervise::LANE_VERB) => {
            return ExitCode::from(crate::verbs::supervise::run_lane(words.into_iter().skip(2)));
        }
        Some(crate::verbs::supervise::start::HELPER_VERB) => return supervise::helper(&words),
        Some(crate::verbs::resource::destroy::RESOURCE_VERB) => return supervise::destroyer(&words),
        Some(crate::verbs::notice::NOTIFY_VERB) => return notice::tell(&words),
        Some(crate::verbs::operator::STEP) => return operator::step(&words),
        _ => {}
    }
    if let Some(ended) = operator::forwarded(&words) {
        let is_json = words.iter().any(|word| word == "--json");
        return ended.map_or_else(
            |error| Output::new(&Globals { json: is_json, ..Globals::default() }).error(&error),
            ExitCode::from,
        );
    }
    if let Some(code) = hook::called(words.get(1..).unwrap_or_default()) {
        return code;
    }
    let cli = match words::parse(&words) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&in_full(error, &words), &words),
    };
    let output = Output::new(&cli.globals);
    let session = Session::new(cli.globals.clone());
    match dispatch(cli.verb, &session, &output) {
        Ok(code) => ExitCode::from(code),
        Err(error) => output.error(&error),
    }
}

/// Help is told in full only when it is asked for.
fn in_full(error: clap::Error, words: &[OsString]) -> clap::Error {
    use clap::error::ErrorKind;
    if !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
        return error;
    }
    help::decorate(Cli::command()).try_get_matches_from(words).err().unwrap_or(error)
}

fn dispatch(verb: Verb, session: &Session, output: &Output) -> Result<u8> {
    match verb {
        Verb::Init(init) => init.run(session, output),
        Verb::Uninit(verb) => verb.run(session, output),
        Verb::Gc(verb) => verb.run(session, output),
        Verb::Quickstart(quickstart) => quickstart.run(session, output),
        Verb::Trust(trust) => trust.run(session, output),
        Verb::Completion(completion) => completion.run(output),
        Verb::Man(man) => man.run(output),
        Verb::Status(verb) => verb.run(session, output),
        Verb::Inbox(verb) => verb.run(session, output),
        Verb::Job(verb) => verb.run(session, output),
        Verb::Logs(verb) => verb.run(session, output),
        Verb::Diff(verb) => verb.run(session, output),
        Verb::Events(verb) => verb.run(session, output),
        Verb::Dashboard(verb) => verb.run(session, output),
        Verb::Doctor(verb) => verb.run(session, output),
        Verb::Audit(verb) => verb.run(session, output),
        Verb::Run(run) => run.run(session, output),
        Verb::RegisterSession(register) => register.run(session, output),
        Verb::Session(verb) => verb.run(session, output),
        Verb::Supervise(verb) => verb.run(session, output),
        Verb::Work(verb) => verb.run(session, output),
        Verb::Gate(verb) => verb.run(session, output),
        Verb::Answer(verb) => verb.run(session, output),
        Verb::Take(verb) => verb.run(session, output),
        Verb::Give(verb) => verb.run(session, output),
        Verb::Review(verb) => verb.run(session, output),
        Verb::Repo(verb) => verb.run(session, output),
        Verb::Process(verb) => verb.run(session, output),
        Verb::Operator(verb) => verb.run(session, output),
        Verb::Decision(verb) => verb.run(session, output),
        Verb::Lane(verb) => verb.run(session, output),
        Verb::Notify(verb) => verb.run(session, output),
        Verb::Workflow(verb) => verb.run(session, output),
        Verb::Config(verb) => verb.run(session, output),
        Verb::ScopeCheck(verb) => verb.run(session, output),
        Verb::Hook(verb) => verb.run(session, output),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::domain::job::Cause;
    use crate::verbs::read::ways::{Subject, out_of};

    #[test]
    fn every_command_that_ends_a_cause_can_be_typed() {
        let subject = Subject {
            run: "w-1",
            job: Some("draft"),
            role: Some("author"),
            lane: Some("script"),
            gate: Some("g1"),
            of: None,
        };
        for cause in Cause::ALL {
            for next in out_of(*cause, &subject) {
                let typed = Cli::try_parse_from(&next.argv);
                assert!(typed.is_ok(), "{cause}: {}\n{}", next.argv.join(" "), typed.err().unwrap());
            }
        }
    }
}
