//! Whether a run's artifacts still have their hashes: looked at before the transaction that may close the run.

use crate::domain::id::RunId;
use crate::error::Result;
use crate::os::files;
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::flow::finish::{self, Evidence};

/// Looks only when at most one job is open: the seal that follows may be the last.
pub fn before_seal(ctx: &Ctx, run: RunId) -> Result<Evidence> {
    let open = ctx.read(|read| Ok(store::job::open_up_to(read, run, 2)?))?;
    if open > 1 { Ok(Evidence::Unchecked) } else { look(ctx, run) }
}

/// Hashes every artifact of the run.
pub fn look(ctx: &Ctx, run: RunId) -> Result<Evidence> {
    for artifact in ctx.read(|read| Ok(store::artifact::of_run(read, run)?))? {
        if !files::is_intact(&ctx.layout().artifact(&artifact.sha256), &artifact.sha256) {
            return Ok(Evidence::Damaged(format!("{} ({})", artifact.name, artifact.sha256)));
        }
    }
    Ok(Evidence::Intact)
}

/// Closes a run whose every job is settled: after a seal that did not know that it was the last, and for verbs that
/// settle a job without one.
pub fn complete(ctx: &Ctx, run: RunId) -> Result<()> {
    if ctx.read(|read| Ok(store::job::has_open(read, run)?))? {
        return Ok(());
    }
    let evidence = look(ctx, run)?;
    ctx.write("run complete", |tx| finish::complete_if_done(tx, run, &evidence))
}
