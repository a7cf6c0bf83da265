//! One attempt of a `oneshot` lane: lay out, start, wait, end the tree, settle.

use std::time::Duration;

use std::rc::Rc;

use super::ending::Spared;
use super::environment::{self, Seat};
use super::host::{Host, Onward, onward};
use super::orders::Order;
use super::wait::{self, Watched};
use super::{confinement, ending};
use serde_json::json;

use crate::domain::event::{EventType, sha256_hex};
use crate::domain::frozen::{LaneMode, LaneSpec, LaneStdin as Wanted};
use crate::domain::job::Outcome;
use crate::domain::session::{ExecutionState, LeaseState};
use crate::domain::time::Moment;
use crate::error::{Code, Error, Kind, Result};
use crate::os::files::BoundedLog;
use crate::os::process::{Exit, LaneStdin, Launched, Limits, Program, StartError, spawn_lane};
use crate::store::execution::{Ending, NewExecution};
use crate::store::{self, Writing};
use crate::verbs::flow::agreement::{self, Disagreement};
use crate::verbs::flow::attempt::{self, Ended};
use crate::verbs::flow::tell;
use crate::verbs::resource::{self, Prepared, destroy};
use crate::verbs::run::agree;
use crate::verbs::session::must_exist;
use crate::verbs::settle::conclusion::ExitSeen;
use crate::verbs::settle::{self, conclusion, evidence, usage};
use crate::verbs::tree::provision::{self, Provided};
use crate::verbs::tree::release;
use crate::verbs::work::claim::{self, Granted};
use crate::verbs::work::hold::Hold;
use crate::verbs::work::layout::{self, Grant, Laid};

/// Works one granted attempt to its end.
pub fn live(host: &mut Host<'_>, granted: &Granted) -> Result<Onward> {
    let hold = load(host, granted)?;
    let ctx = Rc::clone(&host.ctx);
    if let Some(found) = disagreement(host, &hold)? {
        return stop_for_a_person(host, &hold, &found);
    }
    let ground = match provision::provide(&ctx, &hold, &mut wait::Obedient { host, agent: None }) {
        Ok(Provided::None) => None,
        Ok(Provided::Ground(ground)) => Some(ground),
        Ok(Provided::Unusable(why)) => return give_up(host, &hold, None, (Outcome::Environment, &why)),
        Ok(Provided::Told(why)) => return give_up(host, &hold, None, (Outcome::Interrupted, &why)),
        Err(error) if error.kind() == Kind::Environment => {
            let why = format!(
                "no work tree: {}",
                [std::slice::from_ref(&error.message), &error.causes[..]].concat().join(": ")
            );
            return give_up(host, &hold, None, (Outcome::Environment, &why));
        }
        Err(error) => return Err(error),
    };
    match resource::prepare(&ctx, &hold, &mut wait::Obedient { host, agent: None })? {
        Prepared::None | Prepared::Ready => {}
        Prepared::Unusable(why) => return give_up(host, &hold, None, (Outcome::Environment, &why)),
        Prepared::Told(why) => return give_up(host, &hold, None, (Outcome::Interrupted, &why)),
    }
    let laid = layout::lay_out(&host.ctx, &Grant { granted, run: &hold.run, session: &hold.session }, ground)?;
    let lane = lane_of(&hold)?;
    let program = match program(host, &hold, &laid, &lane) {
        Ok(program) => program,
        Err(error) => return give_up(host, &hold, None, (Outcome::Environment, &error.message)),
    };
    let deadline = deadline(host, &hold, &lane);
    let execution = intend(host, &hold, &laid, &program, &deadline)?;
    crate::os::crash::point("agent.intended");
    let lock = host.lane_lock.as_ref().ok_or_else(|| Error::new(Code::Bug, "a helper without its lane lock"))?;
    let launched = match spawn_lane(&host.ctx.exe, &program, lock) {
        Ok(launched) => launched,
        Err(StartError::Fault(fault)) => return Err(fault.into()),
        Err(error) => {
            let outcome = unstarted(&error);
            return give_up(host, &hold, Some(execution), (outcome, &error.to_string()));
        }
    };
    crate::os::crash::point("agent.spawned");
    host.ctx.write("agent started", |tx| started(tx, execution, &launched))?;
    crate::os::crash::point("agent.started");
    let watch = wait::Watch {
        hold: &hold,
        lane: &lane,
        output: laid.folder.output(),
        deadline,
        agent: &launched.process,
        takes_over: false,
    };
    let watched = wait::watch(host, &watch)?;
    crate::os::crash::point("agent.ended");
    let (exit, leftovers) = end_tree(host, &hold, &launched, &watched);
    // An agent may write a lot and be gone before anybody looked at its log.
    wait::bounded(&mut BoundedLog::new(&laid.folder.output(), wait::OUTPUT_LIMIT), 0);
    let run = Run { hold, laid, lane, execution, exit, leftovers, watched };
    conclude(host, run)
}

