//! Properties of the pure centre: whatever goes in, these hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "model/contract.rs"]
mod contract;
#[path = "model/lively.rs"]
mod lively;
#[path = "model/proposal.rs"]
mod proposal;
#[path = "model/reconcile.rs"]
mod reconcile;
#[path = "model/scope.rs"]
mod scope;
#[path = "model/simulation.rs"]
mod simulation;
#[path = "model/workflow.rs"]
mod workflow;
