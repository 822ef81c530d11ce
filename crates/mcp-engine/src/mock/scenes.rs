//! The recording by what sets off what: for each call of the client's, and for each of its
//! notifications, what the server said because of it, in order.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;
use mcp_wire::{Id, Kind, Message, scan};

use crate::envelope::Side;
use crate::transcript::{Line, META, Transcript, params_key};

/// Calls that set up the conversation rather than ask for something. They are known by their method;
/// who asks, and for which level or revision, may differ.
const BY_METHOD: [&str; 4] = ["initialize", "server/discover", "ping", "logging/setLevel"];
/// Where a repeated call has what a person answered.
const ANSWERS: [&str; 2] = ["params", "inputResponses"];
const LISTEN: &str = "subscriptions/listen";

#[derive(Default)]
pub(super) struct Scenes {
    /// What the server said before it was spoken to.
    pub opening: Vec<Part>,
    calls: Vec<Scene>,
    /// By method and parameters; the same without what a person answered; by method alone.
    exact: HashMap<(String, Vec<u8>), Turns>,
    without_answers: HashMap<(String, Vec<u8>), Turns>,
    by_method: HashMap<String, Turns>,
    notifications: HashMap<String, VecDeque<(usize, Vec<Part>)>>,
}

/// A call and what it set off.
#[derive(Clone)]
pub(super) struct Scene {
    /// Its id in the recording, and its line, if it is of the mocked one.
    pub id: Id,
    pub line: Option<usize>,
    pub subscribes: bool,
    /// The line of its answer in the recording: those that come together come in that order.
    pub answered: usize,
    pub parts: Vec<Part>,
}

#[derive(Clone)]
pub(super) enum Part {
    Notification(Message),
    Question(Message),
    /// What follows came only after the client had said what stands in this line, too.
    After(usize),
    Answer(Bytes),
    /// There is no answer, though the client waited for one to the end.
    Unanswered,
    /// The server ends a subscription by answering the call that opened it.
    EndOfSubscription {
        subscription: Id,
        answer: Bytes,
    },
}

pub(super) enum Found {
    Scene(Scene),
    NoMethod,
    NoCall { of_method: usize },
}

/// Equal calls in the order of the recording.
#[derive(Default)]
struct Turns {
    calls: Vec<usize>,
    next: usize,
}

impl Turns {
    /// The call whose turn it is, and whether it was before: the last is repeated.
    fn take(&mut self) -> Option<(usize, bool)> {
        let at = self.next.min(self.calls.len().checked_sub(1)?);
        let is_repeated = self.next > at;
        self.next = at + 1;
        Some((self.calls[at], is_repeated))
    }
}

impl Scenes {
    pub(super) fn of(transcript: &Transcript) -> Self {
        let mut scenes = Self::default();
        let mut said = Said::of(transcript);
        scenes.opening = said.opening;
        for (at, line) in transcript.lines().iter().enumerate() {
            if !is_said_by_client(line) {
                continue;
            }
            let parts = std::mem::take(&mut said.because_of[at]);
            match line.message.kind() {
                Kind::Request => {
                    let last_said = line.pair.and_then(|answer| said.last_before[answer]);
                    scenes.add(line, at, transcript, parts, last_said);
                }
                _ => {
                    let parts = parts.into_iter().map(|(_, part)| part).collect();
                    scenes.notifications.entry(line.method().into_owned()).or_default().push_back((at, parts));
                }
            }
        }
        scenes
    }

    /// Adds what `transcript` has and this does not.
    pub(super) fn extend(&mut self, transcript: &Transcript) {
        let mut other = Self::of(transcript);
        let unknown: Vec<_> = other.exact.drain().filter(|(key, _)| !self.exact.contains_key(key)).collect();
        for ((method, params), turns) in unknown {
            for call in turns.calls {
                let at = self.calls.len();
                self.calls.push(other.calls[call].alone());
                self.exact.entry((method.clone(), params.clone())).or_default().calls.push(at);
                self.by_method.entry(method.clone()).or_default().calls.push(at);
            }
        }
    }

    pub(super) fn learn(&mut self, request: &Message, answer: &Message) {
        let parts = vec![Part::Answer(answer.bytes().clone())];
        let (method, id) = (request.method().unwrap_or_default(), request.id().unwrap_or(Id::Integer(0)));
        self.enter(request, &method, Scene { id, line: None, subscribes: false, answered: usize::MAX, parts });
    }

