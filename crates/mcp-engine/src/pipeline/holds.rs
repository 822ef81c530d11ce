//! Messages that are parked on their way, and those that have come free again.

use std::time::Duration;

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Id, Kind, Message, scan};
use tokio::time::Instant;

use super::journal::Journal;
use super::outbox::{Outbox, Outgoing, ParkedMark};
use super::questions::NOBODY;
use crate::bus::Event;
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::{Content, Held, Intercept, Parked, Why};
use crate::policy::Judged;

/// How a call ended that did not go on because the audit could not be written. It may be written yet, and then says
/// this as well.
pub(super) const NOT_WRITTEN: &str = "stopped";

#[derive(Default)]
pub struct Holds {
    pub(super) intercept: Intercept,
    /// Parked no more, and on its way to where it goes.
    released: Vec<Release>,
}

/// A message that is parked no more. The transport that carried it sends what is left of it, and has
/// its conversation take note with [`Conversation::settle`].
#[derive(Debug)]
pub struct Release {
    pub sequence: u64,
    pub conversation: u32,
    pub from: Side,
    /// For the side that it was meant for.
    pub onward: Option<Outgoing>,
    /// For the side that it came from: an answer to it.
    pub back: Option<Outgoing>,
    /// For the client, before anything else: what it was asked is taken back.
    pub unasks: Option<Outgoing>,
    /// The id that its sender knows it by, if it is a request.
    pub request: Option<Id>,
    /// The ids of requests in a batch that went nowhere.
    pub items: Vec<Id>,
    /// It leaves otherwise than it came.
    pub is_edited: bool,
    /// The message as it came, if headers that repeat parts of it are to repeat those all the same.
    pub raw_headers: Option<Message>,
    /// Its sender took it back.
    pub is_taken_back: bool,
    /// Whoever it was for, or came from, is gone. That it waits for an answer is still true.
    pub is_discarded: bool,
}

impl Release {
    /// The release of `message`, of which nothing goes on and nothing goes back.
    pub(super) fn of(message: &ProxyMessage) -> Self {
        Self {
            sequence: message.sequence,
            conversation: message.conversation,
            from: message.from,
            onward: None,
            back: None,
            unasks: None,
            request: request_id(message),
            items: Vec::new(),
            is_edited: false,
            raw_headers: None,
            is_taken_back: false,
            is_discarded: false,
        }
    }
}

impl Holds {
    pub(super) fn new(intercept: Intercept) -> Self {
        Self { intercept, released: Vec::new() }
    }

    pub(super) fn park(&mut self, journal: &mut Journal, mut parked: Parked) -> Held {
        parked.server = journal.server(parked.message().upstream).cloned();
        let held = parked.held();
        self.intercept.park(parked);
        journal.publish(|| Event::Held(Box::new(held.clone())));
        held
    }

    pub(super) fn end(
        &mut self,
        journal: &mut Journal,
        mut parked: Parked,
        what: OutcomeKind,
        by: &str,
        why: &str,
        ends: Ends,
    ) {
        if let Some(known) = parked.known_id.take().filter(|_| ends.goes_on)
            && let Content::Judged(judged) = parked.content
        {
            parked.content = Content::Judged(renamed(judged, &known));
            parked.is_changed = true;
        }
        let unasks = parked.asking.take().map(|asking| {
            let cancellation = reply::cancellation_because(&asking.id, "it is decided");
            journal.compose(parked.message().place(), parked.lane.lane(), Side::Client, None, cancellation)
        });
        let message = parked.message();
        let (place, sequence, from) = (message.place(), message.sequence, message.from);
        let edited = (ends.goes_on && parked.is_changed).then(|| message.message.bytes().clone());
        let mut release = Release { unasks, is_edited: edited.is_some(), ..Release::of(message) };
        let outcome = Outcome { what, by: by.into(), why: why.into(), held_ns: parked.held_ns(), edited };
        journal.outcome(message, outcome);
        if !ends.goes_on {
            // Whatever its sender is told, its receiver never saw it.
            journal.ended(sequence, audited(what));
        }
        if let Some(request) = ends.request {
            release.request = request;
        }
        if ends.goes_on && release.request.is_some() {
            self.intercept.spend(sequence, parked.since.elapsed());
        }
        if !ends.goes_on {
            release.items = item_ids(message);
        }
        // The answer to a request goes to its sender; an error in place of an answer, to its receiver.
        if let Some(answer) = ends.answer {
            let (to, correlated) = match release.request.is_some() {
                true => (from, Some(sequence)),
                false => (from.other(), message.correlated),
            };
            let answer = journal.compose(place, parked.lane.lane(), to, correlated, answer);
            *(if to == from { &mut release.back } else { &mut release.onward }) = Some(answer);
        }
        if let Content::Judged(judged) = parked.content
            && ends.goes_on
        {
            release.onward = Some(Outgoing::Message(judged));
        }
        release.raw_headers = ends.raw_headers;
        release.is_taken_back = what == OutcomeKind::Cancelled;
        release.is_discarded = what == OutcomeKind::Discarded;
        self.released.push(release);
    }

