//! The rows. A key that is not here is unknown everywhere.

use super::Kind::{
    Argv, Commands, Count, Duration, DurationOrOff, EnvNames, Exits, Flag, Folders, Globs, Id, Ids, List, Money, Named,
    Path, Paths, Table, Text, Texts, Word, Words,
};
use super::Level as L;
use super::Templates as T;
use super::{Key, Kind, Level, Merge};

const fn key(level: Level, name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { level, name, kind, default, about, merge: Merge::Nearest, reserved: false, widens: false }
}

impl Key {
    const fn stricter(mut self) -> Key {
        self.merge = Merge::Stricter;
        self
    }

    const fn union(mut self) -> Key {
        self.merge = Merge::Union;
        self
    }

    const fn widens(mut self) -> Key {
        self.widens = true;
        self
    }

    const fn reserved(mut self) -> Key {
        self.reserved = true;
        self
    }
}

/// Any number that counts something there is at least one of.
const SOME: Kind = Count { min: 1, max: 1_000_000 };
/// How often something may happen again: bounded, or nothing would end.
const AGAIN: Kind = Count { min: 0, max: 100 };

/// Every key of every level.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key(L::Workflow, "schema", Word(&["striatum.workflow/1"]), "required", "The format of the file."),
    key(L::Workflow, "id", Id, "required", "Names the workflow; its runs are `<id>-<n>`."),
    key(L::Workflow, "title", Text(T::Params), "empty", "A sentence for people."),
    key(L::Workflow, "params", Named(L::Param), "none", "Values given at prepare, used as `${params.NAME}`."),
    key(L::Workflow, "autonomy", Word(&["auto", "step", "plan"]), "auto", "How much goes on without a person: `auto` stops for what is irreversible, `step` also before each write, `plan` prepares, prints and stops."),
    key(L::Workflow, "operator_mode", Word(&["open", "constrained"]), "open", "`constrained` lets the operator act only through mediated verbs and puts every lane under a `scope` sandbox.").widens(),
    key(L::Workflow, "author_roles", Ids, "[\"author\"]", "Roles whose active sessions contaminate a fresh reviewer."),
    key(L::Workflow, "require_distinct_models", Flag, "false", "Refuse an author and a reviewer that declare the same model."),
    key(L::Workflow, "budget", Table(L::Budget), "see there", "Breakers of the run."),
    key(L::Workflow, "parallelism", Table(L::Parallelism), "see there", "How much goes on at once."),
    key(L::Workflow, "roles", Named(L::Role), "none", "Roles, key by key over those of the configuration."),
    key(L::Workflow, "lanes", Named(L::Lane), "none", "Lanes, key by key over those of the configuration."),
    key(L::Workflow, "tree", Table(L::Tree), "see there", "What makes a work tree usable."),
    key(L::Workflow, "notify", Table(L::Notify), "see there", "How a person is told."),
    key(L::Workflow, "jobs", List(L::Job), "required", "The jobs, in the order in which people should read them."),

    key(L::Config, "budget", Table(L::Budget), "see there", "Breakers of every run."),
    key(L::Config, "parallelism", Table(L::Parallelism), "see there", "How much goes on at once."),
    key(L::Config, "roles", Named(L::Role), "none", "Roles for every workflow."),
    key(L::Config, "lanes", Named(L::Lane), "none", "Lanes for every workflow."),
    key(L::Config, "tree", Table(L::Tree), "see there", "What makes a work tree usable."),
    key(L::Config, "notify", Table(L::Notify), "see there", "How a person is told."),
    key(L::Config, "stop", Table(L::Stop), "see there", "Words that stop a run."),
    key(L::Config, "limits", Table(L::Limits), "see there", "Timings of helpers, leases and gates."),

    key(L::Param, "required", Flag, "false", "`run prepare` refuses to go on without a value."),
    key(L::Param, "default", Text(T::None), "empty", "The value when none is given."),
    key(L::Param, "title", Text(T::None), "empty", "What it is for."),

    key(L::Budget, "requeues", AGAIN, "2", "Requeues of each job without a strike: its holder was lost, never started, or its change conflicted.").stricter(),
    key(L::Budget, "no_progress", Duration, "60m", "The longest time without a seal, a verb or output while something is in flight.").stricter(),
    key(L::Budget, "next_depth", AGAIN, "2", "How deep proposals of proposals may nest.").stricter(),
    key(L::Budget, "active_time", Duration, "24h", "Working time of the run; waiting for a person, pauses, cooling down and suspend are not charged.").stricter(),
    key(L::Budget, "launches", SOME, "2 x jobs + 10", "Agent launches of the run.").stricter(),
    key(L::Budget, "cost_usd", Money, "none", "What the lanes of the run may report as cost, in dollars.").stricter(),

    key(L::Parallelism, "max_active_jobs", Count { min: 1, max: 1_000 }, "4", "Jobs that may hold a lease at once.").stricter(),

    key(L::Limits, "grace", Duration, "5s", "From TERM to KILL when a process tree is ended.").stricter(),
    key(L::Limits, "starting", Duration, "60s", "From a helper's launch to its agent's start.").stricter(),
    key(L::Limits, "lease", Duration, "30m", "Life of an unsupervised session's lease; any verb extends it.").stricter(),
    key(L::Limits, "cooldown", Duration, "1m", "First pause of a lane that said it is unavailable; doubles up to 30 minutes."),
    key(L::Limits, "gate_expiry", Duration, "7d", "Life of an undecided gate; the next turn opens it anew.").stricter(),
    key(L::Limits, "poll", Duration, "250ms", "How often a helper looks at the store when nothing wakes it."),
    key(L::Limits, "busy", Duration, "10s", "How long a verb waits for the store."),

    key(L::Stop, "phrases", Texts, "[]", "Phrases in an answer or a note that stop the run.").union(),

    key(L::Notify, "command", Argv(T::None), "none", "Gets one JSON document on standard input.").widens(),
    key(L::Notify, "on", Words(&["inbox", "needs_operator", "completed", "failed", "lane_parked", "driver_ended"]), "all of them", "What is worth telling."),
    key(L::Notify, "timeout", Duration, "10s", "How long the command may take; then it is ended."),

    key(L::Role, "instructions", Path, "none", "A file below `.striatum/` whose text every packet of the role begins with."),
    key(L::Role, "context", Word(&["any", "fresh"]), "any; fresh for a role that reviews", "`fresh`: a session of the role has seen nothing of the work it judges."),
    key(L::Role, "lanes", Ids, "all lanes", "The lanes that may play the role."),

    key(L::Lane, "adapter", Word(super::super::adapters::NAMES), "none", "A known agent: gives `command`, `stdin`, `idle_timeout`, `sandbox` and `unavailable` where they are not written.").widens(),
    key(L::Lane, "command", Argv(T::Launch), "the adapter's", "The command line; none means that a person does the work.").widens(),
    key(L::Lane, "mode", Word(&["oneshot", "loop", "human", "acp"]), "oneshot with a command, else human", "`oneshot` is started anew for each attempt, `loop` once and told to await work, `human` never."),
    key(L::Lane, "stdin", Word(&["null", "prompt", "packet"]), "null", "What the agent reads on standard input."),
    key(L::Lane, "result_from", Text(T::None), "none", "Where an answer stands that is neither a verb nor `result.json`: `stdout-json` or `stdout-json:/pointer`."),
    key(L::Lane, "model", Text(T::Params), "none", "The declared model; also `${model}`."),
    key(L::Lane, "env", EnvNames, "[]", "Environment variables that pass through; an unset one refuses the launch.").widens(),
    key(L::Lane, "timeout", Duration, "45m", "The whole attempt."),
    key(L::Lane, "idle_timeout", DurationOrOff, "off; 15m with an adapter", "No output, verb, file change or CPU time in the agent's process tree."),
    key(L::Lane, "max_sessions", Count { min: 1, max: 1_000 }, "4", "Sessions of the lane at once, over all runs of the store.").stricter(),
    key(L::Lane, "fallback", Ids, "[]", "Lanes that may take the job when this one is unavailable."),
    key(L::Lane, "unavailable", Table(L::Unavailable), "the adapter's", "How the agent says that it can't work now."),
    key(L::Lane, "sandbox", Word(&["off", "prefer-scope", "scope"]), "off; prefer-scope with an adapter", "What confines the lane: nothing, the kernel where it can, the kernel or no launch.").widens(),
    key(L::Lane, "write_paths", Folders, "[]", "Folders outside the tree that a sandboxed lane may write.").widens(),
    key(L::Lane, "build_dirs", Paths, "[]", "Folders inside the tree that a sandboxed lane may write beside its scope.").widens(),
    key(L::Lane, "tty", Flag, "false", "The agent gets a terminal (`loop` only)."),
    key(L::Lane, "own_sandbox", Word(&["none", "off_inside", "instead"]), "none", "The agent's own sandbox: it has none, it is switched off inside ours, or it stands in for ours.").widens(),

    key(L::Unavailable, "exits", Exits, "[]", "Exit codes that mean it."),
    key(L::Unavailable, "patterns", Texts, "[]", "Substrings of the last output that mean it."),
    key(L::Unavailable, "give_up", Duration, "8h", "When cooling down turns into waiting for a person."),

    key(L::Tree, "setup", Commands(T::Launch), "[]", "Commands that make a new work tree usable.").widens(),
    key(L::Tree, "setup_timeout", Duration, "15m", "Limit of all setup commands together."),
    key(L::Tree, "copy", Paths, "[]", "Files copied from the principal checkout, such as `.env`.").widens(),
    key(L::Tree, "cache", Paths, "[]", "Folders seeded from the last tree, such as `target`.").widens(),
    key(L::Tree, "discard", Globs, "[]", "Droppings that are never sealed."),
    key(L::Tree, "dir", Text(T::None), ".striatum/worktrees", "Where work trees stand.").widens(),
    key(L::Tree, "foreign_write", Word(&["refuse", "tell"]), "refuse", "What a change of the principal checkout during an attempt means: no seal, or an event. Nobody can see who made it; say `tell` where you work there yourself meanwhile.").widens(),

    key(L::Job, "id", Id, "required", "Names the job in its run."),
    key(L::Job, "type", Word(&["generic", "draft", "build", "test", "review", "synthesis", "checkpoint", "land"]), "generic", "What it is; a `checkpoint` is a person's gate, `land` moves the result to its target."),
    key(L::Job, "title", Text(T::Params), "empty", "A few words for people."),
    key(L::Job, "role", Id, "required; reviewer with `reviews`", "Who does it; not for `checkpoint` and `land`."),
    key(L::Job, "lane", Id, "the role's only lane", "How it is executed; not for `checkpoint` and `land`."),
    key(L::Job, "needs", Ids, "[]; for `land` every job that no other needs", "Jobs that must be settled first."),
    key(L::Job, "reviews", Kind::Reviews, "none", "The job it judges, or `{ range = \"A..B\" }`; implies `type`, `role`, `needs`, a fresh context, and `revisions = 2`."),
    key(L::Job, "objective", Text(T::Prose), "empty", "What to do, in a few sentences."),
    key(L::Job, "prompt", Path, "none", "A file below `.striatum/` that says more."),
    key(L::Job, "inputs", Texts, "[]", "Artifacts wanted beside those of direct needs, as `job.name`."),
    key(L::Job, "tree", Word(&["own", "tip", "none"]), "own with `writes`; tip for review, test, synthesis; else none", "Where it works: a tree of its own, one at the run's tip, an empty folder."),
    key(L::Job, "writes", Globs, "[]", "What it may change; a bare folder means everything below.").widens(),
    key(L::Job, "forbids", Globs, "[]", "What it may not change, though `writes` covers it.").widens(),
    key(L::Job, "produces", List(L::Produce), "[]", "Artifacts it leaves."),
    key(L::Job, "verify", Commands(T::Launch), "[]", "Commands that must pass before the job is sealed.").widens(),
    key(L::Job, "process", Table(L::Process), "none", "Commands that `process run` may run."),
    key(L::Job, "process_execution", Flag, "false", "`process run` may run any command.").widens(),
    key(L::Job, "effect", Word(&["read", "write", "shared", "outward"]), "derived", "How far it reaches; may only raise what follows from the other keys."),
    key(L::Job, "shared", Ids, "[]", "Resources it uses that others use too."),
    key(L::Job, "outward", Flag, "false", "It acts outside the repository."),
    key(L::Job, "ephemeral", Table(L::Ephemeral), "none", "A shared resource made for this job alone."),
    key(L::Job, "revisions", AGAIN, "2", "How often this review may send its subject back."),
    key(L::Job, "quorum", SOME, "all reviews", "Accepts that pass; stands on the reviewed job."),
    key(L::Job, "max_strikes", Count { min: 1, max: 100 }, "3", "The strike that ends it."),
    key(L::Job, "on_failure", Word(&["hold", "continue", "skip", "fail_run"]), "hold", "What happens when it is out of tries: successors wait, run without it, run as if it were skipped, or the run fails."),
    key(L::Job, "on_exit_zero", Word(&["complete", "unsealed"]), "complete; unsealed for a review", "What exit 0 without an answer means; `complete` asks for proof."),
    key(L::Job, "next_attempt", Word(&["continue", "clean"]), "continue", "Whether the tree carries over to the next attempt."),
    key(L::Job, "allow_empty", Flag, "false", "It may change nothing, though it has `writes`."),
    key(L::Job, "allow_overlap", Flag, "false", "Its scope may overlap with that of a job beside it."),
    key(L::Job, "gate_note", Text(T::Params), "empty", "Shown to the person at the gate."),
    key(L::Job, "into", Text(T::Params), "none", "Land: the target branch."),
    key(L::Job, "land_style", Word(&["squash", "merge", "ff"]), "squash", "Land: how."),
    key(L::Job, "trailers", Flag, "true", "Land: whether commits bear trailers that tell the run."),
    key(L::Job, "commit_message", Text(T::Params), "the answer's", "The message of the job's commit."),
    key(L::Job, "timeout", Duration, "the lane's", "The whole attempt."),
    key(L::Job, "interrogable", Flag, "false", "Others may ask its session.").reserved(),

    key(L::Produce, "name", Id, "required", "The artifact's name, unique in the job."),
    key(L::Produce, "path", Path, "none", "Where it stands, relative to the job's working folder."),
    key(L::Produce, "from", Word(&["stdout"]), "none", "Instead of `path`: it is the agent's output."),
    key(L::Produce, "kind", Text(T::None), "empty", "A word for readers."),
    key(L::Produce, "required", Flag, "true", "The job can't be sealed without it."),

    key(L::Process, "build", Commands(T::Params), "[]", "Builds.").widens(),
    key(L::Process, "test", Commands(T::Params), "the job's `verify`", "Tests.").widens(),
    key(L::Process, "lint", Commands(T::Params), "[]", "Linters.").widens(),

    key(L::Ephemeral, "resource", Id, "required", "Its name, one of the job's `shared`."),
    key(L::Ephemeral, "create", Argv(T::Resource), "required", "Makes it.").widens(),
    key(L::Ephemeral, "check", Argv(T::Resource), "required", "Exits 0 when it is there and healthy.").widens(),
    key(L::Ephemeral, "destroy", Argv(T::Resource), "required", "Takes it away.").widens(),

    key(L::Reviews, "range", Text(T::Params), "required", "Commits that exist, as `A..B`."),
];
