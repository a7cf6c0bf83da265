//! `register-session`, `session list`, `session close`: the lives of agents in slots.
//!
//! The rule of fresh reviewers is asked here and nowhere else. It does not know helpers.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::ctx::Ctx;
use super::flow::attempt::{self, Ended};
use super::run::find;
use super::work::claim;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::freshness::{Author, blocking_author, refusal};
use crate::domain::frozen::RoleContext;
use crate::domain::id::{JobId, RunId, SessionId};
use crate::domain::job::Outcome;
use crate::domain::run::RunState;
use crate::domain::session::{LeaseState, SessionEvent, SessionState};
use crate::domain::time::{Moment, Timestamp};
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::store::decision::NewDecision;
use crate::store::event::About;
use crate::store::run::Run;
use crate::store::session::{NewSession, Session};
use crate::store::{self, Connection, Writing};

/// What `register-session` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RegisterRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// One job only.
    pub fresh: bool,
    /// Act through mediated verbs, whatever the run says.
    #[serde(default)]
    pub constrained: bool,
    /// Accept a contaminated reviewer.
    pub force_non_fresh: bool,
    /// Why.
    pub reason: Option<String>,
}

/// What a driver adds to a registration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Driven {
    /// The attempt that the session is launched for.
    pub offered: Option<(JobId, u32)>,
    /// A driver registers it.
    pub by_driver: bool,
}

/// What `register-session` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisterReport {
    /// The new session.
    pub session: SessionId,
    /// The run's name.
    pub run: String,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// One job only.
    pub fresh: bool,
    /// The file that holds its token.
    pub token_file: String,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Registers a session in a slot.
pub fn register(ctx: &Ctx, request: &RegisterRequest) -> Result<RegisterReport> {
    let run = ctx.read(|read| find::for_writing(read, request.run.as_deref()))?;
    register_in(ctx, run.id, request, Driven::default())
}

/// Registers a session in a slot of a known run, for an operator or a driver.
pub fn register_in(ctx: &Ctx, run: RunId, request: &RegisterRequest, driven: Driven) -> Result<RegisterReport> {
    if request.force_non_fresh && request.reason.as_deref().is_none_or(|reason| reason.trim().is_empty()) {
        return Err(Error::new(Code::Usage, "--force-non-fresh needs --reason: it is recorded"));
    }
    if request.force_non_fresh {
        ctx.person()?;
    }
    let token = new_token()?;
    let deadline_base = ctx.clock.moment();
    let (run, session) = ctx.write("register-session", |tx| {
        let run = store::run::get(tx, run)?;
        expire_overdue(tx, &run, &deadline_base)?;
        let fresh = check_slot(tx, &run, request)?;
        let forced = check_freshness(tx, &run, request)?;
        let deadline = deadline_base.after(run.spec.limits.lease_ms);
        let new = NewSession {
            run: run.id,
            role: &request.role,
            lane: &request.lane,
            fresh,
            driven: driven.by_driver,
            constrained: request.constrained,
            offered: driven.offered,
            deadline: &deadline,
            token_hash: &sha256_hex(token.as_bytes()),
            non_fresh_reason: if forced { request.reason.as_deref() } else { None },
        };
        let session = store::session::insert(tx, &new)?;
        let about = About { run: Some(run.id), job: None, session: Some(session) };
        let body = json!({"role": request.role, "lane": request.lane, "fresh": fresh, "driven": driven.by_driver,
            "constrained": request.constrained});
        store::event::append(tx, EventType::SessionRegistered, about, &body)?;
        if forced {
            record_force(ctx, tx, &run, session, request)?;
        }
        Ok((run, (session, fresh)))
    })?;
    let (session, fresh) = session;
    let scratch = ctx.layout().scratch(&session.to_string());
    files::create_private_dirs(ctx.layout().root(), scratch.folder())?;
    files::write_private(&scratch.token(), token.as_bytes())?;
    let (sid, token_file) = (session.to_string(), scratch.token().display().to_string());
    let claim = ["striatum", "work", "claim", "--session-id", &sid, "--token-file", &token_file];
    Ok(RegisterReport {
        session,
        run: run.name,
        role: request.role.clone(),
        lane: request.lane.clone(),
        fresh,
        token_file: token_file.clone(),
        next: vec![
            Next::new("operator", "let a helper host it", &["striatum", "supervise", "start", "--session-id", &sid]),
            Next::new("session", "take work yourself", &claim),
        ],
    })
}

