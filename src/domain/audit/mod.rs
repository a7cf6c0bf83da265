//! The rules that a driven run must have kept, looked at after the fact.
//!
//! Evidence goes in, violations come out. Nothing here knows where the evidence comes from or what is done about a
//! violation, and no rule trusts another: each looks for itself.

mod changes;
mod escapes;
mod evidence;
mod gates;
mod limits;
mod resources;
mod reviews;
mod steps;
mod story;

pub use evidence::{
    AttemptFacts, ChangeFacts, CommitFacts, Commits, DecisionFacts, Evidence, ExecutionFacts, GateFacts, JobFacts,
    LandingFacts, RunFacts, SessionFacts, Told, VerdictFacts,
};

/// A place where a rule was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A job, an attempt (`draft.2`), a gate, a session, or the run.
    pub subject: String,
    /// What was seen there.
    pub found: String,
    /// The events that show it.
    pub events: Vec<i64>,
}

impl Violation {
    /// Without events: rows show it.
    fn of(subject: impl Into<String>, found: impl Into<String>) -> Violation {
        Violation { subject: subject.into(), found: found.into(), events: Vec::new() }
    }

    /// Shown by an event.
    fn at(event: i64, subject: impl Into<String>, found: impl Into<String>) -> Violation {
        Violation { subject: subject.into(), found: found.into(), events: vec![event] }
    }
}

/// What looking came to; the error says why a rule could not be looked at.
pub type Looked = Result<Vec<Violation>, String>;

/// Something that a driven run must have kept.
pub struct Rule {
    /// A stable word.
    pub code: &'static str,
    /// What holds, in words.
    pub what: &'static str,
    /// Looks for places where it does not.
    pub look: fn(&Evidence) -> Looked,
}

/// Every rule. One more is one more line, with a function beside those that look at the same things.
pub const RULES: &[Rule] = &[
    Rule { code: "step_illegal", what: "each step is one that the state machines allow", look: steps::illegal },
    Rule { code: "state_untold", what: "where a job and the run are follows from what is told", look: steps::untold },
    Rule { code: "launched_twice", what: "an attempt is claimed and its agent started once", look: steps::twice },
    Rule {
        code: "claimed_closed",
        what: "nothing is claimed in a run that is paused, stopped or over",
        look: steps::closed,
    },
    Rule { code: "capacity_passed", what: "no more jobs are held at once than the run allows", look: steps::capacity },
    Rule { code: "completed_open", what: "a run is completed with each job settled", look: steps::completed },
    Rule { code: "cause_unlisted", what: "a run stops for a reason of the closed list", look: steps::causes },
    Rule {
        code: "gate_missing",
        what: "what must wait for a person was let through by one before",
        look: gates::missing,
    },
    Rule { code: "gate_unlike", what: "a decision is bound to the digest of what was shown", look: gates::unlike },
    Rule { code: "gate_ignored", what: "what a person rejected does not go on by itself", look: gates::ignored },
    Rule {
        code: "person_unknown",
        what: "a person's decision says how the person was recognised",
        look: gates::unknown,
    },
    Rule {
        code: "standing_spread",
        what: "a standing answer goes once to a job that asks, and never at L2",
        look: gates::standing,
    },
    Rule {
        code: "escape_passed",
        what: "what left the constrained surface was let pass before, and no oftener than that",
        look: escapes::uses,
    },
    Rule {
        code: "resource_left",
        what: "what was made for a job alone is gone when its run is over, or told to be left",
        look: resources::left,
    },
    Rule { code: "landing_ungated", what: "a run lands after its gate was approved", look: gates::landing },
    Rule {
        code: "reject_ignored",
        what: "a reject ends what is behind it, unless a person says otherwise",
        look: reviews::rejects,
    },
    Rule {
        code: "reviewer_stale",
        what: "a fresh reviewer has worked on nothing that is behind the review",
        look: reviews::fresh,
    },
    Rule { code: "verdict_stale", what: "a settled review judged its subject as it is", look: reviews::stale },
    Rule { code: "panel_unmet", what: "a settled panel has the accepts that it needs", look: reviews::panels },
    Rule { code: "tries_passed", what: "strikes and requeues stay within their limits", look: limits::tries },
    Rule {
        code: "revisions_passed",
        what: "a review sends its subject back no more often than it may",
        look: limits::revisions,
    },
    Rule {
        code: "budget_passed",
        what: "nothing is claimed while money or working time is spent",
        look: limits::budget,
    },
    Rule { code: "launches_passed", what: "no more agents are started than the budget allows", look: limits::launches },
    Rule { code: "seal_unproven", what: "a seal has an answer, and a review's a verdict", look: changes::proven },
    Rule {
        code: "verify_missing",
        what: "a seal follows each declared verification that passed",
        look: changes::verified,
    },
    Rule { code: "branch_broken", what: "the run's branch is the chain of its sealed changes", look: changes::chained },
    Rule {
        code: "commit_unlike",
        what: "each change is pinned as one commit of what was verified",
        look: changes::pinned,
    },
    Rule { code: "scope_passed", what: "each change lies in its frozen scope", look: changes::scoped },
];
