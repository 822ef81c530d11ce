//! Questions to clients of the newest revision. There a server sends no requests: it answers a call with
//! what it wants to know, and the client sends the call again with that. So do we. The call that comes
//! again is judged like any other, and goes on only if it is the one that was asked about, once.

use std::collections::VecDeque;
use std::time::Duration;

use mcp_store::OutcomeKind;
use mcp_wire::elicit::{self, ASKED_BY_US, Said};
use mcp_wire::{Message, scan};
use tokio::time::Instant;
use uuid::Uuid;

use super::super::decisions::Decisions;
use super::super::governance::Stopped;
use super::super::holds::{Ends, request_id};
use super::super::{Outbox, ParkedMark};
use super::{CLIENT, words};
use crate::conversation::Conversation;
use crate::envelope::{Lane, ProxyMessage};
use crate::intercept::{Content, DecideError, Decision, Held, KeptLane, Lasting, Parked, Passed};
use crate::policy::rules::Permission;
use crate::policy::{Judged, Question, Refused, Ruling};

/// Calls answered with a question that may come again, and their bytes. The oldest is forgotten first: its client
/// may never return, and a later one is asked again.
const ROUNDS_MAX: usize = 1_024;
const ROUNDS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Calls that were answered with a question.
pub(in crate::pipeline) struct Rounds {
    /// Tells our states from those of another proxy, which may be the server.
    ours: String,
    /// Whether anybody was asked yet, so that what comes can be an answer.
    has_asked: bool,
    /// The oldest first.
    open: VecDeque<Round>,
    bytes: usize,
}

struct Round {
    /// What the client must come back with; nobody can guess it.
    state: String,
    message: ProxyMessage,
    ruling: Ruling,
    lane: KeptLane,
    since: Instant,
    deadline: Option<Instant>,
    /// What somebody else has answered meanwhile.
    settled: Option<Settled>,
}

#[derive(Clone)]
struct Settled {
    permission: Permission,
    by: String,
    why: Option<String>,
}

impl Default for Rounds {
    fn default() -> Self {
        let ours = format!("{ASKED_BY_US}.{}.", Uuid::new_v4().simple());
        Self { ours, has_asked: false, open: VecDeque::new(), bytes: 0 }
    }
}

impl Rounds {
    /// Remembers a call.
    fn keep(&mut self, round: Round) {
        self.has_asked = true;
        self.bytes += round.size();
        self.open.push_back(round);
        let now = Instant::now();
        while self.open.len() > ROUNDS_MAX
            || self.bytes > ROUNDS_BYTES_MAX && self.open.len() > 1
            || self.open.front().is_some_and(|round| round.is_over(now))
        {
            let Some(round) = self.open.pop_front() else { return };
            self.bytes -= round.size();
        }
    }

    /// 244 random bits, after what says that they are ours.
    fn new_state(&self) -> String {
        format!("{}{}{}", self.ours, Uuid::new_v4().simple(), Uuid::new_v4().simple())
    }

    /// The call that `message` repeats, which counts once.
    fn take(&mut self, state: &str, message: &ProxyMessage) -> Option<Round> {
        let is_meant = |round: &Round| round.state == state && round.message.conversation == message.conversation;
        let round = self.open.remove(self.open.iter().position(is_meant)?)?;
        self.bytes -= round.size();
        let is_same = elicit::is_same_again(&round.message.message, &message.message);
        (is_same && !round.is_over(Instant::now())).then_some(round)
    }

    /// The call `sequence` and what rules say of it, while nobody has answered.
    pub(crate) fn get(&self, sequence: u64) -> Option<(&ProxyMessage, &Ruling)> {
        let now = Instant::now();
        let is_meant = |round: &&Round| round.message.sequence == sequence && round.is_open(now);
        self.open.iter().find(is_meant).map(|round| (&round.message, &round.ruling))
    }

    fn open_round(&mut self, sequence: u64) -> Option<&mut Round> {
        let now = Instant::now();
        self.open.iter_mut().find(|round| round.message.sequence == sequence && round.is_open(now))
    }

    /// What waits for an answer, as watchers see it.
    pub(crate) fn held(&self) -> impl Iterator<Item = Held> {
        let now = Instant::now();
        self.open.iter().filter(move |round| round.is_open(now)).map(Round::held)
    }

