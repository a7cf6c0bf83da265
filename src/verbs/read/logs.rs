//! `logs`, `supervise logs`: what an agent or its helper printed, made harmless.
//!
//! Scratch, never evidence. Whoever follows asks again with the cursor of the last report.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::explain::named;
use crate::domain::id::SessionId;
use crate::domain::session::SessionState;
use crate::error::{Code, Error, Result};
use crate::os::files;
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::run::find;
use crate::verbs::session::must_exist;

/// Lines shown when nothing says otherwise.
const LINES: u32 = 200;

/// Most that is read of a file at once: made harmless and written as JSON it still fits into one reply to a lane.
const MOST: u64 = 128 << 10;

/// Most that a follower gets at once.
const PART: u64 = 64 << 10;

/// A line without an end is told in parts of this size.
const LONG_LINE: u64 = 8 << 10;

/// What `logs` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogsRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// The job.
    pub job: String,
    /// Which try; the newest that somebody held when left out.
    pub attempt: Option<u32>,
    /// The helper's words instead of the agent's.
    pub helper: bool,
    /// Most lines, from the end.
    pub tail: Option<u32>,
    /// What follows the cursor of an earlier report.
    pub after: Option<u64>,
}

/// What `supervise logs` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HelperLogsRequest {
    /// The session.
    pub session: SessionId,
    /// Most lines, from the end.
    pub tail: Option<u32>,
    /// What follows the cursor of an earlier report.
    pub after: Option<u64>,
}

/// What both tell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LogsReport {
    /// The run's name.
    pub run: String,
    /// The job, when it is about one.
    pub job: Option<String>,
    /// Which try.
    pub attempt: Option<u32>,
    /// Who printed it; none before somebody took the job.
    pub session: Option<SessionId>,
    /// The file.
    pub path: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// The text, without anything that controls a terminal.
    pub text: String,
    /// Bytes before it that are not shown.
    pub left_out: u64,
    /// Ask for what comes after this.
    pub cursor: u64,
    /// Nobody writes to it any more.
    pub is_over: bool,
}

/// Shows what the agent of an attempt printed.
pub fn logs(ctx: &Ctx, request: &LogsRequest) -> Result<LogsReport> {
    let place = ctx.read(|read| {
        let run = find::for_reading(ctx, read, request.run.as_deref())?;
        let job = named(read, &run, &request.job)?;
        let attempt = match request.attempt {
            Some(number) if number == 0 || number > job.attempt => {
                let text = format!("{} has no attempt {number}; the newest is {}", job.name, job.attempt);
                return Err(Error::new(Code::NotFound, text));
            }
            Some(number) => Some(store::attempt::get(read, job.id, number)?),
            // A queued attempt has printed nothing; the one before it says why it is queued again.
            None => store::attempt::of_job(read, job.id, 2)?.into_iter().find(|attempt| attempt.session.is_some()),
        };
        let is_over = attempt.as_ref().is_some_and(|attempt| attempt.outcome.is_some())
            || (attempt.is_none() && run.state.is_terminal());
        let number = attempt.as_ref().map(|attempt| attempt.number);
        Ok(Place {
            run: run.name,
            job: Some(job.name),
            number,
            session: attempt.and_then(|attempt| attempt.session),
            is_over,
        })
    })?;
    let path = place.session.map(|session| {
        let scratch = ctx.layout().scratch(&session.to_string());
        match (request.helper, &place.job, place.number) {
            (false, Some(job), Some(number)) => scratch.attempt(job, number).output(),
            _ => scratch.helper_log(),
        }
    });
    place.report(path, request.tail, request.after)
}

/// Shows what a session's helper printed.
pub fn helper_logs(ctx: &Ctx, request: &HelperLogsRequest) -> Result<LogsReport> {
    let place = ctx.read(|read| {
        let session = must_exist(read, request.session)?;
        let run = store::run::get(read, session.run)?;
        let is_over = session.state != SessionState::Active;
        Ok(Place { run: run.name, job: None, number: None, session: Some(session.id), is_over })
    })?;
    let path = ctx.layout().scratch(&request.session.to_string()).helper_log();
    place.report(Some(path), request.tail, request.after)
}

/// Whose words, and whether more can come.
struct Place {
    run: String,
    job: Option<String>,
    number: Option<u32>,
    session: Option<SessionId>,
    is_over: bool,
}

