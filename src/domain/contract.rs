//! The continuation contract `striatum.result/1`: what an agent's answer must say.
//!
//! Reads a document and names each fault; it does not know files, sessions or the queue.

mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::verdict::{Finding, Verdict};
use super::word::word_enum;

pub use schema::json_schema;

/// The schema word of an answer.
pub const SCHEMA: &str = "striatum.result/1";

word_enum! {
    /// How an answer ends its attempt.
    Status "status" {
        /// Done.
        Done "DONE",
        /// Done, and proposes what comes next.
        NeedsNext "NEEDS_NEXT",
        /// Can't go on.
        Blocked "BLOCKED",
        /// Needs an answer.
        NeedsContext "NEEDS_CONTEXT",
    }
}

/// What is awaited, who can give it, what to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockedReason {
    /// What is awaited.
    pub awaiting: String,
    /// Who can give it.
    pub who: String,
    /// What to do.
    pub action: String,
}

/// What an agent reports of its own spending.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Tokens read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// The reported cost in micro-dollars. Less than nothing counts as nothing; what is absurdly much counts as the most
    /// that is counted, a billion dollars: a budget has to see it.
    pub fn micro_usd(&self) -> i64 {
        let micro = self.cost_usd.unwrap_or(0.0) * 1e6;
        micro.clamp(0.0, 1e15) as i64
    }
}

/// A proposed next job; stored and shown, never acted on by the agent itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Proposal {
    /// A job type.
    #[serde(rename = "type")]
    pub kind: String,
    /// A role.
    pub role: Option<String>,
    /// A lane.
    pub lane: Option<String>,
    /// What to do.
    pub objective: String,
    /// Artifacts it wants.
    pub inputs: Vec<String>,
    /// Why.
    pub reason: String,
    /// From 0 to 1; absent, null or not a number counts as 0.
    #[serde(deserialize_with = "confidence")]
    pub confidence: f64,
}

fn confidence<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Value::deserialize(input)?.as_f64().filter(|number| (0.0..=1.0).contains(number)).unwrap_or(0.0))
}

/// A valid answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Always `striatum.result/1`.
    pub schema: String,
    /// How the attempt ends.
    pub status: Status,
    /// Reviews only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Reviews only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// Artifact names that the agent says it left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub produced: Vec<String>,
    /// Doubts about work that is done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub concerns: Vec<String>,
    /// Proposals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<Proposal>,
    /// With BLOCKED and NEEDS_CONTEXT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_reason: Option<BlockedReason>,
    /// One line about what was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// For the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_message: Option<String>,
    /// Spending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

impl Answer {
    /// An answer that says nothing but its status.
    pub fn plain(status: Status) -> Answer {
        Answer {
            schema: SCHEMA.to_owned(),
            status,
            verdict: None,
            findings: Vec::new(),
            produced: Vec::new(),
            concerns: Vec::new(),
            next: Vec::new(),
            blocked_reason: None,
            summary: None,
            commit_message: None,
            usage: None,
        }
    }
}

