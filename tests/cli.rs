//! The real binary: what it prints, where, and how it exits.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "cli/workflow.rs"]
mod workflow;
