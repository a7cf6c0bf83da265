//! `decision record`, `decision list`: judgements with their reasons, and the escapes among them.
//!
//! An escape is a person's: it opens one act beyond the constrained surface. What it opens is asked in `escape`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Ctx;
use super::run::find;
use crate::domain::escape::{LIFE_MS, MOST_USES, Surface};
use crate::domain::event::{EventType, sha256_hex};
use crate::domain::id::{DecisionId, SessionId};
use crate::domain::session::SessionState;
use crate::domain::time::Timestamp;
use crate::domain::word::word_enum;
use crate::error::{Code, Error, Result};
use crate::os::files;
use crate::store::decision::{Listed, NewDecision};
use crate::store::escape::NewEscape;
use crate::store::event::About;
use crate::store::job::Job;
use crate::store::run::Run;
use crate::store::{self, Writing};
use crate::verbs::session::must_exist;

word_enum! {
    /// What was judged.
    Verdict "outcome" {
        /// So be it.
        Accepted "accepted",
        /// No.
        Rejected "rejected",
        /// So be it, and something is to be done later.
        AcceptedWithFollowUp "accepted_with_follow_up",
    }
}

/// Longest text of a decision, in bytes.
const LONGEST: usize = 64 * 1024;

/// What is to pass.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Escape {
    /// Where it leaves the constrained surface.
    pub surface: Surface,
    /// The words of the act, or their hash.
    pub action: String,
    /// How often.
    pub uses: u32,
    /// For how long, in milliseconds; a day when left out.
    pub life_ms: Option<u64>,
}

/// What `decision record` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordRequest {
    /// About which run; the only live one when left out.
    pub run: Option<String>,
    /// About which job.
    pub job: Option<String>,
    /// About which session.
    pub session: Option<SessionId>,
    /// What was judged.
    pub outcome: Verdict,
    /// In a few words.
    pub title: String,
    /// Why.
    pub rationale: String,
    /// What is to be done later.
    pub follow_up: Option<String>,
    /// What it lets leave the constrained surface.
    pub escape: Option<Escape>,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordReport {
    /// The decision.
    pub decision: DecisionId,
    /// About which run.
    pub run: String,
    /// Its page.
    pub file: PathBuf,
    /// Hash of the page.
    pub sha256: String,
    /// What it lets leave the constrained surface.
    pub escape: Option<Escape>,
}

/// Records a judgement.
pub fn record(ctx: &Ctx, request: &RecordRequest) -> Result<RecordReport> {
    check(request)?;
    let how = match &request.escape {
        Some(_) => ctx.person()?,
        None => ctx.person().unwrap_or("operator"),
    };
    ctx.write("decision record", |tx| {
        let run = find::for_writing(tx, request.run.as_deref())?;
        let job = request.job.as_deref().map(|name| find::job(tx, &run, name)).transpose()?;
        if request.escape.is_some() {
            must_be_open(tx, &run, request)?;
        }
        let new = NewDecision {
            run: Some(run.id),
            job: job.as_ref().map(|job| job.id),
            session: request.session,
            kind: if request.escape.is_some() { "escape" } else { "recorded" },
            outcome: Some(request.outcome.word()),
            body: request.title.trim(),
            reason: request.rationale.trim(),
            follow_up: request.follow_up.as_deref(),
            how,
        };
        let decision = store::decision::insert(tx, &new)?;
        if let Some(escape) = &request.escape {
            let expires = ctx.clock.moment().after(escape.life_ms.unwrap_or(LIFE_MS));
            let Escape { surface, action, uses, .. } = escape;
            let new = NewEscape { decision, run: run.id, surface: *surface, action, uses: *uses, expires: &expires };
            store::escape::insert(tx, &new)?;
        }
        let text = page(&Page { decision, run: &run, at: tx.at, by: tx.principal, how, request });
        // The page goes before the row: one that a crash leaves alone is written over by the next of its number.
        let file = ctx.layout().decisions().join(format!("{decision}.md"));
        files::create_private_dirs(ctx.layout().root(), &ctx.layout().decisions())?;
        files::write_private(&file, text.as_bytes())?;
        let sha256 = sha256_hex(text.as_bytes());
        tell(tx, (&run, job.as_ref()), request, (decision, &sha256))?;
        Ok(RecordReport { decision, run: run.name, file, sha256, escape: request.escape.clone() })
    })
}

/// Whether the words of a decision make sense together.
fn check(request: &RecordRequest) -> Result<()> {
    let usage = |text: &str| Err(Error::new(Code::Usage, text));
    let is_empty = |text: &str| text.trim().is_empty();
    let follow_up = request.follow_up.as_deref().is_some_and(|text| !is_empty(text));
    if is_empty(&request.title) || request.title.contains(['\n', '\r']) {
        return usage("--title is one line that says what was decided");
    }
    if [&request.title, &request.rationale].iter().any(|text| text.len() > LONGEST) {
        return Err(Error::new(Code::TooLarge, format!("a decision has at most {LONGEST} bytes of text")));
    }
    if follow_up != (request.outcome == Verdict::AcceptedWithFollowUp) {
        return usage("--follow-up and --outcome accepted_with_follow_up go together");
    }
    let Some(escape) = &request.escape else { return Ok(()) };
    if is_empty(&request.rationale) {
        return usage("an escape needs --rationale: it is recorded");
    }
    if request.outcome == Verdict::Rejected {
        return usage("a rejected decision opens nothing: leave --escape-surface out");
    }
    if is_empty(&escape.action) {
        return usage("--escape-action names the act that may pass");
    }
    if !(1..=MOST_USES).contains(&escape.uses) {
        return Err(Error::new(Code::Usage, format!("--uses is a number from 1 to {MOST_USES}")));
    }
    Ok(())
}

