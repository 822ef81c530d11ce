//! The stage that no message goes around: each is judged, what was decided is written down before it
//! counts, and what may not go on comes back to its sender as a denial.

use std::collections::HashSet;

use bytes::Bytes;
use mcp_store::{Outcome, OutcomeKind, VerdictKind};
use mcp_wire::reply::{self, Denied, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::{Ending, Id, Kind, Message, scan, strict};

use super::holds::{item_ids, request_id};
use super::{Outbox, Outgoing, ParkedMark, Pipeline, Release};
use crate::audit::{Audit, Decided, Recording};
use crate::conversation::{Conversation, Part, Speaker};
use crate::envelope::{Asked, Lane, ProxyMessage, Side};
use crate::intercept::DecideError;
use crate::policy::rules::Denial;
use crate::policy::{Judged, Question, Refused, Ruling, Rulings, Verdict, has_batches};
use crate::record::Recorder;
use crate::resolve::resolve;

/// What asks for something that lists name, and may be kept from them.
const IS_LISTED: [&str; 4] = ["tools/call", "prompts/get", "resources/read", "resources/subscribe"];

/// How a call ended that did not go on because the audit could not be written. It may be written yet, and then says
/// this as well.
pub(super) const NOT_WRITTEN: &str = "stopped";
const NEIGHBOUR_DENIED: &str = "another item of the same batch is denied";

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
    closing: Vec<(u64, Bytes)>,
    pub why: String,
}

/// What was decided about a message by rule, and its number in the audit.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    pub number: u64,
}

