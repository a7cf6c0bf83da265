//! Whole files in; definitions, snapshots and faults out.
#![expect(clippy::unwrap_used, reason = "tests")]

mod derived;
mod faults;
mod frozen;

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

const ONE_LANE: &str = "[lanes.sh]\ncommand = [\"true\"]\n";

fn flow(rest: &str) -> String {
    format!("schema = \"striatum.workflow/1\"\nid = \"w\"\n{rest}")
}
