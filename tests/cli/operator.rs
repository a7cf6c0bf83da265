//! `operator exec`: a program that the kernel holds, whose verbs its parent runs.

use crate::support::{Output, TestRepo, kill, wait_until};

const WORKFLOW: &str = r#"
    operator_mode = "constrained"
    [lanes.script]
    command = "@agent"
    write_paths = ["@notes"]
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "a"
    role = "maker"
    lane = "script"
    tree = "none"
    max_strikes = 1
    [[jobs]]
    id = "b"
    role = "owner"
    lane = "hand"
    tree = "none"
    process = { build = ["echo built"] }
    produces = [{ name = "text", path = "out.txt" }]
"#;

/// A held agent of the tests writes its notes outside the repository.
fn workflow(repo: &TestRepo, text: &str) {
    let notes = repo.root().join("agent");
    std::fs::create_dir_all(&notes).unwrap();
    repo.workflow("w", &text.replace("@notes", notes.to_str().unwrap()));
}

fn started() -> TestRepo {
    let repo = TestRepo::new();
    workflow(&repo, WORKFLOW);
    repo.start("w");
    repo
}

/// Whether this kernel can hold anybody; where it can't, nothing here can be shown.
#[allow(clippy::print_stderr, reason = "what could not be shown is said")]
fn can_hold() -> bool {
    let can = striatum::os::sandbox::is_supported();
    if !can {
        eprintln!("not run: operator exec: this kernel has no Landlock of ABI 3");
    }
    can
}

/// A shell script as the operator's program.
fn under(repo: &TestRepo, flags: &[&str], script: &str) -> Output {
    repo.striatum(&[&["operator", "exec"], flags, &["--", "sh", "-c", script]].concat())
}

#[test]
fn a_programs_verbs_are_run_for_it_and_its_exit_is_the_verbs() {
    if !can_hold() {
        return;
    }
    let repo = started();
    let script = "striatum status | head -1; striatum run drive; echo drove $?; striatum run nonsense; echo $?; exit 7";
    let ended = under(&repo, &[], script).exits(7);
    assert!(ended.stderr.starts_with("operator exec: kernel (directories)\n"), "{ended}");
    assert!(ended.stdout.contains("drove 4\n"), "{ended}\n{}", repo.told());
    assert!(ended.stdout.ends_with("2\n") || ended.stdout.ends_with("7\n"), "{ended}");
    assert_eq!(repo.job_state("a"), "completed");
    repo.check_nobody_left();
}

#[test]
fn inside_nothing_can_be_written_but_its_own_folder() {
    if !can_hold() {
        return;
    }
    let repo = TestRepo::with_code();
    workflow(&repo, WORKFLOW);
    repo.start("w");
    for (what, script) in [
        ("a file of the checkout", "echo x > src/new"),
        ("a file that is there", "echo x >> README.md"),
        ("git's hooks", "echo x > .git/hooks/pre-commit"),
        ("git's settings", "git config core.fsmonitor /tmp/x"),
        ("a commit", "git -c user.name=a -c user.email=a@b commit --allow-empty -m x"),
        ("the store", "echo x >> .striatum/striatum.db"),
        ("the store's folder", "mkdir .striatum/x"),
        ("a workflow", "rm .striatum/workflows/w.toml"),
        ("home", "echo x > \"$HOME/x\""),
        ("a cut", ": > .striatum/striatum.db-wal"),
        ("a name", "ln .striatum/config.toml \"$TMPDIR/c\" 2>/dev/null && exit 0; mv src \"$TMPDIR/\""),
    ] {
        let head = repo.git(&["rev-parse", "HEAD"]).stdout;
        let ended = under(&repo, &[], script);
        assert_ne!(ended.code, 0, "{what} was written\n{ended}");
        assert_eq!(repo.git(&["status", "--porcelain", "--", ":!.striatum"]).stdout, b"", "{what}");
        assert_eq!(repo.git(&["rev-parse", "HEAD"]).stdout, head, "{what}");
    }
    under(&repo, &[], "echo x > \"$TMPDIR/mine\" && cat \"$TMPDIR/mine\" > /dev/null").ok();
    repo.check_rows();
}

#[test]
fn a_verb_without_the_parent_can_not_write_the_store() {
    if !can_hold() {
        return;
    }
    let repo = started();
    let script = "env -u STRIATUM_OPERATOR_SOCKET -u STRIATUM_OPERATED striatum run pause --json";
    let ended = under(&repo, &[], script);
    assert_ne!(ended.code, 0, "{ended}");
    assert_eq!(repo.rows("SELECT paused_at FROM run"), ["-"]);
    let script = "sqlite3 .striatum/striatum.db 'DELETE FROM job' || python3 -c 'import sqlite3; \
        c = sqlite3.connect(\".striatum/striatum.db\"); c.execute(\"DELETE FROM need\"); c.execute(\"DELETE FROM job\"); c.commit()'";
    assert_ne!(under(&repo, &[], script).code, 0);
    assert_eq!(repo.count("job"), 2);
}

