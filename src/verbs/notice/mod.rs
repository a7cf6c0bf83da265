//! Telling a person who is not looking: by the command of `[notify]`, else by the terminal's bell.
//!
//! What is worth telling is read from the log of events, behind a mark that every run keeps, so that whoever comes next
//! tells what the one before could not. The command runs in a process of its own: nobody waits for it.

pub mod lookout;
pub mod send;
pub mod test;

use std::ffi::OsString;

use serde_json::json;

use crate::domain::action::Surfaced;
use crate::domain::event::EventType;
use crate::domain::id::RunId;
use crate::domain::notice::Occasion;
use crate::error::Result;
use crate::os::process::spawn_apart;
use crate::store;
use crate::store::event::Scope;
use crate::store::run::Run;
use crate::verbs::Ctx;
use crate::verbs::flow::tell;

/// The hidden verb that tells what is new.
pub const NOTIFY_VERB: &str = "__notify";

/// Somebody's place in the events of a run.
pub struct Watch {
    run: RunId,
    seen: i64,
}

impl Watch {
    /// From where people were last told.
    pub fn from_mark(ctx: &Ctx, run: RunId) -> Result<Watch> {
        Ok(Watch { run, seen: ctx.read(|read| Ok(store::run::told(read, run)?))? })
    }

    /// From now on: what was before is somebody else's to tell.
    pub fn from_now(ctx: &Ctx, run: RunId) -> Result<Watch> {
        Ok(Watch { run, seen: ctx.read(|read| Ok(store::event::newest(read)?))? })
    }

    /// Sees to it that a person is told what is new; gives the occasions that no command tells.
    pub fn look(&mut self, ctx: &Ctx) -> Result<Vec<Occasion>> {
        let (run, events) = ctx.read(|read| {
            let events = store::event::heads_after(read, self.run, self.seen)?;
            let run = if events.is_empty() { None } else { Some(store::run::get(read, self.run)?) };
            Ok((run, events))
        })?;
        let Some(run) = run else { return Ok(Vec::new()) };
        self.seen = events.last().map_or(self.seen, |event| event.id);
        let mut new: Vec<Occasion> = events.iter().filter_map(|event| Occasion::of(event.kind)).collect();
        new.retain(|occasion| run.spec.notify.on.iter().any(|word| word == occasion.word()));
        new.dedup();
        if new.is_empty() || run.spec.notify.command.is_empty() {
            return Ok(new);
        }
        start(ctx, &run)?;
        Ok(Vec::new())
    }
}

/// Starts the process that tells; it goes on when this one ends.
fn start(ctx: &Ctx, run: &Run) -> Result<()> {
    let words = [NOTIFY_VERB.into(), ctx.layout().root().as_os_str().to_owned(), OsString::from(&run.name)];
    spawn_apart(&ctx.exe, &words, ctx.layout().project(), &send::log(ctx))?;
    Ok(())
}

/// Keeps in the log that a driver can't launch a job, once for each reason.
pub fn surfaced(ctx: &Ctx, run: RunId, surfaced: &Surfaced) -> Result<()> {
    let (Some(name), Some((subject, cause))) = (surfaced.job(), surfaced.cause()) else { return Ok(()) };
    let body = json!({"cause": cause, "subject": subject});
    let words = body.to_string();
    let is_known = |read: &store::Connection, job: &store::job::Job| -> Result<bool> {
        let newest = store::event::latest(read, Scope::Job(job.id), 1)?;
        Ok(newest.first().is_some_and(|event| event.kind == EventType::JobSurfaced.word() && event.body == words))
    };
    let job = ctx.read(|read| {
        let job = store::job::by_name(read, run, name)?;
        match job {
            Some(job) if !is_known(read, &job)? => Ok(Some(job)),
            _ => Ok(None),
        }
    })?;
    match job {
        Some(job) => ctx.write("surface", |tx| tell(tx, EventType::JobSurfaced, &job, &body)),
        None => Ok(()),
    }
}
