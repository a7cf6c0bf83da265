//! Verdicts, and what a panel of reviews decides together.
//!
//! It does not know who reviewed; only the verdicts of the subject's present generation are given to it.

use serde::{Deserialize, Serialize};

use super::word::word_enum;

word_enum! {
    /// A judgement.
    Verdict "verdict" {
        /// Good.
        Accept "accept",
        /// Good, with remarks.
        AcceptWithFindings "accept_with_findings",
        /// Back to the author.
        NeedsRevision "needs_revision",
        /// No.
        Reject "reject",
    }
}

impl Verdict {
    /// Lets the successors go.
    pub const fn is_accepting(self) -> bool {
        matches!(self, Verdict::Accept | Verdict::AcceptWithFindings)
    }
}

/// One remark of a review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// In a few words.
    pub title: String,
    /// In full.
    pub detail: String,
    /// A free word: `high`, `nit`, ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<String>,
    /// Where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Where in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Where one review of a panel stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Its verdict in the subject's present generation.
    pub verdict: Option<Verdict>,
    /// It is over: judged, out of tries, skipped.
    pub is_over: bool,
    /// How often it may still send the subject back.
    pub revisions_left: u32,
}

/// What the panel says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelDecision {
    /// Some review is not over.
    Open,
    /// Enough accepts.
    Pass,
    /// Back to the author, once, with all findings.
    Reopen,
    /// Somebody rejects.
    Reject,
    /// Not enough accepts, and a review that wants a revision has none left.
    RevisionsSpent,
    /// Not enough accepts, and nobody asks for a revision: a review ran out of tries.
    Short,
}

/// Decides a panel; `quorum` is the number of accepts that pass it, all by default (design section 6).
pub fn decide(seats: &[Seat], quorum: Option<u32>) -> PanelDecision {
    if seats.iter().any(|seat| !seat.is_over) {
        return PanelDecision::Open;
    }
    let count = |wanted: fn(Verdict) -> bool| seats.iter().filter(|seat| seat.verdict.is_some_and(wanted)).count();
    if count(|verdict| verdict == Verdict::Reject) > 0 {
        return PanelDecision::Reject;
    }
    let wanted = quorum.map_or(seats.len(), |quorum| usize::try_from(quorum).unwrap_or(usize::MAX));
    let needed = wanted.min(seats.len());
    if count(Verdict::is_accepting) >= needed {
        return PanelDecision::Pass;
    }
    let wanting = || seats.iter().filter(|seat| seat.verdict == Some(Verdict::NeedsRevision));
    if wanting().count() == 0 {
        PanelDecision::Short
    } else if wanting().any(|seat| seat.revisions_left == 0) {
        PanelDecision::RevisionsSpent
    } else {
        PanelDecision::Reopen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(verdict: Option<Verdict>, revisions_left: u32) -> Seat {
        Seat { verdict, is_over: true, revisions_left }
    }

    #[test]
    fn a_panel_waits_for_its_last_seat_and_reopens_once() {
        let open = Seat { verdict: None, is_over: false, revisions_left: 2 };
        let wants = seat(Some(Verdict::NeedsRevision), 2);
        assert_eq!(decide(&[wants, open], None), PanelDecision::Open);
        assert_eq!(decide(&[wants, seat(Some(Verdict::Accept), 2)], None), PanelDecision::Reopen);
    }

    #[test]
    fn a_quorum_passes_over_dissent_but_not_over_a_reject() {
        let accepts = seat(Some(Verdict::Accept), 2);
        let wants = seat(Some(Verdict::NeedsRevision), 2);
        assert_eq!(decide(&[accepts, accepts, wants], Some(2)), PanelDecision::Pass);
        assert_eq!(decide(&[accepts, accepts, seat(Some(Verdict::Reject), 2)], Some(2)), PanelDecision::Reject);
    }

    #[test]
    fn a_reviewer_out_of_tries_counts_as_no_accept() {
        let accepts = seat(Some(Verdict::Accept), 2);
        assert_eq!(decide(&[accepts, seat(None, 2)], None), PanelDecision::Short);
        assert_eq!(decide(&[accepts, seat(None, 2)], Some(1)), PanelDecision::Pass);
        assert_eq!(decide(&[seat(Some(Verdict::NeedsRevision), 0)], None), PanelDecision::RevisionsSpent);
    }
}
