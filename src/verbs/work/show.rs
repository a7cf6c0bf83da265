//! `work show`: what the session holds, as its packet tells it.

use serde::{Deserialize, Serialize};

use super::claim::Granted;
use super::hold::{self, Credentials};
use super::layout::{self, Grant};
use crate::domain::packet::Packet;
use crate::error::{Code, Error, Result};
use crate::store;
use crate::verbs::Ctx;

/// What `work show` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowRequest {
    /// Who asks.
    pub who: Credentials,
}

/// What `work show` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowReport {
    /// The packet.
    pub packet: Packet,
    /// The same for a model.
    pub prompt: String,
}

/// Shows the packet of what a session holds, laying it out anew where a crash left it half made.
pub fn show(ctx: &Ctx, request: &ShowRequest) -> Result<ShowReport> {
    let (granted, run, session) = ctx.read(|read| {
        let session = hold::session(ctx, read, &request.who)?;
        let message = store::message::held(read, session.id)?
            .ok_or_else(|| Error::new(Code::LeaseEnded, format!("{} holds nothing", session.id)))?;
        let lease = store::lease::active_of_job(read, message.job)?
            .ok_or_else(|| Error::new(Code::LeaseEnded, format!("{} holds nothing", session.id)))?;
        let granted = Granted {
            message: message.id,
            job: message.job,
            attempt: message.attempt,
            lease: lease.id,
            fence: lease.fence,
        };
        Ok((granted, store::run::get(read, session.run)?, session))
    })?;
    let ground = super::claim::ground(ctx, &granted)?;
    let laid = layout::lay_out(ctx, &Grant { granted: &granted, run: &run, session: &session }, ground)?;
    Ok(ShowReport { prompt: laid.packet.to_prompt(), packet: laid.packet })
}
