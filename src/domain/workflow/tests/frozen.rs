//! From a definition to a snapshot.

use std::collections::BTreeMap;

use super::super::*;
use super::{CODE_CHANGE, LANES, ONE_LANE, flow, inputs, params};

/// Texts by path.
struct Folder(BTreeMap<&'static str, &'static str>);

impl Texts for Folder {
    fn text(&self, path: &str) -> Result<String, String> {
        self.0.get(path).map(|text| (*text).to_owned()).ok_or_else(|| "no such file".to_owned())
    }
}

fn empty() -> Folder {
    Folder(BTreeMap::new())
}

#[test]
fn the_specifications_example_freezes() {
    let definition = read(&inputs(CODE_CHANGE, LANES)).unwrap();
    let snapshot = freeze(&definition, &params(&[("task", "fix #1")]), &empty()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&snapshot.jobs[1]).unwrap(), @r#"
    {
      "id": "review",
      "type": "review",
      "title": "",
      "role": "reviewer",
      "lane": "codex",
      "needs": [
        "draft"
      ],
      "reviews": {
        "job": "draft"
      },
      "objective": "",
      "prompt": "",
      "inputs": [],
      "tree": "tip",
      "writes": [],
      "forbids": [],
      "produces": [],
      "verify": [],
      "process": {},
      "process_execution": false,
      "effect": "read",
      "shared": [],
      "ephemeral": null,
      "revisions": 2,
      "quorum": null,
      "max_strikes": 3,
      "on_failure": "hold",
      "on_exit_zero": "unsealed",
      "next_attempt": "continue",
      "allow_empty": false,
      "allow_overlap": false,
      "gate_note": "",
      "into": null,
      "land_style": null,
      "trailers": true,
      "commit_message": "",
      "timeout_ms": null,
      "fresh": true,
      "same_model": false
    }
    "#);
    assert_eq!(snapshot.jobs[0].objective, "fix #1");
    assert!(hash(&snapshot).starts_with("sha256:"));
}

