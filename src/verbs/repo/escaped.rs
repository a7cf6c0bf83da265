//! What an escape let into a tree: the seal, `scope-check` and the hooks let it pass too, exactly as it was written.
//!
//! It is asked only where something is refused.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use crate::domain::change::Refused;
use crate::domain::event::EventType;
use crate::domain::path::shown;
use crate::error::Result;
use crate::os::files;
use crate::store;
use crate::store::job::Job;
use crate::verbs::Ctx;

/// Leaves out what an escape let in and what is still as it was written then.
pub fn without(ctx: &Ctx, job: &Job, folder: &Path, refused: Vec<Refused>) -> Result<Vec<Refused>> {
    if !refused.iter().any(super::is_openable) {
        return Ok(refused);
    }
    let let_in = let_in(ctx, job)?;
    let is_as_written = |one: &Refused| {
        let Some(written) = let_in.get(&shown(&one.path)) else { return false };
        match written {
            Some(sha256) => files::sha256_of_path(&folder.join(&one.path)).is_ok_and(|found| found.0 == *sha256),
            None => folder.join(&one.path).symlink_metadata().is_err(),
        }
    };
    Ok(refused.into_iter().filter(|one| !(super::is_openable(one) && is_as_written(one))).collect())
}

/// Paths that an escape let in, with the newest hash of each; none where the file was taken away.
fn let_in(ctx: &Ctx, job: &Job) -> Result<HashMap<String, Option<String>>> {
    let kinds = [EventType::RepoWritten, EventType::RepoPatched];
    let bodies = ctx.read(|read| Ok(store::event::bodies_of_job(read, job.id, kinds)?))?;
    let mut let_in = HashMap::new();
    for body in bodies.iter().filter_map(|body| serde_json::from_str::<Value>(body).ok()) {
        let files = body.get("files").and_then(Value::as_array).cloned().unwrap_or_else(|| vec![body.clone()]);
        let is_escaped = body.get("decision").is_some_and(|decision| !decision.is_null());
        for file in files {
            let Some(path) = file.get("path").and_then(Value::as_str) else { continue };
            // A later write that needed no escape says nothing about what one let in.
            if is_escaped {
                let_in.insert(path.to_owned(), file.get("after").and_then(Value::as_str).map(str::to_owned));
            }
        }
    }
    Ok(let_in)
}
