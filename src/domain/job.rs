//! The life of a job as one exhaustive table, and what an attempt's end costs.
//!
//! It does not know attempts' contents, sessions, or the queue.

use super::frozen::OnFailure;
use super::word::{Illegal, word_enum};

word_enum! {
    /// Where a job is.
    JobState "job state" {
        /// Its needs are not settled, or a gate or a hold keeps it.
        Waiting "waiting",
        /// A message offers its newest attempt.
        Queued "queued",
        /// A session holds it and has not started.
        Claimed "claimed",
        /// A session works on it, or its answer is being settled.
        Running "running",
        /// Sealed.
        Completed "completed",
        /// Out of tries, or refused by its panel.
        Failed "failed",
        /// A person must answer, take it, or repair something.
        WaitingHuman "waiting_human",
        /// Its holder is gone and what it did is not known yet.
        Stale "stale",
        /// The run was canceled.
        Canceled "canceled",
        /// A person or `on_failure = "skip"` passed it over.
        Skipped "skipped",
    }
}

word_enum! {
    /// What can happen to a job.
    JobEvent "job event" {
        /// An attempt is offered.
        Enqueue "enqueue",
        /// A session takes the attempt.
        Claim "claim",
        /// The session starts.
        Start "start",
        /// Its answer is integrated, or its gate approved.
        Seal "seal",
        /// No more tries.
        Fail "fail",
        /// A person is needed.
        Ask "ask",
        /// The holder is gone.
        Lose "lose",
        /// Something upstream was reopened, or a gate rejected it.
        Block "block",
        /// Passed over.
        Skip "skip",
        /// The run ends.
        Cancel "cancel",
    }
}

impl JobState {
    /// The state after an event; every pair is answered.
    pub fn next(self, event: JobEvent) -> Result<JobState, Illegal> {
        use JobEvent as E;
        use JobState as S;
        let illegal = || Illegal { what: "job", state: self.to_string(), event: event.to_string() };
        match (self, event) {
            (
                S::Waiting
                | S::Claimed
                | S::Running
                | S::Completed
                | S::Failed
                | S::WaitingHuman
                | S::Stale
                | S::Canceled
                | S::Skipped,
                E::Enqueue,
            ) => Ok(S::Queued),
            (S::Queued, E::Claim) => Ok(S::Claimed),
            (S::Claimed, E::Start) => Ok(S::Running),
            (S::Running | S::Stale | S::Waiting, E::Seal) => Ok(S::Completed),
            (S::Waiting | S::Queued | S::Claimed | S::Running | S::Stale | S::Completed | S::WaitingHuman, E::Fail) => {
                Ok(S::Failed)
            }
            (S::Queued | S::Claimed | S::Running | S::Stale, E::Ask) => Ok(S::WaitingHuman),
            (S::Claimed | S::Running, E::Lose) => Ok(S::Stale),
            (
                S::Waiting
                | S::Queued
                | S::Claimed
                | S::Running
                | S::Completed
                | S::Failed
                | S::WaitingHuman
                | S::Stale
                | S::Canceled
                | S::Skipped,
                E::Block,
            ) => Ok(S::Waiting),
            (S::Waiting | S::Queued | S::Failed | S::WaitingHuman | S::Claimed | S::Running | S::Stale, E::Skip) => {
                Ok(S::Skipped)
            }
            (S::Waiting | S::Queued | S::Claimed | S::Running | S::WaitingHuman | S::Stale | S::Failed, E::Cancel) => {
                Ok(S::Canceled)
            }
            (S::Queued, E::Enqueue | E::Start | E::Seal | E::Lose)
            | (S::Waiting, E::Claim | E::Start | E::Ask | E::Lose)
            | (S::Claimed, E::Claim | E::Seal)
            | (S::Running, E::Claim | E::Start)
            | (S::Completed, E::Claim | E::Start | E::Seal | E::Ask | E::Lose | E::Skip | E::Cancel)
            | (S::Failed, E::Claim | E::Start | E::Seal | E::Fail | E::Ask | E::Lose)
            | (S::WaitingHuman, E::Claim | E::Start | E::Seal | E::Ask | E::Lose)
            | (S::Stale, E::Claim | E::Start | E::Lose)
            | (S::Canceled, E::Claim | E::Start | E::Seal | E::Fail | E::Ask | E::Lose | E::Skip | E::Cancel)
            | (S::Skipped, E::Claim | E::Start | E::Seal | E::Fail | E::Ask | E::Lose | E::Skip | E::Cancel) => {
                Err(illegal())
            }
        }
    }