#[test]
fn parameters_end_up_in_strings_words_and_texts_once() {
    let text = flow(
        r##"
title = "about ${params.task} $${x}"
params = { task = { required = true }, model = "m1", note = {} }
roles = { author = { instructions = "roles/author.md" } }
[lanes.sh]
command = ["agent", "--model=${params.model}", "${params.task}", "${prompt}", "$${HOME}"]
model = "${params.model}"
[[jobs]]
id = "a"
role = "author"
objective = "${params.task}: ${job} ${inputs.b.c}"
prompt = "prompts/a.md"
verify = ["check ${params.model} ${tmp}"]
commit_message = "${params.task}"
"##,
    );
    let folder = Folder(BTreeMap::from([
        ("prompts/a.md", "Do ${params.task} in ${job}. Shell: ${HOME}, $${HOME}.\n"),
        ("roles/author.md", "You write with ${params.model}.\n"),
    ]));
    let definition = read(&inputs(&text, "")).unwrap();
    let snapshot = freeze(&definition, &params(&[("task", "use ${job} and ${HOME}")]), &folder).unwrap();
    let (run, job) = (&snapshot.run, &snapshot.jobs[0]);
    let told = [
        run.title.clone(),
        run.lanes["sh"].command.join(" | "),
        run.lanes["sh"].model.clone(),
        run.roles["author"].instructions.clone(),
        job.objective.clone(),
        job.prompt.clone(),
        job.verify[0].join(" | "),
        job.commit_message.clone(),
        format!("{:?}", run.params),
    ];
    insta::assert_snapshot!(told.join("\n"), @r#"
    about use ${job} and ${HOME} ${x}
    agent | --model=m1 | use $${job} and $${HOME} | ${prompt} | $${HOME}
    m1
    You write with m1.

    use $${job} and ${HOME}: ${job} ${inputs.b.c}
    Do use $${job} and ${HOME} in ${job}. Shell: ${HOME}, $${HOME}.

    check | m1 | ${tmp}
    use ${job} and ${HOME}
    {"model": "m1", "note": "", "task": "use ${job} and ${HOME}"}
    "#);
    let launch = |name: &str| (name == "job" || name == "prompt").then(|| format!("<{name}>"));
    let words = run.lanes["sh"].command.iter().map(|word| crate::domain::template::expand(word, &launch).unwrap());
    insta::assert_snapshot!(words.collect::<Vec<_>>().join(" | "), @"agent | --model=m1 | use ${job} and ${HOME} | <prompt> | ${HOME}");
    insta::assert_snapshot!(crate::domain::template::fill(&job.objective, &launch), @"use ${job} and ${HOME}: <job> ${inputs.b.c}");
    insta::assert_snapshot!(crate::domain::template::fill(&job.prompt, &launch), @"Do use ${job} and ${HOME} in <job>. Shell: ${HOME}, $${HOME}.");
}

#[test]
fn what_a_freeze_lacks_is_told_at_once() {
    let text = flow(
        r#"
params = { task = { required = true }, branch = { required = true } }
roles = { author = { instructions = "roles/absent.md" } }
[[jobs]]
id = "a"
role = "author"
prompt = "prompts/a.md"
"#,
    );
    let folder = Folder(BTreeMap::from([("prompts/a.md", "${params.tsk} ${params.other}")]));
    let definition = read(&inputs(&text, ONE_LANE)).unwrap();
    let given = params(&[("tsak", "x"), ("colour", "blue"), ("task", "t")]);
    insta::assert_snapshot!(freeze(&definition, &given, &folder).unwrap_err(), @r"
    flow.toml: the workflow has no parameter `colour`
      help: it has: branch, task
    flow.toml: the workflow has no parameter `tsak`
      help: did you mean `task`?
    flow.toml:4:40: parameter `branch` has no value
      help: give it with --param branch=..
    flow.toml:5:22: `roles/absent.md` can't be read: no such file
      help: the path is looked up below the .striatum folder: .striatum/roles/absent.md
    flow.toml:9:1: `prompts/a.md` names the parameter `tsk`, which nothing declares
      help: did you mean `${params.task}`?
    flow.toml:9:1: `prompts/a.md` names the parameter `other`, which nothing declares
      help: declare it: [params] other = { required = true }
    ");
    insta::assert_snapshot!(freeze(&definition, &params(&[("branch", "b")]), &folder).unwrap_err(), @r#"
    flow.toml:4:12: parameter `task` has no value
      help: give it with --task ".."
    flow.toml:5:22: `roles/absent.md` can't be read: no such file
      help: the path is looked up below the .striatum folder: .striatum/roles/absent.md
    flow.toml:9:1: `prompts/a.md` names the parameter `tsk`, which nothing declares
      help: did you mean `${params.task}`?
    flow.toml:9:1: `prompts/a.md` names the parameter `other`, which nothing declares
      help: declare it: [params] other = { required = true }
    "#);
}

#[test]
fn a_snapshot_reads_back_as_it_was_and_keeps_its_hash() {
    let definition = read(&inputs(CODE_CHANGE, LANES)).unwrap();
    let snapshot = freeze(&definition, &params(&[("task", "t")]), &empty()).unwrap();
    let again: crate::domain::frozen::Snapshot = serde_json::from_slice(&canonical_bytes(&snapshot)).unwrap();
    assert_eq!(again, snapshot);
    assert_eq!(hash(&again), hash(&snapshot));
    let other = freeze(&definition, &params(&[("task", "u")]), &empty()).unwrap();
    assert_ne!(hash(&other), hash(&snapshot));
}

#[test]
fn models_that_parameters_make_alike_are_found_when_the_run_is_frozen() {
    let config = "[lanes.one]\ncommand = 'a'\nmodel = '${params.one}'\n[lanes.two]\ncommand = 'b'\nmodel = 'm'\n";
    let text = flow(
        "params = { one = {} }\n[[jobs]]\nid = 'a'\nrole = 'author'\nlane = 'one'\n[[jobs]]\nid = 'r'\nlane = 'two'\nreviews = 'a'\n",
    );
    let definition = read(&inputs(&text, config)).unwrap();
    let same = |model: &str| freeze(&definition, &params(&[("one", model)]), &empty()).unwrap().jobs[1].same_model;
    assert!(same("m") && !same("n"));
    let strict = text.replace("params =", "require_distinct_models = true\nparams =");
    let definition = read(&inputs(&strict, config)).unwrap();
    insta::assert_snapshot!(freeze(&definition, &params(&[("one", "m")]), &empty()).unwrap_err(), @r"
    flow.toml: jobs.r.reviews: `a` and its review `r` would be of the same model
      help: give their lanes different models
    ");
}
