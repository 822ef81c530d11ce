//! The way of a message that goes no further: its sender gets a reason, or a question waits for an answer.

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Ending, Id, Kind, Message};

use super::governance::Stopped;
use super::holds::{NOT_WRITTEN, item_ids, request_id};
use super::{Outbox, Outgoing, Pipeline};
use crate::conversation::Conversation;
use crate::envelope::{Asked, Lane, ProxyMessage, Side};
use crate::policy::{Refused, Ruling, has_batches};

impl Pipeline {
    /// Keeps a message from going on.
    /// `known` is the id under which an answer is waited for, if it has another.
    pub(super) fn stop(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        known: Option<Id>,
        stopped: Box<Stopped>,
        out: &mut Outbox,
    ) {
        match *stopped {
            Stopped::Asked(question) => self.decisions().ask(conversation, lane, question, out),
            Stopped::Refused(message, refused) => self.refuse(conversation, lane, (message, known), &refused, out),
        }
    }

    /// Tells the sender of a message why it went nowhere; of an answer, whoever waits for it.
    fn refuse(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        (message, known): (ProxyMessage, Option<Id>),
        refused: &Refused,
        out: &mut Outbox,
    ) {
        let message = match refused {
            Refused::Denied(ruling) if self.is_answered_as_unknown(conversation, &message, ruling) => {
                match self.send_as_unknown(conversation, lane, message, ruling, out) {
                    Some(message) => message,
                    None => return,
                }
            }
            _ => message,
        };
        let is_batch = message.message.glance().kind == Kind::Batch && message.from == Side::Server;
        let answered = if is_batch { conversation.pending.take_answered_together() } else { Vec::new() };
        let told = self.governance.refusal_of(
            &mut self.journal,
            (lane.speaker(conversation), known, answered),
            &message,
            refused,
        );
        self.journal.keep_held(&message, lane);
        let closing = self.close_calls(conversation, lane, told.closing, out);
        self.holds.refused(&mut self.journal, lane, message, (told.answer, closing), &told.why, out);
    }

    /// Answers the calls whose answers came in a refused batch. The last answer comes back: it takes the place of
    /// the batch. All of them share that place where batches are read, or an HTTP exchange carries one message.
    fn close_calls(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        mut closing: Vec<(u64, Bytes)>,
        out: &mut Outbox,
    ) -> Option<Outgoing> {
        let is_one = lane.asked.is_some_and(|asked| closing.first().is_some_and(|(call, _)| *call == asked.sequence));
        if is_one && !has_batches(lane.speaker(conversation)) {
            // Others wait in exchanges of their own.
            closing.truncate(1);
        }
        let (first, last) = (closing.first()?.0, closing.pop()?);
        if closing.is_empty() {
            return Some(self.journal.compose(conversation.place(), lane, Side::Client, Some(last.0), last.1));
        }
        if lane.exchange > 0 || has_batches(lane.speaker(conversation)) {
            let answers: Vec<Bytes> = closing.into_iter().chain([last]).map(|(_, answer)| answer).collect();
            return Some(self.journal.compose(
                conversation.place(),
                lane,
                Side::Client,
                Some(first),
                reply::batch(&answers),
            ));
        }
        for (call, answer) in closing {
            let answer = self.journal.compose(conversation.place(), lane, Side::Client, Some(call), answer);
            out.to_client.push(answer);
        }
        Some(self.journal.compose(conversation.place(), lane, Side::Client, Some(last.0), last.1))
    }

    /// Refuses the message that opens an HTTP exchange for what stands beside it there. What its sender
    /// is told comes back.
    pub fn refuse_opening(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        message: Message,
        refusal: &Refusal,
        out: &mut Outbox,
    ) -> Bytes {
        let id = message.id().filter(|_| message.glance().kind == Kind::Request);
        let stamp = self.journal.stamp();
        let asked = id.clone().map(|id| Asked { id, sequence: stamp.sequence });
        let message = stamp.on(conversation, Side::Client, asked.as_ref(), (message, Ending::Counted, false));
        let (speaker, why) = (lane.speaker(conversation), refusal.text());
        self.journal.decided(speaker, &message, &Ruling::unfit(), ("deny", "proxy", Some(&why)), 0);
        self.journal.keep_held(&message, lane);
        let outcome = Outcome { what: OutcomeKind::Refused, by: "rules".into(), why, held_ns: 0, edited: None };
        self.journal.outcome(&message, outcome);
        let answer = id.map_or_else(|| reply::error_without_id(refusal), |id| reply::error(&id, refusal));
        let answered = asked.map(|asked| asked.sequence);
        let answer = self.journal.compose(message.place(), lane, Side::Client, answered, answer);
        for id in item_ids(&message) {
            conversation.pending.take_very(Side::Client, &id, message.sequence);
        }
        self.seal(lane, out);
        answer.frame().bytes.clone()
    }

    /// Writes the audit before anything leaves. What it could not be written for stays, if that was asked
    /// for.
    pub(super) fn seal(&mut self, lane: Lane<'_>, out: &mut Outbox) {
        let Err(unsealed) = self.journal.seal() else { return };
        if !self.governance.requires_audit() {
            return;
        }
        // What a breakpoint holds would go on later, when nobody looks at the audit any more.
        for sequence in &unsealed {
            if let Some(parked) = self.holds.intercept.take(*sequence) {
                self.holds.end_unaudited(&mut self.journal, parked);
            }
        }
        for side in [Side::Server, Side::Client] {
            let (stays, leaves): (Vec<_>, Vec<_>) =
                std::mem::take(out.to(side)).into_iter().partition(|outgoing| match outgoing {
                    Outgoing::Message(judged) => unsealed.contains(&judged.message().sequence),
                    Outgoing::Reply(..) => false,
                });
            *out.to(side) = leaves;
            for outgoing in stays {
                let Outgoing::Message(judged) = outgoing else { continue };
                let message = judged.into_message();
                self.journal.ended(message.sequence, NOT_WRITTEN);
                let answer = request_id(&message).map(|id| reply::error(&id, &Refusal::NotAudited)).or_else(|| {
                    let ids = item_ids(&message);
                    let answers: Vec<Bytes> = ids.iter().map(|id| reply::error(id, &Refusal::NotAudited)).collect();
                    (!answers.is_empty()).then(|| reply::batch(&answers))
                });
                self.holds.refused(
                    &mut self.journal,
                    lane,
                    message,
                    (answer, None),
                    "the audit could not be written",
                    out,
                );
            }
        }
    }
}
