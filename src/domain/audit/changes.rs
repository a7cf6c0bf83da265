//! Rules about seals and what they sealed: answers, verifications, commits, and the run's branch.

use std::collections::BTreeSet;

use serde_json::Value;

use super::evidence::{AttemptFacts, ChangeFacts, CommitFacts, Commits, Evidence, Told};
use super::{Looked, Violation};
use crate::domain::change::{refused, short};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::JobType;
use crate::domain::job::Outcome;
use crate::domain::path::shown as shown_path;
use crate::domain::scope::Scope;
use crate::domain::session::{ChangeState, ExecutionState};
use crate::domain::trailer;

fn sealed(evidence: &Evidence) -> impl Iterator<Item = &AttemptFacts> {
    evidence.attempts.iter().filter(|attempt| attempt.outcome == Some(Outcome::Sealed))
}

fn named(job: &str, attempt: u32) -> String {
    format!("{job}.{attempt}")
}

/// A sealed attempt has its answer, unchanged; a review's has a verdict.
pub fn proven(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for attempt in sealed(evidence) {
        let is_review = evidence.newest_spec(&attempt.job).is_some_and(|spec| spec.kind == JobType::Review);
        let has_verdict =
            || evidence.verdicts.iter().any(|verdict| verdict.job == attempt.job && verdict.attempt == attempt.number);
        let what = match &attempt.answer {
            None => "sealed without an answer",
            Some(answer) => {
                let text = serde_json::to_string(answer).unwrap_or_default();
                if attempt.answer_hash.as_deref() != Some(&sha256_hex(text.as_bytes())) {
                    "its answer does not have its hash any more"
                } else if is_review && !has_verdict() {
                    "a sealed review without a verdict"
                } else {
                    continue;
                }
            }
        };
        found.push(Violation::of(named(&attempt.job, attempt.number), what));
    }
    Ok(found)
}

/// Each declared verification of a sealed attempt ran and exited 0.
pub fn verified(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for attempt in sealed(evidence) {
        let Some(spec) = evidence.newest_spec(&attempt.job) else { continue };
        for argv in &spec.verify {
            let hash = sha256_hex(argv.join("\0").as_bytes());
            let is_it = evidence.executions.iter().any(|execution| {
                (execution.job.as_str(), execution.attempt) == (attempt.job.as_str(), attempt.number)
                    && execution.kind == "verify"
                    && execution.argv_hash.as_deref() == Some(&hash)
                    && (execution.state, execution.exit) == (ExecutionState::Exited, Some(0))
            });
            if !is_it {
                let what = format!("sealed, and `{}` did not pass", argv.join(" "));
                found.push(Violation::of(named(&attempt.job, attempt.number), what));
            }
        }
    }
    Ok(found)
}

fn integrated(evidence: &Evidence) -> impl Iterator<Item = &ChangeFacts> {
    evidence.changes.iter().filter(|change| change.state == ChangeState::Integrated)
}

/// From the base to the tip each change continues another, and the branch is just that. Who is sealed first need not
/// be who was integrated first: the links tell.
pub fn chained(evidence: &Evidence) -> Looked {
    let mut left: Vec<&ChangeFacts> = evidence.changes.iter().filter(|change| change.after.is_some()).collect();
    let mut at = evidence.run.base.as_deref();
    let mut steps: Vec<&str> = Vec::new();
    while let Some(next) = next_link(&left, at) {
        let change = left.remove(next);
        if change.after != change.before {
            steps.extend(change.after.as_deref());
        }
        at = change.after.as_deref();
    }
    // A move that was cut off is no change yet.
    left.retain(|change| change.state == ChangeState::Integrated);
    let astray = |change: &&ChangeFacts| {
        let what = format!("it continues {}, which is not on the run's branch", shown(change.before.as_deref()));
        Violation::of(named(&change.job, change.attempt), what)
    };
    let mut found: Vec<Violation> = left.iter().map(astray).collect();
    if let Some(tip) = evidence.run.tip.as_deref().filter(|tip| at != Some(tip)) {
        let what = format!("left at {}, and its changes end at {}", short(tip), shown(at));
        found.push(Violation::of(&evidence.run.name, what));
    }
    if !found.is_empty() || steps.is_empty() {
        return Ok(found);
    }
    let commits = evidence.commits.as_ref().map_err(Clone::clone)?;
    branch(evidence, commits, &steps)
}

/// The change that continues a commit: one that was sealed before one that may have been cut off, and of each kind what
/// moves nothing first.
fn next_link(left: &[&ChangeFacts], at: Option<&str>) -> Option<usize> {
    let continues = |change: &ChangeFacts| at.is_some() && change.before.as_deref() == at;
    let rank = |change: &ChangeFacts| (change.state != ChangeState::Integrated, change.before != change.after);
    let links = left.iter().enumerate().filter(|(_, change)| continues(change));
    links.min_by_key(|(_, change)| rank(change)).map(|(place, _)| place)
}

