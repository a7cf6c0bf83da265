//! `reconcile` driving a small model of a run: whatever helpers and agents do, whenever a driver dies, each attempt is
//! launched once, no limit is passed, and every run ends or waits for something that has a name.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use striatum::domain::action::{Action, Plan, Standing};
use striatum::domain::id::{JobId, SessionId};
use striatum::domain::job::Cause;
use striatum::domain::reconcile::reconcile;
use striatum::domain::run::RunState;
use striatum::domain::session::{ExecutionState, SupervisorState};
use striatum::domain::time::Moment;
use striatum::domain::world::{
    HeldView, HeldWork, LaneBlock, LockState, Offer, RunView, SessionView, SlotView, StaleView, World,
};

use crate::reconcile::at;

/// What becomes of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Seal,
    Strike,
    /// The helper dies before it claims, if it was launched for it.
    DieUnclaimed,
    /// It dies with the claim in hand and no agent.
    DieClaimed,
    /// Helper and agent die.
    DieWorking,
    /// The helper dies, its agent goes on and answers.
    Orphan,
    Ask,
    Block,
    /// The lane has to cool down.
    Unavailable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Queued,
    Held,
    Stale,
    Done,
    Person(Cause),
}

#[derive(Clone, Debug)]
struct Job {
    role: u8,
    lane: u8,
    fresh: bool,
    needs: Vec<usize>,
    fates: Vec<Fate>,
    state: State,
    attempt: u32,
    strikes: u32,
    requeues: u32,
    lost: Option<SessionId>,
    not_before: Option<Moment>,
}

impl Job {
    fn fate(&self) -> Fate {
        self.fates.get(self.attempt as usize - 1).copied().unwrap_or(Fate::Seal)
    }

    fn again(&mut self, lost: Option<SessionId>) {
        self.state = State::Queued;
        self.attempt += 1;
        self.lost = lost;
    }

    fn lose(&mut self, session: SessionId) {
        self.requeues += 1;
        if self.requeues > 2 {
            self.state = State::Person(Cause::Requeues);
        } else {
            self.again(Some(session));
        }
    }
}

#[derive(Clone, Debug)]
struct Session {
    id: SessionId,
    role: u8,
    lane: u8,
    fresh: bool,
    is_active: bool,
    supervisor: Option<SupervisorState>,
    stopping: bool,
    helper: bool,
    agent: bool,
    held: Option<(usize, Option<ExecutionState>)>,
    packets: u32,
    recoveries: u32,
    offered: (usize, u32),
    /// It found work that it could not have at that moment.
    had_no_work: bool,
}

impl Session {
    fn is_spent(&self) -> bool {
        self.fresh && self.packets > 0 && self.held.is_none()
    }
}

#[derive(Clone, Debug)]
struct Model {
    jobs: Vec<Job>,
    sessions: Vec<Session>,
    max_active: u32,
    lane_max: Vec<u32>,
    cooling: BTreeMap<u8, Moment>,
    launches_left: u32,
    tripped: Vec<Cause>,
    state: RunState,
    now: i64,
    claimed: BTreeSet<(usize, u32)>,
}

impl Model {
    fn held(&self) -> impl Iterator<Item = &Session> {
        self.sessions.iter().filter(|session| session.is_active && session.held.is_some())
    }

    fn lane_held(&self, lane: u8) -> u32 {
        u32::try_from(self.held().filter(|session| session.lane == lane).count()).unwrap()
    }

    fn run_held(&self) -> u32 {
        u32::try_from(self.held().count()).unwrap()
    }

    /// RFC 0116, verb 3; role 0 is the author.
    fn blocking_author(&self) -> Option<SessionId> {
        let pending = self.jobs.iter().any(|job| job.role == 0 && job.state == State::Queued);
        let mut authors = self.sessions.iter().filter(|session| session.is_active && session.role == 0);
        authors.find(|session| session.held.is_some() || pending).map(|session| session.id)
    }