impl Place {
    fn report(self, path: Option<PathBuf>, tail: Option<u32>, after: Option<u64>) -> Result<LogsReport> {
        let part = match (&path, after) {
            (None, _) => Part { cursor: after.unwrap_or(0), ..Part::default() },
            (Some(path), Some(after)) => follow(path, after, self.is_over)?,
            (Some(path), None) => end(path, tail.unwrap_or(LINES))?,
        };
        Ok(LogsReport {
            run: self.run,
            job: self.job,
            attempt: self.number,
            session: self.session,
            path: path.map(|path| path.display().to_string()),
            bytes: part.bytes,
            text: part.text,
            left_out: part.left_out,
            cursor: part.cursor,
            is_over: self.is_over && part.cursor >= part.bytes,
        })
    }
}

/// A piece of a file.
#[derive(Default)]
struct Part {
    bytes: u64,
    text: String,
    left_out: u64,
    cursor: u64,
}

/// The last lines of a file, which need not be there yet.
fn end(path: &Path, lines: u32) -> Result<Part> {
    let Some(bytes) = size(path)? else { return Ok(Part::default()) };
    let most = MOST.min(bytes);
    let raw = piece(path, bytes - most, most)?;
    let start = raw.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    // The end of the last line is no beginning of another.
    let start = start.skip_while(|at| *at == raw.len()).nth((lines as usize).saturating_sub(1)).unwrap_or(0);
    let start = if lines == 0 { raw.len() } else { start };
    let shown = raw.get(start..).unwrap_or_default();
    Ok(Part {
        bytes,
        text: files::escape(&String::from_utf8_lossy(shown)),
        left_out: bytes - most + start as u64,
        cursor: bytes - most + raw.len() as u64,
    })
}

/// What was written after a cursor, up to the end of a line; a log that was shortened meanwhile goes on at its end.
fn follow(path: &Path, after: u64, is_over: bool) -> Result<Part> {
    let Some(bytes) = size(path)? else { return Ok(Part::default()) };
    if bytes < after {
        let text = "[... shortened meanwhile ...]\n".to_owned();
        return Ok(Part { bytes, text, left_out: 0, cursor: bytes });
    }
    let raw = piece(path, after, PART.min(bytes - after))?;
    let whole = raw.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
    let is_last = is_over && after + raw.len() as u64 >= bytes;
    let length = match whole {
        _ if is_last => raw.len(),
        Some(length) => length,
        None if raw.len() as u64 >= LONG_LINE => raw.len(),
        None => 0,
    };
    let shown = raw.get(..length).unwrap_or_default();
    let text = files::escape(&String::from_utf8_lossy(shown));
    Ok(Part { bytes, text, left_out: 0, cursor: after + length as u64 })
}

fn size(path: &Path) -> Result<Option<u64>> {
    // An agent owns its folder: a pipe in the log's place would keep a reader for ever.
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_file() => Ok(Some(about.len())),
        Ok(_) => Err(Error::new(Code::NotARegularFile, format!("{} is no regular file", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn piece(path: &Path, from: u64, most: u64) -> Result<Vec<u8>> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::Io, format!("{} can't be read", path.display())).cause(error)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn file(text: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        let (_folder, path) = file(b"one\ntwo\nthree\n");
        let texts: Vec<String> = (0..5).map(|lines| end(&path, lines).unwrap().text).collect();
        assert_eq!(texts, ["", "three\n", "two\nthree\n", "one\ntwo\nthree\n", "one\ntwo\nthree\n"]);
        let part = end(&path, 1).unwrap();
        assert_eq!((part.bytes, part.left_out, part.cursor), (14, 8, 14));
        let (_folder, path) = file(b"one\ntwo");
        assert_eq!(end(&path, 1).unwrap().text, "two");
    }

    #[test]
    fn a_follower_gets_whole_lines_and_in_the_end_everything() {
        let (_folder, path) = file(b"one\ntw\x1b[31");
        let first = follow(&path, 0, false).unwrap();
        assert_eq!((first.text.as_str(), first.cursor), ("one\n", 4));
        assert_eq!(follow(&path, 4, false).unwrap().cursor, 4);
        std::fs::write(&path, b"one\ntw\x1b[31mo\nend").unwrap();
        let second = follow(&path, 4, false).unwrap();
        assert_eq!(second.text, "two\n");
        let last = follow(&path, second.cursor, true).unwrap();
        assert_eq!((last.text.as_str(), last.cursor), ("end", last.bytes));
    }

    #[test]
    fn a_log_that_was_shortened_goes_on_at_its_end() {
        let (_folder, path) = file(b"one\n");
        let part = follow(&path, 100, false).unwrap();
        assert_eq!((part.text.as_str(), part.cursor), ("[... shortened meanwhile ...]\n", 4));
    }
}
