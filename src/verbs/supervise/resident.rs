//! A `loop` lane: its agent is started once, takes work itself through the socket, and answers until it is told to
//! end.
//!
//! The agent's `work complete` waits at the socket until the answer is settled; what can't be sealed it may mend,
//! three times. It does not know how an agent is told what to do: its prompt says so.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::rc::Rc;

use super::ending::Spared;
use super::host::{self, Host};
use super::inbox::Desk;
use super::orders::Order;
use super::{confinement, ending, environment, life};
use crate::domain::frozen::{LaneSpec, LaneStdin as Wanted};
use crate::domain::id::JobId;
use crate::domain::job::{JobState, Outcome, Phase};
use crate::domain::session::{ExecutionState, LeaseState};
use crate::domain::time::Moment;
use crate::error::{Code, Error, Result};
use crate::os::files::{self, BoundedLog};
use crate::os::layout::Attempt as Folder;
use crate::os::process::{LaneStdin, Launched, Limits, Program, StartError, spawn_lane};
use crate::os::wait::Set;
use crate::store::execution::{Ending, NewExecution};
use crate::store::{self};
use crate::verbs::flow::attempt::{self, Ended};
use crate::verbs::resource::{self, destroy};
use crate::verbs::session::must_exist;
use crate::verbs::settle::{self, Checked};
use crate::verbs::supervise::wait::{self, OUTPUT_LIMIT, Obedient};
use crate::verbs::work::claim::{self, Granted};
use crate::verbs::work::hold::Hold;

/// The folder name of what belongs to the agent and to no attempt.
pub const FOLDER: &str = "resident";

/// A resident agent and what it works on.
struct Resident {
    launched: Launched,
    folder: Folder,
    lane: LaneSpec,
    log: BoundedLog,
    /// What it holds, its execution row, and when that must be done.
    current: Option<Current>,
    /// How long what it asks waits for a busy store.
    busy_ms: u64,
    /// How long the agent may take to end when it is told to.
    grace_ms: u64,
    /// When it must have done something, while it holds nothing.
    patience: Moment,
}

struct Current {
    job: JobId,
    attempt: u32,
    hold: Hold,
    execution: i64,
    deadline: Moment,
}

/// Why a resident's life is over.
enum Over {
    /// It exited.
    Exited,
    /// An order, a limit, or work that was taken away; with the outcome of what it holds.
    Ended(Outcome, String),
}

/// Lives with a resident agent until it exits or is told to end; closes the session.
pub fn live(host: &mut Host<'_>) -> Result<()> {
    let mut resident = match start(host)? {
        Ok(resident) => resident,
        Err((outcome, why)) => return give_up(host, (outcome, &why)),
    };
    let over = watch(host, &mut resident)?;
    let exit_code = end(host, &mut resident, &over);
    finish(host, &mut resident, over, exit_code)
}

/// Starts the agent; the inner error tells what its first attempt comes to, and why.
fn start(host: &mut Host<'_>) -> Result<std::result::Result<Resident, (Outcome, String)>> {
    let (session, run) = host.ctx.read(|read| {
        let session = must_exist(read, host.session)?;
        let run = store::run::get(read, session.run)?;
        Ok((session, run))
    })?;
    let lane = run.spec.lanes.get(&session.lane).cloned();
    let lane = lane.ok_or_else(|| Error::new(Code::Bug, "the run lost a lane"))?;
    let folder = host.ctx.layout().scratch(&session.id.to_string()).attempt(FOLDER, 0);
    for path in [folder.folder(), &folder.work(), &folder.tmp()] {
        files::create_private_dirs(host.ctx.layout().root(), path)?;
    }
    files::write_private(&folder.prompt(), bootstrap(&session.role).as_bytes())?;
    let seat = environment::Seat { run: &run, session: &session, folder: &folder, cwd: &folder.work(), work: None };
    let program = match program(host, &seat, &lane, &folder) {
        Ok(program) => program,
        Err(error) => return Ok(Err((Outcome::Environment, error.message))),
    };
    let lock = host.lane_lock.as_ref().ok_or_else(|| Error::new(Code::Bug, "a helper without its lane lock"))?;
    let launched = match spawn_lane(&host.ctx.exe, &program, lock) {
        Ok(launched) => launched,
        Err(StartError::Fault(fault)) => return Err(fault.into()),
        Err(error) => return Ok(Err((life::unstarted(&error), error.to_string()))),
    };
    let log = BoundedLog::new(&folder.output(), OUTPUT_LIMIT);
    let patience = host.ctx.clock.moment().after(lane.timeout_ms);
    Ok(Ok(Resident {
        launched,
        folder,
        lane,
        log,
        current: None,
        busy_ms: run.spec.limits.busy_ms,
        grace_ms: run.spec.limits.grace_ms,
        patience,
    }))
}

