//! `striatum workflow ...`

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::call::Session;
use super::output::{Output, complain, next_text};
use crate::domain::graph::Format;
use crate::domain::workflow::generate::TEMPLATES;
use crate::error::{Code, Error, Next, Result};
use crate::verbs::trust::grant_written;
use crate::verbs::workflow::{
    GenerateRequest, GraphRequest, ImportRequest, ShowReport, ShowRequest, TextReport, ValidateReport, ValidateRequest,
    save,
};

/// Check, show, draw and write workflows
#[derive(Subcommand)]
#[command(defer = true)]
pub enum Workflow {
    /// Tell everything that is wrong with workflows and the configuration around them
    Validate(Validate),
    /// Show what a workflow says, and what follows from it
    Show(Show),
    /// Draw a workflow's jobs in the order in which they can run
    Graph(Graph),
    /// Write a workflow to start from
    Generate(Generate),
    /// Translate a JSON workflow of the daemon-based system
    Import(Import),
}

impl Workflow {
    /// Calls the verb and shows its report.
    pub fn run(self, session: &Session, output: &Output) -> Result<u8> {
        match self {
            Workflow::Validate(validate) => validate.run(session, output),
            Workflow::Show(show) => show.run(session, output),
            Workflow::Graph(graph) => graph.run(session, output),
            Workflow::Generate(generate) => generate.run(session, output),
            Workflow::Import(import) => import.run(session, output),
        }
    }
}

/// Which ones.
#[derive(Args)]
pub struct Validate {
    /// Names in .striatum/workflows, or paths with `/` or `.toml`; all of them when left out
    #[arg(value_name = "NAME or PATH")]
    workflows: Vec<String>,
}

impl Validate {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let workflows = self.workflows.into_iter().map(absolute).collect::<Result<_>>()?;
        let report = session.call(&ValidateRequest { workflows })?;
        output.report(&report, validated);
        Ok(0)
    }
}

fn validated(report: &ValidateReport) -> String {
    let mut text = String::new();
    for valid in &report.valid {
        let jobs = if valid.jobs == 1 { "1 job".to_owned() } else { format!("{} jobs", valid.jobs) };
        text.push_str(&format!("{}: valid, {jobs}\n", valid.file));
        for warning in &valid.warnings {
            text.push_str(&format!("{warning}\n"));
        }
    }
    text + &next_text(&report.next)
}

/// Which one, and how much of it.
#[derive(Args)]
pub struct Show {
    /// A name in .striatum/workflows, or a path with `/` or `.toml`
    #[arg(value_name = "NAME or PATH")]
    workflow: String,
    /// Also everything that a run would be frozen from: lanes, roles, limits and jobs with all that follows
    #[arg(long)]
    resolved: bool,
}

impl Show {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let request = ShowRequest { workflow: absolute(self.workflow)?, resolved: self.resolved };
        output.report(&session.call(&request)?, shown);
        Ok(0)
    }
}

fn shown(report: &ShowReport) -> String {
    let title = if report.title.is_empty() { String::new() } else { format!(": {}", report.title) };
    let mut text = format!("{}{title}\n{}\n\n{}", report.workflow, report.file, report.graph);
    if !report.params.is_empty() {
        text.push_str("\nparameters\n");
    }
    for param in &report.params {
        let value = match (&param.default, param.required) {
            (_, true) => "required".to_owned(),
            (Some(default), false) => format!("default {default:?}"),
            (None, false) => "default empty".to_owned(),
        };
        let about = if param.title.is_empty() { String::new() } else { format!("  {}", param.title) };
        text.push_str(&format!("  {}  {value}{about}\n", param.name));
    }
    for warning in &report.warnings {
        text.push_str(&format!("\n{warning}\n"));
    }
    if let Some(resolved) = &report.resolved {
        // Strings, numbers, lists and tables: all of it has a form in TOML.
        text.push_str(&format!("\n{}", toml::to_string_pretty(resolved).unwrap_or_default()));
    }
    text
}

/// How a graph is drawn.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Drawing {
    /// One line a job.
    #[default]
    Text,
    /// A mermaid flowchart.
    Mermaid,
    /// Graphviz.
    Dot,
}

/// Which one, and how.
#[derive(Args)]
pub struct Graph {
    /// A name in .striatum/workflows, or a path with `/` or `.toml`
    #[arg(value_name = "NAME or PATH")]
    workflow: String,
    /// How it is drawn
    #[arg(long, value_enum, default_value_t)]
    format: Drawing,
}

impl Graph {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let format = match self.format {
            Drawing::Text => Format::Text,
            Drawing::Mermaid => Format::Mermaid,
            Drawing::Dot => Format::Dot,
        };
        let report = session.call(&GraphRequest { workflow: absolute(self.workflow)?, format })?;
        output.report(&report, |report| report.drawing.clone());
        Ok(0)
    }
}

/// Which kind, and where to.
#[derive(Args)]
pub struct Generate {
    /// The kind of workflow
    #[arg(value_name = "KIND", value_parser = kinds())]
    kind: String,
    /// A new file to write it to; standard output when left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn kinds() -> PossibleValuesParser {
    let value = |(name, about)| clap::builder::PossibleValue::new(name).help(about);
    TEMPLATES.iter().map(|template| value((template.name, template.about))).collect::<Vec<_>>().into()
}

impl Generate {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let report = session.call(&GenerateRequest { kind: self.kind })?;
        let code = deliver(&report, self.output.clone(), output)?;
        if let Some(file) = self.output {
            grant_written(&session.ctx()?, &file, "workflow generate")?;
        }
        Ok(code)
    }
}

/// Which file, and where to.
#[derive(Args)]
pub struct Import {
    /// A workflow of schema striatum.workflow.v1 or v1.1
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A new file to write it to; standard output when left out
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Import {
    fn run(self, session: &Session, output: &Output) -> Result<u8> {
        let file = self.file.display().to_string();
        let text = std::fs::read_to_string(&self.file)
            .map_err(|error| Error::new(Code::NotFound, format!("{file} can't be read")).cause(error))?;
        let report = session.call(&ImportRequest { file, text })?;
        if !output.is_json() {
            report.warnings.iter().for_each(|warning| complain(&format!("{warning}\n")));
        }
        deliver(&report, self.output, output)
    }
}

/// A text to standard output, or into a new file.
fn deliver(report: &TextReport, file: Option<PathBuf>, output: &Output) -> Result<u8> {
    let Some(file) = file else {
        output.report(report, |report| report.text.clone());
        return Ok(0);
    };
    save(&file, &report.text)?;
    let file = file.display().to_string();
    let next = Next::new("anyone", "see whether it fits here", &["striatum", "workflow", "validate", &file]);
    let told = json!({ "written": file, "warnings": report.warnings, "next": [next] });
    output.report(&told, |_| format!("wrote {file}\n{}", next_text(&[next])));
    Ok(0)
}

/// A path means the same to whoever reads it: in a lane that is the helper.
fn absolute(workflow: String) -> Result<String> {
    if !workflow.contains('/') && !workflow.ends_with(".toml") {
        return Ok(workflow);
    }
    Ok(std::env::current_dir()?.join(workflow).display().to_string())
}
