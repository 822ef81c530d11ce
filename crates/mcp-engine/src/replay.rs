//! A client made of recorded messages. It sends what the recorded client sent, waits where that one
//! waited, answers what that one was asked, and compares each answer with the recorded one. It opens
//! nothing and reads no clock: whoever drives it hands over what came and the time, and is told what
//! to send and how long to wait.

mod handles;
mod heard;
mod learn;
mod open;
mod outcome;
mod questions;
mod rounds;
mod script;
mod twins;

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mcp_wire::reply;
use mcp_wire::splice::with_id;
use mcp_wire::{Id, Kind, Message, Revision, scan};

use crate::compare::Volatile;
use crate::envelope::Side;
use crate::transcript::{Line, Part, Transcript};
use handles::Handles;
use heard::Heard;
use open::{Open, OpenCalls};
use questions::{Questions, Response, wants_input};

pub use heard::Count;
pub use learn::learn;
pub use outcome::{NoAnswer, Outcome, Outcomes, Tally, Verdict};
pub use script::{Handshake, Script, Turn};
pub use twins::{call_key, compare_answers, compare_calls, twins};

/// Wait for a message that the server sent by itself in the recording, beyond the time it took then.
const HEARD_FOR_NS: u64 = 1_000_000_000;
/// Time of an answer in the recording that counts: the times in a file may be anything.
const TOOK_MAX_NS: u64 = 600_000_000_000;
/// Times that a call is repeated because the server wants something the recorded one did not.
const EXTRA_ROUNDS_MAX: u32 = 8;
/// A call whose answer ends it: none is due while it is open.
const LISTEN: &str = "subscriptions/listen";
/// The id of a handshake that the recording does not have, and what ids of extra rounds begin with.
const OWN_ID: &str = "mcp-proxy-replay";

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// For each answer, beyond the time that it took in the recording.
    pub timeout_ns: u64,
    pub pace: Pace,
    /// Outcomes carry the messages that were sent and the answers to them.
    pub keeps_messages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As soon as everything has come that came before.
    Fast,
    /// And not sooner after it than then.
    Recorded,
}

/// What whoever drives a replay is to do.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Send(Bytes),
    /// Wait for a message, or until then.
    Wait(u64),
    Done,
}

pub struct Replay {
    transcript: Transcript,
    turns: VecDeque<Turn>,
    options: Options,
    volatile: Volatile,
    questions: Questions,
    handles: Handles,
    heard: Heard,
    open: OpenCalls,
    /// Messages that need not wait for anything.
    outgoing: VecDeque<Bytes>,
    /// Lines that were sent.
    sent: Vec<bool>,
    /// Calls that the recording repeats, and the new answers to them that want just that.
    repeated: HashSet<usize>,
    wants: HashMap<usize, Bytes>,
    /// Since when nothing but patience holds back the next turn.
    ready_since: Option<u64>,
    opening: Opening,
    own_ids: u32,
    total: usize,
    is_closed: bool,
    outcomes: Outcomes,
}

/// A handshake of our own.
#[derive(PartialEq, Eq)]
enum Opening {
    Needed,
    Under { until: u64 },
    Over,
}

impl Replay {
    pub fn new(transcript: Transcript, script: Script, volatile: Volatile, options: Options) -> Self {
        let skipped = |line| Outcome::new(line, Verdict::Skipped("left out"));
        let repeated = script.turns.iter().filter_map(|turn| transcript.line(turn.line).retry_of).collect();
        let calls: Vec<Outcome> = script.left_out.iter().copied().map(skipped).collect();
        Self {
            questions: Questions::of(&transcript),
            sent: vec![false; transcript.lines().len()],
            total: calls.len() + script.turns.iter().map(|turn| turn.asks.len()).sum::<usize>(),
            turns: script.turns.into(),
            opening: if script.needs_opening { Opening::Needed } else { Opening::Over },
            transcript,
            options,
            volatile,
            handles: Handles::default(),
            heard: Heard::default(),
            open: OpenCalls::default(),
            outgoing: VecDeque::new(),
            repeated,
            wants: HashMap::new(),
            ready_since: None,
            own_ids: 0,
            is_closed: false,
            outcomes: Outcomes { calls, ..Outcomes::default() },
        }
    }

    /// Requests whose outcome is known, and all of them.
    pub fn progress(&self) -> (usize, usize) {
        (self.outcomes.calls.len(), self.total)
    }

