//! `take`: a person works a job. They get what a lane would get, in a session of their own.
//!
//! It does not know how the work comes back (`give`).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flow::offer::{self, Offer};
use super::flow::{attempt, finish, tell};
use super::person;
use super::run::find;
use super::session::{must_exist, new_token};
use super::work::claim::{self, Granted};
use super::work::layout::{self, Grant, Laid};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::SessionId;
use crate::domain::job::{JobState, Outcome};
use crate::domain::session::{LeaseState, StopKind};
use crate::domain::time::Moment;
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::store::decision::NewDecision;
use crate::store::event::About;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::session::{NewSession, Session};
use crate::store::{self, Writing};
use crate::verbs::Ctx;

/// What `take` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeRequest {
    /// The run; the only live one that has the job, when left out.
    pub run: Option<String>,
    /// The job.
    pub job: String,
    /// Take it from a lane that works on it.
    pub stop_lane: bool,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TakeReport {
    /// The run's name.
    pub run: String,
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// The person's session.
    pub session: SessionId,
    /// The session that it was taken from.
    pub taken_from: Option<SessionId>,
    /// It had been taken before.
    pub already: bool,
    /// Where to work.
    pub cwd: String,
    /// What to do, in words.
    pub prompt: String,
    /// The same for programs.
    pub packet: String,
    /// What to do next.
    pub next: Vec<Next>,
}

/// What the transaction came to.
struct Taken {
    run: Run,
    session: Session,
    granted: Granted,
    from: Option<SessionId>,
    already: bool,
}

/// Takes a job for a person and lays out its work.
pub fn take(ctx: &Ctx, request: &TakeRequest) -> Result<TakeReport> {
    let how = ctx.person()?;
    let token = new_token()?;
    let now = ctx.clock.moment();
    let taken = ctx.write("take", |tx| {
        let (run, job) = find::job_for_writing(tx, request.run.as_deref(), &request.job, |job| !job.settled)?;
        find::must_be_live(&run)?;
        if let Some(mine) = held_by_person(tx, &run, &job)? {
            return Ok(mine);
        }
        refuse_own_review(tx, &job)?;
        let from = free(tx, &run, &job, request)?;
        let session = register(tx, &run, &job, (&token, &now))?;
        let granted = hold(tx, &run, &job, &session)?;
        record(tx, &run, &job, &Record { session: &session, from, how })?;
        finish::revive(tx, run.id, &format!("{} was taken", job.name))?;
        Ok(Taken { run, session, granted, from, already: false })
    })?;
    crate::os::crash::point("take.held");
    let scratch = ctx.layout().scratch(&taken.session.id.to_string());
    files::create_private_dirs(ctx.layout().root(), scratch.folder())?;
    if !taken.already {
        files::write_private(&scratch.token(), token.as_bytes())?;
    }
    let ground = claim::ground(ctx, &taken.granted)?;
    let grant = Grant { granted: &taken.granted, run: &taken.run, session: &taken.session };
    let laid = layout::lay_out(ctx, &grant, ground)?;
    ctx.write("take", |tx| {
        Ok(store::attempt::set_packet(tx, taken.granted.job, taken.granted.attempt, &laid.packet_hash)?)
    })?;
    Ok(report(&taken, &laid))
}

/// What a person holds already.
fn held_by_person(tx: &Writing<'_>, run: &Run, job: &Job) -> Result<Option<Taken>> {
    let Some((lease, session)) = holder(tx, job)? else { return Ok(None) };
    let message = store::message::live_of_job(tx, job.id)?;
    let Some(message) = message.filter(|_| session.lane == person::LANE) else { return Ok(None) };
    let granted =
        Granted { message: message.id, job: job.id, attempt: lease.attempt, lease: lease.id, fence: lease.fence };
    Ok(Some(Taken { run: run.clone(), session, granted, from: None, already: true }))
}

