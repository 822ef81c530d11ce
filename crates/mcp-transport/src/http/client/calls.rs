//! Requests of a client that wait for their answers, by what the server knows them under. Where an
//! equal id or progress token is in flight already, the server is given another, and what comes back
//! is put right.

use std::collections::HashMap;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use foldhash::fast::RandomState;
use mcp_engine::Asked;
use mcp_link::runtime::OpenCall;
use mcp_wire::splice::splice;
use mcp_wire::{Id, Kind, Message, Span, scan};

use super::stream::Stream;
use crate::http::exchange::Exchange;

#[derive(Default)]
pub struct Calls {
    /// By the id that the server knows.
    open: HashMap<Id, Call, RandomState>,
    /// The call that a progress token belongs to, by the token that the server knows.
    tokens: HashMap<Id, Id, RandomState>,
    fresh: u64,
}

/// A request that waits for its answer.
pub struct Call {
    pub asked: Asked,
    /// The client's own id and progress token, where others had to take their place.
    original_id: Option<Bytes>,
    original_token: Option<Bytes>,
    token: Option<Id>,
    pub exchange: Rc<Exchange>,
    pub stream: Rc<Stream>,
    pub is_initialize: bool,
    pub lists_tools: bool,
    _open: OpenCall,
}

impl Calls {
    pub fn count(&self) -> usize {
        self.open.len()
    }

    pub fn get(&self, id: &Id) -> Option<&Call> {
        self.open.get(id)
    }

    pub fn all(&self) -> impl Iterator<Item = &Call> {
        self.open.values()
    }

    /// Every call with the id that the server knows it under.
    pub fn known(&self) -> impl Iterator<Item = (&Id, &Call)> {
        self.open.iter()
    }

    /// The call in flight, if it is the only one.
    pub fn only(&self) -> Option<&Call> {
        let mut all = self.open.values();
        all.next().filter(|_| all.next().is_none())
    }

    /// The call that wants to hear of its progress under `token`.
    pub fn by_token(&self, token: &Id) -> Option<&Call> {
        self.open.get(self.tokens.get(token)?)
    }

    /// The id that the server knows a call under whose client calls it `id`.
    pub fn known_as(&self, id: &Id) -> Option<Id> {
        if self.open.contains_key(id) {
            return Some(id.clone());
        }
        let given = self.open.iter().filter(|(_, call)| call.original_id.is_some() && call.asked.id == *id);
        // The oldest of them, as where the server knows them by this id.
        given.min_by_key(|(_, call)| call.asked.sequence).map(|(known, _)| known.clone())
    }

    pub fn take(&mut self, id: &Id) -> Option<Call> {
        let call = self.open.remove(id)?;
        if let Some(token) = &call.token {
            self.tokens.remove(token);
        }
        Some(call)
    }

    pub fn take_all(&mut self) -> Vec<Call> {
        self.tokens.clear();
        self.open.drain().map(|(_, call)| call).collect()
    }

    /// Remembers who waits for the answer to `request`. What comes back is the request as the server
    /// gets it, if that is another: with another id or token, where an equal one is in flight.
    pub fn remember(
        &mut self,
        exchange: &Rc<Exchange>,
        stream: &Rc<Stream>,
        asked: Asked,
        message: &Message,
    ) -> Option<Bytes> {
        let method = message.glance().method.map(|span| message.slice(span)).unwrap_or_default();
        let (is_initialize, lists_tools) = (method == b"\"initialize\"", method == b"\"tools/list\"");
        let mut changed = None;
        // Somebody may have given it another id on its way.
        let (mut known, mut original_id) = match message.id() {
            Some(id) if id != asked.id => (id, Some(asked.id.to_string().into())),
            _ => (asked.id.clone(), None),
        };
        if self.open.contains_key(&known)
            && let Some(span) = message.glance().id
        {
            known = self.fresh_id();
            original_id = original_id.or_else(|| Some(message.bytes().slice(span.range())));
            changed = Some(splice(message.bytes(), span, known.to_string().as_bytes()));
        }
        let (mut token, mut original_token) = (None, None);
        let request = changed.as_ref().unwrap_or(message.bytes());
        if let Some((mut wanted, span)) = progress_token(request) {
            if self.tokens.contains_key(&wanted) {
                wanted = self.fresh_id();
                original_token = Some(request.slice(span.range()));
                changed = Some(splice(request, span, wanted.to_string().as_bytes()));
            }
            self.tokens.insert(wanted.clone(), known.clone());
            token = Some(wanted);
        }
        stream.opens();
        let (exchange, stream, _open) = (Rc::clone(exchange), Rc::clone(stream), exchange.state.open_call());
        let call =
            Call { asked, original_id, original_token, token, exchange, stream, is_initialize, lists_tools, _open };
        self.open.insert(known, call);
        changed
    }

    /// Remembers each request of a batch by itself.
    pub fn remember_batch(&mut self, exchange: &Rc<Exchange>, stream: &Rc<Stream>, batch: &Bytes) -> Bytes {
        replace_items(batch, |item| match (item.glance().kind, item.id()) {
            // The recording pairs the items of a batch by their ids.
            (Kind::Request, Some(id)) => {
                let changed = self.remember(exchange, stream, Asked { id, sequence: 0 }, item);
                changed.unwrap_or_else(|| item.bytes().clone())
            }
            _ => item.bytes().clone(),
        })
    }

    /// One that neither the server nor a client knows.
    fn fresh_id(&mut self) -> Id {
        loop {
            self.fresh += 1;
            let id = Id::Text(format!("mcp-proxy-{}", self.fresh).into());
            if !self.open.contains_key(&id) && !self.tokens.contains_key(&id) {
                return id;
            }
        }
    }
}

impl Call {
    /// The answer to this call, or a message about it, as its client knows it.
    pub fn with_own_id(&self, message: Message, find: impl FnOnce(&Message) -> Option<Span>) -> Message {
        put_back(message, find, self.original_id.as_deref())
    }

    pub fn with_own_token(&self, message: Message) -> Message {
        put_back(message, |message| message.peek().progress_token, self.original_token.as_deref())
    }
}

/// Mostly there is nothing to put back, and then nothing is looked for.
fn put_back(message: Message, find: impl FnOnce(&Message) -> Option<Span>, original: Option<&[u8]>) -> Message {
    let Some(original) = original else { return message };
    match find(&message) {
        Some(span) => Message::new(splice(message.bytes(), span, original)),
        None => message,
    }
}

/// A batch with other items in place of some; every byte between them stays.
pub fn replace_items(batch: &Bytes, mut replace: impl FnMut(&Message) -> Bytes) -> Bytes {
    let mut replaced = BytesMut::new();
    let mut copied = 0;
    for range in scan::batch_items(batch).map(Span::range).collect::<Vec<_>>() {
        let item = Message::new(batch.slice(range.clone()));
        let next = replace(&item);
        if next != item.bytes() {
            replaced.extend_from_slice(&batch[copied..range.start]);
            replaced.extend_from_slice(&next);
            copied = range.end;
        }
    }
    if copied == 0 {
        return batch.clone();
    }
    replaced.extend_from_slice(&batch[copied..]);
    replaced.freeze()
}

/// The token by which a request wants to hear of its progress. Looked for only where the word
/// stands at all.
fn progress_token(request: &Bytes) -> Option<(Id, Span)> {
    if !scan::mentions(request, &scan::PROGRESS_TOKEN) {
        return None;
    }
    let message = Message::new(request.clone());
    Some((message.progress_token()?, message.peek().progress_token?))
}
