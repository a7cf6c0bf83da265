//! `run admit / dismiss`: a person's word on a proposal that was only shown; and proposals as every view shows them.
//!
//! An admitted one still waits at its gate: what it may do is shown there, and only an approval lets it go.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::flow::gate as gates;
use super::flow::proposal::{self as flow, Case};
use super::flow::tell;
use super::read::one_line;
use super::run::find;
use super::run::marker::Onward;
use crate::domain::event::EventType;
use crate::domain::id::{DecisionId, GateId, ProposalId};
use crate::domain::proposal::{Doubt, Fate, ProposalState};
use crate::error::{Code, Error, Next, Result};
use crate::store::decision::NewDecision;
use crate::store::job::Job;
use crate::store::proposal::{Decided, ProposalRow};
use crate::store::{self, Connection, Writing};
use crate::verbs::Ctx;

/// Characters shown of an agent's words.
const WORDS: usize = 400;

/// What `run admit` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdmitRequest {
    /// The proposal.
    pub proposal: ProposalId,
}

/// What `run admit` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AdmitReport {
    /// The run's name.
    pub run: String,
    /// The proposal.
    pub proposal: ProposalId,
    /// The job that it is now.
    pub job: String,
    /// The gate that it waits at; none while its needs are not settled.
    pub gate: Option<GateId>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Makes a surfaced proposal a job, which waits at its gate.
pub fn admit(ctx: &Ctx, request: &AdmitRequest) -> Result<AdmitReport> {
    let how = ctx.person()?;
    let now = ctx.clock.moment();
    ctx.write("run admit", |tx| {
        let case = Case::load(tx, open(tx, request.proposal)?)?;
        find::must_be_live(&case.run)?;
        possible(&case)?;
        let decision = decision(tx, &case, ("admit", how), "")?;
        let made = flow::admit(tx, &case, Some(decision))?;
        super::flow::finish::revive(tx, case.run.id, &format!("{} was admitted", case.row.id))?;
        let gate = gates::open(tx, &store::run::get(tx, case.run.id)?, &made, &now)?;
        let next = gate.map(|gate| {
            let gate = gate.to_string();
            vec![
                Next::new("person", "see what it would do", &["striatum", "gate", "show", &gate]),
                Next::new("person", "let it go", &["striatum", "gate", "approve", &gate]),
            ]
        });
        let next = next.unwrap_or_else(|| {
            let argv = ["striatum", "run", "explain", &made.name, "--run-id", &case.run.name];
            vec![Next::new("anyone", "see what it waits for", &argv)]
        });
        Ok(AdmitReport { run: case.run.name.clone(), proposal: case.row.id, job: made.name, gate, next })
    })
}

/// A proposal that a person may decide.
fn open(tx: &Writing<'_>, id: ProposalId) -> Result<ProposalRow> {
    let row = store::proposal::get(tx, id)?
        .ok_or_else(|| Error::new(Code::NotFound, format!("there is no proposal {id}")))?;
    match row.state {
        ProposalState::Surfaced => Ok(row),
        ProposalState::Pending => {
            let run = store::run::get(tx, row.run)?.name;
            let why = "let a driver look at it first";
            Err(Error::new(Code::InvalidTransition, format!("no driver has looked at {id} yet")).next(Next::new(
                "operator",
                why,
                &["striatum", "run", "drive", "--run-id", &run],
            )))
        }
        state => Err(Error::new(Code::InvalidTransition, format!("{id} is {state} already"))),
    }
}

/// A person may overrule a doubt, but neither what can't be nor a limit, which they raise in so many words.
fn possible(case: &Case) -> Result<()> {
    match case.fate() {
        Fate::Surface(Doubt::NextDepth) => {
            let raised = format!("budget.next_depth={}", case.row.depth);
            let argv = ["striatum", "run", "amend", "--run-id", &case.run.name, "--set", &raised, "--reason", "WHY"];
            Err(Error::new(Code::InvalidTransition, format!("{}: {}", case.row.id, Doubt::NextDepth.reason()))
                .next(Next::new("operator", "raise the limit", &argv)))
        }
        Fate::Admit | Fate::Surface(_) => Ok(()),
        Fate::Refuse(flaw) => {
            Err(Error::new(Code::InvalidTransition, format!("{} can't be admitted: {}", case.row.id, flaw.reason())))
        }
    }
}

