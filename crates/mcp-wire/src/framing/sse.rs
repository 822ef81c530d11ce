//! Server-Sent Events, as the two HTTP transports carry messages. Each event keeps the bytes it came
//! as, so that a relay passes on comments, ids, retry times and line ends it has no opinion about;
//! what is read from it points into those bytes. Nothing here is taken for UTF-8.
//!
//! Unlike the pipes, HTTP hands over buffers of its own. An event that lies whole in one of them is
//! handed out as a slice of it; only what a buffer leaves unfinished is copied.

use std::ops::Range;

use bytes::Bytes;

use super::line::BOM;
use super::{HEAD_KEPT, TAIL_KEPT};
use crate::gather::Gather;

/// What keeps a silent stream from being taken for dead. Readers skip it.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// What a stream of events was cut into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseCut {
    Event(SseEvent),
    /// An event beyond the limit. It is gone; the next one is in step again. `head` and `tail` are
    /// those of its data, `size` is the whole event's, each line end counted as one byte.
    TooLarge {
        size: u64,
        head: Bytes,
        tail: Bytes,
    },
}

/// One event, or a block that dispatches nothing: comments, or a blank line too many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// Exactly as it came, the blank line that ends it included. The LF of a blank line whose CR
    /// ended the event before may stand at the front: that event did not wait for it.
    pub raw: Bytes,
    /// What its data lines say, joined by LF. A slice of `raw` where there is one line of it.
    pub data: Option<Bytes>,
    pub id: Option<Bytes>,
    pub event: Option<Bytes>,
    /// How long to wait before connecting again, in milliseconds.
    pub retry: Option<u64>,
}

/// Cuts events from the buffers of a stream.
#[derive(Debug)]
pub struct SseDeframer {
    limit: usize,
    /// The event whose end has not come, as far as earlier buffers held it.
    held: Vec<u8>,
    block: Block,
    oversize: Option<Oversize>,
    /// The last buffer ended with a CR: an LF that follows belongs to the same line end.
    after_cr: bool,
    /// Nothing but a part of a byte order mark has come yet.
    at_start: bool,
}

impl SseDeframer {
    /// An event may have up to `limit` bytes, the blank line at its end aside.
    pub fn new(limit: usize) -> Self {
        Self { limit, held: Vec::new(), block: Block::default(), oversize: None, after_cr: false, at_start: true }
    }

    /// Takes the next bytes of the stream and appends every event they complete.
    pub fn push(&mut self, bytes: &Bytes, cuts: &mut Vec<SseCut>) {
        let Some(mut at) = self.first_line(bytes) else { return };
        let mut start = 0;
        while let Some((end, next)) = line_end(bytes, at) {
            let is_blank = match &mut self.oversize {
                Some(oversize) => oversize.line(&bytes[at..end]),
                None if self.held.is_empty() => self.block.line(&bytes[start..next], end - start),
                None => {
                    self.held.extend_from_slice(&bytes[start..next]);
                    start = next;
                    self.block.line(&self.held, self.held.len() - (next - end))
                }
            };
            at = next;
            if is_blank {
                cuts.push(self.complete(bytes, start..next));
                start = next;
            } else if self.block.size > self.limit && self.oversize.is_none() {
                self.held.extend_from_slice(&bytes[start..next]);
                self.give_up();
            }
        }
        self.after_cr = bytes.ends_with(b"\r");
        match &mut self.oversize {
            Some(oversize) => oversize.pass(&bytes[at..]),
            None => self.hold(&bytes[start..]),
        }
    }

    /// Whether nothing of an event has come whose end has not.
    pub fn is_between_events(&self) -> bool {
        self.held.is_empty() && self.oversize.is_none()
    }

    /// Ends the stream. By the standard an event that no blank line ended does not count; it comes
    /// back here, so that its loss can be told. Comments alone are no loss.
    pub fn finish(&mut self) -> Option<Bytes> {
        let ended = std::mem::replace(self, Self::new(self.limit));
        if let Some(oversize) = ended.oversize {
            return Some(oversize.head.into());
        }
        let mut at = ended.block.lead;
        while let Some(&first) = ended.held.get(at) {
            if first != b':' {
                return Some(ended.held.into());
            }
            at = line_end(&ended.held, at).map_or(ended.held.len(), |(_, next)| next);
        }
        None
    }

