//! The program's side of `operator exec`: every verb goes to the parent, with this process's own streams.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Code, Error, Result};
use crate::os::socket::{self, SocketError, handover};
use crate::verbs::operator::serve::{Ask, Told, refusal};
use crate::verbs::operator::{ALONG, SOCKET_VARIABLE};

/// How long a verb may take: a driver may take days.
const LONGEST_MS: u64 = 30 * 24 * 60 * 60 * 1_000;

/// The socket of the parent, where this process stands under `operator exec`.
pub fn socket_here() -> Option<std::path::PathBuf> {
    std::env::var_os(SOCKET_VARIABLE).filter(|path| !path.is_empty()).map(std::path::PathBuf::from)
}

/// Has the parent run what was typed; its exit code.
pub fn forward(socket: &Path, words: Vec<String>) -> Result<u8> {
    let variables: BTreeMap<String, String> =
        ALONG.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    let ask = Ask { words, cwd: std::env::current_dir()?, variables };
    let stream = socket::connect(socket).map_err(|fault| gone().cause(fault))?;
    handover::send_own(&stream)?;
    let line = serde_json::to_vec(&ask)?;
    let reply = socket::write_line(&stream, &line, 10_000).and_then(|()| socket::read_line(&stream, LONGEST_MS));
    let reply = reply.map_err(|error| match error {
        SocketError::Closed => gone(),
        other => other.into(),
    })?;
    match serde_json::from_slice(&reply)? {
        Told::Exit(code) => Ok(code),
        Told::Error(document) => Err(refusal(&document)),
    }
}

fn gone() -> Error {
    Error::new(Code::SessionEnded, "`operator exec` has ended: nobody runs this program's verbs")
}
