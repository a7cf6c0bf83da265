//! Proving a merged tree before it lands: in a work tree of its own, with the declared commands.
//!
//! Exit 0 passed; everything else leaves the gate as it is. The tree goes when it was only looked at.

use std::collections::BTreeSet;

use serde_json::json;

use super::Subject;
use super::plan::Plan;
use crate::domain::change::short;
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::TreeKind;
use crate::error::{Code, Error, Next, Result};
use crate::store;
use crate::verbs::flow::tell;
use crate::verbs::settle::verify::{LIMIT_MS, Verified};
use crate::verbs::tree::trial::{Interruptible, Place, Trial, Try};
use crate::verbs::tree::{provision, release};
use crate::verbs::{Ctx, trust};

/// The commands that prove a landing: the land job's own, else those of everything that lands, each once.
pub fn commands(ctx: &Ctx, subject: &Subject) -> Result<Vec<Vec<String>>> {
    if !subject.job.spec.verify.is_empty() {
        return Ok(subject.job.spec.verify.clone());
    }
    ctx.read(|read| {
        let (mut seen, mut commands) = (BTreeSet::new(), Vec::new());
        for id in store::job::upstream(read, subject.job.id)? {
            let job = store::job::get(read, id)?;
            if job.spec.tree == TreeKind::Own {
                commands.extend(job.spec.verify.into_iter().filter(|argv| seen.insert(argv.clone())));
            }
        }
        Ok(commands)
    })
}

/// Runs the commands that prove what the target will hold.
pub fn prove(ctx: &Ctx, subject: &Subject, plan: &Plan) -> Result<()> {
    let commands = commands(ctx, subject)?;
    if commands.is_empty() {
        return Ok(());
    }
    trust::check_run(ctx, &subject.run, None)?;
    let name = &subject.job.name;
    let place = Place {
        folder: provision::home(ctx, &subject.run).join(format!("{name}.landing")),
        logs: ctx.layout().worktrees(&subject.run.name).join(format!("{name}.landing.logs")),
    };
    let trial = Trial::make(ctx, place, &plan.before, Some(&plan.tree))?;
    let proven = run(ctx, &trial, subject, plan, &commands);
    trial.clear(proven.is_err())?;
    proven
}

fn run(ctx: &Ctx, trial: &Trial<'_>, subject: &Subject, plan: &Plan, commands: &[Vec<String>]) -> Result<()> {
    let spec = &subject.run.spec.tree;
    trial.furnish(spec, |folder| release::newest_of_run(ctx, subject.run.id, folder, |_| true))?;
    let mut runner = Interruptible::new()?;
    for (number, argv) in spec.setup.iter().enumerate() {
        let asked = Try { kind: "setup", number, argv, limit_ms: spec.setup_timeout_ms };
        refuse(trial, subject, plan, trial.run(&asked, &mut runner)?)?;
    }
    let limit_ms = subject.job.spec.timeout_ms.unwrap_or(LIMIT_MS);
    for (number, argv) in commands.iter().enumerate() {
        ctx.notice(&format!("verifying what {} will hold: {}", super::plan::plain(&plan.target), argv.join(" ")));
        let verified = trial.run(&Try { kind: "verify", number, argv, limit_ms }, &mut runner)?;
        record(ctx, subject, plan, (number, argv), &verified)?;
        refuse(trial, subject, plan, verified)?;
    }
    match trial.changed()? {
        None => Ok(()),
        Some(path) => Err(Error::new(Code::NotRun, format!("the verification is void: it changed {}", path.display()))),
    }
}

fn refuse(trial: &Trial<'_>, subject: &Subject, plan: &Plan, verified: Verified) -> Result<()> {
    let into = super::plan::plain(&plan.target);
    let gate = subject.gate.id.to_string();
    let told = |error: Error| {
        let back = ["striatum", "gate", "revise", &gate, "--note", "WHY"];
        let again = ["striatum", "gate", "approve", &gate];
        error
            .hint(format!("its output is in {}", trial.logs().display()))
            .next(Next::new("person", "send the work back", &back))
            .next(Next::new("person", "try again when that is mended", &again))
    };
    match verified {
        Verified::Passed => Ok(()),
        Verified::Failed { command, tail } => {
            let message = format!("what {into} would hold does not pass: {command}");
            Err(told(Error::new(Code::VerifyFailed, message).cause(tail.trim_end())))
        }
        Verified::NotRun { command, why } => {
            let message = format!("what {into} would hold could not be verified: {command}");
            Err(told(Error::new(Code::NotRun, message).cause(why.trim_end())))
        }
        Verified::Told(why) => Err(Error::new(Code::Interrupted, why)),
    }
}

fn record(
    ctx: &Ctx,
    subject: &Subject,
    plan: &Plan,
    (number, argv): (usize, &[String]),
    verified: &Verified,
) -> Result<()> {
    let result = match verified {
        Verified::Passed => "passed",
        Verified::Failed { .. } => "failed",
        Verified::NotRun { .. } | Verified::Told(_) => "not_run",
    };
    let body = json!({"landing": true, "number": number, "result": result, "tree": plan.tree,
        "argv": sha256_hex(argv.join("\0").as_bytes()), "onto": short(&plan.before)});
    ctx.write("land verify", |tx| tell(tx, EventType::VerifyEnded, &subject.job, &body))
}