    fn world(&self) -> World {
        let mut slots: BTreeMap<(u8, u8), SlotView> = BTreeMap::new();
        for (number, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.state == State::Queued) {
            let slot = slots.entry((job.role, job.lane)).or_insert_with(|| SlotView {
                role: job.role.to_string(),
                lane: job.lane.to_string(),
                offers: Vec::new(),
                live: 0,
                blocked: self.cooling.get(&job.lane).cloned().map(LaneBlock::Cooling),
                free_leases: self.lane_max[usize::from(job.lane)].saturating_sub(self.lane_held(job.lane)),
                blocking_author: self.blocking_author(),
            });
            let launched = self.sessions.iter().rfind(|session| session.offered == (number, job.attempt));
            slot.offers.push(Offer {
                job: JobId(i64::try_from(number).unwrap()),
                name: format!("j{number}"),
                attempt: job.attempt,
                is_fresh: job.fresh,
                not_before: job.not_before.clone(),
                lost: job.lost,
                was_launched: launched.is_some_and(|one| !one.is_active && one.packets == 0 && !one.had_no_work),
            });
        }
        World {
            run: RunView {
                state: self.state,
                is_paused: false,
                is_stopped: false,
                free_leases: self.max_active.saturating_sub(self.run_held()),
                launches_left: self.launches_left,
                is_untrusted: false,
                spent: Vec::new(),
                tripped: self.tripped.clone(),
                still_at: None,
            },
            stop_file: false,
            sessions: self
                .sessions
                .iter()
                .filter(|session| session.is_active)
                .map(|session| self.view(session))
                .collect(),
            slots: slots.into_values().collect(),
            ambiguous: Vec::new(),
            stale: self.stale(),
            proposals: Vec::new(),
            gates_due: Vec::new(),
            gates: Vec::new(),
            leases: Vec::new(),
            held: self.waiting(),
            resources: Vec::new(),
            has_open_jobs: self.jobs.iter().any(|job| job.state != State::Done),
        }
    }

    /// Stale jobs of which no session will tell.
    fn stale(&self) -> Vec<StaleView> {
        let is_held = |number: usize| self.held().any(|session| session.held.is_some_and(|held| held.0 == number));
        let stale = self.jobs.iter().enumerate().filter(|(number, job)| job.state == State::Stale && !is_held(*number));
        stale
            .map(|(number, _)| StaleView { job: JobId(i64::try_from(number).unwrap()), name: format!("j{number}") })
            .collect()
    }

    fn waiting(&self) -> Vec<HeldView> {
        let cause = |(number, job): (usize, &Job)| match job.state {
            State::Person(cause) => Some(HeldView { name: format!("j{number}"), cause }),
            _ => None,
        };
        self.jobs.iter().enumerate().filter_map(cause).collect()
    }

    fn view(&self, session: &Session) -> SessionView {
        let lock = |held: bool| if held { LockState::Held } else { LockState::Free };
        SessionView {
            id: session.id,
            role: session.role.to_string(),
            lane: session.lane.to_string(),
            is_fresh: session.fresh,
            is_driven: true,
            is_self_driven: false,
            supervisor: session.supervisor,
            is_stopping: session.stopping,
            recoveries: session.recoveries,
            helper: lock(session.helper),
            agent: lock(session.agent || session.helper),
            offered: Some((JobId(i64::try_from(session.offered.0).unwrap()), session.offered.1)),
            held: session.held.map(|(job, agent)| HeldWork {
                job: JobId(i64::try_from(job).unwrap()),
                name: format!("j{job}"),
                agent,
            }),
            packets: session.packets,
            deadline: None,
            is_launchable: true,
        }
    }

    fn session(&mut self, id: SessionId) -> &mut Session {
        self.sessions.iter_mut().find(|session| session.id == id).unwrap()
    }

