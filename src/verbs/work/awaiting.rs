//! `work await`: waits until the session's slot has something, for resident agents and sessions that nothing hosts.
//!
//! The look is a verb like any other, short, and takes nothing; who looks again and again is told here too. It does
//! not know sockets: a resident agent looks through its helper's, everybody else in the store.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::claim::{NoWork, choose};
use super::hold::{self, Credentials};
use crate::domain::time::Moment;
use crate::error::{Code, Result};
use crate::store;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::verbs::Ctx;

/// How often the store's version is asked for.
const POLL: Duration = Duration::from_millis(100);

/// The longest time without a look: what waits for a moment makes no commit when it comes.
const LONGEST: Duration = Duration::from_secs(1);

/// What a look of `work await` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AwaitRequest {
    /// Who waits.
    pub who: Credentials,
}

/// What it tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum AwaitReport {
    /// A claim would get this job.
    Ready {
        /// Its name.
        job: String,
    },
    /// Nothing.
    NoWork {
        /// Why.
        reason: NoWork,
        /// Nothing will come.
        is_final: bool,
    },
}

impl AwaitReport {
    fn over(reason: NoWork) -> AwaitReport {
        AwaitReport::NoWork { reason, is_final: true }
    }
}

/// Looks once whether a claim would get something; an unsupervised session lives on by it.
pub fn look(ctx: &Ctx, request: &AwaitRequest) -> Result<AwaitReport> {
    let now = ctx.clock.moment();
    let (report, silent) = ctx.read(|read| {
        let session = match hold::session(ctx, read, &request.who) {
            Err(error) if error.code == Code::SessionEnded => {
                return Ok((AwaitReport::over(NoWork::SessionEnded), None));
            }
            other => other?,
        };
        let run = store::run::get(read, session.run)?;
        let is_stopping = store::supervisor::active(read, session.id)?.is_some_and(|helper| helper.stop_kind.is_some());
        let report = if is_stopping {
            AwaitReport::over(NoWork::Stopping)
        } else {
            match choose(read, &run, &session, &now)? {
                Ok(message) => AwaitReport::Ready { job: store::job::get(read, message.job)?.name },
                Err(reason) => AwaitReport::NoWork { reason, is_final: is_final(reason, run.state.is_terminal()) },
            }
        };
        let silent = is_silent(&session, &run, &now).then_some((run, session.id));
        Ok((report, silent))
    })?;
    if let Some((run, session)) = silent {
        ctx.write("work await", |tx| hold::touch(ctx, tx, &run, session))?;
    }
    Ok(report)
}

/// Nothing hosts the session, and a third of its life has passed without a verb, or it never spoke at all: it must,
/// or a driver would adopt or expire it.
fn is_silent(session: &Session, run: &Run, now: &Moment) -> bool {
    let two_thirds = now.after(run.spec.limits.lease_ms / 3 * 2);
    let is_waning = session.deadline.as_ref().is_some_and(|deadline| deadline.is_past(&two_thirds));
    !session.supervised && (is_waning || session.active_at <= session.created_at)
}

/// Whether nothing will ever come.
const fn is_final(reason: NoWork, run_is_over: bool) -> bool {
    run_is_over || matches!(reason, NoWork::OneJobDone | NoWork::Stopping | NoWork::SessionEnded)
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    end: Option<Instant>,
}

impl Patience {
    /// From now on; without a limit when there is none.
    pub fn new(limit_ms: Option<u64>) -> Patience {
        Patience { end: limit_ms.map(|ms| Instant::now() + Duration::from_millis(ms)) }
    }

    /// What is left of it.
    fn left(&self) -> Duration {
        self.end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()))
    }
}

/// Looks until something is there, nothing will come, or patience is at its end.
pub fn until_ready(
    patience: Patience,
    look: &mut dyn FnMut() -> Result<AwaitReport>,
    nap: &mut dyn FnMut(Duration) -> Result<()>,
) -> Result<AwaitReport> {
    loop {
        match look()? {
            AwaitReport::NoWork { is_final: false, .. } if patience.left().is_zero() => {
                return Ok(AwaitReport::NoWork { reason: NoWork::TimedOut, is_final: false });
            }
            AwaitReport::NoWork { is_final: false, .. } => nap(patience.left().min(LONGEST))?,
            report => return Ok(report),
        }
    }
}

/// Waits in the store: until somebody commits, at most for `most`.
pub fn nap(ctx: &Ctx, most: Duration) -> Result<()> {
    let seen = ctx.store()?.data_version()?;
    let end = Instant::now() + most;
    while Instant::now() < end && ctx.store()?.data_version()? == seen {
        std::thread::sleep(POLL.min(end.saturating_duration_since(Instant::now())));
    }
    Ok(())
}
