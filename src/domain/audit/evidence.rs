//! What is known of one run: its rows and events as plain facts, and its commits where there is a repository.

use serde_json::Value;

use crate::domain::change::Change;
use crate::domain::contract::Answer;
use crate::domain::event::EventType;
use crate::domain::frozen::{JobSpec, RunSpec, Snapshot};
use crate::domain::job::{JobState, Outcome};
use crate::domain::run::RunState;
use crate::domain::session::{ChangeState, ExecutionState, GateState, LandingState};
use crate::domain::verdict::Verdict;

/// Everything that is known of a run.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// The run.
    pub run: RunFacts,
    /// Snapshots, the first generation first.
    pub generations: Vec<Snapshot>,
    /// Jobs, in the order of the workflow.
    pub jobs: Vec<JobFacts>,
    /// Attempts, those of a job in order.
    pub attempts: Vec<AttemptFacts>,
    /// Processes.
    pub executions: Vec<ExecutionFacts>,
    /// Changes, in the order of their integration.
    pub changes: Vec<ChangeFacts>,
    /// Verdicts, the newest last.
    pub verdicts: Vec<VerdictFacts>,
    /// Gates.
    pub gates: Vec<GateFacts>,
    /// Landings.
    pub landings: Vec<LandingFacts>,
    /// Sessions.
    pub sessions: Vec<SessionFacts>,
    /// Judgements of people.
    pub decisions: Vec<DecisionFacts>,
    /// What was told, oldest first.
    pub events: Vec<Told>,
    /// The repository's side; the error says why there is none.
    pub commits: Result<Commits, String>,
}

impl Evidence {
    /// The run-level part of a generation.
    pub fn run_spec(&self, generation: usize) -> Option<&RunSpec> {
        self.generations.get(generation.checked_sub(1)?).map(|snapshot| &snapshot.run)
    }

    /// A job as a generation has it.
    pub fn spec(&self, generation: usize, job: &str) -> Option<&JobSpec> {
        self.generations.get(generation.checked_sub(1)?)?.jobs.iter().find(|spec| spec.id == job)
    }

    /// A job as it is frozen now.
    pub fn newest_spec(&self, job: &str) -> Option<&JobSpec> {
        self.spec(self.generations.len(), job)
    }

    /// A job's row.
    pub fn job(&self, name: &str) -> Option<&JobFacts> {
        self.jobs.iter().find(|job| job.name == name)
    }

    /// A session's row.
    pub fn session(&self, id: i64) -> Option<&SessionFacts> {
        self.sessions.iter().find(|session| session.id == id)
    }

    /// Jobs behind another, directly or not: what it needs.
    pub fn upstream(&self, job: &str) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        let mut open: Vec<&str> = self.newest_spec(job).map(|spec| needs(spec)).unwrap_or_default();
        while let Some(name) = open.pop() {
            if !found.contains(&name) {
                found.push(name);
                open.extend(self.newest_spec(name).map(|spec| needs(spec)).unwrap_or_default());
            }
        }
        found
    }

    /// The reviews of a job.
    pub fn reviews_of<'a>(&'a self, subject: &'a str) -> impl Iterator<Item = &'a JobFacts> {
        self.jobs.iter().filter(move |job| self.newest_spec(&job.name).and_then(JobSpec::reviewed_job) == Some(subject))
    }
}

fn needs(spec: &JobSpec) -> Vec<&str> {
    spec.needs.iter().map(String::as_str).collect()
}

/// The run.
#[derive(Clone, Debug)]
pub struct RunFacts {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub state: RunState,
    /// The commit it starts from.
    pub base: Option<String>,
    /// Where its branch was left.
    pub tip: Option<String>,
    /// Agents started.
    pub launches: u32,
}

/// A job.
#[derive(Clone, Debug)]
pub struct JobFacts {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub state: JobState,
    /// Its successors may go.
    pub settled: bool,
    /// Verdicts of older generations are void.
    pub generation: i64,
}

/// A try of a job.
#[derive(Clone, Debug)]
pub struct AttemptFacts {
    /// Whose.
    pub job: String,
    /// Which.
    pub number: u32,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What was answered.
    pub answer: Option<Answer>,
    /// sha256 of the answer as it was stored.
    pub answer_hash: Option<String>,
}

