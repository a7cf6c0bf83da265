//! Jobs as written, and what follows from what is written: type, role, needs, lane, tree, effect.
//!
//! Pure derivation: it takes what is there and never refuses. Whether the outcome makes sense is for `rules`.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::Place;
use super::section::Section;
use super::settings::{FileRef, Settings, word};
use crate::domain::frozen::{
    Effect, Ephemeral, JobSpec, JobType, LaneMode, LaneSpec, OnExitZero, Origin, Produce, Reviews, RoleContext,
    RoleSpec, TreeKind,
};

/// The role of a review that names none.
const REVIEWER: &str = "reviewer";
/// How often a review may send its subject back when it does not say.
const REVISIONS: u32 = 2;
/// The strike that ends a job when it does not say.
const MAX_STRIKES: u32 = 3;

/// A job with the table it came from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Job {
    pub spec: JobSpec,
    pub section: Section,
    pub prompt: Option<FileRef>,
}

impl Job {
    /// The key's full name, as in `jobs.draft.writes`.
    pub fn key(&self, name: &str) -> String {
        format!("jobs.{}.{name}", self.spec.id)
    }

    pub fn place(&self, name: &str) -> &Place {
        self.section.place(name)
    }
}

/// Every job with all that follows; roles that only jobs name are added to the settings.
pub(super) fn jobs(tables: &[Section], settings: &mut Settings, git: bool) -> Vec<Job> {
    let mut jobs: Vec<Job> = tables.iter().map(as_written).collect();
    for job in &mut jobs {
        follow_review(&mut job.spec, &job.section);
    }
    follow_land(&mut jobs);
    add_roles(&jobs, settings);
    for job in &mut jobs {
        follow_role(&mut job.spec, settings);
        job.spec.tree = tree(&job.spec, &job.section, git);
        job.spec.effect = job.spec.effect.max(least_effect(&job.spec, &job.section));
    }
    mark_same_models(jobs.iter_mut().map(|job| &mut job.spec), &settings.lanes);
    jobs
}

/// How far a job reaches at least, whatever its author says.
pub(super) fn least_effect(spec: &JobSpec, section: &Section) -> Effect {
    if spec.kind == JobType::Land || section.flag("outward") == Some(true) {
        Effect::Outward
    } else if !spec.shared.is_empty() {
        Effect::Shared
    } else if !spec.writes.is_empty() {
        Effect::Write
    } else {
        Effect::Read
    }
}

/// Whether nobody but a person works such a job.
pub(super) fn has_no_worker(kind: JobType) -> bool {
    matches!(kind, JobType::Checkpoint | JobType::Land)
}

fn as_written(section: &Section) -> Job {
    let id = section.string("id");
    let file = |path: &str| FileRef {
        path: path.to_owned(),
        at: section.place("prompt").clone(),
        key: format!("jobs.{id}.prompt"),
    };
    let prompt = section.text("prompt").map(file);
    let spec = JobSpec {
        origin: Origin::Planned,
        id,
        kind: section.text("type").and_then(word).unwrap_or_default(),
        title: section.string("title"),
        role: section.text("role").map(str::to_owned),
        lane: section.text("lane").map(str::to_owned),
        needs: each_once(section.list("needs")),
        reviews: section.reviews("reviews").cloned(),
        objective: section.string("objective"),
        prompt: String::new(),
        inputs: section.list("inputs"),
        tree: TreeKind::None,
        writes: section.list("writes"),
        forbids: section.list("forbids"),
        produces: section.sections("produces").iter().map(produce).collect(),
        verify: section.commands("verify"),
        process: process(section.section("process"), &section.commands("verify")),
        process_execution: section.flag("process_execution").unwrap_or(false),
        effect: section.text("effect").and_then(word).unwrap_or_default(),
        shared: section.list("shared"),
        ephemeral: section.section("ephemeral").map(ephemeral),
        revisions: section.count("revisions").unwrap_or(0),
        quorum: section.count("quorum"),
        max_strikes: section.count("max_strikes").unwrap_or(MAX_STRIKES),
        on_failure: section.text("on_failure").and_then(word).unwrap_or_default(),
        on_exit_zero: section.text("on_exit_zero").and_then(word),
        next_attempt: section.text("next_attempt").and_then(word).unwrap_or_default(),
        allow_empty: section.flag("allow_empty").unwrap_or(false),
        allow_overlap: section.flag("allow_overlap").unwrap_or(false),
        gate_note: section.string("gate_note"),
        into: section.text("into").map(str::to_owned),
        land_style: section.text("land_style").map(str::to_owned),
        trailers: section.flag("trailers").unwrap_or(true),
        commit_message: section.string("commit_message"),
        timeout_ms: section.millis("timeout"),
        fresh: false,
        same_model: false,
    };
    Job { spec, section: section.clone(), prompt }
}

fn produce(section: &Section) -> Produce {
    Produce {
        name: section.string("name"),
        path: section.text("path").map(str::to_owned),
        kind: section.string("kind"),
        required: section.flag("required").unwrap_or(true),
    }
}

