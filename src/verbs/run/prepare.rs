//! `run prepare`: a workflow with its parameters becomes a run, frozen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::files::{Files, Folder, Origin};
pub use super::files::{invalid, load, source, user_config};
use super::outlook;
use crate::domain::event::EventType;
use crate::domain::frozen::{Autonomy, JobType, LaneSpec, Reviews, Snapshot, StandingAnswer, TreeKind};
use crate::domain::id::JobId;
use crate::domain::workflow::trusted;
use crate::domain::workflow::{Fault, freeze, hash};
use crate::error::{Code, Error, Next, Result};
use crate::os::git::Git;
use crate::os::layout::FOLDER;
use crate::store::decision::NewDecision;
use crate::store::event::About;
use crate::store::frozen::Generation;
use crate::store::job::NewJob;
use crate::store::run::NewRun;
use crate::store::{self, Writing};
use crate::verbs::flow::standing;
use crate::verbs::supervise::confinement;
use crate::verbs::{Ctx, trust};

/// What `run prepare` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PrepareRequest {
    /// A name below `workflows/`, or a path (with `/` or `.toml`).
    pub workflow: String,
    /// Parameters.
    pub params: BTreeMap<String, String>,
    /// Commands with this hash may run, trusted or not (CI).
    pub trust_hash: Option<String>,
    /// The operator acts only through mediated verbs, whatever the workflow says.
    #[serde(default)]
    pub constrained: bool,
    /// The commit to start from; none means what is checked out.
    #[serde(default)]
    pub base: Option<String>,
    /// What a person answers a job that asks while nobody is there.
    #[serde(default)]
    pub standing_answer: Option<String>,
}

/// Longest standing answer, in bytes: it is read with the run.
pub const STANDING_LIMIT: usize = 16 * 1024;

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
    /// Hash over what runs or widens, as `--trust-hash` takes it.
    pub trust_hash: String,
    /// Where the run starts from, in git.
    pub base: Option<Base>,
    /// Where a person will be needed.
    pub needed: Vec<String>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// `autonomy = "plan"`: it is not to be started by the same command.
    pub plans_only: bool,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Where a run starts from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Base {
    /// The commit that is checked out; none before the first one.
    pub commit: Option<String>,
    /// Uncommitted changes, which are no part of the run; none where there is no work tree.
    pub uncommitted: Option<usize>,
}

/// A run as it would be prepared, with nothing made yet.
pub struct Proposal {
    /// The frozen workflow.
    pub snapshot: Snapshot,
    /// Where it would start.
    pub base: Option<Base>,
    /// Why its commands may run.
    how: &'static str,
    trust_hash: String,
    origins: Vec<Origin>,
    warnings: Vec<Fault>,
}

/// Reads, checks and freezes a workflow.
///
/// # Errors
/// It is wrong or not trusted, or the repository is in no state to start from.
pub fn propose(ctx: &Ctx, request: &PrepareRequest) -> Result<Proposal> {
    ctx.ensure_store()?;
    let files = Files::read(ctx, &request.workflow)?;
    let definition = files.define(ctx, request.constrained)?;
    let texts = Folder::new(ctx.layout().root());
    let mut snapshot = freeze(&definition, &request.params, &texts).map_err(invalid)?;
    check_supported(&snapshot)?;
    fix_ranges(ctx, &mut snapshot)?;
    Ok(Proposal {
        how: trust::check_files(ctx, &files, &definition, request.trust_hash.as_deref())?,
        trust_hash: trusted::hash(&trusted::of_definition(&definition)),
        base: base(ctx, request, &snapshot)?,
        origins: texts.origins(&files),
        warnings: definition.warnings,
        snapshot,
    })
}

/// Freezes a workflow into a new run in state `ready`.
pub fn prepare(ctx: &Ctx, request: &PrepareRequest) -> Result<PrepareReport> {
    let standing_answer = left(ctx, request)?;
    let Proposal { mut snapshot, mut base, how, trust_hash, origins, warnings } = propose(ctx, request)?;
    snapshot.run.standing_answer = standing_answer;
    if let Some(base) = &mut base {
        base.uncommitted = uncommitted(ctx);
    }
    let frozen = Frozen {
        trust_hash,
        hash: hash(&snapshot),
        trust: trust::admit(ctx, &snapshot, how)?,
        base,
        taken: taken(ctx, &snapshot)?,
        origins,
        snapshot,
    };
    let name = ctx.write("run prepare", |tx| insert(tx, &frozen))?;
    Ok(report(name, frozen, &warnings))
}

