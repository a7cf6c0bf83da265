//! Whole files in, definitions, snapshots and faults out.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use super::*;

/// The example of the specification.
const CODE_CHANGE: &str = r#"
schema = "striatum.workflow/1"
id = "code-change"
[params]
task = { required = true }

[[jobs]]
id = "draft"
role = "author"
lane = "claude"
objective = "${params.task}"
writes = ["src/", "tests/"]
verify = "cargo test -q"

[[jobs]]
id = "review"
lane = "codex"
reviews = "draft"

[[jobs]]
id = "land"
type = "land"
needs = ["review"]
into = "main"
"#;

const LANES: &str = r#"
[lanes.claude]
adapter = "claude"
[lanes.codex]
adapter = "codex"
"#;

struct NoTexts;

impl Texts for NoTexts {
    fn text(&self, _: &str) -> Result<String, String> {
        Err("no such file".into())
    }
}

fn source(name: &str, text: &str) -> Source {
    Source { name: name.into(), text: text.into() }
}

fn inputs(workflow: &str, config: &str) -> Inputs {
    Inputs {
        workflow: source("flow.toml", workflow),
        config: Some(source("config.toml", config)),
        git: true,
        ..Inputs::default()
    }
}

fn params(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_specifications_example_freezes() {
    let definition = read(&inputs(CODE_CHANGE, LANES)).unwrap();
    let snapshot = freeze(&definition, &params(&[("task", "fix #1")]), &NoTexts).unwrap();
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
