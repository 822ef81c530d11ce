//! `policy explain`: how a tool got its operation, which rules match a call of it, and which decides.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use clap::Args;
use mcp_engine::policy::Answered;
use mcp_engine::policy::explain::{Case, Explained, explain as explained};
use mcp_engine::policy::operation::{Annotations, Classifier};
use mcp_engine::policy::rules::{Denial, Permission, Rule, Rules, VerdictKind};
use mcp_engine::{Side, Speaker};
use mcp_filter::Certainty;
use mcp_store::StateDir;
use mcp_wire::Message;
use mcp_wire::visible::visible;
use serde_json::{Map, Value, json};

use crate::answers::AnswersFile;
use crate::cli::pair;
use crate::config::expand_home;
use crate::failure::{Failure, exit, quoted};
use crate::report::{Page, Style};

use super::check::count;
use super::file;
use super::hints::{self, Hint, Recorded};
use super::service::Naming;

#[derive(Args)]
#[command(
    after_help = "With any K=V the call has these arguments and no others; without, rules that look at arguments are left open. The exit code is 1 if the call is denied."
)]
pub(crate) struct ExplainArgs {
    /// The tool; with --method the prompt, the address of the resource, or nothing
    tool: Option<String>,
    /// Arguments of the call; a value is JSON, or else text
    #[arg(value_name = "K=V", value_parser = pair)]
    arguments: Vec<(String, String)>,
    /// The rules; without them only the operation of the tool is told
    #[arg(long, value_name = "FILE", visible_alias = "config")]
    rules: Option<PathBuf>,
    /// What is asked for, in place of a call
    #[arg(long, value_name = "METHOD", default_value = CALL)]
    method: String,
    /// What the server is called, and which service of the rules it is
    #[arg(long, value_name = "NAME", visible_alias = "service")]
    server: Option<String>,
    /// What the client calls itself
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// What the server says of the tool: `destructive`, `readonly`, or either with `=no`; `unknown` is a tool that
    /// it has not listed [default: what the newest recording shows]
    #[arg(long, value_name = "HINT", value_parser = Hint::parse)]
    hint: Vec<(Hint, bool)>,
    /// For scripts
    #[arg(long)]
    json: bool,
}

const CALL: &str = "tools/call";

pub(super) fn explain(
    args: &ExplainArgs,
    state: &dyn Fn() -> Result<StateDir, Failure>,
    page: &mut Page,
) -> Result<ExitCode, Failure> {
    if args.tool.is_none() && args.method == CALL {
        return Err(Failure::usage("whose call is to be explained?").hint("name the tool, or give --method"));
    }
    let path = args.rules.as_deref().map(expand_home);
    let rules = match &path {
        Some(path) => file::read(path, Naming { service: args.server.as_deref(), ..Naming::default() })?.rules,
        None => no_rules(args.server.as_deref()),
    };
    let message = Message::new(args.message());
    let speaker = Speaker { client: args.client.as_deref().map(Arc::from), ..Speaker::default() };
    let recorded = args.recorded(&rules, state);
    let annotations = args.annotations(recorded.as_ref());
    let case = Case {
        message: &message,
        from: args.sender(),
        speaker: &speaker,
        annotations,
        server: None,
        is_whole: !args.arguments.is_empty(),
    };
    let judge = |annotations| -> Result<_, Failure> {
        let told = explained(&rules, &Case { annotations, ..case });
        let answered = match &path {
            Some(path) => args.answered(path, &rules, &told)?,
            None => None,
        };
        Ok((told, answered))
    };
    let (told, answered) = judge(annotations)?;
    let verdict = answered.as_ref().map(|answered| of_default(answered.permission)).or_else(|| decision(&rules, &told));
    let answer = |told: &Explained, answered: &Option<Answered>| match (&path, told.operation) {
        (Some(_), _) => decided(&rules, told, answered.as_ref()),
        (None, operation) => operation.map_or_else(String::new, |operation| operation.to_string()),
    };
    let now = answer(&told, &answered);
    let mut otherwise = Vec::new();
    for (hint, value, annotations) in args.other_hints(annotations) {
        let (told, answered) = judge(annotations)?;
        let then = answer(&told, &answered);
        if then != now {
            otherwise.push((hint.told(value), then));
        }
    }
    if args.json {
        let mut document = args.document(&rules, &told, verdict);
        let recorded = recorded.map(|recorded| json!({"session": recorded.session, "server": recorded.server}));
        document["recorded"] = recorded.into();
        document["otherwise"] = otherwise.iter().map(|(hint, then)| json!({"hint": hint, "answer": then})).collect();
        page.line(&document.to_string())?;
    } else {
        args.tell_class(&told, page)?;
        if let Some(Recorded { session, server, .. }) = &recorded {
            let server = server.as_deref().unwrap_or("the server");
            page.line(&format!("hints: as {} listed it in recording {session}", visible(server)))?;
        }
        if let Some(path) = &path {
            let mode = rules.classifier.mode().name();
            let rules_line =
                format!("{}: {}, classify {mode} (version {})", quoted(path), count(&rules), rules.version);
            page.line(&format!("\n{}", page.styled(Style::Heading, &rules_line)))?;
            tell_rules(&rules, &told, page)?;
            tell_decision(&rules, &told, answered.as_ref(), verdict, page)?;
        }
        otherwise.iter().try_for_each(|(hint, then)| page.line(&format!("{hint}: {then}")))?;
    }
    Ok(if verdict == Some(VerdictKind::Deny) { ExitCode::from(exit::NEGATIVE) } else { ExitCode::SUCCESS })
}

