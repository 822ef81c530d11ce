//! A segment as messages, each with where it stands and what the messages before it tell of it.

use std::path::Path;

use super::search::Hit;
use crate::StoreError;
use crate::exchange::{Amendment, Said, SessionEntry};
use crate::recorded::{Recorded, SessionHeader};
use crate::segment::{Outcome, SegmentReader};
use crate::session::{self, Later, Legs};
use crate::story::{Fault, Status, Story, Told};

/// Names and ids are the peers' to choose; this much of them is kept.
const NAME_BYTES_MAX: usize = 256;

pub(super) struct Source {
    reader: SegmentReader,
    /// Without it, messages stand as they came.
    later: Option<Later>,
    legs: Legs,
    header: SessionHeader,
    story: Story,
}

/// What comes next in a segment.
pub(super) enum Next {
    Message(Box<Found>),
    /// What became of a message that was given out before as it came.
    Outcome(u64, Outcome),
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
    /// Messages with what became of them.
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let mut source = Self::open_plain(path, 0)?;
        source.later = Some(Later::open(path, source.file_len())?);
        Ok(source)
    }

    /// Messages as they came, and what became of them where that stands; from the record at `place` on,
    /// or from the first.
    pub(super) fn open_plain(path: &Path, place: u64) -> Result<Self, StoreError> {
        let mut reader = SegmentReader::open(path)?;
        if place > 0 {
            reader.go_to(place).map_err(StoreError::io("read", path))?;
        }
        let (story, header) = (Story::of(reader.header()), reader.header().clone());
        Ok(Self { reader, later: None, legs: Legs::default(), header, story })
    }

    pub(super) fn next(&mut self) -> Result<Option<Next>, StoreError> {
        loop {
            let record = self.reader.next_record();
            let Some(record) = record.map_err(StoreError::io("read", self.reader.path()))? else { return Ok(None) };
            let (place, answers) = (self.reader.last_record(), record.head.answers().unwrap_or(0));
            match session::entry(&self.header, record, place, &mut self.legs, self.later.as_mut())? {
                Some(SessionEntry::Amendment(Amendment { sequence, said: Said::Outcome(outcome), .. })) => {
                    return Ok(Some(Next::Outcome(sequence, outcome)));
                }
                Some(entry) => {
                    if let Some(told) = self.story.hear(entry) {
                        let found = Found { place, answers, session: self.header.id, told };
                        return Ok(Some(Next::Message(Box::new(found))));
                    }
                }
                None => {}
            }
        }
    }

    /// A message that was given out before, as it came.
    pub(super) fn as_it_came(&self, place: u64, sequence: u64) -> Option<Recorded> {
        let mut reader = SegmentReader::open(self.reader.path()).ok()?;
        reader.go_to(place).ok()?;
        session::message(&self.header, reader.next_record().ok()??).filter(|message| message.sequence == sequence)
    }

    /// Where the next record begins.
    pub(super) fn next_record(&self) -> u64 {
        self.reader.whole_len()
    }

    /// How long the file was when it was opened.
    pub(super) fn file_len(&self) -> u64 {
        self.reader.file_len()
    }
}

impl Found {
    pub(super) fn hit(&self) -> Hit {
        let Told { recorded, kind, .. } = &self.told;
        Hit {
            session: self.session,
            sequence: recorded.sequence,
            time_ns: recorded.time_ns,
            direction: recorded.direction,
            kind: kind.as_str().to_owned(),
            method: self.told.method().map(kept),
            tool: self.told.subject().map(kept),
            jsonrpc_id: self.told.id().map(|id| kept(String::from_utf8_lossy(id))),
            status: self.told.status().map(status_word),
            size: recorded.raw.len() as u64,
            place: self.place,
            is_own: self.told.is_own(),
        }
    }
}

pub(super) fn kept(name: impl AsRef<str>) -> String {
    let name = name.as_ref();
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
