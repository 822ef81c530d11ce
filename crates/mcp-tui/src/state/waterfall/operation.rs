//! One operation: what was asked, answered and waited for, and when.

use jiff::Timestamp;
use mcp_control::api::{Message, Outcome, OutcomeKind};

use crate::state::common::is_to_server;
use crate::text;
use crate::view::words;

/// Rounds, and steps of progress, kept of one operation: a line cannot show more.
const ROUNDS_MAX: usize = 50;
const STEPS_MAX: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Operation {
    /// The tool, or else the method; clean.
    pub name: String,
    pub is_to_server: bool,
    pub conversation: u32,
    /// In the order of their requests.
    pub rounds: Vec<Round>,
    /// When progress was told, in microseconds.
    pub steps: Vec<i64>,
    pub is_denied: bool,
}

/// A request and its answer. Times are microseconds since 1970.
#[derive(Debug)]
pub(crate) struct Round {
    pub request: u64,
    /// Of the request there is only what its answer says.
    is_guessed: bool,
    pub start: i64,
    /// How long the request was held.
    pub held: i64,
    pub answer: Option<AnswerMark>,
    /// It went nowhere: dropped, taken back.
    pub ended: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct AnswerMark {
    pub sequence: u64,
    pub at: i64,
    pub held: i64,
    pub status: String,
    pub is_bad: bool,
    pub duration_ns: Option<u64>,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Open,
    Good,
    Bad,
    Denied,
    /// Nobody sent it on.
    Nowhere,
}

/// A time in which nothing was done but waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    /// Somebody held the message.
    Held,
    /// The server asked back, and the client took its time.
    ForClient,
}

pub(super) fn microseconds(rfc3339: &str) -> Option<i64> {
    rfc3339.parse::<Timestamp>().ok().map(Timestamp::as_microsecond)
}

fn from_ns(ns: Option<u64>) -> i64 {
    i64::try_from(ns.unwrap_or(0) / 1000).unwrap_or(i64::MAX)
}

impl Round {
    /// A message of it that is there for certain.
    pub(crate) fn known_message(&self) -> u64 {
        match (&self.answer, self.is_guessed) {
            (Some(answer), true) => answer.sequence,
            _ => self.request,
        }
    }

    /// When it was over, if it is.
    pub(crate) fn end(&self) -> Option<i64> {
        let answered = self.answer.as_ref().map(|answer| answer.at.saturating_add(answer.held));
        answered.or(self.ended.map(|_| self.start.saturating_add(self.held)))
    }
}

impl Operation {
    fn named(&mut self, message: &Message) {
        self.is_to_server = is_to_server(message) == (message.answers.is_none());
        self.conversation = message.conversation;
        let name = message.tool.as_deref().or(message.method.as_deref()).unwrap_or("?");
        self.name = text::clean(name).into_owned();
    }

    pub(crate) fn ask(&mut self, message: &Message, at: i64) {
        if self.rounds.is_empty() {
            self.named(message);
        }
        self.is_denied |= message.verdict.as_deref() == Some("deny");
        let round = Round {
            request: message.sequence,
            is_guessed: false,
            start: at,
            held: from_ns(message.held_ns),
            answer: None,
            ended: message.outcome.as_deref().and_then(leads_nowhere),
        };
        let place = self.rounds.partition_point(|other| other.request < round.request);
        let is_known = self.rounds.get(place).is_some_and(|other| other.request == round.request);
        if is_known {
            let known = &mut self.rounds[place];
            *known = Round { answer: known.answer.take(), ..round };
        } else if self.rounds.len() < ROUNDS_MAX {
            self.rounds.insert(place, round);
        }
    }

    pub(crate) fn answer(&mut self, message: &Message, request: u64, at: i64) {
        let duration_ns = message.duration_ns;
        if self.rounds.is_empty() {
            self.named(message);
        }
        let place = self.rounds.partition_point(|other| other.request < request);
        if self.rounds.get(place).is_none_or(|other| other.request != request) {
            if self.rounds.len() >= ROUNDS_MAX {
                return;
            }
            let start = at.saturating_sub(from_ns(duration_ns));
            self.rounds.insert(place, Round { request, is_guessed: true, start, held: 0, answer: None, ended: None });
        }
        self.rounds[place].answer = Some(AnswerMark {
            sequence: message.sequence,
            at,
            held: from_ns(message.held_ns),
            status: words::status(message),
            is_bad: words::is_bad(message),
            duration_ns,
        });
    }

