//! Peak memory of a driver with many jobs, and of one of its helpers while it lives (G14).

use std::process::{Child, Stdio};

use rusqlite::{Connection, OpenFlags};

use crate::measure::peak_of;
use crate::table::{AtMost, Table, Unit};
use crate::trial::{Trial, succeed, wait_for};
use crate::workload::Shape;
use crate::{Outcome, Plan, progress};

/// Jobs of the run.
const JOBS: usize = 10_000;

/// Jobs that are done when memory is looked at.
const DONE: i64 = 200;

/// Measures.
pub fn compare(_plan: &Plan, table: &mut Table) -> Outcome<()> {
    progress(&format!("G14: driving the first {DONE} of {JOBS} jobs"));
    let trial = Trial::started(Shape::Fan(JOBS), 8)?;
    let mut driver =
        trial.striatum(["run", "drive"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let measured = look(&trial, &driver);
    stop(&trial, &mut driver)?;
    let (drive, helper) = measured?;
    let case = |limit, measured| AtMost { limit, measured, unit: Unit::MiB, absolute: String::new() };
    table.at_most("G14", format!("peak memory, a driver of {JOBS} jobs"), case(32.0, drive));
    table.at_most("G14", "peak memory, a helper", case(8.0, helper));
    Ok(())
}

fn look(trial: &Trial, driver: &Child) -> Outcome<(f64, f64)> {
    let read = Connection::open_with_flags(trial.db(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let done = "SELECT count(*) FROM event WHERE type = 'job.sealed'";
    wait_for("the first jobs", || {
        let done: i64 = read.query_row(done, [], |row| row.get(0))?;
        Ok((done >= DONE).then_some(()))
    })?;
    let helper = wait_for("a living helper", || {
        let mut statement = read.prepare("SELECT pid FROM supervisor WHERE state = 'attached'")?;
        let pids = statement.query_map([], |row| row.get::<_, u32>(0))?.collect::<Result<Vec<_>, _>>()?;
        Ok(pids.into_iter().filter_map(|pid| peak_of(pid).ok()).max_by(f64::total_cmp))
    })?;
    Ok((peak_of(driver.id())?, helper))
}

/// Ends the run, so that nothing lives on.
fn stop(trial: &Trial, driver: &mut Child) -> Outcome<()> {
    succeed(&mut trial.striatum(["run", "stop"]))?;
    wait_for("the driver's end", || Ok(driver.try_wait()?))?;
    let read = Connection::open_with_flags(trial.db(), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let live = "SELECT count(*) FROM supervisor WHERE state IN ('starting', 'attached')";
    wait_for("the helpers' end", || {
        let live: i64 = read.query_row(live, [], |row| row.get(0))?;
        Ok((live == 0).then_some(()))
    })
}
