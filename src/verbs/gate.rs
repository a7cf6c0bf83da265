//! `gate approve / reject / skip / revise`: what a person decides. What waits for them is shown in `look`.
//!
//! It does not know what a decision does to a job (`flow::gate`).

pub mod behind;
pub mod look;
pub mod revise;
pub mod set;

use serde::{Deserialize, Serialize};

pub use look::{GateLine, ListReport, ListRequest, ShowReport, ShowRequest, list, show};
use look::{by_id, no_gate};

use super::flow::gate::{self as flow, Decision, Said};
use super::land::{self, Landed};
use super::run::find;
use super::run::marker::Onward;
use super::settle::evidence;
use crate::domain::frozen::JobType;
use crate::domain::id::{GateId, RunId};
use crate::domain::session::GateState;
use crate::domain::time::Moment;
use crate::error::{Code, Error, Next, Result};
use crate::store::gate::Gate;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection, Writing};
use crate::verbs::Ctx;

/// What a person says at one or several gates.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Deciding {
    /// The run, when gates are named by their jobs.
    pub run: Option<String>,
    /// g3, or jobs that wait, or patterns of them.
    pub gates: Vec<String>,
    /// The person's words.
    pub note: Option<String>,
    /// With patterns: the digest of what they mean, as `gate list PATTERN` shows it.
    #[serde(default)]
    pub set: Option<String>,
}

/// What `gate approve` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ApproveRequest(pub Deciding);

/// What `gate reject` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RejectRequest(pub Deciding);

/// What `gate skip` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SkipRequest(pub Deciding);

/// A gate that was decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecidedGate {
    /// The run's name.
    pub run: String,
    /// Which gate.
    pub gate: GateId,
    /// What waited for it.
    pub job: String,
    /// What was decided.
    pub decision: Decision,
    /// The same had been decided before.
    pub already: bool,
    /// What landed with it, when it stood before a landing.
    #[serde(default)]
    pub landed: Option<Landed>,
}

/// What deciding tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecideReport {
    /// Each gate.
    pub decided: Vec<DecidedGate>,
    /// Who takes the run on; of the first run, when there are several.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Lets jobs go on.
pub fn approve(ctx: &Ctx, request: &ApproveRequest) -> Result<DecideReport> {
    decide(ctx, &request.0, Decision::Approve)
}

/// Stops jobs at their gates.
pub fn reject(ctx: &Ctx, request: &RejectRequest) -> Result<DecideReport> {
    decide(ctx, &request.0, Decision::Reject)
}

/// Passes jobs over.
pub fn skip(ctx: &Ctx, request: &SkipRequest) -> Result<DecideReport> {
    decide(ctx, &request.0, Decision::Skip)
}

/// What looking at gates and deciding them came to.
enum Looked {
    /// Decided.
    Done(Vec<(RunId, DecidedGate)>),
    /// The one gate of a landing: it is decided with the landing.
    Lands(Gate),
    /// What gates are about has changed since they were opened; they are open anew.
    Stale(Vec<(GateId, String)>),
}

/// All or none, in one transaction; a landing on its own.
fn decide(ctx: &Ctx, request: &Deciding, decision: Decision) -> Result<DecideReport> {
    let said = Said { decision, how: ctx.person()?, note: request.note.as_deref() };
    let now = ctx.clock.moment();
    let looked = ctx.write("gate decide", |tx| {
        let gates = meant(tx, request, decision, &now)?;
        look(tx, gates, &said, &now)
    })?;
    let decided = match looked {
        Looked::Done(decided) => decided,
        Looked::Stale(anew) => return Err(stale(&anew)),
        Looked::Lands(gate) => vec![land_at(ctx, gate.id, &said, None)?],
    };
    let mut runs: Vec<RunId> = decided.iter().map(|(run, _)| *run).collect();
    runs.dedup();
    for run in &runs {
        evidence::complete(ctx, *run)?;
    }
    let first = runs.first().ok_or_else(|| Error::new(Code::Usage, "name a gate or the job that waits for one"))?;
    let onward = Onward::look(ctx, *first)?;
    Ok(DecideReport { decided: decided.into_iter().map(|(_, gate)| gate).collect(), onward })
}

fn look(tx: &Writing<'_>, gates: Vec<Gate>, said: &Said<'_>, now: &Moment) -> Result<Looked> {
    if said.decision == Decision::Approve {
        let (mut anew, mut lands) = (Vec::new(), 0_usize);
        for gate in &gates {
            let (run, job) = (store::run::get(tx, gate.run)?, store::job::get(tx, gate.job)?);
            let is_open = gate.state == GateState::Pending || store::landing::intended(tx, job.id)?.is_some();
            lands += usize::from(job.spec.kind == JobType::Land && is_open);
            if let Some(open) = flow::renew(tx, &run, &job, gate, now)? {
                anew.push((open, job.name));
            }
        }
        if !anew.is_empty() {
            return Ok(Looked::Stale(anew));
        }
        match (lands, gates.as_slice()) {
            (0, _) => {}
            (_, [gate]) => return Ok(Looked::Lands(gate.clone())),
            _ => {
                return Err(Error::new(Code::Usage, "a landing is approved on its own")
                    .hint("name its gate alone; approve the others first"));
            }
        }
    }
    let mut decided = Vec::new();
    for gate in gates {
        decided.push((gate.run, decide_one(tx, &gate, said)?));
    }
    Ok(Looked::Done(decided))
}

