//! What a commit would hold, and what git does around one: the index as it stands, the folder of hooks, the sign for
//! comments in messages.
//!
//! It writes nothing, and does not know who asks.

use std::path::PathBuf;

use super::{Git, GitError, path, paths};
use crate::domain::change::Change;

/// The folder that git looks for hooks in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HooksFolder {
    /// Absolute.
    pub path: PathBuf,
    /// Where `core.hooksPath` is set: `local`, `worktree`, `global`, `system`, `command`; none where it is not.
    pub set_in: Option<String>,
}

impl Git {
    /// How the index differs from a commit, path by path.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn staged(&self, from: &str) -> Result<Vec<Change>, GitError> {
        let args = ["diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", "--ignore-submodules=none"];
        self.raw(&[&args[..], &[from, "--"]].concat())
    }

    /// Every path of the index.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn indexed(&self) -> Result<Vec<PathBuf>, GitError> {
        Ok(paths(&self.ask(&["ls-files", "-z", "--cached", "--full-name", "--", ":/"])?).collect())
    }

    /// The folder in which git looks for the hooks of this work tree.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn hooks_folder(&self) -> Result<HooksFolder, GitError> {
        let asked = self.obedient(&["rev-parse", "--git-path", "hooks"])?;
        let set = self.obedient(&["config", "--show-scope", "--get", "core.hooksPath"]).ok();
        let set_in = set.and_then(|said| Some(String::from_utf8_lossy(&said).split_once('\t')?.0.to_owned()));
        let base = self.work_tree.as_ref().unwrap_or(&self.git_dir);
        let line = asked.strip_suffix(b"\n").unwrap_or(&asked);
        Ok(HooksFolder { path: base.join(path(line)), set_in })
    }

    /// The sign before comments in a message that is being edited.
    ///
    /// # Errors
    /// git is missing.
    pub fn comment_sign(&self) -> Result<Vec<u8>, GitError> {
        for key in ["core.commentString", "core.commentChar"] {
            let output = self.run(&["config", "--get", key])?;
            let sign = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
            if output.status.success() && !sign.is_empty() && sign != b"auto" {
                return Ok(sign.to_vec());
            }
        }
        Ok(b"#".to_vec())
    }
}
