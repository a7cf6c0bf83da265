//! From a picture of the world to a list of actions: the whole of what a driver decides.
//!
//! Passes, in this order:
//! 1. *reap*: sessions whose locks nobody holds are lost, or recovered when an agent was started;
//! 2. *expire*: unsupervised holds and sessions, and gates, past their deadline;
//! 3. *observe*: stale jobs whose holder left nothing but rows;
//! 4. *destroy*: resources that a dead holder left;
//! 5. *close*: lanes whose work is sealed and whose slot is empty, before anything fresh is registered;
//! 6. *next*: proposals of sealed answers, before the gates that may have to wait for them;
//! 7. *gates*: jobs that a person must let through;
//! 8. *launch*: adopt what covers a slot, else register and start, within capacity and budget;
//! 9. *breakers*: what is used up or silent is told;
//! 10. *end*: nothing in flight and nothing to launch: complete, wait for a person, or escalate.
//!
//! It is pure and total: no clock, no I/O, no order among rows matters. It never sees a finished job.

use std::collections::BTreeMap;

use super::action::{Action, Launch, Plan, Standing, Surfaced};
use super::id::{JobId, SessionId};
use super::job::Cause;
use super::run::RunState;
use super::session::{ExecutionState, SupervisorState};
use super::time::Moment;
use super::world::{AmbiguousView, LaneBlock, LockState, Offer, SessionView, SlotView, World};

/// Decides one turn.
pub fn reconcile(world: &World, now: &Moment) -> Plan {
    let mut plan = Plan { actions: Vec::new(), surfaced: Vec::new(), wake_at: None, standing: Standing::Moving };
    if let Some(standing) = settled_standing(world) {
        // What a dead helper left is ended even so; a STOP file forbids to start anything, helpers too.
        if standing != Standing::NotStarted && !world.stop_file {
            reap(world, &mut plan);
            destroy(world, &mut plan);
        }
        plan.standing = standing;
        return plan;
    }
    reap(world, &mut plan);
    expire(world, now, &mut plan);
    observe(world, &mut plan);
    destroy(world, &mut plan);
    close(world, &mut plan);
    next(world, &mut plan);
    gates(world, &mut plan);
    launch(world, now, &mut plan);
    breakers(world, now, &mut plan);
    end(world, now, &mut plan);
    plan
}

/// A run that no driver moves.
fn settled_standing(world: &World) -> Option<Standing> {
    match world.run.state {
        RunState::Ready => Some(Standing::NotStarted),
        RunState::Completed | RunState::Failed | RunState::Canceled => Some(Standing::Over),
        RunState::Running | RunState::NeedsOperator if world.run.is_stopped || world.stop_file => {
            Some(Standing::Stopped)
        }
        RunState::Running | RunState::NeedsOperator => None,
    }
}

/// Sorted, so that the order of rows does not matter.
fn by_id(world: &World) -> Vec<&SessionView> {
    let mut sessions: Vec<&SessionView> = world.sessions.iter().collect();
    sessions.sort_by_key(|session| session.id);
    sessions
}

/// Its helper was launched and nobody holds the helper's lock: it never started or is dead.
fn is_orphaned(session: &SessionView) -> bool {
    matches!(session.supervisor, Some(SupervisorState::Starting | SupervisorState::Attached))
        && session.helper == LockState::Free
}

/// Helpers that may take over from a dead one before what it held is given up: a fault that kills every one of them
/// must end in a named question, not in a loop.
const RECOVERIES: u32 = 3;

fn reap(world: &World, plan: &mut Plan) {
    for session in by_id(world).into_iter().filter(|session| is_orphaned(session)) {
        let started = session
            .held
            .as_ref()
            .filter(|held| matches!(held.agent, Some(ExecutionState::Running)) || session.agent == LockState::Held);
        let is_hopeless = session.recoveries >= RECOVERIES && session.agent == LockState::Free;
        plan.actions.push(match started.filter(|_| !is_hopeless) {
            Some(held) => Action::Recover { session: session.id, job: held.name.clone() },
            None if session.agent == LockState::Held => Action::Recover { session: session.id, job: String::from("-") },
            None => Action::MarkLost { session: session.id },
        });
    }
}

