//! What a workflow and its configuration say together, before parameters have values.

use std::collections::BTreeMap;

use super::fault::{Fault, Faults, Place, in_reading_order};
use super::import::{self, Imported};
use super::jobs::{self, Job};
use super::keys::Level;
use super::origin::{self, Setting};
use super::reader::{self, ParamUse, Reading, Source};
use super::section::Section;
use super::settings::{self, FileRef, Settings};
use crate::domain::frozen::{JobSpec, LaneSpec, Limits, Notify, RoleSpec, RunSpec, TreeSpec};

/// Everything that a definition is read from.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// The workflow file.
    pub workflow: Source,
    /// The repository's `config.toml`.
    pub config: Option<Source>,
    /// The user's `config.toml`.
    pub user: Option<Source>,
    /// The store stands in a git repository.
    pub git: bool,
    /// `--constrained`: the run is, whatever the workflow says.
    pub constrained: bool,
}

/// A parameter of a workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// A value must be given.
    pub required: bool,
    /// The value when none is given.
    pub default: Option<String>,
    /// What it is for; empty when nobody says.
    pub title: String,
    /// Where it is declared.
    pub at: Place,
}

/// A workflow that is valid; strings still hold their templates, prompts and instructions are not read.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The workflow file's name as it is shown.
    pub file: String,
    /// What is said once a run.
    pub run: RunSpec,
    /// The jobs, in the order of the file.
    pub jobs: Vec<JobSpec>,
    /// Declared parameters.
    pub params: BTreeMap<String, Param>,
    /// Every setting of the merged configuration with its origin.
    pub settings: Vec<Setting>,
    /// What is probably not meant.
    pub warnings: Vec<Fault>,
    /// Where scopes and write paths stand, by the full name of their key.
    pub(super) places: BTreeMap<String, Place>,
    /// Prompt files by job.
    pub(super) prompts: BTreeMap<String, FileRef>,
    /// Instruction files by role.
    pub(super) instructions: BTreeMap<String, FileRef>,
}

/// What holds for every workflow: the repository's and the user's configuration together.
#[derive(Clone, Debug)]
pub struct Config {
    /// Lanes by name.
    pub lanes: BTreeMap<String, LaneSpec>,
    /// Roles by name, their instructions not read.
    pub roles: BTreeMap<String, RoleSpec>,
    /// Timings.
    pub limits: Limits,
    /// How a person is told.
    pub notify: Notify,
    /// Phrases that stop a run.
    pub stop_phrases: Vec<String>,
    /// What makes a work tree usable.
    pub tree: TreeSpec,
    /// Jobs that may hold a lease at once.
    pub max_active_jobs: u32,
    /// Every setting with its origin.
    pub settings: Vec<Setting>,
    /// What is probably not meant.
    pub warnings: Vec<Fault>,
}

/// Reads a workflow with its configuration.
///
/// # Errors
/// Every fault of every file at once, warnings among them.
pub fn read(inputs: &Inputs) -> Result<Definition, Faults> {
    if !import::is_json(&inputs.workflow.text) {
        return read_toml(inputs);
    }
    let name = &inputs.workflow.name;
    let Imported { text, warnings } = import::import(name, &inputs.workflow.text)?;
    let workflow = Source { name: name.clone(), text };
    match read_toml(&Inputs { workflow, ..inputs.clone() }) {
        Ok(mut definition) => {
            definition.warnings = without_lines(name, warnings, definition.warnings);
            Ok(definition)
        }
        Err(Faults(faults)) => Err(Faults(without_lines(name, warnings, faults))),
    }
}

/// Lines of a translation mean nothing to who wrote the original.
fn without_lines(file: &str, mut warnings: Vec<Fault>, faults: Vec<Fault>) -> Vec<Fault> {
    let fault = |fault: Fault| if fault.file == file { Fault { line: 0, column: 0, ..fault } } else { fault };
    warnings.extend(faults.into_iter().map(fault));
    warnings
}

fn read_toml(inputs: &Inputs) -> Result<Definition, Faults> {
    let workflow = reader::read(&inputs.workflow, Level::Workflow);
    let Layers { section: config, mut faults, is_broken, param_uses } =
        read_layers(inputs.config.as_ref(), inputs.user.as_ref());
    faults.extend(workflow.faults.iter().cloned());
    let merged = workflow.section.shared_with(Level::Config).over(config);
    let mut settings = settings::settings(&merged);
    let jobs = jobs::jobs(workflow.section.sections("jobs"), &mut settings, inputs.git);
    let params = params(&workflow.section);
    let run = run(&workflow, &merged, &settings, jobs.len(), inputs.constrained);
    if !is_broken && !workflow.is_broken {
        faults.extend(super::rules::check(&super::rules::Facts {
            workflow: &workflow.section,
            merged: &merged,
            settings: &settings,
            jobs: &jobs,
            params: &params,
            param_uses: &workflow.param_uses,
            config_param_uses: &param_uses,
            run: &run,
            git: inputs.git,
        }));
    }
    let names = [Some(&inputs.workflow), inputs.config.as_ref(), inputs.user.as_ref()];
    let warnings = refuse_errors(faults, &names)?;
    Ok(Definition {
        file: inputs.workflow.name.clone(),
        run,
        places: places(&jobs, &merged),
        prompts: jobs.iter().filter_map(|job| Some((job.spec.id.clone(), job.prompt.clone()?))).collect(),
        jobs: jobs.into_iter().map(|job| job.spec).collect(),
        params,
        settings: origin::settings(&merged),
        warnings,
        instructions: settings.instructions,
    })
}

