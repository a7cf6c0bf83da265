//! Resources that are made for one attempt alone: made and checked before its agent, destroyed after it.
//!
//! Row, then effect, then row. Each has a name that no other has, so that what is destroyed is its owner's. Whoever runs
//! a command of it holds its lock; whoever takes the lock next knows that the one before is dead, and ends what that one
//! had started. It does not know what a resource is.

mod command;
pub mod destroy;

use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::job::JobState;
use crate::domain::resource::{Part, ResourceEvent, ResourceState, name_of};
use crate::error::{Code, Error, Result};
use crate::os::process::{Identity, carriers};
use crate::store;
use crate::store::resource::{NewResource, Resource};
use crate::verbs::flow::tell;
use crate::verbs::session::new_token;
use crate::verbs::settle::verify::Runner;
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, person};
use command::{Owned, Place, Ran};

/// What became of making ready.
pub enum Prepared {
    /// The job has none, or it is gone again.
    None,
    /// It is there, and usable.
    Ready,
    /// It could not be made usable; why. Nothing is left of it that is not listed.
    Unusable(String),
    /// An order came meanwhile.
    Told(String),
}

/// Makes the resource of what a session holds, and checks it; doing it twice makes nothing twice.
///
/// # Errors
/// The store or the disk refuses; somebody else has been at it for too long.
pub fn prepare(ctx: &Ctx, hold: &Hold, runner: &mut dyn Runner) -> Result<Prepared> {
    if hold.job.spec.ephemeral.is_none() {
        return Ok(Prepared::None);
    }
    let place = Place::of(ctx, hold.session.id, &hold.job.name, hold.lease.attempt);
    let lock = place.lock(ctx)?;
    match open(ctx, hold)? {
        Some(row) if row.state == ResourceState::Ready => return Ok(Prepared::Ready),
        // Whoever made it died over it.
        Some(row) => destroy::locked(ctx, &row, &lock).map(drop)?,
        // An agent that looks again at its work: what it had was given back with its answer.
        None if hold.job.state != JobState::Claimed && hold.session.lane != person::LANE => return Ok(Prepared::None),
        None => {}
    }
    let row = intend(ctx, hold)?;
    crate::os::crash::point("resource.intended");
    let owned = Owned { run: &hold.run, job: &hold.job, row: &row };
    for (part, kind) in [(Part::Create, EventType::EphemeralCreated), (Part::Check, EventType::EphemeralChecked)] {
        let ran = command::run(ctx, &owned, part, runner)?;
        crate::os::crash::point(if part == Part::Create { "resource.made" } else { "resource.checked" });
        ctx.write(&format!("resource {part}"), |tx| {
            let body = json!({"attempt": row.attempt, "resource": row.name, "result": ran.word()});
            tell(tx, kind, &hold.job, &body)?;
            if part == Part::Check && ran == Ran::Passed {
                store::resource::get(tx, row.id)?.state.next(ResourceEvent::Make)?;
                store::resource::ready(tx, row.id)?;
            }
            Ok(())
        })?;
        if ran != Ran::Passed {
            destroy::locked(ctx, &row, &lock)?;
        }
        match ran {
            Ran::Passed => {}
            Ran::Failed(why) => return Ok(Prepared::Unusable(format!("{part} of {}: {why}", row.name))),
            Ran::Told(why) => return Ok(Prepared::Told(why)),
        }
    }
    crate::os::crash::point("resource.ready");
    Ok(Prepared::Ready)
}

fn intend(ctx: &Ctx, hold: &Hold) -> Result<Resource> {
    let Some(spec) = &hold.job.spec.ephemeral else {
        return Err(Error::new(Code::Bug, "a resource without its commands"));
    };
    let name = name_of(spec, &new_token()?);
    let own = Identity::own().ok_or_else(|| Error::new(Code::Io, "this process can't be identified"))?;
    let maker = format!("{} {} {}", own.pid, own.start_ticks, own.boot);
    ctx.write("resource", |tx| {
        let new = NewResource {
            run: hold.run.id,
            job: hold.job.id,
            attempt: hold.lease.attempt,
            session: hold.session.id,
            maker: &maker,
            name: &name,
        };
        let id = store::resource::insert(tx, &new)?;
        Ok(store::resource::get(tx, id)?)
    })
}

fn open(ctx: &Ctx, hold: &Hold) -> Result<Option<Resource>> {
    ctx.read(|read| Ok(store::resource::open(read, hold.run.id, hold.job.id, hold.lease.attempt)?))
}

/// What an attempt's commands and its agent call its resource, while it is there.
///
/// # Errors
/// The store refuses.
pub fn name(ctx: &Ctx, hold: &Hold) -> Result<Option<String>> {
    if hold.job.spec.ephemeral.is_none() {
        return Ok(None);
    }
    Ok(open(ctx, hold)?.map(|row| row.name))
}

/// Processes that a resource consists of: they are nobody's leftovers while it is there.
pub fn processes(ctx: &Ctx, hold: &Hold) -> Vec<i32> {
    if hold.job.spec.ephemeral.is_none() {
        return Vec::new();
    }
    let place = Place::of(ctx, hold.session.id, &hold.job.name, hold.lease.attempt);
    carriers(&[("TMPDIR", place.tmp().as_os_str())]).iter().map(|identity| identity.pid).collect()
}

/// Whether what an answer has to be checked with is gone: made for an attempt, and given back or lost before its seal.
///
/// # Errors
/// The store refuses.
pub fn is_missing(ctx: &Ctx, hold: &Hold) -> Result<bool> {
    let needs_it = hold.job.spec.ephemeral.is_some() && !hold.job.spec.verify.is_empty();
    Ok(needs_it && open(ctx, hold)?.is_none_or(|row| row.state != ResourceState::Ready))
}
