//! A lane's side of the socket.

use std::path::Path;

use serde_json::Value;

use super::{Call, Reply};
use crate::error::{Code, Error, Result};
use crate::os::socket;

/// How long a reply may take: an answer of a resident agent waits until it is settled.
const REPLY_MS: u64 = 2 * 60 * 60 * 1_000;

/// Calls a verb through the helper of the lane.
pub fn call(path: &Path, verb: &str, request: Value) -> Result<Value> {
    let stream = socket::connect(path).map_err(|error| {
        Error::new(Code::SessionEnded, "the helper of this lane does not answer: it has ended").cause(error)
    })?;
    let line = serde_json::to_vec(&Call { verb: verb.to_owned(), request })?;
    socket::write_line(&stream, &line, 10_000)?;
    let reply = socket::read_line(&stream, REPLY_MS)?;
    match serde_json::from_slice(&reply)? {
        Reply::Report(report) => Ok(report),
        Reply::Error(error) => Err(Error::from_json(&error)),
    }
}
