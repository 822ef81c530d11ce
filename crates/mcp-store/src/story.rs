//! What only earlier messages can tell about a message: the request that an answer meets, how long it
//! took, the operation that both belong to, who speaks and in which revision. A [`Story`] is told the
//! messages of a session in their order; what it holds of them is bounded.

mod answer;
mod callers;
mod open;
mod subject;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};

use mcp_wire::{Ambiguity, Era, Kind, Message, scan};

pub use answer::{Fault, Status};
use callers::Callers;
pub use mcp_wire::MessageKind;
use open::{Key, Open};

use crate::exchange::{Headers, OpenExchanges, SessionEntry};
use crate::recorded::{Direction, Recorded, SessionHeader};

/// Conversations of which client and revision are remembered; past this those that began first are
/// forgotten. As many as a listener has clients at once, and more.
const CONVERSATIONS_MAX: usize = 16_384;
/// Operations between two rounds. Each round asks a person, so there are few.
const WAITING_MAX: usize = 1_024;
/// A name that a client gives itself, or a revision, is kept up to here.
const WORD_BYTES_MAX: usize = 256;
/// What the ids of requests begin with that a live replay sent.
const REPLAY_ID: &[u8] = b"\"mcp-proxy-replay-";

/// Follows a session message by message.
#[derive(Debug, Default)]
pub struct Story {
    server: Option<Arc<str>>,
    open: Open,
    waiting: VecDeque<Waiting>,
    conversations: BTreeMap<u32, Speakers>,
    callers: Callers,
    exchanges: OpenExchanges<Heads>,
    hasher: RandomState,
    is_replay: bool,
}

/// A message with everything that is known of it: the one description that lines, JSON, exports and the control API
/// print.
#[derive(Clone, Debug)]
pub struct Told {
    pub recorded: Recorded,
    pub message: Message,
    pub kind: MessageKind,
    /// Of a request, what it asks; of an answer, the request that it answers.
    pub asked: Option<Arc<Asked>>,
    /// The sequence of the request that this answers.
    pub answers: Option<u64>,
    /// What the user calls the server, or its command or address; of a gateway, the server's id.
    pub server: Option<Arc<str>>,
    /// What the client of this conversation calls itself; between a gateway and one of its servers, the client
    /// that it is for.
    pub client: Option<Arc<str>>,
    /// The revision that is spoken, as a date, once somebody said so.
    pub revision: Option<Arc<str>>,
    /// The HTTP headers that came with it.
    pub headers: Option<Arc<Headers>>,
    /// A replay sent it.
    pub is_replay: bool,
    status: OnceLock<Option<Status>>,
}

/// A request, as its answer needs it.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    pub sequence: u64,
    pub time_ns: u64,
    pub method: Box<str>,
    /// `params.name`: the tool or prompt.
    pub name: Option<Box<str>>,
    /// `params.uri`: the resource.
    pub uri: Option<Box<str>>,
    /// The sequence of the first request of the operation, and when it came (0 if nobody says). A retry
    /// after `input_required` has another id and is the same operation.
    pub operation: u64,
    pub operation_began_ns: u64,
    /// From 1; each retry is a further round.
    pub round: u32,
    /// The class of operation, if rules judged it.
    pub op: Option<&'static str>,
    /// A gateway asked its server of its own accord.
    pub is_own: bool,
}

/// An operation whose server wants something before it goes on.
#[derive(Debug)]
struct Waiting {
    key: u64,
    operation: u64,
    began_ns: u64,
    round: u32,
}

#[derive(Clone, Debug, Default)]
struct Speakers {
    client: Option<Arc<str>>,
    revision: Option<Arc<str>>,
}

#[derive(Debug, Default)]
struct Heads {
    request: Option<Arc<Headers>>,
    answer: Option<Arc<Headers>>,
}

impl Story {
    /// The story of a session; its header says who the server is.
    pub fn of(header: &SessionHeader) -> Self {
        let server = header.name.as_ref().or(header.server_command.as_ref()).or(header.server_url.as_ref());
        let is_replay = header.notes.contains_key(SessionHeader::REPLAYS);
        Self { server: server.map(|server| server.as_str().into()), is_replay, ..Self::default() }
    }

    /// A story that knows who speaks, and nothing else of what was told.
    pub(crate) fn afresh(&self) -> Self {
        let Self { server, conversations, is_replay, .. } = self;
        let (server, conversations) = (server.clone(), conversations.clone());
        Self { server, conversations, is_replay: *is_replay, ..Self::default() }
    }

