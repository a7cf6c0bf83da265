//! `gate list / show`: what waits for a person, and what it is about. It decides nothing.

use serde::{Deserialize, Serialize};

use super::behind::{self, Behind};
use super::set;
use crate::domain::frozen::JobType;
use crate::domain::gate::Tier;
use crate::domain::id::{GateId, RunId};
use crate::domain::job::JobState;
use crate::domain::session::GateState;
use crate::domain::time::{Moment, Timestamp};
use crate::error::{Code, Error, Next, Result};
use crate::store::gate::Gate;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::flow::gate as flow;
use crate::verbs::proposal::{self, ProposalLine};
use crate::verbs::run::find;

/// Most gates in one list, most inputs in one view.
const SHOWN: usize = 200;

/// What `gate list` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// Decided ones too.
    pub all: bool,
    /// Only those before jobs that the pattern fits.
    #[serde(default)]
    pub pattern: Option<String>,
}

/// A gate, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GateLine {
    /// g3; none while no driver has opened it.
    pub gate: Option<GateId>,
    /// What waits for it.
    pub job: String,
    /// Where it is.
    pub state: GateState,
    /// Why a person is needed.
    pub tier: Tier,
    /// In words.
    pub why: String,
    /// When opened.
    pub opened_at: Option<Timestamp>,
    /// When decided.
    pub decided_at: Option<Timestamp>,
    /// By whom.
    pub decided_by: Option<String>,
    /// How it was known that a person decided.
    pub how: Option<String>,
    /// The person's words.
    pub note: Option<String>,
}

/// What `gate list` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// The run's name; none when there is no run yet.
    pub run: Option<String>,
    /// Its gates, newest first.
    pub gates: Vec<GateLine>,
    /// How many are not shown.
    pub left_out: usize,
    /// With a pattern: the digest of exactly what waits and fits, for deciding all of it.
    #[serde(default)]
    pub set: Option<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Lists the gates of a run: what waits, with `all` what was decided too.
pub fn list(ctx: &Ctx, request: &ListRequest) -> Result<ListReport> {
    ctx.read(|read| {
        if request.run.is_none() && store::run::count(read)? == 0 {
            return Ok(ListReport { run: None, gates: Vec::new(), left_out: 0, set: None, next: Vec::new() });
        }
        let run = find::for_reading(ctx, read, request.run.as_deref())?;
        let mut gates = due(read, &run)?;
        let rows = if request.all { store::gate::of_run(read, run.id, u32::MAX)? } else { newest_first(read, run.id)? };
        for row in rows {
            let job = store::job::get(read, row.job)?.name;
            gates.push(line(row, job));
        }
        let mut set = None;
        if let Some(pattern) = &request.pattern {
            let jobs = set::fitting(read, &run, pattern)?;
            gates.retain(|gate| jobs.iter().any(|job| job.name == gate.job));
            set = Some(set::digest(read, &run, &jobs)?);
        }
        let left_out = gates.len().saturating_sub(SHOWN);
        gates.truncate(SHOWN);
        let next = match (&request.pattern, &set) {
            (Some(pattern), Some(set)) => vec![set::bound(&run, pattern, set)],
            _ => gates
                .iter()
                .find(|gate| gate.state == GateState::Pending)
                .map_or(Vec::new(), |one| decide_next(&run, one)),
        };
        Ok(ListReport { run: Some(run.name), gates, left_out, set, next })
    })
}

fn newest_first(read: &Connection, run: RunId) -> Result<Vec<Gate>> {
    let mut gates = store::gate::pending(read, run)?;
    gates.reverse();
    Ok(gates)
}

/// Gates that no driver has opened yet: the first decision opens them.
fn due(read: &Connection, run: &Run) -> Result<Vec<GateLine>> {
    let mut lines = Vec::new();
    for job in store::job::kept(read, run.id, u32::MAX)?.into_iter().filter(flow::is_due) {
        if store::gate::pending_of_job(read, job.id)?.is_none() {
            lines.push(GateLine {
                gate: None,
                state: GateState::Pending,
                tier: crate::domain::gate::tier_of(&job.spec),
                why: flow::why(&job),
                job: job.name,
                opened_at: None,
                decided_at: None,
                decided_by: None,
                how: None,
                note: None,
            });
        }
    }
    Ok(lines)
}

fn line(row: Gate, job: String) -> GateLine {
    GateLine {
        gate: Some(row.id),
        job,
        state: row.state,
        tier: row.tier,
        why: row.why,
        opened_at: Some(row.opened_at),
        decided_at: row.decided_at,
        decided_by: row.decided_by,
        how: row.how,
        note: row.note,
    }
}

fn decide_next(run: &Run, gate: &GateLine) -> Vec<Next> {
    let name = gate.gate.map_or_else(|| gate.job.clone(), |id| id.to_string());
    let verb = |word: &str, why: &str| {
        let next = Next::new("person", why, &["striatum", "gate", word, &name]);
        let named = ["--run-id".to_owned(), run.name.clone()];
        Next { argv: next.argv.into_iter().chain(named.into_iter().filter(|_| gate.gate.is_none())).collect(), ..next }
    };
    vec![verb("show", "see what it is about"), verb("approve", "let it go on"), verb("reject", "stop it here")]
}

/// What `gate show` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowRequest {
    /// The run, when the gate is named by its job.
    pub run: Option<String>,
    /// g3, or the job that waits.
    pub gate: String,
    /// The whole of every difference.
    #[serde(default)]
    pub full: bool,
}

/// A job before the gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Before {
    /// Its name.
    pub job: String,
    /// Where it is.
    pub state: JobState,
    /// What it said of itself.
    pub summary: Option<String>,
}

