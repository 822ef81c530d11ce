//! Rules, and the answers of people to rules that ask. Each message is judged, and its decision is written down before it
//! counts; the sender of a message that may not go on gets a denial.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use mcp_store::VerdictKind;
use mcp_wire::reply::{self, Denied, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Id, Kind, Message, strict};

use super::holds::request_id;
use super::journal::Journal;
use crate::conversation::{Conversation, Part, Speaker};
use crate::envelope::{Lane, ProxyMessage, Side};
use crate::intercept::DecideError;
use crate::policy::rules::{Denial, Rules};
use crate::policy::{Answered, Answers, Judged, Policy, Question, Refused, Ruling, Rulings, Verdict};

/// What asks for something that lists name, and may be kept from them.
const IS_LISTED: [&str; 4] = ["tools/call", "prompts/get", "resources/read", "resources/subscribe"];

const NEIGHBOUR_DENIED: &str = "another item of the same batch is denied";

#[derive(Default)]
pub struct Governance {
    pub(super) policy: Policy,
    /// The answers of people to rules that ask.
    pub(super) answers: Answers,
    /// The newest message that was judged by other rules than those that count.
    pub(super) judged_otherwise: u64,
}

/// What goes no further, at least for now.
pub(super) enum Stopped {
    Asked(Question),
    Refused(ProxyMessage, Refused),
}

/// What is said of a refused message.
pub(super) struct Told {
    /// For the sender of the message; for an answer, the caller.
    pub answer: Option<Bytes>,
    /// To the client, of calls whose answers came in a batch: the sequences of the calls, and their answers.
    pub closing: Vec<(u64, Bytes)>,
    pub why: String,
}

impl Governance {
    /// From now on these rules count; messages up to `newest` were judged by others.
    pub(super) fn set_rules(&mut self, rules: Arc<Rules>, newest: u64) {
        if self.rules().is_none_or(|known| known.version != rules.version) {
            self.judged_otherwise = newest;
        }
        self.policy.govern(rules);
    }

    pub fn rules(&self) -> Option<&Arc<Rules>> {
        self.policy.rules()
    }

    /// Whether messages are judged, so that they must be whole and clear before any of them leaves.
    #[inline]
    pub fn is_governed(&self) -> bool {
        self.policy.is_governed()
    }

    /// Whether a message whose decision cannot be written must not go on.
    pub(super) fn requires_audit(&self) -> bool {
        self.rules().is_some_and(|rules| rules.audit_required)
    }

    /// The answers that count for longer than once.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// Replaces the answers that are written beside the rules.
    pub fn set_written_answers(&mut self, written: Vec<Answered>) {
        self.answers.set_written(written);
    }

    /// Judges what passes in `leg` as a call of `tool` as the capabilities that it uses through the tool.
    pub fn unwrap_leg(&mut self, leg: &Conversation, tool: &str) {
        self.policy.unwrap(leg.upstream(), &tool.into());
    }

    /// Learns what the server of a leg says of its tools where that was no answer to `tools/list`; `answer` is what it
    /// would have been.
    pub fn learn_tools(&mut self, leg: &Conversation, answer: &[u8]) {
        self.policy.learn_from(leg.upstream(), answer);
    }

    /// Whether a client is not shown a capability that the server of a leg lists, because every use of it would be
    /// denied. `method` is that of the use: `tools/call`, `prompts/get`, `resources/read`.
    pub fn hides(&mut self, leg: &Conversation, method: &str, name: &str, client: &Speaker) -> bool {
        self.policy.hides(leg.upstream(), method, name, client)
    }

    #[inline]
    pub(super) fn judge(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
    ) -> Result<(Judged, Rulings), Box<Stopped>> {
        let speaker = lane.speaker(conversation);
        let verdict = match conversation.part {
            Part::Entrance => self.policy.admit(message, speaker),
            Part::Leg(_) if !self.policy.is_governed() => self.policy.admit(message, speaker),
            _ => self.policy.permit(message, speaker),
        };
        let verdict = match verdict {
            Verdict::Asked(question) => match self.answers.find(&question) {
                Some(answered) => answered.apply(question),
                None => Verdict::Asked(question),
            },
            verdict => verdict,
        };
        match verdict {
            Verdict::Permitted(judged, rulings) => Ok((judged, rulings)),
            Verdict::Asked(question) => Err(Box::new(Stopped::Asked(question))),
            Verdict::Refused(message, refused) => Err(Box::new(Stopped::Refused(message, refused))),
        }
    }

