//! The model of the store: rows that only the domain's machines move, and the picture that a driver sees of them.

use std::collections::{BTreeMap, BTreeSet};

use striatum::domain::frozen::JobSpec;
use striatum::domain::frozen::{Autonomy, Effect, JobType, OnFailure};
use striatum::domain::gate::{Tier, is_due, tier_of};
use striatum::domain::id::{GateId, JobId, SessionId};
use striatum::domain::job::{Aftermath, Cause, JobEvent, JobState, Outcome, Tries, aftermath, on_failure};
use striatum::domain::run::{RunEvent, RunState};
use striatum::domain::session::{ExecutionState, GateEvent, GateState, SessionEvent, SessionState, SupervisorState};
use striatum::domain::time::Moment;
use striatum::domain::verdict::{PanelDecision, Seat, Verdict, decide};
use striatum::domain::world::{
    GateView, HeldView, HeldWork, JobView, LaneBlock, LockState, Offer, RunView, SessionView, SlotView, StaleView,
    World,
};

use super::chance::Chance;

/// Why a waiting job waits, beside its needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A person must let it through.
    Gate,
    /// Its gate was rejected.
    Rejected,
    /// It failed or asks, for this.
    Cause(Cause),
}

#[derive(Clone, Debug)]
pub struct Job {
    pub spec: JobSpec,
    pub role: u8,
    pub lane: u8,
    pub needs: Vec<usize>,
    pub reviews: Option<usize>,
    pub state: JobState,
    pub reason: Option<Reason>,
    pub settled: bool,
    pub attempt: u32,
    pub strikes: u32,
    pub requeues: u32,
    pub revisions: u32,
    pub generation: u32,
    pub verdict: Option<(Verdict, u32)>,
    pub lost: Option<SessionId>,
    pub not_before: Option<Moment>,
    /// A person approved its gate and nothing upstream was sent back since.
    pub is_through: bool,
}

impl Job {
    pub fn has_role(&self) -> bool {
        !matches!(self.spec.kind, JobType::Checkpoint | JobType::Land)
    }
}

#[derive(Clone, Debug)]
pub struct Gate {
    pub id: GateId,
    pub job: usize,
    pub state: GateState,
    pub expires: Moment,
}

#[derive(Clone, Debug)]
pub struct Session {
    pub id: SessionId,
    pub role: u8,
    pub lane: u8,
    pub fresh: bool,
    pub state: SessionState,
    pub supervisor: Option<SupervisorState>,
    pub stopping: bool,
    pub helper: bool,
    pub agent: bool,
    pub held: Option<(usize, u32, Option<ExecutionState>)>,
    pub packets: u32,
    pub recoveries: u32,
    pub offered: (usize, u32),
    pub had_no_work: bool,
}

impl Session {
    pub fn is_active(&self) -> bool {
        self.state == SessionState::Active
    }
}

#[derive(Clone, Debug)]
pub struct Store {
    pub run: RunState,
    pub cause: Option<Cause>,
    pub is_paused: bool,
    pub is_stopped: bool,
    pub dial: Autonomy,
    pub launches: u32,
    pub max_launches: u32,
    /// Money that sealed attempts have cost, and may cost.
    pub cost: u32,
    pub max_cost: u32,
    /// Breakers whose trip was told.
    pub tripped: Vec<Cause>,
    pub max_active: u32,
    pub max_requeues: u32,
    pub lane_max: Vec<u32>,
    pub cooling: BTreeMap<u8, Moment>,
    pub parked: BTreeSet<u8>,
    pub jobs: Vec<Job>,
    pub gates: Vec<Gate>,
    pub sessions: Vec<Session>,
    pub now: Moment,
    boots: u32,
    /// Attempts that an agent was started for.
    pub started: BTreeSet<(usize, u32)>,
    /// Attempts that somebody claimed.
    pub claimed: BTreeSet<(usize, u32)>,
}