    /// What performing an act does, as the store and the processes would have it; whether anything.
    fn perform(&mut self, action: &Action) -> bool {
        match action {
            Action::Launch(launch) => return self.launch(usize::try_from(launch.job.0).unwrap(), launch.attempt),
            Action::MarkLost { session } => {
                let session = self.session(*session);
                assert!(!session.helper && !session.agent, "somebody lives");
                (session.is_active, session.supervisor) = (false, Some(SupervisorState::Lost));
                let (id, held) = (session.id, session.held.take());
                if let Some((job, _)) = held {
                    self.jobs[job].lose(id);
                }
            }
            Action::Recover { session, .. } => {
                let session = self.session(*session);
                assert!(!session.helper);
                (session.helper, session.supervisor) = (true, Some(SupervisorState::Attached));
                session.recoveries += 1;
                let held = session.held;
                if let Some((job, _)) = held {
                    self.jobs[job].state = State::Stale;
                }
            }
            Action::NeverStarted { job, .. } => self.jobs[usize::try_from(job.0).unwrap()].lose(SessionId(0)),
            Action::Observe { job, .. } => self.jobs[usize::try_from(job.0).unwrap()].lose(SessionId(0)),
            Action::StopLane { session, .. } => self.session(*session).stopping = true,
            Action::CloseSession { session, .. } => self.session(*session).is_active = false,
            Action::Trip { breaker } => {
                assert!(!self.tripped.contains(breaker), "told twice");
                self.tripped.push(*breaker);
            }
            Action::Revive => self.state = RunState::Running,
            Action::Escalate { .. } => self.state = RunState::NeedsOperator,
            Action::Complete => {
                assert!(self.jobs.iter().all(|job| job.state == State::Done));
                self.state = RunState::Completed;
            }
            other => panic!("nothing in this model asks for {other:?}"),
        }
        true
    }

    /// Whether the store allows it.
    fn launch(&mut self, job: usize, attempt: u32) -> bool {
        let Job { role, lane, fresh, .. } = self.jobs[job];
        let covers = |one: &&Session| one.is_active && !one.is_spent() && (one.role, one.lane) == (role, lane);
        let has_message = |job: &Job| matches!(job.state, State::Queued | State::Held | State::Stale);
        let is_live = |job: &&Job| (job.role, job.lane) == (role, lane) && has_message(job);
        let (sessions, live) = (self.sessions.iter().filter(covers).count(), self.jobs.iter().filter(is_live).count());
        let is_coming =
            |one: &&Session| one.is_active && one.helper && one.held.is_none() && one.offered == (job, attempt);
        assert!(
            !self.sessions.iter().any(|one| is_coming(&one) && !one.stopping),
            "j{job}.{attempt} is launched twice"
        );
        if sessions >= live {
            // The store refuses; a session that was told to end covers the slot for a moment yet.
            assert!(self.sessions.iter().filter(covers).any(|one| one.stopping), "refused for ever");
            return false;
        }
        if fresh && self.blocking_author().is_some() {
            return false;
        }
        self.launches_left = self.launches_left.checked_sub(1).expect("over budget");
        let id = SessionId(i64::try_from(self.sessions.len()).unwrap() + 1);
        self.sessions.push(Session {
            id,
            role,
            lane,
            fresh,
            is_active: true,
            supervisor: Some(SupervisorState::Starting),
            stopping: false,
            helper: true,
            agent: false,
            held: None,
            packets: 0,
            recoveries: 0,
            offered: (job, attempt),
            had_no_work: false,
        });
        true
    }

    /// One helper does its next thing; whether there was one.
    fn step(&mut self, index: usize) -> bool {
        let session = self.sessions[index].clone();
        if !session.is_active || !session.helper {
            return false;
        }
        match session.held {
            Some((job, _)) if session.recoveries > 0 => self.recovered(index, job),
            Some((job, _)) => self.work(index, job),
            None => self.claim(index),
        }
        true
    }

