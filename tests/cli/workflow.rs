//! `striatum workflow ...` and `striatum config ...` in a folder of their own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// A project with an empty configuration, a private home, and nothing of the caller's environment.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().unwrap() };
        project.write(".striatum/config.toml", "");
        std::fs::create_dir_all(project.path("home")).unwrap();
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, words: &[&str]) {
        let mut git = Command::new("git");
        git.args(words).current_dir(self.path("")).env_clear().env("HOME", self.path("home"));
        assert!(git.env("PATH", std::env::var_os("PATH").unwrap()).output().unwrap().status.success(), "git {words:?}");
    }

    fn striatum(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_striatum"));
        command.args(words).current_dir(self.path("")).env_clear();
        command.env("HOME", self.path("home")).env("PATH", std::env::var_os("PATH").unwrap());
        command.output().unwrap()
    }

    /// Exit code, standard output and standard error, as a person would see them.
    fn seen(&self, words: &[&str]) -> String {
        let output = self.striatum(words);
        let text =
            |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&self.path("").display().to_string(), "[project]/");
        let mut seen = format!("exit {}\n{}", output.status.code().unwrap(), text(&output.stdout));
        if !output.stderr.is_empty() {
            seen.push_str("--- stderr\n");
            seen.push_str(&text(&output.stderr));
        }
        seen
    }
}

const BROKEN: &str =
    "schema = 'striatum.workflow/1'\nid = 'broken'\n[[jobs]]\nid = 'a'\nroel = 'author'\nneeds = ['b']\n";
const LANE: &str = "[lanes.sh]\ncommand = 'true'\n";

