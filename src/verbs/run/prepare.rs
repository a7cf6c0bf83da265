//! `run prepare`: a workflow with its parameters becomes a run, frozen.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::frozen::{Autonomy, LaneMode, Snapshot, TreeKind};
use crate::domain::gate::{is_due, tier};
use crate::domain::id::JobId;
use crate::domain::workflow::{Definition, Faults, Inputs, Source, Texts, freeze, hash, read};
use crate::error::{Code, Error, Next, Result};
use crate::store::event::About;
use crate::store::frozen::Generation;
use crate::store::job::NewJob;
use crate::store::run::NewRun;
use crate::store::{self, Writing};
use crate::verbs::Ctx;

/// What `run prepare` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PrepareRequest {
    /// A name below `workflows/`, or a path (with `/` or `.toml`).
    pub workflow: String,
    /// Parameters.
    pub params: BTreeMap<String, String>,
    /// Commands with this hash may run, trusted or not (CI).
    pub trust_hash: Option<String>,
}

/// What `run prepare` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrepareReport {
    /// The new run's name.
    pub run: String,
    /// The snapshot's hash.
    pub snapshot: String,
    /// How many jobs.
    pub jobs: usize,
    /// The commands that will run, a line each.
    pub commands: Vec<String>,
    /// Where a person will be needed.
    pub needed: Vec<String>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// `autonomy = "plan"`: it is not to be started by the same command.
    pub plans_only: bool,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Freezes a workflow into a new run in state `ready`.
pub fn prepare(ctx: &Ctx, request: &PrepareRequest) -> Result<PrepareReport> {
    ctx.ensure_store()?;
    let definition = load(ctx, &request.workflow)?;
    let snapshot = freeze(&definition, &request.params, &Folder(ctx.layout().root().to_owned())).map_err(invalid)?;
    check_supported(&snapshot)?;
    let hash = hash(&snapshot);
    let name = ctx.write("run prepare", |tx| insert(tx, &snapshot, &hash))?;
    let next = Next::new("operator", "enqueue its first jobs", &["striatum", "run", "start", "--run-id", &name]);
    Ok(PrepareReport {
        run: name,
        snapshot: hash,
        jobs: snapshot.jobs.len(),
        commands: commands(&snapshot),
        needed: needed(&snapshot),
        warnings: definition.warnings.iter().map(ToString::to_string).collect(),
        plans_only: snapshot.run.autonomy == Autonomy::Plan,
        next: vec![next],
    })
}

/// Reads and validates a workflow by name or path, with the configuration around it.
pub fn load(ctx: &Ctx, workflow: &str) -> Result<Definition> {
    let path = path_of(ctx, workflow);
    let text = std::fs::read_to_string(&path).map_err(|error| missing(ctx, workflow, &path, &error))?;
    let inputs = Inputs {
        workflow: Source { name: shown(ctx, &path), text },
        config: source(ctx, &ctx.layout().config())?,
        user: match user_config().filter(|_| ctx.has_user_settings()) {
            Some(path) => source(ctx, &path)?,
            None => None,
        },
        git: ctx.layout().repository().is_some(),
        ..Inputs::default()
    };
    crate::verbs::workflow::fit(ctx, read(&inputs).map_err(invalid)?)
}

/// Where a workflow stands.
pub fn path_of(ctx: &Ctx, workflow: &str) -> PathBuf {
    if workflow.contains('/') || workflow.ends_with(".toml") {
        return PathBuf::from(workflow);
    }
    ctx.layout().workflows().join(format!("{workflow}.toml"))
}

/// The user's own configuration file.
pub fn user_config() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".config")))?;
    Some(base.join("striatum").join("config.toml"))
}

/// Reads a configuration file, if it exists.
pub fn source(ctx: &Ctx, path: &Path) -> Result<Option<Source>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(Source { name: shown(ctx, path), text })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(Code::InvalidConfig, format!("{} can't be read", path.display())).cause(error)),
    }
}

fn shown(ctx: &Ctx, path: &Path) -> String {
    path.strip_prefix(ctx.layout().project()).unwrap_or(path).display().to_string()
}

fn missing(ctx: &Ctx, workflow: &str, path: &Path, error: &std::io::Error) -> Error {
    let known: Vec<String> = std::fs::read_dir(ctx.layout().workflows())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    let error = Error::new(Code::NotFound, format!("there is no workflow {workflow}"))
        .cause(format!("{}: {error}", path.display()));
    if known.is_empty() {
        return error.next(Next::new(
            "operator",
            "write a first one",
            &["striatum", "workflow", "generate", "review", "--output", ".striatum/workflows/review.toml"],
        ));
    }
    error.hint(format!("workflows here: {}", known.join(", ")))
}

/// Turns the faults of a file into one error that lists them all.
pub fn invalid(faults: Faults) -> Error {
    let code = if faults.is_not_yet() { Code::NotYet } else { Code::InvalidWorkflow };
    let count = faults.errors();
    let message = format!("{count} fault{} in the workflow or its configuration", if count == 1 { "" } else { "s" });
    faults.0.iter().fold(Error::new(code, message), |error, fault| error.cause(fault))
}

struct Folder(PathBuf);

