//! What was decided about a message, kept beside it for those who read or watch.

use mcp_store::{AuditId, Verdict, VerdictKind};

use super::Pipeline;
use super::judge::Noted;
use crate::bus::Event;
use crate::envelope::ProxyMessage;
use crate::policy::Ruling;

impl Pipeline {
    /// Where it can be, this comes before the message is recorded and told, so that both go together.
    pub(super) fn keep_verdict(
        &mut self,
        message: &ProxyMessage,
        what: VerdictKind,
        ruling: &Ruling,
        noted: Option<Noted>,
    ) {
        let instance = self.audit.as_ref().map(|audit| audit.instance());
        let audit = instance.zip(noted).map(|(instance, noted)| AuditId { instance, number: noted.number });
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
}

fn verdict(what: VerdictKind, ruling: &Ruling, audit: Option<AuditId>) -> Verdict {
    let operation = ruling.operation.map(|operation| operation.name());
    // What no rule decided about may still be something that one takes note of.
    let is_left = what == VerdictKind::Allow && ruling.rule.is_none();
    match ruling.observed.first().filter(|_| is_left) {
        Some(rule) => Verdict { what: VerdictKind::Observe, rule: Some(rule.clone()), operation, audit },
        None => Verdict { what, rule: ruling.rule.clone(), operation, audit },
    }
}
