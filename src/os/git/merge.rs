//! Merging two commits without a checkout.
//!
//! Renames are not followed: a change stays at the path where its author's scope was checked. Merge drivers that the
//! configuration names do not run; what they would have merged is a conflict.

use std::path::PathBuf;

use super::{Git, GitError, failed, path};

/// What merging came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// A tree with both changes.
    Clean {
        /// Its name.
        tree: String,
    },
    /// Both changed the same place.
    Conflict {
        /// A tree in which the places are marked.
        tree: String,
        /// The paths.
        paths: Vec<PathBuf>,
    },
}

impl Git {
    /// Merges two commits that share history.
    ///
    /// # Errors
    /// git is missing, too old, or failed.
    pub fn merge(&self, ours: &str, theirs: &str) -> Result<Merged, GitError> {
        let mut args: Vec<String> = Vec::new();
        for setting in ["merge.renames=false", "merge.directoryRenames=false", "merge.conflictStyle=merge"] {
            args.extend(["-c".to_owned(), setting.to_owned()]);
        }
        for driver in self.merge_drivers()? {
            args.extend(["-c".to_owned(), format!("{driver}=false")]);
        }
        args.extend(["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs].map(Into::into));
        let output = self.run(&args)?;
        let is_clean = match output.status.code() {
            Some(0) => true,
            Some(1) => false,
            _ => return Err(failed(&["merge-tree"], &output)),
        };
        let mut parts = output.stdout.split(|byte| *byte == 0);
        let tree = parts.next().map(|part| String::from_utf8_lossy(part).trim().to_owned()).unwrap_or_default();
        if is_clean {
            return Ok(Merged::Clean { tree });
        }
        let mut paths: Vec<PathBuf> = parts.take_while(|part| !part.is_empty()).map(path).collect();
        paths.dedup();
        Ok(Merged::Conflict { tree, paths })
    }

    /// The configuration's keys that name a merge driver's command.
    fn merge_drivers(&self) -> Result<Vec<String>, GitError> {
        let args = ["config", "--null", "--name-only", "--get-regexp", r"^merge\..*\.driver$"];
        let output = self.run(&args)?;
        match output.status.code() {
            Some(0) => {
                let listed = output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
                Ok(listed.map(|entry| String::from_utf8_lossy(entry).into_owned()).collect())
            }
            Some(1) => Ok(Vec::new()),
            _ => Err(failed(&args, &output)),
        }
    }
}