impl Texts for Folder {
    fn text(&self, path: &str) -> std::result::Result<String, String> {
        std::fs::read_to_string(self.0.join(path)).map_err(|error| error.to_string())
    }
}

/// What this version can't do is refused by name before anything is made.
fn check_supported(snapshot: &Snapshot) -> Result<()> {
    use crate::domain::frozen::{JobType, Sandbox};
    for job in &snapshot.jobs {
        if job.kind == JobType::Land {
            return Err(Error::new(Code::NotYet, format!("job {} lands, which this version can't do", job.id)));
        }
        if job.tree != TreeKind::None {
            return Err(Error::new(
                Code::TreeUnsupported,
                format!("job {} needs a work tree of its own or of the run's tip", job.id),
            )
            .hint(
                "this version runs jobs in a folder of the attempt: write `tree = \"none\"` and leave `writes` out",
            ));
        }
    }
    let sandboxed = snapshot.run.lanes.iter().find(|(_, lane)| lane.sandbox == Sandbox::Scope);
    if let Some((name, _)) = sandboxed {
        return Err(Error::new(
            Code::NotYet,
            format!("lane {name} asks for sandbox = \"scope\", which this version can't enforce"),
        )
        .hint("`prefer-scope` runs it with advisory rules"));
    }
    Ok(())
}

fn insert(tx: &Writing<'_>, snapshot: &Snapshot, hash: &str) -> Result<String> {
    let new = NewRun { workflow: &snapshot.run.workflow, spec: &snapshot.run, trust: None };
    let (run, name) = store::run::insert(tx, &new)?;
    let generation = Generation { number: 1, hash, body: snapshot, reason: "prepare" };
    store::frozen::insert(tx, run, &generation)?;
    let mut ids: BTreeMap<&str, JobId> = BTreeMap::new();
    for position in order(snapshot) {
        let Some(spec) = snapshot.jobs.get(position) else { continue };
        let reviews = spec.reviewed_job().and_then(|name| ids.get(name).copied());
        let id = store::job::insert(tx, &NewJob { run, position, spec, reviews })?;
        for need in &spec.needs {
            if let Some(needed) = ids.get(need.as_str()) {
                store::job::insert_need(tx, id, *needed)?;
            }
        }
        ids.insert(&spec.id, id);
    }
    let about = About { run: Some(run), job: None, session: None };
    let body = json!({"workflow": snapshot.run.workflow, "snapshot": hash, "jobs": snapshot.jobs.len()});
    store::event::append(tx, EventType::RunPrepared, about, &body)?;
    Ok(name)
}

/// Positions of the jobs, each after all that it needs.
fn order(snapshot: &Snapshot) -> Vec<usize> {
    let index: BTreeMap<&str, usize> =
        snapshot.jobs.iter().enumerate().map(|(position, job)| (job.id.as_str(), position)).collect();
    let mut unmet: Vec<usize> = snapshot.jobs.iter().map(|job| job.needs.len()).collect();
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); snapshot.jobs.len()];
    for (position, job) in snapshot.jobs.iter().enumerate() {
        for need in job.needs.iter().filter_map(|need| index.get(need.as_str())) {
            below[*need].push(position);
        }
    }
    let mut ready: std::collections::VecDeque<usize> =
        unmet.iter().enumerate().filter(|(_, count)| **count == 0).map(|(position, _)| position).collect();
    let mut order = Vec::with_capacity(snapshot.jobs.len());
    while let Some(position) = ready.pop_front() {
        order.push(position);
        for next in &below[position] {
            unmet[*next] -= 1;
            if unmet[*next] == 0 {
                ready.push_back(*next);
            }
        }
    }
    order
}

/// The commands that will run, a line each.
fn commands(snapshot: &Snapshot) -> Vec<String> {
    let mut lines: Vec<String> = snapshot
        .run
        .lanes
        .iter()
        .filter(|(name, lane)| lane.mode != LaneMode::Human && is_used(snapshot, name))
        .map(|(name, lane)| format!("lane {name}: {}", lane.command.join(" ")))
        .collect();
    for job in &snapshot.jobs {
        lines.extend(job.verify.iter().map(|argv| format!("verify {}: {}", job.id, argv.join(" "))));
    }
    lines
}

fn is_used(snapshot: &Snapshot, lane: &str) -> bool {
    snapshot.jobs.iter().any(|job| match (&job.lane, &job.role) {
        (Some(named), _) => named == lane,
        (None, Some(role)) => snapshot.run.roles.get(role).is_some_and(|role| role.lanes.iter().any(|one| one == lane)),
        (None, None) => false,
    })
}

/// Where a person will be needed.
fn needed(snapshot: &Snapshot) -> Vec<String> {
    snapshot
        .jobs
        .iter()
        .filter_map(|job| {
            let lane = job.lane.as_ref().and_then(|lane| snapshot.run.lanes.get(lane));
            if is_due(tier(job.kind, job.effect), snapshot.run.autonomy) {
                Some(format!("gate before {}", job.id))
            } else if lane.is_some_and(|lane| lane.mode == LaneMode::Human) {
                Some(format!("work on {}", job.id))
            } else {
                None
            }
        })
        .collect()
}
