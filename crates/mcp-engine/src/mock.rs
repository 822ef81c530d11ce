//! A server made of recorded messages. It answers a call as it was answered in the recording, says by
//! itself what the recorded server said around that call, and asks what that one asked. It opens
//! nothing and waits for nothing: whoever drives it hands over what came, and is told what to send.

mod live;
mod scenes;

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::splice::{splice, with_id};
use mcp_wire::{Id, Kind, Message, scan};

use crate::transcript::Transcript;

pub use live::{Live, Out};
use scenes::{Found, Part, Scene, Scenes};

/// Calls of a mock that wait for an answer of the client's; more are refused. A person cannot be asked as many at
/// once.
const WAITING_MAX: usize = 1_024;
/// Wait for the messages that the client sent before an answer in the recording. A client that does something else
/// waits no longer, and once for each.
const HOLD_FOR_NS: u64 = 2_000_000_000;
/// Answers held until the client has said what it said in the recording; more are given at once.
const HELD_MAX: usize = 1_024;
/// Bytes of a request quoted in the refusal of it.
const QUOTED: usize = 200;
/// Where a result names the subscription that it ends.
const SUBSCRIPTION: [&str; 3] = ["result", "_meta", "io.modelcontextprotocol/subscriptionId"];

pub struct Mock {
    scenes: Scenes,
    /// What goes on once the client has answered, by the id it was asked under.
    waiting: HashMap<Id, Running>,
    /// What goes on once the client has said what stands in a line, or when it is time.
    held: Vec<Held>,
    /// Lines that the client has said, or is not waited for to say any more.
    said: HashSet<usize>,
    now: u64,
    /// Subscriptions by the id they had in the recording.
    subscriptions: HashMap<Id, Id>,
    own_ids: u64,
    out: Vec<Bytes>,
}

/// What is still to be said because of one message of the client's.
struct Running {
    parts: VecDeque<Part>,
    /// The call, and the token its progress goes by, if it is one.
    call: Option<Id>,
    token: Option<Id>,
    /// Where its answer stands in the recording.
    answered: usize,
}

struct Held {
    line: usize,
    until: u64,
    running: Running,
}

/// What came of a message of the client's.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// These are to be sent.
    Said(Vec<Bytes>),
    /// The recording has no such call. This is what the client is told, unless somebody else knows.
    Unknown(Bytes),
    /// It answers a question that is none of the mock's.
    NotOurs,
}

impl Mock {
    /// A server that answers as in `transcript`.
    pub fn of(transcript: &Transcript) -> Self {
        Self {
            scenes: Scenes::of(transcript),
            waiting: HashMap::new(),
            held: Vec::new(),
            said: HashSet::new(),
            now: 0,
            subscriptions: HashMap::new(),
            own_ids: 0,
            out: Vec::new(),
        }
    }

    /// Adds the calls of another recording that this one does not have.
    pub fn extend(&mut self, transcript: &Transcript) {
        self.scenes.extend(transcript);
    }

    /// Adds a call that somebody else answered.
    pub fn learn(&mut self, request: &Message, answer: &Message) {
        self.scenes.learn(request, answer);
    }

    /// What the server said before it was spoken to.
    pub fn begin(&mut self) -> Vec<Bytes> {
        let parts = std::mem::take(&mut self.scenes.opening).into();
        self.go_on(Running { parts, call: None, token: None, answered: usize::MAX });
        std::mem::take(&mut self.out)
    }

    /// When there is something to say though nobody spoke.
    pub fn due(&self) -> Option<u64> {
        self.held.iter().map(|held| held.until).min()
    }

    /// What is said by then. Times are nanoseconds on a clock of the caller's.
    pub fn look(&mut self, now: u64) -> Vec<Bytes> {
        self.now = now;
        let overdue: Vec<usize> = self.held.iter().filter(|held| held.until <= now).map(|held| held.line).collect();
        overdue.into_iter().for_each(|line| self.release(line));
        std::mem::take(&mut self.out)
    }

    /// Takes one message of the client's that is no batch.
    pub fn take(&mut self, message: &Message, now: u64) -> Taken {
        self.now = now;
        match message.kind() {
            Kind::Request => {
                let Some(id) = message.id() else { return Taken::Said(Vec::new()) };
                if let Some(refusal) = self.call(message, id) {
                    return Taken::Unknown(refusal);
                }
            }
            Kind::Notification => {
                if let Some(id) = message.cancelled_id() {
                    self.waiting.retain(|_, running| running.call.as_ref() != Some(&id));
                    self.held.retain(|held| held.running.call.as_ref() != Some(&id));
                }
                if let Some((line, parts)) = self.scenes.take_notification(&message.method().unwrap_or_default()) {
                    self.go_on(Running { parts: parts.into(), call: None, token: None, answered: usize::MAX });
                    self.release(line);
                }
            }
            Kind::Response | Kind::Error => match message.id().and_then(|id| self.waiting.remove(&id)) {
                Some(running) => self.go_on(running),
                None => return Taken::NotOurs,
            },
            Kind::Batch | Kind::OtherJson | Kind::NotJson => {}
        }
        Taken::Said(std::mem::take(&mut self.out))
    }

