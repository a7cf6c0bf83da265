//! `audit verify`: whether the log is whole and bears out what the rows say; of one run, whether it kept the rules.
//!
//! It proves that nobody changed what was told, as far as the newest event goes: whoever can write the file can write
//! a new chain. It changes nothing.

use serde::{Deserialize, Serialize};

use self::rules::{Checked, Judgement};
use super::{bounded, count};
use crate::domain::workflow::hash;
use crate::error::{Code, Error, Result};
use crate::store::{self, Connection, audit, invariant};
use crate::verbs::Ctx;
use crate::verbs::run::find;

pub mod rules;

/// Violations told of one rule.
const SHOWN: u32 = 20;

/// What `audit verify` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AuditRequest {
    /// A run to look at more closely, alive or over.
    #[serde(default)]
    pub run: Option<String>,
}

/// Something that the log and the rows do not agree on, or a broken link.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Violation {
    /// A stable word.
    pub code: String,
    /// What it is.
    pub what: String,
    /// Where it is.
    pub place: String,
}

/// What `audit verify` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditReport {
    /// The run that was looked at more closely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Each rule of a driven run, and what looking came to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checked: Vec<Checked>,
    /// Events in the chain.
    pub events: i64,
    /// Rules that were checked, the chain among them.
    pub rules: u32,
    /// What is violated.
    pub violations: Vec<Violation>,
    /// How many are not shown.
    pub left_out: u32,
    /// Why some of it could not be checked.
    pub not_run: Vec<String>,
    /// 0; 1 with violations; 11 when something could not be checked and nothing was found.
    pub exit: u8,
}

/// Verifies the whole store, or what it holds of one run.
pub fn verify(ctx: &Ctx, request: &AuditRequest) -> Result<AuditReport> {
    // What can't be opened is an error of its own.
    let run = ctx.read(|read| request.run.as_deref().map(|name| find::named(read, name)).transpose())?;
    let name = run.as_ref().map(|run| run.name.as_str());
    let mut found = Found::default();
    found.run("the chain", || ctx.read(chain));
    for rule in audit::ALL {
        found.run(rule.code, || ctx.read(|read| unlike(read, rule, name)));
    }
    found.run("the snapshots", || ctx.read(|read| snapshots(read, name)));
    if let Some(run) = &run {
        found.run_rules(|| rules::check(ctx, run));
    }
    Ok(AuditReport { run: run.map(|run| run.name), ..found.report() })
}

/// What some rules came to.
#[derive(Default)]
struct Found {
    events: i64,
    rules: u32,
    violations: Vec<Violation>,
    total: u32,
    not_run: Vec<String>,
    checked: Vec<Checked>,
}

/// What one rule came to.
#[derive(Default)]
struct Part {
    events: i64,
    violations: Vec<Violation>,
}

impl Found {
    fn run(&mut self, name: &str, rule: impl FnOnce() -> Result<Part>) {
        match rule() {
            Ok(mut part) => {
                self.rules += 1;
                self.events += part.events;
                self.total += count(part.violations.len());
                let total = count(part.violations.len());
                bounded(&mut part.violations, SHOWN, total);
                self.violations.extend(part.violations);
            }
            Err(error) => self.not_run.push(said(name, &error)),
        }
    }

    fn run_rules(&mut self, look: impl FnOnce() -> Result<Vec<Checked>>) {
        match look() {
            Ok(checked) => {
                let is_run = |rule: &&Checked| rule.judgement != Judgement::NotRun;
                self.rules += count(checked.iter().filter(is_run).count());
                self.checked = checked;
            }
            Err(error) => self.not_run.push(said("the rules of the run", &error)),
        }
    }

    fn report(self) -> AuditReport {
        let has = |wanted: Judgement| self.checked.iter().any(|rule| rule.judgement == wanted);
        let is_clean = self.violations.is_empty() && !has(Judgement::Violated);
        let exit = match (is_clean, self.not_run.is_empty() && !has(Judgement::NotRun)) {
            (false, _) => Code::Findings.kind().exit(),
            (true, false) => Code::NotRun.kind().exit(),
            (true, true) => 0,
        };
        AuditReport {
            run: None,
            checked: self.checked,
            events: self.events,
            rules: self.rules,
            left_out: self.total - count(self.violations.len()),
            violations: self.violations,
            not_run: self.not_run,
            exit,
        }
    }
}

fn said(name: &str, error: &Error) -> String {
    let cause = error.causes.first().map_or(String::new(), |cause| format!(": {cause}"));
    format!("{name}: {}{cause}", error.message)
}

fn chain(read: &Connection) -> Result<Part> {
    let (events, broken) = store::event::verify(read)?;
    let violation = |link: store::event::BrokenLink| Violation {
        code: "chain_broken".to_owned(),
        what: link.what.to_owned(),
        place: format!("event {}", link.id),
    };
    Ok(Part { events, violations: broken.into_iter().map(violation).collect() })
}

fn unlike(read: &Connection, rule: &invariant::Invariant, run: Option<&str>) -> Result<Part> {
    let violation = |broken: invariant::Broken| Violation {
        code: rule.code.to_owned(),
        what: format!("{}; here: {}", rule.what, broken.found),
        place: broken.run.map_or_else(|| broken.subject.clone(), |run| format!("{run}/{}", broken.subject)),
    };
    let mut rows = invariant::broken(read, rule, u32::MAX)?;
    rows.retain(|row| run.is_none() || row.run.as_deref() == run);
    Ok(Part { events: 0, violations: rows.into_iter().map(violation).collect() })
}

/// A snapshot's hash stands in the log; what it holds must still have it.
fn snapshots(read: &Connection, of: Option<&str>) -> Result<Part> {
    let mut part = Part::default();
    audit::each_snapshot(read, |run, generation, stored, body| {
        if hash(&body) != stored && of.is_none_or(|name| name == run) {
            part.violations.push(Violation {
                code: "snapshot_changed".to_owned(),
                what: "what was frozen does not have its hash any more".to_owned(),
                place: format!("{run}, generation {generation}"),
            });
        }
        Ok::<_, Error>(())
    })?;
    Ok(part)
}
