//! Everything that only looks: one projection of a run, the inbox, and the views made of them.
//!
//! A look is one plain connection, no thread, no git, and a bounded number of rows; each view counts what it leaves
//! out. Nothing here writes, and nothing here decides: what a driver would do comes from `reconcile`.

pub mod audit;
pub mod dashboard;
pub mod diff;
pub mod doctor;
pub mod events;
pub mod explain;
pub mod graph;
pub mod inbox;
pub mod job;
pub mod logs;
pub mod meters;
pub mod runs;
pub mod standing;
pub mod status;
pub mod summary;
pub mod ways;

use crate::domain::action::Plan;
use crate::domain::reconcile::reconcile;
use crate::domain::time::Timestamp;
use crate::domain::world::World;
use crate::error::Result;
use crate::os::files;
use crate::store::Connection;
use crate::store::run::Run;
use crate::verbs::Ctx;
use crate::verbs::run::observe;

/// A run as a driver sees it, and what it would do.
pub struct Look {
    /// The run.
    pub run: Run,
    /// Its frontier.
    pub world: World,
    /// What a driver would do now.
    pub plan: Plan,
}

/// Looks at a run without moving it.
pub fn look(ctx: &Ctx, read: &Connection, run: Run) -> Result<Look> {
    let (run, world) = observe::world_in(ctx, read, run)?;
    let plan = reconcile(&world, &ctx.clock.moment());
    Ok(Look { run, world, plan })
}

/// Milliseconds since a time; none has passed since a time to come.
pub fn age(ctx: &Ctx, since: Timestamp) -> u64 {
    u64::try_from(ctx.clock.now().0.saturating_sub(since.0)).unwrap_or(0)
}

/// Text of whatever origin without any power over a terminal; its lines stay.
pub fn harmless(text: &str) -> String {
    files::escape(text)
}

/// Text of whatever origin as one harmless line of at most so many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let words: Vec<String> = files::escape(text).split_whitespace().map(str::to_owned).collect();
    let line = words.join(" ");
    if line.chars().count() <= most {
        return line;
    }
    let mut cut: String = line.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Splits off what does not fit; gives how many that were.
fn bounded<T>(rows: &mut Vec<T>, limit: u32, total: u32) -> u32 {
    rows.truncate(limit as usize);
    total.saturating_sub(count(rows.len()))
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
