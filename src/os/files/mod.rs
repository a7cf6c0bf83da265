//! Files as evidence and as scratch: private, written whole or not at all, hashed, and opened without leaving
//! their folder.
//!
//! It does not know what a file means.

mod beneath;
mod inside;
mod log;
mod rewrite;
mod seed;
mod size;
mod text;
mod within;

pub use beneath::{Beneath, Standing, draft};
pub use inside::{Opened, Refusal, open_inside};
pub use log::{BoundedLog, LogState};
pub use rewrite::{place_program, rewrite};
pub use seed::{copy_into, seed};
pub use size::room;
pub use text::{escape, tail_text};
pub use within::{Last, folder_within};

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Fault;

/// The default limit of an artifact, in bytes.
pub const ARTIFACT_LIMIT: u64 = 64 << 20;

/// Makes a folder (not its parents) that only this user can enter, whatever the umask. One that is there already
/// is taken if it is a real folder of this user.
///
/// # Errors
/// A link or another user's folder in its place, or what mkdir(2) says.
pub fn create_private_dir(path: &Path) -> Result<(), Fault> {
    match DirBuilder::new().mode(0o700).create(path) {
        // The umask may have taken bits away from the owner too.
        Ok(()) => std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(Fault::at("make", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(path).map_err(Fault::at("look at", path))?;
            let own = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
            if own { Ok(()) } else { Err(Fault::new("make", path, error)) }
        }
        Err(error) => Err(Fault::new("make", path, error)),
    }
}

/// Like [`create_private_dir`], with the missing folders below `base`, which must be there.
///
/// # Errors
/// As there; or a path that does not lie below `base`.
pub fn create_private_dirs(base: &Path, path: &Path) -> Result<(), Fault> {
    let below = path.strip_prefix(base).map_err(|error| Fault::new("make", path, io::Error::other(error)))?;
    let mut folder = base.to_owned();
    for part in below.components() {
        folder.push(part);
        create_private_dir(&folder)?;
    }
    Ok(())
}

/// Makes a folder (not its parents) that others may look into; false when there is one already.
///
/// # Errors
/// Something else in its place, or what mkdir(2) says.
pub fn create_dir(path: &Path) -> Result<bool, Fault> {
    match DirBuilder::new().mode(0o755).create(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        Err(error) => Err(Fault::new("make", path, error)),
    }
}

/// Writes a file whole that is not there yet, readable as the umask says; false, and nothing touched, when there is
/// something in its place.
///
/// # Errors
/// What the disk says.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, Fault> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let fault = Fault::at::<io::Error>("write", path);
    let write = || {
        let mode = Permissions::from_mode(0o644);
        let mut draft = tempfile::Builder::new().prefix(".new-").permissions(mode).tempfile_in(folder)?;
        draft.write_all(bytes)?;
        draft.as_file().sync_all()?;
        match draft.persist_noclobber(path) {
            Ok(_) => sync_folder(folder).map(|()| true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error.error),
        }
    };
    write().map_err(fault)
}

/// Whether a folder is there, or could be made: then this user may write the nearest folder above it.
pub fn is_there_or_may_be_made(path: &Path) -> bool {
    let Some(there) = path.ancestors().find(|above| above.symlink_metadata().is_ok()) else { return false };
    let writable = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    there.is_dir() && (there == path || rustix::fs::access(there, writable).is_ok())
}

/// Whether nobody else could have put anything into a folder, or the folder it lies in: both are this user's alone,
/// or not there yet.
pub fn is_private_or_missing(path: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    let is_private = |folder: &Path| match std::fs::symlink_metadata(folder) {
        Ok(found) => found.is_dir() && found.uid() == own && found.mode() & 0o022 == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    is_private(path) && path.parent().is_some_and(is_private)
}

/// Opens a file for appending, made with 0600 if it is missing. A link in its place is refused.
///
/// # Errors
/// What open(2) says.
pub fn append_private(path: &Path) -> Result<File, Fault> {
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits());
    options.open(path).map_err(Fault::at("open", path))
}

/// Writes a file whole (0600): whoever opens it sees the old one or the new one, also after a power cut.
///
/// # Errors
/// What the disk says; the old file is then untouched.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    write_with(path, 0o600, |file| file.write_all(bytes))
}

