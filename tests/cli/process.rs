//! `process run`: declared commands with evidence, and what is refused.

use crate::support::{Output, TestRepo, Worker, next_commands, wait_until};

const WORKFLOW: &str = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "build"
    role = "maker"
    lane = "hand"
    tree = "none"
    verify = "test -d ."
    process = { lint = ["sh -c"], build = ["true", "missing-tool"] }
"#;

fn started(workflow: &str) -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", workflow);
    repo.start("w");
    repo
}

fn holder(repo: &TestRepo) -> Worker<'_> {
    let mut worker = repo.register("maker", "hand");
    worker.claim();
    worker
}

/// `striatum process run -- ARGV` with a worker's credentials and these flags.
fn process(repo: &TestRepo, worker: &Worker<'_>, flags: &[&str], argv: &[&str]) -> Output {
    let fence = worker.fence.unwrap().to_string();
    let who = ["process", "run", "--session-id", &worker.session, "--token-file", &worker.token_file, "--json"];
    repo.striatum(&[&who[..], &["--fence", &fence], flags, &["--"], argv].concat())
}

#[test]
fn a_declared_command_runs_and_leaves_evidence_and_no_transcript() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    let ran = process(&repo, &worker, &[], &["sh", "-c", "echo said; echo CANARY-7 >&2; pwd"]).ok().value();
    assert_eq!((&ran["result"], &ran["class"], &ran["exit_code"]), (&"passed".into(), &"lint".into(), &0.into()));
    let output = ran["output"].as_str().unwrap();
    assert!(output.starts_with("said\nCANARY-7\n") && output.trim_end().ends_with("/work"), "{output}");
    let row = "SELECT kind, class, state, exit_code, output_bytes, output_hash = :none FROM execution";
    let row = repo.rows(&row.replace(":none", "''"));
    assert_eq!(row, [format!("process lint exited 0 {} 0", output.len())]);
    let left = walkdir(&repo);
    assert!(left.iter().all(|(_, bytes)| !contains(bytes, b"CANARY-7")), "a transcript was kept");
    repo.check_rows();
}

/// Every file of the store with its bytes.
fn walkdir(repo: &TestRepo) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    fn below(folder: &std::path::Path, found: &mut Vec<(std::path::PathBuf, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                below(&path, found);
            } else if let Ok(bytes) = std::fs::read(&path) {
                found.push((path, bytes));
            }
        }
    }
    let mut found = Vec::new();
    below(&repo.dir(), &mut found);
    found
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|part| part == word)
}

#[test]
fn what_a_command_came_to_is_told_by_exit_and_word() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    for (argv, exit, result) in [
        (&["true"][..], 0, "passed"),
        (&["test", "-d", "."], 0, "passed"),
        (&["sh", "-c", "exit 3"], 1, "failed"),
        (&["sh", "-c", "exit 127"], 11, "not_run"),
        (&["sh", "-c", "kill -9 $$"], 11, "not_run"),
        (&["missing-tool"], 11, "not_run"),
    ] {
        let ran = process(&repo, &worker, &[], argv).exits(exit).value();
        assert_eq!(ran["result"], result, "{ran}");
    }
    let shown = repo.rows("SELECT class, state, exit_code, signal FROM execution");
    assert_eq!(
        shown,
        [
            "build exited 0 -",
            "test exited 0 -",
            "lint exited 3 -",
            "lint exited 127 -",
            "lint exited - 9",
            "build not_run - -"
        ]
    );
}

#[test]
fn what_nobody_declared_runs_once_with_an_escape_for_exactly_it() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    let touch = ["touch", "made"];
    let refused = process(&repo, &worker, &[], &touch).refused(7, "escape_required");
    let next = next_commands(&refused);
    assert!(next[0].ends_with("--job build --escape-surface process.run --escape-action 'touch made'"), "{next:?}");
    assert_eq!(repo.count("execution"), 0);
    let mut record = vec!["decision", "record", "--outcome", "accepted", "--title", "Touch", "--rationale", "once"];
    record.extend(["--job", "build", "--escape-surface", "shell_command", "--escape-action", "touch made"]);
    record.push("--as-person");
    repo.striatum(&record).ok();
    process(&repo, &worker, &[], &["touch", "other"]).refused(7, "escape_required");
    let ran = process(&repo, &worker, &[], &touch).ok().value();
    assert_eq!(ran["class"], "d1");
    process(&repo, &worker, &[], &touch).refused(7, "escape_required");
    assert_eq!(repo.story(&["decision.", "execution.ended"]).len(), 3, "{}", repo.told());
}