/// Who holds a job.
pub fn holder(tx: &store::Connection, job: &Job) -> Result<Option<(store::lease::Lease, Session)>> {
    let Some(lease) = store::lease::active_of_job(tx, job.id)? else { return Ok(None) };
    let session = must_exist(tx, lease.session)?;
    Ok(Some((lease, session)))
}

/// Nobody reviews their own job, persons neither.
fn refuse_own_review(tx: &Writing<'_>, job: &Job) -> Result<()> {
    let Some(subject) = job.reviews else { return Ok(()) };
    if !store::decision::has(tx, subject, "take", tx.principal)? {
        return Ok(());
    }
    let subject = store::job::get(tx, subject)?.name;
    Err(Error::new(Code::NotIndependent, format!("{} worked {subject}; somebody else reviews it", tx.principal)).next(
        Next::new(
            "person",
            "decide over the review, with a reason that is kept",
            &["striatum", "review", "override-verdict", &job.name, "--verdict", "accept", "--reason", "WHY"],
        ),
    ))
}

/// Brings the job into the queue, away from whoever had it; tells from whom.
fn free(tx: &Writing<'_>, run: &Run, job: &Job, request: &TakeRequest) -> Result<Option<SessionId>> {
    match job.state {
        JobState::Queued => Ok(None),
        JobState::WaitingHuman => offer_anew(tx, job).map(|()| None),
        JobState::Failed if !job.settled => offer_anew(tx, job).map(|()| None),
        JobState::Claimed | JobState::Running => {
            let (_, session) = holder(tx, job)?
                .ok_or_else(|| Error::new(Code::Bug, format!("{} is {} and held by nobody", job.name, job.state)))?;
            if !request.stop_lane {
                return Err(at_work(run, job, &session));
            }
            stop(tx, job, &session)?;
            offer_anew(tx, &store::job::get(tx, job.id)?)?;
            Ok(Some(session.id))
        }
        JobState::Waiting
        | JobState::Completed
        | JobState::Failed
        | JobState::Stale
        | JobState::Canceled
        | JobState::Skipped => Err(not_for_taking(run, job)),
    }
}

fn offer_anew(tx: &Writing<'_>, job: &Job) -> Result<()> {
    let context = super::answer::before(tx, job)?;
    offer::offer(tx, job, &Offer { context, ..Offer::default() })?;
    Ok(())
}

fn at_work(run: &Run, job: &Job, session: &Session) -> Error {
    Error::new(
        Code::StillHeld,
        format!("{} of lane {} works on {} (attempt {})", session.id, session.lane, job.name, job.attempt),
    )
    .hint("taking it ends that agent and throws away its attempt")
    .next(Next::new(
        "person",
        "take it all the same",
        &["striatum", "take", &job.name, "--run-id", &run.name, "--yes"],
    ))
}

/// The attempt is over, and the helper of the session is told to end its agent.
fn stop(tx: &Writing<'_>, job: &Job, session: &Session) -> Result<()> {
    let why = "a person takes the job";
    attempt::close(tx, job, Outcome::Interrupted, why, LeaseState::Revoked)?;
    if store::supervisor::ask_stop(tx, session.id, StopKind::Now, why)? {
        let about = About { run: Some(session.run), job: Some(job.id), session: Some(session.id) };
        let body = json!({"why": why, "kind": StopKind::Now});
        store::event::append(tx, EventType::SupervisorStopRequested, about, &body)?;
    }
    Ok(())
}

