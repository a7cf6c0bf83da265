//! What follows from what is written, as tables.

use super::super::*;
use super::{LANES, ONE_LANE, flow, inputs};
use crate::domain::frozen::{JobSpec, RoleContext};

fn jobs(text: &str, config: &str) -> Vec<JobSpec> {
    read(&inputs(&flow(text), config)).unwrap().jobs
}

/// A job alone with these keys.
fn job(keys: &str) -> JobSpec {
    let text = format!("[[jobs]]\nid = 'x'\nrole = 'author'\n[[jobs]]\nid = 'j'\n{keys}");
    jobs(&text, ONE_LANE).swap_remove(1)
}

#[test]
fn effect_tree_and_exit_follow_from_the_other_keys() {
    let rows = [
        "role = 'a'",
        "role = 'a'\nwrites = ['src/']",
        "role = 'a'\ntree = 'own'",
        "role = 'a'\nshared = ['db']",
        "role = 'a'\nshared = ['db']\nwrites = ['src/']",
        "role = 'a'\noutward = true",
        "role = 'a'\neffect = 'outward'",
        "role = 'a'\nwrites = ['src/']\neffect = 'shared'",
        "role = 'a'\ntype = 'test'",
        "role = 'a'\ntype = 'test'\ntree = 'none'",
        "role = 'a'\ntype = 'synthesis'\nwrites = ['docs/']",
        "role = 'a'\ntype = 'build'\non_exit_zero = 'unsealed'",
        "reviews = 'x'",
        "reviews = { range = 'main..HEAD' }",
        "type = 'checkpoint'",
        "type = 'land'",
    ];
    let row = |keys: &&str| {
        let job = job(keys);
        let exit = job.on_exit_zero.map_or("-".to_owned(), |exit| format!("{exit:?}"));
        let keys = keys.replace('\n', ", ");
        format!("{keys:<52} {:<10} {:<4} {:<7} {exit}", word(&job.kind), word(&job.tree), word(&job.effect))
    };
    insta::assert_snapshot!(rows.iter().map(row).collect::<Vec<_>>().join("\n"), @r"
    role = 'a'                                           generic    none read    Complete
    role = 'a', writes = ['src/']                        generic    own  write   Complete
    role = 'a', tree = 'own'                             generic    own  read    Complete
    role = 'a', shared = ['db']                          generic    none shared  Complete
    role = 'a', shared = ['db'], writes = ['src/']       generic    own  shared  Complete
    role = 'a', outward = true                           generic    none outward Complete
    role = 'a', effect = 'outward'                       generic    none outward Complete
    role = 'a', writes = ['src/'], effect = 'shared'     generic    own  shared  Complete
    role = 'a', type = 'test'                            test       tip  read    Complete
    role = 'a', type = 'test', tree = 'none'             test       none read    Complete
    role = 'a', type = 'synthesis', writes = ['docs/']   synthesis  own  write   Complete
    role = 'a', type = 'build', on_exit_zero = 'unsealed' build      none read    Unsealed
    reviews = 'x'                                        review     tip  read    Unsealed
    reviews = { range = 'main..HEAD' }                   review     tip  read    Unsealed
    type = 'checkpoint'                                  checkpoint none read    -
    type = 'land'                                        land       none outward -
    ");
}

fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

#[test]
fn reviews_imply_role_needs_freshness_and_revisions() {
    let rows = [
        "reviews = 'x'",
        "reviews = 'x'\nrole = 'judge'\nrevisions = 0\nneeds = ['x']",
        "reviews = { range = 'A..B' }",
    ];
    let row = |keys: &&str| {
        let job = job(keys);
        let role = job.role.as_deref().unwrap_or("-");
        format!(
            "{}: {role}, needs {:?}, fresh {}, revisions {}",
            keys.replace('\n', ", "),
            job.needs,
            job.fresh,
            job.revisions
        )
    };
    insta::assert_snapshot!(rows.iter().map(row).collect::<Vec<_>>().join("\n"), @r#"
    reviews = 'x': reviewer, needs ["x"], fresh true, revisions 2
    reviews = 'x', role = 'judge', revisions = 0, needs = ['x']: judge, needs ["x"], fresh true, revisions 0
    reviews = { range = 'A..B' }: reviewer, needs [], fresh true, revisions 0
    "#);
}

#[test]
fn a_role_that_says_any_is_not_fresh() {
    let config = format!("{ONE_LANE}[roles.reviewer]\ncontext = 'any'\n[roles.careful]\ncontext = 'fresh'\n");
    let text = "[[jobs]]\nid = 'a'\nrole = 'careful'\n[[jobs]]\nid = 'r'\nreviews = 'a'\n";
    let jobs = jobs(text, &config);
    assert!(jobs[0].fresh, "fresh by declaration");
    assert!(!jobs[1].fresh, "any by declaration");
    let definition = read(&inputs(&flow(text), ONE_LANE)).unwrap();
    assert_eq!(definition.run.roles["reviewer"].context, RoleContext::Fresh);
    assert_eq!(definition.run.roles["careful"].context, RoleContext::Any);
}

#[test]
fn a_job_without_a_lane_gets_its_roles_only_one() {
    let text = "[[jobs]]\nid = 'a'\nrole = 'author'\n";
    assert_eq!(jobs(text, ONE_LANE)[0].lane.as_deref(), Some("sh"));
    assert_eq!(jobs(text, LANES)[0].lane, None);
    let config = format!("{LANES}[roles.author]\nlanes = ['codex']\n");
    assert_eq!(jobs(text, &config)[0].lane.as_deref(), Some("codex"));
}

#[test]
fn land_without_needs_takes_what_nobody_else_needs() {
    let text = r#"
[[jobs]]
id = "a"
role = "author"
[[jobs]]
id = "b"
role = "author"
needs = ["a"]
[[jobs]]
id = "c"
role = "author"
[[jobs]]
id = "land"
type = "land"
"#;
    let land = jobs(text, ONE_LANE).swap_remove(3);
    assert_eq!(land.needs, ["b", "c"]);
    assert_eq!(land.land_style.as_deref(), Some("squash"));
}

#[test]
fn verify_is_also_the_test_class_unless_one_is_declared() {
    let with = |process: &str| job(&format!("role = 'a'\nverify = 'make test'\n{process}")).process["test"].clone();
    assert_eq!(with(""), [["make", "test"]]);
    assert_eq!(with("process = { test = 'cargo test' }"), [["cargo", "test"]]);
}

#[test]
fn the_workflow_wins_key_by_key_over_config_over_user() {
    let source = |name: &str, text: &str| Some(Source { name: name.into(), text: text.into() });
    let workflow = flow("lanes = { sh = { model = 'w' } }\n[[jobs]]\nid = 'a'\nrole = 'author'\n");
    let inputs = Inputs {
        config: source("config.toml", "[lanes.sh]\nmodel = 'c'\ntimeout = '2m'\n[budget]\nlaunches = 50\n"),
        user: source(
            "user.toml",
            "[lanes.sh]\nmodel = 'u'\ntimeout = '3m'\ncommand = 'agent'\n[budget]\nlaunches = 20\n[parallelism]\nmax_active_jobs = 9\n",
        ),
        ..inputs(&workflow, "")
    };
    let run = read(&inputs).unwrap().run;
    let lane = &run.lanes["sh"];
    assert_eq!(
        (lane.model.as_str(), lane.timeout_ms, lane.command.as_slice()),
        ("w", 120_000, ["agent".to_owned()].as_slice())
    );
    assert_eq!(run.budget.launches, 20, "the stricter limit wins");
    assert_eq!(run.max_active_jobs, 9, "a default is no limit that somebody set");
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let definition = read(&inputs(&flow("[[jobs]]\nid = 'a'\nrole = 'author'\n"), ONE_LANE)).unwrap();
    let in_force = [
        ("limits", serde_json::to_value(&definition.run.limits).unwrap()),
        ("budget", serde_json::to_value(&definition.run.budget).unwrap()),
        ("lanes.sh", serde_json::to_value(&definition.run.lanes["sh"]).unwrap()),
        ("lanes.sh.unavailable", serde_json::to_value(&definition.run.lanes["sh"].unavailable).unwrap()),
        ("tree", serde_json::to_value(&definition.run.tree).unwrap()),
        ("parallelism", serde_json::json!({ "max_active_jobs": definition.run.max_active_jobs })),
    ];
    let mut compared = 0;
    for setting in definition.settings.iter().filter(|setting| !setting.is_set && !setting.value.is_null()) {
        let Some((table, key)) = setting.key.rsplit_once('.') else { continue };
        let Some((_, values)) = in_force.iter().find(|(name, _)| *name == table) else { continue };
        let (plain, timed) = (values.get(key), values.get(format!("{key}_ms")));
        let expected = match (plain, timed, setting.value.as_str()) {
            (_, Some(ms), Some(text)) => crate::domain::time::parse_duration(text).map_or(ms.is_null(), |it| *ms == it),
            (Some(value), _, _) => *value == setting.value || (key == "dir" && value.is_null()),
            (None, ..) => false,
        };
        assert!(expected, "{} is {} in the table and {values} in force", setting.key, setting.value);
        compared += 1;
    }
    assert!(compared > 20, "{compared} defaults compared");
    assert_eq!(definition.run.budget.launches, 12);
}