/// What gates are about has changed; they are open anew, with the jobs behind them.
pub fn stale(anew: &[(GateId, String)]) -> Error {
    let jobs: Vec<&str> = anew.iter().map(|(_, job)| job.as_str()).collect();
    let message = format!("what the gate before {} is about has changed since it was shown", jobs.join(", "));
    let error = Error::new(Code::StaleGate, message).hint("it is open anew: look again");
    anew.iter().take(3).fold(error, |error, (gate, job)| {
        error.next(Next::new(
            "person",
            format!("see what waits before {job} now"),
            &["striatum", "gate", "show", &gate.to_string()],
        ))
    })
}

/// Approves the gate of a landing, which lands.
pub fn land_at(ctx: &Ctx, gate: GateId, said: &Said<'_>, into: Option<&str>) -> Result<(RunId, DecidedGate)> {
    let landed = land::land(ctx, &land::Asked { gate, how: said.how, note: said.note, into })?;
    ctx.read(|read| {
        let row = store::gate::get(read, gate)?.ok_or_else(|| Error::new(Code::Bug, "a gate vanished"))?;
        let (run, job) = (store::run::get(read, row.run)?, store::job::get(read, row.job)?);
        let already = landed.already;
        let decided = DecidedGate {
            run: run.name,
            gate,
            job: job.name,
            decision: Decision::Approve,
            already,
            landed: Some(landed),
        };
        Ok((run.id, decided))
    })
}

fn decide_one(tx: &Writing<'_>, gate: &Gate, said: &Said<'_>) -> Result<DecidedGate> {
    let (run, job) = (store::run::get(tx, gate.run)?, store::job::get(tx, gate.job)?);
    let already = gate.state == said.decision.state();
    if !already {
        if gate.state != GateState::Pending {
            return Err(decided_before(gate, &job));
        }
        find::must_be_live(&run)?;
        must_not_land(tx, &job)?;
        flow::decide(tx, &run, gate, said)?;
        if said.decision != Decision::Reject {
            super::flow::finish::revive(tx, run.id, &format!("gate {} is {}", gate.id, said.decision.state()))?;
        }
    }
    Ok(DecidedGate { run: run.name, gate: gate.id, job: job.name, decision: said.decision, already, landed: None })
}

/// A landing that a person approved has begun: only its end decides its gate.
fn must_not_land(read: &Connection, job: &Job) -> Result<()> {
    if store::landing::intended(read, job.id)?.is_none() {
        return Ok(());
    }
    let message = format!("{} is landing", job.name);
    Err(Error::new(Code::StillHeld, message).hint("a landing that was cut off is finished by approving its gate"))
}

fn decided_before(gate: &Gate, job: &Job) -> Error {
    let by = gate.decided_by.as_deref().unwrap_or("nobody");
    let when = gate.decided_at.map_or(String::new(), |at| format!(" at {at}"));
    let error = Error::new(
        Code::InvalidTransition,
        format!("gate {} before {} was {} by {by}{when}", gate.id, job.name, gate.state),
    );
    match (gate.state, flow::is_due(job)) {
        (_, true) => error.hint(format!("another gate before {} waits: name the job instead", job.name)),
        (GateState::Rejected, false) => error.hint("`run retry-job` opens it anew"),
        _ => error,
    }
}

/// The gates that the words mean, each once: ids, jobs that wait, and patterns of them, which must be bound to what they
/// mean now.
fn meant(tx: &Writing<'_>, request: &Deciding, decision: Decision, now: &Moment) -> Result<Vec<Gate>> {
    let mut gates: Vec<Gate> = Vec::new();
    let mut add = |gate: Gate| {
        if !gates.iter().any(|before| before.id == gate.id) {
            gates.push(gate);
        }
    };
    let (patterns, names): (Vec<&String>, Vec<&String>) = request.gates.iter().partition(|word| set::is_pattern(word));
    for name in names {
        match by_id(tx, name)? {
            Some(gate) => add(gate),
            None => {
                let (run, job) = find::job_for_writing(tx, request.run.as_deref(), name, flow::is_due)?;
                add(of_job(tx, &run, &job, now)?);
            }
        }
    }
    if patterns.is_empty() {
        return Ok(gates);
    }
    let run = find::for_writing(tx, request.run.as_deref())?;
    let mut jobs = Vec::new();
    for pattern in patterns {
        jobs.extend(set::fitting(tx, &run, pattern)?);
    }
    let asked = set::Asked {
        verb: decision.verb(),
        words: &request.gates,
        set: request.set.as_deref(),
        note: request.note.as_deref(),
    };
    set::must_be_bound(tx, &run, &jobs, &asked)?;
    for job in &jobs {
        add(of_job(tx, &run, job, now)?);
    }
    Ok(gates)
}

/// A job's gate: the open one; one that is due is opened now; else the newest, for what it has to say.
fn of_job(tx: &Writing<'_>, run: &Run, job: &Job, now: &Moment) -> Result<Gate> {
    if let Some(gate) = store::gate::pending_of_job(tx, job.id)? {
        return Ok(gate);
    }
    let opened = match flow::is_due(job) {
        true => flow::open(tx, run, job, now)?,
        false => None,
    };
    let gate = match opened {
        Some(id) => store::gate::get(tx, id)?,
        None => store::gate::newest_of_job(tx, job.id)?,
    };
    gate.ok_or_else(|| no_gate(job))
}