    /// The client of a conversation does not come back.
    pub(crate) fn forget(&mut self, conversation: u32) {
        self.open.retain(|round| ![round.message.conversation, round.lane.behalf].contains(&conversation));
        self.bytes = self.open.iter().map(Round::size).sum();
    }
}

impl Round {
    fn size(&self) -> usize {
        self.message.message.bytes().len()
    }

    fn is_over(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether it still waits for an answer.
    fn is_open(&self, now: Instant) -> bool {
        self.settled.is_none() && !self.is_over(now)
    }

    fn held(&self) -> Held {
        Held {
            upstream: self.ruling.server.clone(),
            asks: Some(self.ruling.clone()),
            in_client: true,
            ..Held::of(&self.message, (self.since, self.deadline), self.lane, self.ruling.name().into())
        }
    }

    /// What came of it, if `said` is what the client came back with. The first answer counts.
    fn answer(&self, said: Said) -> (Settled, Lasting) {
        if let Some(settled) = &self.settled {
            return (settled.clone(), Lasting::Once);
        }
        let (permission, why, lasting) = match said {
            Said::AllowOnce => (Permission::Allow, None, Lasting::Once),
            Said::AllowForSession => (Permission::Allow, None, Lasting::Session),
            no => (Permission::Deny, Some(super::why_not(no).to_owned()), Lasting::Once),
        };
        (Settled { permission, by: CLIENT.into(), why }, lasting)
    }
}

impl Decisions<'_> {
    /// Answers a call with a question.
    pub(super) fn ask_by_round(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        question: Question,
        limit: Option<Duration>,
        out: &mut Outbox,
    ) {
        let Some(id) = request_id(question.message()) else { return };
        let text = words::question(
            &question.message().message,
            &question.ruling,
            self.governance.server_name(self.journal, question.message()),
        );
        let since = lane.since.unwrap_or_else(Instant::now);
        let state = self.questions.rounds.new_state();
        let answer = elicit::input_required(&id, &state, &text);
        let round = Round {
            state,
            message: question.message().clone(),
            ruling: question.ruling.clone(),
            lane: lane.into(),
            since,
            deadline: limit.map(|limit| since + limit),
            settled: None,
        };
        self.questions.told(round.held());
        self.questions.rounds.keep(round);
        let message = question.message();
        self.journal.decided(lane.speaker(conversation), message, &question.ruling, ("ask", "rule", None), 0);
        out.parked.push(ParkedMark { sequence: message.sequence, correlated: None, is_refused: false });
        let parked = Parked::new(Content::Question(Box::new(question)), lane.speaker(conversation), lane);
        let ends = Ends { answer: Some(answer), ..Ends::default() };
        self.holds.end(self.journal, parked, OutcomeKind::Answered, "rules", "its client is asked", ends);
    }

    /// Whether a call comes again because we asked about it, or is made to look like that.
    pub(super) fn is_our_round(&self, message: &Message) -> bool {
        self.questions.rounds.has_asked
            && scan::mentions(message.bytes(), &super::OURS)
            && elicit::state_of(message).is_some_and(|state| state.starts_with(&self.questions.rounds.ours))
    }

    /// Takes a call that comes again. What it answers is for us; the rest of it is a message like any
    /// other.
    pub(super) fn pass_round(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        out: &mut Outbox,
    ) {
        self.journal.keep_held(&message, lane);
        if let Some(why) = self.governance.policy.unfit(&message) {
            return self.refuse_round(conversation, lane, message, &Refused::Unfit(why), out);
        }
        let state = elicit::state_of(&message.message).unwrap_or_default();
        let round = self.questions.rounds.take(&state, &message);
        let answer = round.as_ref().map(|round| round.answer(elicit::said_again(&message.message)));
        let first = round.as_ref().map(|round| &round.message.message);
        let rest = Message::new(elicit::without_our_round(&message.message, first));
        let message = ProxyMessage { message: rest, ..message };
        match self.governance.judge(conversation, lane, message).map_err(|stopped| *stopped) {
            Ok((judged, rulings)) => {
                self.journal.rulings(lane.speaker(conversation), judged.message(), &rulings);
                self.pass_rest(conversation, lane, judged, "", "without the answer to a question of ours", out);
            }
            Err(Stopped::Refused(message, refused)) => self.refuse_round(conversation, lane, message, &refused, out),
            Err(Stopped::Asked(question)) => match round.zip(answer) {
                Some((round, (settled, lasting))) if round.ruling.rule == question.ruling.rule => {
                    let held_ns = round.since.elapsed().as_nanos() as u64;
                    self.settle_round(conversation, lane, question, (settled, lasting, held_ns), out);
                }
                _ => self.put(conversation, lane, question, true, out),
            },
        }
    }

