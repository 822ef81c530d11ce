//! Messages that are parked on their way, and how each of them comes free again.

use std::collections::BTreeMap;

use mcp_filter::Filter;
use mcp_store::{Mark, Outcome, OutcomeKind, RecordHead};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Id, Kind, Message, scan};
use tokio::time::Instant;

use super::{Outbox, Outgoing, ParkedMark, Pipeline};
use crate::bus::{Event, Origin};
use crate::conversation::{Client, Conversation, Part};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::{
    Answer, BreakpointError, Content, DecideError, Decision, Held, Mode, OnDetach, Owner, Parked, Passed, Why,
    compose_answer, edited,
};
use crate::policy::{Hidden, Judged};

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

impl Pipeline {
    /// The way of a message that may be parked, or needs more done to it.
    #[inline(never)]
    pub(super) fn pass_watched(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        mut message: ProxyMessage,
        out: &mut Outbox,
    ) {
        self.meet_again(talk, &message);
        let client = talk.client_of(&message, lane.behalf);
        let lane = Lane { behalf: lane.behalf.or(client.as_ref().map(Client::behalf)), ..lane };
        if let Some(request) = message.correlated {
            self.note_answer(request, &message);
        }
        if self.audit.as_ref().is_some_and(|audit| audit.awaits_items()) {
            self.note_item_answers(&message);
        }
        if talk.keeps(&message) {
            self.recorder.message(&message, lane, 0);
            self.tell(&message, lane, Origin::Peer);
            out.withheld += 1;
            return;
        }
        if self.hears(&message) {
            return self.hear(talk, lane, message, out);
        }
        let known_id = talk.known_id(&message);
        if let Some(cancelled) = message.message.cancelled_id()
            && let Some(now) = talk.renamed_request(message.from, &cancelled)
        {
            return self.pass_cancellation(talk, lane, message, &now, out);
        }
        let came = self.name_again(&mut message);
        let (judged, rulings) = match self.judge(talk, lane, message) {
            Ok(judged) => judged,
            Err(stopped) => return self.stop(talk, lane, known_id.map(|(_, known)| known), stopped, out),
        };
        let (judged, hidden) = match talk.part {
            // Whoever merges lists of servers leaves out what each of its clients is not to see.
            Part::Leg(_) if lane.behalf.is_none() => {
                self.policy.learn(&judged);
                (judged, None)
            }
            _ if !self.policy.awaits_list() => (judged, None),
            _ => self.policy.show(judged, lane.speaker(talk)),
        };
        let hidden = hidden.or(came.map(|came| Hidden { came, count: 0 }));
        let passed = match self.intercept.is_idle() {
            true => Passed::Onward(judged),
            false => {
                let server = self.policy.server(talk.upstream()).map(|server| &**server);
                self.intercept.look(judged, lane.speaker(talk), server, lane.since)
            }
        };
        match passed {
            Passed::Onward(judged) => match known_id {
                None => {
                    self.keep_rulings(lane.speaker(talk), judged.message(), &rulings);
                    match &hidden {
                        None => self.keep(judged.message(), lane, 0),
                        Some(hidden) => self.keep_shown(judged.message(), hidden, lane),
                    }
                    out.to(judged.message().from.other()).push(Outgoing::Message(judged));
                }
                Some(known) => {
                    let came = hidden.map(|hidden| hidden.came(judged.message()));
                    self.keep_held(came.as_ref().unwrap_or(judged.message()), lane);
                    let judged = renamed(judged, &known);
                    self.keep_renamed(judged, out);
                }
            },
            Passed::Held(judged, why, owner) => {
                let event_id = if lane.is_foretold { b"" } else { lane.event_id };
                self.keep_rulings(lane.speaker(talk), judged.message(), &rulings);
                let came = hidden.map(|hidden| hidden.came(judged.message()));
                self.keep_held(came.as_ref().unwrap_or(judged.message()), Lane { event_id, ..lane });
                let ProxyMessage { sequence, correlated, .. } = *judged.message();
                out.parked.push(ParkedMark { sequence, correlated, is_refused: false });
                let since = lane.since.unwrap_or_else(Instant::now);
                let deadline = self.intercept.limit().map(|limit| since + limit - self.intercept.spent_on(correlated));
                let (content, speaker) = (Content::Judged(judged), lane.speaker(talk).clone());
                let lane = lane.into();
                self.park(Parked {
                    content,
                    speaker,
                    server: None,
                    lane,
                    since,
                    deadline,
                    why,
                    owner,
                    given_up: false,
                    known_id,
                    is_changed: came.is_some(),
                    asking: None,
                });
            }
            Passed::TakesBack(judged, sequence) => {
                self.keep_held(judged.message(), lane);
                let why = format!("it takes back #{sequence}, which was held");
                let outcome =
                    Outcome { what: OutcomeKind::Cancelled, by: String::new(), why, held_ns: 0, edited: None };
                self.keep_outcome(judged.message(), outcome);
                out.withheld += 1;
                if let Some(parked) = self.intercept.take(sequence) {
                    let why = "its sender took it back";
                    self.note_unanswered(&parked, "", why);
                    self.end(parked, OutcomeKind::Cancelled, "", why, Ends::default());
                }
            }
        }
    }

