//! Helpers and their agents: they claim, start, answer, fail in every way, and die anywhere.

use striatum::domain::frozen::Effect;
use striatum::domain::job::{JobEvent, JobState, Outcome};
use striatum::domain::run::RunState;
use striatum::domain::session::{ExecutionState, SessionEvent, SupervisorState};
use striatum::domain::verdict::Verdict;

use super::chance::Chance;
use super::store::Store;

/// How an agent's attempt ends when it is not sealed.
const ENDS: &[Outcome] = &[
    Outcome::Failed,
    Outcome::Unsealed,
    Outcome::TimedOut,
    Outcome::Idle,
    Outcome::VerifyFailed,
    Outcome::ScopeFailed,
    Outcome::InvalidResult,
    Outcome::Conflict,
    Outcome::Unavailable,
    Outcome::Interrupted,
    Outcome::Environment,
    Outcome::Blocked,
    Outcome::NeedsContext,
];

const VERDICTS: &[Verdict] =
    &[Verdict::Accept, Verdict::Accept, Verdict::AcceptWithFindings, Verdict::NeedsRevision, Verdict::Reject];

/// One helper of chance does its next thing.
pub fn step_one(store: &mut Store, chance: &mut Chance) {
    let index = chance.below(store.sessions.len());
    if index < store.sessions.len() {
        step(store, chance, index);
    }
}

/// A helper, its agent, or both die.
pub fn kill_somebody(store: &mut Store, chance: &mut Chance) {
    let index = chance.below(store.sessions.len());
    let Some(session) = store.sessions.get_mut(index) else { return };
    session.helper = false;
    if chance.percent(60) {
        session.agent = false;
    }
}

/// A helper does its next thing; whether there was one.
pub fn step(store: &mut Store, chance: &mut Chance, index: usize) -> bool {
    let session = store.sessions[index].clone();
    if !session.is_active() || !session.helper {
        return false;
    }
    store.sessions[index].supervisor = Some(SupervisorState::Attached);
    match session.held {
        _ if store.run.is_terminal() || store.is_stopped => interrupt(store, index),
        Some((job, _, _)) if store.jobs[job].state == JobState::Stale => tell(store, chance, index, job),
        Some((job, attempt, None)) => start(store, chance, index, (job, attempt)),
        Some((job, _, Some(_))) => work(store, chance, index, job),
        None => claim(store, chance, index),
    }
    true
}

/// The run is over or stopped: what it holds is tried again another day.
fn interrupt(store: &mut Store, index: usize) {
    let (id, held) = (store.sessions[index].id, store.sessions[index].held);
    store.end_session(index, SessionEvent::Close, SupervisorState::Stopped);
    if let Some((job, _, _)) = held {
        store.end_attempt(job, Outcome::Interrupted, Some(id));
    }
}

fn claim(store: &mut Store, chance: &mut Chance, index: usize) {
    let session = store.sessions[index].clone();
    let may = |number: &usize| {
        let job = &store.jobs[*number];
        let is_due = job.not_before.as_ref().is_none_or(|moment| moment.is_past(&store.now));
        let fits = (job.role, job.lane, job.state) == (session.role, session.lane, JobState::Queued);
        fits && is_due && (!job.spec.fresh || session.packets == 0)
    };
    let offered = (0..store.jobs.len()).find(may);
    let cools = store.cooling.get(&session.lane).is_some_and(|until| !until.is_past(&store.now));
    let is_open = matches!(store.run, RunState::Running | RunState::NeedsOperator)
        && !store.is_paused
        && !store.is_out_of_money();
    let has_room = store.leases(None) < store.max_active
        && store.leases(Some(session.lane)) < store.lane_max[usize::from(session.lane)]
        && !cools
        && !store.parked.contains(&session.lane);
    let is_spent = session.fresh && session.packets > 0;
    let Some(job) = offered.filter(|_| is_open && has_room && !session.stopping && !is_spent) else {
        store.end_session(index, SessionEvent::Close, SupervisorState::Stopped);
        store.sessions[index].had_no_work = offered.is_some();
        return;
    };
    if chance.percent(5) {
        // It dies with nothing in hand.
        store.sessions[index].helper = false;
        return;
    }
    let attempt = store.jobs[job].attempt;
    assert!(store.claimed.insert((job, attempt)), "j{job}.{attempt} is claimed twice");
    assert!(!store.needs_gate(job) || store.jobs[job].is_through, "j{job} is worked on without its gate");
    store.move_job(job, JobEvent::Claim);
    let session = &mut store.sessions[index];
    (session.held, session.packets) = (Some((job, attempt, None)), session.packets + 1);
}

fn start(store: &mut Store, chance: &mut Chance, index: usize, (job, attempt): (usize, u32)) {
    if chance.percent(5) {
        store.sessions[index].helper = false;
        return;
    }
    assert!(store.started.insert((job, attempt)), "j{job}.{attempt} has two agents");
    store.launches += 1;
    store.move_job(job, JobEvent::Start);
    // It may die between the intent and the start.
    let is_there = !chance.percent(5);
    let session = &mut store.sessions[index];
    session.helper = is_there;
    session.agent = is_there;
    let state = if is_there { ExecutionState::Running } else { ExecutionState::Starting };
    session.held = Some((job, attempt, Some(state)));
}

fn work(store: &mut Store, chance: &mut Chance, index: usize, job: usize) {
    let id = store.sessions[index].id;
    match chance.below(100) {
        0..=7 => {
            store.sessions[index].helper = false;
            store.sessions[index].agent = chance.percent(40);
        }
        8..=14 => {}
        15..=69 => {
            let verdict = store.jobs[job].reviews.map(|_| *chance.one(VERDICTS));
            store.cost += 1;
            store.seal(job, verdict);
        }
        _ => store.end_attempt(job, *chance.one(ENDS), Some(id)),
    }
    let session = &mut store.sessions[index];
    if session.held.is_none() {
        session.agent = false;
    }
}

/// A recovery helper has watched, and tells what became of the attempt.
fn tell(store: &mut Store, chance: &mut Chance, index: usize, job: usize) {
    let id = store.sessions[index].id;
    store.end_session(index, SessionEvent::Close, SupervisorState::Stopped);
    if chance.percent(40) {
        let verdict = store.jobs[job].reviews.map(|_| *chance.one(VERDICTS));
        store.seal(job, verdict);
    } else {
        store.end_attempt(job, lost(store, job), Some(id));
    }
}

/// What an attempt came to whose holder is gone.
pub fn lost(store: &Store, job: usize) -> Outcome {
    if store.jobs[job].spec.effect >= Effect::Shared { Outcome::UnknownOutcome } else { Outcome::Lost }
}