    /// Judges what somebody made of a message. Whoever edits one that rules ask about answers them by
    /// that.
    pub(super) fn judge_edited(
        &mut self,
        journal: &mut Journal,
        speaker: &Speaker,
        message: ProxyMessage,
        edited: Message,
        by: &str,
        held_ns: u64,
    ) -> Result<Judged, DecideError> {
        let message = ProxyMessage { message: edited, ..message };
        let (judged, ruling) = match self.policy.permit(message, speaker) {
            Verdict::Permitted(judged, Rulings::One(ruling)) => (judged, ruling),
            Verdict::Permitted(judged, rulings) => {
                journal.rulings(speaker, judged.message(), &rulings);
                return Ok(judged);
            }
            Verdict::Asked(question) => question.approved(),
            Verdict::Refused(message, refused) => {
                let why = match &refused {
                    Refused::Denied(ruling) => format!("rule \"{}\" denies it", ruling.name()),
                    Refused::Unfit(why) => why.clone(),
                    Refused::Batch(_) => "an item of the batch is denied".into(),
                };
                drop(message);
                return Err(DecideError::Denied(why));
            }
        };
        let message = judged.message();
        journal.decided(speaker, message, &ruling, ("allow", by, Some("edited")), held_ns);
        Ok(judged)
    }

    /// Why a message may not go on whatever is answered: the rules are not those that asked any more, and
    /// deny it.
    pub(super) fn denied_by_now(&mut self, message: &ProxyMessage, speaker: &Speaker) -> Option<String> {
        match self.policy.permit(message.clone(), speaker) {
            Verdict::Permitted(..) | Verdict::Asked(_) => None,
            Verdict::Refused(_, Refused::Denied(ruling)) => Some(format!("rule \"{}\" denies it now", ruling.name())),
            Verdict::Refused(..) => Some("it cannot be judged any more".into()),
        }
    }

    /// What people know the server by.
    pub(super) fn server_name<'a>(&'a self, journal: &'a Journal, message: &ProxyMessage) -> Option<&'a str> {
        let of_gateway = journal.server(message.upstream).map(|server| &**server);
        let by_rules = || self.policy.rules()?.server.as_deref();
        of_gateway.or_else(by_rules).or_else(|| journal.audited_server())
    }

    /// What is said of a refused message, to whoever waits and in the recording, once it is written down.
    /// `answered` are the calls that it answers if it is a batch of the server's.
    pub(super) fn refusal_of(
        &self,
        journal: &mut Journal,
        (speaker, known, answered): (&Speaker, Option<Id>, Vec<(Id, u64)>),
        message: &ProxyMessage,
        refused: &Refused,
    ) -> Told {
        let waits = known.or_else(|| message.message.id());
        match refused {
            Refused::Denied(ruling) => {
                let verdict = ("deny", ruling.decider(), None);
                let noted = journal.decided(speaker, message, ruling, verdict, 0);
                let is_call = matches!(message.message.glance().kind, Kind::Request | Kind::Response);
                let answer = waits.filter(|_| is_call);
                let answer = answer.map(|id| self.denial(journal, speaker, &id, message, ruling, (noted, None)));
                Told { answer, closing: Vec::new(), why: format!("denied by {}", ruling.name()) }
            }
            Refused::Unfit(why) => {
                let ruling = Ruling::unfit();
                let verdict = ("deny", "proxy", Some(why.as_str()));
                journal.decided(speaker, message, &ruling, verdict, 0);
                let garbled = Refusal::UpstreamGarbled { server: None, what: Some(why.clone()) };
                let garbled = journal.naming(message.upstream, &garbled);
                let closing = answered.into_iter().map(|(id, call)| (call, reply::error(&id, &garbled))).collect();
                Told { answer: self.unfit_answer(journal, message, waits, why), closing, why: why.clone() }
            }
            Refused::Batch(items) => self.deny_batch(journal, speaker, message, items, answered),
        }
    }

    /// The error for the sender of a message that cannot be judged; for an answer, its caller gets the error. A readable
    /// id is repeated.
    fn unfit_answer(&self, journal: &Journal, message: &ProxyMessage, waits: Option<Id>, why: &str) -> Option<Bytes> {
        let refusal = Refusal::BadRequest { what: why.into() };
        match (message.from, message.message.glance().kind) {
            (_, Kind::Request) => message.message.id().map(|id| reply::error(&id, &refusal)),
            (Side::Server, Kind::Response | Kind::Error | Kind::OtherJson) if message.correlated.is_some() => {
                let what =
                    strict::check_answer(&message.message).map_or_else(|unfit| unfit.to_string(), |()| why.into());
                let garbled = Refusal::UpstreamGarbled { server: None, what: Some(what) };
                waits.map(|id| reply::error(&id, &journal.naming(message.upstream, &garbled)))
            }
            (Side::Server, _) | (_, Kind::Notification | Kind::Response | Kind::Error) => None,
            (Side::Client, _) => Some(reply::error_without_id(&refusal)),
        }
    }