impl Store {
    /// A run of a few jobs, each as chance has it.
    pub fn prepared(chance: &mut Chance) -> Store {
        let mut jobs: Vec<Job> = Vec::new();
        for number in 0..1 + chance.below(7) {
            let job = one_job(chance, number, &jobs);
            jobs.push(job);
        }
        let mut store = Store {
            run: RunState::Ready,
            cause: None,
            is_paused: false,
            is_stopped: false,
            dial: *chance.one(&[Autonomy::Auto, Autonomy::Auto, Autonomy::Step]),
            launches: 0,
            max_launches: u32::try_from(1 + chance.below(25)).unwrap(),
            cost: 0,
            max_cost: u32::try_from(1 + chance.below(12)).unwrap(),
            tripped: Vec::new(),
            max_active: u32::try_from(1 + chance.below(3)).unwrap(),
            max_requeues: 2,
            lane_max: vec![u32::try_from(1 + chance.below(2)).unwrap(), 2],
            cooling: BTreeMap::new(),
            parked: BTreeSet::new(),
            jobs,
            gates: Vec::new(),
            sessions: Vec::new(),
            now: Moment { boot: "b0".to_owned(), ms: 0 },
            boots: 0,
            started: BTreeSet::new(),
            claimed: BTreeSet::new(),
        };
        store.move_run(RunEvent::Start);
        for number in 0..store.jobs.len() {
            if store.jobs[number].needs.is_empty() {
                store.release(number);
            }
        }
        store
    }

    pub fn move_run(&mut self, event: RunEvent) {
        self.run = self.run.next(event).unwrap_or_else(|illegal| panic!("{illegal}"));
        if matches!(self.run, RunState::Running | RunState::Completed) {
            self.cause = None;
        }
    }

    pub fn move_job(&mut self, number: usize, event: JobEvent) {
        let state = self.jobs[number].state;
        self.jobs[number].state = state.next(event).unwrap_or_else(|illegal| panic!("j{number}: {illegal}"));
        self.jobs[number].reason = None;
    }

    pub fn needs_gate(&self, number: usize) -> bool {
        is_due(tier_of(&self.jobs[number].spec), self.dial)
    }

    /// Nothing that it needs is left: it goes, or a person is to let it.
    pub fn release(&mut self, number: usize) {
        if self.jobs[number].state != JobState::Waiting {
            return;
        }
        if self.needs_gate(number) {
            self.jobs[number].reason = Some(Reason::Gate);
        } else {
            self.offer(number);
        }
    }

    pub fn offer(&mut self, number: usize) {
        let is_first = self.jobs[number].state == JobState::Waiting;
        let tier = tier_of(&self.jobs[number].spec);
        assert!(!is_first || tier != Tier::L2 || self.jobs[number].is_through, "j{number} goes without its gate");
        self.move_job(number, JobEvent::Enqueue);
        let job = &mut self.jobs[number];
        (job.attempt, job.settled, job.not_before) = (job.attempt + 1, false, None);
    }

    fn settle(&mut self, number: usize) {
        self.jobs[number].settled = true;
        for next in 0..self.jobs.len() {
            let is_behind = self.jobs[next].needs.contains(&number);
            if is_behind && self.jobs[next].needs.iter().all(|need| self.jobs[*need].settled) {
                self.release(next);
            }
        }
    }

    pub fn complete_if_done(&mut self) {
        let is_live = matches!(self.run, RunState::Running | RunState::NeedsOperator);
        if is_live && self.jobs.iter().all(|job| job.settled) {
            self.move_run(RunEvent::Complete);
        }
    }

    /// Ends whoever holds a job; late words are refused from then on.
    pub fn take_away(&mut self, number: usize) {
        for session in self.sessions.iter_mut().filter(|one| one.is_active()) {
            if session.held.is_some_and(|held| held.0 == number) {
                session.held = None;
                session.agent = false;
            }
        }
    }

    pub fn seal(&mut self, number: usize, verdict: Option<Verdict>) {
        self.take_away(number);
        self.move_job(number, JobEvent::Seal);
        match (self.jobs[number].reviews, verdict) {
            (Some(subject), Some(verdict)) => {
                self.jobs[number].verdict = Some((verdict, self.jobs[subject].generation));
                self.panel(subject);
            }
            _ => self.settle(number),
        }
        self.complete_if_done();
    }

