//! `striatum init`.

use clap::Args;

use super::call::Session;
use super::output::{Output, next_text};
use crate::error::Result;
use crate::verbs::init::{InitReport, InitRequest};

/// Nothing to say: the place is found.
#[derive(Args)]
pub struct Init {}

impl Init {
    /// Sets up, and tells.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        output.report(&session.call(&InitRequest {})?, shown);
        Ok(0)
    }
}

fn shown(report: &InitReport) -> String {
    let root = report.root.display();
    let mut text = match report.made.is_empty() {
        true => format!("{root} was set up before; nothing was changed\n"),
        false => format!("set up {root}\n"),
    };
    for (word, names) in [("made", &report.made), ("kept", &report.kept)] {
        if !names.is_empty() && !report.made.is_empty() {
            text.push_str(&format!("{word} {}\n", names.join(", ")));
        }
    }
    text.push_str(&agents_text(report));
    for note in &report.notes {
        text.push_str(&format!("{note}\n"));
    }
    text + &next_text(&report.next)
}

fn agents_text(report: &InitReport) -> String {
    if report.agents.is_empty() {
        return "found no agent on the PATH; lanes that are scripts need none\n".to_owned();
    }
    let found: Vec<String> =
        report.agents.iter().map(|agent| format!("{} ({})", agent.name, agent.program.display())).collect();
    let chosen = match (&report.author, &report.reviewer) {
        (Some(author), Some(reviewer)) => format!("; to write {author}, to judge {reviewer}"),
        _ => String::new(),
    };
    format!("found {}{chosen}\n", found.join(", "))
}
