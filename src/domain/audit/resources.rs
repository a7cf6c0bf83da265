//! Rules about resources that are made for one job.

use std::collections::BTreeMap;

use super::evidence::Evidence;
use super::{Looked, Violation};
use crate::domain::event::EventType;

/// Each one that was made was destroyed, or is told to be left, once its run is over.
pub fn left(evidence: &Evidence) -> Looked {
    if !evidence.run.state.is_terminal() {
        return Ok(Vec::new());
    }
    let mut open: BTreeMap<&str, Violation> = BTreeMap::new();
    for told in &evidence.events {
        let Some(name) = told.text("resource") else { continue };
        match told.kind {
            Some(EventType::EphemeralCreated) => {
                let what = format!("{name} was made, and nothing tells what became of it");
                open.insert(name, Violation::at(told.id, told.job_name(), what));
            }
            Some(EventType::EphemeralDestroyed | EventType::EphemeralLeft) => {
                open.remove(name);
            }
            _ => {}
        }
    }
    Ok(open.into_values().collect())
}
