//! `__notify`: takes what is new behind the run's mark, and hands each occasion to the command of `[notify]`.
//!
//! The mark moves first: of several that come at once one tells, and a command that hangs or dies is not asked again.
//! It does not decide what is worth telling.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::domain::event::EventType;
use crate::domain::id::RunId;
use crate::domain::notice::{Occasion, line};
use crate::domain::time::Timestamp;
use crate::error::{Code, Error, Next, Result};
use crate::os::env::{LaneEnvironment, lane_environment};
use crate::os::files;
use crate::os::process::{LaneStdin, Limits, Program};
use crate::store::event::{About, Head};
use crate::store::run::Run;
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::read::inbox::{InboxRequest, Item, inbox};
use crate::verbs::settle::verify::{Foreground, Verified, run_program};
use crate::verbs::trust;

/// The schema word of what the command reads.
pub const SCHEMA: &str = "striatum.notice/1";

/// What the command of `[notify]` reads on its standard input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Notice {
    /// Always `striatum.notice/1`.
    pub schema: String,
    /// What for.
    pub occasion: Occasion,
    /// When.
    pub at: Timestamp,
    /// The folder whose work it is.
    pub project: PathBuf,
    /// The run.
    pub run: String,
    /// Where it is.
    pub state: String,
    /// One line for people.
    pub text: String,
    /// What waits and is new, newest first.
    pub items: Vec<Item>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// How a command's run went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// `passed`, `failed`, or `not_run`.
    pub result: String,
    /// Why not passed; the end of what it said.
    pub detail: String,
}

/// What the commands say.
pub fn log(ctx: &Ctx) -> PathBuf {
    ctx.layout().scratches().join("notify.log")
}

/// Tells everything that is new in a run.
pub fn send(ctx: &Ctx, run: &str) -> Result<()> {
    let Some(run) = ctx.read(|read| Ok(store::run::by_name(read, run)?))? else {
        return Err(Error::new(Code::NotFound, format!("there is no run {run}")));
    };
    if !trust::may_launch(ctx, &run) {
        return Ok(());
    }
    let new = ctx.write("notify", |tx| {
        let from = store::run::told(tx, run.id)?;
        let events = store::event::heads_after(tx, run.id, from)?;
        if let Some(last) = events.last() {
            store::run::set_told(tx, run.id, last.id)?;
        }
        Ok(events)
    })?;
    crate::os::crash::point("notify.taken");
    for occasion in Occasion::ALL.iter().filter(|occasion| run.spec.notify.on.iter().any(|on| on == occasion.word())) {
        let events: Vec<&Head> = new.iter().filter(|event| Occasion::of(event.kind) == Some(*occasion)).collect();
        if events.is_empty() {
            continue;
        }
        if let Some(notice) = notice(ctx, run.id, *occasion, &events)? {
            let sent = hand_over(ctx, &run, &notice)?;
            let about = About { run: Some(run.id), job: None, session: None };
            let body = json!({"occasion": occasion, "result": sent.result, "events": events.len()});
            ctx.write("notified", |tx| Ok(store::event::append(tx, EventType::PersonNotified, about, &body)?))?;
        }
    }
    Ok(())
}

/// What there is to say; none when nothing of it waits any more.
fn notice(ctx: &Ctx, run: RunId, occasion: Occasion, events: &[&Head]) -> Result<Option<Notice>> {
    let run = ctx.read(|read| Ok(store::run::get(read, run)?))?;
    let mut items = inbox(ctx, &InboxRequest { run: Some(run.name.clone()), limit: None })?.items;
    if occasion == Occasion::Inbox {
        items.retain(|item| item.job.is_none() || events.iter().any(|event| event.job == item.job));
        if items.is_empty() {
            return Ok(None);
        }
    }
    // What stops the run is said first.
    items.sort_by_key(|item| !item.stops_run);
    let subjects: Vec<String> = match occasion {
        Occasion::Failed => run.reason.iter().cloned().collect(),
        Occasion::LaneParked => items.iter().filter_map(|item| item.lane.clone()).collect(),
        _ => items.iter().map(|item| format!("{} ({})", item.id, item.cause)).collect(),
    };
    let next = items.iter().filter_map(|item| item.next.first().cloned()).take(3).collect();
    Ok(Some(Notice {
        schema: SCHEMA.to_owned(),
        occasion,
        at: ctx.clock.now(),
        project: ctx.layout().project().to_owned(),
        text: line(occasion, &run.name, &subjects),
        state: run.state.to_string(),
        run: run.name,
        items,
        next,
    }))
}

/// Runs the command with the notice on its standard input; it has its time, and is never fatal.
pub fn hand_over(ctx: &Ctx, run: &Run, notice: &Notice) -> Result<Sent> {
    run_command(ctx, &run.spec.notify, notice)
}

/// The same, for a command that belongs to no run.
pub fn run_command(ctx: &Ctx, notify: &crate::domain::frozen::Notify, notice: &Notice) -> Result<Sent> {
    files::create_private_dirs(ctx.layout().root(), &ctx.layout().scratches())?;
    let own = std::process::id();
    let input = ctx.layout().scratches().join(format!("notice-{own}-{}.json", notice.occasion));
    let output = ctx.layout().scratches().join(format!("notice-{own}-{}.log", notice.occasion));
    files::write_private(&input, &serde_json::to_vec(notice)?)?;
    let program = Program {
        argv: notify.command.iter().map(Into::into).collect(),
        cwd: ctx.layout().project().to_owned(),
        env: lane_environment(std::env::vars_os(), LaneEnvironment { named: &[], given: &[] })?,
        stdin: LaneStdin::File(input.clone()),
        output: output.clone(),
        tty: false,
        limits: Limits::default(),
    };
    let ran = run_program(ctx, &program, notify.timeout_ms, &mut Foreground, &mut |_| Ok(()));
    let said = files::tail_text(&output, TAIL).unwrap_or_default();
    for file in [input, output] {
        let _ = std::fs::remove_file(file);
    }
    Ok(match ran?.2 {
        Verified::Passed => Sent { result: "passed".to_owned(), detail: said },
        Verified::Failed { tail, .. } => Sent { result: "failed".to_owned(), detail: tail },
        Verified::NotRun { why, .. } | Verified::Told(why) => Sent { result: "not_run".to_owned(), detail: why },
    })
}

/// How much of a command's words is kept, in bytes.
const TAIL: u64 = 4096;
