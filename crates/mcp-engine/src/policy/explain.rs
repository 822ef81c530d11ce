//! What rules would decide about a message, rule by rule, for those who write rules.

use std::sync::Arc;

use mcp_filter::Certainty;
use mcp_wire::fold::unescaped;
use mcp_wire::{Ending, Kind, Message};

use super::operation::{Annotations, Classified, Operation};
use super::prospect::Prospect;
use super::rules::{Permission, Rule, Rules, VerdictKind};
use super::tools::Tools;
use super::{Answered, Concern, govern, table};
use crate::conversation::Speaker;
use crate::envelope::{ProxyMessage, Side, Upstream};
use crate::intercept::{Class, Live};

/// A message that somebody wonders about.
pub struct Case<'a> {
    pub message: &'a Message,
    pub from: Side,
    pub speaker: &'a Speaker,
    /// What the server says of the tool.
    pub annotations: Annotations,
    /// The server of a gateway that it is for, or from.
    pub server: Option<&'a str>,
    /// It has the arguments that are meant. If it has not, rules about them are left open.
    pub is_whole: bool,
}

/// The hints of recorded lists of tools.
#[derive(Debug, Default)]
pub struct ListedTools(Tools);

impl ListedTools {
    /// Takes in an answer to `tools/list`.
    pub fn hear(&mut self, answer: &[u8]) {
        self.0.learn(answer);
    }

    pub fn of(&self, tool: &str) -> Annotations {
        self.0.of(tool)
    }
}

/// What the data path knows of how messages like one are judged.
pub struct Judging {
    pub rules: Arc<Rules>,
    /// Messages up to this were judged by other rules.
    pub judged_otherwise: u64,
    /// What the server says of the tool.
    pub annotations: Annotations,
    /// The server of a gateway.
    pub server: Option<Arc<str>>,
    /// What people answered about such messages, to whichever rules: what counts first.
    pub answers: Vec<Answered>,
}

#[derive(Debug)]
pub struct Explained {
    /// Why it is denied whatever rules say: it can be read two ways, or is nothing that may be sent.
    pub unfit: Option<String>,
    pub operation: Option<Operation>,
    /// How the tool got its operation, if the message is about one.
    pub classified: Option<Classified>,
    /// Client and server need it to talk at all, so only rules count that name its method.
    pub is_plumbing: bool,
    /// Whether each rule matches.
    pub matches: Vec<Certainty>,
    /// Which rules can decide, in order. Each but the last may leave it to the next, and the last may not
    /// unless `default` says what counts then.
    pub deciding: Vec<usize>,
    pub default: Option<Permission>,
}

pub fn explain(rules: &Rules, case: &Case<'_>) -> Explained {
    let said = case.message;
    let (method, tool) = (said.method().unwrap_or_default(), said.subject());
    let concern = Concern::of(&method);
    let plain = tool.as_deref().filter(|_| concern == Concern::Tool).and_then(unescaped);
    let operation = |tool: Option<&str>| {
        let operation = concern.operation(tool, &rules.classifier, case.annotations);
        operation.filter(|_| case.from == Side::Client)
    };
    let (operation, respelled) = (operation(tool.as_deref()), plain.as_deref().map(|plain| operation(Some(plain))));
    let is_plumbing = concern == Concern::Plumbing;
    let prospect = Prospect {
        from: case.from,
        is_request: said.kind() == Kind::Request,
        method: Some(&method),
        tool: tool.as_deref(),
        operation,
        annotations: case.annotations,
        server: case.server.or(rules.server.as_deref()),
        client: case.speaker.client.as_deref(),
        revision: case.speaker.revision.as_deref(),
        is_plumbing,
    };
    let message = message(case);
    let matches_as = |rule: &Rule, prospect: &Prospect<'_>| match table::foretell(rule, prospect) {
        Certainty::Maybe if case.is_whole => {
            let class = Class::Known(prospect.operation, case.annotations);
            let live = Live { message: &message, request: None, speaker: case.speaker, server: prospect.server, class };
            match rule.filter.matches_in(&live, table::spelling(rule)) {
                true => Certainty::Yes,
                false => Certainty::No,
            }
        }
        foretold => foretold,
    };
    let matches = |rule: &Rule| {
        let respelled = || Some(Prospect { operation: respelled?, ..prospect });
        table::in_spellings(rule, matches_as(rule, &prospect), || Some(matches_as(rule, &respelled()?)))
    };
    let matches: Vec<Certainty> = rules.rules.iter().map(matches).collect();
    let (deciding, is_decided) = deciding(&rules.rules, &matches);
    let default = if is_plumbing { Permission::Allow } else { rules.default };
    let named = tool.as_deref().filter(|_| concern == Concern::Tool && case.from == Side::Client);
    let classified = named.into_iter().chain(named.and(plain.as_deref()));
    let classified = classified.map(|tool| rules.classifier.classify(tool, case.annotations));
    Explained {
        unfit: govern::unfit_for(rules, &message),
        operation: operation.max(respelled.flatten()),
        classified: classified.max_by_key(|classified| classified.operation),
        is_plumbing,
        matches,
        deciding,
        default: (!is_decided).then_some(default),
    }
}