    fn claim(&mut self, index: usize) {
        let session = self.sessions[index].clone();
        self.sessions[index].supervisor = Some(SupervisorState::Attached);
        let offered = self.jobs.iter().position(|job| {
            let is_due = job.not_before.as_ref().is_none_or(|moment| moment.is_past(&at(self.now)));
            let fits = job.role == session.role && job.lane == session.lane && job.state == State::Queued;
            fits && is_due && (!job.fresh || session.packets == 0)
        });
        let is_cooling = self.cooling.get(&session.lane).is_some_and(|until| !until.is_past(&at(self.now)));
        let has_room = self.run_held() < self.max_active
            && self.lane_held(session.lane) < self.lane_max[usize::from(session.lane)]
            && !is_cooling;
        let Some(job) = offered.filter(|_| has_room && !session.stopping && !session.is_spent()) else {
            self.end(index, SupervisorState::Stopped);
            self.sessions[index].had_no_work = offered.is_some();
            return;
        };
        if self.jobs[job].fate() == Fate::DieUnclaimed && session.packets == 0 {
            self.sessions[index].helper = false;
            return;
        }
        assert!(self.claimed.insert((job, self.jobs[job].attempt)), "an attempt has two agents");
        self.jobs[job].state = State::Held;
        let session = &mut self.sessions[index];
        (session.held, session.packets) = (Some((job, None)), session.packets + 1);
    }

    fn end(&mut self, index: usize, state: SupervisorState) {
        let session = &mut self.sessions[index];
        (session.is_active, session.helper, session.agent) = (false, false, false);
        (session.supervisor, session.held) = (Some(state), None);
    }

    fn work(&mut self, index: usize, job: usize) {
        let (fate, now, lane) = (self.jobs[job].fate(), self.now, self.jobs[job].lane);
        let session = &mut self.sessions[index];
        let id = session.id;
        match fate {
            Fate::DieClaimed => session.helper = false,
            Fate::DieWorking | Fate::Orphan => {
                (session.helper, session.agent) = (false, fate == Fate::Orphan);
                session.held = Some((job, Some(ExecutionState::Running)));
            }
            other => {
                session.held = None;
                if matches!(fate, Fate::Seal | Fate::DieUnclaimed) {
                    return self.seal(job);
                }
                let job = &mut self.jobs[job];
                match other {
                    Fate::Strike if job.strikes == 2 => job.state = State::Person(Cause::Strikes),
                    Fate::Strike => {
                        job.strikes += 1;
                        job.again(Some(id));
                    }
                    Fate::Ask => job.state = State::Person(Cause::NeedsContext),
                    Fate::Block => job.state = State::Person(Cause::AgentBlocked),
                    Fate::Unavailable => {
                        job.again(None);
                        job.not_before = Some(at(now + 1_000));
                        self.cooling.insert(lane, at(now + 1_000));
                    }
                    other => panic!("{other:?} is no end by itself"),
                }
            }
        }
    }

    fn seal(&mut self, job: usize) {
        self.jobs[job].state = State::Done;
        for number in 0..self.jobs.len() {
            let is_due = self.jobs[number].needs.iter().all(|need| self.jobs[*need].state == State::Done);
            if self.jobs[number].state == State::Waiting && is_due {
                self.jobs[number].state = State::Queued;
                self.jobs[number].attempt = 1;
            }
        }
    }

    /// A recovery helper has watched, and tells what became of the attempt.
    fn recovered(&mut self, index: usize, job: usize) {
        let id = self.sessions[index].id;
        if self.jobs[job].fate() == Fate::Orphan {
            self.seal(job);
        } else {
            self.jobs[job].lose(id);
        }
        self.end(index, SupervisorState::Stopped);
    }

