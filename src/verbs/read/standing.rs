//! The standing answer of a run, and whom it was given.

use serde::{Deserialize, Serialize};

use super::one_line;
use crate::error::Result;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::flow::standing::KIND;

/// Characters shown of it.
const WORDS: usize = 400;

/// Most jobs shown.
const JOBS: u32 = 100;

/// What a person answers a job that asks while nobody is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StandingAnswer {
    /// The words, cut.
    pub answer: String,
    /// The jobs that got it.
    pub given_to: Vec<String>,
}

/// The standing answer of a run; none when nobody left one.
pub fn of_run(read: &Connection, run: &Run) -> Result<Option<StandingAnswer>> {
    let Some(left) = &run.spec.standing_answer else { return Ok(None) };
    let given_to = store::decision::jobs_of_kind(read, run.id, KIND, JOBS)?;
    Ok(Some(StandingAnswer { answer: one_line(&left.words, WORDS), given_to }))
}