fn expire(world: &World, now: &Moment, plan: &mut Plan) {
    let mut leases: Vec<_> = world.leases.iter().collect();
    leases.sort_by_key(|lease| lease.lease);
    for lease in leases {
        if lease.deadline.is_past(now) {
            plan.actions.push(Action::ExpireLease {
                lease: lease.lease,
                session: lease.session,
                job: lease.name.clone(),
            });
        } else {
            wake(plan, &lease.deadline);
        }
    }
    for session in by_id(world) {
        let Some(deadline) = session.deadline.as_ref().filter(|_| session.held.is_none()) else { continue };
        if deadline.is_past(now) {
            plan.actions.push(Action::ExpireSession { session: session.id });
        } else {
            wake(plan, deadline);
        }
    }
    let mut gates: Vec<_> = world.gates.iter().collect();
    gates.sort_by_key(|gate| gate.gate);
    for gate in gates {
        if gate.expires.is_past(now) {
            plan.actions.push(Action::ExpireGate { gate: gate.gate, name: gate.name.clone() });
        }
    }
}

fn observe(world: &World, plan: &mut Plan) {
    let mut stale: Vec<_> = world.stale.iter().collect();
    stale.sort_by_key(|job| job.job);
    for job in stale {
        plan.actions.push(Action::Observe { job: job.job, name: job.name.clone() });
    }
}

fn destroy(world: &World, plan: &mut Plan) {
    let mut due: Vec<_> = world.resources.iter().filter(|resource| resource.lock == LockState::Free).collect();
    due.sort_by_key(|resource| resource.id);
    for resource in due {
        let (id, name, job) = (resource.id, resource.name.clone(), resource.job.clone());
        plan.actions.push(Action::Destroy { id, resource: name, job });
    }
}

/// A one-job session that held its job.
fn has_done_its_job(session: &SessionView) -> bool {
    session.is_fresh && session.packets > 0
}

/// A session that could still take what its slot, or its role whatever the lane, offers.
fn may_still_work(session: &SessionView, world: &World) -> bool {
    let offers = |slot: &SlotView| slot.role == session.role && slot.lane == session.lane && !slot.offers.is_empty();
    let is_wanted = world.slots.iter().any(offers) || world.ambiguous.iter().any(|job| job.role == session.role);
    !has_done_its_job(session) && is_wanted && !is_out_of_budget(world)
}

/// No session may claim more: money or working time is used up. (Launches bound agents, not what they take.)
fn is_out_of_budget(world: &World) -> bool {
    !world.run.spent.is_empty()
}

fn close(world: &World, plan: &mut Plan) {
    for session in by_id(world) {
        let has_worked = session.packets > 0 || session.supervisor == Some(SupervisorState::Attached);
        let is_done = session.is_driven && has_worked && session.held.is_none();
        if !is_done || session.is_stopping || is_orphaned(session) || may_still_work(session, world) {
            continue;
        }
        let (role, lane) = (session.role.clone(), session.lane.clone());
        plan.actions.push(match session.supervisor {
            Some(SupervisorState::Starting | SupervisorState::Attached) => {
                Action::StopLane { session: session.id, role, lane }
            }
            _ if session.is_self_driven => continue,
            _ => Action::CloseSession { session: session.id, role, lane },
        });
    }
}

fn next(world: &World, plan: &mut Plan) {
    let mut proposals: Vec<_> = world.proposals.iter().collect();
    proposals.sort_by_key(|view| view.proposal);
    for view in proposals {
        plan.actions.push(Action::AdmitNext { proposal: view.proposal, job: view.name.clone() });
    }
}

fn gates(world: &World, plan: &mut Plan) {
    let mut due: Vec<_> = world.gates_due.iter().collect();
    due.sort_by_key(|job| job.job);
    for job in due {
        plan.actions.push(Action::OpenGate { job: job.job, name: job.name.clone() });
    }
}

/// What may still be launched in this turn.
struct Room<'a> {
    run: u32,
    launches: u32,
    /// By lane: slots of several roles may share one.
    lanes: BTreeMap<&'a str, u32>,
}

