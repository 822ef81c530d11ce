//! Answers of the proxy's own, in the place of a peer that gives none.

use bytes::Bytes;
use mcp_wire::Id;
use mcp_wire::reply::{self, Refusal};

use super::{Outbox, Outgoing, Pipeline};
use crate::conversation::Conversation;
use crate::envelope::{Asked, Lane, ProxyMessage, Side};

impl Pipeline {
    /// Answers every call `from` still waits on: its peer is gone.
    pub fn answer_pending(&mut self, conversation: &mut Conversation, from: Side, refusal: &Refusal, out: &mut Outbox) {
        self.answer_pending_but(conversation, from, &[], refusal, out);
    }

    /// Answers every call `from` still waits on, save those under `kept`.
    pub fn answer_pending_but(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        kept: &[Id],
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        for (id, mark) in conversation.pending.take_all(from) {
            if kept.contains(&id) {
                conversation.pending.insert(from, id, mark.sequence);
                continue;
            }
            let id = conversation.own_id(id, mark.sequence);
            self.answer(conversation, from, (&id, Some(mark.sequence)), refusal, out);
        }
    }

    /// Answers a call that waits in an exchange of its own.
    pub fn answer_asked(
        &mut self,
        conversation: &mut Conversation,
        asked: &Asked,
        refusal: &Refusal,
        lane: Lane<'_>,
        out: &mut Outbox,
    ) {
        let id = conversation.own_id(asked.id.clone(), asked.sequence);
        let answer = reply::error(&id, refusal);
        let answer = self.journal.compose(conversation.place(), lane, Side::Client, Some(asked.sequence), answer);
        out.to_client.push(answer);
    }

    /// Answers one call that `from` still waits on, if it does.
    pub fn answer_one(
        &mut self,
        conversation: &mut Conversation,
        from: Side,
        id: &Id,
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        if let Some(mark) = conversation.pending.take(from, id) {
            let id = conversation.own_id(id.clone(), mark.sequence);
            self.answer(conversation, from, (&id, Some(mark.sequence)), refusal, out);
        }
    }

    /// Tells the server, in the client's place, something that the client said in another way or
    /// before. Returns the sequence by which an answer to it is known.
    pub fn speak_for_client(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: Bytes,
        out: &mut Outbox,
    ) -> u64 {
        let message = self.journal.compose(conversation.place(), lane, Side::Server, None, message);
        let sequence = message.sequence();
        out.to_server.push(message);
        sequence
    }

    /// Holds back what could not be recorded. Answers that the client waits for become refusals; its
    /// own calls are still open, and are answered with the rest.
    pub fn hold_back_unrecorded(&mut self, conversation: &Conversation, out: &mut Outbox) {
        let held_back = std::mem::take(&mut out.to_client);
        out.to_server.clear();
        for outgoing in held_back {
            let judged = match outgoing {
                Outgoing::Message(judged) => judged,
                // A refusal of our own is no evidence of anything.
                reply @ Outgoing::Reply(..) => {
                    out.to_client.push(reply);
                    continue;
                }
            };
            if let ProxyMessage { message, correlated: Some(request), .. } = judged.message()
                && let Some(id) = message.id()
            {
                self.answer(conversation, Side::Client, (&id, Some(*request)), &Refusal::NotRecorded, out);
            }
        }
    }

    /// Composes an answer to `asker` in its peer's place.
    pub(super) fn answer(
        &mut self,
        conversation: &Conversation,
        asker: Side,
        (id, correlated): (&Id, Option<u64>),
        refusal: &Refusal,
        out: &mut Outbox,
    ) {
        let answer = reply::error(id, &self.journal.naming(conversation.upstream(), refusal));
        let answer = self.journal.compose(conversation.place(), conversation.lane_of(id), asker, correlated, answer);
        out.to(asker).push(answer);
    }
}
