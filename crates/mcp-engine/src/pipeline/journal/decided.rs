//! Decisions, and the outcomes of calls: in the audit log, and beside the message for readers and watchers.

use mcp_store::{AuditId, Verdict, VerdictKind};
use mcp_wire::{Kind, Message, scan};

use super::Journal;
use crate::audit::{Audit, Decided};
use crate::bus::Event;
use crate::conversation::Speaker;
use crate::envelope::ProxyMessage;
use crate::policy::rules::Rules;
use crate::policy::{Ruling, Rulings};

impl Journal {
    /// From now on decisions by `rules` are written to `audit`.
    pub(in crate::pipeline) fn audit_in(&mut self, mut audit: Audit, rules: &Rules) {
        audit.judge_by(&rules.version);
        audit.follow(&self.recorder);
        self.audit = Some(Box::new(audit));
    }

    pub(in crate::pipeline) fn is_audited(&self) -> bool {
        self.audit.is_some()
    }

    pub(in crate::pipeline) fn rules_changed(&mut self, rules: &Rules) {
        let now_ns = self.clock.now_ns();
        if let Some(audit) = &mut self.audit {
            audit.rules_changed(now_ns, &rules.version);
        }
    }

    /// The name of the server in the audit log, where rules give it none.
    pub(in crate::pipeline) fn audited_server(&self) -> Option<&str> {
        self.audit.as_ref()?.server()
    }

    /// The id of an audit record, for people who look it up.
    pub(in crate::pipeline) fn audit_id(&self, number: u64) -> Option<String> {
        Some(self.audit.as_ref()?.id(number))
    }

    /// Writes down what rules said of a message that goes on.
    pub(in crate::pipeline) fn rulings(&mut self, speaker: &Speaker, message: &ProxyMessage, rulings: &Rulings) {
        match rulings {
            Rulings::None => {}
            Rulings::One(ruling) => drop(self.ruling(speaker, message, &message.message, ruling)),
            Rulings::Each(items) => {
                let mut first = None;
                for (item, ruling) in items {
                    let noted = self.ruling(speaker, message, item, ruling);
                    first = first.or(noted.map(|noted| (ruling, noted)));
                }
                if let Some((ruling, noted)) = first {
                    self.verdict(message, VerdictKind::Allow, ruling, Some(noted));
                }
            }
        }
    }

    fn ruling(&mut self, speaker: &Speaker, message: &ProxyMessage, said: &Message, ruling: &Ruling) -> Option<u64> {
        let verdict = ("allow", ruling.decider(), None);
        ruling.is_kept.then(|| self.decided_part(speaker, message, said, ruling, verdict, 0))?
    }

