//! `run drive`: takes a started run to done.
//!
//! A turn:
//! - *observe* the frontier, and the locks;
//! - *decide* with `reconcile`, which is pure;
//! - *act*, each act a transaction of its own;
//! - when something was done, look again at once;
//! - else *wait* for a commit, a helper's end, a signal, or the next due moment.
//!
//! It holds no state that matters: everything it needs is in the store and the locks, so it may die at any point.

use std::collections::BTreeSet;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::act::{self, Done};
use super::metering::Metering;
use super::observe;
use super::wait::{Reason, Waiter};
use super::{agree, files, find, marker};
use crate::domain::action::{Action, Plan, Standing, Surfaced};
use crate::domain::id::{RunId, SessionId};
use crate::domain::job::Cause;
use crate::domain::reconcile::reconcile;
use crate::domain::run::RunState;
use crate::domain::session::StopKind;
use crate::domain::world::World;
use crate::error::{Code, Error, Kind, Next, Result};
use crate::os::process::Identity;
use crate::store::run::Run;
use crate::store::{self};
use crate::verbs::ctx::LOG_AT_REST;
use crate::verbs::read::ways;
use crate::verbs::settle::observation::foresee;
use crate::verbs::{Ctx, land, notice, tree, trust};

/// What `run drive` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriveRequest {
    /// The run; the only live one when left out.
    pub run: Option<String>,
    /// Longest time between two looks, in milliseconds; jittered.
    pub interval_ms: u64,
    /// One turn.
    pub once: bool,
    /// Decide and tell, do nothing.
    pub dry_run: bool,
    /// Refuse when another driver is active.
    pub exclusive: bool,
    /// Stay while a person is needed.
    pub wait_human: bool,
    /// Stop every lane at the end.
    pub stop_lanes: bool,
    /// Commands with this hash may run, trusted or not (CI).
    #[serde(default)]
    pub trust_hash: Option<String>,
}

/// Something to tell, as it happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Told {
    /// A word: an action's, or `note`, `surfaced`, `end`.
    pub action: String,
    /// The job.
    pub job: Option<String>,
    /// The role.
    pub role: Option<String>,
    /// The lane.
    pub lane: Option<String>,
    /// The session.
    pub session_id: Option<SessionId>,
    /// What it came to.
    pub result: String,
    /// The line for people, when it is worth one.
    pub line: Option<String>,
}

impl Told {
    /// A line that is about nothing in particular.
    pub fn note(line: impl Into<String>) -> Told {
        let line = line.into();
        Told {
            action: "note".to_owned(),
            job: None,
            role: None,
            lane: None,
            session_id: None,
            result: line.clone(),
            line: Some(line),
        }
    }
}

/// Where a driver tells what it does.
pub trait Teller {
    /// Something happened.
    fn tell(&mut self, told: &Told);
    /// The world as it is now, for a live line or a heartbeat.
    fn show(&mut self, run: &str, world: &World);
    /// A person should look here, and no command is configured that says so.
    fn ring(&mut self) {}
}

/// What `run drive` came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DriveReport {
    /// The run's name.
    pub run: String,
    /// Where it is, `waiting_human` among the states.
    pub state: String,
    /// Why the driver ends.
    pub reason: String,
    /// The exit code of the driver.
    pub exit: u8,
    /// What waits for a person, with its cause.
    pub waiting: Vec<(String, Cause)>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Takes a run to done, or to one clear question.
pub fn drive(ctx: &Ctx, request: &DriveRequest, teller: &mut dyn Teller) -> Result<DriveReport> {
    let run = started(ctx, request.run.as_deref())?;
    trust::check_run(ctx, &run, request.trust_hash.as_deref())?;
    if !run.state.is_terminal() {
        for warning in files::edited(ctx, &run)? {
            teller.tell(&Told::note(format!("warning: {warning}")));
        }
    }
    if request.dry_run {
        return dry_run(ctx, &run, teller);
    }
    ctx.wait_for_store(run.spec.limits.busy_ms);
    let marker = marker::take(ctx, &run, request, teller)?;
    let Some(marker) = marker else { return followed(ctx, run.id) };
    let mut driver = Driver::new(ctx, run.id, request, teller)?;
    let report = driver.run()?;
    driver.metering.save(ctx, driver.run)?;
    driver.finish(request.stop_lanes)?;
    driver.let_lanes_end()?;
    driver.bury()?;
    driver.tell_person(marker.is_some())?;
    tree::release::at_end(ctx, run.id)?;
    drop(marker);
    ctx.store()?.checkpoint_over(LOG_AT_REST)?;
    Ok(report)
}

