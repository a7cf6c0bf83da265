//! A caller's key (`--request-id`): the same key gets the first answer again, and the effect happens once.
//!
//! The key is reserved in the transaction of the verb's first write, and the answer is kept when the verb has ended.
//! Between the two lies a crash's one gap: then the effect is recorded, its answer is lost, and that is what is said.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Ctx;
use super::api::{Verb, Who};
use crate::domain::event::sha256_hex;
use crate::domain::time::show_duration;
use crate::error::{Code, Error, Next, Result};
use crate::os::wait::Countdown;
use crate::store;
use crate::store::request::{Asked, Kept};

/// The longest key.
const LONGEST: usize = 200;

/// How long an answer that somebody else is about to give is waited for, in milliseconds.
const PATIENCE_MS: u64 = 1_000;

/// An answer as it is kept.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Report(Value),
    Error(Value),
}

/// Asks a verb, under a key if the caller has one. Verbs that change nothing need none.
///
/// # Errors
/// The verb's own; `request_reused` when the key stands for other words; `request_unfinished` when the first answer
/// was lost.
pub fn ask<V: Verb>(ctx: &Ctx, key: Option<&str>, request: &V) -> Result<V::Report> {
    let Some(key) = key.filter(|_| V::WHO != Who::Anyone) else { return request.run(ctx) };
    let asked = asked::<V>(ctx, key, request)?;
    if let Some(kept) = first(ctx, &asked)? {
        return again::<V>(&asked, kept);
    }
    ctx.reserve(asked.clone());
    let answer = request.run(ctx);
    let is_reserved = ctx.is_reserved();
    let is_overtaken = answer.as_ref().err().is_some_and(|error| error.code == Code::RequestUnfinished);
    // Somebody else took the key between our look and our write; its answer is ours.
    if !is_reserved
        && is_overtaken
        && let Some(kept) = first(ctx, &asked)?
    {
        return again::<V>(&asked, kept);
    }
    if is_reserved {
        crate::os::crash::point("request.unanswered");
        if let Err(error) = keep(ctx, &asked, &answer) {
            ctx.notice(&format!("the answer for the key {key} could not be kept: {error}"));
        }
    }
    answer
}

fn asked<V: Verb>(ctx: &Ctx, key: &str, request: &V) -> Result<Asked> {
    if key.is_empty() || key.len() > LONGEST {
        return Err(Error::new(Code::Usage, format!("a request's key has 1 to {LONGEST} bytes")));
    }
    let words = serde_json::to_vec(request)?;
    Ok(Asked {
        key: key.to_owned(),
        verb: V::NAME.to_owned(),
        words_hash: sha256_hex(&words),
        principal: ctx.actor.principal(),
    })
}

/// What is known of a key; an answer that is on its way is waited for.
fn first(ctx: &Ctx, asked: &Asked) -> Result<Option<Kept>> {
    if !ctx.has_store() {
        return Ok(None);
    }
    let patience = Countdown::start(PATIENCE_MS);
    loop {
        let kept = ctx.read(|read| Ok(store::request::get(read, &asked.key)?))?;
        let is_open = kept.as_ref().is_some_and(|kept| kept.asked == *asked && kept.reply.is_none());
        if !is_open || patience.is_over() {
            return Ok(kept);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn again<V: Verb>(asked: &Asked, kept: Kept) -> Result<V::Report> {
    if kept.asked != *asked {
        return Err(reused(asked, &kept));
    }
    let Some(reply) = kept.reply else { return Err(unfinished(asked)) };
    match serde_json::from_str(&reply)? {
        Answer::Report(report) => Ok(serde_json::from_value(report)?),
        Answer::Error(error) => Err(Error::from_json(&error)),
    }
}

fn reused(asked: &Asked, kept: &Kept) -> Error {
    let Asked { verb, principal, .. } = &kept.asked;
    let what = match (*verb == asked.verb, *principal == asked.principal) {
        (_, false) => format!("{principal}'s"),
        (false, true) => format!("for `{}`", verb.replace('_', " ")),
        (true, true) => format!("for `{}` with other words", verb.replace('_', " ")),
    };
    Error::new(Code::RequestReused, format!("the key {} was used before, and is {what}", asked.key))
        .hint("a key stands for one request; take a new one for a new one")
}

/// Somebody else reserved the key between our look and our write, or died before the answer was kept.
pub fn unfinished(asked: &Asked) -> Error {
    let verb = asked.verb.replace('_', " ");
    Error::new(
        Code::RequestUnfinished,
        format!("`{verb}` with the key {} was begun before, and its answer is not known", asked.key),
    )
    .cause(format!("its first effect is recorded; no answer came within {}", show_duration(PATIENCE_MS)))
    .hint("look at what it did before you ask again, with a new key")
    .next(Next::new("anyone", "see what was recorded", &["striatum", "events"]))
}

fn keep<T: Serialize>(ctx: &Ctx, asked: &Asked, answer: &Result<T>) -> Result<()> {
    let answer = match answer {
        Ok(report) => Answer::Report(serde_json::to_value(report)?),
        Err(error) => Answer::Error(error.to_json()),
    };
    let reply = serde_json::to_string(&answer)?;
    ctx.write("request", |tx| Ok(store::request::reply(tx, &asked.key, &reply)?))
}
