//! Amending a frozen workflow: which keys may change while a run lives, and what becomes of the snapshot.
//!
//! Values are read as the table of keys reads them in a file. What runs, what may be written and what depends on
//! what stays as it was prepared. This file does not know runs, attempts or the queue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::keys::{self, Level};
use super::reader::{self, Source};
use super::section::{Section, Value};
use crate::domain::frozen::{Budget, JobSpec, Limits, RunSpec, Snapshot};
use crate::domain::template::{bind_prose, names, settle_literals};
use crate::domain::time::show_duration;

/// A key with its new value, as a person types it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// `budget.launches`, `timeout`, ...
    pub key: String,
    /// The value; of `prompt` and `objective` the whole text.
    pub value: String,
}

/// What a key was and is. Texts are told by their hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    /// The key.
    pub key: String,
    /// Its value before.
    pub was: String,
    /// Its value now.
    pub is: String,
}

/// Why a key can't be set so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmendFault {
    /// The key is no key of a workflow.
    #[error("there is no key `{key}` to amend")]
    Unknown {
        /// The key.
        key: String,
        /// The nearest one, or all of them.
        hint: String,
    },
    /// The key is known and does not change while a run lives.
    #[error("`{key}` stays as it was prepared")]
    Fixed {
        /// The key.
        key: String,
    },
    /// The key is a job's, and no job was named.
    #[error("`{key}` belongs to a job; name it")]
    NeedsJob {
        /// The key.
        key: String,
    },
    /// The run has no such job.
    #[error("the run has no job {job}")]
    NoJob {
        /// The job.
        job: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The value makes no sense.
    #[error("{key}={value}: {message}")]
    Value {
        /// The key.
        key: String,
        /// The value; empty for texts.
        value: String,
        /// What is wrong.
        message: String,
        /// What to write.
        hint: String,
    },
}

/// The keys of a run that may be amended beside `budget.*` and `limits.*`.
const MAX_ACTIVE_JOBS: &str = "max_active_jobs";

/// The keys of a job that may be amended.
pub const JOB_KEYS: &[&str] = &["timeout", "max_strikes", "revisions", "lane", "prompt", "objective"];

/// The keys of a lane that may be amended.
pub const LANE_KEYS: &[&str] = &["timeout", "idle_timeout"];

/// Puts new values into a snapshot; only what differs is told.
///
/// # Errors
/// The first key that can't be set so; the snapshot is then of no use.
pub fn amend(snapshot: &mut Snapshot, job: Option<&str>, sets: &[Set]) -> Result<Vec<Changed>, AmendFault> {
    let mut changes = Vec::new();
    for set in sets {
        let (was, is) = match set.key.split_once('.') {
            Some(("budget", name)) => of_budget(&mut snapshot.run.budget, set, name)?,
            Some(("limits", name)) => of_limits(&mut snapshot.run.limits, set, name)?,
            Some(("lanes", rest)) => of_lane_limits(&mut snapshot.run, set, rest)?,
            Some(("parallelism", MAX_ACTIVE_JOBS)) => of_parallelism(&mut snapshot.run, set)?,
            None if set.key == MAX_ACTIVE_JOBS => of_parallelism(&mut snapshot.run, set)?,
            None if JOB_KEYS.contains(&set.key.as_str()) => of_job(snapshot, job, set)?,
            _ => return Err(refused(&set.key)),
        };
        if was != is {
            changes.push(Changed { key: set.key.clone(), was, is });
        }
    }
    mark_same_models(snapshot);
    distinct_models(snapshot, job, sets)?;
    Ok(changes)
}

