//! The store: what the schema promises, and many processes at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

#[path = "store/plans.rs"]
mod plans;
