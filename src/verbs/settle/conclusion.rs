//! What the end of an agent means for its attempt: the answer if there is one, proof if that is enough, else why not.

use std::path::Path;

use serde_json::Value;

use super::verify::Runner;
use super::{Checked, Work, check, must_still_hold, unpublished, without_work};
use super::{evidence, observation};
use crate::domain::contract::{Answer, BlockedReason, Status};
use crate::domain::frozen::{JobType, LaneSpec, OnExitZero};
use crate::domain::gate::Stakes;
use crate::domain::job::{Outcome, Phase};
use crate::domain::session::LeaseState;
use crate::error::Result;
use crate::os::files;
use crate::os::layout::Attempt as Folder;
use crate::store::{self, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::attempt::{self, Ended, Lesson};
use crate::verbs::flow::finish::Evidence;
use crate::verbs::flow::seal::{self, Sealing};
use crate::verbs::supervise::wait::{OUTPUT_LIMIT, Watched};
use crate::verbs::work::answer::{canonical, read_document};
use crate::verbs::work::hold::Hold;

/// How the agent ended.
pub struct Facts<'a> {
    /// What it worked on.
    pub hold: &'a Hold,
    /// Its lane.
    pub lane: &'a LaneSpec,
    /// Its files.
    pub folder: &'a Folder,
    /// What is known of its exit.
    pub exit: ExitSeen,
    /// Why it is over.
    pub watched: &'a Watched,
}

/// What is known of an agent's exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitSeen {
    /// Its code; none when a signal ended it.
    Yes(Option<i32>),
    /// Its helper had died; another one watched it to its own end, without its code.
    EndSeen,
    /// Nobody saw anything.
    No,
}

/// What is to be written.
pub enum Conclusion {
    /// Seal with this answer; `is_new` when the store does not have it yet.
    Seal {
        /// The answer.
        answer: Box<Answer>,
        /// The store does not have it yet.
        is_new: bool,
        /// Its files, and whether it changed its tree.
        work: Work,
        /// What is known of the run's artifacts.
        evidence: Evidence,
    },
    /// End the attempt.
    End {
        /// How.
        outcome: Outcome,
        /// One line.
        detail: String,
        /// What the next packet should tell.
        lesson: Lesson,
        /// What is awaited.
        question: Option<BlockedReason>,
    },
    /// Somebody else ended it.
    Nothing,
}

fn end(outcome: Outcome, detail: impl Into<String>) -> Conclusion {
    Conclusion::End { outcome, detail: detail.into(), lesson: Lesson::default(), question: None }
}

/// Concludes; runs verification where there is something to verify.
pub fn conclude(ctx: &Ctx, facts: &Facts<'_>, runner: &mut dyn Runner) -> Result<Conclusion> {
    if *facts.watched == Watched::Abandoned {
        return Ok(Conclusion::Nothing);
    }
    match find_answer(ctx, facts)? {
        Found::Stored(answer) => settle(ctx, facts, answer, false, runner),
        Found::Given(answer) => settle(ctx, facts, answer, true, runner),
        Found::Invalid(why) => Ok(end(Outcome::InvalidResult, why)),
        Found::Nothing => unanswered(ctx, facts, runner),
    }
}

/// Where an answer was found.
pub enum Found {
    /// In the store: an agent gave it by verb.
    Stored(Answer),
    /// In a document that nobody has read before.
    Given(Answer),
    /// A document that is none.
    Invalid(String),
    /// Nowhere.
    Nothing,
}

/// Looks for an answer.
pub fn find_answer(ctx: &Ctx, facts: &Facts<'_>) -> Result<Found> {
    let (job, number) = (facts.hold.job.id, facts.hold.lease.attempt);
    if let Some(answer) = ctx.read(|read| Ok(store::attempt::get(read, job, number)?))?.answer {
        return Ok(Found::Stored(answer));
    }
    let document = match result_file(facts.folder)? {
        None => match facts.lane.result_from.as_deref().and_then(|from| from.strip_prefix("stdout-json")) {
            Some(pointer) => from_output(facts.folder, pointer.strip_prefix(':').unwrap_or("")),
            None => None,
        },
        some => some,
    };
    let is_review = facts.hold.job.spec.kind == JobType::Review;
    Ok(match document {
        None => Found::Nothing,
        Some(Err(why)) => Found::Invalid(why),
        Some(Ok(document)) => match read_document(&document, is_review) {
            Ok(answer) => Found::Given(answer),
            Err(error) => Found::Invalid(format!("{error}: {}", error.causes.join("; "))),
        },
    })
}

/// Longest answer file, in bytes.
const LONGEST_ANSWER: u64 = 1024 * 1024;

