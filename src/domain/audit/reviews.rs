//! Rules about reviews: who may judge, what a judgement is about, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Evidence, JobFacts, SessionFacts, Told, VerdictFacts};
use super::steps::is_person;
use super::story::{Now, walk};
use super::{Looked, Violation};
use crate::domain::event::EventType;
use crate::domain::frozen::{JobSpec, RoleContext};
use crate::domain::job::JobState;
use crate::domain::session::SessionState;
use crate::domain::verdict::{PanelDecision, Seat, Verdict, decide};

/// Nothing behind a reject goes on before a person says so.
pub fn rejects(evidence: &Evidence) -> Looked {
    // By review: the event of its reject.
    let mut standing: BTreeMap<&str, i64> = BTreeMap::new();
    let mut found = Vec::new();
    for told in &evidence.events {
        let (Some(kind), job) = (told.kind, told.job_name()) else { continue };
        match kind {
            EventType::VerdictRecorded | EventType::VerdictOverridden => {
                standing.remove(job);
                if told.text("verdict") == Some(Verdict::Reject.word()) {
                    standing.insert(job, told.id);
                }
            }
            EventType::RunFailed | EventType::RunCanceled => standing.clear(),
            EventType::DecisionRecorded | EventType::GateRevised => standing.clear(),
            EventType::JobReopened | EventType::JobSkipped => {
                standing.remove(job);
            }
            EventType::JobQueued | EventType::JobSealed => {
                let behind = evidence.upstream(job);
                let ignored = standing.iter().filter(|(review, _)| behind.contains(*review));
                found.extend(ignored.map(|(review, event)| Violation {
                    subject: job.to_owned(),
                    found: format!("{review} rejects, and {job} went on"),
                    events: vec![*event, told.id],
                }));
            }
            EventType::RunCompleted => {
                found.extend(standing.iter().map(|(review, event)| Violation {
                    subject: (*review).to_owned(),
                    found: "it rejects, and the run was completed".to_owned(),
                    events: vec![*event, told.id],
                }));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Freshness at registration and at each claim; a reason that a person gave stands in for the first.
pub fn fresh(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    let mut claimed: BTreeMap<i64, BTreeSet<String>> = BTreeMap::new();
    walk(evidence, |now, told| {
        let Some(session) = told.session.and_then(|id| evidence.session(id)) else { return };
        match told.kind {
            Some(EventType::SessionRegistered) => {
                found.extend(contaminated(evidence, now, session).map(|author| {
                    let what = format!("registered while author s{author} worked or could, and no reason is given");
                    Violation::at(told.id, format!("s{}", session.id), what)
                }));
            }
            Some(EventType::JobClaimed) => {
                let before = claimed.entry(session.id).or_default();
                found.extend(knows(evidence, session, told, before));
                before.insert(told.job_name().to_owned());
            }
            _ => {}
        }
    });
    Ok(found)
}

/// The author that a session of a fresh role was registered beside.
fn contaminated(evidence: &Evidence, now: &Now, session: &SessionFacts) -> Option<i64> {
    let spec = evidence.run_spec(now.generation)?;
    let is_fresh = spec.roles.get(&session.role).is_some_and(|role| role.context == RoleContext::Fresh);
    if !is_fresh || session.is_person() || session.non_fresh_reason.is_some() {
        return None;
    }
    let active = now.sessions.iter().filter(|(_, state)| **state == SessionState::Active).map(|(id, _)| *id);
    active.into_iter().find(|id| {
        let Some(author) = evidence.session(*id).filter(|one| spec.author_roles.contains(&one.role)) else {
            return false;
        };
        let role_of = |job: &str| evidence.spec(now.generation, job).and_then(|spec| spec.role.as_deref());
        let holds = now.jobs.values().any(|job| job.holder == Some(*id) && job.state.is_held());
        let pending =
            now.jobs.iter().any(|(name, job)| job.state == JobState::Queued && role_of(name) == Some(&author.role));
        holds || pending
    })
}

/// What a session held before that it may not know.
fn knows(evidence: &Evidence, session: &SessionFacts, told: &Told, before: &BTreeSet<String>) -> Option<Violation> {
    let job = told.job_name();
    let spec = evidence.newest_spec(job)?;
    let own = spec.reviewed_job().filter(|subject| before.contains(*subject));
    let above = evidence.upstream(job).into_iter().find(|above| spec.fresh && before.contains(*above));
    let what = match (own, above) {
        (Some(subject), _) => format!("s{} worked on {subject} and reviews it", session.id),
        (None, Some(above)) => format!("s{} worked on {above}, and this needs a fresh session", session.id),
        (None, None) if session.fresh && !before.is_empty() && !is_person(evidence, told.session) => {
            format!("s{} is for one job and held another before", session.id)
        }
        (None, None) => return None,
    };
    Some(Violation::at(told.id, job, what))
}

fn newest<'a>(evidence: &'a Evidence, review: &str) -> Option<&'a VerdictFacts> {
    evidence.verdicts.iter().rev().find(|verdict| verdict.job == review)
}

/// A settled review of a job judged the generation that counts.
pub fn stale(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for subject in &evidence.jobs {
        for review in evidence.reviews_of(&subject.name) {
            if !review.settled || review.state != JobState::Completed {
                continue;
            }
            match newest(evidence, &review.name) {
                None => found.push(Violation::of(&review.name, "settled without a verdict")),
                Some(verdict) if verdict.generation != subject.generation => {
                    let what = format!(
                        "judged generation {} of {}, which is at {}",
                        verdict.generation, subject.name, subject.generation
                    );
                    found.push(Violation::of(&review.name, what));
                }
                Some(_) => {}
            }
        }
    }
    Ok(found)
}

/// A panel whose reviews are all settled passes by its own rule.
pub fn panels(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for subject in &evidence.jobs {
        let seats: Vec<&JobFacts> =
            evidence.reviews_of(&subject.name).filter(|review| review.state != JobState::Skipped).collect();
        if seats.is_empty() || seats.iter().any(|review| !review.settled) {
            continue;
        }
        let facts: Vec<Seat> = seats.iter().map(|review| seat(evidence, subject, review)).collect();
        let quorum = evidence.newest_spec(&subject.name).and_then(|spec: &JobSpec| spec.quorum);
        let accepts = facts.iter().filter(|seat| seat.verdict.is_some_and(Verdict::is_accepting)).count();
        let has_let_go = seats.iter().any(|review| review.state == JobState::Failed);
        match decide(&facts, quorum) {
            PanelDecision::Pass => {}
            // Every review that failed was let go by its own `on_failure`.
            PanelDecision::Short | PanelDecision::RevisionsSpent | PanelDecision::Reopen if has_let_go => {}
            other => {
                let wanted = quorum.map_or("all".to_owned(), |quorum| quorum.to_string());
                let what = format!("settled with {accepts} of {} accepts, {wanted} wanted ({other:?})", facts.len());
                found.push(Violation::of(&subject.name, what));
            }
        }
    }
    Ok(found)
}

fn seat(evidence: &Evidence, subject: &JobFacts, review: &JobFacts) -> Seat {
    let verdict = newest(evidence, &review.name).filter(|row| row.generation == subject.generation);
    Seat { verdict: verdict.map(|row| row.verdict), is_over: true, revisions_left: 1 }
}
