//! The kernel's hold on a process: where it and its children may write, and nowhere else (Landlock, ABI 3 or newer).
//!
//! Reading stays free. What Landlock has no right for (a file's mode, owner, times and attributes) it can't refuse. This
//! file does not know lanes or scopes.

use std::io;
use std::path::PathBuf;

/// Devices that every program expects to write.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm", "/dev/fd"];

/// Whether this kernel can hold a process to its folders: writing, cutting, making, removing and moving between them.
#[cfg(target_os = "linux")]
pub fn is_supported() -> bool {
    rights::ruleset().is_ok()
}

/// Whether this kernel can hold a process to its folders.
#[cfg(not(target_os = "linux"))]
pub fn is_supported() -> bool {
    false
}

/// From now on this thread, and all that it starts, writes only at or below these paths and to devices; paths that are
/// not there are left out. There is no way back.
///
/// # Errors
/// The kernel can't, or not wholly; nothing is said about what holds then.
#[cfg(target_os = "linux")]
pub fn confine(writable: &[PathBuf]) -> io::Result<()> {
    use landlock::{RulesetCreatedAttr, RulesetStatus, path_beneath_rules};

    let allowed = DEVICES.iter().map(PathBuf::from).chain(writable.iter().cloned());
    let status = rights::ruleset()
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(allowed, rights::writing())))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel holds a part of it only"))
        }
    }
}

/// The kernel can't.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn confine(_: &[PathBuf]) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(target_os = "linux")]
mod rights {
    use landlock::{
        ABI, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetError,
    };

    /// Everything that changes what is on the disk.
    pub fn writing() -> BitFlags<AccessFs> {
        AccessFs::from_write(ABI::V3)
    }

    /// A ruleset that holds all of it, or none.
    pub fn ruleset() -> Result<RulesetCreated, RulesetError> {
        Ruleset::default().set_compatibility(CompatLevel::HardRequirement).handle_access(writing())?.create()
    }
}