/// What a resident agent is told.
fn bootstrap(role: &str) -> String {
    format!(
        "You work as `{role}`, one piece of work after the other.\n\n\
         1. Run `striatum work await --claim`. It waits, then prints a packet's path, or `no_work`.\n\
         2. Read the packet (`striatum work show --prompt`), work in its folder, answer as it says.\n\
         3. The answer waits until it is settled and tells what must be mended; mend it and answer again.\n\
         4. Go back to 1. On `no_work` end.\n"
    )
}

fn program(host: &Host<'_>, seat: &environment::Seat<'_>, lane: &LaneSpec, folder: &Folder) -> Result<Program> {
    let stdin = match lane.stdin {
        Wanted::Prompt => LaneStdin::File(folder.prompt()),
        Wanted::Null | Wanted::Packet => LaneStdin::Null,
    };
    let held = confinement::of(&host.ctx, seat, lane)?;
    Ok(Program {
        argv: confinement::inside(&held, lane, environment::argv(&host.ctx, seat, lane)?),
        cwd: folder.work(),
        env: environment::for_agent(&host.ctx, seat, lane)?,
        stdin,
        output: folder.output(),
        tty: lane.tty,
        limits: Limits { writable: held.writable(), ..Limits::default() },
    })
}

/// The agent was not started: that is how the oldest work of its slot ends.
fn give_up(host: &mut Host<'_>, (outcome, why): (Outcome, &str)) -> Result<()> {
    let now = host.ctx.clock.moment();
    host.ctx.write("agent not started", |tx| {
        let session = must_exist(tx, host.session)?;
        let run = store::run::get(tx, session.run)?;
        if let Ok(granted) = claim::take(tx, &run, &session, &now)? {
            let job = store::job::get(tx, granted.job)?;
            attempt::end(tx, &run, &job, Ended::plain(outcome, why))?;
        }
        host::close(tx, &must_exist(tx, host.session)?, why)
    })
}

fn watch(host: &mut Host<'_>, resident: &mut Resident) -> Result<Over> {
    let poll_ms = 250;
    loop {
        wait_once(host, resident, poll_ms)?;
        look_at_work(host, resident)?;
        if resident.launched.process.has_ended() {
            return Ok(Over::Exited);
        }
        if host.signals.take().is_some() {
            return Ok(Over::Ended(Outcome::Interrupted, "the helper was told to end by a signal".to_owned()));
        }
        match host.orders.look(&host.ctx, resident.current.is_some())? {
            Order::GoOn => {}
            Order::Drain(reason) if resident.current.is_none() => {
                return Ok(Over::Ended(Outcome::Interrupted, reason));
            }
            Order::Drain(_) => {}
            Order::EndNow(reason) => return Ok(Over::Ended(Outcome::Interrupted, reason)),
            Order::Abandon => {
                return Ok(Over::Ended(Outcome::Interrupted, "its work was taken away".to_owned()));
            }
        }
        wait::bounded(&mut resident.log, 0);
        let now = host.ctx.clock.moment();
        match &resident.current {
            Some(current) if current.deadline.is_past(&now) => {
                return Ok(Over::Ended(Outcome::TimedOut, "longer than its limit".to_owned()));
            }
            None if resident.patience.is_past(&now) => {
                return Ok(Over::Ended(Outcome::Interrupted, "it took no work for too long".to_owned()));
            }
            _ => {}
        }
    }
}