fn decision(tx: &Writing<'_>, case: &Case, (kind, how): (&str, &str), why: &str) -> Result<DecisionId> {
    let new = NewDecision {
        run: Some(case.run.id),
        job: Some(case.proposer.id),
        kind,
        body: &case.row.id.to_string(),
        reason: why,
        how,
        ..NewDecision::default()
    };
    Ok(store::decision::insert(tx, &new)?)
}

/// What `run dismiss` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DismissRequest {
    /// The proposal.
    pub proposal: ProposalId,
    /// Why.
    pub reason: Option<String>,
}

/// What `run dismiss` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DismissReport {
    /// The run's name.
    pub run: String,
    /// The proposal.
    pub proposal: ProposalId,
    /// Where the decision is kept.
    pub decision: DecisionId,
    /// Who takes the run on.
    #[serde(flatten)]
    pub onward: Onward,
}

/// Takes a surfaced proposal off the inbox; the same one is refused from then on.
pub fn dismiss(ctx: &Ctx, request: &DismissRequest) -> Result<DismissReport> {
    let how = ctx.person()?;
    let (id, run, decision) = ctx.write("run dismiss", |tx| {
        let case = Case::load(tx, open(tx, request.proposal)?)?;
        let why = request.reason.as_deref().unwrap_or_default();
        let decided = Decided { state: ProposalState::Dismissed, why: Some(why), made: None };
        store::proposal::decide(tx, case.row.id, &decided)?;
        let decision = decision(tx, &case, ("dismiss", how), why)?;
        let body = json!({"proposal": case.row.id, "why": "dismissed", "decision": decision});
        tell(tx, EventType::NextRefused, &case.proposer, &body)?;
        Ok((case.run.id, case.run.name, decision))
    })?;
    Ok(DismissReport { run, proposal: request.proposal, decision, onward: Onward::look(ctx, id)? })
}

/// A proposal, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProposalLine {
    /// p3.
    pub proposal: ProposalId,
    /// What became of it.
    pub state: ProposalState,
    /// Why, as a word or in a person's words.
    pub why: Option<String>,
    /// Who proposes it.
    pub by: String,
    /// In the answer of which try.
    pub attempt: u32,
    /// 1 from a job of the workflow.
    pub depth: u32,
    /// The type that was asked for.
    #[serde(rename = "type")]
    pub kind: String,
    /// What it would do, cut.
    pub objective: String,
    /// Why, in the agent's words, cut.
    pub reason: String,
    /// How sure the agent is.
    pub confidence: f64,
    /// The job that it is now.
    pub job: Option<String>,
}

/// What a job proposed, newest first.
pub fn of_job(read: &Connection, job: &Job, limit: u32) -> Result<Vec<ProposalLine>> {
    store::proposal::of_job(read, job.run, job.id, limit)?.into_iter().map(|row| line(read, row)).collect()
}

/// What a job was before it was admitted; none for a job of the workflow.
pub fn before(read: &Connection, job: &Job) -> Result<Option<ProposalLine>> {
    match job.spec.origin {
        crate::domain::frozen::Origin::Planned => Ok(None),
        crate::domain::frozen::Origin::Proposed => {
            store::proposal::made(read, job.run, job.id)?.map(|row| line(read, row)).transpose()
        }
    }
}

/// A proposal for people.
pub fn line(read: &Connection, row: ProposalRow) -> Result<ProposalLine> {
    let name = |id| store::job::name(read, id);
    Ok(ProposalLine {
        proposal: row.id,
        state: row.state,
        why: row.why,
        by: name(row.job)?,
        attempt: row.attempt,
        depth: row.depth,
        kind: one_line(&row.body.kind, WORDS),
        objective: one_line(&row.body.objective, WORDS),
        reason: one_line(&row.body.reason, WORDS),
        confidence: row.body.confidence,
        job: row.made.map(name).transpose()?,
    })
}
