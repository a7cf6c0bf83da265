//! What a driver may do, as data. Two closed lists: lifecycle verbs and settlements.
//!
//! No rescue verb and no force stands here, so none can be performed.

use serde::{Deserialize, Serialize};

use super::id::{GateId, JobId, LeaseId, ProposalId, SessionId};
use super::job::Cause;
use super::time::Moment;

/// One act of a driver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Action {
    /// Settlement: nobody holds the session's locks and nothing was started; end it, requeue what it held.
    MarkLost {
        /// The session.
        session: SessionId,
    },
    /// Settlement: the helper is dead, an agent was started; a second helper watches, observes and settles.
    Recover {
        /// The session.
        session: SessionId,
        /// What it holds.
        job: String,
    },
    /// Settlement: an unsupervised hold ran out.
    ExpireLease {
        /// The hold.
        lease: LeaseId,
        /// Who held it.
        session: SessionId,
        /// What was held.
        job: String,
    },
    /// Settlement: an unsupervised session without a hold ran out.
    ExpireSession {
        /// The session.
        session: SessionId,
    },
    /// Settlement: the holder is gone and nothing is left to observe but the store.
    Observe {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
    },
    /// Settlement: a session was launched for the attempt and ended without holding it.
    NeverStarted {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
        /// The attempt.
        attempt: u32,
    },
    /// Verb `supervise stop`: the lane's work is sealed.
    StopLane {
        /// The session.
        session: SessionId,
        /// Its role.
        role: String,
        /// Its lane.
        lane: String,
    },
    /// Verb `session close`: nothing hosts the session and nothing is left for it.
    CloseSession {
        /// The session.
        session: SessionId,
        /// Its role.
        role: String,
        /// Its lane.
        lane: String,
    },
    /// Takes an existing session into account instead of registering another; then verb `supervise start`.
    Adopt {
        /// The session.
        session: SessionId,
        /// The job it covers.
        job: String,
    },
    /// Verbs `register-session` and `supervise start`.
    Launch(Launch),
    /// Settlement: a proposal of a sealed answer is admitted, surfaced or refused.
    AdmitNext {
        /// The proposal.
        proposal: ProposalId,
        /// Who proposes it.
        job: String,
    },
    /// Settlement: a person is to decide.
    OpenGate {
        /// The job.
        job: JobId,
        /// Its name.
        name: String,
    },
    /// Settlement: nobody decided in time.
    ExpireGate {
        /// The gate.
        gate: GateId,
        /// The job's name.
        name: String,
    },
    /// Settlement: what was made for an attempt whose holder is gone is destroyed, by a process of its own.
    Destroy {
        /// The store's number.
        id: i64,
        /// Its own name.
        resource: String,
        /// The job that it was made for.
        job: String,
    },
    /// Settlement: a breaker is told to have tripped.
    Trip {
        /// Which.
        breaker: Cause,
    },
    /// Settlement: what made no progress does again.
    Calm,
    /// Settlement: something can move again.
    Revive,
    /// Settlement: nothing can move, something is broken or spent.
    Escalate {
        /// Why.
        cause: Cause,
        /// About what.
        subject: String,
    },
    /// Settlement: every job is settled.
    Complete,
}

/// A lane to launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// The job it is launched for.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Which try.
    pub attempt: u32,
    /// One job only.
    pub fresh: bool,
    /// The session that lost the attempt before.
    pub lost: Option<SessionId>,
}

impl Action {
    /// Names the act and its object: the same act has the same key.
    pub fn key(&self) -> String {
        match self {
            Action::MarkLost { session } => format!("lost/{session}"),
            Action::Recover { session, .. } => format!("recover/{session}"),
            Action::ExpireLease { lease, .. } => format!("expire/{lease}"),
            Action::ExpireSession { session } => format!("expire/{session}"),
            Action::Observe { name, .. } => format!("observe/{name}"),
            Action::NeverStarted { name, attempt, .. } => format!("never-started/{name}.{attempt}"),
            Action::StopLane { session, .. } => format!("stop/{session}"),
            Action::CloseSession { session, .. } => format!("close/{session}"),
            Action::Adopt { session, .. } => format!("adopt/{session}"),
            Action::Launch(launch) => format!("launch/{}.{}", launch.name, launch.attempt),
            Action::AdmitNext { proposal, .. } => format!("next/{proposal}"),
            Action::OpenGate { name, .. } => format!("gate/{name}"),
            Action::ExpireGate { gate, .. } => format!("expire/{gate}"),
            Action::Destroy { resource, .. } => format!("destroy/{resource}"),
            Action::Trip { breaker } => format!("trip/{breaker}"),
            Action::Calm => "calm".to_owned(),
            Action::Revive => "revive".to_owned(),
            Action::Escalate { .. } => "escalate".to_owned(),
            Action::Complete => "complete".to_owned(),
        }
    }