fn no_rules(server: Option<&str>) -> Rules {
    Rules {
        rules: Vec::new(),
        default: Permission::Allow,
        classifier: Classifier::default(),
        hide_denied: false,
        denial: Denial::Error,
        audit_required: false,
        server: server.map(Arc::from),
        version: "".into(),
    }
}

impl ExplainArgs {
    fn sender(&self) -> Side {
        match self.method.as_str() {
            "sampling/createMessage" | "elicitation/create" | "roots/list" => Side::Server,
            _ => Side::Client,
        }
    }

    /// The tool as a recording of the server lists it.
    fn recorded(&self, rules: &Rules, state: &dyn Fn() -> Result<StateDir, Failure>) -> Option<Recorded> {
        let tool = self.tool.as_deref().filter(|_| self.method == CALL)?;
        // Without a place for recordings, or with a broken one, there are none.
        let of = |server: Option<&str>| hints::recorded(&state().ok()?, tool, server).ok()?;
        match (self.server.as_deref(), rules.server.as_deref()) {
            (Some(server), _) => of(Some(server)),
            // Recordings of a server without a name go by its command.
            (None, Some(server)) => of(Some(server)).or_else(|| of(None)),
            (None, None) => of(None),
        }
    }

    fn annotations(&self, recorded: Option<&Recorded>) -> Annotations {
        let recorded = recorded.map(|recorded| recorded.annotations).unwrap_or_default();
        self.hint.iter().fold(recorded, |annotations, (hint, value)| hint.set(annotations, *value))
    }

    /// Hints that the command line leaves open.
    fn other_hints(&self, annotations: Annotations) -> impl Iterator<Item = (Hint, bool, Annotations)> {
        let is_call = self.method == CALL;
        hints::others(annotations)
            .filter(move |(hint, _, _)| is_call && self.hint.iter().all(|(given, _)| given != hint))
    }

