//! Messages that a rule wants somebody asked about: who is there to be asked, and what comes of the
//! answer. Whatever goes wrong, what nobody approved does not go on.

mod requests;
mod rounds;
mod words;

use std::sync::LazyLock;

use bytes::Bytes;
use mcp_store::{OutcomeKind, VerdictKind};
use mcp_wire::Kind;
use mcp_wire::elicit::{self, ASKED_BY_US, Said};
use mcp_wire::reply::{self, Refusal};
use mcp_wire::revision::Era;
use mcp_wire::scan::Word;

use super::holds::{Ends, request_id};
use super::judge::NOT_WRITTEN;
use super::{Outbox, ParkedMark, Pipeline};
use crate::conversation::{Conversation, Part, Speaker};
use crate::envelope::{Lane, ProxyMessage, Side, Upstream};
use crate::intercept::{Content, DecideError, Held, Lasting, Parked, Why, edited};
use crate::policy::rules::Permission;
use crate::policy::{Answered, Answers, Question, Refused, Verdict};
pub(super) use rounds::Rounds;

/// Who decides when somebody was there and did not.
pub const TIMEOUT: &str = "timeout";
/// And when nobody was.
pub const NOBODY: &str = "nobody";
/// And when whoever uses the client did.
const CLIENT: &str = "client";

/// Whatever answers us has this in it.
static OURS: LazyLock<Word> = LazyLock::new(|| Word::new(ASKED_BY_US.as_bytes()));

impl Pipeline {
    /// How many watch who could answer, besides the face that has the lease.
    pub fn set_watchers(&mut self, watchers: usize) {
        self.watchers = watchers;
        if watchers == 0 {
            self.leave_questions();
        }
    }

    /// Whether anybody could answer who is asked.
    pub fn has_somebody(&self) -> bool {
        self.intercept.has_face() || self.watchers > 0
    }

    pub(super) fn ask(&mut self, conversation: &Conversation, lane: Lane<'_>, question: Question, out: &mut Outbox) {
        self.journal.verdict(question.message(), VerdictKind::Ask, &question.ruling, None);
        self.journal.keep_held(question.message(), lane);
        self.put(conversation, lane, question, false, out);
    }

    /// Parks a message that is recorded until somebody answers, if anybody can. Where nobody else is
    /// there, its client is asked.
    fn put(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        question: Question,
        is_changed: bool,
        out: &mut Outbox,
    ) {
        let has_room = self.intercept.has_room(question.message());
        let limit = question.ruling.timeout.or(self.intercept.limit());
        let way = if self.has_somebody() { None } else { way_to_client(conversation, lane, question.message()) };
        if way == Some(Way::Answer) {
            return self.ask_by_round(conversation, lane, question, limit, out);
        }
        let asks = way == Some(Way::Request);
        if !has_room || !(self.has_somebody() || asks || question.ruling.timeout.is_some()) {
            let why = if has_room { Why::NobodyThere.as_str() } else { "too much is held already" };
            let (message, ruling) = question.into_parts();
            let answer = self.deny_with(lane.speaker(conversation), &message, &ruling, NOBODY, Some(why), 0);
            return self.end_refused(lane, message, (answer, None), why, out);
        }
        let ProxyMessage { sequence, correlated, .. } = *question.message();
        out.parked.push(ParkedMark { sequence, correlated, is_refused: false });
        let asking = asks.then(|| self.ask_by_request(lane, &question, out));
        let parked = Parked::new(Content::Question(Box::new(question)), lane.speaker(conversation), lane);
        let deadline = limit.map(|limit| parked.since + limit);
        self.park(Parked { deadline, is_changed, asking, ..parked });
    }

    /// What people know the server by.
    fn server_name(&self, message: &ProxyMessage) -> Option<&str> {
        let of_gateway = self.journal.server(message.upstream).map(|server| &**server);
        let by_rules = || self.policy.rules()?.server.as_deref();
        of_gateway.or_else(by_rules).or_else(|| self.journal.audited_server())
    }

    /// Takes what a client says to us.
    pub(super) fn hear(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        out: &mut Outbox,
    ) {
        match message.message.glance().kind {
            Kind::Request => self.pass_round(conversation, lane, message, out),
            _ => self.take_answer(lane, message, out),
        }
    }

    /// Whether a message is an answer to what we asked.
    pub(super) fn hears(&self, message: &ProxyMessage) -> bool {
        message.from == Side::Client
            && self.policy.is_governed()
            && match message.message.glance().kind {
                Kind::Request => self.is_our_round(&message.message),
                Kind::Response | Kind::Error => self.is_for_us(message),
                _ => false,
            }
    }

