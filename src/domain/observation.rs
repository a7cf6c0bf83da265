//! What is found of an attempt whose holder is gone, and what follows from it: never from memory, and never twice.
//!
//! It does not know where anything was looked up.

use serde::{Deserialize, Serialize};

use super::contract::{BlockedReason, Status};
use super::session::ExecutionState;

/// A file that the attempt made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// As `produces` names it.
    pub name: String,
    /// Of its bytes.
    pub sha256: String,
    /// It was published by verb, and so is whole; else it lies where it was made.
    pub published: bool,
}

/// What is found of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// Which try.
    pub attempt: u32,
    /// The job was handed out for certain: its agent may have done something.
    pub dispatched: bool,
    /// Its agent, as its row stands; none when no agent was intended.
    pub execution: Option<ExecutionState>,
    /// Its agent lives.
    pub is_alive: bool,
    /// The answer that is stored.
    pub answer: Option<Status>,
    /// Artifacts that exist.
    pub made: Vec<Made>,
    /// Required artifacts that do not.
    pub missing: Vec<String>,
    /// Paths that differ in its tree, the first of them.
    pub changed: Vec<String>,
    /// How many there are.
    pub changes: usize,
    /// The commit of its change, if it came that far.
    pub commit: Option<String>,
    /// Its effects go beyond its own folder.
    pub reaches_outside: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// It is watched to its end first.
    Watch,
    /// What it left is whole: it is settled for it.
    Settle,
    /// Nothing landed, or what did is contained: it is offered again.
    Requeue,
    /// Effects may be outside, and partial: a person looks.
    Ask,
}

impl Observation {
    /// What follows from it. An answer may still fail its checks; then it ends as any other.
    pub fn then(&self) -> Then {
        let is_whole = self.answer.is_some()
            || (!self.made.is_empty() && self.missing.is_empty() && self.made.iter().all(|made| made.published));
        match self {
            Observation { is_alive: true, .. } => Then::Watch,
            _ if is_whole => Then::Settle,
            Observation { reaches_outside: true, dispatched: true, .. } => Then::Ask,
            _ => Then::Requeue,
        }
    }

    /// One line: what exists, and what is missing.
    pub fn line(&self) -> String {
        format!("there is {}; missing is {}", self.exists(), self.lacks())
    }

    fn exists(&self) -> String {
        let mut parts = Vec::new();
        if let Some(status) = self.answer {
            parts.push(format!("the answer {status}"));
        }
        let made = self.made.iter().map(|made| {
            let hash: String = made.sha256.chars().take(12).collect();
            format!("{} (sha256 {hash}{})", made.name, if made.published { "" } else { ", not published" })
        });
        parts.extend(made);
        match (self.changes, self.changed.first()) {
            (1, Some(path)) => parts.push(format!("a change of {path} in its tree")),
            (count @ 2.., Some(path)) => parts.push(format!("changes of {path} and {} more in its tree", count - 1)),
            _ => {}
        }
        parts.extend(self.commit.as_ref().map(|commit| format!("the commit {}", super::change::short(commit))));
        parts.extend(self.execution.map(|state| format!("an agent that was {state}")));
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }

    fn lacks(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        if self.answer.is_none() {
            parts.push("an answer".to_owned());
        }
        parts.extend(self.missing.iter().cloned());
        if self.execution.is_some() && !self.is_alive {
            parts.push("the agent's exit".to_owned());
        }
        if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") }
    }

    /// What a person is asked when it reaches outside.
    pub fn question(&self, job: &str) -> BlockedReason {
        BlockedReason {
            awaiting: format!("whether attempt {} of {job} had its effect outside: {}", self.attempt, self.line()),
            who: "whoever can look at what it changes".to_owned(),
            action: "look, then answer with what is there and what is missing; --resolved if nothing is left to do"
                .to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(published: bool) -> Made {
        Made { name: "notes".to_owned(), sha256: "ab".repeat(32), published }
    }

    #[test]
    fn each_kind_of_rest_has_one_end() {
        let bare = Observation { attempt: 2, dispatched: true, ..Observation::default() };
        let outside = Observation { reaches_outside: true, ..bare.clone() };
        let cases = [
            ("nothing", bare.clone(), Then::Requeue),
            ("nothing, outside", outside.clone(), Then::Ask),
            ("never handed out, outside", Observation { dispatched: false, ..outside.clone() }, Then::Requeue),
            ("alive", Observation { is_alive: true, ..outside.clone() }, Then::Watch),
            ("answered", Observation { answer: Some(Status::Done), ..outside.clone() }, Then::Settle),
            ("published", Observation { made: vec![made(true)], ..outside.clone() }, Then::Settle),
            (
                "half of it",
                Observation { made: vec![made(true)], missing: vec!["log".to_owned()], ..outside.clone() },
                Then::Ask,
            ),
            ("left lying", Observation { made: vec![made(false)], ..bare.clone() }, Then::Requeue),
            ("changed", Observation { changes: 1, changed: vec!["a".to_owned()], ..bare }, Then::Requeue),
        ];
        for (what, seen, then) in cases {
            assert_eq!(seen.then(), then, "{what}");
        }
    }

    #[test]
    fn a_question_names_what_exists_and_what_is_missing() {
        let seen = Observation {
            attempt: 1,
            dispatched: true,
            execution: Some(ExecutionState::Running),
            made: vec![made(true)],
            missing: vec!["log".to_owned()],
            changes: 3,
            changed: vec!["src/a".to_owned()],
            reaches_outside: true,
            ..Observation::default()
        };
        insta::assert_snapshot!(seen.question("deploy").awaiting, @"whether attempt 1 of deploy had its effect outside: there is notes (sha256 abababababab), changes of src/a and 2 more in its tree, an agent that was running; missing is an answer, log, the agent's exit");
    }
}
