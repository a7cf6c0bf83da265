//! `striatum work ...`: the agent's side.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use super::call::Session;
use super::gate::onward_text;
use super::output::{Output, next_text};
use crate::domain::contract::SCHEMA;
use crate::domain::id::SessionId;
use crate::error::{Code, Error, Result};
use crate::verbs::api::Verb;
use crate::verbs::work::answer::{AnswerRequest, Reply};
use crate::verbs::work::awaiting::{self, AwaitReport, AwaitRequest, Patience, until_ready};
use crate::verbs::work::claim::{AckRequest, ClaimReport, ClaimRequest, parent_process};
use crate::verbs::work::hold::{Credentials, HeartbeatRequest};
use crate::verbs::work::publish::PublishRequest;
use crate::verbs::work::requeue::{RequeueReport, RequeueRequest};
use crate::verbs::work::show::ShowRequest;

/// How often a resident agent looks through its helper's socket.
const LANE_POLL: Duration = Duration::from_millis(200);

/// Who speaks.
#[derive(Args, Clone)]
pub struct Speaker {
    /// The session; STRIATUM_SESSION when left out
    #[arg(long, value_name = "SESSION")]
    session_id: Option<SessionId>,
    /// The file with the session's token; STRIATUM_TOKEN_FILE when left out
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The fence of the claim; STRIATUM_FENCE when left out
    #[arg(long, value_name = "NUMBER")]
    fence: Option<i64>,
}

impl Speaker {
    /// What the session brings along.
    pub fn credentials(&self) -> Result<Credentials> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let session = match self.session_id {
            Some(session) => session,
            None => variable("STRIATUM_SESSION")
                .ok_or_else(|| Error::new(Code::Usage, "name the session with --session-id or STRIATUM_SESSION"))?
                .parse()
                .map_err(|error| Error::new(Code::Usage, format!("STRIATUM_SESSION: {error}")))?,
        };
        let file = self.token_file.clone().or_else(|| variable("STRIATUM_TOKEN_FILE").map(PathBuf::from));
        let token = match file {
            Some(path) => Some(std::fs::read_to_string(&path).map_err(|error| {
                Error::new(Code::BadToken, format!("the token file {} can't be read", path.display())).cause(error)
            })?),
            None => None,
        };
        let fence = self.fence.or_else(|| variable("STRIATUM_FENCE").and_then(|text| text.parse().ok()));
        Ok(Credentials { session, token, fence })
    }
}

/// The verdicts of a review.
#[derive(Clone, Copy, ValueEnum)]
pub enum VerdictWord {
    #[value(name = "accept")]
    Accept,
    #[value(name = "accept_with_findings")]
    AcceptWithFindings,
    #[value(name = "needs_revision")]
    NeedsRevision,
    #[value(name = "reject")]
    Reject,
}

impl VerdictWord {
    /// As an answer says it.
    pub const fn word(self) -> &'static str {
        match self {
            VerdictWord::Accept => "accept",
            VerdictWord::AcceptWithFindings => "accept_with_findings",
            VerdictWord::NeedsRevision => "needs_revision",
            VerdictWord::Reject => "reject",
        }
    }
}

