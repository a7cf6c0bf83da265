//! Drivers: they look, decide by `reconcile`, and act; on what they see, or on what another saw long ago.

use std::collections::BTreeSet;

use striatum::domain::action::{Action, Launch, Plan, Standing};
use striatum::domain::id::{GateId, JobId, SessionId};
use striatum::domain::job::{JobEvent, JobState, Outcome};
use striatum::domain::reconcile::reconcile;
use striatum::domain::run::{RunEvent, RunState};
use striatum::domain::session::{ExecutionState, GateEvent, GateState, SessionEvent, SessionState, SupervisorState};
use striatum::domain::world::{LaneBlock, SlotView, World};

use super::chance::Chance;
use super::store::{Gate, Reason, Session, Store};
use super::workers;

/// Life of a gate that nobody decides.
const GATE_MS: u64 = 300_000;

/// A driver's turn on what it sees; it may die after any act.
pub fn turn(store: &mut Store, chance: &mut Chance) {
    let plan = looked_at(store, chance);
    let acts = if chance.percent(60) { usize::MAX } else { chance.below(4) };
    for action in plan.actions.iter().take(acts) {
        perform(store, chance, action);
        store.check();
    }
}

/// Another driver acts on a picture that is not true any more.
pub fn late_turn(store: &mut Store, old: &World, chance: &mut Chance) {
    let plan = reconcile(old, &store.now);
    for action in plan.actions.iter().take(1 + chance.below(5)) {
        perform(store, chance, action);
        store.check();
    }
}

/// Drives in a fair world until the plan says where the run stands.
pub fn drive(store: &mut Store, chance: &mut Chance) -> Standing {
    for _ in 0..5_000 {
        let plan = looked_at(store, chance);
        if plan.actions.is_empty() && plan.standing != Standing::Moving {
            return plan.standing;
        }
        let mut moved = false;
        for action in &plan.actions {
            moved |= perform(store, chance, action);
            store.check();
        }
        for index in 0..store.sessions.len() {
            moved |= workers::step(store, chance, index);
            store.check();
        }
        store.now.ms += 10;
        if !moved {
            let wake = plan.wake_at.unwrap_or_else(|| panic!("wedged: {store:#?}"));
            assert!(wake.boot == store.now.boot && wake.ms > store.now.ms - 10, "it would spin: {wake:?}");
            store.now.ms = store.now.ms.max(wake.ms);
        }
    }
    panic!("no end: {store:#?}");
}

/// What a driver decides, with everything that its decision must keep.
fn looked_at(store: &Store, chance: &mut Chance) -> Plan {
    let world = store.picture();
    let plan = reconcile(&world, &store.now);
    let mut shuffled = world.clone();
    chance.shuffle(&mut shuffled.sessions);
    chance.shuffle(&mut shuffled.slots);
    chance.shuffle(&mut shuffled.gates);
    chance.shuffle(&mut shuffled.gates_due);
    chance.shuffle(&mut shuffled.held);
    shuffled.slots.iter_mut().for_each(|slot| chance.shuffle(&mut slot.offers));
    assert_eq!(reconcile(&shuffled, &store.now), plan, "the order of rows matters");
    keeps_limits(&world, &plan);
    names_what_waits(store, &world, &plan);
    plan
}

fn keeps_limits(world: &World, plan: &Plan) {
    let launches: Vec<&Launch> = plan
        .actions
        .iter()
        .filter_map(|action| if let Action::Launch(launch) = action { Some(launch) } else { None })
        .collect();
    let starts = plan.actions.iter().any(|action| matches!(action, Action::Launch(_) | Action::Adopt { .. }));
    let is_open = matches!(world.run.state, RunState::Running | RunState::NeedsOperator);
    assert!(
        !starts || (is_open && !world.run.is_paused && !world.run.is_stopped),
        "it starts what it may not: {plan:?}"
    );
    assert!(launches.len() <= world.run.free_leases as usize, "more launches than leases");
    assert!(launches.len() <= world.run.launches_left as usize, "more launches than the budget has");
    for slot in &world.slots {
        let into = launches.iter().filter(|launch| launch.lane == slot.lane).count();
        assert!(into <= slot.free_leases as usize, "more launches than lane {} has room for", slot.lane);
    }
    for launch in launches {
        let is_offered = |slot: &SlotView| {
            slot.offers.iter().any(|offer| (offer.job, offer.attempt) == (launch.job, launch.attempt))
        };
        assert!(world.slots.iter().any(is_offered), "{} is not offered", launch.name);
    }
}

