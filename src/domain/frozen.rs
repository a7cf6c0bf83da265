//! The frozen form of a workflow: what `prepare` writes and everything later reads.
//!
//! Plain data with no rules in it. It does not know TOML, files, or how a value came to be
//! (workflow, repository or user configuration); `domain::workflow` makes it, the store keeps it as JSON.
//! Durations are milliseconds, money is micro-dollars.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A prepared workflow: every value resolved, every prompt and role text included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Always `striatum.snapshot/1`.
    pub schema: String,
    /// Everything that is said once a run.
    pub run: RunSpec,
    /// The jobs, in the order the workflow names them.
    pub jobs: Vec<JobSpec>,
}

/// The part of a snapshot that belongs to the run as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The workflow's id; runs are named `<workflow>-<n>`.
    pub workflow: String,
    /// A sentence for people; empty when the workflow gives none.
    pub title: String,
    /// Parameters with their final values.
    pub params: BTreeMap<String, String>,
    /// How much goes on without a person.
    pub autonomy: Autonomy,
    /// Roles whose active sessions can contaminate a fresh reviewer (RFC 0116); `author` unless the workflow lists more.
    pub author_roles: Vec<String>,
    /// Author and reviewer must declare different models.
    pub require_distinct_models: bool,
    /// Breakers of the run.
    pub budget: Budget,
    /// How many jobs may hold a lease at once.
    pub max_active_jobs: u32,
    /// Lanes by name, merged from workflow, repository and user configuration.
    pub lanes: BTreeMap<String, LaneSpec>,
    /// Roles by name; every role that a job names is here.
    pub roles: BTreeMap<String, RoleSpec>,
    /// Timings that helpers and the driver obey.
    pub limits: Limits,
    /// Phrases in an answer or a note that stop the run.
    pub stop_phrases: Vec<String>,
    /// What a person answers a job that asks while nobody is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing_answer: Option<StandingAnswer>,
    /// What makes a work tree usable.
    pub tree: TreeSpec,
    /// The operator acts only through mediated verbs.
    #[serde(default)]
    pub constrained: bool,
    /// How a person is told.
    #[serde(default)]
    pub notify: Notify,
}

/// What a person said before anybody asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingAnswer {
    /// The words.
    pub words: String,
    /// How the person was recognised.
    pub how: String,
}

/// How a person is told; an empty command means the bell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    /// Gets one JSON document on standard input.
    pub command: Vec<String>,
    /// Which occasions are worth telling: `inbox`, `needs_operator`, `completed`, `failed`, `lane_parked`,
    /// `driver_ended`.
    pub on: Vec<String>,
    /// How long the command may take.
    #[serde(default = "ten_seconds")]
    pub timeout_ms: u64,
}

const fn ten_seconds() -> u64 {
    10_000
}

/// The dial: which tiers wait for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Autonomy {
    /// Only what is irreversible waits.
    #[default]
    Auto,
    /// Writes wait too.
    Step,
    /// Prepare, print, stop.
    Plan,
}

/// Limits of a run, each a breaker with a name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Requeues without a strike for each job (holder lost, never started, conflict).
    pub requeues: u32,
    /// Longest time without a seal, verb or output while something is in flight.
    pub no_progress_ms: u64,
    /// How deep proposals of proposals may nest.
    pub next_depth: u32,
    /// Working time of the whole run.
    pub active_time_ms: u64,
    /// Agent launches of the whole run.
    pub launches: u32,
    /// Reported cost of the whole run; none means unlimited.
    pub cost_micro_usd: Option<u64>,
}

/// Timings of leases, endings and waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// From TERM to KILL when a tree is ended.
    pub grace_ms: u64,
    /// From a helper's launch to its agent's start.
    pub starting_ms: u64,
    /// Life of an unsupervised session's lease; any verb extends it.
    pub lease_ms: u64,
    /// First pause of a lane that reported itself unavailable; doubles up to 30 minutes.
    pub cooldown_ms: u64,
    /// Life of an undecided gate.
    pub gate_expiry_ms: u64,
    /// How often a helper looks at the store when nothing else wakes it.
    pub poll_ms: u64,
    /// How long a verb waits for the store before it gives up.
    pub busy_ms: u64,
}

/// A kind of worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleSpec {
    /// Text of the role's instructions file; empty when it has none.
    pub instructions: String,
    /// Whether a session of this role must be uncontaminated by authors.
    pub context: RoleContext,
    /// The lanes that may play the role.
    pub lanes: Vec<String>,
}

/// What a session of a role may have seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleContext {
    /// Anything.
    #[default]
    Any,
    /// Nothing of the work under review.
    Fresh,
}

