//! One client's exchange with the proxy, from the first message to the last: a pipe, a session of
//! Streamable HTTP, an SSE connection. Of a gateway also its own exchange with one of its servers.

mod speaker;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mcp_wire::{Id, Kind, Message};

use crate::correlate::Pending;
use crate::envelope::{Asked, Behalf, Lane, Lent, ProxyMessage, Side, Upstream};
use crate::pipeline::Release;

pub use speaker::Speaker;

#[derive(Debug)]
pub struct Conversation {
    number: u32,
    pub(crate) part: Part,
    pub(crate) pending: Pending,
    /// By id, which no two of them share.
    lent: HashMap<Id, Lent>,
    /// Requests that somebody gave another id.
    renamed: Vec<Renamed>,
    /// Of a leg, whom the requests are made for that have no answer, by their sequences.
    clients: BTreeMap<u64, Client>,
    /// Requests that the client knows nothing of, whose answers are not for it.
    not_its_own: Vec<Id>,
    /// The client, as soon as it has said who it is.
    pub(crate) speaker: Speaker,
    /// The request by which it said so, while that has no answer.
    pub(crate) opening: Opening,
    pub(crate) noise: u64,
    pub(crate) server_spoke: bool,
    /// One of the references that count connected clients.
    counted: RefCell<Option<Arc<()>>>,
}

/// What of the way between client and server a conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// From a client to a gateway. Which server a message is for is not known yet, so nothing is decided here.
    Entrance,
    /// From a gateway to one of its servers.
    Leg(Upstream),
}

/// Whom a request is made for.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub speaker: Speaker,
    pub conversation: u32,
}

impl Client {
    pub(crate) fn behalf(&self) -> Behalf<'_> {
        Behalf { parent: 0, speaker: &self.speaker, conversation: self.conversation }
    }
}

/// A request under another id than its sender gave it.
#[derive(Clone, Debug)]
pub struct Renamed {
    pub from: Side,
    /// The id that its receiver knows.
    pub now: Id,
    /// The id that its sender knows.
    pub known: Id,
    pub sequence: u64,
}

/// How far client and server have introduced themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    Awaited,
    /// The sequence of the client's first request.
    Asked(u64),
    Over,
    /// There was no handshake: each request says who sends it, and several clients may share this.
    EachTime,
}

/// Requests of one leg that are open at once and of which it is known whom they are for. Gateways allow far fewer.
const CLIENTS_MAX: usize = 16_384;
/// Open requests under another id, or that no client sent; a person edits one at a time.
const RENAMED_MAX: usize = 1_024;

impl Conversation {
    pub(crate) fn new(number: u32) -> Self {
        Self::part_of(number, Part::All)
    }

    pub(crate) fn part_of(number: u32, part: Part) -> Self {
        Self {
            number,
            part,
            pending: Pending::default(),
            lent: HashMap::new(),
            renamed: Vec::new(),
            clients: BTreeMap::new(),
            not_its_own: Vec::new(),
            speaker: Speaker::default(),
            opening: Opening::Awaited,
            noise: 0,
            server_spoke: false,
            counted: RefCell::default(),
        }
    }

    /// Counts among those that hold `clients`, until the client leaves or this is dropped.
    pub(crate) fn counted(self, clients: &Arc<()>) -> Self {
        *self.counted.borrow_mut() = Some(Arc::clone(clients));
        self
    }

    /// The client is not connected any more.
    pub fn client_left(&self) {
        self.counted.borrow_mut().take();
    }

    /// The one conversation of a pipe.
    pub fn only() -> Self {
        Self::new(0)
    }

    /// From 1 in a run of the proxy; 0 where there is only one.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The server that it is with, if there are several.
    pub fn upstream(&self) -> Upstream {
        match self.part {
            Part::All | Part::Entrance => Upstream::ONLY,
            Part::Leg(upstream) => upstream,
        }
    }

    /// Its number, and the server that it is with.
    pub(crate) fn place(&self) -> (u32, Upstream) {
        (self.number, self.upstream())
    }

    /// Whether it is between a client and a gateway, where messages are neither judged nor held.
    pub fn is_entrance(&self) -> bool {
        self.part == Part::Entrance
    }