    /// Takes the next entry of the session. What HTTP says is remembered for the messages it came with.
    pub fn hear(&mut self, entry: SessionEntry) -> Option<Told> {
        match entry {
            SessionEntry::Message(message) => return Some(self.tell(message)),
            SessionEntry::Request(mark, head) => {
                self.exchanges.remove(mark.exchange);
                let open = self.exchanges.keep(mark.exchange, &head.headers);
                open.request = Some(Arc::new(head.headers));
            }
            SessionEntry::Answer(mark, head) => {
                let open = self.exchanges.keep(mark.exchange, &head.headers);
                open.answer = Some(Arc::new(head.headers));
            }
            SessionEntry::End(mark, _) => drop(self.exchanges.remove(mark.exchange)),
            SessionEntry::Amendment(_) => {}
        }
        while self.exchanges.pop_excess().is_some() {}
        None
    }

    /// Takes the next message of the session.
    pub fn tell(&mut self, recorded: Recorded) -> Told {
        let message = Message::new(recorded.raw.clone());
        let kind = kind(&recorded, &message);
        let (asked, answers) = match kind {
            MessageKind::Request => (Some(self.ask(&recorded, &message)), None),
            MessageKind::Response | MessageKind::Error => {
                let asked = self.answer(&recorded, &message);
                let answers = asked.as_ref().map(|asked| asked.sequence);
                (asked, answers)
            }
            MessageKind::Batch => {
                let asked = self.batch(&recorded, &message);
                let answers = asked.as_ref().map(|asked| asked.sequence);
                (asked, answers)
            }
            _ => (None, None),
        };
        let own_revision = message.protocol_version().map(|revision| word(&revision));
        let speakers = self.conversations.get(&recorded.conversation);
        let caller = self.callers.hear(&recorded, kind, answers);
        let callers = caller.and_then(|caller| self.conversations.get(&caller));
        let client = callers.or(speakers).and_then(|speakers| speakers.client.clone());
        let revision = own_revision.or_else(|| speakers.and_then(|speakers| speakers.revision.clone()));
        let headers = recorded.exchange.and_then(|exchange| self.exchanges.get(exchange)).and_then(|heads| {
            match recorded.direction {
                Direction::ClientToServer => heads.request.clone(),
                Direction::ServerToClient => heads.answer.clone(),
            }
        });
        let server = recorded.upstream.clone().or_else(|| self.server.clone());
        let is_replay = recorded.direction == Direction::ClientToServer
            && (self.is_replay || (recorded.from_proxy && kind == MessageKind::Request && has_replay_id(&message)));
        let status = OnceLock::new();
        Told { recorded, message, kind, asked, answers, server, client, revision, headers, is_replay, status }
    }

    fn ask(&mut self, recorded: &Recorded, message: &Message) -> Arc<Asked> {
        self.listen(recorded, message);
        let earlier = self.earlier_round(recorded, message);
        let asked = Arc::new(Asked {
            sequence: recorded.sequence,
            time_ns: recorded.time_ns,
            method: message.method().unwrap_or_default().into(),
            name: message.name().map(Into::into),
            uri: message.uri().map(Into::into),
            operation: earlier.as_ref().map_or(recorded.sequence, |earlier| earlier.operation),
            operation_began_ns: earlier.as_ref().map_or(recorded.time_ns, |earlier| earlier.began_ns),
            round: earlier.map_or(1, |earlier| earlier.round.saturating_add(1)),
            op: recorded.verdict.as_deref().and_then(|verdict| verdict.operation),
            is_own: is_own(recorded, message),
        });
        if let Some(id) = message.id() {
            let key = Key { conversation: recorded.conversation, from: recorded.direction, id };
            self.open.insert(key, &recorded.id, Arc::clone(&asked));
        }
        asked
    }

    fn answer(&mut self, recorded: &Recorded, message: &Message) -> Option<Arc<Asked>> {
        let from = recorded.direction.other();
        let key = message.id().map(|id| Key { conversation: recorded.conversation, from, id });
        let asked = self.open.take(key, recorded.correlated_id.as_deref())?;
        if &*asked.method == "initialize"
            && let Some(revision) = answer::text_at(message, &["result", "protocolVersion"])
        {
            self.speakers(recorded.conversation).revision = Some(word(&revision));
        }
        if let Some(link) = answer::asks_for_more(message) {
            let key = self.round_key(recorded.conversation, &asked.method, asked.subject(), &link);
            if self.waiting.len() >= WAITING_MAX {
                self.waiting.pop_front();
            }
            let Asked { operation, operation_began_ns: began_ns, round, .. } = *asked;
            self.waiting.push_back(Waiting { key, operation, began_ns, round });
        }
        Some(asked)
    }

