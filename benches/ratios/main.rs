//! Speed as ratios: each case beside its anchor, interleaved, in one run on one machine.
//!
//! `cargo bench` prints a table; `cargo bench -- --quick` a rougher one, `-- --only G1,G9` a part of it. An anchor is
//! the least program that does the same work on the same SQLite at the same `synchronous=FULL`; this binary starts
//! itself for it (see `anchor`). Absolute times stand in brackets: they are the machine's, the ratios are the
//! program's.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a table for people, and its progress")]

mod anchor;
mod claim;
mod drive;
mod hook;
mod idle;
mod machine;
mod measure;
mod memory;
mod repo;
mod short;
mod table;
mod tree;
mod trial;
mod workload;

use std::process::ExitCode;

use table::Table;

/// Anything that goes wrong ends the run with its words.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often each comparison is made; the median counts.
    pub rounds: usize,
    /// Calls of a short verb in one round.
    pub calls: usize,
    /// Fewer rows, shorter windows.
    pub quick: bool,
    only: Vec<String>,
}

impl Plan {
    fn parse(words: impl Iterator<Item = String>) -> Outcome<Plan> {
        let mut plan = Plan { rounds: 3, calls: 60, quick: false, only: Vec::new() };
        let mut words = words.filter(|word| word != "--bench");
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            match word.as_str() {
                "--quick" => (plan.quick, plan.rounds, plan.calls) = (true, 1, 25),
                "--only" => plan.only = value()?.split(',').map(str::to_uppercase).collect(),
                "--rounds" => plan.rounds = value()?.parse::<usize>()?.clamp(1, 25),
                _ => return Err(format!("{word}: --quick, --rounds N or --only G1,G9").into()),
            }
        }
        Ok(plan)
    }

    /// Whether an aim is to be measured.
    pub fn wants(&self, aim: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == aim)
    }
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let done = match words.next() {
        Some(word) if word == anchor::WORD => anchor::run(words),
        first => Plan::parse(first.into_iter().chain(words)).and_then(|plan| compare(&plan)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What measures some of the aims.
type Case = fn(&Plan, &mut Table) -> Outcome<()>;

fn compare(plan: &Plan) -> Outcome<()> {
    println!("{}", machine::describe(&trial::base()));
    println!("medians of {} round(s); synchronous=FULL on both sides\n", plan.rounds);
    let mut table = Table::default();
    let cases: [(&[&str], Case); 8] = [
        (&["G1", "G2", "G4", "G14"], short::compare),
        (&["G3"], hook::compare),
        (&["G6"], claim::compare),
        (&["G9", "G10"], drive::compare),
        (&["G12"], idle::compare),
        (&["G14"], memory::compare),
        (&["TREE"], tree::compare),
        (&["REPO"], repo::compare),
    ];
    for (aims, case) in cases {
        if !aims.iter().any(|aim| plan.wants(aim)) {
            continue;
        }
        // What was measured so far is worth its table.
        if let Err(error) = case(plan, &mut table) {
            eprintln!("error: {error}");
            table.not_run(aims[0], format!("what is left of {}", aims.join(", ")), error.to_string());
        }
    }
    println!("{table}");
    Ok(())
}

/// Says on standard error what takes its time now.
pub fn progress(text: &str) {
    eprintln!("  {text}");
}
