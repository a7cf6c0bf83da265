//! `striatum events`

use std::time::Duration;

use clap::Args;

use super::call::Session;
use super::output::{Output, is_read};
use super::table::{clock, left_out, table};
use crate::error::Result;
use crate::verbs::read::events::{EventLine, EventsReport, EventsRequest};
use crate::verbs::read::one_line;

/// Characters of an event's body.
const BODY: usize = 120;

/// How often a follower asks again.
const PAUSE: Duration = Duration::from_millis(250);

/// Which events.
#[derive(Args)]
pub struct Events {
    /// The run; the only live one, else the newest, when left out
    #[arg(long, value_name = "RUN")]
    run_id: Option<String>,
    /// Of the whole store
    #[arg(long, conflicts_with = "run_id")]
    all: bool,
    /// About one job
    #[arg(long, value_name = "JOB", conflicts_with = "all")]
    job: Option<String>,
    /// After this number, oldest first; the newest ones when left out
    #[arg(long, value_name = "NUMBER")]
    after: Option<i64>,
    /// Most events
    #[arg(long, value_name = "NUMBER")]
    limit: Option<u32>,
    /// Go on until the run is over
    #[arg(short, long)]
    follow: bool,
}

impl Events {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request =
            EventsRequest { run: self.run_id, all: self.all, job: self.job, after: self.after, limit: self.limit };
        if self.follow {
            return follow(request, session, output);
        }
        output.report(&session.call(&request)?, told);
        Ok(0)
    }
}

/// One line an event, as they come.
fn follow(mut request: EventsRequest, session: &Session, output: &Output) -> Result<u8> {
    loop {
        let report = session.call(&request)?;
        let text: String = match output.is_json() {
            true => report.events.iter().map(|line| serde_json::to_string(line).unwrap_or_default() + "\n").collect(),
            false => table("", &report.events.iter().map(event).collect::<Vec<_>>()),
        };
        let is_last = report.is_over && report.events.is_empty();
        if is_last || !is_read(&text) {
            return Ok(0);
        }
        request = EventsRequest { run: report.run, after: Some(report.cursor), limit: None, ..request };
        if report.events.is_empty() {
            std::thread::sleep(PAUSE);
        }
    }
}

fn told(report: &EventsReport) -> String {
    if report.events.is_empty() {
        return "no events\n".to_owned();
    }
    table("", &report.events.iter().map(event).collect::<Vec<_>>()) + &left_out(report.left_out, "")
}

/// An event in columns.
pub fn event(line: &EventLine) -> Vec<String> {
    let place = match (&line.run, &line.job) {
        (Some(run), Some(job)) => format!("{run}/{job}"),
        (Some(run), None) => run.clone(),
        (None, _) => String::new(),
    };
    let session = line.session.map_or(String::new(), |session| session.to_string());
    let body = match line.body.as_object() {
        Some(map) => map.iter().map(|(key, value)| format!("{key}={}", word(value))).collect::<Vec<_>>().join(" "),
        None => line.body.to_string(),
    };
    vec![
        line.id.to_string(),
        clock(line.at),
        line.kind.clone(),
        place,
        session,
        one_line(&line.principal, 40),
        one_line(&body, BODY),
    ]
}

fn word(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