impl Pipeline {
    #[inline]
    pub(super) fn judge(
        &mut self,
        talk: &Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
    ) -> Result<(Judged, Rulings), Box<Stopped>> {
        let speaker = lane.speaker(talk);
        let verdict = match talk.part {
            Part::Entrance => self.policy.admit(message, speaker),
            Part::Leg(_) if !self.policy.is_governed() => self.policy.admit(message, speaker),
            _ => self.policy.permit(resolve(message), speaker),
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

    /// Writes down what rules said of a message that goes on.
    pub(super) fn keep_rulings(&mut self, speaker: &Speaker, message: &ProxyMessage, rulings: &Rulings) {
        match rulings {
            Rulings::None => {}
            Rulings::One(ruling) => drop(self.keep_ruling(speaker, message, &message.message, ruling)),
            Rulings::Each(items) => {
                let mut first = None;
                for (item, ruling) in items {
                    let noted = self.keep_ruling(speaker, message, item, ruling);
                    first = first.or(noted.map(|noted| (ruling, noted)));
                }
                if let Some((ruling, noted)) = first {
                    self.keep_verdict(message, VerdictKind::Allow, ruling, Some(noted));
                }
            }
        }
    }

    fn keep_ruling(
        &mut self,
        speaker: &Speaker,
        message: &ProxyMessage,
        said: &Message,
        ruling: &Ruling,
    ) -> Option<Noted> {
        let verdict = ("allow", ruling.decider(), None);
        ruling.is_kept.then(|| self.note_decision(speaker, message, said, ruling, verdict, 0))?
    }

    /// A request has its answer, which the audit is to know.
    #[inline]
    pub(super) fn note_answer(&mut self, request: u64, answer: &ProxyMessage) {
        if let Some(audit) = &mut self.audit {
            let recording = recording(&self.recorder, audit);
            audit.answered(request, recording, answer);
        }
    }

    /// Requests that came in a batch have their answers, in a batch as well or one by one.
    #[cold]
    pub(super) fn note_item_answers(&mut self, answer: &ProxyMessage) {
        let Some(audit) = &mut self.audit else { return };
        let (recording, message) = (recording(&self.recorder, audit), &answer.message);
        match message.glance().kind {
            Kind::Batch => scan::batch_items(message.bytes()).for_each(|span| {
                let item = Message::new(message.bytes().slice(span.range()));
                if item.glance().kind.is_response() {
                    audit.answered_item(recording, answer, &item);
                }
            }),
            kind if kind.is_response() => audit.answered_item(recording, answer, message),
            _ => {}
        }
    }

    /// Writes down a decision, beside the message too unless it is about a part of it. Its number in the
    /// audit comes back.
    pub(super) fn note_decision(
        &mut self,
        speaker: &Speaker,
        message: &ProxyMessage,
        said: &Message,
        ruling: &Ruling,
        (verdict, actor, why): (&'static str, &str, Option<&str>),
        held_ns: u64,
    ) -> Option<Noted> {
        let time_ns = self.clock.recent_ns();
        let version = self.policy.rules().map(|rules| &*rules.version);
        let audit = self.audit.as_mut()?;
        let recording = recording(&self.recorder, audit);
        let operation = ruling.operation.map(|operation| operation.name());
        // What cannot be judged is named as far as it can be read.
        let (method, tool);
        let (method, tool) = match &ruling.about {
            Some((method, tool)) => (&**method, tool.as_deref()),
            None => {
                (method, tool) = (said.method().unwrap_or_default(), said.subject());
                (&*method, tool.as_deref())
            }
        };
        let decided = Decided {
            message,
            method,
            tool,
            speaker,
            server: self.policy.server(message.upstream).map(|server| &**server),
            recording,
            operation,
            verdict,
            rule: ruling.rule.as_deref(),
            rules_version: version.unwrap_or_default(),
            actor,
            why,
            held_ns,
            goes_on: verdict == "allow",
            is_call: said.glance().kind == Kind::Request && message.message.glance().kind == Kind::Request,
            item: match (said.glance().kind, message.message.glance().kind) {
                (Kind::Request, Kind::Batch) => said.id(),
                _ => None,
            },
        };
        for rule in &ruling.observed {
            let observed = Decided {
                verdict: "observe",
                rule: Some(rule),
                // Who decided, and why, is about the decision that follows.
                actor: "rule",
                why: None,
                held_ns: 0,
                goes_on: false,
                item: None,
                ..decided
            };
            audit.decide(time_ns, &observed);
        }
        let noted = Noted { number: audit.decide(time_ns, &decided) };
        if !decided.goes_on {
            // Whoever is told of it can look it up. What could not be written is said elsewhere.
            let _ = audit.flush();
        }
        if std::ptr::eq(said, &message.message)
            && let Some(what) = VerdictKind::from_name(verdict)
        {
            self.keep_verdict(message, what, ruling, Some(noted));
        }
        Some(noted)
    }

    /// Keeps a message from going on.
    /// `known` is the id under which an answer is waited for, if it has another.
    pub(super) fn stop(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        known: Option<Id>,
        stopped: Box<Stopped>,
        out: &mut Outbox,
    ) {
        match *stopped {
            Stopped::Asked(question) => self.ask(talk, lane, question, out),
            Stopped::Refused(message, refused) => self.refuse(talk, lane, (message, known), &refused, out),
        }
    }

    /// Tells the sender of a message why it went nowhere; of an answer, whoever waits for it.
    fn refuse(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        (message, known): (ProxyMessage, Option<Id>),
        refused: &Refused,
        out: &mut Outbox,
    ) {
        let message = match refused {
            Refused::Denied(ruling) if self.is_answered_as_unknown(talk, &message, ruling) => {
                match self.send_as_unknown(talk, lane, message, ruling, out) {
                    Some(message) => message,
                    None => return,
                }
            }
            _ => message,
        };
        let is_batch = message.message.glance().kind == Kind::Batch && message.from == Side::Server;
        let answered = if is_batch { talk.pending.take_answered_together() } else { Vec::new() };
        let told = self.refusal_of((lane.speaker(talk), known, answered), &message, refused);
        self.keep_held(&message, lane);
        let closing = self.close_calls(talk, lane, told.closing, out);
        self.end_refused(lane, message, (told.answer, closing), &told.why, out);
    }

    /// Answers the calls whose answers came in a refused batch. The last answer comes back: it takes the place of
    /// the batch. All of them share that place where batches are read, or an HTTP exchange carries one message.
    fn close_calls(
        &mut self,
        talk: &Conversation,
        lane: Lane<'_>,
        mut closing: Vec<(u64, Bytes)>,
        out: &mut Outbox,
    ) -> Option<Outgoing> {
        let is_one = lane.asked.is_some_and(|asked| closing.first().is_some_and(|(call, _)| *call == asked.sequence));
        if is_one && !has_batches(lane.speaker(talk)) {
            // Others wait in exchanges of their own.
            closing.truncate(1);
        }
        let (first, last) = (closing.first()?.0, closing.pop()?);
        if closing.is_empty() {
            return Some(self.compose(talk.number(), lane, Side::Client, Some(last.0), last.1));
        }
        if lane.exchange > 0 || has_batches(lane.speaker(talk)) {
            let answers: Vec<Bytes> = closing.into_iter().chain([last]).map(|(_, answer)| answer).collect();
            return Some(self.compose(talk.number(), lane, Side::Client, Some(first), reply::batch(&answers)));
        }
        for (call, answer) in closing {
            let answer = self.compose(talk.number(), lane, Side::Client, Some(call), answer);
            out.to_client.push(answer);
        }
        Some(self.compose(talk.number(), lane, Side::Client, Some(last.0), last.1))
    }

    /// What is said of a refused message, to whoever waits and in the recording, once it is written down.
    /// `answered` are the calls that it answers if it is a batch of the server's.
    pub(super) fn refusal_of(
        &mut self,
        (speaker, known, answered): (&Speaker, Option<Id>, Vec<(Id, u64)>),
        message: &ProxyMessage,
        refused: &Refused,
    ) -> Told {
        let waits = known.or_else(|| message.message.id());
        match refused {
            Refused::Denied(ruling) => {
                let verdict = ("deny", ruling.decider(), None);
                let noted = self.note_decision(speaker, message, &message.message, ruling, verdict, 0);
                let is_call = matches!(message.message.glance().kind, Kind::Request | Kind::Response);
                let answer = waits.filter(|_| is_call);
                let answer = answer.map(|id| self.denial(speaker, &id, message, ruling, (noted, None)));
                Told { answer, closing: Vec::new(), why: format!("denied by {}", ruling.name()) }
            }
            Refused::Unfit(why) => {
                let ruling = Ruling::unfit();
                let verdict = ("deny", "proxy", Some(why.as_str()));
                self.note_decision(speaker, message, &message.message, &ruling, verdict, 0);
                let garbled = Refusal::UpstreamGarbled { server: None, what: Some(why.clone()) };
                let garbled = self.named(message.upstream, &garbled);
                let closing = answered.into_iter().map(|(id, call)| (call, reply::error(&id, &garbled))).collect();
                Told { answer: self.unfit_answer(message, waits, why), closing, why: why.clone() }
            }
            Refused::Batch(items) => self.deny_batch(speaker, message, items, answered),
        }
    }

    /// The error for the sender of a message that cannot be judged; for an answer, its caller gets the error. A readable
    /// id is repeated.
    fn unfit_answer(&self, message: &ProxyMessage, waits: Option<Id>, why: &str) -> Option<Bytes> {
        let refusal = Refusal::BadRequest { what: why.into() };
        match (message.from, message.message.glance().kind) {
            (_, Kind::Request) => message.message.id().map(|id| reply::error(&id, &refusal)),
            (Side::Server, Kind::Response | Kind::Error | Kind::OtherJson) if message.correlated.is_some() => {
                let what =
                    strict::check_answer(&message.message).map_or_else(|unfit| unfit.to_string(), |()| why.into());
                let garbled = Refusal::UpstreamGarbled { server: None, what: Some(what) };
                waits.map(|id| reply::error(&id, &self.named(message.upstream, &garbled)))
            }
            (Side::Server, _) | (_, Kind::Notification | Kind::Response | Kind::Error) => None,
            (Side::Client, _) => Some(reply::error_without_id(&refusal)),
        }
    }

    /// What the sender of a denied message gets, once that is written down.
    pub(super) fn deny_with(
        &mut self,
        speaker: &Speaker,
        message: &ProxyMessage,
        ruling: &Ruling,
        actor: &str,
        why: Option<&str>,
        held_ns: u64,
    ) -> Option<Bytes> {
        let noted = self.note_decision(speaker, message, &message.message, ruling, ("deny", actor, why), held_ns);
        let id = request_id(message)?;
        Some(self.denial(speaker, &id, message, ruling, (noted, why)))
    }

    fn denial(
        &self,
        speaker: &Speaker,
        id: &Id,
        message: &ProxyMessage,
        ruling: &Ruling,
        (noted, why): (Option<Noted>, Option<&str>),
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
        let audit_id = noted.zip(self.audit.as_ref()).map(|(noted, audit)| audit.id(noted.number));
        let of_gateway = self.policy.server(message.upstream).map(|server| &**server);
        let server = of_gateway.or_else(|| rules?.server.as_deref());
        let denied = Denied {
            rule: ruling.rule.as_deref(),
            message: ruling.message.as_deref(),
            why,
            server: server.or_else(|| self.audit.as_ref()?.server()),
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
        &mut self,
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
            let noted = self.note_decision(speaker, batch, item, ruling, ("deny", actor, why), 0);
            if is_denied && first.is_none() {
                first = Some((ruling, noted));
            }
            // Everything that one call of a proxy tool uses has the id of the call.
            if let Some(id) = item.id().filter(|id| item.kind() == Kind::Request && told.insert(id.clone())) {
                let item = ProxyMessage { message: item.clone(), ..batch.clone() };
                answers.push(match is_denied {
                    true => self.denial(speaker, &id, &item, ruling, (noted, None)),
                    false => self.not_sent(&id, ruling),
                });
            }
        }
        if let Some((ruling, noted)) = first {
            self.keep_verdict(batch, VerdictKind::Deny, ruling, noted);
        }
        let closing = answered.into_iter().filter_map(|(id, call)| {
            let (ruling, noted) = first?;
            Some((call, self.denial(speaker, &id, batch, ruling, (noted, None))))
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

    /// Ends the way of a message that is not parked, but goes nowhere either. Transports take it for
    /// one that was parked and came free at once. `closing` goes on in its place.
    pub(super) fn end_refused(
        &mut self,
        lane: Lane<'_>,
        message: ProxyMessage,
        (answer, closing): (Option<Bytes>, Option<Outgoing>),
        why: &str,
        out: &mut Outbox,
    ) {
        let is_told = answer.is_some() || closing.is_some();
        let what = if is_told { OutcomeKind::Refused } else { OutcomeKind::Dropped };
        let outcome = Outcome { what, by: "rules".into(), why: why.into(), held_ns: 0, edited: None };
        self.keep_outcome(&message, outcome);
        let ProxyMessage { sequence, conversation, from, correlated, .. } = message;
        let (request, items) = (request_id(&message), item_ids(&message));
        let kind = message.message.glance().kind;
        // One that says nothing may answer, too.
        let is_answer = kind.is_response() || kind == Kind::OtherJson && correlated.is_some();
        let (mut onward, mut back) = (closing, None);
        match answer {
            // Whoever waits for an answer of the server's is told that it cannot have it.
            Some(answer) if is_answer => {
                onward = Some(self.compose(conversation, lane, from.other(), correlated, answer));
            }
            Some(answer) => {
                let answered = request.is_some().then_some(sequence);
                back = Some(self.compose(conversation, lane, from, answered, answer));
            }
            None => {}
        }
        out.parked.push(ParkedMark { sequence, correlated, is_refused: back.is_some() });
        self.released.push(Release {
            sequence,
            conversation,
            from,
            onward,
            back,
            unasks: None,
            request,
            items,
            is_edited: false,
            raw_headers: None,
            is_taken_back: false,
            is_discarded: false,
        });
    }

    /// Refuses the message that opens an HTTP exchange for what stands beside it there. What its sender
    /// is told comes back.
    pub fn refuse_opening(
        &mut self,
        talk: &mut Conversation,
        lane: Lane<'_>,
        message: Message,
        refusal: &Refusal,
        out: &mut Outbox,
    ) -> Bytes {
        let id = message.id().filter(|_| message.glance().kind == Kind::Request);
        let asked = id.clone().map(|id| Asked { id, sequence: self.sequence + 1 });
        let now_ns = self.clock.now_ns();
        let message = self.stamp(talk, Side::Client, asked.as_ref(), (message, Ending::Counted, false), now_ns);
        let (speaker, why) = (lane.speaker(talk), refusal.text());
        self.note_decision(speaker, &message, &message.message, &Ruling::unfit(), ("deny", "proxy", Some(&why)), 0);
        self.keep_held(&message, lane);
        let outcome = Outcome { what: OutcomeKind::Refused, by: "rules".into(), why, held_ns: 0, edited: None };
        self.keep_outcome(&message, outcome);
        let answer = id.map_or_else(|| reply::error_without_id(refusal), |id| reply::error(&id, refusal));
        let answered = asked.map(|asked| asked.sequence);
        let answer = self.compose(message.conversation, lane, Side::Client, answered, answer);
        for id in item_ids(&message) {
            talk.pending.take_very(Side::Client, &id, message.sequence);
        }
        self.seal(lane, out);
        answer.frame().bytes.clone()
    }

    /// Judges what somebody made of a message. Whoever edits one that rules ask about answers them by
    /// that.
    pub(super) fn judge_edited(
        &mut self,
        speaker: &Speaker,
        message: ProxyMessage,
        edited: Message,
        by: &str,
        held_ns: u64,
    ) -> Result<Judged, DecideError> {
        let message = ProxyMessage { message: edited, ..message };
        let (judged, ruling) = match self.policy.permit(resolve(message), speaker) {
            Verdict::Permitted(judged, Rulings::One(ruling)) => (judged, ruling),
            Verdict::Permitted(judged, rulings) => {
                self.keep_rulings(speaker, judged.message(), &rulings);
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
        self.note_decision(speaker, message, &message.message, &ruling, ("allow", by, Some("edited")), held_ns);
        Ok(judged)
    }

    /// A call that was allowed does not go on after all.
    pub(super) fn note_ended(&mut self, sequence: u64, status: &'static str) {
        let time_ns = self.clock.recent_ns();
        if let Some(audit) = &mut self.audit {
            let recording = recording(&self.recorder, audit);
            audit.ended(sequence, status, recording, time_ns);
        }
    }

    /// Nothing that is under way in a conversation comes back.
    pub(super) fn note_lost(&mut self, conversation: u32) {
        let time_ns = self.clock.recent_ns();
        if let Some(audit) = &mut self.audit {
            let recording = recording(&self.recorder, audit);
            audit.lost(conversation, recording, time_ns);
        }
    }

    /// Writes the audit before anything leaves. What it could not be written for stays, if that was asked
    /// for.
    pub(super) fn seal(&mut self, lane: Lane<'_>, out: &mut Outbox) {
        let Some(audit) = self.audit.as_mut().filter(|audit| audit.is_unsealed()) else { return };
        let Err(unsealed) = audit.seal() else { return };
        if !self.policy.rules().is_some_and(|rules| rules.audit_required) {
            return;
        }
        // What a breakpoint holds would go on later, when nobody looks at the audit any more.
        for sequence in &unsealed {
            if let Some(parked) = self.intercept.take(*sequence) {
                self.end_unaudited(parked);
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
                self.note_ended(message.sequence, NOT_WRITTEN);
                let answer = request_id(&message).map(|id| reply::error(&id, &Refusal::NotAudited)).or_else(|| {
                    let ids = item_ids(&message);
                    let answers: Vec<Bytes> = ids.iter().map(|id| reply::error(id, &Refusal::NotAudited)).collect();
                    (!answers.is_empty()).then(|| reply::batch(&answers))
                });
                self.end_refused(lane, message, (answer, None), "the audit could not be written", out);
            }
        }
    }
}

/// The recording that messages are found in; where there is none, the run.
pub(super) fn recording(recorder: &Recorder, audit: &Audit) -> Recording {
    let session = recorder.current().map_or_else(|| audit.instance(), |(header, _)| header.id);
    Recording { session, earlier: recorder.earlier() }
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
