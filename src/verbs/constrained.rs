//! Constrained operator mode: what an operator does beyond the control plane needs an escape.
//!
//! It binds whoever plays along; the kernel binds who works under `operator exec`. What a lane may do is not decided here.

use std::path::Path;

use serde_json::Value;

use super::escape::{self, Asked};
use super::run::find;
use super::{ctx, operator, person};
use crate::domain::escape::Surface;
use crate::domain::id::SessionId;
use crate::domain::session::SessionState;
use crate::error::{Code, Error, Result};
use crate::store::run::Run;
use crate::store::session::Session;
use crate::store::{self, Connection};
use crate::verbs::Ctx;

/// The word for it in packets and reports.
pub const CONSTRAINED: &str = "constrained";

/// The session of an operator who works constrained, when this process is theirs: no helper hosts it.
pub fn session(ctx: &Ctx) -> Result<Option<Session>> {
    let Some(own) = person::own_lane(ctx)? else { return Ok(None) };
    of_operator(ctx, own)
}

/// A session that an operator registered for themselves, to work constrained.
pub fn of_operator(ctx: &Ctx, session: SessionId) -> Result<Option<Session>> {
    let row = ctx.read(|read| Ok(store::session::get(read, session)?))?;
    Ok(row.filter(|row| row.constrained && !row.supervised))
}

/// Whether this process belongs to an operator who works constrained, as its environment says: under `operator exec`, or
/// by the session that it names. What can't be known is not so.
pub fn is_own_session(dir: Option<&Path>) -> bool {
    if operator::is_operated() {
        return true;
    }
    let named = std::env::var("STRIATUM_SESSION").ok().and_then(|text| text.parse::<SessionId>().ok());
    let of_store = |session| of_operator(&ctx::open(dir).ok()?, session).ok().flatten();
    named.and_then(of_store).is_some_and(|session| session.state == SessionState::Active)
}

/// Lets an operator's verb beyond the control plane pass, or says which escape it needs; `words` are what was typed.
pub fn pass(ctx: &Ctx, verb: &str, request: &Value, words: &[String]) -> Result<()> {
    let Some(surface) = Surface::of_verb(verb).filter(|_| ctx.has_store()) else { return Ok(()) };
    let own = session(ctx)?;
    let named = request.get("run").and_then(Value::as_str);
    let governing = ctx.read(|read| governing(read, named, own.as_ref()))?;
    let Some(run) = governing else {
        return if operator::is_operated() { Err(not_here(verb)) } else { Ok(()) };
    };
    let asked = Asked { run: &run, job: None, session: own.map(|own| own.id), surface, words };
    ctx.write("escape", |tx| match escape::spend(ctx, tx, &asked)? {
        Some(_) => Ok(()),
        None => {
            let message = format!("{} needs an escape: the operator of run {} is constrained", typed(verb), run.name);
            Err(escape::required(message, &asked))
        }
    })
}

fn typed(verb: &str) -> String {
    format!("`{}`", verb.replacen('_', " ", 1).replace('_', "-"))
}

/// Without a run there is nothing that an escape could be for.
fn not_here(verb: &str) -> Error {
    Error::new(Code::CapabilityDenied, format!("{} is not for a program under `operator exec`", typed(verb)))
        .hint("a person does it, in a terminal of their own")
}

/// The constrained run that binds an operator: their session's, the named one, else a live one, else the newest.
fn governing(read: &Connection, named: Option<&str>, own: Option<&Session>) -> Result<Option<Run>> {
    if let Some(own) = own {
        return Ok(Some(store::run::get(read, own.run)?));
    }
    let runs = match named {
        Some(name) => vec![find::named(read, name)?],
        None => {
            let live = store::run::live(read, u32::MAX)?;
            if live.is_empty() { store::run::newest(read, 1)? } else { live }
        }
    };
    let is_bound = |run: &Run| run.spec.constrained || operator::is_operated();
    Ok(runs.into_iter().find(is_bound))
}
