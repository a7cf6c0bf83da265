//! The words of the event log and its hash chain.
//!
//! The words are frozen: they stand in stores for ever. It does not know how events are kept.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::word::word_enum;

word_enum! {
    /// What happened.
    EventType "event type" {
        /// A workflow was frozen into a run.
        RunPrepared "run.prepared",
        /// Roots were enqueued.
        RunStarted "run.started",
        /// No new launches.
        RunPaused "run.paused",
        /// Launches again.
        RunResumed "run.resumed",
        /// Drivers end, lanes are stopped.
        RunStopped "run.stopped",
        /// A new snapshot generation.
        RunAmended "run.amended",
        /// Nothing can move and something is broken.
        RunNeedsOperator "run.needs_operator",
        /// Back to running.
        RunRevived "run.revived",
        /// Done.
        RunCompleted "run.completed",
        /// Failed.
        RunFailed "run.failed",
        /// Ended by a person.
        RunCanceled "run.canceled",
        /// An attempt is offered.
        JobQueued "job.queued",
        /// A session took it.
        JobClaimed "job.claimed",
        /// The session started.
        JobAcked "job.acked",
        /// The answer was stored.
        JobAnswered "job.answered",
        /// The answer was integrated.
        JobSealed "job.sealed",
        /// The holder is gone.
        JobStale "job.stale",
        /// Offered again without cost or with a requeue or strike.
        JobRequeued "job.requeued",
        /// Sent back, or put back behind something that was.
        JobReopened "job.reopened",
        /// Out of tries, or refused.
        JobFailed "job.failed",
        /// Passed over.
        JobSkipped "job.skipped",
        /// Waits for a person.
        JobWaiting "job.waiting",
        /// It can be launched in no lane until a person acts.
        JobSurfaced "job.surfaced",
        /// A person works on it.
        JobTaken "job.taken",
        /// A person gave it back.
        JobGiven "job.given",
        /// Ended with its run.
        JobCanceled "job.canceled",
        /// A person answered a question.
        AnswerGiven "answer.given",
        /// A slot was taken.
        SessionRegistered "session.registered",
        /// A contaminated reviewer was accepted.
        SessionForcedNonFresh "session.forced_non_fresh",
        /// Ended in order.
        SessionClosed "session.closed",
        /// Found gone.
        SessionLost "session.lost",
        /// Ran out.
        SessionExpired "session.expired",
        /// A helper is to be launched.
        SupervisorRequested "supervisor.requested",
        /// The helper spoke.
        SupervisorAttached "supervisor.attached",
        /// A second helper took over.
        SupervisorRecovered "supervisor.recovered",
        /// The helper is to end.
        SupervisorStopRequested "supervisor.stop_requested",
        /// The helper ended.
        SupervisorStopped "supervisor.stopped",
        /// The helper is dead.
        SupervisorLost "supervisor.lost",
        /// A hold was given.
        LeaseGranted "lease.granted",
        /// A hold ran out.
        LeaseExpired "lease.expired",
        /// A hold was taken away.
        LeaseRevoked "lease.revoked",
        /// What holds an agent to its folders, decided before it starts.
        LaneConfined "lane.confined",
        /// A process is about to be started.
        ExecutionStarting "execution.starting",
        /// It was.
        ExecutionStarted "execution.started",
        /// It ended.
        ExecutionEnded "execution.ended",
        /// A file was published.
        ArtifactPublished "artifact.published",
        /// A review judged.
        VerdictRecorded "verdict.recorded",
        /// A person judged over it.
        VerdictOverridden "verdict.overridden",
        /// A person is to decide.
        GateOpened "gate.opened",
        /// Go on.
        GateApproved "gate.approved",
        /// Stop here.
        GateRejected "gate.rejected",
        /// Pass it over.
        GateSkipped "gate.skipped",
        /// Send it back.
        GateRevised "gate.revised",
        /// Nobody decided.
        GateExpired "gate.expired",
        /// A judgement was recorded.
        DecisionRecorded "decision.recorded",
        /// A recorded judgement opened something.
        DecisionUsed "decision.used",
        /// What was seen of an attempt whose holder is gone.
        ObservationRecorded "observation.recorded",
        /// A verification ended.
        VerifyEnded "verify.ended",
        /// A worktree exists.
        TreeMade "tree.made",
        /// Changes were committed.
        TreeCommitted "tree.committed",
        /// A commit reached the run's branch.
        TreeIntegrated "tree.integrated",
        /// A worktree is gone.
        TreeRemoved "tree.removed",
        /// A landing begins.
        LandIntended "land.intended",
        /// A landing is done.
        LandDone "land.done",
        /// A mediated write.
        RepoWritten "repo.written",
        /// A patch was checked.
        RepoPreviewed "repo.previewed",
        /// A patch was applied.
        RepoPatched "repo.patched",
        /// A resource exists.
        EphemeralCreated "ephemeral.created",
        /// A resource works.
        EphemeralChecked "ephemeral.checked",
        /// A resource is gone.
        EphemeralDestroyed "ephemeral.destroyed",
        /// A resource could not be destroyed.
        EphemeralLeft "ephemeral.left",
        /// A proposal became a job.
        NextAdmitted "next.admitted",
        /// A proposal is shown to a person.
        NextSurfaced "next.surfaced",
        /// A proposal was refused.
        NextRefused "next.refused",
        /// A limit was reached.
        BreakerTripped "breaker.tripped",
        /// What was planned and what is there disagree; nothing was launched.
        PlanDisagreed "plan.disagreed",
        /// Nothing drives the run any more, and lanes work.
        DriverEnded "driver.ended",
        /// The command of `[notify]` was given an occasion.
        PersonNotified "person.notified",
        /// A lane gets no launches.
        LaneParked "lane.parked",
        /// A lane gets launches again.
        LaneResumed "lane.resumed",
        /// Commands were trusted.
        TrustGranted "trust.granted",
    }
}

/// An event as it enters the chain.
#[derive(Clone, Debug)]
pub struct Link<'a> {
    /// Dense number.
    pub id: i64,
    /// Wall-clock milliseconds.
    pub at: i64,
    /// Store number of the run.
    pub run: Option<i64>,
    /// Store number of the job.
    pub job: Option<i64>,
    /// Store number of the session.
    pub session: Option<i64>,
    /// Frozen word.
    pub kind: &'a str,
    /// Who.
    pub principal: &'a str,
    /// Small JSON, as stored.
    pub body: &'a str,
}

/// The hash before the first event.
pub const GENESIS: [u8; 32] = [0; 32];

/// Hash of an event: SHA-256 over version 1 of the canonical form, length-prefixed fields after the previous hash.
pub fn chain_hash(previous: &[u8], link: &Link<'_>) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(b"striatum.event/1\0");
    hasher.update(previous);
    let number = |value: Option<i64>| value.map_or(String::from("-"), |number| number.to_string());
    let fields = [
        link.id.to_string(),
        link.at.to_string(),
        number(link.run),
        number(link.job),
        number(link.session),
        link.kind.to_owned(),
        link.principal.to_owned(),
        link.body.to_owned(),
    ];
    for field in &fields {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field.as_bytes());
    }
    hasher.finalize().into()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        use std::fmt::Write as _;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// SHA-256 of some bytes in lower-case hex.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// An empty event body.
pub fn no_body() -> Value {
    Value::Object(serde_json::Map::new())
}
