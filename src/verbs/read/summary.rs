//! `run summary`: the one picture of a run that every view shares.
//!
//! It holds counts and a bounded number of lines, never a job's text. It does not know how it is drawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::inbox::{self, InboxReport};
use super::meters::{self, Meter};
use super::{Look, age, bounded, look};
use crate::domain::action::Standing;
use crate::domain::frozen::LaneMode;
use crate::domain::id::SessionId;
use crate::domain::job::{Cause, JobState, Phase};
use crate::domain::run::RunState;
use crate::domain::time::Timestamp;
use crate::error::{Next, Result};
use crate::os::lock::{Held, probe, read_driver};
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::read::standing::{self, StandingAnswer};
use crate::verbs::run::find;
use crate::verbs::session::{self as sessions, SessionLine};
use crate::verbs::supervise::confinement;
use crate::verbs::{Ctx, operator};

/// Most jobs, work in flight, sessions and tries in one summary.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Lines of jobs; 0 leaves them out.
    pub jobs: u32,
    /// Lines of work in flight.
    pub flights: u32,
    /// Lines of sessions; 0 leaves them out.
    pub sessions: u32,
}

/// Everything that `run summary` shows.
pub const FULL: Extent = Extent { jobs: 100, flights: 50, sessions: 20 };

/// What `status` shows of each run.
pub const BRIEF: Extent = Extent { jobs: 0, flights: 10, sessions: 0 };

/// Whoever drives a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Driver {
    /// Its process, by its own words.
    pub pid: Option<i32>,
    /// Its machine.
    pub host: Option<String>,
    /// Since when.
    pub started_at: Option<Timestamp>,
}

/// Work in flight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlightLine {
    /// The job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// claimed or running.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Kind of worker.
    pub role: String,
    /// Way to execute.
    pub lane: String,
    /// Who holds it.
    pub session: SessionId,
    /// Since when.
    pub since: Timestamp,
    /// How long, in milliseconds.
    pub elapsed_ms: u64,
    /// Milliseconds since its last output; none before the first.
    pub quiet_ms: Option<u64>,
    /// Bytes of output so far.
    pub output_bytes: Option<u64>,
    /// Milliseconds since its last verb or output.
    pub silent_ms: u64,
    /// How long the attempt may take, in milliseconds; none for a person's.
    pub timeout_ms: Option<u64>,
}

/// A job in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JobLine {
    /// Its name.
    pub job: String,
    /// generic, draft, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// Kind of worker.
    pub role: Option<String>,
    /// Way to execute.
    pub lane: Option<String>,
    /// Where it is.
    pub state: JobState,
    /// Within running.
    pub phase: Option<Phase>,
    /// Why, as a word.
    pub reason: Option<String>,
    /// Newest attempt.
    pub attempt: u32,
    /// Failed attempts that count.
    pub strikes: u32,
    /// Needs that are not settled.
    pub unmet: u32,
    /// Its successors may go.
    pub settled: bool,
    /// When the state last changed.
    pub changed_at: Timestamp,
}

/// A run, in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunSummary {
    /// Its name.
    pub run: String,
    /// The workflow's id.
    pub workflow: String,
    /// A sentence for people; empty when the workflow gives none.
    pub title: String,
    /// Where it is, `waiting_human` among the states.
    pub state: String,
    /// Code of needs_operator or failed.
    pub cause: Option<Cause>,
    /// What the cause is about.
    pub subject: Option<String>,
    /// One line about it.
    pub reason: Option<String>,
    /// The snapshot in force.
    pub generation: i64,
    /// Its hash.
    pub snapshot: String,
    /// `advisory`, or what the kernel holds.
    pub enforcement: String,
    /// The operator works through mediated verbs.
    pub constrained: bool,
    /// What holds the operator where that is so, or where a program of theirs is held: `advisory`, or the kernel.
    pub operator_enforcement: Option<String>,
    /// No launches since.
    pub paused_at: Option<Timestamp>,
    /// Told to end since.
    pub stop_requested_at: Option<Timestamp>,
    /// When prepared.
    pub created_at: Timestamp,
    /// When started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// From its start to its end or now, in milliseconds.
    pub elapsed_ms: Option<u64>,
    /// Whoever drives it; none when nobody does.
    pub driver: Option<Driver>,
    /// How many jobs it has.
    pub jobs: u32,
    /// How many are settled.
    pub settled: u32,
    /// How many are in each state that occurs.
    pub by_state: BTreeMap<JobState, u32>,
    /// Work in flight, oldest first.
    pub in_flight: Vec<FlightLine>,
    /// How much of it is not shown.
    pub in_flight_left_out: u32,
    /// Its jobs in the order of the workflow.
    pub job_lines: Vec<JobLine>,
    /// How many are not shown.
    pub jobs_left_out: u32,
    /// Its limits: those of the run, of jobs that have used some, and of attempts in flight.
    pub budget: Vec<Meter>,
    /// Tokens that agents reported to have read.
    pub input_tokens: u64,
    /// And written.
    pub output_tokens: u64,
    /// What a person answers a job that asks while nobody is there; none when they left nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<StandingAnswer>,
    /// Sessions that may claim and answer.
    pub active_sessions: u32,
    /// Sessions that it has had.
    pub sessions: u32,
    /// The newest active sessions.
    pub session_lines: Vec<SessionLine>,
    /// How many active ones are not shown.
    pub sessions_left_out: u32,
    /// What to do next.
    pub next: Vec<Next>,
}

