//! What somebody tries who wants more than a constrained surface gives.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

use crate::support::{Output, TestRepo, Worker, wait_until};

const TWO: &str = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "one"
    role = "owner"
    lane = "hand"
    tree = "none"
    process = { test = ["true", "sh -c"] }
    [[jobs]]
    id = "two"
    role = "owner"
    lane = "hand"
    tree = "none"
    process = { test = ["true", "sh -c"] }
"#;

fn started() -> TestRepo {
    let repo = TestRepo::new();
    repo.workflow("w", TWO);
    repo.start("w");
    repo
}

fn holder(repo: &TestRepo) -> Worker<'_> {
    let mut worker = repo.register("owner", "hand");
    worker.claim();
    worker
}

fn process_command(repo: &TestRepo, worker: &Worker<'_>, argv: &[&str]) -> Command {
    let fence = worker.fence.unwrap().to_string();
    let who = ["process", "run", "--session-id", &worker.session, "--token-file", &worker.token_file, "--json"];
    repo.command(&[&who[..], &["--fence", &fence, "--"], argv].concat())
}

fn process(repo: &TestRepo, worker: &Worker<'_>, argv: &[&str]) -> Output {
    repo.run(&mut process_command(repo, worker, argv))
}

fn escape(repo: &TestRepo, action: &str, more: &[&str]) {
    let words = ["decision", "record", "--outcome", "accepted", "--title", "Once", "--rationale", "r", "--as-person"];
    let opens = ["--run-id", "w-1", "--escape-surface", "process.run", "--escape-action", action];
    repo.striatum(&[&words[..], &opens, more].concat()).ok();
}

#[test]
fn an_escape_for_somebody_else_opens_nothing() {
    let repo = started();
    let (one, two) = (holder(&repo), holder(&repo));
    escape(&repo, "id", &["--job", "two"]);
    escape(&repo, "id", &["--session", &two.session]);
    process(&repo, &one, &["id"]).refused(7, "escape_required");
    process(&repo, &two, &["id"]).ok();
    process(&repo, &two, &["id"]).ok();
    process(&repo, &two, &["id"]).refused(7, "escape_required");
    // Words that only look the same when they are joined.
    escape(&repo, "id -u", &[]);
    process(&repo, &one, &["id", "-u", ""]).refused(7, "escape_required");
    // A run that is over takes its escapes with it.
    repo.striatum(&["run", "cancel", "--reason", "over", "--yes"]).ok();
    assert_ne!(process(&repo, &one, &["id", "-u"]).code, 0);
    assert_eq!(repo.count("escape_act WHERE used < uses"), 1);
}

#[test]
fn the_last_use_of_an_escape_is_one_callers_however_many_try() {
    let repo = started();
    let one = holder(&repo);
    escape(&repo, "id", &["--uses", "2"]);
    let passed = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..8)
            .map(|_| {
                let (repo, mut command) = (&repo, process_command(&repo, &one, &["id"]));
                scope.spawn(move || repo.run(&mut command).code)
            })
            .collect();
        tries.into_iter().map(|one| one.join().unwrap()).filter(|code| *code == 0).count()
    });
    assert_eq!(passed, 2);
    assert_eq!(repo.rows("SELECT used, uses FROM escape_act"), ["2 2"]);
    assert_eq!(repo.count("event WHERE type = 'decision.used'"), 2);
}

#[test]
fn nobody_marks_what_somebody_else_runs() {
    let repo = started();
    let (one, two) = (holder(&repo), holder(&repo));
    let running = repo.spawn_command(process_command(&repo, &one, &["sh", "-c", "sleep 1"]));
    wait_until("it runs", || repo.count("execution WHERE state = 'running'") == 1);
    let execution: i64 = repo.one("SELECT id FROM execution", []);
    let ctx = striatum::verbs::ctx::open(Some(&repo.dir())).unwrap();
    let token = std::fs::read_to_string(&two.token_file).unwrap();
    let request = striatum::verbs::process::MarkRequest {
        who: striatum::verbs::work::hold::Credentials {
            session: two.session.parse().unwrap(),
            token: Some(token),
            fence: two.fence,
        },
        execution,
        mark: striatum::verbs::process::Mark::Ended {
            state: striatum::domain::session::ExecutionState::Exited,
            exit_code: Some(0),
            signal: None,
            output_bytes: None,
            output_sha256: None,
            detail: None,
        },
    };
    assert!(striatum::verbs::process::mark(&ctx, &request).is_err());
    running.wait().ok();
}

#[test]
fn what_a_command_leaves_behind_is_ended_with_it() {
    let repo = started();
    let one = holder(&repo);
    for script in [
        "setsid sleep 600 & exit 0",
        "(setsid sh -c 'trap \"\" TERM HUP; sleep 600' &) ; exit 0",
        "sh -c 'sleep 600 & sleep 600 &' ; exit 0",
    ] {
        process(&repo, &one, &["sh", "-c", script]).ok();
        repo.check_nobody_left();
    }
}