impl<'a> Room<'a> {
    /// Idle sessions that will claim soon already use room.
    fn of(world: &'a World) -> Room<'a> {
        let claiming = |lane: Option<&str>| {
            let fits = |session: &&SessionView| lane.is_none_or(|lane| session.lane == lane);
            let count = world.sessions.iter().filter(fits).filter(|session| will_claim(session, world)).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        let free =
            |slot: &'a SlotView| (slot.lane.as_str(), slot.free_leases.saturating_sub(claiming(Some(&slot.lane))));
        Room {
            run: world.run.free_leases.saturating_sub(claiming(None)),
            launches: world.run.launches_left,
            lanes: world.slots.iter().map(free).collect(),
        }
    }

    /// One more agent may be launched in the lane.
    fn has(&self, lane: &str) -> bool {
        self.run > 0 && self.launches > 0 && self.lanes.get(lane).is_some_and(|left| *left > 0)
    }

    /// Takes what one launch needs.
    fn take(&mut self, lane: &str) {
        self.run = self.run.saturating_sub(1);
        self.launches = self.launches.saturating_sub(1);
        if let Some(left) = self.lanes.get_mut(lane) {
            *left = left.saturating_sub(1);
        }
    }
}

fn launch(world: &World, now: &Moment, plan: &mut Plan) {
    if world.run.is_paused {
        return;
    }
    let mut room = Room::of(world);
    let mut slots: Vec<_> = world.slots.iter().collect();
    slots.sort_by_key(|slot| slot.offers.iter().map(|offer| offer.job).min());
    for slot in slots {
        launch_slot(world, slot, now, &mut room, plan);
    }
    let mut ambiguous: Vec<_> = world.ambiguous.iter().collect();
    ambiguous.sort_by_key(|job| job.job);
    for job in ambiguous {
        match covering_by_role(world, &job.role) {
            // Somebody registered it for the role: that is the answer to which lane.
            Some(session) if needs_host(session) && !is_adopted(plan, session.id) && !is_out_of_budget(world) => {
                plan.actions.push(Action::Adopt { session: session.id, job: job.name.clone() });
            }
            Some(_) => {}
            None => plan.surfaced.push(Surfaced::AmbiguousLane {
                job: job.name.clone(),
                role: job.role.clone(),
                lanes: job.lanes.clone(),
            }),
        }
    }
}

/// Nothing hosts the session, and a helper may.
fn needs_host(session: &SessionView) -> bool {
    session.supervisor.is_none() && session.is_launchable && !session.is_self_driven
}

fn is_adopted(plan: &Plan, id: SessionId) -> bool {
    plan.actions.iter().any(|action| matches!(action, Action::Adopt { session, .. } if *session == id))
}

/// A helper is on its way to its next message: just launched, or resident with something to take.
fn will_claim(session: &SessionView, world: &World) -> bool {
    let is_coming = match session.supervisor {
        Some(SupervisorState::Starting) => true,
        Some(SupervisorState::Attached) => may_still_work(session, world),
        Some(SupervisorState::Stopped | SupervisorState::Lost) | None => false,
    };
    is_coming && session.held.is_none() && !session.is_stopping && session.helper == LockState::Held
}

/// The session of the role that may claim what names no lane.
fn covering_by_role<'a>(world: &'a World, role: &str) -> Option<&'a SessionView> {
    let may = |session: &&SessionView| {
        let is_idle = session.held.is_none() && !session.is_stopping && !has_done_its_job(session);
        session.role == role && is_idle && !is_orphaned(session)
    };
    by_id(world).into_iter().find(may)
}

