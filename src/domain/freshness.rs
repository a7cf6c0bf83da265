//! The fresh-reviewer rule of RFC 0116, verb 3.
//!
//! A predicate over facts; it does not know where they come from.

use super::id::SessionId;

/// An active session of an author role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Author {
    /// The session.
    pub session: SessionId,
    /// (a) It holds a `work` message in `claimed` or `acked`.
    pub holds_work: bool,
    /// (b) Its role still has a pending one.
    pub role_has_pending: bool,
}

/// The author that could contaminate a fresh reviewer, if any: one that works, or may yet.
pub fn blocking_author(authors: &[Author]) -> Option<SessionId> {
    authors.iter().find(|author| author.holds_work || author.role_has_pending).map(|author| author.session)
}

/// The refusal, in the words of the RFC.
pub fn refusal(author: SessionId) -> String {
    format!(
        "an author session ({author}) is still holding/eligible for work; close it (supervise stop) and register a \
         fresh reviewer, or --force-non-fresh --reason to accept contamination"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_drained_author_blocks_nobody() {
        let idle = Author { session: SessionId(1), holds_work: false, role_has_pending: false };
        assert_eq!(blocking_author(&[idle]), None);
        assert_eq!(blocking_author(&[idle, Author { holds_work: true, ..idle }]), Some(SessionId(1)));
        assert_eq!(blocking_author(&[Author { role_has_pending: true, ..idle }]), Some(SessionId(1)));
    }
}
