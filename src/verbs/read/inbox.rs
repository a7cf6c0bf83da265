//! `inbox`: everything that waits for a person, over all live runs, newest first, each with what ends it.
//!
//! It does not know how a person decides.

use serde::{Deserialize, Serialize};

use super::ways::{Subject, out_of};
use super::{Look, age, bounded, look};
use crate::domain::action::Surfaced;
use crate::domain::contract::BlockedReason;
use crate::domain::event::EventType;
use crate::domain::gate::tier_of;
use crate::domain::job::{Cause, JobState};
use crate::domain::proposal::{Doubt, ProposalState};
use crate::domain::run::RunState;
use crate::domain::time::Timestamp;
use crate::domain::word::word_enum;
use crate::error::{Next, Result};
use crate::store::job::Job;
use crate::store::resource::Resource;
use crate::store::{self, Connection};
use crate::verbs::Ctx;
use crate::verbs::flow;
use crate::verbs::flow::breaker;
use crate::verbs::flow::offer::{GATE, GATE_REJECTED};
use crate::verbs::proposal;
use crate::verbs::run::find;

/// Items shown when nothing says otherwise.
pub const SHOWN: u32 = 50;

/// Live runs that are looked at.
const RUNS: u32 = 50;

word_enum! {
    /// What kind of thing waits.
    ItemKind "inbox item" {
        /// An open gate.
        Gate "gate",
        /// A job that an agent, or its end, left to a person.
        Question "question",
        /// A job that failed, or whose gate was rejected, and keeps its successors waiting.
        Held "held",
        /// Work that no lane can be launched for.
        Unlaunchable "unlaunchable",
        /// A run that can't go on.
        Run "run",
        /// A lane that gets no launches.
        Lane "lane",
        /// Something that was made for an attempt, and could not be destroyed.
        Resource "resource",
        /// A job that an agent proposes, and the driver does not admit by itself.
        Proposal "proposal",
    }
}

/// Something that waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Item {
    /// What a command calls it: a gate's id, a job's, a run's or a lane's name.
    pub id: String,
    /// What it is.
    pub kind: ItemKind,
    /// The run that it keeps.
    pub run: Option<String>,
    /// The job that it keeps.
    pub job: Option<String>,
    /// The lane that it is about.
    pub lane: Option<String>,
    /// Why.
    pub cause: Cause,
    /// Since when.
    pub since: Timestamp,
    /// How long, in milliseconds.
    pub age_ms: u64,
    /// In words.
    pub text: String,
    /// What an agent awaits.
    pub question: Option<BlockedReason>,
    /// The run is in `needs_operator` for it.
    pub stops_run: bool,
    /// The commands that end it, the usual one first.
    pub next: Vec<Next>,
}

/// What `inbox` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InboxRequest {
    /// One run; all live ones when left out.
    pub run: Option<String>,
    /// Most items shown.
    pub limit: Option<u32>,
}

/// What `inbox` tells.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InboxReport {
    /// What waits, newest first.
    pub items: Vec<Item>,
    /// How many are not shown.
    pub left_out: u32,
}

/// Lists what waits for a person.
pub fn inbox(ctx: &Ctx, request: &InboxRequest) -> Result<InboxReport> {
    ctx.read(|read| {
        let looks = match &request.run {
            Some(name) => vec![look(ctx, read, find::named(read, name)?)?],
            None => live(ctx, read)?,
        };
        let lanes = request.run.is_none();
        collect(ctx, read, &looks.iter().collect::<Vec<_>>(), lanes, request.limit.unwrap_or(SHOWN))
    })
}

/// Looks at every live run, oldest first.
pub fn live(ctx: &Ctx, read: &Connection) -> Result<Vec<Look>> {
    store::run::live(read, RUNS)?.into_iter().map(|run| look(ctx, read, run)).collect()
}

