//! Plan agreement: what was planned and what is there, compared before anything is launched.
//!
//! Each field is looked at by itself and named when it disagrees. Nothing is repaired here: the job stops for a person,
//! and `run retry-job` looks again. It starts no git and reads no file; where the run's branch stands is handed in.

use std::collections::BTreeMap;

use serde_json::json;

use super::attempt::{self, Ended};
use super::tell;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::JobId;
use crate::domain::job::{JobState, Outcome};
use crate::domain::scope::Reach;
use crate::domain::session::{ExecutionState, LeaseState};
use crate::domain::workflow::{hash, trusted};
use crate::error::Result;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection, Writing};

/// A field in which plan and world disagree, with both values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// `scopes`, `branch`, `verification`, `snapshot`, `run`, `job` or `trust`.
    pub field: &'static str,
    /// What was planned.
    pub planned: String,
    /// What is there.
    pub found: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}: planned {}, found {}", self.field, self.planned, self.found)
    }
}

fn disagrees(field: &'static str, planned: impl Into<String>, found: impl Into<String>) -> Option<Disagreement> {
    Some(Disagreement { field, planned: planned.into(), found: found.into() })
}

/// No two jobs in flight may write the same path, unless one of them says `allow_overlap`.
pub fn scopes(read: &Connection, run: &Run, job: &Job) -> Result<Option<Disagreement>> {
    if job.spec.writes.is_empty() || job.spec.allow_overlap {
        return Ok(None);
    }
    let own = Reach::new(&job.spec.writes, &job.spec.forbids);
    for lease in store::lease::active_of_run(read, run.id)?.into_iter().filter(|lease| lease.job != job.id) {
        let other = store::job::get(read, lease.job)?;
        let reach = Reach::new(&other.spec.writes, &other.spec.forbids);
        if let Some((one, two)) = own.meets(&reach).filter(|_| !other.spec.allow_overlap) {
            return Ok(disagrees(
                "scopes",
                format!("{one} for {} alone", job.name),
                format!("{two} held by {}", other.name),
            ));
        }
    }
    Ok(None)
}

/// What one generation of a run was prepared or amended to be; read once, compared with at each launch.
#[derive(Clone, Debug)]
pub struct Frozen {
    generation: i64,
    /// The generation itself is not what its hash says, or its commands are not those that were trusted.
    fault: Option<Disagreement>,
    run: String,
    jobs: BTreeMap<String, String>,
    trust: String,
}

impl Frozen {
    /// Reads the generation in force.
    pub fn load(read: &Connection, run: &Run) -> Result<Frozen> {
        let (recorded, snapshot) = store::frozen::get(read, run.id, run.generation)?;
        let found = hash(&snapshot);
        let fault = if recorded == found { None } else { disagrees("snapshot", recorded, found) };
        Ok(Frozen {
            generation: run.generation,
            fault,
            run: digest(&snapshot.run),
            jobs: snapshot.jobs.iter().map(|job| (job.id.clone(), digest(job))).collect(),
            trust: trusted::hash(&trusted::of_snapshot(&snapshot)),
        })
    }

    /// It is about the generation in force.
    pub fn is_in_force(&self, run: &Run) -> bool {
        self.generation == run.generation
    }

    /// What would be launched is what was prepared: snapshot, run, trusted commands, job.
    pub fn check(&self, run: &Run, job: &Job) -> Option<Disagreement> {
        if self.fault.is_some() {
            return self.fault.clone();
        }
        let (of_run, of_job) = (digest(&run.spec), digest(&job.spec));
        if of_run != self.run {
            return disagrees("run", &self.run, of_run);
        }
        if run.trust.as_ref() != Some(&self.trust) {
            return disagrees("trust", &self.trust, run.trust.as_deref().unwrap_or("nothing"));
        }
        // A job that was proposed on the way stands in no snapshot.
        let planned = self.jobs.get(&job.name).filter(|planned| **planned != of_job)?;
        disagrees("job", planned, of_job)
    }
}

fn digest<T: serde::Serialize>(value: &T) -> String {
    sha256_hex(serde_json::to_string(value).unwrap_or_default().as_bytes())
}

/// What the job builds on was verified: each job that it needs, writes and declares `verify` was sealed with every one of
/// those commands passed in that attempt.
pub fn verification(read: &Connection, job: &Job) -> Result<Option<Disagreement>> {
    for need in store::job::needs(read, job.id)? {
        let need = store::job::get(read, need)?;
        if need.state != JobState::Completed || need.spec.writes.is_empty() || need.spec.verify.is_empty() {
            continue;
        }
        // A person may have given it, or let it stand: then no agent's attempt was sealed.
        if store::attempt::get(read, need.id, need.attempt)?.outcome != Some(Outcome::Sealed) {
            continue;
        }
        let checks = store::execution::checks(read, need.id, need.attempt)?;
        let has_passed = |check: &&store::execution::Execution| {
            check.kind == "verify" && check.state == ExecutionState::Exited && check.exit_code == Some(0)
        };
        let passed = checks.iter().filter(has_passed).count();
        if passed < need.spec.verify.len() {
            let planned = format!("{} verifications of {}.{}", need.spec.verify.len(), need.name, need.attempt);
            return Ok(disagrees("verification", planned, format!("{passed} that passed")));
        }
    }
    Ok(None)
}

/// The run's branch is where the store left it; a move of our own that was cut off, or is under way, counts as that.
pub fn branch(read: &Connection, run: &Run, at: Option<&str>) -> Result<Option<Disagreement>> {
    let Some(left) = run.tip.as_deref().or(run.base.as_deref()) else { return Ok(None) };
    match at {
        // Before its first change a run may have no branch yet.
        None if run.tip.is_none() || run.tip == run.base => Ok(None),
        Some(at) if at == left || store::change::is_aimed(read, run.id, at, left)? => Ok(None),
        at => Ok(disagrees("branch", left, at.unwrap_or("no branch"))),
    }
}

/// Stops a job for a person: its open attempt ends, whoever holds it.
pub fn stop(tx: &Writing<'_>, run: &Run, job: JobId, disagreement: &Disagreement) -> Result<()> {
    let job = store::job::get(tx, job)?;
    if !matches!(job.state, JobState::Queued | JobState::Claimed) {
        return Ok(());
    }
    let Disagreement { field, planned, found } = disagreement;
    let body = json!({"field": field, "planned": planned, "found": found, "attempt": job.attempt});
    tell(tx, EventType::PlanDisagreed, &job, &body)?;
    let ended = Ended { lease: LeaseState::Revoked, ..Ended::plain(Outcome::PlanDisagrees, disagreement.to_string()) };
    attempt::end(tx, run, &job, ended).map(|_| ())
}
