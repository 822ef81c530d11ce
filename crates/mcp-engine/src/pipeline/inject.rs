//! Messages that somebody has sent to a server besides what its client sends: a request of old once more,
//! as it was or edited. They are judged and recorded like any other; the client sees nothing of them.

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind, RecordHead};
use mcp_wire::splice::with_id;
use mcp_wire::{Frame, Id, Kind, Message};
use tokio::sync::oneshot;

use super::governance::Stopped;
use super::{Outbox, Outgoing, Pipeline, framed};
use crate::bus::Origin;
use crate::conversation::Conversation;
use crate::envelope::{Asked, Lane, Side};
use crate::policy::{Refused, Ruling};

/// A message to be sent in a conversation, by whoever carries that.
#[derive(Debug)]
pub struct Injection {
    pub conversation: u32,
    message: Bytes,
    sent: oneshot::Sender<Result<u64, String>>,
}

/// Messages that wait to be sent.
#[derive(Default)]
pub struct Injections {
    waiting: Vec<Injection>,
    /// Requests that were sent so far.
    requests: u64,
}

impl Injections {
    /// Has a message sent to the server of a conversation. Its sequence comes when it was, or why
    /// it may not be sent; if the conversation is over, nothing does.
    pub fn inject(&mut self, conversation: u32, message: Bytes) -> oneshot::Receiver<Result<u64, String>> {
        let (sent, receiver) = oneshot::channel();
        self.waiting.push(Injection { conversation, message, sent });
        receiver
    }

    pub fn take(&mut self) -> Vec<Injection> {
        std::mem::take(&mut self.waiting)
    }

    fn unused_id(&mut self) -> Id {
        self.requests += 1;
        Id::Text(format!("mcp-proxy-replay-{}", self.requests).into())
    }
}

impl Pipeline {
    /// Passes an injected message. A request gets an id that its client does not use. Where it has an
    /// exchange of its own, what its answer is known by comes back; elsewhere the answer is kept from the
    /// client when it comes.
    pub fn pass_injected(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        injection: Injection,
        out: &mut Outbox,
    ) -> Option<Asked> {
        let stamp = self.journal.stamp();
        let message = Message::new(injection.message);
        let id = message.id().filter(|_| message.glance().kind == Kind::Request).map(|_| self.injections.unused_id());
        let bytes = id.as_ref().map_or_else(|| message.bytes().clone(), |id| with_id(message.bytes(), id));
        let asked = id.map(|id| Asked { id, sequence: stamp.sequence });
        let has_exchange = lane.exchange != 0;
        let lane = Lane { asked: asked.as_ref().filter(|_| has_exchange), ..lane };
        let message = stamp.on(conversation, Side::Client, lane.asked, framed(Frame::composed(bytes)));
        if let Some(asked) = asked.as_ref().filter(|_| !has_exchange) {
            conversation.keep_answer_to(asked.id.clone());
        }
        let (judged, rulings) = match self.governance.judge(conversation, lane, message) {
            Ok(judged) => judged,
            Err(stopped) => {
                let _ = injection.sent.send(Err(self.refuse_injected(conversation, lane, stopped)));
                return None;
            }
        };
        self.journal.rulings(lane.speaker(conversation), judged.message(), &rulings);
        self.journal.keep_as(judged.message(), lane, RecordHead::FROM_PROXY, Origin::Proxy);
        let sequence = judged.message().sequence;
        out.to_server.push(Outgoing::Message(judged));
        self.seal(lane, out);
        // What is said of one that stays is for whoever wanted it sent, and not for the client.
        if let Some(at) = out.parked.iter().position(|parked| parked.sequence == sequence) {
            out.parked.remove(at);
            self.holds.withdraw(sequence);
            if let Some(asked) = &asked {
                conversation.pending.take(Side::Client, &asked.id);
                conversation.forget_answer_to(&asked.id);
            }
            let _ = injection.sent.send(Err("the audit cannot be written".into()));
            return None;
        }
        let _ = injection.sent.send(Ok(sequence));
        asked
    }

    /// Writes down that a message was not sent. Why comes back, for whoever wanted it sent.
    fn refuse_injected(&mut self, conversation: &mut Conversation, lane: Lane<'_>, stopped: Box<Stopped>) -> String {
        let (message, ruling, why) = match *stopped {
            // Whoever wants it sent again is asked by other means.
            Stopped::Asked(question) => {
                let why = format!("rule \"{}\" asks about it, and this cannot be asked about", question.ruling.name());
                let (message, ruling) = question.into_parts();
                (message, ruling, why)
            }
            Stopped::Refused(message, Refused::Denied(ruling)) => {
                let why = match &ruling.rule {
                    Some(rule) => format!("rule \"{rule}\" denies it"),
                    None => "no rule permits it".into(),
                };
                (message, *ruling, why)
            }
            Stopped::Refused(message, Refused::Unfit(why)) => (message, Ruling::unfit(), why),
            Stopped::Refused(message, Refused::Batch(_)) => {
                (message, Ruling::unfit(), "an item of it is denied".into())
            }
        };
        if let Some(id) = message.message.id() {
            conversation.pending.take(Side::Client, &id);
            conversation.forget_answer_to(&id);
        }
        self.journal.decided(lane.speaker(conversation), &message, &ruling, ("deny", "rule", Some(&why)), 0);
        self.journal.keep_as(&message, lane, RecordHead::FROM_PROXY | RecordHead::HELD, Origin::Proxy);
        let what = OutcomeKind::Dropped;
        self.journal
            .outcome(&message, Outcome { what, by: "rules".into(), why: why.clone(), held_ns: 0, edited: None });
        why
    }
}
