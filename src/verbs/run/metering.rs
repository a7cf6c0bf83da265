//! What a driver counts while it drives: working time, and how long nothing in flight has moved.
//!
//! Both live in its memory, by a clock that stands still while the machine sleeps; working time is written down once a
//! minute, when the budget ends, and when the driver does. It decides nothing.

use super::observe;
use crate::domain::action::Plan;
use crate::domain::breaker::{Charge, Stillness};
use crate::domain::id::RunId;
use crate::domain::reconcile::{is_working, reconcile};
use crate::domain::time::Moment;
use crate::domain::world::World;
use crate::error::Result;
use crate::store;
use crate::store::run::Run;
use crate::verbs::Ctx;

/// A driver that comes back after twice its interval and this many milliseconds was itself stopped meanwhile.
const ABSENT_MS: u64 = 60_000;

/// What one driver has counted.
pub struct Metering {
    charge: Charge,
    /// What the budget of working time still has, as the store knows it.
    left_ms: u64,
    stillness: Stillness,
}

impl Metering {
    /// Counts for a driver that looks at least this often, in milliseconds.
    pub fn new(interval_ms: u64) -> Metering {
        Metering {
            charge: Charge::new(interval_ms.saturating_mul(2).saturating_add(ABSENT_MS)),
            left_ms: u64::MAX,
            stillness: Stillness::default(),
        }
    }

    /// Looks at the run; what has passed since the last look is charged.
    pub fn look(&mut self, ctx: &Ctx, run: RunId) -> Result<(Run, World)> {
        self.charge.pass(&ctx.clock.moment());
        if self.charge.is_due(self.left_ms) {
            self.save(ctx, run)?;
        }
        observe::world_watched(ctx, run, &mut self.stillness)
    }

    /// Decides a turn, and whether what follows it is working time.
    pub fn decide(&mut self, ctx: &Ctx, run: &Run, world: &World) -> Plan {
        let now = ctx.clock.moment();
        let mut plan = reconcile(world, &now);
        self.charge.set_working(is_working(world, &plan), &now);
        self.left_ms = run.spec.budget.active_time_ms.saturating_sub(run.spending().active_ms);
        plan.wake_at = earlier(plan.wake_at, self.charge.ends_at(self.left_ms));
        plan
    }

    /// Writes down what has gathered.
    pub fn save(&mut self, ctx: &Ctx, run: RunId) -> Result<()> {
        match self.charge.take() {
            0 => Ok(()),
            ms => ctx.write("run drive", |tx| Ok(store::run::add_active(tx, run, ms)?)),
        }
    }
}

fn earlier(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.ms < one.ms { other } else { one }),
        (one, other) => one.or(other),
    }
}
