//! Escapes in use: whether one opens an act. Its use is counted and told in the transaction of what it opens.
//!
//! It does not know the acts.

use serde_json::json;

use super::Ctx;
use crate::domain::escape::{Surface, actions};
use crate::domain::event::EventType;
use crate::domain::id::{DecisionId, SessionId};
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::work::hold::Hold;

/// An act that wants to leave the constrained surface.
pub struct Asked<'a> {
    /// In which run.
    pub run: &'a Run,
    /// For which job, if for one.
    pub job: Option<&'a Job>,
    /// By which session, if by one.
    pub session: Option<SessionId>,
    /// Where.
    pub surface: Surface,
    /// The words of the act: a path, a hash, a command line.
    pub words: &'a [String],
}

impl<'a> Asked<'a> {
    /// An act of who holds a job.
    pub fn of(hold: &'a Hold, surface: Surface, words: &'a [String]) -> Asked<'a> {
        Asked { run: &hold.run, job: Some(&hold.job), session: Some(hold.session.id), surface, words }
    }
}

/// Uses the oldest escape that opens exactly this act to exactly this caller; none when there is none.
pub fn spend(ctx: &Ctx, tx: &Writing<'_>, asked: &Asked<'_>) -> Result<Option<DecisionId>> {
    let now = ctx.clock.moment();
    let job = asked.job.map(|job| job.id);
    let open = store::escape::open(tx, asked.run.id, asked.surface, &actions(asked.words))?;
    let found = open.into_iter().find(|escape| {
        let is_for_it = escape.job.is_none_or(|named| Some(named) == job);
        let is_for_them = escape.session.is_none_or(|named| Some(named) == asked.session);
        is_for_it && is_for_them && !escape.expires.is_past(&now)
    });
    let Some(escape) = found else { return Ok(None) };
    store::escape::count_use(tx, escape.decision)?;
    let about = About { run: Some(asked.run.id), job, session: asked.session };
    let action = crate::domain::escape::action(asked.words);
    let body = json!({"decision": escape.decision, "surface": asked.surface, "action": action,
        "left": escape.left.saturating_sub(1)});
    store::event::append(tx, EventType::DecisionUsed, about, &body)?;
    Ok(Some(escape.decision))
}

/// The refusal of an act that no escape opens.
pub fn required(message: impl Into<String>, asked: &Asked<'_>) -> Error {
    let error = Error::new(Code::EscapeRequired, message);
    way_out(error, asked)
}

/// Adds how a person lets the act pass, once.
pub fn way_out(error: Error, asked: &Asked<'_>) -> Error {
    let action = crate::domain::escape::action(asked.words);
    let mut argv = vec!["striatum", "decision", "record", "--outcome", "accepted", "--title", "TITLE"];
    argv.extend(["--rationale", "WHY", "--run-id", &asked.run.name]);
    argv.extend(asked.job.iter().flat_map(|job| ["--job", &job.name]));
    argv.extend(["--escape-surface", asked.surface.word(), "--escape-action", &action]);
    error.next(Next::new("person", "let exactly this pass once", &argv))
}
