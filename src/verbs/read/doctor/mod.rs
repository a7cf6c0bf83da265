//! `doctor`: whether the store, what belongs to it, and the machine under it are sound. It changes nothing.
//!
//! A check is ok, warns, finds something, or could not run and says so; the last is never taken for the first.

mod machine;
mod rows;
mod traces;
mod trees;

use serde::{Deserialize, Serialize};

use crate::domain::word::word_enum;
use crate::error::{Code, Error, Next, Result};
use crate::verbs::Ctx;
use crate::verbs::ctx::no_store;

/// Findings told of one check.
const SHOWN: usize = 20;

word_enum! {
    /// What a check came to.
    Outcome "check outcome" {
        /// Nothing is wrong.
        Ok "ok",
        /// Something that is worth knowing, and no fault.
        Warning "warning",
        /// Something is wrong.
        Finding "finding",
        /// The check could not run.
        NotRun "not_run",
    }
}

/// Something that is wrong, or worth knowing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// A stable word.
    pub code: String,
    /// What it is.
    pub what: String,
    /// Where it is.
    pub place: String,
    /// What mends it, or shows how it came about.
    pub fix: Option<Next>,
}

/// A check and what it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Its name.
    pub check: String,
    /// What it came to.
    pub outcome: Outcome,
    /// What was looked at, or why it could not run.
    pub note: String,
    /// What it found.
    pub findings: Vec<Finding>,
    /// How many are not shown.
    pub left_out: u32,
}

impl Check {
    fn ok(check: &str, note: impl Into<String>) -> Check {
        Check { check: check.to_owned(), outcome: Outcome::Ok, note: note.into(), findings: Vec::new(), left_out: 0 }
    }

    fn not_run(check: &str, why: impl Into<String>) -> Check {
        Check { outcome: Outcome::NotRun, ..Check::ok(check, why) }
    }

    /// A check that came to an error: damage is what it was to find, anything else kept it from looking.
    fn failed(check: &str, error: &Error) -> Check {
        let cause = error.causes.first().map_or(String::new(), |cause| format!(": {cause}"));
        let what = format!("{}{cause}", error.message);
        if error.code != Code::StoreCorrupt {
            return Check::not_run(check, what);
        }
        Check::found(check, "it stopped at the damage", vec![Finding::new(error.code.word(), what, "the store", None)])
    }

    /// A check with what it found; nothing found is ok.
    fn found(check: &str, note: impl Into<String>, mut findings: Vec<Finding>) -> Check {
        let outcome = if findings.is_empty() { Outcome::Ok } else { Outcome::Finding };
        let total = super::count(findings.len());
        let left_out = super::bounded(&mut findings, super::count(SHOWN), total);
        Check { outcome, findings, left_out, ..Check::ok(check, note) }
    }

    /// What was found is no fault.
    fn mild(self) -> Check {
        let outcome = if self.outcome == Outcome::Finding { Outcome::Warning } else { self.outcome };
        Check { outcome, ..self }
    }
}

impl Finding {
    fn new(code: &str, what: impl Into<String>, place: impl Into<String>, fix: Option<Next>) -> Finding {
        Finding { code: code.to_owned(), what: what.into(), place: place.into(), fix }
    }
}

/// What `doctor` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DoctorRequest {
    /// Hash every artifact, not only the newest.
    pub all: bool,
}

/// What `doctor` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Every check, in the order in which they ran.
    pub checks: Vec<Check>,
    /// How many things are wrong.
    pub findings: u32,
    /// How many things are worth knowing.
    pub warnings: u32,
    /// How many checks could not run.
    pub not_run: u32,
    /// 0; 1 with findings; 11 when a check could not run and nothing was found.
    pub exit: u8,
}

/// Looks at everything.
pub fn doctor(ctx: &Ctx, request: &DoctorRequest) -> Result<DoctorReport> {
    if !ctx.has_store() {
        return Err(no_store(ctx.layout().project()));
    }
    let mut checks = Vec::new();
    match ctx.store() {
        Ok(_) => {
            checks.extend(rows::checks(ctx));
            checks.extend(traces::checks(ctx, request));
            checks.extend(trees::checks(ctx));
        }
        // Not ours, too new, or out of reach: then there is nothing that could be checked.
        Err(error) if error.code != Code::StoreCorrupt => return Err(error),
        Err(error) => checks.push(damaged(ctx, &error)),
    }
    checks.extend(machine::checks(ctx));
    Ok(summed(checks))
}

/// The file can't even be opened.
fn damaged(ctx: &Ctx, error: &Error) -> Check {
    let path = ctx.layout().db().display().to_string();
    let aside = format!("{path}.damaged");
    let fix =
        Next::new("operator", "put the damaged file aside; a copy can take its place", &["mv", "-n", &path, &aside]);
    let what = error.causes.first().cloned().unwrap_or_else(|| error.message.clone());
    let note = "rows, locks, leftovers and artifacts could not be looked at";
    Check::found("store", note, vec![Finding::new(Code::StoreCorrupt.word(), what, path, Some(fix))])
}

fn summed(checks: Vec<Check>) -> DoctorReport {
    let sum = |outcome: Outcome| -> u32 {
        let fitting = checks.iter().filter(|check| check.outcome == outcome);
        fitting.map(|check| super::count(check.findings.len()) + check.left_out).sum()
    };
    let (findings, warnings) = (sum(Outcome::Finding), sum(Outcome::Warning));
    let not_run = super::count(checks.iter().filter(|check| check.outcome == Outcome::NotRun).count());
    let exit = match (findings, not_run) {
        (0, 0) => 0,
        (0, _) => Code::NotRun.kind().exit(),
        _ => Code::Findings.kind().exit(),
    };
    DoctorReport { checks, findings, warnings, not_run, exit }
}