    pub(super) fn park(&mut self, mut parked: Parked) {
        parked.server = self.policy.server(parked.message().upstream).cloned();
        let held = parked.held();
        self.intercept.park(parked);
        if let Some(tell) = self.on_question.as_ref().filter(|_| held.asks.is_some()) {
            tell(held.clone());
        }
        self.bus.publish(|| Event::Held(Box::new(held)));
    }

    /// Names a request that is taken back as its receiver knows it.
    fn pass_cancellation(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        now: &Id,
        out: &mut Outbox,
    ) {
        match self.judge(talk, lane, message) {
            Ok((judged, rulings)) => {
                self.keep_rulings(lane.speaker(talk), judged.message(), &rulings);
                self.keep_held(judged.message(), lane);
                self.keep_renamed(judged.cancelling(now), out);
            }
            Err(stopped) => self.stop(talk, lane, None, stopped, out),
        }
    }

    /// Sends a message on that is not what was recorded, because of an id.
    fn keep_renamed(&mut self, judged: Judged, out: &mut Outbox) {
        let outcome = Outcome {
            what: OutcomeKind::Forwarded,
            by: String::new(),
            why: "under the id that its receiver knows".into(),
            held_ns: 0,
            edited: Some(judged.message().message.bytes().clone()),
        };
        self.keep_outcome(judged.message(), outcome);
        out.to(judged.message().from.other()).push(Outgoing::Message(judged));
    }

    pub(super) fn keep_held(&mut self, message: &ProxyMessage, lane: Lane<'_>) {
        self.keep(message, lane, RecordHead::HELD);
    }

    pub(super) fn keep(&mut self, message: &ProxyMessage, lane: Lane<'_>, flags: u16) {
        self.recorder.message(message, lane, flags);
        self.tell(message, lane, Origin::Peer);
    }

    pub(super) fn keep_outcome(&mut self, message: &ProxyMessage, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        self.recorder.outcome(message, now_ns, &outcome);
        let sequence = message.sequence;
        self.bus.publish(|| Event::Outcome { sequence, outcome: outcome.into() });
    }

    /// Does what somebody decided about a parked message.
    pub fn decide(&mut self, sequence: u64, decision: Decision, by: &str) -> Result<(), DecideError> {
        if self.rounds.get(sequence).is_some() {
            return self.decide_round(sequence, decision, by);
        }
        let parked = self.intercept.get(sequence).ok_or(DecideError::NotHeld(sequence))?;
        if let Some(question) = parked.question()
            && matches!(decision, Decision::Forward | Decision::Modify { .. })
        {
            return Err(DecideError::IsAsked(sequence, question.ruling.name().into()));
        }
        let message = &parked.message().message;
        let asks = message.id().filter(|_| message.glance().kind == Kind::Request);
        let known = parked.known_id.as_ref().map(|(_, known)| known.clone());
        let answers = known.or_else(|| message.id()).filter(|_| message.glance().kind.is_response());
        match decision {
            Decision::Forward => self.let_go(sequence, OutcomeKind::Forwarded, by, ""),
            Decision::Modify { raw_headers: true, .. } if self.policy.is_governed() => {
                let why = "headers that say otherwise than the message are not judged, and rules are in force";
                return Err(DecideError::Denied(why.into()));
            }
            Decision::Modify { raw, raw_headers, not_json_rpc } => {
                let edited = edited(&raw, not_json_rpc)?;
                self.replace(sequence, edited, raw_headers, by)?;
            }
            Decision::Approve { lasting, edited } => self.approve(sequence, lasting, edited, by)?,
            Decision::Deny { lasting, message } => self.deny(sequence, lasting, message, by)?,
            Decision::Drop { error: None } => self.finish_held(sequence, OutcomeKind::Dropped, by, "", None),
            Decision::Drop { error: Some((code, text)) } => {
                let waits = asks.or(answers).ok_or(DecideError::NobodyWaits(sequence))?;
                let error = compose_answer(&waits, &Answer::Error(reply::error_object(code, &text)))?;
                self.finish_held(sequence, OutcomeKind::Refused, by, "", Some(error));
            }
            Decision::Answer(answer) => {
                let asks = asks.ok_or(DecideError::NotARequest(sequence))?;
                let answer = compose_answer(&asks, &answer)?;
                self.finish_held(sequence, OutcomeKind::Answered, by, "", Some(answer));
            }
        }
        Ok(())
    }

