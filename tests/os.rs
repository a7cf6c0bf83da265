//! The operating system's rooms against real processes, real locks and real git.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "os/alone.rs"]
mod alone;
#[path = "os/git.rs"]
mod git;
#[path = "os/lane.rs"]
mod lane;
#[path = "os/layout.rs"]
mod layout;
#[path = "os/locks.rs"]
mod locks;
#[path = "os/output.rs"]
mod output;
#[path = "os/tree.rs"]
mod tree;
