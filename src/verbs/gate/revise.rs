//! `gate revise`: a person sends the work behind a gate back with a note, which its author finds in the next packet.
//!
//! It costs neither a revision nor a strike, and reopens by the one path that there is.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{by_id, decided_before, no_gate, of_job};
use crate::domain::event::EventType;
use crate::domain::frozen::TreeKind;
use crate::domain::id::{DecisionId, GateId, JobId};
use crate::domain::job::{Cause, JobState};
use crate::domain::packet::{Context, Previous, ReviewFindings};
use crate::domain::session::{GateEvent, GateState};
use crate::domain::time::Moment;
use crate::domain::verdict::{Finding, Verdict};
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::gate::{Decided, Gate};
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection, Writing};
use crate::verbs::Ctx;
use crate::verbs::flow::{finish, gate as flow, offer, panel, reopen, tell};
use crate::verbs::run::find;
use crate::verbs::run::marker::Onward;

/// Longest title that a note gives its finding, in letters.
const TITLE: usize = 100;

/// Why the reopening of a job says it happened.
const WHY: &str = "a person sent it back";

/// What `gate revise` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReviseRequest {
    /// The run, when the gate is named by its job.
    pub run: Option<String>,
    /// g3, the job that waits, or a review whose revisions are spent.
    pub gate: String,
    /// The job to send back, when several are behind the gate.
    pub job: Option<String>,
    /// What is to be done otherwise.
    pub note: String,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReviseReport {
    /// The run's name.
    pub run: String,
    /// The gate; none when a review without revisions was named.
    pub gate: Option<GateId>,
    /// The job that goes on.
    pub job: String,
    /// Its attempt that is told.
    pub attempt: u32,
    /// Where the note is kept.
    pub decision: DecisionId,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Where a person stands: before a gate, or before a review that can't send back any more.
struct Point {
    run: Run,
    job: Job,
    gate: Option<Gate>,
}

/// Sends the work behind a gate back.
pub fn revise(ctx: &Ctx, request: &ReviseRequest) -> Result<ReviseReport> {
    let how = ctx.person()?;
    if request.note.trim().is_empty() {
        return Err(Error::new(Code::Usage, "--note is empty: it is what the author is told"));
    }
    let now = ctx.clock.moment();
    let (id, mut report) = ctx.write("gate revise", |tx| {
        let point = point(tx, request, &now)?;
        find::must_be_live(&point.run)?;
        let target = target(tx, &point, request.job.as_deref())?;
        close(tx, &point, request, how)?;
        let decision = record(tx, &target, request, how)?;
        let body = json!({"gate": point.gate.as_ref().map(|gate| gate.id), "sent_back": target.name,
            "decision": decision, "attempt": target.attempt});
        tell(tx, EventType::GateRevised, &point.job, &body)?;
        let attempt = reopen::reopen(tx, target.id, WHY, context(tx, &point, &target, request)?)?;
        finish::revive(tx, point.run.id, &format!("{} was sent back", target.name))?;
        let gate = point.gate.map(|gate| gate.id);
        let onward = Onward::default();
        Ok((point.run.id, ReviseReport { run: point.run.name, gate, job: target.name, attempt, decision, onward }))
    })?;
    report.onward = Onward::look(ctx, id)?;
    Ok(report)
}

fn point(tx: &Writing<'_>, request: &ReviseRequest, now: &Moment) -> Result<Point> {
    if let Some(gate) = by_id(tx, &request.gate)? {
        let (run, job) = (store::run::get(tx, gate.run)?, store::job::get(tx, gate.job)?);
        return Ok(Point { run, job, gate: Some(gate) });
    }
    let fits = |job: &Job| flow::is_due(job) || is_spent(job);
    let (run, job) = find::job_for_writing(tx, request.run.as_deref(), &request.gate, fits)?;
    if is_spent(&job) {
        return Ok(Point { run, job, gate: None });
    }
    let gate = Some(of_job(tx, &run, &job, now)?);
    Ok(Point { run, job, gate })
}

/// A review that still wants a revision and may not send its subject back any more.
fn is_spent(job: &Job) -> bool {
    job.state == JobState::Failed && !job.settled && job.reason.as_deref() == Some(Cause::Revisions.word())
}

/// The gate is decided by this.
fn close(tx: &Writing<'_>, point: &Point, request: &ReviseRequest, how: &str) -> Result<()> {
    let Some(gate) = &point.gate else { return Ok(()) };
    if gate.state != GateState::Pending {
        return Err(decided_before(gate, &point.job));
    }
    if !flow::is_due(&point.job) {
        return Err(no_gate(&point.job));
    }
    super::must_not_land(tx, &point.job)?;
    let state = gate.state.next(GateEvent::Revise)?;
    store::gate::decide(tx, gate.id, &Decided { state, how, note: Some(&request.note) })?;
    Ok(())
}

fn record(tx: &Writing<'_>, target: &Job, request: &ReviseRequest, how: &str) -> Result<DecisionId> {
    let new = NewDecision {
        run: Some(target.run),
        job: Some(target.id),
        kind: "revise",
        body: &request.note,
        reason: &request.note,
        how,
        ..NewDecision::default()
    };
    Ok(store::decision::insert(tx, &new)?)
}

/// What the next attempt is told: what its reviews found, and the person's note as one finding more.
fn context(tx: &Writing<'_>, point: &Point, target: &Job, request: &ReviseRequest) -> Result<Context> {
    let note = request.note.trim();
    let title: String = note.lines().next().unwrap_or(note).chars().take(TITLE).collect();
    let finding = Finding { title, detail: note.to_owned(), severity: None, path: None, line: None };
    let by = match &point.gate {
        Some(gate) => format!("a person at gate {}", gate.id),
        None => "a person".to_owned(),
    };
    let mut findings = panel::findings(tx, target)?;
    findings.push(ReviewFindings { review: by, verdict: Verdict::NeedsRevision, findings: vec![finding] });
    let previous =
        Previous { attempt: target.attempt, outcome: "revised".to_owned(), detail: format!("{WHY}: {note}") };
    Ok(Context { findings, previous: Some(previous), note: None, ..offer::carried(tx, target)? })
}

/// The job whose work is sent back.
fn target(read: &Connection, point: &Point, named: Option<&str>) -> Result<Job> {
    let above = store::job::upstream(read, point.job.id)?;
    if let Some(name) = named {
        let job = find::job(read, &point.run, name)?;
        if !above.contains(&job.id) || job.spec.role.is_none() {
            let message = format!("{} is no work behind {}", job.name, point.job.name);
            return Err(Error::new(Code::Usage, message));
        }
        return Ok(job);
    }
    if let Some(subject) = point.job.reviews {
        return Ok(store::job::get(read, subject)?);
    }
    let near = near(read, point.job.id)?;
    let authors: Vec<Job> = above.iter().map(|id| store::job::get(read, *id)).collect::<std::result::Result<_, _>>()?;
    let authors: Vec<Job> = authors.into_iter().filter(|job| job.spec.tree == TreeKind::Own).collect();
    let nearest: Vec<Job> = authors.iter().filter(|job| near.iter().any(|near| near.id == job.id)).cloned().collect();
    let candidates = [authors, nearest, near];
    if let Some([only]) = candidates.iter().map(Vec::as_slice).find(|jobs| jobs.len() == 1) {
        return Ok(only.clone());
    }
    Err(several(point, &candidates))
}

/// The work that a job directly follows: what it needs, and what the reviews that it needs have judged.
fn near(read: &Connection, job: JobId) -> Result<Vec<Job>> {
    let mut found: Vec<Job> = Vec::new();
    let mut open = store::job::needs(read, job)?;
    while let Some(id) = open.pop() {
        let needed = store::job::get(read, id)?;
        match (needed.reviews, needed.spec.role.is_some()) {
            (Some(subject), _) => open.push(subject),
            (None, true) if !found.iter().any(|before| before.id == id) => found.push(needed),
            (None, true) => {}
            (None, false) => open.extend(store::job::needs(read, id)?),
        }
    }
    Ok(found)
}

fn several(point: &Point, candidates: &[Vec<Job>; 3]) -> Error {
    let jobs = candidates.iter().find(|jobs| !jobs.is_empty());
    let Some(jobs) = jobs else {
        return Error::new(Code::NotFound, format!("nobody's work is behind {}", point.job.name));
    };
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let message = format!("several jobs are behind {}: {}", point.job.name, names.join(", "));
    jobs.iter().take(3).fold(Error::new(Code::Ambiguous, message).hint("name one with --job"), |error, job| {
        let gate = point.gate.as_ref().map_or_else(|| point.job.name.clone(), |gate| gate.id.to_string());
        let argv = ["striatum", "gate", "revise", &gate, "--job", &job.name, "--note", "WHY"];
        error.next(Next::new("person", format!("send {} back", job.name), &argv))
    })
}
