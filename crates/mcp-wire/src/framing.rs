//! How messages are cut from a byte stream and put back on one. Two framings are known on a pipe: a
//! message a line, and `Content-Length` headers before each. Which of them a peer speaks is settled by
//! its first bytes and then fixed. Event streams over HTTP stand apart, in [`sse`].
//!
//! The deframer owns the buffer that reads go into, so a read that is cancelled loses nothing, and
//! it hands out every complete message at once, as slices of that buffer.

mod content_length;
mod line;
pub mod sse;

use bytes::Bytes;
use content_length::Starts;

use crate::gather::Gather;

/// The largest message that passes unless `--message-limit` says otherwise. The option takes 1 KiB, below which no
/// handshake fits, to 1 GiB, because a record's length has 32 bits.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes kept of the beginning and the end of an oversize message: enough to find its id.
pub(crate) const HEAD_KEPT: usize = 64 * 1024;
pub(crate) const TAIL_KEPT: usize = 1024;
/// A buffer that grew past this for one large message is given back after it. Messages of a megabyte
/// are common enough to keep the room for the next one.
const BUFFER_KEPT: usize = 2 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Line,
    ContentLength,
}

/// The bytes of one message as framing cut them, and what framing cut away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub bytes: Bytes,
    pub ending: Ending,
    /// A byte order mark stood before it.
    pub bom: bool,
}

impl Frame {
    /// A message of our own, framed as its receiver likes it.
    pub fn composed(bytes: Bytes) -> Self {
        Self { bytes, ending: Ending::Counted, bom: false }
    }
}

/// A frame on its way out, borrowed: handles are cheap, but not free for every message.
#[derive(Clone, Copy, Debug)]
pub struct FrameRef<'a> {
    pub bytes: &'a Bytes,
    pub ending: Ending,
    pub bom: bool,
}

impl<'a> FrameRef<'a> {
    /// A message of our own, framed as its receiver likes it.
    pub fn composed(bytes: &'a Bytes) -> Self {
        Self { bytes, ending: Ending::Counted, bom: false }
    }
}

impl<'a> From<&'a Frame> for FrameRef<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self { bytes: &frame.bytes, ending: frame.ending, bom: frame.bom }
    }
}

/// What told where a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Lf,
    CrLf,
    /// The stream ended without a line end.
    EndOfStream,
    /// Its length was given in advance; it may hold line breaks.
    Counted,
}

/// What a stream was cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    Frame(Frame),
    /// A message beyond the limit. It is gone; the next one is in step again.
    TooLarge {
        size: u64,
        head: Bytes,
        tail: Bytes,
    },
    /// Bytes where a header should have been, up to where headers made sense again.
    Unframed {
        sample: Bytes,
    },
}

/// Cuts messages from the bytes that are appended to its buffer.
#[derive(Debug)]
pub struct Deframer {
    framing: Option<Framing>,
    limit: usize,
    buffer: Vec<u8>,
    /// Searched up to here without finding an end.
    searched: usize,
    skip: Option<Skip>,
    /// The last batch, taken back as a buffer once nobody holds a message of it any more.
    spent: Bytes,
}

impl Deframer {
    pub fn new(limit: usize) -> Self {
        Self { framing: None, limit, buffer: Vec::new(), searched: 0, skip: None, spent: Bytes::new() }
    }

    /// The framing this peer speaks, once known.
    pub fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Where the next bytes of the stream go. They may only be appended.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Cuts every complete message that is in the buffer.
    pub fn cut(&mut self, cuts: &mut Vec<Cut>) {
        if self.framing.is_none() {
            self.settle(cuts);
        }
        match self.framing {
            Some(Framing::Line) => self.cut_lines(cuts),
            Some(Framing::ContentLength) => self.cut_counted(cuts),
            None => {}
        }
    }

    /// Cuts what is left when the stream has ended.
    pub fn finish(&mut self, cuts: &mut Vec<Cut>) {
        self.cut(cuts);
        match self.framing {
            Some(Framing::ContentLength) => self.finish_counted(cuts),
            _ => self.finish_lines(cuts),
        }
    }