fn not_for_taking(run: &Run, job: &Job) -> Error {
    let reason = job.reason.as_deref();
    let shown = reason.map_or(String::new(), |reason| format!(" ({reason})"));
    let error = Error::new(Code::InvalidTransition, format!("{} is {}{shown}: nothing to take", job.name, job.state));
    let next = |who: &str, why: &str, verb: &[&str]| {
        let words = ["striatum"].iter().chain(verb).chain(&["--run-id", &run.name]).copied().collect::<Vec<_>>();
        Next::new(who, why, &words)
    };
    match (job.state, reason) {
        (JobState::Waiting, Some(offer::GATE)) => {
            error.next(next("person", "let it through first", &["gate", "approve", &job.name]))
        }
        (JobState::Waiting, Some(offer::GATE_REJECTED)) | (JobState::Canceled, _) => {
            error.next(next("operator", "bring it back", &["run", "retry-job", &job.name, "--reason", "WHY"]))
        }
        (JobState::Waiting, _) => error.hint("jobs that it needs are not done"),
        (JobState::Stale, _) => error.next(next("operator", "let a driver look what it did", &["run", "drive"])),
        _ => error,
    }
}

/// A session of the person's own. No deadline burns while a person works; `give` ends it.
fn register(tx: &Writing<'_>, run: &Run, job: &Job, made: (&str, &Moment)) -> Result<Session> {
    let role = job.spec.role.as_deref().ok_or_else(|| not_for_taking(run, job))?;
    let new = NewSession {
        run: run.id,
        role,
        lane: person::LANE,
        fresh: true,
        driven: false,
        constrained: false,
        offered: None,
        deadline: &made.1.after(run.spec.limits.lease_ms),
        token_hash: &sha256_hex(made.0.as_bytes()),
        non_fresh_reason: None,
    };
    let session = store::session::insert(tx, &new)?;
    let about = About { run: Some(run.id), job: Some(job.id), session: Some(session) };
    let body = json!({"role": role, "lane": person::LANE, "fresh": true, "driven": false});
    store::event::append(tx, EventType::SessionRegistered, about, &body)?;
    Ok(Session { deadline: None, ..must_exist(tx, session)? })
}

/// The job's message is the person's, and the work has begun.
fn hold(tx: &Writing<'_>, run: &Run, job: &Job, session: &Session) -> Result<Granted> {
    let message = store::message::live_of_job(tx, job.id)?
        .ok_or_else(|| Error::new(Code::Bug, format!("{} is queued without a message", job.name)))?;
    let granted = claim::grant(tx, run, session, &message)?;
    claim::start(tx, &store::job::get(tx, job.id)?, session.id)?;
    Ok(granted)
}

struct Record<'a> {
    session: &'a Session,
    from: Option<SessionId>,
    how: &'a str,
}

fn record(tx: &Writing<'_>, run: &Run, job: &Job, taken: &Record<'_>) -> Result<()> {
    let from = taken.from.map_or(String::new(), |from| format!(" from {from}"));
    let new = NewDecision {
        run: Some(run.id),
        job: Some(job.id),
        session: Some(taken.session.id),
        kind: "take",
        body: &format!("took {}{from}", job.name),
        reason: job.reason.as_deref().unwrap_or_default(),
        how: taken.how,
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    let job = store::job::get(tx, job.id)?;
    let body = json!({"session": taken.session.id, "attempt": job.attempt, "from": taken.from, "decision": decision});
    tell(tx, EventType::JobTaken, &job, &body)
}

fn report(taken: &Taken, laid: &Laid) -> TakeReport {
    let (run, job) = (&taken.run.name, &laid.job.name);
    let give = |why: &str, words: &[&str]| {
        let all = ["striatum", "give", job, "--run-id", run].iter().chain(words).copied().collect::<Vec<_>>();
        Next::new("person", why, &all)
    };
    let done = match laid.job.reviews.is_some() || laid.packet.commands.verdict.is_some() {
        true => give("judge", &["--verdict", "accept"]),
        false => give("when it is done", &["--done"]),
    };
    TakeReport {
        run: run.clone(),
        job: job.clone(),
        attempt: taken.granted.attempt,
        session: taken.session.id,
        taken_from: taken.from,
        already: taken.already,
        cwd: laid.packet.cwd.clone(),
        prompt: laid.folder.prompt().display().to_string(),
        packet: laid.folder.packet().display().to_string(),
        next: vec![done, give("put it back", &[])],
    }
}
