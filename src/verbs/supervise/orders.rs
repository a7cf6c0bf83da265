//! What a helper is to do, read from rows: whoever wants it to end writes, and it looks.

use crate::domain::id::SessionId;
use crate::domain::session::StopKind;
use crate::error::Result;
use crate::store;
use crate::verbs::Ctx;

/// Looks at the store only when something was committed since the last look.
pub struct Orders {
    session: SessionId,
    seen: Option<i64>,
    last: Order,
}

/// What a helper is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Go on.
    GoOn,
    /// End when nothing is held.
    Drain(String),
    /// End the agent now, its attempt interrupted, and then itself.
    EndNow(String),
    /// What it holds was taken away: end the agent, go on with the next.
    Abandon,
}

impl Orders {
    /// Orders of a session's helper.
    pub fn new(session: SessionId) -> Orders {
        Orders { session, seen: None, last: Order::GoOn }
    }

    /// The order in force; `holding` says whether the helper believes that it holds a job.
    pub fn look(&mut self, ctx: &Ctx, holding: bool) -> Result<Order> {
        let version = ctx.store()?.data_version()?;
        if self.seen == Some(version) && !(holding && self.last == Order::Abandon) {
            return Ok(self.last.clone());
        }
        self.seen = Some(version);
        self.last = self.read(ctx, holding)?;
        Ok(self.last.clone())
    }

    /// Forgets what was seen: the helper itself has written.
    pub fn forget(&mut self) {
        self.seen = None;
    }

    fn read(&self, ctx: &Ctx, holding: bool) -> Result<Order> {
        let (orders, held) = ctx.read(|read| {
            Ok((store::supervisor::orders(read, self.session)?, store::message::held(read, self.session)?))
        })?;
        let reason = orders.stop_reason.clone().unwrap_or_default();
        if !orders.session_active {
            return Ok(Order::EndNow("the session ended".to_owned()));
        }
        if orders.run_stopped {
            return Ok(Order::EndNow("the run was stopped".to_owned()));
        }
        if !orders.run_running {
            return Ok(Order::EndNow("the run is over".to_owned()));
        }
        if holding && held.is_none() {
            return Ok(Order::Abandon);
        }
        Ok(match orders.stop_kind {
            Some(StopKind::Now) => Order::EndNow(reason),
            Some(StopKind::Drain) => Order::Drain(reason),
            None => Order::GoOn,
        })
    }
}