fn result_file(folder: &Folder) -> Result<Option<std::result::Result<Value, String>>> {
    if !folder.folder().is_dir() {
        return Ok(None);
    }
    let path = folder.result();
    let name = path.file_name().map(Path::new).unwrap_or(Path::new("result.json"));
    let mut opened = match files::open_inside(folder.folder(), name, LONGEST_ANSWER) {
        Ok(opened) => opened,
        Err(files::Refusal::Missing { .. }) => return Ok(None),
        Err(files::Refusal::Fault(fault)) => return Err(fault.into()),
        Err(refusal) => return Ok(Some(Err(refusal.to_string()))),
    };
    let mut text = String::new();
    use std::io::Read;
    if let Err(error) = opened.file.read_to_string(&mut text) {
        return Ok(Some(Err(format!("result.json can't be read: {error}"))));
    }
    Ok(Some(serde_json::from_str(&text).map_err(|error| format!("result.json is no JSON: {error}"))))
}

/// The last line of output that is a JSON object, and the value at a pointer in it; a string there is read again.
fn from_output(folder: &Folder, pointer: &str) -> Option<std::result::Result<Value, String>> {
    let path = folder.output();
    let name = path.file_name().map(Path::new)?;
    let mut opened = files::open_inside(folder.folder(), name, 2 * OUTPUT_LIMIT).ok()?;
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut opened.file, &mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let whole = serde_json::from_str::<Value>(text.trim()).ok().filter(Value::is_object);
    let last =
        || text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line.trim()).ok().filter(Value::is_object));
    let document = whole.or_else(last)?;
    match document.pointer(pointer) {
        None => Some(Err(format!("the output has nothing at {pointer}"))),
        Some(Value::String(text)) => {
            Some(serde_json::from_str(text).map_err(|error| format!("the text at {pointer} is no JSON: {error}")))
        }
        Some(value) => Some(Ok(value.clone())),
    }
}

fn settle(ctx: &Ctx, facts: &Facts<'_>, answer: Answer, is_new: bool, runner: &mut dyn Runner) -> Result<Conclusion> {
    if let Some(ended) = without_work(&answer) {
        return Ok(Conclusion::End {
            outcome: ended.outcome,
            detail: ended.detail.clone(),
            lesson: Lesson::default(),
            question: ended.question.cloned(),
        });
    }
    Ok(match check(ctx, facts.hold, &answer, runner)? {
        Checked::Good(work) => Conclusion::Seal {
            answer: Box::new(answer),
            is_new,
            work,
            evidence: evidence::before_seal(ctx, facts.hold.run.id)?,
        },
        Checked::Bad(bad) => {
            Conclusion::End { outcome: bad.outcome, detail: bad.detail, lesson: bad.lesson, question: None }
        }
    })
}

/// Nobody answered: exit 0 with proof is enough where the job says so.
fn unanswered(ctx: &Ctx, facts: &Facts<'_>, runner: &mut dyn Runner) -> Result<Conclusion> {
    match facts.watched {
        Watched::TimedOut => return Ok(end(Outcome::TimedOut, "longer than its limit")),
        Watched::Idle => return Ok(end(Outcome::Idle, "nothing happened for too long")),
        Watched::Flooded => return Ok(end(Outcome::Failed, "more than 1 GiB of output")),
        Watched::Told(reason) => return Ok(end(Outcome::Interrupted, reason.clone())),
        Watched::Exited | Watched::Answered | Watched::Abandoned => {}
    }
    if let Some(sign) = unavailable(facts) {
        return Ok(end(Outcome::Unavailable, sign));
    }
    match facts.exit {
        ExitSeen::Yes(Some(0)) => proven(ctx, facts, runner),
        ExitSeen::Yes(Some(code)) => {
            Ok(end(Outcome::Failed, format!("exit {code} without an answer{}", last_line(facts))))
        }
        ExitSeen::Yes(None) => Ok(end(Outcome::Failed, "ended by a signal without an answer")),
        ExitSeen::EndSeen | ExitSeen::No => unseen(ctx, facts, runner),
    }
}

/// Nobody saw the exit code. What the agent published by verb is whole, and so is what it left when it
/// ended by itself: that is settled for it. Anything else may be half of something: the attempt is lost, not failed.
fn unseen(ctx: &Ctx, facts: &Facts<'_>, runner: &mut dyn Runner) -> Result<Conclusion> {
    let spec = &facts.hold.job.spec;
    let required: Vec<&str> =
        spec.produces.iter().filter(|produce| produce.required).map(|produce| produce.name.as_str()).collect();
    let published = ctx.read(|read| {
        let rows = store::artifact::of_attempt(read, facts.hold.job.id, facts.hold.lease.attempt)?;
        Ok(required.iter().all(|name| rows.iter().any(|row| row.name == *name)))
    })?;
    let is_whole = !required.is_empty() && (published || facts.exit == ExitSeen::EndSeen);
    if is_whole && let seal @ Conclusion::Seal { .. } = proven(ctx, facts, runner)? {
        return Ok(seal);
    }
    if Stakes::of(spec).reaches_outside() {
        let seen = observation::look(ctx, &facts.hold.job)?;
        return Ok(Conclusion::End {
            outcome: Outcome::UnknownOutcome,
            detail: "its helper died, and its effects reach outside".to_owned(),
            lesson: Lesson::default(),
            question: Some(seen.question(&facts.hold.job.name)),
        });
    }
    Ok(end(Outcome::Lost, "its helper died, and it left no answer"))
}