/// Whether plan and world disagree. What a driver has launched this session for, it compared with the whole plan a
/// moment ago; a helper that does so again reads every job of the run for one.
fn disagreement(host: &mut Host<'_>, hold: &Hold) -> Result<Option<Disagreement>> {
    let is_launched_for = hold.session.offered == Some((hold.job.id, hold.lease.attempt));
    if hold.session.driven && is_launched_for {
        return agree::around(&host.ctx, &hold.run, &hold.job);
    }
    let ctx = Rc::clone(&host.ctx);
    host.plan.look(&ctx, &hold.run, &hold.job)
}

/// A run of an agent, over.
struct Run {
    hold: Hold,
    laid: Laid,
    lane: LaneSpec,
    execution: i64,
    exit: Option<Exit>,
    leftovers: Option<String>,
    watched: Watched,
}

/// What the session holds, as the claim left it.
pub fn load(host: &Host<'_>, granted: &Granted) -> Result<Hold> {
    host.ctx.read(|read| {
        let session = must_exist(read, host.session)?;
        let lease = store::lease::active_of_job(read, granted.job)?
            .filter(|lease| lease.id == granted.lease)
            .ok_or_else(|| Error::new(Code::LeaseEnded, "the lease was taken away"))?;
        let (run, job) = (store::run::get(read, session.run)?, store::job::get(read, granted.job)?);
        Ok(Hold { session, run, job, lease })
    })
}

/// The lane of a hold.
pub fn lane_of(hold: &Hold) -> Result<LaneSpec> {
    let lane = hold.run.spec.lanes.get(&hold.session.lane).cloned();
    lane.ok_or_else(|| Error::new(Code::Bug, format!("the run has no lane {}", hold.session.lane)))
}

/// When the attempt ends at the latest.
pub fn deadline(host: &Host<'_>, hold: &Hold, lane: &LaneSpec) -> Moment {
    host.ctx.clock.moment().after(hold.job.spec.timeout_ms.unwrap_or(lane.timeout_ms))
}

/// The agent's command, complete.
pub fn program(host: &Host<'_>, hold: &Hold, laid: &Laid, lane: &LaneSpec) -> Result<Program> {
    let stdin = match lane.stdin {
        Wanted::Null => LaneStdin::Null,
        Wanted::Prompt => LaneStdin::File(laid.folder.prompt()),
        Wanted::Packet => LaneStdin::File(laid.folder.packet()),
    };
    let seat = Seat::of(hold, laid);
    let held = confinement::of(&host.ctx, &seat, lane)?;
    Ok(Program {
        argv: confinement::inside(&held, lane, environment::argv(&host.ctx, &seat, lane)?),
        cwd: laid.cwd.clone(),
        env: environment::for_agent(&host.ctx, &seat, lane)?,
        stdin,
        output: laid.folder.output(),
        tty: lane.tty && lane.mode == LaneMode::Loop,
        limits: Limits { writable: held.writable(), ..Limits::default() },
    })
}

/// The intent: the job runs and an agent is about to be started, in one transaction.
pub fn intend(host: &Host<'_>, hold: &Hold, laid: &Laid, program: &Program, deadline: &Moment) -> Result<i64> {
    let argv: Vec<String> = program.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let argv_hash = sha256_hex(argv.join("\0").as_bytes());
    host.ctx.write("work ack", |tx| {
        claim::start(tx, &hold.job, hold.session.id)?;
        store::attempt::set_packet(tx, hold.job.id, hold.lease.attempt, &laid.packet_hash)?;
        store::run::add_launch(tx, hold.run.id)?;
        let new = NewExecution {
            job: hold.job.id,
            attempt: hold.lease.attempt,
            session: hold.session.id,
            kind: "agent",
            class: None,
            deadline: Some(deadline),
            argv_hash: Some(&argv_hash),
        };
        let execution = store::execution::insert(tx, &new)?;
        let held = if program.limits.writable.is_some() { confinement::KERNEL } else { confinement::ADVISORY };
        let body = json!({"attempt": hold.lease.attempt, "enforcement": held, "writable": program.limits.writable});
        tell(tx, EventType::LaneConfined, &hold.job, &body)?;
        Ok(execution)
    })
}

/// The outcome of the start.
pub fn started(tx: &Writing<'_>, execution: i64, launched: &Launched) -> Result<()> {
    let process = launched.process.identity();
    let process = (i64::from(process.pid), claim::ticks(process), process.boot.as_str());
    Ok(store::execution::started(tx, execution, process)?)
}

/// What it means that an agent was not started: a person must mend the lane, unless the start itself was killed.
pub fn unstarted(error: &StartError) -> Outcome {
    match error {
        StartError::Lost { .. } | StartError::Fault(_) => Outcome::NeverStarted,
        StartError::NotFound { .. } | StartError::NotExecutable { .. } | StartError::Unprepared { .. } => {
            Outcome::Environment
        }
    }
}

