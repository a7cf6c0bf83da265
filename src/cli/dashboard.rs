//! `striatum dashboard --once`: one screen, as wide as the terminal.

use clap::Args;

use super::call::Session;
use super::events::event;
use super::output::{Output, next_text};
use super::status::status;
use super::table::{clock, table};
use crate::error::{Code, Error, Next, Result};
use crate::verbs::read::dashboard::{DashboardReport, DashboardRequest, terminal_width};

/// Columns where there is no terminal.
const WIDTH: usize = 100;

/// One screen.
#[derive(Args)]
pub struct Dashboard {
    /// Draw it once
    #[arg(long)]
    once: bool,
    /// One run; the live ones, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl Dashboard {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        if !self.once {
            return Err(Error::new(Code::NotYet, "the dashboard that keeps itself up to date is not there yet")
                .next(Next::new("anyone", "draw it once", &["striatum", "dashboard", "--once"])));
        }
        let report = session.call(&DashboardRequest { run: self.run_id })?;
        let width = terminal_width().or_else(columns).unwrap_or(WIDTH).max(20);
        output.report(&report, |report| fitted(&screen(report), width));
        Ok(0)
    }
}

fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

fn screen(report: &DashboardReport) -> String {
    let mut text = format!("striatum  {} UTC  {}\n\n", clock(report.at), report.status.store);
    text.push_str(&status(&report.status));
    text.push_str(&next_text(&report.status.next));
    text.push_str("\nevents\n");
    text.push_str(&table("  ", &report.events.iter().map(event).collect::<Vec<_>>()));
    text
}

/// Lines that fit: what is longer is cut, and shows it. A command is never cut: it is to be copied.
fn fitted(text: &str, width: usize) -> String {
    let fit = |line: &str| {
        if line.chars().count() <= width || line.contains("  striatum ") || line.starts_with("next: ") {
            return format!("{line}\n");
        }
        let mut cut: String = line.chars().take(width - 1).collect();
        cut.push_str("…\n");
        cut
    };
    text.lines().map(fit).collect()
}
