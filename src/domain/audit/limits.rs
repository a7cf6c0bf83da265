//! Rules about breakers: each limit as the snapshot in force at that moment has it.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Evidence, Told};
use super::steps::is_person;
use super::story::{Now, walk};
use super::{Looked, Violation};
use crate::domain::event::EventType;
use crate::domain::job::{Cause, Cost, Outcome};
use crate::domain::verdict::Verdict;

/// What a job has used up since a person gave it its tries back.
#[derive(Default)]
struct Used {
    strikes: u32,
    requeues: u32,
    /// The next requeue is an operator's and costs nothing.
    is_free: bool,
}

/// A job is tried again only while it has strikes and requeues left.
pub fn tries(evidence: &Evidence) -> Looked {
    let mut used: BTreeMap<String, Used> = BTreeMap::new();
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        let Some(job) = &told.job else { return };
        let used = used.entry(job.clone()).or_default();
        match told.kind {
            Some(EventType::DecisionRecorded) if told.text("kind") == Some("retry") => *used = Used::default(),
            Some(EventType::DecisionRecorded) if told.text("kind") == Some("requeue") => used.is_free = true,
            Some(EventType::VerdictOverridden) if told.text("verdict") == Some(Verdict::NeedsRevision.word()) => {
                *used = Used::default();
            }
            Some(EventType::JobRequeued) if std::mem::take(&mut used.is_free) => {}
            Some(EventType::JobRequeued) => found.extend(again(evidence, now, told, used)),
            _ => {}
        }
    });
    Ok(found)
}

fn again(evidence: &Evidence, now: &Now, told: &Told, used: &mut Used) -> Option<Violation> {
    let outcome: Outcome = told.text("after")?.parse().ok()?;
    let (job, spec) = (told.job_name(), evidence.spec(now.generation, told.job_name())?);
    let limit = evidence.run_spec(now.generation)?.budget.requeues;
    let what = match outcome.cost() {
        Cost::Strike => {
            used.strikes += 1;
            let is_over = used.strikes >= spec.max_strikes;
            is_over.then(|| format!("went on after strike {} of {}", used.strikes, spec.max_strikes))
        }
        Cost::Requeue => {
            used.requeues += 1;
            (used.requeues > limit).then(|| format!("requeued {} times, and {limit} are allowed", used.requeues))
        }
        Cost::Free => None,
        Cost::Person | Cost::Final => Some(format!("went on by itself after {outcome}")),
    };
    what.map(|what| Violation::at(told.id, job, what))
}

/// A review sends its subject back at most `revisions` times.
pub fn revisions(evidence: &Evidence) -> Looked {
    let mut sent: BTreeMap<String, u32> = BTreeMap::new();
    let mut wanting: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        let job = told.job_name();
        match told.kind {
            Some(EventType::VerdictRecorded | EventType::VerdictOverridden) => {
                wanting.remove(job);
                if told.text("verdict") == Some(Verdict::NeedsRevision.word()) {
                    wanting.insert(job.to_owned());
                    if told.is(EventType::VerdictOverridden) {
                        sent.remove(job);
                    }
                }
            }
            Some(EventType::DecisionRecorded) if told.text("kind") == Some("retry") => {
                sent.remove(job);
            }
            Some(EventType::JobReopened) if told.text("why") == Some(Verdict::NeedsRevision.word()) => {
                for review in evidence.reviews_of(job).filter(|review| wanting.remove(&review.name)) {
                    let count = sent.entry(review.name.clone()).or_default();
                    *count += 1;
                    let limit = evidence.spec(now.generation, &review.name).map_or(0, |spec| spec.revisions);
                    if *count > limit {
                        let what = format!("sent {job} back {count} times, and {limit} are allowed");
                        found.push(Violation::at(told.id, &review.name, what));
                    }
                }
            }
            _ => {}
        }
    });
    Ok(found)
}

/// No more agents than the most that any generation allowed.
pub fn launches(evidence: &Evidence) -> Looked {
    let most = evidence.generations.iter().map(|snapshot| snapshot.run.budget.launches).max().unwrap_or(0);
    let agents = evidence.executions.iter().filter(|execution| execution.kind == "agent").count();
    let agents = u32::try_from(agents).unwrap_or(u32::MAX);
    // A launch that a person starts by hand asks no budget; it is counted all the same.
    let counted = evidence.run.launches.max(agents);
    let what = || format!("{counted} agents were started, and {most} are allowed");
    Ok((counted > most).then(|| Violation::of(&evidence.run.name, what())).into_iter().collect())
}

/// Between a breaker of the run and its amendment only a person takes work.
pub fn budget(evidence: &Evidence) -> Looked {
    let mut tripped: Option<(i64, String)> = None;
    let mut found = Vec::new();
    for told in &evidence.events {
        match told.kind {
            Some(EventType::BreakerTripped) if told.job.is_none() => {
                let word = told.text("breaker").unwrap_or("");
                let stops = [Cause::Cost, Cause::ActiveTime].iter().any(|cause| cause.word() == word);
                tripped = stops.then(|| (told.id, word.to_owned())).or(tripped);
            }
            Some(EventType::RunAmended) => tripped = None,
            Some(EventType::JobClaimed) if !is_person(evidence, told.session) => {
                found.extend(tripped.as_ref().map(|(event, breaker)| Violation {
                    subject: told.job_name().to_owned(),
                    found: format!("claimed while {breaker} was spent"),
                    events: vec![*event, told.id],
                }));
            }
            _ => {}
        }
    }
    Ok(found)
}