/// Plan and world disagree about the attempt: it is not started.
fn stop_for_a_person(host: &mut Host<'_>, hold: &Hold, found: &Disagreement) -> Result<Onward> {
    let now = host.ctx.clock.moment();
    let order = host.orders.look(&host.ctx, false)?;
    host.ctx.write("plan disagrees", |tx| {
        if settle::is_still_ours(tx, hold, &store::job::get(tx, hold.job.id)?)? {
            agreement::stop(tx, &hold.run, hold.job.id, found)?;
        }
        onward(tx, &store::run::get(tx, hold.run.id)?, &must_exist(tx, hold.session.id)?, &now, &order)
    })
}

/// The agent was not started.
fn give_up(
    host: &mut Host<'_>,
    hold: &Hold,
    execution: Option<i64>,
    (outcome, why): (Outcome, &str),
) -> Result<Onward> {
    destroy::release(&host.ctx, hold)?;
    let now = host.ctx.clock.moment();
    let order = host.orders.look(&host.ctx, false)?;
    host.ctx.write("agent not started", |tx| {
        let job = store::job::get(tx, hold.job.id)?;
        let is_held = settle::is_still_ours(tx, hold, &job)?;
        match execution {
            Some(id) => {
                let ending = Ending { detail: Some(why.to_owned()), ..Ending::default() };
                store::execution::ended(tx, id, ExecutionState::NotRun, &ending)?;
            }
            None if is_held => claim::start(tx, &job, hold.session.id)?,
            None => {}
        }
        if is_held {
            attempt::end(tx, &hold.run, &store::job::get(tx, hold.job.id)?, Ended::plain(outcome, why))?;
        }
        onward(tx, &store::run::get(tx, hold.run.id)?, &must_exist(tx, hold.session.id)?, &now, &order)
    })
}

/// Ends what is left of the agent; its exit, and a line about survivors.
fn end_tree(host: &Host<'_>, hold: &Hold, launched: &Launched, watched: &Watched) -> (Option<Exit>, Option<String>) {
    if *watched == Watched::Exited {
        let exit = launched.process.reap().ok().flatten();
        let agent = launched.process.identity();
        let spare = resource::processes(&host.ctx, hold);
        let leftovers = if ending::has_leftovers() {
            ending::end_leftovers(&host.ctx, hold.session.id, agent, spare)
        } else {
            None
        };
        return (exit, leftovers);
    }
    let grace = hold.run.spec.limits.grace_ms;
    let spare = resource::processes(&host.ctx, hold);
    let leftovers = ending::end_agent(&host.ctx, hold.session.id, launched, Spared { grace_ms: grace, spare });
    launched.process.wait_ended(u64::try_from(Duration::from_secs(1).as_millis()).unwrap_or(1_000));
    (launched.process.reap().ok().flatten(), leftovers)
}

/// Settles, records the end, and takes the next attempt: one transaction after all checks.
fn conclude(host: &mut Host<'_>, run: Run) -> Result<Onward> {
    let ending = Ending {
        exit_code: run.exit.and_then(|exit| exit.code),
        signal: run.exit.and_then(|exit| exit.signal),
        output_bytes: std::fs::metadata(run.laid.folder.output())
            .ok()
            .and_then(|found| i64::try_from(found.len()).ok()),
        output_hash: None,
        detail: run.leftovers.clone(),
    };
    let state = if run.watched == Watched::TimedOut { ExecutionState::TimedOut } else { ExecutionState::Exited };
    let facts = conclusion::Facts {
        hold: &run.hold,
        lane: &run.lane,
        folder: &run.laid.folder,
        exit: ExitSeen::Yes(ending.exit_code),
        watched: &run.watched,
    };
    let ctx = Rc::clone(&host.ctx);
    let conclusion = conclusion::conclude(&ctx, &facts, &mut wait::Obedient { host, agent: None })?;
    let usage = usage::beside_answer(&ctx, &facts, &conclusion)?;
    crate::os::crash::point("settle.checked");
    destroy::release(&ctx, &run.hold)?;
    crate::os::crash::point("resource.released");
    let now = host.ctx.clock.moment();
    let order = match &run.watched {
        Watched::Told(reason) => Order::EndNow(reason.clone()),
        _ => host.orders.look(&host.ctx, false)?,
    };
    let onward = host.ctx.write("seal", |tx| {
        store::execution::ended(tx, run.execution, state, &ending)?;
        if let Some(usage) = &usage {
            store::run::add_usage(tx, run.hold.run.id, usage)?;
        }
        conclusion::apply(tx, &run.hold, &conclusion)?;
        let session = must_exist(tx, run.hold.session.id)?;
        onward(tx, &store::run::get(tx, run.hold.run.id)?, &session, &now, &order)
    })?;
    crate::os::crash::point("settle.sealed");
    if matches!(conclusion, conclusion::Conclusion::Seal { .. }) {
        release::after_seal(&host.ctx, &run.hold)?;
    }
    if matches!(onward, Onward::Closed) {
        // As after any seal; a driver's next turn does it too.
        let _ = evidence::complete(&host.ctx, run.hold.run.id);
    }
    Ok(onward)
}

/// How an interrupted attempt ends.
pub fn interrupted(reason: &str) -> Ended<'static> {
    Ended { lease: LeaseState::Revoked, ..Ended::plain(Outcome::Interrupted, reason) }
}
