//! Rules about the order of steps: machines, claims, capacity, ends and the reasons to stop.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::story::{illegal_steps, walk};
use super::{Looked, Violation};
use crate::domain::event::EventType;
use crate::domain::job::{Cause, JobState};
use crate::domain::run::RunState;

/// Every step is one of its machine.
pub fn illegal(evidence: &Evidence) -> Looked {
    Ok(illegal_steps(evidence))
}

/// The rows say what the story ends with.
pub fn untold(evidence: &Evidence) -> Looked {
    let end = walk(evidence, |_, _| {});
    let mut found = Vec::new();
    if end.run != Some(evidence.run.state) {
        let told = end.run.map_or("nothing".to_owned(), |state| state.to_string());
        found
            .push(Violation::of(&evidence.run.name, format!("{}, and the story ends with {told}", evidence.run.state)));
    }
    for job in &evidence.jobs {
        let told = end.jobs.get(&job.name).map(|now| now.state);
        if told != Some(job.state) {
            let told = told.map_or("nothing".to_owned(), |state| state.to_string());
            found.push(Violation::of(&job.name, format!("{}, and the story ends with {told}", job.state)));
        }
    }
    Ok(found)
}

/// One claim and one agent an attempt.
pub fn twice(evidence: &Evidence) -> Looked {
    let mut claims: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for told in evidence.events.iter().filter(|told| told.is(EventType::JobClaimed)) {
        let attempt = format!("{}.{}", told.job_name(), told.number("attempt").unwrap_or(0));
        claims.entry(attempt).or_default().push(told.id);
    }
    let mut agents: BTreeMap<String, usize> = BTreeMap::new();
    for agent in evidence.executions.iter().filter(|execution| execution.kind == "agent") {
        *agents.entry(format!("{}.{}", agent.job, agent.attempt)).or_default() += 1;
    }
    let claimed = claims.into_iter().filter(|(_, events)| events.len() > 1).map(|(attempt, events)| Violation {
        found: format!("claimed {} times", events.len()),
        subject: attempt,
        events,
    });
    let started = agents.into_iter().filter(|(_, count)| *count > 1);
    let started = started.map(|(attempt, count)| Violation::of(attempt, format!("{count} agents were started for it")));
    Ok(claimed.chain(started).collect())
}

/// Claims only while the run is open; a person may take a job of a paused run.
pub fn closed(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        if !told.is(EventType::JobClaimed) || is_person(evidence, told.session) {
            return;
        }
        let is_live = matches!(now.run, Some(RunState::Running | RunState::NeedsOperator));
        let why = match (is_live, now.is_stopped, now.is_paused) {
            (false, _, _) => now.run.map_or("not prepared", RunState::word),
            (true, true, _) => "stopped",
            (true, false, true) => "paused",
            (true, false, false) => return,
        };
        found.push(Violation::at(told.id, told.job_name(), format!("claimed while the run was {why}")));
    });
    Ok(found)
}

/// A person works in the session.
pub fn is_person(evidence: &Evidence, session: Option<i64>) -> bool {
    session.and_then(|id| evidence.session(id)).is_some_and(|session| session.is_person())
}

/// No claim beyond `max_active_jobs`; a person's take asks nobody.
pub fn capacity(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        if !told.is(EventType::JobClaimed) || is_person(evidence, told.session) {
            return;
        }
        let Some(spec) = evidence.run_spec(now.generation) else { return };
        let held = now.held() + 1;
        if held > spec.max_active_jobs as usize {
            let what = format!("the claim made {held} held jobs, and the run allows {}", spec.max_active_jobs);
            found.push(Violation::at(told.id, told.job_name(), what));
        }
    });
    Ok(found)
}

/// A completed run has no job that anything could still come of.
pub fn completed(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        if !told.is(EventType::RunCompleted) {
            return;
        }
        for (name, job) in &now.jobs {
            if !matches!(job.state, JobState::Completed | JobState::Skipped | JobState::Failed) {
                found.push(Violation::at(told.id, name, format!("{} when the run was completed", job.state)));
            }
        }
    });
    if evidence.run.state == RunState::Completed {
        let open = evidence.jobs.iter().filter(|job| !job.settled);
        found.extend(open.map(|job| Violation::of(&job.name, format!("{}, and not settled", job.state))));
    }
    Ok(found)
}

/// Each stop names a cause of the closed list, and one that fits the kind of stop.
pub fn causes(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for told in &evidence.events {
        let Some(kind) = told.kind else { continue };
        let names_cause = match kind {
            EventType::RunNeedsOperator | EventType::RunFailed | EventType::JobFailed | EventType::JobWaiting => true,
            EventType::JobSkipped => told.body.get("cause").is_some(),
            _ => false,
        };
        if !names_cause {
            continue;
        }
        let subject = told.job.as_deref().unwrap_or(&evidence.run.name);
        let word = told.text("cause").unwrap_or("");
        match word.parse::<Cause>() {
            Err(_) => found.push(Violation::at(told.id, subject, format!("`{word}` is no cause"))),
            Ok(cause) if kind == EventType::RunNeedsOperator && cause.is_mere_waiting() => {
                let what = format!("the run was given up for {cause}, which only waits for a person");
                found.push(Violation::at(told.id, subject, what));
            }
            Ok(_) => {}
        }
    }
    Ok(found)
}