    /// The lifecycle verbs that performing it calls; empty for a settlement.
    pub const fn verbs(&self) -> &'static [&'static str] {
        match self {
            Action::StopLane { .. } => &["supervise stop"],
            Action::CloseSession { .. } => &["session close"],
            Action::Adopt { .. } => &["supervise start"],
            Action::Launch(_) => &["register-session", "supervise start"],
            Action::MarkLost { .. }
            | Action::Recover { .. }
            | Action::ExpireLease { .. }
            | Action::ExpireSession { .. }
            | Action::Observe { .. }
            | Action::NeverStarted { .. }
            | Action::AdmitNext { .. }
            | Action::OpenGate { .. }
            | Action::ExpireGate { .. }
            | Action::Destroy { .. }
            | Action::Trip { .. }
            | Action::Calm
            | Action::Revive
            | Action::Escalate { .. }
            | Action::Complete => &[],
        }
    }
}

/// Something the driver tells and skips: it never guesses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "surfaced", rename_all = "snake_case")]
pub enum Surfaced {
    /// Several lanes, none named.
    AmbiguousLane {
        /// The job.
        job: String,
        /// Its role.
        role: String,
        /// The role's lanes.
        lanes: Vec<String>,
    },
    /// The lane is a person.
    HumanLane {
        /// The job.
        job: String,
        /// The lane.
        lane: String,
    },
    /// The lane's commands are not trusted.
    Untrusted {
        /// The job.
        job: String,
        /// The lane.
        lane: String,
    },
    /// The lane is parked.
    LaneParked {
        /// The job.
        job: String,
        /// The lane.
        lane: String,
    },
    /// A working author blocks the fresh reviewer.
    FreshBlocked {
        /// The job.
        job: String,
        /// The author.
        author: SessionId,
    },
}

impl Surfaced {
    /// The line a person reads.
    pub fn line(&self) -> String {
        match self {
            Surfaced::AmbiguousLane { job, role, lanes } => {
                format!("cannot resolve lane for {job} (role {role} has lanes {}); register manually", lanes.join(", "))
            }
            Surfaced::HumanLane { job, lane } => format!("{job} waits for a person (lane {lane}); striatum take {job}"),
            Surfaced::Untrusted { job, lane } => format!("{job} waits for trust in lane {lane}; striatum trust"),
            Surfaced::LaneParked { job, lane } => {
                format!("{job} waits for lane {lane}, which is parked; striatum lane resume {lane}")
            }
            Surfaced::FreshBlocked { .. } => "reviewer slot blocked: author still working; waiting".to_owned(),
        }
    }

    /// The job that is not launched, when a person has to act.
    pub fn job(&self) -> Option<&str> {
        match self {
            Surfaced::AmbiguousLane { job, .. }
            | Surfaced::HumanLane { job, .. }
            | Surfaced::Untrusted { job, .. }
            | Surfaced::LaneParked { job, .. } => Some(job),
            Surfaced::FreshBlocked { .. } => None,
        }
    }

    /// What the run then waits for, a job or a lane, and the cause when nothing else can move.
    pub fn cause(&self) -> Option<(&str, Cause)> {
        match self {
            Surfaced::AmbiguousLane { job, .. } => Some((job, Cause::AmbiguousLane)),
            Surfaced::HumanLane { job, .. } => Some((job, Cause::HumanLane)),
            Surfaced::Untrusted { job, .. } => Some((job, Cause::Untrusted)),
            Surfaced::LaneParked { lane, .. } => Some((lane, Cause::LaneParked)),
            Surfaced::FreshBlocked { .. } => None,
        }
    }
}

/// Where the run stands when the plan is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Something is in flight, or will be.
    Moving,
    /// Everything that is left waits for a person; nothing is broken.
    WaitingHuman(Vec<(String, Cause)>),
    /// Paused and the last lane has finished.
    Paused,
    /// Stopped, or the STOP file stands.
    Stopped,
    /// Not started.
    NotStarted,
    /// Terminal, or needs an operator.
    Over,
}

/// What `reconcile` decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// What to tell.
    pub surfaced: Vec<Surfaced>,
    /// When to look again at the latest, if anything is due by itself.
    pub wake_at: Option<Moment>,
    /// Where the run stands.
    pub standing: Standing,
}
