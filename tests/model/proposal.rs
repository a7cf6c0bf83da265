//! Sequences of proposals: whatever agents propose, depth and likeness hold, and nothing goes without a person.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use striatum::domain::contract::Proposal;
use striatum::domain::frozen::{Autonomy, Budget, JobSpec, JobType, LaneSpec, Origin, Produce, RoleSpec, RunSpec};
use striatum::domain::gate::{Tier, is_due, tier_of};
use striatum::domain::proposal::{Earlier, Fate, Scene, claims, draft, likeness_key, weigh};

/// Who proposes, as a place among the jobs there are, and what.
type Word = (usize, &'static str, Vec<&'static str>, &'static str, f64);

fn word() -> impl Strategy<Value = Word> {
    let kinds = vec!["draft", "build", "test", "generic", "synthesis", "review", "land", "checkpoint", "else"];
    let inputs =
        prop::collection::vec(prop::sample::select(vec!["notes", "docs.notes", "draft.notes", "no.thing"]), 0..3);
    let confidence = prop::sample::select(vec![0.0, 0.49, 0.5, 1.0]);
    (0..20_usize, prop::sample::select(kinds), inputs, prop::sample::select(vec!["a", "b", ""]), confidence)
}

fn job(id: &str, kind: JobType, needs: &[&str], writes: &[&str]) -> JobSpec {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let notes = Produce { name: "notes".into(), path: None, kind: String::new(), required: true };
    let role = (kind != JobType::Land).then(|| "author".to_owned());
    JobSpec {
        id: id.into(),
        kind,
        role,
        needs: words(needs),
        writes: words(writes),
        produces: vec![notes],
        ..JobSpec::default()
    }
}

fn run(next_depth: u32) -> RunSpec {
    RunSpec {
        lanes: BTreeMap::from([("script".to_owned(), LaneSpec::default())]),
        roles: BTreeMap::from([("author".to_owned(), RoleSpec::default())]),
        budget: Budget { next_depth, ..Budget::default() },
        ..RunSpec::default()
    }
}

/// Everything that a job needs, directly or not.
fn above(jobs: &[JobSpec], job: &str) -> BTreeSet<String> {
    let (mut open, mut seen) = (vec![job.to_owned()], BTreeSet::new());
    while let Some(name) = open.pop() {
        for need in jobs.iter().filter(|job| job.id == name).flat_map(|job| &job.needs) {
            if seen.insert(need.clone()) {
                open.push(need.clone());
            }
        }
    }
    seen
}

proptest! {
    #[test]
    fn no_sequence_of_proposals_goes_deeper_repeats_or_runs_by_itself(
        words in prop::collection::vec(word(), 1..40), next_depth in 0_u32..4,
    ) {
        let run = run(next_depth);
        let mut jobs = vec![
            job("draft", JobType::Draft, &[], &["src/"]),
            job("docs", JobType::Draft, &[], &["docs/", "src/doc/"]),
            job("land", JobType::Land, &["draft", "docs"], &[]),
        ];
        let landings = ["land".to_owned()];
        let mut depths: BTreeMap<String, u32> = BTreeMap::new();
        let (mut earlier, mut admitted) = (Vec::<Earlier>::new(), BTreeSet::new());
        for (who, kind, inputs, objective, confidence) in words {
            let workers: Vec<JobSpec> = jobs.iter().filter(|job| job.role.is_some()).cloned().collect();
            let proposer = &workers[who % workers.len()];
            let proposal = Proposal {
                kind: kind.into(),
                inputs: inputs.into_iter().map(str::to_owned).collect(),
                objective: objective.into(),
                confidence,
                ..Proposal::default()
            };
            let depth = 1 + depths.get(&proposer.id).copied().unwrap_or(0);
            let key = likeness_key(&proposal, &proposer.id);
            let scene = Scene { run: &run, jobs: &jobs, proposer, landings: &landings, depth, has_base: true, earlier: &earlier };
            let fate = weigh(claims(&proposal, &scene));
            let made = (fate == Fate::Admit).then(|| draft(&proposal, &scene, 1));
            if !matches!(fate, Fate::Refuse(_)) {
                let is_admitted = fate == Fate::Admit;
                earlier.push(Earlier { key: key.clone(), objective: objective.into(), is_admitted });
            }
            let Some(made) = made else { continue };
            prop_assert!(depth <= next_depth, "{} is at depth {depth}", made.id);
            prop_assert!(admitted.insert(key), "{} was admitted before", made.id);
            prop_assert_eq!((made.origin, tier_of(&made)), (Origin::Proposed, Tier::L2));
            for dial in [Autonomy::Auto, Autonomy::Step, Autonomy::Plan] {
                prop_assert!(is_due(tier_of(&made), dial), "it goes without a person");
            }
            prop_assert!(made.writes.is_empty() || made.writes == proposer.writes, "its scope is its own");
            prop_assert!(jobs.iter().all(|job| job.id != made.id));
            depths.insert(made.id.clone(), depth);
            jobs[2].needs.push(made.id.clone());
            jobs.push(made);
        }
        for job in &jobs {
            prop_assert!(!above(&jobs, &job.id).contains(&job.id), "{} needs itself", job.id);
        }
        let proposed: Vec<&JobSpec> = jobs.iter().filter(|job| job.origin == Origin::Proposed && !job.writes.is_empty()).collect();
        for one in &proposed {
            for other in proposed.iter().filter(|other| other.id != one.id && other.writes == one.writes) {
                let in_order = above(&jobs, &one.id).contains(&other.id) || above(&jobs, &other.id).contains(&one.id);
                prop_assert!(in_order, "{} and {} may write the same side by side", one.id, other.id);
            }
        }
    }
}
