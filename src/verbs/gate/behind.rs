//! What is behind a gate: the changes, what reviews found in them, what verified them, and where they would land.
//!
//! It changes nothing, and knows nothing of decisions.

use serde::{Deserialize, Serialize};

use crate::domain::frozen::JobType;
use crate::domain::packet::ReviewFindings;
use crate::domain::session::{ChangeState, ExecutionState, LandingKind};
use crate::error::Result;
use crate::os::git::Git;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Connection};
use crate::verbs::land::plan::{self, Plan, Way};
use crate::verbs::read::diff::{self, DiffReport, DiffRequest};
use crate::verbs::{Ctx, tree};

/// Longest patch that is shown when nobody asks for all of it, in bytes.
const SHOWN_BYTES: usize = 32 * 1024;

/// Most commits that are named.
const SHOWN_COMMITS: u32 = 50;

/// A verification of something behind the gate.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Check {
    /// Whose.
    pub job: String,
    /// In which try.
    pub attempt: u32,
    /// What ran.
    pub command: String,
    /// How far it came.
    pub state: ExecutionState,
    /// Its exit code, when it exited.
    pub exit: Option<i32>,
}

/// A commit that would land.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommitLine {
    /// Its name.
    pub commit: String,
    /// Its first line.
    pub subject: String,
}

/// Where a landing would go.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LandingView {
    /// The target branch; none when the run ends at its own.
    pub into: Option<String>,
    /// `squash`, `merge` or `ff`.
    pub style: String,
    /// The run's branch.
    pub branch: String,
    /// Its newest commit; none when it can't be told.
    pub tip: Option<String>,
    /// Where the target is.
    pub target: Option<String>,
    /// The tree that the target would hold; none when nothing would be moved.
    pub tree: Option<String>,
    /// Its commits, newest first.
    pub commits: Vec<CommitLine>,
    /// What a landing would find there is nothing to move for: `outside`, `nothing`, `branch`.
    pub finds: Option<LandingKind>,
    /// Why it could not land now.
    pub obstacle: Option<String>,
}

/// Everything that is behind a gate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Behind {
    /// The changes: of the whole run before a landing, else of each job.
    pub changes: Vec<DiffReport>,
    /// What reviews found, newest judgements.
    pub reviews: Vec<ReviewFindings>,
    /// What verified the newest attempts.
    pub checks: Vec<Check>,
    /// Before a landing.
    pub landing: Option<LandingView>,
}

/// How far to look.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// The whole of every difference.
    pub is_full: bool,
    /// The gate waits: what deciding it would do is looked at too.
    pub is_open: bool,
}

/// Looks at what is behind a job's gate.
pub fn look(ctx: &Ctx, run: &Run, job: &Job, depth: Depth) -> Result<Behind> {
    let (above, reviews, checks) = ctx.read(|read| {
        let mut above = Vec::new();
        for id in store::job::upstream(read, job.id)? {
            above.push(store::job::get(read, id)?);
        }
        let (reviews, checks) = (reviews(read, &above)?, checks(read, &above)?);
        Ok((above, reviews, checks))
    })?;
    let lands = job.spec.kind == JobType::Land;
    let mut changes = Vec::new();
    for name in if lands { vec![None] } else { changed(ctx, &above)? } {
        changes.push(change(ctx, run, name, depth.is_full)?);
    }
    let landing = if lands { Some(landing(ctx, run, job, depth.is_open)?) } else { None };
    Ok(Behind { changes, reviews, checks, landing })
}

/// The jobs that have changed something.
fn changed(ctx: &Ctx, above: &[Job]) -> Result<Vec<Option<String>>> {
    let mut names = Vec::new();
    for job in above {
        let changes = ctx.read(|read| Ok(store::change::of_job(read, job.id)?))?;
        if changes.iter().any(|change| change.state == ChangeState::Integrated) {
            names.push(Some(job.name.clone()));
        }
    }
    Ok(names)
}

fn change(ctx: &Ctx, run: &Run, job: Option<String>, is_full: bool) -> Result<DiffReport> {
    let request = DiffRequest { run: Some(run.name.clone()), job, ..DiffRequest::default() };
    let mut report = diff::diff(ctx, &request)?;
    if let Some(patch) = report.patch.as_mut().filter(|patch| !is_full && patch.len() > SHOWN_BYTES) {
        let end = patch.char_indices().map(|(at, _)| at).take_while(|at| *at <= SHOWN_BYTES).last().unwrap_or(0);
        let end = patch.get(..end).and_then(|head| head.rfind('\n')).map_or(end, |line| line + 1);
        patch.truncate(end);
        report.truncated = true;
    }
    Ok(report)
}

fn reviews(read: &Connection, above: &[Job]) -> Result<Vec<ReviewFindings>> {
    let mut found = Vec::new();
    for review in above.iter().filter(|job| job.spec.kind == JobType::Review) {
        let Some(row) = store::verdict::newest(read, review.id)? else { continue };
        found.push(ReviewFindings { review: review.name.clone(), verdict: row.verdict, findings: row.findings });
    }
    Ok(found)
}

fn checks(read: &Connection, above: &[Job]) -> Result<Vec<Check>> {
    let mut found = Vec::new();
    for job in above.iter().filter(|job| !job.spec.verify.is_empty()) {
        let ran = store::execution::of_attempt(read, job.id, job.attempt)?.into_iter();
        // They run in order; an attempt that was settled again has run them again.
        let ran: Vec<_> = ran.filter(|execution| execution.kind == "verify").collect();
        let newest = ran.len().saturating_sub(job.spec.verify.len());
        for (execution, argv) in ran.iter().skip(newest).zip(&job.spec.verify) {
            found.push(Check {
                job: job.name.clone(),
                attempt: job.attempt,
                command: argv.join(" "),
                state: execution.state,
                exit: execution.exit_code,
            });
        }
    }
    Ok(found)
}

fn landing(ctx: &Ctx, run: &Run, job: &Job, is_open: bool) -> Result<LandingView> {
    let git = tree::repository(ctx)?;
    let into = plan::target(job, None);
    let mut view = LandingView {
        style: job.spec.land_style.clone().unwrap_or_else(|| "squash".to_owned()),
        branch: tree::branch(run).trim_start_matches("refs/heads/").to_owned(),
        tip: git.resolve(&tree::branch(run))?,
        target: into.as_deref().map(|name| git.resolve(name)).transpose()?.flatten(),
        into: into.as_deref().map(|name| plan::plain(name).to_owned()),
        tree: None,
        commits: Vec::new(),
        finds: None,
        obstacle: None,
    };
    if let (Some(tip), Some(base)) = (&view.tip, &run.base) {
        let lines = git.subjects(base, tip, SHOWN_COMMITS)?.into_iter();
        view.commits = lines.map(|(commit, subject)| CommitLine { commit, subject }).collect();
    }
    if !is_open {
        return Ok(view);
    }
    match plan::plan(ctx, &git, (run, job), None) {
        Ok(Way::Done { kind, .. }) => view.finds = Some(kind),
        Ok(Way::Move(plan)) => {
            view.obstacle = obstacle(&git, &plan)?;
            view.tree = Some(plan.tree);
        }
        Err(error) => view.obstacle = Some(error.message),
    }
    Ok(view)
}

fn obstacle(git: &Git, plan: &Plan) -> Result<Option<String>> {
    for checkout in git.checkouts(&plan.target)? {
        if let Some(what) = crate::verbs::land::apply::obstacle(&checkout, &plan.before, &plan.tree)? {
            return Ok(Some(format!("the target is checked out in {}, and {what}", checkout.folder().display())));
        }
    }
    Ok(None)
}
