//! Locks: a file that one description holds until its last copy is closed, whatever becomes of its process.
//!
//! Everything here is flock(2) through `fs2`. Locks are freed by close: an explicit unlock would free them for
//! every process that shares the description, an agent with its lane lock among them. Lock files are never
//! unlinked here. This room does not know what a lock protects.

mod driver;
mod write;

pub use driver::{DriverHolder, DriverLock, Standby, read_driver};
pub use write::{WriteGuard, WriteHolder, WriteRequest};

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use super::Fault;

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody held it for the whole time that the caller was ready to wait.
    #[error("still held by {holder} after {waited_ms} ms")]
    Busy {
        /// Who, by its own words in the file.
        holder: WriteHolder,
        /// How long the wait was.
        waited_ms: u64,
    },
    /// The system refused.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// What a look from outside says about a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Some process holds it.
    Held,
    /// No process holds it, or the file was never made.
    Free,
}

/// An exclusive lock; dropping it closes this process's copy.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    /// Takes the lock if nobody has it; makes the file (0600) if need be. `None`: it is held.
    ///
    /// # Errors
    /// The file can't be opened or locked at all.
    pub fn try_exclusive(path: &Path) -> Result<Option<Lock>, Fault> {
        let fault = |source| Fault::new("lock", path, source);
        // A file that is swapped between open and lock is looked at again; a few times are plenty.
        for _ in 0..8 {
            let file = open(path)?;
            if !try_past_probes(&file).map_err(fault)? {
                return Ok(None);
            }
            if is_still_at(&file, path) {
                return Ok(Some(Lock { file }));
            }
        }
        Err(fault(io::Error::other("the file keeps being replaced")))
    }

    /// Takes the lock, waiting for whoever has it, at most so many milliseconds; `None`: it is still held.
    ///
    /// # Errors
    /// As [`Lock::try_exclusive`].
    pub fn exclusive_within(path: &Path, wait_ms: u64) -> Result<Option<Lock>, Fault> {
        let until = std::time::Instant::now() + Duration::from_millis(wait_ms);
        loop {
            if let Some(lock) = Lock::try_exclusive(path)? {
                return Ok(Some(lock));
            }
            if std::time::Instant::now() >= until {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Takes over a description that came as a standard stream, locked by whoever started this process.
    ///
    /// # Errors
    /// Somebody else's description holds the lock.
    pub(crate) fn adopt(file: File) -> io::Result<Lock> {
        // On a description that holds it this changes nothing; on one that doesn't it takes it.
        fs2::FileExt::try_lock_exclusive(&file)?;
        Ok(Lock { file })
    }

    /// Another descriptor of the same description, to be inherited by a child: the lock is held until all are closed.
    ///
    /// # Errors
    /// No descriptors left.
    pub fn share(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Gives the descriptor away, lock and all.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Device and inode of the file, by which other processes' descriptors of it are found.
    ///
    /// # Errors
    /// What fstat(2) says.
    pub fn place(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|found| (found.dev(), found.ino()))
    }
}

impl AsFd for Lock {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Looks whether a lock is held, through a description of its own that is closed again. Changes nothing, makes
/// no file; a shared lock for an instant, which [`Lock::try_exclusive`] looks past.
///
/// # Errors
/// The file is there and can't be looked at.
pub fn probe(path: &Path) -> Result<Held, Fault> {
    let opened = OpenOptions::new().read(true).custom_flags(nofollow()).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Held::Free),
        Err(error) => return Err(Fault::new("look at the lock", path, error)),
    };
    let shared = succeeded(fs2::FileExt::try_lock_shared(&file)).map_err(Fault::at("look at the lock", path))?;
    Ok(if shared { Held::Free } else { Held::Held })
}

/// Opens or makes a lock file. A symbolic link in its place is refused.
fn open(path: &Path) -> Result<File, Fault> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(nofollow());
    options.open(path).map_err(Fault::at("open the lock", path))
}

fn nofollow() -> i32 {
    nix::fcntl::OFlag::O_NOFOLLOW.bits()
}

/// Tries for the exclusive lock; when only probes are in the way, waits for them to pass.
fn try_past_probes(file: &File) -> io::Result<bool> {
    for attempt in 0..100 {
        if succeeded(fs2::FileExt::try_lock_exclusive(file))? {
            return Ok(true);
        }
        if !succeeded(fs2::FileExt::try_lock_shared(file))? {
            return Ok(false);
        }
        // This description is fresh and nobody shares it, so that unlocking frees it for nobody else.
        fs2::FileExt::unlock(file)?;
        // A probe that lost its processor in the middle takes a while on a busy machine.
        std::thread::sleep(Duration::from_micros(if attempt < 10 { 200 } else { 2_000 }));
    }
    Ok(false)
}

/// A lock attempt as a claim: "would block" is no error.
fn succeeded(attempt: io::Result<()>) -> io::Result<bool> {
    match attempt {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error() == fs2::lock_contended_error().raw_os_error() => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the path still leads to this file: a lock on an unlinked one protects nothing.
fn is_still_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(held), Ok(there)) => (held.dev(), held.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Waits in flock on the calling thread, for as long as it takes.
fn block(path: &Path) -> Result<Lock, Fault> {
    loop {
        let file = open(path)?;
        match fs2::FileExt::lock_exclusive(&file) {
            Ok(()) if is_still_at(&file, path) => return Ok(Lock { file }),
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Fault::new("lock", path, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    #[test]
    fn one_description_at_a_time_holds_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let first = Lock::try_exclusive(&path).unwrap().unwrap();
        assert!(Lock::try_exclusive(&path).unwrap().is_none());
        assert_eq!(probe(&path).unwrap(), Held::Held);
        drop(first);
        assert_eq!(probe(&path).unwrap(), Held::Free);
        assert!(Lock::try_exclusive(&path).unwrap().is_some());
    }

    #[test]
    fn a_shared_copy_keeps_the_lock_after_the_first_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let first = Lock::try_exclusive(&path).unwrap().unwrap();
        let copy = first.share().unwrap();
        drop(first);
        assert_eq!(probe(&path).unwrap(), Held::Held);
        let adopted = Lock::adopt(copy).unwrap();
        drop(adopted);
        assert_eq!(probe(&path).unwrap(), Held::Free);
    }

    #[test]
    fn a_missing_file_is_free_and_is_not_made_by_looking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("none.lock");
        assert_eq!(probe(&path).unwrap(), Held::Free);
        assert!(!path.exists());
    }

    #[test]
    fn probes_never_make_a_free_lock_look_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        drop(Lock::try_exclusive(&path).unwrap());
        let looks = AtomicU32::new(0);
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    probe(&path).unwrap();
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
            let mut refused = 0;
            while looks.load(Ordering::Relaxed) < 1_000 {
                refused += u32::from(Lock::try_exclusive(&path).unwrap().is_none());
            }
            done.store(true, Ordering::Relaxed);
            assert_eq!(refused, 0);
        });
    }

    #[test]
    fn a_link_in_the_place_of_a_lock_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        std::os::unix::fs::symlink(folder.path().join("b"), &path).unwrap();
        assert!(Lock::try_exclusive(&path).is_err());
        assert!(probe(&path).is_err());
    }

    #[test]
    fn a_lock_on_a_replaced_file_is_not_taken_for_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let old = Lock::try_exclusive(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        let new = Lock::try_exclusive(&path).unwrap().unwrap();
        assert_ne!(old.place().unwrap(), new.place().unwrap());
    }
}
