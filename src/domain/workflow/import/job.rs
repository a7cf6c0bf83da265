//! One job of the old format: its scope by prefixes, its artifacts, its edges and cycle.

use serde_json::{Map, Value as Json, json};

use super::{Edges, Import, Table, array, put_text, text};

const KNOWN: &[&str] = &[
    "id",
    "type",
    "title",
    "role_id",
    "lane_id",
    "objective",
    "task_prompt",
    "write_scope",
    "expected_artifacts",
    // A review is fresh here without being told.
    "fresh_session_required",
    "reviewer_context_policy",
    "shared_resources",
    "capability_requirements",
    "max_attempts",
];

impl Import {
    pub(super) fn job(&mut self, job: &Json, edges: &Edges) -> Table {
        let id = text(job, "id");
        let path = format!("jobs.{id}");
        self.ignore_rest(&path, job, KNOWN);
        let kind = self.kind(&path, text(job, "type"));
        let mut table = vec![("id", json!(id))];
        if kind != "generic" && kind != "review" {
            table.push(("type", json!(kind)));
        }
        put_text(&mut table, "title", text(job, "title"));
        put_text(&mut table, "role", text(job, "role_id"));
        put_text(&mut table, "lane", text(job, "lane_id"));
        edges_of(id, kind, edges, &mut table);
        put_text(&mut table, "objective", text(job, "objective"));
        let prompt = job.pointer("/task_prompt/path").and_then(Json::as_str).unwrap_or_default();
        if let Some(prompt) = self.file_below_store(&format!("{path}.task_prompt.path"), prompt) {
            table.push(("prompt", json!(prompt)));
        }
        self.scope(&path, job, edges, &mut table);
        self.artifacts(&path, job, &mut table);
        self.limits(&path, job, &mut table);
        table
    }

    fn kind(&mut self, path: &str, kind: &str) -> &'static str {
        match kind {
            "draft" => "draft",
            "build" => "build",
            "test" => "test",
            "review" => "review",
            "synthesis" | "phase_synthesis" => "synthesis",
            "generic" | "" => "generic",
            _ => {
                self.ignore(&format!("{path}.type"), "the job is generic");
                "generic"
            }
        }
    }

    fn scope(&mut self, path: &str, job: &Json, edges: &Edges, table: &mut Table) {
        let Some(scope) = job.get("write_scope") else { return };
        let known = ["mode", "repo_write", "allowed_paths", "forbidden_paths"];
        self.ignore_rest(&format!("{path}.write_scope"), scope, &known);
        let globs = |key: &str| array(scope, key).iter().filter_map(Json::as_str).map(glob).collect::<Vec<_>>();
        let may_write = scope.get("repo_write").and_then(Json::as_bool).unwrap_or(text(scope, "mode") == "repo_write");
        if !may_write {
            return;
        }
        table.push(("writes", json!(globs("allowed_paths"))));
        let forbidden = globs("forbidden_paths");
        if !forbidden.is_empty() {
            table.push(("forbids", json!(forbidden)));
        }
        if !edges.disjoint {
            table.push(("allow_overlap", json!(true)));
        }
    }

    fn artifacts(&mut self, path: &str, job: &Json, table: &mut Table) {
        let mut produces = Vec::new();
        for artifact in array(job, "expected_artifacts") {
            let name = super::slug(text(artifact, "logical_name"));
            let known = ["logical_name", "kind", "path", "required"];
            self.ignore_rest(&format!("{path}.expected_artifacts.{name}"), artifact, &known);
            let mut entry = Map::new();
            entry.insert("name".to_owned(), json!(name));
            entry.insert("path".to_owned(), json!(text(artifact, "path")));
            for key in ["kind", "required"] {
                entry.extend(artifact.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            produces.push(Json::Object(entry));
        }
        if !produces.is_empty() {
            table.push(("produces", json!(produces)));
        }
    }

    fn limits(&mut self, path: &str, job: &Json, table: &mut Table) {
        if let Some(count) = job.get("max_attempts").and_then(Json::as_u64).filter(|count| *count > 0) {
            table.push(("max_strikes", json!(count)));
        }
        let resources = array(job, "shared_resources").iter().filter_map(Json::as_str);
        let resources: Vec<String> = resources.map(super::slug).collect();
        if !resources.is_empty() {
            table.push(("shared", json!(resources)));
        }
        for capability in array(job, "capability_requirements").iter().filter_map(Json::as_str) {
            match capability {
                "process_execution" => table.push(("process_execution", json!(true))),
                capability => self.ignore(&format!("{path}.capability_requirements.{capability}"), "it is left out"),
            }
        }
    }
}

/// A review names its subject: where a cycle sends it back, or else what it comes after.
fn edges_of(id: &str, kind: &str, edges: &Edges, table: &mut Table) {
    let mut needs = edges.needs.get(id).cloned().unwrap_or_default();
    if kind == "review" {
        let comes_after = || needs.iter().find(|need| !edges.reviews.contains(need)).cloned().map(|need| (need, 0));
        match edges.cycles.get(id).cloned().or_else(comes_after) {
            Some((subject, revisions)) => {
                needs.retain(|need| *need != subject);
                table.push(("reviews", json!(subject)));
                table.push(("revisions", json!(revisions)));
            }
            None => table.push(("type", json!("review"))),
        }
    }
    if !needs.is_empty() {
        table.push(("needs", json!(needs)));
    }
}

/// A path prefix of the old format as a pattern of this one; glob characters were literal there.
fn glob(prefix: &str) -> String {
    let prefix = prefix.trim_start_matches("./");
    match prefix {
        "" | "." => "**".to_owned(),
        // Validation there let patterns through that never matched; what was meant is plain.
        prefix => prefix.trim_end_matches("/**").to_owned(),
    }
}
