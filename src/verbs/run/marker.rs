//! One driver a run: a lock held for life. A second one stands by and takes over the moment the lock is free.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::drive::{DriveRequest, Teller, Told};
use crate::domain::id::RunId;
use crate::domain::run::RunState;
use crate::error::{Code, Error, Next, Result};
use crate::os::lock::{DriverHolder, DriverLock, Standby, read_driver};
use crate::os::signal::Signals;
use crate::os::wait::Countdown;
use crate::store::run::Run;
use crate::store::{self};
use crate::verbs::Ctx;

/// Whoever drives a run now, if anybody.
pub fn holder(ctx: &Ctx, run: &Run) -> Option<DriverHolder> {
    let path = ctx.layout().drive_lock(&run.name);
    let held = crate::os::lock::probe(&path).is_ok_and(|held| held == crate::os::lock::Held::Held);
    held.then(|| read_driver(&path)).flatten()
}

/// Who takes a run on from here.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Onward {
    /// Where the run is.
    pub state: String,
    /// The process of the driver that is at it.
    pub driver: Option<i32>,
    /// The command that starts one where there is none.
    pub next: Vec<Next>,
}

impl Onward {
    /// Looks who it is.
    pub fn look(ctx: &Ctx, run: RunId) -> Result<Onward> {
        let run = ctx.read(|read| Ok(store::run::get(read, run)?))?;
        let driver = holder(ctx, &run).map(|holder| holder.pid);
        let is_live = matches!(run.state, RunState::Running | RunState::NeedsOperator);
        let is_kept = run.stop_requested_at.is_some() || run.paused_at.is_some();
        let next = match (is_live, is_kept, driver) {
            (true, true, _) => Some(("it is kept from going on", ["striatum", "run", "resume", "--run-id", &run.name])),
            (true, false, None) => {
                Some(("nothing drives it: go on", ["striatum", "run", "drive", "--run-id", &run.name]))
            }
            _ => None,
        };
        let next = next.into_iter().map(|(why, argv)| Next::new("operator", why, &argv)).collect();
        Ok(Onward { state: run.state.to_string(), driver, next })
    }
}

/// The warning, in the words of the design.
pub fn warning(holder: &DriverHolder, then: &str) -> String {
    format!("warning: another run drive appears active for this run (pid {} on {}); {then}", holder.pid, holder.host)
}

/// Takes the marker; none when the run ended while this process stood by, or it may not stand by.
pub fn take(
    ctx: &Ctx,
    run: &Run,
    request: &DriveRequest,
    teller: &mut dyn Teller,
) -> Result<Option<Option<DriverLock>>> {
    let path = ctx.layout().drive_lock(&run.name);
    let own = DriverHolder::this_process(ctx.clock.now());
    if let Some(lock) = DriverLock::try_take(&path, &own)? {
        return Ok(Some(Some(lock)));
    }
    let other = signed(&path);
    let describe = |then: &str| {
        other.as_ref().map_or_else(
            || format!("warning: another run drive appears active for this run; {then}"),
            |other| warning(other, then),
        )
    };
    if request.exclusive {
        return Err(Error::new(
            Code::DriverActive,
            describe("refused by --exclusive").trim_start_matches("warning: ").to_owned(),
        )
        .next(Next::new("anyone", "see how it does", &["striatum", "status"])));
    }
    if request.once {
        teller.tell(&Told::note(describe("making one turn")));
        return Ok(Some(None));
    }
    teller.tell(&Told::note(describe("standing by")));
    stand_by(ctx, run, &own)
}

/// Who holds the lock: whoever has just taken it signs it within moments.
fn signed(path: &Path) -> Option<DriverHolder> {
    let patience = Countdown::start(100);
    loop {
        let holder = read_driver(path);
        if holder.is_some() || patience.is_over() {
            return holder;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn stand_by(ctx: &Ctx, run: &Run, own: &DriverHolder) -> Result<Option<Option<DriverLock>>> {
    let path = ctx.layout().drive_lock(&run.name);
    let standby = Standby::start(&path)?;
    let mut signals = Signals::install()?;
    loop {
        if let Some(lock) = standby.take(&path, own)? {
            return Ok(Some(Some(lock)));
        }
        let now = ctx.read(|read| Ok(store::run::get(read, run.id)?))?;
        let is_over = now.state.is_terminal() || now.stop_requested_at.is_some() || ctx.layout().stop().exists();
        if is_over && now.state != RunState::NeedsOperator {
            return Ok(None);
        }
        if signals.take().is_some() {
            return Err(Error::new(Code::Interrupted, "interrupted while standing by"));
        }
        let mut set = crate::os::wait::Set::new();
        set.readable(std::os::fd::AsFd::as_fd(&standby));
        set.readable(std::os::fd::AsFd::as_fd(&signals));
        set.wait(Some(250))?;
    }
}
