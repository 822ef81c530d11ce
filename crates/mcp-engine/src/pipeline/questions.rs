//! Messages that a rule wants somebody asked about: who is there to be asked, and what comes of the
//! answer. Whatever goes wrong, what nobody approved does not go on.

mod requests;
mod rounds;
mod words;

use std::sync::LazyLock;

use mcp_store::VerdictKind;
use mcp_wire::Kind;
use mcp_wire::elicit::{self, ASKED_BY_US, Said};
use mcp_wire::revision::Era;
use mcp_wire::scan::Word;

use super::decisions::Decisions;
use super::{Outbox, ParkedMark};
use crate::conversation::{Conversation, Part};
use crate::envelope::{Lane, ProxyMessage, Side, Upstream};
use crate::intercept::{Content, Held, Parked, Why};
use crate::policy::rules::Permission;
use crate::policy::{Answered, Question};
pub(super) use rounds::Rounds;

/// Who decides when somebody was there and did not.
pub const TIMEOUT: &str = "timeout";
/// And when nobody was.
pub const NOBODY: &str = "nobody";
/// And when whoever uses the client did.
const CLIENT: &str = "client";

/// Whatever answers us has this in it.
static OURS: LazyLock<Word> = LazyLock::new(|| Word::new(ASKED_BY_US.as_bytes()));

/// The questions that wait in clients, and who else could answer.
#[derive(Default)]
pub struct Questions {
    /// Calls whose clients are asked and send them again.
    pub(super) rounds: Rounds,
    /// Questions to clients so far.
    count: u64,
    /// Faces that could answer, besides the one that has the lease.
    pub(super) watchers: usize,
    on_question: Option<Box<dyn Fn(Held) + Send>>,
}

impl Questions {
    /// Has each question told that waits for an answer. `tell` may not block.
    pub fn tell(&mut self, tell: impl Fn(Held) + Send + 'static) {
        self.on_question = Some(Box::new(tell));
    }

    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    fn told(&self, held: Held) {
        if let Some(tell) = &self.on_question {
            tell(held);
        }
    }
}

impl Decisions<'_> {
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
        let has_room = self.holds.intercept.has_room(question.message());
        let limit = question.ruling.timeout.or(self.holds.intercept.limit());
        let way = if self.has_somebody() { None } else { way_to_client(conversation, lane, question.message()) };
        if way == Some(Way::Answer) {
            return self.ask_by_round(conversation, lane, question, limit, out);
        }
        let asks = way == Some(Way::Request);
        if !has_room || !(self.has_somebody() || asks || question.ruling.timeout.is_some()) {
            let why = if has_room { Why::NobodyThere.as_str() } else { "too much is held already" };
            return self.refuse_question(conversation, lane, question, (NOBODY, Some(why)), 0, out);
        }
        let ProxyMessage { sequence, correlated, .. } = *question.message();
        out.parked.push(ParkedMark { sequence, correlated, is_refused: false });
        let asking = asks.then(|| self.ask_by_request(lane, &question, out));
        let parked = Parked::new(Content::Question(Box::new(question)), lane.speaker(conversation), lane);
        let deadline = limit.map(|limit| parked.since + limit);
        let held = self.holds.park(self.journal, Parked { deadline, is_changed, asking, ..parked });
        self.questions.told(held);
    }

    /// Denies a message that is recorded and not parked.
    fn refuse_question(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        question: Question,
        (by, why): (&str, Option<&str>),
        held_ns: u64,
        out: &mut Outbox,
    ) {
        let (message, ruling) = question.into_parts();
        let speaker = lane.speaker(conversation);
        let answer = self.governance.deny_with(self.journal, speaker, &message, &ruling, (by, why), held_ns);
        self.holds.refused(self.journal, lane, message, (answer, None), why.unwrap_or("denied"), out);
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
    #[inline]
    pub(super) fn hears(&self, message: &ProxyMessage) -> bool {
        message.from == Side::Client
            && self.governance.policy.is_governed()
            && match message.message.glance().kind {
                Kind::Request => self.is_our_round(&message.message),
                Kind::Response | Kind::Error => self.is_for_us(message),
                _ => false,
            }
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
