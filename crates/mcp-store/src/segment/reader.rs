//! The reading end of a segment. It never changes the file; what a crash tore off the end is told,
//! and cut by [`cut_tail`] once nobody writes any more.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::repeated::Seen;
use super::writer::bookkeeping;
use super::{End, HEAD_LEN, Link, MAGIC, Mark, Record, RecordHead, RecordKind, Verdict, checksum};
use crate::StoreError;
use crate::recorded::SessionHeader;

/// A longer header was not written by the proxy: the memory for it is not allocated.
const HEADER_MAX: u32 = 16 * 1024 * 1024;

/// What stood after the last record that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    Clean,
    /// Part of a record: the writer was killed in the middle of a write, or is in the middle of one.
    Torn {
        bytes: u64,
    },
}

pub struct SegmentReader {
    path: PathBuf,
    input: BufReader<File>,
    header: SessionHeader,
    /// Where the next record begins, where the last one did, and how long the file was when it was
    /// opened.
    offset: u64,
    last: u64,
    len: u64,
    damaged: u64,
    /// The record before was passed over unread.
    is_unchecked: bool,
    tail: Tail,
    heads: Seen,
    /// Said by the record that was read last, and a record of its own to whoever reads.
    implied: Option<Record>,
}

impl SegmentReader {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_with(path, 256 * 1024)
    }

    /// The same, reading ahead by so many bytes.
    pub(crate) fn open_with(path: &Path, ahead: usize) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(StoreError::io("open", path))?;
        let len = file.metadata().map_err(StoreError::io("look at", path))?.len();
        let mut input = BufReader::with_capacity(ahead, file);
        let (header, offset) = read_header(&mut input).map_err(|reason| StoreError::not_a_session(path, reason))?;
        Ok(Self {
            path: path.to_owned(),
            input,
            header,
            offset,
            last: offset,
            len,
            damaged: 0,
            is_unchecked: false,
            tail: Tail::Clean,
            heads: Seen::default(),
            implied: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Records whose checksum was wrong and that were passed over.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// How the file ends, once every record has been read.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Where the last whole record ends.
    pub fn whole_len(&self) -> u64 {
        self.offset
    }

    /// Where the record begins that was read last.
    pub fn last_record(&self) -> u64 {
        self.last
    }

    /// How long the file was when it was opened; nothing after that is read.
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// Reads no further than `len`.
    pub fn end_at(&mut self, len: u64) {
        self.len = self.len.min(len.max(self.offset));
    }

    /// Goes on reading at `offset`, where a record begins. Heads of HTTP exchanges that name an earlier
    /// one are empty unless that was read.
    pub fn go_to(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset.min(self.len);
        self.is_unchecked = false;
        self.tail = Tail::Clean;
        self.implied = None;
        self.input.seek(SeekFrom::Start(self.offset))?;
        Ok(())
    }

    /// The next record that is whole. A verdict that stands right behind its message comes with it.
    pub fn next_record(&mut self) -> io::Result<Option<Record>> {
        if let Some(implied) = self.implied.take() {
            return Ok(Some(implied));
        }
        loop {
            match self.record_here()? {
                Here::Record { record, len } => {
                    self.last = self.offset;
                    self.offset += len;
                    let record = self.with_whole_head(record);
                    return match record.head.kind.is_message() {
                        true => self.with_verdict(record).map(Some),
                        false => Ok(Some(record)),
                    };
                }
                Here::End => return Ok(None),
                Here::Bad => match self.next_whole_record()? {
                    Some(next) => {
                        self.damaged += 1;
                        self.offset = next;
                        self.input.seek(SeekFrom::Start(next))?;
                    }
                    None => {
                        self.tail = Tail::Torn { bytes: self.len - self.offset };
                        return Ok(None);
                    }
                },
            }
        }
    }

    /// What the record that was read last says besides, as a record of its own: that the exchange is over.
    pub(crate) fn take_implied(&mut self) -> Option<Record> {
        self.implied.take()
    }

    /// The head of the next record. Its payload is passed over unread, and may be damaged.
    pub fn next_head(&mut self) -> io::Result<Option<RecordHead>> {
        self.implied = None;
        let mut head = [0; HEAD_LEN];
        if self.len - self.offset >= HEAD_LEN as u64 {
            self.input.read_exact(&mut head)?;
            if self.is_plausible(&head, self.offset) {
                let length = u32::from_le_bytes(super::part(&head, 0));
                self.input.seek_relative(i64::from(length))?;
                self.last = self.offset;
                self.offset += HEAD_LEN as u64 + u64::from(length);
                self.is_unchecked = true;
                return Ok(RecordHead::decode(&head));
            }
            self.input.seek(SeekFrom::Start(self.offset))?;
        }
        let is_unchecked = std::mem::take(&mut self.is_unchecked);
        if is_unchecked && self.offset < self.len {
            // The one before may have led here with a wrong length.
            let before = self.last;
            self.go_to(before)?;
            let record = self.next_record()?;
            if self.last != before {
                return Ok(record.map(|record| record.head));
            }
            self.implied = None;
        }
        Ok(self.next_record()?.map(|record| record.head))
    }

    /// A head that names an earlier one, as if it stood there itself.
    fn with_whole_head(&mut self, mut record: Record) -> Record {
        if record.head.kind == RecordKind::Exchange {
            let number = std::mem::take(&mut record.head.correlated);
            if record.head.flags & RecordHead::ENDS != 0 {
                record.head.flags &= !RecordHead::ENDS;
                let flags = record.head.flags & !RecordHead::REPEATED;
                let head = RecordHead { kind: RecordKind::ExchangeEnd, flags, ..record.head };
                self.implied = Some(Record { head, link: None, payload: Bytes::new(), verdict: None });
            }
            if record.head.flags & RecordHead::REPEATED != 0 {
                record.head.flags &= !RecordHead::REPEATED;
                record.payload = self.heads.resolve(number, &record.payload);
            } else if number > 0 {
                self.heads.add(number, &record.payload);
            }
        }
        record
    }

    /// The message just read, with what stands behind it.
    fn with_verdict(&mut self, mut message: Record) -> io::Result<Record> {
        if self.len - self.offset < HEAD_LEN as u64 {
            return Ok(message);
        }
        let mut head = [0; HEAD_LEN];
        match self.input.buffer().first_chunk() {
            Some(ahead) => head = *ahead,
            None => {
                self.input.read_exact(&mut head)?;
                self.input.seek_relative(-(HEAD_LEN as i64))?;
            }
        }
        let is_about_it = |head: RecordHead| {
            head.kind == RecordKind::Verdict
                && head.flags & RecordHead::ADJOINED != 0
                && head.correlated == message.head.sequence
        };
        if RecordHead::decode(&head).is_some_and(is_about_it) {
            match self.record_here()? {
                Here::Record { record, len } => {
                    self.offset += len;
                    message.verdict = Verdict::decode(&record.payload).or(message.verdict);
                }
                // It is come across again.
                _ => drop(self.input.seek(SeekFrom::Start(self.offset))?),
            }
        }
        Ok(message)
    }

    fn record_here(&mut self) -> io::Result<Here> {
        let left = self.len - self.offset;
        if left == 0 {
            return Ok(Here::End);
        }
        let mut head = [0; HEAD_LEN];
        if left < HEAD_LEN as u64 {
            return Ok(Here::Bad);
        }
        self.input.read_exact(&mut head)?;
        let length = u32::from_le_bytes(super::part(&head, 0));
        if u64::from(length) > left - HEAD_LEN as u64 {
            return Ok(Here::Bad);
        }
        let mut payload = vec![0; length as usize];
        self.input.read_exact(&mut payload)?;
        let good = u32::from_le_bytes(super::part(&head, 4)) == checksum(&head, &payload);
        Ok(match RecordHead::decode(&head) {
            Some(head) if good => decode(head, payload.into()),
            _ => Here::Bad,
        })
    }

    /// Where the next record begins that is whole, wherever damage may have moved it. A torn tail is
    /// one that nothing whole follows; anything else must not be taken for one and cut.
    fn next_whole_record(&mut self) -> io::Result<Option<u64>> {
        /// Bytes read at a time in search of the next whole record after damage.
        const WINDOW: usize = 1 << 20;
        let damaged_at = self.offset;
        let mut start = damaged_at + 1;
        let mut window = Vec::new();
        while start + HEAD_LEN as u64 <= self.len {
            self.input.seek(SeekFrom::Start(start))?;
            window.clear();
            // Not past where the file ended when it was opened: it may be growing.
            self.input.by_ref().take((self.len - start).min(WINDOW as u64)).read_to_end(&mut window)?;
            let Some(last) = window.len().checked_sub(HEAD_LEN) else { break };
            for at in 0..=last {
                let head = window[at..].first_chunk().expect("a whole head is left");
                let offset = start + at as u64;
                if self.is_plausible(head, offset) && self.is_whole_at(offset)? {
                    self.offset = damaged_at;
                    return Ok(Some(offset));
                }
            }
            start += last as u64 + 1;
        }
        self.offset = damaged_at;
        Ok(None)
    }

    /// Cheap to ask of every offset; the checksum decides about the few that remain.
    fn is_plausible(&self, head: &[u8; HEAD_LEN], offset: u64) -> bool {
        let length = u64::from(u32::from_le_bytes(super::part(head, 0)));
        length <= self.len - offset - HEAD_LEN as u64
            && RecordHead::decode(head).is_some_and(|head| head.flags & !RecordHead::KNOWN_FLAGS == 0)
    }

    fn is_whole_at(&mut self, offset: u64) -> io::Result<bool> {
        self.input.seek(SeekFrom::Start(offset))?;
        self.offset = offset;
        Ok(matches!(self.record_here()?, Here::Record { .. }))
    }

    /// Looks whether the file has grown. What was half a record may be whole now.
    pub fn look_again(&mut self) -> io::Result<()> {
        self.len = self.input.get_ref().metadata()?.len().max(self.offset);
        self.tail = Tail::Clean;
        self.input.seek(SeekFrom::Start(self.offset))?;
        Ok(())
    }

    /// The end of the session and whatever was noted after it, if they stand at the end of the file.
    /// Reading goes on where it was.
    pub fn last_words(&mut self) -> io::Result<Vec<Record>> {
        /// More than an end with the server's last words takes. What looks like a record in there is
        /// held against its checksum, so this also bounds what a hostile message can cost.
        const SEARCHED: u64 = 16 * 1024;
        let start = self.len.saturating_sub(SEARCHED).max(self.offset);
        self.input.seek(SeekFrom::Start(start))?;
        let mut window = Vec::new();
        self.input.by_ref().take(self.len - start).read_to_end(&mut window)?;
        self.input.seek(SeekFrom::Start(self.offset))?;
        let is_end = |at: &usize| {
            window[*at..].first_chunk().and_then(RecordHead::decode).is_some_and(|head| head.kind == RecordKind::End)
        };
        let ends = (0..window.len().saturating_sub(HEAD_LEN - 1)).filter(is_end);
        Ok(ends.filter_map(|at| records_to_the_end(&window[at..])).next().unwrap_or_default())
    }
}

/// Every record in `bytes`, if that is what they are from first to last.
fn records_to_the_end(mut bytes: &[u8]) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let head: &[u8; HEAD_LEN] = bytes.first_chunk()?;
        let length = u32::from_le_bytes(super::part(head, 0)) as usize;
        let payload = bytes[HEAD_LEN..].get(..length)?;
        if u32::from_le_bytes(super::part(head, 4)) != checksum(head, payload) {
            return None;
        }
        let Here::Record { record, .. } = decode(RecordHead::decode(head)?, Bytes::copy_from_slice(payload)) else {
            return None;
        };
        records.push(record);
        bytes = &bytes[HEAD_LEN + length..];
    }
    Some(records)
}

