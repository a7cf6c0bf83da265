//! After a helper that died: watch its agent to the end, observe, and settle what can be settled.

use std::rc::Rc;

use super::host::{Host, Onward, onward};
use super::orders::Order;
use super::{life, resident, wait};
use crate::domain::event::EventType;
use crate::domain::frozen::{LaneMode, LaneSpec};
use crate::domain::id::JobId;
use crate::domain::observation::Observation;
use crate::domain::session::ExecutionState;
use crate::error::Result;
use crate::os::process::{Handle, Identity, Tree, end_tree};
use crate::store::execution::{Ending, Execution};
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::resource::destroy;
use crate::verbs::run::act::{self, Done};
use crate::verbs::session::must_exist;
use crate::verbs::settle::conclusion::{self, Conclusion, ExitSeen, Facts};
use crate::verbs::settle::observation;
use crate::verbs::supervise::ending;
use crate::verbs::supervise::wait::{Obedient, Watch, Watched};
use crate::verbs::work::claim::Granted;
use crate::verbs::work::hold::Hold;

/// Takes over what the session holds.
pub fn recover(host: &mut Host<'_>) -> Result<Onward> {
    let held = host.ctx.read(|read| {
        let Some(message) = store::message::held(read, host.session)? else { return Ok(None) };
        let lease = store::lease::active_of_job(read, message.job)?;
        let agent = store::execution::agent(read, message.job, message.attempt)?;
        Ok(lease.map(|lease| {
            let granted = Granted {
                message: message.id,
                job: message.job,
                attempt: message.attempt,
                lease: lease.id,
                fence: lease.fence,
            };
            (granted, agent)
        }))
    })?;
    let Some((granted, agent)) = held else {
        end_strays(host);
        return finish(host, None);
    };
    let hold = life::load(host, &granted)?;
    let lane = life::lane_of(&hold)?;
    let folder = host.ctx.layout().scratch(&host.session.to_string()).attempt(&hold.job.name, granted.attempt);
    let (watched, was_alive) = watch_to_the_end(host, &hold, &lane, agent.as_ref())?;
    end_strays(host);
    ending::end_attempt(&folder.tmp());
    let exit = if was_alive { ExitSeen::EndSeen } else { ExitSeen::No };
    let facts = Facts { hold: &hold, lane: &lane, folder: &folder, exit, watched: &watched };
    let ctx = Rc::clone(&host.ctx);
    let seen = observation::look(&ctx, &hold.job)?;
    let conclusion = conclusion::conclude(&ctx, &facts, &mut Obedient { host, agent: None })?;
    crate::os::crash::point("recover.checked");
    destroy::release(&ctx, &hold)?;
    finish(host, Some(Recovered { hold: &hold, agent, seen, conclusion }))
}

/// Watches the agent by its identity until it ends, its deadline passes, or an order comes; and whether it was alive.
/// It may ask and answer meanwhile, as it would have asked its own helper.
fn watch_to_the_end(
    host: &mut Host<'_>,
    hold: &Hold,
    lane: &LaneSpec,
    agent: Option<&Execution>,
) -> Result<(Watched, bool)> {
    let is_resident = lane.mode == LaneMode::Loop;
    let identity = match agent {
        Some(agent) => recorded(agent).or_else(|| lock_holder(host)),
        // It claimed, and its helper died before it noticed.
        None if is_resident => lock_holder(host),
        None => None,
    };
    let handle = identity.as_ref().and_then(Handle::open).filter(|handle| !handle.has_ended());
    let Some(handle) = handle else { return Ok((Watched::Exited, false)) };
    let scratch = host.ctx.layout().scratch(&host.session.to_string());
    let folder = if is_resident {
        scratch.attempt(resident::FOLDER, 0)
    } else {
        scratch.attempt(&hold.job.name, hold.lease.attempt)
    };
    let watch = Watch {
        hold,
        lane,
        output: folder.output(),
        deadline: agent.and_then(|agent| agent.deadline.clone()).unwrap_or_else(|| life::deadline(host, hold, lane)),
        agent: &handle,
        takes_over: true,
    };
    let watched = wait::watch(host, &watch)?;
    if watched != Watched::Exited {
        let tree = Tree { root: handle.identity().clone(), adopts_orphans: false, spare: Vec::new() };
        let (ctx, session, grace) = (&host.ctx, host.session, hold.run.spec.limits.grace_ms);
        end_tree(&tree, grace, &mut || ending::strays(ctx, session));
    }
    Ok((watched, true))
}

/// The agent as its helper recorded it.
fn recorded(agent: &Execution) -> Option<Identity> {
    let (pid, start, boot) = agent.process.as_ref()?;
    Some(Identity { pid: i32::try_from(*pid).ok()?, start_ticks: u64::try_from(*start).ok()?, boot: boot.clone() })
}

/// The agent as its lock tells, when its helper died before it could record it: the oldest leader of a session. What
/// an agent left behind and leads nothing is no agent: it is ended, not waited for.
fn lock_holder(host: &Host<'_>) -> Option<Identity> {
    let holders = ending::lock_holders(&host.ctx, host.session);
    let leads = |identity: &&Identity| crate::os::process::session_id_of(identity.pid) == Some(identity.pid);
    holders.iter().filter(leads).min_by_key(|identity| identity.start_ticks).cloned()
}

/// Ends what still carries the session: it belongs to an attempt that is over.
fn end_strays(host: &Host<'_>) {
    let strays = ending::strays(&host.ctx, host.session);
    if let Some(first) = strays.first() {
        let tree = Tree { root: first.clone(), adopts_orphans: false, spare: Vec::new() };
        let (ctx, session) = (&host.ctx, host.session);
        end_tree(&tree, 0, &mut || ending::strays(ctx, session));
    }
}

/// An attempt that was looked at.
struct Recovered<'a> {
    hold: &'a Hold,
    agent: Option<Execution>,
    seen: Observation,
    conclusion: Conclusion,
}

/// Records the observation and what it came to, then goes on with the slot or closes the session.
fn finish(host: &mut Host<'_>, ended: Option<Recovered<'_>>) -> Result<Onward> {
    let now = host.ctx.clock.moment();
    host.ctx.write("recover", |tx| {
        if let Some(Recovered { hold, agent, seen, conclusion }) = &ended {
            if let Some(agent) = agent {
                let ending = Ending { detail: Some("nobody saw its exit".to_owned()), ..Ending::default() };
                store::execution::ended(tx, agent.id, ExecutionState::Lost, &ending)?;
            }
            let then = match conclusion {
                Conclusion::Seal { .. } => "settled",
                Conclusion::End { outcome, .. } => outcome.word(),
                Conclusion::Nothing => "taken away",
            };
            let mut seen = serde_json::to_value(seen)?;
            seen["then"] = then.into();
            tell(tx, EventType::ObservationRecorded, &hold.job, &seen)?;
            conclusion::apply(tx, hold, conclusion)?;
        }
        let session = must_exist(tx, host.session)?;
        let order = Order::EndNow("recovered".to_owned());
        onward(tx, &store::run::get(tx, session.run)?, &session, &now, &order)
    })
}

/// A stale job whose session is over: nothing but rows and files is left to look at.
pub fn observe_orphan(ctx: &Ctx, job: JobId) -> Result<Done> {
    act::requeue_stale(ctx, job, "its holder is gone")
}