/// A named way to execute: a command line with its limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneSpec {
    /// The known agent it was derived from; empty for a bare command.
    #[serde(default)]
    pub adapter: String,
    /// argv with templates still in it; empty for a human lane.
    pub command: Vec<String>,
    /// How the agent lives.
    pub mode: LaneMode,
    /// What the agent reads on standard input.
    pub stdin: LaneStdin,
    /// `result.json` and verbs when none; otherwise where the answer stands.
    pub result_from: Option<String>,
    /// The declared model; empty when none.
    pub model: String,
    /// Names of environment variables that pass through.
    pub env: Vec<String>,
    /// Whole attempt.
    pub timeout_ms: u64,
    /// No output, verb, file change or CPU time in the tree; none means off.
    pub idle_timeout_ms: Option<u64>,
    /// Concurrent sessions of this lane over all runs of the store.
    pub max_sessions: u32,
    /// Lanes that may take the job when this one is unavailable.
    pub fallback: Vec<String>,
    /// How this agent says that it can't work now.
    pub unavailable: Unavailable,
    /// What confines the lane.
    pub sandbox: Sandbox,
    /// Folders outside the tree that a sandboxed lane may write.
    pub write_paths: Vec<String>,
    /// Folders inside the tree that a sandboxed lane may write beside its scope.
    pub build_dirs: Vec<String>,
    /// A `loop` agent gets a terminal.
    pub tty: bool,
    /// What becomes of the agent's own sandbox.
    #[serde(default)]
    pub own_sandbox: OwnSandbox,
}

/// What becomes of an agent's own sandbox; Landlock forbids one inside another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnSandbox {
    /// It has none.
    #[default]
    None,
    /// It is switched off inside ours.
    OffInside,
    /// It stands in for ours.
    Instead,
}

/// How a lane's agent lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneMode {
    /// Started anew for each attempt.
    #[default]
    Oneshot,
    /// Started once, told to await work.
    Loop,
    /// A person; nothing is started.
    Human,
}

/// What an agent reads on standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneStdin {
    /// `/dev/null`.
    #[default]
    Null,
    /// The prompt file.
    Prompt,
    /// The packet file.
    Packet,
}

/// What confines a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// Nothing; rules are advisory.
    #[default]
    Off,
    /// The kernel where it can, advisory otherwise.
    PreferScope,
    /// The kernel, or no launch.
    Scope,
}

/// Signs that an agent is rate limited, overloaded, offline or logged out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unavailable {
    /// Exit codes.
    pub exits: Vec<i32>,
    /// Substrings of the last output.
    pub patterns: Vec<String>,
    /// When cooling down turns into parking for a person.
    pub give_up_ms: u64,
}

/// What a change of the principal checkout during an attempt means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForeignWrite {
    /// The attempt is not sealed.
    #[default]
    Refuse,
    /// It is told in the log, and nothing else.
    Tell,
}

/// What makes a work tree usable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TreeSpec {
    /// Commands, each an argv.
    pub setup: Vec<Vec<String>>,
    /// Limit of the setup commands.
    pub setup_timeout_ms: u64,
    /// Files copied from the principal checkout.
    pub copy: Vec<String>,
    /// Folders seeded from the last tree.
    pub cache: Vec<String>,
    /// Droppings that are never sealed.
    pub discard: Vec<String>,
    /// Where trees stand; none means `.striatum/worktrees`.
    pub dir: Option<String>,
    /// What a change of the principal checkout during an attempt means.
    #[serde(default)]
    pub foreign_write: ForeignWrite,
}

/// What a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobType {
    /// Anything.
    #[default]
    Generic,
    /// Produces or changes something.
    Draft,
    /// Builds.
    Build,
    /// Tests.
    Test,
    /// Judges another job; answers with a verdict.
    Review,
    /// Joins results.
    Synthesis,
    /// A person's gate; no role, no lane.
    Checkpoint,
    /// Moves the result to its target; no role, no lane.
    Land,
}

/// What a job's failure means for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Successors stay waiting; the rest goes on.
    #[default]
    Hold,
    /// Successors run; the input is marked missing.
    Continue,
    /// The job is skipped; successors run.
    Skip,
    /// The run fails.
    FailRun,
}

/// What exit 0 without an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExitZero {
    /// Done, if there is proof.
    Complete,
    /// Not an answer.
    Unsealed,
}

/// Where a job works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeKind {
    /// A worktree of its own.
    Own,
    /// A worktree at the run's tip.
    Tip,
    /// The attempt's `work/` folder.
    #[default]
    None,
}

/// How far a job's effects reach; ordered by reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Nothing outside the attempt's folder.
    #[default]
    Read,
    /// Its own tree.
    Write,
    /// A resource that others use.
    Shared,
    /// The world.
    Outward,
    /// A word that this program does not know: whoever wrote it meant something, so a person is asked.
    #[serde(other)]
    Unknown,
}