/// What waits in some runs, and every parked lane when asked for.
pub fn collect(ctx: &Ctx, read: &Connection, looks: &[&Look], lanes: bool, limit: u32) -> Result<InboxReport> {
    let (mut items, mut total) = (Vec::new(), 0);
    for look in looks.iter().filter(|look| !look.run.state.is_terminal()) {
        let desk = Desk { ctx, read, look, limit };
        let (found, known) = desk.items()?;
        total += known;
        items.extend(found);
    }
    let parked = store::lane::parked(read)?;
    for lane in
        parked.iter().filter(|lane| lanes || looks.iter().any(|look| look.run.spec.lanes.contains_key(&lane.name)))
    {
        total += 1;
        items.push(parked_lane(ctx, looks, lane));
    }
    for row in store::resource::left(read)? {
        let run = store::run::get(read, row.run)?;
        if lanes || looks.iter().any(|look| look.run.id == run.id) {
            total += 1;
            items.push(left(ctx, run.name, store::job::name(read, row.job)?, row));
        }
    }
    items.sort_by(|one, other| other.since.cmp(&one.since).then_with(|| one.id.cmp(&other.id)));
    let left_out = bounded(&mut items, limit, total);
    Ok(InboxReport { items, left_out })
}

/// One run under somebody's eyes.
struct Desk<'a> {
    ctx: &'a Ctx,
    read: &'a Connection,
    look: &'a Look,
    limit: u32,
}