/// The agent's side: claim, publish, answer
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Work {
    /// Wait until the session's slot has something
    Await {
        #[command(flatten)]
        who: Speaker,
        /// Take it
        #[arg(long)]
        claim: bool,
        /// Wait no longer than this
        #[arg(long, value_name = "TIME", value_parser = super::drive::duration)]
        timeout: Option<u64>,
    },
    /// Put back work whose holder is gone, without looking what it did
    RequeueStale {
        /// The jobs; every stale one when left out (can be repeated)
        #[arg(value_name = "JOB")]
        jobs: Vec<String>,
        /// The run; the only live one when left out
        #[arg(long, value_name = "RUN")]
        run_id: Option<String>,
        /// Why; recorded
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Take the oldest attempt that is offered to the session's slot
    Claim {
        #[command(flatten)]
        who: Speaker,
    },
    /// Say that the work starts
    Ack {
        #[command(flatten)]
        who: Speaker,
    },
    /// Say that the session lives, so that its lease goes on
    Heartbeat {
        #[command(flatten)]
        who: Speaker,
    },
    /// Keep a declared artifact
    Publish {
        #[command(flatten)]
        who: Speaker,
        /// The name in `produces`
        name: String,
        /// Another path than the declared one, relative to the working directory
        #[arg(long, value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// Say that the work is done
    Complete {
        #[command(flatten)]
        who: Speaker,
        /// A whole answer, `striatum.result/1`, from a file
        #[arg(long, value_name = "FILE")]
        result: Option<PathBuf>,
        /// One line about what was done
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
        /// A doubt about it (can be repeated)
        #[arg(long = "concern", value_name = "TEXT")]
        concerns: Vec<String>,
        /// The message of the commit
        #[arg(long, value_name = "TEXT")]
        commit_message: Option<String>,
    },
    /// Judge, in a review
    Verdict {
        #[command(flatten)]
        who: Speaker,
        /// The judgement
        verdict: VerdictWord,
        /// A remark, `TITLE: DETAIL` (can be repeated)
        #[arg(long = "finding", value_name = "TITLE: DETAIL")]
        findings: Vec<String>,
        /// One line about it
        #[arg(long, value_name = "TEXT")]
        summary: Option<String>,
    },
    /// Say that the attempt failed
    Fail {
        #[command(flatten)]
        who: Speaker,
        /// Why
        #[arg(long, value_name = "TEXT")]
        reason: String,
    },
    /// Say that the work can't go on without somebody
    Block {
        #[command(flatten)]
        who: Speaker,
        /// A question rather than an obstacle
        #[arg(long)]
        needs_context: bool,
        /// What is awaited
        #[arg(long, value_name = "TEXT")]
        awaiting: String,
        /// Who can give it
        #[arg(long, value_name = "TEXT")]
        who_can: String,
        /// What to do
        #[arg(long, value_name = "TEXT")]
        action: String,
    },
    /// Show the packet of what the session holds
    Show {
        #[command(flatten)]
        who: Speaker,
        /// As a prompt for a model
        #[arg(long)]
        prompt: bool,
    },
}

impl Work {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Work::Await { who, claim, timeout } => return wait(session, output, who.credentials()?, claim, timeout),
            Work::RequeueStale { jobs, run_id, reason } => {
                let report = session.call(&RequeueRequest { run: run_id, jobs, reason })?;
                output.report(&report, requeued);
            }
            Work::Claim { who } => {
                let request = ClaimRequest { who: who.credentials()?, process: parent_process() };
                output.report(&session.call(&request)?, claimed);
            }
            Work::Ack { who } => {
                let report = session.call(&AckRequest { who: who.credentials()? })?;
                output
                    .report(&report, |report| format!("{} works on {}.{}", report.session, report.job, report.attempt));
            }
            Work::Heartbeat { who } => {
                let report = session.call(&HeartbeatRequest { who: who.credentials()? })?;
                output.report(&report, |report| format!("{} holds {} ({})", report.session, report.job, report.lease));
            }
            Work::Publish { who, name, path } => {
                let report = session.call(&PublishRequest { who: who.credentials()?, name, path })?;
                output.report(&report, |report| {
                    format!("published {} ({} bytes, sha256 {})", report.name, report.bytes, report.sha256)
                });
            }
            Work::Show { who, prompt } => {
                let report = session.call(&ShowRequest { who: who.credentials()? })?;
                output.report(&report, |report| match prompt {
                    true => report.prompt.clone(),
                    false => serde_json::to_string_pretty(&report.packet).unwrap_or_default(),
                });
            }
            answer => return answer.answer(session, output),
        }
        Ok(0)
    }

    fn answer(self, session: &Session, output: &Output) -> Result<u8> {
        let (who, reply) = match self {
            Work::Complete { who, result: Some(file), .. } => (who, Reply::Result { document: document(&file)? }),
            Work::Complete { who, summary, concerns, commit_message, .. } => (
                who,
                result(json!({"status": "DONE", "summary": summary, "concerns": concerns,
                    "commit_message": commit_message})),
            ),
            Work::Verdict { who, verdict, findings, summary } => {
                let findings: Vec<Value> = findings.iter().map(|text| finding(text)).collect();
                (
                    who,
                    result(
                        json!({"status": "DONE", "verdict": verdict.word(), "findings": findings, "summary": summary}),
                    ),
                )
            }
            Work::Fail { who, reason } => (who, Reply::Fail { reason }),
            Work::Block { who, needs_context, awaiting, who_can, action } => {
                let status = if needs_context { "NEEDS_CONTEXT" } else { "BLOCKED" };
                let reason = json!({"awaiting": awaiting, "who": who_can, "action": action});
                (who, result(json!({"status": status, "blocked_reason": reason})))
            }
            _ => return Err(Error::new(Code::Bug, "not an answer")),
        };
        let report = session.call(&AnswerRequest { who: who.credentials()?, reply })?;
        output.report(&report, |report| report.message.clone());
        let is_refused = report.settled.as_ref().is_some_and(|settled| !settled.over);
        Ok(u8::from(is_refused))
    }
}