/// What git has of the branch.
fn branch(evidence: &Evidence, commits: &Commits, steps: &[&str]) -> Looked {
    let chain = commits.chain.as_ref().ok_or("the commits of the run's branch are not there")?;
    let mut found = Vec::new();
    if chain.iter().map(String::as_str).ne(steps.iter().copied()) {
        let what =
            format!("git has {} commits from its base to its tip, its changes make {}", chain.len(), steps.len());
        found.push(Violation::of(&evidence.run.name, what));
    }
    let moved = commits.branch.as_deref().filter(|branch| Some(*branch) != evidence.run.tip.as_deref());
    if let Some(branch) = moved {
        let what =
            format!("its branch is at {}, and was left at {}", short(branch), shown(evidence.run.tip.as_deref()));
        found.push(Violation::of(&evidence.run.name, what));
    }
    Ok(found)
}

fn shown(commit: Option<&str>) -> &str {
    commit.map_or("nothing", short)
}

/// The commit of each sealed change, as git has it.
fn commits(evidence: &Evidence) -> Result<Vec<(&ChangeFacts, &CommitFacts)>, String> {
    let changes: Vec<&ChangeFacts> = integrated(evidence).collect();
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let commits = evidence.commits.as_ref().map_err(Clone::clone)?;
    let of = |change: &ChangeFacts| {
        commits.changes.iter().find(|commit| (&commit.job, commit.attempt) == (&change.job, change.attempt))
    };
    let both = changes.into_iter().filter_map(|change| Some((change, of(change)?)));
    Ok(both.collect())
}

/// Pin, commit, tree, parent and trailers are what the rows say.
pub fn pinned(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for (change, commit) in commits(evidence)? {
        let trailers = trailer::of_attempt(&evidence.run.name, &change.job, change.attempt);
        let lacks = trailers.iter().find(|(name, value)| {
            let line = format!("{name}: {value}");
            !commit.message.lines().any(|one| one == line)
        });
        let what = match (&commit.tree, &commit.pin) {
            (None, _) => format!("its commit {} is gone", short(&change.commit)),
            (Some(_), None) => "its pin is gone".to_owned(),
            (Some(_), Some(pin)) if *pin != change.commit => {
                format!("its pin is at {}, and its commit is {}", short(pin), short(&change.commit))
            }
            (Some(tree), Some(_)) if *tree != change.tree => {
                format!("its commit holds {}, and {} was verified", short(tree), short(&change.tree))
            }
            _ if commit.parents != [change.base.clone()] => {
                format!("its commit does not follow its base {}", short(&change.base))
            }
            _ => match lacks {
                Some((name, value)) => format!("its commit lacks `{name}: {value}`"),
                None => continue,
            },
        };
        found.push(Violation::of(named(&change.job, change.attempt), what));
    }
    Ok(found)
}

/// Paths that an escape let into a job's tree.
fn let_in(evidence: &Evidence, job: &str) -> BTreeSet<String> {
    let is_write = |told: &&Told| told.is(EventType::RepoWritten) || told.is(EventType::RepoPatched);
    let of_job = evidence.events.iter().filter(is_write).filter(|told| told.job_name() == job);
    let escaped = of_job.filter(|told| told.text("decision").is_some());
    let files = |told: &Told| match told.body.get("files").and_then(Value::as_array) {
        Some(files) => files.clone(),
        None => vec![told.body.clone()],
    };
    let path = |file: Value| file.get("path").and_then(Value::as_str).map(str::to_owned);
    escaped.flat_map(files).filter_map(path).collect()
}

/// The change as git lists it, judged against the frozen scope once more.
pub fn scoped(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    let mut unseen = None;
    for (change, commit) in commits(evidence)? {
        let Some(spec) = evidence.newest_spec(&change.job) else { continue };
        let scope = Scope::new(&spec.writes, &spec.forbids).map_err(|error| error.to_string())?;
        let Some(differs) = &commit.differs else {
            unseen = Some(format!("what {} changed can't be listed", named(&change.job, change.attempt)));
            continue;
        };
        let let_in = let_in(evidence, &change.job);
        let outside = refused(&scope, differs);
        let outside = outside.iter().filter(|one| !let_in.contains(&shown_path(&one.path)));
        found.extend(outside.map(|one| Violation::of(named(&change.job, change.attempt), one.to_string())));
    }
    match unseen {
        Some(why) if found.is_empty() => Err(why),
        _ => Ok(found),
    }
}
