//! Workflows of the daemon-based system, read and written anew.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::super::{Inputs, Source, read};
use super::*;

const OLD: &str = r#"{
  "schema_version": "striatum.workflow.v1",
  "workflow_id": "rename-flag", "workflow_version": "1", "name": "Rename a flag",
  "branch": {"mode": "auto"},
  "lanes": {
    "a": {"adapter": "process", "display_model": "one", "command": ["agent", "${X}"], "adapter_timeout_seconds": 600},
    "b": {"adapter": "process", "display_model": "two", "command": ["judge"], "capabilities": ["review"]}
  },
  "roles": {"author": {"definition_path": ".striatum/roles/author.md", "summary": "writes"}, "reviewer": {}},
  "parallelism": {"mode": "declared", "max_active_jobs": 2, "require_disjoint_write_scopes": true},
  "recovery_policy": {"max_requeues": 1, "max_transfers": 3},
  "jobs": [
    {"id": "change", "type": "build", "title": "Change it", "role_id": "author", "lane_id": "a",
     "objective": "Rename --foo \"to\" --bar", "task_prompt": {"path": "prompts/change.md"},
     "write_scope": {"mode": "repo_write", "repo_write": true, "allowed_paths": ["src", "docs/**"], "forbidden_paths": [".striatum"]},
     "expected_artifacts": [{"logical_name": "summary", "kind": "patch_summary", "path": "docs/notes.md", "required": true}]},
    {"id": "review", "type": "review", "role_id": "reviewer", "lane_id": "b", "reviewer_context_policy": "fresh",
     "review_posture": "security", "max_attempts": 2}
  ],
  "edges": [{"from": "change", "to": "review", "on": "completed"}],
  "cycles": [{"from": "review", "to": "change", "on_verdict": "needs_revision", "max_iterations": 3}]
}"#;

fn told(text: &str) -> String {
    let workflow = Source { name: "old.json".into(), text: text.into() };
    match read(&Inputs { workflow, git: true, ..Inputs::default() }) {
        Ok(definition) => Faults(definition.warnings).to_string(),
        Err(faults) => faults.to_string(),
    }
}

#[test]
fn what_has_the_same_meaning_is_carried_over() {
    insta::assert_snapshot!(import("old.json", OLD).unwrap().text, @r#"
    schema = "striatum.workflow/1"
    id = "rename-flag"
    title = "Rename a flag"
    require_distinct_models = true
    parallelism = { max_active_jobs = 2 }
    budget = { requeues = 1 }

    [lanes.a]
    command = ["agent", "$${X}"]
    model = "one"
    timeout = "600s"

    [lanes.b]
    command = ["judge"]
    model = "two"

    [roles.author]
    instructions = "roles/author.md"

    [[jobs]]
    id = "change"
    type = "build"
    title = "Change it"
    role = "author"
    lane = "a"
    objective = 'Rename --foo "to" --bar'
    prompt = "prompts/change.md"
    writes = ["src", "docs"]
    forbids = [".striatum"]
    produces = [{ name = "summary", path = "docs/notes.md", kind = "patch_summary", required = true }]

    [[jobs]]
    id = "review"
    role = "reviewer"
    lane = "b"
    reviews = "change"
    revisions = 3
    max_strikes = 2
    "#);
}

#[test]
fn the_same_verbs_take_it_and_name_what_has_no_meaning() {
    insta::assert_snapshot!(told(OLD), @r"
    old.json: warning: `workflow_version` has no meaning here
      help: it is left out
    old.json: warning: `branch` has no meaning here
      help: it is left out
    old.json: warning: `recovery_policy.max_transfers` has no meaning here
      help: it is left out
    old.json: warning: `lanes.b.capabilities` has no meaning here
      help: it is left out
    old.json: warning: `roles.author.summary` has no meaning here
      help: it is left out
    old.json: warning: `jobs.change.task_prompt.path` is looked up below .striatum/
      help: put `prompts/change.md` at `.striatum/prompts/change.md`
    old.json: warning: `jobs.review.review_posture` has no meaning here
      help: it is left out
    ");
}

#[test]
fn faults_of_an_imported_file_name_the_key_instead_of_a_line() {
    let unbounded = OLD.replace("\"max_iterations\": 3", "\"max_iterations\": 0").replace("\"two\"", "\"one\"");
    insta::assert_snapshot!(told(&unbounded), @r"
    old.json: warning: `workflow_version` has no meaning here
      help: it is left out
    old.json: warning: `branch` has no meaning here
      help: it is left out
    old.json: warning: `recovery_policy.max_transfers` has no meaning here
      help: it is left out
    old.json: warning: `lanes.b.capabilities` has no meaning here
      help: it is left out
    old.json: warning: `roles.author.summary` has no meaning here
      help: it is left out
    old.json: warning: `jobs.change.task_prompt.path` is looked up below .striatum/
      help: put `prompts/change.md` at `.striatum/prompts/change.md`
    old.json: warning: `jobs.review.review_posture` has no meaning here
      help: it is left out
    old.json: jobs.review.reviews: `change` and its review `review` declare the same model, one
      help: give one of them a lane with another model; `require_distinct_models` asks for it
    old.json: jobs.review.revisions: `revisions` is -1, and must be bounded
      help: a whole number from 0 to 100
    ");
    insta::assert_snapshot!(told("{\"schema_version\": \"x\"}"), @r#"
    old.json: schema_version: `x` is no schema of a workflow that can be imported
      help: write TOML with schema = "striatum.workflow/1"; striatum.workflow.v1 and v1.1 are translated
    "#);
    insta::assert_snapshot!(told("{,"), @"old.json:1:2: not JSON: key must be a string at line 1 column 2");
}
