//! Workflows of the daemon-based system (`striatum.workflow.v1`, `v1.1`, JSON) as TOML of this one.
//!
//! What has the same meaning here is carried over; every other field is a warning that names it. The result goes
//! through the same hands as any workflow: nothing is judged here.

mod job;

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::fault::{Fault, Faults, Place};
use super::keys::is_id;

/// A translated workflow.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// TOML.
    pub text: String,
    /// Fields without a meaning here.
    pub warnings: Vec<Fault>,
}

/// Whether a file is JSON: no TOML document begins with a brace.
pub fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// Translates a workflow; `file` is its name as it is shown.
///
/// # Errors
/// The text is no JSON, or not of a schema that is known.
pub fn import(file: &str, text: &str) -> Result<Imported, Faults> {
    let document: Json = serde_json::from_str(text).map_err(|error| {
        let place = Place { line: error.line(), column: error.column(), ..Place::whole(file) };
        Faults(vec![Fault::new(&place, "", format!("not JSON: {error}"))])
    })?;
    let schema = document.get("schema_version").and_then(Json::as_str).unwrap_or_default();
    if !matches!(schema, "striatum.workflow.v1" | "striatum.workflow.v1.1") {
        let message = format!("`{schema}` is no schema of a workflow that can be imported");
        let hint = "write TOML with schema = \"striatum.workflow/1\"; striatum.workflow.v1 and v1.1 are translated";
        return Err(Faults(vec![Fault::new(&Place::whole(file), "schema_version", message).hint(hint)]));
    }
    let mut import = Import { file: Place::whole(file), warnings: Vec::new() };
    let text = import.document(&document);
    Ok(Imported { text, warnings: import.warnings })
}

struct Import {
    file: Place,
    warnings: Vec<Fault>,
}

