//! Decisions about parked messages: of people, of deadlines, and because a face, a client or a server is gone.

use bytes::Bytes;
use mcp_filter::Filter;
use mcp_store::OutcomeKind;
use mcp_wire::reply::{self, Refusal};
use mcp_wire::{Kind, Message};
use tokio::time::Instant;

use super::governance::Governance;
use super::holds::{Ends, Holds};
use super::journal::Journal;
use super::questions::{NOBODY, Questions, TIMEOUT};
use crate::envelope::Side;
use crate::intercept::{
    Answer, BreakpointError, Content, DecideError, Decision, Held, Lasting, Mode, OnDetach, Owner, Parked, Why,
    compose_answer, edited,
};
use crate::policy::rules::Permission;
use crate::policy::{Answered, Question};

/// What decisions are about: the parked messages, the questions about them, and the rules that have a say.
pub struct Decisions<'a> {
    pub(super) holds: &'a mut Holds,
    pub(super) questions: &'a mut Questions,
    pub(super) governance: &'a mut Governance,
    pub(super) journal: &'a mut Journal,
}

impl Decisions<'_> {
    /// Does what somebody decided about a parked message.
    pub fn decide(&mut self, sequence: u64, decision: Decision, by: &str) -> Result<(), DecideError> {
        if self.questions.rounds.get(sequence).is_some() {
            return self.decide_round(sequence, decision, by);
        }
        let parked = self.holds.intercept.get(sequence).ok_or(DecideError::NotHeld(sequence))?;
        if let Some(question) = parked.question()
            && matches!(decision, Decision::Forward | Decision::Modify { .. } | Decision::Drop { .. })
        {
            return Err(DecideError::IsAsked(sequence, question.ruling.name().into()));
        }
        let message = &parked.message().message;
        let asks = message.id().filter(|_| message.glance().kind == Kind::Request);
        let known = parked.known_id.as_ref().map(|(_, known)| known.clone());
        let answers = known.or_else(|| message.id()).filter(|_| message.glance().kind.is_response());
        match decision {
            Decision::Forward => self.let_go(sequence, OutcomeKind::Forwarded, by, ""),
            Decision::Modify { raw_headers: true, .. } if self.governance.policy.is_governed() => {
                let why = "headers that say otherwise than the message are not judged, and rules are in force";
                return Err(DecideError::Denied(why.into()));
            }
            Decision::Modify { raw, raw_headers, not_json_rpc } => {
                let edited = edited(&raw, not_json_rpc)?;
                self.replace(sequence, edited, raw_headers, by, "")?;
            }
            Decision::Approve { lasting, edited } => self.approve(sequence, lasting, edited, by)?,
            Decision::Deny { lasting, message } => self.deny(sequence, lasting, message, by)?,
            Decision::Drop { error: None } => {
                self.holds.finish(self.journal, sequence, OutcomeKind::Dropped, by, "", None)
            }
            Decision::Drop { error: Some((code, text)) } => {
                let waits = asks.or(answers).ok_or(DecideError::NobodyWaits(sequence))?;
                let error = compose_answer(&waits, &Answer::Error(reply::error_object(code, &text)))?;
                self.holds.finish(self.journal, sequence, OutcomeKind::Refused, by, "", Some(error));
            }
            Decision::Answer(answer) => {
                let asks = asks.ok_or(DecideError::NotARequest(sequence))?;
                let answer = compose_answer(&asks, &answer)?;
                self.holds.finish(self.journal, sequence, OutcomeKind::Answered, by, "", Some(answer));
            }
        }
        Ok(())
    }

    /// Lets a parked message go on as it is. One that a rule asks about does not go on without an answer.
    fn let_go(&mut self, sequence: u64, what: OutcomeKind, by: &str, why: &str) {
        let Some(parked) = self.holds.intercept.take(sequence) else { return };
        match parked.content {
            Content::Judged(_) => self.holds.end(self.journal, parked, what, by, why, Ends::onward()),
            Content::Question(_) => self.end_denied(parked, NOBODY, Some(why)),
        }
    }

    /// Sends something else in the place of a parked message, which policy sees like any other. If that
    /// denies it, nothing has happened.
    fn replace(
        &mut self,
        sequence: u64,
        edited: Message,
        raw_headers: bool,
        by: &str,
        why: &str,
    ) -> Result<(), DecideError> {
        let Some(parked) = self.holds.intercept.get(sequence) else { return Ok(()) };
        let (message, held_ns) = (parked.message().clone(), parked.held_ns());
        let judged = self.governance.judge_edited(self.journal, &parked.speaker, message, edited, by, held_ns)?;
        let Some(parked) = self.holds.intercept.take(sequence) else { return Ok(()) };
        match self.is_sealed() {
            true => self.holds.end_edited(self.journal, parked, judged, raw_headers, by, why),
            false => self.holds.end_unaudited(self.journal, parked),
        }
        Ok(())
    }

    pub(super) fn approve(
        &mut self,
        sequence: u64,
        lasting: Lasting,
        changed: Option<Bytes>,
        by: &str,
    ) -> Result<(), DecideError> {
        self.question(sequence)?;
        if changed.is_some() && lasting != Lasting::Once {
            return Err(DecideError::OnlyOnce(sequence, "what comes next is not edited"));
        }
        let answered = self.lasting_answer(sequence, lasting, Permission::Allow, by)?;
        if let Some(raw) = changed {
            self.replace(sequence, edited(&raw, false)?, false, by, "approved")?;
        } else if let Some(parked) = self.holds.intercept.get(sequence)
            && let Some(denied) = self.governance.denied_by_now(parked.message(), &parked.speaker)
        {
            return Err(DecideError::Denied(denied));
        } else if let Some(parked) = self.holds.intercept.take(sequence) {
            self.end_approved(parked, by, "approved");
        }
        self.keep_lasting(answered, lasting);
        Ok(())
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
        if let Some(parked) = self.holds.intercept.take(sequence) {
            self.end_denied(parked, by, message.as_deref());
        }
        Ok(())
    }

    fn question(&self, sequence: u64) -> Result<(&Parked, &Question), DecideError> {
        let parked = self.holds.intercept.get(sequence).ok_or(DecideError::NotHeld(sequence))?;
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
        let (said, ruling) = match self.questions.rounds.get(sequence) {
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

    pub(super) fn keep_lasting(&mut self, answered: Option<Answered>, lasting: Lasting) {
        match (answered, lasting) {
            (Some(answered), Lasting::Rule) => self.governance.answers.keep_written(answered),
            (Some(answered), _) => self.governance.answers.keep(answered),
            (None, _) => return,
        }
        self.settle_alike();
    }

    /// Does with questions that wait what an answer that lasts says of them.
    fn settle_alike(&mut self) {
        for sequence in self.holds.intercept.parked_where(|parked| parked.question().is_some()) {
            let Ok((_, question)) = self.question(sequence) else { continue };
            let Some(answered) = self.governance.answers.find(question) else { continue };
            let Some(parked) = self.holds.intercept.take(sequence) else { continue };
            match answered.permission {
                Permission::Allow => self.end_approved(parked, &answered.by, "approved with another"),
                Permission::Deny => self.end_denied(parked, &answered.by, None),
            }
        }
    }

    fn end_approved(&mut self, parked: Parked, by: &str, why: &str) {
        if let Some(denied) = self.governance.denied_by_now(parked.message(), &parked.speaker) {
            return self.end_denied(parked, by, Some(&denied));
        }
        let held_ns = parked.held_ns();
        let Parked { content: Content::Question(question), ref speaker, .. } = parked else { return };
        let (judged, ruling) = question.approved();
        let message = judged.message();
        self.journal.decided(speaker, message, &ruling, ("allow", by, None), held_ns);
        let parked = Parked { content: Content::Judged(judged), ..parked };
        if !self.is_sealed() {
            return self.holds.end_unaudited(self.journal, parked);
        }
        self.holds.end(self.journal, parked, OutcomeKind::Forwarded, by, why, Ends::onward());
    }

    pub(super) fn end_denied(&mut self, mut parked: Parked, by: &str, why: Option<&str>) {
        let held_ns = parked.held_ns();
        let Content::Question(question) = &mut parked.content else { return };
        let ruling = question.ruling.clone();
        let answer =
            self.governance.deny_with(self.journal, &parked.speaker, parked.message(), &ruling, (by, why), held_ns);
        let what = if answer.is_some() { OutcomeKind::Refused } else { OutcomeKind::Dropped };
        self.holds.end(self.journal, parked, what, by, why.unwrap_or("denied"), Ends { answer, ..Ends::default() });
    }

    /// Whether what was decided is on disk, or need not be.
    pub(super) fn is_sealed(&mut self) -> bool {
        self.journal.is_sealed() || !self.governance.requires_audit()
    }

    /// Nobody answered in time.
    pub(super) fn time_out(&mut self, sequence: u64) {
        let Some(parked) = self.holds.intercept.take(sequence) else { return };
        let somebody = self.has_somebody() || parked.asking.is_some();
        let on_timeout = parked.question().map(|question| question.ruling.on_timeout);
        match on_timeout {
            Some(Permission::Allow) if somebody => self.end_approved(parked, TIMEOUT, "nobody answered in time"),
            _ if somebody => self.end_denied(parked, TIMEOUT, Some("nobody answered in time")),
            _ => self.end_denied(parked, NOBODY, Some(Why::NobodyThere.as_str())),
        }
    }

    /// Lets everything go on.
    pub fn release_all(&mut self, by: &str) -> usize {
        let all = self.holds.intercept.parked_where(|parked| parked.question().is_none());
        all.iter().for_each(|sequence| self.let_go(*sequence, OutcomeKind::Forwarded, by, ""));
        all.len()
    }

    /// Lets go on what was held as long as may be.
    pub fn release_overdue(&mut self) {
        let now = Instant::now();
        let overdue =
            self.holds.intercept.parked_where(|parked| parked.deadline.is_some_and(|deadline| deadline <= now));
        for sequence in &overdue {
            match self.holds.intercept.get(*sequence).is_some_and(|parked| parked.question().is_some()) {
                true => self.time_out(*sequence),
                false => self.let_go(*sequence, OutcomeKind::Released, "", Why::Limit.as_str()),
            }
        }
        if !overdue.is_empty() {
            self.holds.intercept.stop_waiting_for_face();
        }
    }

    /// The server of a conversation is gone: what is parked for it goes nowhere, what it said goes on.
    pub fn server_is_gone(&mut self, conversation: u32) {
        let is_meant = |held: &Held, from: Side| (held.conversation, held.from) == (conversation, from);
        self.holds.discard_where(self.journal, |held| is_meant(held, Side::Client), Why::ServerGone);
        let said = self.holds.held_where(|held| is_meant(held, Side::Server));
        said.iter().for_each(|sequence| {
            self.let_go(*sequence, OutcomeKind::Released, "", Why::ServerGone.as_str());
        });
    }

    /// A message was parked that had left already.
    pub fn release_late(&mut self, sequence: u64) {
        self.let_go(sequence, OutcomeKind::Released, "", "it had left before");
    }

    /// A parked request is of no use to anybody any more.
    pub fn discard(&mut self, sequence: u64) {
        self.holds.finish(self.journal, sequence, OutcomeKind::Discarded, "", Why::ClientGone.as_str(), None);
    }

    /// Holds everything from now on, or nothing but what breakpoints match. In the second case what is
    /// held goes on; how many that were comes back.
    pub fn set_mode(&mut self, mode: Mode, owner: Owner) -> usize {
        self.holds.intercept.set_mode(mode, owner);
        let released = match mode {
            Mode::Passthrough => {
                self.holds.intercept.stop_waiting_for_face();
                self.let_all_go(|parked| parked.question().is_none(), Why::Passthrough)
            }
            Mode::Intercept => 0,
        };
        self.journal.changed();
        released
    }

    pub fn add_breakpoint(
        &mut self,
        name: Option<String>,
        filter: Filter,
        owner: Owner,
    ) -> Result<String, BreakpointError> {
        let name = self.holds.intercept.add(name, filter, owner)?;
        self.journal.changed();
        Ok(name.to_string())
    }

    /// Removes a breakpoint. What it held stays held until somebody decides.
    pub fn remove_breakpoint(&mut self, name: &str) -> bool {
        let removed = self.holds.intercept.remove(name);
        self.journal.changed();
        removed
    }

    /// Whether a face is there that may decide. When it has gone, what was held for it alone follows the
    /// fallback.
    pub fn set_face(&mut self, face: bool) {
        let waited = self.holds.intercept.parked_where(|parked| &*parked.why == crate::intercept::WAITS_FOR_FACE);
        self.holds.intercept.set_face(face);
        // What only waited for somebody goes on, unless that somebody wants to see it.
        for sequence in waited.into_iter().filter(|_| face) {
            if !self.holds.intercept.holds_still(sequence) {
                self.let_go(sequence, OutcomeKind::Released, "", Why::FaceCame.as_str());
            }
        }
        if !face {
            for sequence in
                self.holds.intercept.parked_where(|parked| !matches!(parked.owner, Owner::Command | Owner::Policy))
            {
                self.fall_back(sequence);
            }
            self.leave_questions();
        }
        self.journal.changed();
    }

    fn fall_back(&mut self, sequence: u64) {
        let why = Why::Detached.as_str();
        match self.holds.intercept.on_detach() {
            OnDetach::Forward => self.let_go(sequence, OutcomeKind::Released, "", why),
            OnDetach::Drop => self.holds.finish(self.journal, sequence, OutcomeKind::Dropped, "", why, None),
            OnDetach::Error => {
                let Some(parked) = self.holds.intercept.get(sequence) else { return };
                let message = &parked.message().message;
                let waits = matches!(message.glance().kind, Kind::Request | Kind::Response | Kind::Error);
                let known = parked.known_id.as_ref().map(|(_, known)| known.clone());
                let id = known.or_else(|| message.id()).filter(|_| waits);
                let error = id.map(|id| reply::error(&id, &Refusal::Dropped));
                let what = if error.is_some() { OutcomeKind::Refused } else { OutcomeKind::Dropped };
                self.holds.finish(self.journal, sequence, what, "", why, error);
            }
        }
    }

    /// Holds nothing any more, and lets go of all that is held: the proxy is ending.
    pub fn end_holds(&mut self) {
        self.holds.stop_holding();
        self.let_all_go(|_| true, Why::Ending);
    }

    fn let_all_go(&mut self, which: impl FnMut(&Parked) -> bool, why: Why) -> usize {
        let all = self.holds.intercept.parked_where(which);
        all.iter().for_each(|sequence| self.let_go(*sequence, OutcomeKind::Released, "", why.as_str()));
        all.len()
    }

    /// How many watch who could answer, besides the face that has the lease.
    pub fn set_watchers(&mut self, watchers: usize) {
        self.questions.watchers = watchers;
        if watchers == 0 {
            self.leave_questions();
        }
    }

    /// Whether anybody could answer who is asked.
    pub fn has_somebody(&self) -> bool {
        self.holds.intercept.has_face() || self.questions.watchers > 0
    }

    /// Whoever could answer may have left: what nobody else is to answer is denied.
    pub(super) fn leave_questions(&mut self) {
        if self.has_somebody() {
            return;
        }
        let is_left = |parked: &Parked| {
            parked.asking.is_none() && parked.question().is_some_and(|question| question.ruling.timeout.is_none())
        };
        for sequence in self.holds.intercept.parked_where(is_left) {
            if let Some(parked) = self.holds.intercept.take(sequence) {
                self.end_denied(parked, NOBODY, Some(Why::NobodyThere.as_str()));
            }
        }
    }
}
