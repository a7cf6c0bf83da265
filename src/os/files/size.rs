//! How much room a folder takes.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Entries looked at; a larger folder is told as at least so large.
const MOST: usize = 500_000;

/// Bytes on disk below a path, links not followed; false when there was more to look at.
pub fn room(path: &Path) -> (u64, bool) {
    let (mut open, mut bytes, mut seen) = (vec![path.to_owned()], 0, 0);
    while let Some(here) = open.pop() {
        let Ok(found) = std::fs::symlink_metadata(&here) else { continue };
        bytes += found.blocks() * 512;
        seen += 1;
        if seen > MOST {
            return (bytes, false);
        }
        if found.is_dir()
            && let Ok(entries) = std::fs::read_dir(&here)
        {
            open.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    (bytes, true)
}