    /// Some session holds it.
    pub const fn is_held(self) -> bool {
        matches!(self, JobState::Claimed | JobState::Running)
    }
}

word_enum! {
    /// Within running.
    Phase "phase" {
        /// The agent works.
        Working "working",
        /// The answer is stored.
        Answered "answered",
        /// The owner checks and integrates it.
        Settling "settling",
    }
}

word_enum! {
    /// How an attempt ended.
    Outcome "outcome" {
        /// Its answer was integrated.
        Sealed "sealed",
        /// The agent said so, or exited with an error and no answer.
        Failed "failed",
        /// It ended without an answer or proof.
        Unsealed "unsealed",
        /// Longer than its limit.
        TimedOut "timed_out",
        /// Nothing happened for too long.
        Idle "idle",
        /// Its verification failed.
        VerifyFailed "verify_failed",
        /// It changed or published something out of scope.
        ScopeFailed "scope_failed",
        /// Its answer breaks the contract.
        InvalidResult "invalid_result",
        /// Its holder is gone.
        Lost "lost",
        /// Claimed, but no agent was started.
        NeverStarted "never_started",
        /// Could not be integrated.
        Conflict "conflict",
        /// The agent can't work now: rate limit, overload, network, login.
        Unavailable "unavailable",
        /// A person stopped it.
        Interrupted "interrupted",
        /// Setup failed or the command is missing.
        Environment "environment",
        /// The agent says it is blocked.
        Blocked "blocked",
        /// The agent needs an answer.
        NeedsContext "needs_context",
        /// Its holder is gone, and its effects reach outside: nobody knows what it did.
        UnknownOutcome "unknown_outcome",
        /// The plan and the world disagree: it was not launched.
        PlanDisagrees "plan_disagrees",
        /// Something upstream, or a panel, made it void.
        Reopened "reopened",
        /// The run ended.
        Canceled "canceled",
    }
}

/// What an attempt's end costs its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Counts toward `max_strikes`.
    Strike,
    /// Counts toward `budget.requeues`.
    Requeue,
    /// Nothing; the next attempt comes by itself.
    Free,
    /// Nothing; a person comes first.
    Person,
    /// The job ends here.
    Final,
}

impl Outcome {
    /// What each outcome costs.
    pub const fn cost(self) -> Cost {
        match self {
            Outcome::Failed
            | Outcome::Unsealed
            | Outcome::TimedOut
            | Outcome::Idle
            | Outcome::VerifyFailed
            | Outcome::ScopeFailed
            | Outcome::InvalidResult => Cost::Strike,
            Outcome::Lost | Outcome::NeverStarted | Outcome::Conflict => Cost::Requeue,
            Outcome::Unavailable | Outcome::Interrupted | Outcome::Reopened => Cost::Free,
            Outcome::Environment
            | Outcome::Blocked
            | Outcome::NeedsContext
            | Outcome::PlanDisagrees
            | Outcome::UnknownOutcome => Cost::Person,
            Outcome::Sealed | Outcome::Canceled => Cost::Final,
        }
    }
}

/// What a job has used up and may use up.
#[derive(Clone, Copy, Debug)]
pub struct Tries {
    /// Strikes so far, this one not counted.
    pub strikes: u32,
    /// The strike that ends it.
    pub max_strikes: u32,
    /// Requeues so far, this one not counted.
    pub requeues: u32,
    /// Requeues allowed.
    pub max_requeues: u32,
}