fn launch_slot(world: &World, slot: &SlotView, now: &Moment, room: &mut Room<'_>, plan: &mut Plan) {
    let mut offers: Vec<&Offer> = slot.offers.iter().collect();
    offers.sort_by_key(|offer| (offer.job, offer.attempt));
    let Some(first) = offers.first() else { return };
    if loses_a_session(world, slot, plan) {
        return;
    }
    if !surface_block(slot, first, now, plan) {
        return;
    }
    let mut idle = covering(world, slot, now, plan);
    for offer in offers {
        if let Some(moment) = offer.not_before.as_ref().filter(|_| !is_due(offer, now)) {
            wake(plan, moment);
            continue;
        }
        if is_out_of_budget(world) {
            continue;
        }
        if let Some(action) = take_idle(&mut idle, offer) {
            plan.actions.extend(action);
            continue;
        }
        if offer.was_launched {
            plan.actions.push(Action::NeverStarted {
                job: offer.job,
                name: offer.name.clone(),
                attempt: offer.attempt,
            });
            continue;
        }
        if !room.has(&slot.lane) {
            continue;
        }
        if let Some(author) = slot.blocking_author.filter(|_| offer.is_fresh) {
            plan.surfaced.push(Surfaced::FreshBlocked { job: offer.name.clone(), author });
            continue;
        }
        room.take(&slot.lane);
        plan.actions.push(Action::Launch(launch_of(slot, offer)));
    }
}

/// A session of the slot is given up in this turn: what it was launched for is known only in the next.
fn loses_a_session(world: &World, slot: &SlotView, plan: &Plan) -> bool {
    let is_lost = |id: SessionId| plan.actions.contains(&Action::MarkLost { session: id });
    let mut of_slot = world.sessions.iter().filter(|session| session.role == slot.role && session.lane == slot.lane);
    of_slot.any(|session| is_lost(session.id))
}

fn launch_of(slot: &SlotView, offer: &Offer) -> Launch {
    Launch {
        role: slot.role.clone(),
        lane: slot.lane.clone(),
        job: offer.job,
        name: offer.name.clone(),
        attempt: offer.attempt,
        fresh: offer.is_fresh,
        lost: offer.lost,
    }
}

/// Tells why a lane can't be launched; true when it can.
fn surface_block(slot: &SlotView, first: &Offer, now: &Moment, plan: &mut Plan) -> bool {
    let (job, lane) = (first.name.clone(), slot.lane.clone());
    match &slot.blocked {
        None => return true,
        Some(LaneBlock::Cooling(until)) if until.is_past(now) => return true,
        Some(LaneBlock::Cooling(until)) => wake(plan, until),
        Some(LaneBlock::Human) => plan.surfaced.push(Surfaced::HumanLane { job, lane }),
        Some(LaneBlock::Untrusted) => plan.surfaced.push(Surfaced::Untrusted { job, lane }),
        Some(LaneBlock::Parked) => plan.surfaced.push(Surfaced::LaneParked { job, lane }),
    }
    false
}

/// Sessions of the slot that may take an offer, those that a helper hosts first.
struct Idle<'a> {
    sessions: Vec<&'a SessionView>,
    /// What may be taken now.
    due: Vec<(JobId, u32)>,
}

fn covering<'a>(world: &'a World, slot: &SlotView, now: &Moment, plan: &Plan) -> Idle<'a> {
    let reaped: Vec<SessionId> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::MarkLost { session } | Action::ExpireSession { session } | Action::CloseSession { session, .. } => {
                Some(*session)
            }
            _ => None,
        })
        .collect();
    let mut idle: Vec<&SessionView> = by_id(world)
        .into_iter()
        .filter(|session| session.role == slot.role && session.lane == slot.lane && session.held.is_none())
        .filter(|session| !session.is_stopping && !has_done_its_job(session))
        .filter(|session| !is_orphaned(session) && !reaped.contains(&session.id))
        .collect();
    idle.sort_by_key(|session| (session.supervisor.is_none(), session.id));
    let due = slot.offers.iter().filter(|offer| is_due(offer, now)).map(|offer| (offer.job, offer.attempt));
    Idle { sessions: idle, due: due.collect() }
}

/// It may be claimed now.
fn is_due(offer: &Offer, now: &Moment) -> bool {
    offer.not_before.as_ref().is_none_or(|moment| moment.is_past(now))
}

/// Covers an offer with an idle session, adopting it when nothing hosts it; none when no session is left. Who was
/// launched for an offer covers that one, so that no attempt is launched for twice.
fn take_idle(idle: &mut Idle<'_>, offer: &Offer) -> Option<Option<Action>> {
    let this = (offer.job, offer.attempt);
    let is_meant = |session: &&SessionView| session.offered == Some(this);
    let is_free = |session: &&SessionView| {
        session.offered.is_none_or(|other| !idle.due.contains(&other)) && (!offer.is_fresh || session.packets == 0)
    };
    let at = idle.sessions.iter().position(is_meant).or_else(|| idle.sessions.iter().position(is_free))?;
    let session = idle.sessions.remove(at);
    Some(needs_host(session).then(|| Action::Adopt { session: session.id, job: offer.name.clone() }))
}

