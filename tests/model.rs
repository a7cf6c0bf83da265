//! Properties of the pure centre: whatever goes in, these hold.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "model/workflow.rs"]
mod workflow;
