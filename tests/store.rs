//! The store: what the schema promises, strange files in its place, and many processes at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

#[path = "store/busy.rs"]
mod busy;
#[path = "store/files.rs"]
mod files;
#[path = "store/queue.rs"]
mod queue;
#[path = "store/schema.rs"]
mod schema;
#[path = "store/statements.rs"]
mod statements;
mod support;
