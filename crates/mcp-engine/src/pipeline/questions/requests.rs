//! Questions to clients of the older revisions, where a server sends requests, and so do we. The call
//! stays parked meanwhile. What the client answers is for us; its server sees nothing of either.

use mcp_store::{Outcome, OutcomeKind};
use mcp_wire::elicit::{self, ASKED_BY_US, Said};
use mcp_wire::{Id, Kind, scan};
use uuid::Uuid;

use super::super::Outbox;
use super::super::decisions::Decisions;
use super::{CLIENT, NOBODY, words};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::{Asking, DecideError, Lasting, Why};
use crate::policy::Question;

impl Decisions<'_> {
    /// Sends a client the question whether its call may go on.
    pub(super) fn ask_by_request(&mut self, lane: Lane<'_>, question: &Question, out: &mut Outbox) -> Asking {
        let message = question.message();
        let text =
            words::question(&message.message, &question.ruling, self.governance.server_name(self.journal, message));
        let number = self.questions.next_number();
        // Clients that share a conversation, because nothing tells them apart, cannot answer for each other.
        let secret = Uuid::new_v4().simple();
        let id = Id::Text(format!("{ASKED_BY_US}-{number}-{secret}").into());
        let request = elicit::request(&id, &text);
        let asked = self.journal.compose(message.place(), lane, Side::Client, None, request);
        let sequence = asked.sequence();
        out.to_client.push(asked);
        Asking { id, sequence }
    }

    /// Whether a client answers us, or what it answers was asked by nobody.
    pub(super) fn is_for_us(&self, answer: &ProxyMessage) -> bool {
        let is_of_our_kind = |id: &Id| matches!(id, Id::Text(id) if id.strip_prefix(ASKED_BY_US).is_some_and(|rest| rest.starts_with('-')));
        let Some(id) = answer.message.id().filter(is_of_our_kind) else { return false };
        // The server may be another proxy, with questions of its own.
        self.asked_about(answer.conversation, &id).is_some() || answer.correlated.is_none()
    }

    /// The parked call that a client was asked about under this id.
    fn asked_about(&self, conversation: u32, id: &Id) -> Option<u64> {
        let is_meant = |asking: &Asking| asking.id == *id;
        let found = self.holds.intercept.parked_where(|parked| {
            parked.message().conversation == conversation && parked.asking.as_ref().is_some_and(is_meant)
        });
        found.first().copied()
    }

    /// Takes what a client answers.
    pub(super) fn take_answer(&mut self, lane: Lane<'_>, mut answer: ProxyMessage, out: &mut Outbox) {
        out.withheld += 1;
        let id = answer.message.id();
        let Some(about) = id.and_then(|id| self.asked_about(answer.conversation, &id)) else {
            return self.keep_unheard(lane, &answer, "it answers nothing that is asked".into());
        };
        // It is answered, so it need not be taken back.
        let asking = self.holds.intercept.stop_asking(about);
        answer.correlated = asking.map(|asking| asking.sequence);
        self.keep_unheard(lane, &answer, format!("it answers what is asked about #{about}"));
        let done = match self.read_answer(&answer) {
            Said::AllowOnce => self.approve(about, Lasting::Once, None, CLIENT),
            Said::AllowForSession => self.approve_for_client(about),
            no => self.deny(about, Lasting::Once, Some(super::why_not(no).into()), CLIENT),
        };
        if let Err(error) = done {
            // Other rules count by now, and deny it whatever is answered.
            let _ = self.deny(about, Lasting::Once, Some(error.to_string()), CLIENT);
        }
    }

    /// Lets a call go on, and the like of it in the same conversation.
    fn approve_for_client(&mut self, about: u64) -> Result<(), DecideError> {
        let question = self.holds.intercept.get(about).and_then(|parked| parked.question());
        let answer = question.map(super::clients_answer);
        self.approve(about, Lasting::Once, None, CLIENT)?;
        if let Some((conversation, Some(answered))) = answer {
            self.governance.answers.keep_in(conversation, answered);
        }
        Ok(())
    }

    fn read_answer(&self, answer: &ProxyMessage) -> Said {
        let said = &answer.message;
        if self.governance.policy.unfit(answer).is_some() || said.kind() != Kind::Response {
            return Said::Nonsense;
        }
        scan::member_at(said.bytes(), ["result"]).map_or(Said::Nonsense, |span| elicit::said(said.slice(span)))
    }

    /// Records a message that is for us, or for nobody.
    fn keep_unheard(&mut self, lane: Lane<'_>, message: &ProxyMessage, why: String) {
        self.journal.keep_held(message, lane);
        let outcome = Outcome { what: OutcomeKind::Dropped, by: "rules".into(), why, held_ns: 0, edited: None };
        self.journal.outcome(message, outcome);
    }

    /// A client says nothing more, so it does not answer what it was asked.
    pub fn client_is_silent(&mut self, conversation: u32) {
        let is_asked = self
            .holds
            .intercept
            .parked_where(|parked| parked.message().conversation == conversation && parked.asking.is_some());
        for sequence in is_asked {
            self.holds.intercept.stop_asking(sequence);
            if let Some(parked) = self.holds.intercept.take(sequence) {
                self.end_denied(parked, NOBODY, Some(Why::ClientGone.as_str()));
            }
        }
    }
}
