//! `reconcile` on arbitrary pictures of a run: total, safe, free of order, deaf to clocks that step back.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use striatum::domain::action::{Action, Launch, Plan, Standing, Surfaced};
use striatum::domain::id::{GateId, JobId, LeaseId, ProposalId, SessionId};
use striatum::domain::job::Cause;
use striatum::domain::reconcile::reconcile;
use striatum::domain::run::RunState;
use striatum::domain::session::{ExecutionState, SupervisorState};
use striatum::domain::time::Moment;
use striatum::domain::world::{
    AmbiguousView, GateView, HeldView, HeldWork, JobView, LaneBlock, LeaseView, LockState, Offer, ProposalView,
    ResourceView, RunView, SessionView, SlotView, StaleView, World,
};

/// The moment at which every picture is looked at; deadlines lie around it.
const NOW: i64 = 1_000;

pub fn at(ms: i64) -> Moment {
    Moment { boot: "this".to_owned(), ms }
}

fn moment() -> impl Strategy<Value = Moment> {
    let boots = prop_oneof![4 => Just("this"), 1 => Just("another")];
    (boots, 0_i64..2_000).prop_map(|(boot, ms)| Moment { boot: boot.to_owned(), ms })
}

fn lock() -> impl Strategy<Value = LockState> {
    prop_oneof![Just(LockState::Held), Just(LockState::Free)]
}

fn run() -> impl Strategy<Value = RunView> {
    let state = prop_oneof![
        5 => Just(RunState::Running),
        2 => Just(RunState::NeedsOperator),
        1 => prop::sample::select(vec![RunState::Ready, RunState::Completed, RunState::Failed, RunState::Canceled]),
    ];
    let rare = || prop::bool::weighted(0.1);
    let budgets = || prop::sample::subsequence(vec![Cause::Cost, Cause::ActiveTime], 0..=1);
    let breakers = vec![Cause::Launches, Cause::Cost, Cause::ActiveTime, Cause::NoProgress];
    let told = prop_oneof![4 => Just(Vec::new()), 1 => prop::sample::subsequence(breakers, 0..=4)];
    let spent = prop_oneof![4 => Just(Vec::new()), 1 => budgets()];
    let trouble = (spent, told, prop_oneof![3 => Just(None), 1 => moment().prop_map(Some)]);
    (state, rare(), rare(), 0_u32..5, 0_u32..5, rare(), trouble).prop_map(
        |(state, is_paused, is_stopped, free_leases, launches_left, is_untrusted, (spent, tripped, still_at))| {
            RunView { spent, tripped, still_at, state, is_paused, is_stopped, free_leases, launches_left, is_untrusted }
        },
    )
}

fn word(letter: char) -> impl Strategy<Value = String> {
    (0..3_u8).prop_map(move |number| format!("{letter}{number}"))
}

prop_compose! {
    fn session()(
        role in word('r'),
        lane in word('l'),
        flags in prop::array::uniform5(any::<bool>()),
        supervisor in prop::option::of(prop::sample::select(SupervisorState::ALL.to_vec())),
        locks in (lock(), lock()),
        holds in prop::option::of(prop::option::of(prop::sample::select(ExecutionState::ALL.to_vec()))),
        counts in (0_u32..3, 0_u32..5),
        deadline in prop::option::of(moment()),
        offered in prop::option::of((0_i64..8, 1_u32..4)),
    ) -> SessionView {
        let [is_fresh, is_driven, is_self_driven, is_stopping, is_launchable] = flags;
        SessionView {
            id: SessionId(0),
            role,
            lane,
            is_fresh,
            is_driven,
            is_self_driven: is_self_driven && supervisor.is_none(),
            supervisor,
            is_stopping,
            recoveries: counts.1,
            helper: locks.0,
            agent: locks.1,
            offered: offered.map(|(job, attempt)| (JobId(job), attempt)),
            held: holds.map(|agent| HeldWork { job: JobId(0), name: String::new(), agent }),
            packets: counts.0,
            deadline,
            is_launchable,
        }
    }
}