/// Writes a file whole (0600) that need not outlive a power cut: what an attempt reads, and no later boot.
///
/// # Errors
/// What the disk says; the old file is then untouched.
pub fn write_scratch(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    let write = || {
        let mut draft = tempfile::Builder::new().prefix(".new-").tempfile_in(folder_of(path))?;
        draft.write_all(bytes)?;
        draft.persist(path)?;
        Ok(())
    };
    write().map_err(Fault::at::<io::Error>("write", path))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes through `fill` into a new file in the same folder, then puts it into its place.
fn write_with(path: &Path, mode: u32, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Fault> {
    let folder = folder_of(path);
    let fault = Fault::at::<io::Error>("write", path);
    let write = || {
        let mut draft = tempfile::Builder::new().prefix(".new-").tempfile_in(folder)?;
        fill(draft.as_file_mut())?;
        draft.as_file().set_permissions(Permissions::from_mode(mode))?;
        draft.as_file().sync_all()?;
        draft.persist(path)?;
        sync_folder(folder)
    };
    write().map_err(fault)
}

/// Makes the names in a folder durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The SHA-256 of everything from the start of a file, in lower-case hex, and its length.
///
/// # Errors
/// What read(2) says.
pub fn sha256_of(file: &mut File) -> io::Result<(String, u64)> {
    file.rewind()?;
    copy_hashed(file, &mut io::sink(), u64::MAX)
}

/// The SHA-256 of a file by path; links are followed, so only for paths that nobody else chose.
///
/// # Errors
/// What the system says.
pub fn sha256_of_path(path: &Path) -> Result<(String, u64), Fault> {
    let mut file = File::open(path).map_err(Fault::at("read", path))?;
    sha256_of(&mut file).map_err(Fault::at("read", path))
}

/// Copies at most `limit` bytes and hashes them on the way.
fn copy_hashed(from: &mut impl Read, to: &mut impl Write, limit: u64) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut from = from.take(limit);
    let mut length = 0;
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let part = buffer.get(..count).unwrap_or_default();
        hash.update(part);
        to.write_all(part)?;
        length += count as u64;
    }
    Ok((hex(&hash.finalize()), length))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file in the artifact store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its name and its SHA-256.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it lies.
    pub path: PathBuf,
}

/// Copies an opened artifact into `folder/<sha256>` (0400), whole or not at all. One that is there already is
/// checked, and replaced if it is not what its name says.
///
/// # Errors
/// [`Refusal::TooLarge`] if it grew beyond `limit` since it was opened; what the disk says.
pub fn store_artifact(folder: &Path, opened: &mut Opened, limit: u64) -> Result<Stored, Refusal> {
    let fault = |source| Refusal::Fault(Fault::new("store an artifact in", folder, source));
    opened.file.rewind().map_err(fault)?;
    let mut draft = tempfile::Builder::new().prefix(".new-").tempfile_in(folder).map_err(fault)?;
    let more = limit.saturating_add(1);
    let (sha256, bytes) = copy_hashed(&mut opened.file, draft.as_file_mut(), more).map_err(fault)?;
    if bytes > limit {
        return Err(Refusal::TooLarge { path: opened.path.clone(), bytes, limit });
    }
    let path = folder.join(&sha256);
    if !is_intact(&path, &sha256) {
        let file = draft.as_file();
        file.set_permissions(Permissions::from_mode(0o400)).and_then(|()| file.sync_all()).map_err(fault)?;
        draft.persist(&path).map_err(|error| fault(error.error))?;
        sync_folder(folder).map_err(fault)?;
    }
    Ok(Stored { sha256, bytes, path })
}

/// Whether an artifact is there and is what its name says.
pub fn is_intact(path: &Path, sha256: &str) -> bool {
    let plain = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    plain && sha256_of_path(path).is_ok_and(|(found, _)| found == sha256)
}

/// Puts a stored artifact where an attempt reads it: a copy of its own (shared blocks where the file system can),
/// 0444, so that nothing done to it reaches the store. Checked against its name on the way.
///
/// # Errors
/// What the disk says, or an artifact that is not what its name says.
pub fn place_input(artifact: &Path, sha256: &str, place: &Path) -> Result<(), Fault> {
    write_with(place, 0o444, |file| {
        io::copy(&mut File::open(artifact)?, file)?;
        let (found, _) = sha256_of(file)?;
        if found == sha256 { Ok(()) } else { Err(io::Error::other("the artifact is not what its name says")) }
    })
}

