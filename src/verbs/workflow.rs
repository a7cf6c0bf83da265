//! `workflow validate`, `show`, `graph`, `generate`, `import`: looking at workflows before any run.
//!
//! Nothing here needs a database, and nothing here runs a command that a workflow names.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ctx::Ctx;
use super::run::prepare::{invalid, load};
use crate::domain::frozen::{JobSpec, RunSpec};
use crate::domain::graph::{Format, Node, render};
use crate::domain::workflow::Definition;
use crate::domain::workflow::generate::{TEMPLATES, generate as template};
use crate::domain::workflow::import::{self as translation, Imported};
use crate::error::{Code, Error, Next, Result};
use crate::os::git::Git;

/// What `workflow validate` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ValidateRequest {
    /// Names below `workflows/`, or paths; every workflow of the store when there are none.
    pub workflows: Vec<String>,
}

/// A workflow that is valid.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Valid {
    /// The file as it is shown.
    pub file: String,
    /// The workflow's id.
    pub workflow: String,
    /// How many jobs it has.
    pub jobs: usize,
    /// What is probably not meant.
    pub warnings: Vec<String>,
}

/// What `workflow validate` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ValidateReport {
    /// In the order asked for.
    pub valid: Vec<Valid>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Reads workflows with the configuration around them; every fault of every file is in the error.
pub fn validate(ctx: &Ctx, request: &ValidateRequest) -> Result<ValidateReport> {
    let names = if request.workflows.is_empty() { all(ctx)? } else { request.workflows.clone() };
    let mut valid = Vec::new();
    let mut refusals: Vec<Error> = Vec::new();
    let mut next = None;
    for name in &names {
        match load(ctx, name) {
            Ok(definition) => {
                next.get_or_insert_with(|| go(name, &definition));
                valid.push(Valid {
                    jobs: definition.jobs.len(),
                    warnings: definition.warnings.iter().map(ToString::to_string).collect(),
                    workflow: definition.run.workflow,
                    file: definition.file,
                });
            }
            Err(error) => refusals.push(error),
        }
    }
    if let Some(error) = together(refusals) {
        return Err(error);
    }
    Ok(ValidateReport { valid, next: next.into_iter().collect() })
}

/// The command that runs a workflow, with a place for each value that it must be given.
fn go(name: &str, definition: &Definition) -> Next {
    let mut argv: Vec<String> = ["striatum", "run", "go", "-w", name].map(str::to_owned).into();
    for (param, _) in definition.params.iter().filter(|(_, param)| param.required) {
        match param.as_str() {
            "task" => argv.extend(["--task".to_owned(), "..".to_owned()]),
            param => argv.extend(["--param".to_owned(), format!("{param}=..")]),
        }
    }
    let why = "prepare, start and drive a run of it".to_owned();
    Next { argv, why, who: "operator".to_owned() }
}

/// What `workflow show` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ShowRequest {
    /// A name below `workflows/`, or a path.
    pub workflow: String,
    /// Also everything that a run would be frozen from.
    pub resolved: bool,
}

/// A parameter as it is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShownParam {
    /// Its name.
    pub name: String,
    /// A value must be given.
    pub required: bool,
    /// The value otherwise.
    pub default: Option<String>,
    /// What it is for; empty when nobody says.
    pub title: String,
}

/// Everything that a run would be frozen from, parameters without values.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Resolved {
    /// What is said once a run.
    pub run: RunSpec,
    /// The jobs.
    pub jobs: Vec<JobSpec>,
}

/// What `workflow show` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowReport {
    /// The file as it is shown.
    pub file: String,
    /// The workflow's id.
    pub workflow: String,
    /// A sentence for people.
    pub title: String,
    /// Its parameters.
    pub params: Vec<ShownParam>,
    /// The graph as text.
    pub graph: String,
    /// What is probably not meant.
    pub warnings: Vec<String>,
    /// With `resolved`.
    pub resolved: Option<Resolved>,
}

/// Shows what a workflow says, and with `resolved` what follows from it.
pub fn show(ctx: &Ctx, request: &ShowRequest) -> Result<ShowReport> {
    let definition = load(ctx, &request.workflow)?;
    let params = definition.params.iter().map(|(name, param)| ShownParam {
        name: name.clone(),
        required: param.required,
        default: param.default.clone(),
        title: param.title.clone(),
    });
    Ok(ShowReport {
        params: params.collect(),
        graph: render(&nodes(&definition), Format::Text),
        warnings: definition.warnings.iter().map(ToString::to_string).collect(),
        workflow: definition.run.workflow.clone(),
        title: definition.run.title.clone(),
        file: definition.file,
        resolved: request.resolved.then_some(Resolved { run: definition.run, jobs: definition.jobs }),
    })
}

/// What `workflow graph` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GraphRequest {
    /// A name below `workflows/`, or a path.
    pub workflow: String,
    /// How it is drawn.
    pub format: Format,
}

/// A node as it is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShownNode {
    /// The job.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: crate::domain::frozen::JobType,
    /// What comes before it.
    pub needs: Vec<String>,
    /// What it may send back.
    pub reviews: Option<String>,
}

/// What `workflow graph` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GraphReport {
    /// The workflow's id.
    pub workflow: String,
    /// The jobs.
    pub nodes: Vec<ShownNode>,
    /// The drawing.
    pub drawing: String,
}