/// A person accepts a contaminated reviewer: the reason is kept as a decision.
fn record_force(ctx: &Ctx, tx: &Writing<'_>, run: &Run, session: SessionId, request: &RegisterRequest) -> Result<()> {
    let decision = NewDecision {
        run: Some(run.id),
        session: Some(session),
        kind: "non_fresh",
        body: &format!("{}/{} was registered while an author worked", request.role, request.lane),
        reason: request.reason.as_deref().unwrap_or_default(),
        how: ctx.person()?,
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &decision)?;
    let about = About { run: Some(run.id), job: None, session: Some(session) };
    let body = json!({"reason": request.reason, "decision": decision});
    Ok(store::event::append(tx, EventType::SessionForcedNonFresh, about, &body)?)
}

/// Sessions that nothing hosts and whose time is over cover no slot and contaminate nobody, swept or not.
fn expire_overdue(tx: &Writing<'_>, run: &Run, now: &Moment) -> Result<()> {
    claim::expire_overdue(tx, run, now)?;
    for session in store::session::active(tx, run.id)? {
        let is_over = session.deadline.as_ref().is_some_and(|deadline| deadline.is_past(now));
        if is_over && store::message::held(tx, session.id)?.is_none() {
            end(tx, &session, SessionEvent::Expire, "it held nothing and did nothing for too long")?;
        }
    }
    Ok(())
}

/// 256 random bits in hex.
pub fn new_token() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0_u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(crate::domain::event::hex(&bytes))
}

/// The slot exists, its run lives, and it has more work than sessions; returns whether one job is all it does.
fn check_slot(tx: &Writing<'_>, run: &Run, request: &RegisterRequest) -> Result<bool> {
    if !matches!(run.state, RunState::Ready | RunState::Running | RunState::NeedsOperator) {
        return Err(Error::new(Code::NotRunning, format!("run {} is {}", run.name, run.state)));
    }
    let Some(role) = run.spec.roles.get(&request.role) else {
        return Err(unknown("role", &request.role, run.spec.roles.keys()));
    };
    if !run.spec.lanes.contains_key(&request.lane) {
        return Err(unknown("lane", &request.lane, run.spec.lanes.keys()));
    }
    if !role.lanes.is_empty() && !role.lanes.contains(&request.lane) {
        let hint = format!("lanes of {}: {}", request.role, role.lanes.join(", "));
        return Err(Error::new(Code::Usage, format!("role {} has no lane {}", request.role, request.lane)).hint(hint));
    }
    let sessions = store::session::active_in_slot(tx, run.id, &request.role, &request.lane)?;
    let live = store::message::live_in_slot(tx, run.id, (&request.role, &request.lane), sessions + 1)?;
    if sessions > 0 && sessions >= live {
        return Err(Error::new(
            Code::SlotCovered,
            format!(
                "slot {}/{} has {sessions} active session(s) for {live} live message(s)",
                request.role, request.lane
            ),
        )
        .hint("a slot takes another session only while it has more work than sessions")
        .next(Next::new(
            "anyone",
            "see who covers it",
            &["striatum", "session", "list", "--run-id", &run.name],
        )));
    }
    Ok(request.fresh || role.context == RoleContext::Fresh)
}

fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Error {
    let known: Vec<&str> = known.map(String::as_str).collect();
    Error::new(Code::Usage, format!("the run has no {what} {name}")).hint(format!("it has {}", known.join(", ")))
}

/// The rule of RFC 0116: true when a genuine refusal was overridden.
fn check_freshness(read: &Connection, run: &Run, request: &RegisterRequest) -> Result<bool> {
    let is_fresh_role = run.spec.roles.get(&request.role).is_some_and(|role| role.context == RoleContext::Fresh);
    if !is_fresh_role {
        return Ok(false);
    }
    let Some(author) = blocking(read, run)? else { return Ok(false) };
    if request.force_non_fresh {
        return Ok(true);
    }
    let sid = author.to_string();
    Err(Error::new(Code::FreshRefused, refusal(author)).next(Next::new(
        "operator",
        "close the author when its work is done",
        &["striatum", "supervise", "stop", "--session-id", &sid, "--reason", "fresh review"],
    )))
}

/// The author session that blocks fresh reviewers of a run, if any.
pub fn blocking(read: &Connection, run: &Run) -> Result<Option<SessionId>> {
    // Whom nobody would be fresh from is not looked for.
    if !run.spec.roles.values().any(|role| role.context == RoleContext::Fresh) {
        return Ok(None);
    }
    let mut authors = Vec::new();
    for role in &run.spec.author_roles {
        for row in store::session::authors(read, run.id, role)? {
            authors.push(Author {
                session: row.id,
                holds_work: row.holds_work,
                role_has_pending: row.role_has_pending,
            });
        }
    }
    Ok(blocking_author(&authors))
}

/// What `session list` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// Ended ones too.
    pub all: bool,
}

/// A session, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionLine {
    /// s12.
    pub session: SessionId,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// Where it is.
    pub state: SessionState,
    /// One job only.
    pub fresh: bool,
    /// A helper hosts it.
    pub supervised: bool,
    /// Acts through mediated verbs, whatever its run says.
    pub constrained: bool,
    /// What it holds.
    pub holds: Option<String>,
    /// Packets held so far.
    pub packets: u32,
    /// When registered.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Why.
    pub end_reason: Option<String>,
}

