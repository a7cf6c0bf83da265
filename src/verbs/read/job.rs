//! `job show`: everything about one job, its newest attempts first.
//!
//! It does not know outputs; `logs` does.

use serde::{Deserialize, Serialize};

use super::events::{self, EventLine};
use super::explain::{self, Reader, Why};
use super::{Look, age, bounded, count, look};
use crate::domain::contract::{BlockedReason, Status};
use crate::domain::event::sha256_hex;
use crate::domain::frozen::{Effect, JobType, TreeKind};
use crate::domain::id::SessionId;
use crate::domain::job::{JobState, Outcome, Phase};
use crate::domain::session::ExecutionState;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{Finding, Verdict};
use crate::error::Result;
use crate::store::attempt::Attempt;
use crate::store::event::Scope;
use crate::store::job::{Job, Place};
use crate::store::{self, Connection, StoreResult};
use crate::verbs::Ctx;
use crate::verbs::proposal::{self, ProposalLine};
use crate::verbs::run::find;

/// Attempts shown.
const ATTEMPTS: u32 = 10;
/// Needs and successors shown.
const PLACES: u32 = 20;
/// Artifacts and processes shown of one attempt.
const PARTS: u32 = 20;
/// Findings shown of one verdict.
const FINDINGS: u32 = 20;
/// Events shown.
const EVENTS: u32 = 10;
/// Characters shown of an objective.
const OBJECTIVE: usize = 400;

/// What `job show` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct JobRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// The job.
    pub job: String,
}

/// Another job, and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PlaceLine {
    /// The job.
    pub job: String,
    /// Where it is.
    pub state: JobState,
    /// Its successors may go.
    pub settled: bool,
}

/// How many tries of a kind are used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Used {
    /// So far.
    pub used: u32,
    /// At most.
    pub limit: u32,
}

/// A process of an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExecutionLine {
    /// agent, verify or setup.
    pub kind: String,
    /// Where it is.
    pub state: ExecutionState,
    /// When it exited by itself.
    pub exit_code: Option<i32>,
    /// When a signal ended it.
    pub signal: Option<i32>,
    /// What it wrote.
    pub output_bytes: Option<i64>,
    /// Its process.
    pub pid: Option<i64>,
    /// One line.
    pub detail: Option<String>,
    /// Intent.
    pub started_at: Timestamp,
    /// Outcome.
    pub ended_at: Option<Timestamp>,
}

/// A published file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ArtifactLine {
    /// As `produces` names it.
    pub name: String,
    /// A free word; empty when none.
    pub kind: String,
    /// Of its bytes.
    pub sha256: String,
    /// Size.
    pub bytes: i64,
    /// Where its bytes lie.
    pub path: String,
}

/// A judgement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerdictLine {
    /// The review.
    pub review: String,
    /// Its try.
    pub attempt: u32,
    /// The judgement.
    pub verdict: Verdict,
    /// The subject's generation that was judged.
    pub generation: u32,
    /// It was made void by a later generation.
    pub void: bool,
    /// A person judged over it.
    pub overridden: bool,
    /// Author and reviewer declare the same model.
    pub same_model: bool,
    /// Remarks.
    pub findings: Vec<Finding>,
    /// How many are not shown.
    pub findings_left_out: u32,
    /// When.
    pub recorded_at: Timestamp,
}

/// One try.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttemptLine {
    /// 1, 2, ...
    pub number: u32,
    /// Who holds or held it.
    pub session: Option<SessionId>,
    /// Its lane.
    pub lane: Option<String>,
    /// How it ended; none while open.
    pub outcome: Option<Outcome>,
    /// One line about it.
    pub detail: Option<String>,
    /// What was answered.
    pub answer: Option<Status>,
    /// In the agent's words.
    pub summary: Option<String>,
    /// Doubts about work that is done.
    pub concerns: Vec<String>,
    /// When enqueued.
    pub queued_at: Timestamp,
    /// When claimed.
    pub claimed_at: Option<Timestamp>,
    /// When ended.
    pub ended_at: Option<Timestamp>,
    /// From its claim to its end or now, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// Its processes.
    pub executions: Vec<ExecutionLine>,
    /// What it published.
    pub artifacts: Vec<ArtifactLine>,
}

/// Where the newest attempt's files lie; not all need to be there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Paths {
    /// Its folder.
    pub folder: String,
    /// What the agent was told.
    pub packet: String,
    /// The same as prose.
    pub prompt: String,
    /// Where a plain command puts its answer.
    pub result: String,
    /// What the agent printed.
    pub output: String,
    /// The helper's own words.
    pub helper_log: String,
}