    /// What to do next. Times are nanoseconds on a clock of the caller's.
    pub fn step(&mut self, now: u64) -> Step {
        self.expire(now);
        if self.is_closed {
            return Step::Done;
        }
        if let Some(message) = self.outgoing.pop_front() {
            return Step::Send(message);
        }
        if let Some(step) = self.open_up(now) {
            return step;
        }
        while let Some(turn) = self.turns.front() {
            if let Some(until) = self.must_wait(turn.line, now) {
                return self.wait(until);
            }
            if let Some(message) = self.take_turn(now) {
                return Step::Send(message);
            }
        }
        if let Some(until) = self.must_wait(self.transcript.lines().len(), now) {
            return self.wait(until);
        }
        match self.open.next_due() {
            Some(due) => Step::Wait(due),
            None => self.wind_up(),
        }
    }

    /// Until then, or until an answer is overdue.
    fn wait(&self, until: u64) -> Step {
        Step::Wait(self.open.next_due().unwrap_or(until).min(until))
    }

    /// Takes a message of the server's.
    pub fn received(&mut self, message: &Message, now: u64) {
        match message.kind() {
            Kind::Response | Kind::Error => self.answered(message, now),
            Kind::Request => {
                self.heard.hear(&message.method().unwrap_or_default());
                match self.questions.respond(message) {
                    Response::Answer(answer) => self.outgoing.push_back(answer),
                    Response::Silence => {}
                    Response::Unknown(refusal) => {
                        self.outcomes.unanswered_questions += 1;
                        self.outgoing.push_back(refusal);
                    }
                }
            }
            Kind::Notification => self.heard.hear(&message.method().unwrap_or_default()),
            Kind::Batch => {
                for item in scan::batch_items(message.bytes()) {
                    let item = Message::new(message.bytes().slice(item.range()));
                    match item.kind() {
                        Kind::Batch => self.outcomes.strange += 1,
                        _ => self.received(&item, now),
                    }
                }
            }
            Kind::OtherJson | Kind::NotJson => self.outcomes.strange += 1,
        }
    }

    /// Nothing more will come.
    pub fn closed(&mut self) {
        self.is_closed = true;
        for (_, open) in self.open.take_all() {
            self.settle_unanswered(&open, NoAnswer::Gone);
        }
        for turn in std::mem::take(&mut self.turns) {
            for line in turn.asks {
                self.settle(Outcome::new(line, Verdict::NoAnswer(NoAnswer::NotSent)));
            }
        }
    }

    /// What came of it, and the conversation that it was about.
    pub fn finish(mut self) -> (Outcomes, Transcript, Volatile) {
        self.closed();
        self.heard.expect_up_to(self.transcript.lines().len(), &self.transcript, &self.sent);
        self.outcomes.calls.sort_by_key(|outcome| outcome.line);
        self.outcomes.heard = self.heard.into_counts();
        (self.outcomes, self.transcript, self.volatile)
    }

    /// Whether something has to come before what stands at `line`, and when to look again.
    fn must_wait(&mut self, line: usize, now: u64) -> Option<u64> {
        if self.waits_for_answers(line) {
            self.ready_since = None;
            return Some(u64::MAX);
        }
        let ready_since = *self.ready_since.get_or_insert(now);
        self.heard.expect_up_to(line, &self.transcript, &self.sent);
        if let Some(patience) = self.heard.patience(HEARD_FOR_NS, self.options.timeout_ns) {
            if now < ready_since.saturating_add(patience) {
                return Some(ready_since.saturating_add(patience));
            }
            self.heard.give_up();
        }
        let not_before = ready_since.saturating_add(self.pause_before(line));
        (now < not_before).then_some(not_before)
    }

    /// Whether an answer has to come first: one that came before `line` in the recording, or one under the
    /// id that the request at `line` needs.
    fn waits_for_answers(&self, line: usize) -> bool {
        let id = self.transcript.lines().get(line).and_then(|line| line.message.id());
        self.open.expects_before(line) || id.is_some_and(|id| self.open.awaits(&id))
    }

    /// The recorded answer to the request at `line`, if one is to be waited for.
    fn expected(&self, line: usize) -> Option<&Line> {
        self.transcript.answer(line).filter(|_| !self.transcript.line(line).cancelled)
    }

    fn pause_before(&self, line: usize) -> u64 {
        let lines = self.transcript.lines();
        match (self.options.pace, lines.get(line), line.checked_sub(1)) {
            (Pace::Recorded, Some(this), Some(before)) => this.time_ns.saturating_sub(match &lines[before] {
                // The client got it once it was no longer held.
                heard if heard.from == Side::Server => heard.arrived_ns(),
                said => said.time_ns,
            }),
            _ => 0,
        }
    }

