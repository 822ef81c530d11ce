//! What is known of a message before anybody looks into it, as filters ask about it.

use std::borrow::Cow;

use mcp_filter::Subject;
use mcp_wire::Direction;

use super::operation::{Annotations, Operation};
use crate::envelope::Side;

#[derive(Clone, Copy)]
pub(super) struct Prospect<'a> {
    pub from: Side,
    pub is_request: bool,
    pub method: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub operation: Option<Operation>,
    pub annotations: Annotations,
    pub server: Option<&'a str>,
    pub client: Option<&'a str>,
    pub revision: Option<&'a str>,
    pub is_plumbing: bool,
}

impl Prospect<'_> {
    pub(super) fn without_method(&self) -> Self {
        Self { method: None, tool: None, operation: None, ..*self }
    }
}

impl Subject for Prospect<'_> {
    fn direction(&self) -> Option<Direction> {
        Some(self.from.direction())
    }

    fn kind(&self) -> Option<&str> {
        Some(if self.is_request { "request" } else { "notification" })
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        self.method.map(Cow::Borrowed)
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.tool.map(Cow::Borrowed)
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        self.server.map(Cow::Borrowed)
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        self.client.map(Cow::Borrowed)
    }

    fn operation(&self) -> Option<&str> {
        self.operation.map(Operation::name)
    }

    fn hint(&self, name: &str) -> Option<bool> {
        self.annotations.hint(name)
    }

    fn revision(&self) -> Option<Cow<'_, str>> {
        self.revision.map(Cow::Borrowed)
    }
}
