//! A message a line: LF or CRLF, perhaps a byte order mark before the first.

use bytes::Bytes;

use super::{Cut, Deframer, Ending, Frame};

pub(super) const BOM: &[u8] = b"\xef\xbb\xbf";

impl Deframer {
    pub(super) fn cut_lines(&mut self, cuts: &mut Vec<Cut>) {
        if !self.skip_line(cuts) {
            return;
        }
        match memchr::memrchr(b'\n', &self.buffer[self.searched..]) {
            Some(last) => self.cut_first_lines(self.searched + last + 1, cuts),
            None => self.searched = self.buffer.len(),
        }
        self.give_up_oversize_line();
    }

    /// Stops holding a line that is over the limit without an end in sight.
    pub(super) fn give_up_oversize_line(&mut self) {
        // One more byte may be the CR of its end.
        if self.buffer.len() > self.limit + 1 {
            self.begin_skip(None);
        }
    }

    /// Cuts the lines that the first `end` bytes of the buffer hold.
    pub(super) fn cut_first_lines(&mut self, end: usize, cuts: &mut Vec<Cut>) {
        if end == 0 {
            return;
        }
        let batch = self.take(end);
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &batch) {
            cuts.push(self.line(&batch, start, end));
            start = end + 1;
        }
    }

    pub(super) fn finish_lines(&mut self, cuts: &mut Vec<Cut>) {
        if let Some(mut skip) = self.skip.take() {
            skip.pass(&self.buffer);
            cuts.push(skip.end());
        } else if self.buffer.len() > self.limit {
            self.begin_skip(None);
            cuts.extend(self.skip.take().map(super::Skip::end));
        } else if !self.buffer.is_empty() {
            let rest = self.take(self.buffer.len());
            let (bytes, bom) = without_bom(rest);
            cuts.push(Cut::Frame(Frame { bytes, ending: Ending::EndOfStream, bom }));
        }
        self.buffer.clear();
    }

    fn line(&self, batch: &Bytes, start: usize, end: usize) -> Cut {
        let (end, ending) = match batch[start..end].last() {
            Some(b'\r') => (end - 1, Ending::CrLf),
            _ => (end, Ending::Lf),
        };
        if end - start > self.limit {
            let line = &batch[start..end];
            let head = Bytes::copy_from_slice(&line[..super::HEAD_KEPT.min(line.len())]);
            let tail = Bytes::copy_from_slice(&line[line.len().saturating_sub(super::TAIL_KEPT)..]);
            return Cut::TooLarge { size: line.len() as u64, head, tail };
        }
        let (bytes, bom) = without_bom(batch.slice(start..end));
        Cut::Frame(Frame { bytes, ending, bom })
    }

    /// Passes over the rest of an oversize line. False while its end has not been seen.
    pub(super) fn skip_line(&mut self, cuts: &mut Vec<Cut>) -> bool {
        let Some(mut skip) = self.skip.take() else { return true };
        let Some(end) = memchr::memchr(b'\n', &self.buffer) else {
            skip.pass(&self.buffer);
            self.skip = Some(skip);
            self.buffer.clear();
            return false;
        };
        skip.pass(&self.buffer[..end]);
        if skip.tail.pop_if(|last| *last == b'\r').is_some() {
            skip.size -= 1;
        }
        cuts.push(skip.end());
        self.buffer.drain(..=end);
        self.searched = 0;
        true
    }
}

fn without_bom(bytes: Bytes) -> (Bytes, bool) {
    if bytes.starts_with(BOM) { (bytes.slice(BOM.len()..), true) } else { (bytes, false) }
}

/// A message that came with its length given may be written over several lines. Between tokens a
/// break means no more than a blank, so blanks take their place.
pub(super) fn without_breaks(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|&byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }).collect()
}
