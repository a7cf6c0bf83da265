//! Settling: the attempt's owner checks what an answer claims and seals it, or ends the attempt.
//!
//! changes -> artifacts -> verify -> commit, pin, integrate -> seal. Effects come first, each with its intent and outcome; the seal is one transaction.

pub mod artifacts;
pub mod changes;
pub mod conclusion;
pub mod cooling;
pub mod evidence;
pub mod integrate;
pub mod observation;
pub mod usage;
pub mod verify;

use serde::{Deserialize, Serialize};

use crate::domain::contract::{Answer, Status};
use crate::domain::job::{JobState, Outcome, Phase};
use crate::error::{Code, Error, Result};
use crate::store;
use crate::verbs::flow::attempt::{self, Ended, Lesson};
use crate::verbs::flow::seal::{self, Sealing};
use crate::verbs::resource::destroy;
use crate::verbs::work::answer::failure;
use crate::verbs::work::hold::Hold;
use crate::verbs::{Ctx, resource, tree};
use integrate::Integrated;

/// What settling came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SettleReport {
    /// Sealed, or an outcome word.
    pub outcome: Outcome,
    /// Whether the attempt is over.
    pub over: bool,
    /// Paths that were refused, with their words.
    pub violations: Vec<String>,
    /// The end of a failed verification's output.
    pub verify_tail: Option<String>,
    /// One line for people.
    pub message: String,
}

/// What checking an answer came to.
pub enum Checked {
    /// It can be sealed.
    Good(Work),
    /// It can't.
    Bad(Verdictless),
}

/// Why an answer can't be sealed.
pub struct Verdictless {
    /// How the attempt would end.
    pub outcome: Outcome,
    /// One line.
    pub detail: String,
    /// What the next packet should tell.
    pub lesson: Lesson,
}

/// What was checked and can be sealed.
pub struct Work {
    /// Published files.
    pub artifacts: Vec<store::artifact::Artifact>,
    /// What changed in the job's own tree; on the run's branch already.
    pub changed: bool,
}

/// Checks an answer, and integrates what it changed: changes -> artifacts -> verify -> commit, pin, integrate. Nothing
/// is sealed here. A repository in which that can't be done is for a person to mend.
pub fn check(ctx: &Ctx, hold: &Hold, answer: &Answer, runner: &mut dyn verify::Runner) -> Result<Checked> {
    match check_all(ctx, hold, answer, runner) {
        Err(error) if error.code == Code::Git => {
            let why = [std::slice::from_ref(&error.message), &error.causes[..]].concat().join(": ");
            Ok(bad(Outcome::Environment, why, Lesson::default()))
        }
        checked => checked,
    }
}

fn check_all(ctx: &Ctx, hold: &Hold, answer: &Answer, runner: &mut dyn verify::Runner) -> Result<Checked> {
    // Whoever settled before gave it back and died: nothing can be said about the answer any more.
    if resource::is_missing(ctx, hold)? {
        return Ok(bad(Outcome::Lost, "what its answer is checked with is gone", Lesson::default()));
    }
    let listed = match changes::look(ctx, hold)? {
        changes::Look::Nothing => None,
        changes::Look::Good(listed) => Some(listed),
        changes::Look::Refused(violations) => return Ok(out_of_scope(violations)),
        changes::Look::Obeyed(violations) => {
            tree::guard::leave_to_a_person(ctx, hold.job.id)?;
            let detail = format!("{}; look, put back what is not yours", violations.join("; "));
            return Ok(bad(Outcome::Environment, detail, Lesson { violations, verify_tail: None }));
        }
    };
    let artifacts = match artifacts::collect(ctx, hold)? {
        artifacts::Collected::All(artifacts) => artifacts,
        artifacts::Collected::Refused(violations) => return Ok(out_of_scope(violations)),
    };
    if listed.is_some() {
        let marked = tree::carry::left_unresolved(ctx, &hold.job)?;
        if !marked.is_empty() {
            let detail = format!("conflict marks are left in {}", marked.join(", "));
            let lesson = Lesson { violations: vec![detail.clone()], verify_tail: None };
            return Ok(bad(Outcome::Unsealed, detail, lesson));
        }
    }
    let is_there_already = listed.is_some() && integrate::adopt(ctx, hold)?;
    if let Some(listed) = &listed
        && !is_there_already
        && listed.changes.is_empty()
        && !hold.job.spec.writes.is_empty()
        && !hold.job.spec.allow_empty
    {
        let detail = "nothing was changed, and the job does not say allow_empty";
        return Ok(bad(Outcome::Unsealed, detail, Lesson::default()));
    }
    if let Some(refusal) = verified(ctx, hold, &artifacts, listed.as_ref(), runner)? {
        return Ok(refusal);
    }
    let Some(listed) = listed.filter(|listed| !listed.changes.is_empty()) else {
        return Ok(Checked::Good(Work { artifacts, changed: is_there_already }));
    };
    Ok(match integrate::integrate(ctx, hold, &listed, answer)? {
        Integrated::Done => Checked::Good(Work { artifacts, changed: true }),
        Integrated::Moved(why) => bad(Outcome::PlanDisagrees, why, Lesson::default()),
        Integrated::Conflict(paths) => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let detail = format!("others have changed the same places meanwhile: {}", paths.join(", "));
            bad(Outcome::Conflict, detail, Lesson::default())
        }
    })
}

