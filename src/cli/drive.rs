//! `striatum run drive`: one line for each act, a live line on a terminal, a heartbeat without one.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;

use super::call::Session;
use super::output::{Output, complain, next_text, print, shell_words};
use crate::domain::time::parse_duration;
use crate::domain::world::World;
use crate::error::Result;
use crate::verbs::run::detach::{be_detached, detach};
use crate::verbs::run::drive::{DriveReport, DriveRequest, Teller, Told, drive};

/// Which run, and how to drive it.
#[derive(Args)]
pub struct Drive {
    /// The run; the only live one when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Commands with this hash may run though nobody trusted them here (for CI)
    #[arg(long, value_name = "sha256:..")]
    trust_hash: Option<String>,
    /// Make one turn
    #[arg(long)]
    once: bool,
    /// Show what one turn would do
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    driving: Driving,
}

/// How to drive.
#[derive(Args)]
pub struct Driving {
    /// Longest time between two looks; jittered
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = duration)]
    interval: u64,
    /// Refuse when another driver is active, instead of standing by
    #[arg(long)]
    exclusive: bool,
    /// Stay while a person is needed
    #[arg(long)]
    wait_human: bool,
    /// Stop every lane at the end
    #[arg(long)]
    stop_lanes: bool,
    /// Go on in the background, with the lines in a file
    #[arg(long)]
    detach: bool,
    /// This is the driver in the background
    #[arg(long, hide = true)]
    detached: bool,
    /// Without a terminal, a line at this interval
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub heartbeat: u64,
}

impl Driving {
    /// What was typed, as a request.
    pub fn request(&self, run: Option<String>) -> DriveRequest {
        DriveRequest {
            run,
            interval_ms: self.interval,
            once: false,
            dry_run: false,
            exclusive: self.exclusive,
            wait_human: self.wait_human,
            stop_lanes: self.stop_lanes,
            trust_hash: None,
        }
    }
}

impl Driving {
    /// Drives, here or in the background.
    pub fn drive(&self, request: &DriveRequest, session: &Session, output: &Output) -> Result<u8> {
        if self.detached {
            be_detached()?;
        }
        if !self.detach {
            return drive_run(request, self.heartbeat, session, output);
        }
        let report = detach(&session.operator_ctx()?, request, self.heartbeat)?;
        output.report(&report, |report| {
            let log = report.log.display();
            format!(
                "{} goes on in the background (pid {})\nits lines: {log}\n{}",
                report.run,
                report.pid,
                next_text(&report.next)
            )
        });
        Ok(0)
    }
}

/// A duration as people write it, in milliseconds.
pub fn duration(text: &str) -> std::result::Result<u64, String> {
    parse_duration(text).ok_or_else(|| "write it as 250ms, 90s, 15m or 2h".to_owned())
}

impl Drive {
    /// Drives.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = DriveRequest {
            once: self.once,
            dry_run: self.dry_run,
            trust_hash: self.trust_hash,
            ..self.driving.request(self.run_id)
        };
        self.driving.drive(&request, session, output)
    }
}

/// Drives and tells; the exit code is the run's.
pub fn drive_run(request: &DriveRequest, heartbeat_ms: u64, session: &Session, output: &Output) -> Result<u8> {
    let ctx = session.operator_ctx()?.pooled();
    let mut screen = Screen::new(output.is_json(), heartbeat_ms);
    let report = drive(&ctx, request, &mut screen)?;
    screen.clear();
    ended(&report, output);
    Ok(report.exit)
}

/// The end of a drive: the literal line, then what waits and how to go on.
fn ended(report: &DriveReport, output: &Output) {
    if output.is_json() {
        let line = json!({"action": "end", "run": report.run, "state": report.state, "result": report.reason,
            "exit": report.exit, "waiting": report.waiting, "next": report.next});
        print(&format!("{line}\n"));
        return;
    }
    for (job, cause) in &report.waiting {
        print(&format!("waits for you: {job}: {cause}\n"));
    }
    print(&format!("run {} -> {}: {}\n", report.run, report.state, report.reason));
    for next in &report.next {
        complain(&format!("next: {}   # {}\n", shell_words(&next.argv), next.why));
    }
}

/// Whether the terminal can't take a line back.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Where a driver's lines go.
pub struct Screen {
    json: bool,
    is_terminal: bool,
    has_live_line: bool,
    heartbeat: Duration,
    last: Instant,
    started: Instant,
}

impl Screen {
    /// Lines for people or for programs; without a terminal a line at an interval.
    pub fn new(json: bool, heartbeat_ms: u64) -> Screen {
        let now = Instant::now();
        Screen {
            json,
            is_terminal: std::io::stderr().is_terminal() && !json && !is_dumb(),
            has_live_line: false,
            heartbeat: Duration::from_millis(heartbeat_ms.max(1)),
            last: now,
            started: now,
        }
    }

    /// Takes the live line away.
    pub fn clear(&mut self) {
        if self.has_live_line {
            complain("\r\x1b[K");
            self.has_live_line = false;
        }
    }

    fn live_text(&self, world: &World) -> String {
        let working: Vec<String> = world
            .sessions
            .iter()
            .filter_map(|session| session.held.as_ref().map(|held| format!("{} ({})", held.name, session.lane)))
            .collect();
        let working = if working.is_empty() { "waiting".to_owned() } else { working.join(", ") };
        format!("{working}, {}s", self.started.elapsed().as_secs())
    }
}

impl Teller for Screen {
    fn tell(&mut self, told: &Told) {
        if self.json {
            let line = json!({"ts": crate::verbs::ctx::now(), "action": told.action, "job": told.job,
                "role": told.role, "lane": told.lane, "session_id": told.session_id, "result": told.result,
                "line": told.line});
            print(&format!("{line}\n"));
        } else if let Some(line) = &told.line {
            self.clear();
            print(&format!("{line}\n"));
        }
    }

    fn ring(&mut self) {
        if self.is_terminal {
            complain("\x07");
        }
    }

    fn show(&mut self, _run: &str, world: &World) {
        if self.json {
            return;
        }
        if self.is_terminal {
            complain(&format!("\r\x1b[K{}", self.live_text(world)));
            self.has_live_line = true;
        } else if self.last.elapsed() >= self.heartbeat {
            complain(&format!("{}\n", self.live_text(world)));
            self.last = Instant::now();
        }
    }
}
