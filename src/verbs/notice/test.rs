//! `notify test`: the command of `[notify]` with a notice that says it is a test.
//!
//! It changes nothing and moves no mark.

use serde::{Deserialize, Serialize};

use super::send::{Notice, SCHEMA, run_command};
use crate::domain::frozen::Notify;
use crate::domain::notice::Occasion;
use crate::error::{Code, Next, Result};
use crate::verbs::config::configuration;
use crate::verbs::run::find;
use crate::verbs::{Ctx, trust};

/// What `notify test` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TestRequest {
    /// A run, whose workflow may say it otherwise; the configuration's when left out.
    pub run: Option<String>,
}

/// What `notify test` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestReport {
    /// The command; empty when the terminal's bell is all.
    pub command: Vec<String>,
    /// What is told.
    pub on: Vec<String>,
    /// `passed`, `failed`, `not_run`; none without a command.
    pub result: Option<String>,
    /// What it said, or why it was not run.
    pub detail: String,
    /// What it was given.
    pub notice: Notice,
}

impl TestReport {
    /// The exit code.
    pub fn exit(&self) -> u8 {
        match self.result.as_deref() {
            None | Some("passed") => 0,
            Some("failed") => Code::Findings.kind().exit(),
            Some(_) => Code::NotRun.kind().exit(),
        }
    }
}

/// Runs the command once, with a notice that says so.
pub fn test(ctx: &Ctx, request: &TestRequest) -> Result<TestReport> {
    let (run, notify) = chosen(ctx, request)?;
    let next = Next::new("person", "what really waits", &["striatum", "inbox"]);
    let notice = Notice {
        schema: SCHEMA.to_owned(),
        occasion: Occasion::Inbox,
        at: ctx.clock.now(),
        project: ctx.layout().project().to_owned(),
        run: run.unwrap_or_else(|| "test".to_owned()),
        state: "test".to_owned(),
        text: "striatum can reach you: this is a test, nothing waits".to_owned(),
        items: Vec::new(),
        next: vec![next],
    };
    let mut report = TestReport {
        command: notify.command.clone(),
        on: notify.on.clone(),
        result: None,
        detail: none(request),
        notice,
    };
    if !notify.command.is_empty() {
        let sent = run_command(ctx, &notify, &report.notice)?;
        (report.result, report.detail) = (Some(sent.result), sent.detail);
    }
    Ok(report)
}

fn none(request: &TestRequest) -> String {
    let bell = "no command is configured: a driver on a terminal rings its bell";
    let elsewhere = if request.run.is_some() { "" } else { "; a workflow may name one: --run-id tries that of a run" };
    format!("{bell}{elsewhere}")
}

/// What would be used, and that its command may run.
fn chosen(ctx: &Ctx, request: &TestRequest) -> Result<(Option<String>, Notify)> {
    if let Some(name) = &request.run {
        let run = ctx.read(|read| find::named(read, name))?;
        if !trust::may_launch(ctx, &run) {
            return Err(trust::nobody_trusts(&run));
        }
        return Ok((Some(run.name), run.spec.notify));
    }
    let (repository, config) = configuration(ctx)?;
    if let Some(source) = repository.filter(|_| !config.notify.command.is_empty()) {
        trust::check_config(ctx, &ctx.layout().config(), source)?;
    }
    Ok((None, config.notify))
}
