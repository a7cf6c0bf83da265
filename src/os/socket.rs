//! A Unix socket in a session's folder: bound and reached at any length of path, one JSON line each way.
//!
//! Who is at the other end is told by the kernel. This file does not know what the lines say.

pub mod handover;

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use super::Fault;
use super::wait::{Countdown, is_readable_within, is_writable_within};

/// The longest line, either way, in bytes.
pub const LINE_LIMIT: usize = 1 << 20;

/// The longest path that fits into a socket's address, without its final zero; the shortest of all systems.
const PATH_LIMIT: usize = 103;

/// Why there is no line.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// More than [`LINE_LIMIT`] bytes and no end.
    #[error("the line is longer than {LINE_LIMIT} bytes")]
    TooLong,
    /// Nothing came in time.
    #[error("no whole line within {after_ms} ms")]
    TimedOut {
        /// How long the wait was.
        after_ms: u64,
    },
    /// The other end closed before the end of a line.
    #[error("the other end closed the connection")]
    Closed,
    /// The system refused.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Binds a socket (0600) that does not block. What a dead helper left in its place is removed first, nothing else.
///
/// # Errors
/// Something other than a socket is there; or what bind(2) says.
pub fn bind(path: &Path) -> Result<UnixListener, Fault> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path).map_err(Fault::at("replace", path))?,
        Ok(_) => return Err(Fault::new("bind", path, io::ErrorKind::AlreadyExists)),
        Err(_) => {}
    }
    let address = Address::of(path).map_err(Fault::at("bind", path))?;
    let bound = UnixListener::bind(&address.path).and_then(|listener| {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.map_err(Fault::at("bind", path))
}

/// Connects to a socket.
///
/// # Errors
/// Nobody listens there; or what connect(2) says.
pub fn connect(path: &Path) -> Result<UnixStream, Fault> {
    let address = Address::of(path).map_err(Fault::at("connect to", path))?;
    UnixStream::connect(&address.path).map_err(Fault::at("connect to", path))
}

/// A path that fits, and the folder that keeps it valid.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    /// A long path is named through a descriptor of its folder.
    fn of(path: &Path) -> io::Result<Address> {
        if path.as_os_str().len() <= PATH_LIMIT {
            return Ok(Address { path: path.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Address::through(folder, name)
    }

    #[cfg(target_os = "linux")]
    fn through(folder: &Path, name: &OsStr) -> io::Result<Address> {
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = nix::fcntl::OFlag::O_PATH | nix::fcntl::OFlag::O_DIRECTORY;
        let folder = File::options().read(true).custom_flags(flags.bits()).open(folder)?;
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Address { path, _folder: Some(folder) })
    }

    #[cfg(not(target_os = "linux"))]
    fn through(_folder: &Path, _name: &OsStr) -> io::Result<Address> {
        let text = "the path is too long for a socket on this system; move the project to a shorter one";
        Err(io::Error::new(io::ErrorKind::InvalidFilename, text))
    }
}

/// The process at the other end, as it was when it connected.
///
/// # Errors
/// The system does not tell.
pub fn peer_pid(stream: &UnixStream) -> io::Result<i32> {
    #[cfg(target_os = "linux")]
    return Ok(nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::PeerCredentials)?.pid());
    #[cfg(target_os = "macos")]
    return Ok(nix::sys::socket::getsockopt(stream, nix::sys::socket::sockopt::LocalPeerPid)?);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return Err(io::ErrorKind::Unsupported.into());
}

/// What a look at an unfinished line found.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// The line is not whole yet.
    Pending,
    /// A line, without its end.
    Line(Vec<u8>),
}

/// A line that comes in pieces, for a loop that has other things to do: the stream does not block.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads what is there. What follows the line's end is dropped: one line a connection.
    ///
    /// # Errors
    /// [`SocketError::TooLong`], [`SocketError::Closed`], or a fault.
    pub fn read(&mut self, mut stream: impl Read) -> Result<Progress, SocketError> {
        let mut part = [0; 16 << 10];
        loop {
            let count = match stream.read(&mut part) {
                Ok(0) => return Err(SocketError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Progress::Pending),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(SocketError::Closed),
                Err(error) => return Err(Fault::new("read from", "the socket", error).into()),
            };
            let fresh = part.get(..count).unwrap_or_default();
            let end = fresh.iter().position(|byte| *byte == b'\n');
            self.bytes.extend_from_slice(fresh.get(..end.unwrap_or(count)).unwrap_or_default());
            if self.bytes.len() > LINE_LIMIT {
                return Err(SocketError::TooLong);
            }
            if end.is_some() {
                return Ok(Progress::Line(std::mem::take(&mut self.bytes)));
            }
        }
    }
}