    fn panel(&mut self, subject: usize) {
        let reviews: Vec<usize> = (0..self.jobs.len())
            .filter(|one| self.jobs[*one].reviews == Some(subject) && self.jobs[*one].state != JobState::Skipped)
            .collect();
        let generation = self.jobs[subject].generation;
        let seats: Vec<Seat> = reviews
            .iter()
            .map(|review| {
                let job = &self.jobs[*review];
                let verdict = job.verdict.filter(|given| given.1 == generation).map(|given| given.0);
                Seat {
                    verdict,
                    is_over: match job.state {
                        JobState::Completed => verdict.is_some(),
                        JobState::Failed | JobState::Canceled => true,
                        _ => false,
                    },
                    revisions_left: job.spec.revisions.saturating_sub(job.revisions),
                }
            })
            .collect();
        let is_held = reviews.iter().any(|one| self.jobs[*one].state == JobState::Failed && !self.jobs[*one].settled);
        match decide(&seats, self.jobs[subject].spec.quorum) {
            PanelDecision::Open => {}
            PanelDecision::Short if is_held => {}
            PanelDecision::Short | PanelDecision::Pass => {
                reviews
                    .into_iter()
                    .filter(|one| !self.jobs[*one].settled)
                    .collect::<Vec<_>>()
                    .into_iter()
                    .for_each(|review| self.settle(review));
            }
            PanelDecision::Reject => self.fail_run(Cause::Other),
            PanelDecision::Reopen => {
                for review in &reviews {
                    if self.jobs[*review].verdict.is_some_and(|given| given == (Verdict::NeedsRevision, generation)) {
                        self.jobs[*review].revisions += 1;
                        assert!(
                            self.jobs[*review].revisions <= self.jobs[*review].spec.revisions,
                            "sent back too often"
                        );
                    }
                }
                self.reopen(subject);
            }
            PanelDecision::RevisionsSpent => self.spend(&reviews, generation),
        }
    }

    fn spend(&mut self, reviews: &[usize], generation: u32) {
        for review in reviews.iter().copied() {
            let job = &self.jobs[review];
            let wants = job.verdict == Some((Verdict::NeedsRevision, generation));
            if job.state == JobState::Completed && wants && job.revisions >= job.spec.revisions {
                let effect = on_failure(job.spec.on_failure);
                self.move_job(review, JobEvent::Fail);
                self.jobs[review].reason = Some(Reason::Cause(Cause::Revisions));
                if effect.fails_run {
                    return self.fail_run(Cause::Revisions);
                }
                if effect.settles {
                    self.settle(review);
                }
            }
        }
    }

    pub fn fail_run(&mut self, cause: Cause) {
        if !self.run.is_terminal() {
            self.move_run(RunEvent::Fail);
            self.cause = Some(cause);
        }
    }

    /// Sends a job back, and puts what is behind it back behind it.
    pub fn reopen(&mut self, number: usize) {
        let below = self.below(number);
        self.void(number);
        for next in below {
            let job = &self.jobs[next];
            if job.state != JobState::Waiting || job.attempt > 0 || job.reason.is_some() {
                self.void(next);
                self.jobs[next].is_through = false;
            }
        }
        // A person let the target through before, or sends it back.
        self.jobs[number].is_through = true;
        self.offer(number);
    }

    fn void(&mut self, number: usize) {
        self.take_away(number);
        for gate in self.gates.iter_mut().filter(|gate| gate.job == number && gate.state == GateState::Pending) {
            gate.state = gate.state.next(GateEvent::Expire).unwrap();
        }
        self.move_job(number, JobEvent::Block);
        self.jobs[number].settled = false;
        self.jobs[number].generation += 1;
    }