enum Here {
    Record { record: Record, len: u64 },
    Bad,
    End,
}

fn decode(head: RecordHead, mut payload: Bytes) -> Here {
    let len = (HEAD_LEN + payload.len()) as u64;
    let mut link = None;
    if head.flags & RecordHead::LINKED != 0 {
        link = Link::take(&mut payload);
        if link.is_none() {
            return Here::Bad;
        }
    }
    let mut verdict = None;
    if head.flags & RecordHead::JUDGED != 0 {
        match Verdict::take(&mut payload) {
            Some(taken) => verdict = taken,
            None => return Here::Bad,
        }
    }
    Here::Record { record: Record { head, link, payload, verdict }, len }
}

fn read_header(input: &mut impl Read) -> Result<(SessionHeader, u64), String> {
    let mut fixed = [0; 16];
    input.read_exact(&mut fixed).map_err(|_| "too short".to_owned())?;
    if &fixed[..8] != MAGIC {
        return Err("it does not begin as a segment does".into());
    }
    let number = |at: usize| u32::from_le_bytes(fixed[at..at + 4].try_into().expect("four bytes"));
    let length = number(8);
    if length > HEADER_MAX {
        return Err("its header is damaged".into());
    }
    let mut json = vec![0; length as usize];
    input.read_exact(&mut json).map_err(|_| "its header is cut short".to_owned())?;
    if crc32fast::hash(&json) != number(12) {
        return Err("its header is damaged".into());
    }
    let header = serde_json::from_slice(&json).map_err(|error| format!("its header cannot be read: {error}"))?;
    Ok((header, 16 + u64::from(length)))
}

