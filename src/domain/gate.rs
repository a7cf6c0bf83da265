//! Which jobs wait for a person before they go: the tier, and the dial that reads it.
//!
//! It does not know gates' rows or who decides.

use super::frozen::{Autonomy, Effect, JobSpec, JobType, Origin};
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

/// Everything about a job that its tier depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stakes {
    /// What it is.
    pub kind: JobType,
    /// How far its effects reach.
    pub effect: Effect,
    /// Who put it into the run.
    pub origin: Origin,
    /// Every shared resource that it uses is made, checked and destroyed for it alone.
    pub is_ephemeral: bool,
}

impl Stakes {
    /// The stakes of a frozen job.
    pub fn of(spec: &JobSpec) -> Stakes {
        let is_own = |name: &String| spec.ephemeral.as_ref().is_some_and(|ephemeral| ephemeral.resource == *name);
        Stakes {
            kind: spec.kind,
            effect: spec.effect,
            origin: spec.origin,
            is_ephemeral: spec.ephemeral.is_some() && spec.shared.iter().all(is_own),
        }
    }
}

impl Stakes {
    /// Whether a try that was cut may have left something where others are: then it is not simply done again.
    pub const fn reaches_outside(self) -> bool {
        match self.effect {
            Effect::Outward | Effect::Unknown => true,
            Effect::Shared => !self.is_ephemeral,
            Effect::Write | Effect::Read => false,
        }
    }
}

/// Something that a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A job.
    Job(Stakes),
    /// A sealed change goes to the run's own branch.
    Integrate,
    /// Declared commands look at a change.
    Verify,
    /// A resource is made, checked or destroyed for one job.
    Ephemeral,
}

/// How much is at stake, for every step that there is. What it does not know is L2, and nothing lowers L2: a shared
/// resource that exists for one job alone is no stake of others', and so never was.
pub const fn tier(step: Step) -> Tier {
    let stakes = match step {
        Step::Job(stakes) => stakes,
        Step::Integrate | Step::Verify | Step::Ephemeral => return Tier::L1,
    };
    match (stakes.kind, stakes.origin, stakes.effect) {
        (JobType::Checkpoint | JobType::Land, _, _)
        | (_, Origin::Proposed, _)
        | (_, _, Effect::Outward | Effect::Unknown) => Tier::L2,
        (_, _, Effect::Shared) if stakes.is_ephemeral => Tier::L1,
        (_, _, Effect::Shared) => Tier::L2,
        (_, _, Effect::Write) => Tier::L1,
        (_, _, Effect::Read) => Tier::L0,
    }
}

/// The tier of a job.
pub fn tier_of(spec: &JobSpec) -> Tier {
    tier(Step::Job(Stakes::of(spec)))
}

/// Whether a person decides before the job goes.
pub const fn is_due(tier: Tier, dial: Autonomy) -> bool {
    match (tier, dial) {
        (Tier::L2, _) | (Tier::L1, Autonomy::Step | Autonomy::Plan) => true,
        (Tier::L1, Autonomy::Auto) | (Tier::L0, _) => false,
    }
}

/// Why a person is asked before a job, in a few words.
pub const fn why(stakes: Stakes) -> &'static str {
    match (stakes.kind, stakes.origin, stakes.effect) {
        (JobType::Checkpoint, _, _) => "the workflow asks for a person here",
        (JobType::Land, _, _) => "it moves the result to its target",
        (_, Origin::Proposed, _) => "an agent proposed it",
        (_, _, Effect::Outward) => "its effects leave this machine's run",
        (_, _, Effect::Unknown) => "nobody here knows how far its effects reach",
        (_, _, Effect::Shared) if stakes.is_ephemeral => "it uses a resource made for it alone",
        (_, _, Effect::Shared) => "it uses what others use",
        (_, _, Effect::Write) => "it changes files",
        (_, _, Effect::Read) => "it only looks",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use crate::domain::frozen::Ephemeral;

    const TYPES: [JobType; 8] = [
        JobType::Generic,
        JobType::Draft,
        JobType::Build,
        JobType::Test,
        JobType::Review,
        JobType::Synthesis,
        JobType::Checkpoint,
        JobType::Land,
    ];
    const EFFECTS: [Effect; 5] = [Effect::Read, Effect::Write, Effect::Shared, Effect::Outward, Effect::Unknown];
    const DIALS: [Autonomy; 3] = [Autonomy::Auto, Autonomy::Step, Autonomy::Plan];

    fn combinations() -> impl Iterator<Item = Stakes> {
        TYPES.into_iter().flat_map(|kind| {
            EFFECTS.into_iter().flat_map(move |effect| {
                [Origin::Planned, Origin::Proposed].into_iter().flat_map(move |origin| {
                    [false, true].into_iter().map(move |is_ephemeral| Stakes { kind, effect, origin, is_ephemeral })
                })
            })
        })
    }

    fn answers(tier: Tier) -> String {
        let due = DIALS.map(|dial| if is_due(tier, dial) { "asks" } else { "goes" });
        format!("{tier}  {:<5} {:<5} {}", due[0], due[1], due[2])
    }

    #[test]
    fn every_combination_has_its_tier() {
        let mut lines = vec![format!("{:<42}{:<4}{:<6}{:<6}{}", "step", "", "auto", "step", "plan")];
        for stakes in combinations() {
            let own = if stakes.is_ephemeral { "ephemeral" } else { "" };
            let job = format!("{:?} {:?} {:?} {own}", stakes.kind, stakes.effect, stakes.origin).to_lowercase();
            lines.push(format!("{job:<42}{}", answers(tier(Step::Job(stakes)))));
        }
        for step in [Step::Integrate, Step::Verify, Step::Ephemeral] {
            lines.push(format!("{:<42}{}", format!("{step:?}").to_lowercase(), answers(tier(step))));
        }
        insta::assert_snapshot!("tier_table", lines.join("\n"));
    }

    #[test]
    fn nothing_lowers_l2_but_owning_the_resource() {
        for stakes in combinations() {
            let lowered = tier(Step::Job(Stakes { is_ephemeral: true, ..stakes }));
            let plain = tier(Step::Job(Stakes { is_ephemeral: false, ..stakes }));
            assert!(lowered == plain || (stakes.effect == Effect::Shared && lowered == Tier::L1), "{stakes:?}");
            assert!(plain != Tier::L2 || DIALS.into_iter().all(|dial| is_due(plain, dial)), "{stakes:?}");
        }
    }

    #[test]
    fn a_word_for_an_effect_that_is_not_known_asks_a_person() {
        let effect: Effect = serde_json::from_str("\"planetary\"").unwrap();
        let spec = JobSpec { effect, ..JobSpec::default() };
        assert_eq!(tier_of(&spec), Tier::L2);
    }

    #[test]
    fn one_resource_of_two_does_not_make_a_job_ephemeral() {
        let ephemeral =
            Ephemeral { resource: "db".to_owned(), create: Vec::new(), check: Vec::new(), destroy: Vec::new() };
        let both = JobSpec {
            effect: Effect::Shared,
            shared: vec!["db".to_owned(), "queue".to_owned()],
            ephemeral: Some(ephemeral),
            ..JobSpec::default()
        };
        assert_eq!(tier_of(&both), Tier::L2);
        assert_eq!(tier_of(&JobSpec { shared: vec!["db".to_owned()], ..both }), Tier::L1);
    }
}
