//! The life of a run as one exhaustive table.
//!
//! It does not know jobs; who asks for an event has looked at them.

use super::word::{Illegal, word_enum};

word_enum! {
    /// Where a run is.
    RunState "run state" {
        /// Prepared.
        Ready "ready",
        /// Started.
        Running "running",
        /// Every job is settled.
        Completed "completed",
        /// Rejected, or out of tries where that fails the run.
        Failed "failed",
        /// A person ended it.
        Canceled "canceled",
        /// Nothing can move and something is broken or spent.
        NeedsOperator "needs_operator",
    }
}

word_enum! {
    /// What can happen to a run.
    RunEvent "run event" {
        /// `run start`.
        Start "start",
        /// The last job is settled.
        Complete "complete",
        /// A reject, or a job whose failure fails the run.
        Fail "fail",
        /// `run cancel`.
        Cancel "cancel",
        /// Nothing can move and something is broken.
        Escalate "escalate",
        /// Something is launchable again.
        Revive "revive",
    }
}

impl RunState {
    /// The state after an event; every pair is answered.
    pub fn next(self, event: RunEvent) -> Result<RunState, Illegal> {
        use RunEvent as E;
        use RunState as S;
        match (self, event) {
            (S::Ready, E::Start) => Ok(S::Running),
            (S::Running | S::NeedsOperator, E::Complete) => Ok(S::Completed),
            (S::Running | S::NeedsOperator, E::Fail) => Ok(S::Failed),
            (S::Ready | S::Running | S::NeedsOperator, E::Cancel) => Ok(S::Canceled),
            (S::Running, E::Escalate) => Ok(S::NeedsOperator),
            (S::Running | S::NeedsOperator | S::Failed | S::Canceled, E::Revive) => Ok(S::Running),
            (S::Ready, E::Complete | E::Fail | E::Escalate | E::Revive)
            | (S::Running, E::Start)
            | (S::Completed, E::Start | E::Complete | E::Fail | E::Cancel | E::Escalate | E::Revive)
            | (S::Failed, E::Start | E::Complete | E::Fail | E::Cancel | E::Escalate)
            | (S::Canceled, E::Start | E::Complete | E::Fail | E::Cancel | E::Escalate)
            | (S::NeedsOperator, E::Start | E::Escalate) => {
                Err(Illegal { what: "run", state: self.to_string(), event: event.to_string() })
            }
        }
    }

    /// No driver has anything to do any more, short of a person's verb.
    pub const fn is_terminal(self) -> bool {
        matches!(self, RunState::Completed | RunState::Failed | RunState::Canceled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_answers_every_event() {
        let mut text = String::new();
        for state in RunState::ALL {
            for event in RunEvent::ALL {
                let next = state.next(*event).map_or_else(|_| "-".to_owned(), |next| next.to_string());
                text.push_str(&format!("{state:<14} {event:<8} {next}\n"));
            }
        }
        insta::assert_snapshot!("run_table", text);
    }
}
