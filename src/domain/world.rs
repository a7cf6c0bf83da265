//! Everything `reconcile` may look at. A fact it needs becomes a field.
//!
//! Only the frontier stands here: active sessions, launchable work, what is stale, due or waiting. It does not hold
//! finished jobs, and nothing in it can act.

use super::id::{GateId, JobId, LeaseId, ProposalId, SessionId};
use super::job::Cause;
use super::run::RunState;
use super::session::{ExecutionState, SupervisorState};
use super::time::Moment;

/// A picture of one run at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// The run.
    pub run: RunView,
    /// A person touched `.striatum/STOP`.
    pub stop_file: bool,
    /// Its active sessions.
    pub sessions: Vec<SessionView>,
    /// Work that a slot could launch.
    pub slots: Vec<SlotView>,
    /// Messages that name no lane, whose role has several.
    pub ambiguous: Vec<AmbiguousView>,
    /// Jobs whose holder is gone.
    pub stale: Vec<StaleView>,
    /// Proposals of sealed answers that no driver has looked at.
    pub proposals: Vec<ProposalView>,
    /// Jobs whose needs are settled and which wait for a person's gate that is not open yet.
    pub gates_due: Vec<JobView>,
    /// Open gates.
    pub gates: Vec<GateView>,
    /// Holds with a deadline.
    pub leases: Vec<LeaseView>,
    /// Resources that nobody works with any more.
    pub resources: Vec<ResourceView>,
    /// What waits for a person or is broken, gates and unlaunchable work left out.
    pub held: Vec<HeldView>,
    /// Some job is not settled.
    pub has_open_jobs: bool,
}

/// The run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunView {
    /// Where it is.
    pub state: RunState,
    /// No launches.
    pub is_paused: bool,
    /// Everything ends.
    pub is_stopped: bool,
    /// Leases that may still be granted.
    pub free_leases: u32,
    /// Launches that the budget still allows.
    pub launches_left: u32,
    /// The snapshot's commands are not trusted.
    pub is_untrusted: bool,
    /// Money and working time that are used up: nothing more is launched or claimed.
    pub spent: Vec<Cause>,
    /// Breakers whose trip was told.
    pub tripped: Vec<Cause>,
    /// When what is in flight counts as making no progress; none when nothing is.
    pub still_at: Option<Moment>,
}

/// Whether somebody holds a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Somebody alive.
    Held,
    /// Nobody.
    Free,
}

/// An active session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionView {
    /// The session.
    pub id: SessionId,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// Does one job only.
    pub is_fresh: bool,
    /// A driver launched or adopted it.
    pub is_driven: bool,
    /// It did something without a helper: somebody else drives it.
    pub is_self_driven: bool,
    /// Its helper that has not ended.
    pub supervisor: Option<SupervisorState>,
    /// It was told to end.
    pub is_stopping: bool,
    /// Helpers that took over after one that died.
    pub recoveries: u32,
    /// The helper's lock.
    pub helper: LockState,
    /// The agent's lock.
    pub agent: LockState,
    /// The attempt that it was launched for.
    pub offered: Option<(JobId, u32)>,
    /// What it holds.
    pub held: Option<HeldWork>,
    /// Packets held so far.
    pub packets: u32,
    /// Unsupervised only.
    pub deadline: Option<Moment>,
    /// A helper may host it: the lane has a command.
    pub is_launchable: bool,
}

/// What a session holds.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldWork {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// The agent's execution, if it was intended.
    pub agent: Option<ExecutionState>,
}

/// Work that a slot could launch.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotView {
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// The oldest pending messages, as many as could be launched at once.
    pub offers: Vec<Offer>,
    /// Pending and held messages of the slot.
    pub live: u32,
    /// Why no agent can be launched now.
    pub blocked: Option<LaneBlock>,
    /// Leases that the lane may still be granted over all runs.
    pub free_leases: u32,
    /// The author that blocks a fresh registration, when the slot needs one.
    pub blocking_author: Option<SessionId>,
}

/// A pending message.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// Only for a fresh session.
    pub is_fresh: bool,
    /// Not claimable before.
    pub not_before: Option<Moment>,
    /// The session that lost the attempt before.
    pub lost: Option<SessionId>,
    /// A session was launched for this attempt, ended, and never held it.
    pub was_launched: bool,
}

/// Why a lane can't be launched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LaneBlock {
    /// It is a person.
    Human,
    /// Its commands are not trusted.
    Untrusted,
    /// Parked.
    Parked,
    /// Cooling down until then.
    Cooling(Moment),
}

/// A job without a resolved lane.
#[derive(Clone, Debug, PartialEq)]
pub struct AmbiguousView {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// The role's lanes.
    pub lanes: Vec<String>,
}

/// A job whose holder is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct StaleView {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
}

/// A proposal that nobody has looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposalView {
    /// The proposal.
    pub proposal: ProposalId,
    /// Who proposes it.
    pub name: String,
}

/// A job, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct JobView {
    /// The job.
    pub job: JobId,
    /// Its name.
    pub name: String,
}

/// An open gate.
#[derive(Clone, Debug, PartialEq)]
pub struct GateView {
    /// The gate.
    pub gate: GateId,
    /// What waits for it.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Then it is opened anew.
    pub expires: Moment,
}

/// A hold with a deadline.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseView {
    /// The hold.
    pub lease: LeaseId,
    /// Who holds it.
    pub session: SessionId,
    /// What is held.
    pub name: String,
    /// When it ends without a verb.
    pub deadline: Moment,
}

/// A resource whose attempt is over and whose holder is gone.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceView {
    /// The store's number.
    pub id: i64,
    /// Its own name.
    pub name: String,
    /// The job that it was made for.
    pub job: String,
    /// The lock of whoever runs its commands.
    pub lock: LockState,
}

/// Something that waits for a person or is broken.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldView {
    /// The job.
    pub name: String,
    /// Why.
    pub cause: Cause,
}