/// What follows an attempt's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aftermath {
    /// Another attempt.
    Again,
    /// A person must act first; the cause is named.
    Person(Cause),
    /// Out of tries; the cause is named.
    OutOfTries(Cause),
    /// Nothing.
    Done,
}

/// Decides what follows an attempt's end.
pub fn aftermath(outcome: Outcome, tries: Tries) -> Aftermath {
    match outcome.cost() {
        Cost::Strike if tries.strikes + 1 >= tries.max_strikes => Aftermath::OutOfTries(Cause::Strikes),
        Cost::Requeue if tries.requeues + 1 > tries.max_requeues => Aftermath::OutOfTries(Cause::Requeues),
        Cost::Strike | Cost::Requeue | Cost::Free => Aftermath::Again,
        Cost::Person => Aftermath::Person(match outcome {
            Outcome::Environment => Cause::Environment,
            Outcome::PlanDisagrees => Cause::PlanDisagrees,
            Outcome::NeedsContext => Cause::NeedsContext,
            Outcome::UnknownOutcome => Cause::UnknownOutcome,
            _ => Cause::AgentBlocked,
        }),
        Cost::Final => Aftermath::Done,
    }
}

word_enum! {
    /// Why a run stops for a person; a closed list.
    Cause "cause" {
        /// A gate is due.
        Gate "gate",
        /// An agent asked something.
        NeedsContext "needs_context",
        /// Several lanes, none named.
        AmbiguousLane "ambiguous_lane",
        /// The lane is a person.
        HumanLane "human_lane",
        /// An agent is blocked.
        AgentBlocked "agent_blocked",
        /// A change can't be integrated.
        Conflict "conflict",
        /// Too many failed attempts.
        Strikes "strikes",
        /// Sent back too often.
        Revisions "revisions",
        /// Lost too often.
        Requeues "requeues",
        /// Too many agents started.
        Launches "launches",
        /// Too much money.
        Cost "cost",
        /// Too much working time.
        ActiveTime "active_time",
        /// Nothing happened for too long.
        NoProgress "no_progress",
        /// The plan and the world disagree.
        PlanDisagrees "plan_disagrees",
        /// Nobody knows what an attempt did outside its folder.
        UnknownOutcome "unknown_outcome",
        /// Setup failed or a command is missing.
        Environment "environment",
        /// Commands that nobody has trusted.
        Untrusted "untrusted",
        /// The lane is parked.
        LaneParked "lane_parked",
        /// A landing that can't be.
        Landing "landing",
        /// A person rejected the gate.
        GateRejected "gate_rejected",
        /// Anything else.
        Other "other",
    }
}

impl Cause {
    /// Causes that leave the run `running`: it waits for a person and nothing is broken.
    pub const fn is_mere_waiting(self) -> bool {
        matches!(
            self,
            Cause::Gate
                | Cause::NeedsContext
                | Cause::HumanLane
                | Cause::AmbiguousLane
                | Cause::Untrusted
                | Cause::UnknownOutcome
        )
    }

