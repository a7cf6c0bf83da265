//! Opening what an agent left behind, without being led out of its folder.
//!
//! Looking first and opening then loses a race against whoever swaps a folder for a link; here the kernel walks
//! and refuses in one step (openat2), or each component is opened from the one before, following nothing. It
//! does not know what the file is.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::super::Fault;

/// Why a file is not taken.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Absolute, empty, or with `..`, `.` or nothing between two slashes; or the walk left the folder.
    #[error("{} leaves its folder", path.display())]
    Traversal {
        /// The path as it was named.
        path: PathBuf,
    },
    /// A symbolic link somewhere on the way.
    #[error("{} leads through a symbolic link", path.display())]
    Symlink {
        /// The path as it was named.
        path: PathBuf,
    },
    /// A folder, pipe, socket or device.
    #[error("{} is no regular file", path.display())]
    NotRegular {
        /// The path as it was named.
        path: PathBuf,
    },
    /// A file that other names reach too.
    #[error("{} has other names", path.display())]
    Linked {
        /// The path as it was named.
        path: PathBuf,
    },
    /// Above the limit.
    #[error("{} has {bytes} bytes or more, {limit} are allowed", path.display())]
    TooLarge {
        /// The path as it was named.
        path: PathBuf,
        /// Its size, or as much as was read.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// Not there.
    #[error("{} does not exist", path.display())]
    Missing {
        /// The path as it was named.
        path: PathBuf,
    },
    /// The system refused.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: File,
    /// Its size when it was opened.
    pub bytes: u64,
    /// The path as it was named.
    pub path: PathBuf,
}