/// Free bytes for this user on the file system of a path.
///
/// # Errors
/// What statvfs(3) says.
pub fn free_bytes(path: &Path) -> Result<u64, Fault> {
    let found = rustix::fs::statvfs(path).map_err(Fault::at("look at the disk of", path))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_written_is_private_and_replaces_whole_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packet.json");
        write_private(&path, b"one").unwrap();
        write_private(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn scratch_is_private_too_and_needs_no_name_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("prompt.md");
        write_scratch(&path, b"one").unwrap();
        write_scratch(&path, b"two").unwrap();
        assert_eq!((std::fs::read(&path).unwrap().as_slice(), mode(&path)), (b"two".as_slice(), 0o600));
        assert_eq!(folder_of(Path::new("prompt.md")), Path::new("."));
        assert!(write_scratch(&folder.path().join("none/prompt.md"), b"").is_err());
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_draft() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_private(&path, b"old").unwrap();
        let failed = write_with(&path, 0o600, |file| {
            file.write_all(b"half")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(failed.unwrap_err().is_disk_full());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn private_folders_refuse_a_link_in_their_place() {
        let folder = tempfile::tempdir().unwrap();
        create_private_dirs(folder.path(), &folder.path().join("scratch/s1")).unwrap();
        create_private_dir(&folder.path().join("scratch/s1")).unwrap();
        assert_eq!(mode(&folder.path().join("scratch/s1")), 0o700);
        std::os::unix::fs::symlink("/tmp", folder.path().join("link")).unwrap();
        assert!(create_private_dir(&folder.path().join("link")).is_err());
        assert!(create_private_dirs(folder.path(), Path::new("/elsewhere/x")).is_err());
    }

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "abc").unwrap();
        let (hash, length) = sha256_of_path(&path).unwrap();
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(length, 3);
    }

    #[test]
    fn an_artifact_is_stored_once_and_mended_if_it_rots() {
        let folder = tempfile::tempdir().unwrap();
        let (base, store) = (folder.path().join("work"), folder.path().join("artifacts"));
        std::fs::create_dir(&base).unwrap();
        std::fs::create_dir(&store).unwrap();
        std::fs::write(base.join("report.md"), "text").unwrap();
        let open = || open_inside(&base, Path::new("report.md"), ARTIFACT_LIMIT).unwrap();
        let stored = store_artifact(&store, &mut open(), ARTIFACT_LIMIT).unwrap();
        assert_eq!((stored.bytes, mode(&stored.path)), (4, 0o400));
        let inode = std::fs::metadata(&stored.path).unwrap().ino();
        assert_eq!(store_artifact(&store, &mut open(), ARTIFACT_LIMIT).unwrap(), stored);
        assert_eq!(std::fs::metadata(&stored.path).unwrap().ino(), inode);

        std::fs::remove_file(&stored.path).unwrap();
        std::fs::write(&stored.path, "rot").unwrap();
        assert!(place_input(&stored.path, &stored.sha256, &base.join("input")).is_err());
        store_artifact(&store, &mut open(), ARTIFACT_LIMIT).unwrap();
        place_input(&stored.path, &stored.sha256, &base.join("input")).unwrap();
        assert_eq!(std::fs::read_to_string(base.join("input")).unwrap(), "text");
        assert_eq!(mode(&base.join("input")), 0o444);
        assert_ne!(
            std::fs::metadata(base.join("input")).unwrap().ino(),
            std::fs::metadata(&stored.path).unwrap().ino()
        );
        assert_eq!(std::fs::read_dir(&store).unwrap().count(), 1);
    }

    #[test]
    fn an_artifact_that_grows_after_it_was_opened_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "12345").unwrap();
        let mut opened = open_inside(folder.path(), Path::new("a"), 5).unwrap();
        std::fs::write(folder.path().join("a"), "123456").unwrap();
        let refused = store_artifact(folder.path(), &mut opened, 5);
        assert!(matches!(refused, Err(Refusal::TooLarge { bytes: 6, limit: 5, .. })), "{refused:?}");
    }

    #[test]
    fn free_space_is_more_than_nothing() {
        assert!(free_bytes(&std::env::temp_dir()).unwrap() > 0);
    }
}