fn bad(outcome: Outcome, detail: impl Into<String>, lesson: Lesson) -> Checked {
    Checked::Bad(Verdictless { outcome, detail: detail.into(), lesson })
}

fn out_of_scope(violations: Vec<String>) -> Checked {
    let detail = violations.join("; ");
    bad(Outcome::ScopeFailed, detail, Lesson { violations, verify_tail: None })
}

/// Runs the verification; what it refuses. It is void when what it looked at is not what would be sealed.
fn verified(
    ctx: &Ctx,
    hold: &Hold,
    artifacts: &[store::artifact::Artifact],
    listed: Option<&changes::Listed>,
    runner: &mut dyn verify::Runner,
) -> Result<Option<Checked>> {
    if hold.job.spec.verify.is_empty() {
        return Ok(None);
    }
    let place = artifacts::Place::of(ctx, hold)?;
    // What is verified calls git in the tree: an agent's `.git` there would have it obey settings of the agent's own.
    if let Some(tree) = ctx.read(|read| Ok(store::tree::active(read, hold.job.id)?))? {
        tree::restore(ctx, &tree::repository(ctx)?, &tree)?;
    }
    let refusal = match verify::run_all(ctx, hold, place.work(), runner)? {
        verify::Verified::Passed => None,
        verify::Verified::Failed { command, tail } => Some((format!("verification failed: {command}"), tail)),
        verify::Verified::NotRun { command, why } => Some((format!("verification not run: {command}: {why}"), why)),
        verify::Verified::Told(detail) => return Ok(Some(bad(Outcome::Interrupted, detail, Lesson::default()))),
    };
    if let Some((detail, tail)) = refusal {
        let lesson = Lesson { verify_tail: Some(tail), violations: Vec::new() };
        return Ok(Some(bad(Outcome::VerifyFailed, detail, lesson)));
    }
    let mut void = artifacts::changed(ctx, hold, artifacts)?;
    if let Some(listed) = listed {
        match changes::look(ctx, hold)? {
            changes::Look::Good(after) if after.tree == listed.tree => {}
            changes::Look::Refused(violations) | changes::Look::Obeyed(violations) => {
                void = violations.first().cloned()
            }
            changes::Look::Good(after) => void = Some(difference(ctx, listed, &after)?),
            changes::Look::Nothing => void = Some("the tree".to_owned()),
        }
    }
    Ok(void
        .map(|what| bad(Outcome::VerifyFailed, format!("verification is void: it changed {what}"), Lesson::default())))
}

/// A path that a verification changed.
fn difference(ctx: &Ctx, before: &changes::Listed, after: &changes::Listed) -> Result<String> {
    let differs = tree::repository(ctx)?.changes(&before.tree, &after.tree)?;
    Ok(differs.first().map_or_else(|| "the tree".to_owned(), |change| change.path.display().to_string()))
}

/// How an answer that is no work ends its attempt; none for DONE and NEEDS_NEXT.
pub fn without_work<'a>(answer: &'a Answer) -> Option<Ended<'a>> {
    if let Some(reason) = failure(answer) {
        return Some(Ended::plain(Outcome::Failed, reason));
    }
    let outcome = match answer.status {
        Status::Done | Status::NeedsNext => return None,
        Status::Blocked => Outcome::Blocked,
        Status::NeedsContext => Outcome::NeedsContext,
    };
    let question = answer.blocked_reason.as_ref();
    let detail = question.map_or_else(String::new, |asked| format!("{} (from {})", asked.awaiting, asked.who));
    Some(Ended { question, ..Ended::plain(outcome, detail) })
}

/// Settles for an unsupervised session, in the calling process.
pub fn settle_unsupervised(ctx: &Ctx, hold: &Hold) -> Result<SettleReport> {
    let attempt = ctx.read(|read| Ok(store::attempt::get(read, hold.job.id, hold.lease.attempt)?))?;
    let Some(answer) = attempt.answer else {
        return Err(Error::new(Code::Bug, "an answer vanished before it was settled"));
    };
    if let Some(ended) = without_work(&answer) {
        let report = over(&ended);
        ctx.write("work complete", |tx| attempt::end(tx, &hold.run, &hold.job, ended))?;
        destroy::release(ctx, hold)?;
        return Ok(report);
    }
    ctx.write("work complete", |tx| Ok(store::job::set_phase(tx, hold.job.id, Phase::Settling)?))?;
    match check(ctx, hold, &answer, &mut verify::Foreground)? {
        Checked::Good(work) => {
            seal_now(ctx, hold, &answer, &work)?;
            Ok(sealed())
        }
        Checked::Bad(bad) => {
            let report = refuse(ctx, hold, bad)?;
            if report.over {
                destroy::release(ctx, hold)?;
            }
            Ok(report)
        }
    }
}

