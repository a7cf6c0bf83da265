//! Writing below a folder without being led out of it, each file whole or not at all.
//!
//! The kernel walks to the folder of a file and refuses links in the same step (openat2), or each component is opened from
//! the one before, following nothing; from there on only descriptors are used, so that whoever swaps a folder for a link
//! changes nothing. What is written is prepared elsewhere on the same file system and put in place by rename. It does
//! not know what may be written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, linkat, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use tempfile::TempPath;

use super::inside::{Refusal, is_plain, name, walk};
use super::{Fault, sync_folder};

/// A folder below which files are written; held open, so that it is the same one to the end.
#[derive(Debug)]
pub struct Beneath {
    top: OwnedFd,
}

/// A regular file as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// How a folder is opened on the way: not through a link.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Beneath {
    /// Opens the folder itself, which is trusted.
    ///
    /// # Errors
    /// What open(2) says.
    pub fn open(top: &Path) -> Result<Beneath, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Beneath { top: openat(CWD, top, flags, Mode::empty()).map_err(Fault::at("open", top))? })
    }

    /// The file at a path; none where nothing is, not even its folder.
    ///
    /// # Errors
    /// Something else stands there or on the way, it has other names, or it is larger than `limit` bytes.
    pub fn standing(&self, path: &Path, limit: u64) -> Result<Option<Standing>, Refusal> {
        let refused = || path.to_owned();
        if !is_plain(path) {
            return Err(Refusal::Traversal { path: refused() });
        }
        let mut file = match walk(&self.top, path) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::NXIO | Errno::ISDIR) => return Err(Refusal::NotRegular { path: refused() }),
            Err(error) => return Err(name(error, path)),
        };
        let found = file.metadata().map_err(Fault::at("look at", path))?;
        if !found.is_file() {
            return Err(Refusal::NotRegular { path: refused() });
        }
        if found.nlink() > 1 {
            return Err(Refusal::Linked { path: refused() });
        }
        if found.len() > limit {
            return Err(Refusal::TooLarge { path: refused(), bytes: found.len(), limit });
        }
        let mut bytes = Vec::new();
        (&mut file).take(limit + 1).read_to_end(&mut bytes).map_err(Fault::at("read", path))?;
        Ok(Some(Standing { bytes, mode: found.permissions().mode() & 0o777 }))
    }

    /// Puts a prepared file in its place, its missing folders made first.
    ///
    /// # Errors
    /// A link, a file or a folder is in the way; the file that was prepared is then still where it was.
    pub fn put(&self, path: &Path, draft: &Path) -> Result<(), Refusal> {
        let (folder, file) = self.folder_of(path, true)?;
        renameat(CWD, draft, &folder, file).map_err(|error| at_end(error, path))?;
        Ok(rustix::fs::fsync(&folder).map_err(Fault::at("write", path))?)
    }

    /// Gives the file at a path a second name elsewhere on the same file system.
    ///
    /// # Errors
    /// Nothing is there; or what linkat(2) says.
    pub fn keep(&self, path: &Path, aside: &Path) -> Result<(), Refusal> {
        let (folder, file) = self.folder_of(path, false)?;
        linkat(&folder, file, CWD, aside, AtFlags::empty()).map_err(|error| at_end(error, path))
    }

    /// Takes a file away; one that is not there is no fault.
    ///
    /// # Errors
    /// It is a folder; or what unlinkat(2) says.
    pub fn remove(&self, path: &Path) -> Result<(), Refusal> {
        let (folder, file) = match self.folder_of(path, false) {
            Err(Refusal::Missing { .. }) => return Ok(()),
            other => other?,
        };
        match unlinkat(&folder, file, AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::fsync(&folder).map_err(Fault::at("remove", path))?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(at_end(error, path)),
        }
    }

    /// Whether a name on the way to a path, or the path's own, stands there in another form that `is_same` takes for it.
    ///
    /// # Errors
    /// A folder can't be read.
    pub fn has_twin(&self, path: &Path, is_same: &dyn Fn(&OsStr, &OsStr) -> bool) -> Result<bool, Refusal> {
        let mut here = self.top.try_clone().map_err(Fault::at("open", path))?;
        for part in path.iter() {
            let entries = Dir::read_from(&here).map_err(Fault::at("read", path))?;
            for entry in entries.filter_map(Result::ok) {
                let found = OsString::from(OsStr::from_bytes(entry.file_name().to_bytes()));
                if found != part && is_same(&found, part) {
                    return Ok(true);
                }
            }
            match openat(&here, part, FOLDER, Mode::empty()) {
                Ok(next) => here = next,
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// The folder of a file, open, and the file's own name.
    fn folder_of<'p>(&self, path: &'p Path, makes: bool) -> Result<(OwnedFd, &'p OsStr), Refusal> {
        let (true, Some(file)) = (is_plain(path), path.file_name()) else {
            return Err(Refusal::Traversal { path: path.to_owned() });
        };
        let folders = path.parent().unwrap_or(Path::new(""));
        let opened = self.open_folder(folders);
        let folder = match opened {
            Err(Errno::NOENT) if makes => self.make_folders(folders),
            other => other,
        };
        Ok((folder.map_err(|error| at_end(error, path))?, file))
    }

    fn open_folder(&self, folder: &Path) -> rustix::io::Result<OwnedFd> {
        if folder.as_os_str().is_empty() {
            return openat(&self.top, ".", FOLDER, Mode::empty());
        }
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{ResolveFlags, openat2};
            let rule = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            for _ in 0..64 {
                match openat2(&self.top, folder, FOLDER, Mode::empty(), rule) {
                    Err(Errno::AGAIN) => {}
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    other => return other,
                }
            }
        }
        self.step(folder, false)
    }

    fn make_folders(&self, folder: &Path) -> rustix::io::Result<OwnedFd> {
        self.step(folder, true)
    }

    /// One component after the other, none of them a link.
    fn step(&self, folder: &Path, makes: bool) -> rustix::io::Result<OwnedFd> {
        let mut here = openat(&self.top, ".", FOLDER, Mode::empty())?;
        for part in folder.iter() {
            here = match openat(&here, part, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) if makes => {
                    match mkdirat(&here, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error),
                    }
                    openat(&here, part, FOLDER, Mode::empty())?
                }
                other => other?,
            };
        }
        Ok(here)
    }
}

