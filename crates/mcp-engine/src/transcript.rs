//! One recorded conversation as a replay and a mock read it: who said what, in which order, what
//! answers what, and what a server said by itself because of what.

mod cause;

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mcp_store::{Direction, Told};
use mcp_wire::{Id, Kind, Message, Revision, scan};

use crate::compare::value::canonical;
use crate::envelope::Side;
use cause::Causes;

/// What a peer puts beside what it means: tokens, revisions, who it is.
pub const META: &str = "_meta";

/// The messages of one conversation. Noise and events are not among them.
#[derive(Default)]
pub struct Transcript {
    lines: Vec<Line>,
    by_sequence: HashMap<u64, usize>,
    /// Requests that were not answered so far, by who sent them.
    open: HashMap<(Direction, Id), VecDeque<usize>>,
    /// The last round of each operation, by its first request.
    rounds: HashMap<u64, usize>,
    /// Requests that somebody kept from whom they were for.
    withheld: HashSet<u64>,
    causes: Causes,
}

/// One message, or one item of a batch.
pub struct Line {
    pub sequence: u64,
    pub time_ns: u64,
    /// How long the proxy held it before it went on.
    pub held_ns: u64,
    /// Of a request: how long the proxy held the questions that the server asked about it, and the answers
    /// to them.
    pub questions_held_ns: u64,
    pub from: Side,
    pub message: Message,
    pub part: Part,
    /// The proxy spoke in the place of a peer.
    pub from_proxy: bool,
    /// The HTTP exchange it came in.
    pub exchange: Option<u64>,
    /// Of a request: the line of its answer. Of an answer: the line of its request.
    pub pair: Option<usize>,
    /// Of a request: the client took it back.
    pub cancelled: bool,
    /// Of a request after `input_required`: the line of the request that it repeats.
    pub retry_of: Option<usize>,
    /// Of what the server said by itself: the client's line that led to it.
    pub cause: Option<usize>,
}

/// How a line stood on the wire.
pub enum Part {
    Whole,
    /// The first item of this batch, and the others.
    First(Bytes),
    Later,
}

impl Transcript {
    /// Takes the next message of the conversation.
    pub fn add(&mut self, told: &Told) {
        // What the proxy sent in the client's place was no message of the client's, but for a
        // cancellation: there the client left.
        let is_ours = told.recorded.from_proxy && told.recorded.direction == Direction::ClientToServer;
        // Nor is what the proxy asks a client by itself anything that the server said.
        let is_answer = told.message.kind().is_response() || told.message.kind() == Kind::Batch;
        if told.recorded.from_proxy && told.recorded.direction == Direction::ServerToClient && !is_answer {
            return;
        }
        if !told.is_message() || is_ours && told.message.cancelled_id().is_none() {
            return;
        }
        // Nor was what somebody kept back, and what he answered in the other's place: a server that has
        // not seen a call must not get it from a replay.
        if !told.recorded.went_on() {
            self.withheld.insert(told.recorded.sequence);
            return;
        }
        if told.answers.is_some_and(|request| self.withheld.contains(&request)) {
            return;
        }
        if told.message.kind() != Kind::Batch {
            let pair = told.answers.and_then(|sequence| self.by_sequence.get(&sequence).copied());
            return self.add_line(told, told.message.clone(), Part::Whole, pair);
        }
        let whole = told.message.bytes();
        for (at, item) in scan::batch_items(whole).enumerate() {
            let part = if at == 0 { Part::First(whole.clone()) } else { Part::Later };
            self.add_line(told, Message::new(whole.slice(item.range())), part, None);
        }
    }

    fn add_line(&mut self, told: &Told, message: Message, part: Part, pair: Option<usize>) {
        let direction = told.recorded.direction;
        let from = match direction {
            Direction::ClientToServer => Side::Client,
            Direction::ServerToClient => Side::Server,
        };
        let at = self.lines.len();
        let mut line = Line {
            sequence: told.recorded.sequence,
            time_ns: told.recorded.time_ns,
            held_ns: told.recorded.held_ns.unwrap_or(0),
            questions_held_ns: 0,
            from,
            message,
            part,
            from_proxy: told.recorded.from_proxy,
            exchange: told.recorded.exchange,
            pair: None,
            cancelled: false,
            retry_of: None,
            cause: None,
        };
        match line.message.kind() {
            Kind::Request => {
                if let Some(id) = line.message.id() {
                    self.open.entry((direction, id)).or_default().push_back(at);
                }
                self.by_sequence.insert(line.sequence, at);
                line.retry_of = told.operation().and_then(|operation| self.rounds.insert(operation, at));
            }
            Kind::Response | Kind::Error => line.pair = self.answered(direction, &line.message, pair, at),
            Kind::Notification => {
                if let Some(id) = line.message.cancelled_id() {
                    self.cancel(direction, &id);
                }
            }
            _ => {}
        }
        line.cause = self.causes.of(&line, at);
        if let Some(call) = self.call_behind(&line) {
            let held = &mut self.lines[call].questions_held_ns;
            *held = held.saturating_add(line.held_ns);
        }
        self.lines.push(line);
    }

