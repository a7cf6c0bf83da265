//! Constrained operator mode: what is shown, and what an operator needs an escape for.

use std::process::Command;

use crate::support::{Output, TestRepo, next_commands};

/// A job that fails once, and one that a person's lane works.
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
    role = "operator"
    lane = "hand"
    tree = "none"
"#;

/// A held agent of the tests writes its notes outside the repository.
fn workflow(repo: &TestRepo, text: &str) {
    let notes = repo.root().join("agent");
    std::fs::create_dir_all(&notes).unwrap();
    repo.workflow("w", &text.replace("@notes", notes.to_str().unwrap()));
}

fn constrained() -> TestRepo {
    let repo = TestRepo::new();
    workflow(&repo, WORKFLOW);
    repo.agent("a.1", "fail 'no luck'");
    repo.start("w");
    let _ = repo.drive();
    assert_eq!(repo.job_state("a"), "failed", "{}", repo.told());
    repo
}

const RETRY: [&str; 5] = ["run", "retry-job", "a", "--reason", "again"];

/// A person lets an act pass.
#[track_caller]
fn escape(repo: &TestRepo, surface: &str, action: &str, more: &[&str]) -> Output {
    let words = ["decision", "record", "--outcome", "accepted", "--title", "Once", "--rationale", "why not"];
    let opens = ["--escape-surface", surface, "--escape-action", action, "--as-person"];
    repo.json(&[&words[..], &opens, more].concat()).ok()
}

#[test]
fn a_constrained_run_says_so_everywhere() {
    let repo = constrained();
    for verb in [&["status"][..], &["run", "summary"], &["dashboard", "--once"]] {
        let shown = repo.striatum(verb).ok();
        assert!(shown.stdout.contains("constrained: the operator acts through mediated verbs ("), "{shown}");
    }
    let mut hand = repo.register("operator", "hand");
    let file = hand.claim()["packet"].as_str().unwrap().to_owned();
    let packet: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(packet["operator_mode"]["mode"], "constrained", "{packet}");
    assert_eq!(packet["operator_mode"]["enforcement"], "advisory");
}

#[test]
fn what_lies_beyond_the_control_plane_needs_an_escape_once_for_each_use() {
    let repo = constrained();
    repo.striatum(&["run", "pause"]).ok();
    repo.striatum(&["run", "resume"]).ok();
    let refused = repo.json(&RETRY).refused(7, "escape_required");
    assert_eq!(
        next_commands(&refused),
        ["striatum decision record --outcome accepted --title TITLE --rationale WHY --run-id w-1 \
            --escape-surface admin:run-retry-job --escape-action 'run retry-job a --reason again'"]
    );
    escape(&repo, "admin:run-retry-job", "run retry-job a --reason again", &[]);
    repo.json(&["run", "retry-job", "a", "--reason", "other words"]).refused(7, "escape_required");
    repo.json(&RETRY).ok();
    assert_eq!(repo.rows("SELECT used, uses FROM escape_act"), ["1 1"]);
    let used: Vec<_> = repo.events().into_iter().filter(|event| event.kind == "decision.used").collect();
    assert_eq!((used.len(), &used[0].body["left"]), (1, &0.into()));
    repo.json(&RETRY).refused(7, "escape_required");
    repo.check_sound();
}

#[test]
fn an_escape_is_for_its_run_its_surface_and_its_time() {
    let repo = constrained();
    escape(&repo, "admin:gc", "run retry-job a --reason again", &[]);
    repo.json(&RETRY).refused(7, "escape_required");
    escape(&repo, "admin:run-retry-job", "run retry-job a --reason again", &["--expires", "10m"]);
    repo.clock(0, 11 * 60_000, None);
    repo.json(&RETRY).refused(7, "escape_required");
    repo.clock(0, 0, Some("another-boot"));
    repo.json(&RETRY).refused(7, "escape_required");
    assert_eq!(repo.count("escape_act WHERE used > 0"), 0);
}

#[test]
fn to_look_at_what_is_left_needs_none() {
    let repo = constrained();
    repo.striatum(&["gc"]).ok();
    repo.json(&["gc", "--yes"]).refused(7, "escape_required");
    repo.json(&["lane", "pause", "script", "--reason", "x"]).refused(7, "escape_required");
    repo.json(&["hook", "install"]).refused(7, "escape_required");
}

/// A command as the operator types it whose session works constrained.
fn of_operator(repo: &TestRepo, session: &str, words: &[&str]) -> Command {
    let mut command = repo.command(&[words, &["--json"]].concat());
    command.env("STRIATUM_SESSION", session);
    command
}