    pub(super) fn approve(
        &mut self,
        sequence: u64,
        lasting: Lasting,
        changed: Option<Bytes>,
        by: &str,
    ) -> Result<(), DecideError> {
        let (parked, _) = self.question(sequence)?;
        if changed.is_some() && lasting != Lasting::Once {
            return Err(DecideError::OnlyOnce(sequence, "what comes next is not edited"));
        }
        let answered = self.lasting_answer(sequence, lasting, Permission::Allow, by)?;
        if let Some(raw) = changed {
            let (message, speaker) = (parked.message().clone(), parked.speaker.clone());
            let held_ns = parked.held_ns();
            let judged = self.judge_edited(&speaker, message, edited(&raw, false)?, by, held_ns)?;
            let Some(parked) = self.intercept.take(sequence) else { return Ok(()) };
            if self.is_sealed() {
                self.end_edited(parked, judged, false, by, "approved");
            } else {
                self.end_unaudited(parked);
            }
        } else if let Some(denied) = self.denied_by_now(&parked.message().clone(), &parked.speaker.clone()) {
            return Err(DecideError::Denied(denied));
        } else if let Some(parked) = self.intercept.take(sequence) {
            self.end_approved(parked, by, "approved");
        }
        self.keep_lasting(answered, lasting);
        Ok(())
    }

    fn question(&self, sequence: u64) -> Result<(&Parked, &Question), DecideError> {
        let parked = self.intercept.get(sequence).ok_or(DecideError::NotHeld(sequence))?;
        Ok((parked, parked.question().ok_or(DecideError::NotAsked(sequence))?))
    }

    /// What is remembered of an answer to `sequence` that counts for longer than once.
    pub fn lasting_answer(
        &self,
        sequence: u64,
        lasting: Lasting,
        permission: Permission,
        by: &str,
    ) -> Result<Option<Answered>, DecideError> {
        let (said, ruling) = match self.rounds.get(sequence) {
            Some(asked) => asked,
            None => {
                let (parked, question) = self.question(sequence)?;
                (parked.message(), &question.ruling)
            }
        };
        if lasting == Lasting::Once {
            return Ok(None);
        }
        let answered = Answered::about(&said.message, ruling, permission, by);
        answered.map(Some).ok_or(DecideError::OnlyOnce(sequence, "what it is about has too long a name"))
    }

    fn keep_lasting(&mut self, answered: Option<Answered>, lasting: Lasting) {
        match (answered, lasting) {
            (Some(answered), Lasting::Rule) => self.answers.keep_written(answered),
            (Some(answered), _) => self.answers.keep(answered),
            (None, _) => return,
        }
        self.settle_alike();
    }

    /// Does with questions that wait what an answer that lasts says of them.
    fn settle_alike(&mut self) {
        for sequence in self.intercept.parked_where(|parked| parked.question().is_some()) {
            let Ok((_, question)) = self.question(sequence) else { continue };
            let Some(answered) = self.answers.find(question) else { continue };
            let Some(parked) = self.intercept.take(sequence) else { continue };
            match answered.permission {
                Permission::Allow => self.end_approved(parked, &answered.by, "approved with another"),
                Permission::Deny => self.end_denied(parked, &answered.by, None),
            }
        }
    }

    /// Why a message may not go on whatever is answered: the rules are not those that asked any more, and
    /// deny it.
    fn denied_by_now(&mut self, message: &ProxyMessage, speaker: &Speaker) -> Option<String> {
        match self.policy.permit(message.clone(), speaker) {
            Verdict::Permitted(..) | Verdict::Asked(_) => None,
            Verdict::Refused(_, Refused::Denied(ruling)) => Some(format!("rule \"{}\" denies it now", ruling.name())),
            Verdict::Refused(..) => Some("it cannot be judged any more".into()),
        }
    }

    fn end_approved(&mut self, parked: Parked, by: &str, why: &str) {
        if let Some(denied) = self.denied_by_now(parked.message(), &parked.speaker) {
            return self.end_denied(parked, by, Some(&denied));
        }
        let held_ns = parked.held_ns();
        let Parked { content: Content::Question(question), ref speaker, .. } = parked else { return };
        let (judged, ruling) = question.approved();
        let message = judged.message();
        self.journal.decided(speaker, message, &message.message, &ruling, ("allow", by, None), held_ns);
        let parked = Parked { content: Content::Judged(judged), ..parked };
        if !self.is_sealed() {
            return self.end_unaudited(parked);
        }
        self.end(parked, OutcomeKind::Forwarded, by, why, Ends { goes_on: true, ..Ends::default() });
    }

    /// Whether what was decided is on disk, or need not be.
    pub(super) fn is_sealed(&mut self) -> bool {
        self.journal.is_sealed() || !self.policy.rules().is_some_and(|rules| rules.audit_required)
    }

    pub(super) fn end_unaudited(&mut self, parked: Parked) {
        self.journal.ended(parked.message().sequence, NOT_WRITTEN);
        let answer = request_id(parked.message()).map(|id| reply::error(&id, &Refusal::NotAudited));
        let why = "the audit could not be written";
        self.end(parked, OutcomeKind::Refused, "", why, Ends { answer, ..Ends::default() });
    }

    pub(super) fn deny(
        &mut self,
        sequence: u64,
        lasting: Lasting,
        message: Option<String>,
        by: &str,
    ) -> Result<(), DecideError> {
        let answered = self.lasting_answer(sequence, lasting, Permission::Deny, by)?;
        self.keep_lasting(answered, lasting);
        if let Some(parked) = self.intercept.take(sequence) {
            self.end_denied(parked, by, message.as_deref());
        }
        Ok(())
    }

