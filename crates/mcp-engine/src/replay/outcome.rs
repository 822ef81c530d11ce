//! What came of each request of a replay.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::heard::Count;
use crate::compare::Differences;

/// One request of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub line: usize,
    pub verdict: Verdict,
    /// From the request to its answer.
    pub took_ns: Option<u64>,
    /// Times that the call was repeated because the server wanted something, beyond the recording.
    pub extra_rounds: u32,
    /// The message that was sent, and its answer, if [`super::Options::keeps_messages`].
    pub sent: Option<Bytes>,
    pub answer: Option<Bytes>,
}

impl Outcome {
    pub fn new(line: usize, verdict: Verdict) -> Self {
        Self { line, verdict, took_ns: None, extra_rounds: 0, sent: None, answer: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Same,
    Drifted(Differences),
    NoAnswer(NoAnswer),
    /// It was sent, but there is nothing to hold its answer against.
    NotCompared(&'static str),
    Skipped(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    InTime,
    /// None in time, and none in the recording either.
    AsRecorded,
    /// The server, or the way to it, ended before.
    Gone,
    /// The same, before it could even be sent.
    NotSent,
    /// The proxy answered in the server's place.
    Refused(String),
}

/// What came of all of them.
#[derive(Debug, Default)]
pub struct Outcomes {
    /// In the order of the recording.
    pub calls: Vec<Outcome>,
    /// What the server said by itself, by method.
    pub heard: BTreeMap<String, Count>,
    /// Answers that nobody waited for.
    pub stray: u64,
    /// What was no message.
    pub strange: u64,
    /// Questions of the server's that the recording has no answer to.
    pub unanswered_questions: u64,
}

/// How many came out how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub same: usize,
    pub drifted: usize,
    pub no_answer: usize,
    pub not_compared: usize,
    pub skipped: usize,
}

impl Outcomes {
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for outcome in &self.calls {
            *match outcome.verdict {
                Verdict::Same => &mut tally.same,
                Verdict::Drifted(_) => &mut tally.drifted,
                Verdict::NoAnswer(_) => &mut tally.no_answer,
                Verdict::NotCompared(_) => &mut tally.not_compared,
                Verdict::Skipped(_) => &mut tally.skipped,
            } += 1;
        }
        tally
    }

    /// Whether the server itself answered anything at all.
    pub fn is_any_answered(&self) -> bool {
        self.calls.iter().any(|outcome| {
            matches!(outcome.verdict, Verdict::Same | Verdict::Drifted(_))
                || matches!(outcome.verdict, Verdict::NotCompared(_)) && outcome.took_ns.is_some()
        })
    }
}