/// What `job show` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobReport {
    /// The run's name.
    pub run: String,
    /// The job's name.
    pub job: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: JobType,
    /// For people; empty when none.
    pub title: String,
    /// Its objective, cut.
    pub objective: String,
    /// sha256 of the whole objective.
    pub objective_sha256: String,
    /// Kind of worker.
    pub role: Option<String>,
    /// Way to execute.
    pub lane: Option<String>,
    /// How far its effects reach.
    pub effect: Effect,
    /// Where it works.
    pub tree: TreeKind,
    /// Globs it may change.
    pub writes: Vec<String>,
    /// Commands that must exit 0 before a seal.
    pub verify: Vec<Vec<String>>,
    /// Where it is.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Why, as a word.
    pub reason: Option<String>,
    /// Its successors may go.
    pub settled: bool,
    /// When the state last changed.
    pub changed_at: Timestamp,
    /// Why it is there, and what moves it.
    pub why: Why,
    /// What an agent awaits.
    pub question: Option<BlockedReason>,
    /// Failed attempts that count.
    pub strikes: Used,
    /// Attempts repeated without a strike.
    pub requeues: Used,
    /// Times it sent its subject back.
    pub revisions: Used,
    /// Verdicts of older generations are void.
    pub generation: u32,
    /// What it needs, what is not settled first.
    pub needs: Vec<PlaceLine>,
    /// How many are not shown.
    pub needs_left_out: u32,
    /// What needs it.
    pub needed_by: Vec<PlaceLine>,
    /// How many are not shown.
    pub needed_by_left_out: u32,
    /// The job it judges.
    pub reviews: Option<String>,
    /// Judgements by it, or of it by its panel, newest first.
    pub verdicts: Vec<VerdictLine>,
    /// Its tries, newest first.
    pub attempts: Vec<AttemptLine>,
    /// How many are not shown.
    pub attempts_left_out: u32,
    /// What it proposed, newest first.
    #[serde(default)]
    pub proposals: Vec<ProposalLine>,
    /// Files of the newest attempt that somebody held.
    pub paths: Option<Paths>,
    /// Its newest events, oldest first.
    pub events: Vec<EventLine>,
}

/// Shows a job.
pub fn show(ctx: &Ctx, request: &JobRequest) -> Result<JobReport> {
    ctx.read(|read| {
        let run = find::for_reading(ctx, read, request.run.as_deref())?;
        let look = look(ctx, read, run)?;
        let job = explain::named(read, &look.run, &request.job)?;
        report(ctx, read, &look, &job)
    })
}

fn report(ctx: &Ctx, read: &Connection, look: &Look, job: &Job) -> Result<JobReport> {
    let (needs, needs_left_out) =
        places(store::job::need_places(read, job.id, PLACES)?, || store::job::count_needs(read, job.id))?;
    let (needed_by, needed_by_left_out) =
        places(store::job::follower_places(read, job.id, PLACES)?, || store::job::count_followers(read, job.id))?;
    let rows = store::attempt::of_job(read, job.id, ATTEMPTS)?;
    let mut attempts = rows.iter().map(|row| attempt(ctx, read, job, row)).collect::<Result<Vec<_>>>()?;
    let attempts_left_out = bounded(&mut attempts, ATTEMPTS, job.attempt);
    let mut events = store::event::latest(read, Scope::Job(job.id), EVENTS)?;
    events.reverse();
    let spec = &job.spec;
    let used = |used: u32, limit: u32| Used { used, limit };
    Ok(JobReport {
        run: look.run.name.clone(),
        job: job.name.clone(),
        kind: spec.kind,
        title: spec.title.clone(),
        objective: spec.objective.chars().take(OBJECTIVE).collect(),
        objective_sha256: sha256_hex(spec.objective.as_bytes()),
        role: spec.role.clone(),
        lane: spec.lane.clone(),
        effect: spec.effect,
        tree: spec.tree,
        writes: spec.writes.clone(),
        verify: spec.verify.clone(),
        state: job.state,
        phase: job.phase,
        reason: job.reason.clone(),
        settled: job.settled,
        changed_at: job.changed_at,
        why: Reader::new(ctx, read, look)?.why(job)?,
        question: job.question.clone(),
        strikes: used(job.strikes, spec.max_strikes),
        requeues: used(job.requeues, look.run.spec.budget.requeues),
        revisions: used(job.revisions, spec.revisions),
        generation: job.generation,
        needs,
        needs_left_out,
        needed_by,
        needed_by_left_out,
        reviews: spec.reviewed_job().map(str::to_owned),
        verdicts: verdicts(read, job)?,
        proposals: proposal::of_job(read, job, PARTS)?,
        paths: paths(ctx, job, &rows),
        attempts,
        attempts_left_out,
        events: events.into_iter().map(events::line).collect(),
    })
}

