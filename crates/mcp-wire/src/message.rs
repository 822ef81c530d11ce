//! A message: the bytes as they came, what a glance tells of them, and what a whole scan finds once
//! somebody asks.

use std::borrow::Cow;

use bytes::Bytes;
use once_cell::race::OnceBox;

use crate::id::Id;
use crate::scan::{self, Glance, Kind, Peek, Span};
use crate::splice::splice;

/// One message, verbatim. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    glance: Glance,
    /// Filled on first use: a message that is only forwarded is never scanned as a whole.
    peek: OnceBox<Peek>,
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        Self::new(bytes)
    }
}

impl Message {
    /// Keeps `bytes` as they are.
    pub fn new(bytes: Bytes) -> Self {
        let glance = scan::glance(&bytes);
        Self { bytes, glance, peek: OnceBox::new() }
    }

    /// The same, for a message that will be judged: it is scanned at once, which tells all that a glance does.
    pub fn scanned(bytes: Bytes) -> Self {
        let peek = scan::scan(&bytes);
        // Of what is broken or ambiguous a glance may still tell whom it concerns.
        let glance = if peek.is_opaque() { scan::glance(&bytes) } else { Glance::from(&peek) };
        Self { bytes, glance, peek: OnceBox::with_value(Box::new(peek)) }
    }

    /// The same, where a glance would tell this.
    pub(crate) fn known(bytes: Bytes, glance: Glance) -> Self {
        debug_assert_eq!(scan::glance(&bytes), glance);
        Self { bytes, glance, peek: OnceBox::new() }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What pairing answers with requests goes by. Never judge by it.
    pub fn glance(&self) -> &Glance {
        &self.glance
    }

    /// What one scan of the whole message found.
    pub fn peek(&self) -> &Peek {
        self.peek.get_or_init(|| Box::new(scan::scan(&self.bytes)))
    }

    pub fn kind(&self) -> Kind {
        self.peek().kind
    }

    /// The JSON-RPC id, if the message carries one (`null` included: it is an id, not an absence).
    pub fn id(&self) -> Option<Id> {
        self.id_at(self.glance.id)
    }

    /// The message with `id` in place of its own.
    pub fn with_id(self, id: &Id) -> Self {
        let id = id.to_string();
        match self.glance.id {
            Some(span) => Self::new(splice(&self.bytes, span, id.as_bytes())),
            None => {
                let Some(open) = self.bytes.iter().position(|&byte| byte == b'{') else { return self };
                let (before, after) = self.bytes.split_at(open + 1);
                Self::new([before, b"\"id\":", id.as_bytes(), b",", after].concat().into())
            }
        }
    }

    /// Whether it is an error to a message whose id could not be told.
    pub fn is_error_without_id(&self) -> bool {
        let Glance { kind, id, .. } = self.glance;
        kind == Kind::Error && id.is_none_or(|span| self.slice(span) == b"null")
    }

    pub fn method(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek().method)
    }

    /// `params.name`: the tool or prompt a request is about.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek().name)
    }

    /// `params.uri`: the resource a request is about.
    pub fn uri(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek().uri)
    }

    /// What a request is about: the tool, prompt or resource that its method makes of it. Other members
    /// that are called alike have no say.
    pub fn subject(&self) -> Option<Cow<'_, str>> {
        self.subject_of(&self.method()?)
    }

    /// The same, for a request whose method is known to be this.
    pub fn subject_of(&self, method: &str) -> Option<Cow<'_, str>> {
        match method {
            "tools/call" | "prompts/get" => self.name(),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" | "notifications/resources/updated" => {
                self.uri()
            }
            "completion/complete" => {
                let named = |member| scan::member_at(&self.bytes, ["params", "ref", member]);
                self.text(named("name").or_else(|| named("uri")))
            }
            _ => self.name().or_else(|| self.uri()),
        }
    }

    /// The resources whose changes a request of the newest revision asks to be told of, as the JSON of their
    /// addresses. Other requests ask for none.
    pub fn subscriptions(&self) -> impl Iterator<Item = Bytes> + '_ {
        const PATH: [&str; 3] = ["params", "notifications", "resourceSubscriptions"];
        let is_listen = self.method().is_some_and(|method| method == "subscriptions/listen");
        let list = is_listen.then(|| scan::member_at(&self.bytes, PATH)).flatten();
        let list = list.map(|span| self.bytes.slice(span.range()));
        list.into_iter().flat_map(|list| {
            let items: Vec<Span> = scan::batch_items(&list).collect();
            items.into_iter().map(move |item| list.slice(item.range()))
        })
    }

    /// `params.taskId`: the task a request is about.
    pub fn task_id(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek().task_id)
    }

    /// The revision a modern request says it speaks.
    pub fn protocol_version(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek().protocol_version)
    }

    /// The listen request a notification belongs to: its id, type and all.
    pub fn subscription_id(&self) -> Option<Id> {
        self.id_at(self.peek().subscription_id)
    }

    /// What a request wants its progress reported under, or what a report is about. Tokens are
    /// strings or integers, told apart as ids are.
    pub fn progress_token(&self) -> Option<Id> {
        self.id_at(self.peek().progress_token)
    }

    /// The id that this message takes back, if it is a cancellation.
    pub fn cancelled_id(&self) -> Option<Id> {
        let method = self.slice(self.glance.method?);
        if method != b"\"notifications/cancelled\"" {
            return None;
        }
        self.id_at(self.peek().request_id)
    }

    /// Whether anything in it is spelled with an escape.
    pub fn has_escapes(&self) -> bool {
        self.peek().texture.has_escapes
    }

    pub fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.range()]
    }

    fn id_at(&self, span: Option<Span>) -> Option<Id> {
        span.map(|span| Id::from_json(self.slice(span)))
    }

    fn text(&self, span: Option<Span>) -> Option<Cow<'_, str>> {
        scan::decode_string(self.slice(span?))
    }
}