    /// Lets a parked message go on as it is. One that a rule asks about does not go on without an answer.
    fn let_go(&mut self, sequence: u64, what: OutcomeKind, by: &str, why: &str) {
        let Some(parked) = self.intercept.take(sequence) else { return };
        match parked.content {
            Content::Judged(_) => self.end(parked, what, by, why, Ends { goes_on: true, ..Ends::default() }),
            Content::Question(_) => self.end_question(parked, why),
        }
    }

    /// Sends something else in the place of a parked message, which policy sees like any other. If that
    /// denies it, nothing has happened.
    fn replace(&mut self, sequence: u64, edited: Message, raw_headers: bool, by: &str) -> Result<(), DecideError> {
        let Some(parked) = self.intercept.get(sequence) else { return Ok(()) };
        let (message, speaker, held_ns) = (parked.message().clone(), parked.speaker.clone(), parked.held_ns());
        let judged = self.judge_edited(&speaker, message, edited, by, held_ns)?;
        let Some(parked) = self.intercept.take(sequence) else { return Ok(()) };
        match self.is_sealed() {
            true => self.end_edited(parked, judged, raw_headers, by, ""),
            false => self.end_unaudited(parked),
        }
        Ok(())
    }

    /// Lets a message go on that is no longer what was parked.
    pub(super) fn end_edited(&mut self, mut parked: Parked, judged: Judged, raw_headers: bool, by: &str, why: &str) {
        let request = request_id(parked.message());
        let raw_headers = raw_headers.then(|| parked.message().message.clone());
        parked.content = Content::Judged(judged);
        parked.is_changed = true;
        let ends = Ends { goes_on: true, request: Some(request), raw_headers, ..Ends::default() };
        self.end(parked, OutcomeKind::Modified, by, why, ends);
    }

    /// Keeps a parked message from going on. `answer` is for whoever waits because of it.
    fn finish_held(&mut self, sequence: u64, what: OutcomeKind, by: &str, why: &str, answer: Option<bytes::Bytes>) {
        let Some(parked) = self.intercept.take(sequence) else { return };
        self.note_unanswered(&parked, by, if why.is_empty() { what.as_str() } else { why });
        self.end(parked, what, by, why, Ends { answer, ..Ends::default() });
    }

    pub(super) fn end(&mut self, mut parked: Parked, what: OutcomeKind, by: &str, why: &str, ends: Ends) {
        if let Some(known) = parked.known_id.take().filter(|_| ends.goes_on)
            && let Content::Judged(judged) = parked.content
        {
            parked.content = Content::Judged(renamed(judged, &known));
            parked.is_changed = true;
        }
        let unasks = parked.asking.take().map(|asking| {
            let cancellation = reply::cancellation_because(&asking.id, "it is decided");
            self.compose(parked.message().conversation, parked.lane.lane(), Side::Client, None, cancellation)
        });
        let message = parked.message();
        let (sequence, conversation, from) = (message.sequence, message.conversation, message.from);
        let edited = (ends.goes_on && parked.is_changed).then(|| message.message.bytes().clone());
        let is_edited = edited.is_some();
        let outcome = Outcome { what, by: by.into(), why: why.into(), held_ns: parked.held_ns(), edited };
        self.keep_outcome(message, outcome);
        if !ends.goes_on {
            // Whatever its sender is told, its receiver never saw it.
            self.note_ended(sequence, audited(what));
        }
        let request = ends.request.unwrap_or_else(|| request_id(message));
        if ends.goes_on && request.is_some() {
            self.intercept.spend(sequence, parked.since.elapsed());
        }
        // The answer to a request goes to its sender; an error in place of an answer, to its receiver.
        let items = if ends.goes_on { Vec::new() } else { item_ids(message) };
        let (mut onward, mut back) = (None, None);
        if let Some(answer) = ends.answer {
            let (to, correlated) = match request.is_some() {
                true => (from, Some(sequence)),
                false => (from.other(), message.correlated),
            };
            let answer = self.compose(conversation, parked.lane.lane(), to, correlated, answer);
            *(if to == from { &mut back } else { &mut onward }) = Some(answer);
        }
        if let Content::Judged(judged) = parked.content
            && ends.goes_on
        {
            onward = Some(Outgoing::Message(judged));
        }
        self.released.push(Release {
            sequence,
            conversation,
            from,
            onward,
            back,
            unasks,
            request,
            items,
            is_edited,
            raw_headers: ends.raw_headers,
            is_taken_back: what == OutcomeKind::Cancelled,
            is_discarded: what == OutcomeKind::Discarded,
        });
    }