    /// Where in `bytes` the first line goes on, past what belongs to no line: a byte order mark, or
    /// the second half of a line end. `None` while that is unclear.
    fn first_line(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.at_start {
            let mark = &BOM[self.held.len()..];
            if mark.len() > bytes.len() && mark.starts_with(bytes) {
                self.held.extend_from_slice(bytes);
                return None;
            }
            self.at_start = false;
            if bytes.starts_with(mark) {
                self.block.begin_at(BOM.len());
                return Some(mark.len());
            }
        }
        let is_second_half = self.after_cr && *bytes.first()? == b'\n';
        if is_second_half {
            self.block.begin_at(self.block.line_start + 1);
        }
        Some(usize::from(is_second_half))
    }

    fn complete(&mut self, bytes: &Bytes, range: Range<usize>) -> SseCut {
        let block = std::mem::take(&mut self.block);
        if let Some(oversize) = self.oversize.take() {
            return oversize.end();
        }
        let raw = if self.held.is_empty() { bytes.slice(range) } else { std::mem::take(&mut self.held).into() };
        SseCut::Event(block.fields.event(raw))
    }

    fn hold(&mut self, rest: &[u8]) {
        self.held.extend_from_slice(rest);
        let begun = self.held.len() - self.block.line_start;
        if begun > 0 && self.block.size + begun + 1 > self.limit {
            self.give_up();
        }
    }

    /// Stops holding an event that is over the limit and counts it instead.
    fn give_up(&mut self) {
        let held = std::mem::take(&mut self.held);
        let mut oversize = Oversize::default();
        let mut at = self.block.lead;
        while let Some((end, next)) = line_end(&held, at) {
            oversize.line(&held[at..end]);
            at = next;
        }
        oversize.pass(&held[at..]);
        self.oversize = Some(oversize);
    }
}

/// The next line end at or after `from`: where it stands, and where the next line begins. A CR that
/// is the last byte counts as one; whether an LF completes it shows with the next buffer.
#[inline]
fn line_end(bytes: &[u8], from: usize) -> Option<(usize, usize)> {
    let end = from + memchr::memchr2(b'\n', b'\r', &bytes[from..])?;
    let is_pair = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
    Some((end, end + 1 + usize::from(is_pair)))
}

/// Splits a line into its field's name and where in the line the value stands. A comment is a field
/// without a name.
fn split_field(line: &[u8]) -> (&[u8], Range<usize>) {
    match memchr::memchr(b':', line) {
        Some(colon) => {
            let blank = line.get(colon + 1) == Some(&b' ');
            (&line[..colon], colon + 1 + usize::from(blank)..line.len())
        }
        None => (line, line.len()..line.len()),
    }
}

/// The event that is being read. Places are counted from its first byte.
#[derive(Debug, Default)]
struct Block {
    /// Where its first line begins.
    lead: usize,
    /// Where the line begins that is being read.
    line_start: usize,
    /// The bytes of its lines, each line end counted as one: the same however the bytes arrive.
    size: usize,
    fields: Fields,
}

impl Block {
    /// The line being read begins at `at`: what stands before belongs to no line.
    fn begin_at(&mut self, at: usize) {
        self.line_start = at;
        if self.size == 0 {
            self.lead = at;
        }
    }

    /// Reads the line that ends at `end`; its line end is the last of `event` so far. True if the
    /// line is blank.
    fn line(&mut self, event: &[u8], end: usize) -> bool {
        let start = std::mem::replace(&mut self.line_start, event.len());
        let line = &event[start..end];
        if line.is_empty() {
            return true;
        }
        self.size += line.len() + 1;
        self.fields.read(line, start);
        false
    }
}

/// Where the fields of an event stand. Of a field that comes twice the last one counts, except that
/// data adds up.
#[derive(Debug, Default)]
struct Fields {
    /// The first line of data.
    data: Option<Range<usize>>,
    has_more_data: bool,
    id: Option<Range<usize>>,
    event: Option<Range<usize>>,
    retry: Option<u64>,
}

impl Fields {
    fn read(&mut self, line: &[u8], start: usize) {
        let (name, value) = split_field(line);
        let place = start + value.start..start + value.end;
        match name {
            b"data" if self.data.is_some() => self.has_more_data = true,
            b"data" => self.data = Some(place),
            b"event" => self.event = Some(place),
            b"id" if memchr::memchr(0, &line[value.clone()]).is_none() => self.id = Some(place),
            b"retry" => self.retry = digits(&line[value]).or(self.retry),
            _ => {}
        }
    }

    fn event(self, raw: Bytes) -> SseEvent {
        let slice = |place: Option<Range<usize>>| place.map(|place| raw.slice(place));
        let data = match self.data {
            Some(first) if self.has_more_data => Some(joined(&raw, first)),
            data => slice(data),
        };
        SseEvent { data, id: slice(self.id), event: slice(self.event), retry: self.retry, raw }
    }
}

