//! How a pipeline stands, for whoever asks.

use std::sync::Arc;
use std::time::Duration;

use mcp_wire::Message;

use super::Pipeline;
use crate::conversation::Speaker;
use crate::intercept::{Breakpoint, Held, Mode, OnDetach, Owner};
use crate::policy::explain::Judging;
use crate::policy::rules::Rules;

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

impl Pipeline {
    pub fn status(&self) -> Status {
        let (mode, mode_owner) = self.holds.intercept.mode();
        Status {
            mode,
            mode_owner,
            breakpoints: self.holds.intercept.breakpoints().to_vec(),
            held: self.holds.intercept.held().into_iter().chain(self.questions.rounds.held()).collect(),
            hold_limit: self.holds.intercept.limit(),
            on_detach: self.holds.intercept.on_detach(),
            has_face: self.holds.intercept.has_face(),
            watchers: self.questions.watchers,
            sequence: self.journal.sequence(),
            conversations: self.clients.conversations().max(1),
            connected: self.clients.connected(),
            clients: self.clients.newest(),
            rules: self.governance.policy.rules().cloned(),
            is_unwritten: self.journal.is_unwritten(),
        }
    }

    /// What to know of the rules and of people's answers to judge such a message again; `None` if nothing
    /// is judged. `server` is that of a gateway.
    pub fn judging(&self, message: &Message, conversation: u32, server: Option<&str>) -> Option<Judging> {
        let upstream = server.and_then(|server| self.governance.policy.upstream_named(server)).unwrap_or_default();
        let server = self.journal.server(upstream);
        let (method, subject) = (message.method().unwrap_or_default(), message.subject());
        Some(Judging {
            rules: Arc::clone(self.governance.policy.rules()?),
            judged_otherwise: self.governance.judged_otherwise,
            annotations: self.governance.policy.annotations(upstream, &method, subject.as_deref()),
            answers: self
                .governance
                .answers
                .about(conversation, server.map(|server| &**server), &method, subject.as_deref())
                .cloned()
                .collect(),
            server: server.cloned(),
        })
    }
}