    /// What came free since this was last asked.
    pub fn take_released(&mut self) -> Vec<Release> {
        std::mem::take(&mut self.released)
    }

    pub fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Lets everything go on.
    pub fn release_all(&mut self, by: &str) -> usize {
        let all = self.intercept.parked_where(|parked| parked.question().is_none());
        all.iter().for_each(|sequence| self.let_go(*sequence, OutcomeKind::Forwarded, by, ""));
        all.len()
    }

    /// When a parked message goes on by itself, the first of them.
    pub fn deadline(&self) -> Option<Instant> {
        self.intercept.deadline()
    }

    /// Lets go on what was held as long as may be.
    pub fn release_overdue(&mut self) {
        let now = Instant::now();
        let overdue = self.intercept.parked_where(|parked| parked.deadline.is_some_and(|deadline| deadline <= now));
        for sequence in &overdue {
            match self.intercept.get(*sequence).is_some_and(|parked| parked.question().is_some()) {
                true => self.time_out(*sequence),
                false => self.let_go(*sequence, OutcomeKind::Released, "", Why::Limit.as_str()),
            }
        }
        if !overdue.is_empty() {
            self.intercept.stop_waiting_for_face();
        }
    }

    /// Whether messages are held, or could be, so that they must be whole before any of them leaves.
    pub fn watches(&self) -> bool {
        self.intercept.is_armed() || self.policy.is_governed()
    }

    /// Whether a message that `from` sent in a conversation is parked.
    pub fn holds_from(&self, conversation: u32, from: Side) -> bool {
        let is_meant = |held: &ProxyMessage| (held.conversation, held.from) == (conversation, from);
        self.intercept.held_count() > 0 && !self.intercept.parked_where(|parked| is_meant(parked.message())).is_empty()
    }

    pub fn hold_limit(&self) -> Option<std::time::Duration> {
        self.intercept.limit()
    }

    /// The server of a conversation is gone: what is parked for it goes nowhere, what it said goes on.
    pub fn server_is_gone(&mut self, conversation: u32) {
        let is_meant = |held: &Held, from: Side| (held.conversation, held.from) == (conversation, from);
        self.discard_held(|held| is_meant(held, Side::Client), Why::ServerGone);
        let said = self.held_where(|held| is_meant(held, Side::Server));
        said.iter().for_each(|sequence| {
            self.let_go(*sequence, OutcomeKind::Released, "", Why::ServerGone.as_str());
        });
    }

    /// The client of a conversation is gone, and with it all that is parked, there or for it on its way to the
    /// servers of a gateway.
    pub fn client_is_gone(&mut self, conversation: u32) {
        let is_its = |held: &Held| held.conversation == conversation || held.behalf == Some(conversation);
        self.discard_held(is_its, Why::ClientGone);
        self.rounds.forget(conversation);
        self.unknown.forget(conversation);
        self.note_lost(conversation);
    }

    /// A message was parked that had left already.
    pub fn release_late(&mut self, sequence: u64) {
        self.let_go(sequence, OutcomeKind::Released, "", "it had left before");
    }

    /// A parked request is of no use to anybody any more.
    pub fn discard(&mut self, sequence: u64) {
        self.finish_held(sequence, OutcomeKind::Discarded, "", Why::ClientGone.as_str(), None);
    }

    pub(super) fn discard_held(&mut self, which: impl Fn(&Held) -> bool, why: Why) {
        for sequence in self.held_where(which) {
            if matches!(why, Why::ClientGone | Why::Ending) {
                self.intercept.stop_asking(sequence);
            }
            self.finish_held(sequence, OutcomeKind::Discarded, "", why.as_str(), None);
        }
    }

    fn held_where(&self, which: impl Fn(&Held) -> bool) -> Vec<u64> {
        self.intercept.parked_where(|parked| which(&parked.held()))
    }

