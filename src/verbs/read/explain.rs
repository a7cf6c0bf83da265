//! `run explain`: why each job is where it is, and what would move it.
//!
//! It reads the same plan that a driver would carry out, and the states; it guesses nothing.

use serde::{Deserialize, Serialize};

use super::summary::{driver, state};
use super::ways::{Subject, out_of};
use super::{Look, bounded, look};
use crate::domain::action::{Action, Standing, Surfaced};
use crate::domain::job::{Cause, JobState, Phase};
use crate::domain::run::RunState;
use crate::domain::session::MessageState;
use crate::domain::time::{Timestamp, show_duration};
use crate::domain::world::LaneBlock;
use crate::error::{Code, Error, Next, Result};
use crate::store::job::Job;
use crate::store::message::Message;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::flow::offer::{GATE, GATE_REJECTED};
use crate::verbs::person::LANE as PERSON;
use crate::verbs::run::find;

/// Jobs explained in one report.
const SHOWN: u32 = 50;

/// Names of needs that one line tells.
const NAMES: u32 = 3;

/// What `run explain` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ExplainRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// One job; every job that is not settled when left out.
    pub job: Option<String>,
}

/// Why one job is where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Why {
    /// The job.
    pub job: String,
    /// Where it is.
    pub state: JobState,
    /// Since when.
    pub since: Timestamp,
    /// Why a person is needed, if one is.
    pub cause: Option<Cause>,
    /// One line about it.
    pub why: String,
    /// What would move it.
    pub moved_by: String,
    /// The literal commands that do.
    pub next: Vec<Next>,
}

/// What `run explain` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExplainReport {
    /// The run's name; none in a store without runs.
    pub run: Option<String>,
    /// Where it is, `waiting_human` among the states.
    pub state: Option<String>,
    /// The jobs, those that only wait for others last.
    pub jobs: Vec<Why>,
    /// How many are not shown.
    pub left_out: u32,
    /// What a driver would do now, by its key.
    pub planned: Vec<String>,
}

/// Explains the jobs of a run.
pub fn explain(ctx: &Ctx, request: &ExplainRequest) -> Result<ExplainReport> {
    ctx.read(|read| {
        let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else {
            return Ok(ExplainReport { run: None, state: None, jobs: Vec::new(), left_out: 0, planned: Vec::new() });
        };
        let look = look(ctx, read, run)?;
        let (jobs, left_out) = match &request.job {
            Some(name) => (vec![named(read, &look.run, name)?], 0),
            None => {
                let mut jobs = store::job::open(read, look.run.id, SHOWN)?;
                let total = store::job::open_up_to(read, look.run.id, u32::MAX)?;
                let left_out = bounded(&mut jobs, SHOWN, total);
                (jobs, left_out)
            }
        };
        let reader = Reader::new(ctx, read, &look)?;
        Ok(ExplainReport {
            run: Some(look.run.name.clone()),
            state: Some(state(&look)),
            jobs: jobs.iter().map(|job| reader.why(job)).collect::<Result<_>>()?,
            left_out,
            planned: look.plan.actions.iter().map(Action::key).collect(),
        })
    })
}

/// A job of a run by its name.
pub fn named(read: &Connection, run: &Run, name: &str) -> Result<Job> {
    store::job::by_name(read, run.id, name)?.ok_or_else(|| {
        Error::new(Code::NotFound, format!("run {} has no job {name}", run.name)).next(Next::new(
            "anyone",
            "list its jobs",
            &["striatum", "run", "summary", "--run-id", &run.name],
        ))
    })
}

/// Explains jobs of one run.
pub struct Reader<'a> {
    ctx: &'a Ctx,
    read: &'a Connection,
    look: &'a Look,
    is_driven: bool,
}

/// Why, what moves it, and by which command.
struct Told {
    why: String,
    moved_by: String,
    cause: Option<Cause>,
    next: Vec<Next>,
}

impl Told {
    fn new(why: impl Into<String>, moved_by: impl Into<String>) -> Told {
        Told { why: why.into(), moved_by: moved_by.into(), cause: None, next: Vec::new() }
    }
}

