//! Proposals, each alone and in their place in a run.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;
use crate::domain::frozen::{Budget, LaneSpec, Origin, Produce, RoleSpec, TreeKind};

const GOOD: Claims = Claims {
    asked: Asked::Work,
    has_objective: true,
    is_role_known: true,
    is_lane_known: true,
    are_inputs_known: true,
    likeness: Likeness::New,
    is_within_depth: true,
    is_confident: true,
};

fn combinations() -> Vec<Claims> {
    let mut all = Vec::new();
    for asked in [Asked::Work, Asked::Reserved, Asked::Unknown] {
        for likeness in [Likeness::New, Likeness::Alike, Likeness::Same] {
            for bits in 0..64_u32 {
                let bit = |at: u32| bits >> at & 1 == 0;
                all.push(Claims {
                    asked,
                    likeness,
                    has_objective: bit(0),
                    is_role_known: bit(1),
                    is_lane_known: bit(2),
                    are_inputs_known: bit(3),
                    is_within_depth: bit(4),
                    is_confident: bit(5),
                });
            }
        }
    }
    all
}

fn said(fate: Fate) -> String {
    match fate {
        Fate::Admit => "admit".to_owned(),
        Fate::Surface(doubt) => format!("surface {doubt}: {}", doubt.reason()),
        Fate::Refuse(flaw) => format!("refuse {flaw}: {}", flaw.reason()),
    }
}

/// What alone is wrong with a proposal, and with it everything that counts less.
#[test]
fn every_claim_has_its_weight() {
    let worse = |claims: Claims| Claims {
        likeness: if claims.likeness == Likeness::New { Likeness::Alike } else { claims.likeness },
        is_within_depth: false,
        is_confident: false,
        ..claims
    };
    let cases = [
        ("nothing", GOOD),
        ("type of the workflow's", Claims { asked: Asked::Reserved, ..GOOD }),
        ("type unknown", Claims { asked: Asked::Unknown, ..GOOD }),
        ("no objective", Claims { has_objective: false, ..GOOD }),
        ("role unknown", Claims { is_role_known: false, ..GOOD }),
        ("lane unknown", Claims { is_lane_known: false, ..GOOD }),
        ("input unknown", Claims { are_inputs_known: false, ..GOOD }),
        ("proposed before", Claims { likeness: Likeness::Same, ..GOOD }),
        ("alike before", Claims { likeness: Likeness::Alike, ..GOOD }),
        ("too deep", Claims { is_within_depth: false, ..GOOD }),
        ("not confident", Claims { is_confident: false, ..GOOD }),
    ];
    let mut lines = Vec::new();
    for (what, claims) in cases {
        lines.push(format!("{what:<24}{}", said(weigh(claims))));
        lines.push(format!("{:<24}{}", "  and all doubts", said(weigh(worse(claims)))));
    }
    insta::assert_snapshot!("proposal_table", lines.join("\n"));
}

#[test]
fn only_what_nothing_speaks_against_is_admitted() {
    for claims in combinations() {
        let has_flaw = claims.asked != Asked::Work
            || !claims.has_objective
            || !claims.is_role_known
            || !claims.is_lane_known
            || !claims.are_inputs_known
            || claims.likeness == Likeness::Same;
        let has_doubt = !claims.is_within_depth || !claims.is_confident || claims.likeness == Likeness::Alike;
        match weigh(claims) {
            Fate::Admit => assert!(!has_flaw && !has_doubt, "{claims:?}"),
            Fate::Surface(_) => assert!(!has_flaw && has_doubt, "{claims:?}"),
            Fate::Refuse(_) => assert!(has_flaw, "{claims:?}"),
        }
    }
}

fn run() -> RunSpec {
    let lanes = BTreeMap::from(["script", "other"].map(|name| (name.to_owned(), LaneSpec::default())));
    let role = |lanes: &[&str]| RoleSpec {
        lanes: lanes.iter().map(|lane| (*lane).to_owned()).collect(),
        ..RoleSpec::default()
    };
    let roles =
        BTreeMap::from([("author".to_owned(), role(&["script", "other"])), ("tester".to_owned(), role(&["other"]))]);
    RunSpec { lanes, roles, budget: Budget { next_depth: 2, ..Budget::default() }, ..RunSpec::default() }
}

fn spec(id: &str, needs: &[&str], writes: &[&str]) -> JobSpec {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let produce = Produce { name: "notes".into(), path: Some("notes.txt".into()), kind: String::new(), required: true };
    JobSpec {
        id: id.to_owned(),
        role: Some("author".to_owned()),
        lane: Some("script".to_owned()),
        needs: words(needs),
        writes: words(writes),
        verify: vec![vec!["true".to_owned()]],
        produces: vec![produce],
        max_strikes: 3,
        ..JobSpec::default()
    }
}

fn jobs() -> Vec<JobSpec> {
    let land = JobSpec { kind: JobType::Land, role: None, lane: None, ..spec("land", &["draft", "docs"], &[]) };
    vec![
        spec("draft", &[], &["src/"]),
        spec("docs", &[], &["docs/"]),
        spec("tests", &[], &["src/tests/"]),
        land,
        spec("after", &["land"], &["src/"]),
    ]
}

fn proposal(kind: &str, objective: &str, confidence: f64) -> Proposal {
    Proposal { kind: kind.into(), objective: objective.into(), confidence, ..Proposal::default() }
}