/// The rules that can decide, and whether the last of them does for certain.
fn deciding(rules: &[Rule], matches: &[Certainty]) -> (Vec<usize>, bool) {
    let mut deciding = Vec::new();
    for (at, (rule, matches)) in rules.iter().zip(matches).enumerate() {
        if rule.verdict == VerdictKind::Observe || *matches == Certainty::No {
            continue;
        }
        deciding.push(at);
        if *matches == Certainty::Yes {
            return (deciding, true);
        }
    }
    (deciding, false)
}

fn message(case: &Case<'_>) -> ProxyMessage {
    ProxyMessage {
        sequence: 1,
        time_ns: 0,
        from: case.from,
        conversation: 1,
        upstream: Upstream::ONLY,
        message: case.message.clone(),
        ending: Ending::Lf,
        bom: false,
        correlated: None,
    }
}

#[cfg(test)]
mod tests {
    use mcp_filter::Filter;

    use super::*;
    use crate::policy::operation::Classifier;
    use crate::policy::rules::Denial;
    use crate::policy::{Policy, Refused, Rulings, Verdict};

    fn rules(default: Permission, written: &[(&str, VerdictKind)]) -> Rules {
        let rule = |(at, (filter, verdict)): (usize, &(&str, VerdictKind))| Rule {
            name: format!("rule-{at}").into(),
            filter: Filter::parse(filter).unwrap(),
            verdict: *verdict,
            message: None,
            timeout: None,
            on_timeout: Permission::Deny,
        };
        Rules {
            rules: written.iter().enumerate().map(rule).collect(),
            default,
            classifier: Classifier::default(),
            hide_denied: false,
            denial: Denial::Error,
            audit_required: false,
            server: Some("github".into()),
            version: "1".into(),
        }
    }

    /// What is decided when it matters.
    fn judged(rules: &Arc<Rules>, message: &Message, from: Side) -> (VerdictKind, Option<Arc<str>>) {
        let mut policy = Policy::default();
        policy.govern(Arc::clone(rules));
        let speaker = Speaker::default();
        let annotations = Annotations::default();
        let case = Case { message, from, speaker: &speaker, annotations, server: None, is_whole: true };
        let ruling = match policy.permit(super::message(&case), &speaker) {
            Verdict::Permitted(_, Rulings::One(ruling)) => ruling,
            Verdict::Asked(question) => question.ruling,
            Verdict::Refused(_, Refused::Denied(ruling)) => *ruling,
            other => panic!("{other:?}"),
        };
        (ruling.verdict, ruling.rule)
    }

    /// What is explained is what happens, and what is left open does not rule it out.
    #[test]
    fn an_explanation_is_what_happens() {
        use VerdictKind::*;
        let written = [
            ("$.params.arguments.path ^= \"/etc\"", Deny),
            ("op:delete", Ask),
            ("tool:list_* $.params.arguments.all = true", Observe),
            ("tool:list_*", Allow),
            ("method:sampling/*", Deny),
            ("method:tools/list client:x", Deny),
            ("", Deny),
        ];
        let messages = [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_x","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"DELETE_X","arguments":{"path":"/etc/x"}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_x","arguments":{"all":true}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"List_x","arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
        ];
        for count in 0..=written.len() {
            for default in [Permission::Allow, Permission::Deny] {
                let rules = Arc::new(rules(default, &written[..count]));
                for text in messages {
                    let message = Message::new(bytes::Bytes::from_static(text.as_bytes()));
                    let from = if text.contains("sampling") { Side::Server } else { Side::Client };
                    let (verdict, rule) = judged(&rules, &message, from);
                    let speaker = Speaker::default();
                    let case = |is_whole| Case {
                        message: &message,
                        from,
                        speaker: &speaker,
                        annotations: Annotations::default(),
                        server: None,
                        is_whole,
                    };
                    let whole = explain(&rules, &case(true));
                    let by = whole.deciding.first().map(|at| Arc::clone(&rules.rules[*at].name));
                    assert_eq!(by, rule, "{text} by {count} rules");
                    assert!(whole.deciding.len() <= 1 && whole.default.is_none() == rule.is_some());
                    if let Some(default) = whole.default {
                        assert_eq!(default.as_str(), verdict.as_str(), "{text} by {count} rules");
                    }
                    let open = explain(&rules, &case(false));
                    let may = open.deciding.iter().any(|at| Some(&rules.rules[*at].name) == rule.as_ref());
                    assert!(may || (rule.is_none() && open.default.is_some()), "{text} by {count} rules");
                }
            }
        }
    }
}
