//! The files that a run is frozen from: read once, judged, and known by their hashes later.
//!
//! It does not know what is frozen of them.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::event::sha256_hex;
use crate::domain::workflow::{Definition, Faults, Inputs, Source, Texts, read};
use crate::error::{Code, Error, Next, Result};
use crate::os::layout::UserPlaces;
use crate::verbs::Ctx;

/// A file with the text that it had.
#[derive(Clone, Debug)]
pub struct Given {
    /// Where it stands.
    pub path: PathBuf,
    /// Its name as it is shown, and its text.
    pub source: Source,
}

/// What a workflow is read from.
#[derive(Clone, Debug)]
pub struct Files {
    /// The workflow.
    pub workflow: Given,
    /// The repository's configuration.
    pub config: Option<Given>,
    /// The user's own configuration.
    pub user: Option<Given>,
}

impl Files {
    /// Reads a workflow by name or path, and the configuration around it.
    pub fn read(ctx: &Ctx, workflow: &str) -> Result<Files> {
        let path = path_of(ctx, workflow);
        let text = std::fs::read_to_string(&path).map_err(|error| missing(ctx, workflow, &path, &error))?;
        let user = user_config().filter(|_| ctx.has_user_settings());
        Ok(Files {
            workflow: Given { source: Source { name: shown(ctx, &path), text }, path },
            config: given(ctx, ctx.layout().config())?,
            user: user.map(|path| given(ctx, path)).transpose()?.flatten(),
        })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Given> {
        std::iter::once(&self.workflow).chain(&self.config).chain(&self.user)
    }

    /// Validates them together, and by the repository around them.
    pub fn define(&self, ctx: &Ctx, constrained: bool) -> Result<Definition> {
        let inputs = Inputs {
            workflow: self.workflow.source.clone(),
            config: self.config.as_ref().map(|given| given.source.clone()),
            user: self.user.as_ref().map(|given| given.source.clone()),
            git: ctx.layout().repository().is_some(),
            constrained,
        };
        crate::verbs::workflow::fit(ctx, read(&inputs).map_err(invalid)?)
    }
}

/// Reads and validates a workflow by name or path, with the configuration around it.
pub fn load(ctx: &Ctx, workflow: &str) -> Result<Definition> {
    Files::read(ctx, workflow)?.define(ctx, false)
}

/// Where a workflow stands.
pub fn path_of(ctx: &Ctx, workflow: &str) -> PathBuf {
    if workflow.contains('/') || workflow.ends_with(".toml") {
        return PathBuf::from(workflow);
    }
    ctx.layout().workflows().join(format!("{workflow}.toml"))
}

/// The user's own configuration file.
pub fn user_config() -> Option<PathBuf> {
    UserPlaces::of(|name| std::env::var_os(name)).config
}

/// Reads a configuration file, if it exists.
pub fn source(ctx: &Ctx, path: &Path) -> Result<Option<Source>> {
    Ok(given(ctx, path.to_owned())?.map(|given| given.source))
}

fn given(ctx: &Ctx, path: PathBuf) -> Result<Option<Given>> {
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(Given { source: Source { name: shown(ctx, &path), text }, path })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::new(Code::InvalidConfig, format!("{} can't be read", path.display())).cause(error)),
    }
}

/// A path as it is shown: relative to the project, where it lies in it.
pub fn shown(ctx: &Ctx, path: &Path) -> String {
    path.strip_prefix(ctx.layout().project()).unwrap_or(path).display().to_string()
}

fn missing(ctx: &Ctx, workflow: &str, path: &Path, error: &std::io::Error) -> Error {
    let known: Vec<String> = std::fs::read_dir(ctx.layout().workflows())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.path().file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    let error = Error::new(Code::NotFound, format!("there is no workflow {workflow}"))
        .cause(format!("{}: {error}", path.display()));
    if known.is_empty() {
        return error.next(Next::new(
            "operator",
            "write a first one",
            &["striatum", "workflow", "generate", "review", "--output", ".striatum/workflows/review.toml"],
        ));
    }
    error.hint(format!("workflows here: {}", known.join(", ")))
}

/// Turns the faults of a file into one error that lists them all.
pub fn invalid(faults: Faults) -> Error {
    let code = if faults.is_not_yet() { Code::NotYet } else { Code::InvalidWorkflow };
    let count = faults.errors();
    let message = format!("{count} fault{} in the workflow or its configuration", if count == 1 { "" } else { "s" });
    faults.0.iter().fold(Error::new(code, message), |error, fault| error.cause(fault))
}

/// A file that a run was frozen from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Where it stands.
    pub file: PathBuf,
    /// sha256 of its text.
    pub sha256: String,
}

impl Origin {
    fn of(file: &Path, text: &str) -> Origin {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        Origin { file, sha256: sha256_hex(text.as_bytes()) }
    }

    /// Whether the file says something else now, or is gone.
    fn has_changed(&self) -> bool {
        std::fs::read(&self.file).map_or(true, |bytes| sha256_hex(&bytes) != self.sha256)
    }
}

/// The texts of prompts and roles below `.striatum/`; it remembers what it gave.
pub struct Folder {
    root: PathBuf,
    read: RefCell<Vec<Origin>>,
}

impl Folder {
    /// The texts of a store.
    pub fn new(root: &Path) -> Folder {
        Folder { root: root.to_owned(), read: RefCell::new(Vec::new()) }
    }

    /// Everything that a run is frozen from: files, prompts and roles.
    pub fn origins(self, files: &Files) -> Vec<Origin> {
        let mut origins: Vec<Origin> = files.all().map(|given| Origin::of(&given.path, &given.source.text)).collect();
        origins.extend(self.read.into_inner());
        origins.dedup();
        origins
    }
}

impl Texts for Folder {
    fn text(&self, path: &str) -> std::result::Result<String, String> {
        let path = self.root.join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        self.read.borrow_mut().push(Origin::of(&path, &text));
        Ok(text)
    }
}

/// A warning for each file that was changed after the run was frozen: such changes do nothing to it.
pub fn edited(ctx: &Ctx, run: &crate::store::run::Run) -> Result<Vec<String>> {
    let body = ctx.read(|read| Ok(crate::store::event::first_of_run(read, run.id)?))?;
    let body: serde_json::Value = serde_json::from_str(&body.unwrap_or_default()).unwrap_or_default();
    let origins = body.get("files").and_then(|files| Vec::<Origin>::deserialize(files).ok());
    let edited = origins.unwrap_or_default().into_iter().filter(Origin::has_changed);
    Ok(edited
        .map(|origin| {
            let file = shown(ctx, &origin.file);
            format!("{file} was changed after {} was prepared; this run keeps what it was prepared from", run.name)
        })
        .collect())
}