/// Work is offered to a lane that could be launched, were it not for a budget.
fn wants_a_launch(world: &World) -> bool {
    let is_open = |slot: &SlotView| matches!(slot.blocked, None | Some(LaneBlock::Cooling(_)));
    let is_covered = |job: &AmbiguousView| covering_by_role(world, &job.role).is_some();
    let is_offered = world.slots.iter().any(|slot| is_open(slot) && !slot.offers.is_empty());
    !world.run.is_paused && (is_offered || world.ambiguous.iter().any(is_covered))
}

/// No agent may be started for the slot any more, and none is there.
fn lacks_launches(world: &World, slot: &SlotView) -> bool {
    let is_hosted = world.sessions.iter().any(|session| session.role == slot.role && session.lane == slot.lane);
    world.run.launches_left == 0 && !is_hosted
}

/// The budgets that keep something from being launched.
fn spent(world: &World) -> Vec<Cause> {
    let mut spent = if wants_a_launch(world) { world.run.spent.clone() } else { Vec::new() };
    let is_open = |slot: &SlotView| matches!(slot.blocked, None | Some(LaneBlock::Cooling(_)));
    let lacks = |slot: &SlotView| is_open(slot) && !slot.offers.is_empty() && lacks_launches(world, slot);
    if !world.run.is_paused && world.slots.iter().any(lacks) {
        spent.push(Cause::Launches);
    }
    spent
}

/// An agent holds it: not a person, whose time nobody counts.
fn is_at_work(session: &SessionView) -> bool {
    session.held.is_some() && session.is_launchable
}

/// Nothing that agents have in flight gave a sign of life for too long.
fn is_still(world: &World, now: &Moment) -> bool {
    let is_due = world.run.still_at.as_ref().is_some_and(|moment| moment.is_past(now));
    is_due && !world.run.is_paused && world.sessions.iter().any(is_at_work)
}

/// Agents work, or are about to: the time that is charged to the run.
pub fn is_working(world: &World, plan: &Plan) -> bool {
    let works = |session: &SessionView| is_at_work(session) || will_claim(session, world);
    !world.run.is_paused && (world.sessions.iter().any(works) || will_move(plan))
}

fn breakers(world: &World, now: &Moment, plan: &mut Plan) {
    let is_told = |cause: &Cause| world.run.tripped.contains(cause);
    let spent = spent(world).into_iter().filter(|cause| !is_told(cause));
    plan.actions.extend(spent.map(|breaker| Action::Trip { breaker }));
    match (is_still(world, now), is_told(&Cause::NoProgress)) {
        (true, false) => plan.actions.push(Action::Trip { breaker: Cause::NoProgress }),
        (false, true) if !world.run.is_paused => plan.actions.push(Action::Calm),
        _ => {}
    }
    if let Some(still_at) = world.run.still_at.as_ref().filter(|moment| !moment.is_past(now)) {
        wake(plan, still_at);
    }
}

fn end(world: &World, now: &Moment, plan: &mut Plan) {
    if is_moving(world, now, plan) {
        if world.run.state == RunState::NeedsOperator && will_move(plan) {
            plan.actions.insert(0, Action::Revive);
        }
        return;
    }
    if !world.has_open_jobs {
        plan.actions.push(Action::Complete);
        if world.run.state == RunState::NeedsOperator {
            plan.standing = Standing::Over;
        }
        return;
    }
    if world.run.is_paused {
        plan.standing = Standing::Paused;
        return;
    }
    let waiting = reasons(world, now, plan);
    match waiting.iter().find(|(_, cause)| !cause.is_mere_waiting()) {
        Some((subject, cause)) if world.run.state == RunState::Running => {
            plan.actions.push(Action::Escalate { cause: *cause, subject: subject.clone() });
        }
        Some(_) => plan.standing = Standing::Over,
        None => plan.standing = Standing::WaitingHuman(waiting),
    }
}