/// What `run summary` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SummaryRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
}

/// What `run summary` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SummaryReport {
    /// The run; none in a store without runs.
    pub run: Option<RunSummary>,
    /// What waits in it for a person.
    pub inbox: InboxReport,
}

/// Tells how a run does.
pub fn summary(ctx: &Ctx, request: &SummaryRequest) -> Result<SummaryReport> {
    ctx.read(|read| {
        let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else {
            return Ok(SummaryReport { run: None, inbox: InboxReport::default() });
        };
        let look = look(ctx, read, run)?;
        let inbox = inbox::collect(ctx, read, &[&look], false, inbox::SHOWN)?;
        Ok(SummaryReport { run: Some(of(ctx, read, &look, FULL)?), inbox })
    })
}

fn operator_enforcement(is_constrained: bool) -> Option<String> {
    let held = operator::enforcement().or_else(|| is_constrained.then_some(confinement::ADVISORY));
    held.map(str::to_owned)
}

/// The picture of one run.
pub fn of(ctx: &Ctx, read: &Connection, look: &Look, extent: Extent) -> Result<RunSummary> {
    let run = &look.run;
    let counts = store::tally::counts(read, run.id)?;
    let by_state: BTreeMap<JobState, u32> = counts.iter().map(|count| (count.state, count.jobs)).collect();
    let jobs = counts.iter().map(|count| count.jobs).sum();
    let settled = counts.iter().map(|count| count.settled).sum();
    let (in_flight, in_flight_left_out) = flights(ctx, read, run, extent.flights)?;
    let (job_lines, jobs_left_out) = job_lines(read, run, extent.jobs, jobs)?;
    let (active, session_lines, sessions_left_out) = session_lines(read, run, extent.sessions)?;
    let driver = driver(ctx, run)?;
    let budget = meters::budget(read, run, &in_flight)?;
    Ok(RunSummary {
        run: run.name.clone(),
        workflow: run.workflow.clone(),
        title: run.spec.title.clone(),
        state: state(look),
        cause: run.cause,
        subject: run.subject.clone(),
        reason: run.reason.clone(),
        generation: run.generation,
        snapshot: store::frozen::hash(read, run.id, run.generation)?,
        enforcement: confinement::in_force(&run.spec),
        constrained: run.spec.constrained,
        operator_enforcement: operator_enforcement(run.spec.constrained),
        paused_at: run.paused_at,
        stop_requested_at: run.stop_requested_at,
        created_at: run.created_at,
        started_at: run.started_at,
        ended_at: run.ended_at,
        elapsed_ms: run.started_at.map(|start| elapsed(ctx, start, run.ended_at)),
        next: next(look, driver.is_some()),
        driver,
        jobs,
        settled,
        by_state,
        in_flight,
        in_flight_left_out,
        job_lines,
        jobs_left_out,
        budget,
        input_tokens: u64::try_from(run.input_tokens).unwrap_or(0),
        output_tokens: u64::try_from(run.output_tokens).unwrap_or(0),
        standing: standing::of_run(read, run)?,
        active_sessions: active,
        sessions: store::session::count_of_run(read, run.id)?,
        session_lines,
        sessions_left_out,
    })
}

/// Where a run is, as people say it.
pub fn state(look: &Look) -> String {
    match (look.run.state, &look.plan.standing) {
        (RunState::Running, Standing::WaitingHuman(_)) => "waiting_human".to_owned(),
        (state, _) => state.to_string(),
    }
}

fn elapsed(ctx: &Ctx, start: Timestamp, end: Option<Timestamp>) -> u64 {
    let end = end.unwrap_or_else(|| ctx.clock.now());
    u64::try_from(end.0.saturating_sub(start.0)).unwrap_or(0)
}

