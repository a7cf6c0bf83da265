//! Proposals of sealed answers: kept with the seal, settled once by a driver, made a job in one transaction.
//!
//! What becomes of one is decided in `domain::proposal`. This file does not know who asks.

use serde_json::json;

use super::offer::{self, GATE};
use super::{breaker, tell};
use crate::domain::contract::Proposal;
use crate::domain::event::EventType;
use crate::domain::frozen::{JobSpec, JobType, Origin, Snapshot};
use crate::domain::id::{DecisionId, JobId, ProposalId};
use crate::domain::job::JobState;
use crate::domain::proposal::{Doubt, Earlier, Fate, Flaw, ProposalState, Scene, claims, draft, likeness_key, weigh};
use crate::domain::session::GateState;
use crate::domain::workflow::hash;
use crate::error::Result;
use crate::store::frozen::Generation;
use crate::store::gate;
use crate::store::job::{Job, Move, NewJob};
use crate::store::proposal::{Decided, NewProposal, ProposalRow};
use crate::store::run::Run;
use crate::store::{self, Writing};

/// Keeps the proposals of an answer that is sealed now.
pub fn keep(tx: &Writing<'_>, run: &Run, job: &Job, proposals: &[Proposal]) -> Result<()> {
    if proposals.is_empty() {
        return Ok(());
    }
    let depth = 1 + depth_of(tx, run, job)?;
    for body in proposals {
        let likeness = likeness_key(body, &job.name);
        let new = NewProposal { run: run.id, job: job.id, attempt: job.attempt, depth, likeness: &likeness, body };
        store::proposal::insert(tx, &new)?;
    }
    Ok(())
}

/// 0 for a job of the workflow.
fn depth_of(tx: &Writing<'_>, run: &Run, job: &Job) -> Result<u32> {
    match job.spec.origin {
        Origin::Planned => Ok(0),
        Origin::Proposed => Ok(store::proposal::made(tx, run.id, job.id)?.map_or(u32::MAX - 1, |row| row.depth)),
    }
}

/// A driver looks at a proposal, the first time that one does: the line that tells what became of it.
pub fn settle(tx: &Writing<'_>, id: ProposalId) -> Result<Option<String>> {
    let Some(row) = store::proposal::get(tx, id)?.filter(|row| row.state == ProposalState::Pending) else {
        return Ok(None);
    };
    let case = Case::load(tx, row)?;
    let (row, name) = (&case.row, &case.proposer.name);
    Ok(Some(match case.fate() {
        Fate::Admit => {
            let made = admit(tx, &case, None)?;
            format!("admitted {id} of {name} as {}; it waits for a person", made.name)
        }
        Fate::Surface(doubt) => {
            surface(tx, &case, doubt)?;
            format!("surfaced {id} of {name}: {}; striatum run admit {id}", doubt.reason())
        }
        Fate::Refuse(flaw) => {
            refuse(tx, &case.proposer, row, flaw)?;
            format!("refused {id} of {name}: {}", flaw.reason())
        }
    }))
}

/// A proposal with everything that it is looked at against.
pub struct Case {
    /// The proposal.
    pub row: ProposalRow,
    /// Its run.
    pub run: Run,
    /// Who proposes it.
    pub proposer: Job,
    snapshot: Snapshot,
    landings: Vec<Job>,
    earlier: Vec<Earlier>,
}

impl Case {
    /// Reads it.
    pub fn load(tx: &Writing<'_>, row: ProposalRow) -> Result<Case> {
        let run = store::run::get(tx, row.run)?;
        let proposer = store::job::get(tx, row.job)?;
        let (_, snapshot) = store::frozen::get(tx, run.id, run.generation)?;
        let mut landings = Vec::new();
        for spec in snapshot.jobs.iter().filter(|spec| spec.kind == JobType::Land) {
            let job = store::job::by_name(tx, run.id, &spec.id)?;
            landings.extend(job.filter(|job| waits(tx, job)));
        }
        let earlier = store::proposal::earlier(tx, run.id, row.id, &likeness_key(&row.body, &proposer.name))?;
        Ok(Case { row, run, proposer, snapshot, landings, earlier })
    }

    /// What the rules say.
    pub fn fate(&self) -> Fate {
        self.look(|scene| weigh(claims(&self.row.body, scene)))
    }

    /// The job that it would be.
    pub fn draft(&self) -> JobSpec {
        self.look(|scene| draft(&self.row.body, scene, self.row.attempt))
    }