    /// Lets a message go on that is no longer what was parked.
    pub(super) fn end_edited(
        &mut self,
        journal: &mut Journal,
        mut parked: Parked,
        judged: Judged,
        raw_headers: bool,
        by: &str,
        why: &str,
    ) {
        let request = request_id(parked.message());
        let raw_headers = raw_headers.then(|| parked.message().message.clone());
        parked.content = Content::Judged(judged);
        parked.is_changed = true;
        let ends = Ends { goes_on: true, request: Some(request), raw_headers, ..Ends::default() };
        self.end(journal, parked, OutcomeKind::Modified, by, why, ends);
    }

    pub(super) fn end_unaudited(&mut self, journal: &mut Journal, parked: Parked) {
        journal.ended(parked.message().sequence, NOT_WRITTEN);
        let answer = request_id(parked.message()).map(|id| reply::error(&id, &Refusal::NotAudited));
        let why = "the audit could not be written";
        self.end(journal, parked, OutcomeKind::Refused, "", why, Ends { answer, ..Ends::default() });
    }

    /// Keeps a parked message from going on. `answer` is for whoever waits because of it.
    pub(super) fn finish(
        &mut self,
        journal: &mut Journal,
        sequence: u64,
        what: OutcomeKind,
        by: &str,
        why: &str,
        answer: Option<Bytes>,
    ) {
        let Some(parked) = self.intercept.take(sequence) else { return };
        unanswered(journal, &parked, by, if why.is_empty() { what.as_str() } else { why });
        self.end(journal, parked, what, by, why, Ends { answer, ..Ends::default() });
    }

    /// Ends the way of a message that is not parked, but goes nowhere either. Transports take it for
    /// one that was parked and came free at once. `closing` goes on in its place.
    pub(super) fn refused(
        &mut self,
        journal: &mut Journal,
        lane: Lane<'_>,
        message: ProxyMessage,
        (answer, closing): (Option<Bytes>, Option<Outgoing>),
        why: &str,
        out: &mut Outbox,
    ) {
        let is_told = answer.is_some() || closing.is_some();
        let what = if is_told { OutcomeKind::Refused } else { OutcomeKind::Dropped };
        let outcome = Outcome { what, by: "rules".into(), why: why.into(), held_ns: 0, edited: None };
        journal.outcome(&message, outcome);
        let ProxyMessage { sequence, from, correlated, .. } = message;
        let mut release = Release { onward: closing, items: item_ids(&message), ..Release::of(&message) };
        let kind = message.message.glance().kind;
        // One that says nothing may answer, too.
        let is_answer = kind.is_response() || kind == Kind::OtherJson && correlated.is_some();
        match answer {
            // Whoever waits for an answer of the server's is told that it cannot have it.
            Some(answer) if is_answer => {
                release.onward = Some(journal.compose(message.place(), lane, from.other(), correlated, answer));
            }
            Some(answer) => {
                let answered = release.request.is_some().then_some(sequence);
                release.back = Some(journal.compose(message.place(), lane, from, answered, answer));
            }
            None => {}
        }
        out.parked.push(ParkedMark { sequence, correlated, is_refused: release.back.is_some() });
        self.released.push(release);
    }

