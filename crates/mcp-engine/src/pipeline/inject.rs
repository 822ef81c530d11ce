//! Messages that somebody has sent to a server besides what its client sends: a request of old once more,
//! as it was or edited. They are judged and recorded like any other; the client sees nothing of them.

use bytes::Bytes;
use mcp_store::RecordHead;
use mcp_wire::splice::with_id;
use mcp_wire::{Frame, Id, Kind, Message};
use tokio::sync::oneshot;

use super::{Outbox, Outgoing, Pipeline, framed};
use crate::bus::Origin;
use crate::conversation::Conversation;
use crate::envelope::{Asked, Lane, Side};
use crate::policy::Verdict;
use crate::resolve::resolve;

/// A message to be sent in a conversation, by whoever carries that.
#[derive(Debug)]
pub struct Injection {
    pub conversation: u32,
    message: Bytes,
    sent: oneshot::Sender<u64>,
}

impl Pipeline {
    /// Has a message sent to the server of a conversation. Its sequence comes when it was; if the
    /// conversation is over, nothing does.
    pub fn inject(&mut self, conversation: u32, message: Bytes) -> oneshot::Receiver<u64> {
        let (sent, receiver) = oneshot::channel();
        self.injected.push(Injection { conversation, message, sent });
        receiver
    }

    pub fn take_injected(&mut self) -> Vec<Injection> {
        std::mem::take(&mut self.injected)
    }

    /// Passes an injected message. A request gets an id that its client does not use. Where it has an
    /// exchange of its own, what its answer is known by comes back; elsewhere the answer is kept from the
    /// client when it comes.
    pub fn pass_injected(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        injection: Injection,
        out: &mut Outbox,
    ) -> Option<Asked> {
        let now_ns = self.clock.now_ns();
        let message = Message::new(injection.message);
        let id = message.id().filter(|_| message.glance().kind == Kind::Request).map(|_| self.unused_id());
        let bytes = id.as_ref().map_or_else(|| message.bytes().clone(), |id| with_id(message.bytes(), id));
        let asked = id.map(|id| Asked { id, sequence: self.sequence + 1 });
        let has_exchange = lane.exchange != 0;
        let lane = Lane { asked: asked.as_ref().filter(|_| has_exchange), ..lane };
        let message = self.stamp(talk, Side::Client, lane.asked, framed(Frame::composed(bytes)), now_ns);
        if let Some(asked) = asked.as_ref().filter(|_| !has_exchange) {
            talk.keep_answer_to(asked.id.clone());
        }
        let Verdict::Permitted(judged) = self.policy.permit(resolve(message));
        self.recorder.message(judged.message(), lane, RecordHead::FROM_PROXY);
        self.tell(judged.message(), lane, Origin::Proxy);
        let _ = injection.sent.send(judged.message().sequence);
        out.to_server.push(Outgoing::Message(judged));
        asked
    }

    fn unused_id(&mut self) -> Id {
        self.injections += 1;
        Id::Text(format!("mcp-proxy-replay-{}", self.injections).into())
    }
}