#[test]
fn what_is_a_persons_stays_a_persons_whatever_is_typed() {
    if !can_hold() {
        return;
    }
    let repo = started();
    for words in [
        "answer a yes --as-person",
        "gate approve a --as-person",
        "trust --as-person",
        "decision record --outcome accepted --title x --rationale y --escape-surface admin:gc --escape-action 'gc --yes' --as-person",
        "take b --as-person",
        "run land --as-person",
        "quickstart",
        "init",
        "status --dir /tmp",
        "man --output .",
        "workflow generate review",
        "operator exec -- true",
        "completion bash",
    ] {
        // Pages for people are this program's own, and write where it may.
        if words.starts_with("man") || words.starts_with("completion") {
            let _ = under(&repo, &[], &format!("striatum {words} > /dev/null"));
            assert!(!repo.file("striatum.1").exists());
            continue;
        }
        let ended = under(&repo, &[], &format!("striatum {words} --json"));
        assert_eq!(ended.code, 7, "{words}\n{ended}");
    }
    assert_eq!(repo.count("decision"), 0);
}

#[test]
fn what_lies_beyond_the_control_plane_needs_an_escape_here_too() {
    if !can_hold() {
        return;
    }
    let repo = started();
    repo.agent("a.1", "fail 'no luck'");
    let _ = repo.drive();
    let retry = "striatum run retry-job a --reason again";
    assert_eq!(under(&repo, &[], retry).code, 7);
    let words =
        ["decision", "record", "--outcome", "accepted", "--title", "Once", "--rationale", "luck", "--as-person"];
    let opens = ["--escape-surface", "admin:run-retry-job", "--escape-action", "run retry-job a --reason again"];
    repo.striatum(&[&words[..], &opens].concat()).ok();
    under(&repo, &[], retry).ok();
    assert_eq!(under(&repo, &[], retry).code, 7);
}

#[test]
fn a_session_is_made_for_it_and_ends_with_it() {
    if !can_hold() {
        return;
    }
    let repo = started();
    let script = "set -e\n\
        striatum work claim --json > \"$TMPDIR/claim\"\n\
        export STRIATUM_FENCE=$(sed 's/.*\"fence\":\\([0-9]*\\).*/\\1/' \"$TMPDIR/claim\")\n\
        cat $(sed 's/.*\"packet\":\"\\([^\"]*\\)\".*/\\1/' \"$TMPDIR/claim\") | grep -A2 operator_mode\n\
        striatum process run -- echo built well\n\
        striatum process run -- touch stray || echo refused $?\n\
        cwd=$(sed 's/.*\"cwd\":\"\\([^\"]*\\)\".*/\\1/' \"$TMPDIR/claim\")\n\
        (echo x > \"$cwd/out.txt\") || echo held";
    let ended = under(&repo, &["--role", "owner"], script).ok();
    assert!(ended.stderr.starts_with("operator exec: kernel (directories); session s1\n"), "{ended}");
    assert!(ended.stdout.contains("\"enforcement\": \"kernel (directories)\""), "{ended}");
    assert!(ended.stdout.contains("built well\n") && ended.stdout.contains("refused 7\n"), "{ended}");
    assert!(ended.stdout.ends_with("held\n"), "{ended}");
    assert_eq!(repo.rows("SELECT id, state, constrained FROM session"), ["1 closed 1"]);
    assert_eq!(repo.job_state("b"), "queued");
    repo.check_rows();
}

#[test]
fn a_verb_whose_caller_hangs_up_is_interrupted() {
    if !can_hold() {
        return;
    }
    let repo = started();
    repo.agent("a.1", "hold a\ncomplete");
    let script = "striatum run drive & sleep 1; kill -9 $!; wait; exit 0";
    let running = repo.spawn(&["operator", "exec", "--", "sh", "-c", script]);
    wait_until("the job runs", || repo.job_state("a") == "running");
    running.wait().ok();
    assert!(repo.processes().iter().all(|found| !found.words.contains(&"drive".to_owned())), "{:?}", repo.processes());
    for found in repo.processes() {
        kill(found.pid);
    }
}

#[test]
fn a_strangers_connection_is_refused() {
    if !can_hold() {
        return;
    }
    let repo = started();
    let script = "echo \"$STRIATUM_OPERATOR_SOCKET\"; sleep 2";
    let running = repo.spawn(&["operator", "exec", "--", "sh", "-c", script]);
    let mut socket = String::new();
    wait_until("it says where", || {
        socket = running.stdout().lines().find(|line| line.contains("operator.sock")).unwrap_or_default().to_owned();
        !socket.is_empty()
    });
    let mut stranger = repo.command(&["run", "pause", "--json"]);
    stranger.env("STRIATUM_OPERATOR_SOCKET", &socket);
    repo.run(&mut stranger).refused(7, "capability_denied");
    assert_eq!(repo.rows("SELECT paused_at FROM run"), ["-"]);
    running.wait().ok();
}

#[test]
fn folders_of_the_repository_can_not_be_opened() {
    let repo = started();
    let root = repo.path();
    for path in
        [root.to_str().unwrap(), root.parent().unwrap().to_str().unwrap(), "relative", "~/", "@nothing", "~/not-there"]
    {
        let refused = repo.json(&["operator", "exec", "--write-path", path, "--", "true"]);
        assert_eq!(refused.code, 2, "{path}\n{refused}");
    }
    let gone = repo.json(&["operator", "exec", "--", "no-such-program-here"]);
    assert_eq!(gone.code, 125, "{gone}");
}
