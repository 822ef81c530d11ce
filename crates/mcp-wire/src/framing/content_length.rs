//! `Content-Length` headers, a blank line, then that many bytes. Not MCP in any revision, but spoken
//! by servers that grew out of the language-server world.

use bytes::Bytes;

use super::{Cut, Deframer, Ending, Frame};

/// A longer block of lines is no header block: a real one has one or two short headers.
const HEADERS_MAX: usize = 8 * 1024;
/// Bytes recorded as a sample of input that no header announced.
const SAMPLE_KEPT: usize = 256;
/// A length this many times over the limit is a wrong header, not a large message: counting it out
/// would swallow everything that follows.
const ABSURD_TIMES: usize = 16;
const LENGTH: &[u8] = b"content-length:";
const TYPE: &[u8] = b"content-type:";

pub(super) enum Starts {
    Yes,
    No,
    /// Too short to tell.
    Perhaps,
}

pub(super) fn starts_headers(bytes: &[u8]) -> Starts {
    let mut starts = Starts::No;
    for name in [LENGTH, TYPE] {
        let shown = bytes.len().min(name.len());
        if bytes[..shown].eq_ignore_ascii_case(&name[..shown]) {
            if shown == name.len() {
                return Starts::Yes;
            }
            starts = Starts::Perhaps;
        }
    }
    starts
}

/// What the front of the buffer is.
enum Front {
    /// A header block, and the message it announces.
    Message {
        start: usize,
        length: usize,
    },
    Incomplete,
    /// No header block that says how long the message is.
    Astray,
}

impl Deframer {
    pub(super) fn cut_counted(&mut self, cuts: &mut Vec<Cut>) {
        loop {
            if !self.skip_counted(cuts) {
                return;
            }
            let frames = self.whole_messages();
            if let Some(&(_, end)) = frames.last() {
                let batch = self.take(end);
                cuts.extend(frames.into_iter().map(|(start, end)| {
                    Cut::Frame(Frame { bytes: batch.slice(start..end), ending: Ending::Counted, bom: false })
                }));
            }
            match front(&self.buffer) {
                Front::Message { length, .. } if length > self.limit.saturating_mul(ABSURD_TIMES) => {
                    if !self.resynchronise(cuts) {
                        return;
                    }
                }
                Front::Message { start, length } if length > self.limit => {
                    self.buffer.drain(..start);
                    let rest = self.buffer.split_off(self.buffer.len().min(length));
                    self.begin_skip(Some(length as u64));
                    self.buffer = rest;
                }
                Front::Astray => {
                    if !self.resynchronise(cuts) {
                        return;
                    }
                }
                Front::Message { .. } | Front::Incomplete => return,
            }
        }
    }

    pub(super) fn finish_counted(&mut self, cuts: &mut Vec<Cut>) {
        if let Some(skip) = self.skip.take() {
            cuts.push(skip.end());
        } else if !self.buffer.trim_ascii().is_empty() {
            cuts.push(Cut::Unframed { sample: sample(&self.buffer) });
        }
        self.buffer.clear();
    }

    /// Where the messages stand that are in the buffer as a whole.
    fn whole_messages(&self) -> Vec<(usize, usize)> {
        let mut frames = Vec::new();
        let mut at = 0;
        while let Front::Message { start, length } = front(&self.buffer[at..]) {
            let (start, end) = (at + start, (at + start).saturating_add(length));
            if end > self.buffer.len() || length > self.limit {
                break;
            }
            frames.push((start, end));
            at = end;
        }
        frames
    }

    /// Passes over the rest of an oversize message. False while some of it is to come.
    fn skip_counted(&mut self, cuts: &mut Vec<Cut>) -> bool {
        let Some(mut skip) = self.skip.take() else { return true };
        let left = usize::try_from(skip.left.unwrap_or(0)).unwrap_or(usize::MAX);
        let here = left.min(self.buffer.len());
        skip.pass(&self.buffer[..here]);
        self.buffer.drain(..here);
        if here == left {
            cuts.push(skip.end());
            return true;
        }
        self.skip = Some(skip);
        false
    }

    /// Drops bytes up to the next thing that looks like a header. False if there is none yet.
    fn resynchronise(&mut self, cuts: &mut Vec<Cut>) -> bool {
        let next = (1..self.buffer.len()).find(|&at| matches!(starts_headers(&self.buffer[at..]), Starts::Yes));
        let dropped = next.unwrap_or_else(|| self.buffer.len().saturating_sub(LENGTH.len() - 1));
        if dropped > 0 {
            cuts.push(Cut::Unframed { sample: sample(&self.buffer[..dropped]) });
            self.buffer.drain(..dropped);
        }
        next.is_some()
    }
}

fn front(bytes: &[u8]) -> Front {
    // Some peers end a message with a line break that its length does not count.
    let mut at = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    if matches!(starts_headers(&bytes[at..]), Starts::No) {
        return if at == bytes.len() { Front::Incomplete } else { Front::Astray };
    }
    let block = &bytes[..bytes.len().min(HEADERS_MAX)];
    let mut length = None;
    while let Some(end) = block.get(at..).and_then(|rest| memchr::memchr(b'\n', rest)) {
        let line = block[at..at + end].trim_ascii();
        at += end + 1;
        if line.is_empty() {
            return match length {
                Some(length) => Front::Message { start: at, length },
                None => Front::Astray,
            };
        }
        if line.len() >= LENGTH.len() && line[..LENGTH.len()].eq_ignore_ascii_case(LENGTH) {
            let value = decimal(line[LENGTH.len()..].trim_ascii());
            if value.is_none() || length.is_some_and(|earlier| Some(earlier) != value) {
                return Front::Astray;
            }
            length = value;
        }
    }
    if bytes.len() >= HEADERS_MAX { Front::Astray } else { Front::Incomplete }
}

fn decimal(text: &[u8]) -> Option<usize> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn sample(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&bytes[..bytes.len().min(SAMPLE_KEPT)])
}