/// One thing wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{field}: {message}")]
pub struct ContractFault {
    /// Which field.
    pub field: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

/// The fields of an answer; anything else is a fault.
pub const FIELDS: &[&str] = &[
    "schema",
    "status",
    "verdict",
    "findings",
    "produced",
    "concerns",
    "next",
    "blocked_reason",
    "summary",
    "commit_message",
    "usage",
];

/// Reads an answer; `is_review` says whether a verdict is required or refused. All faults are named.
pub fn read(document: &Value, is_review: bool) -> Result<Answer, Vec<ContractFault>> {
    let mut faults = Faults(Vec::new());
    let Some(map) = document.as_object() else {
        faults.add("answer", "must be a JSON object");
        return Err(faults.0);
    };
    for key in map.keys().filter(|key| !FIELDS.contains(&key.as_str())) {
        faults.add(key, format!("unknown field; known are {}", FIELDS.join(", ")));
    }
    if map.get("schema").and_then(Value::as_str) != Some(SCHEMA) {
        faults.add("schema", format!("must be \"{SCHEMA}\""));
    }
    let status: Option<Status> = faults.field(map, "status");
    if status.is_none() && map.get("status").is_none_or(Value::is_null) {
        faults.add("status", "is required: DONE, NEEDS_NEXT, BLOCKED or NEEDS_CONTEXT");
    }
    let answer = Answer {
        schema: SCHEMA.to_owned(),
        status: status.unwrap_or(Status::Done),
        verdict: faults.field(map, "verdict"),
        findings: faults.field(map, "findings").unwrap_or_default(),
        produced: faults.field(map, "produced").unwrap_or_default(),
        concerns: faults.field(map, "concerns").unwrap_or_default(),
        next: faults.field(map, "next").unwrap_or_default(),
        blocked_reason: faults.field(map, "blocked_reason"),
        summary: faults.field(map, "summary"),
        commit_message: faults.field(map, "commit_message"),
        usage: faults.field(map, "usage"),
    };
    if status.is_some() {
        check(&answer, is_review, map, &mut faults);
    }
    if faults.0.is_empty() { Ok(answer) } else { Err(faults.0) }
}

/// The rules between fields.
fn check(answer: &Answer, is_review: bool, map: &Map<String, Value>, faults: &mut Faults) {
    let is_done = matches!(answer.status, Status::Done | Status::NeedsNext);
    let has = |key: &str| map.get(key).is_some_and(|value| !value.is_null());
    if is_review && is_done && !has("verdict") {
        faults.add("verdict", "is required of a review: accept, accept_with_findings, needs_revision or reject");
    }
    if !is_review && has("verdict") {
        faults.add("verdict", "only a review gives one");
    }
    if !is_review && !answer.findings.is_empty() {
        faults.add("findings", "only a review gives them; use concerns");
    }
    if answer.verdict.is_some() && !is_done {
        faults.add("verdict", format!("can't stand with status {}", answer.status));
    }
    if !answer.concerns.is_empty() && answer.status != Status::Done {
        faults.add("concerns", "only with status DONE");
    }
    if answer.status == Status::NeedsNext && answer.next.is_empty() {
        faults.add("next", "NEEDS_NEXT needs at least one proposal");
    }
    match (&answer.blocked_reason, is_done) {
        (None, false) if !has("blocked_reason") => {
            faults.add("blocked_reason", format!("{} must say awaiting, who and action", answer.status));
        }
        (Some(_), true) => faults.add("blocked_reason", "only with BLOCKED or NEEDS_CONTEXT"),
        (Some(reason), false) => {
            for (name, text) in [("awaiting", &reason.awaiting), ("who", &reason.who), ("action", &reason.action)] {
                if text.trim().is_empty() {
                    faults.add(&format!("blocked_reason.{name}"), "must not be empty");
                }
            }
        }
        (None, _) => {}
    }
    if answer.usage.as_ref().and_then(|usage| usage.cost_usd).is_some_and(|cost| cost < 0.0) {
        faults.add("usage.cost_usd", "must not be negative");
    }
    for finding in &answer.findings {
        if finding.title.trim().is_empty() {
            faults.add("findings", "a finding without a title");
        }
    }
}

/// A list would be read as an object's fields in their order; the contract names them.
fn has_list_for_object(key: &str, value: &Value) -> bool {
    match key {
        "usage" | "blocked_reason" => value.is_array(),
        "findings" | "next" => value.as_array().is_some_and(|items| items.iter().any(Value::is_array)),
        _ => false,
    }
}

struct Faults(Vec<ContractFault>);

impl Faults {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0.push(ContractFault { field: field.to_owned(), message: message.into() });
    }

    fn field<T: serde::de::DeserializeOwned>(&mut self, map: &Map<String, Value>, key: &str) -> Option<T> {
        let value = map.get(key).filter(|value| !value.is_null())?;
        if has_list_for_object(key, value) {
            self.add(key, "must be given as objects with named fields");
            return None;
        }
        match serde_json::from_value(value.clone()) {
            Ok(read) => Some(read),
            Err(error) => {
                self.add(key, error.to_string());
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use serde_json::json;

    #[test]
    fn every_fault_of_an_answer_is_named() {
        let faults = read(
            &json!({"schema": "x", "status": "BLOCKED", "verdict": "accept", "concerns": ["c"], "extra": 1}),
            false,
        )
        .unwrap_err();
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(text.join("\n"), @r#"
        extra: unknown field; known are schema, status, verdict, findings, produced, concerns, next, blocked_reason, summary, commit_message, usage
        schema: must be "striatum.result/1"
        verdict: only a review gives one
        verdict: can't stand with status BLOCKED
        concerns: only with status DONE
        blocked_reason: BLOCKED must say awaiting, who and action
        "#);
    }

    #[test]
    fn a_confidence_that_is_no_number_counts_as_nothing() {
        let answer = read(
            &json!({"schema": SCHEMA, "status": "NEEDS_NEXT", "next": [
                {"type": "generic", "objective": "x", "confidence": "high"}, {"type": "generic", "confidence": null}]}),
            false,
        )
        .unwrap();
        assert!(answer.next.iter().all(|proposal| proposal.confidence == 0.0));
    }

    #[test]
    fn no_status_is_no_answer_and_lists_are_no_objects() {
        let faults = |document: Value| {
            let faults = read(&document, false).unwrap_err();
            faults.iter().map(|fault| fault.field.clone()).collect::<Vec<_>>()
        };
        assert_eq!(faults(json!({"schema": SCHEMA, "status": null})), ["status"]);
        assert_eq!(faults(json!({"schema": SCHEMA, "status": "DONE", "usage": [1]})), ["usage"]);
        let listed = json!({"schema": SCHEMA, "status": "NEEDS_NEXT", "next": [["draft"]]});
        assert_eq!(faults(listed), ["next", "next"]);
        let cost = json!({"schema": SCHEMA, "status": "DONE", "usage": {"cost_usd": -1}});
        assert_eq!(faults(cost), ["usage.cost_usd"]);
    }

    #[test]
    fn a_review_without_a_verdict_is_no_answer() {
        assert!(read(&json!({"schema": SCHEMA, "status": "DONE"}), true).is_err());
        assert!(read(&json!({"schema": SCHEMA, "status": "DONE", "verdict": "accept"}), true).is_ok());
    }
}
