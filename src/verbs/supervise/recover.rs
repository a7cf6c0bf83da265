//! After a helper that died: watch its agent to the end, observe, and settle what can be settled (section 9.4).

use super::host::{Host, Onward, onward};
use super::life;
use super::orders::Order;
use crate::domain::event::EventType;
use crate::domain::id::JobId;
use crate::domain::job::Outcome;
use crate::domain::session::ExecutionState;
use crate::error::Result;
use crate::os::process::{Handle, Identity, Tree, end_tree};
use crate::store::execution::{Ending, Execution};
use crate::store::{self};
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::run::act::{self, Done};
use crate::verbs::session::must_exist;
use crate::verbs::settle::conclusion::{self, Conclusion, Facts};
use crate::verbs::settle::verify::Foreground;
use crate::verbs::supervise::{ending, wait::Watched};
use crate::verbs::work::claim::Granted;

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
    let watched = watch_to_the_end(host, agent.as_ref())?;
    end_strays(host);
    let folder =
        host.ctx.layout().scratch(&host.session.to_string()).attempt(&hold.job.name, granted.attempt);
    let facts = Facts { hold: &hold, lane: &lane, folder: &folder, exit_code: None, watched: &watched };
    let conclusion = observed(conclusion::conclude(&host.ctx, &facts, &mut Foreground)?, &watched);
    crate::os::crash::point("recover.checked");
    finish(host, Some((&hold, agent, conclusion)))
}

/// Watches the agent by its identity until it ends, its deadline passes, or an order comes.
fn watch_to_the_end(host: &mut Host<'_>, agent: Option<&Execution>) -> Result<Watched> {
    let Some(agent) = agent else { return Ok(Watched::Exited) };
    let identity = agent.process.as_ref().and_then(|(pid, start, boot)| {
        let pid = i32::try_from(*pid).ok()?;
        Some(Identity { pid, start_ticks: u64::try_from(*start).ok()?, boot: boot.clone() })
    });
    let Some(handle) = identity.as_ref().and_then(Handle::open) else { return Ok(Watched::Exited) };
    while !handle.wait_ended(200) {
        let now = host.ctx.clock.moment();
        let verdict = if agent.deadline.as_ref().is_some_and(|deadline| deadline.is_past(&now)) {
            Some(Watched::TimedOut)
        } else {
            match host.orders.look(&host.ctx, true)? {
                Order::GoOn | Order::Drain(_) => None,
                Order::EndNow(reason) => Some(Watched::Told(reason)),
                Order::Abandon => Some(Watched::Abandoned),
            }
        };
        if let Some(verdict) = verdict {
            let tree = Tree { root: handle.identity().clone(), adopts_orphans: false, spare: Vec::new() };
            let (ctx, session) = (&host.ctx, host.session);
            end_tree(&tree, 5_000, &mut || ending::strays(ctx, session));
            return Ok(verdict);
        }
    }
    Ok(Watched::Exited)
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

/// Nobody saw the exit: without an answer or proof the attempt is lost, not failed.
fn observed(conclusion: Conclusion, watched: &Watched) -> Conclusion {
    match conclusion {
        Conclusion::End { outcome: Outcome::Failed | Outcome::Unsealed, lesson, question, .. }
            if *watched == Watched::Exited =>
        {
            Conclusion::End {
                outcome: Outcome::Lost,
                detail: "its helper died, and it left no answer".to_owned(),
                lesson,
                question,
            }
        }
        other => other,
    }
}

/// Records the observation and what it came to, then goes on with the slot or closes the session.
fn finish(
    host: &mut Host<'_>,
    ended: Option<(&crate::verbs::work::hold::Hold, Option<Execution>, Conclusion)>,
) -> Result<Onward> {
    let now = host.ctx.clock.moment();
    host.ctx.write("recover", |tx| {
        if let Some((hold, agent, conclusion)) = &ended {
            if let Some(agent) = agent {
                let ending = Ending { detail: Some("nobody saw its exit".to_owned()), ..Ending::default() };
                store::execution::ended(tx, agent.id, ExecutionState::Lost, &ending)?;
            }
            let seen = match conclusion {
                Conclusion::Seal { artifacts, is_new, .. } => {
                    serde_json::json!({"answer": !is_new, "artifacts": artifacts.len(), "then": "settled"})
                }
                Conclusion::End { outcome, .. } => serde_json::json!({"answer": false, "then": outcome}),
                Conclusion::Nothing => serde_json::json!({"then": "taken away"}),
            };
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
