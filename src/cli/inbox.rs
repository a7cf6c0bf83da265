//! `striatum inbox`

use clap::Args;

use super::call::Session;
use super::output::{Output, shell_words};
use super::table::{ago, table};
use crate::error::Result;
use crate::verbs::read::inbox::{InboxReport, InboxRequest, Item};
use crate::verbs::read::one_line;

/// Characters of an item's text.
const TEXT: usize = 160;

/// What waits for you.
#[derive(Args)]
pub struct Inbox {
    /// One run; all live ones when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Most items shown
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
}

impl Inbox {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&InboxRequest { run: self.run_id, limit: self.limit })?;
        output.report(&report, inbox);
        Ok(0)
    }
}

/// What waits, each with its command.
pub fn inbox(report: &InboxReport) -> String {
    let total = report.items.len() + report.left_out as usize;
    let head = match total {
        0 => return "inbox: empty\n".to_owned(),
        1 => "inbox: 1 waits for you\n".to_owned(),
        more => format!("inbox: {more} wait for you\n"),
    };
    let lines = table("  ", &report.items.iter().map(row).collect::<Vec<_>>());
    let mut text = head;
    for (line, item) in lines.lines().zip(&report.items) {
        text.push_str(&format!("{line}\n      {}\n", about(item)));
    }
    if report.left_out > 0 {
        text.push_str(&format!("  and {} more: striatum inbox --limit {total}\n", report.left_out));
    }
    text
}

fn row(item: &Item) -> Vec<String> {
    let place = match (&item.run, &item.job) {
        (Some(run), Some(job)) if item.id != *job => format!("{run}/{job}"),
        (Some(run), _) if item.id != *run => run.clone(),
        _ => String::new(),
    };
    let command = item.next.first().map(|next| shell_words(&next.argv)).unwrap_or_default();
    let cause = if item.stops_run { format!("{} (stops the run)", item.cause) } else { item.cause.to_string() };
    vec![item.id.clone(), ago(item.age_ms), place, cause, command]
}

fn about(item: &Item) -> String {
    match &item.question {
        Some(question) => {
            one_line(&format!("awaits {} from {}: {}", question.awaiting, question.who, question.action), TEXT)
        }
        None => one_line(&item.text, TEXT),
    }
}
