//! Looking at the world: the store's frontier, the locks, the STOP file.
//!
//! It looks and changes nothing; `reconcile` decides.

use crate::domain::breaker::{self, Beat, Pulse, Stillness, Watch};
use crate::domain::frozen::LaneMode;
use crate::domain::id::RunId;
use crate::domain::job::Cause;
use crate::domain::session::ExecutionState;
use crate::domain::time::{Moment, Timestamp};
use crate::domain::world::{HeldWork, LaneBlock, LockState, ResourceView, RunView, SessionView, SlotView, World};
use crate::error::Result;
use crate::os::lock::{Held, probe};
use crate::store::run::Run;
use crate::store::snapshot::{self, SessionRow, SlotRow};
use crate::store::{self, Connection};
use crate::verbs::resource::destroy;
use crate::verbs::work::layout::was_spawned;
use crate::verbs::{Ctx, session as sessions, trust};

/// Looks at a run.
pub fn world(ctx: &Ctx, run: RunId) -> Result<(Run, World)> {
    ctx.read(|read| world_in(ctx, read, store::run::get(read, run)?))
}

/// Looks at a run as a driver that remembers when it saw signs of life.
pub fn world_watched(ctx: &Ctx, run: RunId, stillness: &mut Stillness) -> Result<(Run, World)> {
    ctx.read(|read| seen(ctx, read, store::run::get(read, run)?, stillness))
}

/// Looks at a run that somebody's read has just found.
pub fn world_in(ctx: &Ctx, read: &Connection, run: Run) -> Result<(Run, World)> {
    seen(ctx, read, run, &mut Stillness::default())
}

fn seen(ctx: &Ctx, read: &Connection, run: Run, stillness: &mut Stillness) -> Result<(Run, World)> {
    let frontier = snapshot::frontier(read, &run, run.spec.max_active_jobs)?;
    let author = sessions::blocking(read, &run)?;
    let mut session_views = Vec::new();
    for row in &frontier.sessions {
        session_views.push(session_view(ctx, &run, row)?);
    }
    let is_untrusted = !trust::may_launch(ctx, &run);
    let view = RunView {
        state: run.state,
        is_paused: run.paused_at.is_some(),
        is_stopped: run.stop_requested_at.is_some(),
        free_leases: run.spec.max_active_jobs.saturating_sub(frontier.active_leases),
        launches_left: run.spec.budget.launches.saturating_sub(run.launches),
        is_untrusted,
        spent: breaker::spent(&run.spec.budget, &run.spending()),
        tripped: run.tripped.keys().copied().collect(),
        still_at: still_at(ctx, &run, &frontier.sessions, stillness),
    };
    let mut resources = Vec::new();
    for (row, job) in frontier.resources {
        let lock = destroy::is_at_work(ctx, &row, &job)?;
        resources.push(ResourceView { id: row.id, name: row.name, job, lock: lock_state(lock) });
    }
    let world = World {
        run: view,
        stop_file: ctx.layout().stop().exists(),
        sessions: session_views,
        slots: frontier.slots.iter().map(|row| slot_view(&run, row, author, is_untrusted)).collect(),
        ambiguous: frontier.ambiguous,
        stale: frontier.stale,
        proposals: frontier.proposals,
        gates_due: frontier.gates_due,
        gates: frontier.gates,
        leases: frontier.leases,
        resources,
        held: frontier.held,
        has_open_jobs: frontier.has_open_jobs,
    };
    Ok((run, world))
}

/// When what agents have in flight counts as silent.
fn still_at(ctx: &Ctx, run: &Run, sessions: &[SessionRow], stillness: &mut Stillness) -> Option<Moment> {
    let told_at = run.tripped.get(&Cause::NoProgress).copied();
    let watch = Watch { limit_ms: run.spec.budget.no_progress_ms, told_at };
    stillness.look(pulse(ctx, run, sessions), &ctx.clock.moment(), watch)
}