    /// Each item counts by itself; the batch is told as the answer to the first request it answers.
    fn batch(&mut self, recorded: &Recorded, batch: &Message) -> Option<Arc<Asked>> {
        let mut first = None;
        for item in scan::batch_items(batch.bytes()) {
            let item = Message::new(batch.bytes().slice(item.range()));
            match item.kind() {
                Kind::Request => drop(self.ask(recorded, &item)),
                Kind::Response | Kind::Error => {
                    let asked = self.answer(recorded, &item);
                    first = first.or(asked);
                }
                _ => {}
            }
        }
        first
    }

    /// Learns who speaks, where a request says so.
    fn listen(&mut self, recorded: &Recorded, message: &Message) {
        if recorded.direction != Direction::ClientToServer {
            return;
        }
        let is_initialize = message.method().is_some_and(|method| method == "initialize");
        let says_revision = message.peek().protocol_version.is_some();
        if !is_initialize && !says_revision {
            return;
        }
        let (client, revision) = match is_initialize {
            true => (
                answer::text_at(message, &["params", "clientInfo", "name"]),
                answer::text_at(message, &["params", "protocolVersion"]),
            ),
            false => (
                answer::text_at(message, &["params", "_meta", "io.modelcontextprotocol/clientInfo", "name"]),
                message.protocol_version(),
            ),
        };
        let speakers = self.speakers(recorded.conversation);
        // Mostly it says what it said before, and nothing needs to be kept anew.
        for (known, said) in [(&mut speakers.client, client), (&mut speakers.revision, revision)] {
            if let Some(said) = said.filter(|said| known.as_deref() != Some(said)) {
                *known = Some(word(&said));
            }
        }
    }

    fn speakers(&mut self, conversation: u32) -> &mut Speakers {
        if self.conversations.len() >= CONVERSATIONS_MAX && !self.conversations.contains_key(&conversation) {
            self.conversations.pop_first();
        }
        self.conversations.entry(conversation).or_default()
    }

    /// The operation that a request takes up again.
    fn earlier_round(&mut self, recorded: &Recorded, message: &Message) -> Option<Waiting> {
        if self.waiting.is_empty() {
            return None;
        }
        let link = answer::brings_more(message)?;
        let (method, name, uri) = (message.method()?, message.name(), message.uri());
        let key = self.round_key(recorded.conversation, &method, name.as_deref().or(uri.as_deref()), &link);
        let at = self.waiting.iter().position(|waiting| waiting.key == key)?;
        self.waiting.remove(at)
    }

    fn round_key(&self, conversation: u32, method: &str, subject: Option<&str>, link: &answer::RoundLink) -> u64 {
        self.hasher.hash_one((conversation, method, subject, link))
    }
}

impl Told {
    /// A message whose story somebody else knows, who says what it answers.
    pub fn retold(recorded: Recorded, asked: Option<Asked>) -> Self {
        let message = Message::new(recorded.raw.clone());
        let kind = kind(&recorded, &message);
        let answers = asked.as_ref().filter(|_| kind != MessageKind::Request).map(|asked| asked.sequence);
        Self {
            recorded,
            message,
            kind,
            asked: asked.map(Arc::new),
            answers,
            server: None,
            client: None,
            revision: None,
            headers: None,
            is_replay: false,
            status: OnceLock::new(),
        }
    }

