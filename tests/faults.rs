//! Breaking it: every process may die anywhere, agents are hostile, the store and the disk fail. Then the run is
//! driven to its end, each side effect happened at most once, and the store is sound.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "faults/crash.rs"]
mod crash;
#[path = "faults/hostile.rs"]
mod hostile;
#[path = "faults/kill.rs"]
mod kill;
