//! The scriptable agent: what it is told for each job, and what it did.

use super::{TestRepo, replace};

/// A side effect that an agent noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// The run.
    pub run: String,
    /// The job.
    pub job: String,
    /// Which try; 0 for what a resident agent notes while it holds nothing.
    pub attempt: u32,
    /// The agent's process.
    pub pid: i32,
    /// `start`, or what the instructions called it.
    pub word: String,
}

impl TestRepo {
    pub(super) fn install_agent(&self) {
        std::fs::write(self.root().join("agent/agent.sh"), include_str!("agent.sh")).unwrap();
    }

    /// The command of a lane, as a TOML array.
    pub fn agent_argv(&self) -> String {
        format!("[\"sh\", \"{}\"]", self.root().join("agent/agent.sh").display())
    }

    /// Says what to do for `JOB`, `JOB.ATTEMPT` or `RUN/JOB.ATTEMPT`: shell with the words of `agent.sh`.
    pub fn agent(&self, job: &str, instructions: &str) {
        let path = self.root().join("agent/do").join(job);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        replace(&path, instructions);
    }

    /// Lets agents go on that hold for this word.
    pub fn go(&self, word: &str) {
        replace(&self.root().join(format!("agent/go-{word}")), "");
    }

    /// Every side effect, in the order in which they happened.
    pub fn effects(&self) -> Vec<Effect> {
        self.agent_log("effects.log")
    }

    /// What agents noted that may happen more than once.
    pub fn notes(&self) -> Vec<Effect> {
        self.agent_log("notes.log")
    }

    /// How often a side effect of a job happened.
    pub fn effects_of(&self, job: &str, word: &str) -> usize {
        self.effects().iter().filter(|effect| effect.job == job && effect.word == word).count()
    }

    /// The side effects as `JOB.ATTEMPT WORD`, sorted: the order of jobs side by side does not matter.
    pub fn effect_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.effects().iter().map(|effect| format!("{}.{} {}", effect.job, effect.attempt, effect.word)).collect();
        lines.sort();
        lines
    }

    /// The process of the newest agent that started on a job.
    pub fn agent_pid(&self, job: &str) -> Option<i32> {
        let started = |effect: &Effect| effect.job == job && effect.word == "start";
        self.effects().into_iter().rfind(started).map(|effect| effect.pid)
    }

    fn agent_log(&self, name: &str) -> Vec<Effect> {
        let text = std::fs::read_to_string(self.root().join("agent").join(name)).unwrap_or_default();
        text.lines().map(effect).collect()
    }
}

fn effect(line: &str) -> Effect {
    let mut words = line.splitn(5, ' ');
    let mut word = || words.next().unwrap_or_else(|| panic!("not an effect: {line}")).to_owned();
    Effect {
        run: word(),
        job: word(),
        attempt: word().parse().unwrap_or_default(),
        pid: word().parse().unwrap(),
        word: word(),
    }
}
