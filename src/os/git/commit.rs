//! Commits and references, made without a checkout.

use super::{Git, GitError};

/// Whom a commit names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// For people.
    pub name: String,
    /// An address, real or not.
    pub email: String,
}

/// A commit to be made. The same parts give the same commit, whenever it is made.
pub struct NewCommit<'a> {
    /// What it holds.
    pub tree: &'a str,
    /// What it follows.
    pub parents: &'a [&'a str],
    /// What it says.
    pub message: &'a str,
    /// Who wrote and committed it.
    pub author: &'a Author,
    /// Seconds since 1970, UTC.
    pub at: i64,
}

impl Git {
    /// Makes a commit object; nothing points to it yet.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn commit(&self, new: &NewCommit<'_>) -> Result<String, GitError> {
        let date = format!("@{} +0000", new.at);
        let mut args = vec!["commit-tree", "--no-gpg-sign", new.tree, "-F", "-"];
        args.extend(new.parents.iter().flat_map(|parent| ["-p", parent]));
        let mut words = Vec::new();
        for kind in ["AUTHOR", "COMMITTER"] {
            words.push((format!("GIT_{kind}_NAME"), new.author.name.as_str()));
            words.push((format!("GIT_{kind}_EMAIL"), new.author.email.as_str()));
            words.push((format!("GIT_{kind}_DATE"), date.as_str()));
        }
        let said = self.ask_named(&args, new.message.as_bytes(), &words)?;
        Ok(String::from_utf8_lossy(&said).trim().to_owned())
    }

    /// The commit that a name means; `None` when there is none.
    ///
    /// # Errors
    /// git is missing.
    pub fn resolve(&self, name: &str) -> Result<Option<String>, GitError> {
        let wanted = format!("{name}^{{commit}}");
        let output = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted])?;
        let found = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !found.is_empty()).then_some(found))
    }

    /// Whether there is a reference of exactly this full name.
    ///
    /// # Errors
    /// git is missing.
    pub fn has_ref(&self, name: &str) -> Result<bool, GitError> {
        Ok(self.run(&["show-ref", "--verify", "--quiet", name])?.status.success())
    }

    /// The tree of a commit.
    ///
    /// # Errors
    /// git is missing, or there is no such commit.
    pub fn tree_of(&self, commit: &str) -> Result<String, GitError> {
        self.ask_line(&["rev-parse", "--verify", "--end-of-options", &format!("{commit}^{{tree}}")])
    }

    /// Moves a reference, if it is where the caller saw it (`None`: not there).
    ///
    /// # Errors
    /// git is missing, or somebody else moved it.
    pub fn move_ref(&self, name: &str, from: Option<&str>, to: &str) -> Result<(), GitError> {
        let absent = "0".repeat(to.len());
        let from = from.unwrap_or(&absent);
        self.ask(&["update-ref", "--no-deref", "-m", "striatum", name, to, from]).map(|_| ())
    }

    /// Removes a reference that is where the caller saw it.
    ///
    /// # Errors
    /// git is missing, or somebody else moved it.
    pub fn remove_ref(&self, name: &str, from: &str) -> Result<(), GitError> {
        self.ask(&["update-ref", "--no-deref", "-d", name, from]).map(|_| ())
    }

    /// Whether one commit is, or lies behind, another.
    ///
    /// # Errors
    /// git is missing, or one of them does not exist.
    pub fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool, GitError> {
        let args = ["merge-base", "--is-ancestor", older, newer];
        let output = self.run(&args)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(super::failed(&args, &output)),
        }
    }

    /// Every reference below a prefix, by full name.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn references(&self, prefix: &str) -> Result<Vec<String>, GitError> {
        let listed = self.ask(&["for-each-ref", "--format=%(refname)", prefix])?;
        Ok(String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect())
    }
}
