//! Bringing files and folders into a new work tree: one by one without following links, or whole and shared where the
//! file system can.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Refusal, open_inside};
use crate::os::Fault;

/// Largest file that is copied into a tree, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// Copies one plain file from a folder to the same place in another, if it is there and nothing stands in its place.
///
/// # Errors
/// It is no plain file, leads out of the folder, or can't be copied.
pub fn copy_into(from: &Path, to: &Path, path: &Path) -> Result<(), Refusal> {
    let mut opened = match open_inside(from, path, LARGEST) {
        Ok(opened) => opened,
        Err(Refusal::Missing { .. }) => return Ok(()),
        Err(refusal) => return Err(refusal),
    };
    let place = to.join(path);
    let fault = |error| Refusal::Fault(Fault::new("copy", &place, error));
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent).map_err(fault)?;
    }
    let mode = opened.file.metadata().map_err(fault)?.permissions().mode() & 0o777;
    let made = OpenOptions::new().write(true).create_new(true).mode(mode).open(&place);
    match made {
        Ok(mut file) => io::copy(&mut opened.file, &mut file).map(|_| ()).map_err(fault),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(fault(error)),
    }
}

/// Copies a whole folder to a place where nothing stands, times kept, blocks shared where the file system can. Never
/// by hard links: what one tree writes in place would reach the other.
///
/// # Errors
/// `cp` is missing, or failed.
pub fn seed(from: &Path, to: &Path) -> Result<(), Fault> {
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        std::fs::create_dir_all(parent).map_err(|error| Fault::new("create", parent, error))?;
    }
    let flags: &[&str] = if cfg!(target_os = "macos") { &["-c", "-R", "-p"] } else { &["-a", "--reflink=auto"] };
    let mut command = Command::new("cp");
    command.args(flags).arg("--").arg(from).arg(to);
    let output = command.stdin(Stdio::null()).output().map_err(|error| Fault::new("run", "cp", error))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Fault::new("copy", from, io::Error::other(said)))
}
