//! Landing: what a person approved goes onto the branch that the workflow names, in that person's verb.
//!
//! Look, prove, commit, intend, move, outcome. Until the intent nothing is changed; from there on a cut is taken up by
//! the next approval, `run land`, or look of a driver. It does not know how a person was recognised.

pub mod apply;
pub mod plan;
pub mod prove;
pub mod words;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::id::{GateId, JobId, RunId};
use crate::domain::session::{GateState, LandingKind, LandingState};
use crate::error::{Code, Error, Result};
use crate::os::git::Git;
use crate::os::lock::Lock;
use crate::store;
use crate::store::gate::Gate;
use crate::store::job::Job;
use crate::store::landing::{Landing, NewLanding};
use crate::store::run::Run;
use crate::verbs::flow::gate::{self as flow, Decision, Said};
use crate::verbs::flow::{finish, tell};
use crate::verbs::settle::evidence;
use crate::verbs::{Ctx, tree};
use plan::{Plan, Way};

/// How long one landing waits for another of the same repository, in milliseconds.
const LANDING_WAIT_MS: u64 = 10 * 60_000;

/// What a landing came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Landed {
    /// How.
    pub kind: LandingKind,
    /// The target branch; none when the run ends at its own.
    pub into: Option<String>,
    /// The run's own branch.
    pub branch: String,
    /// What the target is at; none when it was not moved.
    pub commit: Option<String>,
    /// Where the target was.
    pub before: Option<String>,
    /// Folders that have the target checked out, and show it.
    pub followed: Vec<String>,
    /// It had been done before.
    pub already: bool,
}

/// What is to be landed, and who says so.
pub struct Asked<'a> {
    /// The gate that is approved with it.
    pub gate: GateId,
    /// How it is known that a person approves.
    pub how: &'a str,
    /// The person's words.
    pub note: Option<&'a str>,
    /// Another branch than the job's.
    pub into: Option<&'a str>,
}

/// Everything that a landing is about.
pub struct Subject {
    /// The run.
    pub run: Run,
    /// The land job.
    pub job: Job,
    /// Its gate.
    pub gate: Gate,
}

impl Subject {
    fn load(ctx: &Ctx, gate: GateId) -> Result<Subject> {
        ctx.read(|read| {
            let gate = store::gate::get(read, gate)?
                .ok_or_else(|| Error::new(Code::NotFound, format!("there is no gate {gate}")))?;
            Ok(Subject { run: store::run::get(read, gate.run)?, job: store::job::get(read, gate.job)?, gate })
        })
    }
}

/// Lands a run's change and approves its gate; what can't be leaves the gate as it is and says what to do.
pub fn land(ctx: &Ctx, asked: &Asked<'_>) -> Result<Landed> {
    let _only = only_one(ctx)?.ok_or_else(|| {
        Error::new(Code::StillHeld, "another landing has been at work in this repository for ten minutes")
    })?;
    let mut subject = Subject::load(ctx, asked.gate)?;
    if let Some(landing) = ctx.read(|read| Ok(store::landing::intended(read, subject.job.id)?))? {
        if let Some(landed) = apply::apply(ctx, &subject, &landing, true)? {
            return Ok(landed);
        }
        subject = Subject::load(ctx, asked.gate)?;
    }
    if subject.gate.state == GateState::Approved {
        return again(ctx, &subject);
    }
    if subject.gate.state != GateState::Pending || !flow::is_due(&subject.job) {
        let message = format!("gate {} before {} is {}", asked.gate, subject.job.name, subject.gate.state);
        return Err(Error::new(Code::InvalidTransition, message));
    }
    match try_it(ctx, &subject, asked) {
        Err(error) if stands(error.code) => {
            remember(ctx, &subject, asked, &error)?;
            Err(error)
        }
        other => other,
    }
}

/// Refusals that somebody has to do something about: until then the landing can't be.
const fn stands(code: Code) -> bool {
    matches!(code, Code::LandConflict | Code::VerifyFailed | Code::NotRun)
}

/// One landing at a time in a store.
fn only_one(ctx: &Ctx) -> Result<Option<Lock>> {
    crate::os::files::create_private_dirs(ctx.layout().root(), &ctx.layout().locks())?;
    Ok(Lock::exclusive_within(&ctx.layout().locks().join("land.lock"), LANDING_WAIT_MS)?)
}

