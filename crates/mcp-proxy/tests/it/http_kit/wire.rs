//! One connection as bytes: heads and bodies are cut from it and nothing is interpreted further.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::kit::PATIENCE;

pub trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A connection with what was read from it and not used yet.
pub struct Wire {
    tcp: TcpStream,
    io: Box<dyn Stream>,
    got: Vec<u8>,
    body: Body,
}

/// How the end of the body is told that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    None,
    Counted(usize),
    Chunked,
    UntilClosed,
}

/// What came next of a body.
pub enum Piece {
    Data(Vec<u8>),
    End,
    /// The connection ended before the body did.
    Broken,
}

impl Wire {
    pub fn new(tcp: TcpStream) -> Self {
        let io = Box::new(tcp.try_clone().expect("a socket can be duplicated"));
        Self::over(tcp, io)
    }

    /// With something between the socket and us, such as encryption.
    pub fn over(tcp: TcpStream, io: Box<dyn Stream>) -> Self {
        tcp.set_nodelay(true).expect("a socket takes options");
        tcp.set_read_timeout(Some(PATIENCE)).expect("a socket takes options");
        tcp.set_write_timeout(Some(PATIENCE)).expect("a socket takes options");
        Self { tcp, io, got: Vec::new(), body: Body::None }
    }

    pub fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.try_send(bytes) {
            panic!("the proxy does not take {} bytes: {error}", bytes.len());
        }
    }

    /// Sends to a proxy that may have closed already.
    pub fn try_send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.io.write_all(bytes)?;
        self.io.flush()
    }

    /// Reads some more. False at the end of the stream, however it ends.
    #[track_caller]
    fn fill(&mut self) -> bool {
        let mut block = [0; 64 * 1024];
        match self.io.read(&mut block) {
            Ok(count) => {
                self.got.extend_from_slice(&block[..count]);
                count > 0
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                panic!("nothing more comes; so far: {:?}", String::from_utf8_lossy(&self.got))
            }
            Err(_) => false,
        }
    }

    /// Waits for `count` bytes. False if the stream ends before.
    #[track_caller]
    fn wait_for(&mut self, count: usize) -> bool {
        while self.got.len() < count {
            if !self.fill() {
                return false;
            }
        }
        true
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.got.split_off(count);
        std::mem::replace(&mut self.got, rest)
    }

    /// The next head, its blank line included; none if the connection ends before.
    #[track_caller]
    pub fn head(&mut self) -> Option<Head> {
        let mut from = 0_usize;
        loop {
            if let Some(at) = self.got[from..].windows(4).position(|window| window == b"\r\n\r\n") {
                return Some(Head { raw: self.take(from + at + 4) });
            }
            from = self.got.len().saturating_sub(3);
            if !self.fill() {
                return None;
            }
        }
    }

    pub fn expect_body(&mut self, body: Body) {
        self.body = body;
    }

    /// The next piece of the body: a chunk, or what there is.
    #[track_caller]
    pub fn piece(&mut self) -> Piece {
        match self.body {
            Body::None | Body::Counted(0) => {
                self.body = Body::None;
                Piece::End
            }
            Body::Counted(left) => {
                if self.got.is_empty() && !self.fill() {
                    return Piece::Broken;
                }
                let data = self.take(left.min(self.got.len()));
                self.body = Body::Counted(left - data.len());
                Piece::Data(data)
            }
            Body::UntilClosed => {
                if self.got.is_empty() && !self.fill() {
                    self.body = Body::None;
                    return Piece::End;
                }
                Piece::Data(std::mem::take(&mut self.got))
            }
            Body::Chunked => self.chunk().unwrap_or(Piece::Broken),
        }
    }

    fn chunk(&mut self) -> Option<Piece> {
        let size = loop {
            if let Some(at) = self.got.iter().position(|&byte| byte == b'\n') {
                let line = String::from_utf8(self.take(at + 1)).expect("a chunk size is text");
                break usize::from_str_radix(line.trim(), 16).expect("a chunk size");
            }
            self.fill().then_some(())?;
        };
        self.wait_for(size + 2).then_some(())?;
        let mut data = self.take(size + 2);
        assert_eq!(&data[size..], b"\r\n", "a chunk ends with a line end");
        data.truncate(size);
        if size == 0 {
            self.body = Body::None;
            return Some(Piece::End);
        }
        Some(Piece::Data(data))
    }

    /// All of the body, and whether it ended as it should.
    #[track_caller]
    pub fn whole_body(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            match self.piece() {
                Piece::Data(data) => body.extend_from_slice(&data),
                Piece::End => return (body, true),
                Piece::Broken => return (body, false),
            }
        }
    }

    /// Waits for the other side to close, and returns what it sent before that.
    #[track_caller]
    pub fn until_closed(&mut self) -> Vec<u8> {
        while self.fill() {}
        std::mem::take(&mut self.got)
    }

    /// Closes our sending half; the other side still may send.
    pub fn finish_sending(&self) {
        let _ = self.tcp.shutdown(Shutdown::Write);
    }

    /// Bytes that were read but belong to nothing that was asked for.
    pub fn has_bytes(&self) -> bool {
        !self.got.is_empty()
    }
}

