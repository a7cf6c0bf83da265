//! Each job by itself.

use std::path::Path;

use super::super::fault::Fault;
use super::super::jobs::{Job, has_no_worker, least_effect};
use super::super::keys;
use super::lanes::unknown_lane;
use super::{Facts, nearest_hint};
use crate::domain::frozen::{Effect, JobType, Produce, RoleSpec, TreeKind};
use crate::domain::scope::{self, Scope};

/// Keys that say how work is done: a person's gate and a landing have none of it.
const WORKERS: &[&str] = &[
    "role",
    "lane",
    "reviews",
    "prompt",
    "inputs",
    "tree",
    "writes",
    "forbids",
    "produces",
    "process",
    "process_execution",
    "shared",
    "ephemeral",
    "quorum",
    "on_exit_zero",
    "next_attempt",
    "allow_empty",
    "allow_overlap",
];
/// Keys of a landing.
const LANDING: &[&str] = &["into", "land_style", "trailers"];

/// Every fault of a job that shows without its neighbours.
pub(super) fn check(job: &Job, facts: &Facts<'_>) -> Vec<Fault> {
    let mut check = Check { job, faults: Vec::new() };
    if job.section.has("type") || !job.section.meant("type") {
        check.kind();
        check.role_and_lane(facts);
    }
    check.tree(facts.git);
    check.effect();
    check.produces();
    check.faults
}