    fn end_denied(&mut self, mut parked: Parked, by: &str, why: Option<&str>) {
        let held_ns = parked.held_ns();
        let Content::Question(question) = &mut parked.content else { return };
        let ruling = question.ruling.clone();
        let answer = self.deny_with(&parked.speaker, parked.message(), &ruling, by, why, held_ns);
        let what = if answer.is_some() { OutcomeKind::Refused } else { OutcomeKind::Dropped };
        self.end(parked, what, by, why.unwrap_or("denied"), Ends { answer, ..Ends::default() });
    }

    /// Nobody answered in time.
    pub(super) fn time_out(&mut self, sequence: u64) {
        let Some(parked) = self.intercept.take(sequence) else { return };
        let somebody = self.has_somebody() || parked.asking.is_some();
        let on_timeout = parked.question().map(|question| question.ruling.on_timeout);
        match on_timeout {
            Some(Permission::Allow) if somebody => self.end_approved(parked, TIMEOUT, "nobody answered in time"),
            _ if somebody => self.end_denied(parked, TIMEOUT, Some("nobody answered in time")),
            _ => self.end_denied(parked, NOBODY, Some(Why::NobodyThere.as_str())),
        }
    }

    /// Something would have let a message go on that a rule asks about.
    pub(super) fn end_question(&mut self, parked: Parked, why: &str) {
        self.end_denied(parked, NOBODY, Some(why));
    }

    /// Whoever could answer may have left: what nobody else is to answer is denied.
    pub(super) fn leave_questions(&mut self) {
        if self.has_somebody() {
            return;
        }
        let is_left = |parked: &Parked| {
            parked.asking.is_none() && parked.question().is_some_and(|question| question.ruling.timeout.is_none())
        };
        for sequence in self.intercept.parked_where(is_left) {
            if let Some(parked) = self.intercept.take(sequence) {
                self.end_denied(parked, NOBODY, Some(Why::NobodyThere.as_str()));
            }
        }
    }

    /// A question ends without an answer to it, so that what it is about was not permitted.
    pub(super) fn note_unanswered(&mut self, parked: &Parked, by: &str, why: &str) {
        if let Some(question) = parked.question() {
            let (message, ruling) = (question.message(), question.ruling.clone());
            let actor = if by.is_empty() { NOBODY } else { by };
            let verdict = ("deny", actor, Some(why));
            self.journal.decided(&parked.speaker, message, &message.message, &ruling, verdict, parked.held_ns());
        }
    }

    /// Has somebody told of each question that waits for an answer. They may not keep us waiting.
    pub fn tell_questions(&mut self, tell: impl Fn(Held) + Send + 'static) {
        self.on_question = Some(Box::new(tell));
    }

    /// What was answered for longer than once.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }

    /// An answer that counts from now on, as if somebody had just given it.
    pub fn keep_answer(&mut self, answered: Answered) {
        self.answers.keep(answered);
    }

    /// The answers that are written beside the rules are these, whatever they were before.
    pub fn set_written_answers(&mut self, written: Vec<Answered>) {
        self.answers.set_written(written);
    }
}

/// How a client is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// In the answer to its call.
    Answer,
    /// By a request, while its call waits.
    Request,
}

/// How the client that sent a message can be asked about it, if it can.
fn way_to_client(conversation: &Conversation, lane: Lane<'_>, message: &ProxyMessage) -> Option<Way> {
    let said = &message.message;
    let is_leg = matches!(conversation.part, Part::Leg(_));
    if message.from == Side::Server || said.glance().kind != Kind::Request {
        return None;
    }
    let version = said.protocol_version();
    match Era::of_header(version.as_deref().map(str::as_bytes)) {
        // A gateway may have clients of another era than this server is of; it says whether it can pass that on.
        Era::Modern if is_leg && !lane.can_ask => None,
        Era::Modern => elicit::can_be_answered_with_form(said).then_some(Way::Answer),
        Era::Legacy => (!is_leg && lane.can_ask && conversation.shows_forms()).then_some(Way::Request),
    }
}

/// What whoever uses a client permits for longer than once, which counts in its conversation. One with a server
/// of a gateway is not only its own.
fn clients_answer(question: &Question) -> (u32, Option<Answered>) {
    let said = question.message();
    let is_its_own = said.upstream == Upstream::ONLY;
    let answered = || Answered::about(&said.message, &question.ruling, Permission::Allow, CLIENT);
    (said.conversation, is_its_own.then(answered).flatten())
}

/// What a caller is told whose user did not permit a call.
fn why_not(said: Said) -> &'static str {
    match said {
        Said::Nothing => "whoever uses the client did not decide",
        Said::Nonsense => "the client gave no clear answer",
        Said::Deny | Said::AllowOnce | Said::AllowForSession => "whoever uses the client said no",
    }
}

#[cfg(test)]
mod tests;