fn of_budget(budget: &mut Budget, set: &Set, name: &str) -> Result<(String, String), AmendFault> {
    let before = budget.clone();
    let text = |budget: &Budget| match name {
        "requeues" => budget.requeues.to_string(),
        "next_depth" => budget.next_depth.to_string(),
        "launches" => budget.launches.to_string(),
        "no_progress" => show_duration(budget.no_progress_ms),
        "active_time" => show_duration(budget.active_time_ms),
        _ => budget.cost_micro_usd.map_or_else(|| "none".to_owned(), dollars),
    };
    match (name, typed(Level::Budget, name, set)?) {
        ("requeues", Value::Count(count)) => budget.requeues = count,
        ("next_depth", Value::Count(count)) => budget.next_depth = count,
        ("launches", Value::Count(count)) => budget.launches = count,
        ("no_progress", Value::Millis(ms)) => budget.no_progress_ms = ms,
        ("active_time", Value::Millis(ms)) => budget.active_time_ms = ms,
        ("cost_usd", Value::MicroUsd(amount)) => budget.cost_micro_usd = Some(amount),
        _ => return Err(refused(&set.key)),
    }
    Ok((text(&before), text(budget)))
}

fn dollars(micro: u64) -> String {
    let (whole, rest) = (micro / 1_000_000, micro % 1_000_000);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:06}").trim_end_matches('0').to_owned() }
}

fn of_limits(limits: &mut Limits, set: &Set, name: &str) -> Result<(String, String), AmendFault> {
    let Value::Millis(ms) = typed(Level::Limits, name, set)? else { return Err(refused(&set.key)) };
    let place = match name {
        "grace" => &mut limits.grace_ms,
        "starting" => &mut limits.starting_ms,
        "lease" => &mut limits.lease_ms,
        "cooldown" => &mut limits.cooldown_ms,
        "gate_expiry" => &mut limits.gate_expiry_ms,
        "poll" => &mut limits.poll_ms,
        "busy" => &mut limits.busy_ms,
        _ => return Err(refused(&set.key)),
    };
    let was = std::mem::replace(place, ms);
    Ok((show_duration(was), show_duration(ms)))
}

/// `lanes.LANE.timeout` and `lanes.LANE.idle_timeout`: limits of an attempt, which run and widen nothing.
fn of_lane_limits(run: &mut RunSpec, set: &Set, rest: &str) -> Result<(String, String), AmendFault> {
    let (name, key) = rest.rsplit_once('.').ok_or_else(|| refused(&set.key))?;
    let known: Vec<&str> = run.lanes.keys().map(String::as_str).collect();
    let hint = format!("the run has the lanes {}", known.join(", "));
    if !LANE_KEYS.contains(&key) {
        return Err(refused(&set.key));
    }
    let Some(lane) = run.lanes.get_mut(name) else {
        return Err(AmendFault::Unknown { key: set.key.clone(), hint });
    };
    let Value::Millis(ms) = typed(Level::Lane, key, set)? else { return Err(refused(&set.key)) };
    let was = match key {
        "timeout" => Some(std::mem::replace(&mut lane.timeout_ms, ms)),
        _ => lane.idle_timeout_ms.replace(ms),
    };
    Ok((was.map_or_else(|| "none".to_owned(), show_duration), show_duration(ms)))
}

fn of_parallelism(run: &mut RunSpec, set: &Set) -> Result<(String, String), AmendFault> {
    let Value::Count(count) = typed(Level::Parallelism, MAX_ACTIVE_JOBS, set)? else { return Err(refused(&set.key)) };
    let was = std::mem::replace(&mut run.max_active_jobs, count);
    Ok((was.to_string(), count.to_string()))
}

