//! `run drive` through graphs of `true` beside a driver without rules, and beside build tools (G9, G10).

use std::process::Command;

use rusqlite::{Connection, OpenFlags};

use crate::measure::{median, quantile, ratio, time};
use crate::table::{AtMost, Table, Unit};
use crate::trial::{Trial, cleared, folder};
use crate::workload::Shape;
use crate::{Outcome, Plan, anchor, progress};

/// Jobs side by side.
const PARALLEL: usize = 8;

/// A graph, and whether each of its jobs gets a session of its own.
#[derive(Clone, Copy)]
struct Case {
    shape: Shape,
    is_fresh: bool,
}

/// Times of one case, in milliseconds, a round each.
#[derive(Default)]
struct Times {
    tool: Vec<f64>,
    anchor: Vec<f64>,
    ninja: Vec<f64>,
    make: Vec<f64>,
    steps: Vec<f64>,
}

/// Measures.
pub fn compare(plan: &Plan, table: &mut Table) -> Outcome<()> {
    let scale = if plan.quick { 4 } else { 1 };
    let case = |shape, is_fresh| Case { shape, is_fresh };
    let mut cases = vec![case(Shape::Chain(200 / scale), false)];
    if plan.wants("G9") {
        cases.push(case(Shape::Chain(60 / scale), true));
    }
    if plan.wants("G10") {
        cases.extend([case(Shape::Fan(1_000 / scale), false), case(Shape::Layers(50 / scale, 20), false)]);
    }
    let mut all: Vec<Times> = cases.iter().map(|_| Times::default()).collect();
    for round in 1..=plan.rounds {
        for (case, times) in cases.iter().zip(&mut all) {
            progress(&format!("G9, G10: {}, round {round} of {}", case.shape, plan.rounds));
            one_round(*case, plan, times)?;
        }
    }
    for (case, times) in cases.iter().zip(&all) {
        if matches!(case.shape, Shape::Chain(_)) && plan.wants("G9") {
            linked(*case, times, table);
        }
        if !case.is_fresh && plan.wants("G10") {
            driven(case.shape, times, table);
        }
    }
    Ok(())
}

fn one_round(case: Case, plan: &Plan, times: &mut Times) -> Outcome<()> {
    let context = if case.is_fresh { "fresh" } else { "any" };
    let trial = Trial::with_workflow(&case.shape.workflow(PARALLEL, context))?;
    times.tool.push(trial.drive()?);
    times.steps.extend(steps(&trial)?);
    let place = folder()?;
    let parallel = PARALLEL.to_string();
    let mut raw = cleared(anchor::command("dag"), place.path());
    times.anchor.push(time(raw.arg(place.path().join("dag.db")).args([&case.shape.to_string(), &parallel]))?);
    if plan.wants("G10") && !case.is_fresh {
        std::fs::write(place.path().join("build.ninja"), case.shape.ninja())?;
        std::fs::write(place.path().join("Makefile"), case.shape.makefile())?;
        let tool = |name: &str| cleared(Command::new(name), place.path());
        // One that is not installed has no times.
        times.ninja.extend(time(tool("ninja").args(["--quiet", "-j", &parallel])).ok());
        times.make.extend(time(tool("make").args(["--silent", "-j", &parallel])).ok());
    }
    Ok(())
}

/// From the seal of a job to the intent, right before the spawn, of the one successor that waited for it alone, in
/// milliseconds.
fn steps(trial: &Trial) -> Outcome<Vec<f64>> {
    let read = Connection::open_with_flags(trial.db(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = read.prepare(
        "SELECT execution.started_at - max(attempt.ended_at) FROM need
           JOIN attempt ON attempt.job_id = need.needs_id AND attempt.outcome = 'sealed'
           JOIN execution ON execution.job_id = need.job_id AND execution.kind = 'agent'
         GROUP BY need.job_id HAVING count(*) = 1",
    )?;
    let rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
    let steps: Vec<i64> = rows.collect::<Result<_, _>>()?;
    Ok(steps.into_iter().map(|ms| ms as f64).collect())
}

fn linked(case: Case, times: &Times, table: &mut Table) {
    let links = case.shape.needs().len() as f64;
    let name = if case.is_fresh { format!("{}, fresh sessions", case.shape) } else { case.shape.to_string() };
    let absolute = format!("{:.2} ms a link; D {:.2} ms", median(&times.tool) / links, median(&times.anchor) / links);
    let measured = ratio(&times.tool, &times.anchor);
    table.at_most("G9", format!("{name}: a link / D's"), AtMost { limit: 3.0, measured, unit: Unit::Times, absolute });
    let (p50, p99) = (median(&times.steps), quantile(&times.steps, 0.99));
    let case = AtMost { limit: 50.0, measured: p99, unit: Unit::Ms, absolute: format!("p50 {p50:.0} ms") };
    table.at_most("G9", format!("{name}: seal to next start, p99"), case);
}

fn driven(shape: Shape, times: &Times, table: &mut Table) {
    let tool = median(&times.tool);
    let absolute = format!("{tool:.0} ms; D {:.0} ms", median(&times.anchor));
    let measured = ratio(&times.tool, &times.anchor);
    table.at_most("G10", format!("{shape} / D"), AtMost { limit: 2.5, measured, unit: Unit::Times, absolute });
    if times.ninja.len() == times.tool.len() {
        let make = if times.make.is_empty() { String::new() } else { format!(", make {:.0} ms", median(&times.make)) };
        let absolute = format!("ninja {:.0} ms{make}", median(&times.ninja));
        let measured = ratio(&times.tool, &times.ninja);
        table.at_most("G10", format!("{shape} / ninja"), AtMost { limit: 6.0, measured, unit: Unit::Times, absolute });
    } else {
        table.not_run("G10", format!("{shape} / ninja"), "ninja is not installed");
    }
}
