//! The gates that a pattern means, bound by one digest: a word for many is a word for exactly those that were shown.
//!
//! It does not know what is decided.

use globset::Glob;

use crate::domain::event::sha256_hex;
use crate::error::{Code, Error, Next, Result};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::flow::gate as flow;

/// Digits of a set's digest that people see and type.
const DIGITS: usize = 12;

/// Whether a word is a pattern of jobs.
pub fn is_pattern(word: &str) -> bool {
    word.contains(['*', '?', '[', '{'])
}

/// The jobs that wait at a gate and that a pattern fits; an error when there is none.
pub fn fitting(read: &Connection, run: &Run, pattern: &str) -> Result<Vec<Job>> {
    let fits = Glob::new(pattern).map_err(|error| Error::new(Code::Usage, error.to_string()))?.compile_matcher();
    let mut jobs = store::job::kept(read, run.id, u32::MAX)?;
    jobs.retain(|job| flow::is_due(job) && fits.is_match(&job.name));
    if jobs.is_empty() {
        return Err(Error::new(Code::NotFound, format!("no job of {} that waits at a gate fits {pattern}", run.name)));
    }
    Ok(jobs)
}

/// One word for exactly these gates and what each is about, whatever their order.
pub fn digest<'a>(read: &Connection, run: &Run, jobs: impl IntoIterator<Item = &'a Job>) -> Result<String> {
    let about = jobs.into_iter().map(|job| Ok(format!("{} {}", job.name, flow::digest(read, run, job)?)));
    let mut about = about.collect::<Result<Vec<String>>>()?;
    about.sort();
    about.dedup();
    let mut digest = sha256_hex(about.join("\n").as_bytes());
    digest.truncate(DIGITS);
    Ok(digest)
}

/// What was asked by pattern.
pub struct Asked<'a> {
    /// `approve`, `reject` or `skip`.
    pub verb: &'a str,
    /// Every gate, job and pattern that was named.
    pub words: &'a [String],
    /// The digest that came with them.
    pub set: Option<&'a str>,
    /// The person's words.
    pub note: Option<&'a str>,
}

/// Refuses a word for many that is not bound to what the many are now.
pub fn must_be_bound(read: &Connection, run: &Run, jobs: &[Job], asked: &Asked<'_>) -> Result<()> {
    let now = digest(read, run, jobs)?;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let names = names.join(", ");
    match asked.set {
        Some(set) if set == now => Ok(()),
        Some(_) => {
            let message = "what the pattern means has changed since it was shown";
            Err(Error::new(Code::StaleGate, message)
                .hint(format!("it means now: {names}"))
                .next(asked.bound(run, &now)))
        }
        None => {
            let message = format!("a pattern decides only what was shown; it means {names}");
            let hint = "`gate show` tells what each is about; the digest binds your word to that";
            Err(Error::new(Code::Usage, message).hint(hint).next(asked.bound(run, &now)))
        }
    }
}

impl Asked<'_> {
    /// The command that decides exactly what is there now.
    fn bound(&self, run: &Run, set: &str) -> Next {
        let mut argv = vec!["striatum", "gate", self.verb];
        argv.extend(self.words.iter().map(String::as_str));
        argv.extend(["--set", set, "--run-id", &run.name]);
        if let Some(note) = self.note {
            argv.extend(["--note", note]);
        }
        Next::new("person", "decide exactly these", &argv)
    }
}

/// The command that approves exactly what a pattern means.
pub fn bound(run: &Run, pattern: &str, set: &str) -> Next {
    Asked { verb: "approve", words: &[pattern.to_owned()], set: None, note: None }.bound(run, set)
}
