//! The literal commands that end what waits, from the one table in `domain::job`.
//!
//! It does not know what waits; it fills names into words.

use crate::domain::job::Cause;
use crate::domain::time::show_duration;
use crate::error::Next;
use crate::store::run::Run;
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
    /// The run itself, where a command is to name a new limit.
    pub of: Option<&'a Run>,
}

/// The command that moves a limit of a run, or of a job of it.
pub fn raise(run: &Run, job: Option<&str>, setting: &str) -> Next {
    let job = job.map_or(String::new(), |job| format!("{job} "));
    let template = format!("run amend {job}--run-id {} --set {setting} --reason '...'", run.name);
    fill(&template, &Subject { run: &run.name, ..Subject::default() }, &format!("{setting}: raise the limit"))
}

/// A limit that leaves as much again as was used, or was allowed.
fn raised(run: &Run, key: &str) -> Option<String> {
    let (budget, spending) = (&run.spec.budget, run.spending());
    let twice = |used: u64, limit: u64| used.max(limit).saturating_mul(2);
    Some(match key {
        "budget.launches" => twice(run.launches.into(), budget.launches.into()).to_string(),
        "budget.cost_usd" => (twice(spending.cost_micro_usd, budget.cost_micro_usd?).div_ceil(1_000_000)).to_string(),
        "budget.active_time" => show_duration(twice(spending.active_ms, budget.active_time_ms)),
        "budget.no_progress" => show_duration(twice(0, budget.no_progress_ms)),
        _ => return None,
    })
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
                _ if word.starts_with("budget.") => with_limit(word, subject),
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

/// A setting of a budget with the new limit in it, where the run is known.
fn with_limit(word: &str, subject: &Subject<'_>) -> String {
    let limit = word.split_once('=').and_then(|(key, _)| Some(format!("{key}={}", raised(subject.of?, key)?)));
    limit.unwrap_or_else(|| word.to_owned())
}

/// Who may type it: its verb's words stand before its first argument.
fn who(template: &str) -> &'static str {
    let verb: Vec<&str> = template.split(' ').take_while(|word| !word.starts_with(['{', '-', '\''])).collect();
    match api::who(&verb.join("_").replace('-', "_")) {
        Some(Who::Anyone) => "anyone",
        Some(Who::Session) => "session",
        Some(Who::Operator | Who::Admin) => "operator",
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
        let subject = Subject {
            run: "demo-1",
            job: Some("draft"),
            role: Some("author"),
            lane: Some("codex"),
            gate: Some("g1"),
            of: None,
        };
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