/// One wait; serves requests and copies the terminal's output.
fn wait_once(host: &mut Host<'_>, resident: &mut Resident, timeout_ms: u64) -> Result<()> {
    let desk =
        Desk { session: host.session, agent: Some(resident.launched.process.identity().pid), waits_for_settling: true };
    let mut set = Set::new();
    if let Some(pidfd) = resident.launched.process.pidfd() {
        set.readable(pidfd);
    }
    if let Some(fd) = host.inbox.fd() {
        set.readable(fd);
    }
    let terminal = resident.launched.terminal.as_ref().map(|terminal| set.readable(terminal.as_fd()));
    set.readable(host.signals.as_fd());
    set.wait(Some(timeout_ms))?;
    let spoke = terminal.is_some_and(|number| set.is_ready(number));
    drop(set);
    if spoke {
        copy_terminal(resident)?;
    }
    if host.serve(&desk, resident.busy_ms) > 0 {
        resident.patience = host.ctx.clock.moment().after(resident.lane.timeout_ms);
    }
    Ok(())
}

/// Moves what the terminal shows into the log; a terminal whose other end is closed is let go.
fn copy_terminal(resident: &mut Resident) -> Result<()> {
    let Some(terminal) = resident.launched.terminal.take() else { return Ok(()) };
    let mut near = std::fs::File::from(terminal);
    let mut log = files::append_private(&resident.folder.output())?;
    let mut part = [0; 16 * 1024];
    loop {
        match near.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(count) => log.write_all(part.get(..count).unwrap_or_default())?,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Ok(()),
        }
    }
    resident.launched.terminal = Some(near.into());
    Ok(())
}

/// Notices what the agent claimed or answered meanwhile.
fn look_at_work(host: &mut Host<'_>, resident: &mut Resident) -> Result<()> {
    if resident.current.is_none() {
        resident.current = take_note(host, resident)?;
    }
    let Some(current) = &resident.current else { return Ok(()) };
    let stored = host.ctx.read(|read| Ok(store::attempt::get(read, current.job, current.attempt)?))?;
    let Some(answer) = stored.answer.filter(|_| stored.outcome.is_none()) else { return Ok(()) };
    let report = if let Some(ended) = settle::without_work(&answer) {
        let report = settle::over(&ended);
        host.ctx
            .write("settle", |tx| attempt::end(tx, &current.hold.run, &store::job::get(tx, current.job)?, ended))?;
        report
    } else {
        host.ctx.write("settle", |tx| Ok(store::job::set_phase(tx, current.job, Phase::Settling)?))?;
        let agent = resident.launched.process.identity().pid;
        let ctx = Rc::clone(&host.ctx);
        match settle::check(&ctx, &current.hold, &answer, &mut Obedient { host, agent: Some(agent) })? {
            Checked::Good(work) => {
                settle::seal_now(&host.ctx, &current.hold, &answer, &work)?;
                settle::sealed()
            }
            Checked::Bad(bad) => settle::refuse(&host.ctx, &current.hold, bad)?,
        }
    };
    if report.over {
        destroy::release(&host.ctx, &current.hold)?;
        let execution = current.execution;
        host.ctx.write("settle", |tx| {
            let ending = Ending { detail: Some("the agent goes on".to_owned()), ..Ending::default() };
            Ok(store::execution::ended(tx, execution, ExecutionState::Exited, &ending)?)
        })?;
        resident.current = None;
    }
    host.orders.forget();
    host.inbox.settled(&report);
    Ok(())
}

