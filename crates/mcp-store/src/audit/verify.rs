//! Whether a log is as it was written: every line has the hash that it and all before it make, and the next
//! number, in every part. The first that has not is named.
//!
//! A log alone cannot tell a tail that was cut off from a process that was killed. Others may know better:
//! recordings name the decisions about their messages, and whoever read the log before knows how far it
//! went. These are its [`Witness`]es.

mod walk;

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use super::files::LogFiles;
use crate::StoreError;
use walk::{End, Stop, Walk};

/// Somebody who knows of a record of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    pub seq: u64,
    /// The hash of that record, if known.
    pub hash: Option<String>,
    /// The log's process did not die: it wrote a last line.
    pub saw_the_end: bool,
    /// Who, for people.
    pub who: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Running,
    Ended,
    /// Its process died. It may have left part of a line.
    Interrupted {
        torn_bytes: u64,
    },
}

/// What was found out about a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Good records before the first bad one, and how many of them are decisions.
    pub records: u64,
    pub decisions: u64,
    /// Records that could not be written at the time, as the log itself says.
    pub lost: u64,
    pub standing: Standing,
    /// The number and the hash of the last good record. Kept elsewhere, it proves later that nothing
    /// before it was changed.
    pub last: Option<(u64, String)>,
    pub fault: Option<Fault>,
    /// The file and the line where there would be another record.
    next: (PathBuf, u64),
}

impl Verified {
    /// Holds what there is to what somebody knows.
    pub fn hear(&mut self, witness: &Witness) {
        let last = self.last.as_ref().map_or(0, |(seq, _)| *seq);
        let who = || witness.who.clone();
        let wrong = match self.standing {
            _ if self.fault.is_some() => return,
            _ if witness.seq > last => Wrong::CutBefore { known: witness.seq, who: who() },
            Standing::Interrupted { .. } if witness.saw_the_end => Wrong::EndCut { who: who() },
            _ => return,
        };
        let (path, line) = self.next.clone();
        self.fault = Some(Fault { path, line, seq: last + 1, wrong });
    }
}

/// The first record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub path: PathBuf,
    /// From 1; 0 where it is about the file as a whole.
    pub line: u64,
    /// Its number if nothing were wrong.
    pub seq: u64,
    pub wrong: Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    NotARecord,
    /// Its hash fits neither what it says nor what the one before it says.
    Changed,
    /// An earlier version of this program wrote it.
    OldForm {
        form: u64,
    },
    Missing {
        until: u64,
    },
    OutOfOrder {
        found: u64,
    },
    /// It does not begin as this part of this log begins.
    NotItsPart,
    PartMissing,
    /// Another part follows, and this one does not say so.
    Cut,
    AfterTheEnd,
    /// It ends before a record that somebody knows of.
    CutBefore {
        known: u64,
        who: String,
    },
    /// It ends as if its process had died, which somebody knows it did not.
    EndCut {
        who: String,
    },
    /// It is sound in itself, and not what somebody saw.
    Rewritten {
        who: String,
    },
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecord => write!(f, "not a record at all"),
            Self::Changed => write!(f, "changed: it or the record before it is not as it was written"),
            Self::OldForm { form } => write!(f, "of form {form}, which this version does not read"),
            Self::Missing { until } => write!(f, "missing: the next one there is {until}"),
            Self::OutOfOrder { found } => write!(f, "out of order: {found} stands in its place"),
            Self::NotItsPart => write!(f, "not how this part of this log begins"),
            Self::PartMissing => write!(f, "missing, with the whole file"),
            Self::Cut => write!(f, "missing: the end of this file is cut off, another follows it"),
            Self::AfterTheEnd => write!(f, "there is more after the end"),
            Self::CutBefore { known, who } => {
                write!(f, "missing: {who} knows of record {known}; the end is cut off, or was never written")
            }
            Self::EndCut { who } => {
                write!(f, "missing: {who} saw it end in order; the end is cut off, or was never written")
            }
            Self::Rewritten { who } => write!(f, "rewritten: {who} saw another record under this number"),
        }
    }
}

/// Reads a log from its first line to its last or its first bad one. `step` is told how many bytes were
/// read, and may break off; there is no answer then.
pub fn verify(
    log: &LogFiles,
    witnesses: &[Witness],
    step: &mut dyn FnMut(u64) -> ControlFlow<()>,
) -> Result<Option<Verified>, StoreError> {
    // Asked before it is read: what is written meanwhile can only add to it.
    let is_live = log.is_live();
    let mut walk = Walk::new(log, witnesses, step);
    let fault = match walk.through_parts() {
        Ok(()) => None,
        Err(Stop::Fault(fault)) => Some(fault),
        Err(Stop::Io(error)) => return Err(error),
        Err(Stop::Interrupted) => return Ok(None),
    };
    let standing = match walk.end {
        _ if is_live => Standing::Running,
        Some(End::OfLog) => Standing::Ended,
        _ => Standing::Interrupted { torn_bytes: walk.torn_bytes },
    };
    let next = (log.path(walk.part), walk.line + 1);
    let Walk { records, decisions, lost, last, .. } = walk;
    let last = last.map(|(seq, hash)| (seq, hash.to_string()));
    let mut verified = Verified { records, decisions, lost, standing, last, fault, next };
    witnesses.iter().for_each(|witness| verified.hear(witness));
    Ok(Some(verified))
}

#[cfg(test)]
mod tests;