fn of_job(snapshot: &mut Snapshot, job: Option<&str>, set: &Set) -> Result<(String, String), AmendFault> {
    let name = job.ok_or_else(|| AmendFault::NeedsJob { key: set.key.clone() })?;
    let known: Vec<String> = snapshot.jobs.iter().map(|job| job.id.clone()).collect();
    let run = &snapshot.run;
    let Some(spec) = snapshot.jobs.iter_mut().find(|spec| spec.id == name) else {
        return Err(AmendFault::NoJob { job: name.to_owned(), known });
    };
    match set.key.as_str() {
        "timeout" => {
            let Value::Millis(ms) = typed(Level::Job, "timeout", set)? else { return Err(refused(&set.key)) };
            let was = spec.timeout_ms.replace(ms);
            Ok((was.map_or_else(|| "the lane's".to_owned(), show_duration), show_duration(ms)))
        }
        "max_strikes" => {
            let Value::Count(count) = typed(Level::Job, "max_strikes", set)? else { return Err(refused(&set.key)) };
            let was = std::mem::replace(&mut spec.max_strikes, count);
            Ok((was.to_string(), count.to_string()))
        }
        "revisions" => {
            let Value::Count(count) = typed(Level::Job, "revisions", set)? else { return Err(refused(&set.key)) };
            let was = std::mem::replace(&mut spec.revisions, count);
            Ok((was.to_string(), count.to_string()))
        }
        "lane" => of_lane(run, spec, set),
        "objective" => {
            let text = prose(set, &settle_literals(&set.value), &run.params)?;
            let was = std::mem::replace(&mut spec.objective, text);
            Ok((hash(&was), hash(&spec.objective)))
        }
        _ => {
            let text = prose(set, &set.value, &run.params)?;
            let was = std::mem::replace(&mut spec.prompt, text);
            Ok((hash(&was), hash(&spec.prompt)))
        }
    }
}

fn of_lane(run: &RunSpec, spec: &mut JobSpec, set: &Set) -> Result<(String, String), AmendFault> {
    let fault = |message: String, hint: String| AmendFault::Value {
        key: set.key.clone(),
        value: set.value.clone(),
        message,
        hint,
    };
    let Some(role) = &spec.role else {
        return Err(fault(format!("job {} has no lane: a person or the program does it", spec.id), String::new()));
    };
    let mut lanes: Vec<&str> = run.lanes.keys().map(String::as_str).collect();
    if let Some(role) = run.roles.get(role).filter(|role| !role.lanes.is_empty()) {
        lanes.retain(|lane| role.lanes.iter().any(|allowed| allowed == lane));
    }
    if !lanes.contains(&set.value.as_str()) {
        let hint = match keys::nearest(&set.value, lanes.iter().copied()) {
            Some(nearest) => format!("did you mean `{nearest}`? it may go to: {}", lanes.join(", ")),
            None => format!("it may go to: {}", lanes.join(", ")),
        };
        return Err(fault(format!("role {role} has no such lane in this run"), hint));
    }
    let was = spec.lane.replace(set.value.clone());
    Ok((was.unwrap_or_else(|| "any".to_owned()), set.value.clone()))
}

/// A text of a prompt or an objective, parameters in place.
fn prose(set: &Set, text: &str, params: &BTreeMap<String, String>) -> Result<String, AmendFault> {
    let unknown = names(text)
        .into_iter()
        .filter_map(|name| name.strip_prefix("params."))
        .find(|name| !params.contains_key(*name));
    match unknown {
        None => Ok(bind_prose(text, params)),
        Some(name) => Err(AmendFault::Value {
            key: set.key.clone(),
            value: String::new(),
            message: format!("the run has no parameter `{name}`"),
            hint: format!("it has: {}", params.keys().map(String::as_str).collect::<Vec<_>>().join(", ")),
        }),
    }
}

fn hash(text: &str) -> String {
    super::freeze::sha256(text.as_bytes())
}

