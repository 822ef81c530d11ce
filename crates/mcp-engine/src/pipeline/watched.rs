//! The way of a message that may be parked, or needs more done to it.

use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::Id;

use super::holds::{Ends, renamed, unanswered};
use super::{Outbox, Outgoing, ParkedMark, Pipeline};
use crate::conversation::{Client, Conversation, Part};
use crate::envelope::{Lane, ProxyMessage};
use crate::intercept::{Content, Parked, Passed};
use crate::policy::{Hidden, Judged};

impl Pipeline {
    #[inline(never)]
    pub(super) fn pass_watched(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        mut message: ProxyMessage,
        out: &mut Outbox,
    ) {
        self.clients.meet_again(conversation, &message);
        let client = conversation.client_of(&message, lane.behalf);
        let lane = Lane { behalf: lane.behalf.or(client.as_ref().map(Client::behalf)), ..lane };
        self.journal.answered(&message);
        self.journal.items_answered(&message);
        if conversation.keeps(&message) {
            self.journal.keep(&message, lane);
            out.withheld += 1;
            return;
        }
        if self.decisions().hears(&message) {
            return self.decisions().hear(conversation, lane, message, out);
        }
        let known_id = conversation.known_id(&message);
        if let Some(cancelled) = message.message.cancelled_id()
            && let Some(now) = conversation.renamed_request(message.from, &cancelled)
        {
            return self.pass_cancellation(conversation, lane, message, &now, out);
        }
        let came = self.name_again(&mut message);
        let (judged, rulings) = match self.governance.judge(conversation, lane, message) {
            Ok(judged) => judged,
            Err(stopped) => return self.stop(conversation, lane, known_id.map(|(_, known)| known), stopped, out),
        };
        let (judged, hidden) = match conversation.part {
            // A gateway that merges lists of servers leaves out the items that each of its clients is not to see.
            Part::Leg(_) if lane.behalf.is_none() => {
                self.governance.policy.learn(&judged);
                (judged, None)
            }
            _ if !self.governance.policy.awaits_list() => (judged, None),
            _ => self.governance.policy.show(judged, lane.speaker(conversation)),
        };
        let hidden = hidden.or(came.map(|came| Hidden { came, count: 0 }));
        let passed = match self.holds.intercept.is_idle() {
            true => Passed::Onward(judged),
            false => {
                let server = self.journal.server(conversation.upstream()).map(|server| &**server);
                self.holds.intercept.look(judged, lane.speaker(conversation), server, lane.since)
            }
        };
        match passed {
            Passed::Onward(judged) => match known_id {
                None => {
                    self.journal.rulings(lane.speaker(conversation), judged.message(), &rulings);
                    match &hidden {
                        None => self.journal.keep(judged.message(), lane),
                        Some(hidden) => self.journal.keep_shown(judged.message(), hidden, lane),
                    }
                    out.to(judged.message().from.other()).push(Outgoing::Message(judged));
                }
                Some(known) => {
                    let came = hidden.map(|hidden| hidden.came(judged.message()));
                    self.journal.keep_held(came.as_ref().unwrap_or(judged.message()), lane);
                    let judged = renamed(judged, &known);
                    self.keep_renamed(judged, out);
                }
            },
            Passed::Held(judged, why, owner) => {
                let event_id = if lane.is_foretold { b"" } else { lane.event_id };
                self.journal.rulings(lane.speaker(conversation), judged.message(), &rulings);
                let came = hidden.map(|hidden| hidden.came(judged.message()));
                self.journal.keep_held(came.as_ref().unwrap_or(judged.message()), Lane { event_id, ..lane });
                let ProxyMessage { sequence, correlated, .. } = *judged.message();
                out.parked.push(ParkedMark { sequence, correlated, is_refused: false });
                let is_changed = came.is_some();
                let parked = Parked::new(Content::Judged(judged), lane.speaker(conversation), lane);
                let spent = self.holds.intercept.spent_on(correlated);
                let deadline = self.holds.limit().map(|limit| parked.since + limit - spent);
                self.holds.park(&mut self.journal, Parked { deadline, why, owner, known_id, is_changed, ..parked });
            }
            Passed::TakesBack(judged, sequence) => {
                self.journal.keep_held(judged.message(), lane);
                let why = format!("it takes back #{sequence}, which was held");
                let outcome =
                    Outcome { what: OutcomeKind::Cancelled, by: String::new(), why, held_ns: 0, edited: None };
                self.journal.outcome(judged.message(), outcome);
                out.withheld += 1;
                if let Some(parked) = self.holds.intercept.take(sequence) {
                    let why = "its sender took it back";
                    unanswered(&mut self.journal, &parked, "", why);
                    self.holds.end(&mut self.journal, parked, OutcomeKind::Cancelled, "", why, Ends::default());
                }
            }
        }
    }

    /// Names a request that is taken back as its receiver knows it.
    fn pass_cancellation(
        &mut self,
        conversation: &mut Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        now: &Id,
        out: &mut Outbox,
    ) {
        match self.governance.judge(conversation, lane, message) {
            Ok((judged, rulings)) => {
                self.journal.rulings(lane.speaker(conversation), judged.message(), &rulings);
                self.journal.keep_held(judged.message(), lane);
                self.keep_renamed(judged.cancelling(now), out);
            }
            Err(stopped) => self.stop(conversation, lane, None, stopped, out),
        }
    }

    /// Sends a message on that is not what was recorded, because of an id.
    fn keep_renamed(&mut self, judged: Judged, out: &mut Outbox) {
        let outcome = Outcome {
            what: OutcomeKind::Forwarded,
            by: String::new(),
            why: "under the id that its receiver knows".into(),
            held_ns: 0,
            edited: Some(judged.message().message.bytes().clone()),
        };
        self.journal.outcome(judged.message(), outcome);
        out.to(judged.message().from.other()).push(Outgoing::Message(judged));
    }
}
