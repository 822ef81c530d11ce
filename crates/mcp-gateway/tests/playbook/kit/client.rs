//! A client in memory.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use mcp_engine::{Conversation, Lane, Pipeline, Side};
use mcp_link::{Backend, ClientSide, Exchanges, Link, Passed, Waiting};
use mcp_store::Transport;
use mcp_wire::revision::Era;
use mcp_wire::{Cut, Id, Message};
use serde_json::{Value, json};

use super::{Inbox, Playbook, line, message};

pub(crate) struct Client {
    pub link: Rc<Link>,
    part: Rc<Part>,
    /// What each request has to say of a client that shook no hands.
    meta: Option<Value>,
    last: Cell<u64>,
}

struct Part {
    /// Messages, and the request that each concerns where it came on a stream of its own.
    inbox: Inbox<Option<Id>>,
    /// The revisions of a client over HTTP.
    exchanges: Option<Era>,
    unread: Cell<usize>,
    paused: RefCell<Vec<(Id, Option<Duration>)>>,
}

impl Client {
    pub(super) fn join(play: &Playbook, exchanges: Option<Era>, meta: Option<Value>) -> Self {
        let (inbox, paused) = (Inbox::new("a client", &play.tasks), RefCell::default());
        let part = Rc::new(Part { inbox, exchanges, unread: Cell::new(0), paused });
        let conversation = play.runtime.look(Pipeline::begin_entrance);
        let link = Link::new(&play.runtime, conversation, Rc::<Part>::clone(&part));
        link.connect(play.gateway.welcome(&link, None));
        Self { link, part, meta, last: Cell::new(1_000) }
    }

    pub(super) fn modern(play: &Playbook, can: Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": can,
        });
        Self::join(play, None, Some(meta))
    }

    pub(super) async fn open(play: &Playbook, has_streams: bool, can: Value) -> Self {
        let client = Self::join(play, has_streams.then_some(Era::Legacy), None);
        client.shakes_hands("2025-11-25", can).await;
        client
    }

    pub(crate) async fn shakes_hands(&self, revision: &str, can: Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": revision, "capabilities": can, "clientInfo": info });
        self.asks(json!("hello"), "initialize", params);
        let answer = self.gets_answer("hello").await;
        self.tells("notifications/initialized", Value::Null);
        answer
    }

    /// Sends bytes as they are.
    pub(crate) fn sends(&self, raw: impl AsRef<[u8]>) {
        self.link.from_client(Lane::PIPE, bytes::Bytes::copy_from_slice(raw.as_ref()));
    }

    pub(crate) fn asks(&self, id: impl Into<Value>, method: &str, mut params: Value) {
        if let Some(meta) = &self.meta {
            let own = params["_meta"].as_object().cloned().unwrap_or_default();
            params["_meta"] = meta.clone();
            own.into_iter().for_each(|(key, value)| params["_meta"][key] = value);
        }
        self.sends(line(&message(Some(id.into()), method, params)));
    }

    pub(crate) fn calls(&self, id: impl Into<Value>, tool: &str) {
        self.asks(id, "tools/call", json!({ "name": tool, "arguments": {} }));
    }

    /// Asks, and gets the answer.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        self.last.set(self.last.get() + 1);
        self.asks(self.last.get(), method, params);
        self.gets_answer(self.last.get()).await
    }

    pub(crate) fn tells(&self, method: &str, params: Value) {
        self.sends(line(&message(None, method, params)));
    }

    pub(crate) fn cancels(&self, id: impl Into<Value>) {
        self.tells("notifications/cancelled", json!({ "requestId": id.into() }));
    }

    /// Answers a question.
    pub(crate) fn answers(&self, question: &Value, result: Value) {
        self.sends(line(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })));
    }

    /// The first message that has all this; it is waited for.
    pub(crate) async fn gets(&self, expected: Value) -> Value {
        self.part.inbox.get(&expected).await.0
    }

    pub(crate) async fn gets_answer(&self, id: impl Into<Value>) -> Value {
        self.gets(json!({ "id": id.into() })).await
    }

    pub(crate) async fn gets_result(&self, id: impl Into<Value>, result: Value) -> Value {
        self.gets(json!({ "id": id.into(), "result": result })).await
    }

    pub(crate) async fn gets_error(&self, id: impl Into<Value>, code: i64) -> Value {
        self.gets(json!({ "id": id.into(), "error": { "code": code } })).await
    }

    /// What the server says or asks.
    pub(crate) async fn hears(&self, method: &str) -> Value {
        self.gets(json!({ "method": method })).await
    }

    /// What the server says on the stream of the request `id`.
    pub(crate) async fn hears_about(&self, id: impl Into<Value>, method: &str) -> Value {
        let (message, about) = self.part.inbox.get(&json!({ "method": method })).await;
        assert_eq!(about, Some(Id::from_json(id.into().to_string().as_bytes())), "{message}");
        message
    }

    /// Everything that came and was not named.
    pub(crate) async fn rest(&self) -> Vec<Value> {
        self.part.inbox.rest().await
    }

    pub(crate) async fn gets_nothing_else(&self) {
        assert_eq!(self.rest().await, Vec::<Value>::new());
    }

    pub(crate) fn leaves(&self) {
        self.link.end();
    }

    /// Has so many bytes that it has not read.
    pub(crate) fn has_unread(&self, bytes: usize) {
        self.part.unread.set(bytes);
    }

    /// Streams that were closed to be asked for later.
    pub(crate) fn paused(&self) -> Vec<(Id, Option<Duration>)> {
        self.part.paused.take()
    }
}

impl ClientSide for Part {
    fn transport(&self) -> Transport {
        Transport::Stdio
    }

    fn deliver(&self, passed: Passed<'_>) {
        self.keep(passed.frame.bytes, None);
    }

    fn unread_bytes(&self) -> usize {
        self.unread.get()
    }

    fn room(&self) -> Option<Waiting<'_>> {
        None
    }

    fn end(&self, _link: &Link) {}

    fn exchanges(&self) -> Option<&dyn Exchanges> {
        self.exchanges.is_some().then_some(self)
    }
}

impl Part {
    fn keep(&self, bytes: &[u8], about: Option<&Id>) {
        let message = serde_json::from_slice(bytes).expect("what the gateway says is JSON");
        self.inbox.put(message, about.cloned());
    }
}

impl Exchanges for Part {
    fn era(&self) -> Era {
        self.exchanges.expect("it has exchanges")
    }

    fn answers_name_requests(&self) {}

    fn pass_cuts(&self, _link: &Link, _cuts: &mut Vec<Cut>) {
        unreachable!("a gateway has no pipe");
    }

    fn pass(&self, link: &Link, lane: Lane<'_>, about: Option<&Id>, message: Message) {
        let conversation = &mut link.conversation.borrow_mut();
        let (_, out) =
            link.runtime.pass(|pipeline, out| pipeline.pass_one(conversation, Side::Server, lane, message, out));
        for outgoing in &out.to_client {
            self.keep(outgoing.frame().bytes, about);
        }
    }

    fn lend_calls(&self, conversation: &mut Conversation, answer: &mut dyn FnMut(&mut Conversation)) {
        answer(conversation);
    }

    fn pause(&self, known: &Id, retry: Option<Duration>) {
        self.paused.borrow_mut().push((known.clone(), retry));
    }
}
