//! What becomes of a proposal in an answer's `next[]`: admitted, surfaced or refused, by one total function.
//!
//! It knows the frozen jobs of the run and what was proposed before; it does not know rows, or who decides later.

mod draft;

use serde::{Deserialize, Serialize};

use super::contract::Proposal;
use super::frozen::{JobSpec, JobType, RunSpec};
use super::word::word_enum;

pub use draft::{draft, name};

/// A proposal less confident than this is only shown.
pub const CONFIDENCE: f64 = 0.5;

word_enum! {
    /// Where a proposal is.
    ProposalState "proposal state" {
        /// Sealed with its answer; no driver has looked at it yet.
        Pending "pending",
        /// It is a job of the run.
        Admitted "admitted",
        /// Shown to a person, who may admit or dismiss it.
        Surfaced "surfaced",
        /// It can't be a job of this run.
        Refused "refused",
        /// A person doesn't want it.
        Dismissed "dismissed",
    }
}

word_enum! {
    /// Why a proposal can't become a job.
    Flaw "flaw of a proposal" {
        /// A type that does not exist.
        UnknownType "unknown_type",
        /// A review judges for a panel, a checkpoint and a landing are a person's: the workflow alone places them.
        ReservedType "reserved_type",
        /// Nothing to do.
        NoObjective "no_objective",
        /// A role that the run does not have.
        UnknownRole "unknown_role",
        /// A lane that the run does not have, or not for this role.
        UnknownLane "unknown_lane",
        /// An artifact that no job of the run leaves, or that only comes after the landing.
        UnknownInput "unknown_input",
        /// The same was proposed before.
        Repeated "repeated",
        /// Its proposer was sent back since.
        Void "void",
    }
}

word_enum! {
    /// Why a proposal is only shown.
    Doubt "doubt about a proposal" {
        /// A proposal of a proposal of ..., further than `budget.next_depth`.
        NextDepth "next_depth",
        /// Type and inputs of one that was admitted before, with other words.
        Alike "alike",
        /// The agent itself is not sure.
        LowConfidence "low_confidence",
    }
}

impl Flaw {
    /// In words.
    pub const fn reason(self) -> &'static str {
        match self {
            Flaw::UnknownType => "there is no such type of job",
            Flaw::ReservedType => "only the workflow places a review, a checkpoint or a landing",
            Flaw::NoObjective => "it says nothing to do",
            Flaw::UnknownRole => "the run has no such role",
            Flaw::UnknownLane => "the role has no such lane in this run",
            Flaw::UnknownInput => "no job before the landing leaves an artifact that it wants",
            Flaw::Repeated => "the same was proposed before",
            Flaw::Void => "the job that proposed it was sent back",
        }
    }
}

impl Doubt {
    /// In words.
    pub const fn reason(self) -> &'static str {
        match self {
            Doubt::NextDepth => "it is a proposal of a proposal, further than budget.next_depth",
            Doubt::Alike => "another one of its type and inputs is a job already",
            Doubt::LowConfidence => "its confidence is under 0.5",
        }
    }
}

/// How a proposal compares with earlier ones of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// Its type with these inputs is new.
    New,
    /// Type and inputs are a job's already, the objective is not.
    Alike,
    /// All of it was proposed before.
    Same,
}

/// What a type word asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Work that an agent may propose.
    Work,
    /// Something that only the workflow places.
    Reserved,
    /// Nothing that exists.
    Unknown,
}

/// Everything about a proposal that decides what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Its type.
    pub asked: Asked,
    /// It says what to do.
    pub has_objective: bool,
    /// The run has its role.
    pub is_role_known: bool,
    /// The role has its lane.
    pub is_lane_known: bool,
    /// Jobs of the run leave what it wants.
    pub are_inputs_known: bool,
    /// Whether it was there before.
    pub likeness: Likeness,
    /// Within `budget.next_depth`.
    pub is_within_depth: bool,
    /// The agent is confident.
    pub is_confident: bool,
}

/// What becomes of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It becomes a job, which waits for a person's gate.
    Admit,
    /// It is shown; a person may admit or dismiss it.
    Surface(Doubt),
    /// It is told and kept, and nothing comes of it.
    Refuse(Flaw),
}

/// Decides; the first that holds counts: what can't be comes before what is doubtful.
pub const fn weigh(claims: Claims) -> Fate {
    let Claims { asked, has_objective, is_role_known, is_lane_known, are_inputs_known, likeness, .. } = claims;
    match asked {
        Asked::Unknown => return Fate::Refuse(Flaw::UnknownType),
        Asked::Reserved => return Fate::Refuse(Flaw::ReservedType),
        Asked::Work => {}
    }
    match (has_objective, is_role_known, is_lane_known, are_inputs_known, likeness) {
        (false, _, _, _, _) => Fate::Refuse(Flaw::NoObjective),
        (_, false, _, _, _) => Fate::Refuse(Flaw::UnknownRole),
        (_, _, false, _, _) => Fate::Refuse(Flaw::UnknownLane),
        (_, _, _, false, _) => Fate::Refuse(Flaw::UnknownInput),
        (_, _, _, _, Likeness::Same) => Fate::Refuse(Flaw::Repeated),
        _ if !claims.is_within_depth => Fate::Surface(Doubt::NextDepth),
        (_, _, _, _, Likeness::Alike) => Fate::Surface(Doubt::Alike),
        _ if !claims.is_confident => Fate::Surface(Doubt::LowConfidence),
        _ => Fate::Admit,
    }
}