/// Reads a value as the table of keys would in a file.
fn typed(level: Level, name: &str, set: &Set) -> Result<Value, AmendFault> {
    let key = keys::find(level, name).ok_or_else(|| refused(&set.key))?;
    let is_number = matches!(key.kind, keys::Kind::Count { .. } | keys::Kind::Money)
        && set.value.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.'));
    let written = if is_number { set.value.clone() } else { toml::Value::String(set.value.clone()).to_string() };
    let source = Source { name: set.key.clone(), text: format!("{} = {written}", key.name) };
    let reading = reader::read(&source, level);
    let entry = |section: &Section| section.entry(key.name).map(|entry| entry.value.clone());
    entry(&reading.section).ok_or_else(|| {
        let fault = reading.faults.into_iter().find(|fault| fault.key == key.name || fault.key.is_empty());
        let (message, hint) = fault.map_or_else(
            || (format!("must be {}", key.kind.expects()), String::new()),
            |fault| (fault.message, fault.hint),
        );
        AmendFault::Value { key: set.key.clone(), value: set.value.clone(), message, hint }
    })
}

/// Why a key is none that may be amended: fixed, or unknown.
fn refused(key: &str) -> AmendFault {
    let first = key.split('.').next().unwrap_or(key);
    let is_known = |name: &str| keys::KEYS.iter().any(|row| row.name == name);
    if is_known(key) || (key.contains('.') && is_known(first) && !matches!(first, "budget" | "limits" | "parallelism"))
    {
        return AmendFault::Fixed { key: key.to_owned() };
    }
    let all = amendable();
    let hint = match keys::nearest(key, all.iter().map(String::as_str)) {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("these may change: {}", all.join(", ")),
    };
    AmendFault::Unknown { key: key.to_owned(), hint }
}

/// Every key that may be amended, as it is typed.
pub fn amendable() -> Vec<String> {
    let of = |level: Level, prefix: &'static str| keys::of(level).map(move |key| format!("{prefix}.{}", key.name));
    let run = of(Level::Budget, "budget").chain(of(Level::Limits, "limits"));
    let job = JOB_KEYS.iter().map(|key| (*key).to_owned());
    let lane = LANE_KEYS.iter().map(|key| format!("lanes.LANE.{key}"));
    run.chain(lane).chain(std::iter::once(MAX_ACTIVE_JOBS.to_owned())).chain(job).collect()
}

/// Whether author and reviewer declare the same model may follow from the lane.
fn mark_same_models(snapshot: &mut Snapshot) {
    let run = &snapshot.run;
    let model = |job: &JobSpec| {
        let model = run.lanes.get(job.lane.as_ref()?)?.model.clone();
        Some(model).filter(|model| !model.is_empty())
    };
    let models: BTreeMap<String, Option<String>> =
        snapshot.jobs.iter().map(|job| (job.id.clone(), model(job))).collect();
    for job in &mut snapshot.jobs {
        let subject = job.reviewed_job().and_then(|subject| models.get(subject)).cloned().flatten();
        job.same_model = subject.is_some() && models.get(&job.id).is_some_and(|own| *own == subject);
    }
}