/// What the last step says: with NOFOLLOW and DIRECTORY a link is told as "not a folder", too.
fn at_end(error: Errno, path: &Path) -> Refusal {
    match error {
        Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY => Refusal::NotRegular { path: path.to_owned() },
        other => name(other, path),
    }
}

/// Prepares a file in a folder: its bytes and mode are on the disk, under a name that goes with the value.
///
/// # Errors
/// What the disk says.
pub fn draft(folder: &Path, bytes: &[u8], mode: u32) -> Result<TempPath, Fault> {
    let write = || {
        let mut draft = tempfile::Builder::new().prefix("draft-").tempfile_in(folder)?;
        draft.write_all(bytes)?;
        draft.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
        draft.as_file().sync_all()?;
        sync_folder(folder)?;
        Ok(draft.into_temp_path())
    };
    write().map_err(Fault::at::<std::io::Error>("write in", folder))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::symlink;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct Place {
        _room: tempfile::TempDir,
        tree: PathBuf,
        drafts: PathBuf,
        outside: PathBuf,
    }

    fn place() -> (Place, Beneath) {
        let room = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = room.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (tree, drafts, outside) = (folder("tree"), folder("drafts"), folder("outside"));
        let beneath = Beneath::open(&tree).unwrap();
        (Place { tree, drafts, outside, _room: room }, beneath)
    }

    fn write(place: &Place, beneath: &Beneath, path: &str, text: &str) -> Result<(), Refusal> {
        let draft = draft(&place.drafts, text.as_bytes(), 0o644)?;
        beneath.put(Path::new(path), &draft)?;
        let _ = draft.keep();
        Ok(())
    }

    #[test]
    fn a_file_is_written_whole_with_its_folders_and_read_back() {
        let (place, beneath) = place();
        write(&place, &beneath, "a/b/new.txt", "one").unwrap();
        write(&place, &beneath, "a/b/new.txt", "two").unwrap();
        let standing = beneath.standing(Path::new("a/b/new.txt"), 10).unwrap().unwrap();
        assert_eq!(standing, Standing { bytes: b"two".to_vec(), mode: 0o644 });
        assert_eq!(beneath.standing(Path::new("a/x/none"), 10).unwrap(), None);
        assert_eq!(std::fs::read_dir(&place.drafts).unwrap().count(), 0);
        beneath.remove(Path::new("a/b/new.txt")).unwrap();
        beneath.remove(Path::new("a/b/new.txt")).unwrap();
        assert_eq!(beneath.standing(Path::new("a/b/new.txt"), 10).unwrap(), None);
    }

    #[test]
    fn links_upward_steps_and_what_is_no_file_are_refused_and_nothing_is_written_outside() {
        let (place, beneath) = place();
        symlink(&place.outside, place.tree.join("out")).unwrap();
        symlink("/proc/self/fd", place.tree.join("fd")).unwrap();
        std::fs::write(place.tree.join("file"), "x").unwrap();
        std::fs::create_dir(place.tree.join("folder")).unwrap();
        for path in ["out/x", "out", "fd/3", "../x", "/etc/x", "a//b", "./x", "file/x", "folder", "a/../b", ""] {
            let refused = write(&place, &beneath, path, "x");
            // A link in the file's own place is replaced by the file, and never followed.
            assert!(refused.is_err() || path == "out", "{path}");
        }
        assert_eq!(std::fs::read_dir(&place.outside).unwrap().count(), 0);
        assert!(place.tree.join("out").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_file_with_other_names_a_pipe_and_a_link_do_not_stand_for_a_file() {
        let (place, beneath) = place();
        std::fs::write(place.outside.join("theirs"), "x").unwrap();
        std::fs::hard_link(place.outside.join("theirs"), place.tree.join("linked")).unwrap();
        symlink(place.outside.join("theirs"), place.tree.join("link")).unwrap();
        nix::unistd::mkfifo(&place.tree.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let of = |path: &str| beneath.standing(Path::new(path), 10).unwrap_err();
        assert!(matches!(of("linked"), Refusal::Linked { .. }));
        assert!(matches!(of("link"), Refusal::Symlink { .. }));
        assert!(matches!(of("pipe"), Refusal::NotRegular { .. }));
        std::fs::write(place.tree.join("large"), "more than ten bytes").unwrap();
        assert!(matches!(of("large"), Refusal::TooLarge { .. }));
    }

    #[test]
    fn a_name_that_is_another_form_of_one_that_stands_is_seen() {
        let (place, beneath) = place();
        write(&place, &beneath, "Src/A.txt", "x").unwrap();
        let folded = |one: &OsStr, other: &OsStr| one.eq_ignore_ascii_case(other);
        let twin = |path: &str| beneath.has_twin(Path::new(path), &folded).unwrap();
        assert!(twin("src/b.txt") && twin("Src/a.txt"));
        assert!(!twin("Src/A.txt") && !twin("Src/b.txt") && !twin("other/a.txt"));
    }

    /// Somebody swaps a folder for a link to the outside, again and again, while files are written below it.
    #[test]
    fn a_hundred_thousand_tries_with_a_folder_that_is_swapped_write_nothing_outside() {
        let (place, beneath) = place();
        std::fs::create_dir(place.tree.join("a")).unwrap();
        let (folder, hidden) = (place.tree.join("a"), place.tree.join("hidden"));
        let done = AtomicBool::new(false);
        let (mut written, mut refused) = (0_u32, 0_u32);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::fs::rename(&folder, &hidden).unwrap();
                    symlink(&place.outside, &folder).unwrap();
                    std::fs::remove_file(&folder).unwrap();
                    std::fs::rename(&hidden, &folder).unwrap();
                }
            });
            let bytes = place.drafts.join("draft");
            for _ in 0..100_000_u32 {
                if !bytes.exists() {
                    std::fs::write(&bytes, "x").unwrap();
                }
                // Without the flush: only where it lands matters here.
                let put = beneath.folder_of(Path::new("a/x"), false).and_then(|(folder, file)| {
                    renameat(CWD, &bytes, &folder, file).map_err(|error| at_end(error, Path::new("a/x")))
                });
                if put.is_ok() { written += 1 } else { refused += 1 }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(std::fs::read_dir(&place.outside).unwrap().count(), 0);
        assert!(written > 0 && refused > 0, "{written} written, {refused} refused: nobody raced");
    }
}
