//! A stretch of a segment between two places of its index, read with what the messages in it need to
//! be understood: the requests that they answer, who speaks, and what became of them.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Place;
use crate::StoreError;
use crate::recorded::{Recorded, SessionHeader};
use crate::segment::sparse::PLACE_BYTES;
use crate::segment::{Record, RecordKind, SegmentReader, SparseIndex};
use crate::session::{message, said};
use crate::story::{Story, Told};

/// How many messages of a conversation are read to learn who speaks; a handshake is three.
const OPENING_MESSAGES: usize = 8;
/// … among how many records.
const OPENING_RECORDS: usize = 64;
/// Single records are read here and there, so little is read ahead.
const LOOKUP_BUFFER: usize = 8 * 1024;

/// A message that begins later in a block was not put there by us: ours are shorter, up to their last
/// message.
const READ_BYTES_MAX: u64 = 2 * PLACE_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    at: usize,
    pub offset: u64,
    pub end: u64,
    /// Of its first message.
    pub sequence: u64,
}

impl Block {
    fn new(places: &[Place], at: usize, len: u64) -> Option<Self> {
        let Place { sequence, offset } = *places.get(at)?;
        let end = places.get(at + 1).map_or(len, |next| next.offset);
        Some(Self { at, offset, end, sequence })
    }

    /// The last block with a message before `sequence`.
    pub fn before(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        let at = places.partition_point(|place| place.sequence < sequence).checked_sub(1)?;
        Self::new(places, at, len)
    }

    /// The block that `sequence` would be in.
    pub fn of(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        Self::before(places, sequence.saturating_add(1), len)
    }

    /// The first block that may have a message after `sequence`.
    pub fn after(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        Self::of(places, sequence, len).or_else(|| Self::new(places, 0, len))
    }

    pub fn next(self, places: &[Place], len: u64) -> Option<Self> {
        Self::new(places, self.at + 1, len)
    }
}

/// Reads what stands elsewhere, and remembers who speaks.
pub struct Context {
    path: PathBuf,
    reader: SegmentReader,
    header: SessionHeader,
    /// Has been told how conversations began.
    openings: Story,
    opened: HashSet<u32>,
}

impl Context {
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let reader = SegmentReader::open_with(path, LOOKUP_BUFFER)?;
        let header = reader.header().clone();
        let openings = Story::of(&header);
        Ok(Self { path: path.to_owned(), reader, header, openings, opened: HashSet::new() })
    }

    /// The messages of a block that are wanted, in order.
    pub fn read(
        &mut self,
        reader: &mut SegmentReader,
        index: &SparseIndex,
        block: Block,
        is_wanted: impl Fn(u64) -> bool,
    ) -> Result<Vec<Told>, StoreError> {
        let read = self.read_block(reader, index, block, is_wanted);
        read.map_err(StoreError::io("read", &self.path))
    }

    fn read_block(
        &mut self,
        reader: &mut SegmentReader,
        index: &SparseIndex,
        block: Block,
        is_wanted: impl Fn(u64) -> bool,
    ) -> io::Result<Vec<Told>> {
        self.reader.look_again()?;
        self.reader.end_at(index.len());
        let records = records(reader, block)?;
        self.learn_openings(index, &records, block)?;
        let mut story = self.openings.afresh();
        self.tell_requests(index, &records, &mut story)?;
        let mut wanted = Vec::new();
        for record in records {
            let Some(message) = message(&self.header, record) else { continue };
            let told = story.tell(self.amended(index, message)?);
            if is_wanted(told.recorded.sequence) {
                wanted.push(told);
            }
        }
        Ok(wanted)
    }

    /// Learns who speaks in conversations that began before the block.
    fn learn_openings(&mut self, index: &SparseIndex, records: &[Record], block: Block) -> io::Result<()> {
        for record in records {
            let conversation = record.head.conversation;
            if self.opened.contains(&conversation) {
                continue;
            }
            let Some(offset) = index.opening(conversation).filter(|offset| *offset < block.offset) else { continue };
            self.opened.insert(conversation);
            self.reader.go_to(offset)?;
            let mut left = OPENING_MESSAGES;
            for _ in 0..OPENING_RECORDS {
                let Some(record) = self.reader.next_record()? else { break };
                let is_its = record.head.conversation == conversation;
                let Some(message) = message(&self.header, record).filter(|_| is_its) else { continue };
                self.openings.tell(message);
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Tells the requests that are answered in the block and do not stand in it.
    fn tell_requests(&mut self, index: &SparseIndex, records: &[Record], story: &mut Story) -> io::Result<()> {
        let is_message = |record: &&Record| record.head.kind == RecordKind::Message;
        let here: HashSet<u64> = records.iter().filter(is_message).map(|record| record.head.sequence).collect();
        let answered = records.iter().filter(is_message).map(|record| record.head.correlated);
        let elsewhere: BTreeSet<u64> = answered.filter(|asked| *asked > 0 && !here.contains(asked)).collect();
        if elsewhere.is_empty() {
            return Ok(());
        }
        let places = index.places();
        let mut current = None;
        for sequence in elsewhere {
            let Some(block) = Block::of(&places, sequence, index.len()) else { continue };
            if current.replace(block) != Some(block) {
                self.reader.go_to(block.offset)?;
            }
            if let Some(record) = self.find(block, sequence)?
                && let Some(message) = message(&self.header, record)
            {
                let place = self.reader.whole_len();
                story.tell(self.amended(index, message)?);
                self.reader.go_to(place)?;
            }
        }
        Ok(())
    }

    /// Reads on in a block to the message of this sequence.
    fn find(&mut self, block: Block, sequence: u64) -> io::Result<Option<Record>> {
        while self.reader.whole_len() < block.end {
            let Some(head) = self.reader.next_head()? else { break };
            if !head.kind.is_message() || head.sequence < sequence {
                continue;
            }
            self.reader.go_to(self.reader.last_record())?;
            return if head.sequence == sequence { self.reader.next_record() } else { Ok(None) };
        }
        Ok(None)
    }

    /// The message with what is said of it later.
    fn amended(&mut self, index: &SparseIndex, mut message: Recorded) -> io::Result<Recorded> {
        let Some(places) = index.amended(message.sequence) else { return Ok(message) };
        for place in places.places() {
            if let Some(said) = said(&mut self.reader, place, message.sequence)? {
                message.amend(said);
            }
        }
        Ok(message)
    }
}

fn records(reader: &mut SegmentReader, block: Block) -> io::Result<Vec<Record>> {
    let mut records = Vec::new();
    reader.go_to(block.offset)?;
    while reader.whole_len() < block.end.min(block.offset + READ_BYTES_MAX) {
        let Some(record) = reader.next_record()? else { break };
        // What follows damage may lie beyond.
        if reader.last_record() >= block.end {
            break;
        }
        if record.head.kind.is_message() {
            records.push(record);
        }
    }
    Ok(records)
}