/// A proposal that was admitted, surfaced or dismissed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// Its type and inputs, as [`likeness_key`] gives them.
    pub key: String,
    /// What it says to do.
    pub objective: String,
    /// It is a job of the run.
    pub is_admitted: bool,
}

/// Where a proposal is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Scene<'a> {
    /// The run.
    pub run: &'a RunSpec,
    /// Its frozen jobs, in the generation in force.
    pub jobs: &'a [JobSpec],
    /// Whose answer it was in.
    pub proposer: &'a JobSpec,
    /// Landings that have not gone: they will wait for it.
    pub landings: &'a [String],
    /// 1 for a proposal of the workflow's own job, 2 for one of a proposed job, ...
    pub depth: u32,
    /// The run has a commit to work from.
    pub has_base: bool,
    /// What was proposed before.
    pub earlier: &'a [Earlier],
}

/// Looks at a proposal.
pub fn claims(proposal: &Proposal, scene: &Scene<'_>) -> Claims {
    let role = role(proposal, scene);
    Claims {
        asked: asked(&proposal.kind),
        has_objective: !proposal.objective.trim().is_empty(),
        is_role_known: role.is_some_and(|role| scene.run.roles.contains_key(role)),
        is_lane_known: proposal.lane.as_deref().is_none_or(|lane| has_lane(scene, role, lane)),
        are_inputs_known: inputs(proposal, &scene.proposer.id).iter().all(|input| leaves(scene, input)),
        likeness: likeness(proposal, scene),
        is_within_depth: scene.depth <= scene.run.budget.next_depth,
        is_confident: proposal.confidence >= CONFIDENCE,
    }
}

/// What a type word asks for.
pub fn asked(word: &str) -> Asked {
    match kind(word) {
        None => Asked::Unknown,
        Some(JobType::Review | JobType::Checkpoint | JobType::Land) => Asked::Reserved,
        Some(JobType::Generic | JobType::Draft | JobType::Build | JobType::Test | JobType::Synthesis) => Asked::Work,
    }
}

fn kind(word: &str) -> Option<JobType> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}

/// The role it names, else its proposer's.
fn role<'a>(proposal: &'a Proposal, scene: &Scene<'a>) -> Option<&'a str> {
    proposal.role.as_deref().or(scene.proposer.role.as_deref())
}

fn has_lane(scene: &Scene<'_>, role: Option<&str>, lane: &str) -> bool {
    let allowed = role.and_then(|role| scene.run.roles.get(role)).map(|role| role.lanes.as_slice()).unwrap_or_default();
    scene.run.lanes.contains_key(lane) && (allowed.is_empty() || allowed.iter().any(|name| name == lane))
}

/// What it wants, as `job.name`, each once and in order; a bare name is an artifact of the proposer.
pub fn inputs(proposal: &Proposal, proposer: &str) -> Vec<String> {
    let whole = |input: &String| if input.contains('.') { input.clone() } else { format!("{proposer}.{input}") };
    let mut inputs: Vec<String> = proposal.inputs.iter().map(whole).collect();
    inputs.sort();
    inputs.dedup();
    inputs
}

fn leaves(scene: &Scene<'_>, input: &str) -> bool {
    let Some((job, name)) = input.split_once('.') else { return false };
    let found = scene.jobs.iter().find(|spec| spec.id == job);
    found.is_some_and(|spec| spec.produces.iter().any(|produce| produce.name == name) && !is_behind(scene, job))
}

/// Whether a job comes after a landing that has not gone: nothing proposed may wait for it.
fn is_behind(scene: &Scene<'_>, job: &str) -> bool {
    let mut open = vec![job];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(name) = open.pop() {
        if scene.landings.iter().any(|landing| landing == name) {
            return true;
        }
        if seen.insert(name) {
            let spec = scene.jobs.iter().find(|spec| spec.id == name);
            open.extend(spec.into_iter().flat_map(|spec| spec.needs.iter().map(String::as_str)));
        }
    }
    false
}

/// Type and inputs: what makes two proposals the same step.
pub fn likeness_key(proposal: &Proposal, proposer: &str) -> String {
    std::iter::once(proposal.kind.clone()).chain(inputs(proposal, proposer)).collect::<Vec<_>>().join(" ")
}

fn likeness(proposal: &Proposal, scene: &Scene<'_>) -> Likeness {
    let key = likeness_key(proposal, &scene.proposer.id);
    let alike: Vec<&Earlier> = scene.earlier.iter().filter(|earlier| earlier.key == key).collect();
    let is_there = |earlier: &&Earlier| earlier.is_admitted;
    let is_same = |earlier: &&Earlier| earlier.objective.trim() == proposal.objective.trim();
    match (alike.iter().any(is_same), alike.iter().any(is_there)) {
        (true, _) => Likeness::Same,
        (false, true) => Likeness::Alike,
        (false, false) => Likeness::New,
    }
}

#[cfg(test)]
mod tests;
