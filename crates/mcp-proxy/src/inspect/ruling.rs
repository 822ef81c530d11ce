//! What rules decided about a message, in words.

use mcp_store::{Verdict, VerdictKind};

use super::lines::cut;
use crate::report::{Page, Style};

/// Characters that are shown of a rule's name.
const NAME_SHOWN: usize = 72;

/// `✗ denied by no-deletes`; nothing if it went on like any other.
pub fn sign(page: &Page, verdict: &Verdict) -> Option<String> {
    let said = said(word(verdict.what), verdict.rule.as_deref());
    match verdict.what {
        VerdictKind::Allow => None,
        VerdictKind::Deny => Some(page.styled(Style::Bad, &said)),
        VerdictKind::Ask | VerdictKind::Observe => Some(page.styled(Style::Faint, &said)),
    }
}

pub fn word(what: VerdictKind) -> &'static str {
    match what {
        VerdictKind::Allow => "✓ allowed",
        VerdictKind::Deny => "✗ denied",
        VerdictKind::Ask => "? asked",
        VerdictKind::Observe => "observed",
    }
}

pub fn said(word: &str, rule: Option<&str>) -> String {
    let rule = rule.map_or_else(|| "default".into(), |rule| cut(rule.as_bytes(), NAME_SHOWN));
    format!("{word} by {rule}")
}

/// What `-v` says of it: the rule, the class of operation, and where the audit has it.
pub fn detail(verdict: &Verdict) -> String {
    let operation = verdict.operation.map(|operation| format!(" as {operation}")).unwrap_or_default();
    let audit = verdict.audit.map(|audit| format!(" (audit {audit})")).unwrap_or_default();
    format!("{}{operation}{audit}", said(word(verdict.what), verdict.rule.as_deref()))
}
