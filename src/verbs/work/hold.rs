//! Who speaks and what it holds: session, token, fence and lease are checked at every session verb.

use serde::{Deserialize, Serialize};

use crate::domain::event::sha256_hex;
use crate::domain::id::{LeaseId, SessionId};
use crate::domain::session::SessionState;
use crate::error::{Code, Error, Next, Result};
use crate::store::job::Job;
use crate::store::lease::Lease;
use crate::store::run::Run;
use crate::store::session::Session;
use crate::store::{self, Connection, Writing};
use crate::verbs::session::must_exist;
use crate::verbs::{Actor, Ctx};

/// What a session verb brings along.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Credentials {
    /// The session.
    pub session: SessionId,
    /// Its token; not needed where its helper vouches for it.
    pub token: Option<String>,
    /// The fence of its claim.
    pub fence: Option<i64>,
}

/// A session and what it holds.
pub struct Hold {
    /// The session.
    pub session: Session,
    /// Its run.
    pub run: Run,
    /// The job.
    pub job: Job,
    /// The lease.
    pub lease: Lease,
}

/// A session, whatever its state, whose caller is who it says it is.
pub fn speaker(ctx: &Ctx, read: &Connection, who: &Credentials) -> Result<Session> {
    let session = must_exist(read, who.session)?;
    let vouched = ctx.actor == Actor::Session(who.session);
    let token_fits =
        who.token.as_deref().is_some_and(|token| sha256_hex(token.trim().as_bytes()) == session.token_hash);
    if !vouched && !token_fits {
        return Err(Error::new(Code::BadToken, format!("the token does not belong to {}", who.session))
            .hint("name the session's own token file with --token-file or STRIATUM_TOKEN_FILE"));
    }
    if session.supervised && !vouched {
        let message = format!("{} is hosted by a helper; only its agent speaks for it", who.session);
        return Err(Error::new(Code::CapabilityDenied, message));
    }
    Ok(session)
}

/// An active session whose caller is who it says it is.
pub fn session(ctx: &Ctx, read: &Connection, who: &Credentials) -> Result<Session> {
    let session = speaker(ctx, read, who)?;
    if session.state == SessionState::Active {
        return Ok(session);
    }
    let why = session.end_reason.as_deref().unwrap_or("no reason kept");
    let error = Error::new(Code::SessionEnded, format!("{} is {}: {why}", who.session, session.state));
    Err(match session.state {
        SessionState::Lost | SessionState::Expired => {
            error.hint("what it held went back to the queue; register a new session to go on")
        }
        SessionState::Active | SessionState::Closed => error.hint("register a new session to go on"),
    })
}

/// What an active session holds, with the fence it names.
pub fn hold(ctx: &Ctx, read: &Connection, who: &Credentials) -> Result<Hold> {
    let session = session(ctx, read, who)?;
    let lease = store::lease::newest_of_session(read, session.id)?.ok_or_else(|| nothing_held(who.session))?;
    let job = store::job::get(read, lease.job)?;
    let run = store::run::get(read, session.run)?;
    let named = who.fence.ok_or_else(|| {
        Error::new(Code::Usage, "name the fence of your claim with --fence or STRIATUM_FENCE")
            .hint("`work claim` and the packet tell it")
    })?;
    let is_active = lease.state == crate::domain::session::LeaseState::Active;
    if named != lease.fence || (is_active && job.fence != lease.fence) {
        return Err(Error::new(
            Code::StaleFence,
            format!("fence {named} of {} is over; the job's fence is {}", job.name, job.fence),
        ));
    }
    if !is_active {
        return Err(ended(&lease, &job));
    }
    if lease.deadline.as_ref().is_some_and(|deadline| deadline.is_past(&ctx.clock.moment())) {
        return Err(Error::new(Code::LeaseEnded, format!("lease {} on {} ran out", lease.id, job.name)));
    }
    Ok(Hold { session, run, job, lease })
}

fn ended(lease: &Lease, job: &Job) -> Error {
    let why = lease.end_reason.as_deref().unwrap_or("no reason kept");
    Error::new(Code::LeaseEnded, format!("lease {} on {} is {}: {why}", lease.id, job.name, lease.state))
}

fn nothing_held(session: SessionId) -> Error {
    let sid = session.to_string();
    Error::new(Code::LeaseEnded, format!("{sid} holds nothing")).next(Next::new(
        "session",
        "take work",
        &["striatum", "work", "claim", "--session-id", &sid],
    ))
}

/// Notes that the session did something: an unsupervised one gets a new deadline.
pub fn touch(ctx: &Ctx, tx: &Writing<'_>, run: &Run, session: SessionId) -> Result<()> {
    let deadline = ctx.clock.moment().after(run.spec.limits.lease_ms);
    store::session::touch(tx, session, &deadline)?;
    Ok(store::lease::extend(tx, session, &deadline)?)
}

/// The same for something that takes this long: its session's deadline does not come before.
pub fn touch_for(ctx: &Ctx, tx: &Writing<'_>, hold: &Hold, ms: u64) -> Result<()> {
    let deadline = ctx.clock.moment().after(ms.max(hold.run.spec.limits.lease_ms));
    store::session::touch(tx, hold.session.id, &deadline)?;
    Ok(store::lease::extend(tx, hold.session.id, &deadline)?)
}

/// What `work heartbeat` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatRequest {
    /// Who lives.
    pub who: Credentials,
}

/// What `work heartbeat` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeartbeatReport {
    /// The session.
    pub session: SessionId,
    /// What it holds.
    pub lease: LeaseId,
    /// The job.
    pub job: String,
    /// Milliseconds until an unsupervised lease runs out; none when a helper protects it.
    pub expires_in_ms: Option<u64>,
}

/// `work heartbeat`: a column, never an event.
pub fn heartbeat(ctx: &Ctx, request: &HeartbeatRequest) -> Result<HeartbeatReport> {
    ctx.write("work heartbeat", |tx| {
        let hold = hold(ctx, tx, &request.who)?;
        touch(ctx, tx, &hold.run, hold.session.id)?;
        Ok(HeartbeatReport {
            session: hold.session.id,
            lease: hold.lease.id,
            job: hold.job.name,
            expires_in_ms: hold.lease.deadline.as_ref().map(|_| hold.run.spec.limits.lease_ms),
        })
    })
}
