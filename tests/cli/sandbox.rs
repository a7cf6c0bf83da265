//! Lanes that the kernel holds to their folders: what they may write they write, everything else is refused before it
//! is there, and what holds them is said.

use crate::support::{DRAFT, TestRepo};

/// Whether this kernel can hold anybody; where it can't, nothing here can be shown.
#[allow(clippy::print_stderr, reason = "what could not be shown is said")]
fn can_hold(what: &str) -> bool {
    let can = striatum::os::sandbox::is_supported();
    if !can {
        eprintln!("not run: {what}: this kernel has no Landlock of ABI 3");
    }
    can
}

/// The draft in a lane that the kernel holds; only the agent's own notes lie elsewhere.
fn held(repo: &TestRepo) -> String {
    let notes = repo.root().join("agent");
    let keys = format!("command = \"@agent\"\nsandbox = \"scope\"\nwrite_paths = [\"{}\"]", notes.display());
    DRAFT.replace("command = \"@agent\"", &keys)
}

/// The draft in a sandboxed lane, told to do something and then to complete.
fn sandboxed(script: &str, keys: &str) -> TestRepo {
    let repo = TestRepo::with_code();
    repo.agent("draft", &format!("{script}\ncomplete"));
    let driven = repo.drive_through(&format!("{}max_strikes = 1\n{keys}\n", held(&repo)));
    assert!([0, 3].contains(&driven.code), "{driven}\n{}", repo.told());
    repo.check_nobody_left();
    repo.check_repository();
    repo
}

/// What the attempt wrote to its own log.
fn output(repo: &TestRepo) -> String {
    repo.striatum(&["logs", "draft"]).ok().stdout
}

#[test]
fn a_lane_writes_in_its_scope_and_its_scratch() {
    if !can_hold("writing in scope") {
        return;
    }
    let repo =
        sandboxed("echo x > src/x; mkdir src/deep; echo y > src/deep/y; echo t > \"$TMPDIR/t\"; : > /dev/null", "");
    assert_eq!(repo.attempts(), ["draft.1 sealed"]);
    assert_eq!(repo.on_branch("w-1", "src/deep/y"), "y");
    let told = repo.json(&["status", "--run-id", "w-1"]).ok().value();
    assert_eq!(told["enforcement"], "kernel (directories)");
    let held = "SELECT json_extract(body, '$.enforcement') FROM event WHERE type = 'lane.confined'";
    assert_eq!(repo.rows(held), ["kernel (directories)"]);
}

#[test]
fn everything_outside_is_refused_by_the_kernel() {
    if !can_hold("refusals outside the scope") {
        return;
    }
    let root = "root=\"${STRIATUM_DIR%/.striatum}\"";
    for (what, script) in [
        ("write", "echo x > \"$root/stray\""),
        ("append", "echo x >> \"$root/README.md\""),
        ("truncate", "true > \"$root/README.md\""),
        ("rename", "mv \"$root/README.md\" \"$root/other.md\""),
        ("rename into", "echo x > \"$TMPDIR/x\"; mv \"$TMPDIR/x\" \"$root/stray\""),
        ("link", "ln \"$root/README.md\" \"$root/stray\""),
        ("link out", "echo x > src/y; ln src/y \"$root/stray\""),
        ("symlink", "ln -s /etc \"$root/stray\""),
        ("unlink", "rm -f \"$root/README.md\""),
        ("mkdir", "mkdir \"$root/stray\""),
        ("fifo", "mkfifo \"$root/stray\""),
        ("store", "echo x >> \"$STRIATUM_DIR/striatum.db\""),
        ("hook", "echo x > \"$root/.git/hooks/pre-commit\""),
        ("git settings", "git -C \"$root\" config core.pager x"),
        ("git commit", "git -C \"$root\" -c user.name=a -c user.email=a@b commit --quiet --allow-empty -m x"),
        ("beside the scope", "echo x > README.md"),
        ("home", "echo x > \"$HOME/stray\""),
    ] {
        let repo =
            sandboxed(&format!("{root}; if {{ {script}; }} 2>/dev/null; then echo HELD-NOT; fi; echo x > src/x"), "");
        assert!(!output(&repo).contains("HELD-NOT"), "{what}: it was not refused");
        assert_eq!(repo.attempts(), ["draft.1 sealed"], "{what}");
        assert_eq!(repo.read("README.md"), "read me\n", "{what}");
        assert!(!repo.file("stray").exists() && !repo.file("stray").is_symlink(), "{what}");
        assert_eq!(repo.said(&["status", "--porcelain", "--", ".", ":!.striatum"]), "", "{what}");
        repo.check_sound();
    }
}

#[test]
fn what_the_agent_starts_is_held_as_well() {
    if !can_hold("children of a lane") {
        return;
    }
    let repo =
        sandboxed("setsid sh -c 'echo x > \"${STRIATUM_DIR%/.striatum}/stray\"' 2>/dev/null; echo x > src/x", "");
    assert_eq!(repo.attempts(), ["draft.1 sealed"]);
    assert!(!repo.file("stray").exists());
}

#[test]
fn a_link_in_the_tree_opens_nothing_to_the_next_attempt() {
    if !can_hold("links left by an attempt") {
        return;
    }
    let repo = TestRepo::with_code();
    let outside = repo.root().join("outside");
    std::fs::create_dir(&outside).unwrap();
    repo.agent("draft.1", &format!("rm -r src; ln -s {} src; fail 'again'", outside.display()));
    repo.agent("draft.2", "echo x > src/x 2>/dev/null; complete");
    repo.drive_through(&format!("{}max_strikes = 2\n", held(&repo))).exits(3);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "{}", repo.told());
}

#[test]
fn builds_get_the_folders_that_they_need() {
    if !can_hold("build folders") {
        return;
    }
    let repo = sandboxed(
        "echo x > src/x; echo o > target/o && echo built",
        "[tree]\ncache = [\"target\"]\ndiscard = [\"target/\"]\n",
    );
    assert!(output(&repo).contains("built"), "{}", output(&repo));
    assert_eq!(repo.attempts(), ["draft.1 sealed"]);
}

#[test]
fn a_git_directory_that_an_agent_puts_in_its_tree_commands_nothing_in_verification() {
    if !can_hold("verification after a held agent") {
        return;
    }
    let repo = TestRepo::with_code();
    let stray = repo.root().join("stray");
    repo.agent(
        "draft",
        &format!(
            "printf '#!/bin/sh\\necho x > {}\\n' > src/watch; chmod +x src/watch; rm .git; git init --quiet .\n\
             git config core.fsmonitor \"$PWD/src/watch\"; complete",
            stray.display()
        ),
    );
    let whole = held(&repo).replace("[\"src/\"]", "[\"**\"]");
    repo.drive_through(&format!("{whole}verify = [[\"git\", \"status\"]]\n")).ok();
    assert!(!stray.exists(), "verification obeyed the agent's git settings");
    assert_eq!(repo.attempts(), ["draft.1 sealed"]);
    repo.check_sound();
}