/// What verifies a job may also be run on its own.
fn process(section: Option<&Section>, verify: &[Vec<String>]) -> BTreeMap<String, Vec<Vec<String>>> {
    let declared =
        |section: &Section| section.entries().map(|(name, _)| (name.to_owned(), section.commands(name))).collect();
    let mut classes: BTreeMap<String, Vec<Vec<String>>> = section.map(declared).unwrap_or_default();
    if !verify.is_empty() {
        classes.entry("test".to_owned()).or_insert_with(|| verify.to_vec());
    }
    classes
}

fn each_once(mut names: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn ephemeral(section: &Section) -> Ephemeral {
    let argv = |name: &str| section.argv(name).unwrap_or_default().to_vec();
    Ephemeral {
        resource: section.string("resource"),
        create: argv("create"),
        check: argv("check"),
        destroy: argv("destroy"),
    }
}

fn follow_review(spec: &mut JobSpec, section: &Section) {
    if spec.reviews.is_none() {
        return;
    }
    if !section.meant("type") {
        spec.kind = JobType::Review;
    }
    if !section.meant("role") {
        spec.role = Some(REVIEWER.to_owned());
    }
    if let Some(Reviews::Job(subject)) = &spec.reviews {
        if !spec.needs.contains(subject) {
            spec.needs.insert(0, subject.clone());
        }
        spec.revisions = section.count("revisions").unwrap_or(REVISIONS);
    }
}

fn follow_land(jobs: &mut [Job]) {
    let needed: BTreeSet<String> = jobs.iter().flat_map(|job| job.spec.needs.iter().cloned()).collect();
    let is_last = |job: &&Job| job.spec.kind != JobType::Land && !needed.contains(&job.spec.id);
    let last: Vec<String> = jobs.iter().filter(is_last).map(|job| job.spec.id.clone()).collect();
    for job in jobs.iter_mut() {
        if job.spec.kind == JobType::Land {
            job.spec.land_style.get_or_insert_with(|| "squash".to_owned());
            if !job.section.meant("needs") {
                job.spec.needs.clone_from(&last);
            }
        }
    }
}

/// A role needs no declaration; one that reviews is fresh unless somebody wrote `any`.
fn add_roles(jobs: &[Job], settings: &mut Settings) {
    for job in jobs {
        let Some(role) = &job.spec.role else { continue };
        let lanes = || settings.lanes.keys().cloned().collect();
        let spec =
            settings.roles.entry(role.clone()).or_insert_with(|| RoleSpec { lanes: lanes(), ..RoleSpec::default() });
        if job.spec.reviews.is_some() && !settings.declared_context.contains_key(role) {
            spec.context = RoleContext::Fresh;
        }
    }
}

fn follow_role(spec: &mut JobSpec, settings: &Settings) {
    let Some(role) = spec.role.as_ref().and_then(|role| settings.roles.get(role)) else { return };
    spec.fresh = role.context == RoleContext::Fresh;
    if spec.lane.is_none()
        && let [only] = role.lanes.as_slice()
    {
        spec.lane = Some(only.clone());
    }
    if spec.on_exit_zero.is_none() {
        spec.on_exit_zero = Some(on_exit_zero(spec, role, settings));
    }
}

fn on_exit_zero(spec: &JobSpec, role: &RoleSpec, settings: &Settings) -> OnExitZero {
    let lanes = spec.lane.as_ref().map_or(role.lanes.as_slice(), std::slice::from_ref);
    let mut modes = lanes.iter().filter_map(|lane| settings.lanes.get(lane)).map(|lane| lane.mode);
    if spec.kind == JobType::Review || modes.any(|mode| mode == LaneMode::Loop) {
        OnExitZero::Unsealed
    } else {
        OnExitZero::Complete
    }
}

fn tree(spec: &JobSpec, section: &Section, git: bool) -> TreeKind {
    let derived = match spec.kind {
        _ if !spec.writes.is_empty() => TreeKind::Own,
        JobType::Review | JobType::Test | JobType::Synthesis => TreeKind::Tip,
        _ => TreeKind::None,
    };
    match section.text("tree").and_then(word).unwrap_or(derived) {
        TreeKind::Tip if !git => TreeKind::None,
        tree => tree,
    }
}

/// Stamps reviews whose lane declares the model of the lane that they judge.
pub(super) fn mark_same_models<'a>(jobs: impl Iterator<Item = &'a mut JobSpec>, lanes: &BTreeMap<String, LaneSpec>) {
    let mut jobs: Vec<&mut JobSpec> = jobs.collect();
    let declared = |job: &JobSpec| Some((job.id.clone(), model(job, lanes)?.to_owned()));
    let models: BTreeMap<String, String> = jobs.iter().filter_map(|job| declared(job)).collect();
    for job in &mut jobs {
        let subject = job.reviewed_job().and_then(|subject| models.get(subject));
        job.same_model = subject.is_some() && subject.map(String::as_str) == model(job, lanes);
    }
}

/// The model that a job's lane declares.
pub(super) fn model<'a>(job: &JobSpec, lanes: &'a BTreeMap<String, LaneSpec>) -> Option<&'a str> {
    let lane = lanes.get(job.lane.as_ref()?)?;
    Some(lane.model.as_str()).filter(|model| !model.is_empty())
}
