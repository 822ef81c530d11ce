//! Answers that say what a server has. What they say of tools is remembered, and those who may not use
//! something in any way are not shown that it is there.

use std::collections::BTreeSet;

use mcp_wire::Message;

use super::govern::Governed;
use super::hide::{Rest, without_hidden};
use super::listed::asks_for_list;
use super::{Judged, Rulings};
use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side};

/// Requests for lists that wait for their answers; the oldest are forgotten first. A client asks for four lists,
/// page by page, and one proxy may have some hundred clients.
const OPEN_MAX: usize = 4_096;

/// The sequences of requests that ask for a list and have no answer.
#[derive(Debug, Default)]
pub(super) struct OpenLists(BTreeSet<u64>);

/// What came, where something else goes on.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub came: Message,
    /// Items; none where a tool was hidden that the client called.
    pub count: usize,
}

impl OpenLists {
    /// Takes note of a request that may go on.
    pub(super) fn hear(&mut self, message: &ProxyMessage, rulings: &Rulings) {
        if message.from == Side::Server || !rulings.any_about(asks_for_list) {
            return;
        }
        if self.0.len() >= OPEN_MAX {
            self.0.pop_first();
        }
        self.0.insert(message.sequence);
    }

    pub(super) fn is_any_open(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether a message answers one of them.
    fn take(&mut self, answer: &ProxyMessage) -> bool {
        answer.from == Side::Server && answer.correlated.is_some_and(|request| self.0.remove(&request))
    }
}

impl Rulings {
    /// Whether one of the methods that they are about is such.
    fn any_about(&self, is_such: impl Fn(&str) -> bool) -> bool {
        let is_such = |ruling: &super::Ruling| ruling.about.as_ref().is_some_and(|(method, _)| is_such(method));
        match self {
            Self::None => false,
            Self::One(ruling) => is_such(ruling),
            Self::Each(items) => items.iter().any(|(_, ruling)| is_such(ruling)),
        }
    }
}

impl Governed {
    /// Learns from an answer that lists something, of which nobody in particular is to see a part.
    pub(super) fn hear_list(&mut self, answer: &ProxyMessage) {
        if self.lists.is_any_open() && self.lists.take(answer) {
            self.learn(answer.upstream, answer.message.bytes());
        }
    }

    /// Learns from an answer that lists something, and takes out of it what its client is not to see.
    pub(super) fn show(&mut self, judged: Judged, speaker: &Speaker) -> (Judged, Option<Hidden>) {
        if !self.lists.take(&judged.0) {
            return (judged, None);
        }
        let Judged(mut message) = judged;
        let came = message.message.clone();
        let upstream = message.upstream;
        self.learn(upstream, came.bytes());
        let rest = match self.rules().hide_denied {
            true => without_hidden(came.bytes(), |method, name| self.hides(upstream, method, name, speaker)),
            false => None,
        };
        let Some(Rest { bytes, hidden: count }) = rest else { return (Judged(message), None) };
        message.message = Message::new(bytes);
        (Judged(message), Some(Hidden { came, count }))
    }
}
