//! Tells what agents do while a driver tells what it does: answers, verdicts, and what is sent back.
//!
//! It reads the event log after each look of the driver. It decides nothing and changes nothing.

use crate::domain::event::EventType;
use crate::domain::verdict::Finding;
use crate::domain::world::World;
use crate::error::Result;
use crate::store::event::EventRow;
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::run::drive::{Teller, Told};

/// Events read at once.
const AT_ONCE: u32 = 200;

/// A teller that tells more.
pub struct Narrator<'a> {
    ctx: &'a Ctx,
    teller: &'a mut dyn Teller,
    after: i64,
}

impl<'a> Narrator<'a> {
    /// Tells what happens from now on.
    pub fn new(ctx: &'a Ctx, teller: &'a mut dyn Teller) -> Result<Narrator<'a>> {
        let after = ctx.read(|read| Ok(store::event::newest(read)?))?;
        Ok(Narrator { ctx, teller, after })
    }

    /// Tells what is not told yet. That the log can't be read now is the driver's to say.
    pub fn catch_up(&mut self) {
        let after = self.after;
        let told = self.ctx.read(|read| {
            let events = store::event::after(read, store::event::Scope::All, after, AT_ONCE)?;
            let last = events.last().map_or(after, |event| event.id);
            let lines = events.iter().map(|event| line(read, event)).collect::<Result<Vec<_>>>()?;
            Ok((last, lines))
        });
        let Ok((last, lines)) = told else { return };
        self.after = last;
        for line in lines.into_iter().flatten() {
            self.teller.tell(&line);
        }
    }
}

impl Teller for Narrator<'_> {
    fn tell(&mut self, told: &Told) {
        self.teller.tell(told);
    }

    fn show(&mut self, run: &str, world: &World) {
        self.catch_up();
        self.teller.show(run, world);
    }
}

/// The line of an event that is worth one.
fn line(read: &Connection, event: &EventRow) -> Result<Option<Told>> {
    let (Some(id), Some(job)) = (event.about.job, &event.job_name) else { return Ok(None) };
    let body: serde_json::Value = serde_json::from_str(&event.body)?;
    let attempt = body.get("attempt").and_then(serde_json::Value::as_u64).and_then(|number| u32::try_from(number).ok());
    let text = match (event.kind.as_str(), attempt) {
        (kind, Some(attempt)) if kind == EventType::JobSealed.word() => {
            let sealed = store::attempt::get(read, id, attempt)?;
            let is_judged = sealed.answer.as_ref().is_some_and(|answer| answer.verdict.is_some());
            if is_judged {
                return Ok(None);
            }
            format!("{job}.{attempt} is done: {}", sealed.detail.unwrap_or_default())
        }
        (kind, Some(attempt)) if kind == EventType::VerdictRecorded.word() => {
            let Some(row) = store::verdict::of_job(read, id)?.into_iter().rev().find(|row| row.attempt == attempt)
            else {
                return Ok(None);
            };
            format!("{job}.{attempt} says {}{}", row.verdict, remarks(&row.findings))
        }
        (kind, Some(attempt)) if kind == EventType::JobQueued.word() && attempt > 1 => {
            format!("{job} goes on: attempt {attempt}")
        }
        _ => return Ok(None),
    };
    Ok(Some(Told { action: event.kind.clone(), job: Some(job.clone()), ..Told::note(text) }))
}

fn remarks(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("\n    {}: {}", finding.title, finding.detail)).collect()
}
