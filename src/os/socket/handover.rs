//! Open files that go along with a line over a socket: the other end can use them as its own.
//!
//! It does not know what the line says.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// How many files go along: the three standard streams.
pub const FILES: usize = 3;

/// A byte to which the files are bound; a message needs one.
const CARRIER: &[u8] = b"3";

/// Sends three open files.
///
/// # Errors
/// What sendmsg(2) says.
fn send(stream: &UnixStream, files: [BorrowedFd<'_>; FILES]) -> io::Result<()> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut along = SendAncillaryBuffer::new(&mut room);
    if !along.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(stream, &[IoSlice::new(CARRIER)], &mut along, SendFlags::empty())?;
    Ok(())
}

/// Sends this process's own standard streams.
///
/// # Errors
/// What sendmsg(2) says.
pub fn send_own(stream: &UnixStream) -> io::Result<()> {
    use rustix::stdio::{stderr, stdin, stdout};
    send(stream, [stdin(), stdout(), stderr()])
}

/// Takes the three streams that come first on a connection.
///
/// # Errors
/// None came, or not three; or what recvmsg(2) says.
pub fn receive(stream: &UnixStream) -> io::Result<[OwnedFd; FILES]> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
    let mut along = RecvAncillaryBuffer::new(&mut room);
    let mut carrier = [0; 1];
    recvmsg(stream, &mut [IoSliceMut::new(&mut carrier)], &mut along, RecvFlags::CMSG_CLOEXEC)?;
    let files: Vec<OwnedFd> = along
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })
        .flatten()
        .collect();
    files.try_into().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "three open files were expected"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn three_open_files_arrive_and_are_the_same_files() {
        let (near, far) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        send(&near, [file.as_fd(), file.as_fd(), file.as_fd()]).unwrap();
        let [_, out, _] = receive(&far).unwrap();
        File::from(out).write_all(b"from afar").unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "from afar");
    }

    #[test]
    fn a_connection_without_files_is_refused() {
        let (mut near, far) = UnixStream::pair().unwrap();
        near.write_all(b"x").unwrap();
        assert!(receive(&far).is_err());
        drop(near);
        assert!(receive(&far).is_err());
    }
}
