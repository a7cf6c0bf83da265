//! `striatum scope-check`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::call::Session;
use super::output::{Output, next_text};
use crate::error::{Code, Result};
use crate::verbs::scope_check::{Name, ScopeReport, ScopeRequest};

/// Say what the seal would refuse in this job's work tree
#[derive(Args)]
pub struct ScopeCheck {
    /// Judge these paths by their names, instead of everything that differs
    #[arg(value_name = "PATH")]
    paths: Vec<OsString>,
    /// Judge what is staged
    #[arg(long, conflicts_with = "paths")]
    staged: bool,
    /// The job; STRIATUM_JOB when left out, else that of the work tree around
    #[arg(long, value_name = "JOB")]
    job: Option<String>,
    /// The run; STRIATUM_RUN when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
}

impl ScopeCheck {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let cwd = std::env::current_dir()?;
        // Only what is about to be committed may be where the environment says.
        let of_git = |name: &str| {
            let value = std::env::var_os(name).filter(|value| self.staged && !value.is_empty())?;
            Some(Name::of(cwd.join(PathBuf::from(value))))
        };
        let request = ScopeRequest {
            folder: Name::of(&cwd),
            run: self.run_id.or_else(|| variable("STRIATUM_RUN").filter(|_| self.job.is_none())),
            job: self.job.or_else(|| variable("STRIATUM_JOB")),
            paths: self.paths.iter().map(Name::of).collect(),
            staged: self.staged,
            index: of_git("GIT_INDEX_FILE"),
            git_dir: of_git("GIT_DIR"),
        };
        let report = session.call(&request)?;
        output.report(&report, told);
        Ok(if report.violations.is_empty() { 0 } else { Code::PathTraversal.kind().exit() })
    }
}

fn told(report: &ScopeReport) -> String {
    if report.violations.is_empty() {
        return format!("{}\n", report.message);
    }
    let mut text: String = report.violations.iter().map(|line| format!("{}: {}\n", line.word, line.path)).collect();
    let scope = if report.writes.is_empty() { "nothing".to_owned() } else { report.writes.join(" ") };
    text.push_str(&format!("{}; its scope: {scope}\n", report.message));
    text + &next_text(&report.next)
}
