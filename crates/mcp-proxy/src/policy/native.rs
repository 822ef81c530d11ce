//! The native form: rules in order, each with a filter and a verdict.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use mcp_engine::policy::operation::{Classifier, Mode, Operation};
use mcp_engine::policy::rules::{Denial, Permission, Rule, Rules, VerdictKind};
use mcp_filter::Filter;
use mcp_wire::visible::is_deceptive;

use crate::config::{Located, Member, Mistake, Reading, member, said, within};

use super::file::{PERMISSIONS, RULES_MAX, Read, kept};
use super::remarks;
use super::service::Naming;

/// Letters that a name may have. It stands in every record of what the rule decided.
const NAME_MAX: usize = 100;
/// Letters that a message may have. Models read it, and pay for it.
const MESSAGE_MAX: usize = 2_000;

const POLICY_KEYS: [&str; 8] =
    ["rules", "default", "operations", "classify", "hide_denied", "denial", "audit_required", "server"];
const RULE_KEYS: [&str; 6] = ["name", "match", "verdict", "message", "timeout", "on_timeout"];
const VERDICTS: [(&str, VerdictKind); 4] = [
    ("allow", VerdictKind::Allow),
    ("deny", VerdictKind::Deny),
    ("ask", VerdictKind::Ask),
    ("observe", VerdictKind::Observe),
];
/// Fields of filters that come of what is decided, or later.
const NOT_YET_KNOWN: [&str; 9] = ["rule", "verdict", "held", "edited", "mark", "noise", "dur", "status", "code"];
/// Fields of how a message came.
const NOT_JUDGED_BY: [&str; 2] = ["header", "replay"];
const DENIALS: [(&str, Denial); 2] = [("error", Denial::Error), ("result", Denial::Result)];

/// What stands under `policy`.
pub(super) fn read(policy: &Located, naming: Naming<'_>, reading: &mut Reading<'_>) -> Option<Read> {
    let members = reading.table(policy, "`policy`")?;
    reading.only(members, &POLICY_KEYS);
    let of = |key: &str| member(members, key).map(|member| &member.value);
    let rules = of("rules").map(|list| rules(list, reading)).unwrap_or_default();
    let default = of("default").and_then(|word| reading.word(word, "permission", &PERMISSIONS)).unwrap_or_default();
    let operations = of("operations").map(|table| operations(table, reading)).unwrap_or_default();
    let mode = of("classify").and_then(|word| mode(word, reading)).unwrap_or_default();
    let hide_denied = of("hide_denied").and_then(|flag| reading.flag(flag, "`hide_denied`")).unwrap_or_default();
    let denial = of("denial").and_then(|word| reading.word(word, "denial", &DENIALS)).unwrap_or_default();
    let audit_required =
        of("audit_required").and_then(|flag| reading.flag(flag, "`audit_required`")).unwrap_or_default();
    let server = of("server").and_then(|text| label(text, "`server`", reading));
    let server = naming.service.or(server).or(naming.name).map(kept);
    let rules = Rules {
        rules,
        default,
        classifier: Classifier::new(operations).with_mode(mode),
        hide_denied,
        denial,
        audit_required,
        server,
        version: kept(reading.source.version()),
    };
    let remarks = remarks::of_weaker(&rules);
    Some(Read { rules, note: None, remarks })
}

fn rules(list: &Located, reading: &mut Reading<'_>) -> Vec<Rule> {
    let items = reading.list(list, "`rules`").unwrap_or_default();
    if let Some(item) = items.get(RULES_MAX) {
        reading.mistakes.add(Mistake::at(item.span.clone(), format!("there are more than {RULES_MAX} rules")));
    }
    let mut names = HashMap::new();
    items.iter().take(RULES_MAX).filter_map(|item| rule(item, &mut names, reading)).collect()
}

fn rule<'t>(item: &'t Located, names: &mut HashMap<&'t str, Range<usize>>, reading: &mut Reading<'_>) -> Option<Rule> {
    let members = reading.table(item, "a rule")?;
    reading.only(members, &RULE_KEYS);
    let name = required(members, "name", item, reading).and_then(|value| {
        let name = label(value, "`name`", reading)?;
        is_new(name, value, names, reading).then_some(name)
    });
    let filter = required(members, "match", item, reading).and_then(|value| filter(value, reading));
    let verdict =
        required(members, "verdict", item, reading).and_then(|value| reading.word(value, "verdict", &VERDICTS));
    let message = member(members, "message").and_then(|member| message(&member.value, reading));
    let timeout = member(members, "timeout").and_then(|member| waiting(member, verdict, reading));
    let on_timeout = member(members, "on_timeout").and_then(|member| {
        only_asks(member, verdict, reading);
        reading.word(&member.value, "permission", &PERMISSIONS)
    });
    Some(Rule {
        name: kept(name?),
        filter: filter?,
        verdict: verdict?,
        message: message.map(kept),
        timeout,
        on_timeout: on_timeout.unwrap_or(Permission::Deny),
    })
}

