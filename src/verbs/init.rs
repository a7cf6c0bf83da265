//! `init`: everything that a first run needs, in this repository; nothing that is there is touched.
//!
//! It says what it made, what it found, and what it chose. It runs no agent and asks nothing.

mod agents;
mod texts;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::domain::workflow::generate::generate;
use crate::error::{Code, Error, Next, Result};
use crate::os::files;
use crate::os::git::{Git, GitError};
use crate::os::layout::{FOLDER, Layout};
use crate::verbs::run::files::shown;
use crate::verbs::{Ctx, trust};
pub use agents::Agent;

/// The first workflow; its lanes are scripts, so that it runs before any agent is set up.
const FIRST: &str = "review";

/// What `init` is asked: nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct InitRequest {}

/// What git there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GitHere {
    /// A repository with a work tree.
    WorkTree,
    /// A repository without one.
    Bare,
    /// None.
    None,
}

/// What `init` tells.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct InitReport {
    /// The store's folder.
    pub root: PathBuf,
    /// What its runs are about.
    pub project: PathBuf,
    /// What git there is.
    pub git: GitHere,
    /// What was made.
    pub made: Vec<String>,
    /// What stood there before and was left alone.
    pub kept: Vec<String>,
    /// Agents that were found on the PATH.
    pub agents: Vec<Agent>,
    /// The lane that would write.
    pub author: Option<String>,
    /// The lane that would judge.
    pub reviewer: Option<String>,
    /// What else is worth knowing.
    pub notes: Vec<String>,
    /// What to do next.
    pub next: Vec<Next>,
}

/// Sets up a store.
pub fn init(ctx: &Ctx, _: &InitRequest) -> Result<InitReport> {
    let layout = ctx.layout();
    check_place(layout)?;
    let found = agents::find();
    let mut work = Work { ctx, made: Vec::new(), kept: Vec::new() };
    for folder in [layout.root(), &layout.workflows(), &layout.prompts(), &layout.roles()] {
        work.folder(folder)?;
    }
    work.file(&layout.gitignore(), texts::GITIGNORE)?;
    work.file(&layout.config(), &texts::config(&found))?;
    if !has_workflow(&layout.workflows()) {
        work.file(&layout.workflows().join(format!("{FIRST}.toml")), &generate(FIRST).unwrap_or_default())?;
    }
    work.store()?;
    let lanes: Vec<&str> = found.iter().filter_map(|agent| agent.lane.as_deref()).collect();
    let mut report = InitReport {
        root: layout.root().to_owned(),
        project: layout.project().to_owned(),
        git: git_here(layout),
        author: lanes.first().map(|lane| (*lane).to_owned()),
        reviewer: lanes.get(1).or(lanes.first()).map(|lane| (*lane).to_owned()),
        made: work.made,
        kept: work.kept,
        agents: found,
        notes: Vec::new(),
        next: Vec::new(),
    };
    report.notes = notes(layout, &report);
    report.next = next(ctx)?;
    Ok(report)
}

/// A place that is about everything is about nothing.
fn check_place(layout: &Layout) -> Result<()> {
    let refuse = |what: &str| {
        Error::new(Code::StoreUnsafe, format!("{} is {what}", layout.project().display()))
            .hint("go into the folder of a project, or name a store's folder with --dir")
    };
    let home = std::env::var_os("HOME").and_then(|home| PathBuf::from(home).canonicalize().ok());
    match layout.repository() {
        Some(_) => Ok(()),
        None if layout.project() == Path::new("/") => Err(refuse("the root of the file system")),
        None if home.as_deref() == Some(layout.project()) => Err(refuse("your home, and no repository")),
        None => Ok(()),
    }
}

fn git_here(layout: &Layout) -> GitHere {
    match layout.repository() {
        None => GitHere::None,
        Some(repository) if repository.work_tree.is_some() => GitHere::WorkTree,
        Some(_) => GitHere::Bare,
    }
}

fn has_workflow(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|word| word == "toml" || word == "json"))
}

/// What was done so far.
struct Work<'a> {
    ctx: &'a Ctx,
    made: Vec<String>,
    kept: Vec<String>,
}

impl Work<'_> {
    fn folder(&mut self, path: &Path) -> Result<()> {
        let is_new = files::create_dir(path)?;
        self.note(is_new, format!("{}/", shown(self.ctx, path)));
        Ok(())
    }

    /// Writes a file that is not there yet, and trusts it.
    fn file(&mut self, path: &Path, text: &str) -> Result<()> {
        let is_new = files::write_new(path, text.as_bytes())?;
        let is_read = path.extension().is_some_and(|word| word == "toml");
        if is_new && is_read {
            trust::grant_written(self.ctx, path, "init")?;
        }
        self.note(is_new, shown(self.ctx, path));
        Ok(())
    }

    fn store(&mut self) -> Result<()> {
        let is_new = !self.ctx.has_store();
        if is_new {
            self.ctx.create_store()?;
        }
        self.note(is_new, shown(self.ctx, &self.ctx.layout().db()));
        Ok(())
    }

    fn note(&mut self, is_new: bool, name: String) {
        if is_new { self.made.push(name) } else { self.kept.push(name) }
    }
}

fn notes(layout: &Layout, report: &InitReport) -> Vec<String> {
    let mut notes = Vec::new();
    let root = layout.root().display();
    match report.git {
        GitHere::None => {
            notes.push(
                "there is no git here: jobs work in folders of their own; work trees and landing need git".into(),
            );
        }
        GitHere::Bare => notes.push(format!("this repository has no work tree: its store is {root}")),
        GitHere::WorkTree if layout.root() != layout.project().join(FOLDER) => {
            notes.push(format!("the git directory is apart from the work tree: the store is {root}, beside it"));
        }
        GitHere::WorkTree if !is_ignored(layout) => {
            notes.push(format!(
                "git does not ignore {}: take over what `{FOLDER}/.gitignore` should say:\n{}",
                layout.db().display(),
                texts::GITIGNORE
            ));
        }
        GitHere::WorkTree => {}
    }
    if report.author.is_some() && report.author == report.reviewer {
        notes.push("author and reviewer would be the same agent: a second one judges more independently".into());
    }
    notes
}

/// Whether git leaves the database alone; without git nobody can tell.
fn is_ignored(layout: &Layout) -> bool {
    let Some(git) = Git::of(layout) else { return true };
    let db = layout.db().display().to_string();
    !matches!(git.ask(&["check-ignore", "--quiet", "--no-index", "--", &db]), Err(GitError::Failed { .. }))
}

fn next(ctx: &Ctx) -> Result<Vec<Next>> {
    let mut next = Vec::new();
    let untrusted = trust::show(ctx, &trust::ShowRequest::default())?.next;
    if !untrusted.is_empty() {
        next.push(Next::new("anyone", "read what the files here would run", &["striatum", "trust", "--show"]));
    }
    next.extend(untrusted);
    if ctx.layout().workflows().join(format!("{FIRST}.toml")).exists() {
        next.insert(0, Next::new("operator", "see it work", &["striatum", "run", "go", "-w", FIRST]));
    }
    next.truncate(3);
    Ok(next)
}
