//! Where the new repository goes: an empty folder that is in no repository and in no store.

use std::path::{Path, PathBuf};

use crate::error::{Code, Error, Result};
use crate::os::layout::{Found, Search, discover};

/// Begins the names of folders made here.
const PREFIX: &str = "striatum-quickstart-";

/// The folder that was named, made if it is missing, or a new one among the temporary files.
///
/// # Errors
/// It is not empty, not a folder, in somebody's repository or store, or can't be made.
pub fn choose(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(folder) => prepare(folder),
        None => temporary(),
    }
}

fn prepare(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let existed = folder.symlink_metadata().is_ok();
    if !existed {
        std::fs::create_dir_all(folder)
            .map_err(|error| Error::new(Code::Io, format!("{shown} can't be made")).cause(error))?;
    }
    let real = accept(folder);
    if real.is_err() && !existed {
        let _ = std::fs::remove_dir(folder);
    }
    real
}

fn accept(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let refuse = |what: &str| Error::new(Code::Usage, format!("{shown} {what}")).hint(HINT);
    let unreadable = |error: std::io::Error| Error::new(Code::Io, format!("{shown} can't be read")).cause(error);
    if !folder.is_dir() {
        return Err(refuse("is no folder"));
    }
    let real = folder.canonicalize().map_err(unreadable)?;
    if std::fs::read_dir(&real).map_err(unreadable)?.next().is_some() {
        return Err(refuse("is not empty"));
    }
    match surroundings(&real)? {
        Some(what) => Err(refuse(&what)),
        None => Ok(real),
    }
}

const HINT: &str = "name a new or empty folder outside every repository, or none: then one is made for you";

/// What a folder is in that it must not be in.
fn surroundings(folder: &Path) -> Result<Option<String>> {
    if let Some(git) = git_directory(folder) {
        return Ok(Some(format!("is in a git directory ({})", git.display())));
    }
    let found = discover(Search { flag: None, variable: None, cwd: folder })?;
    if let Some(repository) = found.layout().repository() {
        let place = repository.work_tree.as_ref().unwrap_or(&repository.common_dir);
        return Ok(Some(format!("is in the repository {}", place.display())));
    }
    Ok(match &found {
        Found::Nothing(_) => None,
        Found::Store(layout) | Found::Config(layout) => {
            Some(format!("is in a project that striatum works in ({})", layout.project().display()))
        }
    })
}

/// The git directory that a folder lies in, such as a bare repository.
fn git_directory(folder: &Path) -> Option<&Path> {
    folder
        .ancestors()
        .find(|above| above.join("HEAD").is_file() && above.join("objects").is_dir() && above.join("refs").is_dir())
}

/// A new folder in the first place that takes one.
fn temporary() -> Result<PathBuf> {
    let mut refusals = Vec::new();
    for base in bases() {
        match new_in(&base) {
            Ok(folder) => return Ok(folder),
            Err(why) => refusals.push(why),
        }
    }
    let error = Error::new(Code::Io, "there is no place for a temporary folder")
        .hint("name one: `striatum quickstart DIR`, new or empty, outside every repository");
    Err(refusals.into_iter().fold(error, Error::cause))
}

/// Where temporary folders may stand, the likeliest first.
fn bases() -> Vec<PathBuf> {
    let mut bases = vec![std::env::temp_dir(), PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    bases.extend(std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from));
    let mut seen = std::collections::BTreeSet::new();
    bases.retain(|base| base.is_absolute() && seen.insert(base.clone()));
    bases
}

fn new_in(base: &Path) -> std::result::Result<PathBuf, String> {
    let refuse = |why: String| format!("{} {why}", base.display());
    let real = base.canonicalize().map_err(|error| refuse(format!("can't be used: {error}")))?;
    if let Some(what) = surroundings(&real).map_err(|error| refuse(format!("can't be used: {error}")))? {
        return Err(refuse(what));
    }
    let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&real);
    made.map(tempfile::TempDir::keep).map_err(|error| refuse(format!("can't be written: {error}")))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn refusal(folder: &Path) -> String {
        choose(Some(folder)).unwrap_err().message
    }

    #[test]
    fn a_missing_or_empty_folder_is_taken() {
        let base = tempfile::tempdir().unwrap();
        let empty = base.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert_eq!(choose(Some(&empty)).unwrap(), empty.canonicalize().unwrap());
        let missing = base.path().join("a/b");
        assert_eq!(choose(Some(&missing)).unwrap(), missing.canonicalize().unwrap());
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("kept"), "x").unwrap();
        assert!(refusal(base.path()).ends_with("is not empty"));
        assert!(refusal(&base.path().join("kept")).ends_with("is no folder"));
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_in_a_repository_or_a_store_is_refused_and_not_left_behind() {
        for (marker, words) in [(".git/HEAD", "is in the repository"), (".striatum/config.toml", "striatum works in")] {
            let base = tempfile::tempdir().unwrap();
            let file = base.path().join(marker);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "ref: refs/heads/main\n").unwrap();
            for part in ["objects", "refs"] {
                std::fs::create_dir_all(base.path().join(".git").join(part)).unwrap();
            }
            if marker != ".git/HEAD" {
                std::fs::remove_dir_all(base.path().join(".git")).unwrap();
            }
            let inside = base.path().join("inside");
            assert!(refusal(&inside).contains(words), "{}", refusal(&inside));
            assert!(!inside.exists());
        }
    }

    #[test]
    fn a_folder_in_a_bare_repository_is_refused() {
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::create_dir(base.path().join("objects")).unwrap();
        std::fs::create_dir(base.path().join("refs")).unwrap();
        assert!(refusal(&base.path().join("inside")).contains("is in a git directory"));
    }
}