/// The agent claimed something: from now on it is an execution of that attempt, with its limit.
fn take_note(host: &Host<'_>, resident: &Resident) -> Result<Option<Current>> {
    let held = host.ctx.read(|read| {
        let Some(message) = store::message::held(read, host.session)? else { return Ok(None) };
        Ok(store::lease::active_of_job(read, message.job)?.map(|lease| Granted {
            message: message.id,
            job: message.job,
            attempt: message.attempt,
            lease: lease.id,
            fence: lease.fence,
        }))
    })?;
    let Some(granted) = held else { return Ok(None) };
    let mut hold = life::load(host, &granted)?;
    let deadline = life::deadline(host, &hold, &resident.lane);
    let process = resident.launched.process.identity();
    let execution = host.ctx.write("work ack", |tx| {
        if hold.job.state == JobState::Claimed {
            claim::start(tx, &hold.job, hold.session.id)?;
        }
        store::run::add_launch(tx, hold.run.id)?;
        let new = NewExecution {
            job: granted.job,
            attempt: granted.attempt,
            session: hold.session.id,
            kind: "agent",
            class: None,
            deadline: Some(&deadline),
            argv_hash: None,
        };
        let execution = store::execution::insert(tx, &new)?;
        store::execution::started(tx, execution, (i64::from(process.pid), claim::ticks(process), &process.boot))?;
        Ok(execution)
    })?;
    hold.job = host.ctx.read(|read| Ok(store::job::get(read, granted.job)?))?;
    Ok(Some(Current { job: granted.job, attempt: granted.attempt, hold, execution, deadline }))
}

/// Ends the agent's tree; its exit code, if it left by itself.
fn end(host: &Host<'_>, resident: &mut Resident, over: &Over) -> Option<i32> {
    let held = resident.current.as_ref();
    let spare = held.map(|current| resource::processes(&host.ctx, &current.hold)).unwrap_or_default();
    if matches!(over, Over::Ended(..)) {
        let spared = Spared { grace_ms: resident.grace_ms, spare: spare.clone() };
        ending::end_agent(&host.ctx, host.session, &resident.launched, spared);
        resident.launched.process.wait_ended(1_000);
    }
    let _ = copy_terminal(resident);
    let exit = resident.launched.process.reap().ok().flatten();
    if ending::has_leftovers() {
        ending::end_leftovers(&host.ctx, host.session, resident.launched.process.identity(), spare);
    }
    exit.and_then(|exit| exit.code)
}

/// Ends what it still held, and the session.
fn finish(host: &mut Host<'_>, resident: &mut Resident, over: Over, exit_code: Option<i32>) -> Result<()> {
    let current = resident.current.take();
    let (outcome, reason) = match over {
        Over::Exited => {
            let code = exit_code.map_or("a signal".to_owned(), |code| format!("exit {code}"));
            let outcome = if exit_code == Some(0) { Outcome::Unsealed } else { Outcome::Failed };
            (outcome, format!("its agent ended ({code})"))
        }
        Over::Ended(outcome, reason) => (outcome, reason),
    };
    if let Some(current) = &current {
        destroy::release(&host.ctx, &current.hold)?;
    }
    host.ctx.write("supervise end", |tx| {
        if let Some(current) = &current {
            let ending = Ending { exit_code, ..Ending::default() };
            let state = if outcome == Outcome::TimedOut { ExecutionState::TimedOut } else { ExecutionState::Exited };
            store::execution::ended(tx, current.execution, state, &ending)?;
            let job = store::job::get(tx, current.job)?;
            if settle::must_still_hold(tx, &current.hold, &job).is_ok() {
                let lease = if outcome == Outcome::Interrupted { LeaseState::Revoked } else { LeaseState::Released };
                let run = store::run::get(tx, current.hold.run.id)?;
                attempt::end(tx, &run, &job, Ended { lease, ..Ended::plain(outcome, reason.clone()) })?;
            }
        }
        host::close(tx, &must_exist(tx, host.session)?, &reason)
    })
}
