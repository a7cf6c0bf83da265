//! `striatum run check`, and the same before `run go`.

use super::call::Session;
use super::output::{Output, complain, harmless, next_text};
use super::run::Prepare;
use super::table::table;
use crate::domain::change::short;
use crate::error::{Code, Error, Result};
use crate::verbs::run::check::{Check, CheckReport, CheckRequest};
use crate::verbs::run::prepare::PrepareRequest;

/// Calls the verb and shows its report.
pub fn run(prepare: &Prepare, session: &Session, output: &Output) -> Result<u8> {
    let report = session.call(&CheckRequest { prepare: prepare.request()? })?;
    output.report(&report, text);
    Ok(report.exit())
}

/// Refuses to go on where something is red, unless that is known and wanted.
pub fn before(prepare: &PrepareRequest, base_red: bool, session: &Session) -> Result<()> {
    let report = session.unkeyed().call(&CheckRequest { prepare: prepare.clone() })?;
    let is_fatal = |check: &&Check| check.kind == "lane" || check.kind == "disk";
    if let Some(check) = report.bad().find(is_fatal) {
        let code = if check.kind == "lane" { Code::CommandMissing } else { Code::DiskFull };
        return Err(Error::new(code, format!("{} {}: {}", check.kind, check.what, check.detail)));
    }
    let red: Vec<&Check> = report.bad().collect();
    let Some(first) = red.first() else { return Ok(()) };
    if base_red {
        complain(&format!("warning: red before anybody touched anything: {}\n", names(&red)));
        return Ok(());
    }
    let code = if report.exit() == Code::NotRun.kind().exit() { Code::NotRun } else { Code::Findings };
    let mut error = Error::new(code, format!("red before anybody touched anything: {}", names(&red)));
    for line in first.detail.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev() {
        error = error.cause(harmless(line));
    }
    Err(error.hint("if that is what the run is to mend, or does not matter: --base-red"))
}

fn names(red: &[&Check]) -> String {
    red.iter().map(|check| format!("{} `{}` {}", check.kind, check.what, check.result)).collect::<Vec<_>>().join(", ")
}

fn text(report: &CheckReport) -> String {
    let mut text = match &report.base {
        Some(base) => format!("base {}\n", short(base)),
        None => String::new(),
    };
    let row = |check: &Check| {
        let detail = if check.detail.contains('\n') { String::new() } else { harmless(&check.detail) };
        vec![check.result.to_string(), check.kind.clone(), harmless(&check.what), detail]
    };
    text.push_str(&table("", &report.checks.iter().map(row).collect::<Vec<_>>()));
    for check in report.bad().filter(|check| check.detail.contains('\n')) {
        text.push_str(&format!("\n{} said\n", check.what));
        text.push_str(&check.detail.lines().map(|line| format!("  {}\n", harmless(line))).collect::<String>());
    }
    text + &next_text(&report.next)
}
