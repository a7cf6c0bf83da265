//! The rows of the result and how they are printed.

use std::fmt;

/// What a measurement says about its aim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Miss,
    NotRun,
}

struct Row {
    aim: &'static str,
    what: String,
    limit: String,
    measured: String,
    verdict: Verdict,
    absolute: String,
}

/// All that was measured.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Times an anchor.
    Times,
    /// Milliseconds.
    Ms,
    /// Percent of one core.
    Percent,
    /// Mebibytes.
    MiB,
    /// Things.
    Count,
}

impl Unit {
    fn show(self, number: f64) -> String {
        match self {
            Unit::Times => format!("{number:.2} x"),
            Unit::Ms => format!("{number:.2} ms"),
            Unit::Percent => format!("{number:.3} %"),
            Unit::MiB => format!("{number:.1} MiB"),
            Unit::Count => format!("{number:.0}"),
        }
    }
}

impl Table {
    /// A number that may be at most `limit`.
    pub fn at_most(&mut self, aim: &'static str, what: impl Into<String>, case: AtMost) {
        let AtMost { limit, measured, unit, absolute } = case;
        let verdict = if measured <= limit { Verdict::Pass } else { Verdict::Miss };
        let (limit, measured) = (format!("<= {}", unit.show(limit)), unit.show(measured));
        self.rows.push(Row { aim, what: what.into(), limit, measured, verdict, absolute });
    }

    /// Something that this machine can't measure.
    pub fn not_run(&mut self, aim: &'static str, what: impl Into<String>, why: impl Into<String>) {
        let (limit, measured) = (String::new(), String::new());
        self.rows.push(Row { aim, what: what.into(), limit, measured, verdict: Verdict::NotRun, absolute: why.into() });
    }
}

/// A measured number beside its limit.
pub struct AtMost {
    /// The most that passes.
    pub limit: f64,
    /// What it is.
    pub measured: f64,
    /// What both count.
    pub unit: Unit,
    /// What stands in brackets.
    pub absolute: String,
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = self.rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
        for row in &self.rows {
            let verdict = match row.verdict {
                Verdict::Pass => "pass",
                Verdict::Miss => "MISS",
                Verdict::NotRun => "not run",
            };
            let Row { aim, limit, measured, absolute, .. } = row;
            writeln!(out, "{aim:<4} {:<what$}  {limit:>12}  {measured:>10}  {verdict:<7}  [{absolute}]", row.what)?;
        }
        let count = |verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        let (pass, miss, not_run) = (count(Verdict::Pass), count(Verdict::Miss), count(Verdict::NotRun));
        write!(out, "\n{pass} pass, {miss} miss, {not_run} not run")
    }
}
