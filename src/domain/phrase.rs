//! Stop phrases: whether an agent's words contain one of `[stop] phrases`.
//!
//! Only what an agent says is looked at: never a file, an output or a commit. It does not know what stopping means.

use super::contract::Answer;

/// The first phrase that the words contain, as it was configured. Upper and lower case are the same, and so is any run
/// of white space; before and behind the phrase no letter or digit may stand, so that `halt` is not in `halted`.
pub fn spoken<'a>(phrases: &'a [String], words: &[&str]) -> Option<&'a str> {
    let texts: Vec<String> = words.iter().map(|text| plain(text)).collect();
    phrases.iter().map(String::as_str).find(|phrase| {
        let wanted = plain(phrase);
        !wanted.is_empty() && texts.iter().any(|text| stands_in(&wanted, text))
    })
}

/// What an agent says in an answer in its own words: its summary, doubts, findings, and what it awaits.
pub fn words(answer: &Answer) -> Vec<&str> {
    let reason = answer.blocked_reason.iter().flat_map(|said| [&said.awaiting, &said.who, &said.action]);
    let findings = answer.findings.iter().flat_map(|finding| [&finding.title, &finding.detail]);
    let all = answer.summary.iter().chain(&answer.concerns).chain(findings).chain(reason);
    all.map(String::as_str).collect()
}

fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn stands_in(phrase: &str, text: &str) -> bool {
    let touches = |inner: Option<char>, outer: Option<char>| {
        inner.is_some_and(char::is_alphanumeric) && outer.is_some_and(char::is_alphanumeric)
    };
    text.match_indices(phrase).any(|(at, found)| {
        let (before, behind) = (&text[..at], &text[at + found.len()..]);
        let begins = touches(found.chars().next(), before.chars().next_back());
        let ends = touches(found.chars().next_back(), behind.chars().next());
        !begins && !ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::contract::{BlockedReason, Proposal, Status};

    fn finds(phrase: &str, text: &str) -> bool {
        spoken(&[phrase.to_owned()], &[text]).is_some()
    }

    #[test]
    fn a_phrase_is_found_whole_whatever_its_case_and_spaces() {
        for text in ["Stop the run", "please STOP  the\nrun!", "(stop the run)", "so: stop the run."] {
            assert!(finds("stop the run", text), "{text}");
        }
        for text in ["stop the running", "nonstop the run", "stop a run", "stop, the run", ""] {
            assert!(!finds("stop the run", text), "{text}");
        }
        assert!(finds("[halt]", "x[HALT]y"), "a phrase that ends in a sign ends there");
        assert!(!finds("  ", "anything"), "an empty phrase is none");
    }

    #[test]
    fn only_what_an_agent_says_of_its_work_is_looked_at() {
        let reason = BlockedReason { awaiting: "a".into(), who: "b".into(), action: "c".into() };
        let answer = Answer {
            summary: Some("s".into()),
            concerns: vec!["d".into()],
            blocked_reason: Some(reason),
            commit_message: Some("not this".into()),
            produced: vec!["nor this".into()],
            next: vec![Proposal { objective: "nor that".into(), ..Proposal::default() }],
            ..Answer::plain(Status::Done)
        };
        assert_eq!(words(&answer), ["s", "d", "a", "b", "c"]);
    }
}
