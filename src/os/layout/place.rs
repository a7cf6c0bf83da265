//! Whether a folder may hold a store: a real one, of this user, on a file system with shared memory.
//!
//! It does not know how the folder was found.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::Fault;
use super::DATABASE;

/// Why no store is used here.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// The folder, or the database in it, is a symbolic link.
    #[error("{} is a symbolic link", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// Something other than a folder.
    #[error("{} is no folder", path.display())]
    NotAFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// Another user's.
    #[error("{} belongs to user {owner}, not to you ({own})", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This user.
        own: u32,
    },
    /// Everybody may write into it.
    #[error("{} can be written by everybody", path.display())]
    WorldWritable {
        /// The folder.
        path: PathBuf,
    },
    /// SQLite's log needs memory shared by all its users, which a network does not give.
    #[error("{} is on a network file system ({kind})", path.display())]
    Network {
        /// The folder.
        path: PathBuf,
        /// The file system's name.
        kind: String,
    },
    /// Packets, prompts and commands name paths as text.
    #[error("{} is no UTF-8 text, and agents are told their folders as text", path.display())]
    NotText {
        /// The folder.
        path: PathBuf,
    },
    /// Named by the user, and the committed folder of a linked worktree, which is never a store.
    #[error("{} is the committed folder of a linked worktree; the store is {}", path.display(), store.display())]
    LinkedWorktree {
        /// What was named.
        path: PathBuf,
        /// The repository's store.
        store: PathBuf,
    },
    /// The system refused.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Checks a folder that is there.
pub(super) fn check(root: &Path) -> Result<(), LayoutError> {
    let path = || root.to_owned();
    let found = std::fs::symlink_metadata(root).map_err(Fault::at("look at", root))?;
    if found.is_symlink() {
        return Err(LayoutError::Symlink { path: path() });
    }
    if !found.is_dir() {
        return Err(LayoutError::NotAFolder { path: path() });
    }
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(LayoutError::Foreign { path: path(), owner: found.uid(), own });
    }
    if found.mode() & 0o002 != 0 {
        return Err(LayoutError::WorldWritable { path: path() });
    }
    check_file_system(root)
}

/// Checks the name and the file system of a folder, or of the nearest one above it that is there.
pub(super) fn check_file_system(path: &Path) -> Result<(), LayoutError> {
    if path.to_str().is_none() {
        return Err(LayoutError::NotText { path: path.to_owned() });
    }
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match kind_of(there)? {
        Some(kind) => Err(LayoutError::Network { path: path.to_owned(), kind }),
        None => Ok(()),
    }
}

/// Whether the store's file is there. A link in its place is refused.
pub(super) fn has_database(root: &Path) -> Result<bool, LayoutError> {
    let path = root.join(DATABASE);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_symlink() => Err(LayoutError::Symlink { path }),
        Ok(found) => Ok(found.is_file()),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(Fault::new("look at", &path, error).into()),
    }
}

#[cfg(target_os = "linux")]
fn kind_of(path: &Path) -> Result<Option<String>, Fault> {
    let found = rustix::fs::statfs(path).map_err(Fault::at("look at the file system of", path))?;
    // The word is 32 bits wide; some machines give it a sign.
    let magic = u32::try_from(found.f_type & 0xffff_ffff).unwrap_or(0);
    Ok(unsuitable(magic, || mounted_type(path)))
}

/// Here the system gives the name itself.
#[cfg(not(target_os = "linux"))]
fn kind_of(path: &Path) -> Result<Option<String>, Fault> {
    let remote = ["nfs", "smbfs", "afpfs", "webdav", "ftp", "9p", "macfuse", "osxfuse", "fusefs"];
    let name = nix::sys::statfs::statfs(path).map_err(Fault::at("look at the file system of", path))?;
    let name = name.filesystem_type_name().to_owned();
    Ok(remote.iter().any(|kind| name.starts_with(kind)).then_some(name))
}