    pub(super) fn discard_where(&mut self, journal: &mut Journal, which: impl Fn(&Held) -> bool, why: Why) {
        for sequence in self.held_where(which) {
            if matches!(why, Why::ClientGone | Why::Ending) {
                self.intercept.stop_asking(sequence);
            }
            self.finish(journal, sequence, OutcomeKind::Discarded, "", why.as_str(), None);
        }
    }

    pub(super) fn held_where(&self, which: impl Fn(&Held) -> bool) -> Vec<u64> {
        self.intercept.parked_where(|parked| which(&parked.held()))
    }

    /// Sends a message that takes the way of one that was parked, edited, and came free at once.
    pub(super) fn release(&mut self, release: Release) {
        self.released.push(release);
    }

    /// Takes back the release of a message.
    pub(super) fn withdraw(&mut self, sequence: u64) {
        self.released.retain(|release| release.sequence != sequence);
    }

    /// What came free since this was last asked.
    pub fn take_released(&mut self) -> Vec<Release> {
        std::mem::take(&mut self.released)
    }

    /// Whether no message is parked.
    pub(super) fn is_empty(&self) -> bool {
        self.intercept.held_count() == 0
    }

    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// When a parked message goes on by itself, the first of them.
    pub fn deadline(&self) -> Option<Instant> {
        self.intercept.deadline()
    }

    /// Whether a message that `from` sent in a conversation is parked.
    pub fn holds_from(&self, conversation: u32, from: Side) -> bool {
        let is_meant = |held: &ProxyMessage| (held.conversation, held.from) == (conversation, from);
        self.intercept.held_count() > 0 && !self.intercept.parked_where(|parked| is_meant(parked.message())).is_empty()
    }

    pub fn limit(&self) -> Option<Duration> {
        self.intercept.limit()
    }

    /// Holds nothing any more: the proxy is ending.
    pub fn stop_holding(&mut self) {
        self.intercept.disarm();
    }
}

/// A question ends without an answer to it, so that what it is about was not permitted.
pub(super) fn unanswered(journal: &mut Journal, parked: &Parked, by: &str, why: &str) {
    if let Some(question) = parked.question() {
        let (message, ruling) = (question.message(), question.ruling.clone());
        let actor = if by.is_empty() { NOBODY } else { by };
        let verdict = ("deny", actor, Some(why));
        journal.decided(&parked.speaker, message, &ruling, verdict, parked.held_ns());
    }
}

/// How a parked message ends.
#[derive(Default)]
pub(super) struct Ends {
    pub goes_on: bool,
    pub raw_headers: Option<Message>,
    pub answer: Option<Bytes>,
    /// The id of the request as it came, if that is not what it has now.
    pub request: Option<Option<Id>>,
}

impl Ends {
    pub(super) fn onward() -> Self {
        Self { goes_on: true, ..Self::default() }
    }
}

/// How the audit puts it that a call did not go on.
fn audited(what: OutcomeKind) -> &'static str {
    match what {
        OutcomeKind::Answered => "answered",
        OutcomeKind::Cancelled => "cancelled",
        OutcomeKind::Dropped | OutcomeKind::Refused => "dropped",
        _ => "lost",
    }
}

/// An answer under the id that its receiver knows, if it has the one that only its sender knows.
pub(super) fn renamed(judged: Judged, (now, known): &(Id, Id)) -> Judged {
    let message = &judged.message().message;
    match message.glance().kind.is_response() && message.id().as_ref() == Some(now) {
        true => judged.under_id(known),
        false => judged,
    }
}

pub(super) fn request_id(message: &ProxyMessage) -> Option<Id> {
    let message = &message.message;
    message.id().filter(|_| message.glance().kind == Kind::Request)
}

/// The ids of the requests in a batch.
pub(super) fn item_ids(batch: &ProxyMessage) -> Vec<Id> {
    let said = &batch.message;
    if said.glance().kind != Kind::Batch {
        return Vec::new();
    }
    let items = scan::batch_items(said.bytes()).map(|span| Message::new(said.bytes().slice(span.range())));
    items.filter(|item| item.glance().kind == Kind::Request).filter_map(|item| item.id()).collect()
}

#[cfg(test)]
mod tests;