    fn below(&self, number: usize) -> Vec<usize> {
        let mut found = vec![number];
        for next in 0..self.jobs.len() {
            if self.jobs[next].needs.iter().any(|need| found.contains(need)) && !found.contains(&next) {
                found.push(next);
            }
        }
        found.retain(|next| *next != number);
        found
    }

    /// An attempt ends in any way but a seal; what follows is the domain's to say.
    pub fn end_attempt(&mut self, number: usize, outcome: Outcome, by: Option<SessionId>) {
        self.take_away(number);
        let job = &self.jobs[number];
        let tries = Tries {
            strikes: job.strikes,
            max_strikes: job.spec.max_strikes,
            requeues: job.requeues,
            max_requeues: self.max_requeues,
        };
        use striatum::domain::job::Cost;
        match outcome.cost() {
            Cost::Strike => self.jobs[number].strikes += 1,
            Cost::Requeue => self.jobs[number].requeues += 1,
            Cost::Free | Cost::Person | Cost::Final => {}
        }
        match aftermath(outcome, tries) {
            Aftermath::Again => {
                let job = &self.jobs[number];
                let is_over = job.strikes >= job.spec.max_strikes && outcome.cost() == Cost::Strike;
                assert!(!is_over, "j{number} goes on after its last strike");
                self.offer(number);
                self.jobs[number].lost = by;
                if outcome == Outcome::Unavailable {
                    let until = self.now.after(1_000);
                    self.cooling.insert(self.jobs[number].lane, until.clone());
                    self.jobs[number].not_before = Some(until);
                }
            }
            Aftermath::Person(cause) => {
                self.move_job(number, JobEvent::Ask);
                self.jobs[number].reason = Some(Reason::Cause(cause));
            }
            Aftermath::OutOfTries(cause) => self.fail(number, cause),
            Aftermath::Done => {}
        }
        self.complete_if_done();
    }

    fn fail(&mut self, number: usize, cause: Cause) {
        let effect = on_failure(self.jobs[number].spec.on_failure);
        let event = if effect.state == JobState::Skipped { JobEvent::Skip } else { JobEvent::Fail };
        self.move_job(number, event);
        self.jobs[number].reason = Some(Reason::Cause(cause));
        if effect.fails_run {
            return self.fail_run(cause);
        }
        if effect.settles {
            self.settle(number);
        }
        if let Some(subject) = self.jobs[number].reviews {
            self.panel(subject);
        }
    }

    pub fn skip(&mut self, number: usize) {
        self.move_job(number, JobEvent::Skip);
        self.settle(number);
        if let Some(subject) = self.jobs[number].reviews {
            self.panel(subject);
        }
        self.complete_if_done();
    }

    pub fn end_session(&mut self, index: usize, event: SessionEvent, supervisor: SupervisorState) {
        let session = &mut self.sessions[index];
        session.state = session.state.next(event).unwrap_or_else(|illegal| panic!("{illegal}"));
        (session.helper, session.agent, session.held) = (false, false, None);
        if session.supervisor.is_some() {
            session.supervisor = Some(supervisor);
        }
    }

    /// The budget of money is used up.
    pub fn is_out_of_money(&self) -> bool {
        self.cost >= self.max_cost
    }

    /// Holds of a lane, or of all.
    pub fn leases(&self, lane: Option<u8>) -> u32 {
        let holds = self.sessions.iter().filter(|one| one.is_active() && one.held.is_some());
        u32::try_from(holds.filter(|one| lane.is_none_or(|lane| one.lane == lane)).count()).unwrap()
    }

    /// RFC 0116, verb 3; role 0 is the author.
    pub fn blocking_author(&self) -> Option<SessionId> {
        let pending = self.jobs.iter().any(|job| job.role == 0 && job.has_role() && job.state == JobState::Queued);
        let mut authors = self.sessions.iter().filter(|one| one.is_active() && one.role == 0);
        authors.find(|one| one.held.is_some() || pending).map(|one| one.id)
    }

