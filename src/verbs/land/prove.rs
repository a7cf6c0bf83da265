//! Proving a merged tree before it lands: in a work tree of its own, with the declared commands.
//!
//! Exit 0 passed; everything else leaves the gate as it is. The tree goes when it was only looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Subject;
use super::plan::{Plan, short};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::TreeKind;
use crate::error::{Code, Error, Next, Result};
use crate::os::env::{LaneEnvironment, lane_environment};
use crate::os::files;
use crate::os::git::Git;
use crate::os::process::{LaneStdin, Launched, Limits, Program};
use crate::os::signal::Signals;
use crate::store;
use crate::verbs::flow::tell;
use crate::verbs::settle::verify::{LIMIT_MS, Runner, Verified, Waited, run_program};
use crate::verbs::supervise::ending;
use crate::verbs::tree::{provision, release};
use crate::verbs::{Ctx, tree, trust};

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
pub fn prove(ctx: &Ctx, git: &Git, subject: &Subject, plan: &Plan) -> Result<()> {
    let commands = commands(ctx, subject)?;
    if commands.is_empty() {
        return Ok(());
    }
    trust::check_run(ctx, &subject.run, None)?;
    let ground = Ground::make(ctx, git, subject, plan)?;
    let proven = ground.run(ctx, subject, plan, &commands);
    ground.clear(ctx, git, proven.is_ok())?;
    proven
}

/// A work tree in which nobody works.
struct Ground {
    folder: PathBuf,
    /// Logs and temporary files.
    beside: PathBuf,
    git: Git,
}

impl Ground {
    fn make(ctx: &Ctx, git: &Git, subject: &Subject, plan: &Plan) -> Result<Ground> {
        let home = provision::home(ctx, &subject.run);
        let folder = home.join(format!("{}.landing", subject.job.name));
        let beside = ctx.layout().worktrees(&subject.run.name).join(format!("{}.landing.logs", subject.job.name));
        // What a landing that was killed left.
        ending::end_attempt(&beside.join("tmp"));
        let _ = std::fs::remove_dir_all(&beside);
        files::create_private_dirs(ctx.layout().root(), &beside.join("tmp"))?;
        let lock = tree::lock_repository(ctx)?;
        git.clear_half_made(&folder)?;
        provision::make_parent(ctx, &folder)?;
        let git_dir = git.add_worktree(&folder, &plan.before)?;
        drop(lock);
        crate::os::crash::point("land.ground");
        let own = Git::of_tree(&git_dir, &folder);
        own.check_out(&plan.tree)?;
        let ground = Ground { folder, beside, git: own };
        match ground.furnish(ctx, subject) {
            Ok(()) => Ok(ground),
            Err(error) => {
                ground.clear(ctx, git, true)?;
                Err(error)
            }
        }
    }

    /// Files from the principal checkout, and seeded folders.
    fn furnish(&self, ctx: &Ctx, subject: &Subject) -> Result<()> {
        let spec = &subject.run.spec.tree;
        for file in &spec.copy {
            files::copy_into(ctx.layout().project(), &self.folder, Path::new(file))?;
        }
        for name in &spec.cache {
            let Some(source) = release::newest_of_run(ctx, subject.run.id, name, |_| true)? else { continue };
            if let Err(error) = files::seed(&source, &self.folder.join(name)) {
                ctx.notice(&format!("{name} could not be seeded from {}: {error}", source.display()));
            }
        }
        Ok(())
    }

    fn run(&self, ctx: &Ctx, subject: &Subject, plan: &Plan, commands: &[Vec<String>]) -> Result<()> {
        let mut watched = Watched { signals: Signals::install()? };
        let tree = &subject.run.spec.tree;
        for (number, argv) in tree.setup.iter().enumerate() {
            let verified = self.one(ctx, ("setup", number, argv, tree.setup_timeout_ms), &mut watched)?;
            self.refuse(subject, plan, verified)?;
        }
        let limit = subject.job.spec.timeout_ms.unwrap_or(LIMIT_MS);
        for (number, argv) in commands.iter().enumerate() {
            ctx.notice(&format!("verifying what {} will hold: {}", super::plan::plain(&plan.target), argv.join(" ")));
            let verified = self.one(ctx, ("verify", number, argv, limit), &mut watched)?;
            record(ctx, subject, plan, (number, argv), &verified)?;
            self.refuse(subject, plan, verified)?;
        }
        match self.git.modified()?.first() {
            None => Ok(()),
            Some(path) => {
                let message = format!("the verification is void: it changed {}", path.display());
                Err(Error::new(Code::NotRun, message))
            }
        }
    }

    fn one(
        &self,
        ctx: &Ctx,
        (kind, number, argv, limit_ms): (&str, usize, &[String], u64),
        runner: &mut Watched,
    ) -> Result<Verified> {
        let given = [("TMPDIR".to_owned(), self.beside.join("tmp").into_os_string())];
        let program = Program {
            argv: argv.iter().map(Into::into).collect(),
            cwd: self.folder.clone(),
            env: lane_environment(std::env::vars_os(), LaneEnvironment { named: &[], given: &given })?,
            stdin: LaneStdin::Null,
            output: self.beside.join(format!("{kind}-{number}.log")),
            tty: false,
            limits: Limits::default(),
        };
        Ok(run_program(ctx, &program, limit_ms, runner, &mut |_| Ok(()))?.2)
    }

    fn refuse(&self, subject: &Subject, plan: &Plan, verified: Verified) -> Result<()> {
        let into = super::plan::plain(&plan.target);
        let again = Next::new(
            "person",
            "try again when that is mended",
            &["striatum", "gate", "approve", &subject.gate.id.to_string()],
        );
        let back = Next::new(
            "person",
            "send the work back",
            &["striatum", "gate", "revise", &subject.gate.id.to_string(), "--note", "WHY"],
        );
        let told = |error: Error| {
            error.hint(format!("its output is in {}", self.beside.display())).next(back.clone()).next(again.clone())
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

    /// Takes the work tree away; its logs stay when they tell why.
    fn clear(&self, ctx: &Ctx, git: &Git, is_proven: bool) -> Result<()> {
        let lock = tree::lock_repository(ctx)?;
        git.clear_half_made(&self.folder)?;
        drop(lock);
        if is_proven {
            let _ = std::fs::remove_dir_all(&self.beside);
        }
        Ok(())
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

/// Waits for a command; Ctrl-C ends it.
struct Watched {
    signals: Signals,
}

impl Runner for Watched {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        let begun = Instant::now();
        loop {
            if launched.process.wait_ended(200) {
                return Waited::Ended;
            }
            if self.signals.take().is_some() {
                return Waited::Told("interrupted while what would land was being verified".to_owned());
            }
            if begun.elapsed() >= limit {
                return Waited::TooLong;
            }
        }
    }

    fn spare(&self) -> Vec<i32> {
        Vec::new()
    }

    fn reaps(&self) -> bool {
        false
    }
}