/// An escape for what is over would open nothing, or something later that nobody meant.
fn must_be_open(tx: &Writing<'_>, run: &Run, request: &RecordRequest) -> Result<()> {
    let Some(named) = request.session else { return Ok(()) };
    let session = must_exist(tx, named)?;
    if session.run != run.id || session.state != SessionState::Active {
        let message = format!("{named} is no active session of run {}", run.name);
        return Err(Error::new(Code::SessionEnded, message).hint("an escape for it would open nothing"));
    }
    Ok(())
}

fn tell(
    tx: &Writing<'_>,
    about: (&Run, Option<&Job>),
    request: &RecordRequest,
    kept: (DecisionId, &str),
) -> Result<()> {
    let escape = request.escape.as_ref();
    let body = json!({"decision": kept.0, "kind": if escape.is_some() { "escape" } else { "recorded" },
        "outcome": request.outcome, "title": request.title.trim(), "sha256": kept.1,
        "surface": escape.map(|escape| escape.surface), "action": escape.map(|escape| &escape.action),
        "uses": escape.map(|escape| escape.uses)});
    let about = About { run: Some(about.0.id), job: about.1.map(|job| job.id), session: request.session };
    Ok(store::event::append(tx, EventType::DecisionRecorded, about, &body)?)
}

/// What stands on a decision's page.
struct Page<'a> {
    decision: DecisionId,
    run: &'a Run,
    at: Timestamp,
    by: &'a str,
    how: &'a str,
    request: &'a RecordRequest,
}

/// A decision as a page: front matter for programs, prose for people.
fn page(page: &Page<'_>) -> String {
    let Page { decision, run, at, by, how, request } = page;
    let mut head = vec![
        ("decision", json!(decision)),
        ("run", json!(run.name)),
        ("outcome", json!(request.outcome)),
        ("decided_at", json!(at)),
        ("decided_by", json!(by)),
        ("how", json!(how)),
    ];
    head.extend(request.job.iter().map(|job| ("job", json!(job))));
    head.extend(request.session.iter().map(|session| ("session", json!(session))));
    if let Some(escape) = &request.escape {
        head.extend([
            ("escape_decision", json!(true)),
            ("escape_surface", json!(escape.surface)),
            ("escape_action", json!(escape.action)),
            ("uses", json!(escape.uses)),
        ]);
    }
    let head: String = head.iter().map(|(key, value)| format!("{key}: {value}\n")).collect();
    let mut text = format!("---\n{head}---\n\n# {}\n", request.title.trim());
    let later = request.follow_up.as_deref().map(|text| format!("## Follow-up\n\n{}", text.trim()));
    for part in [Some(request.rationale.trim().to_owned()), later].into_iter().flatten().filter(|part| !part.is_empty())
    {
        text.push_str(&format!("\n{part}\n"));
    }
    text
}

/// What `decision list` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListRequest {
    /// The run; the only live one, else the newest, when left out.
    pub run: Option<String>,
    /// Escapes only.
    pub escapes: bool,
}

/// A decision, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DecisionLine {
    /// d4.
    pub decision: DecisionId,
    /// recorded, escape, answer, retry, ...
    pub kind: String,
    /// Of a recorded one.
    pub outcome: Option<String>,
    /// What was decided.
    pub title: String,
    /// Why.
    pub rationale: String,
    /// What is to be done later.
    pub follow_up: Option<String>,
    /// About which job.
    pub job: Option<String>,
    /// About which session.
    pub session: Option<SessionId>,
    /// Who.
    pub by: String,
    /// How that is known.
    pub how: String,
    /// When.
    pub at: Timestamp,
    /// What it opens.
    pub escape: Option<EscapeLine>,
}

/// What an escape opens, for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EscapeLine {
    /// Where.
    pub surface: Surface,
    /// The words of the act, or their hash.
    pub action: String,
    /// How often it may be used.
    pub uses: u32,
    /// How often it was.
    pub used: u32,
    /// Its time is over.
    pub is_expired: bool,
}

/// What `decision list` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// The run's name; none in a store without runs.
    pub run: Option<String>,
    /// Its decisions, newest first.
    pub decisions: Vec<DecisionLine>,
    /// There are older ones that are not shown.
    pub has_more: bool,
}

/// Most decisions in one list.
const LIST_LIMIT: u32 = 200;

/// Lists the decisions of a run.
pub fn list(ctx: &Ctx, request: &ListRequest) -> Result<ListReport> {
    ctx.read(|read| {
        let Some(run) = find::if_any(ctx, read, request.run.as_deref())? else {
            return Ok(ListReport { run: None, decisions: Vec::new(), has_more: false });
        };
        let mut rows = store::decision::of_run(read, run.id, LIST_LIMIT + 1)?;
        let has_more = rows.len() > LIST_LIMIT as usize;
        rows.truncate(LIST_LIMIT as usize);
        let wanted = rows.into_iter().filter(|row| !request.escapes || row.opens.is_some());
        let decisions = wanted.map(|row| line(ctx, row)).collect();
        Ok(ListReport { run: Some(run.name), decisions, has_more })
    })
}

fn line(ctx: &Ctx, row: Listed) -> DecisionLine {
    let now = ctx.clock.moment();
    DecisionLine {
        decision: row.id,
        kind: row.kind,
        outcome: row.outcome,
        title: row.body,
        rationale: row.reason,
        follow_up: row.follow_up,
        job: row.job,
        session: row.session,
        by: row.principal,
        how: row.how,
        at: row.decided_at,
        escape: row.opens.map(|opens| EscapeLine {
            surface: opens.surface,
            action: opens.action,
            uses: opens.uses,
            used: opens.used,
            is_expired: opens.expires.is_past(&now),
        }),
    }
}
