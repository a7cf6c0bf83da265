//! `run prepare` and `run start`: a workflow becomes a run, and its first jobs are offered.

use crate::support::TestRepo;

/// A task with a parameter, its review and a point where a person decides.
const WORK: &str = r#"
    [params]
    task = { required = true }
    tone = { default = "plain" }
    [lanes.script]
    command = "@agent"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    tree = "none"
    objective = "${params.task}, in a ${params.tone} tone"
    verify = [["true"]]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "script"
    tree = "none"
    [[jobs]]
    id = "look"
    type = "checkpoint"
    needs = ["review"]
"#;

fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", WORK);
    repo.trust();
    repo
}

#[test]
fn preparing_and_starting_read_like_this() {
    let repo = repo();
    insta::assert_snapshot!(repo.striatum(&["run", "prepare", "-w", "w", "--task", "Write a line"]).ok(), @r"
    $ striatum run prepare -w w --task 'Write a line'
    prepared w-1 (3 jobs, sha256:<sha256>)
    base no commit yet
    runs lane script: sh <root>/agent/agent.sh
    runs verify draft: true
    you will be needed: 1 time (gate before look)
    next: striatum run start --run-id w-1   # enqueue its first jobs
    ");
    insta::assert_snapshot!(repo.striatum(&["run", "start"]).ok(), @r"
    $ striatum run start
    w-1 started
    next: striatum run drive --run-id w-1   # take it to done
    ");
    insta::assert_snapshot!(repo.striatum(&["run", "start", "--run-id", "w-1"]).ok(), @r"
    $ striatum run start --run-id w-1
    w-1 was started before
    next: striatum run drive --run-id w-1   # take it to done
    ");
    insta::assert_snapshot!(repo.story(&["run", "job", "session"]).join("\n"), @r"
    run.prepared
    run.started
    job.queued draft
    ");
    assert_eq!(
        repo.rows("SELECT name, state, unmet, attempt FROM job"),
        ["draft queued 0 1", "review waiting 1 0", "look waiting 1 0"]
    );
}

#[test]
fn what_was_prepared_is_frozen_with_its_values() {
    let repo = repo();
    repo.json(&["run", "prepare", "-w", "w", "--task", "Say ${params.tone} twice", "--param", "tone=warm"]).ok();
    repo.workflow("w", &WORK.replace("in a", "in quite another"));
    let objective = "SELECT json_extract(spec, '$.objective') FROM job WHERE name = 'draft'";
    assert!(repo.rows(objective)[0].ends_with("twice, in a warm tone"));
    let body: String = repo.one("SELECT body FROM snapshot", ());
    assert!(!body.contains("quite another"));
    let hash: String = repo.one("SELECT hash FROM snapshot", ());
    assert_eq!(hash, format!("sha256:{}", striatum::domain::event::sha256_hex(body.as_bytes())));
}

#[test]
fn an_objective_reaches_the_agent_with_its_values_and_no_value_is_expanded_again() {
    let repo = TestRepo::new();
    repo.workflow("w", &WORK.replace("in a", "as ${job}, in a").replace("verify = [[\"true\"]]", ""));
    repo.trust();
    repo.agent("draft", "striatum work show --prompt > seen.txt; complete");
    repo.agent("review", "striatum work show --prompt > seen.txt; verdict accept");
    repo.json(&["run", "prepare", "-w", "w", "--task", "Say ${params.tone} and ${job} and $${x}"]).ok();
    repo.striatum(&["run", "start"]).ok();
    repo.drive().exits(4);
    for folder in ["s1/draft.1", "s2/review.1"] {
        let seen = repo.read(&format!(".striatum/scratch/{folder}/work/seen.txt"));
        assert!(seen.contains("Say ${params.tone} and ${job} and $${x}, as draft, in a plain tone"), "{seen}");
    }
}

#[test]
fn numbers_count_the_runs_of_a_workflow_and_are_never_given_twice() {
    let repo = repo();
    repo.workflow("other", WORK);
    repo.trust();
    let prepare = |workflow: &str| {
        let report = repo.json(&["run", "prepare", "-w", workflow, "--task", "x"]).ok().value();
        report["run"].as_str().unwrap().to_owned()
    };
    assert_eq!(prepare("w"), "w-1");
    repo.json(&["run", "cancel", "--run-id", "w-1", "--reason", "no", "--yes"]).ok();
    assert_eq!([prepare("w"), prepare("other"), prepare("w")], ["w-2", "other-1", "w-3"]);

    let all: Vec<_> = (0..8).map(|_| repo.spawn(&["run", "prepare", "-w", "w", "--task", "x", "--json"])).collect();
    let mut names: Vec<String> =
        all.into_iter().map(|one| one.wait().ok().value()["run"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 8);
}

#[test]
fn what_is_missing_or_unknown_is_named_before_anything_is_made() {
    let repo = repo();
    insta::assert_snapshot!(repo.striatum(&["run", "prepare", "-w", "v"]).exits(2), @r"
    $ striatum run prepare -w v
    --- stderr
    error: there is no workflow v
      <root>/repo/.striatum/workflows/v.toml: No such file or directory (os error 2)
    hint: workflows here: w
    --- exit 2
    ");
    insta::assert_snapshot!(repo.striatum(&["run", "prepare", "-w", "w"]).exits(8), @r#"
    $ striatum run prepare -w w
    --- stderr
    error: 1 fault in the workflow or its configuration
      .striatum/workflows/w.toml:5:5: parameter `task` has no value
        help: give it with --task ".."
    --- exit 8
    "#);
    insta::assert_snapshot!(repo.striatum(&["run", "prepare", "-w", "w", "--task", "x", "--param", "tome=warm"]).exits(8), @r"
    $ striatum run prepare -w w --task x --param tome=warm
    --- stderr
    error: 1 fault in the workflow or its configuration
      .striatum/workflows/w.toml: the workflow has no parameter `tome`
        help: did you mean `tone`?
    --- exit 8
    ");
    repo.striatum(&["run", "prepare", "-w", "w", "--param", "tone"]).exits(2).lines();
    assert!(!repo.db().exists() || repo.count("run") == 0);
}

#[test]
fn a_run_is_started_by_one_of_many_and_its_first_jobs_are_offered_once() {
    let repo = repo();
    repo.json(&["run", "prepare", "-w", "w", "--task", "x"]).ok();
    let all: Vec<_> = (0..8).map(|_| repo.spawn(&["run", "start", "--run-id", "w-1", "--json"])).collect();
    let fresh = all.into_iter().map(|one| one.wait().ok().value()).filter(|report| report["already"] == false).count();
    assert_eq!(fresh, 1);
    assert_eq!(repo.count("message"), 1);
    assert_eq!(repo.count("event WHERE type = 'run.started'"), 1);
}

#[test]
fn which_run_is_started_must_be_clear() {
    let repo = repo();
    repo.json(&["run", "start"]).refused(2, "not_found");
    for _ in 0..2 {
        repo.json(&["run", "prepare", "-w", "w", "--task", "x"]).ok();
    }
    let error = repo.json(&["run", "start"]).refused(2, "ambiguous");
    assert!(
        error["message"].as_str().unwrap().contains("w-1, w-2")
            || error["message"].as_str().unwrap().contains("w-2, w-1"),
        "{error}"
    );
    repo.json(&["run", "start", "--run-id", "w-3"]).refused(2, "not_found");
}
