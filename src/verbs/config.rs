//! `config show`, `config schema`: what holds, where it comes from, and what may be written.
//!
//! It reads configuration and changes none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ctx::Ctx;
use super::run::prepare::{invalid, load, source, user_config};
use crate::domain::contract;
use crate::domain::workflow::keys::{Level, json_schema};
use crate::domain::workflow::{Config, Setting, Source, read_config};
use crate::error::{Code, Error, Result};

/// What `config show` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShowRequest {
    /// Also what this workflow says, by name or path.
    pub workflow: Option<String>,
}

/// What `config show` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowReport {
    /// Every key with its value and origin, in the order of the reference.
    pub settings: Vec<Setting>,
    /// What is probably not meant.
    pub warnings: Vec<String>,
}

/// Shows every setting that holds.
pub fn show(ctx: &Ctx, request: &ShowRequest) -> Result<ShowReport> {
    let (settings, warnings) = match &request.workflow {
        Some(workflow) => {
            let definition = load(ctx, workflow)?;
            (definition.settings, definition.warnings)
        }
        None => {
            let (_, config) = configuration(ctx)?;
            (config.settings, config.warnings)
        }
    };
    Ok(ShowReport { settings, warnings: warnings.iter().map(ToString::to_string).collect() })
}

/// The repository's file of configuration, if there is one, and what holds with the user's below it.
///
/// # Errors
/// Every fault of both files.
pub fn configuration(ctx: &Ctx) -> Result<(Option<Source>, Config)> {
    let repository = source(ctx, &ctx.layout().config())?;
    let user = user_config().map(|path| source(ctx, &path)).transpose()?.flatten();
    let config = read_config(repository.as_ref(), user.as_ref()).map_err(|faults| {
        let count = faults.errors();
        let message = format!("{count} fault{} in the configuration", if count == 1 { "" } else { "s" });
        Error { code: Code::InvalidConfig, message, ..invalid(faults) }
    })?;
    Ok((repository, config))
}

/// The documents that have a schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schema {
    /// A workflow file.
    #[default]
    Workflow,
    /// `config.toml`.
    Config,
    /// An agent's answer.
    Result,
}

/// What `config schema` is asked.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct SchemaRequest {
    /// Which document.
    pub of: Schema,
}

/// Gives the JSON Schema of a document.
pub fn schema(_: &Ctx, request: &SchemaRequest) -> Result<Value> {
    Ok(match request.of {
        Schema::Workflow => json_schema(Level::Workflow),
        Schema::Config => json_schema(Level::Config),
        Schema::Result => contract::json_schema(),
    })
}