    /// Time goes on: a little, over a suspend, or into another boot, where nobody of this one lives.
    pub fn pass_time(&mut self, chance: &mut Chance) {
        if chance.percent(15) {
            self.boots += 1;
            self.now = Moment { boot: format!("b{}", self.boots), ms: i64::try_from(chance.below(5_000)).unwrap() };
            for session in &mut self.sessions {
                (session.helper, session.agent) = (false, false);
            }
        } else {
            self.now.ms += *chance.one(&[1, 50, 1_500, 400_000]);
        }
    }

    /// What a driver sees.
    pub fn picture(&self) -> World {
        World {
            run: RunView {
                state: self.run,
                is_paused: self.is_paused,
                is_stopped: self.is_stopped,
                free_leases: self.max_active.saturating_sub(self.leases(None)),
                launches_left: self.max_launches.saturating_sub(self.launches),
                is_untrusted: false,
                spent: if self.is_out_of_money() { vec![Cause::Cost] } else { Vec::new() },
                tripped: self.tripped.clone(),
                still_at: None,
            },
            stop_file: false,
            sessions: self.sessions.iter().filter(|one| one.is_active()).map(session_view).collect(),
            slots: self.slots(),
            ambiguous: Vec::new(),
            stale: self.stale(),
            proposals: Vec::new(),
            gates_due: self.gates_due(),
            gates: self.open_gates().map(|gate| self.gate_view(gate)).collect(),
            leases: Vec::new(),
            held: self.waiting(),
            resources: Vec::new(),
            has_open_jobs: self.jobs.iter().any(|job| !job.settled),
        }
    }

    fn slots(&self) -> Vec<SlotView> {
        let mut slots: BTreeMap<(u8, u8), SlotView> = BTreeMap::new();
        for (number, job) in self.jobs.iter().enumerate().filter(|(_, job)| job.state == JobState::Queued) {
            let slot = slots.entry((job.role, job.lane)).or_insert_with(|| SlotView {
                role: job.role.to_string(),
                lane: job.lane.to_string(),
                offers: Vec::new(),
                live: 0,
                blocked: self.block(job.lane),
                free_leases: self.lane_max[usize::from(job.lane)].saturating_sub(self.leases(Some(job.lane))),
                blocking_author: self.blocking_author(),
            });
            let launched = self.sessions.iter().rfind(|one| one.offered == (number, job.attempt));
            slot.offers.push(Offer {
                job: id_of(number),
                name: name_of(number),
                attempt: job.attempt,
                is_fresh: job.spec.fresh,
                not_before: job.not_before.clone(),
                lost: job.lost,
                was_launched: launched.is_some_and(|one| !one.is_active() && one.packets == 0 && !one.had_no_work),
            });
        }
        slots.into_values().collect()
    }

    pub fn block(&self, lane: u8) -> Option<LaneBlock> {
        if self.parked.contains(&lane) {
            return Some(LaneBlock::Parked);
        }
        self.cooling.get(&lane).cloned().map(LaneBlock::Cooling)
    }

    fn stale(&self) -> Vec<StaleView> {
        let is_held = |number: usize| {
            self.sessions.iter().any(|one| one.is_active() && one.held.is_some_and(|held| held.0 == number))
        };
        let stale = (0..self.jobs.len()).filter(|one| self.jobs[*one].state == JobState::Stale && !is_held(*one));
        stale.map(|one| StaleView { job: id_of(one), name: name_of(one) }).collect()
    }

    /// Gates that nobody has decided.
    pub fn open_gates(&self) -> impl Iterator<Item = &Gate> {
        self.gates.iter().filter(|gate| gate.state == GateState::Pending)
    }

    fn gate_view(&self, gate: &Gate) -> GateView {
        GateView { gate: gate.id, job: id_of(gate.job), name: name_of(gate.job), expires: gate.expires.clone() }
    }

    fn gates_due(&self) -> Vec<JobView> {
        let due = (0..self.jobs.len()).filter(|one| {
            self.jobs[*one].reason == Some(Reason::Gate) && !self.open_gates().any(|gate| gate.job == *one)
        });
        due.map(|one| JobView { job: id_of(one), name: name_of(one) }).collect()
    }