    /// Plays the recorded call, or says why there is none.
    fn call(&mut self, request: &Message, id: Id) -> Option<Bytes> {
        let scene = match self.scenes.find(request) {
            Found::Scene(scene) => scene,
            Found::NoMethod if request.method().is_some_and(|method| method == "ping") => {
                self.out.push(reply::empty_result(&id));
                return None;
            }
            Found::NoMethod => {
                let method = quoted(request.method().unwrap_or_default().as_bytes());
                return Some(reply::error(&id, &Refusal::UnknownMethod { method }));
            }
            Found::NoCall { of_method } => return Some(reply::error(&id, &unknown_call(request, of_method))),
        };
        if self.waiting.len() >= WAITING_MAX {
            self.out.push(reply::error(&id, &Refusal::Overloaded));
            return None;
        }
        if scene.subscribes {
            self.subscriptions.insert(scene.id.clone(), id.clone());
        }
        let Scene { parts, line, answered, .. } = scene;
        // What waited for this comes in the order of the recording, before its answer and after it.
        line.into_iter().for_each(|line| self.release_before(line, answered));
        self.go_on(Running { parts: parts.into(), call: Some(id), token: request.progress_token(), answered });
        line.into_iter().for_each(|line| self.release(line));
        None
    }

    /// The client has said what stands in `line`, or need not: lets go on what waits for that.
    fn release(&mut self, line: usize) {
        self.release_before(line, usize::MAX);
    }

    /// The same, for what was answered before this line of the recording.
    fn release_before(&mut self, line: usize, answered: usize) {
        self.said.insert(line);
        let is_next = |held: &Held| held.line == line && (held.running.answered < answered || answered == usize::MAX);
        while let Some(at) = self.held.iter().position(is_next) {
            let held = self.held.remove(at);
            self.go_on(held.running);
        }
    }

    /// Says what there is to say, up to the next question.
    fn go_on(&mut self, mut running: Running) {
        while let Some(part) = running.parts.pop_front() {
            match part {
                Part::Answer(answer) => {
                    if let Some(id) = &running.call {
                        self.out.push(with_id(&answer, id));
                    }
                }
                Part::Unanswered => {
                    if let Some(id) = &running.call {
                        let what = "the recorded server did not answer it either".to_owned();
                        self.out.push(reply::error(id, &Refusal::NotInRecording { what }));
                    }
                }
                Part::EndOfSubscription { subscription, answer } => {
                    if let Some(id) = self.subscriptions.remove(&subscription) {
                        let answer = with_id(&answer, &id);
                        let named = scan::member_at(&answer, SUBSCRIPTION);
                        self.out.push(match named {
                            Some(span) => splice(&answer, span, id.to_string().as_bytes()),
                            None => answer,
                        });
                    }
                }
                Part::Notification(notification) => {
                    let said = self.readdressed(&notification, running.token.as_ref());
                    self.out.extend(said);
                }
                Part::After(line) if self.said.contains(&line) || self.held.len() >= HELD_MAX => {}
                Part::After(line) => {
                    let until = self.now.saturating_add(HOLD_FOR_NS);
                    self.held.push(Held { line, until, running });
                    return;
                }
                Part::Question(question) => {
                    let id = self.ask(&question);
                    self.waiting.insert(id, running);
                    return;
                }
            }
        }
    }

    /// A notification for whom it concerns now: progress by the caller's token, a subscription's by the
    /// id it has now. Nothing, if it concerns nobody.
    fn readdressed(&self, notification: &Message, token: Option<&Id>) -> Option<Bytes> {
        let bytes = notification.bytes();
        if let Some(old) = notification.subscription_id() {
            let new = self.subscriptions.get(&old)?;
            return Some(splice(bytes, notification.peek().subscription_id?, new.to_string().as_bytes()));
        }
        match notification.peek().progress_token {
            Some(span) if notification.method().is_some_and(|method| method == "notifications/progress") => {
                Some(splice(bytes, span, token?.to_string().as_bytes()))
            }
            _ => Some(bytes.clone()),
        }
    }

    /// Asks the client, under the recorded id unless that one is in use.
    fn ask(&mut self, question: &Message) -> Id {
        let recorded = question.id().filter(|id| !self.waiting.contains_key(id));
        let id = recorded.unwrap_or_else(|| {
            self.own_ids += 1;
            Id::Text(format!("mcp-proxy-mock-{}", self.own_ids).into())
        });
        self.out.push(with_id(question.bytes(), &id));
        id
    }
}

fn unknown_call(request: &Message, of_method: usize) -> Refusal {
    let method = request.method().unwrap_or_default();
    let calls = if of_method == 1 { "call" } else { "calls" };
    let asked = match scan::member_at(request.bytes(), ["params"]) {
        Some(params) => quoted(request.slice(params)),
        None => "no parameters".into(),
    };
    Refusal::NotInRecording { what: format!("it has {of_method} {calls} of {method}, none with {asked}") }
}

fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED)]);
    if bytes.len() > QUOTED { format!("{text}…") } else { text.into_owned() }
}

#[cfg(test)]
mod tests;
