//! From a definition to a snapshot: parameters in place, texts of prompts and roles read.
//!
//! Texts come through [`Texts`]; this file does not know where they stand.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::definition::{Definition, Param};
use super::fault::{Fault, Faults, Place};
use super::jobs::mark_same_models;
use super::keys;
use super::settings::FileRef;
use crate::domain::frozen::{JobSpec, LaneSpec, Reviews, RunSpec, Snapshot, TreeSpec};
use crate::domain::template::{bind_argv, bind_prose, bind_text, names, settle_literals};

/// The schema of what is frozen here.
pub const SNAPSHOT_SCHEMA: &str = "striatum.snapshot/1";

/// The texts of prompt and role files.
pub trait Texts {
    /// The text of a file, by its path below `.striatum/`.
    ///
    /// # Errors
    /// Why it can't be read, as a fragment for people.
    fn text(&self, path: &str) -> Result<String, String>;
}

/// Freezes a definition with the values of its parameters.
///
/// # Errors
/// Every unknown or missing parameter and every unreadable file at once.
pub fn freeze(
    definition: &Definition,
    given: &BTreeMap<String, String>,
    texts: &dyn Texts,
) -> Result<Snapshot, Faults> {
    let mut faults = Vec::new();
    let params = values(definition, given, &mut faults);
    let mut reading = Reading { declared: &definition.params, params, texts, faults };
    let mut run = definition.run.clone();
    for (role, file) in &definition.instructions {
        if let Some(spec) = run.roles.get_mut(role) {
            spec.instructions = reading.text_of(file);
        }
    }
    let mut jobs = definition.jobs.clone();
    for job in &mut jobs {
        if let Some(file) = definition.prompts.get(&job.id) {
            job.prompt = reading.text_of(file);
        }
        bind_job(job, &reading.params);
    }
    bind_run(&mut run, &reading.params);
    // Models may be parameters: only now is it known whether they differ.
    mark_same_models(jobs.iter_mut(), &run.lanes);
    reading.faults.extend(alike(definition, &run, &jobs));
    if !reading.faults.is_empty() {
        return Err(Faults(reading.faults));
    }
    run.params = reading.params;
    Ok(Snapshot { schema: SNAPSHOT_SCHEMA.to_owned(), run, jobs })
}

/// Reviews of the author's own model, where the workflow asks for another.
fn alike(definition: &Definition, run: &RunSpec, jobs: &[JobSpec]) -> Vec<Fault> {
    let alike = jobs.iter().filter(|job| run.require_distinct_models && job.same_model);
    let fault = |job: &JobSpec| {
        let subject = job.reviewed_job().unwrap_or_default();
        let message = format!("`{subject}` and its review `{}` would be of the same model", job.id);
        let key = format!("jobs.{}.reviews", job.id);
        Fault::new(&Place::whole(&definition.file), key, message).hint("give their lanes different models")
    };
    alike.map(fault).collect()
}

/// The bytes whose hash names a snapshot: its JSON, whose order of keys is that of the frozen types.
pub fn canonical_bytes(snapshot: &Snapshot) -> Vec<u8> {
    // Strings, numbers and maps with string keys: nothing in a snapshot can fail to serialize.
    serde_json::to_vec(snapshot).unwrap_or_default()
}

/// A snapshot's name in evidence: `sha256:` and 64 hexadecimal digits.
pub fn hash(snapshot: &Snapshot) -> String {
    sha256(&canonical_bytes(snapshot))
}

/// `sha256:` and 64 hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold("sha256:".to_owned(), |text, byte| text + &format!("{byte:02x}"))
}