/// Everything that a run is made of.
struct Frozen {
    snapshot: Snapshot,
    hash: String,
    /// Over what runs or widens, parameters in place.
    trust: String,
    /// The same without their values.
    trust_hash: String,
    base: Option<Base>,
    /// Run numbers that references of an earlier store bear.
    taken: i64,
    origins: Vec<Origin>,
}

/// A standing answer is a person's, and so only a person leaves one.
fn left(ctx: &Ctx, request: &PrepareRequest) -> Result<Option<StandingAnswer>> {
    let Some(words) = request.standing_answer.as_deref().map(str::trim) else { return Ok(None) };
    if words.is_empty() {
        return Err(Error::new(Code::Usage, "the standing answer says nothing"));
    }
    if words.len() > STANDING_LIMIT {
        return Err(Error::new(Code::TooLarge, format!("the standing answer has more than {STANDING_LIMIT} bytes")));
    }
    Ok(Some(StandingAnswer { words: words.to_owned(), how: ctx.person()?.to_owned() }))
}

/// What the workflow's own check can't see.
fn unpriced(snapshot: &Snapshot) -> Option<String> {
    let lanes = outlook::unpriced(snapshot);
    let is_asked = snapshot.run.budget.cost_micro_usd.is_some() && !lanes.is_empty();
    is_asked.then(|| {
        let lanes = lanes.join(", ");
        format!("budget.cost_usd counts what is reported; not known to report a cost, but by `usage`: lane {lanes}")
    })
}

fn report(name: String, frozen: Frozen, warnings: &[Fault]) -> PrepareReport {
    let next = Next::new("operator", "enqueue its first jobs", &["striatum", "run", "start", "--run-id", &name]);
    PrepareReport {
        run: name,
        snapshot: frozen.hash,
        jobs: frozen.snapshot.jobs.len(),
        commands: outlook::commands(&frozen.snapshot),
        trust_hash: frozen.trust_hash,
        base: frozen.base,
        needed: outlook::needed(&frozen.snapshot),
        warnings: (warnings.iter().map(ToString::to_string))
            .chain(unheld(&frozen.snapshot))
            .chain(unpriced(&frozen.snapshot))
            .collect(),
        plans_only: frozen.snapshot.run.autonomy == Autonomy::Plan,
        next: vec![next],
    }
}

/// Where the run starts; the store's own folder is read as it stands. A
/// repository that can't be asked matters only to a run that needs it.
fn base(ctx: &Ctx, request: &PrepareRequest, snapshot: &Snapshot) -> Result<Option<Base>> {
    let is_needed = snapshot.jobs.iter().any(|job| job.tree != TreeKind::None || job.kind == JobType::Land);
    let Some(git) = Git::here(ctx.layout()) else { return Ok(None) };
    if is_needed {
        able(&git)?;
    }
    if let Some(named) = &request.base {
        let commit = git.resolve(named)?.ok_or_else(|| {
            Error::new(Code::NotFound, format!("the repository has no commit {named}"))
                .hint("name a branch, a tag or a commit")
        })?;
        return Ok(Some(Base { commit: Some(commit), uncommitted: None }));
    }
    if !is_needed {
        return Ok(git.head().ok().map(|commit| Base { commit, uncommitted: None }));
    }
    at_rest(&git)?;
    let commit = git.head()?.ok_or_else(|| {
        Error::new(Code::NoCommit, "the repository has no commit to start from")
            .hint("make a first one: git add . && git commit -m 'Begin'")
    })?;
    Ok(Some(Base { commit: Some(commit), uncommitted: None }))
}

/// What of the checkout is no part of the run; told when it is prepared, and not before.
fn uncommitted(ctx: &Ctx) -> Option<usize> {
    Git::here(ctx.layout())?.dirty_count_outside(FOLDER).ok()
}

/// The highest number of a run of this workflow whose branch or pins are in the repository, whatever became of the
/// store that made them.
fn taken(ctx: &Ctx, snapshot: &Snapshot) -> Result<i64> {
    let needs_trees = snapshot.jobs.iter().any(|job| job.tree != TreeKind::None);
    let Some(git) = Git::of(ctx.layout()).filter(|_| needs_trees) else { return Ok(0) };
    let mut highest = 0;
    for prefix in ["refs/heads/striatum/", "refs/striatum/"] {
        for name in git.references(prefix)? {
            let run = name.trim_start_matches(prefix).split('/').next().unwrap_or_default();
            let number = run.strip_prefix(&snapshot.run.workflow).and_then(|rest| rest.strip_prefix('-'));
            highest = highest.max(number.and_then(|number| number.parse().ok()).unwrap_or(0));
        }
    }
    Ok(highest)
}

