//! A message: the bytes as they came, and what one scan found in them.

use std::borrow::Cow;

use bytes::Bytes;

use crate::id::Id;
use crate::scan::{self, Kind, Peek, Span};

/// One message, verbatim. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    peek: Peek,
}

impl Message {
    /// Scans `bytes` once and keeps them as they are.
    pub fn new(bytes: Bytes) -> Self {
        let peek = scan::scan(&bytes);
        Self { bytes, peek }
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub fn peek(&self) -> &Peek {
        &self.peek
    }

    pub fn kind(&self) -> Kind {
        self.peek.kind
    }

    /// The JSON-RPC id, if the message carries one (`null` included: it is an id, not an absence).
    pub fn id(&self) -> Option<Id> {
        self.peek.id.map(|span| Id::from_json(self.slice(span)))
    }

    pub fn method(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek.method)
    }

    /// `params.name`: the tool or prompt a request is about.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek.name)
    }

    /// `params.uri`: the resource a request is about.
    pub fn uri(&self) -> Option<Cow<'_, str>> {
        self.text(self.peek.uri)
    }

    /// The id a `notifications/cancelled` takes back.
    pub fn cancelled_id(&self) -> Option<Id> {
        self.peek.request_id.map(|span| Id::from_json(self.slice(span)))
    }

    pub fn slice(&self, span: Span) -> &[u8] {
        &self.bytes[span.range()]
    }

    fn text(&self, span: Option<Span>) -> Option<Cow<'_, str>> {
        scan::decode_string(self.slice(span?))
    }
}