impl Desk<'_> {
    /// What waits in the run, at most `limit` of each kind, and how many there are.
    fn items(&self) -> Result<(Vec<Item>, u32)> {
        let (read, run) = (self.read, self.look.run.id);
        let obstacles = store::tally::obstacles(read, run)?;
        let mut items = if obstacles.has_gates { self.gates()? } else { Vec::new() };
        items.extend(self.gates_due()?);
        let mut total = 0;
        if obstacles.is_stuck {
            total += self.stuck(&mut items)?;
        }
        if obstacles.is_kept {
            total += self.kept(&mut items)?;
        }
        let (unlaunchable, known) = self.unlaunchable()?;
        total += known;
        items.extend(unlaunchable);
        total += self.proposals(&mut items)?;
        total += self.tripped(&mut items);
        total += self.stopped(&mut items)?;
        Ok((items, total))
    }

    /// Adds proposals that were surfaced; gives how many there are.
    fn proposals(&self, items: &mut Vec<Item>) -> Result<u32> {
        let (read, run) = (self.read, self.look.run.id);
        for row in store::proposal::in_state(read, run, ProposalState::Surfaced, self.limit)? {
            let (id, since) = (row.id.to_string(), row.proposed_at);
            let line = proposal::line(read, row)?;
            let why =
                line.why.as_deref().and_then(|word| word.parse::<Doubt>().ok()).map_or("", |doubt| doubt.reason());
            let next = |verb: &str, why: &str| Next::new("person", why, &["striatum", "run", verb, &id]);
            items.push(Item {
                text: format!("{} proposes a {}: {} ({why})", line.by, line.kind, line.objective),
                job: Some(line.by),
                next: vec![next("admit", "make it a job"), next("dismiss", "put it aside")],
                id: id.clone(),
                ..self.item(ItemKind::Proposal, Cause::Other, since)
            });
        }
        Ok(store::proposal::count_in_state(read, run, ProposalState::Surfaced)?)
    }

    /// Adds jobs that were left to a person, or failed; gives how many there are.
    fn stuck(&self, items: &mut Vec<Item>) -> Result<u32> {
        let (read, run) = (self.read, self.look.run.id);
        let mut total = 0;
        for state in [JobState::WaitingHuman, JobState::Failed] {
            total += store::job::count_held(read, run, state)?;
            let kind = if state == JobState::Failed { ItemKind::Held } else { ItemKind::Question };
            for job in store::job::held(read, run, state, self.limit)? {
                items.push(self.held(&job, kind)?);
            }
        }
        Ok(total)
    }

    /// Adds jobs whose gate was rejected; gives how many a gate keeps: opened or not, it waits for a person.
    fn kept(&self, items: &mut Vec<Item>) -> Result<u32> {
        let (read, run) = (self.read, self.look.run.id);
        for job in store::job::kept_for(read, run, GATE_REJECTED, self.limit)? {
            items.push(self.held(&job, ItemKind::Held)?);
        }
        Ok(store::job::count_kept_for(read, run, GATE)? + store::job::count_kept_for(read, run, GATE_REJECTED)?)
    }

    fn subject(&self) -> Subject<'_> {
        Subject { run: &self.look.run.name, of: Some(&self.look.run), ..Subject::default() }
    }

    fn item(&self, kind: ItemKind, cause: Cause, since: Timestamp) -> Item {
        Item {
            id: String::new(),
            kind,
            run: Some(self.look.run.name.clone()),
            job: None,
            lane: None,
            cause,
            since,
            age_ms: age(self.ctx, since),
            text: String::new(),
            question: None,
            stops_run: false,
            next: Vec::new(),
        }
    }

    fn gates(&self) -> Result<Vec<Item>> {
        let gates = store::gate::open(self.read, self.look.run.id, self.limit)?;
        let stuck = store::landing::refused(self.read, self.look.run.id)?;
        let items = gates.into_iter().map(|gate| {
            let id = gate.id.to_string();
            let subject = Subject { job: Some(&gate.job), gate: Some(&id), ..self.subject() };
            let obstacle = stuck.iter().find(|obstacle| obstacle.gate == gate.id);
            let cause = if obstacle.is_some() { Cause::Landing } else { Cause::Gate };
            Item {
                next: out_of(cause, &subject),
                text: match obstacle {
                    Some(obstacle) => format!("it can't land: {}", obstacle.reason),
                    None => format!("{}: {}", gate.tier, gate.why),
                },
                stops_run: obstacle.is_some() && self.look.run.cause == Some(Cause::Landing),
                job: Some(gate.job),
                id,
                ..self.item(ItemKind::Gate, cause, gate.opened_at)
            }
        });
        Ok(items.collect())
    }

    /// Gates that no driver has opened yet: the first decision opens them.
    fn gates_due(&self) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for due in self.look.world.gates_due.iter().take(self.limit as usize) {
            let job = store::job::get(self.read, due.job)?;
            let note = flow::gate::why(&job);
            let subject = Subject { job: Some(&job.name), ..self.subject() };
            items.push(Item {
                id: job.name.clone(),
                job: Some(job.name.clone()),
                text: format!("{}: {note}", tier_of(&job.spec)),
                next: out_of(Cause::Gate, &subject),
                ..self.item(ItemKind::Gate, Cause::Gate, job.changed_at)
            });
        }
        Ok(items)
    }

    fn held(&self, job: &Job, kind: ItemKind) -> Result<Item> {
        let cause = job.reason.as_deref().and_then(|word| word.parse().ok()).unwrap_or(Cause::Other);
        let detail = match job.attempt {
            0 => None,
            number => store::attempt::get(self.read, job.id, number)?.detail,
        };
        let text = match &job.question {
            Some(question) => question.awaiting.clone(),
            None => detail.unwrap_or_else(|| cause.to_string()),
        };
        let subject = Subject { job: Some(&job.name), lane: job.spec.lane.as_deref(), ..self.subject() };
        Ok(Item {
            id: job.name.clone(),
            job: Some(job.name.clone()),
            lane: job.spec.lane.clone(),
            text,
            question: job.question.clone(),
            next: out_of(cause, &subject),
            ..self.item(kind, cause, job.changed_at)
        })
    }

    /// Work that a driver tells and skips, but for parked lanes, which are items of their own. A driver tells the first
    /// job of a slot only; here every one is shown.
    fn unlaunchable(&self) -> Result<(Vec<Item>, u32)> {
        let (mut items, mut total) = (Vec::new(), 0);
        for surfaced in &self.look.plan.surfaced {
            let Some((name, cause)) = surfaced.cause().filter(|(_, cause)| *cause != Cause::LaneParked) else {
                continue;
            };
            let lanes = candidates(surfaced);
            let slot = self.look.world.slots.iter().find(|slot| slot.offers.iter().any(|offer| offer.name == name));
            let Some(slot) = slot else {
                let job = store::job::by_name(self.read, self.look.run.id, name)?;
                items.extend(job.map(|job| self.surfaced(&job, surfaced, cause, &lanes)));
                total += 1;
                continue;
            };
            total += store::message::pending_in_slot(self.read, self.look.run.id, &slot.role, &slot.lane)?;
            for message in
                store::message::pending(self.read, self.look.run.id, &slot.role, Some(&slot.lane), self.limit)?
            {
                items.push(self.surfaced(&store::job::get(self.read, message.job)?, surfaced, cause, &lanes));
            }
        }
        Ok((items, total))
    }

    fn surfaced(&self, job: &Job, surfaced: &Surfaced, cause: Cause, lanes: &[String]) -> Item {
        let subject = Subject {
            job: Some(&job.name),
            role: job.spec.role.as_deref(),
            lane: lanes.first().map(String::as_str),
            ..self.subject()
        };
        Item {
            id: job.name.clone(),
            job: Some(job.name.clone()),
            lane: lanes.first().filter(|_| lanes.len() == 1).cloned(),
            text: about(surfaced, &job.name),
            next: out_of(cause, &subject),
            ..self.item(ItemKind::Unlaunchable, cause, job.changed_at)
        }
    }

    /// Adds breakers that have tripped, whether or not something else still moves; gives how many.
    fn tripped(&self, items: &mut Vec<Item>) -> u32 {
        let run = &self.look.run;
        let tripped = run.tripped.iter().filter(|(cause, _)| run.cause != Some(**cause));
        let item = |(cause, since): (&Cause, &Timestamp)| {
            let shown = breaker::shown(run, *cause);
            Item {
                id: run.name.clone(),
                text: shown.map_or_else(
                    || cause.to_string(),
                    |(value, limit)| match cause {
                        Cause::NoProgress => format!("nothing in flight gave a sign of life for {limit}; it goes on"),
                        _ => format!("{cause} is spent ({value} of {limit}); what is in flight goes on"),
                    },
                ),
                next: out_of(*cause, &self.subject()),
                ..self.item(ItemKind::Run, *cause, *since)
            }
        };
        let before = items.len();
        items.extend(tripped.map(item));
        super::count(items.len() - before)
    }

    /// Says which job spoke a stop phrase, when that is what stopped the run; gives how many were added.
    fn by_phrase(&self, items: &mut Vec<Item>) -> Result<u32> {
        let run = &self.look.run;
        let Some(event) = store::event::newest_of_type(self.read, run.id, EventType::RunStopped)? else { return Ok(0) };
        let body: serde_json::Value = serde_json::from_str(&event.body)?;
        let (Some(job), Some(phrase)) = (body["job"].as_str(), body["phrase"].as_str()) else { return Ok(0) };
        let argv = ["striatum", "run", "resume", "--run-id", &run.name];
        items.push(Item {
            id: run.name.clone(),
            text: format!("{job} said the stop phrase `{phrase}`, which stopped the run"),
            job: Some(job.to_owned()),
            stops_run: true,
            next: vec![Next::new("operator", "let it go on", &argv)],
            ..self.item(ItemKind::Run, Cause::Other, event.at)
        });
        Ok(1)
    }

    /// Says what stopped the run: on the item that did, else as an item of its own; gives how many were added.
    fn stopped(&self, items: &mut Vec<Item>) -> Result<u32> {
        let run = &self.look.run;
        if run.stop_requested_at.is_some() && !run.spec.stop_phrases.is_empty() {
            return self.by_phrase(items);
        }
        if run.state != RunState::NeedsOperator {
            return Ok(0);
        }
        let cause = run.cause.unwrap_or(Cause::Other);
        let culprit =
            items.iter_mut().find(|item| item.job.is_some() && item.job == run.subject && item.cause == cause);
        if let Some(culprit) = culprit {
            culprit.stops_run = true;
            return Ok(0);
        }
        let told = store::event::newest_of_type(self.read, run.id, EventType::RunNeedsOperator)?;
        let since = told.map_or(run.created_at, |event| event.at);
        let subject = Subject { job: run.subject.as_deref(), lane: run.subject.as_deref(), ..self.subject() };
        items.push(Item {
            id: run.name.clone(),
            text: run.reason.clone().unwrap_or_else(|| cause.to_string()),
            stops_run: true,
            next: out_of(cause, &subject),
            ..self.item(ItemKind::Run, cause, since)
        });
        Ok(1)
    }
}