/// A driver waits or gives up only for what has a cause of the list, with each such thing named, and only when nothing
/// else can move.
fn names_what_waits(store: &Store, world: &World, plan: &Plan) {
    if let Standing::WaitingHuman(reasons) = &plan.standing {
        assert!(!reasons.is_empty() && reasons.iter().all(|(_, cause)| cause.is_mere_waiting()), "{reasons:?}");
        let named: BTreeSet<&str> = reasons.iter().map(|(name, _)| name.as_str()).collect();
        let gates = world.gates.iter().map(|gate| gate.name.as_str());
        let unnamed: Vec<&str> = gates
            .chain(world.held.iter().map(|held| held.name.as_str()))
            .filter(|name| !named.contains(name))
            .collect();
        assert!(unnamed.is_empty(), "{unnamed:?} wait and are not named");
        assert!(!can_move(store, world, plan), "it waits, and something can move: {plan:?}");
    }
    for action in &plan.actions {
        if let Action::Escalate { cause, .. } = action {
            assert!(!cause.is_mere_waiting(), "given up for {cause}, which only waits");
            assert!(!can_move(store, world, plan), "given up, and something can move: {plan:?}");
        }
    }
}

/// Somebody works, or an offer could be launched. Behind an author that may work yet a fresh reviewer can't be; behind
/// one that is told to end it can soon.
fn can_move(store: &Store, world: &World, plan: &Plan) -> bool {
    let works = world.sessions.iter().any(|session| session.held.is_some());
    let is_ending = |id: SessionId| {
        let is_told = world.sessions.iter().any(|session| session.id == id && session.is_stopping);
        let is_stopped = |action: &Action| match action {
            Action::StopLane { session, .. } | Action::CloseSession { session, .. } => *session == id,
            _ => false,
        };
        is_told || plan.actions.iter().any(is_stopped)
    };
    let may_go = |slot: &SlotView| {
        let is_parked = matches!(slot.blocked, Some(LaneBlock::Parked));
        let is_kept = slot.blocking_author.is_some_and(|author| !is_ending(author));
        !is_parked && slot.offers.iter().any(|offer| !(offer.is_fresh && is_kept))
    };
    let is_due = !world.gates_due.is_empty() || !world.stale.is_empty();
    let is_affordable = world.run.launches_left > 0 && world.run.spent.is_empty();
    works || is_due || (!store.is_paused && is_affordable && world.slots.iter().any(may_go))
}

fn index_of(store: &Store, id: SessionId) -> usize {
    store.sessions.iter().position(|session| session.id == id).unwrap()
}

fn number_of(id: JobId) -> usize {
    usize::try_from(id.0).unwrap()
}

/// Does one act, as far as the store allows it; whether anything came of it.
fn perform(store: &mut Store, chance: &mut Chance, action: &Action) -> bool {
    match action {
        Action::Launch(launch) => start(store, chance, launch),
        Action::MarkLost { session } => mark_lost(store, *session),
        Action::Recover { session, .. } => recover(store, *session),
        Action::NeverStarted { job, attempt, .. } => {
            let number = number_of(*job);
            let job = &store.jobs[number];
            if (job.state, job.attempt) != (JobState::Queued, *attempt) {
                return false;
            }
            store.move_job(number, JobEvent::Block);
            store.end_attempt(number, Outcome::NeverStarted, None);
            true
        }
        Action::Observe { job, .. } => {
            let number = number_of(*job);
            let is_there = store.picture().stale.iter().any(|stale| stale.job == *job);
            if is_there {
                store.end_attempt(number, workers::lost(store, number), None);
            }
            is_there
        }
        Action::Adopt { session, .. } => {
            let session = index_of(store, *session);
            let session = &mut store.sessions[session];
            let may = session.is_active() && session.supervisor.is_none();
            if may {
                (session.supervisor, session.helper) = (Some(SupervisorState::Starting), true);
            }
            may
        }
        Action::StopLane { session, .. } => {
            let session = index_of(store, *session);
            let was = std::mem::replace(&mut store.sessions[session].stopping, true);
            !was && store.sessions[session].is_active()
        }
        Action::CloseSession { session, .. } => {
            let index = index_of(store, *session);
            let session = &store.sessions[index];
            let may = session.is_active() && session.held.is_none() && !session.helper;
            if may {
                store.end_session(index, SessionEvent::Close, SupervisorState::Stopped);
            }
            may
        }
        Action::OpenGate { job, .. } => open_gate(store, number_of(*job)),
        Action::ExpireGate { gate, .. } => expire_gate(store, *gate),
        Action::Trip { breaker } => {
            let is_new = !store.tripped.contains(breaker);
            if is_new {
                store.tripped.push(*breaker);
            }
            is_new
        }
        Action::Revive => move_run(store, RunState::NeedsOperator, RunEvent::Revive),
        Action::Escalate { .. } => move_run(store, RunState::Running, RunEvent::Escalate),
        Action::Complete => {
            let was = store.run;
            store.complete_if_done();
            was != store.run
        }
        other => panic!("nothing in this model asks for {other:?}"),
    }
}

