//! `work complete / verdict / fail / block`: the first valid answer is stored and wins.
//!
//! Storing is not settling: the attempt's owner settles (its helper; for an unsupervised session the caller).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::hold::{self, Credentials, Hold};
use crate::domain::contract::{self, Answer, Status};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::JobType;
use crate::domain::id::SessionId;
use crate::domain::job::{JobState, Outcome, Phase};
use crate::domain::verdict::Verdict;
use crate::error::{Code, Error, Result};
use crate::store::{self, Writing};
use crate::verbs::flow::attempt::{self, Ended};
use crate::verbs::flow::seal::findings_hash;
use crate::verbs::flow::tell;
use crate::verbs::settle::{self, SettleReport};
use crate::verbs::{Ctx, work};

/// What an agent answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reply {
    /// A document of the contract.
    Result {
        /// `striatum.result/1`.
        document: Value,
    },
    /// The attempt failed.
    Fail {
        /// Why.
        reason: String,
    },
}

/// What `work complete`, `verdict`, `fail` and `block` are asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// Who answers.
    pub who: Credentials,
    /// What.
    pub reply: Reply,
}

/// What they tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerReport {
    /// The session.
    pub session: SessionId,
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// The same had been said before.
    pub already: bool,
    /// What settling came to; none when it is settled later.
    pub settled: Option<SettleReport>,
    /// One line for people.
    pub message: String,
}

/// Stores an answer; settles it when nobody else will.
pub fn answer(ctx: &Ctx, request: &AnswerRequest) -> Result<AnswerReport> {
    let (hold, already) = match &request.reply {
        Reply::Result { document } => ctx.write("work complete", |tx| {
            if let Some(again) = said_before(ctx, tx, &request.who, document)? {
                return Ok((again, true));
            }
            let hold = ready(ctx, tx, &request.who)?;
            let already = store_answer(tx, &hold, document)?;
            Ok((hold, already))
        })?,
        Reply::Fail { reason } => ctx.write("work fail", |tx| {
            let hold = ready(ctx, tx, &request.who)?;
            if !hold.session.supervised {
                attempt::end(tx, &hold.run, &hold.job, Ended::plain(Outcome::Failed, reason.clone()))?;
            } else {
                store_failure(tx, &hold, reason)?;
            }
            Ok((hold, false))
        })?,
    };
    finish(ctx, request, hold, already)
}

fn finish(ctx: &Ctx, request: &AnswerRequest, hold: Hold, already: bool) -> Result<AnswerReport> {
    let is_failure = matches!(request.reply, Reply::Fail { .. });
    let settled = if hold.session.supervised || is_failure || hold.job.state == JobState::Completed {
        None
    } else {
        Some(settle::settle_unsupervised(ctx, &hold)?)
    };
    let message = match (&settled, is_failure, hold.session.supervised) {
        (Some(report), _, _) => report.message.clone(),
        (None, true, false) => "recorded; the attempt has failed".to_owned(),
        (None, _, false) => "sealed before".to_owned(),
        (None, _, true) => "recorded; settled when you exit".to_owned(),
    };
    Ok(AnswerReport {
        session: hold.session.id,
        job: hold.job.name,
        attempt: hold.lease.attempt,
        already,
        settled,
        message,
    })
}

/// What the session holds; a claimed job is started by its answer.
fn ready(ctx: &Ctx, tx: &Writing<'_>, who: &Credentials) -> Result<Hold> {
    let mut hold = hold::hold(ctx, tx, who)?;
    hold::touch(ctx, tx, &hold.run, hold.session.id)?;
    if hold.job.state == JobState::Claimed {
        work::claim::start(tx, &hold.job, hold.session.id)?;
        hold.job = store::job::get(tx, hold.job.id)?;
    }
    Ok(hold)
}

/// The same answer once more, after its attempt was sealed: a no-op.
fn said_before(ctx: &Ctx, tx: &Writing<'_>, who: &Credentials, document: &Value) -> Result<Option<Hold>> {
    let session = hold::speaker(ctx, tx, who)?;
    let Some(lease) = store::lease::newest_of_session(tx, session.id)? else { return Ok(None) };
    let attempt = store::attempt::get(tx, lease.job, lease.attempt)?;
    let is_same = attempt.outcome == Some(Outcome::Sealed)
        && who.fence == Some(lease.fence)
        && attempt.answer.as_ref().is_some_and(|stored| Some(canonical(stored)) == canonical_of(document));
    if !is_same {
        return Ok(None);
    }
    let (run, job) = (store::run::get(tx, session.run)?, store::job::get(tx, lease.job)?);
    Ok(Some(Hold { session, run, job, lease }))
}