/// Every file below a folder that contains the words.
fn holding(folder: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.symlink_metadata().is_ok_and(|about| about.is_dir()) {
            found.extend(holding(&path, words));
        } else if path.is_file() && std::fs::read(&path).is_ok_and(|bytes| contains(&bytes, words.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn contains(bytes: &[u8], words: &[u8]) -> bool {
    bytes.windows(words.len()).any(|part| part == words)
}

const SECRET: &str = "CANARY-5f3a9c";

#[test]
fn a_secret_that_passes_through_is_nowhere_in_the_store() {
    let repo = TestRepo::new();
    let workflow = r#"
        [lanes.script]
        command = "@agent"
        env = ["SECRET_OF_MINE"]
        [[jobs]]
        id = "a"
        role = "maker"
        lane = "script"
        tree = "none"
        process = { test = ["sh -c"] }
        verify = "true"
    "#;
    repo.workflow("w", workflow);
    repo.start("w");
    repo.agent("a", "striatum process run -- sh -c 'echo $SECRET_OF_MINE; echo \"$SECRET_OF_MINE\" > \"$TMPDIR/x\"; rm \"$TMPDIR/x\"' > /dev/null 2>&1\ncomplete");
    let mut drive = repo.command(&["run", "drive"]);
    drive.env("SECRET_OF_MINE", SECRET);
    repo.run(&mut drive).ok();
    let row = repo.rows("SELECT state, exit_code, output_bytes FROM execution WHERE kind = 'process'");
    assert_eq!(row, [format!("exited 0 {}", SECRET.len() + 1)]);
    assert_eq!(holding(&repo.dir(), SECRET), Vec::<String>::new());
}

#[test]
fn a_token_stands_in_no_command_line() {
    let repo = started();
    let one = holder(&repo);
    let token = std::fs::read_to_string(&one.token_file).unwrap().trim().to_owned();
    let running = repo.spawn_command(process_command(&repo, &one, &["sh", "-c", "sleep 1"]));
    wait_until("it runs", || repo.count("execution WHERE state = 'running'") == 1);
    let seen: Vec<String> = repo.processes().into_iter().map(|found| found.words.join(" ")).collect();
    assert!(seen.iter().any(|words| words.contains("sleep 1")), "{seen:?}");
    assert!(seen.iter().all(|words| !words.contains(&token)), "{seen:?}");
    running.wait().ok();
    let kept = holding(&repo.dir(), &token);
    assert_eq!(kept.len(), 1, "the token file alone: {kept:?}");
}

/// A program under `operator exec` that says where its socket is and stays a while.
fn operated<T>(repo: &TestRepo, then: impl FnOnce(&Path) -> T) -> Option<T> {
    if !striatum::os::sandbox::is_supported() {
        return None;
    }
    let script =
        "echo \"$STRIATUM_OPERATOR_SOCKET\"; while ! test -e \"$STRIATUM_DIR/config.toml.done\"; do sleep 0.05; done";
    let running = repo.spawn(&["operator", "exec", "--", "sh", "-c", script]);
    running.wait_for_line("operator.sock");
    let socket = running.stdout().trim().to_owned();
    let done = then(Path::new(&socket));
    repo.write(".striatum/config.toml.done", "");
    running.wait().ok();
    Some(done)
}

#[test]
fn a_broken_request_harms_nobody() {
    let repo = started();
    operated(&repo, |socket| {
        for bytes in [&b""[..], b"\n", b"{}\n", b"x", &[0xff; 4096]] {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.write_all(bytes).unwrap();
            drop(stream);
        }
        // One that says nothing at all holds up nobody.
        let silent = UnixStream::connect(socket).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let mut stranger = repo.command(&["status", "--json"]);
        stranger.env("STRIATUM_OPERATOR_SOCKET", socket);
        repo.run(&mut stranger).refused(7, "capability_denied");
        drop(silent);
    });
}

#[test]
fn forty_verbs_at_once_are_run_or_refused_and_the_program_goes_on() {
    if !striatum::os::sandbox::is_supported() {
        return;
    }
    let repo = started();
    let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40; \
        do striatum run summary > \"$TMPDIR/out-$i\" 2>&1; echo $? > \"$TMPDIR/code-$i\" & done; wait; cat \"$TMPDIR\"/code-* | sort | uniq -c";
    let script = script
        .replace("; echo $? > \"$TMPDIR/code-$i\" &", " &")
        .replace("cat \"$TMPDIR\"/code-*", "grep -l 'w-1' \"$TMPDIR\"/out-*");
    let ended = repo.striatum(&["operator", "exec", "--", "sh", "-c", &script]).ok();
    assert!(ended.stdout.lines().count() >= 30, "{ended}");
}

#[test]
fn odd_words_and_places_are_taken_as_they_are() {
    if !striatum::os::sandbox::is_supported() {
        return;
    }
    let repo = started();
    let title = "two\\nlines; $(touch x) `touch x` 'quoted'";
    let script = format!(
        "striatum decision record --outcome rejected --title \"$(printf '{}')\"; echo $?\n\
         striatum decision record --outcome rejected --title \"a; \\$(touch x)\" --rationale='--as-person'; echo $?\n\
         STRIATUM_DIR=/nowhere HOME=/nowhere PATH=\"$PATH\" striatum run list | head -1\n\
         mkdir \"$TMPDIR/gone\"; cd \"$TMPDIR/gone\"; rmdir \"$TMPDIR/gone\"; striatum status > /dev/null; echo $?",
        title.replace('\'', "")
    );
    let ended = repo.striatum(&["operator", "exec", "--", "sh", "-c", &script]).ok();
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "2", "a title of two lines\n{ended}");
    assert!(lines.iter().any(|line| line.starts_with("recorded d1")), "{ended}");
    assert!(lines.iter().any(|line| line.contains("w-1")), "{ended}");
    assert_ne!(*lines.last().unwrap(), "0", "{ended}");
    assert!(!repo.file("x").exists());
}