fn move_run(store: &mut Store, from: RunState, event: RunEvent) -> bool {
    let may = store.run == from;
    if may {
        store.move_run(event);
    }
    may
}

fn mark_lost(store: &mut Store, session: SessionId) -> bool {
    let index = index_of(store, session);
    let session = store.sessions[index].clone();
    if !session.is_active() || session.helper || session.agent || session.supervisor.is_none() {
        return false;
    }
    store.end_session(index, SessionEvent::Lose, SupervisorState::Lost);
    if session.packets == 0 {
        store.launches += 1;
    }
    if let Some((job, _, agent)) = session.held {
        let outcome = if agent == Some(ExecutionState::Running) { Outcome::Lost } else { Outcome::NeverStarted };
        store.end_attempt(job, outcome, Some(session.id));
    }
    true
}

fn recover(store: &mut Store, session: SessionId) -> bool {
    let index = index_of(store, session);
    let session = &mut store.sessions[index];
    if !session.is_active() || session.helper {
        return false;
    }
    (session.helper, session.supervisor) = (true, Some(SupervisorState::Attached));
    session.recoveries += 1;
    if let Some((job, _, _)) = session.held.filter(|held| store.jobs[held.0].state.is_held()) {
        store.move_job(job, JobEvent::Lose);
    }
    true
}

fn open_gate(store: &mut Store, number: usize) -> bool {
    let is_open = store.open_gates().any(|gate| gate.job == number);
    let may = store.jobs[number].reason == Some(Reason::Gate) && !is_open;
    if may {
        let id = GateId(i64::try_from(store.gates.len()).unwrap() + 1);
        let expires = store.now.after(GATE_MS);
        store.gates.push(Gate { id, job: number, state: GateState::Pending, expires });
    }
    may
}

fn expire_gate(store: &mut Store, id: GateId) -> bool {
    let gate = store.gates.iter_mut().find(|gate| gate.id == id && gate.state == GateState::Pending);
    gate.map(|gate| gate.state = gate.state.next(GateEvent::Expire).unwrap()).is_some()
}

/// Registers and starts a session, unless the slot is covered or an author would contaminate it.
fn start(store: &mut Store, chance: &mut Chance, launch: &Launch) -> bool {
    let number = number_of(launch.job);
    let (role, lane) = (store.jobs[number].role, store.jobs[number].lane);
    let fresh = store.jobs[number].spec.fresh;
    let covers = |one: &&Session| {
        one.is_active() && !(one.fresh && one.packets > 0 && one.held.is_none()) && (one.role, one.lane) == (role, lane)
    };
    let is_live = |job: &&super::store::Job| {
        let has_message =
            matches!(job.state, JobState::Queued | JobState::Claimed | JobState::Running | JobState::Stale);
        has_message && (job.role, job.lane) == (role, lane)
    };
    let sessions = store.sessions.iter().filter(covers).count();
    if sessions >= store.jobs.iter().filter(is_live).count() || store.run.is_terminal() {
        return false;
    }
    if fresh && store.blocking_author().is_some() {
        let drained = |one: &&mut Session| {
            one.is_active() && one.role == 0 && one.held.is_none() && one.packets > 0 && !one.stopping
        };
        return store.sessions.iter_mut().filter(drained).map(|one| one.stopping = true).count() > 0;
    }
    // A driver may die between the two.
    let is_started = !chance.percent(5);
    let id = SessionId(i64::try_from(store.sessions.len()).unwrap() + 1);
    store.sessions.push(Session {
        id,
        role,
        lane,
        fresh,
        state: SessionState::Active,
        supervisor: is_started.then_some(SupervisorState::Starting),
        stopping: false,
        helper: is_started,
        agent: false,
        held: None,
        packets: 0,
        recoveries: 0,
        offered: (number, launch.attempt),
        had_no_work: false,
    });
    true
}