    /// Of an answer, the method of the request that it answers.
    pub fn method(&self) -> Option<Cow<'_, str>> {
        match &self.asked {
            Some(asked) => Some(Cow::Borrowed(&asked.method)),
            None if self.is_message() => self.message.method(),
            None => None,
        }
    }

    /// The tool, prompt or resource that the message is about, or the request that it answers.
    pub fn subject(&self) -> Option<Cow<'_, str>> {
        match &self.asked {
            Some(asked) => asked.subject().map(Cow::Borrowed),
            None if self.is_message() => self.message.subject(),
            None => None,
        }
    }

    /// Of a call of a proxy tool, what it does: `call files__read`. Safe to show.
    pub fn proxied(&self) -> Option<String> {
        mcp_wire::proxied::label(&self.message).filter(|_| self.is_message())
    }

    /// The JSON-RPC id as it was spelled.
    pub fn id(&self) -> Option<&[u8]> {
        let span = self.message.peek().id.filter(|_| self.is_message())?;
        Some(self.message.slice(span))
    }

    /// How it went, of an answer.
    pub fn status(&self) -> Option<&Status> {
        self.status.get_or_init(|| Status::of(self.kind, &self.message)).as_ref()
    }

    /// The text of the JSON-RPC error, of an answer that is one.
    pub fn error(&self) -> Option<&str> {
        match self.status()? {
            Status::Err(Fault::Error { message, .. }) => message.as_deref(),
            _ => None,
        }
    }

    /// Why parsers may read it in two ways, if they may.
    pub fn opaque(&self) -> Option<Ambiguity> {
        self.message.peek().ambiguity.filter(|_| self.is_message())
    }

    /// Which round of its operation this belongs to, from 1.
    pub fn round(&self) -> Option<u32> {
        self.asked.as_ref().map(|asked| asked.round)
    }

    /// Whether readers of a list take its bytes for the JSON of a message.
    pub fn is_json(&self) -> bool {
        !self.recorded.noise && self.kind != MessageKind::NotJson
    }

    /// From the request to this answer.
    pub fn duration_ns(&self) -> Option<u64> {
        self.answers?;
        Some(self.recorded.time_ns.saturating_sub(self.asked.as_ref()?.time_ns))
    }

    /// The sequence of the first request of the operation that this belongs to.
    pub fn operation(&self) -> Option<u64> {
        self.asked.as_ref().map(|asked| asked.operation)
    }

    /// The class of operation that the request asks for, if rules judged it.
    pub fn op(&self) -> Option<&'static str> {
        let own = self.recorded.verdict.as_deref().and_then(|verdict| verdict.operation);
        own.or_else(|| self.asked.as_ref()?.op)
    }

    /// Who began the exchange: `client`, `server`, or `proxy` for health checks and discovery.
    pub fn origin(&self) -> &'static str {
        let is_own = match &self.asked {
            Some(asked) => asked.is_own,
            None => is_introduced(&self.recorded, &self.message),
        };
        let is_answer = matches!(self.kind, MessageKind::Response | MessageKind::Error);
        let began = if is_answer { self.recorded.direction.other() } else { self.recorded.direction };
        match (is_own, began) {
            (true, _) => "proxy",
            (false, Direction::ClientToServer) => "client",
            (false, Direction::ServerToClient) => "server",
        }
    }

    /// Whether it belongs to a health check or to discovery.
    pub fn is_own(&self) -> bool {
        self.origin() == "proxy"
    }

    pub fn era(&self) -> Option<Era> {
        self.revision.as_ref().map(|revision| Era::of_header(Some(revision.as_bytes())))
    }

    /// Neither noise nor an event.
    pub fn is_message(&self) -> bool {
        !matches!(self.kind, MessageKind::Noise | MessageKind::Event)
    }
}

impl Asked {
    /// The tool, prompt or resource it is about.
    pub fn subject(&self) -> Option<&str> {
        self.name.as_deref().or(self.uri.as_deref())
    }
}

/// Whether a gateway asks this of its server with no client's message behind it. What it asks for a client's
/// subscription or log level is the client's doing, and so is a live replay.
fn is_own(recorded: &Recorded, message: &Message) -> bool {
    const FOR_CLIENTS: [&str; 4] =
        ["resources/subscribe", "resources/unsubscribe", "subscriptions/listen", "logging/setLevel"];
    is_unasked(recorded)
        && !has_replay_id(message)
        && message.method().is_some_and(|method| !FOR_CLIENTS.contains(&&*method))
}

/// Whether a gateway tells its server that the handshake is done.
fn is_introduced(recorded: &Recorded, message: &Message) -> bool {
    is_unasked(recorded) && message.method().is_some_and(|method| method == "notifications/initialized")
}

/// Whether it goes from a gateway to a server and was made of no client's message.
fn is_unasked(recorded: &Recorded) -> bool {
    recorded.upstream.is_some() && recorded.direction == Direction::ClientToServer && recorded.parent.is_none()
}

fn has_replay_id(message: &Message) -> bool {
    message.peek().id.is_some_and(|id| message.slice(id).starts_with(REPLAY_ID))
}

fn kind(recorded: &Recorded, message: &Message) -> MessageKind {
    match (&recorded.event, recorded.noise) {
        (Some(_), _) => MessageKind::Event,
        (None, true) => MessageKind::Noise,
        (None, false) => message.kind().into(),
    }
}

/// A short text from a peer, cut if it is none.
fn word(text: &str) -> Arc<str> {
    text[..text.floor_char_boundary(WORD_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests;