/// A file that was published before the gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shown {
    /// By which job.
    pub job: String,
    /// As which name.
    pub name: String,
    /// Where its bytes are.
    pub path: String,
    /// Size.
    pub bytes: i64,
}

/// A proposed job, and what the program made of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proposed {
    /// What was proposed.
    #[serde(flatten)]
    pub line: ProposalLine,
    /// Kind of worker.
    pub role: Option<String>,
    /// Way to execute.
    pub lane: Option<String>,
    /// What it may change; nothing when it only looks.
    pub writes: Vec<String>,
    /// Artifacts it gets beside those of its needs.
    pub inputs: Vec<String>,
}

fn proposed(read: &Connection, job: &Job) -> Result<Option<Proposed>> {
    let spec = &job.spec;
    Ok(proposal::before(read, job)?.map(|line| Proposed {
        line,
        role: spec.role.clone(),
        lane: spec.lane.clone(),
        writes: spec.writes.clone(),
        inputs: spec.inputs.clone(),
    }))
}

/// What `gate show` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowReport {
    /// The run's name.
    pub run: String,
    /// The gate.
    #[serde(flatten)]
    pub gate: GateLine,
    /// What the job is.
    #[serde(rename = "type")]
    pub kind: JobType,
    /// What it would do.
    pub objective: String,
    /// The proposal that it was, when an agent proposed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposed>,
    /// Hash of what is shown here, kept with the decision.
    pub digest: Option<String>,
    /// Milliseconds until it is opened anew.
    pub expires_in_ms: Option<i64>,
    /// The jobs that it needs.
    pub needs: Vec<Before>,
    /// What they published.
    pub artifacts: Vec<Shown>,
    /// How many of those are not shown.
    pub left_out: usize,
    /// The changes, their reviews and verifications, and where they would land.
    #[serde(flatten)]
    pub behind: Behind,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Shows what a gate is about.
pub fn show(ctx: &Ctx, request: &ShowRequest) -> Result<ShowReport> {
    let now = ctx.clock.moment();
    let (run, job, mut report) = ctx.read(|read| {
        let (run, job, row) = find_gate(ctx, read, request)?;
        let (needs, mut artifacts) = before(ctx, read, &job)?;
        let left_out = artifacts.len().saturating_sub(SHOWN);
        artifacts.truncate(SHOWN);
        let digest = row.as_ref().map(|row| row.digest.clone());
        let expires_in_ms = row.as_ref().filter(|row| row.state == GateState::Pending).map(|row| left(row, &now));
        let gate = match row {
            Some(row) => line(row, job.name.clone()),
            None => due(read, &run)?.into_iter().find(|gate| gate.job == job.name).ok_or_else(|| no_gate(&job))?,
        };
        let next = if gate.state == GateState::Pending { decide_next(&run, &gate).split_off(1) } else { Vec::new() };
        let report = ShowReport {
            run: run.name.clone(),
            gate,
            kind: job.spec.kind,
            objective: job.spec.objective.clone(),
            proposal: proposed(read, &job)?,
            digest,
            expires_in_ms,
            needs,
            artifacts,
            left_out,
            behind: Behind::default(),
            next,
        };
        Ok((run, job, report))
    })?;
    let depth = behind::Depth { is_full: request.full, is_open: report.gate.state == GateState::Pending };
    report.behind = behind::look(ctx, &run, &job, depth)?;
    Ok(report)
}

fn left(gate: &Gate, now: &Moment) -> i64 {
    if gate.expires.is_past(now) { 0 } else { gate.expires.ms.saturating_sub(now.ms) }
}

/// No gate waits before a job.
pub fn no_gate(job: &Job) -> Error {
    let reason = job.reason.as_deref().map_or(String::new(), |reason| format!(" ({reason})"));
    Error::new(Code::NotFound, format!("{} is {}{reason}: no gate waits before it", job.name, job.state))
}

fn find_gate(ctx: &Ctx, read: &Connection, request: &ShowRequest) -> Result<(Run, Job, Option<Gate>)> {
    if let Some(gate) = by_id(read, &request.gate)? {
        let (run, job) = (store::run::get(read, gate.run)?, store::job::get(read, gate.job)?);
        return Ok((run, job, Some(gate)));
    }
    let run = find::for_reading(ctx, read, request.run.as_deref())?;
    let job = find::job(read, &run, &request.gate)?;
    let open = store::gate::pending_of_job(read, job.id)?;
    let row = match open {
        None if !flow::is_due(&job) => store::gate::newest_of_job(read, job.id)?,
        open => open,
    };
    Ok((run, job, row))
}

fn before(ctx: &Ctx, read: &Connection, job: &Job) -> Result<(Vec<Before>, Vec<Shown>)> {
    let (mut needs, mut artifacts) = (Vec::new(), Vec::new());
    for needed in store::job::needs(read, job.id)? {
        let needed = store::job::get(read, needed)?;
        let newest = store::attempt::of_job(read, needed.id, 1)?.into_iter().next();
        for artifact in store::artifact::of_newest_sealed(read, needed.id)? {
            artifacts.push(Shown {
                job: needed.name.clone(),
                path: ctx.layout().artifact(&artifact.sha256).display().to_string(),
                name: artifact.name,
                bytes: artifact.bytes,
            });
        }
        needs.push(Before {
            summary: newest.and_then(|attempt| attempt.answer).and_then(|answer| answer.summary),
            job: needed.name,
            state: needed.state,
        });
    }
    Ok((needs, artifacts))
}

/// A gate by its id; none when the text is no id or no such gate exists.
pub fn by_id(read: &Connection, text: &str) -> Result<Option<Gate>> {
    match text.parse::<GateId>() {
        Ok(id) => Ok(store::gate::get(read, id)?),
        Err(_) => Ok(None),
    }
}
