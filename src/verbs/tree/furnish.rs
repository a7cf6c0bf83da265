//! What makes a new tree usable: files copied from the principal checkout, folders seeded, setup commands.

use std::path::{Path, PathBuf};

use super::release;
use crate::domain::frozen::TreeSpec;
use crate::error::Result;
use crate::os::files;
use crate::verbs::Ctx;
use crate::verbs::settle::artifacts;
use crate::verbs::settle::verify::{self, Runner, Verified};
use crate::verbs::work::hold::Hold;

/// What became of it.
pub enum Furnished {
    /// Usable.
    Ready,
    /// A command failed, or a folder could not be filled; why.
    Failed(String),
    /// An order came meanwhile.
    Told(String),
}

/// Copies files from the principal checkout, and seeds folders from where they are found.
pub fn fill(
    ctx: &Ctx,
    spec: &TreeSpec,
    tree: &Path,
    seed: impl Fn(&str) -> Result<Option<PathBuf>>,
) -> Result<std::result::Result<(), String>> {
    for file in &spec.copy {
        if let Err(error) = files::copy_into(ctx.layout().project(), tree, Path::new(file)) {
            return Ok(Err(format!("copy of {file}: {error}")));
        }
    }
    for folder in &spec.cache {
        let Some(source) = seed(folder)? else { continue };
        if let Err(error) = files::seed(&source, &tree.join(folder)) {
            // A cache only saves time.
            ctx.notice(&format!("{folder} could not be seeded from {}: {error}", source.display()));
        }
    }
    Ok(Ok(()))
}

/// Makes a new tree usable.
pub fn furnish(ctx: &Ctx, hold: &Hold, tree: &Path, runner: &mut dyn Runner) -> Result<Furnished> {
    let spec = &hold.run.spec.tree;
    if let Err(why) = fill(ctx, spec, tree, |folder| release::newest_folder(ctx, hold, folder))? {
        return Ok(Furnished::Failed(why));
    }
    let folder = artifacts::folder(ctx, hold);
    for path in [folder.folder(), &folder.tmp()] {
        files::create_private_dirs(ctx.layout().root(), path)?;
    }
    let until = ctx.clock.moment().after(spec.setup_timeout_ms);
    for (number, argv) in spec.setup.iter().enumerate() {
        let left = u64::try_from(until.ms - ctx.clock.moment().ms).unwrap_or(0);
        let command = verify::Command { kind: "setup", number, argv, cwd: tree, limit_ms: left };
        match verify::run_command(ctx, hold, &command, runner)? {
            Verified::Passed => {}
            Verified::Failed { command, tail } => {
                return Ok(Furnished::Failed(format!("setup failed: {command}\n{tail}")));
            }
            Verified::NotRun { command, why } => {
                return Ok(Furnished::Failed(format!("setup not run: {command}: {why}")));
            }
            Verified::Told(why) => return Ok(Furnished::Told(why)),
        }
    }
    Ok(Furnished::Ready)
}