/// Reads configuration alone.
///
/// # Errors
/// Every fault of both files at once, warnings among them.
pub fn read_config(config: Option<&Source>, user: Option<&Source>) -> Result<Config, Faults> {
    let Layers { section: merged, mut faults, is_broken, .. } = read_layers(config, user);
    let settings = settings::settings(&merged);
    if !is_broken {
        faults.extend(super::rules::check_settings(&merged, &settings));
    }
    let warnings = refuse_errors(faults, &[config, user])?;
    Ok(Config {
        lanes: settings.lanes,
        roles: settings.roles,
        limits: settings.limits,
        notify: settings.notify,
        stop_phrases: settings.stop_phrases,
        tree: settings.tree,
        max_active_jobs: settings.max_active_jobs,
        settings: origin::settings(&merged),
        warnings,
    })
}

/// Both files of configuration, one over the other.
struct Layers {
    section: Section,
    faults: Vec<Fault>,
    is_broken: bool,
    param_uses: Vec<ParamUse>,
}

fn read_layers(config: Option<&Source>, user: Option<&Source>) -> Layers {
    let section = Section::new(Level::Config, Place::whole("config.toml"));
    let mut layers = Layers { section, faults: Vec::new(), is_broken: false, param_uses: Vec::new() };
    for source in [user, config].into_iter().flatten() {
        let reading = reader::read(source, Level::Config);
        layers.section = reading.section.over(layers.section);
        layers.faults.extend(reading.faults);
        layers.param_uses.extend(reading.param_uses);
        layers.is_broken |= reading.is_broken;
    }
    layers
}

fn refuse_errors(faults: Vec<Fault>, files: &[Option<&Source>]) -> Result<Vec<Fault>, Faults> {
    let names: Vec<&str> = files.iter().flatten().map(|source| source.name.as_str()).collect();
    let faults = in_reading_order(faults, &names);
    if faults.iter().any(|fault| !fault.warning) { Err(Faults(faults)) } else { Ok(faults) }
}

fn places(jobs: &[Job], merged: &Section) -> BTreeMap<String, Place> {
    let writes = jobs.iter().map(|job| (job.key("writes"), job.place("writes").clone()));
    let lanes = merged.named("lanes");
    let paths = lanes.map(|(name, lane)| (format!("lanes.{name}.write_paths"), lane.place("write_paths").clone()));
    writes.chain(paths).collect()
}

fn params(workflow: &Section) -> BTreeMap<String, Param> {
    let param = |section: &Section| Param {
        required: section.flag("required").unwrap_or(false),
        default: section.text("default").map(str::to_owned),
        title: section.string("title"),
        at: section.at.clone(),
    };
    workflow.named("params").map(|(name, section)| (name.clone(), param(section))).collect()
}

fn run(workflow: &Reading, merged: &Section, settings: &Settings, jobs: usize, constrained: bool) -> RunSpec {
    let section = &workflow.section;
    let author_roles = section.texts("author_roles").map_or_else(|| vec!["author".to_owned()], <[String]>::to_vec);
    let constrained = constrained || section.text("operator_mode") == Some("constrained");
    let mut lanes = settings.lanes.clone();
    if constrained {
        for lane in lanes.values_mut() {
            lane.sandbox = crate::domain::frozen::Sandbox::Scope;
        }
    }
    RunSpec {
        workflow: section.string("id"),
        title: section.string("title"),
        params: BTreeMap::new(),
        autonomy: section.text("autonomy").and_then(settings::word).unwrap_or_default(),
        author_roles,
        require_distinct_models: section.flag("require_distinct_models").unwrap_or(false),
        budget: settings::budget(merged.section("budget"), jobs),
        max_active_jobs: settings.max_active_jobs,
        lanes,
        roles: settings.roles.clone(),
        limits: settings.limits.clone(),
        stop_phrases: settings.stop_phrases.clone(),
        standing_answer: None,
        tree: settings.tree.clone(),
        constrained,
        notify: settings.notify.clone(),
    }
}