    /// Takes note of whom a message of a leg is for. Comes back with that for the answer to a request.
    pub(crate) fn client_of(&mut self, message: &ProxyMessage, behalf: Option<Behalf<'_>>) -> Option<Client> {
        if !matches!(self.part, Part::Leg(_)) {
            return None;
        }
        if let Some(request) = message.correlated {
            return self.clients.remove(&request).filter(|_| behalf.is_none());
        }
        if let Some(behalf) = behalf
            && message.from == Side::Client
            && message.message.glance().kind == Kind::Request
        {
            if self.clients.len() >= CLIENTS_MAX {
                self.clients.pop_first();
            }
            let client = Client { speaker: behalf.speaker.clone(), conversation: behalf.conversation };
            self.clients.insert(message.sequence, client);
        }
        None
    }

    /// Takes note of `message`. Returns the sequence of the request it answers, if it answers one.
    ///
    /// A request in an exchange of its own is not remembered here: `asked` pairs it with its answer
    /// more exactly than its id does, and [`Self::remember`] takes it over if that answer goes missing.
    pub(crate) fn correlate(
        &mut self,
        from: Side,
        message: &Message,
        sequence: u64,
        asked: Option<&Asked>,
    ) -> Option<u64> {
        match asked {
            Some(asked) if asked.sequence == sequence => None,
            Some(asked) if message.glance().kind.is_response() && message.id().as_ref() == Some(&asked.id) => {
                Some(asked.sequence)
            }
            Some(asked) if message.glance().kind == Kind::Batch => {
                let correlated = self.pending.correlate(from, message, sequence);
                let is_answered = self.pending.note_asked_in_batch(message, asked);
                if is_answered { Some(asked.sequence) } else { correlated }
            }
            // A server that could not read the id of a request has none to repeat.
            Some(asked) if message.is_error_without_id() => Some(asked.sequence),
            _ => self.pending.correlate(from, message, sequence),
        }
    }

    /// The answer to `asked` did not come in its exchange; it may come in another.
    pub fn remember(&mut self, asked: Asked) {
        self.pending.insert(Side::Client, asked.id, asked.sequence);
    }

    /// The client gave up the answer to `asked`, which may still come.
    pub fn remember_cancelled(&mut self, asked: Asked) {
        self.pending.insert_cancelled(Side::Client, asked.id, asked.sequence);
    }

    /// The client's request under `id` was answered by something that does not name it.
    pub fn forget(&mut self, id: &Id) {
        self.pending.take(Side::Client, id);
    }

    /// Takes in a call that waits in an exchange of its own, so that it is answered with the others.
    pub fn borrow_call(&mut self, lent: Lent) {
        self.remember(lent.asked.clone());
        self.lent.insert(lent.asked.id.clone(), lent);
    }

    /// Gives back the calls that were taken in, answered or not.
    pub fn give_back_calls(&mut self) {
        for (id, _) in self.lent.drain() {
            self.pending.take(Side::Client, &id);
        }
    }

