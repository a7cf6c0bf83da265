//! Runs from seeds: `reconcile` drives a model of the store and of its helpers, while agents do whatever agents do,
//! everything dies, two drivers act on old pictures, the clock jumps, and persons decide, pause and change their minds.
//!
//! The model moves jobs, runs, sessions and gates by the domain's own machines. Each step is looked at: no limit is
//! passed, nobody launches what may not be launched, and a driver that waits says for whom, with each thing named.
//! `STRIATUM_SIM_RUNS=100000` runs more of them, `STRIATUM_SIM_SEED=N` one again.

#[path = "simulation/chance.rs"]
mod chance;
#[path = "simulation/driver.rs"]
mod driver;
#[path = "simulation/persons.rs"]
mod persons;
#[path = "simulation/store.rs"]
mod store;
#[path = "simulation/workers.rs"]
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};

use chance::Chance;
use store::Store;
use striatum::domain::action::Standing;
use striatum::domain::run::RunState;

/// Runs of a test that is run every time.
const FEW: u64 = 300;

/// How often persons come back to a run that waits for them.
const ROUNDS: usize = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// One run, from what its seed makes of it to where it ends.
fn simulate(seed: u64) -> RunState {
    let mut chance = Chance::of(seed);
    let mut store = Store::prepared(&mut chance);
    // Whatever may happen, in whatever order.
    let mut old = store.picture();
    for _ in 0..chance.below(120) {
        match chance.below(12) {
            0..=2 => driver::turn(&mut store, &mut chance),
            3 => old = store.picture(),
            4 => driver::late_turn(&mut store, &old, &mut chance),
            5 => persons::act(&mut store, &mut chance),
            6 => workers::kill_somebody(&mut store, &mut chance),
            7 => store.pass_time(&mut chance),
            _ => workers::step_one(&mut store, &mut chance),
        }
        store.check();
    }
    // Then the world is fair: drivers and helpers go on, and persons come when they are called.
    persons::let_go_on(&mut store);
    for round in 0..ROUNDS {
        match driver::drive(&mut store, &mut chance) {
            Standing::Over if store.run.is_terminal() => return store.run,
            standing => persons::answer(&mut store, &mut chance, &standing, round),
        }
    }
    panic!("persons are called for ever: {store:#?}");
}

#[test]
#[allow(clippy::print_stderr, reason = "the seed is what repeats the run")]
fn every_simulated_run_keeps_the_rules_and_ends() {
    let seeds: Vec<u64> = match number("STRIATUM_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("STRIATUM_SIM_RUNS").unwrap_or(FEW)).collect(),
    };
    let mut ends = std::collections::BTreeMap::new();
    for seed in &seeds {
        match catch_unwind(AssertUnwindSafe(|| simulate(*seed))) {
            Ok(end) => *ends.entry(end).or_insert(0) += 1,
            Err(cause) => {
                eprintln!("the run of seed {seed} broke a rule; STRIATUM_SIM_SEED={seed} runs it again");
                std::panic::resume_unwind(cause);
            }
        }
    }
    if seeds.len() > 100 {
        for end in [RunState::Completed, RunState::Failed, RunState::Canceled] {
            assert!(ends.contains_key(&end), "no run ended {end}: {ends:?}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in [1, 7, 99] {
        assert_eq!(simulate(seed), simulate(seed));
    }
}
