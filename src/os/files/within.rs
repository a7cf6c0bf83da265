//! Folders below a folder, found or made without a step through a link.
//!
//! It looks before somebody else works there; it is no guard against one who changes the folder meanwhile.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::os::Fault;

/// What the last name of a wanted path may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// A folder; made if it is missing.
    Folder,
    /// A folder that is there, or a file, there or not: then the folder that it lies in.
    Either,
}

/// The folder that `path` means below `base`. `None` where a link, a file or a step upward is in the way.
///
/// # Errors
/// A folder could not be made.
pub fn folder_within(base: &Path, path: &Path, last: Last) -> Result<Option<PathBuf>, Fault> {
    let mut folder = base.to_owned();
    let parts: Vec<Component<'_>> = path.components().filter(|part| *part != Component::CurDir).collect();
    for (number, part) in parts.iter().enumerate() {
        let Component::Normal(name) = part else { return Ok(None) };
        let next = folder.join(name);
        let is_last = number + 1 == parts.len();
        match std::fs::symlink_metadata(&next) {
            Ok(found) if found.is_dir() => folder = next,
            Ok(found) if found.is_file() && is_last && last == Last::Either => return Ok(Some(folder)),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound && is_last && last == Last::Either => {
                return Ok(Some(folder));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir(&next).map_err(Fault::at("make", &next))?;
                folder = next;
            }
            Err(error) => return Err(Fault::at("look at", &next)(error)),
        }
    }
    Ok(Some(folder))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_folder_is_found_or_made_and_no_link_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let base = place.path().join("tree");
        std::fs::create_dir_all(base.join("src")).unwrap();
        std::fs::write(base.join("README.md"), "x").unwrap();
        std::os::unix::fs::symlink(place.path(), base.join("out")).unwrap();
        let found = |path: &str, last| folder_within(&base, Path::new(path), last).unwrap();
        assert_eq!(found("", Last::Folder), Some(base.clone()));
        assert_eq!(found("src/new/deep", Last::Folder), Some(base.join("src/new/deep")));
        assert!(base.join("src/new/deep").is_dir());
        assert_eq!(found("README.md", Last::Either), Some(base.clone()));
        assert_eq!(found("src", Last::Either), Some(base.join("src")));
        assert_eq!(found("src/later.rs", Last::Either), Some(base.join("src")));
        for stray in ["out", "out/x", "../x", "/etc", "README.md/x"] {
            assert_eq!(found(stray, Last::Folder), None, "{stray}");
        }
        assert!(!place.path().join("x").exists());
    }
}