    /// Holds nothing any more: the proxy is ending.
    pub fn stop_holding(&mut self) {
        self.intercept.disarm();
    }

    /// The same, and lets go of all that is held.
    pub fn end_holds(&mut self) {
        self.stop_holding();
        self.let_all_go(|_| true, Why::Ending);
    }

    /// Holds everything from now on, or nothing but what breakpoints match. In the second case what is
    /// held goes on; how many that were comes back.
    pub fn set_mode(&mut self, mode: Mode, owner: Owner) -> usize {
        self.intercept.set_mode(mode, owner);
        let released = match mode {
            Mode::Passthrough => {
                self.intercept.stop_waiting_for_face();
                self.let_all_go(|parked| parked.question().is_none(), Why::Passthrough)
            }
            Mode::Intercept => 0,
        };
        self.bus.publish(|| Event::Changed);
        released
    }

    fn let_all_go(&mut self, which: impl FnMut(&Parked) -> bool, why: Why) -> usize {
        let all = self.intercept.parked_where(which);
        all.iter().for_each(|sequence| self.let_go(*sequence, OutcomeKind::Released, "", why.as_str()));
        all.len()
    }

    pub fn add_breakpoint(
        &mut self,
        name: Option<String>,
        filter: Filter,
        owner: Owner,
    ) -> Result<String, BreakpointError> {
        let name = self.intercept.add(name, filter, owner)?;
        self.bus.publish(|| Event::Changed);
        Ok(name.to_string())
    }

    /// Removes a breakpoint. What it held stays held until somebody decides.
    pub fn remove_breakpoint(&mut self, name: &str) -> bool {
        let removed = self.intercept.remove(name);
        self.bus.publish(|| Event::Changed);
        removed
    }

    /// Whether a face is there that may decide. When it has gone, what was held for it alone follows the
    /// fallback.
    pub fn set_face(&mut self, face: bool) {
        let waited = self.intercept.parked_where(|parked| &*parked.why == crate::intercept::WAITS_FOR_FACE);
        self.intercept.set_face(face);
        // What only waited for somebody goes on, unless that somebody wants to see it.
        for sequence in waited.into_iter().filter(|_| face) {
            if !self.intercept.holds_still(sequence) {
                self.let_go(sequence, OutcomeKind::Released, "", Why::FaceCame.as_str());
            }
        }
        if !face {
            for sequence in
                self.intercept.parked_where(|parked| !matches!(parked.owner, Owner::Command | Owner::Policy))
            {
                self.fall_back(sequence);
            }
            self.leave_questions();
        }
        self.bus.publish(|| Event::Changed);
    }

    fn fall_back(&mut self, sequence: u64) {
        let why = Why::Detached.as_str();
        match self.intercept.on_detach() {
            OnDetach::Forward => self.let_go(sequence, OutcomeKind::Released, "", why),
            OnDetach::Drop => self.finish_held(sequence, OutcomeKind::Dropped, "", why, None),
            OnDetach::Error => {
                let Some(parked) = self.intercept.get(sequence) else { return };
                let message = &parked.message().message;
                let waits = matches!(message.glance().kind, Kind::Request | Kind::Response | Kind::Error);
                let known = parked.known_id.as_ref().map(|(_, known)| known.clone());
                let id = known.or_else(|| message.id()).filter(|_| waits);
                let error = id.map(|id| reply::error(&id, &Refusal::Dropped));
                let what = if error.is_some() { OutcomeKind::Refused } else { OutcomeKind::Dropped };
                self.finish_held(sequence, what, "", why, error);
            }
        }
    }

    /// Marks a message, or notes something beside it.
    pub fn mark(&mut self, sequence: u64, mark: Mark) {
        let now_ns = self.clock.now_ns();
        self.recorder.mark(sequence, now_ns, &mark);
        self.bus.publish(|| Event::Marked { sequence, mark: mark.into() });
    }

    /// Notes something about the session.
    pub fn note_session(&mut self, notes: &BTreeMap<String, String>) {
        let now_ns = self.clock.now_ns();
        self.recorder.note(now_ns, notes);
        self.bus.publish(|| Event::Changed);
    }

    /// How far a recording reaches that has all of what passed so far.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// How a parked message ends.
#[derive(Default)]
pub(super) struct Ends {
    pub goes_on: bool,
    pub raw_headers: Option<Message>,
    pub answer: Option<bytes::Bytes>,
    /// The id of the request as it came, if that is not what it has now.
    pub request: Option<Option<Id>>,
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
fn renamed(judged: Judged, (now, known): &(Id, Id)) -> Judged {
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
