//! `answer`: a person answers a job that asked, or says that an obstacle is gone; the next attempt is told.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flow::offer::{self, Offer};
use super::flow::{finish, tell};
use super::run::find;
use super::run::marker::Onward;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::{DecisionId, RunId};
use crate::domain::job::JobState;
use crate::domain::packet::{Context, PersonAnswer, Previous};
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::Ctx;

/// Longest answer, in bytes.
pub const LIMIT: u64 = 256 * 1024;

/// What `answer` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// The run; the only live one where the job waits, when left out.
    pub run: Option<String>,
    /// The job that asked.
    pub job: String,
    /// The answer.
    pub text: Option<String>,
    /// The obstacle is gone.
    pub resolved: bool,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerReport {
    /// The run's name.
    pub run: String,
    /// The job.
    pub job: String,
    /// The attempt that is told.
    pub attempt: u32,
    /// Where the answer is kept.
    pub decision: DecisionId,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Answers; the next attempt costs nothing and finds question and answer in its packet.
pub fn answer(ctx: &Ctx, request: &AnswerRequest) -> Result<AnswerReport> {
    let how = ctx.person()?;
    let words = words(request)?;
    let (run, report) = ctx.write("answer", |tx| {
        let (run, job) = find::job_for_writing(tx, request.run.as_deref(), &request.job, asks)?;
        find::must_be_live(&run)?;
        if !asks(&job) {
            return Err(does_not_ask(&run, &job));
        }
        let decision = record(tx, &run, &job, (&words, how))?;
        let context = told(tx, &job, &words)?;
        let attempt = offer::offer(tx, &job, &Offer { context, ..Offer::default() })?;
        finish::revive(tx, run.id, &format!("{} was answered", job.name))?;
        Ok((run.id, (run.name, job.name, attempt, decision)))
    })?;
    report_of(ctx, run, report)
}

fn report_of(ctx: &Ctx, id: RunId, report: (String, String, u32, DecisionId)) -> Result<AnswerReport> {
    let (run, job, attempt, decision) = report;
    Ok(AnswerReport { run, job, attempt, decision, onward: Onward::look(ctx, id)? })
}

fn words(request: &AnswerRequest) -> Result<String> {
    let text = request.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
    match (text, request.resolved) {
        (Some(text), false) => Ok(text.to_owned()),
        (Some(text), true) => Ok(format!("It is resolved. {text}")),
        (None, true) => Ok("It is resolved.".to_owned()),
        (None, false) => Err(Error::new(Code::Usage, "there is no answer")
            .hint("write it behind the job, or give --file, or - for standard input, or --resolved")),
    }
}

fn asks(job: &Job) -> bool {
    job.state == JobState::WaitingHuman
}

fn does_not_ask(run: &Run, job: &Job) -> Error {
    let reason = job.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    let error = Error::new(Code::InvalidTransition, format!("{} is {}{reason} and asks nothing", job.name, job.state));
    match job.state {
        JobState::Failed => error.next(Next::new(
            "operator",
            "give it its tries back",
            &["striatum", "run", "retry-job", &job.name, "--run-id", &run.name, "--reason", "WHY"],
        )),
        _ => error,
    }
}

fn record(tx: &Writing<'_>, run: &Run, job: &Job, said: (&str, &str)) -> Result<DecisionId> {
    let (words, how) = said;
    let new = NewDecision {
        run: Some(run.id),
        job: Some(job.id),
        kind: "answer",
        body: words,
        reason: job.reason.as_deref().unwrap_or_default(),
        how,
        ..NewDecision::default()
    };
    let decision = store::decision::insert(tx, &new)?;
    let body = json!({"decision": decision, "attempt": job.attempt, "sha256": sha256_hex(words.as_bytes())});
    tell(tx, EventType::AnswerGiven, job, &body)?;
    Ok(decision)
}

/// What the next packet tells: all that was answered before, and this.
fn told(tx: &Writing<'_>, job: &Job, words: &str) -> Result<Context> {
    let mut context = before(tx, job)?;
    context.answers.push(PersonAnswer { question: job.question.clone(), answer: words.to_owned(), is_standing: false });
    Ok(context)
}

/// What the last attempt was told, and how it ended.
pub fn before(tx: &Writing<'_>, job: &Job) -> Result<Context> {
    if job.attempt == 0 {
        return Ok(Context::default());
    }
    let last = store::attempt::get(tx, job.id, job.attempt)?;
    let previous = last.outcome.map(|outcome| Previous {
        attempt: last.number,
        outcome: outcome.to_string(),
        detail: last.detail.clone().unwrap_or_default(),
    });
    Ok(Context { previous: previous.or(last.context.previous.clone()), ..last.context })
}
