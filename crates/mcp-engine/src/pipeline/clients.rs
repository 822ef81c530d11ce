//! The conversations of a run, and the newest clients.

use std::collections::VecDeque;
use std::sync::Arc;

use mcp_wire::Kind;

use crate::conversation::{Conversation, Opening, Part, Speaker};
use crate::envelope::{ProxyMessage, Side};

/// Clients named in the status, the newest of them: a listener may have had thousands.
const CLIENTS_MAX: usize = 64;

#[derive(Default)]
pub(super) struct Clients {
    conversations: u32,
    /// Held once more by the conversation of each connected client.
    connected: Arc<()>,
    newest: VecDeque<(u32, Speaker)>,
}

impl Clients {
    /// A client has come.
    pub(super) fn begin(&mut self, part: Part) -> Conversation {
        let number = self.number();
        Conversation::part_of(number, part).counted(&self.connected)
    }

    /// A number for the next conversation.
    pub(super) fn number(&mut self) -> u32 {
        self.conversations += 1;
        self.conversations
    }

    /// Conversations so far.
    pub(super) fn conversations(&self) -> u32 {
        self.conversations
    }

    /// Clients that are connected now, where they come to a listener.
    pub(super) fn connected(&self) -> usize {
        Arc::strong_count(&self.connected) - 1
    }

    /// The newest clients by their conversations, the last one last.
    pub(super) fn newest(&self) -> Vec<(u32, Speaker)> {
        self.newest.iter().cloned().collect()
    }

    /// Learns from a message who speaks.
    #[cold]
    pub(super) fn meet(&mut self, conversation: &mut Conversation, message: &ProxyMessage) {
        conversation.opening = match conversation.opening {
            Opening::Awaited if conversation.speaker.introduce(&message.message) => Opening::Asked(message.sequence),
            Opening::Asked(_) => {
                conversation.speaker.agree(&message.message);
                Opening::Over
            }
            Opening::Awaited => Opening::EachTime,
            other => other,
        };
        self.note_client(conversation);
    }

    /// Learns who speaks now, where each request says so. Rules go by that.
    pub(super) fn meet_again(&mut self, conversation: &mut Conversation, message: &ProxyMessage) {
        if conversation.opening != Opening::EachTime
            || message.from != Side::Client
            || message.message.kind() != Kind::Request
        {
            return;
        }
        let mut speaker = Speaker::default();
        if speaker.introduce(&message.message) {
            conversation.opening = Opening::Asked(message.sequence);
        }
        if speaker != conversation.speaker {
            conversation.speaker = speaker;
            self.note_client(conversation);
        }
    }

    fn note_client(&mut self, conversation: &Conversation) {
        // A server of a gateway has met the gateway.
        if !matches!(conversation.part, Part::Leg(_)) {
            self.note(conversation.number(), &conversation.speaker);
        }
    }

    fn note(&mut self, conversation: u32, speaker: &Speaker) {
        match self.newest.iter_mut().rev().find(|(number, _)| *number == conversation) {
            Some((_, known)) => known.clone_from(speaker),
            None => self.newest.push_back((conversation, speaker.clone())),
        }
        if self.newest.len() > CLIENTS_MAX {
            self.newest.pop_front();
        }
    }
}