/// What a job is in the picture, besides held by a session.
#[derive(Clone, Debug)]
enum Part {
    Offered(String, String, Offer),
    Ambiguous(String),
    Stale,
    Proposed,
    Due,
    Gate(Moment),
    Held(Cause),
}

prop_compose! {
    fn offer()(attempt in 1_u32..4, is_fresh: bool, not_before in prop::option::of(moment()),
        lost in prop::option::of(0_i64..6), was_launched in prop::bool::weighted(0.2)) -> Offer
    {
        Offer { job: JobId(0), name: String::new(), attempt, is_fresh, not_before, lost: lost.map(SessionId), was_launched }
    }
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        5 => (word('r'), word('l'), offer()).prop_map(|(role, lane, offer)| Part::Offered(role, lane, offer)),
        1 => word('r').prop_map(Part::Ambiguous),
        1 => Just(Part::Stale),
        1 => Just(Part::Proposed),
        1 => Just(Part::Due),
        1 => moment().prop_map(Part::Gate),
        1 => prop::sample::select(Cause::ALL.to_vec()).prop_map(Part::Held),
    ]
}

fn block() -> impl Strategy<Value = Option<LaneBlock>> {
    prop_oneof![
        6 => Just(None),
        1 => Just(Some(LaneBlock::Human)),
        1 => Just(Some(LaneBlock::Untrusted)),
        1 => Just(Some(LaneBlock::Parked)),
        1 => moment().prop_map(|until| Some(LaneBlock::Cooling(until))),
    ]
}

/// A picture that a store could give: ids are unique, a job is in one place, a slot stands once.
pub fn world() -> impl Strategy<Value = World> {
    let lanes = prop::collection::vec((block(), 0_u32..4), 3);
    let author = prop::option::weighted(0.3, 0_i64..5);
    let sessions = prop::collection::vec(session(), 0..5);
    let parts = prop::collection::vec(part(), 0..8);
    let leases = prop::collection::vec(moment(), 0..3);
    (run(), prop::bool::weighted(0.05), sessions, parts, lanes, leases, author, any::<bool>()).prop_map(
        |(run, stop_file, sessions, parts, lanes, leases, author, has_more)| {
            let mut world = World {
                run,
                stop_file,
                sessions,
                slots: Vec::new(),
                ambiguous: Vec::new(),
                stale: Vec::new(),
                proposals: Vec::new(),
                gates_due: Vec::new(),
                gates: Vec::new(),
                leases: Vec::new(),
                held: Vec::new(),
                resources: Vec::new(),
                has_open_jobs: has_more,
            };
            number_sessions(&mut world, &leases);
            for (number, part) in parts.into_iter().enumerate() {
                place(&mut world, i64::try_from(number).unwrap(), part);
            }
            for slot in &mut world.slots {
                let lane: usize = slot.lane[1..].parse().unwrap();
                slot.blocked = lanes[lane].0.clone();
                slot.free_leases = lanes[lane].1;
                slot.blocking_author = author.map(SessionId);
            }
            world
        },
    )
}

fn number_sessions(world: &mut World, leases: &[Moment]) {
    for (number, session) in world.sessions.iter_mut().enumerate() {
        let number = i64::try_from(number).unwrap();
        session.id = SessionId(number);
        if let Some(held) = &mut session.held {
            world.has_open_jobs = true;
            held.job = JobId(100 + number);
            held.name = format!("held{number}");
            session.packets = session.packets.max(1);
        }
    }
    let holders = world.sessions.iter().filter(|session| session.held.is_some() && session.supervisor.is_none());
    for (session, deadline) in holders.zip(leases) {
        let name = session.held.as_ref().unwrap().name.clone();
        world.leases.push(LeaseView {
            lease: LeaseId(session.id.0),
            session: session.id,
            name,
            deadline: deadline.clone(),
        });
    }
}