/// Waits for a whole line, at most `timeout_ms` in all, however slowly it comes.
///
/// # Errors
/// See [`SocketError`].
pub fn read_line(stream: &UnixStream, timeout_ms: u64) -> Result<Vec<u8>, SocketError> {
    stream.set_nonblocking(true).map_err(Fault::at("read from", Path::new("the socket")))?;
    let end = Countdown::start(timeout_ms);
    let mut incoming = Incoming::new();
    loop {
        let ready = is_readable_within(stream, end.left_ms());
        if !ready.map_err(Fault::at("wait for", Path::new("the socket")))? {
            return Err(SocketError::TimedOut { after_ms: timeout_ms });
        }
        if let Progress::Line(line) = incoming.read(stream)? {
            return Ok(line);
        }
    }
}

/// Writes a line and its end, at most `timeout_ms` in all, however slowly the other end takes it.
///
/// # Errors
/// [`SocketError::TooLong`]; [`SocketError::Closed`]; [`SocketError::TimedOut`].
pub fn write_line(stream: &UnixStream, line: &[u8], timeout_ms: u64) -> Result<(), SocketError> {
    if line.len() > LINE_LIMIT {
        return Err(SocketError::TooLong);
    }
    stream.set_nonblocking(true).map_err(Fault::at("write to", Path::new("the socket")))?;
    let whole = [line, b"\n"].concat();
    let (mut rest, end) = (whole.as_slice(), Countdown::start(timeout_ms));
    while !rest.is_empty() {
        if !is_writable_within(stream, end.left_ms()).map_err(Fault::at("wait for", Path::new("the socket")))? {
            return Err(SocketError::TimedOut { after_ms: timeout_ms });
        }
        match (&mut &*stream).write(rest) {
            Ok(count) => rest = rest.get(count..).unwrap_or_default(),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
                return Err(SocketError::Closed);
            }
            Err(error) => return Err(Fault::new("write to", "the socket", error).into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    #[test]
    fn a_path_of_any_length_can_be_bound_and_reached() {
        let folder = tempfile::tempdir().unwrap();
        for depth in [1, 40] {
            let deep = folder.path().join("folder/".repeat(depth));
            std::fs::create_dir_all(&deep).unwrap();
            let path = deep.join("broker.sock");
            let listener = bind(&path).unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
            let near = connect(&path).unwrap();
            assert!(is_readable_within(&listener, 5_000).unwrap());
            let (far, _) = listener.accept().unwrap();
            write_line(&near, b"{\"a\":1}", 5_000).unwrap();
            assert_eq!(read_line(&far, 5_000).unwrap(), b"{\"a\":1}");
            assert_eq!(peer_pid(&far).unwrap(), i32::try_from(std::process::id()).unwrap());
            drop(listener);
            assert!(connect(&path).is_err());
            bind(&path).unwrap();
        }
    }

    #[test]
    fn nothing_but_a_dead_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broker.sock");
        std::fs::write(&path, "mine").unwrap();
        assert!(bind(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }

    #[test]
    fn a_line_without_end_is_refused_at_its_limit() {
        let (near, far) = pair();
        let writer = std::thread::spawn(move || (&near).write_all(&vec![b'x'; 4 * LINE_LIMIT]));
        assert!(matches!(read_line(&far, 20_000), Err(SocketError::TooLong)));
        drop(far);
        assert!(writer.join().unwrap().is_err());
        assert!(matches!(write_line(&pair().0, &vec![b'x'; LINE_LIMIT + 1], 1), Err(SocketError::TooLong)));
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes_both_ways() {
        let (near, far) = pair();
        let writer = std::thread::spawn(move || write_line(&near, &vec![b'x'; LINE_LIMIT], 20_000));
        assert_eq!(read_line(&far, 20_000).unwrap().len(), LINE_LIMIT);
        writer.join().unwrap().unwrap();
    }

    #[test]
    fn silence_and_hanging_up_are_told_apart() {
        let (near, far) = pair();
        (&near).write_all(b"half a li").unwrap();
        assert!(matches!(read_line(&far, 20), Err(SocketError::TimedOut { after_ms: 20 })));
        drop(near);
        assert!(matches!(read_line(&far, 5_000), Err(SocketError::Closed)));
    }

    #[test]
    fn a_line_in_pieces_is_put_together_without_blocking() {
        let (near, far) = pair();
        far.set_nonblocking(true).unwrap();
        let mut incoming = Incoming::new();
        assert_eq!(incoming.read(&far).unwrap(), Progress::Pending);
        (&near).write_all(b"one").unwrap();
        assert_eq!(incoming.read(&far).unwrap(), Progress::Pending);
        (&near).write_all(b" line\nand more").unwrap();
        assert_eq!(incoming.read(&far).unwrap(), Progress::Line(b"one line".to_vec()));
    }

    #[test]
    fn whoever_does_not_read_is_given_up() {
        let (near, _far) = pair();
        let long = vec![b'x'; LINE_LIMIT];
        assert!(matches!(write_line(&near, &long, 20), Err(SocketError::TimedOut { after_ms: 20 })));
    }
}