/// Opens `base/path` for reading, if it is a regular file of at most `limit` bytes and no step of `path` leads
/// out of `base` or through a link. `base` itself is trusted.
///
/// # Errors
/// See [`Refusal`].
pub fn open_inside(base: &Path, path: &Path, limit: u64) -> Result<Opened, Refusal> {
    let refused = path.to_owned();
    if !is_plain(path) {
        return Err(Refusal::Traversal { path: refused });
    }
    let folder = openat(CWD, base, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let folder = folder.map_err(Fault::at("open", base))?;
    let file = File::from(walk(&folder, path).map_err(|error| name(error, path))?);
    let found = file.metadata().map_err(Fault::at("look at", path))?;
    if !found.is_file() {
        return Err(Refusal::NotRegular { path: refused });
    }
    if found.len() > limit {
        return Err(Refusal::TooLarge { path: refused, bytes: found.len(), limit });
    }
    Ok(Opened { file, bytes: found.len(), path: refused })
}

/// Whether every part between slashes is a name.
pub(super) fn is_plain(path: &Path) -> bool {
    let is_name = |part: &[u8]| !matches!(part, b"" | b"." | b"..") && !part.contains(&0);
    path.as_os_str().as_bytes().split(|byte| *byte == b'/').all(is_name)
}

/// Not blocking, so that a pipe in the file's place does not hold the caller; no terminal is ever taken.
fn last_step() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(target_os = "linux")]
pub(super) fn walk(folder: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    use rustix::fs::{ResolveFlags, openat2};
    let rule = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..64 {
        match openat2(folder, path, last_step(), Mode::empty(), rule) {
            // A rename somewhere on the way; the kernel asks to try again.
            Err(Errno::AGAIN) => {}
            // Kernels before 5.6, and containers that know only older calls.
            Err(Errno::NOSYS | Errno::PERM) => return walk_by_steps(folder, path),
            other => return other,
        }
    }
    walk_by_steps(folder, path)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn walk(folder: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    walk_by_steps(folder, path)
}

/// One component after the other, none of them a link. The path has been found plain.
fn walk_by_steps(folder: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let parts: Vec<&OsStr> = path.iter().collect();
    let Some((last, folders)) = parts.split_last() else { return Err(Errno::NOENT) };
    let mut here = folder.try_clone().map_err(|_| Errno::MFILE)?;
    for part in folders {
        // Without DIRECTORY a link would answer "not a folder", which is what a plain file answers too.
        let step = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        here = openat(&here, *part, step, Mode::empty())?;
    }
    openat(&here, *last, last_step(), Mode::empty())
}

pub(super) fn name(error: Errno, path: &Path) -> Refusal {
    let path = path.to_owned();
    match error {
        Errno::LOOP | Errno::MLINK => Refusal::Symlink { path },
        Errno::XDEV => Refusal::Traversal { path },
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG => Refusal::Missing { path },
        // A socket, or a device without a driver.
        Errno::NXIO | Errno::NODEV | Errno::OPNOTSUPP => Refusal::NotRegular { path },
        other => Refusal::Fault(Fault::new("open", path, other)),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn refusal(base: &Path, path: &str) -> &'static str {
        match open_inside(base, Path::new(path), 10).map(|_| ()) {
            Ok(()) => "opened",
            Err(Refusal::Traversal { .. }) => "traversal",
            Err(Refusal::Symlink { .. }) => "symlink",
            Err(Refusal::NotRegular { .. }) => "not regular",
            Err(Refusal::Linked { .. }) => "linked",
            Err(Refusal::TooLarge { .. }) => "too large",
            Err(Refusal::Missing { .. }) => "missing",
            Err(Refusal::Fault(_)) => "fault",
        }
    }

    fn hostile() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("base");
        std::fs::create_dir_all(base.join("sub")).unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::fs::write(base.join("sub/ok"), "ok").unwrap();
        std::fs::write(base.join("large"), "12345678901").unwrap();
        symlink("../secret", base.join("out")).unwrap();
        symlink("sub/ok", base.join("in")).unwrap();
        symlink("sub", base.join("folder")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        nix::unistd::mkfifo(&base.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(base.join("socket")).unwrap();
        folder
    }

    #[test]
    fn each_bad_path_has_its_own_refusal() {
        let folder = hostile();
        let base = folder.path().join("base");
        let long = "a".repeat(5_000);
        let cases = [
            ("sub/ok", "opened"),
            ("../secret", "traversal"),
            ("/etc/passwd", "traversal"),
            ("sub/../../secret", "traversal"),
            ("sub//ok", "traversal"),
            ("./sub/ok", "traversal"),
            ("sub/.", "traversal"),
            ("", "traversal"),
            ("a\0b", "traversal"),
            ("out", "symlink"),
            ("in", "symlink"),
            ("folder/ok", "symlink"),
            ("loop", "symlink"),
            ("sub", "not regular"),
            ("pipe", "not regular"),
            ("socket", "not regular"),
            ("large", "too large"),
            ("none", "missing"),
            ("sub/ok/none", "missing"),
            (long.as_str(), "missing"),
        ];
        for (path, expected) in cases {
            assert_eq!(refusal(&base, path), expected, "{path:?}");
        }
    }

    #[test]
    fn the_walk_by_steps_refuses_what_the_kernel_refuses() {
        let folder = hostile();
        let base = File::open(folder.path().join("base")).unwrap().into();
        for path in ["out", "in", "folder/ok", "loop"] {
            assert_eq!(walk_by_steps(&base, Path::new(path)).unwrap_err(), Errno::LOOP, "{path}");
        }
        assert!(walk_by_steps(&base, Path::new("sub/ok")).is_ok());
        assert_eq!(walk_by_steps(&base, Path::new("sub/ok/none")).unwrap_err(), Errno::NOTDIR);
    }

    #[test]
    fn a_folder_swapped_for_a_link_never_leads_outside() {
        let folder = tempfile::tempdir().unwrap();
        let (base, outside) = (folder.path().join("base"), folder.path().join("outside"));
        for place in [&base.join("real"), &outside] {
            std::fs::create_dir_all(place).unwrap();
        }
        std::fs::write(base.join("real/a"), "inside").unwrap();
        std::fs::write(outside.join("a"), "outside").unwrap();
        symlink(&outside, base.join("link")).unwrap();
        std::fs::rename(base.join("real"), base.join("here")).unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::fs::rename(base.join("here"), base.join("real")).unwrap();
                    std::fs::rename(base.join("link"), base.join("here")).unwrap();
                    std::fs::rename(base.join("here"), base.join("link")).unwrap();
                    std::fs::rename(base.join("real"), base.join("here")).unwrap();
                }
            });
            let opened = (0..20_000).filter_map(|_| open_inside(&base, Path::new("here/a"), 100).ok());
            let texts: Vec<String> = opened.map(|opened| std::io::read_to_string(opened.file).unwrap()).collect();
            done.store(true, Ordering::Relaxed);
            assert!(texts.iter().all(|text| text == "inside"));
            assert!(!texts.is_empty());
        });
    }
}
