//! The same verbs over a session's Unix socket: one JSON line a request, one a reply, one short connection a call.
//!
//! The helper's `Inbox`. It accepts only descendants of its own agent, by the kernel's word for who is at the other
//! end, and lets through what a lane may ask. It does not know what the verbs do.

pub mod client;
pub mod operator;
pub mod server;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A request on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub struct Call {
    /// The verb's name.
    pub verb: String,
    /// Its request.
    pub request: Value,
    /// The caller's key.
    #[serde(default)]
    pub key: Option<String>,
}

/// A reply on the wire.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The verb's report.
    Report(Value),
    /// Why not.
    Error(Value),
}