    /// The verbs that end it, as a person types them; `{job}`, `{lane}`, `{run}` and `{gate}` are replaced.
    pub const fn ended_by(self) -> &'static [&'static str] {
        match self {
            Cause::Gate => &[
                "gate approve {gate} --run-id {run}",
                "gate reject {gate} --run-id {run} --note '...'",
                "gate skip {gate} --run-id {run} --note '...'",
            ],
            Cause::NeedsContext | Cause::AgentBlocked | Cause::UnknownOutcome => {
                &["answer {job} '...' --run-id {run}", "take {job} --run-id {run}"]
            }
            Cause::Strikes | Cause::Requeues | Cause::Environment | Cause::Conflict | Cause::PlanDisagrees => {
                &["run retry-job {job} --run-id {run} --reason '...'"]
            }
            Cause::Revisions => &[
                "gate revise {job} --run-id {run} --note '...'",
                "review override-verdict {job} --run-id {run} --verdict accept --reason '...'",
                "run retry-job {job} --run-id {run} --reason '...'",
            ],
            Cause::Launches => &["run amend --run-id {run} --set budget.launches=N --reason '...'"],
            Cause::Cost => &["run amend --run-id {run} --set budget.cost_usd=N --reason '...'"],
            Cause::ActiveTime => &["run amend --run-id {run} --set budget.active_time=48h --reason '...'"],
            Cause::NoProgress => &["run amend --run-id {run} --set budget.no_progress=2h --reason '...'"],
            Cause::HumanLane => &["take {job} --run-id {run}"],
            Cause::AmbiguousLane => &[
                "run amend {job} --run-id {run} --set lane=LANE --reason '...'",
                "register-session --run-id {run} --role ROLE --lane LANE",
                "take {job} --run-id {run}",
            ],
            Cause::Untrusted => &["trust"],
            Cause::LaneParked => &["lane resume {lane}"],
            Cause::Landing => &["run land --run-id {run}"],
            Cause::GateRejected => &["run retry-job {job} --run-id {run} --reason '...'"],
            Cause::Other => &["run explain --run-id {run}"],
        }
    }
}

/// What a failed job does to the rest of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureEffect {
    /// The state it ends in.
    pub state: JobState,
    /// Its successors may go.
    pub settles: bool,
    /// The run fails.
    pub fails_run: bool,
}

/// The effect of `on_failure`.
pub const fn on_failure(rule: OnFailure) -> FailureEffect {
    match rule {
        OnFailure::Hold => FailureEffect { state: JobState::Failed, settles: false, fails_run: false },
        OnFailure::Continue => FailureEffect { state: JobState::Failed, settles: true, fails_run: false },
        OnFailure::Skip => FailureEffect { state: JobState::Skipped, settles: true, fails_run: false },
        OnFailure::FailRun => FailureEffect { state: JobState::Failed, settles: false, fails_run: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> String {
        let mut text = String::new();
        for state in JobState::ALL {
            for event in JobEvent::ALL {
                let next = state.next(*event).map_or_else(|_| "-".to_owned(), |next| next.to_string());
                text.push_str(&format!("{state:<14}{event:<8} {next}\n"));
            }
        }
        text
    }

    #[test]
    fn every_state_answers_every_event() {
        insta::assert_snapshot!("job_table", table());
    }

    #[test]
    fn the_last_strike_ends_the_job() {
        let tries = Tries { strikes: 2, max_strikes: 3, requeues: 0, max_requeues: 2 };
        assert_eq!(aftermath(Outcome::Failed, tries), Aftermath::OutOfTries(Cause::Strikes));
        assert_eq!(aftermath(Outcome::Failed, Tries { strikes: 1, ..tries }), Aftermath::Again);
        assert_eq!(aftermath(Outcome::Unavailable, tries), Aftermath::Again);
        assert_eq!(aftermath(Outcome::Lost, Tries { requeues: 2, ..tries }), Aftermath::OutOfTries(Cause::Requeues));
        assert_eq!(aftermath(Outcome::NeedsContext, tries), Aftermath::Person(Cause::NeedsContext));
    }

    #[test]
    fn the_list_of_causes_is_closed_and_each_says_what_it_is_and_what_ends_it() {
        let mut text = String::new();
        for cause in Cause::ALL {
            let kind = if cause.is_mere_waiting() { "waiting" } else { "broken" };
            text.push_str(&format!("{cause:<16} {kind:<8} {}\n", cause.ended_by().join(" | ")));
        }
        insta::assert_snapshot!("cause_table", text);
    }

    #[test]
    fn every_cause_names_a_verb_that_ends_it() {
        for cause in Cause::ALL {
            assert!(!cause.ended_by().is_empty(), "{cause}");
        }
    }
}