    fn check_limits(&self) {
        assert!(self.run_held() <= self.max_active);
        for (lane, max) in self.lane_max.iter().enumerate() {
            assert!(self.lane_held(u8::try_from(lane).unwrap()) <= *max);
        }
        let mut held: Vec<usize> = self.held().map(|session| session.held.unwrap().0).collect();
        held.sort_unstable();
        let count = held.len();
        held.dedup();
        assert_eq!(held.len(), count, "a job is held twice");
    }
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Seal),
        2 => Just(Fate::Strike),
        1 => Just(Fate::DieUnclaimed),
        1 => Just(Fate::DieClaimed),
        1 => Just(Fate::DieWorking),
        1 => Just(Fate::Orphan),
        1 => Just(Fate::Ask),
        1 => Just(Fate::Block),
        1 => Just(Fate::Unavailable),
    ]
}

/// A job in a graph without cycles: it may need those before it.
fn job(fates: impl Strategy<Value = Fate>) -> impl Strategy<Value = (u8, u8, Vec<bool>, Vec<Fate>)> {
    let needs = prop::collection::vec(prop::bool::weighted(0.4), 8);
    (0..3_u8, 0..2_u8, needs, prop::collection::vec(fates, 0..4))
}

fn model(fates: fn() -> BoxedStrategy<Fate>) -> impl Strategy<Value = Model> {
    let jobs = prop::collection::vec(job(fates()), 1..8);
    (jobs, 1_u32..4, prop::collection::vec(1_u32..3, 2), 0_u32..40).prop_map(
        |(jobs, max_active, lane_max, launches)| {
            let jobs = jobs.into_iter().enumerate().map(|(number, (role, lane, needs, fates))| {
                let needs: Vec<usize> = (0..number).filter(|before| needs[*before]).collect();
                let state = if needs.is_empty() { State::Queued } else { State::Waiting };
                let attempt = u32::from(needs.is_empty());
                // Freshness is a role's: reviewers are, authors (role 0) and others are not.
                let fresh = role == 2;
                Job {
                    role,
                    lane,
                    fresh,
                    needs,
                    fates,
                    state,
                    attempt,
                    strikes: 0,
                    requeues: 0,
                    lost: None,
                    not_before: None,
                }
            });
            Model {
                jobs: jobs.collect(),
                sessions: Vec::new(),
                max_active,
                lane_max,
                cooling: BTreeMap::new(),
                launches_left: launches + 10,
                tripped: Vec::new(),
                state: RunState::Running,
                now: 0,
                claimed: BTreeSet::new(),
            }
        },
    )
}

/// A driver's turn of which only so many acts are performed before it dies; what it did.
fn turn(model: &mut Model, acts: usize) -> (Plan, BTreeSet<String>) {
    let plan = reconcile(&model.world(), &at(model.now));
    let mut done = BTreeSet::new();
    for action in plan.actions.iter().take(acts) {
        if model.perform(action) {
            done.insert(action.key());
        }
        model.check_limits();
    }
    (plan, done)
}

