//! A run's story told again: where everything was before each event, and each step that no machine has.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use super::evidence::{Evidence, Told};
use crate::domain::event::EventType;
use crate::domain::job::{JobEvent, JobState, Outcome};
use crate::domain::run::{RunEvent, RunState};
use crate::domain::session::{GateEvent, GateState, SessionEvent, SessionState};

/// Where a job is in the story.
#[derive(Clone, Copy, Debug)]
pub struct JobNow {
    /// Its state.
    pub state: JobState,
    /// Who holds it.
    pub holder: Option<i64>,
}

/// Where everything is before an event.
#[derive(Clone, Debug)]
pub struct Now {
    /// The run; none before it was prepared.
    pub run: Option<RunState>,
    /// The snapshot in force.
    pub generation: usize,
    /// No launches.
    pub is_paused: bool,
    /// Everything ends.
    pub is_stopped: bool,
    /// Jobs by name.
    pub jobs: BTreeMap<String, JobNow>,
    /// Sessions that were registered.
    pub sessions: BTreeMap<i64, SessionState>,
    gates: BTreeMap<i64, GateState>,
    /// Attempts that nobody began: they leave the queue without a word of their own.
    unbegun: BTreeSet<(String, u32)>,
}

impl Now {
    fn begin(evidence: &Evidence) -> Now {
        let waits = JobNow { state: JobState::Waiting, holder: None };
        let unbegun = evidence.attempts.iter().filter(|attempt| attempt.outcome == Some(Outcome::NeverStarted));
        Now {
            run: None,
            generation: 1,
            is_paused: false,
            is_stopped: false,
            jobs: evidence.jobs.iter().map(|job| (job.name.clone(), waits)).collect(),
            sessions: BTreeMap::new(),
            gates: BTreeMap::new(),
            unbegun: unbegun.map(|attempt| (attempt.job.clone(), attempt.number)).collect(),
        }
    }

    /// Jobs that somebody holds.
    pub fn held(&self) -> usize {
        self.jobs.values().filter(|job| job.state.is_held()).count()
    }

    /// Takes one event in; the words of a step that its machine does not have.
    fn take(&mut self, told: &Told) -> Option<String> {
        let kind = told.kind?;
        match kind {
            EventType::RunPaused => self.is_paused = true,
            EventType::RunStopped => self.is_stopped = true,
            EventType::RunResumed => (self.is_paused, self.is_stopped) = (false, false),
            EventType::RunAmended => {
                self.generation = told.number("generation").map_or(self.generation, |number| number as usize);
            }
            _ => {}
        }
        self.move_run(kind, told).or_else(|| self.move_job(kind, told)).or_else(|| self.move_others(kind, told))
    }

    fn move_run(&mut self, kind: EventType, told: &Told) -> Option<String> {
        let (event, to) = match kind {
            EventType::RunPrepared => {
                let again = self.run.replace(RunState::Ready);
                return again.map(|state| format!("prepared again, and was {state}"));
            }
            EventType::RunStarted => (RunEvent::Start, RunState::Running),
            EventType::RunCompleted => (RunEvent::Complete, RunState::Completed),
            EventType::RunFailed => (RunEvent::Fail, RunState::Failed),
            EventType::RunCanceled => (RunEvent::Cancel, RunState::Canceled),
            EventType::RunNeedsOperator => (RunEvent::Escalate, RunState::NeedsOperator),
            EventType::RunRevived => (RunEvent::Revive, RunState::Running),
            _ => return None,
        };
        if told.text("was") == Some(RunState::Canceled.word()) {
            // A canceled run comes back as a whole.
            for job in self.jobs.values_mut().filter(|job| job.state == JobState::Canceled) {
                job.state = JobState::Waiting;
            }
        }
        let was = self.run.replace(to);
        match was {
            None => Some(format!("a run that is not prepared can't {event}")),
            Some(state) => state.next(event).err().map(|illegal| illegal.to_string()),
        }
    }

