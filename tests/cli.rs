//! The command line, through the real program: what is typed, what is said, what it exits with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "cli/control.rs"]
mod control;
#[path = "cli/drive.rs"]
mod drive;
#[path = "cli/freshness.rs"]
mod freshness;
#[path = "cli/trust.rs"]
mod trust;
#[path = "cli/workflow.rs"]
mod workflow;