/// Draws the graph of a workflow.
pub fn graph(ctx: &Ctx, request: &GraphRequest) -> Result<GraphReport> {
    let definition = load(ctx, &request.workflow)?;
    let nodes = nodes(&definition);
    let drawing = render(&nodes, request.format);
    let shown = |node: Node| ShownNode { id: node.id, kind: node.kind, needs: node.needs, reviews: node.reviews };
    Ok(GraphReport { workflow: definition.run.workflow, nodes: nodes.into_iter().map(shown).collect(), drawing })
}

/// What `workflow generate` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GenerateRequest {
    /// The kind; the error for another one lists them.
    pub kind: String,
}

/// What `workflow import` is asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ImportRequest {
    /// The file's name as it is shown.
    pub file: String,
    /// A workflow of the daemon-based system.
    pub text: String,
}

/// A workflow as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TextReport {
    /// TOML.
    pub text: String,
    /// What has no meaning here.
    pub warnings: Vec<String>,
}

/// Gives a workflow to start from.
pub fn generate(_: &Ctx, request: &GenerateRequest) -> Result<TextReport> {
    let text = template(&request.kind).ok_or_else(|| unknown_kind(&request.kind))?;
    Ok(TextReport { text, warnings: Vec::new() })
}

/// Translates a workflow of the daemon-based system.
pub fn import(_: &Ctx, request: &ImportRequest) -> Result<TextReport> {
    let Imported { text, warnings } = translation::import(&request.file, &request.text).map_err(invalid)?;
    Ok(TextReport { text, warnings: warnings.iter().map(ToString::to_string).collect() })
}

/// Writes a text to a new file, as this process and never for another; a file that exists is somebody's work.
pub fn save(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::File::create_new(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Error::new(Code::Usage, format!("{} exists already", path.display())).hint("name another file, or move it")
        }
        _ => Error::from(error),
    })?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// What nobody who is held to folders may write: the store, the principal checkout, git's directory.
pub fn kept(ctx: &Ctx) -> Vec<PathBuf> {
    let layout = ctx.layout();
    let mut kept = vec![layout.root().to_owned(), layout.project().to_owned()];
    kept.extend(layout.repository().map(|repository| repository.common_dir.clone()));
    kept
}

/// Judges a definition by the repository around it: write paths that reach what no lane may, globs that match nothing
/// tracked.
pub fn fit(ctx: &Ctx, mut definition: Definition) -> Result<Definition> {
    let (layout, kept) = (ctx.layout(), kept(ctx));
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    // A folder that is a link counts as what it leads to; one that is not there yet counts as written.
    let resolve = |folder: &str| {
        let path = folder.strip_prefix("~/").map_or_else(|| PathBuf::from(folder), |below| home.join(below));
        path.canonicalize().unwrap_or(path)
    };
    definition.check_write_paths(&resolve, &kept).map_err(invalid)?;
    let has_scopes = definition.jobs.iter().any(|job| !job.writes.is_empty());
    let listed = Git::of(layout).filter(|_| has_scopes).and_then(|git| git.ask(&["ls-files", "-z"]).ok());
    // Without git, or before the first file, there is nothing to compare with.
    if let Some(listed) = listed.filter(|listed| !listed.is_empty()) {
        let listed = String::from_utf8_lossy(&listed);
        let paths: Vec<&Path> = listed.split('\0').filter(|path| !path.is_empty()).map(Path::new).collect();
        definition.warn_of_unmatched(&paths);
    }
    Ok(definition)
}

fn nodes(definition: &Definition) -> Vec<Node> {
    definition.jobs.iter().map(Node::of).collect()
}

/// The names of every workflow of the store.
fn all(ctx: &Ctx) -> Result<Vec<String>> {
    let folder = ctx.layout().workflows();
    let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    if names.is_empty() {
        return Err(Error::new(Code::NotFound, format!("no workflow stands in {}", folder.display())).next(Next::new(
            "operator",
            "write a first one",
            &["striatum", "workflow", "generate", "review", "--output", ".striatum/workflows/review.toml"],
        )));
    }
    Ok(names)
}

/// One error of several.
fn together(refusals: Vec<Error>) -> Option<Error> {
    let count = refusals.len();
    let mut refusals = refusals.into_iter();
    let first = refusals.next()?;
    if count == 1 {
        return Some(first);
    }
    let mut all = Error::new(first.code, format!("{count} workflows can't be used"));
    for refusal in std::iter::once(first).chain(refusals) {
        all.causes.extend(refusal.causes);
        all.hints.extend(refusal.hints);
    }
    // The faults of a configuration that several workflows share are told once.
    let mut told = std::collections::BTreeSet::new();
    all.causes.retain(|cause| told.insert(cause.clone()));
    Some(all)
}

fn unknown_kind(kind: &str) -> Error {
    let kinds = TEMPLATES.iter().map(|template| format!("{}: {}", template.name, template.about));
    let names = TEMPLATES.iter().map(|template| template.name);
    let error = Error::new(Code::NotFound, format!("no workflow of the kind `{kind}` can be generated"));
    let error = kinds.fold(error, Error::hint);
    match crate::domain::workflow::keys::nearest(kind, names) {
        Some(nearest) => {
            error.next(Next::new("anyone", "the nearest kind", &["striatum", "workflow", "generate", nearest]))
        }
        None => error,
    }
}
