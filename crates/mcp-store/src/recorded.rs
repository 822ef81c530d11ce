//! The envelope of a captured message and of a session, as every reader sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use mcp_wire::{OutcomeKind, VerdictKind};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::exchange::Said;
use crate::segment::Verdict;

pub use mcp_wire::{Direction, Transport};

/// What is known of a session when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionHeader {
    pub id: Uuid,
    /// Nanoseconds since 1970, UTC.
    pub started_ns: u64,
    /// The server side.
    pub transport: Transport,
    pub server_command: Option<String>,
    pub server_url: Option<String>,
    /// What the user calls this server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
    /// The notes whose text is JSON: in the session file that they came from they were no strings.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub json_notes: BTreeSet<String>,
    /// Where the user wants this session as a file when it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<PathBuf>,
    /// The session this one goes on from, when a long run is divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<Uuid>,
}

impl SessionHeader {
    /// The note that says which session this one replays.
    pub const REPLAYS: &str = "replays";
    /// The note that says which session this one adds calls to.
    pub const EXTENDS: &str = "extends";

    /// A session of which nothing else is known yet.
    pub fn begun(id: Uuid, started_ns: u64, transport: Transport) -> Self {
        Self {
            id,
            started_ns,
            transport,
            server_command: None,
            server_url: None,
            name: None,
            notes: BTreeMap::new(),
            json_notes: BTreeSet::new(),
            session_file: None,
            continues: None,
        }
    }

    pub fn started_at(&self) -> Timestamp {
        timestamp(self.started_ns)
    }
}

/// One captured message, or an event that stands where a message should have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    pub id: String,
    pub sequence: u64,
    pub time_ns: u64,
    pub direction: Direction,
    /// 0 where there can be only one.
    pub conversation: u32,
    /// The server of a gateway that its conversation is with.
    pub upstream: Option<Arc<str>>,
    /// The side it arrived on.
    pub transport: Transport,
    /// The HTTP exchange it came in, and the id of the SSE event that carried it.
    pub exchange: Option<u64>,
    pub event_id: Option<String>,
    /// Verbatim, JSON or not: what went on, if somebody changed it. Empty for an event.
    pub raw: Bytes,
    /// The id of the request that this answers.
    pub correlated_id: Option<String>,
    /// The sequence of the message of another conversation that a gateway made this one of.
    pub parent: Option<u64>,
    pub modified: bool,
    /// What came, if something else went on.
    pub original_raw: Option<Bytes>,
    /// It was held for somebody to decide.
    pub held: bool,
    /// How long, how that ended and who decided, once it has ended.
    pub held_ns: Option<u64>,
    pub outcome: Option<OutcomeKind>,
    pub decided_by: Option<String>,
    pub why: Option<String>,
    /// What rules decided about it.
    pub verdict: Option<Box<Verdict>>,
    /// What somebody wrote beside it.
    pub mark: Option<String>,
    pub note: Option<String>,
    /// A line of the server's standard output that was no message, and was kept from the client.
    pub noise: bool,
    /// The proxy made this message itself.
    pub from_proxy: bool,
    /// What happened instead of a message.
    pub event: Option<String>,
}

impl Recorded {
    /// A message of which nothing else is known.
    pub fn bare(sequence: u64, direction: Direction, raw: impl Into<Bytes>) -> Self {
        Self {
            id: sequence.to_string(),
            sequence,
            time_ns: 0,
            direction,
            conversation: 0,
            upstream: None,
            transport: Transport::Stdio,
            exchange: None,
            event_id: None,
            raw: raw.into(),
            correlated_id: None,
            parent: None,
            modified: false,
            original_raw: None,
            held: false,
            held_ns: None,
            outcome: None,
            decided_by: None,
            why: None,
            verdict: None,
            mark: None,
            note: None,
            noise: false,
            from_proxy: false,
            event: None,
        }
    }

    /// Takes what was said of it later.
    pub fn amend(&mut self, said: Said) {
        match said {
            Said::Outcome(outcome) => {
                self.modified = outcome.what == OutcomeKind::Modified || outcome.edited.is_some();
                if let Some(edited) = outcome.edited {
                    let came = std::mem::replace(&mut self.raw, edited);
                    self.original_raw.get_or_insert(came);
                }
                self.held_ns = Some(outcome.held_ns).filter(|_| self.held);
                self.outcome = Some(outcome.what);
                self.decided_by = Some(outcome.by).filter(|by| !by.is_empty());
                self.why = Some(outcome.why).filter(|why| !why.is_empty());
            }
            Said::Mark(mark) => (self.mark, self.note) = (mark.mark, mark.note),
            Said::Verdict(verdict) => self.verdict = Some(verdict.into()),
        }
    }

    /// Whether rules denied it, so that it went nowhere without anybody having been asked.
    pub fn is_denied(&self) -> bool {
        let is_denied = self.verdict.as_ref().is_some_and(|verdict| verdict.what == VerdictKind::Deny);
        is_denied && !self.went_on() && self.held_ns.unwrap_or(0) == 0
    }

    /// Whether whoever it was for got it, as it came or changed. What is still held is not there yet.
    pub fn went_on(&self) -> bool {
        self.outcome.map_or(!self.held, OutcomeKind::reached_the_other_side)
    }

    pub fn timestamp(&self) -> Timestamp {
        timestamp(self.time_ns)
    }
}

pub fn timestamp(ns: u64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(ns)).unwrap_or(Timestamp::MAX)
}

/// The id of a message: a UUIDv8 made of the session's id and the sequence, so that none needs to
/// be made or stored while messages pass.
pub fn message_id(session: &Uuid, sequence: u64) -> String {
    let mut bytes = *session.as_bytes();
    // 48 bits hold the sequence; what is left of the session's id keeps sessions apart.
    for (byte, part) in bytes[10..].iter_mut().zip(&sequence.to_be_bytes()[2..]) {
        *byte ^= part;
    }
    uuid::Builder::from_custom_bytes(bytes).into_uuid().to_string()
}

/// The sequence that a message's id was made of, if it was.
pub fn sequence_of(session: &Uuid, id: &str) -> Option<u64> {
    let bytes = Uuid::parse_str(id).ok()?.into_bytes();
    let parts = bytes[10..].iter().zip(&session.as_bytes()[10..]);
    let sequence = parts.fold(0, |sequence, (byte, part)| sequence << 8 | u64::from(byte ^ part));
    (message_id(session, sequence) == id).then_some(sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_ids_are_stable_and_distinct() {
        let session = Uuid::parse_str("7f3a9a52-0c3f-4d34-9b0e-1f2e3d4c5b6a").expect("a uuid");
        assert_eq!(message_id(&session, 1), "7f3a9a52-0c3f-8d34-9b0e-1f2e3d4c5b6b");
        assert_eq!(message_id(&session, 1), message_id(&session, 1));
        let ids: std::collections::HashSet<_> = (0..10_000).map(|n| message_id(&session, n)).collect();
        assert_eq!(ids.len(), 10_000);
        for sequence in [0, 1, 255, 256, 1 << 40] {
            assert_eq!(sequence_of(&session, &message_id(&session, sequence)), Some(sequence));
        }
        assert_eq!(sequence_of(&session, &session.to_string()), None);
        assert_eq!(sequence_of(&session, "m-1"), None);
    }
}