    /// What the sender of a denied message gets, once that is written down.
    pub(super) fn deny_with(
        &self,
        journal: &mut Journal,
        speaker: &Speaker,
        message: &ProxyMessage,
        ruling: &Ruling,
        (actor, why): (&str, Option<&str>),
        held_ns: u64,
    ) -> Option<Bytes> {
        let noted = journal.decided(speaker, message, ruling, ("deny", actor, why), held_ns);
        let id = request_id(message)?;
        Some(self.denial(journal, speaker, &id, message, ruling, (noted, why)))
    }

    fn denial(
        &self,
        journal: &Journal,
        speaker: &Speaker,
        id: &Id,
        message: &ProxyMessage,
        ruling: &Ruling,
        (noted, why): (Option<u64>, Option<&str>),
    ) -> Bytes {
        let rules = self.policy.rules();
        let (method, tool) = match &ruling.about {
            Some((method, tool)) => (&**method, tool.as_deref()),
            None => ("", None),
        };
        let is_listed = message.from == Side::Client && IS_LISTED.contains(&method);
        if rules.is_some_and(|rules| rules.hide_denied) && ruling.is_hidden && is_listed {
            return reply::unknown(id, method, tool.unwrap_or_default());
        }
        let audit_id = noted.and_then(|number| journal.audit_id(number));
        let of_gateway = journal.server(message.upstream).map(|server| &**server);
        let server = of_gateway.or_else(|| rules?.server.as_deref());
        let denied = Denied {
            rule: ruling.rule.as_deref(),
            message: ruling.message.as_deref(),
            why,
            server: server.or_else(|| journal.audited_server()),
            tool,
            operation: ruling.operation.map(|operation| operation.name()),
            audit_id: audit_id.as_deref(),
        };
        let as_result = rules.is_some_and(|rules| rules.denial == Denial::Result) && method == "tools/call";
        if !as_result {
            return reply::denied(id, &denied);
        }
        let own = message.message.protocol_version();
        let revision = own.as_deref().or(speaker.revision.as_deref()).map(str::as_bytes);
        reply::denied_as_result(id, &denied, Era::of_header(revision) == Era::Modern)
    }

    /// Every request of a refused batch gets its answer: denied ones the reason, the others that they may be sent
    /// again. Calls whose answers came in it get the denial as well.
    fn deny_batch(
        &self,
        journal: &mut Journal,
        speaker: &Speaker,
        batch: &ProxyMessage,
        items: &[(Message, Ruling)],
        answered: Vec<(Id, u64)>,
    ) -> Told {
        let (mut answers, mut told, mut first) = (Vec::new(), HashSet::new(), None);
        for (item, ruling) in items {
            let is_denied = ruling.verdict == VerdictKind::Deny;
            let (actor, why) = match is_denied {
                true => (ruling.decider(), None),
                false => ("rule", Some(NEIGHBOUR_DENIED)),
            };
            let noted = journal.decided_part(speaker, batch, item, ruling, ("deny", actor, why), 0);
            if is_denied && first.is_none() {
                first = Some((ruling, noted));
            }
            // Everything that one call of a proxy tool uses has the id of the call.
            if let Some(id) = item.id().filter(|id| item.kind() == Kind::Request && told.insert(id.clone())) {
                let item = ProxyMessage { message: item.clone(), ..batch.clone() };
                answers.push(match is_denied {
                    true => self.denial(journal, speaker, &id, &item, ruling, (noted, None)),
                    false => self.not_sent(&id, ruling),
                });
            }
        }
        if let Some((ruling, noted)) = first {
            journal.verdict(batch, VerdictKind::Deny, ruling, noted);
        }
        let closing = answered.into_iter().filter_map(|(id, call)| {
            let (ruling, noted) = first?;
            Some((call, self.denial(journal, speaker, &id, batch, ruling, (noted, None))))
        });
        let closing = closing.collect();
        let answer = (!answers.is_empty()).then(|| reply::batch(&answers));
        Told { answer, closing, why: NEIGHBOUR_DENIED.into() }
    }

    /// What the sender of a permitted request gets whose batch was refused.
    fn not_sent(&self, id: &Id, ruling: &Ruling) -> Bytes {
        let is_tool = ruling.about.as_ref().is_some_and(|(method, _)| &**method == "tools/call");
        match is_tool && self.policy.rules().is_some_and(|rules| rules.denial == Denial::Result) {
            // The one revision with batches is of the older ones.
            true => reply::failed_as_result(id, &Refusal::BatchRefused.text(), false),
            false => reply::error(id, &Refusal::BatchRefused),
        }
    }
}

#[cfg(test)]
mod batches;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod readings;
#[cfg(test)]
pub(super) mod tests;
#[cfg(test)]
mod through;