/// Looks until there is something, then takes it if it shall; somebody else may have been faster.
fn wait(session: &Session, output: &Output, who: Credentials, claim: bool, timeout: Option<u64>) -> Result<u8> {
    let patience = Patience::new(timeout);
    let request = AwaitRequest { who: who.clone() };
    loop {
        let report = if session.is_in_lane() {
            until_ready(patience, &mut || session.call(&request), &mut |most| {
                std::thread::sleep(most.min(LANE_POLL));
                Ok(())
            })?
        } else {
            let ctx = session.ctx()?;
            until_ready(patience, &mut || request.run(&ctx), &mut |most| awaiting::nap(&ctx, most))?
        };
        if !claim || !matches!(report, AwaitReport::Ready { .. }) {
            output.report(&report, awaited);
            return Ok(0);
        }
        let report = session.call(&ClaimRequest { who: who.clone(), process: parent_process() })?;
        if matches!(report, ClaimReport::Claimed { .. } | ClaimReport::NoWork { is_final: true, .. }) {
            output.report(&report, claimed);
            return Ok(0);
        }
    }
}

fn awaited(report: &AwaitReport) -> String {
    match report {
        AwaitReport::Ready { job } => format!("{job} is there to be claimed"),
        AwaitReport::NoWork { reason, .. } => format!("no_work: {reason}"),
    }
}

fn requeued(report: &RequeueReport) -> String {
    let mut text = String::new();
    for (job, attempt) in &report.requeued {
        text.push_str(&format!("{job} is queued again (attempt {attempt})\n"));
    }
    if report.requeued.is_empty() {
        text.push_str("nothing is stale\n");
    }
    text + &onward_text(&report.run, &report.onward)
}

/// A whole answer from its parts; what is empty is left out.
pub fn document_of(mut document: Value) -> Value {
    if let Some(map) = document.as_object_mut() {
        map.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
        map.insert("schema".to_owned(), Value::String(SCHEMA.to_owned()));
    }
    document
}

fn result(document: Value) -> Reply {
    Reply::Result { document: document_of(document) }
}

/// A whole answer from a file.
pub fn document(file: &std::path::Path) -> Result<Value> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Error::new(Code::Usage, format!("{} can't be read", file.display())).cause(error))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::new(Code::InvalidResult, format!("{} is no JSON", file.display())).cause(error))
}

/// A remark as it is typed: `TITLE: DETAIL`.
pub fn finding(text: &str) -> Value {
    let (title, detail) = text.split_once(": ").unwrap_or((text, text));
    json!({"title": title, "detail": detail})
}

fn claimed(report: &ClaimReport) -> String {
    match report {
        ClaimReport::Claimed { run, job, attempt, lease, fence, cwd, packet, next, .. } => format!(
            "claimed {job}.{attempt} of {run} (lease {lease}, fence {fence})\nwork in {cwd}\npacket: {packet}\n{}",
            next_text(next)
        ),
        ClaimReport::NoWork { reason, .. } => format!("no_work: {reason}"),
    }
}
