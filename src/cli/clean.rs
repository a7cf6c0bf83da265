//! `striatum gc`, `striatum uninit`: both list, and act with `--yes`.

use clap::Args;

use super::call::Session;
use super::output::{Output, harmless, next_text};
use super::table::table;
use crate::error::Result;
use crate::verbs::gc::{GcReport, GcRequest, Leftover};
use crate::verbs::uninit::{UninitReport, UninitRequest};

/// What is asked of gc.
#[derive(Args)]
pub struct Gc {
    /// A work tree that is kept: pin its contents as a commit and take it away; or a resource that you have destroyed
    #[arg(long, value_name = "RUN/JOB|RESOURCE", requires = "reason")]
    discard: Option<String>,
    /// Why it may go; stands in the commit, or in the log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Gc {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = GcRequest { yes: session.globals.yes, discard: self.discard, reason: self.reason };
        let is_look = !request.yes && request.discard.is_none();
        let report = if is_look { session.call_to_look(&request)? } else { session.call(&request)? };
        output.report(&report, gc_text);
        Ok(0)
    }
}

fn gc_text(report: &GcReport) -> String {
    if report.left.is_empty() && report.pinned.is_none() {
        return "nothing is left of ended runs\n".to_owned();
    }
    let (goes, stays): (Vec<&Leftover>, Vec<&Leftover>) = report.left.iter().partition(|one| one.stays.is_none());
    let mut text = String::new();
    if let Some(pin) = &report.pinned {
        text.push_str(&format!("pinned what was left as {pin}\n"));
    }
    let word = if report.done { "took away" } else { "would take away" };
    if !goes.is_empty() {
        let sum: u64 = goes.iter().map(|one| one.bytes).sum();
        text.push_str(&format!("{word} {} ({}):\n{}", goes.len(), size(sum), rows(&goes)));
    }
    if !stays.is_empty() {
        text.push_str(&format!("stays:\n{}", rows(&stays)));
    }
    text + &next_text(&report.next)
}

fn rows(list: &[&Leftover]) -> String {
    let row = |one: &&Leftover| {
        let why = one.stays.clone().unwrap_or_default();
        vec![size(one.bytes), one.what.clone(), harmless(&one.path.display().to_string()), harmless(&why)]
    };
    table("  ", &list.iter().map(row).collect::<Vec<_>>())
}

/// Bytes in their largest unit.
fn size(bytes: u64) -> String {
    match bytes {
        0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
        1_048_576..1_073_741_824 => format!("{} MiB", bytes / 1_048_576),
        _ => format!("{}.{} GiB", bytes / 1_073_741_824, bytes % 1_073_741_824 * 10 / 1_073_741_824),
    }
}

/// What is asked of uninit: nothing.
#[derive(Args)]
pub struct Uninit {}

impl Uninit {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        output.report(&session.call(&UninitRequest { yes: session.globals.yes })?, uninit_text);
        Ok(0)
    }
}

fn uninit_text(report: &UninitReport) -> String {
    let word = if report.done { "took away" } else { "would take away" };
    let mut text = String::new();
    for path in &report.goes {
        text.push_str(&format!("{word} {}\n", path.display()));
    }
    if report.goes.is_empty() {
        text.push_str("there is no store to take away\n");
    }
    if !report.stays.is_empty() {
        let rows: Vec<Vec<String>> = report.stays.iter().map(|(what, why)| vec![harmless(what), why.clone()]).collect();
        text.push_str(&format!("stays:\n{}", table("  ", &rows)));
    }
    text + &next_text(&report.next)
}
