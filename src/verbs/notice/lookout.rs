//! A helper's eye on the driver: work goes on without one, and a person should hear that nothing follows it.
//!
//! It takes no lock and starts no driver.

use serde_json::json;

use super::Watch;
use crate::domain::event::EventType;
use crate::domain::id::RunId;
use crate::error::Result;
use crate::os::lock::{DriverHolder, Held, probe, read_driver};
use crate::os::wait::Countdown;
use crate::store;
use crate::store::event::About;
use crate::store::run::Run;
use crate::verbs::Ctx;

/// How many polls lie between two looks.
const EVERY: u64 = 20;

/// A helper's eye on the driver of its run.
#[derive(Default)]
pub struct Lookout {
    pause: Option<Countdown>,
    /// A driver was seen at work; one that was never there is not missed.
    was_driven: bool,
    has_told: bool,
}

impl Lookout {
    /// Looks now and then; tells once when the driver is gone.
    pub fn look(&mut self, ctx: &Ctx, run: &Run) -> Result<()> {
        if self.pause.as_ref().is_some_and(|pause| !pause.is_over()) {
            return Ok(());
        }
        self.pause = Some(Countdown::start(run.spec.limits.poll_ms.saturating_mul(EVERY)));
        let path = ctx.layout().drive_lock(&run.name);
        let is_driven = probe(&path)? == Held::Held;
        let is_gone = self.was_driven && !is_driven && !self.has_told;
        self.was_driven |= is_driven;
        self.has_told &= !is_driven;
        if is_gone {
            self.has_told = true;
            if let Some(gone) = read_driver(&path) {
                tell_gone(ctx, run.id, &gone)?;
            }
        }
        Ok(())
    }
}

/// A driver's last look: lanes that go on without it.
pub fn leave(ctx: &Ctx, run: RunId) -> Result<()> {
    let (run, is_at_work) = ctx.read(|read| {
        let is_at_work = !store::lease::active_of_run(read, run)?.is_empty();
        Ok((store::run::get(read, run)?, is_at_work))
    })?;
    match read_driver(&ctx.layout().drive_lock(&run.name)).filter(|_| is_at_work) {
        Some(own) => tell_gone(ctx, run.id, &own),
        None => Ok(()),
    }
}

/// Keeps that a driver is gone while lanes work, once for each driver, and sees to it that a person is told.
fn tell_gone(ctx: &Ctx, run: RunId, gone: &DriverHolder) -> Result<()> {
    let mut watch = Watch::from_mark(ctx, run)?;
    let body = json!({"pid": gone.pid, "host": gone.host, "started_at": gone.started_at});
    let words = body.to_string();
    ctx.write("driver ended", |tx| {
        let known = store::event::newest_of_type(tx, run, EventType::DriverEnded)?;
        let is_live = !store::run::get(tx, run)?.state.is_terminal();
        if is_live && known.is_none_or(|event| event.body != words) {
            store::event::append(
                tx,
                EventType::DriverEnded,
                About { run: Some(run), job: None, session: None },
                &body,
            )?;
        }
        Ok(())
    })?;
    watch.look(ctx)?;
    Ok(())
}

/// After a helper's own work: tells what no driver is there to tell.
pub fn stand_in(ctx: &Ctx, run: &Run, watch: &mut Watch) -> Result<()> {
    if probe(&ctx.layout().drive_lock(&run.name))? == Held::Free {
        watch.look(ctx)?;
    }
    Ok(())
}