fn with_scene<T>(earlier: &[Earlier], depth: u32, look: impl FnOnce(&Scene<'_>) -> T) -> T {
    let (run, jobs, landings) = (run(), jobs(), ["land".to_owned()]);
    let scene = Scene {
        run: &run,
        jobs: &jobs,
        proposer: jobs.first().unwrap(),
        landings: &landings,
        depth,
        has_base: true,
        earlier,
    };
    look(&scene)
}

fn fate(proposal: &Proposal, depth: u32) -> String {
    with_scene(&[], depth, |scene| said(weigh(claims(proposal, scene))))
}

#[test]
fn a_proposal_is_looked_at_where_it_was_made() {
    let wants = |input: &str| Proposal { inputs: vec![input.to_owned()], ..proposal("test", "x", 0.9) };
    let of = |role: Option<&str>, lane: Option<&str>| Proposal {
        role: role.map(str::to_owned),
        lane: lane.map(str::to_owned),
        ..proposal("test", "x", 0.9)
    };
    let cases = [
        ("plain", proposal("test", "x", 0.9), 1),
        ("at the limit of confidence", proposal("test", "x", 0.5), 1),
        ("under it", proposal("test", "x", 0.49), 1),
        ("at the limit of depth", proposal("draft", "x", 0.9), 2),
        ("under it", proposal("draft", "x", 0.9), 3),
        ("review", proposal("review", "x", 0.9), 1),
        ("land", proposal("land", "x", 0.9), 1),
        ("a word", proposal("rewrite", "x", 0.9), 1),
        ("no word", proposal("", "x", 0.9), 1),
        ("blank", proposal("test", "  \n", 0.9), 1),
        ("known role", of(Some("tester"), None), 1),
        ("unknown role", of(Some("boss"), None), 1),
        ("known lane", of(Some("tester"), Some("other")), 1),
        ("lane of another role", of(Some("tester"), Some("script")), 1),
        ("unknown lane", of(None, Some("nobody")), 1),
        ("own artifact", wants("notes"), 1),
        ("another's artifact", wants("docs.notes"), 1),
        ("nobody's artifact", wants("docs.nothing"), 1),
        ("an artifact of the future", wants("after.notes"), 1),
    ];
    let lines: Vec<String> =
        cases.iter().map(|(what, proposal, depth)| format!("{what:<28}{}", fate(proposal, *depth))).collect();
    insta::assert_snapshot!("proposal_cases", lines.join("\n"));
}

#[test]
fn type_and_inputs_make_two_proposals_the_same_step() {
    let wants = |inputs: &[&str]| Proposal {
        inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
        ..proposal("test", "look", 0.9)
    };
    let key = likeness_key(&wants(&["docs.notes", "notes", "notes"]), "draft");
    assert_eq!(key, "test docs.notes draft.notes");
    let earlier = [Earlier { key, objective: "look".to_owned(), is_admitted: true }];
    let likeness = |proposal: &Proposal| with_scene(&earlier, 1, |scene| claims(proposal, scene).likeness);
    assert_eq!(likeness(&wants(&["draft.notes", "docs.notes"])), Likeness::Same);
    assert_eq!(likeness(&Proposal { objective: "other".into(), ..wants(&["notes", "docs.notes"]) }), Likeness::Alike);
    let shown = [Earlier { is_admitted: false, ..earlier[0].clone() }];
    let other = Proposal { objective: "other".into(), ..wants(&["notes", "docs.notes"]) };
    assert_eq!(with_scene(&shown, 1, |scene| claims(&other, scene).likeness), Likeness::New);
    assert_eq!(likeness(&wants(&["notes"])), Likeness::New);
    assert_eq!(likeness(&Proposal { kind: "build".into(), ..wants(&["notes", "docs.notes"]) }), Likeness::New);
}

fn drafted(proposal: &Proposal) -> JobSpec {
    with_scene(&[], 1, |scene| draft(proposal, scene, 1))
}

#[test]
fn a_proposed_change_has_the_scope_and_the_verification_of_its_proposer() {
    let spec = drafted(&proposal("draft", " mend it ", 0.9));
    assert_eq!((spec.id.as_str(), spec.objective.as_str()), ("draft-next-1", "mend it"));
    assert_eq!((spec.origin, spec.tree), (Origin::Proposed, TreeKind::Own));
    assert_eq!((spec.writes, spec.verify), (vec!["src/".to_owned()], vec![vec!["true".to_owned()]]));
    // Who writes the same paths comes before; what waits for the landing does not.
    assert_eq!(spec.needs, ["draft", "tests"]);
    assert_eq!(spec.lane.as_deref(), Some("script"));
}

#[test]
fn everything_else_only_looks() {
    for kind in ["generic", "test", "synthesis"] {
        let spec = drafted(&proposal(kind, "look", 0.9));
        assert_eq!((spec.tree, spec.writes.len(), spec.verify.len()), (TreeKind::Tip, 0, 0), "{kind}");
        assert_eq!(spec.needs, ["draft"]);
    }
    let tester = Proposal { role: Some("tester".into()), ..proposal("test", "look", 0.9) };
    assert_eq!(drafted(&tester).lane.as_deref(), Some("other"));
}

#[test]
fn a_name_is_free_and_short_enough() {
    assert_eq!(name("draft", |name| name == "draft-next-1"), "draft-next-2");
    let long = "a".repeat(48);
    assert_eq!(name(&long, |_| false).len(), 48);
}

#[test]
fn the_words_of_an_agent_stand_on_one_line_at_the_gate() {
    let wordy = Proposal { reason: "a\u{1b}[2J\n  b".into(), ..proposal("test", "look", 0.75) };
    assert_eq!(drafted(&wordy).gate_note, "draft.1 proposes it (confidence 0.75): a [2J b");
}
