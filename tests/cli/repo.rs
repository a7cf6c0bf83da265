//! `repo write`, `repo patch-preview`, `repo patch-apply`.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};

use crate::support::{Output, TestRepo, Worker, next_commands};

const BY_HAND: &str = r#"
    [lanes.hand]
    mode = "human"
    [[jobs]]
    id = "fix"
    role = "owner"
    lane = "hand"
    writes = ["src/"]
    forbids = ["src/secret/"]
"#;

/// A job in somebody's hands, and its tree.
struct Held<'a> {
    repo: &'a TestRepo,
    worker: Worker<'a>,
    tree: PathBuf,
}

fn repository() -> TestRepo {
    let repo = TestRepo::with_code();
    repo.workflow("w", BY_HAND);
    repo.start("w");
    repo
}

impl Held<'_> {
    fn of(repo: &TestRepo) -> Held<'_> {
        let mut worker = repo.register("owner", "hand");
        let tree = PathBuf::from(worker.claim()["cwd"].as_str().unwrap());
        Held { repo, worker, tree }
    }

    /// `striatum repo WORDS` with the credentials, and this on standard input.
    fn repo(&self, words: &[&str], input: impl AsRef<[u8]>) -> Output {
        let file = self.repo.root().join("input");
        std::fs::write(&file, input).unwrap();
        let fence = self.worker.fence.unwrap().to_string();
        let who = ["--session-id", &self.worker.session, "--token-file", &self.worker.token_file, "--fence", &fence];
        let mut command = self.repo.command(&[&["repo"], words, &who, &["--json"]].concat());
        command.stdin(Stdio::from(std::fs::File::open(file).unwrap()));
        self.repo.run(&mut command)
    }

    fn write(&self, path: &str, text: &str) -> Output {
        self.repo(&["write", "--path", path], text)
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.tree.join(path)).unwrap_or_default()
    }

    /// Shows a patch and applies it with the token that was told.
    fn apply(&self, patch: &str) -> Output {
        let shown = self.repo(&["patch-preview"], patch);
        let token = shown.value()["token"].as_str().unwrap_or("none").to_owned();
        self.repo(&["patch-apply", "--token", &token], patch)
    }

    /// A person lets an act pass once.
    fn let_pass(&self, surface: &str, action: &str) {
        let words = ["decision", "record", "--outcome", "accepted", "--title", "Once", "--rationale", "because"];
        let opens = ["--job", "fix", "--escape-surface", surface, "--escape-action", action, "--as-person"];
        self.repo.striatum(&[&words[..], &opens].concat()).ok();
    }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Everything below a folder but git's own, by path with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.file_name().unwrap() == ".git" {
            continue;
        }
        if path.symlink_metadata().unwrap().is_dir() {
            found.extend(contents(&path));
        } else {
            let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

#[test]
fn a_file_in_scope_is_written_whole_told_and_sealed() {
    let repo = repository();
    let held = Held::of(&repo);
    let made = held.write("src/deep/new.txt", "one\n").ok().value();
    assert_eq!((&made["before"], &made["bytes"]), (&serde_json::Value::Null, &4.into()));
    let changed = held.write("src/deep/new.txt", "two\n").ok().value();
    assert_eq!(changed["before"], sha256("one\n"));
    let again = held.write("src/deep/new.txt", "two\n").ok().value();
    assert_eq!(again["already"], true);
    let absolute = held.tree.join("src/main.txt");
    held.write(absolute.to_str().unwrap(), "new\n").ok();
    assert_eq!((held.text("src/deep/new.txt"), held.text("src/main.txt")), ("two\n".into(), "new\n".into()));
    let told: Vec<_> = repo.events().into_iter().filter(|event| event.kind == "repo.written").collect();
    assert_eq!(told.len(), 3);
    assert_eq!((&told[1].body["before"], &told[1].body["after"]), (&sha256("one\n").into(), &sha256("two\n").into()));
    held.worker.work(&["complete"]).ok();
    assert_eq!(repo.on_branch("w-1", "src/deep/new.txt"), "two");
    repo.check_cleared("w-1");
}

#[test]
fn what_is_out_of_scope_is_refused_before_anything_is_touched() {
    let repo = repository();
    let held = Held::of(&repo);
    std::fs::create_dir_all(held.tree.join("src/folder")).unwrap();
    std::os::unix::fs::symlink("/tmp", held.tree.join("src/out")).unwrap();
    std::os::unix::fs::symlink("../README.md", held.tree.join("src/link")).unwrap();
    std::os::unix::fs::symlink("/proc/self/fd", held.tree.join("src/fd")).unwrap();
    std::fs::write(held.tree.join("src/orig"), "x").unwrap();
    std::fs::hard_link(held.tree.join("src/orig"), held.tree.join("src/twin")).unwrap();
    nix::unistd::mkfifo(&held.tree.join("src/pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::create_dir_all(held.tree.join("src/vendor/.git")).unwrap();
    let before = contents(&held.tree);
    for (path, word) in [
        ("README.md", "path_outside_scope"),
        ("src/secret/key", "path_forbidden"),
        ("src/../README.md", "path_traversal"),
        ("../x", "path_traversal"),
        ("/etc/passwd", "path_traversal"),
        ("./src/x", "path_traversal"),
        ("src\\x", "path_traversal"),
        ("src/", "path_traversal"),
        ("", "path_traversal"),
        (".git", "protected_path"),
        (".git/hooks/pre-commit", "protected_path"),
        ("src/.git/config", "protected_path"),
        ("src/.GIT/config", "protected_path"),
        ("src/.gitattributes", "protected_path"),
        ("src/.claude/settings.json", "protected_path"),
        (".striatum/config.toml", "protected_path"),
        ("src/out/x", "symlink_refused"),
        ("src/link", "symlink_refused"),
        ("src/fd/3", "symlink_refused"),
        ("src/twin", "hard_link_refused"),
        ("src/pipe", "mode_refused"),
        ("src/folder", "mode_refused"),
        ("src/main.txt/x", "mode_refused"),
        ("src/vendor/x", "submodule_refused"),
        ("src/MAIN.txt", "case_collision"),
        ("SRC/main.txt", "case_collision"),
    ] {
        let refused = held.write(path, "x");
        assert_eq!(refused.code, 6, "{path}\n{refused}");
        assert_eq!(refused.value()["code"], word, "{path}\n{refused}");
    }
    assert_eq!(contents(&held.tree), before);
    assert_eq!(repo.count("event WHERE type LIKE 'repo.%'"), 0);
}

#[test]
fn the_form_in_which_letters_are_put_together_makes_no_second_file() {
    let repo = repository();
    let held = Held::of(&repo);
    held.write("src/caf\u{e9}.txt", "x").ok();
    let refused = held.write("src/cafe\u{301}.txt", "y");
    assert_eq!(refused.value()["code"], "case_collision", "{refused}");
}

#[test]
fn what_the_caller_did_not_expect_is_not_replaced() {
    let repo = repository();
    let held = Held::of(&repo);
    let write = |expected: &str, path: &str| held.repo(&["write", "--path", path, "--expect-sha256", expected], "x");
    write(&sha256("other"), "src/main.txt").refused(6, "stale_base");
    write("absent", "src/main.txt").refused(6, "stale_base");
    write(&sha256("x"), "src/new").refused(6, "stale_base");
    write("absent", "src/new").ok();
    write(&sha256("one\ntwo\nthree\n"), "src/main.txt").ok();
}

#[test]
fn who_does_not_hold_the_job_writes_nothing() {
    let repo = repository();
    let mut held = Held::of(&repo);
    repo.start("w");
    let other = repo.register_with(&["--role", "owner", "--lane", "hand", "--run-id", "w-2"]).token_file;
    let own = std::mem::replace(&mut held.worker.token_file, other);
    held.write("src/x", "x").refused(7, "bad_token");
    held.worker.token_file = own;
    held.worker.fence = held.worker.fence.map(|fence| fence + 1);
    held.write("src/x", "x").refused(5, "stale_fence");
    held.worker.fence = held.worker.fence.map(|fence| fence - 1);
    held.repo(&["write", "--path", "src/x"], b"\xff\xfe").refused(2, "usage");
    held.repo(&["write", "--path", "src/x"], "x".repeat((1 << 20) + 1)).refused(6, "too_large");
    repo.striatum(&["session", "close", "--session-id", &held.worker.session, "--reason", "x"]).ok();
    held.write("src/x", "x").refused(5, "session_ended");
    assert!(!held.tree.join("src/x").exists());
}

#[test]
fn a_job_without_a_tree_has_nothing_to_write() {
    let repo = TestRepo::with_code();
    repo.workflow("w", &BY_HAND.replace("writes = [\"src/\"]\n    forbids = [\"src/secret/\"]", "tree = \"none\""));
    repo.start("w");
    let held = Held::of(&repo);
    held.write("src/x", "x").refused(6, "worktree_required");
}

#[test]
fn an_escape_lets_one_write_pass_and_the_seal_takes_exactly_it() {
    let repo = repository();
    let held = Held::of(&repo);
    let refused = held.write("README.md", "new\n").refused(6, "path_outside_scope");
    let next = next_commands(&refused);
    assert!(
        next.iter().any(|next| next.ends_with("--escape-surface repo.write --escape-action README.md")),
        "{next:?}"
    );
    held.let_pass("repo.write", "README.md");
    held.write("OTHER.md", "new\n").refused(6, "path_outside_scope");
    assert_eq!(held.write("README.md", "new\n").ok().value()["escape"], "d1");
    held.write("README.md", "newer\n").refused(6, "path_outside_scope");
    repo.striatum(&["scope-check", "--job", "fix"]).ok();
    // Changed by hand afterwards it is out of scope again.
    std::fs::write(held.tree.join("README.md"), "else\n").unwrap();
    repo.striatum(&["scope-check", "--job", "fix"]).exits(6);
    std::fs::write(held.tree.join("README.md"), "new\n").unwrap();
    held.worker.work(&["complete"]).ok();
    assert_eq!(repo.on_branch("w-1", "README.md"), "new");
    repo.check_cleared("w-1");
}

#[test]
fn no_escape_opens_what_is_gits_a_way_out_or_a_link() {
    let repo = repository();
    let held = Held::of(&repo);
    std::os::unix::fs::symlink("/tmp", held.tree.join("src/out")).unwrap();
    for (path, word) in
        [(".git/config", "protected_path"), ("../x", "path_traversal"), ("src/out/x", "symlink_refused")]
    {
        held.let_pass("repo.write", path);
        assert_eq!(held.write(path, "x").value()["code"], word);
    }
    assert_eq!(repo.count("escape_act WHERE used > 0"), 0);
    // What is merely protected is opened by its own name.
    held.let_pass("repo.write", "src/.gitattributes");
    held.write("src/.gitattributes", "* -text\n").ok();
}

/// A patch of one file in git's words.
fn change(path: &str, from: &str, to: &str) -> String {
    format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,3 +1,3 @@\n-{from}\n+{to}\n two\n three\n")
}

fn adding(path: &str, line: &str) -> String {
    format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{line}\n")
}

const REMOVING: &str = "diff --git a/src/main.txt b/src/main.txt\ndeleted file mode 100644\n--- a/src/main.txt\n\
    +++ /dev/null\n@@ -1,3 +0,0 @@\n-one\n-two\n-three\n";

#[test]
fn a_patch_is_shown_and_then_applied_exactly() {
    let repo = repository();
    let held = Held::of(&repo);
    let patch = format!("{}{}", change("src/main.txt", "one", "ONE"), adding("src/a/new.txt", "fresh"));
    let shown = held.repo(&["patch-preview"], &patch).ok().value();
    assert_eq!(shown["violations"], serde_json::json!([]));
    let files: Vec<String> = shown["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| format!("{} {}", file["change"].as_str().unwrap(), file["path"].as_str().unwrap()))
        .collect();
    assert_eq!(files, ["added src/a/new.txt", "changed src/main.txt"]);
    assert_eq!(held.text("src/main.txt"), "one\ntwo\nthree\n");
    let token = shown["token"].as_str().unwrap();
    held.repo(&["patch-apply", "--token", token], &patch).ok();
    assert_eq!((held.text("src/main.txt"), held.text("src/a/new.txt")), ("ONE\ntwo\nthree\n".into(), "fresh\n".into()));
    // The same again does not fit any more.
    held.repo(&["patch-apply", "--token", token], &patch).refused(8, "invalid_patch");
    let told: Vec<_> = repo.events().into_iter().filter(|event| event.kind == "repo.patched").collect();
    assert_eq!(told[0].body["files"][1]["before"], sha256("one\ntwo\nthree\n"));
    assert_eq!(std::fs::read_dir(format!("{}.drafts", held.tree.display())).unwrap().count(), 1, "only the lock");
    held.worker.work(&["complete"]).ok();
    assert_eq!(repo.on_branch("w-1", "src/a/new.txt"), "fresh");
    repo.check_cleared("w-1");
}

#[test]
fn a_file_can_be_removed_and_made_executable() {
    let repo = repository();
    let held = Held::of(&repo);
    held.write("src/run.sh", "echo\n").ok();
    held.apply("diff --git a/src/run.sh b/src/run.sh\nold mode 100644\nnew mode 100755\n").ok();
    held.apply(REMOVING).ok();
    assert!(!held.tree.join("src/main.txt").exists());
    held.worker.work(&["complete"]).ok();
    assert!(repo.said(&["ls-tree", "striatum/w-1", "src/"]).starts_with("100755"));
}

#[test]
fn what_changed_since_the_preview_is_not_patched() {
    let repo = repository();
    let held = Held::of(&repo);
    let patch = adding("src/new.txt", "x");
    let token = held.repo(&["patch-preview"], &patch).ok().value()["token"].as_str().unwrap().to_owned();
    held.repo(&["patch-apply", "--token", &token], adding("src/new.txt", "y")).refused(6, "stale_base");
    held.write("src/other.txt", "meanwhile").ok();
    held.repo(&["patch-apply", "--token", &token], &patch).refused(6, "stale_base");
    assert!(!held.tree.join("src/new.txt").exists());
}

#[test]
fn a_patch_that_fails_in_its_third_file_leaves_the_first_two_alone() {
    let repo = repository();
    let held = Held::of(&repo);
    let before = contents(&held.tree);
    for last in [
        change("src/main.txt", "not there", "x"),
        change("src/missing.txt", "one", "x"),
        adding("README.md", "x"),
        adding("OTHER.md", "x"),
    ] {
        let patch = format!("{}{}{last}", adding("src/1.txt", "1"), adding("src/2.txt", "2"));
        let refused = held.apply(&patch);
        assert!([6, 8].contains(&refused.code), "{refused}");
        assert_eq!(contents(&held.tree), before);
    }
}

#[test]
fn a_patch_is_judged_by_what_it_does_and_not_by_what_it_says() {
    let repo = repository();
    let held = Held::of(&repo);
    let before = contents(&held.tree);
    let renames =
        "diff --git a/README.md b/src/moved.md\nsimilarity index 100%\nrename from README.md\nrename to src/moved.md\n";
    let copies_link = "diff --git a/src/l b/src/l\nnew file mode 120000\n--- /dev/null\n+++ b/src/l\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n";
    let gitlink = "diff --git a/src/sub b/src/sub\nnew file mode 160000\n--- /dev/null\n+++ b/src/sub\n@@ -0,0 +1 @@\n+Subproject commit 0123456789012345678901234567890123456789\n";
    let lying =
        "diff --git a/src/main.txt b/src/main.txt\n--- a/README.md\n+++ b/README.md\n@@ -1 +1 @@\n-read me\n+lies\n";
    for (what, patch, words) in [
        ("a rename takes a file away outside", renames.to_owned(), &["path_outside_scope"][..]),
        ("a link", copies_link.to_owned(), &["symlink_refused"]),
        ("a submodule", gitlink.to_owned(), &["submodule_refused", "invalid_patch"]),
        ("names that lie", lying.to_owned(), &["path_outside_scope", "invalid_patch"]),
        ("upward", adding("../x", "x"), &["invalid_patch"]),
        ("git's own", adding(".git/hooks/pre-commit", "x"), &["invalid_patch", "protected_path"]),
        ("attributes", adding("src/.gitattributes", "x"), &["protected_path"]),
        ("a hook in a folder", adding("src/.git/config", "x"), &["invalid_patch", "protected_path"]),
        ("case", adding("src/MAIN.txt", "x"), &["case_collision"]),
        ("nothing", String::new(), &["invalid_patch"]),
        ("noise", "not a patch\n".to_owned(), &["invalid_patch"]),
        (
            "a delta",
            "diff --git a/src/b b/src/b\nindex 1..2\nGIT binary patch\ndelta 8\nx\n".to_owned(),
            &["invalid_patch"],
        ),
        (
            "a bomb",
            "diff --git a/src/b b/src/b\nnew file mode 100644\nGIT binary patch\nliteral 999999999999\nx\n".to_owned(),
            &["too_large"],
        ),
    ] {
        let shown = held.repo(&["patch-preview"], &patch);
        let document = shown.value();
        let said = match document["code"].as_str() {
            Some(code) => code.to_owned(),
            None => document["violations"][0].as_str().unwrap_or("nothing").split(':').next().unwrap().to_owned(),
        };
        assert!(words.contains(&&*said), "{what}: {said}\n{shown}");
        assert_ne!(shown.code, 0, "{what}\n{shown}");
        let token = document["token"].as_str().unwrap_or("x").to_owned();
        assert_ne!(held.repo(&["patch-apply", "--token", &token], &patch).code, 0, "{what}");
        assert_eq!(contents(&held.tree), before, "{what}");
    }
    assert!(!repo.file("src/moved.md").exists() && !repo.root().join("x").exists());
}

#[test]
fn an_escape_lets_one_patch_pass() {
    let repo = repository();
    let held = Held::of(&repo);
    let patch = format!("{}{}", adding("OTHER.md", "x"), change("src/main.txt", "one", "ONE"));
    let shown = held.repo(&["patch-preview"], &patch).exits(6).value();
    assert_eq!(shown["violations"], serde_json::json!(["path_outside_scope: OTHER.md"]));
    let refused = held.apply(&patch).refused(6, "path_outside_scope");
    let action = format!("sha256:{}", sha256(&patch));
    assert!(next_commands(&refused).iter().any(|next| next.ends_with(&action)), "{refused}");
    held.let_pass("repo.patch-apply", &action);
    held.apply(&patch).ok();
    assert_eq!(held.text("OTHER.md"), "x\n");
    held.worker.work(&["complete"]).ok();
    assert_eq!(repo.on_branch("w-1", "OTHER.md"), "x");
    repo.check_cleared("w-1");
}

#[test]
fn a_lane_writes_through_its_helper() {
    let repo = TestRepo::with_code();
    let script = "echo via helper | striatum repo write --path src/new.txt\n\
        echo x | striatum repo write --path README.md && echo WRITTEN\n\
        git diff > \"$STRIATUM_SCRATCH/p\"\n\
        printf 'diff --git a/src/p.txt b/src/p.txt\\nnew file mode 100644\\n--- /dev/null\\n+++ b/src/p.txt\\n@@ -0,0 +1 @@\\n+patched\\n' > \"$STRIATUM_SCRATCH/p\"\n\
        token=$(striatum repo patch-preview --patch-file \"$STRIATUM_SCRATCH/p\" | sed -n 's/^token: //p')\n\
        striatum repo patch-apply --token \"$token\" --patch-file \"$STRIATUM_SCRATCH/p\"\ncomplete";
    repo.agent("draft", script);
    repo.drive_through(crate::support::DRAFT).ok();
    assert!(!repo.striatum(&["logs", "draft"]).ok().stdout.contains("WRITTEN"));
    assert_eq!(repo.on_branch("w-1", "src/new.txt"), "via helper");
    assert_eq!(repo.on_branch("w-1", "src/p.txt"), "patched");
    repo.check_cleared("w-1");
}

#[test]
fn whoever_dies_in_the_middle_leaves_all_or_nothing() {
    for point in
        ["repo.drafted", "repo.journaled", "repo.stepped", "repo patch-apply.uncommitted", "repo patch-apply.committed"]
    {
        let repo = repository();
        let held = Held::of(&repo);
        let before = contents(&held.tree);
        let patch =
            format!("{}{}{}", adding("src/1.txt", "1"), change("src/main.txt", "one", "ONE"), adding("src/3.txt", "3"));
        let token = held.repo(&["patch-preview"], &patch).ok().value()["token"].as_str().unwrap().to_owned();
        repo.crash_at(point);
        assert_eq!(held.repo(&["patch-apply", "--token", &token], &patch).code, -9, "{point}");
        assert!(!repo.is_crash_pending(), "{point}");
        // Whoever looks next puts it right.
        held.write("src/later.txt", "later\n").ok();
        std::fs::remove_file(held.tree.join("src/later.txt")).unwrap();
        let is_done = point.ends_with(".committed");
        assert_eq!(contents(&held.tree) == before, !is_done, "{point}");
        assert_eq!(repo.count("event WHERE type = 'repo.patched'"), i64::from(is_done), "{point}");
        held.repo(&["patch-apply", "--token", &token], &patch).exits(if is_done { 8 } else { 0 });
        held.worker.work(&["complete"]).ok();
        assert_eq!(repo.on_branch("w-1", "src/3.txt"), "3", "{point}");
        repo.check_cleared("w-1");
    }
}

#[test]
fn the_seal_puts_right_what_somebody_left_who_died() {
    let repo = repository();
    let held = Held::of(&repo);
    let patch = format!("{}{}", adding("src/1.txt", "1"), adding("src/2.txt", "2"));
    let token = held.repo(&["patch-preview"], &patch).ok().value()["token"].as_str().unwrap().to_owned();
    held.write("src/kept.txt", "kept\n").ok();
    let token_now = held.repo(&["patch-preview"], &patch).ok().value()["token"].as_str().unwrap().to_owned();
    assert_ne!(token, token_now);
    repo.crash_at("repo.stepped");
    assert_eq!(held.repo(&["patch-apply", "--token", &token_now], &patch).code, -9);
    assert!(held.tree.join("src/1.txt").exists());
    held.worker.work(&["complete"]).ok();
    assert_eq!(repo.said(&["ls-tree", "-r", "--name-only", "striatum/w-1", "src/"]), "src/kept.txt\nsrc/main.txt");
    repo.check_cleared("w-1");
}

#[test]
fn two_writers_at_once_leave_one_whole_file() {
    let repo = repository();
    let held = Held::of(&repo);
    let texts: Vec<String> = (0..8).map(|number| format!("{number}").repeat(20_000)).collect();
    std::thread::scope(|scope| {
        for text in &texts {
            let (repo, worker) = (&repo, &held.worker);
            scope.spawn(move || {
                let file = repo.root().join(&text[..1]);
                std::fs::write(&file, text).unwrap();
                let fence = worker.fence.unwrap().to_string();
                let who = ["--session-id", &worker.session, "--token-file", &worker.token_file, "--fence", &fence];
                let words = ["repo", "write", "--path", "src/one.txt", "--content-file", file.to_str().unwrap()];
                repo.striatum(&[&words[..], &who].concat()).ok();
            });
        }
    });
    assert!(texts.contains(&held.text("src/one.txt")));
    assert_eq!(repo.count("event WHERE type = 'repo.written'"), 8);
}
