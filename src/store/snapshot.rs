//! Loads the store's half of `World`: only the frontier, whatever the history.
//!
//! It does not know locks, trust or files; those are the other half.

use super::lane::LaneRow;
use super::message::Holding;
use super::run::Run;
use super::session::Session;
use super::supervisor::Supervisor;
use super::{
    StoreResult, attempt, gate, job, landing, lane, lease, message, proposal, resource, session, supervisor, tally,
};
use crate::domain::gate::{is_due, tier_of};
use crate::domain::job::{Cause, JobState, Outcome};
use crate::domain::proposal::ProposalState;
use crate::domain::session::SessionState;
use crate::domain::world::{AmbiguousView, GateView, HeldView, JobView, LeaseView, Offer, ProposalView, StaleView};
use rusqlite::Connection;
use std::collections::BTreeMap;

/// How many waiting or held jobs are looked at; more change nothing about what a turn can do.
const LOOK: u32 = 200;

/// What the store knows of a run's frontier.
pub struct Frontier {
    /// Active sessions with their helpers and what they hold.
    pub sessions: Vec<SessionRow>,
    /// Slots with pending messages.
    pub slots: Vec<SlotRow>,
    /// Messages that name no lane.
    pub ambiguous: Vec<AmbiguousView>,
    /// Jobs whose holder is gone.
    pub stale: Vec<StaleView>,
    /// Proposals that no driver has looked at.
    pub proposals: Vec<ProposalView>,
    /// Jobs that wait for a gate that is not open.
    pub gates_due: Vec<JobView>,
    /// Open gates.
    pub gates: Vec<GateView>,
    /// Holds with a deadline.
    pub leases: Vec<LeaseView>,
    /// Resources that nobody works with any more, with the names of their jobs.
    pub resources: Vec<(resource::Resource, String)>,
    /// What waits for a person or is broken.
    pub held: Vec<HeldView>,
    /// Some job is not settled.
    pub has_open_jobs: bool,
    /// How many jobs are held.
    pub active_leases: u32,
}

/// An active session.
pub struct SessionRow {
    /// The session.
    pub session: Session,
    /// Its helper that has not ended.
    pub supervisor: Option<Supervisor>,
    /// Helpers that took over after one that died.
    pub recoveries: u32,
    /// What it holds.
    pub held: Option<Holding>,
}

/// A slot with pending messages.
pub struct SlotRow {
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// The oldest pending messages.
    pub offers: Vec<Offer>,
    /// Pending and held messages.
    pub live: u32,
    /// What is known of the lane.
    pub known: LaneRow,
    /// Jobs that the lane holds over all runs.
    pub lane_leases: u32,
}

/// Loads the frontier of a run; `launchable` bounds the offers of each slot.
pub fn frontier(read: &Connection, run: &Run, launchable: u32) -> StoreResult<Frontier> {
    let slots = message::pending_slots(read, run.id)?;
    let sessions = sessions(read, run)?;
    let obstacles = tally::obstacles(read, run.id)?;
    let holds = lease::holds(read, run.id)?;
    Ok(Frontier {
        slots: slot_rows(read, run, &slots, &Crew { sessions: &sessions, launchable })?,
        sessions,
        ambiguous: ambiguous(read, run, &slots)?,
        stale: if obstacles.is_stuck { stale(read, run)? } else { Vec::new() },
        proposals: if obstacles.has_proposals { proposals(read, run)? } else { Vec::new() },
        gates_due: if obstacles.is_kept { gates_due(read, run)? } else { Vec::new() },
        gates: if obstacles.has_gates { gate::views(read, run.id)? } else { Vec::new() },
        active_leases: u32::try_from(holds.len()).unwrap_or(u32::MAX),
        leases: holds.into_iter().filter_map(lease_view).collect(),
        resources: resources(read, run)?,
        held: held(read, run, &obstacles)?,
        has_open_jobs: obstacles.has_open,
    })
}

fn sessions(read: &Connection, run: &Run) -> StoreResult<Vec<SessionRow>> {
    let active = session::active(read, run.id)?;
    let is_hosted = active.iter().any(|session| session.supervised);
    let mut supervisors = if is_hosted { supervisor::active_of_run(read, run.id)? } else { Vec::new() };
    let mut rows = Vec::new();
    for session in active {
        let held = message::holding(read, session.id)?;
        let supervisor = supervisors
            .iter()
            .position(|supervisor| supervisor.session == session.id)
            .map(|position| supervisors.swap_remove(position));
        let recoveries = match supervisor.as_ref().is_some_and(|supervisor| supervisor.recovers) {
            true => supervisor::recoveries(read, session.id)?,
            false => 0,
        };
        rows.push(SessionRow { session, supervisor, recoveries, held });
    }
    Ok(rows)
}

/// Who is there, and how many may come.
struct Crew<'a> {
    sessions: &'a [SessionRow],
    launchable: u32,
}