/// Drives with a fair world until nothing moves; where the run then stands.
fn drive(model: &mut Model) -> Standing {
    for _ in 0..1_000 {
        let (plan, done) = turn(model, usize::MAX);
        if plan.actions.is_empty() && plan.standing != Standing::Moving {
            return plan.standing;
        }
        let mut moved = !done.is_empty();
        for index in 0..model.sessions.len() {
            moved |= model.step(index);
            model.check_limits();
        }
        model.now += 10;
        if !moved {
            let wake = plan.wake_at.unwrap_or_else(|| panic!("wedged: {model:#?}"));
            assert!(wake.ms > model.now - 10, "it would spin: {wake:?}");
            model.now = model.now.max(wake.ms);
        }
    }
    panic!("no end: {model:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_or_waits_for_something_that_has_a_name(mut model in model(|| fate().boxed())) {
        match drive(&mut model) {
            Standing::Over if model.state == RunState::Completed => {
                prop_assert!(model.jobs.iter().all(|job| job.state == State::Done));
            }
            Standing::Over => prop_assert_eq!(model.state, RunState::NeedsOperator),
            Standing::WaitingHuman(reasons) => prop_assert!(!reasons.is_empty()),
            standing => prop_assert!(false, "{:?}", standing),
        }
        // Nobody is left behind.
        prop_assert!(model.sessions.iter().all(|session| !session.is_active), "{:#?}", model);
    }

    #[test]
    fn a_run_whose_agents_work_is_completed_with_one_launch_an_attempt(mut model in model(|| Just(Fate::Seal).boxed())) {
        prop_assert_eq!(drive(&mut model), Standing::Over);
        prop_assert_eq!(model.state, RunState::Completed);
        prop_assert!(model.jobs.iter().all(|job| job.attempt == 1));
        prop_assert!(model.sessions.len() <= model.jobs.len());
    }

    #[test]
    fn a_driver_that_dies_in_the_middle_of_any_turn_is_continued_by_the_next(
        mut model in model(|| fate().boxed()),
        cuts in prop::collection::vec((0_usize..3, 0_usize..8), 0..30),
    ) {
        for (acts, helper) in cuts {
            turn(&mut model, acts);
            if helper < model.sessions.len() {
                model.step(helper);
            }
            model.now += 1;
            model.check_limits();
        }
        drive(&mut model);
    }

    #[test]
    fn what_was_done_is_not_planned_again(mut model in model(|| fate().boxed()), steps in prop::collection::vec(0_usize..8, 0..40)) {
        for helper in steps {
            let (_, done) = turn(&mut model, usize::MAX);
            let again = reconcile(&model.world(), &at(model.now));
            for action in &again.actions {
                prop_assert!(!done.contains(&action.key()), "{:?} again", action);
            }
            if helper < model.sessions.len() {
                model.step(helper);
            }
            model.now += 1;
        }
    }
}

/// A reviewer behind an author that is told to end in this very turn, and a lane that is parked.
#[test]
fn a_run_is_not_given_up_while_an_author_is_told_to_end_for_its_reviewer() {
    let slot = |role: &str, lane: &str, job: i64, blocked| SlotView {
        role: role.to_owned(),
        lane: lane.to_owned(),
        offers: vec![Offer {
            job: JobId(job),
            name: format!("j{job}"),
            attempt: 1,
            is_fresh: role == "reviewer",
            not_before: None,
            lost: None,
            was_launched: false,
        }],
        live: 1,
        blocked,
        free_leases: 1,
        blocking_author: Some(SessionId(1)),
    };
    let author = SessionView {
        id: SessionId(1),
        role: "author".to_owned(),
        lane: "one".to_owned(),
        is_fresh: false,
        is_driven: true,
        is_self_driven: false,
        supervisor: Some(SupervisorState::Attached),
        is_stopping: false,
        recoveries: 0,
        helper: LockState::Held,
        agent: LockState::Held,
        offered: None,
        held: None,
        packets: 1,
        deadline: None,
        is_launchable: true,
    };
    let slots = vec![slot("author", "two", 1, Some(LaneBlock::Parked)), slot("reviewer", "one", 2, None)];
    let model = Model {
        jobs: Vec::new(),
        sessions: Vec::new(),
        max_active: 4,
        lane_max: vec![4, 4],
        cooling: BTreeMap::new(),
        launches_left: 9,
        tripped: Vec::new(),
        state: RunState::Running,
        now: 0,
        claimed: BTreeSet::new(),
    };
    let mut world = World { sessions: vec![author], slots, has_open_jobs: true, ..model.world() };
    let plan = reconcile(&world, &at(0));
    assert!(plan.actions.iter().any(|act| matches!(act, Action::StopLane { .. })), "{plan:?}");
    assert!(!plan.actions.iter().any(|act| matches!(act, Action::Escalate { .. })), "{plan:?}");
    assert_eq!(plan.standing, Standing::Moving);
    world.sessions[0].is_stopping = true;
    let plan = reconcile(&world, &at(0));
    assert_eq!((plan.actions, plan.standing), (Vec::new(), Standing::Moving));
}
