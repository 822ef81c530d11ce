//! What a client is told: answers, what came of its calls, and what it can do without.

use std::time::Duration;

use bytes::Bytes;
use mcp_engine::{Behalf, Lane};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Id, Message};

use super::GatewayClient;
use crate::upstream::OURS;
use mcp_link::Link;
use mcp_link::link::CLIENT_WAITING_MAX;

/// Largest messages that may wait for all clients of a gateway together; each client may have one of them.
const LARGEST: usize = 4;
/// Answers up to this size do not count for clients that read.
const ORDINARY: usize = 64 * 1024;

impl GatewayClient {
    /// Tells it what came of message `sequence` of a server.
    pub(crate) fn hear(&self, sequence: u64, about: Option<&Id>, message: impl Into<Message>) {
        let Some(link) = self.link.upgrade().filter(|link| !link.is_over()) else { return };
        let message = self.as_far_as_there_is_room(&link, message.into());
        let asked = about.and_then(|about| self.asked_as(about));
        let about = asked.as_ref().or(about);
        let Some(message) = self.shaped(message).and_then(|message| self.joined(message)) else { return };
        let speaker = Default::default();
        let behalf = (sequence > 0).then_some(Behalf { parent: sequence, speaker: &speaker, conversation: 0 });
        link.from_gateway(Lane { behalf, ..OURS }, about, message);
    }

    /// An error in the place of an answer that there is no room for. Its server serves others too and is not held up.
    fn as_far_as_there_is_room(&self, link: &Link, message: Message) -> Message {
        let (len, most) = (message.bytes().len(), link.runtime.message_bytes_max);
        // Short answers to clients of HTTP leave in exchanges of their own, and their calls are bounded.
        if len <= ORDINARY && link.client.exchanges().is_some() {
            return message;
        }
        let waiting = link.client.unread_bytes();
        if len <= ORDINARY && waiting <= CLIENT_WAITING_MAX || !message.glance().kind.is_response() {
            return message;
        }
        let all: usize =
            self.gateway.present().iter().filter_map(|other| Some(other.link()?.client.unread_bytes())).sum();
        let fits = (waiting == 0 || waiting + len <= most) && (all == 0 || all + len <= most.saturating_mul(LARGEST));
        let Some(id) = message.id().filter(|_| !fits) else { return message };
        self.note("the client reads too slowly; there is no room for the answer before this");
        let what = "there is no room for the answer, because too much waits to be read".into();
        reply::error(&id, &Refusal::Busy { what }).into()
    }

    /// Tells it of something that it can do without, unless it has too much to read already.
    pub(crate) fn tell_of(&self, sequence: u64, about: Option<&Id>, message: Bytes) {
        if self.link.upgrade().is_some_and(|link| link.client_is_behind()) {
            if !self.is_behind.replace(true) {
                self.note("the client reads too slowly; what is not an answer is left out until it has caught up");
            }
            return;
        }
        self.is_behind.set(false);
        if let Some(message) = self.progress_of_batch(about, message) {
            self.hear(sequence, about, message);
        }
    }

    /// Has it ask for the rest of the answer to `id` in a while.
    pub(crate) fn pause(&self, id: &Id, retry: Option<Duration>) {
        let link = self.link.upgrade();
        if let Some(exchanges) = link.as_ref().and_then(|link| link.client.exchanges()) {
            exchanges.pause(self.asked_as(id).as_ref().unwrap_or(id), retry);
        }
    }

    /// The client's own request behind an id that it knows nothing of.
    pub(crate) fn asked_as(&self, id: &Id) -> Option<Id> {
        if self.inners.is_empty() { None } else { self.inners.asked_as(id) }
    }

    /// Tells it something of our own that has to do with its request `about`.
    pub(crate) fn say_about(&self, about: &Id, message: Bytes) {
        if let Some(link) = self.link.upgrade().filter(|link| !link.is_over() && !link.client_is_behind()) {
            link.from_gateway(OURS, Some(about), message);
        }
    }

    /// Tells it something of our own.
    pub(crate) fn say(&self, message: Bytes) {
        if let Some(link) = self.link.upgrade().filter(|link| !link.is_over())
            && let Some(message) = self.shaped(message.into()).and_then(|message| self.joined(message))
        {
            link.from_gateway(OURS, None, message);
        }
    }

    pub(crate) fn say_result(&self, request: &Message, result: &[u8]) {
        if let Some(id) = request.id() {
            self.say(reply::answer_with_result(&id, result));
        }
    }

    pub(crate) fn say_unknown(&self, request: &Message, method: &str) {
        let is_about_task = method.starts_with("tasks/");
        let subject = if is_about_task { request.task_id() } else { request.subject_of(method) };
        let name = subject.unwrap_or_default();
        if let Some(id) = request.id() {
            self.say(reply::unknown(&id, method, &name));
        }
    }

    pub(crate) fn refuse(&self, request: &Message, refusal: &Refusal) {
        if let Some(id) = request.id() {
            self.answer_with(&id, refusal);
        }
    }

    pub(crate) fn answer_with(&self, id: &Id, refusal: &Refusal) {
        self.say(reply::error(id, refusal));
    }

    pub(crate) fn note(&self, text: &str) {
        if let Some(link) = self.link.upgrade() {
            link.note(mcp_engine::Side::Server, text);
        }
    }
}
