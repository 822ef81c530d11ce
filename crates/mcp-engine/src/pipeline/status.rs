//! How a pipeline stands, for whoever asks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mcp_wire::{Kind, Message};

use super::Pipeline;
use crate::bus::Event;
use crate::conversation::{Conversation, Opening, Part, Speaker};
use crate::envelope::{ProxyMessage, Side};
use crate::intercept::{Breakpoint, Held, Mode, OnDetach, Owner};
use crate::policy::explain::Judging;
use crate::policy::rules::Rules;

/// Clients that are remembered, the newest of them; a listener may have had thousands.
const CLIENTS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub struct Status {
    pub mode: Mode,
    pub mode_owner: Owner,
    pub breakpoints: Vec<Breakpoint>,
    pub held: Vec<Held>,
    pub hold_limit: Option<Duration>,
    pub on_detach: OnDetach,
    pub has_face: bool,
    /// How many read along, as far as this pipeline was told.
    pub watchers: usize,
    /// The sequence of the newest message.
    pub sequence: u64,
    /// Conversations so far.
    pub conversations: u32,
    /// Clients connected now, where they come to a listener.
    pub connected: usize,
    /// The newest clients by their conversations, the last one last.
    pub clients: Vec<(u32, Speaker)>,
    /// What messages are judged by, if they are.
    pub rules: Option<Arc<Rules>>,
    /// Decisions are not written down: the audit log cannot be written.
    pub is_unwritten: bool,
}

/// The newest clients.
#[derive(Default)]
pub(super) struct Clients(VecDeque<(u32, Speaker)>);

impl Clients {
    fn note(&mut self, conversation: u32, speaker: &Speaker) {
        match self.0.iter_mut().rev().find(|(number, _)| *number == conversation) {
            Some((_, known)) => known.clone_from(speaker),
            None => self.0.push_back((conversation, speaker.clone())),
        }
        if self.0.len() > CLIENTS_MAX {
            self.0.pop_front();
        }
    }
}

impl Pipeline {
    pub fn status(&self) -> Status {
        let (mode, mode_owner) = self.intercept.mode();
        Status {
            mode,
            mode_owner,
            breakpoints: self.intercept.breakpoints().to_vec(),
            held: self.intercept.held().into_iter().chain(self.rounds.held()).collect(),
            hold_limit: self.intercept.limit(),
            on_detach: self.intercept.on_detach(),
            has_face: self.intercept.has_face(),
            watchers: self.watchers,
            sequence: self.sequence,
            conversations: self.conversations.max(1),
            connected: Arc::strong_count(&self.connected) - 1,
            clients: self.clients.0.iter().cloned().collect(),
            rules: self.policy.rules().cloned(),
            is_unwritten: self.audit.as_ref().is_some_and(|audit| !audit.is_written()),
        }
    }

    /// Writes decisions that wait for the audit log. Whether all are written now.
    pub fn retry_audit(&mut self) -> bool {
        let is_written = self.audit.as_mut().is_none_or(|audit| audit.flush().is_ok());
        if is_written {
            self.bus.publish(|| Event::Changed);
        }
        is_written
    }

    /// What to know of the rules and of people's answers to judge such a message again; `None` if nothing
    /// is judged. `server` is that of a gateway.
    pub fn judging(&self, message: &Message, conversation: u32, server: Option<&str>) -> Option<Judging> {
        let upstream = server.and_then(|server| self.policy.upstream_named(server)).unwrap_or_default();
        let server = self.policy.server(upstream);
        let (method, subject) = (message.method().unwrap_or_default(), message.subject());
        Some(Judging {
            rules: Arc::clone(self.policy.rules()?),
            judged_otherwise: self.judged_otherwise,
            annotations: self.policy.annotations(upstream, &method, subject.as_deref()),
            answers: self
                .answers
                .about(conversation, server.map(|server| &**server), &method, subject.as_deref())
                .cloned()
                .collect(),
            server: server.cloned(),
        })
    }

    /// Learns from a message who speaks.
    #[cold]
    pub(super) fn meet(&mut self, talk: &mut Conversation, message: &ProxyMessage) {
        talk.opening = match talk.opening {
            Opening::Awaited if talk.speaker.introduce(&message.message) => Opening::Asked(message.sequence),
            Opening::Asked(_) => {
                talk.speaker.agree(&message.message);
                Opening::Over
            }
            Opening::Awaited => Opening::EachTime,
            other => other,
        };
        self.note_client(talk);
    }

    fn note_client(&mut self, talk: &Conversation) {
        // A server of a gateway has met the gateway.
        if !matches!(talk.part, Part::Leg(_)) {
            self.clients.note(talk.number(), &talk.speaker);
        }
    }

    /// Learns who speaks now, where each request says so. Rules go by that.
    pub(super) fn meet_again(&mut self, talk: &mut Conversation, message: &ProxyMessage) {
        if talk.opening != Opening::EachTime || message.from != Side::Client || message.message.kind() != Kind::Request
        {
            return;
        }
        let mut speaker = Speaker::default();
        if speaker.introduce(&message.message) {
            talk.opening = Opening::Asked(message.sequence);
        }
        if speaker != talk.speaker {
            talk.speaker = speaker;
            self.note_client(talk);
        }
    }
}
