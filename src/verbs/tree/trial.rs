//! A work tree in which nobody works: commands are tried in it on a commit or a merged tree, then it goes again.
//!
//! It has no row: one that a kill left is cleared by the next of its name. What the commands mean is the caller's.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::provision::make_parent;
use super::{furnish, lock_repository};
use crate::domain::frozen::TreeSpec;
use crate::error::{Code, Error, Result};
use crate::os::env::{LaneEnvironment, lane_environment};
use crate::os::files;
use crate::os::git::Git;
use crate::os::process::{LaneStdin, Launched, Limits, Program};
use crate::os::signal::Signals;
use crate::verbs::Ctx;
use crate::verbs::settle::verify::{Runner, Verified, Waited, run_program};
use crate::verbs::supervise::ending;

/// Where a trial is made.
pub struct Place {
    /// The work tree.
    pub folder: PathBuf,
    /// Logs and temporary files, below the store's folder.
    pub logs: PathBuf,
}

/// A command to try.
pub struct Try<'a> {
    /// `setup` or `verify`.
    pub kind: &'a str,
    /// Its place among those of its kind.
    pub number: usize,
    /// Program and arguments.
    pub argv: &'a [String],
    /// How long it may take, in milliseconds.
    pub limit_ms: u64,
}

/// A work tree to try commands in.
pub struct Trial<'a> {
    ctx: &'a Ctx,
    repository: Git,
    place: Place,
    git: Git,
}

impl<'a> Trial<'a> {
    /// Makes it at a commit, or with the files of another tree there.
    pub fn make(ctx: &'a Ctx, place: Place, commit: &str, tree: Option<&str>) -> Result<Trial<'a>> {
        let repository = super::repository(ctx)?;
        // What one that was killed left.
        ending::end_attempt(&place.logs.join("tmp"));
        let _ = std::fs::remove_dir_all(&place.logs);
        files::create_private_dirs(ctx.layout().root(), &place.logs.join("tmp"))?;
        let lock = lock_repository(ctx)?;
        repository.clear_half_made(&place.folder)?;
        make_parent(ctx, &place.folder)?;
        let git_dir = repository.add_worktree(&place.folder, commit)?;
        drop(lock);
        crate::os::crash::point("trial.made");
        let git = Git::of_tree(&git_dir, &place.folder);
        let trial = Trial { ctx, repository, place, git };
        let filled = match tree {
            Some(tree) => trial.git.check_out(tree),
            None => trial.git.fill(),
        };
        match filled {
            Ok(()) => Ok(trial),
            Err(error) => {
                trial.clear(false)?;
                Err(error.into())
            }
        }
    }

    /// Copies and seeds what makes it usable.
    pub fn furnish(&self, spec: &TreeSpec, seed: impl Fn(&str) -> Result<Option<PathBuf>>) -> Result<()> {
        furnish::fill(self.ctx, spec, &self.place.folder, seed)?.map_err(|why| Error::new(Code::NotRun, why))
    }

    /// Tries one command; Ctrl-C ends it.
    pub fn run(&self, asked: &Try<'_>, runner: &mut Interruptible) -> Result<Verified> {
        let given = [("TMPDIR".to_owned(), self.place.logs.join("tmp").into_os_string())];
        let program = Program {
            argv: asked.argv.iter().map(Into::into).collect(),
            cwd: self.place.folder.clone(),
            env: lane_environment(std::env::vars_os(), LaneEnvironment { named: &[], given: &given })?,
            stdin: LaneStdin::Null,
            output: self.place.logs.join(format!("{}-{}.log", asked.kind, asked.number)),
            tty: false,
            limits: Limits::default(),
        };
        Ok(run_program(self.ctx, &program, asked.limit_ms, runner, &mut |_| Ok(()))?.2)
    }

    /// A tracked path that the commands changed.
    pub fn changed(&self) -> Result<Option<PathBuf>> {
        Ok(self.git.modified()?.into_iter().next())
    }

    /// Where its logs are.
    pub fn logs(&self) -> &Path {
        &self.place.logs
    }

    /// Takes it away; its logs stay where they tell why.
    pub fn clear(self, keeps_logs: bool) -> Result<()> {
        let lock = lock_repository(self.ctx)?;
        self.repository.clear_half_made(&self.place.folder)?;
        drop(lock);
        if !keeps_logs {
            let _ = std::fs::remove_dir_all(&self.place.logs);
        }
        Ok(())
    }
}

/// Waits for a command in the caller's own process; Ctrl-C ends the command, not the caller.
pub struct Interruptible {
    signals: Signals,
}

impl Interruptible {
    /// From now on signals are noticed.
    pub fn new() -> Result<Interruptible> {
        Ok(Interruptible { signals: Signals::install()? })
    }
}

impl Runner for Interruptible {
    fn wait(&mut self, launched: &Launched, limit: Duration) -> Waited {
        let begun = Instant::now();
        loop {
            if launched.process.wait_ended(200) {
                return Waited::Ended;
            }
            if self.signals.take().is_some() {
                return Waited::Told("interrupted by a signal".to_owned());
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
