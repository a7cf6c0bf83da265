//! Destroying a resource: by the owner of its attempt; after its death by a process that a driver starts, or by `gc`.
//!
//! What can't be destroyed is no fault of the attempt: it is listed until it is gone.

use serde_json::json;

use super::command::{self, Owned, Place, Ran};
use crate::domain::event::EventType;
use crate::domain::id::SessionId;
use crate::domain::resource::{Part, ResourceEvent, ResourceState};
use crate::error::{Code, Error, Result};
use crate::os::lock::{Held, Lock, probe};
use crate::os::process::{Handle, HelperCommand, spawn_helper};
use crate::store::job::Job;
use crate::store::resource::Resource;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::flow::tell;
use crate::verbs::settle::verify::Foreground;
use crate::verbs::supervise::ending;
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, trust};

/// The hidden verb of a process that destroys one resource: `__resource NUMBER`.
pub const RESOURCE_VERB: &str = "__resource";

/// Processes that may die over destroying a resource before it is left to a person.
const MOST_TRIES: u32 = 3;

/// What starting to destroy came to.
pub enum Begun {
    /// A process is at it.
    Started(SessionId, Handle),
    /// It is left: one process after the other died over it.
    Left,
    /// Somebody else is at it, or it is gone.
    Moot,
}

/// Destroys what was made for a hold, if anything was. Never fails for what its command says.
///
/// # Errors
/// The store or the disk refuses.
pub fn release(ctx: &Ctx, hold: &Hold) -> Result<()> {
    if hold.job.spec.ephemeral.is_none() {
        return Ok(());
    }
    match super::open(ctx, hold)? {
        Some(row) => destroy(ctx, &row).map(drop),
        None => Ok(()),
    }
}

/// Destroys a resource here and now; why it could not be, if so.
///
/// # Errors
/// The store or the disk refuses.
pub fn destroy(ctx: &Ctx, row: &Resource) -> Result<Option<String>> {
    let lock = place(ctx, row)?.lock(ctx)?;
    locked(ctx, row, &lock)
}

/// The same for whoever holds its lock already.
pub fn locked(ctx: &Ctx, row: &Resource, lock: &Lock) -> Result<Option<String>> {
    let row = ctx.read(|read| Ok(store::resource::get(read, row.id)?))?;
    if row.state == ResourceState::Destroyed {
        return Ok(None);
    }
    ctx.write("resource destroy", |tx| intend(tx, row.id))?;
    crate::os::crash::point("resource.destroying");
    carry_out(ctx, &row, row.state.may_be_cut(), lock)
}

/// Has a process of its own destroy what a dead holder left.
///
/// # Errors
/// The store or the disk refuses; no process can be started.
pub fn begin(ctx: &Ctx, id: i64) -> Result<Begun> {
    let row = ctx.read(|read| Ok(store::resource::get(read, id)?))?;
    let place = place(ctx, &row)?;
    crate::os::files::create_private_dirs(ctx.layout().root(), &place.tmp())?;
    let Some(lock) = Lock::try_exclusive(&place.lock_file())? else { return Ok(Begun::Moot) };
    let row = ctx.read(|read| Ok(store::resource::get(read, id)?))?;
    if !row.state.is_open() {
        return Ok(Begun::Moot);
    }
    if row.tries >= MOST_TRIES {
        ctx.write("resource", |tx| {
            intend(tx, id)?;
            end(tx, id, Some("whoever was to destroy it died, one after the other"))
        })?;
        return Ok(Begun::Left);
    }
    ctx.write("resource begin", |tx| intend(tx, id))?;
    crate::os::crash::point("resource.begun");
    let mut args = vec![RESOURCE_VERB.into(), id.to_string().into()];
    if row.state.may_be_cut() {
        args.push("--cut".into());
    }
    let command = HelperCommand {
        exe: ctx.exe.clone(),
        args,
        cwd: ctx.layout().project().to_owned(),
        env: vec![("STRIATUM_DIR".into(), ctx.layout().root().into())],
        log: ctx.layout().scratch(&row.session.to_string()).helper_log(),
    };
    Ok(Begun::Started(row.session, spawn_helper(&command, lock, None)?))
}

/// What that process does, with the lock that it was started with.
///
/// # Errors
/// The store refuses.
pub fn finish(ctx: &Ctx, id: i64, was_cut: bool, lock: &Lock) -> Result<()> {
    let row = ctx.read(|read| Ok(store::resource::get(read, id)?))?;
    crate::os::crash::point("resource.taken");
    carry_out(ctx, &row, was_cut, lock).map(drop)
}

