//! What rules decided about a message, in words.

use mcp_store::{Recorded, Verdict, VerdictKind};
use mcp_wire::visible::visible;

use super::lines::cut;
use crate::report::{Page, Style};

/// Characters of a rule's name in a line.
const NAME_SHOWN: usize = 72;

/// `✗ denied by no-deletes`; nothing if it went on like any other.
pub(crate) fn sign(page: &Page, verdict: &Verdict) -> Option<String> {
    let said = said(word(verdict.what), verdict.rule.as_deref());
    match verdict.what {
        VerdictKind::Allow => None,
        VerdictKind::Deny => Some(page.styled(Style::Bad, &said)),
        VerdictKind::Ask | VerdictKind::Observe => Some(page.styled(Style::Faint, &said)),
    }
}

pub(crate) fn word(what: VerdictKind) -> &'static str {
    match what {
        VerdictKind::Allow => "✓ allowed",
        VerdictKind::Deny => "✗ denied",
        VerdictKind::Ask => "? asked",
        VerdictKind::Observe => "observed",
    }
}

pub(crate) fn said(word: &str, rule: Option<&str>) -> String {
    rule.map_or_else(|| word.to_owned(), |rule| format!("{word} by {}", cut(rule.as_bytes(), NAME_SHOWN)))
}

/// What `-v` says of it: the rule, the class of operation, why there was none, and where the audit has it.
pub(crate) fn detail(recorded: &Recorded, verdict: &Verdict) -> String {
    let operation = verdict.operation.map(|operation| format!(" as {operation}")).unwrap_or_default();
    let audit = verdict.audit.map(|audit| format!(" (audit {audit})")).unwrap_or_default();
    let why = recorded.why.as_deref().filter(|_| recorded.is_denied() && verdict.rule.is_none());
    let why = why.map(|why| format!(": {}", visible(why))).unwrap_or_default();
    format!("{}{operation}{why}{audit}", said(word(verdict.what), verdict.rule.as_deref()))
}
