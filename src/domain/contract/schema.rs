//! The contract as a JSON Schema, for agents that can be told what to answer.
//!
//! A schema sees one document: whether its job is a review it does not know.

use serde_json::{Value, json};

use super::super::verdict::Verdict;
use super::{SCHEMA, Status};

/// The JSON Schema of an answer.
pub fn json_schema() -> Value {
    let words = |words: &[&str]| json!({ "enum": words });
    let or_null = |schema: Value| json!({ "anyOf": [schema, { "type": "null" }] });
    let nothing = json!({ "type": "null" });
    let statuses: Vec<&str> = Status::ALL.iter().map(|status| status.word()).collect();
    let verdicts: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.word()).collect();
    let text = json!({ "type": ["string", "null"] });
    let texts = json!({ "type": ["array", "null"], "items": { "type": "string" } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "What an agent says when it is done with a job, or can't go on.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "schema": { "const": SCHEMA },
            "status": words(&statuses),
            "verdict": or_null(words(&verdicts)),
            "findings": { "type": ["array", "null"], "items": finding() },
            "produced": texts,
            "concerns": texts,
            "next": { "type": ["array", "null"], "items": proposal() },
            "blocked_reason": or_null(blocked_reason()),
            "summary": text,
            "commit_message": text,
            "usage": or_null(usage()),
        },
        "required": ["schema", "status"],
        "allOf": [
            {
                "if": { "properties": { "status": words(&["BLOCKED", "NEEDS_CONTEXT"]) } },
                "then": {
                    "required": ["blocked_reason"],
                    "properties": { "blocked_reason": { "type": "object" }, "verdict": nothing },
                },
                "else": { "properties": { "blocked_reason": nothing } },
            },
            {
                "if": { "properties": { "status": { "const": "NEEDS_NEXT" } } },
                "then": { "required": ["next"], "properties": { "next": { "type": "array", "minItems": 1 } } },
            },
            {
                "if": { "properties": { "status": { "const": "DONE" } } },
                "else": { "properties": { "concerns": { "maxItems": 0 } } },
            },
            {
                "if": {
                    "required": ["findings"],
                    "properties": {
                        "status": words(&["DONE", "NEEDS_NEXT"]),
                        "findings": { "type": "array", "minItems": 1 },
                    },
                },
                "then": { "required": ["verdict"], "properties": { "verdict": words(&verdicts) } },
            },
        ],
    })
}

fn finding() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": "string", "pattern": "\\S" },
            "detail": { "type": "string" },
            "severity": { "type": ["string", "null"] },
            "path": { "type": ["string", "null"] },
            "line": { "type": ["integer", "null"], "minimum": 0 },
        },
        "required": ["title", "detail"],
    })
}

fn proposal() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "type": { "type": "string" },
            "role": { "type": ["string", "null"] },
            "lane": { "type": ["string", "null"] },
            "objective": { "type": "string" },
            "inputs": { "type": "array", "items": { "type": "string" } },
            "reason": { "type": "string" },
            "confidence": { "description": "From 0 to 1; anything else counts as 0." },
        },
    })
}

fn blocked_reason() -> Value {
    let said = json!({ "type": "string", "pattern": "\\S" });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "awaiting": said, "who": said, "action": said },
        "required": ["awaiting", "who", "action"],
    })
}

fn usage() -> Value {
    let count = json!({ "type": ["integer", "null"], "minimum": 0 });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": { "input_tokens": count, "output_tokens": count, "cost_usd": { "type": ["number", "null"], "minimum": 0 } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_has_exactly_the_fields_of_an_answer() {
        let schema = json_schema();
        let properties: Vec<&str> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        assert_eq!(properties, super::super::FIELDS);
    }
}
