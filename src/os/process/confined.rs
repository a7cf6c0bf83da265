//! A program in the foreground that the kernel holds: it shares the caller's terminal and writes only where it may.
//!
//! A small step of this very program stands between: it takes on the hold, then becomes the program.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use crate::os::sandbox;

/// The hidden verb of the step.
pub const CONFINED_VERB: &str = "__confined";

/// The exit code when the step could not take on the hold, or become the program.
pub const UNPREPARED: u8 = 125;

/// A program with what it gets.
pub struct Foreground<'a> {
    /// The program and its words.
    pub argv: &'a [OsString],
    /// Variables that it gets beside the caller's own.
    pub given: &'a [(OsString, OsString)],
    /// Where it may write, devices aside; none means anywhere.
    pub writable: Option<&'a [PathBuf]>,
}

/// Starts the program with the caller's streams and in its process group.
///
/// # Errors
/// What fork and exec say.
pub fn start(exe: &Path, program: &Foreground<'_>) -> io::Result<Child> {
    let mut command = Command::new(exe);
    command.arg(CONFINED_VERB);
    if let Some(writable) = program.writable {
        command.arg("confine");
        for path in writable {
            let mut word = OsString::from("writable=");
            word.push(path);
            command.arg(word);
        }
    }
    command.arg("--").args(program.argv);
    command.envs(program.given.iter().map(|(name, value)| (name, value)));
    command.spawn()
}

/// Becomes the program that `words` (everything after [`CONFINED_VERB`]) describe; comes back only if it can't.
pub fn become_program(mut words: impl Iterator<Item = OsString>) -> (io::Error, OsString) {
    let mut writable: Option<Vec<PathBuf>> = None;
    for word in words.by_ref().take_while(|word| word != "--") {
        let bytes = word.into_vec();
        match bytes.strip_prefix(b"writable=") {
            Some(path) => writable.get_or_insert_default().push(PathBuf::from(OsStr::from_bytes(path))),
            None => drop(writable.get_or_insert_default()),
        }
    }
    let Some(name) = words.next() else { return (io::ErrorKind::InvalidInput.into(), OsString::new()) };
    if let Some(Err(error)) = writable.map(|writable| sandbox::confine(&writable)) {
        return (error, name);
    }
    (Command::new(&name).args(words).exec(), name)
}