    /// What waits for a person or is broken, gates left out.
    pub fn waiting(&self) -> Vec<HeldView> {
        let cause = |(number, job): (usize, &Job)| {
            let is_there = matches!(job.state, JobState::Waiting | JobState::WaitingHuman | JobState::Failed);
            let cause = match job.reason {
                Some(Reason::Rejected) => Cause::GateRejected,
                Some(Reason::Cause(cause)) => cause,
                Some(Reason::Gate) | None => return None,
            };
            (is_there && !job.settled).then(|| HeldView { name: name_of(number), cause })
        };
        self.jobs.iter().enumerate().filter_map(cause).collect()
    }

    /// What must hold after every step.
    pub fn check(&self) {
        assert!(self.leases(None) <= self.max_active, "more jobs are held than may be");
        for (lane, max) in self.lane_max.iter().enumerate() {
            assert!(self.leases(Some(u8::try_from(lane).unwrap())) <= *max, "lane {lane} is over its capacity");
        }
        for (number, job) in self.jobs.iter().enumerate() {
            let holders = self.sessions.iter().filter(|one| one.held.is_some_and(|held| held.0 == number)).count();
            assert!(holders <= 1, "j{number} is held twice");
            assert!(!job.state.is_held() || holders == 1 || self.run.is_terminal(), "j{number} is held by nobody");
        }
        if self.run == RunState::Completed {
            assert!(self.jobs.iter().all(|job| job.settled), "completed with something open");
        }
    }
}

pub fn id_of(number: usize) -> JobId {
    JobId(i64::try_from(number).unwrap())
}

pub fn name_of(number: usize) -> String {
    format!("j{number}")
}

fn session_view(session: &Session) -> SessionView {
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
        offered: Some((id_of(session.offered.0), session.offered.1)),
        held: session.held.map(|(job, _, agent)| HeldWork { job: id_of(job), name: name_of(job), agent }),
        packets: session.packets,
        deadline: None,
        is_launchable: true,
    }
}

/// One job, which may need those before it.
fn one_job(chance: &mut Chance, number: usize, before: &[Job]) -> Job {
    let is_subject = |at: &usize| before[*at].has_role() && before[*at].reviews.is_none();
    let subjects: Vec<usize> = (0..number).filter(is_subject).collect();
    let reviews = (!subjects.is_empty() && chance.percent(30)).then(|| *chance.one(&subjects));
    let kind = match reviews {
        Some(_) => JobType::Review,
        None => *chance.one(&[JobType::Generic, JobType::Draft, JobType::Draft, JobType::Checkpoint]),
    };
    let mut needs: Vec<usize> = (0..number).filter(|_| chance.percent(35)).collect();
    if let Some(subject) = reviews {
        // A review of a job needs it alone, as most do.
        needs = vec![subject];
    }
    let effect = match kind {
        JobType::Draft => *chance.one(&[Effect::Write, Effect::Write, Effect::Outward]),
        _ => Effect::Read,
    };
    let spec = JobSpec {
        id: name_of(number),
        kind,
        effect,
        fresh: reviews.is_some(),
        max_strikes: 1 + u32::try_from(chance.below(3)).unwrap(),
        revisions: u32::try_from(chance.below(3)).unwrap(),
        quorum: chance.percent(30).then_some(1),
        on_failure: *chance.one(&[
            OnFailure::Hold,
            OnFailure::Hold,
            OnFailure::Continue,
            OnFailure::Skip,
            OnFailure::FailRun,
        ]),
        ..JobSpec::default()
    };
    Job {
        role: if reviews.is_some() { 2 } else { u8::try_from(chance.below(2)).unwrap() },
        lane: u8::try_from(chance.below(2)).unwrap(),
        spec,
        needs,
        reviews,
        state: JobState::Waiting,
        reason: None,
        settled: false,
        attempt: 0,
        strikes: 0,
        requeues: 0,
        revisions: 0,
        generation: 0,
        verdict: None,
        lost: None,
        not_before: None,
        is_through: false,
    }
}
