//! Properties of the pure centre: whatever goes in, these hold.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "model/lively.rs"]
mod lively;
#[path = "model/reconcile.rs"]
mod reconcile;
#[path = "model/workflow.rs"]
mod workflow;
