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

/// Times of one shape, in milliseconds, a round each.
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
    let chain = Shape::Chain(200 / scale);
    let others = [Shape::Fan(1_000 / scale), Shape::Layers(50 / scale, 20)];
    let shapes: Vec<Shape> = std::iter::once(chain).chain(others.into_iter().filter(|_| plan.wants("G10"))).collect();
    let mut all: Vec<Times> = shapes.iter().map(|_| Times::default()).collect();
    for round in 1..=plan.rounds {
        for (shape, times) in shapes.iter().zip(&mut all) {
            progress(&format!("G9, G10: {shape}, round {round} of {}", plan.rounds));
            one_round(*shape, plan.wants("G10"), times)?;
        }
    }
    for (shape, times) in shapes.iter().zip(&all) {
        if *shape == chain && plan.wants("G9") {
            chained(*shape, times, table);
        }
        if plan.wants("G10") {
            driven(*shape, times, table);
        }
    }
    Ok(())
}

fn one_round(shape: Shape, beside_tools: bool, times: &mut Times) -> Outcome<()> {
    let trial = Trial::started(shape, PARALLEL)?;
    times.tool.push(trial.drive()?);
    times.steps.extend(steps(&trial)?);
    let place = folder()?;
    let parallel = PARALLEL.to_string();
    let mut raw = cleared(anchor::command("dag"), place.path());
    times.anchor.push(time(raw.arg(place.path().join("dag.db")).args([&shape.to_string(), &parallel]))?);
    if beside_tools {
        std::fs::write(place.path().join("build.ninja"), shape.ninja())?;
        std::fs::write(place.path().join("Makefile"), shape.makefile())?;
        let tool = |name: &str| cleared(Command::new(name), place.path());
        // One that is not installed has no times.
        times.ninja.extend(time(tool("ninja").args(["--quiet", "-j", &parallel])).ok());
        times.make.extend(time(tool("make").args(["--silent", "-j", &parallel])).ok());
    }
    Ok(())
}

/// From the seal of a job to the moment when a successor that it made ready had been started, in milliseconds.
fn steps(trial: &Trial) -> Outcome<Vec<f64>> {
    let read = Connection::open_with_flags(trial.db(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = read.prepare(
        "SELECT started.at - max(sealed.at) FROM need
           JOIN event AS sealed ON sealed.job_id = need.needs_id AND sealed.type = 'job.sealed'
           JOIN event AS started ON started.job_id = need.job_id AND started.type = 'execution.started'
         GROUP BY need.job_id HAVING count(*) = 1",
    )?;
    let rows = statement.query_map([], |row| row.get::<_, i64>(0))?;
    let steps: Vec<i64> = rows.collect::<Result<_, _>>()?;
    Ok(steps.into_iter().map(|ms| ms as f64).collect())
}

fn chained(shape: Shape, times: &Times, table: &mut Table) {
    let links = shape.needs().len() as f64;
    let absolute = format!("{:.2} ms a link; D {:.2} ms", median(&times.tool) / links, median(&times.anchor) / links);
    let measured = ratio(&times.tool, &times.anchor);
    let case = AtMost { limit: 3.0, measured, unit: Unit::Times, absolute };
    table.at_most("G9", format!("{shape}, a link / D's"), case);
    let (p50, p99) = (median(&times.steps), quantile(&times.steps, 0.99));
    let case = AtMost { limit: 50.0, measured: p99, unit: Unit::Ms, absolute: format!("p50 {p50:.0} ms") };
    table.at_most("G9", "seal to successor started, p99", case);
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
