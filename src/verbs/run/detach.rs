//! `run drive --detach`: the same driver, going on in the background with its lines in a file.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::drive::{DriveRequest, started};
use crate::error::{Code, Error, Next, Result};
use crate::os::lock::{Held, probe};
use crate::os::process::{leave_session, spawn_apart};
use crate::os::wait::Countdown;
use crate::verbs::Ctx;

/// How long the driver may take to come up, in milliseconds.
const UP_MS: u64 = 5_000;

/// What detaching tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetachReport {
    /// The run's name.
    pub run: String,
    /// The driver's process.
    pub pid: u32,
    /// Where its lines go.
    pub log: PathBuf,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Starts a driver that goes on when the terminal is gone.
pub fn detach(ctx: &Ctx, request: &DriveRequest, heartbeat_ms: u64) -> Result<DetachReport> {
    let run = started(ctx, request.run.as_deref())?;
    crate::verbs::trust::check_run(ctx, &run, request.trust_hash.as_deref())?;
    let log = ctx.layout().scratches().join(format!("drive-{}.log", run.name));
    let exe = std::fs::read_link(&ctx.exe).unwrap_or_else(|_| ctx.exe.clone());
    let pid = spawn_apart(&exe, &words(ctx, request, &run.name, heartbeat_ms), ctx.layout().project(), &log)?;
    let end = Countdown::start(UP_MS);
    let marker = ctx.layout().drive_lock(&run.name);
    while probe(&marker)? == Held::Free && !end.is_over() {
        let is_over = ctx.read(|read| Ok(crate::store::run::get(read, run.id)?))?.state.is_terminal();
        let has_ended = crate::os::process::Identity::of(i32::try_from(pid).unwrap_or(0)).is_none();
        if is_over {
            break;
        }
        if has_ended {
            return Err(Error::new(Code::Failed, "the driver ended at once").hint(format!("see {}", log.display())));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let next = vec![
        Next::new("anyone", "see how it does", &["striatum", "status"]),
        Next::new("operator", "end drivers and lanes", &["striatum", "run", "stop", "--run-id", &run.name]),
    ];
    Ok(DetachReport { run: run.name, pid, log, next })
}

/// The same words again, for a driver in the background.
fn words(ctx: &Ctx, request: &DriveRequest, run: &str, heartbeat_ms: u64) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["run", "drive", "--detached", "--run-id", run].map(OsString::from).into();
    words.extend([OsString::from("--dir"), ctx.layout().root().into()]);
    words.extend([OsString::from("--interval"), format!("{}ms", request.interval_ms).into()]);
    words.extend([OsString::from("--heartbeat"), format!("{heartbeat_ms}ms").into()]);
    let flags = [
        (request.exclusive, "--exclusive"),
        (request.wait_human, "--wait-human"),
        (request.stop_lanes, "--stop-lanes"),
    ];
    words.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| OsString::from(flag)));
    words
}

/// The background driver's first act.
pub fn be_detached() -> Result<()> {
    Ok(leave_session()?)
}
