//! One run against the rules that a driven run must have kept: gathers the evidence and asks each rule.

use serde::{Deserialize, Serialize};

use super::SHOWN;
use crate::domain::audit::{ChangeFacts, CommitFacts, Commits, Evidence, RULES, Rule};
use crate::domain::session::ChangeState;
use crate::error::Result;
use crate::os::git::Git;
use crate::store::evidence;
use crate::store::run::Run;
use crate::verbs::read::{bounded, count};
use crate::verbs::run::find;
use crate::verbs::{Ctx, tree};

/// What became of looking at one rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// Kept.
    Passed,
    /// Not kept.
    Violated,
    /// It could not be looked at.
    NotRun,
}

/// Where a rule was not kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// A job, an attempt (`draft.2`), a gate, a session, or the run.
    pub subject: String,
    /// What was seen there.
    pub found: String,
    /// The events that show it.
    pub events: Vec<i64>,
}

/// A rule of a driven run, and what looking came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checked {
    /// A stable word.
    pub code: String,
    /// What holds, in words.
    pub what: String,
    /// What became of it.
    pub judgement: Judgement,
    /// Where it was not kept.
    pub seen: Vec<Seen>,
    /// How many are not shown.
    pub left_out: u32,
    /// Why it could not be looked at.
    pub why: Option<String>,
}

/// Asks every rule about a run.
pub fn check(ctx: &Ctx, run: &Run) -> Result<Vec<Checked>> {
    let mut evidence = ctx.read(|read| Ok(evidence::gather(read, run.id)?))?;
    evidence.commits = commits(ctx, run, &evidence).map_err(|error| error.to_string());
    Ok(RULES.iter().map(|rule| judge(rule, &evidence)).collect())
}

fn judge(rule: &Rule, evidence: &Evidence) -> Checked {
    let (judgement, violations, why) = match (rule.look)(evidence) {
        Ok(violations) if violations.is_empty() => (Judgement::Passed, violations, None),
        Ok(violations) => (Judgement::Violated, violations, None),
        Err(why) => (Judgement::NotRun, Vec::new(), Some(why)),
    };
    let total = count(violations.len());
    let seen = violations.into_iter().map(|one| Seen { subject: one.subject, found: one.found, events: one.events });
    let mut seen: Vec<Seen> = seen.collect();
    let left_out = bounded(&mut seen, SHOWN, total);
    Checked { code: rule.code.to_owned(), what: rule.what.to_owned(), judgement, seen, left_out, why }
}

/// What the repository holds of the run's changes; nothing is asked of it for a run without any.
fn commits(ctx: &Ctx, run: &Run, evidence: &Evidence) -> Result<Commits> {
    if evidence.changes.is_empty() {
        return Ok(Commits::default());
    }
    let git = tree::repository(ctx)?;
    let chain = match (&run.base, &run.tip) {
        (Some(base), Some(tip)) => git.first_parents(base, tip).ok(),
        _ => None,
    };
    let mut changes = Vec::new();
    for change in evidence.changes.iter().filter(|change| change.state == ChangeState::Integrated) {
        let job = ctx.read(|read| find::job(read, run, &change.job))?;
        let pin = git.resolve(&tree::pin(run, &job, change.attempt))?;
        changes.push(commit(&git, change, pin)?);
    }
    Ok(Commits { branch: git.resolve(&tree::branch(run))?, chain, changes })
}

fn commit(git: &Git, change: &ChangeFacts, pin: Option<String>) -> Result<CommitFacts> {
    let found = git.commit_of(&change.commit)?;
    let differs = found.as_ref().and_then(|_| git.changes(&change.base, &change.commit).ok());
    let (tree, parents, message) =
        found.map_or((None, Vec::new(), String::new()), |found| (Some(found.tree), found.parents, found.message));
    Ok(CommitFacts { job: change.job.clone(), attempt: change.attempt, pin, tree, parents, message, differs })
}
