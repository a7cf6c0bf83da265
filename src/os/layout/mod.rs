//! Where things lie: the paths below a store's folder, and finding that folder.
//!
//! It does not know what is in the files.

mod discover;
mod place;
mod repository;
mod user;

pub use discover::{Found, Search, discover};
pub use place::{LayoutError, unsuitable};
pub use repository::{LinkedTree, Repository};
pub use user::UserPlaces;

use std::path::{Path, PathBuf};

/// The folder's name in a work tree.
pub const FOLDER: &str = ".striatum";
/// The folder's name in a git directory that has no work tree of its own.
pub const FOLDER_IN_GIT: &str = "striatum";
/// The store's file.
pub const DATABASE: &str = "striatum.db";
/// The committed configuration.
pub const CONFIG: &str = "config.toml";

/// A store's folder and what surrounds it. All paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
    project: PathBuf,
    repository: Option<Repository>,
}

impl Layout {
    /// A layout from its parts, for those who know them already.
    pub fn new(root: PathBuf, project: PathBuf, repository: Option<Repository>) -> Self {
        Layout { root, project, repository }
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder that the work is about: the main work tree, or where `.striatum` lies. In a bare repository the
    /// git directory.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The git repository, if there is one.
    pub fn repository(&self) -> Option<&Repository> {
        self.repository.as_ref()
    }

    /// The store's file.
    pub fn db(&self) -> PathBuf {
        self.root.join(DATABASE)
    }

    /// The committed configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join(CONFIG)
    }

    /// The committed workflows.
    pub fn workflows(&self) -> PathBuf {
        self.root.join("workflows")
    }

    /// The committed prompts.
    pub fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }

    /// The committed roles.
    pub fn roles(&self) -> PathBuf {
        self.root.join("roles")
    }

    /// What git is told to ignore.
    pub fn gitignore(&self) -> PathBuf {
        self.root.join(".gitignore")
    }

    /// The folder of locks.
    pub fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    /// Guards every write to the store.
    pub fn write_lock(&self) -> PathBuf {
        self.locks().join("write.lock")
    }

    /// Guards what changes the repository.
    pub fn repo_lock(&self) -> PathBuf {
        self.locks().join("repo.lock")
    }

    /// Held by the driver of a run.
    pub fn drive_lock(&self, run: &str) -> PathBuf {
        self.locks().join(format!("drive-{run}.lock"))
    }

    /// The folder of all sessions' scratch.
    pub fn scratches(&self) -> PathBuf {
        self.root.join("scratch")
    }

    /// A session's own folder.
    pub fn scratch(&self, session: &str) -> Scratch {
        Scratch { folder: self.scratches().join(session) }
    }

    /// The folder of a run's worktrees.
    pub fn worktrees(&self, run: &str) -> PathBuf {
        self.root.join("worktrees").join(run)
    }

    /// The worktree of an attempt.
    pub fn worktree(&self, run: &str, job: &str, attempt: u32) -> PathBuf {
        self.worktrees(run).join(format!("{job}.{attempt}"))
    }

    /// The published artifacts, named by their SHA-256.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// A published artifact.
    pub fn artifact(&self, sha256: &str) -> PathBuf {
        self.artifacts().join(sha256)
    }

    /// The decisions' texts.
    pub fn decisions(&self) -> PathBuf {
        self.root.join("decisions")
    }

    /// A person's file that ends drivers and keeps anything from being launched.
    pub fn stop(&self) -> PathBuf {
        self.root.join("STOP")
    }
}

/// The folder of a session, 0700.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The session's token.
    pub fn token(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// The helper's socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("broker.sock")
    }

    /// Held by the helper.
    pub fn helper_lock(&self) -> PathBuf {
        self.folder.join("helper.lock")
    }

    /// Held by the helper and its agent.
    pub fn lane_lock(&self) -> PathBuf {
        self.folder.join("lane.lock")
    }

    /// The helper's own words.
    pub fn helper_log(&self) -> PathBuf {
        self.folder.join("helper.log")
    }

    /// The folder in front of an agent's `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.folder.join("bin")
    }

    /// The folder of one attempt.
    pub fn attempt(&self, job: &str, attempt: u32) -> Attempt {
        Attempt { folder: self.folder.join(format!("{job}.{attempt}")) }
    }
}

/// The folder of an attempt, 0700.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    folder: PathBuf,
}

impl Attempt {
    /// The folder itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the agent is told.
    pub fn packet(&self) -> PathBuf {
        self.folder.join("packet.json")
    }

    /// The same as prose.
    pub fn prompt(&self) -> PathBuf {
        self.folder.join("prompt.md")
    }

    /// Where a plain command puts its answer.
    pub fn result(&self) -> PathBuf {
        self.folder.join("result.json")
    }

    /// What the agent prints.
    pub fn output(&self) -> PathBuf {
        self.folder.join("output.log")
    }

    /// Artifacts to read.
    pub fn inputs(&self) -> PathBuf {
        self.folder.join("inputs")
    }

    /// Where a job without a tree works.
    pub fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// The agent's TMPDIR.
    pub fn tmp(&self) -> PathBuf {
        self.folder.join("tmp")
    }
}