/// The last words of the output, for people.
fn last_line(facts: &Facts<'_>) -> String {
    let tail = files::tail_text(&facts.folder.output(), 512).unwrap_or_default();
    let last = tail.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    if last.is_empty() { String::new() } else { format!(": {}", last.chars().take(200).collect::<String>()) }
}

/// The lane's own signs that it can't work now.
fn unavailable(facts: &Facts<'_>) -> Option<String> {
    let signs = &facts.lane.unavailable;
    let ExitSeen::Yes(code) = facts.exit else { return None };
    if let Some(code) = code.filter(|code| signs.exits.contains(code)) {
        return Some(format!("exit {code}"));
    }
    if signs.patterns.is_empty() || code == Some(0) {
        return None;
    }
    let tail = files::tail_text(&facts.folder.output(), 16 * 1024).unwrap_or_default();
    signs.patterns.iter().find(|pattern| tail.contains(pattern.as_str())).map(|pattern| format!("it said {pattern:?}"))
}

fn proven(ctx: &Ctx, facts: &Facts<'_>, runner: &mut dyn Runner) -> Result<Conclusion> {
    let spec = &facts.hold.job.spec;
    let may = spec.kind != JobType::Review && spec.on_exit_zero != Some(OnExitZero::Unsealed);
    if !may {
        return Ok(end(Outcome::Unsealed, "exit 0 without an answer"));
    }
    let declares_nothing = spec.produces.is_empty() && spec.verify.is_empty() && spec.writes.is_empty();
    let conclusion = settle(ctx, facts, Answer::plain(Status::Done), true, runner)?;
    let Conclusion::Seal { work, .. } = &conclusion else { return Ok(conclusion) };
    let has_artifact = work
        .artifacts
        .iter()
        .any(|artifact| spec.produces.iter().any(|produce| produce.required && produce.name == artifact.name));
    let is_proven =
        has_artifact || work.changed || !spec.verify.is_empty() || (declares_nothing && spec.kind == JobType::Generic);
    if is_proven {
        return Ok(conclusion);
    }
    Ok(end(Outcome::Unsealed, "exit 0 without an answer, and nothing proves the work"))
}

/// Writes a conclusion.
pub fn apply(tx: &Writing<'_>, hold: &Hold, conclusion: &Conclusion) -> Result<()> {
    let job = store::job::get(tx, hold.job.id)?;
    if must_still_hold(tx, hold, &job).is_err() {
        return Ok(());
    }
    let run = store::run::get(tx, hold.run.id)?;
    match conclusion {
        Conclusion::Nothing => Ok(()),
        Conclusion::Seal { answer, is_new, work, evidence } => {
            if *is_new {
                keep(tx, hold, answer)?;
            }
            let fresh = unpublished(tx, &work.artifacts)?;
            let (session, evidence) = (hold.session.id, evidence.clone());
            let sealing = Sealing { answer, artifacts: &fresh, changed: work.changed, session, evidence };
            recovered(tx, hold)?;
            seal::seal(tx, &run, &store::job::get(tx, job.id)?, &sealing)
        }
        Conclusion::End { outcome, detail, lesson, question } => {
            let cooling = if *outcome == Outcome::Unavailable { super::cooling::cool(tx, hold, detail)? } else { None };
            let ended = Ended {
                lease: if *outcome == Outcome::Interrupted { LeaseState::Revoked } else { LeaseState::Released },
                lesson: lesson.clone(),
                question: question.as_ref(),
                fallback: cooling,
                ..Ended::plain(*outcome, detail.clone())
            };
            attempt::end(tx, &run, &job, ended)?;
            Ok(())
        }
    }
}

/// An answer that came as a file or as an exit is stored with its seal.
fn keep(tx: &Writing<'_>, hold: &Hold, answer: &Answer) -> Result<()> {
    let hash = crate::domain::event::sha256_hex(canonical(answer).as_bytes());
    store::attempt::set_answer(tx, hold.job.id, hold.lease.attempt, answer, &hash)?;
    store::job::set_phase(tx, hold.job.id, Phase::Settling)?;
    Ok(())
}

/// A lane that worked is no longer in trouble.
fn recovered(tx: &Writing<'_>, hold: &Hold) -> Result<()> {
    super::cooling::warm(tx, &hold.session.lane)
}