/// Signs of life: one look at a file for each piece of work in flight.
pub fn pulse(ctx: &Ctx, run: &Run, sessions: &[SessionRow]) -> Pulse {
    let is_agent =
        |row: &&SessionRow| run.spec.lanes.get(&row.session.lane).is_some_and(|lane| lane.mode != LaneMode::Human);
    let beat = |row: &SessionRow| {
        let held = row.held.as_ref()?;
        let output = ctx.layout().scratch(&row.session.id.to_string()).attempt(&held.name, held.attempt).output();
        let beat = Beat {
            name: held.name.clone(),
            attempt: held.attempt,
            active_at: row.session.active_at,
            output: last_output(&output),
        };
        Some((row.session.id, beat))
    };
    sessions.iter().filter(is_agent).filter_map(beat).collect()
}

fn last_output(path: &std::path::Path) -> Option<(u64, Timestamp)> {
    let about = std::fs::metadata(path).ok().filter(|about| about.len() > 0)?;
    let at = about.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((about.len(), Timestamp(i64::try_from(at.as_millis()).unwrap_or(i64::MAX))))
}

fn session_view(ctx: &Ctx, run: &Run, row: &SessionRow) -> Result<SessionView> {
    let session = &row.session;
    let scratch = ctx.layout().scratch(&session.id.to_string());
    let (helper, agent) = if session.supervised {
        (lock_state(probe(&scratch.helper_lock())?), lock_state(probe(&scratch.lane_lock())?))
    } else {
        (LockState::Free, LockState::Free)
    };
    let held = row.held.as_ref().map(|held| {
        // An intent whose output file exists may have become a process before its helper died.
        let may_have_run = was_spawned(&scratch.attempt(&held.name, held.attempt));
        let agent = held.agent.map(|state| match state {
            ExecutionState::Starting if may_have_run => ExecutionState::Running,
            other => other,
        });
        HeldWork { job: held.job, name: held.name.clone(), agent }
    });
    let is_launchable = run.spec.lanes.get(&session.lane).is_some_and(|lane| lane.mode != LaneMode::Human);
    Ok(SessionView {
        id: session.id,
        role: session.role.clone(),
        lane: session.lane.clone(),
        is_fresh: session.fresh,
        is_driven: session.driven,
        is_self_driven: !session.supervised && (session.packets > 0 || session.active_at > session.created_at),
        supervisor: row.supervisor.as_ref().map(|supervisor| supervisor.state),
        is_stopping: row.supervisor.as_ref().is_some_and(|supervisor| supervisor.stop_kind.is_some()),
        recoveries: row.recoveries,
        helper,
        agent,
        offered: session.offered,
        held,
        packets: session.packets,
        deadline: session.deadline.clone(),
        is_launchable,
    })
}

fn lock_state(held: Held) -> LockState {
    match held {
        Held::Held => LockState::Held,
        Held::Free => LockState::Free,
    }
}

fn slot_view(run: &Run, row: &SlotRow, author: Option<crate::domain::id::SessionId>, is_untrusted: bool) -> SlotView {
    let lane = run.spec.lanes.get(&row.lane);
    let blocked = match lane {
        Some(lane) if lane.mode == LaneMode::Human => Some(LaneBlock::Human),
        None => Some(LaneBlock::Human),
        Some(_) if is_untrusted => Some(LaneBlock::Untrusted),
        Some(_) if row.known.parked_at.is_some() => Some(LaneBlock::Parked),
        Some(_) => row.known.cooling_until.clone().map(LaneBlock::Cooling),
    };
    SlotView {
        role: row.role.clone(),
        lane: row.lane.clone(),
        offers: row.offers.clone(),
        live: row.live,
        blocked,
        free_leases: lane.map_or(0, |lane| lane.max_sessions.saturating_sub(row.lane_leases)),
        blocking_author: author,
    }
}
