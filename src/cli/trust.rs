//! `striatum trust`.

use std::path::PathBuf;

use clap::Args;

use super::call::Session;
use super::output::{Output, next_text};
use crate::error::Result;
use crate::verbs::trust::{ShowRequest, Standing, TrustReport, TrustRequest, Trusted};

/// Which files, and whether to look only.
#[derive(Args)]
pub struct Trust {
    /// Files; config.toml, all of workflows/ and live runs when left out
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show every command that would run, trust nothing
    #[arg(long)]
    show: bool,
}

impl Trust {
    /// Shows, or trusts.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let files = self.files.into_iter().map(std::path::absolute).collect::<std::io::Result<Vec<_>>>()?;
        let report =
            if self.show { session.call(&ShowRequest { files })? } else { session.call(&TrustRequest { files })? };
        output.report(&report, shown);
        Ok(0)
    }
}

fn shown(report: &TrustReport) -> String {
    let mut text = String::new();
    for one in report.files.iter().chain(&report.runs) {
        text.push_str(&of_one(one, report.granted));
    }
    if text.is_empty() {
        text.push_str("there is nothing to trust here\n");
    }
    text + &next_text(&report.next)
}

fn of_one(one: &Trusted, granted: bool) -> String {
    let is_open = matches!(one.standing, Standing::New | Standing::Changed);
    let word = match one.standing {
        Standing::Nothing => "runs nothing".to_owned(),
        Standing::Unreadable => format!("can't be read: {}", one.fault.as_deref().unwrap_or_default()),
        Standing::Trusted => "trusted before".to_owned(),
        Standing::New | Standing::Changed if granted => "trusted now".to_owned(),
        Standing::Changed => "changed since it was trusted".to_owned(),
        Standing::New => "not trusted".to_owned(),
    };
    let mut text = format!("{}: {word}\n", one.name);
    // After a change the difference is what a person has to read; without one, everything.
    let lines = match (one.standing, granted) {
        (Standing::Changed, true) => one.changed.as_slice(),
        (_, true) if !is_open => &[],
        _ => one.lines.as_slice(),
    };
    for line in lines {
        text.push_str(&format!("  {line}\n"));
    }
    if one.standing == Standing::Changed && !granted {
        text.push_str("  since then:\n");
        for line in &one.changed {
            text.push_str(&format!("  {line}\n"));
        }
    }
    text
}