/// A process of an attempt.
#[derive(Clone, Debug)]
pub struct ExecutionFacts {
    /// For which job.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// `agent`, `verify`, `setup`, ...
    pub kind: String,
    /// How far it came.
    pub state: ExecutionState,
    /// How it exited.
    pub exit: Option<i64>,
    /// sha256 of the NUL-joined argv.
    pub argv_hash: Option<String>,
}

/// What an attempt changed.
#[derive(Clone, Debug)]
pub struct ChangeFacts {
    /// Whose.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// How far it came.
    pub state: ChangeState,
    /// What it is against.
    pub base: String,
    /// The commit.
    pub commit: String,
    /// What was verified.
    pub tree: String,
    /// The run's branch before.
    pub before: Option<String>,
    /// And after.
    pub after: Option<String>,
}

/// A judgement of a review.
#[derive(Clone, Debug)]
pub struct VerdictFacts {
    /// The review.
    pub job: String,
    /// Its try.
    pub attempt: u32,
    /// The subject's generation.
    pub generation: i64,
    /// The judgement.
    pub verdict: Verdict,
}

/// A point where a person decides.
#[derive(Clone, Debug)]
pub struct GateFacts {
    /// Its number.
    pub id: i64,
    /// What waits.
    pub job: String,
    /// What was decided.
    pub state: GateState,
    /// sha256 of what was shown.
    pub digest: String,
    /// Who decided.
    pub by: Option<String>,
    /// How the person was recognised.
    pub how: Option<String>,
}

/// A landing.
#[derive(Clone, Debug)]
pub struct LandingFacts {
    /// The land job.
    pub job: String,
    /// The gate that is approved with it.
    pub gate: i64,
    /// How far it came.
    pub state: LandingState,
}

/// One life of an agent.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// Its number.
    pub id: i64,
    /// Kind of worker.
    pub role: String,
    /// Way to execute; a person's begins with `@`.
    pub lane: String,
    /// Does one job only.
    pub fresh: bool,
    /// Why a contaminated reviewer was accepted.
    pub non_fresh_reason: Option<String>,
}

impl SessionFacts {
    /// A person works in it.
    pub fn is_person(&self) -> bool {
        self.lane.starts_with('@')
    }
}

/// A recorded judgement.
#[derive(Clone, Debug)]
pub struct DecisionFacts {
    /// Its number.
    pub id: i64,
    /// `answer`, `override`, `retry`, ...
    pub kind: String,
    /// Who.
    pub by: String,
    /// How the person was recognised.
    pub how: String,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Told {
    /// Dense number.
    pub id: i64,
    /// What happened; none for a word that this program does not know.
    pub kind: Option<EventType>,
    /// About which job.
    pub job: Option<String>,
    /// About which session.
    pub session: Option<i64>,
    /// Who did it.
    pub by: String,
    /// Small JSON.
    pub body: Value,
}

impl Told {
    /// It is of this kind.
    pub fn is(&self, kind: EventType) -> bool {
        self.kind == Some(kind)
    }

    /// A text of its body.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.body.get(key).and_then(Value::as_str)
    }

    /// Whether a word of its body says yes.
    pub fn holds(&self, key: &str) -> bool {
        self.body.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A number of its body.
    pub fn number(&self, key: &str) -> Option<u32> {
        self.body.get(key).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok())
    }

    /// The gate that it names.
    pub fn gate(&self) -> Option<i64> {
        self.text("gate")?.strip_prefix('g')?.parse().ok()
    }

    /// The job that it is about, or nothing in words.
    pub fn job_name(&self) -> &str {
        self.job.as_deref().unwrap_or("")
    }
}

/// What the repository holds of the run.
#[derive(Clone, Debug, Default)]
pub struct Commits {
    /// Where the run's branch is; none when it is gone.
    pub branch: Option<String>,
    /// Commits from the base to the tip along first parents, oldest first; none when they could not be walked.
    pub chain: Option<Vec<String>>,
    /// Each change's commit.
    pub changes: Vec<CommitFacts>,
}

/// A change's commit.
#[derive(Clone, Debug)]
pub struct CommitFacts {
    /// Whose.
    pub job: String,
    /// Which try.
    pub attempt: u32,
    /// Where the pin points.
    pub pin: Option<String>,
    /// What the commit holds; none when it is not there.
    pub tree: Option<String>,
    /// What it follows.
    pub parents: Vec<String>,
    /// What it says.
    pub message: String,
    /// What differs from its base; none when that could not be listed.
    pub differs: Option<Vec<Change>>,
}