    /// The call that a question of the server's, or the client's answer to one, is about.
    fn call_behind(&self, line: &Line) -> Option<usize> {
        match line.from {
            Side::Server => line.cause.filter(|_| line.is_request()),
            Side::Client => self.lines[line.pair.filter(|_| line.is_answer())?].cause,
        }
    }

    /// Pairs an answer with its request: the one that the recording names, else the oldest under its id.
    fn answered(&mut self, from: Direction, answer: &Message, pair: Option<usize>, at: usize) -> Option<usize> {
        let key = (from.other(), answer.id()?);
        let open = self.open.get_mut(&key)?;
        let place = pair.and_then(|pair| open.iter().position(|&line| line == pair)).unwrap_or(0);
        let request = open.remove(place)?;
        if open.is_empty() {
            self.open.remove(&key);
        }
        self.lines[request].pair = Some(at);
        Some(request)
    }

    fn cancel(&mut self, from: Direction, id: &Id) {
        if let Some(&request) = self.open.get(&(from, id.clone())).and_then(VecDeque::front) {
            self.lines[request].cancelled = true;
        }
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub fn line(&self, at: usize) -> &Line {
        &self.lines[at]
    }

    /// The answer to the request at `at`.
    pub fn answer(&self, at: usize) -> Option<&Line> {
        self.answer_to(&self.lines[at])
    }

    /// The answer to a request of this conversation.
    pub fn answer_to(&self, request: &Line) -> Option<&Line> {
        request.pair.map(|pair| &self.lines[pair])
    }

    /// How long the server took to answer the request at `at`. Time that the proxy held a message for does
    /// not count.
    pub fn took_ns(&self, at: usize) -> Option<u64> {
        let request = &self.lines[at];
        let held = request.held_ns.saturating_add(request.questions_held_ns);
        Some(self.answer_to(request)?.time_ns.saturating_sub(request.time_ns).saturating_sub(held))
    }

    /// The requests of the client, with their places.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Line)> {
        self.lines.iter().enumerate().filter(|(_, line)| line.from == Side::Client && line.is_request())
    }

    /// The older revision that the two agreed on in a handshake, if there was one.
    pub fn revision(&self) -> Option<Revision> {
        let (at, _) = self.calls().find(|(_, line)| line.method() == "initialize")?;
        let answer = self.answer(at)?.message.bytes();
        let agreed = scan::member_at(answer, ["result", "protocolVersion"])?;
        Revision::parse(scan::decode_string(&answer[agreed.range()])?.as_bytes())
    }
}

impl Line {
    pub fn is_request(&self) -> bool {
        self.message.kind() == Kind::Request
    }

    /// When the other side got it.
    pub fn arrived_ns(&self) -> u64 {
        self.time_ns.saturating_add(self.held_ns)
    }

    /// It answers, rather than says something by itself.
    pub fn is_answer(&self) -> bool {
        self.message.kind().is_response()
    }

    pub fn method(&self) -> std::borrow::Cow<'_, str> {
        self.message.method().unwrap_or_default()
    }

    /// What is called: the method, with the tool, prompt or resource it is about.
    pub fn call(&self) -> String {
        match self.message.name().or_else(|| self.message.uri()) {
            Some(subject) => format!("{} [{subject}]", self.method()),
            None => self.method().into_owned(),
        }
    }
}

/// What a message says in `params`, in a spelling that equal ones share. Members named in `without`
/// do not count.
pub fn params_key(message: &Message, without: &[&str]) -> Vec<u8> {
    match scan::member_at(message.bytes(), ["params"]) {
        Some(params) => canonical(message.slice(params), without),
        None => canonical(b"{}", without),
    }
}

#[cfg(test)]
pub mod tests;
