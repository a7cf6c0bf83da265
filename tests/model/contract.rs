//! The contract of answers: its JSON Schema and its reader say the same of any document.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use striatum::domain::contract::{self, SCHEMA};

/// Whether a document fits a schema; as much of JSON Schema as the contract's uses, and no more.
fn fits(schema: &Value, document: &Value) -> bool {
    let Some(rules) = schema.as_object() else { return schema.as_bool().unwrap() };
    let sub = |name: &str| rules.get(name);
    let is_chosen = sub("if").map(|condition| fits(condition, document));
    let branch = if is_chosen == Some(false) { "else" } else { "then" };
    let chosen = is_chosen.and_then(|_| sub(branch)).is_none_or(|schema| fits(schema, document));
    chosen && rules.iter().all(|(rule, wanted)| holds(rule, wanted, document, rules))
}

fn holds(rule: &str, wanted: &Value, document: &Value, rules: &Map<String, Value>) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
    match rule {
        "type" => list(wanted).iter().any(|name| is_of_type(document, name.as_str().unwrap())),
        "const" => document == wanted,
        "enum" => list(wanted).contains(document),
        "anyOf" => list(wanted).iter().any(|schema| fits(schema, document)),
        "allOf" => list(wanted).iter().all(|schema| fits(schema, document)),
        "required" => document
            .as_object()
            .is_none_or(|map| list(wanted).iter().all(|key| map.contains_key(key.as_str().unwrap()))),
        "properties" => document.as_object().is_none_or(|map| {
            wanted.as_object().unwrap().iter().all(|(key, schema)| map.get(key).is_none_or(|value| fits(schema, value)))
        }),
        "additionalProperties" => document.as_object().is_none_or(|map| {
            let known = rules["properties"].as_object().unwrap();
            wanted != &Value::Bool(false) || map.keys().all(|key| known.contains_key(key))
        }),
        "items" => document.as_array().is_none_or(|items| items.iter().all(|item| fits(wanted, item))),
        "minItems" => document.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
        "maxItems" => document.as_array().is_none_or(|items| items.len() as u64 <= wanted.as_u64().unwrap()),
        "minimum" => document.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
        "pattern" => {
            assert_eq!(wanted, "\\S");
            document.as_str().is_none_or(|text| !text.trim().is_empty())
        }
        "$schema" | "title" | "description" | "if" | "then" | "else" => true,
        other => panic!("this test does not know the rule {other}"),
    }
}

fn is_of_type(document: &Value, name: &str) -> bool {
    match name {
        "object" => document.is_object(),
        "array" => document.is_array(),
        "string" => document.is_string(),
        "null" => document.is_null(),
        "integer" => document.is_u64() || document.is_i64(),
        "number" => document.is_number(),
        other => panic!("no type {other}"),
    }
}

/// Something that may stand anywhere, mostly wrong.
fn odd() -> BoxedStrategy<Value> {
    prop::sample::select(vec![
        json!(null),
        json!(1),
        json!(-1.5),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([1]),
    ])
    .boxed()
}

fn text() -> BoxedStrategy<Value> {
    prop_oneof![6 => Just(json!("some words")), 1 => Just(json!("  ")), 1 => odd()].boxed()
}

fn map(fields: Vec<(&'static str, BoxedStrategy<Value>)>, often: f64) -> BoxedStrategy<Value> {
    let parts: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| {
            prop::option::weighted(often, value).prop_map(move |value| value.map(|value| (name.to_owned(), value)))
        })
        .collect();
    parts.prop_map(|parts| Value::Object(parts.into_iter().flatten().collect())).boxed()
}

fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![8 => prop::collection::vec(item, 0..3).prop_map(Value::Array), 1 => odd()].boxed()
}

fn one_of(words: &[&str]) -> BoxedStrategy<Value> {
    let words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
    prop_oneof![12 => prop::sample::select(words), 1 => odd()].boxed()
}

fn document() -> BoxedStrategy<Value> {
    let finding = map(
        vec![
            ("title", text()),
            ("detail", text()),
            ("severity", text()),
            ("path", text()),
            ("line", odd()),
            ("extra", odd()),
        ],
        0.8,
    );
    let texts = || list(text());
    let proposal = map(
        vec![("type", text()), ("role", text()), ("objective", text()), ("inputs", texts()), ("confidence", odd())],
        0.8,
    );
    let reason = map(vec![("awaiting", text()), ("who", text()), ("action", text())], 0.95);
    let usage = map(vec![("input_tokens", odd()), ("cost_usd", odd())], 0.5);
    let always = map(
        vec![
            ("schema", prop_oneof![20 => Just(json!(SCHEMA)), 1 => odd()].boxed()),
            ("status", one_of(&["DONE", "NEEDS_NEXT", "BLOCKED", "NEEDS_CONTEXT"])),
        ],
        0.97,
    );
    let rest = map(
        vec![
            ("verdict", one_of(&["accept", "accept_with_findings", "needs_revision", "reject"])),
            ("findings", list(finding)),
            ("produced", texts()),
            ("concerns", texts()),
            ("next", list(proposal)),
            ("blocked_reason", prop_oneof![6 => reason, 1 => odd()].boxed()),
            ("summary", text()),
            ("usage", prop_oneof![3 => usage, 1 => odd()].boxed()),
        ],
        0.3,
    );
    (always, rest)
        .prop_map(|(mut always, rest)| {
            always.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            always
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// Whether its job is a review no schema can know: a document is good when it is good for some job.
    #[test]
    fn the_schema_and_the_reader_agree_on_every_document(document in document()) {
        let is_good = contract::read(&document, true).is_ok() || contract::read(&document, false).is_ok();
        prop_assert_eq!(fits(&contract::json_schema(), &document), is_good, "{:#}\n{:?}", document, contract::read(&document, false));
    }

    #[test]
    fn what_is_read_reads_the_same_again(document in document()) {
        for is_review in [true, false] {
            if let Ok(answer) = contract::read(&document, is_review) {
                let written = serde_json::to_value(&answer).unwrap();
                prop_assert_eq!(contract::read(&written, is_review), Ok(answer));
            }
        }
    }
}