/// What `session list` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// The run's name; none in a store without runs.
    pub run: Option<String>,
    /// Its sessions, newest first.
    pub sessions: Vec<SessionLine>,
    /// How many are not shown.
    pub left_out: u32,
}

/// Most sessions in one list.
const LIST_LIMIT: u32 = 200;

/// Lists the sessions of a run.
pub fn list(ctx: &Ctx, request: &ListRequest) -> Result<ListReport> {
    ctx.read(|read| {
        let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else {
            return Ok(ListReport { run: None, sessions: Vec::new(), left_out: 0 });
        };
        let mut rows = if request.all {
            store::session::of_run(read, run.id, LIST_LIMIT + 1)?
        } else {
            let mut rows = store::session::active(read, run.id)?;
            rows.reverse();
            rows
        };
        let left_out = u32::try_from(rows.len()).unwrap_or(u32::MAX).saturating_sub(LIST_LIMIT);
        rows.truncate(LIST_LIMIT as usize);
        let sessions = rows.into_iter().map(|row| line(read, row)).collect::<Result<_>>()?;
        Ok(ListReport { run: Some(run.name), sessions, left_out })
    })
}

/// A session for people.
pub fn line(read: &Connection, row: Session) -> Result<SessionLine> {
    let holds = store::message::holding(read, row.id)?.map(|holding| holding.name);
    Ok(SessionLine {
        session: row.id,
        role: row.role,
        lane: row.lane,
        state: row.state,
        fresh: row.fresh,
        supervised: row.supervised,
        constrained: row.constrained,
        holds,
        packets: row.packets,
        created_at: row.created_at,
        ended_at: row.ended_at,
        end_reason: row.end_reason,
    })
}

/// What `session close` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CloseRequest {
    /// The session.
    pub session: SessionId,
    /// Why.
    pub reason: String,
}

/// What `session close` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CloseReport {
    /// The session.
    pub session: SessionId,
    /// Where it is now.
    pub state: SessionState,
    /// The job that goes back to the queue, if it held one.
    pub requeued: Option<String>,
}

/// Closes a session that no helper hosts; what it held goes back to the queue without cost.
pub fn close(ctx: &Ctx, request: &CloseRequest) -> Result<CloseReport> {
    ctx.write("session close", |tx| {
        let session = must_exist(tx, request.session)?;
        if session.state != SessionState::Active {
            return Ok(CloseReport { session: session.id, state: session.state, requeued: None });
        }
        if store::supervisor::active(tx, session.id)?.is_some() {
            let sid = session.id.to_string();
            return Err(Error::new(Code::StillHeld, format!("{sid} is hosted by a helper")).next(Next::new(
                "operator",
                "end the helper; the session closes with it",
                &["striatum", "supervise", "stop", "--session-id", &sid, "--reason", &request.reason],
            )));
        }
        let requeued = release(tx, &session, Outcome::Interrupted, &request.reason)?;
        end(tx, &session, SessionEvent::Close, &request.reason)?;
        Ok(CloseReport { session: session.id, state: SessionState::Closed, requeued })
    })
}

/// A session that must exist.
pub fn must_exist(read: &Connection, id: SessionId) -> Result<Session> {
    store::session::get(read, id)?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("there is no session {id}")).next(Next::new(
            "anyone",
            "list the sessions",
            &["striatum", "session", "list"],
        ))
    })
}

/// Ends what an active session holds; returns the job's name.
pub fn release(tx: &Writing<'_>, session: &Session, outcome: Outcome, why: &str) -> Result<Option<String>> {
    let Some(message) = store::message::held(tx, session.id)? else { return Ok(None) };
    let job = store::job::get(tx, message.job)?;
    let run = store::run::get(tx, session.run)?;
    attempt::end(tx, &run, &job, Ended { lease: LeaseState::Revoked, ..Ended::plain(outcome, why) })?;
    Ok(Some(job.name))
}

/// Ends an active session and tells.
pub fn end(tx: &Writing<'_>, session: &Session, event: SessionEvent, why: &str) -> Result<()> {
    let state = session.state.next(event)?;
    store::session::end(tx, session.id, state, why)?;
    store::execution::lose_of_session(tx, session.id)?;
    let kind = match event {
        SessionEvent::Close => EventType::SessionClosed,
        SessionEvent::Lose => EventType::SessionLost,
        SessionEvent::Expire => EventType::SessionExpired,
    };
    let about = About { run: Some(session.run), job: None, session: Some(session.id) };
    Ok(store::event::append(tx, kind, about, &json!({"why": why}))?)
}
