//! What commits say and follow, for looking back at a run.

use super::{Git, GitError};

/// A commit as it stands in the repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// What it holds.
    pub tree: String,
    /// What it follows.
    pub parents: Vec<String>,
    /// What it says; bytes that are no text are lost.
    pub message: String,
}

impl Git {
    /// Reads a commit; `None` when there is none of this name.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn commit_of(&self, name: &str) -> Result<Option<Commit>, GitError> {
        let Some(id) = self.resolve(name)? else { return Ok(None) };
        let raw = self.ask(&["cat-file", "commit", &id])?;
        let raw = String::from_utf8_lossy(&raw);
        let (head, message) = raw.split_once("\n\n").unwrap_or((&raw, ""));
        let of = |key: &'static str| head.lines().filter_map(move |line| line.strip_prefix(key)).map(str::to_owned);
        Ok(Some(Commit {
            tree: of("tree ").next().unwrap_or_default(),
            parents: of("parent ").collect(),
            message: message.to_owned(),
        }))
    }

    /// Commits from one to another along first parents, the first left out, oldest first.
    ///
    /// # Errors
    /// git is missing, or one of them does not exist.
    pub fn first_parents(&self, from: &str, to: &str) -> Result<Vec<String>, GitError> {
        let range = format!("{from}..{to}");
        let listed = self.ask(&["rev-list", "--first-parent", "--reverse", "--end-of-options", &range])?;
        Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
    }
}
