//! `review override-verdict`: a person judges over a review, with a reason that is kept. The panel decides again.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flow::seal::findings_hash;
use super::flow::{Step, finish, panel, step, tell};
use super::run::find;
use super::run::marker::Onward;
use super::settle::evidence;
use crate::domain::event::EventType;
use crate::domain::frozen::JobType;
use crate::domain::id::DecisionId;
use crate::domain::job::{JobEvent, JobState};
use crate::domain::verdict::{Finding, Verdict};
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::verdict::VerdictRow;
use crate::store::{self, Writing};
use crate::verbs::Ctx;

/// What `review override-verdict` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverrideRequest {
    /// The run; the only live one that has the review, when left out.
    pub run: Option<String>,
    /// The review.
    pub job: String,
    /// The person's judgement.
    pub verdict: Verdict,
    /// Remarks.
    pub findings: Vec<Finding>,
    /// Why.
    pub reason: String,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverrideReport {
    /// The run's name.
    pub run: String,
    /// The review.
    pub job: String,
    /// What the review had said, if it had.
    pub was: Option<Verdict>,
    /// What holds now.
    pub verdict: Verdict,
    /// Where the reason is kept.
    pub decision: DecisionId,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Puts a person's verdict in the place of a review's.
pub fn override_verdict(ctx: &Ctx, request: &OverrideRequest) -> Result<OverrideReport> {
    let how = ctx.person()?;
    if request.reason.trim().is_empty() {
        return Err(Error::new(Code::Usage, "--reason is empty: it is recorded"));
    }
    let (run, was, decision) = ctx.write("review override-verdict", |tx| {
        let (run, review) = find::job_for_writing(tx, request.run.as_deref(), &request.job, may_be_judged)?;
        find::must_be_live(&run)?;
        check(&run, &review)?;
        let was = store::verdict::newest(tx, review.id)?.map(|row| row.verdict);
        let decision = record(tx, &review, request, how)?;
        judge(tx, &review, request, decision)?;
        finish::revive(tx, run.id, &request.reason)?;
        let run = store::run::get(tx, run.id)?;
        let review = settle_state(tx, &review)?;
        match review.reviews {
            Some(subject) => panel::decide(tx, &run, subject)?,
            None => panel::decide_range(tx, &run, &review, request.verdict)?,
        }
        Ok((run, was, decision))
    })?;
    evidence::complete(ctx, run.id)?;
    Ok(OverrideReport {
        job: request.job.clone(),
        was,
        verdict: request.verdict,
        decision,
        onward: Onward::look(ctx, run.id)?,
        run: run.name,
    })
}

fn may_be_judged(job: &Job) -> bool {
    job.spec.kind == JobType::Review
        && !job.settled
        && matches!(job.state, JobState::Failed | JobState::Completed | JobState::WaitingHuman)
}

fn check(run: &Run, review: &Job) -> Result<()> {
    if review.spec.kind != JobType::Review {
        return Err(Error::new(Code::Usage, format!("{} is no review", review.name)));
    }
    if may_be_judged(review) {
        return Ok(());
    }
    if review.settled {
        let why = format!("the panel of {} has passed: its verdict has done what it could", review.name);
        return Err(Error::new(Code::InvalidTransition, why));
    }
    let error = Error::new(
        Code::InvalidTransition,
        format!("{} is {}: there is no verdict to judge over", review.name, review.state),
    );
    Err(match review.state {
        JobState::Queued | JobState::Claimed | JobState::Running => error.next(Next::new(
            "person",
            "review it yourself",
            &["striatum", "take", &review.name, "--run-id", &run.name],
        )),
        _ => error,
    })
}

fn record(tx: &Writing<'_>, review: &Job, request: &OverrideRequest, how: &str) -> Result<DecisionId> {
    let new = NewDecision {
        run: Some(review.run),
        job: Some(review.id),
        kind: "override",
        body: request.verdict.word(),
        reason: &request.reason,
        how,
        ..NewDecision::default()
    };
    Ok(store::decision::insert(tx, &new)?)
}

/// The verdict row of a person; who asks for a revision once more gives the review an allowance for it.
fn judge(tx: &Writing<'_>, review: &Job, request: &OverrideRequest, decision: DecisionId) -> Result<()> {
    let generation = match review.reviews {
        Some(subject) => store::job::get(tx, subject)?.generation,
        None => review.generation,
    };
    let mut findings = request.findings.clone();
    if findings.is_empty() && request.verdict == Verdict::NeedsRevision {
        let (title, detail) = ("a person asks for a revision".to_owned(), request.reason.clone());
        findings.push(Finding { title, detail, severity: None, path: None, line: None });
    }
    let row = VerdictRow {
        job: review.id,
        attempt: review.attempt,
        subject: review.reviews,
        generation,
        session: None,
        decision: Some(decision),
        verdict: request.verdict,
        findings_hash: findings_hash(&findings),
        findings,
        same_model: false,
        recorded_at: tx.at,
    };
    store::verdict::insert(tx, &row)?;
    if request.verdict == Verdict::NeedsRevision {
        store::job::forgive(tx, review.id)?;
    }
    let body = json!({"verdict": request.verdict, "decision": decision, "findings": row.findings.len()});
    tell(tx, EventType::VerdictOverridden, review, &body)
}

/// A review that failed or asked is judged now.
fn settle_state(tx: &Writing<'_>, review: &Job) -> Result<Job> {
    if review.state != JobState::Completed {
        step(tx, review, &Step { event: JobEvent::Block, reason: None, settled: false })?;
        let review = store::job::get(tx, review.id)?;
        step(tx, &review, &Step { event: JobEvent::Seal, reason: None, settled: false })?;
    }
    Ok(store::job::get(tx, review.id)?)
}