fn slot_rows(
    read: &Connection,
    run: &Run,
    slots: &[(String, Option<String>)],
    crew: &Crew<'_>,
) -> StoreResult<Vec<SlotRow>> {
    // More messages than these change nothing: that many sessions there are, and that many may be started.
    let most = crew.launchable.max(1).saturating_add(u32::try_from(crew.sessions.len()).unwrap_or(u32::MAX));
    let known: BTreeMap<String, LaneRow> = lane::all(read)?.into_iter().collect();
    let mut rows = Vec::new();
    for (role, lane) in slots {
        let Some(lane) = lane else { continue };
        let offered = message::offers(read, run.id, (role, lane), most)?;
        let is_here = |row: &&SessionRow| row.session.role == *role && row.session.lane == *lane && row.held.is_some();
        let held = crew.sessions.iter().filter(is_here).count();
        let is_open = slots.iter().any(|(other, lane)| other == role && lane.is_none());
        let any = if is_open { message::pending_for_any(read, run.id, role, most)? } else { 0 };
        let offers = offered.iter().take(crew.launchable.max(1) as usize).map(|message| offer(read, message));
        rows.push(SlotRow {
            role: role.clone(),
            lane: lane.clone(),
            offers: offers.collect::<StoreResult<_>>()?,
            live: u32::try_from(offered.len() + held).unwrap_or(u32::MAX).saturating_add(any),
            known: known.get(lane).cloned().unwrap_or_default(),
            lane_leases: lease::count_lane(read, lane)?,
        });
    }
    Ok(rows)
}

fn offer(read: &Connection, message: &message::Offered) -> StoreResult<Offer> {
    let before = match message.attempt {
        0 | 1 => None,
        number => Some(attempt::get(read, message.job, number - 1)?),
    };
    let lost = match before.filter(|before| matches!(before.outcome, Some(Outcome::Lost | Outcome::NeverStarted))) {
        Some(before) if before.session.is_some() => before.session,
        // Nobody held it: whoever was launched for it.
        Some(_) => session::offered(read, message.job, message.attempt - 1)?.map(|session| session.id),
        None => None,
    };
    let launched = session::offered(read, message.job, message.attempt)?;
    let was_launched = launched.is_some_and(|session| {
        let had_no_work = session.end_reason.as_deref().is_some_and(|reason| reason.starts_with("no_work: "));
        session.state != SessionState::Active && session.packets == 0 && !had_no_work
    });
    Ok(Offer {
        job: message.job,
        name: message.name.clone(),
        attempt: message.attempt,
        is_fresh: message.fresh,
        not_before: message.not_before.clone(),
        lost,
        was_launched,
    })
}

fn ambiguous(read: &Connection, run: &Run, slots: &[(String, Option<String>)]) -> StoreResult<Vec<AmbiguousView>> {
    let mut views = Vec::new();
    for (role, _) in slots.iter().filter(|(_, lane)| lane.is_none()) {
        for message in message::pending(read, run.id, role, None, LOOK)? {
            let lanes = run.spec.roles.get(role).map(|role| role.lanes.clone()).unwrap_or_default();
            let lanes = if lanes.is_empty() { run.spec.lanes.keys().cloned().collect() } else { lanes };
            let name = job::name(read, message.job)?;
            views.push(AmbiguousView { job: message.job, name, role: role.clone(), lanes });
        }
    }
    Ok(views)
}

fn stale(read: &Connection, run: &Run) -> StoreResult<Vec<StaleView>> {
    let mut views = Vec::new();
    for job in job::in_state(read, run.id, JobState::Stale, LOOK)? {
        // A lease means that a second helper is looking at it.
        if lease::active_of_job(read, job.id)?.is_none() {
            views.push(StaleView { job: job.id, name: job.name });
        }
    }
    Ok(views)
}

fn proposals(read: &Connection, run: &Run) -> StoreResult<Vec<ProposalView>> {
    let mut views = Vec::new();
    for row in proposal::in_state(read, run.id, ProposalState::Pending, LOOK)? {
        views.push(ProposalView { proposal: row.id, name: job::name(read, row.job)? });
    }
    Ok(views)
}

fn gates_due(read: &Connection, run: &Run) -> StoreResult<Vec<JobView>> {
    let jobs = job::gates_due(read, run.id, LOOK)?.into_iter();
    let due = jobs.filter(|job| is_due(tier_of(&job.spec), run.spec.autonomy));
    Ok(due.map(|job| JobView { job: job.id, name: job.name }).collect())
}

fn lease_view(hold: lease::Hold) -> Option<LeaseView> {
    let lease::Hold { lease, session, name, deadline } = hold;
    deadline.map(|deadline| LeaseView { lease, session, name, deadline })
}

fn resources(read: &Connection, run: &Run) -> StoreResult<Vec<(resource::Resource, String)>> {
    let mut due = Vec::new();
    for row in resource::due(read, run.id)? {
        let name = job::name(read, row.job)?;
        due.push((row, name));
    }
    Ok(due)
}

fn held(read: &Connection, run: &Run, obstacles: &tally::Obstacles) -> StoreResult<Vec<HeldView>> {
    let cause = |reason: Option<&str>| reason.and_then(|word| word.parse().ok()).unwrap_or(Cause::Other);
    let mut views = Vec::new();
    let states = [JobState::WaitingHuman, JobState::Failed];
    for state in states.into_iter().filter(|_| obstacles.is_stuck) {
        let held = job::held(read, run.id, state, LOOK)?.into_iter();
        views.extend(held.map(|job| HeldView { cause: cause(job.reason.as_deref()), name: job.name }));
    }
    if obstacles.is_kept {
        let rejected = job::kept_for(read, run.id, Cause::GateRejected.word(), LOOK)?.into_iter();
        views.extend(rejected.map(|job| HeldView { name: job.name, cause: Cause::GateRejected }));
    }
    if obstacles.has_gates {
        let stuck = landing::refused(read, run.id)?.into_iter();
        views.extend(stuck.map(|stuck| HeldView { name: stuck.job, cause: Cause::Landing }));
    }
    Ok(views)
}