    /// The message that is judged. Only calls and prompts have arguments within their parameters.
    fn message(&self) -> Bytes {
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let given: Map<String, Value> = self.arguments.iter().map(|(key, text)| (key.clone(), value(text))).collect();
        let name = if self.method.starts_with("resources/") { "uri" } else { "name" };
        let mut params = Map::new();
        if let Some(tool) = &self.tool {
            params.insert(name.into(), tool.as_str().into());
        }
        match self.method.as_str() {
            CALL | "prompts/get" => drop(params.insert("arguments".into(), given.into())),
            _ => params.extend(given),
        }
        let mut message = json!({"jsonrpc": "2.0", "method": self.method, "params": params});
        if !self.method.starts_with("notifications/") {
            message["id"] = 1.into();
        }
        message.to_string().into()
    }

    fn tell_class(&self, told: &Explained, page: &mut Page) -> Result<(), Failure> {
        let subject = match (&self.tool, self.method.as_str()) {
            (Some(tool), CALL) => visible(tool).to_string(),
            (Some(tool), method) => format!("{} of {}", visible(method), visible(tool)),
            (None, method) => visible(method).to_string(),
        };
        let subject = page.styled(Style::Heading, &subject);
        let class = match (&told.classified, told.operation) {
            (Some(classified), _) => classified.to_string(),
            (None, Some(operation)) => operation.to_string(),
            (None, None) if told.is_plumbing => {
                "no operation; it is needed to talk at all, so rules about everything do not count".into()
            }
            (None, None) => "no operation".into(),
        };
        Ok(page.line(&format!("{subject} is {class}"))?)
    }

    /// What somebody answered for good to the rule that would ask.
    fn answered(&self, path: &Path, rules: &Rules, told: &Explained) -> Result<Option<Answered>, Failure> {
        let asking = told.deciding.last().map(|at| &rules.rules[*at]);
        let Some(asking) = asking.filter(|_| decision(rules, told) == Some(VerdictKind::Ask)) else { return Ok(None) };
        let is_meant = |answered: &Answered| {
            answered.rule == asking.name
                && *answered.method == *self.method
                && answered.subject.as_deref() == self.tool.as_deref()
                && answered.server.as_deref().is_none_or(|server| self.server.as_deref() == Some(server))
        };
        Ok(AnswersFile::beside(path).read()?.into_iter().rev().find(is_meant))
    }

    fn document(&self, rules: &Rules, told: &Explained, verdict: Option<VerdictKind>) -> Value {
        let each = rules.rules.iter().zip(&told.matches).map(|(rule, matches)| {
            json!({
                "name": &*rule.name,
                "match": rule.filter.to_string(),
                "verdict": rule.verdict.as_str(),
                "matches": match matches {
                    Certainty::Yes => "yes",
                    Certainty::No => "no",
                    Certainty::Maybe => "depends",
                },
            })
        });
        let deciding: Vec<&str> = told.deciding.iter().map(|at| &*rules.rules[*at].name).collect();
        json!({
            "tool": self.tool,
            "method": self.method,
            "operation": told.operation.map(|operation| operation.name()),
            "why": told.classified.as_ref().map(|classified| classified.reason.to_string()),
            "classify": self.rules.as_ref().map(|_| rules.classifier.mode().name()),
            "rules_version": self.rules.as_ref().map(|_| &*rules.version),
            "rules": each.collect::<Vec<_>>(),
            "deciding": deciding,
            "default": told.default.map(Permission::as_str),
            "verdict": self.rules.as_ref().and(verdict).map(VerdictKind::as_str),
        })
    }
}

fn tell_rules(rules: &Rules, told: &Explained, page: &mut Page) -> Result<(), Failure> {
    let width = rules.rules.iter().map(|rule| rule.name.chars().count()).max().unwrap_or_default();
    for (at, (rule, matches)) in rules.rules.iter().zip(&told.matches).enumerate() {
        let is_last = told.deciding.last() == Some(&at) && told.default.is_none();
        let mark = if is_last { "→" } else { " " };
        let matches = match matches {
            Certainty::Yes => "matches",
            Certainty::No => "no",
            Certainty::Maybe => "depends",
        };
        let (name, verdict, filter) = (visible(&rule.name).to_string(), rule.verdict.as_str(), rule.filter.to_string());
        page.line(format!("{mark} {matches:<8} {name:<width$} {verdict:<8} {}", visible(&filter)).trim_end())?;
    }
    Ok(())
}