    fn add(
        &mut self,
        line: &Line,
        at: usize,
        transcript: &Transcript,
        said: Vec<(usize, Part)>,
        last_said: Option<usize>,
    ) {
        let Some(id) = line.message.id() else { return };
        let method = line.method();
        let subscribes = method == LISTEN;
        let answered_at = line.pair.filter(|_| !subscribes);
        let mut parts: Vec<(usize, Part)> = said;
        match (answered_at, transcript.answer(at)) {
            (Some(answered_at), Some(answer)) => {
                // Nobody goes on before a session is open, whatever the recorded client did.
                let opens = matches!(&*method, "initialize" | "server/discover");
                if let Some(last) = last_said.filter(|&last| last > at && !opens) {
                    parts.push((answered_at, Part::After(last)));
                }
                parts.push((answered_at, Part::Answer(answer.message.bytes().clone())));
            }
            _ if subscribes || line.cancelled => {}
            _ => parts.push((usize::MAX, Part::Unanswered)),
        }
        parts.sort_by_key(|(at, _)| *at);
        let parts = parts.into_iter().map(|(_, part)| part).collect();
        let answered = answered_at.unwrap_or(usize::MAX);
        self.enter(&line.message, &method, Scene { id, line: Some(at), subscribes, answered, parts });
    }

    fn enter(&mut self, request: &Message, method: &str, scene: Scene) {
        let at = self.calls.len();
        self.calls.push(scene);
        let key = |without: &[&str]| (method.to_owned(), params_key(request, without));
        self.exact.entry(key(&[META])).or_default().calls.push(at);
        if scan::member_at(request.bytes(), ANSWERS).is_some() {
            self.without_answers.entry(key(&[META, ANSWERS[1]])).or_default().calls.push(at);
        }
        self.by_method.entry(method.to_owned()).or_default().calls.push(at);
    }

    /// The call that is meant: an equal one in its turn, and the last of them over and over.
    pub(super) fn find(&mut self, request: &Message) -> Found {
        let method = request.method().unwrap_or_default().into_owned();
        let key = |without: &[&str]| (method.clone(), params_key(request, without));
        let taken = self.exact.get_mut(&key(&[META])).and_then(Turns::take);
        let taken = taken.or_else(|| self.without_answers.get_mut(&key(&[META, ANSWERS[1]]))?.take());
        let taken = taken.or_else(|| {
            let is_known_by_method = BY_METHOD.contains(&method.as_str());
            self.by_method.get_mut(&method).filter(|_| is_known_by_method)?.take()
        });
        match (taken, self.by_method.get(&method)) {
            (Some((call, false)), _) => Found::Scene(self.calls[call].clone()),
            (Some((call, true)), _) => Found::Scene(self.calls[call].again()),
            (None, Some(turns)) => Found::NoCall { of_method: turns.calls.len() },
            (None, None) => Found::NoMethod,
        }
    }

    /// The line of the next notification of this method, and what followed it. Nothing, once there were
    /// as many.
    pub(super) fn take_notification(&mut self, method: &str) -> Option<(usize, Vec<Part>)> {
        self.notifications.get_mut(method)?.pop_front()
    }
}

impl Scene {
    /// The call once more than in the recording: what was said after its answer happened once.
    fn again(&self) -> Self {
        let is_answer = |part: &Part| matches!(part, Part::Answer(_) | Part::Unanswered);
        let end = self.parts.iter().position(is_answer).map_or(self.parts.len(), |at| at + 1);
        Self { parts: self.parts[..end].to_vec(), ..self.clone() }.alone()
    }

    /// The call apart from all others.
    fn alone(&self) -> Self {
        let parts = self.parts.iter().filter(|part| !matches!(part, Part::After(_))).cloned().collect();
        Self { parts, line: None, ..self.clone() }
    }
}

fn is_said_by_client(line: &Line) -> bool {
    line.from == Side::Client && !line.is_answer()
}

/// What the server said by itself, by the client's line that led to it, each with its own line.
struct Said {
    opening: Vec<Part>,
    because_of: Vec<Vec<(usize, Part)>>,
    /// For each line, the last that the client had said before it.
    last_before: Vec<Option<usize>>,
}

impl Said {
    fn of(transcript: &Transcript) -> Self {
        let count = transcript.lines().len();
        let (because_of, last_before) = (vec![Vec::new(); count], Vec::with_capacity(count));
        let mut said = Self { opening: Vec::new(), because_of, last_before };
        let mut last = None;
        for (at, line) in transcript.lines().iter().enumerate() {
            said.last_before.push(last);
            if is_said_by_client(line) {
                last = Some(at);
            }
            let (cause, part) = match line.message.kind() {
                Kind::Notification if line.from == Side::Server => {
                    (line.cause, Part::Notification(line.message.clone()))
                }
                Kind::Request if line.from == Side::Server => (line.cause, Part::Question(line.message.clone())),
                _ => match end_of_subscription(transcript, line) {
                    // A subscription ends because of something else than itself.
                    Some(part) => (last, part),
                    None => continue,
                },
            };
            match cause {
                Some(cause) => said.because_of[cause].push((at, part)),
                None => said.opening.push(part),
            }
        }
        said
    }
}

fn end_of_subscription(transcript: &Transcript, line: &Line) -> Option<Part> {
    let request = transcript.line(line.pair.filter(|_| line.is_answer() && line.from == Side::Server)?);
    let answer = line.message.bytes().clone();
    (request.method() == LISTEN).then_some(Part::EndOfSubscription { subscription: request.message.id()?, answer })
}
