//! Rules about persons: what waits for one, what one decided, and how it is known that it was one.

use std::collections::BTreeSet;

use super::evidence::{Evidence, Told};
use super::story::{Now, walk};
use super::{Looked, Violation};
use crate::domain::event::EventType;
use crate::domain::gate::{Tier, is_due, tier_of};
use crate::domain::job::{JobState, Outcome};
use crate::domain::session::{GateState, LandingState};

/// What a tier or the dial holds back was approved before it was offered, or sealed.
pub fn missing(evidence: &Evidence) -> Looked {
    let mut through: BTreeSet<String> = BTreeSet::new();
    // Of what is taken back in one go, the first is sent back, and the others wait for their needs again.
    let mut is_taking_back = false;
    let mut found = Vec::new();
    walk(evidence, |now, told| {
        let (Some(kind), Some(job)) = (told.kind, told.job.clone()) else { return };
        match kind {
            EventType::GateApproved => {
                through.insert(job);
            }
            EventType::JobReopened if is_taking_back => {
                through.remove(&job);
            }
            EventType::JobQueued | EventType::JobSealed if !through.contains(&job) => {
                found.extend(ungated(evidence, now, told));
            }
            _ => {}
        }
        is_taking_back = match kind {
            EventType::JobReopened => true,
            EventType::LeaseRevoked => is_taking_back,
            _ => false,
        };
    });
    Ok(found)
}

/// A step from waiting to the queue, or to the end, that a gate had to open.
fn ungated(evidence: &Evidence, now: &Now, told: &Told) -> Option<Violation> {
    let job = told.job_name();
    let spec = evidence.spec(now.generation, job)?;
    let dial = evidence.run_spec(now.generation)?.autonomy;
    let tier = tier_of(spec);
    let is_first = now.jobs.get(job).is_some_and(|was| was.state == JobState::Waiting);
    let must = match told.kind {
        Some(EventType::JobSealed) => told.text("by") == Some("gate"),
        // The dial may have been another one when it became ready; nothing changes what is irreversible.
        _ => is_first && (tier == Tier::L2 || evidence.generations.len() == 1) && is_due(tier, dial),
    };
    let what = format!("{tier}, and went on without an approved gate");
    must.then(|| Violation::at(told.id, job, what))
}

/// What is told of a decision is what the gate's row says, with the digest of what was shown.
pub fn unlike(evidence: &Evidence) -> Looked {
    let mut found = Vec::new();
    for told in &evidence.events {
        let state = match told.kind {
            Some(EventType::GateApproved) => GateState::Approved,
            Some(EventType::GateRejected) => GateState::Rejected,
            Some(EventType::GateSkipped) => GateState::Skipped,
            _ => continue,
        };
        let row = told.gate().and_then(|id| evidence.gates.iter().find(|gate| gate.id == id));
        let what = match row {
            None => "a gate that is not there was decided".to_owned(),
            Some(gate) if gate.job != told.job_name() => format!("it is the gate of {}", gate.job),
            Some(gate) if gate.state != state => format!("told as {state}, and it is {}", gate.state),
            Some(gate) if told.text("digest") != Some(&gate.digest) => {
                "what was decided is not what was shown: the digests differ".to_owned()
            }
            Some(_) => continue,
        };
        found.push(Violation::at(told.id, told.gate().map_or("-".to_owned(), |id| format!("g{id}")), what));
    }
    Ok(found)
}

/// A standing answer was given to an attempt that asked, once a job, and where no person must decide.
pub fn standing(evidence: &Evidence) -> Looked {
    let mut given: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for told in evidence.events.iter().filter(|told| told.is(EventType::AnswerGiven) && told.holds("standing")) {
        let job = told.job_name();
        let number = told.number("attempt").unwrap_or_default();
        let attempt = evidence.attempts.iter().find(|attempt| attempt.job == job && attempt.number == number);
        let has_asked = attempt.is_some_and(|attempt| attempt.outcome == Some(Outcome::NeedsContext));
        let tier = evidence.newest_spec(job).map(tier_of);
        let what = match (given.insert(job), has_asked, tier) {
            (false, _, _) => "it was given once more".to_owned(),
            (_, false, _) => format!("attempt {number} did not ask"),
            (_, _, Some(Tier::L2)) => "it is a person's at L2".to_owned(),
            (true, true, _) => continue,
        };
        found.push(Violation::at(told.id, job, what));
    }
    Ok(found)
}

/// After a reject at its gate a job goes on only when somebody says so.
pub fn ignored(evidence: &Evidence) -> Looked {
    let mut rejected: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for told in &evidence.events {
        let (Some(kind), job) = (told.kind, told.job_name()) else { continue };
        match kind {
            EventType::GateRejected => {
                rejected.insert(job);
            }
            EventType::GateApproved
            | EventType::GateOpened
            | EventType::GateSkipped
            | EventType::DecisionRecorded
            | EventType::JobReopened => {
                rejected.remove(job);
            }
            EventType::JobQueued | EventType::JobSealed if rejected.contains(job) => {
                found.push(Violation::at(told.id, job, "its gate was rejected, and it went on"));
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Kinds of decisions that an operator may record for themselves.
const OPERATORS: &[&str] = &["retry", "requeue"];

/// How the store says that a person was recognised.
fn is_recognised(how: &str) -> bool {
    how == "terminal" || how.starts_with("--as-person")
}

/// Each decision of a person bears who, and how that was known.
pub fn unknown(evidence: &Evidence) -> Looked {
    let is_decided = |state: GateState| !matches!(state, GateState::Pending | GateState::Expired);
    let gates = evidence.gates.iter().filter(|gate| is_decided(gate.state)).filter_map(|gate| {
        let is_known = gate.by.as_deref().is_some_and(|by| !by.is_empty());
        let how = gate.how.as_deref().unwrap_or("");
        let what = format!("{} by {:?}, recognised by {how:?}", gate.state, gate.by.as_deref().unwrap_or(""));
        (!is_known || !is_recognised(how)).then(|| Violation::of(format!("g{}", gate.id), what))
    });
    let decisions = evidence.decisions.iter().filter_map(|decision| {
        let may_be_operator = OPERATORS.contains(&decision.kind.as_str()) && decision.how == "operator";
        let is_fine = !decision.by.is_empty() && (may_be_operator || is_recognised(&decision.how));
        let what = format!("{} by {:?}, recognised by {:?}", decision.kind, decision.by, decision.how);
        (!is_fine).then(|| Violation::of(format!("d{}", decision.id), what))
    });
    Ok(gates.chain(decisions).collect())
}

/// A landing that is done has its gate approved.
pub fn landing(evidence: &Evidence) -> Looked {
    let done = evidence.landings.iter().filter(|landing| landing.state == LandingState::Done);
    let ungated = done.filter_map(|landing| {
        let gate = evidence.gates.iter().find(|gate| gate.id == landing.gate);
        let what = match gate {
            None => format!("it landed by g{}, which is not there", landing.gate),
            Some(gate) if gate.job != landing.job => format!("it landed by g{}, the gate of {}", gate.id, gate.job),
            Some(gate) if matches!(gate.state, GateState::Approved | GateState::Expired) => return None,
            Some(gate) => format!("it landed, and its gate g{} is {}", gate.id, gate.state),
        };
        Some(Violation::of(&landing.job, what))
    });
    Ok(ungated.collect())
}