/// The run to drive: it must have been started.
pub fn started(ctx: &Ctx, name: Option<&str>) -> Result<Run> {
    let found = ctx.read(|read| match name {
        Some(name) => find::named(read, name),
        None => find::for_writing(read, None),
    });
    let run = match found {
        Err(error) if error.code == Code::NotFound && name.is_none() => {
            return Err(Error { code: Code::NotRunning, ..error });
        }
        other => other?,
    };
    if run.state == RunState::Ready {
        return Err(Error::new(Code::NotRunning, format!("run {} is not started", run.name)).next(Next::new(
            "operator",
            "start it",
            &["striatum", "run", "start", "--run-id", &run.name],
        )));
    }
    Ok(run)
}

/// A standby whose driver finished, or died after the last seal: the run's own end.
fn followed(ctx: &Ctx, run: RunId) -> Result<DriveReport> {
    tree::release::at_end(ctx, run)?;
    let (run, world) = observe::world(ctx, run)?;
    let plan = reconcile(&world, &ctx.clock.moment());
    report(ctx, &run, &plan.standing)
}

fn dry_run(ctx: &Ctx, run: &Run, teller: &mut dyn Teller) -> Result<DriveReport> {
    if let Some(holder) = marker::holder(ctx, run) {
        teller.tell(&Told::note(marker::warning(&holder, "looking only")));
    }
    let (run, world) = observe::world(ctx, run.id)?;
    let plan = reconcile(&world, &ctx.clock.moment());
    for action in &plan.actions {
        teller.tell(&Told { line: Some(format!("would {}", action.key())), ..told(action, "planned") });
        if let Some(line) = foresee(ctx, action)? {
            teller.tell(&Told::note(line));
        }
    }
    for surfaced in &plan.surfaced {
        teller.tell(&Told::note(surfaced.line()));
    }
    let mut report = report(ctx, &run, &plan.standing)?;
    if !run.state.is_terminal() {
        report.exit = 0;
    }
    Ok(report)
}

/// How often a driver looks after helpers that die while it ends; more often only a fault that kills each of them.
const BURIALS: u32 = 5;

struct Driver<'a> {
    ctx: &'a Ctx,
    run: RunId,
    request: &'a DriveRequest,
    teller: &'a mut dyn Teller,
    waiter: Waiter,
    surfaced: BTreeSet<Surfaced>,
    notices: notice::Watch,
    metering: Metering,
    plan: agree::Plan,
    said_busy: bool,
    idle_turns: u32,
}

/// How a turn went.
enum Turn {
    /// Something was done: look again.
    Busy,
    /// Nothing to do until something happens.
    Idle(Plan),
    /// The driver has nothing more to do here.
    End(DriveReport),
}