/// Lines of places, and how many there are beside them: all are there when the bound is not reached.
fn places(rows: Vec<Place>, total: impl FnOnce() -> StoreResult<u32>) -> Result<(Vec<PlaceLine>, u32)> {
    let known = count(rows.len());
    let total = if known < PLACES { known } else { total()? };
    let mut lines: Vec<PlaceLine> = rows
        .into_iter()
        .map(|place| PlaceLine { job: place.name, state: place.state, settled: place.settled })
        .collect();
    let left_out = bounded(&mut lines, PLACES, total);
    Ok((lines, left_out))
}

fn attempt(ctx: &Ctx, read: &Connection, job: &Job, row: &Attempt) -> Result<AttemptLine> {
    let (mut executions, mut artifacts) = (Vec::new(), Vec::new());
    if row.claimed_at.is_some() {
        executions = store::execution::of_attempt(read, job.id, row.number)?;
        executions.truncate(PARTS as usize);
        artifacts = store::artifact::of_attempt(read, job.id, row.number)?;
        artifacts.truncate(PARTS as usize);
    }
    let session = match row.session {
        Some(session) => store::session::get(read, session)?,
        None => None,
    };
    let answer = row.answer.as_ref();
    let end = |start: Timestamp| match row.ended_at {
        Some(end) => u64::try_from(end.0.saturating_sub(start.0)).unwrap_or(0),
        None => age(ctx, start),
    };
    Ok(AttemptLine {
        number: row.number,
        session: row.session,
        lane: session.map(|session| session.lane),
        outcome: row.outcome,
        detail: row.detail.clone(),
        answer: answer.map(|answer| answer.status),
        summary: answer.and_then(|answer| answer.summary.clone()),
        concerns: answer.map(|answer| answer.concerns.clone()).unwrap_or_default(),
        queued_at: row.queued_at,
        claimed_at: row.claimed_at,
        ended_at: row.ended_at,
        elapsed_ms: row.claimed_at.map(end),
        executions: executions.into_iter().map(execution).collect(),
        artifacts: artifacts.into_iter().map(|row| artifact(ctx, row)).collect(),
    })
}

fn execution(row: store::execution::Execution) -> ExecutionLine {
    ExecutionLine {
        kind: row.kind,
        state: row.state,
        exit_code: row.exit_code,
        signal: row.signal,
        output_bytes: row.output_bytes,
        pid: row.process.map(|process| process.0),
        detail: row.detail,
        started_at: row.started_at,
        ended_at: row.ended_at,
    }
}

fn artifact(ctx: &Ctx, row: store::artifact::Artifact) -> ArtifactLine {
    let path = ctx.layout().artifact(&row.sha256).display().to_string();
    ArtifactLine { name: row.name, kind: row.kind, sha256: row.sha256, bytes: row.bytes, path }
}

/// A review's own judgements; of another job those of its panel, the newest of each review.
fn verdicts(read: &Connection, job: &Job) -> Result<Vec<VerdictLine>> {
    if job.spec.kind == JobType::Review {
        let generation = match job.reviews {
            Some(subject) => store::job::get(read, subject)?.generation,
            None => job.generation,
        };
        let rows = store::verdict::of_job(read, job.id)?;
        return Ok(rows
            .into_iter()
            .rev()
            .map(|row| verdict(&job.name, generation, row))
            .take(PARTS as usize)
            .collect());
    }
    let mut lines = Vec::new();
    for review in store::job::panel(read, job.id)? {
        let newest = store::verdict::newest(read, review.id)?;
        lines.extend(newest.map(|row| verdict(&review.name, job.generation, row)));
    }
    Ok(lines)
}

fn verdict(review: &str, generation: u32, row: store::verdict::VerdictRow) -> VerdictLine {
    let mut findings = row.findings;
    let total = count(findings.len());
    let findings_left_out = bounded(&mut findings, FINDINGS, total);
    VerdictLine {
        review: review.to_owned(),
        attempt: row.attempt,
        verdict: row.verdict,
        generation: row.generation,
        void: row.generation != generation,
        overridden: row.decision.is_some(),
        same_model: row.same_model,
        findings,
        findings_left_out,
        recorded_at: row.recorded_at,
    }
}

fn paths(ctx: &Ctx, job: &Job, attempts: &[Attempt]) -> Option<Paths> {
    let (number, session) = attempts.iter().find_map(|row| row.session.map(|session| (row.number, session)))?;
    let scratch = ctx.layout().scratch(&session.to_string());
    let folder = scratch.attempt(&job.name, number);
    let text = |path: &std::path::Path| path.display().to_string();
    Some(Paths {
        folder: text(folder.folder()),
        packet: text(&folder.packet()),
        prompt: text(&folder.prompt()),
        result: text(&folder.result()),
        output: text(&folder.output()),
        helper_log: text(&scratch.helper_log()),
    })
}