fn required<'t>(members: &'t [Member], key: &str, item: &Located, reading: &mut Reading<'_>) -> Option<&'t Located> {
    let found = member(members, key);
    if found.is_none() {
        // The first line of it is enough to find it by.
        let place = members.first().map_or(item.span.clone(), |member| member.key_span.clone());
        let mistake = Mistake::at(place, format!("this rule has no `{key}`"));
        reading.mistakes.add(match key {
            "match" => mistake.help("`match = \"\"` matches everything"),
            "name" => mistake.help("records and approvals go by it"),
            _ => mistake.help("it is one of allow, deny, ask, observe"),
        });
    }
    found.map(|member| &member.value)
}

fn is_new<'t>(
    name: &'t str,
    value: &Located,
    names: &mut HashMap<&'t str, Range<usize>>,
    reading: &mut Reading<'_>,
) -> bool {
    let Some(first) = names.insert(name, value.span.clone()) else { return true };
    let what = format!("there is another rule called {}", said(name));
    reading.mistakes.add(Mistake::at(value.span.clone(), what).other("it is", first.start));
    false
}

/// What stands in records, where nothing may pass for something else.
fn label<'t>(value: &'t Located, what: &str, reading: &mut Reading<'_>) -> Option<&'t str> {
    let text = reading.text(value, what)?;
    let wrong = if text.trim().is_empty() {
        "is empty".to_owned()
    } else if text.chars().count() > NAME_MAX {
        format!("is longer than {NAME_MAX} letters")
    } else if text.chars().any(|c| c.is_control() || is_deceptive(c)) {
        "has characters in it that cannot be seen".to_owned()
    } else {
        return Some(text);
    };
    reading.mistakes.add(Mistake::at(value.span.clone(), format!("{what} {wrong}")));
    None
}

fn filter(value: &Located, reading: &mut Reading<'_>) -> Option<Filter> {
    let text = reading.text(value, "`match`")?;
    match Filter::parse(text) {
        Ok(filter) => {
            for (field, place) in filter.fields().into_iter().filter(|(field, _)| NOT_YET_KNOWN.contains(field)) {
                let place = within(reading.source.text(), value.span.clone(), text, place);
                let what = format!("nobody knows `{field}` before a message has been judged");
                reading.mistakes.add(Mistake::at(place, what).help("a rule cannot go by it"));
            }
            for (field, place) in filter.fields().into_iter().filter(|(field, _)| NOT_JUDGED_BY.contains(field)) {
                let place = within(reading.source.text(), value.span.clone(), text, place);
                let what = format!("rules do not look at `{field}`: they judge what a message says");
                reading.mistakes.add(Mistake::at(place, what).help("a rule cannot go by it"));
            }
            Some(filter)
        }
        Err(error) => {
            let place = within(reading.source.text(), value.span.clone(), text, error.span());
            let mistake = Mistake::at(place, error.what().to_owned());
            reading.mistakes.add(match error.help() {
                Some(help) => mistake.help(help),
                None => mistake.help("`mcp-proxy help filter` explains the language"),
            });
            None
        }
    }
}

fn message<'t>(value: &'t Located, reading: &mut Reading<'_>) -> Option<&'t str> {
    let text = reading.text(value, "`message`")?;
    if text.chars().count() > MESSAGE_MAX {
        let what = format!("`message` is longer than {MESSAGE_MAX} letters");
        reading.mistakes.add(Mistake::at(value.span.clone(), what));
        return None;
    }
    (!text.trim().is_empty()).then_some(text)
}

fn waiting(member: &Member, verdict: Option<VerdictKind>, reading: &mut Reading<'_>) -> Option<Duration> {
    only_asks(member, verdict, reading);
    reading.duration(&member.value, "`timeout`")
}

/// Only a question waits. Whoever writes otherwise expects something that will not happen.
fn only_asks(member: &Member, verdict: Option<VerdictKind>, reading: &mut Reading<'_>) {
    if let Some(verdict) = verdict.filter(|verdict| *verdict != VerdictKind::Ask) {
        let what = format!("`{}` is for rules that ask, and this one says {}", member.key, verdict.as_str());
        reading.mistakes.add(Mistake::at(member.key_span.clone(), what));
    }
}

/// What `classify` says.
pub(super) fn mode(word: &Located, reading: &mut Reading<'_>) -> Option<Mode> {
    reading.word(word, "mode", &Mode::ALL.map(|mode| (mode.name(), mode)))
}

pub(super) fn operations(table: &Located, reading: &mut Reading<'_>) -> Vec<(String, Operation)> {
    let choices = Operation::ALL.map(|operation| (operation.name(), operation));
    let members = reading.table(table, "`operations`").unwrap_or_default();
    let mut overrides = Vec::new();
    for member in members.iter().filter(|member| !member.is_comment()) {
        if let Some(operation) = reading.word(&member.value, "operation", &choices) {
            overrides.push((member.key.clone(), operation));
        }
    }
    overrides
}
