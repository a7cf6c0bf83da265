//! A session that no helper hosts: a worker with its token, calling the verbs of the agent's side.

use std::process::Command;

use serde_json::Value;

use super::{Output, STRIATUM, TestRepo};

/// A registered session and what it claimed.
pub struct Worker<'a> {
    repo: &'a TestRepo,
    /// As `s12`.
    pub session: String,
    /// The file with its token.
    pub token_file: String,
    /// The fence of its newest claim.
    pub fence: Option<i64>,
    shares_process: bool,
}

impl TestRepo {
    /// Registers a session in a slot.
    #[track_caller]
    pub fn register(&self, role: &str, lane: &str) -> Worker<'_> {
        self.register_with(&["--role", role, "--lane", lane])
    }

    /// Registers a session with these words.
    #[track_caller]
    pub fn register_with(&self, args: &[&str]) -> Worker<'_> {
        let words: Vec<&str> = std::iter::once("register-session").chain(args.iter().copied()).collect();
        let report = self.json(&words).ok().value();
        Worker {
            repo: self,
            session: report["session"].as_str().unwrap().to_owned(),
            token_file: report["token_file"].as_str().unwrap().to_owned(),
            fence: None,
            shares_process: false,
        }
    }
}

impl Worker<'_> {
    /// From now on its calls come from the test's own process, as other workers' may.
    pub fn sharing_process(mut self) -> Self {
        self.shares_process = true;
        self
    }

    /// `striatum work VERB ...` with its credentials, as a command that did not run yet.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut words = vec!["work"];
        words.extend(args);
        words.extend(["--session-id", &self.session, "--token-file", &self.token_file, "--json"]);
        let fence = self.fence.map(|fence| fence.to_string());
        if let Some(fence) = fence.as_deref().filter(|_| !args.contains(&"--fence") && args[0] != "claim") {
            words.extend(["--fence", fence]);
        }
        if self.shares_process {
            return self.repo.command(&words);
        }
        // A shell between: each worker is a process of its own, as agents are.
        let script = ["-c", "\"$@\"; exit $?", "worker", STRIATUM];
        let words: Vec<&str> = script.into_iter().chain(words).collect();
        self.repo.command_of("sh", &words)
    }

    /// Calls `striatum work VERB ...`.
    #[must_use = "a command that nobody looks at proves nothing; say .ok() or .exits(code)"]
    pub fn work(&self, args: &[&str]) -> Output {
        self.repo.run(&mut self.command(args))
    }

    /// Claims; remembers the fence. Gives the report, claimed or not.
    #[track_caller]
    pub fn claim(&mut self) -> Value {
        let report = self.work(&["claim"]).ok().value();
        self.fence = report["fence"].as_i64().or(self.fence);
        report
    }

    /// Claims; there must be work. Gives the job and attempt as `JOB.ATTEMPT`.
    #[track_caller]
    pub fn claims(&mut self) -> String {
        let report = self.claim();
        assert_eq!(report["status"], "claimed", "{report}");
        format!("{}.{}", report["job"].as_str().unwrap(), report["attempt"])
    }

    /// Claims; there must be none. Gives the reason.
    #[track_caller]
    pub fn gets_no_work(&mut self) -> String {
        let report = self.claim();
        assert_eq!(report["status"], "no_work", "{report}");
        report["reason"].as_str().unwrap().to_owned()
    }
}