#[test]
fn words_are_no_shell_line_and_a_prefix_is_whole_words() {
    let repo = started(&WORKFLOW.replace("\"sh -c\"", "\"echo safe\""));
    let worker = holder(&repo);
    let ran = process(&repo, &worker, &[], &["echo", "safe", "; touch", "$(id)", "`id`"]).ok().value();
    assert_eq!(ran["output"], "safe ; touch $(id) `id`\n");
    for argv in [&["echo"][..], &["echo", "safer"], &["/bin/echo", "safe"], &["echo safe"]] {
        process(&repo, &worker, &[], argv).refused(7, "escape_required");
    }
    process(&repo, &worker, &[], &[""]).refused(2, "usage");
}

#[test]
fn any_command_runs_where_the_job_says_so() {
    let repo = started(&WORKFLOW.replace("tree = \"none\"", "tree = \"none\"\nprocess_execution = true"));
    let worker = holder(&repo);
    assert_eq!(process(&repo, &worker, &[], &["uname"]).ok().value()["class"], "any");
}

#[test]
fn output_without_end_and_time_without_end_are_ended() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    let long = process(
        &repo,
        &worker,
        &[],
        &["sh", "-c", "i=0; while [ $i -lt 9000 ]; do echo line-$i-line; i=$((i+1)); done"],
    );
    let long = long.ok().value();
    assert_eq!((&long["truncated"], long["output"].as_str().unwrap().len() <= 65_536), (&true.into(), true));
    assert!(long["output"].as_str().unwrap().ends_with("line-8999-line\n"));
    let late = process(&repo, &worker, &["--timeout", "300ms"], &["sh", "-c", "sleep 600 & sleep 600"]).exits(11);
    assert_eq!(late.value()["result"], "not_run");
    assert_eq!(repo.rows("SELECT state FROM execution ORDER BY id DESC LIMIT 1"), ["timed_out"]);
    repo.check_nobody_left();
    process(&repo, &worker, &["--timeout", "31m"], &["true"]).refused(2, "usage");
}

#[test]
fn a_command_sees_nothing_of_the_session() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    let ran = process(&repo, &worker, &[], &["sh", "-c", "env"]).ok().value();
    let names: Vec<&str> = ran["output"].as_str().unwrap().lines().filter_map(|line| line.split('=').next()).collect();
    assert!(names.iter().all(|name| !name.starts_with("STRIATUM_") && !name.starts_with("GIT_")), "{names:?}");
    assert!(names.contains(&"TMPDIR"));
}

#[test]
fn a_stale_fence_and_somebody_elses_token_run_nothing() {
    let repo = started(WORKFLOW);
    let mut worker = holder(&repo);
    repo.start("w");
    let other = repo.register_with(&["--role", "maker", "--lane", "hand", "--run-id", "w-2"]).token_file;
    let own = std::mem::replace(&mut worker.token_file, other);
    process(&repo, &worker, &[], &["true"]).refused(7, "bad_token");
    worker.token_file = own;
    worker.fence = Some(worker.fence.unwrap() + 1);
    process(&repo, &worker, &[], &["true"]).refused(5, "stale_fence");
    assert_eq!(repo.count("execution"), 0);
}

#[test]
fn a_command_whose_caller_dies_is_lost_when_its_attempt_ends() {
    let repo = started(WORKFLOW);
    let worker = holder(&repo);
    let fence = worker.fence.unwrap().to_string();
    let words =
        ["process", "run", "--session-id", &worker.session, "--token-file", &worker.token_file, "--fence", &fence];
    let running = repo.spawn(&[&words[..], &["--", "sh", "-c", "sleep 2"]].concat());
    wait_until("it runs", || repo.count("execution WHERE state = 'running'") == 1);
    crate::support::kill(running.pid());
    let _ = running.wait();
    worker.work(&["complete"]).ok();
    assert_eq!(repo.rows("SELECT kind, state FROM execution WHERE kind = 'process'"), ["process lost"]);
    assert_eq!(repo.run_state("w-1"), "completed");
    repo.check_nobody_left();
    repo.check_sound();
}

#[test]
fn a_lane_runs_a_command_through_its_helper() {
    let workflow = WORKFLOW.replace("mode = \"human\"", "command = \"@agent\"");
    let repo = started(&workflow);
    let run = "striatum process run -- sh -c 'echo from-$((40+2))' > out || echo refused\n\
        striatum process run -- id > undeclared 2>&1 && echo ran\ncat out undeclared\ncomplete";
    repo.agent("build", run);
    repo.drive().exits(0);
    let said = repo.striatum(&["logs", "build"]).ok().stdout;
    assert!(said.contains("from-42\n") && said.contains("does not declare this command"), "{said}");
    let rows = repo.rows("SELECT class, state, exit_code FROM execution WHERE kind = 'process'");
    assert_eq!(rows, ["lint exited 0"]);
    repo.check_completed("w-1");
}
