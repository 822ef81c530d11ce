//! A live server behind a mock, for the calls that the recording does not have. It is opened with the
//! client's own handshake when it is first needed, and its questions get ids of their own, so that they
//! are not taken for the mock's.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use mcp_wire::splice::with_id;
use mcp_wire::{Id, Kind, Message};

/// The id of the handshake, and what ids of questions begin with.
const OPENING_ID: &str = "mcp-proxy-mock";
const QUESTION_ID: &str = "mcp-proxy-live";
/// Calls that wait for a live server's handshake. A client that sends more does not wait for answers either.
const WAITING_MAX: usize = 1_024;

#[derive(Default)]
pub struct Live {
    state: State,
    /// The client's own handshake, as it came.
    initialize: Option<Bytes>,
    waiting: VecDeque<Message>,
    /// Calls on their way, by id.
    asked: HashMap<Id, Message>,
    /// What the client is asked for the server, by the id it is asked under.
    questions: HashMap<Id, Id>,
    own_ids: u64,
}

#[derive(Default, PartialEq, Eq)]
enum State {
    #[default]
    Unopened,
    Opening,
    Open,
}

/// What a message leads to.
#[derive(Debug, PartialEq, Eq)]
pub enum Out {
    ToClient(Bytes),
    ToServer(Bytes),
    /// A call that the server answered.
    Learned {
        request: Bytes,
        answer: Bytes,
    },
}

impl Live {
    /// Keeps the client's handshake for the server.
    pub fn note(&mut self, message: &Message) {
        if message.method().is_some_and(|method| method == "initialize") {
            self.initialize = Some(message.bytes().clone());
        }
    }

    /// Sends a call to the server. Nothing is sent if too many wait.
    pub fn ask(&mut self, request: &Message) -> Vec<Out> {
        if self.state == State::Unopened {
            self.state = State::Open;
            // A request of the newest revision says everything itself.
            let opening = self.initialize.as_ref().filter(|_| request.protocol_version().is_none());
            if let Some(opening) = opening {
                self.state = State::Opening;
                let opening = with_id(opening, &Id::Text(OPENING_ID.into()));
                self.waiting.push_back(request.clone());
                return vec![Out::ToServer(opening)];
            }
        }
        if self.state == State::Opening {
            if self.waiting.len() < WAITING_MAX {
                self.waiting.push_back(request.clone());
            }
            return Vec::new();
        }
        self.send(request.clone()).into_iter().collect()
    }

    fn send(&mut self, request: Message) -> Option<Out> {
        let bytes = request.bytes().clone();
        self.asked.insert(request.id()?, request);
        Some(Out::ToServer(bytes))
    }

    /// Whether the server still works on this call.
    pub fn works_on(&self, id: &Id) -> bool {
        self.asked.contains_key(id)
    }

    /// Whether somebody waits for the server.
    pub fn is_busy(&self) -> bool {
        !self.asked.is_empty() || !self.waiting.is_empty()
    }

    /// Takes a message of the server's.
    pub fn from_server(&mut self, message: &Message) -> Vec<Out> {
        match message.kind() {
            Kind::Response | Kind::Error => {
                let Some(id) = message.id() else { return Vec::new() };
                if self.state == State::Opening && id == Id::Text(OPENING_ID.into()) {
                    return self.opened();
                }
                let answer = message.bytes().clone();
                match self.asked.remove(&id) {
                    Some(request) => {
                        let request = request.bytes().clone();
                        vec![Out::Learned { request, answer: answer.clone() }, Out::ToClient(answer)]
                    }
                    None => Vec::new(),
                }
            }
            Kind::Request => {
                let Some(id) = message.id() else { return Vec::new() };
                self.own_ids += 1;
                let own = Id::Text(format!("{QUESTION_ID}-{}", self.own_ids).into());
                let question = with_id(message.bytes(), &own);
                self.questions.insert(own, id);
                vec![Out::ToClient(question)]
            }
            Kind::Notification => vec![Out::ToClient(message.bytes().clone())],
            Kind::Batch | Kind::OtherJson | Kind::NotJson => Vec::new(),
        }
    }

    fn opened(&mut self) -> Vec<Out> {
        self.state = State::Open;
        let confirmation = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let mut out = vec![Out::ToServer(Bytes::from_static(confirmation))];
        for request in std::mem::take(&mut self.waiting) {
            out.extend(self.send(request));
        }
        out
    }

    /// Passes on what the client answers, if the server asked.
    pub fn answered(&mut self, answer: &Message) -> Option<Out> {
        let asked_under = self.questions.remove(&answer.id()?)?;
        Some(Out::ToServer(with_id(answer.bytes(), &asked_under)))
    }

    /// The server is gone. Returns the calls that it left open, and waits for a new one.
    pub fn gone(&mut self) -> Vec<Message> {
        self.state = State::Unopened;
        self.questions.clear();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        std::mem::take(&mut self.asked).into_values().chain(waiting).collect()
    }
}