fn place(world: &mut World, number: i64, part: Part) {
    let (job, name) = (JobId(number), format!("j{number}"));
    // A proposal may be all that is left of a run.
    world.has_open_jobs |= !matches!(part, Part::Proposed);
    match part {
        Part::Offered(role, lane, offer) => {
            let offer = Offer { job, name, ..offer };
            match world.slots.iter_mut().find(|slot| slot.role == role && slot.lane == lane) {
                Some(slot) => slot.offers.push(offer),
                None => world.slots.push(SlotView {
                    role,
                    lane,
                    offers: vec![offer],
                    live: 1,
                    blocked: None,
                    free_leases: 0,
                    blocking_author: None,
                }),
            }
        }
        Part::Ambiguous(role) => {
            world.ambiguous.push(AmbiguousView { job, name, role, lanes: vec!["l0".into(), "l1".into()] });
        }
        Part::Stale => world.stale.push(StaleView { job, name }),
        Part::Proposed => world.proposals.push(ProposalView { proposal: ProposalId(number), name }),
        Part::Due => world.gates_due.push(JobView { job, name }),
        Part::Gate(expires) => world.gates.push(GateView { gate: GateId(number), job, name, expires }),
        Part::Held(cause) => world.held.push(HeldView { name, cause }),
    }
}

pub fn launches(plan: &Plan) -> Vec<&Launch> {
    let mut launches = Vec::new();
    for action in &plan.actions {
        if let Action::Launch(launch) = action {
            launches.push(launch);
        }
    }
    launches
}

fn session_of(world: &World, id: SessionId) -> &SessionView {
    world.sessions.iter().find(|session| session.id == id).unwrap()
}

fn is_hosted(session: &SessionView) -> bool {
    matches!(session.supervisor, Some(SupervisorState::Starting | SupervisorState::Attached))
}

/// The same rows in another order.
fn turned(world: &World, by: usize) -> World {
    fn turn<T>(rows: &mut [T], by: usize) {
        if !rows.is_empty() {
            let by = by % rows.len();
            rows.rotate_left(by);
        }
        if by % 2 == 1 {
            rows.reverse();
        }
    }
    let mut world = world.clone();
    turn(&mut world.sessions, by);
    turn(&mut world.slots, by);
    world.slots.iter_mut().for_each(|slot| turn(&mut slot.offers, by));
    turn(&mut world.ambiguous, by);
    turn(&mut world.stale, by);
    turn(&mut world.gates_due, by);
    turn(&mut world.gates, by);
    turn(&mut world.leases, by);
    turn(&mut world.resources, by);
    turn(&mut world.held, by);
    world
}

