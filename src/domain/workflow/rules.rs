//! What makes no sense, though each value by itself does.
//!
//! It finds faults and changes nothing. Lanes and roles are looked at in `lanes`, each job by itself in `jobs`,
//! jobs beside each other in `edges`.

mod edges;
mod jobs;
mod lanes;

use std::collections::{BTreeMap, BTreeSet};

use super::definition::Param;
use super::fault::Fault;
use super::jobs::Job;
use super::keys;
use super::reader::ParamUse;
use super::section::Section;
use super::settings::Settings;
use crate::domain::frozen::RunSpec;

pub(super) use lanes::check as check_settings;

/// Everything there is to look at.
pub(super) struct Facts<'a> {
    pub workflow: &'a Section,
    pub merged: &'a Section,
    pub settings: &'a Settings,
    pub jobs: &'a [Job],
    pub params: &'a BTreeMap<String, Param>,
    pub param_uses: &'a [ParamUse],
    /// Those of configuration files, which other workflows may declare.
    pub config_param_uses: &'a [ParamUse],
    pub run: &'a RunSpec,
    pub git: bool,
}

/// Every fault of a workflow with its configuration.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Fault> {
    let mut faults = check_settings(facts.merged, facts.settings);
    faults.extend(lanes::check_constrained(facts.merged, facts.run));
    for job in facts.jobs {
        faults.extend(jobs::check(job, facts));
    }
    faults.extend(edges::check(facts));
    params(facts, &mut faults);
    top(facts, &mut faults);
    faults
}

fn params(facts: &Facts<'_>, faults: &mut Vec<Fault>) {
    let lanes = lanes_in_use(facts);
    let concerns = |used: &&ParamUse| match used.key.strip_prefix("lanes.").and_then(|rest| rest.split_once('.')) {
        Some((lane, _)) => lanes.contains(lane),
        None => true,
    };
    let uses = facts.param_uses.iter().chain(facts.config_param_uses.iter().filter(concerns));
    for used in uses.filter(|used| !facts.params.contains_key(&used.name)) {
        let message = format!("`${{params.{}}}` names a parameter that nothing declares", used.name);
        let declared = facts.params.keys().map(String::as_str);
        let hint = keys::nearest(&used.name, declared).map_or_else(
            || format!("declare it: [params] {} = {{ required = true }}", used.name),
            |nearest| format!("did you mean `${{params.{nearest}}}`?"),
        );
        faults.push(Fault::new(&used.at, &used.key, message).hint(hint));
    }
    for (name, section) in facts.workflow.named("params") {
        if section.flag("required") == Some(true) && section.has("default") {
            let message = format!("parameter `{name}` is required and has a default, which is never used");
            let fault = Fault::new(section.place("default"), format!("params.{name}.default"), message);
            faults.push(fault.hint("keep one of the two").as_warning());
        }
    }
}

/// Lanes that a job of the workflow may come to.
fn lanes_in_use<'a>(facts: &Facts<'a>) -> BTreeSet<&'a str> {
    let mut open: Vec<&str> = Vec::new();
    for job in facts.jobs {
        match (&job.spec.lane, job.spec.role.as_ref().and_then(|role| facts.settings.roles.get(role))) {
            (Some(lane), _) => open.push(lane),
            (None, Some(role)) => open.extend(role.lanes.iter().map(String::as_str)),
            (None, None) => {}
        }
    }
    let mut used = BTreeSet::new();
    while let Some(lane) = open.pop() {
        if used.insert(lane) {
            let spec = facts.settings.lanes.get(lane);
            open.extend(spec.iter().flat_map(|spec| &spec.fallback).map(String::as_str));
        }
    }
    used
}

fn top(facts: &Facts<'_>, faults: &mut Vec<Fault>) {
    let section = facts.workflow;
    if section.has("jobs") && facts.jobs.is_empty() {
        let fault = Fault::new(section.place("jobs"), "jobs", "a workflow without a job does nothing");
        faults.push(fault.hint("begin each with `[[jobs]]`"));
    }
    for (index, role) in section.list("author_roles").iter().enumerate() {
        if !facts.settings.roles.contains_key(role) {
            let message = format!("no job has the role `{role}`");
            let hint = nearest_hint(role, facts.settings.roles.keys());
            faults
                .push(Fault::new(section.part("author_roles", index), "author_roles", message).hint(hint).as_warning());
        }
    }
    let workers = facts.jobs.iter().filter(|job| job.spec.role.is_some()).count();
    if usize::try_from(facts.run.budget.launches).is_ok_and(|launches| launches < workers) {
        let message = format!("a budget of {} launches for {workers} jobs", facts.run.budget.launches);
        let place = facts.merged.section("budget").map_or(&section.at, |budget| budget.place("launches"));
        let fault = Fault::new(place, "budget.launches", message);
        faults.push(fault.hint("each job needs at least one").as_warning());
    }
}

/// "did you mean" for a name among names, or the list of them.
fn nearest_hint<'a>(name: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    match keys::nearest(name, known.clone().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => match known.map(String::as_str).collect::<Vec<_>>().as_slice() {
            [] => "there are none".to_owned(),
            known => format!("there are: {}", known.join(", ")),
        },
    }
}
