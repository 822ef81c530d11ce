//! The two ends of a byte stream that is not ours to choose: pipes, sockets (Node gives its children
//! those), terminals, plain files. Read and written without ever blocking the loop, and without
//! changing the mode of a descriptor that other processes share.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use mcp_wire::gather::{Gather, SLICES};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use tokio::io::unix::AsyncFd;

use crate::os;

/// Room for one read: the default capacity of a pipe.
const READ_AT_LEAST: usize = 64 * 1024;

/// Room in a pipe, so that a large message crosses in fewer wake-ups. Not more: a user's processes
/// share an allowance, and one who runs a hundred proxies must not run out of it.
const PIPE_BYTES: usize = 256 * 1024;

/// One end of a stream.
pub struct Pipe {
    way: Way,
    /// The mode a shared descriptor had, where it had to be changed; put back at the end.
    restore: Option<OFlags>,
    /// A read that brings less than there was room for has emptied the stream. True for pipes and
    /// stream sockets; a terminal gives a line at a time.
    short_read_empties: bool,
    /// The last write found no room, and there has been none since.
    full: bool,
    /// Read from the stream before it was a pipe.
    heard: Vec<u8>,
}

enum Way {
    /// A pipe or a terminal, in a non-blocking mode of our own.
    Polled(AsyncFd<OwnedFd>),
    /// A socket, whose calls take "do not wait" one by one.
    Socket(AsyncFd<OwnedFd>),
    /// A plain file or the null device: always ready.
    Ready(OwnedFd),
}

impl Pipe {
    /// A pipe end that is ours alone.
    pub fn owned(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        os::enlarge_pipe(fd.as_fd(), PIPE_BYTES);
        Ok(Self {
            way: Way::Polled(os::watch(fd)?),
            restore: None,
            short_read_empties: true,
            full: false,
            heard: Vec::new(),
        })
    }

    /// Standard input, output or error: shared with whoever gave it to us.
    pub fn shared(fd: BorrowedFd<'_>, mode: OFlags) -> io::Result<Self> {
        let file_type = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        let way = match file_type {
            FileType::Socket => Way::Socket(os::watch(fd.try_clone_to_owned()?)?),
            FileType::Fifo | FileType::CharacterDevice => match reopen(fd, mode).and_then(os::watch) {
                Ok(fd) => {
                    os::enlarge_pipe(fd.get_ref().as_fd(), PIPE_BYTES);
                    Way::Polled(fd)
                }
                Err(_) => return Self::shared_mode_changed(fd),
            },
            _ => Way::Ready(fd.try_clone_to_owned()?),
        };
        let short_read_empties = match file_type {
            FileType::Socket => rustix::net::sockopt::socket_type(fd)? == rustix::net::SocketType::STREAM,
            other => other == FileType::Fifo,
        };
        Ok(Self { way, restore: None, short_read_empties, full: false, heard: Vec::new() })
    }

    /// Where a descriptor cannot be opened anew, its own mode is changed while we use it.
    fn shared_mode_changed(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let before = rustix::fs::fcntl_getfl(fd)?;
        let copy = fd.try_clone_to_owned()?;
        rustix::fs::fcntl_setfl(fd, before | OFlags::NONBLOCK)?;
        match os::watch(copy) {
            Ok(fd) => Ok(Self::unsure(Way::Polled(fd), Some(before))),
            // The null device and its like cannot be waited for, and need not be.
            Err(_) => {
                rustix::fs::fcntl_setfl(fd, before)?;
                Ok(Self::unsure(Way::Ready(fd.try_clone_to_owned()?), None))
            }
        }
    }

    fn unsure(way: Way, restore: Option<OFlags>) -> Self {
        Self { way, restore, short_read_empties: false, full: false, heard: Vec::new() }
    }

    /// The same stream, with what somebody has read of it already in front.
    pub fn after(mut self, heard: Vec<u8>) -> Self {
        self.heard = heard;
        self
    }

