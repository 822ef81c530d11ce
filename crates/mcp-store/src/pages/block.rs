//! A stretch of a segment between two places of its index, read with what the messages in it need to
//! be understood: the requests that they answer, who speaks, and what became of them.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use super::Place;
use crate::StoreError;
use crate::recorded::{Recorded, SessionHeader};
use crate::segment::sparse::PLACE_BYTES;
use crate::segment::{Record, RecordHead, RecordKind, SegmentReader, SparseIndex};
use crate::session::{Legs, message, said};
use crate::story::{Story, Told};

/// Messages of a conversation that are read to learn its client and revision; a handshake has three.
const OPENING_MESSAGES: usize = 8;
/// Records of all kinds that are read in search of those messages.
const OPENING_RECORDS: usize = 64;
/// Single records are read here and there, so little is read ahead.
const LOOKUP_BUFFER: usize = 8 * 1024;

/// A message that begins later in a block did not come from the recorder: its blocks are shorter, up to their last
/// message.
const READ_BYTES_MAX: u64 = 2 * PLACE_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
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
    pub(super) fn before(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        let at = places.partition_point(|place| place.sequence < sequence).checked_sub(1)?;
        Self::new(places, at, len)
    }

    /// The block that `sequence` would be in.
    pub(super) fn of(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        Self::before(places, sequence.saturating_add(1), len)
    }

    /// The first block that may have a message after `sequence`.
    pub(super) fn after(places: &[Place], sequence: u64, len: u64) -> Option<Self> {
        Self::of(places, sequence, len).or_else(|| Self::new(places, 0, len))
    }

    pub(super) fn next(self, places: &[Place], len: u64) -> Option<Self> {
        Self::new(places, self.at + 1, len)
    }
}

/// Messages that do not stand in a block, and the conversations that they are of.
struct Elsewhere {
    messages: BTreeSet<u64>,
    conversations: Vec<u32>,
}

/// Reads what stands elsewhere, and remembers who speaks.
pub(super) struct Context {
    path: PathBuf,
    reader: SegmentReader,
    header: SessionHeader,
    /// Has been told how conversations began.
    openings: Story,
    opened: HashSet<u32>,
    /// Where conversations are with one of several servers.
    legs: Legs,
}

