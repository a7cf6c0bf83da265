//! Breaking it: every process may die anywhere, agents are hostile, the store and the disk fail. Then the run is
//! driven to its end, each side effect happened at most once, and the store is sound.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod support;

#[path = "faults/chaos.rs"]
mod chaos;
#[path = "faults/clock.rs"]
mod clock;
#[path = "faults/crash.rs"]
mod crash;
#[path = "faults/ground.rs"]
mod ground;
#[path = "faults/halfmade.rs"]
mod halfmade;
#[path = "faults/hostile.rs"]
mod hostile;
#[path = "faults/kill.rs"]
mod kill;
#[path = "faults/land.rs"]
mod land;
#[path = "faults/resources.rs"]
mod resources;
#[path = "faults/signals.rs"]
mod signals;
#[path = "faults/together.rs"]
mod together;
#[path = "faults/trees.rs"]
mod trees;
#[path = "faults/unknown.rs"]
mod unknown;
