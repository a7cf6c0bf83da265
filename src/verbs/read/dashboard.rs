//! `dashboard`: one picture of everything, made of the other views.

use serde::{Deserialize, Serialize};

use super::events::{self, EventLine, EventsRequest};
use super::status::{self, StatusReport, StatusRequest};
use crate::domain::time::Timestamp;
use crate::error::Result;
use crate::verbs::Ctx;

/// What `dashboard` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DashboardRequest {
    /// One run; the live ones, else the newest, when left out.
    pub run: Option<String>,
}

/// What `dashboard` shows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DashboardReport {
    /// When it was made.
    pub at: Timestamp,
    /// What waits, and how the runs do.
    pub status: StatusReport,
    /// The newest events, oldest first.
    pub events: Vec<EventLine>,
}

/// Newest events shown.
const EVENTS: u32 = 10;

/// Makes the picture.
pub fn dashboard(ctx: &Ctx, request: &DashboardRequest) -> Result<DashboardReport> {
    let status = status::status(ctx, &StatusRequest { run: request.run.clone() })?;
    let latest = EventsRequest {
        run: request.run.clone(),
        all: request.run.is_none(),
        limit: Some(EVENTS),
        ..EventsRequest::default()
    };
    let events = events::events(ctx, &latest)?.events;
    Ok(DashboardReport { at: ctx.clock.now(), status, events })
}

/// Columns of the terminal on standard output; none when it is none.
pub fn terminal_width() -> Option<usize> {
    crate::os::terminal_width()
}