    /// Refuses a call that is recorded already.
    fn refuse_round(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        message: ProxyMessage,
        refused: &Refused,
        out: &mut Outbox,
    ) {
        let told =
            self.governance.refusal_of(self.journal, (lane.speaker(conversation), None, Vec::new()), &message, refused);
        self.holds.refused(self.journal, lane, message, (told.answer, None), &told.why, out);
    }

    /// Does what was answered.
    fn settle_round(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        question: Question,
        (settled, lasting, held_ns): (Settled, Lasting, u64),
        out: &mut Outbox,
    ) {
        let Settled { permission, by, why } = settled;
        if permission == Permission::Deny {
            return self.refuse_question(conversation, lane, question, (&by, why.as_deref()), held_ns, out);
        }
        if lasting == Lasting::Session {
            let (conversation, answered) = super::clients_answer(&question);
            answered.into_iter().for_each(|answered| self.governance.answers.keep_in(conversation, answered));
        }
        let (judged, ruling) = question.approved();
        let message = judged.message();
        self.journal.decided(lane.speaker(conversation), message, &ruling, ("allow", &by, None), held_ns);
        self.pass_rest(conversation, lane, judged, &by, "approved", out);
    }

    /// Sends on what is left of a call that came again. It is not what was recorded, so transports take it
    /// for one that was parked, edited, and came free at once.
    fn pass_rest(
        &mut self,
        conversation: &Conversation,
        lane: Lane<'_>,
        judged: Judged,
        by: &str,
        why: &str,
        out: &mut Outbox,
    ) {
        let sequence = judged.message().sequence;
        out.parked.push(ParkedMark { sequence, correlated: None, is_refused: false });
        let server = self.journal.server(conversation.upstream()).map(|server| &**server);
        let (judged, held) = match self.holds.intercept.look(judged, lane.speaker(conversation), server, lane.since) {
            Passed::Onward(judged) | Passed::TakesBack(judged, _) => (judged, None),
            Passed::Held(judged, why, owner) => (judged, Some((why, owner))),
        };
        let mut parked = Parked::new(Content::Judged(judged), lane.speaker(conversation), lane);
        parked.is_changed = true;
        if !self.is_sealed() {
            return self.holds.end_unaudited(self.journal, parked);
        }
        match held {
            None => self.holds.end(self.journal, parked, OutcomeKind::Forwarded, by, why, Ends::onward()),
            Some((why, owner)) => {
                let deadline = self.holds.intercept.limit().map(|limit| parked.since + limit);
                self.holds.park(self.journal, Parked { why, owner, deadline, ..parked });
            }
        }
    }

    /// Takes an answer from elsewhere to a question that waits in a client. It counts when the call comes
    /// again.
    pub(in crate::pipeline) fn decide_round(
        &mut self,
        sequence: u64,
        decision: Decision,
        by: &str,
    ) -> Result<(), DecideError> {
        let (permission, lasting, why) = match decision {
            Decision::Approve { lasting, edited: None } => (Permission::Allow, lasting, None),
            Decision::Deny { lasting, message } => (Permission::Deny, lasting, message),
            Decision::Approve { .. } => return Err(DecideError::InClient(sequence)),
            _ => {
                let rule = self.questions.rounds.get(sequence).map_or("", |(_, ruling)| ruling.name());
                return Err(DecideError::IsAsked(sequence, rule.into()));
            }
        };
        let answered = self.lasting_answer(sequence, lasting, permission, by)?;
        self.keep_lasting(answered, lasting);
        if let Some(round) = self.questions.rounds.open_round(sequence) {
            round.settled = Some(Settled { permission, by: by.into(), why });
        }
        Ok(())
    }
}