/// Whether somebody is writing this segment now.
pub fn is_live(path: &Path) -> Result<bool, StoreError> {
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
    }
}

/// Cuts what a crash tore: everything after the first `whole_len` bytes.
pub fn cut_tail(path: &Path, whole_len: u64) -> Result<(), StoreError> {
    let file = open_exclusive(path)?;
    file.set_len(whole_len).map_err(StoreError::io("cut", path))
}

pub fn append_end(path: &Path, time_ns: u64, end: &End) -> Result<(), StoreError> {
    append(path, &bookkeeping(RecordKind::End, time_ns), serde_json::to_vec(end))
}

pub fn append_note(path: &Path, time_ns: u64, notes: &BTreeMap<String, String>) -> Result<(), StoreError> {
    append(path, &bookkeeping(RecordKind::Note, time_ns), serde_json::to_vec(notes))
}

/// Writes something beside the message `sequence` of a session that is over.
pub fn append_mark(path: &Path, time_ns: u64, sequence: u64, mark: &Mark) -> Result<(), StoreError> {
    let head = RecordHead { correlated: sequence, ..bookkeeping(RecordKind::Mark, time_ns) };
    append(path, &head, Ok(mark.encode()))
}

fn append(path: &Path, head: &RecordHead, payload: serde_json::Result<Vec<u8>>) -> Result<(), StoreError> {
    let payload = Bytes::from(payload.map_err(|error| StoreError::io("write", path)(error.into()))?);
    let record = [head.encode(&payload).as_slice(), &payload].concat();
    open_exclusive(path)?.write_all(&record).map_err(StoreError::io("write", path))
}

fn open_exclusive(path: &Path) -> Result<File, StoreError> {
    let file = OpenOptions::new().append(true).open(path).map_err(StoreError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let id = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            Err(StoreError::Live { id })
        }
        Err(TryLockError::Error(error)) => Err(StoreError::io("lock", path)(error)),
    }
}
