//! The lock of a run's driver, with words for people inside, and a place in the queue behind it.
//!
//! It does not know what a driver does.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

use serde::{Deserialize, Serialize};

use super::super::{Fault, host_name};
use super::{Lock, block};
use crate::domain::time::Timestamp;

/// Who drives: for people, never a proof (that is the lock).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriverHolder {
    /// Its process.
    pub pid: i32,
    /// Its machine.
    pub host: String,
    /// When it started to drive.
    pub started_at: Timestamp,
}

impl DriverHolder {
    /// This process, driving from `now` on.
    pub fn this_process(now: Timestamp) -> Self {
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        DriverHolder { pid, host: host_name(), started_at: now }
    }
}

/// Held for the life of a driver.
#[derive(Debug)]
pub struct DriverLock {
    _lock: Lock,
}

impl DriverLock {
    /// Takes the lock if it is free and writes the holder into it. `None`: another driver has it.
    ///
    /// # Errors
    /// The file can't be opened, locked or written.
    pub fn try_take(path: &Path, holder: &DriverHolder) -> Result<Option<DriverLock>, Fault> {
        Lock::try_exclusive(path)?.map(|lock| DriverLock::sign(lock, path, holder)).transpose()
    }

    fn sign(lock: Lock, path: &Path, holder: &DriverHolder) -> Result<DriverLock, Fault> {
        let words = serde_json::to_vec(holder).unwrap_or_default();
        let written = lock.file.set_len(0).and_then(|()| lock.file.write_all_at(&words, 0));
        written.map_err(Fault::at("sign the lock", path))?;
        Ok(DriverLock { _lock: lock })
    }
}

/// What the holder of a driver's lock wrote; `None` if it had not yet. Takes no lock.
pub fn read_driver(path: &Path) -> Option<DriverHolder> {
    let mut bytes = [0; 1024];
    let count = File::open(path).and_then(|file| file.read_at(&mut bytes, 0)).ok()?;
    serde_json::from_slice(bytes.get(..count)?).ok()
}

/// A place in the queue for a driver's lock: a thread waits in flock, the descriptor becomes readable when it
/// has the lock. Dropped before that, the thread lets go the moment it gets it.
pub struct Standby {
    bell: UnixStream,
    take: Receiver<Result<Lock, Fault>>,
}

impl Standby {
    /// Starts to wait.
    ///
    /// # Errors
    /// No thread or descriptor to be had.
    pub fn start(path: &Path) -> Result<Self, Fault> {
        let (bell, mut ring) = UnixStream::pair().map_err(Fault::at("wait for the lock", path))?;
        bell.set_nonblocking(true).map_err(Fault::at("wait for the lock", path))?;
        let (give, take) = sync_channel(1);
        let owned = path.to_owned();
        let wait = move || {
            drop(give.send(block(&owned)));
            // Nobody at the other end means that nobody cares.
            let _ = ring.write(&[1]);
        };
        let spawned = std::thread::Builder::new().name("standby".to_owned()).spawn(wait);
        spawned.map_err(Fault::at("wait for the lock", path))?;
        Ok(Standby { bell, take })
    }

    /// Takes the lock over if it has come; `None` as long as it has not.
    ///
    /// # Errors
    /// The wait itself failed, or the holder's words could not be written.
    pub fn take(&self, path: &Path, holder: &DriverHolder) -> Result<Option<DriverLock>, Fault> {
        match self.take.try_recv() {
            Ok(lock) => DriverLock::sign(lock?, path, holder).map(Some),
            Err(_) => Ok(None),
        }
    }
}

impl AsFd for Standby {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::super::super::wait::is_readable_within;
    use super::super::{Held, probe};
    use super::*;

    fn holder() -> DriverHolder {
        DriverHolder::this_process(Timestamp(1_700_000_000_042))
    }

    #[test]
    fn a_second_driver_reads_who_the_first_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive-a-1.lock");
        let first = DriverLock::try_take(&path, &holder()).unwrap();
        assert!(first.is_some());
        assert!(DriverLock::try_take(&path, &holder()).unwrap().is_none());
        assert_eq!(read_driver(&path), Some(holder()));
    }

    #[test]
    fn a_standby_gets_the_lock_the_moment_it_is_free() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive-a-1.lock");
        let first = DriverLock::try_take(&path, &holder()).unwrap().unwrap();
        let standby = Standby::start(&path).unwrap();
        assert!(!is_readable_within(&standby, 50).unwrap());
        assert!(standby.take(&path, &holder()).unwrap().is_none());
        drop(first);
        assert!(is_readable_within(&standby, 5_000).unwrap());
        let second = standby.take(&path, &holder()).unwrap();
        assert!(second.is_some());
        assert_eq!(probe(&path).unwrap(), Held::Held);
    }

    #[test]
    fn a_standby_that_left_does_not_keep_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive-a-1.lock");
        let first = DriverLock::try_take(&path, &holder()).unwrap().unwrap();
        drop(Standby::start(&path).unwrap());
        drop(first);
        let next = Standby::start(&path).unwrap();
        assert!(is_readable_within(&next, 5_000).unwrap());
        assert!(next.take(&path, &holder()).unwrap().is_some());
    }
}
