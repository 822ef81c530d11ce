//! A session page by page, from any place in it, while it grows: what a person scrolls through. What
//! is read for a page depends on the page, not on the session. Only a filter that asks for HTTP
//! headers has to begin at the beginning, because those stand there.

mod block;
mod exchange;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_filter::Filter;

use crate::StoreError;
use crate::segment::sparse::{Growth, Place};
use crate::segment::{SegmentReader, SparseIndex};
use crate::session::{Later, Legs, entry};
use crate::story::{Story, Told};
use block::{Block, Context};

pub use exchange::ExchangeOf;

/// Messages on a page, however many the request asks for.
pub const PAGE_MESSAGES_MAX: usize = 1_000;
/// A page is full once its messages have this many bytes. The last of them may be a large one.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Messages, and their bytes, that a filter examines for one page: about a tenth of a second. The answer then says
/// how far the filter came.
const LOOKED_AT_MAX: u64 = 65_536;
const LOOKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Some messages of a session, in order.
#[derive(Debug, Default)]
pub struct Page {
    pub messages: Vec<Told>,
    /// There may be more: where to go on, as the sequence to ask with.
    pub next: Option<u64>,
    /// The newest message there is.
    pub last: u64,
}

pub struct Pages {
    path: PathBuf,
    reader: SegmentReader,
    context: Context,
    index: Arc<SparseIndex>,
    /// Nobody else fills the index.
    own: Option<Own>,
}

/// How far an index has come that is made here.
struct Own {
    growth: Growth,
    looked_to: u64,
}

impl Pages {
    /// The pages of a segment. Whoever writes it has an index; without one, the segment is gone through
    /// once, head by head.
    pub fn open(path: &Path, index: Option<Arc<SparseIndex>>) -> Result<Self, StoreError> {
        let reader = SegmentReader::open(path)?;
        let own = match &index {
            Some(_) => None,
            None => Some(Own { growth: Growth::default(), looked_to: reader.whole_len() }),
        };
        let (context, index) = (Context::open(path)?, index.unwrap_or_default());
        let mut pages = Self { path: path.to_owned(), reader, context, index, own };
        pages.look_again()?;
        Ok(pages)
    }

    /// Takes in what has been written since.
    fn look_again(&mut self) -> Result<(), StoreError> {
        let mut look = || -> io::Result<()> {
            self.reader.look_again()?;
            match &mut self.own {
                None => self.reader.end_at(self.index.len()),
                Some(own) => {
                    self.reader.go_to(own.looked_to)?;
                    while let Some(head) = self.reader.next_head()? {
                        own.growth.add(&head, self.reader.last_record());
                    }
                    own.looked_to = self.reader.whole_len();
                    self.index.publish(&mut own.growth, own.looked_to);
                }
            }
            Ok(())
        };
        look().map_err(StoreError::io("read", &self.path))
    }

    /// At most `limit` messages before `sequence`, the nearest to it; `u64::MAX` is the end.
    pub fn before(&mut self, sequence: u64, limit: usize, filter: Option<&Filter>) -> Result<Page, StoreError> {
        self.look_again()?;
        let mut looking = Looking::new(&self.index, limit, filter);
        if looking.needs_headers() {
            return self.read_all(looking, 0, sequence, false);
        }
        let places = self.index.places();
        let mut end = sequence;
        while let Some(block) = Block::before(&places, end, self.index.len()) {
            let told = self.context.read(&mut self.reader, &self.index, block, |sequence| sequence < end)?;
            end = block.sequence;
            for told in told.into_iter().rev() {
                looking.next = Some(told.recorded.sequence);
                if looking.look_at(told, true) {
                    return Ok(looking.page(places.first().map(|place| place.sequence)));
                }
            }
            looking.next = Some(end);
            if looking.has_looked_enough(block.end - block.offset) {
                return Ok(looking.page(places.first().map(|place| place.sequence)));
            }
        }
        looking.next = None;
        Ok(looking.page(None))
    }

    /// At most `limit` messages after `sequence`, the nearest to it.
    pub fn after(&mut self, sequence: u64, limit: usize, filter: Option<&Filter>) -> Result<Page, StoreError> {
        self.look_again()?;
        let mut looking = Looking::new(&self.index, limit, filter);
        if looking.needs_headers() {
            return self.read_all(looking, sequence, u64::MAX, true);
        }
        let places = self.index.places();
        let mut block = Block::after(&places, sequence, self.index.len());
        while let Some(here) = block {
            for told in self.context.read(&mut self.reader, &self.index, here, |it| it > sequence)? {
                looking.next = Some(told.recorded.sequence);
                if looking.look_at(told, false) {
                    let last = looking.last;
                    return Ok(looking.page(Some(last)));
                }
            }
            block = here.next(&places, self.index.len());
            if block.is_some() && looking.has_looked_enough(here.end - here.offset) {
                return Ok(looking.page(None));
            }
        }
        looking.next = None;
        Ok(looking.page(None))
    }

