//! The operating system's rooms against real processes, real locks and real git.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "os/alone.rs"]
mod alone;
#[path = "os/git.rs"]
mod git;
#[path = "os/lane.rs"]
mod lane;
#[path = "os/layout.rs"]
mod layout;
#[path = "os/tree.rs"]
mod tree;
