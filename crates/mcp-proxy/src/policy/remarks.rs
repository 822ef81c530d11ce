//! What to note of rules that are right, and may not do what they were written for.

use mcp_engine::policy::rules::{Permission, Rule, Rules, VerdictKind};
use mcp_filter::Hinted;
use mcp_wire::visible::visible;

/// Weak rules that are named one by one at the start; more are counted.
const LISTED_MAX: usize = 10;

/// The rules that matched a tool, or left it to others, because `destructiveHint` alone made a delete of it.
/// A rule that stops tools by `hint:destructive` makes up for them all.
pub(super) fn of_weaker(rules: &Rules) -> Vec<String> {
    let stops_destructive = |rule: &Rule| {
        matches!(rule.verdict, VerdictKind::Deny | VerdictKind::Ask)
            && rule.filter.to_string().contains("hint:destructive")
    };
    if rules.rules.iter().any(stops_destructive) {
        return Vec::new();
    }
    let weaker = rules.rules.iter().filter_map(|rule| Some((rule, weaker(rule, rules.default)?)));
    let mut remarks: Vec<String> =
        weaker.clone().take(LISTED_MAX).map(|(rule, hinted)| remark(rule, &hinted)).collect();
    let more = weaker.count().saturating_sub(LISTED_MAX);
    if more > 0 {
        remarks.push(format!("{more} more rules by `op` do not go by `destructiveHint`"));
    }
    remarks
}

/// What a rule lost since, where the file permits more for it.
pub(super) fn weaker(rule: &Rule, default: Permission) -> Option<Hinted> {
    let permits_more = |hinted: &Hinted| match rule.verdict {
        VerdictKind::Deny | VerdictKind::Ask => hinted.loses,
        VerdictKind::Allow => hinted.gains && default == Permission::Deny,
        VerdictKind::Observe => false,
    };
    rule.filter.hinted().filter(permits_more)
}

fn remark(rule: &Rule, hinted: &Hinted) -> String {
    let restored = hinted.restored.to_string();
    let line = match restored.contains(['"', '\\']) {
        true => format!("match = '{restored}'"),
        false => format!("match = \"{restored}\""),
    };
    let (what, other) = match rule.verdict {
        VerdictKind::Allow => ("also allows tools that write and have `destructiveHint: true`", "leaves them out"),
        _ => ("does not match a tool for `destructiveHint: true` alone", "does"),
    };
    format!("rule \"{}\" {what}; `{}` {other}", visible(&rule.name), visible(&line))
}
