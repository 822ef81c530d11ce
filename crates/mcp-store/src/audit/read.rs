//! The lines of a part, as they are. What is after the last whole line may be half of one that was being
//! written when its writer died, or is being written now.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// No line is longer: every text in it is bounded, and an escape makes six bytes of one.
pub(super) const LINE_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a log read at a time.
const CHUNK: usize = 256 * 1024;

pub struct LineReader {
    file: File,
    buffer: Vec<u8>,
    /// What of the buffer was given out.
    taken: usize,
    /// Where in the file the next line begins.
    place: u64,
}

impl LineReader {
    /// From the line that begins at `place`.
    pub fn open(path: &Path, place: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(place))?;
        Ok(Self { file, buffer: Vec::new(), taken: 0, place })
    }

    /// Where the next line begins.
    pub fn place(&self) -> u64 {
        self.place
    }

    /// The next whole line with its line break. What is too long to be a line is given out as one
    /// without. `None` at the end of the file, which may grow.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = self.taken;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let len = searched + at + 1 - self.taken;
                return Ok(Some(self.take(len)));
            }
            if self.rest().len() > LINE_BYTES_MAX {
                return Ok(Some(self.take(LINE_BYTES_MAX)));
            }
            searched = self.buffer.len() - self.taken;
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// What stands after the last whole line, after `next_line` has found no more.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let start = self.taken;
        self.taken += len;
        self.place += len as u64;
        &self.buffer[start..self.taken]
    }

    /// Makes room by dropping what was given out, and reads.
    fn read_on(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let before = self.buffer.len();
        let read = self.file.by_ref().take(CHUNK as u64).read_to_end(&mut self.buffer)?;
        debug_assert_eq!(before + read, self.buffer.len());
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_are_read_while_they_are_written() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let mut reader = LineReader::open(file.path(), 0).expect("open");
        assert_eq!(reader.next_line().expect("read"), None);
        file.write_all(b"one\ntw").expect("written");
        assert_eq!(reader.next_line().expect("read"), Some(&b"one\n"[..]));
        assert_eq!(reader.next_line().expect("read"), None);
        assert_eq!((reader.rest(), reader.place()), (&b"tw"[..], 4));
        file.write_all(b"o\n\nthree\n").expect("written");
        for line in [&b"two\n"[..], b"\n", b"three\n"] {
            assert_eq!(reader.next_line().expect("read"), Some(line));
        }
        assert_eq!(reader.next_line().expect("read"), None);
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn lines_cross_what_is_read_at_a_time() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let lines: Vec<String> = (0..50_000).map(|n| format!("{n:>width$}\n", width = n % 97)).collect();
        file.write_all(lines.concat().as_bytes()).expect("written");
        let mut reader = LineReader::open(file.path(), 0).expect("open");
        for line in &lines {
            assert_eq!(reader.next_line().expect("read"), Some(line.as_bytes()));
        }
        assert_eq!(reader.next_line().expect("read"), None);
    }

    #[test]
    fn what_is_too_long_is_no_line() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&vec![b'x'; 3 * CHUNK]).expect("written");
        let mut reader = LineReader::open(file.path(), 0).expect("open");
        let line = reader.next_line().expect("read").expect("something");
        assert_eq!((line.len(), line.last()), (LINE_BYTES_MAX, Some(&b'x')));
    }
}