    /// Writes down a decision, in the audit log and beside the message. Its number in the audit log comes back.
    pub(in crate::pipeline) fn decided(
        &mut self,
        speaker: &Speaker,
        message: &ProxyMessage,
        ruling: &Ruling,
        verdict: (&'static str, &str, Option<&str>),
        held_ns: u64,
    ) -> Option<u64> {
        self.decided_part(speaker, message, &message.message, ruling, verdict, held_ns)
    }

    /// Writes down a decision about `said`, a part of `message` or all of it. It stands beside the message only if it is
    /// about all of it.
    pub(in crate::pipeline) fn decided_part(
        &mut self,
        speaker: &Speaker,
        message: &ProxyMessage,
        said: &Message,
        ruling: &Ruling,
        (verdict, actor, why): (&'static str, &str, Option<&str>),
        held_ns: u64,
    ) -> Option<u64> {
        let time_ns = self.clock.recent_ns();
        let audit = self.audit.as_mut()?;
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
            server: super::named(&self.servers, message.upstream).map(|server| &**server),
            operation,
            verdict,
            rule: ruling.rule.as_deref(),
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
        let number = audit.decide(time_ns, &decided);
        if !decided.goes_on {
            // Peers that are told of it can look it up. A failure is reported as trouble.
            let _ = audit.flush();
        }
        if std::ptr::eq(said, &message.message)
            && let Some(what) = VerdictKind::from_name(verdict)
        {
            self.verdict(message, what, ruling, Some(number));
        }
        Some(number)
    }

    /// Keeps a verdict beside its message. Where it can be, this comes before the message is recorded and told, so that
    /// both go together.
    pub(in crate::pipeline) fn verdict(
        &mut self,
        message: &ProxyMessage,
        what: VerdictKind,
        ruling: &Ruling,
        number: Option<u64>,
    ) {
        let instance = self.audit.as_ref().map(|audit| audit.instance());
        let audit = instance.zip(number).map(|(instance, number)| AuditId { instance, number });
        let verdict = verdict(what, ruling, audit);
        let (sequence, time_ns) = (message.sequence, self.clock.recent_ns());
        self.recorder.verdict(message, time_ns, &verdict);
        let is_ahead = sequence > self.told;
        let event = || Event::Verdict { sequence, verdict: verdict.into(), is_ahead };
        match is_ahead {
            true => self.bus.publish_ahead(sequence, message.time_ns, event),
            false => self.bus.publish(event),
        }
    }

    /// Writes down the outcome of the call that `answer` answers.
    #[inline]
    pub(in crate::pipeline) fn answered(&mut self, answer: &ProxyMessage) {
        if let (Some(audit), Some(request)) = (&mut self.audit, answer.correlated) {
            audit.answered(request, answer);
        }
    }

    /// The same for calls that came in a batch and have their answers, in a batch as well or one by one.
    #[inline]
    pub(in crate::pipeline) fn items_answered(&mut self, answer: &ProxyMessage) {
        if let Some(audit) = self.audit.as_mut().filter(|audit| audit.awaits_items()) {
            items_answered(audit, answer);
        }
    }

    /// A call that was allowed does not go on after all.
    pub(in crate::pipeline) fn ended(&mut self, sequence: u64, status: &'static str) {
        let time_ns = self.clock.recent_ns();
        if let Some(audit) = &mut self.audit {
            audit.ended(sequence, status, time_ns);
        }
    }

    /// No call that is open in a conversation gets an answer.
    pub(in crate::pipeline) fn lost(&mut self, conversation: u32) {
        let time_ns = self.clock.recent_ns();
        if let Some(audit) = &mut self.audit {
            audit.lost(conversation, time_ns);
        }
    }

    /// Writes the decisions about messages that are to leave. If that fails, those messages come back.
    #[inline]
    pub(in crate::pipeline) fn seal(&mut self) -> Result<(), Vec<u64>> {
        match self.audit.as_mut().filter(|audit| audit.is_unsealed()) {
            Some(audit) => audit.seal(),
            None => Ok(()),
        }
    }

    /// Whether all decisions are on disk.
    pub(in crate::pipeline) fn is_sealed(&mut self) -> bool {
        self.audit.as_mut().is_none_or(|audit| audit.seal().is_ok())
    }

    /// Writes the outcomes of calls. Decisions are written already.
    pub fn commit_audit(&mut self) {
        if let Some(audit) = &mut self.audit {
            // A failure is reported as trouble.
            let _ = audit.flush();
        }
    }

    /// Writes decisions that wait for the audit log. Whether all are written now.
    pub fn retry_audit(&mut self) -> bool {
        let is_written = self.audit.as_mut().is_none_or(|audit| audit.flush().is_ok());
        if is_written {
            self.changed();
        }
        is_written
    }

    /// Whether the audit log cannot be written.
    pub(in crate::pipeline) fn is_unwritten(&self) -> bool {
        self.audit.as_ref().is_some_and(|audit| !audit.is_written())
    }

    #[cfg(test)]
    pub(in crate::pipeline) fn audit_mut(&mut self) -> &mut Audit {
        self.audit.as_mut().expect("it is audited")
    }
}

#[cold]
fn items_answered(audit: &mut Audit, answer: &ProxyMessage) {
    let message = &answer.message;
    match message.glance().kind {
        Kind::Batch => scan::batch_items(message.bytes()).for_each(|span| {
            let item = Message::new(message.bytes().slice(span.range()));
            if item.glance().kind.is_response() {
                audit.answered_item(answer, &item);
            }
        }),
        kind if kind.is_response() => audit.answered_item(answer, message),
        _ => {}
    }
}

fn verdict(what: VerdictKind, ruling: &Ruling, audit: Option<AuditId>) -> Verdict {
    let operation = ruling.operation.map(|operation| operation.name());
    // A message that no rule decided about may still be observed by one.
    let is_left = what == VerdictKind::Allow && ruling.rule.is_none();
    match ruling.observed.first().filter(|_| is_left) {
        Some(rule) => Verdict { what: VerdictKind::Observe, rule: Some(rule.clone()), operation, audit },
        None => Verdict { what, rule: ruling.rule.clone(), operation, audit },
    }
}