    fn move_job(&mut self, kind: EventType, told: &Told) -> Option<String> {
        let job = self.jobs.get_mut(told.job.as_deref()?)?;
        let (event, to) = match kind {
            EventType::JobQueued => (JobEvent::Enqueue, JobState::Queued),
            EventType::JobClaimed => (JobEvent::Claim, JobState::Claimed),
            EventType::JobAcked => (JobEvent::Start, JobState::Running),
            EventType::JobSealed => (JobEvent::Seal, JobState::Completed),
            EventType::JobFailed => (JobEvent::Fail, JobState::Failed),
            EventType::JobWaiting => (JobEvent::Ask, JobState::WaitingHuman),
            EventType::JobStale => (JobEvent::Lose, JobState::Stale),
            EventType::JobReopened => (JobEvent::Block, JobState::Waiting),
            EventType::JobSkipped => (JobEvent::Skip, JobState::Skipped),
            EventType::JobCanceled => (JobEvent::Cancel, JobState::Canceled),
            // A person judges: whatever became of the review before, it is judged now.
            EventType::VerdictOverridden => {
                job.state = JobState::Completed;
                return None;
            }
            _ => return None,
        };
        let mut was = std::mem::replace(&mut job.state, to);
        let before = told.number("attempt").unwrap_or_default().saturating_sub(1);
        if kind == EventType::JobQueued && self.unbegun.contains(&(told.job_name().to_owned(), before)) {
            was = if was == JobState::Queued { was.next(JobEvent::Block).unwrap_or(was) } else { was };
        }
        if kind == EventType::JobClaimed {
            job.holder = told.session;
        } else if !to.is_held() {
            job.holder = None;
        }
        was.next(event).err().map(|illegal| illegal.to_string())
    }

    fn move_others(&mut self, kind: EventType, told: &Told) -> Option<String> {
        let end = match kind {
            EventType::SessionRegistered => {
                self.sessions.insert(told.session?, SessionState::Active);
                return None;
            }
            EventType::SessionClosed => Some(SessionEvent::Close),
            EventType::SessionLost => Some(SessionEvent::Lose),
            EventType::SessionExpired => Some(SessionEvent::Expire),
            _ => None,
        };
        if let Some(event) = end {
            let session = self.sessions.get_mut(&told.session?)?;
            let next = session.next(event);
            *session = *next.as_ref().unwrap_or(&SessionState::Closed);
            return next.err().map(|illegal| illegal.to_string());
        }
        self.move_gate(kind, told)
    }

    fn move_gate(&mut self, kind: EventType, told: &Told) -> Option<String> {
        let event = match kind {
            EventType::GateOpened => {
                self.gates.insert(told.gate()?, GateState::Pending);
                return None;
            }
            EventType::GateApproved => GateEvent::Approve,
            EventType::GateRejected => GateEvent::Reject,
            EventType::GateSkipped => GateEvent::Skip,
            EventType::GateExpired => GateEvent::Expire,
            // Sending back is possible after a decision too.
            _ => return None,
        };
        let Some(gate) = self.gates.get_mut(&told.gate()?) else {
            return Some(format!("{kind} of a gate never opened"));
        };
        let next = gate.next(event);
        *gate = *next.as_ref().unwrap_or(gate);
        next.err().map(|illegal| illegal.to_string())
    }
}

/// Goes through the story; `look` sees everything as it was before each event. Returns where it ends.
pub fn walk(evidence: &Evidence, mut look: impl FnMut(&Now, &Told)) -> Now {
    replay(evidence, |now, told, _| look(now, told))
}

/// Each step that no machine has.
pub fn illegal_steps(evidence: &Evidence) -> Vec<Violation> {
    let mut found = Vec::new();
    replay(evidence, |_, told, illegal| {
        if let Some(words) = illegal {
            let subject = told.job.clone().unwrap_or_else(|| match told.session {
                Some(session) => format!("s{session}"),
                None => evidence.run.name.clone(),
            });
            found.push(Violation::at(told.id, subject, words));
        }
    });
    found
}

fn replay(evidence: &Evidence, mut look: impl FnMut(&Now, &Told, Option<String>)) -> Now {
    let mut now = Now::begin(evidence);
    for told in &evidence.events {
        let mut after = now.clone();
        let illegal = after.take(told);
        look(&now, told, illegal);
        now = after;
    }
    now
}