/// Whoever holds the drive lock: the lock is the proof, the words in it are for people.
pub fn driver(ctx: &Ctx, run: &Run) -> Result<Option<Driver>> {
    let path = ctx.layout().drive_lock(&run.name);
    if probe(&path)? == Held::Free {
        return Ok(None);
    }
    let holder = read_driver(&path);
    Ok(Some(Driver {
        pid: holder.as_ref().map(|holder| holder.pid),
        host: holder.as_ref().map(|holder| holder.host.clone()),
        started_at: holder.map(|holder| holder.started_at),
    }))
}

fn flights(ctx: &Ctx, read: &Connection, run: &Run, limit: u32) -> Result<(Vec<FlightLine>, u32)> {
    let rows = store::lease::flights(read, run.id, limit)?;
    let mut lines: Vec<FlightLine> = rows.into_iter().map(|row| flight(ctx, read, run, row)).collect::<Result<_>>()?;
    let known = super::count(lines.len());
    let total = if known < limit { known } else { store::lease::count_run(read, run.id)? };
    let left_out = bounded(&mut lines, limit, total);
    Ok((lines, left_out))
}

fn flight(ctx: &Ctx, read: &Connection, run: &Run, row: store::lease::Flight) -> Result<FlightLine> {
    let output = ctx.layout().scratch(&row.session.to_string()).attempt(&row.name, row.attempt).output();
    let about = std::fs::metadata(output).ok().filter(|about| about.len() > 0);
    let quiet = about.as_ref().and_then(|about| about.modified().ok()).and_then(|at| at.elapsed().ok());
    let quiet_ms = quiet.map(|quiet| u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX));
    let lane = run.spec.lanes.get(&row.lane).filter(|lane| lane.mode != LaneMode::Human);
    let own = store::job::get(read, row.job)?.spec.timeout_ms;
    Ok(FlightLine {
        job: row.name,
        attempt: row.attempt,
        state: row.state,
        phase: row.phase,
        role: row.role,
        lane: row.lane,
        session: row.session,
        since: row.granted_at,
        elapsed_ms: age(ctx, row.granted_at),
        silent_ms: quiet_ms.unwrap_or(u64::MAX).min(age(ctx, row.active_at)).min(age(ctx, row.granted_at)),
        timeout_ms: lane.map(|lane| own.unwrap_or(lane.timeout_ms)),
        quiet_ms,
        output_bytes: about.map(|about| about.len()),
    })
}

fn job_lines(read: &Connection, run: &Run, limit: u32, total: u32) -> Result<(Vec<JobLine>, u32)> {
    let rows = if limit == 0 { Vec::new() } else { store::job::lines(read, run.id, limit)? };
    let mut lines: Vec<JobLine> = rows.into_iter().map(job_line).collect();
    let left_out = if limit == 0 { 0 } else { bounded(&mut lines, limit, total) };
    Ok((lines, left_out))
}

fn job_line(row: store::job::JobLine) -> JobLine {
    JobLine {
        job: row.name,
        kind: row.kind,
        role: row.role,
        lane: row.lane,
        state: row.state,
        phase: row.phase,
        reason: row.reason,
        attempt: row.attempt,
        strikes: row.strikes,
        unmet: row.unmet,
        settled: row.settled,
        changed_at: row.changed_at,
    }
}

fn session_lines(read: &Connection, run: &Run, limit: u32) -> Result<(u32, Vec<SessionLine>, u32)> {
    let mut active = store::session::active(read, run.id)?;
    active.reverse();
    let total = super::count(active.len());
    active.truncate(limit as usize);
    let lines = active.into_iter().map(|row| sessions::line(read, row)).collect::<Result<Vec<_>>>()?;
    let left_out = if limit == 0 { 0 } else { total - super::count(lines.len()) };
    Ok((total, lines, left_out))
}

/// What to do next with a run as a whole; what waits in it stands in the inbox.
fn next(look: &Look, is_driven: bool) -> Vec<Next> {
    let name = look.run.name.as_str();
    let command = |why: &str, words: &[&str]| {
        vec![Next::new("operator", why, &[&["striatum", "run"], words, &["--run-id", name]].concat())]
    };
    match (look.run.state, &look.plan.standing) {
        (RunState::Ready, _) => command("enqueue its first jobs", &["start"]),
        (RunState::Completed, _) => Vec::new(),
        (RunState::Failed | RunState::Canceled, _) => {
            command("try its failed jobs again", &["retry-job", "--failed", "--reason", "'...'"])
        }
        (_, Standing::Paused | Standing::Stopped) if !look.world.stop_file => command("go on", &["resume"]),
        _ if !is_driven && !look.world.stop_file => command("nobody drives it", &["drive"]),
        _ => Vec::new(),
    }
}
