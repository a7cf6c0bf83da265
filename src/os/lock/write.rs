//! The guard around every write to the store: fair, bounded, and freed by the kernel when its holder dies.
//!
//! SQLite's own busy wait starves under contention; a queue in flock does not. The guard does not know SQL: it
//! is handed to whoever writes, and its type is the permission.

use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use super::super::Fault;
use super::super::wait::Countdown;
use super::{Lock, LockError, block};

/// How long a wait is silent.
const NOTICE_AFTER_MS: u64 = 1_000;

/// The fixed length of the holder's words: overwritten in place, never truncated.
const WORDS_LEN: usize = 64;

/// Who holds the guard, by its own words; for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteHolder {
    /// Its process, 0 if it had not said yet.
    pub pid: i32,
    /// What it does: `work claim`.
    pub verb: String,
}

impl fmt::Display for WriteHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            0 => out.write_str("an unknown process"),
            pid => write!(out, "pid {pid} ({})", self.verb),
        }
    }
}

/// What is asked for: under which name, and for how long one is ready to wait.
#[derive(Clone, Copy, Debug)]
pub struct WriteRequest<'a> {
    /// The verb that writes, for those who wait.
    pub verb: &'a str,
    /// The longest wait in milliseconds.
    pub timeout_ms: u64,
}

/// The right to write to the store, until it is dropped.
#[derive(Debug)]
pub struct WriteGuard {
    _lock: Lock,
}

impl WriteGuard {
    /// Takes the guard: at once if it is free, else behind those who wait already, on one extra thread.
    /// `notice` is called once, with the holder, after a second.
    ///
    /// # Errors
    /// [`LockError::Busy`] when `timeout_ms` are over; a fault when the file can't be locked at all.
    pub fn acquire(
        path: &Path,
        request: WriteRequest<'_>,
        notice: &mut dyn FnMut(&WriteHolder),
    ) -> Result<WriteGuard, LockError> {
        let lock = match Lock::try_exclusive(path)? {
            Some(lock) => lock,
            None => queue(path, request.timeout_ms, notice)?,
        };
        write_words(&lock.file, request.verb).map_err(Fault::at("sign the lock", path))?;
        Ok(WriteGuard { _lock: lock })
    }
}

/// Waits with a thread in flock. When the wait is given up, the thread stays until the lock is its own, finds
/// nobody at the other end, and lets go.
fn queue(path: &Path, timeout_ms: u64, notice: &mut dyn FnMut(&WriteHolder)) -> Result<Lock, LockError> {
    let (give, take) = sync_channel(1);
    let owned = path.to_owned();
    std::thread::Builder::new()
        .name("write-lock".to_owned())
        .spawn(move || drop(give.send(block(&owned))))
        .map_err(Fault::at("wait for the lock", path))?;
    let end = Countdown::start(timeout_ms);
    if let Some(lock) = receive(&take, timeout_ms.min(NOTICE_AFTER_MS), path)? {
        return Ok(lock);
    }
    if !end.is_over() {
        notice(&read_holder(path));
        if let Some(lock) = receive(&take, end.left_ms(), path)? {
            return Ok(lock);
        }
    }
    Err(LockError::Busy { holder: read_holder(path), waited_ms: timeout_ms })
}

fn receive(take: &Receiver<Result<Lock, Fault>>, ms: u64, path: &Path) -> Result<Option<Lock>, Fault> {
    match take.recv_timeout(Duration::from_millis(ms)) {
        Ok(outcome) => outcome.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => {
            Err(Fault::new("wait for the lock", path, std::io::Error::other("the waiting thread ended")))
        }
    }
}

fn write_words(file: &File, verb: &str) -> std::io::Result<()> {
    let mut words = format!("{} {verb}", std::process::id()).into_bytes();
    words.retain(|byte| *byte != b'\n');
    words.resize(WORDS_LEN - 1, b' ');
    words.push(b'\n');
    file.write_all_at(&words, 0)
}

/// What the holder wrote. Reading takes no lock; between two holders the words are the former one's.
fn read_holder(path: &Path) -> WriteHolder {
    let mut bytes = [0; WORDS_LEN];
    let count = File::open(path).and_then(|file| file.read_at(&mut bytes, 0)).unwrap_or(0);
    let text = String::from_utf8_lossy(bytes.get(..count).unwrap_or_default());
    let (pid, verb) = text.trim().split_once(' ').unwrap_or(("", ""));
    WriteHolder { pid: pid.parse().unwrap_or(0), verb: verb.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::super::{Held, probe};
    use super::*;

    fn request(timeout_ms: u64) -> WriteRequest<'static> {
        WriteRequest { verb: "work claim", timeout_ms }
    }

    #[test]
    fn a_free_guard_is_had_at_once_and_names_its_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("write.lock");
        let guard = WriteGuard::acquire(&path, request(0), &mut |_| unreachable!("nobody waits")).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        assert_eq!(read_holder(&path), WriteHolder { pid: own, verb: "work claim".to_owned() });
        drop(guard);
        assert_eq!(probe(&path).unwrap(), Held::Free);
    }

    #[test]
    fn a_wait_that_is_given_up_names_the_holder_and_leaves_nobody_holding() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("write.lock");
        let guard = WriteGuard::acquire(&path, request(0), &mut |_| ()).unwrap();
        let mut notices = 0;
        let refused = WriteGuard::acquire(&path, WriteRequest { verb: "x", timeout_ms: 30 }, &mut |_| notices += 1);
        let text = refused.unwrap_err().to_string();
        assert!(text.contains("(work claim) after 30 ms"), "{text}");
        assert_eq!(notices, 0);
        drop(guard);
        // The thread of the given-up wait takes the lock and lets go; the next one in line gets it.
        WriteGuard::acquire(&path, request(5_000), &mut |_| ()).unwrap();
    }

    #[test]
    fn a_waiter_is_told_once_after_a_second_and_then_served() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("write.lock");
        let guard = WriteGuard::acquire(&path, request(0), &mut |_| ()).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                told.recv().unwrap();
                drop(guard);
            });
            let mut holders = Vec::new();
            let mut notice = |holder: &WriteHolder| {
                holders.push(holder.verb.clone());
                tell.send(()).unwrap();
            };
            WriteGuard::acquire(&path, request(20_000), &mut notice).unwrap();
            assert_eq!(holders, ["work claim"]);
        });
    }

    #[test]
    fn many_writers_each_get_their_turn_and_never_two_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("write.lock");
        let inside = std::sync::atomic::AtomicU32::new(0);
        let turns = std::sync::atomic::AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let _guard = WriteGuard::acquire(&path, request(20_000), &mut |_| ()).unwrap();
                        assert_eq!(inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst), 0);
                        turns.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(turns.into_inner(), 200);
    }
}