/// The same picture, with resources that nobody works with any more.
fn with_resources(mut world: World, locks: &[LockState]) -> World {
    for (number, lock) in locks.iter().enumerate() {
        let id = i64::try_from(number).unwrap();
        world.resources.push(ResourceView { id, name: format!("db-{id}"), job: "j".to_owned(), lock: *lock });
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_dead_holder_made_is_destroyed_once_whatever_became_of_its_run(
        world in world(), locks in prop::collection::vec(lock(), 0..4), by in 0_usize..5
    ) {
        let without = reconcile(&world, &at(NOW));
        let world = with_resources(world, &locks);
        let plan = reconcile(&world, &at(NOW));
        let is_destroy = |action: &&Action| matches!(action, Action::Destroy { .. });
        let due = locks.iter().filter(|lock| **lock == LockState::Free).count();
        let may_act = !world.stop_file && world.run.state != RunState::Ready;
        prop_assert_eq!(plan.actions.iter().filter(is_destroy).count(), if may_act { due } else { 0 });
        // It changes nothing else, and no order of rows matters.
        let others: Vec<&Action> = plan.actions.iter().filter(|action| !is_destroy(action)).collect();
        prop_assert_eq!(others, without.actions.iter().collect::<Vec<_>>());
        prop_assert_eq!(&plan.standing, &without.standing);
        prop_assert_eq!(&plan, &reconcile(&turned(&world, by), &at(NOW)));
    }

    #[test]
    fn every_picture_has_one_plan_and_each_act_stands_in_it_once(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        prop_assert_eq!(&plan, &reconcile(&world, &at(NOW)));
        let keys: Vec<String> = plan.actions.iter().map(Action::key).collect();
        let distinct: BTreeSet<&String> = keys.iter().collect();
        prop_assert_eq!(distinct.len(), keys.len(), "{:?}", keys);
        let told: BTreeSet<&Surfaced> = plan.surfaced.iter().collect();
        prop_assert_eq!(told.len(), plan.surfaced.len());
    }

    #[test]
    fn the_order_of_rows_does_not_matter(world in world(), by in 0_usize..12) {
        prop_assert_eq!(reconcile(&turned(&world, by), &at(NOW)), reconcile(&world, &at(NOW)));
    }

    #[test]
    fn a_run_that_nobody_may_move_is_left_alone(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        let is_live = matches!(world.run.state, RunState::Running | RunState::NeedsOperator);
        if !is_live || world.run.is_stopped || world.stop_file {
            // What dead helpers left is ended, and nothing else is done; a STOP file forbids even that.
            let ends = |action: &Action| matches!(action, Action::MarkLost { .. } | Action::Recover { .. });
            prop_assert!(plan.actions.iter().all(ends), "{:?}", plan.actions);
            prop_assert!(plan.actions.is_empty() || !world.stop_file);
            prop_assert!(plan.standing != Standing::Moving);
        }
        if world.run.is_paused {
            prop_assert_eq!(launches(&plan), Vec::<&Launch>::new());
            let adopts = plan.actions.iter().any(|action| matches!(action, Action::Adopt { .. }));
            prop_assert!(!adopts);
        }
    }

    #[test]
    fn nothing_is_launched_over_a_limit_or_twice(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        let launches = launches(&plan);
        prop_assert!(launches.len() <= world.run.free_leases as usize);
        prop_assert!(launches.len() <= world.run.launches_left as usize);
        let attempts: BTreeSet<_> = launches.iter().map(|launch| (launch.job, launch.attempt)).collect();
        prop_assert_eq!(attempts.len(), launches.len());
        let mut lanes: BTreeMap<&str, u32> = BTreeMap::new();
        for launch in &launches {
            *lanes.entry(&launch.lane).or_default() += 1;
        }
        for (lane, count) in lanes {
            let free = world.slots.iter().filter(|slot| slot.lane == lane).map(|slot| slot.free_leases).max();
            prop_assert!(count <= free.unwrap(), "{} launches in {}, free {:?}", count, lane, free);
        }
    }

    #[test]
    fn what_is_launched_was_offered_and_may_start_now(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        for launch in launches(&plan) {
            let slot = world.slots.iter().find(|slot| slot.role == launch.role && slot.lane == launch.lane).unwrap();
            let offer = slot.offers.iter().find(|offer| offer.job == launch.job).unwrap();
            prop_assert_eq!((offer.attempt, offer.is_fresh), (launch.attempt, launch.fresh));
            prop_assert!(!offer.was_launched, "at most one launch an attempt");
            prop_assert!(offer.not_before.as_ref().is_none_or(|moment| moment.is_past(&at(NOW))));
            prop_assert!(!(launch.fresh && slot.blocking_author.is_some()), "an author still works");
            match &slot.blocked {
                None => {}
                Some(LaneBlock::Cooling(until)) => prop_assert!(until.is_past(&at(NOW))),
                Some(block) => prop_assert!(false, "launched in a lane that is {:?}", block),
            }
        }
    }

    #[test]
    fn only_its_own_idle_sessions_are_ended_by_a_driver(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        for action in &plan.actions {
            match action {
                Action::StopLane { session, .. } | Action::CloseSession { session, .. } => {
                    let session = session_of(&world, *session);
                    prop_assert!(session.is_driven && session.held.is_none() && !session.is_stopping);
                    prop_assert_eq!(matches!(action, Action::StopLane { .. }), is_hosted(session));
                }
                Action::Adopt { session, .. } => {
                    let session = session_of(&world, *session);
                    prop_assert!(session.is_launchable && !session.is_self_driven && session.held.is_none());
                    prop_assert!(session.supervisor.is_none() && !session.is_stopping);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_held_lock_protects_whatever_the_clock_says(world in world(), now in 0_i64..4_000) {
        let plan = reconcile(&world, &at(now));
        for action in &plan.actions {
            match action {
                Action::MarkLost { session } => {
                    let session = session_of(&world, *session);
                    prop_assert!(session.helper == LockState::Free && is_hosted(session));
                    prop_assert!(session.agent == LockState::Free, "an agent lives");
                }
                Action::Recover { session, .. } => {
                    let session = session_of(&world, *session);
                    prop_assert!(session.helper == LockState::Free && is_hosted(session));
                }
                Action::ExpireSession { session } => {
                    let session = session_of(&world, *session);
                    prop_assert!(session.held.is_none() && session.deadline.as_ref().unwrap().is_past(&at(now)));
                }
                Action::ExpireLease { lease, .. } => {
                    let lease = world.leases.iter().find(|view| view.lease == *lease).unwrap();
                    prop_assert!(lease.deadline.is_past(&at(now)));
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_clock_that_steps_back_expires_nothing_more_and_launches_nothing_more(world in world(), back in 0_i64..1_000) {
        let timed = |plan: &Plan| -> BTreeSet<String> {
            let is_timed = |action: &&Action| {
                matches!(action, Action::ExpireLease { .. } | Action::ExpireSession { .. } | Action::ExpireGate { .. })
            };
            plan.actions.iter().filter(is_timed).map(Action::key).collect()
        };
        let (before, now) = (reconcile(&world, &at(NOW - back)), reconcile(&world, &at(NOW)));
        prop_assert!(timed(&before).is_subset(&timed(&now)));
        let lost = |plan: &Plan| plan.actions.iter().filter(|action| matches!(action, Action::MarkLost { .. } | Action::Recover { .. })).count();
        prop_assert_eq!(lost(&before), lost(&now));
    }

    #[test]
    fn a_driver_never_sleeps_past_what_is_due(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        if let Some(wake) = &plan.wake_at {
            prop_assert!(!wake.is_past(&at(NOW)), "a moment that is past is no reason to wait");
        }
        let is_live = matches!(world.run.state, RunState::Running | RunState::NeedsOperator);
        if is_live && !world.run.is_stopped && !world.stop_file {
            let due = world.leases.iter().map(|lease| &lease.deadline).filter(|deadline| !deadline.is_past(&at(NOW)));
            for deadline in due {
                prop_assert!(plan.wake_at.as_ref().is_some_and(|wake| wake.ms <= deadline.ms));
            }
        }
    }

    #[test]
    fn a_run_ends_or_stops_for_a_person_only_when_nothing_moves(world in world()) {
        let plan = reconcile(&world, &at(NOW));
        let ends = plan.actions.iter().any(|action| matches!(action, Action::Complete | Action::Escalate { .. }));
        let waits = matches!(plan.standing, Standing::WaitingHuman(_) | Standing::Paused);
        if ends || waits {
            // What gives no sign of life for too long may go on; it keeps nobody waiting.
            let is_silent = !world.run.is_paused && world.run.still_at.as_ref().is_some_and(|due| due.is_past(&at(NOW)));
            let rests = |one: &SessionView| one.held.is_none() || (is_silent && one.is_launchable);
            prop_assert!(world.sessions.iter().all(rests), "something is in flight");
            prop_assert!(world.stale.is_empty());
            prop_assert_eq!(launches(&plan), Vec::<&Launch>::new());
        }
        if plan.actions.contains(&Action::Complete) {
            prop_assert!(!world.has_open_jobs && world.proposals.is_empty());
        }
        for action in &plan.actions {
            if let Action::Escalate { cause, .. } = action {
                prop_assert!(!cause.is_mere_waiting());
                prop_assert_eq!(world.run.state, RunState::Running);
            }
        }
        if let Standing::WaitingHuman(reasons) = &plan.standing {
            prop_assert!(!reasons.is_empty() && reasons.iter().all(|(_, cause)| cause.is_mere_waiting()));
        }
    }
}