/// Something is in flight, about to be launched, or comes by itself.
fn is_moving(world: &World, now: &Moment, plan: &Plan) -> bool {
    let is_still = is_still(world, now);
    let moves = |session: &SessionView| session.held.is_some() && !(is_still && is_at_work(session));
    let in_flight = world.sessions.iter().any(|session| moves(session) || will_claim(session, world));
    in_flight || will_move(plan) || !world.stale.is_empty() || waits_for_author(world, plan) || is_cooling(world, plan)
}

/// A fresh reviewer waits for an author that ends by itself: somebody else drives it, or it is told to end.
fn waits_for_author(world: &World, plan: &Plan) -> bool {
    let is_ended = |id: SessionId| {
        plan.actions.iter().any(|action| match action {
            Action::StopLane { session, .. } | Action::CloseSession { session, .. } => *session == id,
            _ => false,
        })
    };
    let ends = |id: SessionId| {
        let mut sessions = world.sessions.iter();
        is_ended(id) || sessions.any(|session| session.id == id && (session.deadline.is_some() || session.is_stopping))
    };
    plan.surfaced.iter().any(|told| matches!(told, Surfaced::FreshBlocked { author, .. } if ends(*author)))
}

/// The plan itself sets something going.
fn will_move(plan: &Plan) -> bool {
    plan.actions.iter().any(|action| {
        matches!(
            action,
            Action::Launch(_)
                | Action::Adopt { .. }
                | Action::Recover { .. }
                | Action::MarkLost { .. }
                | Action::ExpireLease { .. }
                | Action::ExpireSession { .. }
                | Action::NeverStarted { .. }
                | Action::Observe { .. }
                | Action::AdmitNext { .. }
                | Action::OpenGate { .. }
                | Action::ExpireGate { .. }
        )
    })
}

/// Work is offered that only has to wait: for a lane that cools down, for capacity of other runs, or for a session
/// that somebody else drives.
fn is_cooling(world: &World, plan: &Plan) -> bool {
    let is_told = |name: &str| {
        plan.surfaced.iter().any(|told| match told {
            Surfaced::FreshBlocked { job, .. } => job == name,
            other => other.cause().is_some_and(|(job, _)| job == name),
        })
    };
    let is_spent = |slot: &SlotView| lacks_launches(world, slot) || is_out_of_budget(world);
    let may_come = |slot: &&SlotView| {
        let is_closed = matches!(slot.blocked, Some(LaneBlock::Human | LaneBlock::Untrusted | LaneBlock::Parked));
        !is_closed && !is_spent(slot) && slot.offers.first().is_some_and(|offer| !is_told(&offer.name))
    };
    let is_covered = |job: &AmbiguousView| covering_by_role(world, &job.role).is_some() && !is_out_of_budget(world);
    !world.run.is_paused && (world.slots.iter().any(|slot| may_come(&slot)) || world.ambiguous.iter().any(is_covered))
}

/// Everything that waits, with its cause.
fn reasons(world: &World, now: &Moment, plan: &Plan) -> Vec<(String, Cause)> {
    let mut reasons: Vec<(String, Cause)> = world.held.iter().map(|held| (held.name.clone(), held.cause)).collect();
    reasons.extend(world.gates.iter().map(|gate| (gate.name.clone(), Cause::Gate)));
    reasons.extend(plan.surfaced.iter().filter_map(|told| told.cause().map(|(job, cause)| (job.to_owned(), cause))));
    reasons.extend(spent(world).into_iter().map(|cause| (cause.word().to_owned(), cause)));
    if is_still(world, now) {
        let silent = world.sessions.iter().filter(|session| is_at_work(session));
        reasons.extend(silent.filter_map(|one| one.held.as_ref()).map(|held| (held.name.clone(), Cause::NoProgress)));
    }
    if reasons.is_empty() {
        reasons.push(("run".to_owned(), Cause::Other));
    }
    reasons.sort();
    reasons.dedup();
    reasons
}

fn wake(plan: &mut Plan, at: &Moment) {
    let earlier = plan.wake_at.as_ref().is_none_or(|moment| at.ms < moment.ms);
    if earlier {
        plan.wake_at = Some(at.clone());
    }
}
