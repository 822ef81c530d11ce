//! A message on its way, as filters ask about it. What only the request tells of an answer is
//! remembered while a filter wants to know.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use mcp_filter::{Filter, Subject};
use mcp_store::story::Status;
use mcp_wire::{Direction, Kind, MessageKind};

use crate::conversation::Speaker;
use crate::envelope::ProxyMessage;
use crate::policy::operation::{Annotations, Classifier, Operation};
use crate::policy::operation_of;

/// Requests without an answer that are remembered for breakpoints that ask what an answer answers. A later answer
/// is not matched to its request.
const REMEMBERED_MAX: usize = 16_384;
/// A larger request is remembered by its method and name only: its bytes are too many to keep.
const REMEMBERED_BYTES_MAX: usize = 64 * 1024;

/// Requests that went by, for filters that ask what an answer answers.
#[derive(Debug, Default)]
pub(super) struct Requests {
    wanted: bool,
    open: HashMap<u64, Request, RandomState>,
}

#[derive(Debug)]
pub(crate) struct Request {
    time_ns: u64,
    method: Option<Box<str>>,
    subject: Option<Box<str>>,
}

impl Requests {
    /// Remembers from now on what `filters` need.
    pub(super) fn wanted_by<'a>(&mut self, mut filters: impl Iterator<Item = &'a Filter>) {
        self.wanted = filters.any(|filter| filter.needs().story || filter.needs().scan);
        if !self.wanted {
            self.open = HashMap::default();
        }
    }

    /// Whether the request `sequence` is remembered.
    pub(super) fn knows(&self, sequence: Option<u64>) -> bool {
        !self.open.is_empty() && sequence.is_some_and(|sequence| self.open.contains_key(&sequence))
    }

    /// Takes note of a message. Returns the request that it answers, as far as that is known.
    pub(super) fn hear(&mut self, message: &ProxyMessage) -> Option<Request> {
        if !self.wanted {
            return None;
        }
        if let Some(request) = message.correlated {
            return self.open.remove(&request);
        }
        if message.message.glance().kind == Kind::Request && message.message.bytes().len() <= REMEMBERED_BYTES_MAX {
            if self.open.len() >= REMEMBERED_MAX {
                self.open.clear();
            }
            self.open.insert(message.sequence, Request::of(message));
        }
        None
    }
}

impl Request {
    fn of(message: &ProxyMessage) -> Self {
        Self {
            time_ns: message.time_ns,
            method: message.message.method().map(Into::into),
            subject: message.message.subject().map(Into::into),
        }
    }
}

pub(crate) struct Live<'a> {
    pub message: &'a ProxyMessage,
    pub request: Option<&'a Request>,
    pub speaker: &'a Speaker,
    pub server: Option<&'a str>,
    pub class: Class,
}

/// What is known of the operation that a message asks for.
pub(crate) enum Class {
    Known(Option<Operation>, Annotations),
    /// What its name tells, if anybody wants to know.
    ByName,
}

impl Live<'_> {
    fn answer_status(&self) -> Option<Status> {
        Status::of_answer(&self.message.message)
    }
}

impl Subject for Live<'_> {
    fn direction(&self) -> Option<Direction> {
        Some(self.message.from.direction())
    }

    fn kind(&self) -> Option<&str> {
        Some(MessageKind::from(self.message.message.kind()).as_str())
    }

    fn method(&self) -> Option<Cow<'_, str>> {
        let own = self.message.message.method();
        own.or_else(|| self.request?.method.as_deref().map(Cow::Borrowed))
    }

    fn tool(&self) -> Option<Cow<'_, str>> {
        self.message.message.subject().or_else(|| self.request?.subject.as_deref().map(Cow::Borrowed))
    }

    fn server(&self) -> Option<Cow<'_, str>> {
        self.server.map(Cow::Borrowed)
    }

    fn client(&self) -> Option<Cow<'_, str>> {
        self.speaker.client.as_deref().map(Cow::Borrowed)
    }

    fn status(&self) -> Option<&str> {
        self.answer_status().map(|status| status.as_str())
    }

    fn code(&self) -> Option<i64> {
        self.answer_status()?.code()
    }

    fn id(&self) -> Option<&[u8]> {
        self.message.message.peek().id.map(|span| self.message.message.slice(span))
    }

    fn operation(&self) -> Option<&str> {
        let operation = match self.class {
            Class::Known(operation, _) => operation,
            Class::ByName => operation_of(&self.method()?, self.tool().as_deref(), &Classifier::default()),
        };
        operation.map(Operation::name)
    }

    fn hint(&self, name: &str) -> Option<bool> {
        match self.class {
            Class::Known(_, annotations) => annotations.hint(name),
            Class::ByName => None,
        }
    }

    fn duration_ns(&self) -> Option<u64> {
        Some(self.message.time_ns.saturating_sub(self.request?.time_ns))
    }

    fn size(&self) -> Option<u64> {
        Some(self.message.message.bytes().len() as u64)
    }

    fn sequence(&self) -> Option<u64> {
        Some(self.message.sequence)
    }

    fn body(&self) -> Option<&[u8]> {
        Some(self.message.message.bytes())
    }

    fn revision(&self) -> Option<Cow<'_, str>> {
        let own = self.message.message.protocol_version();
        own.or_else(|| self.speaker.revision.as_deref().map(Cow::Borrowed))
    }
}
