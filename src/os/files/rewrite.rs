//! Files that others read: changed or made whole, by rename, and never in the place of somebody else's.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Fault;

/// Replaces the contents of a file, keeping its mode; readers see the old or the new, never a part.
///
/// # Errors
/// The system refused.
pub fn rewrite(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let mode = std::fs::metadata(path).map_err(Fault::at("look at", path))?.permissions().mode();
    let draft = draft(path, bytes, mode & 0o7777)?;
    draft.persist(path).map_err(|error| Fault::new("write", path, error.error))?;
    Ok(())
}

/// Makes a file that is run; false when anything stands there, which stays.
///
/// # Errors
/// The system refused.
pub fn place_program(path: &Path, bytes: &[u8]) -> Result<bool, Fault> {
    let draft = draft(path, bytes, 0o755)?;
    match draft.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Fault::new("make", path, error.error)),
    }
}

fn draft(path: &Path, bytes: &[u8], mode: u32) -> Result<tempfile::NamedTempFile, Fault> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let fault = |error| Fault::new("write in", folder, error);
    let mut draft = tempfile::Builder::new().prefix(".striatum-").tempfile_in(folder).map_err(fault)?;
    draft.write_all(bytes).map_err(fault)?;
    draft.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).map_err(fault)?;
    Ok(draft)
}
