//! What processes carry with them wherever they go: their first environment and their open files.
//!
//! That is how what belongs to a session is found after its parents are gone. Only processes of this user are
//! looked at, and only where the kernel shows them; it does not know what a session is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{Entry, Identity, Table, own_pid};

/// Processes of this user whose environment had all of these values when they were executed; never this process.
pub fn carriers(wanted: &[(&str, &OsStr)]) -> Vec<Identity> {
    let carries = |entry: &Entry| {
        let environment = environment_of(entry.pid);
        wanted.iter().all(|(name, value)| {
            let mut found = environment.iter().filter(|(key, _)| key.as_os_str() == OsStr::new(name));
            found.next().is_some_and(|(_, found)| found == value)
        })
    };
    own_users().into_iter().filter(carries).map(|entry| entry.identity()).collect()
}

/// Processes of this user that hold the exclusive lock of a file; `place` is its device and inode, `name` its file
/// name, by which most descriptors are passed over without touching their file system. Whoever only has the file
/// open, to look whether the lock is held, is none. Never this process.
pub fn holders(place: (u64, u64), name: &OsStr) -> Vec<Identity> {
    let holds = |entry: &Entry| {
        let mut files = open_files(entry.pid).into_iter();
        files.any(|(link, path)| path.file_name() == Some(name) && is_at(&link, place) && is_locked(entry.pid, &link))
    };
    own_users().into_iter().filter(holds).map(|entry| entry.identity()).collect()
}

/// The files that this process has open above 2, by path: what it inherited shows in whose lane it is. To be
/// asked early, before it opens its own.
pub fn inherited_files() -> Vec<PathBuf> {
    let above =
        |link: &Path| link.file_name().and_then(|name| name.to_str()?.parse::<i32>().ok()).is_some_and(|fd| fd > 2);
    open_files(own_pid()).into_iter().filter(|(link, _)| above(link)).map(|(_, path)| path).collect()
}

/// The environment a process was executed with; empty where the kernel does not show it.
pub fn environment_of(pid: i32) -> Vec<(OsString, OsString)> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let pairs = bytes.split(|byte| *byte == 0).filter_map(|pair| {
        let at = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (pair.get(..at)?, pair.get(at + 1..)?);
        Some((OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec())))
    });
    pairs.collect()
}

/// The words a process was executed with; empty where the kernel does not show them.
pub fn words_of(pid: i32) -> Vec<OsString> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words = bytes.strip_suffix(&[0]).unwrap_or(&bytes).split(|byte| *byte == 0);
    words.map(|word| OsStr::from_bytes(word).to_owned()).collect()
}

/// This user's processes but for this one and the dead.
fn own_users() -> Vec<Entry> {
    let own = rustix::process::geteuid().as_raw();
    let is_own = |pid: i32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == own);
    let wanted = |entry: &&Entry| entry.pid != own_pid() && !entry.is_zombie() && is_own(entry.pid);
    Table::read().entries().iter().filter(wanted).cloned().collect()
}

/// The links of a process's descriptors and what they show.
fn open_files(pid: i32) -> Vec<(PathBuf, PathBuf)> {
    let list = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    list.filter_map(|entry| Some((entry.path(), std::fs::read_link(entry.path()).ok()?))).collect()
}

/// Whether a descriptor's description holds an exclusive flock, by the kernel's account of the descriptor.
fn is_locked(pid: i32, link: &Path) -> bool {
    let number = link.file_name().unwrap_or_default();
    let account = std::fs::read_to_string(Path::new(&format!("/proc/{pid}/fdinfo")).join(number)).unwrap_or_default();
    account.lines().any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE"))
}

fn is_at(link: &Path, place: (u64, u64)) -> bool {
    std::fs::metadata(link).is_ok_and(|found| (found.dev(), found.ino()) == place)
}
