//! The walk along a chain, line by line and part by part.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::{fs, io, iter};

use serde::Deserialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::{Fault, Witness, Wrong};
use crate::StoreError;
use crate::audit::files::LogFiles;
use crate::audit::line::{FORM, LineHash, Link, is_begun, link_of};
use crate::audit::read::LineReader;
use crate::audit::record::Kind;

pub(super) enum Stop {
    Fault(Fault),
    Io(StoreError),
    Interrupted,
}

/// What the last line that was read says about those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    OfPart,
    OfLog,
}

/// What a line says besides its place in the chain.
#[derive(Deserialize)]
struct Said {
    kind: Kind,
    form: Option<u64>,
    part: Option<u32>,
    instance: Option<Uuid>,
    lost_from: Option<u64>,
    goes_on_in: Option<u32>,
}

/// How far the reading has got.
pub(super) struct Walk<'a> {
    log: &'a LogFiles,
    witnesses: &'a [Witness],
    step: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    pub part: u32,
    /// Lines of this part that were read.
    pub line: u64,
    pub last: Option<(u64, LineHash)>,
    pub end: Option<End>,
    pub torn_bytes: u64,
    pub records: u64,
    pub decisions: u64,
    pub lost: u64,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        log: &'a LogFiles,
        witnesses: &'a [Witness],
        step: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Self {
        let (part, line, last, end) = (1, 0, None, None);
        Self { log, witnesses, step, part, line, last, end, torn_bytes: 0, records: 0, decisions: 0, lost: 0 }
    }

    pub(super) fn through_parts(&mut self) -> Result<(), Stop> {
        loop {
            self.through_part()?;
            let next = self.part + 1;
            let is_there = self.log.path(next).exists();
            let is_last = !is_there && self.log.parts.last().is_none_or(|last| *last < next);
            match self.end {
                Some(End::OfLog) if is_last => return Ok(()),
                Some(End::OfLog) => return self.fault_in(next, 1, Wrong::AfterTheEnd),
                Some(End::OfPart) if is_there => {}
                // Its process died after it had made the next part, and before it said so in this one.
                None if is_last || self.is_empty(next) => return Ok(()),
                _ => return self.fault_in(next, 0, Wrong::PartMissing),
            }
            (self.part, self.line, self.end) = (next, 0, None);
        }
    }

    fn through_part(&mut self) -> Result<(), Stop> {
        let path = self.log.path(self.part);
        let mut reader = match LineReader::open(&path, 0) {
            Ok(reader) => reader,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.fault_in(self.part, 0, Wrong::PartMissing);
            }
            Err(error) => return Err(Stop::Io(StoreError::io("open", &path)(error))),
        };
        self.through_lines(&mut reader)?;
        if self.end.is_none() && self.log.path(self.part + 1).exists() && !self.is_empty(self.part + 1) {
            // The other part was begun since; then this one is at its end by now.
            self.through_lines(&mut reader)?;
            if self.end.is_none() {
                return self.fault(Wrong::Cut);
            }
        }
        match reader.rest() {
            [] => Ok(()),
            _ if self.end.is_some() => self.fault(Wrong::AfterTheEnd),
            rest if is_begun(rest, self.expected(), &self.prev()) => {
                self.torn_bytes = rest.len() as u64;
                Ok(())
            }
            _ => self.fault(Wrong::NotARecord),
        }
    }

    fn through_lines(&mut self, reader: &mut LineReader) -> Result<(), Stop> {
        let result = loop {
            match reader.next_line() {
                Ok(Some(line)) => {
                    if (self.step)(line.len() as u64).is_break() {
                        return Err(Stop::Interrupted);
                    }
                    if let Err(wrong) = self.take(line) {
                        break Ok(Some(wrong));
                    }
                }
                Ok(None) => break Ok(None),
                Err(error) => break Err(error),
            }
        };
        match result {
            Ok(None) => Ok(()),
            Ok(Some(Wrong::Missing { until })) if self.comes_later(reader.place())? => {
                self.fault(Wrong::OutOfOrder { found: until })
            }
            Ok(Some(wrong)) => self.fault(wrong),
            Err(error) => Err(Stop::Io(StoreError::io("read", &self.log.path(self.part))(error))),
        }
    }

    /// Holds one line to the chain.
    fn take(&mut self, line: &[u8]) -> Result<(), Wrong> {
        let said: Result<Said, _> = serde_json::from_slice(line);
        let is_json = said.is_ok() || serde_json::from_slice::<IgnoredAny>(line).is_ok();
        let Some(link) = link_of(line).filter(|_| is_json) else {
            return Err(if is_json { Wrong::Changed } else { Wrong::NotARecord });
        };
        if self.end.is_some() {
            return Err(Wrong::AfterTheEnd);
        }
        if let Ok(Said { kind: Kind::Begin, form: Some(form), .. }) = said
            && form < FORM
        {
            return Err(Wrong::OldForm { form });
        }
        if !link.follows(&self.prev()) {
            return Err(self.misfit(&link));
        }
        let said = said.map_err(|_| Wrong::NotARecord)?;
        self.take_number(link.seq, said.lost_from)?;
        let is_beginning = said.kind == Kind::Begin;
        let is_ours = said.part == Some(self.part) && said.instance == Some(self.log.instance);
        if is_beginning != (self.line == 0) || (is_beginning && !is_ours) {
            return Err(Wrong::NotItsPart);
        }
        self.compare(&link)?;
        self.line += 1;
        self.records += 1;
        self.decisions += u64::from(said.kind == Kind::Decision);
        self.last = Some((link.seq, link.hash));
        self.end = (said.kind == Kind::End).then_some(said.goes_on_in.map_or(End::OfLog, |_| End::OfPart));
        Ok(())
    }

    /// What is wrong with a line whose hash does not fit.
    fn misfit(&self, link: &Link<'_>) -> Wrong {
        let (found, expected) = (link.seq, self.expected());
        match found.cmp(&expected) {
            Ordering::Equal => Wrong::Changed,
            _ if link.would_follow_as(expected, &self.prev()) => Wrong::Changed,
            Ordering::Greater => Wrong::Missing { until: found },
            Ordering::Less => Wrong::OutOfOrder { found },
        }
    }

    fn take_number(&mut self, found: u64, lost_from: Option<u64>) -> Result<(), Wrong> {
        let expected = self.expected();
        match found.cmp(&expected) {
            Ordering::Equal => Ok(()),
            Ordering::Greater if lost_from == Some(expected) => {
                self.lost += found - expected;
                Ok(())
            }
            Ordering::Greater => Err(Wrong::Missing { until: found }),
            Ordering::Less => Err(Wrong::OutOfOrder { found }),
        }
    }

    /// Whether the record that should be here stands further on.
    fn comes_later(&self, place: u64) -> Result<bool, Stop> {
        let wanted = self.expected();
        for (part, place) in (self.part..).zip([place].into_iter().chain(iter::repeat(0))) {
            let path = self.log.path(part);
            let Ok(mut reader) = LineReader::open(&path, place) else { break };
            while let Some(line) = reader.next_line().map_err(|error| Stop::Io(StoreError::io("read", &path)(error)))? {
                if link_of(line).is_some_and(|link| link.seq == wanted) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn compare(&self, link: &Link<'_>) -> Result<(), Wrong> {
        let saw_another = |witness: &&Witness| {
            witness.seq == link.seq && witness.hash.as_ref().is_some_and(|hash| *hash != link.hash.to_string())
        };
        match self.witnesses.iter().find(saw_another) {
            Some(witness) => Err(Wrong::Rewritten { who: witness.who.clone() }),
            None => Ok(()),
        }
    }

    /// The number of the record that comes next.
    fn expected(&self) -> u64 {
        self.last.map_or(1, |(seq, _)| seq + 1)
    }

    /// The hash of the record before it.
    fn prev(&self) -> LineHash {
        self.last.map_or(LineHash::NONE, |(_, hash)| hash)
    }

    fn is_empty(&self, part: u32) -> bool {
        fs::metadata(self.log.path(part)).is_ok_and(|meta| meta.len() == 0)
    }

    fn fault(&self, wrong: Wrong) -> Result<(), Stop> {
        self.fault_in(self.part, self.line + 1, wrong)
    }

    fn fault_in(&self, part: u32, line: u64, wrong: Wrong) -> Result<(), Stop> {
        Err(Stop::Fault(Fault { path: self.log.path(part), line, seq: self.expected(), wrong }))
    }
}