fn digits(value: &[u8]) -> Option<u64> {
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// The data of an event that has several lines of it, of which `first` is the first.
fn joined(raw: &[u8], first: Range<usize>) -> Bytes {
    let mut data = Vec::with_capacity(raw.len() - first.start);
    data.extend_from_slice(&raw[first.clone()]);
    let mut at = first.end;
    while let Some((end, next)) = line_end(raw, at) {
        let line = &raw[at..end];
        at = next;
        if let (b"data", value) = split_field(line) {
            data.push(b'\n');
            data.extend_from_slice(&line[value]);
        }
    }
    data.into()
}

/// An event too large to hold, on its way past. It keeps the ends of the data, which say whom it
/// concerns.
#[derive(Debug, Default)]
struct Oversize {
    size: u64,
    /// The first bytes of the line that is passing: enough to know data by.
    opening: Vec<u8>,
    has_data: bool,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Oversize {
    const DATA: &[u8] = b"data: ";

    /// Passes the rest of a line. True if the line is blank.
    fn line(&mut self, rest: &[u8]) -> bool {
        self.pass(rest);
        if self.opening.is_empty() {
            return true;
        }
        if matches!(&self.opening[..], b"data" | b"data:") {
            self.begin_data();
        }
        self.size += 1;
        self.opening.clear();
        false
    }

    /// Passes a part of a line.
    fn pass(&mut self, part: &[u8]) {
        self.size += part.len() as u64;
        let missing = Self::DATA.len() - self.opening.len();
        let (opening, mut value) = part.split_at(missing.min(part.len()));
        self.opening.extend_from_slice(opening);
        if self.opening.len() < Self::DATA.len() || !self.opening.starts_with(b"data:") {
            return;
        }
        if missing > 0 {
            self.begin_data();
            if !self.opening.ends_with(b" ") {
                value = &part[opening.len() - 1..];
            }
        }
        self.keep(value);
    }

    fn begin_data(&mut self) {
        if self.has_data {
            self.keep(b"\n");
        }
        self.has_data = true;
    }

    fn keep(&mut self, data: &[u8]) {
        let room = HEAD_KEPT - self.head.len();
        self.head.extend_from_slice(&data[..room.min(data.len())]);
        self.tail.extend_from_slice(&data[data.len().saturating_sub(TAIL_KEPT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_KEPT));
    }

    fn end(self) -> SseCut {
        SseCut::TooLarge { size: self.size, head: self.head.into(), tail: self.tail.into() }
    }
}

/// Writes `data` as a message event. The reader gets the same data back, save that CR and CRLF
/// arrive as LF: a line break in data is the one thing this framing cannot spell. An id has no line
/// break in it, whether it is ours or was read from a stream or a header.
pub fn encode_event(id: Option<&[u8]>, data: &Bytes, out: &mut Gather) {
    out.copy(b"event: message\n");
    if let Some(id) = id {
        encode_id(id, out);
    }
    encode_data(data, out);
    out.copy(b"\n");
}

/// Writes the event that tells a client of the older transport where to post its messages.
pub fn encode_endpoint(uri: &str, out: &mut Gather) {
    out.copy(b"event: endpoint\n");
    encode_data(&Bytes::copy_from_slice(uri.as_bytes()), out);
    out.copy(b"\n");
}

/// The event that opens a resumable stream: an id to resume from, and data that says nothing.
pub fn priming_event(id: &[u8], retry: Option<u64>) -> Bytes {
    let retry = retry.map(|ms| format!("retry: {ms}\n")).unwrap_or_default();
    [b"id: ", id, b"\n", retry.as_bytes(), b"data: \n\n"].concat().into()
}

fn encode_id(id: &[u8], out: &mut Gather) {
    out.copy(b"id: ");
    out.copy(id);
    out.copy(b"\n");
}

fn encode_data(data: &Bytes, out: &mut Gather) {
    let mut at = 0;
    while let Some((end, next)) = line_end(data, at) {
        encode_data_line(&data.slice(at..end), out);
        at = next;
    }
    if at == 0 { encode_data_line(data, out) } else { encode_data_line(&data.slice(at..), out) }
}

fn encode_data_line(line: &Bytes, out: &mut Gather) {
    out.copy(b"data: ");
    out.share(line);
    out.copy(b"\n");
}

#[cfg(test)]
mod tests;