#[test]
fn every_fault_of_workflow_and_configuration_is_told_at_once() {
    let project = Project::new();
    project.write(".striatum/config.toml", "[lanes.sh]\ncommand = 'a | b'\ntimeout = 5\n");
    project.write(".striatum/workflows/broken.toml", BROKEN);
    insta::assert_snapshot!(project.seen(&["workflow", "validate", "broken"]), @r#"
    exit 8
    --- stderr
    error: 4 faults in the workflow or its configuration
      .striatum/workflows/broken.toml:5:1: unknown key `roel`
        help: did you mean `role`?
      .striatum/workflows/broken.toml:6:10: job `a` needs the unknown job `b`
        help: there are none
      .striatum/config.toml:2:11: `|` needs a shell, and none is used
        help: write ["sh", "-c", "a | b"]
      .striatum/config.toml:3:11: `timeout` must be a duration with a unit
        help: write `timeout = "5s"`; units are ms, s, m, h, d
    "#);
    insta::assert_snapshot!(project.seen(&["workflow", "validate", "broken", "--json"]), @r#"
    exit 8
    {"schema":"striatum.error/1","code":"invalid_workflow","kind":"invalid","exit":8,"message":"4 faults in the workflow or its configuration","causes":[".striatum/workflows/broken.toml:5:1: unknown key `roel`\n  help: did you mean `role`?",".striatum/workflows/broken.toml:6:10: job `a` needs the unknown job `b`\n  help: there are none",".striatum/config.toml:2:11: `|` needs a shell, and none is used\n  help: write [\"sh\", \"-c\", \"a | b\"]",".striatum/config.toml:3:11: `timeout` must be a duration with a unit\n  help: write `timeout = \"5s\"`; units are ms, s, m, h, d"],"hints":[],"next":[]}
    "#);
}

#[test]
fn what_is_generated_is_valid_and_written_once() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    for kind in ["minimal", "review", "panel", "code-change"] {
        let file = format!(".striatum/workflows/{kind}.toml");
        assert!(project.striatum(&["workflow", "generate", kind, "-o", &file]).status.success());
        let text = project.striatum(&["workflow", "generate", kind]).stdout;
        assert_eq!(std::fs::read(project.path(&file)).unwrap(), text, "{kind}");
    }
    insta::assert_snapshot!(project.seen(&["workflow", "validate"]), @r"
    exit 0
    .striatum/workflows/code-change.toml: valid, 3 jobs
    .striatum/workflows/minimal.toml: valid, 1 job
    .striatum/workflows/panel.toml: valid, 4 jobs
    .striatum/workflows/review.toml: valid, 2 jobs
    next: striatum run go -w code-change --task ..   # prepare, start and drive a run of it
    ");
    insta::assert_snapshot!(project.seen(&["workflow", "generate", "panel", "-o", ".striatum/workflows/panel.toml"]), @r"
    exit 2
    --- stderr
    error: .striatum/workflows/panel.toml exists already
    hint: name another file, or move it
    ");
    insta::assert_snapshot!(project.seen(&["workflow", "generate", "nonsense"]), @r"
    exit 2
    --- stderr
    error: invalid value 'nonsense' for '<KIND>'
      [possible values: minimal, review, panel, code-change]

    For more information, try '--help'.
    ");
}

#[test]
fn generated_script_workflows_run_to_done() {
    let project = Project::new();
    for (kind, launches) in [("minimal", 1), ("review", 4), ("panel", 4)] {
        let file = format!(".striatum/workflows/{kind}.toml");
        assert!(project.striatum(&["workflow", "generate", kind, "-o", &file]).status.success());
        let run = format!("{kind}-1");
        for words in [&["run", "prepare", "-w", kind][..], &["run", "start", "--run-id", &run]] {
            let output = project.striatum(words);
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        }
        let driven = project.seen(&["run", "drive", "--run-id", &run]);
        assert!(driven.contains(&format!("run {run} -> completed")), "{driven}");
        // The first draft of `review` is sent back once.
        assert_eq!(driven.matches("launched ").count(), launches, "{driven}");
    }
}

#[test]
fn a_workflow_is_shown_and_drawn() {
    let project = Project::new();
    let panel = project.striatum(&["workflow", "generate", "panel"]).stdout;
    project.write("panel.toml", &String::from_utf8(panel).unwrap());
    insta::assert_snapshot!(project.seen(&["workflow", "show", "panel.toml"]), @r#"
    exit 0
    panel: A draft and three reviews
    panel.toml

    1  draft    generic  author/writer
    2  length   review   reviewer/checker  <- draft
       ending   review   reviewer/checker  <- draft
       content  review   reviewer/checker  <- draft

    parameters
      task  default "Keep it short, and end with a full stop."  what to write
    "#);
    insta::assert_snapshot!(project.seen(&["workflow", "graph", "./panel.toml", "--format", "dot"]), @r#"
    exit 0
    digraph run {
        node [shape=box];
        n0 [label="draft\ngeneric author/writer"];
        n1 [label="length\nreview reviewer/checker"];
        n2 [label="ending\nreview reviewer/checker"];
        n3 [label="content\nreview reviewer/checker"];
        n0 -> n1;
        n0 -> n2;
        n0 -> n3;
        n1 -> n0 [style=dashed, label="revise", constraint=false];
        n2 -> n0 [style=dashed, label="revise", constraint=false];
        n3 -> n0 [style=dashed, label="revise", constraint=false];
    }
    "#);
    let resolved = project.striatum(&["workflow", "show", "panel.toml", "--resolved", "--json"]).stdout;
    let resolved: serde_json::Value = serde_json::from_slice(&resolved).unwrap();
    assert_eq!(resolved["resolved"]["jobs"][0]["quorum"], 2);
    assert_eq!(resolved["resolved"]["run"]["roles"]["reviewer"]["context"], "fresh");
}

#[test]
fn an_unknown_workflow_is_told_with_what_there_is() {
    let project = Project::new();
    insta::assert_snapshot!(project.seen(&["workflow", "validate"]), @r"
    exit 2
    --- stderr
    error: no workflow stands in [project]/.striatum/workflows
    next: striatum workflow generate review --output .striatum/workflows/review.toml   # write a first one
    ");
    project.write(".striatum/workflows/broken.toml", BROKEN);
    insta::assert_snapshot!(project.seen(&["workflow", "graph", "borken"]), @r"
    exit 2
    --- stderr
    error: there is no workflow borken
      [project]/.striatum/workflows/borken.toml: No such file or directory (os error 2)
    hint: workflows here: broken
    ");
}

#[test]
fn an_old_workflow_is_translated_and_its_rest_is_named() {
    let project = Project::new();
    let old = r#"{"schema_version": "striatum.workflow.v1", "workflow_id": "old", "branch": {},
        "lanes": {"a": {"command": ["true"]}}, "jobs": [{"id": "one", "role_id": "author", "objective": "do it"}]}"#;
    project.write("old.json", old);
    insta::assert_snapshot!(project.seen(&["workflow", "import", "old.json"]), @r#"
    exit 0
    schema = "striatum.workflow/1"
    id = "old"
    require_distinct_models = true

    [lanes.a]
    command = ["true"]

    [[jobs]]
    id = "one"
    role = "author"
    objective = "do it"
    --- stderr
    old.json: warning: `branch` has no meaning here
      help: it is left out
    "#);
    project.write(".striatum/workflows/old.toml", old);
    insta::assert_snapshot!(project.seen(&["workflow", "validate", "old"]), @r"
    exit 0
    .striatum/workflows/old.toml: valid, 1 job
    .striatum/workflows/old.toml: warning: `branch` has no meaning here
      help: it is left out
    next: striatum run go -w old   # prepare, start and drive a run of it
    ");
}

#[test]
fn what_the_repository_alone_can_tell_is_told() {
    let project = Project::new();
    project.git(&["init", "-q"]);
    project.write("src/main.rs", "");
    project.git(&["add", "src"]);
    let flow =
        "schema = 'striatum.workflow/1'\nid = 'w'\n[[jobs]]\nid = 'a'\nrole = 'author'\nwrites = ['src/', 'scr/']\n";
    project.write(".striatum/workflows/w.toml", flow);
    project.write(".striatum/config.toml", LANE);
    insta::assert_snapshot!(project.seen(&["workflow", "validate", "w"]), @r"
    exit 0
    .striatum/workflows/w.toml: valid, 1 job
    .striatum/workflows/w.toml:6:1: warning: `scr/` matches no tracked file
      help: fine if the job makes it; a bare folder means everything below
    next: striatum run go -w w   # prepare, start and drive a run of it
    ");
    let inside = project.path("cache").display().to_string();
    project.write(".striatum/config.toml", &format!("{LANE}write_paths = ['~/.cache', '{inside}']\n"));
    let seen = project.seen(&["workflow", "validate", "w"]);
    // The private home lies in the project too.
    assert!(
        seen.starts_with("exit 8") && seen.contains("`~/.cache` reaches") && seen.contains("which no lane may write")
    );
    assert_eq!(seen.matches("which no lane may write").count(), 2, "{seen}");
}

#[test]
fn settings_tell_their_origin() {
    let project = Project::new();
    project.write(".striatum/config.toml", "[limits]\ngrace = '2s'\n[lanes.sh]\ncommand = 'true'\n");
    project.write("home/.config/striatum/config.toml", "[limits]\ngrace = '1s'\n[lanes.sh]\ntimeout = '1m'\n");
    insta::assert_snapshot!(project.seen(&["config", "show", "--origin", "--set"]), @r#"
    exit 0
    lanes.sh.command = ["true"]  # .striatum/config.toml:4:1
    lanes.sh.timeout = "1m"      # home/.config/striatum/config.toml:4:1
    limits.grace = "1s"          # home/.config/striatum/config.toml:2:1
    "#);
    let all = project.striatum(&["config", "show"]).stdout;
    let all = String::from_utf8(all).unwrap();
    assert!(all.contains("limits.poll = \"250ms\"\n") && all.contains("lanes.sh.max_sessions = 4\n"), "{all}");
    project.write(".striatum/config.toml", "[limit]\n");
    insta::assert_snapshot!(project.seen(&["config", "show"]), @r"
    exit 8
    --- stderr
    error: 1 fault in the configuration
      .striatum/config.toml:1:2: unknown key `limit`
        help: did you mean `limits`?
    ");
}

#[test]
fn each_document_has_a_schema() {
    let project = Project::new();
    for (document, title) in
        [("workflow", "a workflow file"), ("config", "config.toml"), ("result", "striatum.result/1")]
    {
        let schema = project.striatum(&["config", "schema", document]).stdout;
        let schema: serde_json::Value = serde_json::from_slice(&schema).unwrap();
        assert_eq!(schema["title"], title);
    }
}

#[test]
fn looking_at_workflows_makes_no_database() {
    let project = Project::new();
    project.write(".striatum/config.toml", LANE);
    for words in [["workflow", "validate"], ["config", "show"], ["config", "schema"]] {
        project.striatum(&words);
    }
    assert!(!Path::new(&project.path(".striatum/striatum.db")).exists());
}
