//! A segment as messages, each with where it stands and what the messages before it tell of it.

use std::path::Path;

use super::search::Hit;
use crate::StoreError;
use crate::segment::SegmentReader;
use crate::session;
use crate::story::{Fault, Status, Story, Told};

/// Names and ids are the peers' to choose; this much of them is kept.
const NAME_BYTES_MAX: usize = 256;

pub(super) struct Source {
    reader: SegmentReader,
    story: Story,
}

/// A message of a segment.
pub(super) struct Found {
    /// Where its record begins.
    pub place: u64,
    /// The sequence of the request that it answers, as recorded; 0 for none.
    pub answers: u64,
    pub session: uuid::Uuid,
    pub told: Told,
}

impl Source {
    /// From the record at `place` on, or from the first.
    pub fn open(path: &Path, place: u64) -> Result<Self, StoreError> {
        let mut reader = SegmentReader::open(path)?;
        if place > 0 {
            reader.go_to(place).map_err(StoreError::io("read", path))?;
        }
        let story = Story::of(reader.header());
        Ok(Self { reader, story })
    }

    /// The next message.
    pub fn next(&mut self) -> Result<Option<Found>, StoreError> {
        let header = self.reader.header();
        let (session, transport) = (header.id, header.transport);
        loop {
            let record = self.reader.next_record();
            let Some(record) = record.map_err(StoreError::io("read", self.reader.path()))? else { return Ok(None) };
            let (place, answers) = (self.reader.last_record(), record.head.correlated);
            let entry = session::entry(&session, transport, record);
            if let Some(told) = entry.and_then(|entry| self.story.hear(entry)) {
                return Ok(Some(Found { place, answers, session, told }));
            }
        }
    }

    /// Where the next record begins.
    pub fn next_record(&self) -> u64 {
        self.reader.whole_len()
    }

    /// How long the file was when it was opened.
    pub fn file_len(&self) -> u64 {
        self.reader.file_len()
    }
}

impl Found {
    pub fn hit(&self) -> Hit {
        let Told { recorded, kind, .. } = &self.told;
        Hit {
            session: self.session,
            sequence: recorded.sequence,
            time_ns: recorded.time_ns,
            direction: recorded.direction,
            kind: kind.as_str().to_owned(),
            method: self.told.method().map(|name| kept(&name)),
            tool: self.told.subject().map(|name| kept(&name)),
            jsonrpc_id: self.told.id().map(|id| kept(&String::from_utf8_lossy(id))),
            status: self.told.status().map(status_word),
            size: recorded.raw.len() as u64,
            place: self.place,
        }
    }
}

fn kept(name: &str) -> String {
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}

fn status_word(status: &Status) -> String {
    match status {
        Status::Ok | Status::InputRequired => status.as_str().to_owned(),
        Status::Err(Fault::Tool) => "tool error".to_owned(),
        Status::Err(Fault::Error { .. }) => match status.code() {
            Some(code) => format!("error {code}"),
            None => "error".to_owned(),
        },
    }
}
