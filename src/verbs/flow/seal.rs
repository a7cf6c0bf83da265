//! Sealing: one transaction makes an answer so, lets successors go, and closes the run with its last job.

use serde_json::json;

use super::{Step, attempt, finish, offer, panel, phrase, proposal, step, tell};
use crate::domain::contract::Answer;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::JobType;
use crate::domain::id::SessionId;
use crate::domain::job::{JobEvent, Outcome};
use crate::domain::session::LeaseState;
use crate::error::Result;
use crate::store::artifact::Artifact;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::verdict::VerdictRow;
use crate::store::{self, Writing};
use crate::verbs::resource::destroy::must_be_given_back;

/// Everything that a seal makes durable.
pub struct Sealing<'a> {
    /// What was answered.
    pub answer: &'a Answer,
    /// Published files; their bytes are already stored.
    pub artifacts: &'a [Artifact],
    /// Its change is on the run's branch.
    pub changed: bool,
    /// Who answered.
    pub session: SessionId,
    /// What is known of the run's artifacts, when this may be its last job.
    pub evidence: finish::Evidence,
}

/// Seals the job's open attempt.
pub fn seal(tx: &Writing<'_>, run: &Run, job: &Job, sealing: &Sealing<'_>) -> Result<()> {
    must_be_given_back(tx, job)?;
    for artifact in sealing.artifacts {
        store::artifact::insert(tx, artifact)?;
        let body = json!({"name": artifact.name, "sha256": artifact.sha256, "bytes": artifact.bytes,
            "attempt": artifact.attempt});
        tell(tx, EventType::ArtifactPublished, job, &body)?;
    }
    if sealing.changed {
        integrated(tx, job, job.attempt)?;
    }
    if let Some(usage) = &sealing.answer.usage {
        store::run::add_usage(tx, run.id, usage)?;
    }
    attempt::close(
        tx,
        job,
        Outcome::Sealed,
        sealing.answer.summary.as_deref().unwrap_or("sealed"),
        LeaseState::Released,
    )?;
    let is_review = job.spec.kind == JobType::Review;
    step(tx, job, &Step { event: JobEvent::Seal, reason: None, settled: !is_review })?;
    let body = json!({"attempt": job.attempt, "session": sealing.session, "status": sealing.answer.status,
        "artifacts": sealing.artifacts.len()});
    tell(tx, EventType::JobSealed, job, &body)?;
    proposal::keep(tx, run, job, &sealing.answer.next)?;
    if is_review {
        judge(tx, run, job, sealing)?;
    } else {
        offer::settle(tx, run, job.id)?;
    }
    finish::complete_if_done(tx, run.id, &sealing.evidence)?;
    phrase::heed(tx, run, job, sealing.answer)?;
    Ok(())
}

/// The outcome of what an attempt committed, pinned and integrated before: it is on the run's branch.
pub fn integrated(tx: &Writing<'_>, job: &Job, attempt: u32) -> Result<()> {
    store::change::integrated(tx, job.id, attempt)?;
    let Some(change) = store::change::get(tx, job.id, attempt)? else { return Ok(()) };
    let body = json!({"attempt": attempt, "commit": change.commit, "base": change.base, "tree": change.tree,
        "files": change.files});
    tell(tx, EventType::TreeCommitted, job, &body)?;
    let body = json!({"attempt": attempt, "from": change.tip_before, "to": change.tip_after});
    tell(tx, EventType::TreeIntegrated, job, &body)
}

fn judge(tx: &Writing<'_>, run: &Run, job: &Job, sealing: &Sealing<'_>) -> Result<()> {
    let Some(verdict) = sealing.answer.verdict else { return Ok(()) };
    let generation = match job.reviews {
        Some(subject) => store::job::get(tx, subject)?.generation,
        None => job.generation,
    };
    let findings = sealing.answer.findings.clone();
    let findings_hash = findings_hash(&findings);
    let row = VerdictRow {
        job: job.id,
        attempt: job.attempt,
        subject: job.reviews,
        generation,
        session: Some(sealing.session),
        decision: None,
        verdict,
        findings,
        findings_hash,
        same_model: job.spec.same_model,
        recorded_at: tx.at,
    };
    store::verdict::insert(tx, &row)?;
    let body = json!({"verdict": verdict, "findings": row.findings.len(), "attempt": job.attempt,
        "generation": generation, "same_model": job.spec.same_model});
    tell(tx, EventType::VerdictRecorded, job, &body)?;
    match job.reviews {
        Some(subject) => panel::decide(tx, run, subject),
        // As it is sealed: what settles it writes its state.
        None => panel::decide_range(tx, run, &store::job::get(tx, job.id)?, verdict),
    }
}

/// Names findings, so that the same ones are recognised again.
pub fn findings_hash(findings: &[crate::domain::verdict::Finding]) -> String {
    sha256_hex(serde_json::to_string(findings).unwrap_or_default().as_bytes())
}
