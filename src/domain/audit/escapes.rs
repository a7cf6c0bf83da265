//! Whether what left the constrained surface was let pass: by a decision before, for that surface, and no oftener.

use std::collections::BTreeMap;

use super::{Evidence, Looked, Told, Violation};
use crate::domain::event::EventType;

/// Each use of an escape follows its decision, is for what it names, and is counted.
pub fn uses(evidence: &Evidence) -> Looked {
    let mut open: BTreeMap<&str, (&Told, u32)> = BTreeMap::new();
    let mut found = Vec::new();
    for told in &evidence.events {
        if told.is(EventType::DecisionRecorded) && told.text("kind") == Some("escape") {
            let decision = told.text("decision").unwrap_or_default();
            open.insert(decision, (told, told.number("uses").unwrap_or_default()));
        }
        if told.is(EventType::DecisionUsed) {
            found.extend(beyond(&mut open, told).map(|what| Violation::at(told.id, told.job_name(), what)));
        }
    }
    Ok(found)
}

fn beyond(open: &mut BTreeMap<&str, (&Told, u32)>, used: &Told) -> Option<String> {
    let decision = used.text("decision").unwrap_or_default();
    let Some((recorded, left)) = open.get_mut(decision) else {
        return Some(format!("{decision} was used, and no escape of that number was recorded before"));
    };
    if recorded.text("surface") != used.text("surface") {
        return Some(format!("{decision} was used for {}", used.text("surface").unwrap_or_default()));
    }
    if recorded.job.as_ref().is_some_and(|named| used.job.as_ref() != Some(named)) {
        return Some(format!("{decision} was used for another job than {}", recorded.job_name()));
    }
    match left.checked_sub(1) {
        Some(rest) => {
            *left = rest;
            None
        }
        None => Some(format!("{decision} was used oftener than it may be")),
    }
}
