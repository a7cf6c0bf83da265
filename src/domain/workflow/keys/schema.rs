//! The table of keys as a JSON Schema, for editors that complete and check TOML.

use serde_json::{Map, Value, json};

use super::{Key, Kind, Level, of};

/// The schema of a file whose top is of the given level; levels below are definitions of their own.
pub fn json_schema(top: Level) -> Value {
    let mut definitions = Map::new();
    let mut open = vec![top];
    while let Some(level) = open.pop() {
        if definitions.contains_key(level.name()) {
            continue;
        }
        definitions.insert(level.name().to_owned(), object(level));
        open.extend(of(level).filter_map(|key| below(key.kind)));
    }
    let Some(Value::Object(mut schema)) = definitions.remove(top.name()) else { return Value::Null };
    definitions.sort_keys();
    schema.insert("$defs".to_owned(), Value::Object(definitions));
    let mut document = Map::new();
    document.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.extend(schema);
    Value::Object(document)
}

fn below(kind: Kind) -> Option<Level> {
    match kind {
        Kind::Table(level) | Kind::Named(level) | Kind::List(level) => Some(level),
        Kind::Reviews => Some(Level::Reviews),
        _ => None,
    }
}

fn object(level: Level) -> Value {
    let properties: Map<String, Value> =
        of(level).filter(|key| !key.reserved).map(|key| (key.name.to_owned(), property(key))).collect();
    let required: Vec<&str> = of(level).filter(|key| key.is_required()).map(|key| key.name).collect();
    json!({
        "title": level.heading(),
        "description": level.about(),
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

fn property(key: &Key) -> Value {
    let mut schema = of_kind(key.kind);
    if let Value::Object(map) = &mut schema {
        map.insert("description".to_owned(), json!(format!("{} Default: {}.", key.about, key.default)));
        if let Some(default) = key.default_value() {
            map.insert("default".to_owned(), default);
        }
    }
    schema
}

fn of_kind(kind: Kind) -> Value {
    let strings = || json!({ "type": "string" });
    let list = |items: Value| json!({ "type": "array", "items": items });
    let words = |words: &[&str]| json!({ "enum": words });
    match kind {
        Kind::Text(_) | Kind::Path => strings(),
        Kind::Word(known) => words(known),
        Kind::Words(known) => list(words(known)),
        Kind::Id => id(),
        Kind::Ids => list(id()),
        Kind::Texts | Kind::Globs | Kind::Paths | Kind::Folders => list(strings()),
        Kind::EnvNames => list(json!({ "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" })),
        Kind::Duration => json!({ "type": "string", "pattern": DURATION }),
        Kind::DurationOrOff => json!({ "type": "string", "pattern": format!("{DURATION}|^off$") }),
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Money => json!({ "type": "number", "minimum": 0 }),
        Kind::Exits => list(json!({ "type": "integer", "minimum": 1, "maximum": 255 })),
        Kind::Argv(_) => argv(),
        Kind::Commands(_) => json!({ "anyOf": [strings(), list(argv())] }),
        Kind::Reviews => json!({ "anyOf": [id(), to(Level::Reviews)] }),
        Kind::Table(level) => to(level),
        Kind::List(level) => list(to(level)),
        Kind::Named(Level::Param) => named(json!({ "anyOf": [strings(), to(Level::Param)] })),
        Kind::Named(level) => named(to(level)),
    }
}

const DURATION: &str = "^[0-9]+(ms|s|m|min|h|d)$";
const ID: &str = "^[a-z0-9][a-z0-9_-]{0,47}$";

fn id() -> Value {
    json!({ "type": "string", "pattern": ID })
}

fn argv() -> Value {
    json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }] })
}

fn to(level: Level) -> Value {
    json!({ "$ref": format!("#/$defs/{}", level.name()) })
}

fn named(value: Value) -> Value {
    json!({ "type": "object", "propertyNames": { "pattern": ID }, "additionalProperties": value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_of_both_schemas_has_its_definition() {
        for level in [Level::Workflow, Level::Config] {
            let schema = json_schema(level);
            let mut found = Vec::new();
            references(&schema, &mut found);
            assert!(found.len() > 8, "{level:?} refers to its tables");
            for reference in found {
                let pointer = reference.trim_start_matches('#');
                assert!(schema.pointer(pointer).is_some(), "{level:?} lacks {reference}");
            }
        }
    }

    #[test]
    fn a_role_as_schema() {
        insta::assert_snapshot!(format!("{:#}", json_schema(Level::Workflow)["$defs"]["role"]), @r#"
        {
          "title": "[roles.NAME]",
          "description": "A kind of worker. A role needs no declaration.",
          "type": "object",
          "additionalProperties": false,
          "properties": {
            "instructions": {
              "type": "string",
              "description": "A file below `.striatum/` whose text every packet of the role begins with. Default: none."
            },
            "context": {
              "enum": [
                "any",
                "fresh"
              ],
              "description": "`fresh`: a session of the role has seen nothing of the work it judges. Default: any; fresh for a role that reviews.",
              "default": "any"
            },
            "lanes": {
              "type": "array",
              "items": {
                "type": "string",
                "pattern": "^[a-z0-9][a-z0-9_-]{0,47}$"
              },
              "description": "The lanes that may play the role. Default: all lanes."
            }
          },
          "required": []
        }
        "#);
    }
}