fn candidates(surfaced: &Surfaced) -> Vec<String> {
    match surfaced {
        Surfaced::AmbiguousLane { lanes, .. } => lanes.clone(),
        Surfaced::HumanLane { lane, .. } | Surfaced::Untrusted { lane, .. } | Surfaced::LaneParked { lane, .. } => {
            vec![lane.clone()]
        }
        Surfaced::FreshBlocked { .. } => Vec::new(),
    }
}

/// Why a job is not launched, without the command that stands beside it.
fn about(surfaced: &Surfaced, job: &str) -> String {
    match surfaced {
        Surfaced::AmbiguousLane { role, lanes, .. } => {
            format!("no lane is named for {job}, and role {role} has {}", lanes.join(", "))
        }
        Surfaced::HumanLane { lane, .. } => format!("lane {lane} is a person"),
        Surfaced::Untrusted { lane, .. } => format!("nobody has trusted the commands of lane {lane}"),
        Surfaced::LaneParked { lane, .. } => format!("lane {lane} is parked"),
        Surfaced::FreshBlocked { author, .. } => format!("author {author} still works"),
    }
}

fn parked_lane(ctx: &Ctx, looks: &[&Look], lane: &store::lane::ParkedLane) -> Item {
    let kept = looks.iter().find_map(|look| {
        look.plan.surfaced.iter().find_map(|surfaced| match surfaced {
            Surfaced::LaneParked { job, lane: parked } if *parked == lane.name => {
                Some((look.run.name.clone(), job.clone()))
            }
            _ => None,
        })
    });
    let (run, job) = kept.map_or((None, None), |(run, job)| (Some(run), Some(job)));
    let subject = Subject { run: run.as_deref().unwrap_or_default(), lane: Some(&lane.name), ..Subject::default() };
    Item {
        id: lane.name.clone(),
        kind: ItemKind::Lane,
        lane: Some(lane.name.clone()),
        cause: Cause::LaneParked,
        since: lane.at,
        age_ms: age(ctx, lane.at),
        text: lane.reason.clone().unwrap_or_else(|| "parked".to_owned()),
        question: None,
        stops_run: false,
        next: out_of(Cause::LaneParked, &subject),
        run,
        job,
    }
}

/// It waits whether its run lives or not, and keeps nothing.
fn left(ctx: &Ctx, run: String, job: String, row: Resource) -> Item {
    Item {
        id: row.name.clone(),
        kind: ItemKind::Resource,
        run: Some(run),
        job: Some(job),
        lane: None,
        cause: Cause::Environment,
        since: row.made_at,
        age_ms: age(ctx, row.made_at),
        text: format!("could not be destroyed: {}", row.reason.as_deref().unwrap_or("nobody knows why")),
        question: None,
        stops_run: false,
        next: vec![
            Next::new("operator", "try again to destroy it", &["striatum", "gc", "--yes"]),
            Next::new(
                "operator",
                "say that you have destroyed it yourself",
                &["striatum", "gc", "--discard", &row.name, "--reason", "...", "--yes"],
            ),
        ],
    }
}