/// Waits until one of `sockets` has something to read, and returns which.
#[track_caller]
pub fn wait_for_any(sockets: &[BorrowedFd<'_>], what: &str) -> usize {
    let mut fds: Vec<PollFd<'_>> = sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
    let patience = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
    let ready = poll(&mut fds, Some(&patience)).expect("sockets can be polled");
    assert!(ready > 0, "never happened: {what}");
    fds.iter().position(|fd| !fd.revents().is_empty()).expect("one of them is ready")
}

/// A head, byte for byte.
#[derive(Clone, PartialEq, Eq)]
pub struct Head {
    pub raw: Vec<u8>,
}

impl std::fmt::Debug for Head {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.raw))
    }
}

impl Head {
    /// The request line or the status line.
    pub fn start(&self) -> String {
        let end = self.raw.windows(2).position(|window| window == b"\r\n").unwrap_or(self.raw.len());
        String::from_utf8_lossy(&self.raw[..end]).into_owned()
    }

    /// Names in lower case and values, in the order in which they stand there.
    pub fn headers(&self) -> Vec<(String, Vec<u8>)> {
        let lines = self.raw.split(|&byte| byte == b'\n').skip(1);
        lines
            .map(<[u8]>::trim_ascii)
            .filter(|line| !line.is_empty())
            .map(|line| {
                let colon = line.iter().position(|&byte| byte == b':').expect("a header has a name");
                let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
                (name, line[colon + 1..].trim_ascii().to_vec())
            })
            .collect()
    }

    /// Every value of a header, in order.
    pub fn all(&self, name: &str) -> Vec<String> {
        let of_name = |(known, value): (String, Vec<u8>)| {
            (known == name.to_ascii_lowercase()).then(|| String::from_utf8_lossy(&value).into_owned())
        };
        self.headers().into_iter().filter_map(of_name).collect()
    }

    pub fn get(&self, name: &str) -> Option<String> {
        self.all(name).into_iter().next()
    }

    pub fn status(&self) -> u16 {
        self.start().split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }

    /// How the body that follows is told, if this is a request.
    pub fn request_body(&self) -> Body {
        match self.length() {
            Body::UntilClosed => Body::None,
            body => body,
        }
    }

    /// The same for an answer to `method`.
    pub fn answer_body(&self, method: &str) -> Body {
        match self.status() {
            100..=199 | 204 | 304 => Body::None,
            _ if method == "HEAD" => Body::None,
            _ => self.length(),
        }
    }

    fn length(&self) -> Body {
        match (self.get("transfer-encoding"), self.get("content-length")) {
            (Some(_), Some(_)) => panic!("the length is told in two ways: {self:?}"),
            (Some(coding), None) => {
                assert_eq!(coding, "chunked");
                Body::Chunked
            }
            (None, Some(length)) => Body::Counted(length.parse().expect("a length")),
            (None, None) => Body::UntilClosed,
        }
    }
}