/// Who put a job into the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The workflow.
    #[default]
    Planned,
    /// An agent proposed it (`next[]`) and the driver admitted it.
    Proposed,
}

impl Origin {
    fn is_planned(&self) -> bool {
        *self == Origin::Planned
    }
}

/// What carries over to the next attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAttempt {
    /// The tree.
    #[default]
    Continue,
    /// Nothing.
    Clean,
}

/// What a review looks at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reviews {
    /// Another job of the run.
    Job(String),
    /// An existing range of commits.
    Range(String),
}

/// An artifact that a job must or may leave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Produce {
    /// The artifact's name, unique in the job.
    pub name: String,
    /// Relative to the job's working directory; none means standard output.
    pub path: Option<String>,
    /// A free word for readers; empty when none.
    pub kind: String,
    /// The job can't be sealed without it.
    pub required: bool,
}

/// A shared resource that the driver makes, checks and destroys for one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ephemeral {
    /// One of the job's shared resources.
    pub resource: String,
    /// Makes it; argv with templates.
    pub create: Vec<String>,
    /// Exits 0 when it is there and healthy.
    pub check: Vec<String>,
    /// Takes it away.
    pub destroy: Vec<String>,
}

/// A node of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's name in its workflow.
    pub id: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: JobType,
    /// Who put it there.
    #[serde(default, skip_serializing_if = "Origin::is_planned")]
    pub origin: Origin,
    /// For people; empty when none.
    pub title: String,
    /// None for checkpoint and land.
    pub role: Option<String>,
    /// The lane it goes to; none when the role has several and the job names none.
    pub lane: Option<String>,
    /// Jobs that must be settled first.
    pub needs: Vec<String>,
    /// What a review looks at.
    pub reviews: Option<Reviews>,
    /// What to do, parameters replaced.
    pub objective: String,
    /// Text of the prompt file, parameters replaced; empty when none.
    pub prompt: String,
    /// Artifacts wanted beside those of direct needs, as `job.name`.
    pub inputs: Vec<String>,
    /// Where it works.
    pub tree: TreeKind,
    /// Globs it may change.
    pub writes: Vec<String>,
    /// Globs it may not change, though `writes` covers them.
    pub forbids: Vec<String>,
    /// Artifacts.
    pub produces: Vec<Produce>,
    /// Commands that must exit 0 before a seal.
    pub verify: Vec<Vec<String>>,
    /// Declared command classes for `process run`.
    pub process: BTreeMap<String, Vec<Vec<String>>>,
    /// Any command may be run by `process run`.
    pub process_execution: bool,
    /// How far its effects reach.
    pub effect: Effect,
    /// Names of shared resources.
    pub shared: Vec<String>,
    /// A shared resource made for this job alone.
    #[serde(default)]
    pub ephemeral: Option<Ephemeral>,
    /// Reviews only: how often this review may send its subject back.
    pub revisions: u32,
    /// On the reviewed job: accepts that pass the panel; none means all.
    pub quorum: Option<u32>,
    /// The strike that ends it.
    pub max_strikes: u32,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// What exit 0 without an answer means.
    pub on_exit_zero: Option<OnExitZero>,
    /// What carries over to the next attempt.
    pub next_attempt: NextAttempt,
    /// A job with `writes` may change nothing.
    pub allow_empty: bool,
    /// Scopes may overlap with jobs that run beside it.
    pub allow_overlap: bool,
    /// Shown at the gate.
    pub gate_note: String,
    /// Land jobs: the target branch.
    pub into: Option<String>,
    /// Land jobs: `squash`, `merge` or `ff`.
    pub land_style: Option<String>,
    /// Land jobs: whether commits bear trailers.
    pub trailers: bool,
    /// The message of the commit; empty means the answer's.
    pub commit_message: String,
    /// Whole attempt; none means the lane's.
    pub timeout_ms: Option<u64>,
    /// A review in a fresh context: one job a session, no upstream packet held.
    pub fresh: bool,
    /// Author and reviewer declare the same model; the verdict is stamped so.
    pub same_model: bool,
}

impl JobSpec {
    /// The two commits of a range under review.
    pub fn reviewed_range(&self) -> Option<(&str, &str)> {
        match &self.reviews {
            Some(Reviews::Range(range)) => range.split_once(".."),
            Some(Reviews::Job(_)) | None => None,
        }
    }

    /// The reviewed job's name, when this is a review of one.
    pub fn reviewed_job(&self) -> Option<&str> {
        match &self.reviews {
            Some(Reviews::Job(name)) => Some(name),
            Some(Reviews::Range(_)) | None => None,
        }
    }
}