    /// Sends the next turn, unless there is no more reason for it.
    fn take_turn(&mut self, now: u64) -> Option<Bytes> {
        self.ready_since = None;
        let turn = self.turns.pop_front()?;
        let mut bytes = self.handles.carried_over(turn.bytes);
        if let Some(first) = self.transcript.line(turn.line).retry_of {
            let Some(answer) = self.wants.remove(&first) else {
                self.settle(Outcome::new(turn.line, Verdict::Skipped("the server wanted nothing more")));
                return None;
            };
            let responses = self.questions.respond_in_round(&answer);
            bytes = rounds::next_round(&bytes, &answer, responses.as_deref());
        }
        for line in turn.line..self.end_of_batch(turn.line) {
            self.sent[line] = true;
        }
        for &line in &turn.asks {
            self.ask(line, &bytes, turn.asks.len() == 1, now);
        }
        Some(bytes)
    }

    /// The line after those that left with the one at `line`.
    fn end_of_batch(&self, line: usize) -> usize {
        let later = self.transcript.lines()[line + 1..].iter().take_while(|line| matches!(line.part, Part::Later));
        line + 1 + later.count()
    }

    /// Remembers a request that leaves. `is_alone` if it is the whole message and not an item of a batch.
    fn ask(&mut self, line: usize, bytes: &Bytes, is_alone: bool, now: u64) {
        let sent = match is_alone {
            true => Message::new(bytes.clone()),
            false => self.transcript.line(line).message.clone(),
        };
        let Some(id) = sent.id().filter(|_| sent.kind() == Kind::Request) else {
            let verdict = Verdict::NotCompared("it was changed and asks for nothing");
            return self.settle(Outcome { sent: self.kept(sent.bytes()), ..Outcome::new(line, verdict) });
        };
        let (expected, until) = self.due(line, now);
        let open = Open { line, request: sent.bytes().clone(), sent_at: now, expected, until, extra_rounds: 0 };
        // Only one whose answer nobody waits for can be in its place.
        if let Some(before) = self.open.insert(id, open) {
            self.settle_unanswered(&before, NoAnswer::Gone);
        }
    }

    /// The line of the recorded answer, if it has one that counts, and when an answer is overdue: never, if
    /// the client took the call back, or left a subscription open.
    fn due(&self, line: usize, now: u64) -> (Option<usize>, u64) {
        let request = self.transcript.line(line);
        if request.cancelled || request.pair.is_none() && request.method() == LISTEN {
            return (None, u64::MAX);
        }
        let took = self.transcript.took_ns(line).unwrap_or(0);
        let until = now.saturating_add(self.options.timeout_ns).saturating_add(took.min(TOOK_MAX_NS));
        // The largest time means that nothing is waited for.
        (request.pair, until.min(u64::MAX - 1))
    }

    fn answered(&mut self, answer: &Message, now: u64) {
        let id = answer.id();
        if self.opening != Opening::Over && id == Some(Id::Text(OWN_ID.into())) {
            return self.opened();
        }
        let Some(open) = id.and_then(|id| self.open.remove(&id)) else {
            self.outcomes.stray += 1;
            return;
        };
        let bytes = answer.bytes();
        if let Some(recorded) = self.transcript.answer(open.line) {
            self.handles.learn(recorded.message.bytes(), bytes);
        }
        if wants_input(bytes) {
            if !self.repeated.contains(&open.line) {
                if let Some(open) = self.another_round(open, bytes, now) {
                    self.compare(open, bytes, now);
                }
                return;
            }
            self.wants.insert(open.line, Bytes::copy_from_slice(bytes));
        }
        self.compare(open, bytes, now);
    }

    /// Repeats a call that the recording does not repeat, if it has what the server wants. Gives the
    /// call back otherwise.
    fn another_round(&mut self, open: Open, answer: &Bytes, now: u64) -> Option<Open> {
        let responses = self.questions.respond_in_round(answer);
        let (Some(responses), true) = (responses, open.extra_rounds < EXTRA_ROUNDS_MAX) else { return Some(open) };
        self.own_ids += 1;
        let id = Id::Text(format!("{OWN_ID}-{}", self.own_ids).into());
        let request = with_id(&rounds::next_round(&open.request, answer, Some(&responses)), &id);
        self.outgoing.push_back(request.clone());
        let (_, until) = self.due(open.line, now);
        self.open.insert(id, Open { request, until, extra_rounds: open.extra_rounds + 1, ..open });
        None
    }