impl<'a> Driver<'a> {
    fn new(ctx: &'a Ctx, run: RunId, request: &'a DriveRequest, teller: &'a mut dyn Teller) -> Result<Driver<'a>> {
        let waiter = Waiter::start(ctx, request.interval_ms)?;
        let notices = notice::Watch::from_mark(ctx, run)?;
        let surfaced = BTreeSet::new();
        let metering = Metering::new(request.interval_ms);
        let plan = agree::Plan::default();
        Ok(Driver {
            ctx,
            run,
            request,
            teller,
            waiter,
            surfaced,
            notices,
            metering,
            plan,
            said_busy: false,
            idle_turns: 0,
        })
    }

    fn run(&mut self) -> Result<DriveReport> {
        loop {
            let begun = Instant::now();
            match self.turn_or_back_off()? {
                // One turn that found a person's work to wait for has done all that it was asked.
                Turn::End(report) if self.request.once && report.exit == Kind::WaitingHuman.exit() => {
                    return Ok(DriveReport { exit: 0, ..report });
                }
                Turn::End(report) => return Ok(report),
                Turn::Busy if self.request.once => return self.once_report(),
                Turn::Idle(_) if self.request.once => return self.once_report(),
                Turn::Busy => self.idle_turns = 0,
                Turn::Idle(plan) => {
                    self.idle_turns = self.idle_turns.saturating_add(1);
                    self.waiter.rest(begun.elapsed(), self.idle_turns)?;
                    if let Reason::Signal(count) = self.waiter.wait(self.ctx, plan.wake_at.as_ref())? {
                        return self.interrupted(count);
                    }
                }
            }
            if let Some(count) = self.waiter.signal() {
                return self.interrupted(count);
            }
        }
    }

    /// A store that somebody else holds for too long is no reason to end.
    fn turn_or_back_off(&mut self) -> Result<Turn> {
        match self.turn() {
            Err(error) if error.kind() == Kind::Busy => {
                if !self.said_busy {
                    self.teller.tell(&Told::note("store read failed, backing off"));
                    self.said_busy = true;
                }
                self.waiter.back_off();
                Ok(Turn::Idle(Plan {
                    actions: Vec::new(),
                    surfaced: Vec::new(),
                    wake_at: Some(self.ctx.clock.moment().after(250)),
                    standing: Standing::Moving,
                }))
            }
            Ok(turn) => {
                if self.said_busy {
                    self.said_busy = false;
                    let sessions = self.ctx.read(|read| Ok(store::session::active(read, self.run)?.len()))?;
                    self.teller.tell(&Told::note(format!("reconciled {sessions} sessions after restart")));
                }
                Ok(turn)
            }
            other => other,
        }
    }

    fn turn(&mut self) -> Result<Turn> {
        self.waiter.seen(self.ctx)?;
        self.ctx.store()?.check_version()?;
        for line in land::take_up(self.ctx, self.run)? {
            self.teller.tell(&Told::note(line));
        }
        let (run, world) = self.metering.look(self.ctx, self.run)?;
        self.waiter.follow(world_helpers(self.ctx, &world)?);
        let plan = self.metering.decide(self.ctx, &run, &world);
        self.surface(&plan)?;
        self.teller.show(&run.name, &world);
        let has_acted = self.act(&plan)?;
        self.notify()?;
        if has_acted {
            return Ok(Turn::Busy);
        }
        let stays = self.request.wait_human && matches!(plan.standing, Standing::WaitingHuman(_));
        match plan.standing {
            Standing::Moving => Ok(Turn::Idle(plan)),
            _ if stays => Ok(Turn::Idle(plan)),
            _ => Ok(Turn::End(report(self.ctx, &run, &plan.standing)?)),
        }
    }

    /// Performs the plan; whether anything changed.
    fn act(&mut self, plan: &Plan) -> Result<bool> {
        let mut changed = false;
        for action in &plan.actions {
            if let Some(line) = self.plan.before(self.ctx, self.run, action)? {
                changed = true;
                self.teller.tell(&Told { line: Some(line), ..told(action, "plan_disagrees") });
                continue;
            }
            let mut launched = act::Launched::new();
            let done = act::act(self.ctx, self.run, action, &mut launched);
            let session = launched.first().map(|(session, _)| *session);
            match action {
                Action::Destroy { .. } => self.waiter.await_also(launched),
                _ => self.waiter.adopt(launched),
            }
            match done? {
                Done::Changed(line) => {
                    changed = true;
                    let told = told(action, "done");
                    self.teller.tell(&Told { line, session_id: told.session_id.or(session), ..told });
                }
                Done::FreshRefused(author) => {
                    if let Action::Launch(launch) = action {
                        self.say_once(Surfaced::FreshBlocked { job: launch.name.clone(), author });
                    }
                }
                Done::Moot => {}
            }
        }
        Ok(changed)
    }

    /// Tells what can't be launched, once a change of state.
    fn surface(&mut self, plan: &Plan) -> Result<()> {
        let now: BTreeSet<Surfaced> = plan.surfaced.iter().cloned().collect();
        self.surfaced.retain(|told| now.contains(told) || matches!(told, Surfaced::FreshBlocked { .. }));
        for surfaced in now {
            if !self.surfaced.contains(&surfaced) {
                notice::surfaced(self.ctx, self.run, &surfaced)?;
            }
            self.say_once(surfaced);
        }
        Ok(())
    }

    /// Tells a person what is new and worth it.
    fn notify(&mut self) -> Result<()> {
        if !self.notices.look(self.ctx)?.is_empty() {
            self.teller.ring();
        }
        Ok(())
    }

    /// The last words: whoever drove and leaves lanes at work says that nothing follows them.
    fn tell_person(&mut self, was_driver: bool) -> Result<()> {
        self.notify()?;
        if was_driver { notice::lookout::leave(self.ctx, self.run) } else { Ok(()) }
    }

    fn say_once(&mut self, surfaced: Surfaced) {
        if self.surfaced.contains(&surfaced) {
            return;
        }
        let line = surfaced.line();
        self.surfaced.insert(surfaced);
        self.teller.tell(&Told { action: "surfaced".to_owned(), ..Told::note(line) });
    }

    fn once_report(&mut self) -> Result<DriveReport> {
        let mut report = followed(self.ctx, self.run)?;
        let run = self.ctx.read(|read| Ok(store::run::get(read, self.run)?))?;
        if !run.state.is_terminal() && run.state != RunState::NeedsOperator {
            report.exit = 0;
        }
        Ok(report)
    }

    fn interrupted(&mut self, count: u32) -> Result<DriveReport> {
        let run = self.ctx.read(|read| Ok(store::run::get(read, self.run)?))?;
        if count > 1 {
            self.finish(true)?;
        }
        Ok(DriveReport {
            run: run.name.clone(),
            state: run.state.to_string(),
            reason: "interrupted; lanes live on".to_owned(),
            exit: Kind::Interrupted.exit(),
            waiting: Vec::new(),
            next: vec![Next::new("operator", "go on", &["striatum", "run", "drive", "--run-id", &run.name])],
        })
    }

    /// Helpers that have nothing to host any more end by themselves within moments: nothing lives on behind the last line.
    fn let_lanes_end(&mut self) -> Result<()> {
        let (run, is_idle) = self
            .ctx
            .read(|read| Ok((store::run::get(read, self.run)?, store::session::active(read, self.run)?.is_empty())))?;
        if is_idle || run.state.is_terminal() || run.stop_requested_at.is_some() {
            self.waiter.wait_for_helpers();
        }
        Ok(())
    }

    /// A helper that died while it was waited for leaves a session behind: a run that is over is over whole.
    fn bury(&mut self) -> Result<()> {
        for _ in 0..BURIALS {
            let is_over_whole = self.ctx.read(|read| {
                let is_over = store::run::get(read, self.run)?.state.is_terminal();
                Ok(!is_over || store::session::active(read, self.run)?.is_empty())
            })?;
            if is_over_whole || !matches!(self.turn_or_back_off()?, Turn::Busy) {
                return Ok(());
            }
            self.let_lanes_end()?;
        }
        Ok(())
    }

    /// At the end: stops every lane when asked to, and waits until they are gone.
    fn finish(&mut self, stop_lanes: bool) -> Result<()> {
        if !stop_lanes {
            return Ok(());
        }
        let sessions = self.ctx.read(|read| Ok(store::session::active(read, self.run)?))?;
        for session in &sessions {
            self.ctx.write("run drive", |tx| {
                Ok(store::supervisor::ask_stop(tx, session.id, StopKind::Now, "run drive --stop-lanes")?)
            })?;
        }
        self.waiter.wait_for_helpers();
        Ok(())
    }
}

/// The helpers of a run's active sessions, to be watched for their end.
fn world_helpers(ctx: &Ctx, world: &World) -> Result<Vec<(SessionId, Option<Identity>)>> {
    let hosted: Vec<SessionId> =
        world.sessions.iter().filter(|session| session.supervisor.is_some()).map(|session| session.id).collect();
    ctx.read(|read| {
        let mut helpers = Vec::new();
        for session in hosted {
            let process = store::supervisor::active(read, session)?.and_then(|supervisor| supervisor.process);
            let identity = process.and_then(|(pid, start, boot)| {
                let (pid, start_ticks) = (i32::try_from(pid).ok()?, u64::try_from(start).ok()?);
                Some(Identity { pid, start_ticks, boot })
            });
            helpers.push((session, identity));
        }
        Ok(helpers)
    })
}

fn told(action: &Action, result: &str) -> Told {
    let value = serde_json::to_value(action).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(|found| found.as_str()).map(str::to_owned);
    Told {
        action: text("action").unwrap_or_default(),
        job: text("name").or_else(|| value.get("job").and_then(|job| job.as_str()).map(str::to_owned)),
        role: text("role"),
        lane: text("lane"),
        session_id: text("session").and_then(|session| session.parse().ok()),
        result: result.to_owned(),
        line: None,
    }
}

/// What a driver's end says.
fn report(ctx: &Ctx, run: &Run, standing: &Standing) -> Result<DriveReport> {
    let name = run.name.clone();
    let reason = run.reason.clone();
    let (state, why, exit) = match (run.state, standing) {
        (RunState::Completed, _) => (run.state.to_string(), "every job is settled".to_owned(), 0),
        (RunState::Failed | RunState::Canceled, _) => (run.state.to_string(), reason.unwrap_or_default(), 1),
        (RunState::NeedsOperator, Standing::Over) => {
            (run.state.to_string(), reason.unwrap_or_default(), Kind::NeedsOperator.exit())
        }
        (_, Standing::WaitingHuman(waiting)) => {
            let first = waiting.first().map_or(String::new(), |(job, cause)| format!("{job}: {cause}"));
            ("waiting_human".to_owned(), first, Kind::WaitingHuman.exit())
        }
        (_, Standing::Paused) => (run.state.to_string(), "paused".to_owned(), Kind::Refused.exit()),
        (_, Standing::Stopped) if run.stop_requested_at.is_none() => {
            (run.state.to_string(), format!("{} stands", ctx.layout().stop().display()), Kind::Refused.exit())
        }
        (_, Standing::Stopped) => {
            let why = reason.unwrap_or_else(|| "it was told to stop; `run resume` lets it go on".to_owned());
            ("stopped".to_owned(), why, Kind::Refused.exit())
        }
        (_, Standing::NotStarted) => (run.state.to_string(), "not started".to_owned(), Kind::Refused.exit()),
        (_, Standing::Moving | Standing::Over) => (run.state.to_string(), "still moving".to_owned(), 0),
    };
    let waiting = match standing {
        Standing::WaitingHuman(waiting) => waiting.clone(),
        _ => Vec::new(),
    };
    Ok(DriveReport { run: name.clone(), state, reason: why, exit, next: next_steps(ctx, run, standing)?, waiting })
}

fn next_steps(ctx: &Ctx, run: &Run, standing: &Standing) -> Result<Vec<Next>> {
    let causes: Vec<(String, Cause)> = match standing {
        Standing::WaitingHuman(waiting) => waiting.clone(),
        Standing::Over if run.state == RunState::NeedsOperator => {
            run.cause.iter().map(|cause| (run.subject.clone().unwrap_or_default(), *cause)).collect()
        }
        // A person's file is lifted by a person, and by no verb.
        Standing::Stopped if run.stop_requested_at.is_none() => {
            let file = ctx.layout().stop().display().to_string();
            return Ok(vec![Next::new("person", "lift the stop of the whole store", &["rm", &file])]);
        }
        Standing::Paused | Standing::Stopped => {
            let next = Next::new("operator", "go on", &["striatum", "run", "resume", "--run-id", &run.name]);
            return Ok(vec![next]);
        }
        _ => {
            let next = Next::new("anyone", "see what happened", &["striatum", "run", "summary", "--run-id", &run.name]);
            return Ok(vec![next]);
        }
    };
    let mut ways = Vec::new();
    for (subject, cause) in &causes {
        ways.push(ways_out(ctx, run, subject, *cause)?);
    }
    // One thing waits: all that may be said to it. Several: the usual word to each.
    let each = if ways.len() == 1 { MOST_NEXT } else { 1 };
    Ok(ways.into_iter().flat_map(|ways| ways.into_iter().take(each)).take(MOST_NEXT).collect())
}

/// Most commands that one answer proposes.
const MOST_NEXT: usize = 3;

/// The literal commands that end a cause.
fn ways_out(ctx: &Ctx, run: &Run, subject: &str, cause: Cause) -> Result<Vec<Next>> {
    let job = ctx.read(|read| Ok(store::job::by_name(read, run.id, subject)?))?;
    let role = job.and_then(|job| job.spec.role);
    let lanes = role.as_deref().and_then(|role| run.spec.roles.get(role)).map(|role| role.lanes.as_slice());
    let lane = lanes.and_then(<[String]>::first).or_else(|| run.spec.lanes.keys().next());
    let lane = if cause == Cause::LaneParked { Some(subject) } else { lane.map(String::as_str) };
    let subject =
        ways::Subject { run: &run.name, job: Some(subject), role: role.as_deref(), lane, gate: None, of: Some(run) };
    Ok(ways::out_of(cause, &subject))
}