struct Check<'a> {
    job: &'a Job,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, key: &str, message: String, hint: impl Into<String>) {
        self.faults.push(Fault::new(self.job.place(key), self.job.key(key), message).hint(hint));
    }

    fn warning(&mut self, key: &str, message: String, hint: impl Into<String>) {
        self.faults.push(Fault::new(self.job.place(key), self.job.key(key), message).hint(hint).as_warning());
    }

    fn kind(&mut self) {
        let (spec, section) = (&self.job.spec, &self.job.section);
        let kind = section.text("type").unwrap_or("generic").to_owned();
        let misplaced: Vec<&str> = if has_no_worker(spec.kind) {
            let checkpoint: &[&str] = if spec.kind == JobType::Checkpoint { &["verify"] } else { &[] };
            WORKERS.iter().chain(checkpoint).copied().filter(|key| section.has(key)).collect()
        } else {
            Vec::new()
        };
        for key in misplaced {
            let message = format!("a `{kind}` job has no `{key}`: no agent works it");
            self.fault(key, message, "leave it out");
        }
        if spec.kind != JobType::Land {
            for key in LANDING.iter().filter(|key| section.has(key)) {
                self.fault(key, format!("`{key}` means something for `type = \"land\"` only"), "leave it out");
            }
        }
        self.review(&kind);
    }

    fn review(&mut self, kind: &str) {
        let (spec, section) = (&self.job.spec, &self.job.section);
        if spec.reviews.is_some() && spec.kind != JobType::Review {
            if !has_no_worker(spec.kind) {
                self.fault("type", format!("a job that reviews is no `{kind}` job"), "leave out `type`");
            }
            return;
        }
        if spec.kind == JobType::Review && !section.meant("reviews") {
            let hint = "write `reviews = \"JOB\"`, or `reviews = { range = \"A..B\" }`";
            self.fault("type", format!("review `{}` does not say what it reviews", spec.id), hint);
        }
        if section.has("revisions") && spec.reviewed_job().is_none() {
            let message = "`revisions` is for a job that reviews another".to_owned();
            self.fault("revisions", message, "write it on the review, or leave it out");
        }
        if spec.kind == JobType::Review && section.text("on_exit_zero") == Some("complete") {
            let message = "a review without a verdict is never complete".to_owned();
            self.fault("on_exit_zero", message, "leave it out");
        }
    }

    fn role_and_lane(&mut self, facts: &Facts<'_>) {
        let (spec, section) = (&self.job.spec, &self.job.section);
        if has_no_worker(spec.kind) {
            return;
        }
        let Some(role_name) = &spec.role else {
            if !section.meant("role") {
                let message = format!("job `{}` has no role", spec.id);
                self.fault("id", message, "write `role = \"author\"`, or any name for who does it");
            }
            return;
        };
        self.doubt_role(role_name, facts);
        let lanes = &facts.settings.lanes;
        match &spec.lane {
            Some(lane) if !lanes.contains_key(lane) => {
                // The only lane of a role is derived: its fault is the role's.
                if section.has("lane") {
                    let fault = unknown_lane(section, "lane", 0, lane, facts.settings);
                    self.faults.push(Fault { key: self.job.key("lane"), ..fault });
                }
            }
            Some(lane) => self.allowed_lane(lane, role_name, facts.settings.roles.get(role_name)),
            None if section.meant("lane") => {}
            None => {
                if facts.settings.roles.get(role_name).is_none_or(|role| role.lanes.is_empty()) {
                    let message = format!("job `{}` has no lane, and nothing declares one", spec.id);
                    let hint = "declare one here or in config.toml: [lanes.NAME] command = [\"..\"]";
                    self.fault("id", message, hint);
                }
            }
        }
    }

    /// A role needs no declaration, so a slip of the pen shows only by its likeness to a declared one.
    fn doubt_role(&mut self, role: &str, facts: &Facts<'_>) {
        let declared: Vec<&str> = facts.merged.named("roles").map(|(name, _)| name.as_str()).collect();
        if declared.contains(&role) || !self.job.section.has("role") {
            return;
        }
        if let Some(nearest) = keys::nearest(role, declared) {
            let message = format!("role `{role}` is declared nowhere");
            self.warning("role", message, format!("did you mean `{nearest}`?"));
        }
    }

    fn allowed_lane(&mut self, lane: &str, role_name: &str, role: Option<&RoleSpec>) {
        let Some(role) = role.filter(|role| !role.lanes.iter().any(|allowed| allowed == lane)) else { return };
        let message = format!("role `{role_name}` may not be played by lane `{lane}`");
        let hint = nearest_hint(lane, role.lanes.iter());
        self.fault("lane", message, hint);
    }

    fn tree(&mut self, git: bool) {
        let (spec, section) = (&self.job.spec, &self.job.section);
        if !spec.writes.is_empty() && spec.tree != TreeKind::Own {
            let message = format!("job `{}` has `writes`, and would work in no tree of its own", spec.id);
            self.fault("tree", message, "leave out `tree`, or `writes`");
        }
        if spec.tree == TreeKind::Own && !git {
            let key = if section.has("tree") { "tree" } else { "writes" };
            let message = format!("job `{}` wants a work tree of its own, and there is no git repository", spec.id);
            self.fault(key, message, "run `git init`, or leave out `writes` and use `produces`");
        }
        if spec.kind == JobType::Land && !git {
            let message = format!("job `{}` lands, and there is no git repository", spec.id);
            self.fault("type", message, "run `git init`, or leave the job out");
        }
        if spec.writes.is_empty() && !spec.forbids.is_empty() && !section.meant("writes") {
            self.warning("forbids", "`forbids` without `writes` forbids nothing".to_owned(), "leave it out");
        }
    }

    fn effect(&mut self) {
        let (spec, section) = (&self.job.spec, &self.job.section);
        let least = least_effect(spec, section);
        let written = section.text("effect").and_then(super::super::settings::word::<Effect>);
        if written.is_some_and(|written| written < least) {
            let message = format!("job `{}` reaches further than it says", spec.id);
            let hint = format!("its other keys make it {least:?}; an effect can only be raised").to_lowercase();
            self.fault("effect", message, hint);
        }
        if let Some(ephemeral) = &spec.ephemeral
            && !ephemeral.resource.is_empty()
            && !spec.shared.contains(&ephemeral.resource)
        {
            let message = format!("`{}` is no shared resource of job `{}`", ephemeral.resource, spec.id);
            let hint = format!("write `shared = [\"{}\"]`", ephemeral.resource);
            self.fault("ephemeral", message, hint);
        }
    }

    fn produces(&mut self) {
        let spec = &self.job.spec;
        let scope = Scope::new(&spec.writes, &spec.forbids).ok().filter(|_| spec.tree == TreeKind::Own);
        for (index, produce) in spec.produces.iter().enumerate() {
            if let Some((message, hint)) = self.problem_of(produce, index, scope.as_ref()) {
                let key = self.job.key("produces");
                self.faults.push(Fault::new(self.job.section.part("produces", index), key, message).hint(hint));
            }
        }
    }

    fn problem_of(&self, produce: &Produce, index: usize, scope: Option<&Scope>) -> Option<(String, String)> {
        let spec = &self.job.spec;
        let section = self.job.section.sections("produces").get(index)?;
        let name = &produce.name;
        if spec.produces[..index].iter().any(|other| other.name == *name && !name.is_empty()) {
            return Some((format!("two artifacts of job `{}` are named `{name}`", spec.id), "rename one".to_owned()));
        }
        match (&produce.path, section.meant("from")) {
            (Some(_), true) => {
                let message = format!("artifact `{name}` has both `path` and `from`");
                Some((message, "keep one of the two".to_owned()))
            }
            (None, false) if !section.meant("path") => {
                let message = "an artifact that comes from nowhere".to_owned();
                Some((message, "write `path = \"..\"`, or `from = \"stdout\"`".to_owned()))
            }
            (Some(path), _) => {
                let violation = scope.and_then(|scope| scope.refuses(Path::new(path)));
                let protected = scope::protected_part(Path::new(path)).is_some();
                if let Some(violation) = violation {
                    let message = format!("artifact `{name}` at `{path}` is outside `writes` ({})", violation.word());
                    return Some((message, format!("add `{path}` to `writes`, or use `from = \"stdout\"`")));
                }
                protected.then(|| (format!("artifact `{name}` at `{path}` is a protected path"), "move it".to_owned()))
            }
            (None, _) => None,
        }
    }
}
