//! Which run is meant when nobody names one.
//!
//! Reads take the only live run, else the newest, and say so; writes need exactly one candidate.

use crate::error::{Code, Error, Next, Result};
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::Ctx;

/// How many candidates an error lists.
const SHOWN: u32 = 10;

/// The run that a reading verb means.
pub fn for_reading(ctx: &Ctx, read: &Connection, name: Option<&str>) -> Result<Run> {
    if let Some(name) = name {
        return named(read, name);
    }
    let live = store::run::live(read, 2)?;
    let chosen = match live.as_slice() {
        [only] => only.clone(),
        _ => store::run::newest(read, 1)?.into_iter().next().ok_or_else(no_runs)?,
    };
    if store::run::count(read)? > 1 {
        ctx.notice(&format!("run {}", chosen.name));
    }
    Ok(chosen)
}

/// The run that a reading verb means; none in a store without runs, unless one was named.
pub fn if_any(ctx: &Ctx, read: &Connection, name: Option<&str>) -> Result<Option<Run>> {
    if name.is_none() && store::run::count(read)? == 0 {
        return Ok(None);
    }
    for_reading(ctx, read, name).map(Some)
}

/// The run that a writing verb means, in a store that it may be the first to need.
pub fn to_change(ctx: &Ctx, name: Option<&str>) -> Result<Run> {
    ctx.ensure_store()?;
    ctx.read(|read| for_writing(read, name))
}

/// The run that a writing verb means.
pub fn for_writing(read: &Connection, name: Option<&str>) -> Result<Run> {
    if let Some(name) = name {
        return named(read, name);
    }
    let mut live = store::run::live(read, SHOWN)?;
    match live.len() {
        0 => Err(no_live_run(read)?),
        1 => Ok(live.remove(0)),
        _ => {
            let names: Vec<&str> = live.iter().map(|run| run.name.as_str()).collect();
            Err(Error::new(Code::Ambiguous, format!("several runs are live: {}", names.join(", ")))
                .hint("name one with --run-id"))
        }
    }
}

/// A run by its name.
pub fn named(read: &Connection, name: &str) -> Result<Run> {
    store::run::by_name(read, name)?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no run {name}")).next(Next::new(
            "anyone",
            "list the runs",
            &["striatum", "run", "list"],
        ))
    })
}

fn no_runs() -> Error {
    Error::new(Code::NotFound, "there is no run yet").next(Next::new(
        "operator",
        "start the first one",
        &["striatum", "run", "go", "-w", "NAME"],
    ))
}

fn no_live_run(read: &Connection) -> Result<Error> {
    let error = no_runs();
    let Some(newest) = store::run::newest(read, 1)?.into_iter().next() else { return Ok(error) };
    Ok(Error::new(Code::NotFound, format!("no run is live; the newest, {}, is {}", newest.name, newest.state))
        .hint("name a run with --run-id"))
}