/// What is decided, if that does not depend on the arguments.
fn decision(rules: &Rules, told: &Explained) -> Option<VerdictKind> {
    let mut verdicts = told.deciding.iter().map(|at| rules.rules[*at].verdict).collect::<Vec<_>>();
    verdicts.extend(told.default.map(of_default));
    let first = *verdicts.first()?;
    verdicts.iter().all(|verdict| *verdict == first).then_some(first)
}

fn of_default(default: Permission) -> VerdictKind {
    match default {
        Permission::Allow => VerdictKind::Allow,
        Permission::Deny => VerdictKind::Deny,
    }
}

/// What is decided, and by what.
fn decided(rules: &Rules, told: &Explained, answered: Option<&Answered>) -> String {
    let certain = certain(rules, told);
    let open = &told.deciding[..told.deciding.len() - usize::from(certain.is_some())];
    let otherwise = match (certain, told.default) {
        (Some(rule), _) => by_rule(rule),
        (None, Some(default)) => format!("{} by default", default.as_str()),
        (None, None) => "allow".into(),
    };
    match (open, answered) {
        (_, Some(Answered { permission, rule, by, .. })) => {
            let (rule, by) = (visible(rule), visible(by));
            format!("{} by an answer to rule `{rule}` that counts for good, of {by}", permission.as_str())
        }
        ([], None) => otherwise,
        (open, None) => {
            let each: Vec<String> = open
                .iter()
                .map(|at| &rules.rules[*at])
                .map(|rule| format!("{} if `{}` matches", rule.verdict.as_str(), visible(&rule.name)))
                .collect();
            format!("it depends on the arguments: {}, else {otherwise}", each.join(", else "))
        }
    }
}

/// The rule that decides whatever the arguments, if no other does before.
fn certain<'a>(rules: &'a Rules, told: &Explained) -> Option<&'a Rule> {
    told.default.is_none().then(|| told.deciding.last()).flatten().map(|at| &rules.rules[*at])
}

fn tell_decision(
    rules: &Rules,
    told: &Explained,
    answered: Option<&Answered>,
    verdict: Option<VerdictKind>,
    page: &mut Page,
) -> Result<(), Failure> {
    let (text, certain) = (decided(rules, told, answered), certain(rules, told));
    let style = match verdict {
        Some(VerdictKind::Deny) => Style::Bad,
        Some(VerdictKind::Allow) => Style::Good,
        _ => Style::Heading,
    };
    page.line(&format!("\ndecision: {}", page.styled(style, &text)))?;
    let noted: Vec<String> = noted(rules, told).map(|rule| format!("`{}`", visible(&rule.name))).collect();
    if !noted.is_empty() {
        page.line(&format!("noted by: {}", noted.join(", ")))?;
    }
    if let Some(message) = certain.filter(|_| told.deciding.len() == 1).and_then(|rule| rule.message.as_deref()) {
        page.line(&format!("message: {}", visible(message)))?;
    }
    Ok(())
}

/// Rules that only observe, and match before any decides.
fn noted<'a>(rules: &'a Rules, told: &'a Explained) -> impl Iterator<Item = &'a Rule> {
    let until = told.deciding.first().copied().unwrap_or(rules.rules.len());
    rules.rules[..until]
        .iter()
        .zip(&told.matches)
        .filter(|(_, matches)| **matches == Certainty::Yes)
        .map(|(rule, _)| rule)
}

fn by_rule(rule: &Rule) -> String {
    let name = visible(&rule.name);
    match (rule.verdict, rule.timeout) {
        (VerdictKind::Ask, Some(timeout)) => {
            format!("ask by rule `{name}`; after {timeout:?} without an answer {}", rule.on_timeout.as_str())
        }
        (verdict, _) => format!("{} by rule `{name}`", verdict.as_str()),
    }
}
