//! What a frozen workflow will do: the commands that will run, and where a person will be needed.
//!
//! It looks at the snapshot alone.

use std::collections::BTreeSet;

use crate::domain::frozen::{JobSpec, JobType, LaneMode, LaneSpec, Snapshot};
use crate::domain::gate::{is_due, tier_of};

/// The commands that will run, a line each.
pub fn commands(snapshot: &Snapshot) -> Vec<String> {
    let used = used_lanes(snapshot);
    let lanes =
        snapshot.run.lanes.iter().filter(|(name, lane)| lane.mode != LaneMode::Human && used.contains(name.as_str()));
    let mut lines: Vec<String> = lanes.map(|(name, lane)| format!("lane {name}: {}", shown(&lane.command))).collect();
    lines.extend(snapshot.run.tree.setup.iter().map(|argv| format!("setup: {}", shown(argv))));
    if !snapshot.run.notify.command.is_empty() {
        lines.push(format!("notify: {}", shown(&snapshot.run.notify.command)));
    }
    for job in &snapshot.jobs {
        lines.extend(job.verify.iter().map(|argv| format!("verify {}: {}", job.id, shown(argv))));
        if let Some(ephemeral) = &job.ephemeral {
            let steps = [&ephemeral.create, &ephemeral.check, &ephemeral.destroy];
            lines.extend(steps.iter().map(|argv| format!("ephemeral {}: {}", ephemeral.resource, shown(argv))));
        }
    }
    lines
}

/// A command on one line, without any power over a terminal; a script's lines stay apart.
fn shown(argv: &[String]) -> String {
    let words = argv.iter().map(|word| {
        let plain = crate::os::files::escape(word).replace('\n', "\\n");
        if word.is_empty() || word.contains(char::is_whitespace) { format!("'{plain}'") } else { plain }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Lanes that a job may go to, and those that take over from them.
pub fn used_lanes(snapshot: &Snapshot) -> BTreeSet<&str> {
    let mut open: Vec<&str> = snapshot.jobs.iter().flat_map(|job| lanes_of(snapshot, job)).collect();
    let mut used = BTreeSet::new();
    while let Some(lane) = open.pop() {
        if used.insert(lane) {
            let fallback = snapshot.run.lanes.get(lane).map(|lane| lane.fallback.as_slice()).unwrap_or_default();
            open.extend(fallback.iter().map(String::as_str));
        }
    }
    used
}

/// Lanes that are not known to tell what they cost: what they spend counts only if their answers say it.
pub fn unpriced(snapshot: &Snapshot) -> Vec<&str> {
    let used = used_lanes(snapshot);
    let is_silent = |lane: &LaneSpec| {
        let reports = REPORTING.contains(&lane.adapter.as_str()) || lane.result_from.is_some();
        lane.mode != LaneMode::Human && !reports
    };
    let lanes = snapshot.run.lanes.iter().filter(|(name, lane)| used.contains(name.as_str()) && is_silent(lane));
    lanes.map(|(name, _)| name.as_str()).collect()
}

/// Adapters whose agents end their output with what they cost.
const REPORTING: &[&str] = &["claude"];

/// The first lane in use that is given what is left of a budget of money.
pub fn asks_for_cost_left(snapshot: &Snapshot) -> Option<&str> {
    let used = used_lanes(snapshot);
    let asks = |lane: &LaneSpec| lane.command.iter().any(|word| word.contains("${budget.cost_left}"));
    let mut lanes = snapshot.run.lanes.iter().filter(|(name, lane)| used.contains(name.as_str()) && asks(lane));
    lanes.next().map(|(name, _)| name.as_str())
}

/// The lane that a job names, else those of its role.
fn lanes_of<'a>(snapshot: &'a Snapshot, job: &'a JobSpec) -> Vec<&'a str> {
    match (&job.lane, &job.role) {
        (Some(named), _) => vec![named],
        (None, Some(role)) => match snapshot.run.roles.get(role) {
            Some(role) if !role.lanes.is_empty() => role.lanes.iter().map(String::as_str).collect(),
            _ => snapshot.run.lanes.keys().map(String::as_str).collect(),
        },
        (None, None) => Vec::new(),
    }
}

/// Where a person will be needed.
pub fn needed(snapshot: &Snapshot) -> Vec<String> {
    let need = |job: &JobSpec| {
        let lane = job.lane.as_ref().and_then(|lane| snapshot.run.lanes.get(lane));
        if job.kind == JobType::Land {
            Some(job.into.as_ref().map_or_else(|| job.id.clone(), |into| format!("{} -> {into}", job.id)))
        } else if is_due(tier_of(job), snapshot.run.autonomy) {
            Some(format!("gate before {}", job.id))
        } else if lane.is_some_and(|lane| lane.mode == LaneMode::Human) {
            Some(format!("work on {}", job.id))
        } else if job.role.is_some() && lane.is_none() {
            Some(format!("a lane for {}", job.id))
        } else {
            None
        }
    };
    snapshot.jobs.iter().filter_map(need).collect()
}
