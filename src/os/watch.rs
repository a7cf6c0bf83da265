//! Being woken by a change of the store's log or of the STOP file.
//!
//! It does not know what changed: the kernel tells it before a commit is visible, so a wake-up is a reason to
//! look, never a fact. Where it can't watch, the caller's poll is the net.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::Fault;

/// The only names that wake anybody; everything else in the folder is scratch or of no interest.
const NAMES: [&str; 2] = ["striatum.db-wal", "STOP"];

/// A watch over the store's folder; its descriptor is readable when there is a reason to look.
pub struct Watch {
    wakes: UnixStream,
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches the folder. Starts the one thread that `notify` needs.
    ///
    /// # Errors
    /// The system's limit of watches, or a folder that is gone.
    pub fn start(root: &Path) -> Result<Self, Fault> {
        let fault = Fault::at("watch", root);
        let (wakes, bell) = UnixStream::pair().map_err(Fault::at("watch", root))?;
        wakes.set_nonblocking(true).and_then(|()| bell.set_nonblocking(true)).map_err(Fault::at("watch", root))?;
        let ring = move |event: notify::Result<notify::Event>| {
            if event.map_or(true, |event| is_of_interest(&event)) {
                // A full pipe is as loud as one more byte.
                let _ = (&bell).write(&[1]);
            }
        };
        let watched = notify::recommended_watcher(ring).and_then(|mut watcher| {
            watcher.watch(root, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        watched.map(|watcher| Watch { wakes, _watcher: watcher }).map_err(|error| fault(std::io::Error::other(error)))
    }

    /// Takes the wake-ups that have gathered; whether there were any.
    pub fn take(&self) -> bool {
        let mut any = false;
        let mut bytes = [0; 256];
        while let Ok(count) = (&self.wakes).read(&mut bytes) {
            if count == 0 {
                break;
            }
            any = true;
        }
        any
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }
}

/// Reads and opens of the log by others are no news; an overflow of the kernel's queue is.
fn is_of_interest(event: &notify::Event) -> bool {
    let changes = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    };
    let named = |path: &std::path::PathBuf| NAMES.iter().any(|name| path.file_name() == Some(OsStr::new(name)));
    event.need_rescan() || (changes && event.paths.iter().any(named))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::super::wait::is_readable_within;
    use super::*;

    #[test]
    fn a_write_to_the_log_wakes_and_a_read_or_another_name_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("striatum.db-wal");
        std::fs::write(&log, "a").unwrap();
        let watch = Watch::start(folder.path()).unwrap();
        std::fs::read(&log).unwrap();
        std::fs::write(folder.path().join("striatum.db-shm"), "b").unwrap();
        std::fs::write(folder.path().join("config.toml"), "b").unwrap();
        assert!(!is_readable_within(&watch, 100).unwrap());
        std::fs::write(&log, "ab").unwrap();
        assert!(is_readable_within(&watch, 5_000).unwrap());
        assert!(watch.take());
    }

    #[test]
    fn stop_wakes_when_it_comes_and_when_it_goes() {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch::start(folder.path()).unwrap();
        let stop = folder.path().join("STOP");
        std::fs::write(&stop, "").unwrap();
        assert!(is_readable_within(&watch, 5_000).unwrap());
        // The creation and its close are two events: take what there is until the folder is quiet.
        while is_readable_within(&watch, 50).unwrap() {
            watch.take();
        }
        std::fs::remove_file(&stop).unwrap();
        assert!(is_readable_within(&watch, 5_000).unwrap());
    }

    #[test]
    fn a_folder_that_is_not_there_is_refused() {
        assert!(Watch::start(Path::new("/nonexistent/striatum")).is_err());
    }
}
