//! A log that another process appends to, kept small by cutting out its middle.
//!
//! Where the file system can collapse a range (ext4, xfs) nothing that is written meanwhile can be lost;
//! elsewhere the end is copied down and the file cut, and what comes in the last microseconds before the cut may
//! be lost. It does not know who writes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::super::Fault;

/// A log with a limit. The writer must have opened it for append.
#[derive(Clone, Debug)]
pub struct BoundedLog {
    path: PathBuf,
    limit: u64,
    cut: u64,
}

/// What a look at a bounded log found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The file's size now.
    pub bytes: u64,
    /// All that was ever written, as far as this watcher knows: the size and what it has cut.
    pub written: u64,
}

impl BoundedLog {
    /// Watches a log that is to stay below `limit` bytes (at least 64 KiB).
    pub fn new(path: &Path, limit: u64) -> Self {
        BoundedLog { path: path.to_owned(), limit: limit.max(64 << 10), cut: 0 }
    }

    /// Looks at the log and cuts it if it is above its limit: the first quarter of the limit stays, then a line
    /// that tells how much is missing, then the last quarter. A missing file is empty.
    ///
    /// # Errors
    /// What the disk says.
    pub fn check(&mut self) -> Result<LogState, Fault> {
        let size = match std::fs::symlink_metadata(&self.path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(self.fault(io::Error::other("it is no regular file any more"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(self.fault(error)),
        };
        let bytes = if size > self.limit { self.shorten().map_err(|error| self.fault(error))? } else { size };
        Ok(LogState { bytes, written: bytes.saturating_add(self.cut) })
    }

    fn fault(&self, source: io::Error) -> Fault {
        Fault::new("bound the log", &self.path, source)
    }

    /// Cuts; the size after it.
    fn shorten(&mut self) -> io::Result<u64> {
        let mut options = OpenOptions::new();
        let file =
            options.read(true).write(true).custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits()).open(&self.path)?;
        let (size, block) = file.metadata().map(|found| (found.len(), found.blksize().max(512)))?;
        let quarter = (self.limit / 4).next_multiple_of(block);
        let end = size.saturating_sub(quarter) / block * block;
        if end <= quarter {
            return Ok(size);
        }
        let removed = match collapse(&file, quarter, end - quarter) {
            Ok(()) => end - quarter,
            Err(_) => copy_down(&file, quarter, end)?,
        };
        self.cut = self.cut.saturating_add(removed);
        mark(&file, quarter, self.cut)?;
        Ok(file.metadata()?.len())
    }
}

/// Takes a range out of the file in one step, under the same lock that appends take.
#[cfg(target_os = "linux")]
fn collapse(file: &File, from: u64, length: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::COLLAPSE_RANGE, from, length)?)
}

/// There is no such call here.
#[cfg(not(target_os = "linux"))]
fn collapse(_file: &File, _from: u64, _length: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Copies everything from `from` down to `to`, also what is appended meanwhile, then cuts; the bytes removed.
fn copy_down(file: &File, to: u64, from: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 64 << 10];
    let (mut source, mut target) = (from, to);
    // A writer that is faster than this copy is cut off in the end: the loop is bounded by what was there.
    let most = file.metadata()?.len().saturating_mul(2).saturating_sub(from);
    loop {
        let count = file.read_at(&mut buffer, source)?;
        if count == 0 || target - to > most {
            break;
        }
        file.write_all_at(buffer.get(..count).unwrap_or_default(), target)?;
        source += count as u64;
        target += count as u64;
    }
    file.set_len(target)?;
    Ok(from - to)
}

/// Writes the line that tells of the cut over the end of what was kept of the beginning.
fn mark(file: &File, at: u64, cut: u64) -> io::Result<()> {
    let line = format!("\n[... {cut} bytes cut out here ...]\n");
    file.write_all_at(line.as_bytes(), at.saturating_sub(line.len() as u64))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::io::Write;

    use super::*;

    fn lines(from: u64, to: u64) -> String {
        (from..to).map(|number| format!("line {number:08}\n")).collect()
    }

    #[test]
    fn a_log_below_its_limit_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut log = BoundedLog::new(&path, 64 << 10);
        assert_eq!(log.check().unwrap(), LogState { bytes: 0, written: 0 });
        std::fs::write(&path, "hello\n").unwrap();
        assert_eq!(log.check().unwrap(), LogState { bytes: 6, written: 6 });
    }

    #[test]
    fn the_beginning_and_the_end_stay_and_the_cut_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut writer = super::super::append_private(&path).unwrap();
        let mut log = BoundedLog::new(&path, 64 << 10);
        for round in 0..10 {
            writer.write_all(lines(round * 10_000, (round + 1) * 10_000).as_bytes()).unwrap();
            let state = log.check().unwrap();
            assert!(state.bytes <= 64 << 10, "{state:?}");
            assert_eq!(state.written, (round + 1) * 140_000);
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("line 00000000\nline 00000001\n"));
        assert!(text.ends_with("line 00099998\nline 00099999\n"));
        assert_eq!(text.matches("bytes cut out here").count(), 1);
    }

    #[test]
    fn the_copying_way_keeps_the_same_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        std::fs::write(&path, lines(0, 10_000)).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert_eq!(copy_down(&file, 1_400, 126_000).unwrap(), 124_600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, lines(0, 100) + &lines(9_000, 10_000));
    }

    #[test]
    fn a_writer_at_full_speed_is_cut_while_it_writes_and_loses_nothing_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        let mut writer = super::super::append_private(&path).unwrap();
        let mut log = BoundedLog::new(&path, 256 << 10);
        std::thread::scope(|scope| {
            let writing = scope.spawn(move || {
                for part in 0..2_000 {
                    writer.write_all(lines(part * 100, (part + 1) * 100).as_bytes()).unwrap();
                }
            });
            while !writing.is_finished() {
                log.check().unwrap();
            }
        });
        let state = log.check().unwrap();
        assert!(state.bytes <= 256 << 10);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("line 00199999\n"));
        assert!(text.starts_with("line 00000000\n"));
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(BoundedLog::new(&path, 1).check().is_err());
    }
}
