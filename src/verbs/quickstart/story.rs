//! What happened in a run: each job with its attempts and what reviews said.

use serde::{Deserialize, Serialize};

use crate::domain::verdict::Finding;
use crate::error::Result;
use crate::store::{self, Connection};
use crate::verbs::run::find;

/// The most jobs that are told of.
const MOST_JOBS: u32 = 100;

/// A job and what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobStory {
    /// Its name.
    pub job: String,
    /// Where it is.
    pub state: String,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptStory>,
}

/// An attempt and what it came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptStory {
    /// Which try.
    pub number: u32,
    /// How it ended; none while it is open.
    pub outcome: Option<String>,
    /// One line about it.
    pub detail: Option<String>,
    /// A review's judgement.
    pub verdict: Option<String>,
    /// A review's remarks.
    pub findings: Vec<Finding>,
}

/// Reads the jobs of a run.
pub fn read(read: &Connection, run: &str) -> Result<Vec<JobStory>> {
    let run = find::named(read, run)?;
    let lines = store::job::lines(read, run.id, MOST_JOBS)?;
    lines
        .iter()
        .map(|line| {
            let attempts = attempts(read, line.id)?;
            Ok(JobStory { job: line.name.clone(), state: line.state.to_string(), attempts })
        })
        .collect()
}

fn attempts(read: &Connection, job: crate::domain::id::JobId) -> Result<Vec<AttemptStory>> {
    let verdicts = store::verdict::of_job(read, job)?;
    let mut attempts = store::attempt::of_job(read, job, MOST_JOBS)?;
    attempts.reverse();
    Ok(attempts
        .into_iter()
        .map(|attempt| {
            let judged = verdicts.iter().rev().find(|row| row.attempt == attempt.number);
            AttemptStory {
                number: attempt.number,
                outcome: attempt.outcome.map(|outcome| outcome.to_string()),
                detail: attempt.detail,
                verdict: judged.map(|row| row.verdict.to_string()),
                findings: judged.map(|row| row.findings.clone()).unwrap_or_default(),
            }
        })
        .collect())
}