/// Whether somebody runs a command of it right now.
///
/// # Errors
/// The disk refuses.
pub fn is_at_work(ctx: &Ctx, row: &Resource, job: &str) -> Result<Held> {
    Ok(probe(&Place::of(ctx, row.session, job, row.attempt).lock_file())?)
}

/// Where its commands' words are.
///
/// # Errors
/// The store refuses.
pub fn log(ctx: &Ctx, row: &Resource) -> Result<std::path::PathBuf> {
    Ok(place(ctx, row)?.log(Part::Destroy))
}

fn place(ctx: &Ctx, row: &Resource) -> Result<Place> {
    let job = ctx.read(|read| Ok(store::job::name(read, row.job)?))?;
    Ok(Place::of(ctx, row.session, &job, row.attempt))
}

fn intend(tx: &Writing<'_>, id: i64) -> Result<()> {
    store::resource::get(tx, id)?.state.next(ResourceEvent::Destroy)?;
    Ok(store::resource::destroying(tx, id)?)
}

/// Runs the command under the lock, and records what it came to.
fn carry_out(ctx: &Ctx, row: &Resource, was_cut: bool, _lock: &Lock) -> Result<Option<String>> {
    let (run, job) = ctx.read(|read| Ok((store::run::get(read, row.run)?, store::job::get(read, row.job)?)))?;
    let tmp = Place::of(ctx, row.session, &job.name, row.attempt).tmp();
    if was_cut {
        ending::end_attempt(&tmp);
    }
    let why = run_destroy(ctx, &run, &job, row)?;
    crate::os::crash::point("resource.gone");
    if why.is_none() {
        ending::end_attempt(&tmp);
    }
    ctx.write("resource destroyed", |tx| end(tx, row.id, why.as_deref()))?;
    Ok(why)
}

fn run_destroy(ctx: &Ctx, run: &Run, job: &Job, row: &Resource) -> Result<Option<String>> {
    if !trust::may_launch(ctx, run) {
        return Ok(Some("its commands are not trusted any more".to_owned()));
    }
    // Orders are about work: what was made is given back whatever they say.
    Ok(match command::run(ctx, &Owned { run, job, row }, Part::Destroy, &mut Foreground)? {
        Ran::Passed => None,
        Ran::Failed(why) | Ran::Told(why) => Some(why),
    })
}

/// Somebody says that it is gone.
///
/// # Errors
/// The store refuses.
pub fn forget(ctx: &Ctx, row: &Resource, reason: &str) -> Result<()> {
    let lock = place(ctx, row)?.lock(ctx)?;
    ctx.write("gc", |tx| {
        intend(tx, row.id)?;
        let now = store::resource::get(tx, row.id)?;
        store::resource::ended(tx, row.id, now.state.next(ResourceEvent::Vanish)?, Some(reason))?;
        let body = json!({"attempt": row.attempt, "resource": row.name, "tries": now.tries, "by_hand": reason});
        tell(tx, EventType::EphemeralDestroyed, &store::job::get(tx, row.job)?, &body)
    })?;
    drop(lock);
    Ok(())
}

fn end(tx: &Writing<'_>, id: i64, why: Option<&str>) -> Result<()> {
    let row = store::resource::get(tx, id)?;
    let (event, kind) = match why {
        None => (ResourceEvent::Vanish, EventType::EphemeralDestroyed),
        Some(_) => (ResourceEvent::Leave, EventType::EphemeralLeft),
    };
    store::resource::ended(tx, id, row.state.next(event)?, why)?;
    let body = json!({"attempt": row.attempt, "resource": row.name, "tries": row.tries, "why": why});
    tell(tx, kind, &store::job::get(tx, row.job)?, &body)
}

/// An attempt can't be sealed over a resource that nobody has given back.
///
/// # Errors
/// It is there, or may be.
pub fn must_be_given_back(tx: &Writing<'_>, job: &Job) -> Result<()> {
    if job.spec.ephemeral.is_none() {
        return Ok(());
    }
    match store::resource::open(tx, job.run, job.id, job.attempt)? {
        None => Ok(()),
        Some(row) => Err(Error::new(Code::StillHeld, format!("{} of {} is {}", row.name, job.name, row.state))),
    }
}