    /// Appends what can be read now to `buffer`; 0 is the end of the stream. An `eager` read is tried
    /// before it is known whether there is anything: under load there mostly is, and asking first
    /// costs as much as reading.
    pub fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>, eager: bool) -> Poll<io::Result<usize>> {
        if !self.heard.is_empty() {
            let heard = std::mem::take(&mut self.heard);
            buffer.extend_from_slice(&heard);
            return Poll::Ready(Ok(heard.len()));
        }
        if buffer.capacity() - buffer.len() < READ_AT_LEAST {
            match buffer.len() {
                // Not more: what was read is passed on before the next read, so that the receiver
                // works on it meanwhile.
                0..READ_AT_LEAST => buffer.reserve_exact(READ_AT_LEAST),
                // A large message on its way; it grows by doubling.
                len => buffer.reserve(len),
            }
        }
        let (Way::Polled(fd) | Way::Socket(fd)) = &self.way else {
            return Poll::Ready(Ok(rustix::io::read(self.as_fd(), spare_capacity(buffer))?));
        };
        if eager && let Ok(count) = self.read_now(buffer) {
            return Poll::Ready(Ok(count));
        }
        loop {
            let mut guard = ready!(fd.poll_read_ready(cx))?;
            let room = buffer.capacity() - buffer.len();
            match self.read_now(buffer) {
                Ok(count) => {
                    if self.short_read_empties && count < room && count > 0 {
                        // The next byte brings a new wake-up, so a read that fails is spared.
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(rustix::io::Errno::AGAIN) => guard.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                // A terminal whose other side is gone, or a peer that reset the connection.
                Err(rustix::io::Errno::IO | rustix::io::Errno::CONNRESET) => return Poll::Ready(Ok(0)),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Whether the other end was closed, though there may be more to read. Wakes the task when that
    /// changes; a later read must be eager, because what is known of the stream's readiness is lost.
    pub fn poll_hung_up(&mut self, cx: &mut Context<'_>) -> bool {
        let (Way::Polled(fd) | Way::Socket(fd)) = &self.way else { return false };
        while let Poll::Ready(Ok(mut guard)) = fd.poll_read_ready(cx) {
            if guard.ready().is_read_closed() {
                return true;
            }
            guard.clear_ready();
        }
        false
    }

    fn read_now(&self, buffer: &mut Vec<u8>) -> rustix::io::Result<usize> {
        match &self.way {
            Way::Polled(fd) => rustix::io::read(fd, spare_capacity(buffer)),
            Way::Socket(fd) => {
                rustix::net::recv(fd, spare_capacity(buffer), RecvFlags::DONTWAIT).map(|(_, count)| count)
            }
            Way::Ready(fd) => rustix::io::read(fd, spare_capacity(buffer)),
        }
    }

    /// Writes what the stream takes at once and forgets the rest.
    pub fn write_now(&self, bytes: &[u8]) {
        let _ = match &self.way {
            Way::Polled(fd) => rustix::io::write(fd, bytes),
            Way::Socket(fd) => rustix::net::send(fd, bytes, SendFlags::DONTWAIT),
            Way::Ready(fd) => rustix::io::write(fd, bytes),
        };
    }

    /// Writes as much of `bytes` as the stream takes. Ready once nothing is left.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &mut Gather) -> Poll<io::Result<()>> {
        if self.full
            && let Way::Polled(fd) | Way::Socket(fd) = &self.way
        {
            drop(ready!(fd.poll_write_ready(cx))?);
        }
        loop {
            // Written first and asked after: there mostly is room.
            match (self.write_what_fits(bytes), &self.way) {
                (Err(rustix::io::Errno::AGAIN), Way::Polled(fd) | Way::Socket(fd)) => {
                    ready!(fd.poll_write_ready(cx))?.clear_ready()
                }
                (written, _) => return Poll::Ready(Ok(written?)),
            }
        }
    }

    /// Writes what the stream takes at once, unless it is known to take nothing. What is left, and whatever went wrong,
    /// is for `poll_write`.
    pub fn write_ahead(&mut self, bytes: &mut Gather) {
        if !self.full {
            let _ = self.write_what_fits(bytes);
        }
    }

    /// Writes until nothing is left, or until that fails.
    fn write_what_fits(&mut self, bytes: &mut Gather) -> rustix::io::Result<()> {
        while !bytes.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let slices = bytes.slices(&mut slices);
            let written = match &self.way {
                Way::Polled(fd) => rustix::io::writev(fd, slices),
                Way::Socket(fd) => {
                    rustix::net::sendmsg(fd, slices, &mut SendAncillaryBuffer::default(), SendFlags::DONTWAIT)
                }
                Way::Ready(fd) => rustix::io::writev(fd, slices),
            };
            self.full = written == Err(rustix::io::Errno::AGAIN);
            match written {
                Ok(count) => bytes.advance(count),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether nobody reads this stream any more. Wakes the task when that changes.
    pub fn poll_unread(&mut self, cx: &mut Context<'_>) -> bool {
        let (Way::Polled(fd) | Way::Socket(fd)) = &self.way else { return false };
        while let Poll::Ready(Ok(mut guard)) = fd.poll_write_ready(cx) {
            if guard.ready().is_write_closed() {
                return true;
            }
            guard.clear_ready();
        }
        false
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Polled(fd) | Way::Socket(fd) => fd.get_ref().as_fd(),
            Way::Ready(fd) => fd.as_fd(),
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if let Some(mode) = self.restore {
            let _ = rustix::fs::fcntl_setfl(self.as_fd(), mode);
        }
    }
}

/// The same pipe or terminal under a descriptor with a mode of its own.
fn reopen(fd: BorrowedFd<'_>, mode: OFlags) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = mode | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}
