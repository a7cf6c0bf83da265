//! `work publish`: a declared artifact is kept before the attempt is over.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::hold::{self, Credentials};
use crate::domain::event::EventType;
use crate::error::{Code, Error, Result};
use crate::store;
use crate::verbs::Ctx;
use crate::verbs::flow::tell;
use crate::verbs::settle::artifacts;

/// What `work publish` is asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishRequest {
    /// Who publishes.
    pub who: Credentials,
    /// The name in `produces`.
    pub name: String,
    /// Another path than the declared one, relative to the working directory.
    pub path: Option<PathBuf>,
}

/// What it tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishReport {
    /// The job.
    pub job: String,
    /// The artifact.
    pub name: String,
    /// Hash of its bytes.
    pub sha256: String,
    /// Size.
    pub bytes: i64,
    /// The same was published before.
    pub already: bool,
}

/// Keeps a file under its declared name; the same bytes again are a no-op, others are refused.
pub fn publish(ctx: &Ctx, request: &PublishRequest) -> Result<PublishReport> {
    let hold = ctx.read(|read| hold::hold(ctx, read, &request.who))?;
    let produce = hold.job.spec.produces.iter().find(|produce| produce.name == request.name).ok_or_else(|| {
        let known: Vec<&str> = hold.job.spec.produces.iter().map(|produce| produce.name.as_str()).collect();
        Error::new(Code::Usage, format!("{} does not produce {}", hold.job.name, request.name)).hint(
            if known.is_empty() {
                "it declares no artifacts".to_owned()
            } else {
                format!("it produces {}", known.join(", "))
            },
        )
    })?;
    let place = artifacts::Place::of(ctx, &hold)?;
    let path = request.path.clone().or_else(|| produce.path.as_ref().map(PathBuf::from)).ok_or_else(|| {
        Error::new(Code::Usage, format!("{} comes from standard output; it is kept when the agent exits", request.name))
    })?;
    let artifact = artifacts::keep(ctx, &place, produce, &path)?;
    crate::os::crash::point("publish.kept");
    ctx.write("work publish", |tx| {
        let hold = hold::hold(ctx, tx, &request.who)?;
        hold::touch(ctx, tx, &hold.run, hold.session.id)?;
        let before = store::artifact::find(tx, hold.job.id, hold.lease.attempt, &request.name)?;
        let already = match before {
            Some(before) if before.sha256 == artifact.sha256 => true,
            Some(before) => {
                return Err(Error::new(
                    Code::AlreadyAnswered,
                    format!("{} was published before with other bytes (sha256 {})", request.name, before.sha256),
                ));
            }
            None => {
                store::artifact::insert(tx, &artifact)?;
                let body = json!({"name": artifact.name, "sha256": artifact.sha256, "bytes": artifact.bytes,
                    "attempt": artifact.attempt});
                tell(tx, EventType::ArtifactPublished, &hold.job, &body)?;
                false
            }
        };
        Ok(PublishReport {
            job: hold.job.name,
            name: artifact.name.clone(),
            sha256: artifact.sha256.clone(),
            bytes: artifact.bytes,
            already,
        })
    })
}
