//! The lives of sessions, messages, leases, supervisors, executions, gates and trees, each one exhaustive table.
//!
//! It does not know who moves them.

use super::word::{Illegal, word_enum};

/// Declares a machine from its legal steps; every other pair of state and event is illegal.
macro_rules! machine {
    ($(#[doc = $doc:literal])* $name:ident $event:ident $what:literal
     { $($(#[doc = $sdoc:literal])* $state:ident $sword:literal,)* }
     { $($(#[doc = $edoc:literal])* $ev:ident $eword:literal: $($from:ident)|+ => $to:ident,)* }) => {
        word_enum! { $(#[doc = $doc])* $name $what { $($(#[doc = $sdoc])* $state $sword,)* } }
        word_enum! {
            /// What can happen to it.
            $event $what { $($(#[doc = $edoc])* $ev $eword,)* }
        }
        impl $name {
            /// The state after an event.
            pub fn next(self, event: $event) -> Result<$name, Illegal> {
                let to = match event {
                    $($event::$ev => matches!(self, $($name::$from)|+).then_some($name::$to),)*
                };
                to.ok_or_else(|| Illegal { what: $what, state: self.to_string(), event: event.to_string() })
            }
        }
    };
}

machine! {
    /// One life of an agent in a slot.
    SessionState SessionEvent "session" {
        /// May claim and answer.
        Active "active",
        /// Ended in order.
        Closed "closed",
        /// Its helper and agent are gone.
        Lost "lost",
        /// Unsupervised, and its lease ran out.
        Expired "expired",
    } {
        /// Ended in order.
        Close "close": Active => Closed,
        /// Found gone.
        Lose "lose": Active => Lost,
        /// Ran out.
        Expire "expire": Active => Expired,
    }
}

machine! {
    /// A queue entry.
    MessageState MessageEvent "message" {
        /// Waits for a session.
        Pending "pending",
        /// A session holds it.
        Claimed "claimed",
        /// The session has started.
        Acked "acked",
        /// The attempt ended.
        Done "done",
        /// The attempt became void.
        Canceled "canceled",
    } {
        /// A session takes it.
        Claim "claim": Pending => Claimed,
        /// The session starts.
        Ack "ack": Claimed => Acked,
        /// The attempt ends.
        Finish "finish": Claimed | Acked => Done,
        /// The attempt becomes void.
        Cancel "cancel": Pending | Claimed | Acked => Canceled,
    }
}

machine! {
    /// A session's hold on a job.
    LeaseState LeaseEvent "lease" {
        /// The session's verbs count.
        Active "active",
        /// The attempt ended.
        Released "released",
        /// Ran out.
        Expired "expired",
        /// Taken away.
        Revoked "revoked",
    } {
        /// The attempt ends.
        Release "release": Active => Released,
        /// Runs out.
        Expire "expire": Active => Expired,
        /// Is taken away.
        Revoke "revoke": Active => Revoked,
    }
}

machine! {
    /// The helper of a session.
    SupervisorState SupervisorEvent "supervisor" {
        /// Launched, has not spoken.
        Starting "starting",
        /// Hosts the agent.
        Attached "attached",
        /// Ended in order.
        Stopped "stopped",
        /// Found dead.
        Lost "lost",
    } {
        /// Speaks for the first time.
        Attach "attach": Starting => Attached,
        /// Ends in order.
        Stop "stop": Starting | Attached => Stopped,
        /// Found dead.
        Lose "lose": Starting | Attached => Lost,
    }
}

machine! {
    /// A process of an attempt.
    ExecutionState ExecutionEvent "execution" {
        /// About to be started: may or may not exist.
        Starting "starting",
        /// Started.
        Running "running",
        /// Ended by itself or by a signal.
        Exited "exited",
        /// Ended by its limit.
        TimedOut "timed_out",
        /// Nobody saw its end.
        Lost "lost",
        /// Never existed.
        NotRun "not_run",
    } {
        /// Exists.
        Run "run": Starting => Running,
        /// Ends.
        Exit "exit": Starting | Running => Exited,
        /// Is ended by its limit.
        TimeOut "time_out": Starting | Running => TimedOut,
        /// Vanishes.
        Lose "lose": Starting | Running => Lost,
        /// Never comes to be.
        Skip "skip": Starting => NotRun,
    }
}

machine! {
    /// A point where a person decides.
    GateState GateEvent "gate" {
        /// Waits.
        Pending "pending",
        /// Go on.
        Approved "approved",
        /// Stop here.
        Rejected "rejected",
        /// Pass it over.
        Skipped "skipped",
        /// Send the work back with a note.
        Revised "revised",
        /// Nobody decided; it is opened anew.
        Expired "expired",
    } {
        /// Go on.
        Approve "approve": Pending => Approved,
        /// Stop here.
        Reject "reject": Pending => Rejected,
        /// Pass it over.
        Skip "skip": Pending => Skipped,
        /// Send back.
        Revise "revise": Pending => Revised,
        /// Run out.
        Expire "expire": Pending => Expired,
    }
}

machine! {
    /// A job's worktree.
    TreeState TreeEvent "tree" {
        /// About to be made: may be there in part.
        Making "making",
        /// An attempt works in it, or the next one will.
        Active "active",
        /// Nobody works in it any more.
        Released "released",
        /// Taken away: it was clean, and its commit is pinned.
        Removed "removed",
        /// Left where it is, for a reason.
        Kept "kept",
        /// Registered, but its folder is gone.
        Missing "missing",
    } {
        /// Is there.
        Make "make": Making | Missing => Active,
        /// Is no longer worked in.
        Release "release": Making | Active => Released,
        /// Goes.
        Remove "remove": Making | Active | Released | Kept | Missing => Removed,
        /// Stays.
        Keep "keep": Active | Released | Kept => Kept,
        /// Is worked in again: its job is tried once more.
        Resume "resume": Kept => Active,
        /// Is found gone.
        Lose "lose": Making | Active | Released | Kept => Missing,
    }
}

word_enum! {
    /// How far an attempt's change has come.
    ChangeState "change state" {
        /// Its commit is made; it may be pinned, and the run's branch may have been moved.
        Intended "intended",
        /// On the run's branch, sealed.
        Integrated "integrated",
    }
}

word_enum! {
    /// How far a landing has come.
    LandingState "landing state" {
        /// A person approved it and its commit is made; the target may have been moved.
        Intended "intended",
        /// The target has it.
        Done "done",
        /// It can't be, as things are.
        Refused "refused",
        /// Given up; another one followed, or may.
        Void "void",
    }
}

word_enum! {
    /// How a landing is done, or was found to be done.
    LandingKind "landing kind" {
        /// One commit on the target.
        Squash "squash",
        /// A merge commit.
        Merge "merge",
        /// The target moves to the run's newest commit.
        Ff "ff",
        /// The target has it already: somebody landed it by hand.
        Outside "outside",
        /// The run changed nothing.
        Nothing "nothing",
        /// No target is named: the run ends at its own branch.
        Branch "branch",
    }
}

word_enum! {
    /// How a helper is told to end.
    StopKind "stop kind" {
        /// When it holds no work.
        Drain "drain",
        /// Now: the agent is ended and its attempt interrupted.
        Now "now",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! table {
        ($state:ident $event:ident) => {{
            let mut text = String::new();
            for state in $state::ALL {
                for event in $event::ALL {
                    let next = state.next(*event).map_or_else(|_| "-".to_owned(), |next| next.to_string());
                    text.push_str(&format!("{state:<10} {event:<9} {next}\n"));
                }
            }
            text
        }};
    }

    #[test]
    fn every_state_answers_every_event() {
        insta::assert_snapshot!("session_table", table!(SessionState SessionEvent));
        insta::assert_snapshot!("message_table", table!(MessageState MessageEvent));
        insta::assert_snapshot!("lease_table", table!(LeaseState LeaseEvent));
        insta::assert_snapshot!("supervisor_table", table!(SupervisorState SupervisorEvent));
        insta::assert_snapshot!("execution_table", table!(ExecutionState ExecutionEvent));
        insta::assert_snapshot!("gate_table", table!(GateState GateEvent));
        insta::assert_snapshot!("tree_table", table!(TreeState TreeEvent));
    }
}