    pub(crate) fn step(&mut self, at: i64) {
        if self.steps.len() < STEPS_MAX && !self.steps.contains(&at) {
            self.steps.push(at);
        }
    }

    pub(crate) fn decide(&mut self, outcome: &Outcome) {
        let held = from_ns(Some(outcome.held_ns));
        for round in &mut self.rounds {
            if round.request == outcome.sequence {
                round.held = held;
                round.ended = leads_nowhere(outcome.what.as_str()).filter(|_| outcome.what != OutcomeKind::Refused);
            }
            if let Some(answer) = round.answer.as_mut().filter(|answer| answer.sequence == outcome.sequence) {
                answer.held = held;
            }
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.ending() == Ending::Open
    }

    pub(crate) fn ending(&self) -> Ending {
        match self.rounds.last() {
            _ if self.is_denied => Ending::Denied,
            Some(Round { answer: Some(answer), .. }) if answer.is_bad => Ending::Bad,
            Some(Round { answer: Some(_), .. }) => Ending::Good,
            Some(Round { ended: Some(_), .. }) => Ending::Nowhere,
            _ => Ending::Open,
        }
    }

    /// How it went, in a word or two.
    pub(crate) fn status(&self) -> &str {
        match (self.ending(), self.rounds.last()) {
            (Ending::Denied, _) => "denied",
            (_, Some(Round { answer: Some(answer), .. })) => &answer.status,
            (Ending::Nowhere, Some(Round { ended: Some(ended), .. })) => ended,
            _ => "waiting",
        }
    }

    pub(crate) fn start(&self) -> Option<i64> {
        self.rounds.first().map(|round| round.start)
    }

    /// When it was over; now, if it is not.
    pub(crate) fn end(&self, now: i64) -> Option<i64> {
        self.rounds.last().map(|round| self.end_of(round, now))
    }

    fn end_of(&self, round: &Round, now: i64) -> i64 {
        let open_until = if self.is_open() { now.max(round.start) } else { round.start };
        round.end().unwrap_or(open_until)
    }

    pub(crate) fn duration_ns(&self) -> Option<u64> {
        match (self.rounds.as_slice(), self.is_open()) {
            (_, true) | ([], _) => None,
            ([round], _) => round.answer.as_ref()?.duration_ns,
            ([first, .., last], _) => {
                u64::try_from(last.end()?.saturating_sub(first.start)).ok().map(|us| us.saturating_mul(1000))
            }
        }
    }

    /// When work was done on it, in microseconds.
    pub(crate) fn work(&self, now: i64) -> impl Iterator<Item = (i64, i64)> {
        self.rounds.iter().map(move |round| (round.start, self.end_of(round, now)))
    }

    /// When nothing was done but waiting, given which requests are held now.
    pub(crate) fn waits(&self, now: i64, is_held: impl Fn(u64) -> bool) -> Vec<(Waits, i64, i64)> {
        let mut waits = Vec::new();
        let mut before = None;
        for round in &self.rounds {
            if let Some(before) = before.filter(|before| *before < round.start) {
                waits.push((Waits::ForClient, before, round.start));
            }
            let held = if is_held(round.request) { now.saturating_sub(round.start) } else { round.held };
            if held > 0 {
                waits.push((Waits::Held, round.start, round.start.saturating_add(held)));
            }
            if let Some(answer) = round.answer.as_ref().filter(|answer| answer.held > 0) {
                waits.push((Waits::Held, answer.at, answer.at.saturating_add(answer.held)));
            }
            before = round.end();
        }
        waits
    }
}

/// What keeps a request from ever being answered by its peer.
fn leads_nowhere(outcome: &str) -> Option<&'static str> {
    match outcome {
        "dropped" => Some("dropped"),
        "cancelled" => Some("cancelled"),
        "discarded" => Some("discarded"),
        _ => None,
    }
}
