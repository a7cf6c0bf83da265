//! `hook pre-tool-use`: what an agent's client is told before it uses a tool, in a lane and elsewhere.

use crate::support::{DRAFT, Output, TestRepo};

/// What the hook says to these words, outside of every lane.
fn told(repo: &TestRepo, announced: &str) -> Output {
    let file = repo.root().join("announced");
    std::fs::write(&file, announced).unwrap();
    repo.run(repo.command(&["hook", "pre-tool-use"]).stdin(std::fs::File::open(file).unwrap()))
}

fn call(tool: &str, key: &str, path: &str) -> String {
    format!(r#"{{"hook_event_name":"PreToolUse","tool_name":"{tool}","tool_input":{{"{key}":"{path}"}}}}"#)
}

/// Asks in a lane: `CODE WORDS` for each announcement.
fn asked_in_lane(workflow: &str, announced: &[String]) -> Vec<String> {
    let repo = TestRepo::with_code();
    let asks: String = announced
        .iter()
        .enumerate()
        .map(|(number, words)| {
            let file = repo.root().join(format!("agent/call-{number}"));
            let said = repo.root().join(format!("agent/said-{number}"));
            std::fs::write(&file, words).unwrap();
            format!("striatum hook pre-tool-use < '{}' 2> '{}'; echo $? >> '{1}'\n", file.display(), said.display())
        })
        .collect();
    repo.agent("draft", &format!("{asks}echo x > src/x; complete"));
    repo.drive_through(workflow).ok();
    let read = |number| std::fs::read_to_string(repo.root().join(format!("agent/said-{number}"))).unwrap();
    (0..announced.len())
        .map(|number| {
            let text = read(number);
            let mut lines: Vec<&str> = text.lines().collect();
            let code = lines.pop().unwrap();
            format!("{code} {}", lines.join(" | "))
        })
        .collect()
}

#[test]
fn a_lane_is_told_before_it_writes_what_the_seal_would_refuse() {
    let patch = "*** Begin Patch\\n*** Update File: src/a\\n*** Delete File: README.md\\n*** End Patch";
    let calls = [
        call("Write", "file_path", "src/x"),
        call("Edit", "file_path", "README.md"),
        call("Write", "file_path", "/etc/passwd"),
        call("Write", "file_path", "../../../../README.md"),
        call("Write", "file_path", "src/.git/hooks/x"),
        call("apply_patch", "command", patch),
        call("write_file", "file_path", "src/y").replace("PreToolUse", "BeforeTool"),
        call("Bash", "command", "rm -rf /"),
        call("Read", "file_path", "/etc/passwd"),
        call("FancyWriter", "where", "src/x"),
        "not json".to_owned(),
        "{}".to_owned(),
    ];
    let said = asked_in_lane(DRAFT, &calls);
    let codes: Vec<&str> = said.iter().map(|line| &line[..1]).collect();
    assert_eq!(codes, ["0", "2", "2", "2", "2", "2", "0", "0", "0", "2", "2", "2"], "{said:#?}");
    assert!(said[1].contains("path_outside_scope: README.md") && said[1].contains("its scope: src/"), "{}", said[1]);
    assert!(said[2].contains("path_traversal"), "{}", said[2]);
    assert!(said[4].contains("protected_path"), "{}", said[4]);
    assert!(said[5].contains("README.md") && !said[5].contains("src/a"), "{}", said[5]);
    assert!(said[9].contains("does not say what it writes"), "{}", said[9]);
}

#[test]
fn a_held_lane_is_told_the_same() {
    if !striatum::os::sandbox::is_supported() {
        return;
    }
    let held =
        DRAFT.replace("command = \"@agent\"", "command = \"@agent\"\nsandbox = \"scope\"\nwrite_paths = [\"ROOT\"]");
    let repo = TestRepo::with_code();
    let held = held.replace("ROOT", &repo.root().join("agent").display().to_string());
    repo.agent(
        "draft",
        "printf '%s' '{\"tool_name\":\"Write\",\"tool_input\":{\"file_path\":\"README.md\"}}' | striatum hook pre-tool-use\n\
         note \"said $?\"\necho x > src/x; complete",
    );
    repo.drive_through(&held).ok();
    assert!(repo.notes().iter().any(|note| note.word == "said 2"), "{:?}", repo.notes());
}

#[test]
fn a_lane_without_a_tree_writes_in_its_own_folders() {
    let text = DRAFT.replace("writes = [\"src/\"]", "tree = \"none\"");
    let repo = TestRepo::with_code();
    repo.agent(
        "draft",
        "for path in notes.txt \"$STRIATUM_SCRATCH/x\" \"$STRIATUM_RESULT\" ../../../../../x /etc/passwd; do\n\
         printf '{\"tool_name\":\"Write\",\"tool_input\":{\"file_path\":\"%s\"}}' \"$path\" | striatum hook pre-tool-use\n\
         note \"said $?\"; done; complete",
    );
    repo.drive_through(&text).ok();
    let said: Vec<String> =
        repo.notes().into_iter().map(|note| note.word).filter(|word| word.starts_with("said")).collect();
    assert_eq!(said, ["said 0", "said 0", "said 0", "said 2", "said 2"]);
}

#[test]
fn a_path_is_read_from_where_the_client_stands() {
    let text = DRAFT.replace("writes = [\"src/\"]", "tree = \"none\"");
    let repo = TestRepo::with_code();
    repo.agent(
        "draft",
        "for place in /etc \"$STRIATUM_TREE\" \"$STRIATUM_SCRATCH\" /nowhere; do\n\
         printf '{\"tool_name\":\"Write\",\"cwd\":\"%s\",\"tool_input\":{\"file_path\":\"x\"}}' \"$place\" |\
         striatum hook pre-tool-use\n\
         note \"said $?\"; done; complete",
    );
    repo.drive_through(&text).ok();
    let said: Vec<String> =
        repo.notes().into_iter().map(|note| note.word).filter(|word| word.starts_with("said")).collect();
    assert_eq!(said, ["said 2", "said 0", "said 0", "said 2"]);
}

#[test]
fn elsewhere_it_is_nobodys_obstacle() {
    let repo = TestRepo::new();
    for words in [call("Write", "file_path", "/etc/passwd"), "not json".to_owned(), call("FancyWriter", "a", "b")] {
        assert_eq!(told(&repo, &words).code, 0, "{words}");
    }
    repo.striatum(&["init"]).ok();
    assert_eq!(told(&repo, &call("Write", "file_path", "src/a")).code, 0);
    std::fs::write(repo.db(), "no database").unwrap();
    let said = told(&repo, &call("Write", "file_path", "src/a"));
    assert_eq!(said.code, 0, "{said}");
    assert!(said.stderr.contains("not checked"), "{said}");
}

const BY_HAND: &str = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "fix"
    role = "owner"
    lane = "hand"
    writes = ["src/"]
"#;

#[test]
fn a_constrained_session_changes_nothing_but_through_verbs() {
    let repo = TestRepo::with_code();
    repo.workflow("w", BY_HAND);
    repo.start("w");
    let mut hand = repo.register_with(&["--role", "owner", "--lane", "hand", "--constrained"]);
    let tree = hand.claim()["cwd"].as_str().unwrap().to_owned();
    let told = |announced: &str| {
        let file = repo.root().join("announced");
        std::fs::write(&file, announced).unwrap();
        let mut hook = repo.command(&["hook", "pre-tool-use"]);
        hook.stdin(std::fs::File::open(file).unwrap()).env("STRIATUM_SESSION", &hand.session);
        repo.run(&mut hook)
    };
    for (announced, code, said) in [
        (call("Write", "file_path", &format!("{tree}/src/x")), 2, "in scope: "),
        (call("Write", "file_path", &format!("{tree}/README.md")), 2, "path_outside_scope: "),
        (call("Edit", "file_path", repo.file("README.md").to_str().unwrap()), 2, "foreign_write: "),
        (call("Bash", "command", "cargo test"), 2, "striatum process run"),
        (call("Bash", "command", "striatum status; rm x"), 2, "one plain `striatum` command"),
        (call("Bash", "command", "striatum status"), 0, ""),
        (call("run_shell_command", "command", "make"), 2, "constrained"),
        (call("Read", "file_path", "/etc/passwd"), 0, ""),
        (call("FancyWriter", "where", "x"), 2, "does not say what it writes"),
        ("no json".to_owned(), 2, "can't be read"),
    ] {
        let output = told(&announced).exits(code);
        assert!(output.stderr.contains(said), "{announced}\n{output}");
        assert!(
            code == 0 || !said.starts_with("in scope") || output.stderr.contains("striatum repo write"),
            "{output}"
        );
    }
    // A session that is over binds nobody.
    repo.striatum(&["session", "close", "--session-id", &hand.session, "--reason", "over"]).ok();
    told(&call("Write", "file_path", "x")).ok();
}

#[test]
fn a_program_under_operator_exec_is_told_the_same() {
    if !striatum::os::sandbox::is_supported() {
        return;
    }
    let repo = TestRepo::with_code();
    repo.workflow("w", BY_HAND);
    repo.start("w");
    let script = |path: &str| {
        let announced = call("Write", "file_path", path).replace('"', "\\\"");
        format!("printf '%s' \"{announced}\" | striatum hook pre-tool-use")
    };
    let under = |script: &str| repo.striatum(&["operator", "exec", "--", "sh", "-c", script]);
    under(&script("README.md")).exits(2);
    under(&script("$TMPDIR/mine")).ok();
    // Whoever could judge is gone: that is no yes.
    let gone =
        format!("STRIATUM_OPERATOR_SOCKET=/nowhere; export STRIATUM_OPERATOR_SOCKET; {}", script("$TMPDIR/mine"));
    under(&gone).exits(2);
}