/// The keys of one table of the result, in order.
type Table = Vec<(&'static str, Json)>;

impl Import {
    fn ignore(&mut self, field: &str, why: &str) {
        let fault = Fault::new(&self.file, field, format!("`{field}` has no meaning here")).hint(why);
        self.warnings.push(fault.as_warning());
    }

    /// Warns about the fields of an object that nobody looked at.
    fn ignore_rest(&mut self, path: &str, object: &Json, known: &[&str]) {
        let fields = object.as_object().into_iter().flat_map(Map::keys);
        for field in fields.filter(|field| !known.contains(&field.as_str())) {
            let full = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
            self.ignore(&full, "it is left out");
        }
    }

    fn document(&mut self, document: &Json) -> String {
        let mut out = "schema = \"striatum.workflow/1\"\n".to_owned();
        write_table(&mut out, &self.top(document));
        for (name, lane) in object(document, "lanes") {
            out.push_str(&format!("\n[lanes.{}]\n", key(name)));
            write_table(&mut out, &self.lane(name, lane));
        }
        for (name, role) in object(document, "roles") {
            let table = self.role(name, role);
            if !table.is_empty() {
                out.push_str(&format!("\n[roles.{}]\n", key(name)));
                write_table(&mut out, &table);
            }
        }
        let edges = Edges::of(document);
        for entry in array(document, "jobs") {
            out.push_str("\n[[jobs]]\n");
            write_table(&mut out, &self.job(entry, &edges));
        }
        out
    }

    fn top(&mut self, document: &Json) -> Table {
        const KNOWN: &[&str] = &[
            "schema_version",
            "workflow_id",
            "name",
            "lanes",
            "roles",
            "parallelism",
            "jobs",
            "edges",
            "cycles",
            "operator_mode",
            "allow_same_model_review_pairing",
            "recovery_policy",
        ];
        self.ignore_rest("", document, KNOWN);
        let mut table = vec![("id", json!(slug(text(document, "workflow_id"))))];
        put_text(&mut table, "title", text(document, "name"));
        put_text(&mut table, "operator_mode", text(document, "operator_mode"));
        if document.get("allow_same_model_review_pairing").and_then(Json::as_bool) != Some(true) {
            table.push(("require_distinct_models", json!(true)));
        }
        if let Some(parallelism) = document.get("parallelism") {
            self.ignore_rest("parallelism", parallelism, &["mode", "max_active_jobs", "require_disjoint_write_scopes"]);
            if let Some(count) = parallelism.get("max_active_jobs").filter(|count| count.is_u64()) {
                table.push(("parallelism", json!({ "max_active_jobs": count })));
            }
        }
        if let Some(policy) = document.get("recovery_policy") {
            self.ignore_rest("recovery_policy", policy, &["max_requeues"]);
            if let Some(count) = policy.get("max_requeues").filter(|count| count.is_u64()) {
                table.push(("budget", json!({ "requeues": count })));
            }
        }
        table
    }

    fn lane(&mut self, name: &str, lane: &Json) -> Table {
        let path = format!("lanes.{name}");
        self.ignore_rest(&path, lane, &["adapter", "display_model", "command", "adapter_timeout_seconds"]);
        let mut table = Table::new();
        match text(lane, "adapter") {
            "" | "process" => {}
            _ => self.ignore(&format!("{path}.adapter"), "a lane is its command"),
        }
        if let Some(command) = lane.get("command").filter(|command| command.is_array()) {
            table.push(("command", escape(command)));
        }
        put_text(&mut table, "model", text(lane, "display_model"));
        if let Some(seconds) = lane.get("adapter_timeout_seconds").and_then(Json::as_u64) {
            table.push(("timeout", json!(format!("{seconds}s"))));
        }
        table
    }

    fn role(&mut self, name: &str, role: &Json) -> Table {
        let path = format!("roles.{name}");
        self.ignore_rest(&path, role, &["definition_path"]);
        let mut table = Table::new();
        if let Some(file) = self.file_below_store(&format!("{path}.definition_path"), text(role, "definition_path")) {
            table.push(("instructions", json!(file)));
        }
        table
    }

    /// A file that stood anywhere in the repository and has to stand below `.striatum/`.
    fn file_below_store(&mut self, field: &str, path: &str) -> Option<String> {
        if path.is_empty() {
            return None;
        }
        if let Some(below) = path.strip_prefix(".striatum/") {
            return Some(below.to_owned());
        }
        let message = format!("`{field}` is looked up below .striatum/");
        let hint = format!("put `{path}` at `.striatum/{path}`");
        self.warnings.push(Fault::new(&self.file, field, message).hint(hint).as_warning());
        Some(path.to_owned())
    }
}

/// What the lists of edges and cycles say, by job.
struct Edges {
    needs: BTreeMap<String, Vec<String>>,
    /// The job that a review may send back, and how often.
    cycles: BTreeMap<String, (String, i64)>,
    /// Jobs that judge: their type says so.
    reviews: Vec<String>,
    disjoint: bool,
}

impl Edges {
    fn of(document: &Json) -> Edges {
        let mut needs: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for edge in array(document, "edges") {
            needs.entry(text(edge, "to").to_owned()).or_default().push(text(edge, "from").to_owned());
        }
        let bound = |cycle: &Json| cycle.get("max_iterations").and_then(Json::as_i64).filter(|count| *count > 0);
        let cycle = |cycle: &Json| {
            // Zero meant "without end" there; -1 is refused here as unbounded.
            (text(cycle, "from").to_owned(), (text(cycle, "to").to_owned(), bound(cycle).unwrap_or(-1)))
        };
        let is_review = |job: &&Json| text(job, "type") == "review";
        let disjoint = document.pointer("/parallelism/require_disjoint_write_scopes").and_then(Json::as_bool);
        Edges {
            needs,
            cycles: array(document, "cycles").iter().map(cycle).collect(),
            reviews: array(document, "jobs").iter().filter(is_review).map(|job| text(job, "id").to_owned()).collect(),
            disjoint: disjoint.unwrap_or(true),
        }
    }
}

fn text<'a>(value: &'a Json, key: &str) -> &'a str {
    value.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn array<'a>(value: &'a Json, key: &str) -> &'a [Json] {
    value.get(key).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn object<'a>(value: &'a Json, key: &str) -> impl Iterator<Item = (&'a String, &'a Json)> {
    value.get(key).and_then(Json::as_object).into_iter().flatten()
}

fn put_text(table: &mut Table, key: &'static str, value: &str) {
    if !value.is_empty() {
        table.push((key, json!(value.replace("${", "$${"))));
    }
}

/// Strings that had no templates keep having none.
fn escape(value: &Json) -> Json {
    match value {
        Json::String(text) => json!(text.replace("${", "$${")),
        Json::Array(items) => items.iter().map(escape).collect(),
        other => other.clone(),
    }
}

/// A name that could have been longer or differently spelled there.
fn slug(name: &str) -> String {
    if is_id(name) {
        return name.to_owned();
    }
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let slug: String = name.chars().map(plain).take(48).collect();
    slug.trim_matches('-').to_owned()
}

fn write_table(out: &mut String, table: &Table) {
    for (name, value) in table {
        out.push_str(&format!("{name} = {}\n", inline(value)));
    }
}

fn key(name: &str) -> String {
    if is_id(name) { name.to_owned() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A JSON value on one line of TOML; null has none and becomes an empty string.
fn inline(value: &Json) -> String {
    match value {
        Json::Null => "\"\"".to_owned(),
        Json::Bool(flag) => flag.to_string(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => {
            let pairs = map.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
