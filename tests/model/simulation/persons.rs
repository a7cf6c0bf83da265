//! Persons: they decide, answer, retry, pause and give up; at random, or when they are called.

use striatum::domain::action::Standing;
use striatum::domain::job::{Cause, JobEvent, JobState};
use striatum::domain::run::{RunEvent, RunState};
use striatum::domain::session::{GateEvent, GateState};

use super::chance::Chance;
use super::store::{Reason, Store};

/// Somebody does something, needed or not.
pub fn act(store: &mut Store, chance: &mut Chance) {
    if store.run.is_terminal() {
        return;
    }
    match chance.below(20) {
        0..=6 => decide_one(store, chance, 70),
        7..=10 => help_one(store, chance),
        11 => store.is_paused = true,
        12 => store.is_stopped = true,
        13..=15 => (store.is_paused, store.is_stopped) = (false, false),
        16 => {
            store.parked.insert(u8::try_from(chance.below(2)).unwrap());
        }
        17 | 18 => store.parked.clear(),
        _ if chance.percent(10) => cancel(store),
        _ => {}
    }
}

/// Nothing keeps the run but itself.
pub fn let_go_on(store: &mut Store) {
    (store.is_paused, store.is_stopped) = (false, false);
    store.parked.clear();
}

/// A person does something about each thing that the run says it waits for; with the rounds they lose patience.
pub fn answer(store: &mut Store, chance: &mut Chance, standing: &Standing, round: usize) {
    assert!(matches!(standing, Standing::WaitingHuman(_) | Standing::Over), "{standing:?}");
    if round > 60 {
        return cancel(store);
    }
    let patience = if round > 10 { 95 } else { 75 };
    for _ in 0..store.open_gates().count() {
        decide_one(store, chance, patience);
    }
    for _ in 0..store.waiting().len() {
        help_one(store, chance);
    }
    if store.launches >= store.max_launches {
        store.max_launches = store.launches + 10;
        store.tripped.retain(|cause| *cause != Cause::Launches);
    }
    if store.is_out_of_money() {
        store.max_cost = store.cost + 5;
        store.tripped.retain(|cause| *cause != Cause::Cost);
    }
}

/// A gate of chance is decided: mostly approved.
fn decide_one(store: &mut Store, chance: &mut Chance, patience: usize) {
    let open: Vec<usize> = (0..store.gates.len()).filter(|at| store.gates[*at].state == GateState::Pending).collect();
    if open.is_empty() || store.run.is_terminal() {
        return;
    }
    let at = *chance.one(&open);
    let number = store.gates[at].job;
    assert_eq!(store.jobs[number].reason, Some(Reason::Gate), "an open gate keeps nothing");
    let event = match chance.below(100) {
        below if below < patience => GateEvent::Approve,
        below if below % 2 == 0 => GateEvent::Reject,
        _ => GateEvent::Skip,
    };
    store.gates[at].state = store.gates[at].state.next(event).unwrap();
    match event {
        GateEvent::Approve => {
            store.jobs[number].is_through = true;
            if store.jobs[number].has_role() { store.offer(number) } else { store.seal(number, None) }
        }
        GateEvent::Reject => store.jobs[number].reason = Some(Reason::Rejected),
        _ => store.skip(number),
    }
}

/// Something that waits for a person or is broken is answered, or tried once more.
fn help_one(store: &mut Store, chance: &mut Chance) {
    let waits: Vec<usize> = (0..store.jobs.len())
        .filter(|at| {
            let job = &store.jobs[*at];
            let is_rejected = job.reason == Some(Reason::Rejected);
            !job.settled && (is_rejected || matches!(job.state, JobState::WaitingHuman | JobState::Failed))
        })
        .collect();
    if waits.is_empty() || store.run.is_terminal() {
        return;
    }
    let number = *chance.one(&waits);
    let is_asked = matches!(
        store.jobs[number].reason,
        Some(Reason::Cause(Cause::NeedsContext | Cause::AgentBlocked | Cause::UnknownOutcome))
    );
    match store.jobs[number].state {
        JobState::WaitingHuman if is_asked => store.offer(number),
        state => {
            let job = &mut store.jobs[number];
            (job.strikes, job.requeues, job.revisions) = (0, 0, 0);
            if state == JobState::Waiting { store.release(number) } else { store.reopen(number) }
        }
    }
    if store.run == RunState::NeedsOperator {
        store.move_run(RunEvent::Revive);
    }
}

fn cancel(store: &mut Store) {
    store.move_run(RunEvent::Cancel);
    for number in 0..store.jobs.len() {
        let state = store.jobs[number].state;
        if matches!(state, JobState::Completed | JobState::Skipped | JobState::Canceled | JobState::Failed) {
            continue;
        }
        store.take_away(number);
        store.move_job(number, JobEvent::Cancel);
    }
    for gate in store.gates.iter_mut().filter(|gate| gate.state == GateState::Pending) {
        gate.state = gate.state.next(GateEvent::Expire).unwrap();
    }
}