/// What the gate's approval had done.
fn again(ctx: &Ctx, subject: &Subject) -> Result<Landed> {
    let landing = ctx.read(|read| Ok(store::landing::newest(read, subject.job.id)?))?;
    let landing = landing.ok_or_else(|| Error::new(Code::Bug, "a land gate was approved without a landing"))?;
    Ok(Landed { already: true, ..landed(subject, &landing, Vec::new()) })
}

/// What a landing that is done came to, if the job has one.
pub fn of_job(ctx: &Ctx, run: &Run, job: &Job) -> Result<Option<Landed>> {
    let landing = ctx.read(|read| Ok(store::landing::newest(read, job.id)?))?;
    let done = landing.filter(|landing| landing.state == LandingState::Done);
    Ok(done.map(|landing| Landed { already: true, ..told(run, &landing, Vec::new()) }))
}

fn landed(subject: &Subject, landing: &Landing, followed: Vec<String>) -> Landed {
    told(&subject.run, landing, followed)
}

fn told(run: &Run, landing: &Landing, followed: Vec<String>) -> Landed {
    Landed {
        kind: landing.kind,
        into: landing.target.as_deref().map(|name| name.trim_start_matches("refs/heads/").to_owned()),
        branch: tree::branch(run).trim_start_matches("refs/heads/").to_owned(),
        commit: landing.after.clone(),
        before: landing.before.clone(),
        followed,
        already: false,
    }
}

fn try_it(ctx: &Ctx, subject: &Subject, asked: &Asked<'_>) -> Result<Landed> {
    finish_must_be_possible(subject)?;
    let git = tree::repository(ctx)?;
    let plan = match plan::plan(ctx, &git, (&subject.run, &subject.job), asked.into)? {
        Way::Done { kind, target, tip, before } => {
            let new = NewLanding {
                state: LandingState::Intended,
                kind,
                target: target.as_deref(),
                before: before.as_deref(),
                after: None,
                reason: None,
                ..new(subject, asked, &tip)
            };
            let landing = intend(ctx, subject, &new)?;
            return apply::done(ctx, subject, &landing, Vec::new());
        }
        Way::Move(plan) => plan,
    };
    for checkout in git.checkouts(&plan.target)? {
        apply::must_be_clean(&checkout, &plan.before, &plan.tree, subject)?;
    }
    prove::prove(ctx, subject, &plan)?;
    let after = commit(ctx, &git, subject, &plan)?;
    let new = NewLanding {
        kind: plan.kind,
        target: Some(&plan.target),
        before: Some(&plan.before),
        after: Some(&after),
        ..new(subject, asked, &plan.tip)
    };
    let landing = intend(ctx, subject, &new)?;
    crate::os::crash::point("land.intended");
    apply::apply(ctx, subject, &landing, false)?.ok_or_else(|| apply::moved(subject, &plan.target))
}

fn finish_must_be_possible(subject: &Subject) -> Result<()> {
    crate::verbs::run::find::must_be_live(&subject.run)
}

fn new<'a>(subject: &Subject, asked: &Asked<'a>, tip: &'a str) -> NewLanding<'a> {
    NewLanding {
        run: subject.run.id,
        job: subject.job.id,
        gate: subject.gate.id,
        state: LandingState::Intended,
        kind: LandingKind::Branch,
        target: None,
        tip,
        before: None,
        after: None,
        how: asked.how,
        note: asked.note,
        reason: None,
    }
}

/// The commit that the target is moved to.
fn commit(ctx: &Ctx, git: &Git, subject: &Subject, plan: &Plan) -> Result<String> {
    let message = || words::message(ctx, subject);
    let made = match plan.kind {
        LandingKind::Ff => return Ok(plan.tip.clone()),
        LandingKind::Merge => git.commit_as_user(&plan.tree, &[&plan.before, &plan.tip], &message()?),
        _ => git.commit_as_user(&plan.tree, &[&plan.before], &message()?),
    };
    made.map_err(|error| {
        Error::from(error).hint("the commit bears your name: git config user.name and user.email, and your signing key")
    })
}