/// Settle tries of an agent that lives on and may answer again.
pub const SETTLE_TRIES: u32 = 3;

/// An answer can't be sealed while its agent lives on: it may mend and answer again, three times in all.
pub fn refuse(ctx: &Ctx, hold: &Hold, bad: Verdictless) -> Result<SettleReport> {
    let may_mend = !matches!(
        bad.outcome,
        Outcome::Conflict | Outcome::Environment | Outcome::Interrupted | Outcome::PlanDisagrees | Outcome::Lost
    );
    let over = ctx.write("work complete", |tx| {
        // Its answer is cleared, and what it said to have cost would go with it.
        let given = store::attempt::get(tx, hold.job.id, hold.lease.attempt)?.answer;
        if let Some(usage) = given.and_then(|answer| answer.usage) {
            store::run::add_usage(tx, hold.run.id, &usage)?;
        }
        let tries = store::attempt::clear_answer(tx, hold.job.id, hold.lease.attempt)?;
        if may_mend && tries < SETTLE_TRIES {
            store::job::set_phase(tx, hold.job.id, Phase::Working)?;
            return Ok(false);
        }
        let ended = Ended { lesson: bad.lesson.clone(), ..Ended::plain(bad.outcome, bad.detail.clone()) };
        attempt::end(tx, &hold.run, &store::job::get(tx, hold.job.id)?, ended)?;
        Ok(true)
    })?;
    let again = if over { "the attempt is over" } else { "mend it and answer again" };
    Ok(SettleReport {
        outcome: bad.outcome,
        over,
        violations: bad.lesson.violations,
        verify_tail: bad.lesson.verify_tail,
        message: format!("{}; {again}", bad.detail),
    })
}

/// Seals with the evidence that the run's last job needs.
pub fn seal_now(ctx: &Ctx, hold: &Hold, answer: &Answer, work: &Work) -> Result<()> {
    destroy::release(ctx, hold)?;
    crate::os::crash::point("resource.released");
    let evidence = evidence::before_seal(ctx, hold.run.id)?;
    ctx.write("seal", |tx| {
        let job = store::job::get(tx, hold.job.id)?;
        must_still_hold(tx, hold, &job)?;
        let fresh = unpublished(tx, &work.artifacts)?;
        let changed = work.changed;
        let sealing = Sealing { answer, artifacts: &fresh, changed, session: hold.session.id, evidence };
        seal::seal(tx, &store::run::get(tx, hold.run.id)?, &job, &sealing)
    })?;
    // Two that seal the last two jobs at once each saw the other's open, and looked at nothing.
    evidence::complete(ctx, hold.run.id)?;
    tree::release::after_seal(ctx, hold)
}

/// Artifacts that `work publish` has not recorded before.
pub fn unpublished(
    tx: &store::Writing<'_>,
    artifacts: &[store::artifact::Artifact],
) -> Result<Vec<store::artifact::Artifact>> {
    let mut fresh = Vec::new();
    for artifact in artifacts {
        if store::artifact::find(tx, artifact.job, artifact.attempt, &artifact.name)?.is_none() {
            fresh.push(artifact.clone());
        }
    }
    Ok(fresh)
}

/// Whether the lease is still this one, whatever the job's phase.
pub fn is_still_ours(tx: &store::Writing<'_>, hold: &Hold, job: &store::job::Job) -> Result<bool> {
    let lease = store::lease::active_of_job(tx, job.id)?;
    Ok(lease.is_some_and(|lease| lease.id == hold.lease.id) && job.fence == hold.lease.fence)
}

/// Between answer and seal the hold may have been taken away.
pub fn must_still_hold(tx: &store::Writing<'_>, hold: &Hold, job: &store::job::Job) -> Result<()> {
    if is_still_ours(tx, hold, job)? && matches!(job.state, JobState::Running | JobState::Stale) {
        return Ok(());
    }
    Err(Error::new(Code::StaleFence, format!("{} was taken away while it was being settled", job.name)))
}

/// The report of a seal.
pub fn sealed() -> SettleReport {
    SettleReport {
        outcome: Outcome::Sealed,
        over: true,
        violations: Vec::new(),
        verify_tail: None,
        message: "sealed".to_owned(),
    }
}

/// The report of an attempt that ended without work.
pub fn over(ended: &Ended<'_>) -> SettleReport {
    SettleReport {
        outcome: ended.outcome,
        over: true,
        violations: Vec::new(),
        verify_tail: None,
        message: format!("{}: {}", ended.outcome, ended.detail),
    }
}