/// What a review of a range looks at is fixed now: names move, commits don't.
fn fix_ranges(ctx: &Ctx, snapshot: &mut Snapshot) -> Result<()> {
    for job in &mut snapshot.jobs {
        let Some((from, to)) = job.reviewed_range() else { continue };
        let git = Git::of(ctx.layout())
            .ok_or_else(|| Error::new(Code::Git, format!("job {} reviews commits, and there is no git", job.id)))?;
        let commit = |name: &str| {
            let missing = || Error::new(Code::NotFound, format!("job {} reviews {name}, which is no commit", job.id));
            git.resolve(if name.is_empty() { "HEAD" } else { name })?.ok_or_else(missing)
        };
        job.reviews = Some(Reviews::Range(format!("{}..{}", commit(from)?, commit(to)?)));
    }
    Ok(())
}

/// A repository in which work trees and a run's branch can be made.
fn able(git: &Git) -> Result<()> {
    let version = crate::os::git::version()?;
    if !crate::os::git::is_new_enough(&version) {
        return Err(Error::new(Code::Git, format!("git {version} is too old")).hint("install git 2.40 or newer"));
    }
    for (name, hint) in [
        ("refs/heads/striatum", "rename it: git branch -m striatum ANOTHER_NAME"),
        ("refs/striatum", "remove it: git update-ref -d refs/striatum"),
    ] {
        if git.has_ref(name)? {
            return Err(Error::new(Code::Git, format!("{name} is in the way of the names below it, which runs need"))
                .hint(hint));
        }
    }
    Ok(())
}

/// A checkout that is in the middle of nothing.
fn at_rest(git: &Git) -> Result<()> {
    match git.in_progress() {
        Some(what) => Err(Error::new(Code::RepositoryBusy, format!("the checkout is in the middle of {what}"))
            .hint("finish or abort it, or name the commit to start from with --base")),
        None => Ok(()),
    }
}

/// What this kernel can't do is refused by name before anything is made.
fn check_supported(snapshot: &Snapshot) -> Result<()> {
    use crate::domain::frozen::Sandbox;
    let sandboxed = snapshot.run.lanes.iter().find(|(_, lane)| lane.sandbox == Sandbox::Scope);
    if let Some((name, _)) = sandboxed.filter(|_| !crate::os::sandbox::is_supported()) {
        return Err(confinement::cannot(name));
    }
    if snapshot.run.budget.cost_micro_usd.is_none()
        && let Some(lane) = outlook::asks_for_cost_left(snapshot)
    {
        let message = format!("lane {lane} is given ${{budget.cost_left}}, and the run has no budget.cost_usd");
        return Err(Error::new(Code::InvalidWorkflow, message).hint("set one: [budget] cost_usd = 5"));
    }
    Ok(())
}

/// Lanes that prefer the kernel's hold, where there is none.
fn unheld(snapshot: &Snapshot) -> Option<String> {
    use crate::domain::frozen::{OwnSandbox, Sandbox};
    let prefers = |lane: &LaneSpec| lane.sandbox == Sandbox::PreferScope && lane.own_sandbox != OwnSandbox::Instead;
    let lanes = snapshot.run.lanes.iter().filter(|(_, lane)| prefers(lane));
    let names: Vec<&str> = lanes.map(|(name, _)| name.as_str()).collect();
    let is_unheld = !names.is_empty() && !crate::os::sandbox::is_supported();
    is_unheld
        .then(|| format!("this kernel can't hold lanes to their folders: {} go on by advice only", names.join(", ")))
}

fn insert(tx: &Writing<'_>, frozen: &Frozen) -> Result<String> {
    let Frozen { snapshot, hash, .. } = frozen;
    let base = frozen.base.as_ref().and_then(|base| base.commit.as_deref());
    let new = NewRun {
        workflow: &snapshot.run.workflow,
        spec: &snapshot.run,
        trust: Some(&frozen.trust),
        base,
        taken: frozen.taken,
    };
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
    let body = json!({"workflow": snapshot.run.workflow, "snapshot": hash, "jobs": snapshot.jobs.len(),
        "trust": frozen.trust, "trust_hash": frozen.trust_hash, "base": base, "files": frozen.origins});
    store::event::append(tx, EventType::RunPrepared, about, &body)?;
    if let Some(StandingAnswer { words, how }) = &snapshot.run.standing_answer {
        let new = NewDecision { run: Some(run), kind: standing::KIND, body: words, how, ..NewDecision::default() };
        let body = json!({"decision": store::decision::insert(tx, &new)?, "kind": standing::KIND});
        store::event::append(tx, EventType::DecisionRecorded, about, &body)?;
    }
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