/// Records the intent, if the gate still waits for this.
fn intend(ctx: &Ctx, subject: &Subject, new: &NewLanding<'_>) -> Result<Landing> {
    ctx.write("land", |tx| {
        let (run, job) = (store::run::get(tx, subject.run.id)?, store::job::get(tx, subject.job.id)?);
        let gate = store::gate::get(tx, subject.gate.id)?;
        crate::verbs::run::find::must_be_live(&run)?;
        if gate.is_none_or(|gate| gate.state != GateState::Pending) || !flow::is_due(&job) {
            let message = format!("gate {} was decided meanwhile", subject.gate.id);
            return Err(Error::new(Code::InvalidTransition, message));
        }
        store::landing::forget_refusals(tx, job.id)?;
        store::landing::insert(tx, new)?;
        let body = json!({"gate": subject.gate.id, "kind": new.kind, "target": new.target, "tip": new.tip,
            "from": new.before, "to": new.after});
        tell(tx, EventType::LandIntended, &job, &body)?;
        store::landing::intended(tx, job.id)?.ok_or_else(|| Error::new(Code::Bug, "an intent vanished"))
    })
}

/// Keeps that the landing can't be as things are; the gate waits on.
fn remember(ctx: &Ctx, subject: &Subject, asked: &Asked<'_>, error: &Error) -> Result<()> {
    ctx.write("land", |tx| {
        store::landing::forget_refusals(tx, subject.job.id)?;
        let tip = subject.run.tip.as_deref().or(subject.run.base.as_deref()).unwrap_or_default();
        let refused = NewLanding {
            state: LandingState::Refused,
            target: subject.job.spec.into.as_deref(),
            reason: Some(&error.message),
            ..new(subject, asked, tip)
        };
        store::landing::insert(tx, &refused)?;
        Ok(())
    })
}

/// Takes up what a landing that was cut off left in a run; the lines to tell. Whoever is at it now is not disturbed.
pub fn take_up(ctx: &Ctx, run: RunId) -> Result<Vec<String>> {
    let unfinished: Vec<JobId> = ctx.read(|read| Ok(store::landing::unfinished(read, run)?))?;
    if unfinished.is_empty() {
        return Ok(Vec::new());
    }
    let Some(_only) = Lock::try_exclusive(&ctx.layout().locks().join("land.lock"))? else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    for job in unfinished {
        let Some(landing) = ctx.read(|read| Ok(store::landing::intended(read, job)?))? else { continue };
        let subject = Subject::load(ctx, landing.gate)?;
        let name = &subject.job.name;
        match apply::apply(ctx, &subject, &landing, true) {
            Ok(Some(_)) => lines.push(format!("finished landing {name}: it was cut off")),
            Ok(None) => lines.push(format!("gave up landing {name}: its target moved meanwhile")),
            Err(error) => lines.push(format!("could not finish landing {name}: {error}")),
        }
    }
    Ok(lines)
}

/// The outcome, and what follows from it.
fn conclude(ctx: &Ctx, subject: &Subject, landing: &Landing, followed: &[String]) -> Result<()> {
    ctx.write("land", |tx| {
        let job = store::job::get(tx, subject.job.id)?;
        store::landing::set_state(tx, landing.id, LandingState::Done)?;
        let body = json!({"gate": landing.gate, "kind": landing.kind, "target": landing.target, "tip": landing.tip,
            "from": landing.before, "to": landing.after, "followed": followed.len()});
        tell(tx, EventType::LandDone, &job, &body)?;
        let gate = store::gate::get(tx, landing.gate)?;
        // A run that was canceled meanwhile stays so; what landed, landed.
        if let Some(gate) = gate.filter(|gate| gate.state == GateState::Pending && flow::is_due(&job)) {
            let said = Said { decision: Decision::Approve, how: &landing.how, note: landing.note.as_deref() };
            flow::decide(tx, &store::run::get(tx, landing.run)?, &gate, &said)?;
            finish::revive(tx, landing.run, "its change has landed")?;
        }
        Ok(())
    })?;
    crate::os::crash::point("land.done");
    evidence::complete(ctx, landing.run)?;
    tree::release::at_end(ctx, landing.run)
}
