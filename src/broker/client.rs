//! A lane's side of the socket.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{Call, Reply};
use crate::error::{Code, Error, Result};
use crate::os::socket::{self, SocketError};

/// How long a reply may take: an answer of a resident agent waits until it is settled.
const REPLY_MS: u64 = 2 * 60 * 60 * 1_000;

/// How long a lane waits for another helper when its own has died: a driver starts one at once.
const HELPER_MS: u64 = 20_000;

/// How long between two tries to reach it.
const RETRY: Duration = Duration::from_millis(50);

/// Calls a verb through the helper of the lane. When the helper dies meanwhile, the next one is asked the same: what
/// was said and already stored is said again without effect.
pub fn call(path: &Path, verb: &str, request: Value, key: Option<String>) -> Result<Value> {
    let line = serde_json::to_vec(&Call { verb: verb.to_owned(), request, key })?;
    let end = Instant::now() + Duration::from_millis(HELPER_MS);
    let reply = loop {
        match exchange(path, &line) {
            Ok(reply) => break reply,
            Err(Unanswered::Refused(error)) => return Err(error),
            Err(Unanswered::NobodyThere(error)) if Instant::now() >= end => {
                let text = "the helper of this lane does not answer: it has ended";
                return Err(Error::new(Code::SessionEnded, text).cause(error));
            }
            Err(Unanswered::NobodyThere(_)) => std::thread::sleep(RETRY),
        }
    };
    match serde_json::from_slice(&reply)? {
        Reply::Report(report) => Ok(report),
        Reply::Error(error) => Err(Error::from_json(&error)),
    }
}

/// Why there is no reply.
enum Unanswered {
    /// No helper, or it died before it replied.
    NobodyThere(SocketError),
    /// Anything else.
    Refused(Error),
}

fn exchange(path: &Path, line: &[u8]) -> std::result::Result<Vec<u8>, Unanswered> {
    let stream = socket::connect(path).map_err(|fault| Unanswered::NobodyThere(fault.into()))?;
    let exchanged = socket::write_line(&stream, line, 10_000).and_then(|()| socket::read_line(&stream, REPLY_MS));
    exchanged.map_err(|error| match error {
        SocketError::Closed => Unanswered::NobodyThere(error),
        other => Unanswered::Refused(other.into()),
    })
}