impl<'a> Reader<'a> {
    /// Somebody who has looked at a run.
    pub fn new(ctx: &'a Ctx, read: &'a Connection, look: &'a Look) -> Result<Reader<'a>> {
        let is_driven = driver(ctx, &look.run)?.is_some();
        Ok(Reader { ctx, read, look, is_driven })
    }

    /// Why a job is where it is.
    pub fn why(&self, job: &Job) -> Result<Why> {
        let told = match job.state {
            JobState::Waiting => self.waiting(job)?,
            JobState::Queued => self.queued(job)?,
            JobState::Claimed | JobState::Running => self.held(job)?,
            JobState::Stale => {
                self.by_driver("its holder is gone, and what it did is not known", "a driver observes it")
            }
            JobState::WaitingHuman | JobState::Failed if !job.settled => self.stopped(job)?,
            JobState::Completed if !job.settled => self.judged(job)?,
            JobState::Completed
            | JobState::Failed
            | JobState::Skipped
            | JobState::Canceled
            | JobState::WaitingHuman => self.over(job)?,
        };
        Ok(Why {
            job: job.name.clone(),
            state: job.state,
            since: job.changed_at,
            cause: told.cause,
            why: told.why,
            moved_by: told.moved_by,
            next: told.next,
        })
    }

    fn subject<'b>(&'b self, job: &'b Job) -> Subject<'b> {
        Subject {
            run: &self.look.run.name,
            job: Some(&job.name),
            role: job.spec.role.as_deref(),
            lane: job.spec.lane.as_deref(),
            gate: None,
            of: Some(&self.look.run),
        }
    }

    /// A person ends it.
    fn by_person(&self, job: &Job, cause: Cause, why: impl Into<String>) -> Told {
        Told { cause: Some(cause), next: out_of(cause, &self.subject(job)), ..Told::new(why, "a person") }
    }

    /// A driver moves it; when none does, its command is the way.
    fn by_driver(&self, why: impl Into<String>, moved_by: &str) -> Told {
        let run = &self.look.run;
        let command = |words: &[&str], why: &str| {
            vec![Next::new("operator", why, &[&["striatum", "run"], words, &["--run-id", &run.name]].concat())]
        };
        let next = match self.look.plan.standing {
            Standing::NotStarted => command(&["start"], "enqueue its first jobs"),
            Standing::Stopped | Standing::Paused => command(&["resume"], "go on"),
            _ if run.state.is_terminal() => command(&["retry-job", "--failed", "--reason", "'...'"], "revive the run"),
            _ if !self.is_driven => command(&["drive"], "nobody drives the run"),
            _ => Vec::new(),
        };
        Told { next, ..Told::new(why, moved_by) }
    }

    fn waiting(&self, job: &Job) -> Result<Told> {
        if job.unmet > 0 {
            let open = store::job::need_places(self.read, job.id, NAMES)?;
            let named: Vec<String> = open
                .iter()
                .filter(|need| !need.settled)
                .map(|need| format!("{} ({})", need.name, need.state))
                .collect();
            let more = job.unmet.saturating_sub(super::count(named.len()));
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let told = Told::new(format!("needs {}{more}", named.join(", ")), "what it needs");
            let first = open.iter().find(|need| !need.settled);
            return Ok(Told { next: first.map(|need| self.explain(&need.name)).into_iter().collect(), ..told });
        }
        match job.reason.as_deref() {
            Some(GATE) => self.gated(job),
            Some(GATE_REJECTED) => Ok(self.by_person(job, Cause::GateRejected, "a person rejected its gate")),
            _ if self.look.run.state == RunState::Ready => Ok(self.by_driver("the run is not started", "`run start`")),
            _ => Ok(self.by_driver("nothing keeps it", "a driver")),
        }
    }

    fn explain(&self, job: &str) -> Next {
        Next::new(
            "anyone",
            "see what keeps that",
            &["striatum", "run", "explain", job, "--run-id", &self.look.run.name],
        )
    }

    fn gated(&self, job: &Job) -> Result<Told> {
        let Some(gate) = store::gate::pending_of_job(self.read, job.id)? else {
            return Ok(self.by_person(job, Cause::Gate, "a person is to decide before it goes"));
        };
        let id = gate.id.to_string();
        let subject = Subject { gate: Some(&id), ..self.subject(job) };
        let stuck = store::landing::refused(self.read, job.run)?.into_iter().find(|stuck| stuck.gate == gate.id);
        if let Some(stuck) = stuck {
            let next = out_of(Cause::Landing, &subject);
            let told = Told::new(format!("it can't land: {}", stuck.reason), "a person mends that and lands it");
            return Ok(Told { cause: Some(Cause::Landing), next, ..told });
        }
        let next = out_of(Cause::Gate, &subject);
        let told = Told::new(format!("gate {id} is open ({}): {}", gate.tier, gate.why), "a person decides");
        Ok(Told { cause: Some(Cause::Gate), next, ..told })
    }

    fn queued(&self, job: &Job) -> Result<Told> {
        let run = &self.look.run;
        if let Some((surfaced, cause)) = self.surfaced(job) {
            return Ok(Told {
                next: self.ways_of(job, surfaced, cause),
                ..self.by_person(job, cause, surfaced_why(surfaced))
            });
        }
        if let Standing::Stopped = self.look.plan.standing {
            return Ok(self.by_driver("offered; the run is stopped", "`run resume`"));
        }
        if run.paused_at.is_some() {
            let next = Next::new("operator", "go on", &["striatum", "run", "resume", "--run-id", &run.name]);
            return Ok(Told { next: vec![next], ..Told::new("offered; the run is paused", "`run resume`") });
        }
        let Some(message) =
            store::message::live_of_job(self.read, job.id)?.filter(|one| one.state == MessageState::Pending)
        else {
            return Ok(Told::new("offered, and nothing offers it", "`striatum doctor` says what is wrong"));
        };
        Ok(self.offered(job, &message))
    }

    /// Offered to a lane that can be launched: capacity, time, or a driver is all it waits for.
    fn offered(&self, job: &Job, message: &Message) -> Told {
        let lane = message.lane.as_deref().unwrap_or("any");
        let slot = format!("offered to {}/{lane}", message.role);
        let now = self.ctx.clock.moment();
        if let Some(action) = self.planned(job) {
            return self.by_driver(format!("{slot}; a driver would {action} now"), "a driver");
        }
        let blocked = self.look.plan.surfaced.iter().find_map(|surfaced| match surfaced {
            Surfaced::FreshBlocked { job: name, author } if *name == job.name => Some(*author),
            _ => None,
        });
        if let Some(author) = blocked {
            return Told::new(
                format!("{slot}; author {author} still works, and the review must be fresh"),
                "the author's end",
            );
        }
        let view = self.look.world.slots.iter().find(|view| view.role == message.role && view.lane == lane);
        let cooling = view.and_then(|view| match &view.blocked {
            Some(LaneBlock::Cooling(until)) if !until.is_past(&now) => Some(until.clone()),
            _ => None,
        });
        let held_back = message.not_before.clone().filter(|until| !until.is_past(&now)).or(cooling);
        if let Some(until) = held_back {
            let left = show_duration(u64::try_from(until.ms - now.ms).unwrap_or(0).next_multiple_of(1_000));
            return self.by_driver(format!("{slot}, which cools down for {left}"), "time");
        }
        if let Some(cause) = self.look.world.run.spent.first() {
            return self.by_person(job, *cause, format!("{slot}; {cause} is spent"));
        }
        if self.look.world.run.launches_left == 0 {
            return self.by_person(job, Cause::Launches, format!("{slot}; the budget of launches is spent"));
        }
        if view.is_some_and(|view| view.free_leases == 0) {
            return Told::new(format!("{slot}, which is full"), "a free place in the lane");
        }
        if self.look.world.run.free_leases == 0 {
            return Told::new(
                format!("{slot}; the run's {} places are taken", self.look.run.spec.max_active_jobs),
                "a free place",
            );
        }
        self.by_driver(slot, "a session of that slot takes it")
    }

    fn surfaced(&self, job: &Job) -> Option<(&Surfaced, Cause)> {
        let slot = self.look.world.slots.iter().find(|slot| slot.offers.iter().any(|offer| offer.name == job.name));
        self.look.plan.surfaced.iter().find_map(|surfaced| {
            let (name, cause) = surfaced.cause()?;
            let in_slot = slot.is_some_and(|slot| slot.offers.iter().any(|offer| offer.name == name));
            (name == job.name || in_slot).then_some((surfaced, cause))
        })
    }

    fn ways_of(&self, job: &Job, surfaced: &Surfaced, cause: Cause) -> Vec<Next> {
        let lane = match surfaced {
            Surfaced::AmbiguousLane { lanes, .. } => lanes.first().map(String::as_str),
            Surfaced::HumanLane { lane, .. } | Surfaced::Untrusted { lane, .. } | Surfaced::LaneParked { lane, .. } => {
                Some(lane.as_str())
            }
            Surfaced::FreshBlocked { .. } => None,
        };
        out_of(cause, &Subject { lane, ..self.subject(job) })
    }

    /// What a driver would do with the job, if anything.
    fn planned(&self, job: &Job) -> Option<String> {
        let action = self.look.plan.actions.iter().find(|action| match action {
            Action::Launch(launch) => launch.job == job.id,
            Action::Adopt { job: name, .. } | Action::Recover { job: name, .. } => *name == job.name,
            Action::NeverStarted { job: id, .. }
            | Action::Observe { job: id, .. }
            | Action::OpenGate { job: id, .. } => *id == job.id,
            _ => false,
        })?;
        Some(action.key())
    }

    fn held(&self, job: &Job) -> Result<Told> {
        let Some(lease) = store::lease::active_of_job(self.read, job.id)? else {
            return Ok(Told::new("held, and nobody holds it", "`striatum doctor` says what is wrong"));
        };
        let session = store::session::get(self.read, lease.session)?;
        let lane = session.as_ref().map(|session| session.lane.clone());
        let who = match session {
            Some(session) => format!("{}/{} ({})", session.role, session.lane, session.id),
            None => lease.session.to_string(),
        };
        let is_lost = self.look.plan.actions.iter().any(|action| match action {
            Action::MarkLost { session } | Action::Recover { session, .. } => *session == lease.session,
            Action::ExpireLease { lease: expired, .. } => *expired == lease.id,
            _ => false,
        });
        if is_lost {
            return Ok(self.by_driver(format!("{who} holds it and is gone"), "a driver recovers it"));
        }
        let since = show_duration(super::age(self.ctx, lease.granted_at) / 1_000 * 1_000);
        let since = if since == "0ms" { String::new() } else { format!(" for {since}") };
        let (does, moved_by) = match (job.state, job.phase) {
            (JobState::Claimed, _) => ("has taken", "its start"),
            (_, Some(Phase::Answered)) => ("has answered", "its end, and the checks after it"),
            (_, Some(Phase::Settling)) => ("has answered; it is checked", "the checks"),
            (_, Some(Phase::Working) | None) => ("works on", "its answer"),
        };
        let why = format!("{who} {does} attempt {}{since}", lease.attempt);
        if lane.as_deref() == Some(PERSON) {
            let words = ["striatum", "give", &job.name, "--run-id", &self.look.run.name, "--done"];
            let give = Next::new("person", "whoever took it gives it back", &words);
            return Ok(Told { next: vec![give], ..Told::new(why, "a person") });
        }
        Ok(Told::new(why, moved_by))
    }

    fn stopped(&self, job: &Job) -> Result<Told> {
        let cause = job.reason.as_deref().and_then(|word| word.parse().ok()).unwrap_or(Cause::Other);
        let detail = match job.attempt {
            0 => None,
            number => store::attempt::get(self.read, job.id, number)?.detail,
        };
        let why = match (&job.question, detail) {
            (Some(question), _) => format!("{cause}: awaits {} from {}", question.awaiting, question.who),
            (None, Some(detail)) => format!("{cause}: {detail}"),
            (None, None) => cause.to_string(),
        };
        Ok(self.by_person(job, cause, why))
    }

    /// A review that has answered waits for the other reviews of its subject.
    fn judged(&self, job: &Job) -> Result<Told> {
        let Some(subject) = job.reviews else { return Ok(Told::new("sealed, and not settled", "its successors")) };
        let panel = store::job::panel(self.read, subject)?;
        let open: Vec<&str> = panel
            .iter()
            .filter(|review| review.id != job.id && !review.settled && review.state != JobState::Completed)
            .map(|review| review.name.as_str())
            .take(NAMES as usize)
            .collect();
        if open.is_empty() {
            return Ok(Told::new("it has judged; its panel is short of accepts", "a person's verdict"));
        }
        Ok(Told::new(format!("it has judged; its panel waits for {}", open.join(", ")), "the other reviews"))
    }

    fn over(&self, job: &Job) -> Result<Told> {
        let detail = match job.attempt {
            0 => None,
            number => store::attempt::get(self.read, job.id, number)?.detail,
        };
        let why = match (job.state, &job.reason, detail) {
            (JobState::Completed, _, Some(detail)) => format!("sealed by attempt {}: {detail}", job.attempt),
            (JobState::Completed, _, None) => "a person let it through".to_owned(),
            (_, Some(reason), Some(detail)) => format!("{reason}: {detail}"),
            (_, Some(reason), None) => reason.clone(),
            (_, None, detail) => detail.unwrap_or_else(|| job.state.to_string()),
        };
        Ok(Told::new(why, "nothing: it is settled"))
    }
}

fn surfaced_why(surfaced: &Surfaced) -> String {
    match surfaced {
        Surfaced::AmbiguousLane { role, lanes, .. } => {
            format!("offered to role {role}, which has lanes {}, and none is named", lanes.join(", "))
        }
        Surfaced::HumanLane { lane, .. } => format!("offered to lane {lane}, which is a person"),
        Surfaced::Untrusted { lane, .. } => format!("offered to lane {lane}, whose commands nobody has trusted"),
        Surfaced::LaneParked { lane, .. } => format!("offered to lane {lane}, which is parked"),
        Surfaced::FreshBlocked { author, .. } => format!("a fresh review, and author {author} still works"),
    }
}
