//! Repositories with code in them, and what a run did to their history.

use super::{Output, TestRepo};

/// One job that may change what lies in `src/`.
pub const DRAFT: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
"#;

/// A draft and its review.
pub const REVIEWED: &str = r#"
    [lanes.script]
    command = "@agent"
    timeout = "60s"
    [[jobs]]
    id = "draft"
    role = "author"
    lane = "script"
    writes = ["src/"]
    [[jobs]]
    id = "review"
    reviews = "draft"
    lane = "script"
"#;

impl TestRepo {
    /// A repository with one commit: `README.md`, `src/main.txt` and what git shall ignore.
    pub fn with_code() -> TestRepo {
        let repo = TestRepo::new();
        repo.commit_code();
        repo
    }

    /// Writes and commits the code.
    pub fn commit_code(&self) {
        self.write("README.md", "read me\n");
        self.write("src/main.txt", "one\ntwo\nthree\n");
        self.write(".gitignore", "*.ignored\n/target/\n");
        self.said(&["add", "--all"]);
        self.said(&["commit", "--quiet", "--message", "Begin"]);
    }

    /// What git says, without the end of its line; it must succeed.
    #[track_caller]
    pub fn said(&self, args: &[&str]) -> String {
        let output = self.git(args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// Prepares, starts and drives a workflow to its end.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn drive_through(&self, workflow: &str) -> Output {
        self.workflow("w", workflow);
        self.start("w");
        self.drive()
    }

    /// A file as the run's branch has it.
    #[track_caller]
    pub fn on_branch(&self, run: &str, path: &str) -> String {
        self.said(&["show", &format!("striatum/{run}:{path}")])
    }

    /// The commits of the run that are no merges of its own, oldest first: `JOB.ATTEMPT`.
    pub fn landed(&self, run: &str) -> Vec<String> {
        let format = "--format=%(trailers:key=Striatum-Job,valueonly,separator=)%(trailers:key=Striatum-Attempt,valueonly,separator=)";
        let format = format.replace("separator=)%(", "separator=).%(");
        let branch = format!("striatum/{run}");
        let base: String = self.one("SELECT base FROM run WHERE name = ?1", [run]);
        let range = format!("{base}..{branch}");
        let listed = self.said(&["log", "--reverse", "--no-merges", &format, &range]);
        listed.lines().map(str::to_owned).collect()
    }

    /// How each attempt ended, oldest first: `JOB.ATTEMPT OUTCOME: DETAIL`.
    pub fn attempts(&self) -> Vec<String> {
        self.rows(
            "SELECT job.name || '.' || attempt.number, coalesce(outcome, 'open') || CASE WHEN outcome <> 'sealed' THEN coalesce(': ' || detail, '') ELSE '' END
             FROM attempt JOIN job ON job.id = attempt.job_id ORDER BY attempt.queued_at, job.id, attempt.number",
        )
    }

    /// Everything that must hold of the repository after a run: sound, and the checkout as the user left it.
    #[track_caller]
    pub fn check_repository(&self) {
        let output = self.git(&["-c", "core.fsmonitor=false", "fsck", "--strict", "--no-dangling"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "git fsck: {said}");
        assert!(!said.contains("error") && !said.contains("missing"), "git fsck: {said}");
    }

    /// The checkout differs from its commit in nothing but the store's folder.
    #[track_caller]
    pub fn check_untouched(&self) {
        let status = self.said(&["status", "--porcelain", "--untracked-files=all", "--", ":/", ":(exclude).striatum"]);
        assert_eq!(status, "");
        assert_eq!(self.said(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    }

    /// Nobody is left, the store is sound, the repository too, and git knows of no work tree.
    #[track_caller]
    pub fn check_cleared(&self, run: &str) {
        self.check_completed(run);
        self.check_repository();
        assert_eq!(self.registered(), Vec::<String>::new(), "{}", self.told());
    }

    /// Work trees that git knows beside the main one.
    pub fn registered(&self) -> Vec<String> {
        let listed = self.said(&["worktree", "list", "--porcelain"]);
        listed.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1).map(str::to_owned).collect()
    }
}