    /// Settles the framing by the first bytes that mean something. Lines that are neither JSON nor
    /// a header settle nothing: a server's banner must not decide for it.
    fn settle(&mut self, cuts: &mut Vec<Cut>) {
        if !self.skip_line(cuts) {
            return;
        }
        let mut lines_end = 0;
        loop {
            let rest = &self.buffer[lines_end..];
            let blank = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            if let Some(end) = memchr::memrchr(b'\n', &rest[..blank]) {
                lines_end += end + 1;
                continue;
            }
            let start = blank + if rest[blank..].starts_with(line::BOM) { line::BOM.len() } else { 0 };
            match Sign::of(&rest[start..]) {
                Sign::Json => {
                    self.framing = Some(Framing::Line);
                    return;
                }
                Sign::Header => {
                    self.cut_first_lines(lines_end, cuts);
                    self.buffer.drain(..start);
                    self.framing = Some(Framing::ContentLength);
                    return;
                }
                Sign::Unclear => {}
                Sign::Neither => {
                    let from = self.searched.max(lines_end + start);
                    if let Some(end) = memchr::memchr(b'\n', &self.buffer[from..]) {
                        lines_end = from + end + 1;
                        continue;
                    }
                    self.searched = self.buffer.len();
                }
            }
            break;
        }
        self.cut_first_lines(lines_end, cuts);
        self.give_up_oversize_line();
    }

    /// Splits the first `end` bytes off the buffer as one shared batch.
    fn take(&mut self, end: usize) -> Bytes {
        let mut next = self.spare();
        next.extend_from_slice(&self.buffer[end..]);
        let mut batch = std::mem::replace(&mut self.buffer, next);
        batch.truncate(end);
        self.searched = 0;
        let keep = batch.capacity() <= BUFFER_KEPT;
        let batch = Bytes::from(batch);
        if keep {
            self.spent = batch.clone();
        }
        batch
    }

    /// The last batch's buffer if all its messages are gone, else a new one.
    fn spare(&mut self) -> Vec<u8> {
        let mut spent = std::mem::take(&mut self.spent);
        if !spent.is_unique() {
            return Vec::new();
        }
        spent.clear();
        Vec::from(spent)
    }

    /// Stops holding the current message and counts it instead.
    fn begin_skip(&mut self, left: Option<u64>) {
        let mut skip = Skip {
            size: 0,
            left,
            head: Bytes::copy_from_slice(&self.buffer[..self.buffer.len().min(HEAD_KEPT)]),
            tail: Vec::new(),
        };
        skip.pass(&self.buffer);
        self.skip = Some(skip);
        self.buffer = Vec::new();
        self.searched = 0;
    }
}

/// Whether a stream that begins so brings messages, by either framing; nothing while that cannot be told.
pub fn opens_messages(bytes: &[u8]) -> Option<bool> {
    let bytes = bytes.trim_ascii_start();
    match Sign::of(bytes.strip_prefix(line::BOM).unwrap_or(bytes)) {
        Sign::Json | Sign::Header => Some(true),
        Sign::Neither => Some(false),
        Sign::Unclear => None,
    }
}

/// What the first bytes of a peer say about its framing.
enum Sign {
    Json,
    Header,
    Neither,
    /// Too short to tell.
    Unclear,
}

impl Sign {
    fn of(bytes: &[u8]) -> Self {
        match (bytes.first(), content_length::starts_headers(bytes)) {
            (None, _) | (_, Starts::Perhaps) => Self::Unclear,
            (_, Starts::Yes) => Self::Header,
            (Some(b'{' | b'['), _) => Self::Json,
            _ => Self::Neither,
        }
    }
}

/// A message too large to hold, on its way past.
#[derive(Debug)]
struct Skip {
    size: u64,
    /// Bytes still to come, where the framing says.
    left: Option<u64>,
    head: Bytes,
    tail: Vec<u8>,
}

impl Skip {
    fn pass(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        if let Some(left) = &mut self.left {
            *left -= bytes.len() as u64;
        }
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL_KEPT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_KEPT));
    }

    fn end(self) -> Cut {
        Cut::TooLarge { size: self.size, head: self.head, tail: self.tail.into() }
    }
}

/// Puts `frame` on a stream whose reader speaks `framing`. Between two peers that speak lines, the
/// line leaves exactly as it came; `line_end` is for messages that came without one.
pub fn encode(frame: FrameRef<'_>, framing: Framing, line_end: &[u8], out: &mut Gather) {
    match framing {
        Framing::ContentLength => {
            out.copy(format!("Content-Length: {}\r\n\r\n", frame.bytes.len()).as_bytes());
            out.share(frame.bytes);
        }
        Framing::Line => {
            if frame.bom {
                out.copy(line::BOM);
            }
            match frame.ending {
                Ending::Counted if memchr::memchr2(b'\n', b'\r', frame.bytes).is_some() => {
                    out.copy(&line::without_breaks(frame.bytes))
                }
                _ => out.share(frame.bytes),
            }
            match frame.ending {
                Ending::Lf => out.copy(b"\n"),
                Ending::CrLf => out.copy(b"\r\n"),
                Ending::EndOfStream => {}
                Ending::Counted => out.copy(line_end),
            }
        }
    }
}

#[cfg(test)]
mod tests;
