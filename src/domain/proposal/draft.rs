//! From an admitted proposal to a frozen job: what it may do follows from its proposer, never from its own words.

use super::{Scene, inputs, is_behind, kind, role};
use crate::domain::contract::Proposal;
use crate::domain::frozen::{Effect, JobSpec, JobType, LaneMode, OnExitZero, Origin, RoleContext, TreeKind};
use crate::domain::scope::may_overlap;

/// Longest id of a job.
const LONGEST: usize = 48;

/// Characters of a reason that stand at the gate.
const REASON: usize = 300;

/// The job that a proposal becomes. `draft` and `build` may change what their proposer may change, under the same
/// verification; everything else only looks. Commands, lanes and scopes are the prepared ones. It waits for its
/// proposer, for the jobs whose artifacts it wants, and for every job whose scope meets its own.
pub fn draft(proposal: &Proposal, scene: &Scene<'_>, attempt: u32) -> JobSpec {
    let proposer = scene.proposer;
    let kind = kind(&proposal.kind).unwrap_or_default();
    let role = role(proposal, scene).map(str::to_owned);
    let spec = JobSpec {
        id: name(&proposer.id, |name| scene.jobs.iter().any(|job| job.id == name)),
        kind,
        origin: Origin::Proposed,
        lane: lane(proposal, scene, role.as_deref()),
        fresh: is_fresh(scene, role.as_deref()),
        role,
        objective: proposal.objective.trim().to_owned(),
        inputs: inputs(proposal, &proposer.id),
        tree: if scene.has_base { TreeKind::Tip } else { TreeKind::None },
        max_strikes: proposer.max_strikes,
        trailers: proposer.trailers,
        timeout_ms: proposer.timeout_ms,
        gate_note: note(proposal, &proposer.id, attempt),
        ..JobSpec::default()
    };
    let spec = if matches!(kind, JobType::Draft | JobType::Build) { with_scope(spec, proposer) } else { spec };
    let needs = needs(&spec, scene);
    JobSpec { on_exit_zero: Some(on_exit_zero(&spec, scene)), needs, ..spec }
}

/// What its proposer may change, and what proves such a change.
fn with_scope(spec: JobSpec, proposer: &JobSpec) -> JobSpec {
    if proposer.writes.is_empty() {
        return spec;
    }
    JobSpec {
        writes: proposer.writes.clone(),
        forbids: proposer.forbids.clone(),
        verify: proposer.verify.clone(),
        process: proposer.process.clone(),
        process_execution: proposer.process_execution,
        allow_empty: proposer.allow_empty,
        tree: TreeKind::Own,
        effect: Effect::Write,
        ..spec
    }
}

fn lane(proposal: &Proposal, scene: &Scene<'_>, role: Option<&str>) -> Option<String> {
    let of_proposer = || scene.proposer.lane.clone().filter(|_| scene.proposer.role.as_deref() == role);
    let only = || match scene.run.roles.get(role?)?.lanes.as_slice() {
        [only] => Some(only.clone()),
        _ => None,
    };
    proposal.lane.clone().or_else(of_proposer).or_else(only)
}

fn is_fresh(scene: &Scene<'_>, role: Option<&str>) -> bool {
    role.and_then(|role| scene.run.roles.get(role)).is_some_and(|role| role.context == RoleContext::Fresh)
}

fn on_exit_zero(spec: &JobSpec, scene: &Scene<'_>) -> OnExitZero {
    let lanes = spec.lane.as_ref().map(std::slice::from_ref);
    let of_role = || spec.role.as_ref().and_then(|role| scene.run.roles.get(role)).map(|role| role.lanes.as_slice());
    let lanes = lanes.or_else(of_role).unwrap_or_default();
    let mut modes = lanes.iter().filter_map(|lane| scene.run.lanes.get(lane)).map(|lane| lane.mode);
    if modes.any(|mode| mode == LaneMode::Loop) { OnExitZero::Unsealed } else { OnExitZero::Complete }
}

/// Scopes never meet side by side: whoever may write the same path comes before, whatever it is doing now.
fn needs(spec: &JobSpec, scene: &Scene<'_>) -> Vec<String> {
    let mut needs = vec![scene.proposer.id.clone()];
    needs.extend(spec.inputs.iter().filter_map(|input| input.split_once('.')).map(|(job, _)| job.to_owned()));
    let own = (spec.writes.as_slice(), spec.forbids.as_slice());
    let meets = |other: &&JobSpec| may_overlap(own, (other.writes.as_slice(), other.forbids.as_slice())).is_some();
    let others = scene.jobs.iter().filter(meets).filter(|other| !is_behind(scene, &other.id));
    needs.extend(others.map(|other| other.id.clone()));
    let mut seen = std::collections::BTreeSet::new();
    needs.retain(|need| seen.insert(need.clone()));
    needs
}

/// `JOB-next-1`, or the first number that is free; a long name is cut.
pub fn name(proposer: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut number = 1_u32;
    loop {
        let tail = format!("-next-{number}");
        let head = proposer.get(..LONGEST - tail.len()).unwrap_or(proposer);
        let name = format!("{head}{tail}");
        if !is_taken(&name) {
            return name;
        }
        number += 1;
    }
}

/// What stands at its gate: who proposes it, how sure, and why. An agent's words are shown on one line.
fn note(proposal: &Proposal, proposer: &str, attempt: u32) -> String {
    let reason: Vec<&str> =
        proposal.reason.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    let reason = reason.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let reason = if reason.is_empty() { "no reason given".to_owned() } else { reason };
    let cut: String = reason.chars().take(REASON).collect();
    format!("{proposer}.{attempt} proposes it (confidence {:.2}): {cut}", proposal.confidence)
}
