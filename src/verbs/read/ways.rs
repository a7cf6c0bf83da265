//! The literal commands that end what waits, from the one table in `domain::job`.
//!
//! It does not know what waits; it fills names into words.

use crate::domain::job::Cause;
use crate::error::Next;
use crate::verbs::api::{self, Who};

/// What the commands are about.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    /// The run's name.
    pub run: &'a str,
    /// The job's name.
    pub job: Option<&'a str>,
    /// The job's role.
    pub role: Option<&'a str>,
    /// The lane, or the first that could be named.
    pub lane: Option<&'a str>,
    /// The open gate.
    pub gate: Option<&'a str>,
}

/// Every command that ends a cause, the usual one first.
pub fn out_of(cause: Cause, subject: &Subject<'_>) -> Vec<Next> {
    let about = subject.job.or(subject.lane).unwrap_or(subject.run);
    let why = format!("{about}: {cause}");
    cause.ended_by().iter().map(|template| fill(template, subject, &why)).collect()
}

fn fill(template: &str, subject: &Subject<'_>, why: &str) -> Next {
    let job = subject.job.unwrap_or(subject.run);
    let argv = std::iter::once("striatum".to_owned())
        .chain(template.split(' ').map(|word| {
            match word {
                "ROLE" => subject.role.unwrap_or(word).to_owned(),
                "LANE" => subject.lane.unwrap_or(word).to_owned(),
                _ => word
                    .replace("lane=LANE", &format!("lane={}", subject.lane.unwrap_or("LANE")))
                    .replace("{job}", job)
                    .replace("{lane}", subject.lane.unwrap_or(job))
                    .replace("{run}", subject.run)
                    .replace("{gate}", subject.gate.unwrap_or(job)),
            }
        }))
        .collect();
    Next { argv, why: why.to_owned(), who: who(template).to_owned() }
}

/// Who may type it: its verb's words stand before its first argument.
fn who(template: &str) -> &'static str {
    let verb: Vec<&str> = template.split(' ').take_while(|word| !word.starts_with(['{', '-', '\''])).collect();
    match api::who(&verb.join("_").replace('-', "_")) {
        Some(Who::Anyone) => "anyone",
        Some(Who::Session) => "session",
        Some(Who::Operator) => "operator",
        Some(Who::Person) | None => "person",
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn first(cause: Cause, subject: &Subject<'_>) -> String {
        out_of(cause, subject).first().unwrap().argv.join(" ")
    }

    #[test]
    fn commands_are_literal() {
        let subject = Subject { run: "demo-1", job: Some("draft"), ..Subject::default() };
        assert_eq!(first(Cause::NeedsContext, &subject), "striatum answer draft '...' --run-id demo-1");
        assert_eq!(
            first(Cause::Gate, &Subject { gate: Some("g3"), ..subject }),
            "striatum gate approve g3 --run-id demo-1"
        );
        assert_eq!(
            first(Cause::LaneParked, &Subject { lane: Some("claude"), ..subject }),
            "striatum lane resume claude"
        );
        let lane = Subject { lane: Some("codex"), role: Some("author"), ..subject };
        let ways = out_of(Cause::AmbiguousLane, &lane);
        assert_eq!(ways[0].argv.join(" "), "striatum run amend draft --run-id demo-1 --set lane=codex --reason '...'");
        assert_eq!(ways[1].argv.join(" "), "striatum register-session --run-id demo-1 --role author --lane codex");
    }

    #[test]
    fn no_command_keeps_a_word_to_be_replaced() {
        let subject =
            Subject { run: "demo-1", job: Some("draft"), role: Some("author"), lane: Some("codex"), gate: Some("g1") };
        for cause in Cause::ALL {
            for next in out_of(*cause, &subject) {
                assert!(
                    !next.argv.iter().any(|word| word.contains('{') || word == "LANE" || word == "ROLE"),
                    "{next:?}"
                );
            }
        }
    }
}
