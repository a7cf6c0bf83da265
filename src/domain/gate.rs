//! Which jobs wait for a person before they go: the tier, and the dial that reads it.
//!
//! It does not know gates' rows or who decides.

use super::frozen::{Autonomy, Effect, JobType};
use super::word::word_enum;

word_enum! {
    /// How much is at stake.
    Tier "tier" {
        /// Nothing outside the attempt's folder.
        L0 "L0",
        /// Its own tree; can be taken back.
        L1 "L1",
        /// Can't be taken back, or a person asked to be asked.
        L2 "L2",
    }
}

/// The tier of a planned job.
pub const fn tier(kind: JobType, effect: Effect) -> Tier {
    match (kind, effect) {
        (JobType::Checkpoint | JobType::Land, _) | (_, Effect::Shared | Effect::Outward) => Tier::L2,
        (_, Effect::Write) => Tier::L1,
        (_, Effect::Read) => Tier::L0,
    }
}

/// Whether a person decides before the job goes.
pub const fn is_due(tier: Tier, dial: Autonomy) -> bool {
    match (tier, dial) {
        (Tier::L2, _) | (Tier::L1, Autonomy::Step | Autonomy::Plan) => true,
        (Tier::L1, Autonomy::Auto) | (Tier::L0, _) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lowers_l2() {
        for dial in [Autonomy::Auto, Autonomy::Step, Autonomy::Plan] {
            assert!(is_due(tier(JobType::Checkpoint, Effect::Read), dial));
            assert!(is_due(tier(JobType::Generic, Effect::Outward), dial));
        }
        assert!(!is_due(tier(JobType::Draft, Effect::Write), Autonomy::Auto));
        assert!(is_due(tier(JobType::Draft, Effect::Write), Autonomy::Step));
    }
}