/// The name of a file system that can't hold a store, from the magic number of statfs(2) (the numbers are those of
/// the kernel's `magic.h` and of the file systems' own sources). FUSE hides what is behind it, so that
/// `mounted_type`, the type in the table of mounts, decides: known local ones pass, everything else is refused.
pub fn unsuitable(magic: u32, mounted_type: impl FnOnce() -> Option<String>) -> Option<String> {
    let name = match magic {
        0x0000_6969 => "NFS",
        0x0000_517b | 0xff53_4d42 | 0xfe53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x0000_564c => "NCP",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x2003_0528 => "OrangeFS",
        0x7461_636f => "OCFS2",
        0x0116_1970 => "GFS2",
        0xaad7_aaea => "PanFS",
        0x786f_4256 => "VirtualBox shared folder",
        0xbacb_acbc => "VMware shared folder",
        0x7c7c_6673 => "Parallels shared folder",
        0x6573_5546 => return fuse(mounted_type().unwrap_or_else(|| "fuse".to_owned())),
        _ => return None,
    };
    Some(name.to_owned())
}

/// FUSE file systems on one machine, with memory that all its processes share.
fn fuse(kind: String) -> Option<String> {
    let local = [
        "fuseblk",
        "fuse.bindfs",
        "fuse.cryfs",
        "fuse.encfs",
        "fuse.fuse-overlayfs",
        "fuse.gocryptfs",
        "fuse.mergerfs",
        "fuse.ntfs-3g",
    ];
    (!local.contains(&kind.as_str())).then_some(kind)
}

/// The type of the mount that a path lies in, from the kernel's table.
#[cfg(target_os = "linux")]
fn mounted_type(path: &Path) -> Option<String> {
    let device = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    type_of_device(&table, &format!("{major}:{minor}"))
}

/// In a line of mountinfo the device is the third word, the type the first one after the lone hyphen.
#[cfg(target_os = "linux")]
fn type_of_device(table: &str, device: &str) -> Option<String> {
    let line = table.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    line.split_once(" - ")?.1.split(' ').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn network_file_systems_are_refused_by_name() {
        let never = || unreachable!("only FUSE needs the table");
        assert_eq!(unsuitable(0x6969, never), Some("NFS".to_owned()));
        assert_eq!(unsuitable(0xfe53_4d42, never), Some("SMB".to_owned()));
        assert_eq!(unsuitable(0x0102_1997, never), Some("9p".to_owned()));
        for (name, local) in [("ext4", 0xef53), ("xfs", 0x5846_5342), ("btrfs", 0x9123_683e), ("tmpfs", 0x0102_1994)] {
            assert_eq!(unsuitable(local, never), None, "{name}");
        }
    }

    #[test]
    fn fuse_is_judged_by_what_is_mounted() {
        let of = |kind: Option<&str>| unsuitable(0x6573_5546, || kind.map(str::to_owned));
        assert_eq!(of(Some("fuse.sshfs")), Some("fuse.sshfs".to_owned()));
        assert_eq!(of(Some("virtiofs")), Some("virtiofs".to_owned()));
        assert_eq!(of(Some("fuseblk")), None);
        assert_eq!(of(None), Some("fuse".to_owned()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_table_of_mounts_is_read_by_device() {
        let table = "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     30 24 0:45 / /home/u/r rw shared:9 master:2 - fuse.sshfs u@h: rw\n";
        assert_eq!(type_of_device(table, "0:45"), Some("fuse.sshfs".to_owned()));
        assert_eq!(type_of_device(table, "0:46"), None);
    }

    #[test]
    fn links_files_and_open_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("good")).unwrap();
        assert!(check(&at("good")).is_ok());
        symlink(at("good"), at("link")).unwrap();
        assert!(matches!(check(&at("link")), Err(LayoutError::Symlink { .. })));
        std::fs::write(at("file"), "").unwrap();
        assert!(matches!(check(&at("file")), Err(LayoutError::NotAFolder { .. })));
        std::fs::set_permissions(at("good"), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(check(&at("good")), Err(LayoutError::WorldWritable { .. })));
        symlink("elsewhere", at("good").join(DATABASE)).unwrap();
        assert!(matches!(has_database(&at("good")), Err(LayoutError::Symlink { .. })));
    }

    #[test]
    fn another_users_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid();
        if own.is_root() {
            rustix::fs::chown(folder.path(), Some(rustix::fs::Uid::from_raw(65_534)), None).unwrap();
            assert!(matches!(check(folder.path()), Err(LayoutError::Foreign { owner: 65_534, .. })));
        } else {
            assert!(matches!(check(Path::new("/usr")), Err(LayoutError::Foreign { owner: 0, .. })));
        }
    }
}
