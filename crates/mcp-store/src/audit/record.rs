//! A line of the log as readers see it.

use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

/// What a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Begin,
    #[default]
    Decision,
    Outcome,
    /// Those of several calls that came back at once.
    Outcomes,
    Note,
    End,
}

/// Everything that a line can say. Which of it is there depends on its kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct Record {
    pub seq: u64,
    pub kind: Kind,
    pub time: Timestamp,
    pub form: Option<u64>,
    pub part: Option<u32>,
    pub instance: Option<Uuid>,
    pub program: Option<String>,
    pub pid: Option<u32>,
    /// The recording that has the message or the answers, and their numbers there.
    pub session: Option<Uuid>,
    pub message: Option<u64>,
    pub conversation: Option<u32>,
    pub client: Option<String>,
    pub server: Option<String>,
    pub direction: Option<String>,
    pub method: Option<String>,
    pub tool: Option<String>,
    pub operation: Option<String>,
    pub verdict: Option<String>,
    pub rule: Option<String>,
    pub rules: Option<String>,
    pub actor: Option<String>,
    pub why: Option<String>,
    pub held_ms: Option<f64>,
    /// Of an outcome: the number of the decision.
    pub of: Option<u64>,
    pub answer: Option<u64>,
    pub outcome: Option<String>,
    pub code: Option<i64>,
    pub latency_ms: Option<f64>,
    /// Of outcomes: how each call went.
    #[serde(default)]
    pub calls: Vec<CallRecord>,
    pub note: Option<String>,
    /// The first of the lines that were never written, up to this one.
    pub lost_from: Option<u64>,
    /// The part that follows this one.
    pub goes_on_in: Option<u32>,
    pub hash: String,
}

/// How a call went that shares its line with others.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CallRecord {
    pub of: u64,
    pub answer: Option<u64>,
    pub outcome: String,
    pub code: Option<i64>,
    pub latency_ms: Option<f64>,
}

/// A message of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId {
    pub session: Uuid,
    pub sequence: u64,
}

impl Record {
    pub fn parse(line: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(line)
    }

    /// The message of the recording that the line is about which has this number there.
    pub fn message_id(&self, sequence: Option<u64>) -> Option<MessageId> {
        self.session.zip(sequence).map(|(session, sequence)| MessageId { session, sequence })
    }

    pub fn held_us(&self) -> Option<u64> {
        self.held_ms.map(microseconds)
    }

    pub fn verdict(&self) -> &str {
        self.verdict.as_deref().unwrap_or_default()
    }

    pub fn time_ns(&self) -> u64 {
        u64::try_from(self.time.as_nanosecond()).unwrap_or(0)
    }
}

pub(super) fn microseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1_000.0).round() as u64
}