fn canonical_of(document: &Value) -> Option<String> {
    let answer: Answer = serde_json::from_value(document.clone()).ok()?;
    Some(canonical(&answer))
}

/// The form whose hash names an answer.
pub fn canonical(answer: &Answer) -> String {
    serde_json::to_string(answer).unwrap_or_default()
}

/// Reads a document against the contract.
pub fn read_document(document: &Value, is_review: bool) -> Result<Answer> {
    contract::read(document, is_review).map_err(|faults| {
        let count = faults.len();
        let message = format!("the answer breaks the contract in {count} place{}", if count == 1 { "" } else { "s" });
        faults.iter().fold(Error::new(Code::InvalidResult, message), Error::cause)
    })
}

/// Validates and stores; true when the same answer was there.
pub fn store_answer(tx: &Writing<'_>, hold: &Hold, document: &Value) -> Result<bool> {
    let is_review = hold.job.spec.kind == JobType::Review;
    let answer = read_document(document, is_review)?;
    let hash = sha256_hex(canonical(&answer).as_bytes());
    let stored = store::attempt::get(tx, hold.job.id, hold.lease.attempt)?;
    match stored.answer_hash {
        Some(before) if before == hash => return Ok(true),
        Some(_) => {
            return Err(Error::new(
                Code::AlreadyAnswered,
                format!("{} was answered before, differently", hold.job.name),
            )
            .hint("the first valid answer wins"));
        }
        None => {}
    }
    refuse_repeated(tx, hold, &answer)?;
    store::attempt::set_answer(tx, hold.job.id, hold.lease.attempt, &answer, &hash)?;
    store::job::set_phase(tx, hold.job.id, Phase::Answered)?;
    let body =
        json!({"attempt": hold.lease.attempt, "status": answer.status, "verdict": answer.verdict, "sha256": hash});
    tell(tx, EventType::JobAnswered, &hold.job, &body)?;
    Ok(false)
}

/// `work fail` of a hosted session: kept as an answer, so that its helper ends the attempt.
fn store_failure(tx: &Writing<'_>, hold: &Hold, reason: &str) -> Result<()> {
    let stored = store::attempt::get(tx, hold.job.id, hold.lease.attempt)?;
    if stored.answer.is_some() {
        return Err(Error::new(Code::AlreadyAnswered, format!("{} was answered before", hold.job.name)));
    }
    let mut answer = Answer::plain(Status::Blocked);
    answer.summary = Some(format!("{FAILED}{reason}"));
    let hash = sha256_hex(canonical(&answer).as_bytes());
    store::attempt::set_answer(tx, hold.job.id, hold.lease.attempt, &answer, &hash)?;
    store::job::set_phase(tx, hold.job.id, Phase::Answered)?;
    tell(tx, EventType::JobAnswered, &hold.job, &json!({"attempt": hold.lease.attempt, "status": "failed"}))
}

/// Marks a stored `work fail`; no agent can say this with BLOCKED, which needs a reason.
const FAILED: &str = "failed: ";

/// The reason of a stored `work fail`.
pub fn failure(answer: &Answer) -> Option<&str> {
    let is_failure = answer.status == Status::Blocked && answer.blocked_reason.is_none();
    answer.summary.as_deref().filter(|_| is_failure).and_then(|text| text.strip_prefix(FAILED))
}

/// A review that publishes the findings of its previous attempt, byte for byte, did not look.
fn refuse_repeated(tx: &Writing<'_>, hold: &Hold, answer: &Answer) -> Result<()> {
    if answer.verdict != Some(Verdict::NeedsRevision) || answer.findings.is_empty() {
        return Ok(());
    }
    let Some(before) = store::verdict::newest(tx, hold.job.id)? else { return Ok(()) };
    if before.attempt < hold.lease.attempt && before.findings_hash == findings_hash(&answer.findings) {
        return Err(Error::new(
            Code::FindingRepeated,
            format!("the findings are those of attempt {}, byte for byte", before.attempt),
        )
        .hint("look at the new work and say what is true of it"));
    }
    Ok(())
}
