//! `striatum config ...`

use clap::{Args, Subcommand, ValueEnum};

use super::call::Session;
use super::output::Output;
use crate::domain::workflow::Setting;
use crate::error::Result;
use crate::verbs::config::{Schema, SchemaRequest, ShowReport, ShowRequest};

/// What holds here, where it comes from, and what may be written
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Config {
    /// Every setting of repository and user together
    Show(Show),
    /// The JSON Schema of a workflow file, of config.toml, or of an agent's answer
    Schema(SchemaOf),
}

impl Config {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Config::Show(show) => show.run(session, output),
            Config::Schema(schema) => schema.run(session, output),
        }
    }
}

/// How much is shown.
#[derive(Args)]
pub struct Show {
    /// Also where each value comes from
    #[arg(long)]
    origin: bool,
    /// Only what a file sets
    #[arg(long)]
    set: bool,
    /// With what this workflow says on top
    #[arg(short, long, value_name = "NAME or PATH")]
    workflow: Option<String>,
}

impl Show {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let mut report = session.call(&ShowRequest { workflow: self.workflow })?;
        if self.set {
            report.settings.retain(|setting| setting.is_set);
        }
        output.report(&report, |report| shown(report, self.origin));
        Ok(0)
    }
}

fn shown(report: &ShowReport, with_origin: bool) -> String {
    let lines: Vec<(String, &Setting)> = report.settings.iter().map(|setting| (line(setting), setting)).collect();
    // A few long commands must not push every origin to the far right.
    let width = lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= 60).max().unwrap_or(0);
    let mut text = String::new();
    for (line, setting) in &lines {
        let shown = if with_origin { format!("{line:width$}  # {}", setting.origin) } else { line.clone() };
        text.push_str(&format!("{shown}\n"));
    }
    for warning in &report.warnings {
        text.push_str(&format!("{warning}\n"));
    }
    text
}

/// A setting as TOML; one without a value as a comment.
fn line(setting: &Setting) -> String {
    match toml::Value::try_from(&setting.value) {
        Ok(value) if !setting.value.is_null() => format!("{} = {value}", setting.key),
        _ => format!("# {} is not set", setting.key),
    }
}

/// A document that has a schema.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Document {
    /// A workflow file.
    #[default]
    Workflow,
    /// config.toml.
    Config,
    /// An agent's answer.
    Result,
}

/// Which document.
#[derive(Args)]
pub struct SchemaOf {
    /// The document
    #[arg(value_enum, default_value_t)]
    of: Document,
}

impl SchemaOf {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let of = match self.of {
            Document::Workflow => Schema::Workflow,
            Document::Config => Schema::Config,
            Document::Result => Schema::Result,
        };
        let schema = session.call(&SchemaRequest { of })?;
        output.report(&schema, |schema| format!("{schema:#}"));
        Ok(0)
    }
}