impl Context {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let reader = SegmentReader::open_with(path, LOOKUP_BUFFER)?;
        let header = reader.header().clone();
        let openings = Story::of(&header);
        Ok(Self { path: path.to_owned(), reader, header, openings, opened: HashSet::new(), legs: Legs::default() })
    }

    /// The messages of a block that are wanted, in order.
    pub(super) fn read(
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
        let elsewhere = self.elsewhere(index, &records)?;
        let here = records.iter().map(|record| record.head.conversation);
        let all = || elsewhere.conversations.iter().copied().chain(here.clone());
        self.learn_legs(index, all())?;
        self.learn_openings(index, all(), block)?;
        let mut story = self.openings.afresh();
        self.tell_elsewhere(index, &elsewhere.messages, &mut story)?;
        let mut wanted = Vec::new();
        for record in records {
            let Some(message) = message(&self.header, record) else { continue };
            let message = self.legs.with_upstream(message);
            let told = story.tell(self.amended(index, message)?);
            if is_wanted(told.recorded.sequence) {
                wanted.push(told);
            }
        }
        Ok(wanted)
    }

    /// Learns who speaks in conversations that began before the block.
    fn learn_openings(
        &mut self,
        index: &SparseIndex,
        conversations: impl Iterator<Item = u32>,
        block: Block,
    ) -> io::Result<()> {
        for conversation in conversations {
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

    /// Learns with which servers conversations are.
    fn learn_legs(&mut self, index: &SparseIndex, conversations: impl Iterator<Item = u32>) -> io::Result<()> {
        if !index.has_legs() {
            return Ok(());
        }
        let mut before = None;
        for conversation in conversations {
            if before.replace(conversation) == Some(conversation) || self.legs.knows(conversation) {
                continue;
            }
            let Some(offset) = index.leg(conversation) else { continue };
            self.reader.go_to(offset)?;
            if let Some(record) = self.reader.next_record()? {
                self.legs.hear(&record);
            }
        }
        Ok(())
    }

    /// What does not stand in the block and is needed to understand it: the requests that are answered in it,
    /// and the messages that those of a gateway were made of.
    fn elsewhere(&mut self, index: &SparseIndex, records: &[Record]) -> io::Result<Elsewhere> {
        let is_message = |record: &&Record| record.head.kind == RecordKind::Message;
        let heads: Vec<RecordHead> = records.iter().filter(is_message).map(|record| record.head).collect();
        let here: HashSet<u64> = heads.iter().map(|head| head.sequence).collect();
        let answered = heads.iter().filter_map(RecordHead::answers);
        let mut messages: BTreeSet<u64> = answered.filter(|asked| !here.contains(asked)).collect();
        let mut conversations = Vec::new();
        if index.has_legs() {
            let answered = self.heads(index, &messages)?;
            let parents = heads.iter().chain(&answered).filter_map(RecordHead::parent);
            let parents: BTreeSet<u64> = parents.filter(|parent| !here.contains(parent)).collect();
            let parents_heads = self.heads(index, &parents)?;
            conversations.extend(answered.iter().chain(&parents_heads).map(|head| head.conversation));
            messages.extend(parents);
        }
        Ok(Elsewhere { messages, conversations })
    }

    /// The heads of the messages of these sequences, as far as they are there.
    fn heads(&mut self, index: &SparseIndex, sequences: &BTreeSet<u64>) -> io::Result<Vec<RecordHead>> {
        let mut heads = Vec::new();
        self.go_through(index, sequences, |context, block, sequence| {
            heads.extend(context.find_head(block, sequence)?);
            Ok(())
        })?;
        Ok(heads)
    }

    fn tell_elsewhere(&mut self, index: &SparseIndex, sequences: &BTreeSet<u64>, story: &mut Story) -> io::Result<()> {
        self.go_through(index, sequences, |context, block, sequence| {
            if let Some(record) = context.find(block, sequence)?
                && let Some(message) = message(&context.header, record)
            {
                let place = context.reader.whole_len();
                let message = context.legs.with_upstream(message);
                story.tell(context.amended(index, message)?);
                context.reader.go_to(place)?;
            }
            Ok(())
        })
    }

    /// Calls `visit` for each of these messages, reading in its block or before it.
    fn go_through(
        &mut self,
        index: &SparseIndex,
        sequences: &BTreeSet<u64>,
        mut visit: impl FnMut(&mut Self, Block, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        if sequences.is_empty() {
            return Ok(());
        }
        let places = index.places();
        let mut current = None;
        for sequence in sequences {
            let Some(block) = Block::of(&places, *sequence, index.len()) else { continue };
            if current.replace(block) != Some(block) {
                self.reader.go_to(block.offset)?;
            }
            visit(self, block, *sequence)?;
        }
        Ok(())
    }

    /// Reads on in a block to the message of this sequence.
    fn find(&mut self, block: Block, sequence: u64) -> io::Result<Option<Record>> {
        if self.find_head(block, sequence)?.is_none() {
            return Ok(None);
        }
        self.reader.go_to(self.reader.last_record())?;
        self.reader.next_record()
    }

    fn find_head(&mut self, block: Block, sequence: u64) -> io::Result<Option<RecordHead>> {
        while self.reader.whole_len() < block.end {
            let Some(head) = self.reader.next_head()? else { break };
            if !head.kind.is_message() || head.sequence < sequence {
                continue;
            }
            if head.sequence == sequence {
                return Ok(Some(head));
            }
            // The next one that is looked for may be this.
            self.reader.go_to(self.reader.last_record())?;
            break;
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
