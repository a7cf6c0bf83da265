//! A patch, applied to an index of one's own and to nothing else; and what an index holds, as files in a folder.
//!
//! It judges nothing: what a patch changes is told by the difference of the trees before and after.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{Git, GitError, failed};

/// Why a patch does not apply.
#[derive(Debug, thiserror::Error)]
pub enum NotApplied {
    /// In git's words.
    #[error("{0}")]
    Refused(String),
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl Git {
    /// Applies a patch to the index; files are left alone.
    ///
    /// # Errors
    /// The patch does not fit, or git is missing.
    pub fn apply_to_index(&self, patch: &[u8]) -> Result<(), NotApplied> {
        let args = ["apply", "--cached", "--whitespace=nowarn", "--binary", "-"];
        let output = self.feed(&args, patch, &[])?;
        match output.status.code() {
            Some(0) => Ok(()),
            // What is wrong with a patch comes first, what follows from that afterwards.
            Some(1 | 128) => {
                let said = String::from_utf8_lossy(&output.stderr);
                let line = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not apply");
                Err(NotApplied::Refused(line.trim_start_matches("error: ").trim_start_matches("fatal: ").to_owned()))
            }
            _ => Err(failed(&args, &output).into()),
        }
    }

    /// The sum of the sizes of these paths in a tree, in bytes; paths that it does not have count nothing.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn size_of(&self, tree: &str, paths: &[&Path]) -> Result<u64, GitError> {
        let mut args: Vec<OsString> =
            ["--literal-pathspecs", "ls-tree", "-r", "-l", "-z", "--full-tree", tree, "--"].map(Into::into).into();
        args.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
        let listed = self.ask(&args)?;
        let size = |entry: &[u8]| {
            let head = entry.split(|byte| *byte == b'\t').next()?;
            std::str::from_utf8(head).ok()?.split_whitespace().nth(3)?.parse::<u64>().ok()
        };
        Ok(listed.split(|byte| *byte == 0).filter_map(size).sum())
    }

    /// Writes what the index has of these paths below a folder, as a checkout would; paths that it does not have are
    /// left out.
    ///
    /// # Errors
    /// git is missing, or failed.
    pub fn files_into(&self, folder: &Path, paths: &[&Path]) -> Result<(), GitError> {
        let mut list = Vec::new();
        for path in paths {
            list.extend_from_slice(path.as_os_str().as_bytes());
            list.push(0);
        }
        let mut prefix = OsString::from("--prefix=");
        prefix.push(folder);
        prefix.push("/");
        let args: [OsString; 6] =
            ["checkout-index".into(), "--force".into(), "--quiet".into(), "-z".into(), "--stdin".into(), prefix];
        self.ask_with(&args, &list).map(|_| ())
    }
}