fn values(
    definition: &Definition,
    given: &BTreeMap<String, String>,
    faults: &mut Vec<Fault>,
) -> BTreeMap<String, String> {
    let file = Place::whole(&definition.file);
    for name in given.keys().filter(|name| !definition.params.contains_key(*name)) {
        let message = format!("the workflow has no parameter `{name}`");
        let known: Vec<&str> = definition.params.keys().map(String::as_str).collect();
        let hint = match (keys::nearest(name, known.iter().copied()), known.is_empty()) {
            (Some(nearest), _) => format!("did you mean `{nearest}`?"),
            (None, false) => format!("it has: {}", known.join(", ")),
            (None, true) => format!("declare it: [params] {name} = {{ required = true }}"),
        };
        faults.push(Fault::new(&file, name, message).hint(hint));
    }
    let mut values = BTreeMap::new();
    for (name, param) in &definition.params {
        match given.get(name).or(param.default.as_ref()) {
            Some(value) => drop(values.insert(name.clone(), value.clone())),
            None if param.required => {
                let message = format!("parameter `{name}` has no value");
                let hint = match name.as_str() {
                    "task" => "give it with --task \"..\"".to_owned(),
                    name => format!("give it with --param {name}=.."),
                };
                faults.push(Fault::new(&param.at, format!("params.{name}"), message).hint(hint));
            }
            None => drop(values.insert(name.clone(), String::new())),
        }
    }
    values
}

/// Reads prompts and instructions, and remembers what is wrong with them.
struct Reading<'a> {
    declared: &'a BTreeMap<String, Param>,
    params: BTreeMap<String, String>,
    texts: &'a dyn Texts,
    faults: Vec<Fault>,
}

impl Reading<'_> {
    fn text_of(&mut self, file: &FileRef) -> String {
        let text = match self.texts.text(&file.path) {
            Ok(text) => text,
            Err(reason) => {
                let message = format!("`{}` can't be read: {reason}", file.path);
                let hint = format!("the path is looked up below the .striatum folder: .striatum/{}", file.path);
                self.faults.push(Fault::new(&file.at, &file.key, message).hint(hint));
                return String::new();
            }
        };
        let used = names(&text);
        let params = used.iter().filter_map(|name| name.strip_prefix("params."));
        for name in params.filter(|name| !self.declared.contains_key(*name)) {
            let message = format!("`{}` names the parameter `{name}`, which nothing declares", file.path);
            let hint = keys::nearest(name, self.declared.keys().map(String::as_str)).map_or_else(
                || format!("declare it: [params] {name} = {{ required = true }}"),
                |nearest| format!("did you mean `${{params.{nearest}}}`?"),
            );
            self.faults.push(Fault::new(&file.at, &file.key, message).hint(hint));
        }
        bind_prose(&text, &self.params)
    }
}

fn bind_run(run: &mut RunSpec, params: &BTreeMap<String, String>) {
    plain(&mut run.title, params);
    for lane in run.lanes.values_mut() {
        bind_lane(lane, params);
    }
    bind_tree(&mut run.tree, params);
}

fn bind_lane(lane: &mut LaneSpec, params: &BTreeMap<String, String>) {
    plain(&mut lane.model, params);
    argv(&mut lane.command, params);
}

fn bind_tree(tree: &mut TreeSpec, params: &BTreeMap<String, String>) {
    commands(&mut tree.setup, params);
}

fn bind_job(job: &mut JobSpec, params: &BTreeMap<String, String>) {
    for text in [&mut job.title, &mut job.gate_note, &mut job.commit_message] {
        plain(text, params);
    }
    if let Some(into) = &mut job.into {
        plain(into, params);
    }
    if let Some(Reviews::Range(range)) = &mut job.reviews {
        plain(range, params);
    }
    job.objective = bind_prose(&settle_literals(&job.objective), params);
    commands(&mut job.verify, params);
    for class in job.process.values_mut() {
        for word in class.iter_mut().flatten() {
            plain(word, params);
        }
    }
    if let Some(ephemeral) = &mut job.ephemeral {
        for command in [&mut ephemeral.create, &mut ephemeral.check, &mut ephemeral.destroy] {
            argv(command, params);
        }
    }
}

/// A string that is final after this; a name without a value stays, its fault was told.
fn plain(text: &mut String, params: &BTreeMap<String, String>) {
    if let Ok(bound) = bind_text(text, params) {
        *text = bound;
    }
}

fn argv(words: &mut [String], params: &BTreeMap<String, String>) {
    for word in words {
        *word = bind_argv(word, params);
    }
}

fn commands(commands: &mut [Vec<String>], params: &BTreeMap<String, String>) {
    for command in commands {
        argv(command, params);
    }
}