fn distinct_models(snapshot: &Snapshot, job: Option<&str>, sets: &[Set]) -> Result<(), AmendFault> {
    let Some(set) = sets.iter().find(|set| set.key == "lane").filter(|_| snapshot.run.require_distinct_models) else {
        return Ok(());
    };
    let is_about = |spec: &&JobSpec| spec.same_model && (Some(spec.id.as_str()) == job || spec.reviewed_job() == job);
    match snapshot.jobs.iter().find(is_about) {
        None => Ok(()),
        Some(review) => Err(AmendFault::Value {
            key: set.key.clone(),
            value: set.value.clone(),
            message: format!("{} and the job it reviews would declare the same model", review.id),
            hint: "the workflow says `require_distinct_models`; name a lane with another model".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::super::{Inputs, freeze, read};
    use super::*;

    const FILE: &str = r#"
schema = "striatum.workflow/1"
id = "w"
require_distinct_models = true
[params]
task = "do it"
[lanes.a]
command = "agent-a"
model = "m1"
[lanes.b]
command = "agent-b"
model = "m2"
[roles.author]
lanes = ["a"]
[[jobs]]
id = "draft"
role = "author"
[[jobs]]
id = "review"
lane = "b"
reviews = "draft"
[[jobs]]
id = "look"
type = "checkpoint"
needs = ["review"]
"#;

    fn snapshot() -> Snapshot {
        struct NoTexts;
        impl super::super::Texts for NoTexts {
            fn text(&self, path: &str) -> Result<String, String> {
                Err(path.to_owned())
            }
        }
        let workflow = Source { name: "w.toml".into(), text: FILE.into() };
        let definition = read(&Inputs { workflow, ..Inputs::default() }).unwrap();
        freeze(&definition, &BTreeMap::new(), &NoTexts).unwrap()
    }

    fn set(key: &str, value: &str) -> Set {
        Set { key: key.to_owned(), value: value.to_owned() }
    }

    fn changed(job: Option<&str>, sets: &[(&str, &str)]) -> Result<String, String> {
        let sets: Vec<Set> = sets.iter().map(|(key, value)| set(key, value)).collect();
        let mut snapshot = snapshot();
        match amend(&mut snapshot, job, &sets) {
            Ok(changes) => {
                Ok(changes.iter().map(|change| format!("{}: {} -> {}\n", change.key, change.was, change.is)).collect())
            }
            Err(fault) => {
                let hint = match &fault {
                    AmendFault::Unknown { hint, .. } | AmendFault::Value { hint, .. } => hint.clone(),
                    _ => String::new(),
                };
                Err(format!("{fault} | {hint}"))
            }
        }
    }

    #[test]
    fn budgets_limits_and_a_jobs_own_keys_change() {
        let run = [
            ("budget.launches", "40"),
            ("budget.cost_usd", "2.5"),
            ("budget.active_time", "48h"),
            ("max_active_jobs", "2"),
            ("limits.grace", "100ms"),
            ("budget.requeues", "2"),
        ];
        insta::assert_snapshot!(changed(None, &run).unwrap(), @r"
        budget.launches: 16 -> 40
        budget.cost_usd: none -> 2.5
        budget.active_time: 24h -> 48h
        max_active_jobs: 4 -> 2
        limits.grace: 5s -> 100ms
        ");
        let job = [("timeout", "2h"), ("max_strikes", "5")];
        insta::assert_snapshot!(changed(Some("draft"), &job).unwrap(), @r"
        timeout: the lane's -> 2h
        max_strikes: 3 -> 5
        ");
    }

    #[test]
    fn scope_edges_and_commands_stay() {
        for key in ["verify", "writes", "needs", "reviews", "tree", "lanes.a.command", "tree.setup", "notify.command"] {
            assert_eq!(
                changed(Some("draft"), &[(key, "x")]).unwrap_err(),
                format!("`{key}` stays as it was prepared | ")
            );
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        let refusals: Vec<String> = [
            (None, ("budget.launches", "many")),
            (None, ("budget.launches", "0")),
            (None, ("budget.active_time", "5")),
            (None, ("budget.lunches", "5")),
            (None, ("timeout", "2h")),
            (Some("drft"), ("timeout", "2h")),
            (Some("draft"), ("lane", "b")),
            (Some("review"), ("lane", "a")),
            (Some("look"), ("lane", "a")),
            (Some("draft"), ("objective", "${params.tsk}")),
            (Some("draft"), ("color", "red")),
        ]
        .iter()
        .map(|(job, pair)| changed(*job, &[*pair]).unwrap_err())
        .collect();
        insta::assert_snapshot!(refusals.join("\n"));
    }

    #[test]
    fn texts_are_told_by_their_hash_and_bear_the_runs_parameters() {
        let mut snapshot = snapshot();
        let changes = amend(&mut snapshot, Some("draft"), &[set("objective", "please ${params.task} $${x}")]).unwrap();
        assert_eq!(snapshot.jobs[0].objective, "please do it ${x}");
        assert!(changes[0].is.starts_with("sha256:"));
    }
}