    fn look<T>(&self, look: impl FnOnce(&Scene<'_>) -> T) -> T {
        let landings: Vec<String> = self.landings.iter().map(|job| job.name.clone()).collect();
        look(&Scene {
            run: &self.snapshot.run,
            jobs: &self.snapshot.jobs,
            proposer: &self.proposer.spec,
            landings: &landings,
            depth: self.row.depth,
            has_base: self.run.base.is_some(),
            earlier: &self.earlier,
        })
    }
}

/// A landing that nobody has decided or begun.
fn waits(tx: &Writing<'_>, land: &Job) -> bool {
    let is_open = land.state == JobState::Waiting && land.reason.as_deref().is_none_or(|reason| reason == GATE);
    is_open && store::landing::intended(tx, land.id).is_ok_and(|landing| landing.is_none())
}

/// Makes it a job of the run: a new generation of the snapshot, its edges, and the landings that now wait for it.
/// A person's decision is told with it.
pub fn admit(tx: &Writing<'_>, case: &Case, decision: Option<DecisionId>) -> Result<Job> {
    let spec = case.draft();
    let mut snapshot = case.snapshot.clone();
    let landings: Vec<&Job> = case.landings.iter().filter(|land| !is_needed(&snapshot, &spec, &land.name)).collect();
    for land in snapshot.jobs.iter_mut().filter(|job| landings.iter().any(|land| land.name == job.id)) {
        land.needs.push(spec.id.clone());
    }
    snapshot.jobs.push(spec.clone());
    let generation = amend(tx, case, &snapshot, &spec)?;
    let made = insert(tx, case, &spec, snapshot.jobs.len() - 1)?;
    for land in landings {
        hold_back(tx, land, made, &snapshot)?;
    }
    let decided = Decided { state: ProposalState::Admitted, why: None, made: Some(made) };
    store::proposal::decide(tx, case.row.id, &decided)?;
    let body = json!({"proposal": case.row.id, "job": spec.id, "attempt": case.row.attempt, "depth": case.row.depth,
        "type": spec.kind, "role": spec.role, "lane": spec.lane, "needs": spec.needs, "generation": generation,
        "decision": decision});
    tell(tx, EventType::NextAdmitted, &case.proposer, &body)?;
    let job = store::job::get(tx, made)?;
    if job.unmet == 0 {
        offer::release(tx, &case.run, made)?;
    }
    Ok(store::job::get(tx, made)?)
}

/// Whether the new job comes after a landing already, which then can't wait for it.
fn is_needed(snapshot: &Snapshot, spec: &JobSpec, land: &str) -> bool {
    let mut open: Vec<&str> = spec.needs.iter().map(String::as_str).collect();
    let mut seen = std::collections::BTreeSet::new();
    while let Some(name) = open.pop() {
        if name == land {
            return true;
        }
        if seen.insert(name) {
            let found = snapshot.jobs.iter().find(|job| job.id == name);
            open.extend(found.into_iter().flat_map(|job| job.needs.iter().map(String::as_str)));
        }
    }
    false
}

fn amend(tx: &Writing<'_>, case: &Case, snapshot: &Snapshot, spec: &JobSpec) -> Result<i64> {
    let (run, number) = (&case.run, case.run.generation + 1);
    let (hash, reason) = (hash(snapshot), format!("{} of {} is admitted", case.row.id, case.proposer.name));
    store::frozen::insert(tx, run.id, &Generation { number, hash: &hash, body: snapshot, reason: &reason })?;
    store::run::amend(tx, run.id, number, &snapshot.run, run.trust.as_deref())?;
    let body = json!({"generation": number, "snapshot": hash, "job": spec.id, "changed": [], "why": reason});
    tell(tx, EventType::RunAmended, &case.proposer, &body)?;
    Ok(number)
}

fn insert(tx: &Writing<'_>, case: &Case, spec: &JobSpec, position: usize) -> Result<JobId> {
    let made = store::job::insert(tx, &NewJob { run: case.run.id, position, spec, reviews: None })?;
    for need in &spec.needs {
        if let Some(needed) = store::job::by_name(tx, case.run.id, need)? {
            store::job::insert_need(tx, made, needed.id)?;
        }
    }
    store::job::recount(tx, made)?;
    Ok(made)
}

/// A landing waits for the new job; a gate that was open before it opens anew behind it.
fn hold_back(tx: &Writing<'_>, land: &Job, made: JobId, snapshot: &Snapshot) -> Result<()> {
    if let Some(spec) = snapshot.jobs.iter().find(|spec| spec.id == land.name) {
        store::job::respec(tx, land.id, spec)?;
    }
    store::job::insert_need(tx, land.id, made)?;
    store::job::recount(tx, land.id)?;
    let to = Move { state: JobState::Waiting, phase: None, reason: None, settled: false };
    store::job::set_state(tx, land.id, &to)?;
    if let Some(open) = gate::pending_of_job(tx, land.id)? {
        let decided = gate::Decided { state: GateState::Expired, how: "proposal", note: None };
        gate::decide(tx, open.id, &decided)?;
        tell(tx, EventType::GateExpired, land, &json!({"gate": open.id, "why": "proposal"}))?;
    }
    Ok(())
}

fn surface(tx: &Writing<'_>, case: &Case, doubt: Doubt) -> Result<()> {
    let (row, job) = (&case.row, &case.proposer);
    let decided = Decided { state: ProposalState::Surfaced, why: Some(doubt.word()), made: None };
    store::proposal::decide(tx, row.id, &decided)?;
    if doubt == Doubt::NextDepth {
        let limit = case.run.spec.budget.next_depth;
        breaker::trip_job(tx, job, doubt.word(), (row.depth.to_string(), limit.to_string()))?;
    }
    let body = json!({"proposal": row.id, "why": doubt, "attempt": row.attempt, "depth": row.depth,
        "confidence": row.body.confidence});
    tell(tx, EventType::NextSurfaced, job, &body)
}

fn refuse(tx: &Writing<'_>, proposer: &Job, row: &ProposalRow, flaw: Flaw) -> Result<()> {
    let decided = Decided { state: ProposalState::Refused, why: Some(flaw.word()), made: None };
    store::proposal::decide(tx, row.id, &decided)?;
    tell(tx, EventType::NextRefused, proposer, &json!({"proposal": row.id, "why": flaw, "attempt": row.attempt}))
}

/// What a job that is sent back proposed, and nobody admitted, is void with its answer.
pub fn void(tx: &Writing<'_>, job: &Job) -> Result<()> {
    for row in store::proposal::of_job(tx, job.run, job.id, u32::MAX)? {
        if matches!(row.state, ProposalState::Pending | ProposalState::Surfaced) {
            refuse(tx, job, &row, Flaw::Void)?;
        }
    }
    Ok(())
}