    fn compare(&mut self, open: Open, answer: &Bytes, now: u64) {
        let recorded = self.expected(open.line);
        let is_recorded_refusal = recorded.is_some_and(|recorded| recorded.from_proxy);
        let refusal = reply::refusal_text(answer).filter(|_| open.is_awaited() && !is_recorded_refusal);
        let verdict = match (refusal, recorded) {
            (Some(text), _) => Verdict::NoAnswer(NoAnswer::Refused(text)),
            (None, Some(recorded)) => {
                let call = self.transcript.line(open.line).call();
                let is_ignored = |path: &_| self.volatile.covers(&call, path);
                let found = compare_answers(recorded.message.bytes(), answer, is_ignored);
                let is_same = found.is_empty() && open.extra_rounds == 0;
                if is_same { Verdict::Same } else { Verdict::Drifted(found) }
            }
            (None, None) => self.nothing_expected(open.line),
        };
        self.settle(Outcome {
            took_ns: Some(now.saturating_sub(open.sent_at)),
            extra_rounds: open.extra_rounds,
            sent: self.kept(&open.request),
            answer: self.kept(answer),
            ..Outcome::new(open.line, verdict)
        });
    }

    /// A message as an outcome carries it: a copy, because many share the memory they were read into.
    fn kept(&self, message: &[u8]) -> Option<Bytes> {
        self.options.keeps_messages.then(|| Bytes::copy_from_slice(message))
    }

    fn settle(&mut self, outcome: Outcome) {
        self.outcomes.calls.push(outcome);
    }

    fn settle_unanswered(&mut self, open: &Open, why: NoAnswer) {
        let verdict = match open.is_awaited() {
            true => Verdict::NoAnswer(why),
            false => self.nothing_expected(open.line),
        };
        let (sent, extra_rounds) = (self.kept(&open.request), open.extra_rounds);
        self.settle(Outcome { sent, extra_rounds, ..Outcome::new(open.line, verdict) });
    }

    fn nothing_expected(&self, line: usize) -> Verdict {
        Verdict::NotCompared(match self.transcript.line(line).cancelled {
            true => "the client took it back",
            false => "the recording has no answer",
        })
    }

    /// Gives up on answers that are overdue. The server is told, as clients should.
    fn expire(&mut self, now: u64) {
        if matches!(self.opening, Opening::Under { until } if now >= until) {
            self.opened();
        }
        while let Some((id, open)) = self.open.take_overdue(now) {
            self.cancel(&id, &open, "it took too long");
            let is_recorded = open.expected.is_some();
            self.settle_unanswered(&open, if is_recorded { NoAnswer::InTime } else { NoAnswer::AsRecorded });
        }
    }

    /// A handshake may not be taken back.
    fn cancel(&mut self, id: &Id, open: &Open, reason: &str) {
        if self.transcript.line(open.line).method() != "initialize" {
            self.outgoing.push_back(reply::cancellation_because(id, reason));
        }
    }

    /// The handshake that the recording lacks: sent, waited for, confirmed.
    fn open_up(&mut self, now: u64) -> Option<Step> {
        match self.opening {
            Opening::Over => None,
            Opening::Under { until } => Some(Step::Wait(until)),
            Opening::Needed => {
                self.opening = Opening::Under { until: now.saturating_add(self.options.timeout_ns) };
                let revision = Revision::NEWEST_LEGACY.as_str();
                let client = format!("{{\"name\":\"mcp-proxy\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION"));
                let params =
                    format!("{{\"protocolVersion\":\"{revision}\",\"capabilities\":{{}},\"clientInfo\":{client}}}");
                let message = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":\"{OWN_ID}\",\"method\":\"initialize\",\"params\":{params}}}"
                );
                Some(Step::Send(message.into()))
            }
        }
    }

    fn opened(&mut self) {
        self.opening = Opening::Over;
        let confirmation = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.outgoing.push_back(Bytes::from_static(confirmation));
    }

    /// Everything was sent, and what was to come has come. Subscriptions that are still open are taken back, or the
    /// server would be waited for.
    fn wind_up(&mut self) -> Step {
        for (id, open) in self.open.take_all() {
            if !self.transcript.line(open.line).cancelled {
                self.cancel(&id, &open, "the replay is over");
            }
            self.settle_unanswered(&open, NoAnswer::Gone);
        }
        match self.outgoing.pop_front() {
            Some(message) => Step::Send(message),
            None => Step::Done,
        }
    }
}

#[cfg(test)]
mod tests;