    /// How an answer of ours to `id` reaches the client.
    pub(crate) fn lane_of(&self, id: &Id) -> Lane<'_> {
        let lent = self.lent.get(id);
        lent.map_or(Lane::PIPE, |lent| Lane { exchange: lent.exchange, event_id: &lent.event_id, ..Lane::PIPE })
    }

    /// Takes note of what became of a batch that was parked. The ids of one that went nowhere are free again.
    pub fn settle_items(&mut self, release: &Release) {
        if release.is_discarded {
            return;
        }
        for id in &release.items {
            match release.back {
                Some(_) => drop(self.pending.take_very(release.from, id, release.sequence)),
                None => self.pending.cancel(release.from, id),
            }
        }
    }

    /// Takes note of what became of a message that was parked.
    pub fn settle(&mut self, release: &Release) {
        self.settle_items(release);
        let (from, Some(id), false) = (release.from, &release.request, release.is_discarded) else { return };
        if release.back.is_some() {
            self.pending.take_very(from, id, release.sequence);
            return;
        }
        let left = release.onward.as_ref().map(|outgoing| Message::new(outgoing.frame().bytes.clone()));
        match left.filter(|left| left.glance().kind == Kind::Request).and_then(|left| left.id()) {
            Some(now) if now == *id => {}
            Some(now) => {
                if let Some(mark) = self.pending.take_very(from, id, release.sequence) {
                    self.pending.insert(from, now.clone(), mark.sequence);
                }
                self.rename(Renamed { from, now, known: id.clone(), sequence: release.sequence });
            }
            // Nothing that could be answered went on.
            None => self.pending.cancel(from, id),
        }
    }

    /// From now on an answer to this request is given back under the id that its sender knows.
    pub fn rename(&mut self, renamed: Renamed) {
        if self.renamed.len() >= RENAMED_MAX {
            self.renamed.remove(0);
        }
        self.renamed.push(renamed);
    }

    /// The id under which the sender of the request `sequence` waits for its answer, which is to be
    /// composed now.
    pub(crate) fn own_id(&mut self, id: Id, sequence: u64) -> Id {
        let at = self.renamed.iter().position(|renamed| renamed.sequence == sequence);
        at.map_or(id, |at| self.renamed.swap_remove(at).known)
    }

    /// The request that a message of `from` takes back, if it has another id by now.
    pub(crate) fn renamed_request(&mut self, from: Side, cancelled: &Id) -> Option<Id> {
        let renamed = self.renamed.iter().find(|renamed| renamed.from == from && renamed.known == *cancelled)?;
        let now = renamed.now.clone();
        self.pending.cancel(from, &now);
        Some(now)
    }

    /// Whether an answer may need its id put right, or be kept from the client.
    #[inline]
    pub fn is_particular(&self) -> bool {
        !self.renamed.is_empty() || !self.not_its_own.is_empty()
    }

    /// The answer to `id` is not for the client.
    pub(crate) fn keep_answer_to(&mut self, id: Id) {
        if self.not_its_own.len() >= RENAMED_MAX {
            self.not_its_own.remove(0);
        }
        self.not_its_own.push(id);
    }

    /// Nothing was sent that could be answered under `id`.
    pub(crate) fn forget_answer_to(&mut self, id: &Id) {
        self.not_its_own.retain(|own| own != id);
    }

    /// Whether `message` is an answer that is not for the client.
    pub(crate) fn keeps(&mut self, message: &ProxyMessage) -> bool {
        if self.not_its_own.is_empty() || message.from == Side::Client || !message.message.glance().kind.is_response() {
            return false;
        }
        let Some(id) = message.message.id() else { return false };
        let found = self.not_its_own.iter().position(|own| *own == id);
        found.is_some_and(|at| {
            self.not_its_own.swap_remove(at);
            true
        })
    }

    /// Whether its client has yet to say who it is.
    pub fn is_new(&self) -> bool {
        self.opening == Opening::Awaited
    }

    /// The id that an answer has, and the one that whoever waits for it knows, if they differ.
    pub(crate) fn known_id(&mut self, answer: &ProxyMessage) -> Option<(Id, Id)> {
        let request = answer.correlated.filter(|_| answer.message.glance().kind.is_response())?;
        let at = self.renamed.iter().position(|renamed| renamed.sequence == request)?;
        let Renamed { now, known, .. } = self.renamed.swap_remove(at);
        Some((now, known))
    }

    /// Whether a message may say who speaks.
    #[inline]
    pub(crate) fn listens_for(&self, message: &ProxyMessage) -> bool {
        match self.opening {
            Opening::Over | Opening::EachTime => false,
            Opening::Awaited => message.from == Side::Client && message.message.glance().kind == Kind::Request,
            Opening::Asked(sequence) => message.correlated == Some(sequence),
        }
    }

    /// Whether its client can be asked something by a request.
    pub(crate) fn shows_forms(&self) -> bool {
        self.opening == Opening::Over && self.speaker.shows_forms
    }

    pub fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    /// Calls `from` still waits on.
    pub fn open_calls(&self, from: Side) -> usize {
        self.pending.count(from)
    }

    pub fn awaits(&self, from: Side, id: &Id) -> bool {
        self.pending.awaits(from, id)
    }

    /// Lines of the server's output that were kept from the client.
    pub fn noise(&self) -> u64 {
        self.noise
    }

    /// Whether any message came from the server.
    pub fn server_spoke(&self) -> bool {
        self.server_spoke
    }
}