    /// One message, if it is there.
    pub fn one(&mut self, sequence: u64) -> Result<Option<Told>, StoreError> {
        self.look_again()?;
        let Some(block) = Block::of(&self.index.places(), sequence, self.index.len()) else { return Ok(None) };
        let told = self.context.read(&mut self.reader, &self.index, block, |it| it == sequence)?;
        Ok(told.into_iter().next_back())
    }

    /// The newest message there is.
    pub fn last(&mut self) -> Result<u64, StoreError> {
        self.look_again()?;
        Ok(self.index.last())
    }

    /// The same for a filter that asks for headers. An exchange may have begun long before a message of
    /// it, and its head may be that of another, earlier one, so everything is read.
    fn read_all(
        &self,
        mut looking: Looking<'_>,
        after: u64,
        before: u64,
        takes_first: bool,
    ) -> Result<Page, StoreError> {
        let mut reader = SegmentReader::open(&self.path)?;
        reader.end_at(self.index.len());
        let header = reader.header().clone();
        let mut later = Later::open(&self.path, reader.file_len())?;
        let (mut story, mut legs) = (Story::of(&header), Legs::default());
        while let Some(record) = reader.next_record().map_err(StoreError::io("read", &self.path))? {
            let entry = entry(&header, record, reader.last_record(), &mut legs, Some(&mut later))?;
            let Some(told) = entry.and_then(|entry| story.hear(entry)) else { continue };
            let sequence = told.recorded.sequence;
            if sequence >= before {
                break;
            }
            if sequence <= after {
                continue;
            }
            match takes_first {
                false => looking.keep_last(told),
                true => {
                    if looking.look_at(told, false) {
                        let last = looking.last;
                        looking.next = Some(sequence);
                        return Ok(looking.page(Some(last)));
                    }
                }
            }
        }
        Ok(looking.page(None))
    }
}

/// A page as it is gathered.
struct Looking<'a> {
    filter: Option<&'a Filter>,
    limit: usize,
    messages: VecDeque<Told>,
    bytes: usize,
    looked_at: u64,
    looked_bytes: u64,
    next: Option<u64>,
    last: u64,
}

impl<'a> Looking<'a> {
    fn new(index: &SparseIndex, limit: usize, filter: Option<&'a Filter>) -> Self {
        Self {
            filter,
            limit: limit.clamp(1, PAGE_MESSAGES_MAX),
            messages: VecDeque::new(),
            bytes: 0,
            looked_at: 0,
            looked_bytes: 0,
            next: None,
            last: index.last(),
        }
    }

    fn needs_headers(&self) -> bool {
        self.filter.is_some_and(|filter| filter.needs().headers)
    }

    fn matches(&self, told: &Told) -> bool {
        self.filter.is_none_or(|filter| filter.matches(told))
    }

    /// Takes a message if it is wanted. Whether the page is full.
    fn look_at(&mut self, told: Told, is_backwards: bool) -> bool {
        self.looked_at += 1;
        if self.matches(&told) {
            self.bytes += weight(&told);
            match is_backwards {
                true => self.messages.push_front(told),
                false => self.messages.push_back(told),
            }
        }
        self.messages.len() >= self.limit || self.bytes >= PAGE_BYTES_MAX
    }

    /// Takes a message if it is wanted, and lets go of the first if there are too many.
    fn keep_last(&mut self, told: Told) {
        self.look_at(told, false);
        while self.messages.len() > self.limit || self.bytes > PAGE_BYTES_MAX && self.messages.len() > 1 {
            let Some(first) = self.messages.pop_front() else { return };
            self.bytes -= weight(&first);
            self.next = self.messages.front().map(|told| told.recorded.sequence);
        }
    }

    fn has_looked_enough(&mut self, bytes: u64) -> bool {
        self.looked_bytes += bytes;
        self.looked_at >= LOOKED_AT_MAX || self.looked_bytes >= LOOKED_BYTES_MAX
    }

    /// The page. Whoever has come to `end` need not go on.
    fn page(self, end: Option<u64>) -> Page {
        let next = self.next.filter(|next| Some(*next) != end);
        Page { messages: self.messages.into(), next, last: self.last }
    }
}

fn weight(told: &Told) -> usize {
    told.recorded.raw.len() + told.recorded.original_raw.as_ref().map_or(0, |raw| raw.len())
}

#[cfg(test)]
mod tests;