#[test]
fn an_operator_binds_themselves_for_one_session() {
    let repo = TestRepo::new();
    workflow(&repo, &WORKFLOW.replace("operator_mode = \"constrained\"", ""));
    repo.start("w");
    let hand = repo.register_with(&["--role", "operator", "--lane", "hand", "--constrained"]);
    let list = repo.striatum(&["session", "list"]).ok();
    assert!(list.stdout.contains("operator/hand active constrained"), "{list}");
    let asked = |words: &[&str]| repo.run(&mut of_operator(&repo, &hand.session, words));
    asked(&["run", "pause"]).ok();
    asked(&["status"]).ok();
    asked(&["run", "amend", "--set", "budget.launches=9", "--reason", "more"]).refused(7, "escape_required");
    asked(&["answer", "a", "yes", "--as-person"]).refused(7, "capability_denied");
    let record = ["decision", "record", "--outcome", "accepted", "--title", "x", "--rationale", "y", "--as-person"];
    let opens = ["--escape-surface", "admin:gc", "--escape-action", "gc --yes"];
    asked(&[&record[..], &opens].concat()).refused(7, "capability_denied");
    // Somebody else is not bound.
    repo.striatum(&["run", "amend", "--set", "budget.launches=9", "--reason", "more"]).ok();
}

#[test]
fn a_session_that_is_not_constrained_stays_a_lane() {
    let repo = TestRepo::new();
    workflow(&repo, &WORKFLOW.replace("operator_mode = \"constrained\"", ""));
    repo.start("w");
    let hand = repo.register("operator", "hand");
    repo.run(&mut of_operator(&repo, &hand.session, &["run", "pause"])).refused(7, "capability_denied");
}

/// A whole session of a constrained operator: what it may and what it may not, in one run.
const FIX: &str = r#"
    operator_mode = "constrained"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "fix"
    role = "owner"
    lane = "hand"
    writes = ["src/"]
    verify = "grep -q fixed src/main.txt"
"#;

/// The operator's side, as a program would type it; the escape comes from a person meanwhile.
const OPERATOR: &str = r#"
    set -u
    says() { "$@" > /dev/null 2>> "$TMPDIR/said"; echo "$? $*"; }
    striatum work claim --json > "$TMPDIR/claim"
    export STRIATUM_FENCE=$(sed 's/.*"fence":\([0-9]*\).*/\1/' "$TMPDIR/claim")
    echo fixed > "$TMPDIR/new"
    says striatum repo write --path src/main.txt --content-file "$TMPDIR/new"
    says striatum repo write --path README.md --content-file "$TMPDIR/new"
    says striatum process run -- grep -q fixed src/main.txt
    says striatum process run -- touch src/made
    until striatum process run -- touch src/made 2> /dev/null; do sleep 0.05; done
    says striatum process run -- touch src/made
    says striatum work complete --summary fixed
    cat "$TMPDIR/said" >&2
"#;

fn fixture() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.workflow("w", FIX);
    repo.start("w");
    repo
}

/// Runs the operator's side, lets the one act pass once, and looks at what came of it.
#[track_caller]
fn operated(repo: &TestRepo, command: Command) {
    let running = repo.spawn_command(command);
    running.wait_for_line("7 striatum process run -- touch src/made");
    escape(repo, "process.run", "touch src/made", &["--job", "fix"]);
    let ended = running.wait().ok();
    let steps: Vec<&str> = ended.stdout.lines().map(|line| line.split(" --content").next().unwrap()).collect();
    assert_eq!(
        steps,
        [
            "0 striatum repo write --path src/main.txt",
            "6 striatum repo write --path README.md",
            "0 striatum process run -- grep -q fixed src/main.txt",
            "7 striatum process run -- touch src/made",
            "7 striatum process run -- touch src/made",
            "0 striatum work complete --summary fixed",
        ],
        "{ended}\n{}",
        repo.told()
    );
    assert!(ended.stderr.contains("path_outside_scope: README.md"), "{ended}");
    assert_eq!(repo.on_branch("w-1", "src/main.txt"), "fixed");
    assert_eq!(repo.said(&["ls-tree", "-r", "--name-only", "striatum/w-1", "src/made"]), "src/made");
    assert_eq!(repo.on_branch("w-1", "README.md"), "read me");
    let rows = repo.rows("SELECT class, state, exit_code FROM execution WHERE kind = 'process'");
    assert_eq!(rows, ["test exited 0", "d1 exited 0"]);
    assert_eq!(
        repo.story(&["repo.", "decision."]),
        ["repo.written fix", "decision.recorded fix", "decision.used fix"],
        "{}",
        repo.told()
    );
    repo.striatum(&["audit", "verify", "--run-id", "w-1"]).ok();
    repo.check_cleared("w-1");
    repo.check_untouched();
}

#[test]
fn a_constrained_operator_works_from_end_to_end() {
    let repo = fixture();
    let hand = repo.register_with(&["--role", "owner", "--lane", "hand", "--constrained"]);
    let own = tempfile::tempdir().unwrap();
    let bin = own.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(crate::support::STRIATUM, bin.join("striatum")).unwrap();
    let mut command = repo.command_of("sh", &["-c", OPERATOR]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("TMPDIR", own.path());
    command.env("STRIATUM_SESSION", &hand.session).env("STRIATUM_TOKEN_FILE", &hand.token_file);
    operated(&repo, command);
}

#[test]
fn a_constrained_operator_works_from_end_to_end_inside_the_sandbox() {
    if !striatum::os::sandbox::is_supported() {
        return;
    }
    let repo = fixture();
    operated(&repo, repo.command(&["operator", "exec", "--role", "owner", "--", "sh", "-c", OPERATOR]));
}
