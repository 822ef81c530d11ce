//! Why rules judge a message as they do: what the engine explains, in the words of the control API.

use axum::extract::State;
use mcp_control::api::{ApiError, ExplainedRule, Explanation};
use mcp_engine::meaning::uses_of;
use mcp_engine::policy::explain::{Case, Explained, Judging, explain as explained};
use mcp_engine::policy::rules::{Rule, Rules, VerdictKind};
use mcp_engine::{Pipeline, Speaker};
use mcp_filter::Certainty;
use mcp_store::{Direction, MessageKind, Told};

use super::policy::no_rules;
use super::reply::{Answer, Json, Refusal};
use super::request::Sequence;
use super::shared::Shared;
use super::{history, tell};

/// Rules that are listed; the one that decides is, wherever it stands.
const LISTED_MAX: usize = 200;

/// Why rules judge a message as they do
///
/// By the rules that count now; `rules_changed` says that it was judged by others.
#[utoipa::path(get, path = "/v1/messages/{sequence}/explain", tag = "look", params(("sequence" = u64, Path)), responses((status = 200, body = Explanation), (status = "default", body = ApiError)))]
pub(super) async fn explain(State(shared): State<Shared>, Sequence(sequence): Sequence) -> Answer<Explanation> {
    let found = history::one(&shared, sequence).await?;
    let (told, _) = found.ok_or_else(|| super::act::no_message(sequence))?;
    let (message, conversation) = (told.message.clone(), told.recorded.conversation);
    let upstream = told.recorded.upstream.clone();
    let judging = move |pipeline: &mut Pipeline| pipeline.judging(&message, conversation, upstream.as_deref());
    let judging = shared.order(judging).await?;
    let judging = judging.ok_or_else(no_rules)?;
    // There may be thousands of rules, and a message may be long.
    let _turn = shared.readers.acquire().await.map_err(|_| Refusal::ending())?;
    let explanation = tokio::task::spawn_blocking(move || explanation(&told, sequence, &judging)).await;
    explanation.map(Json).map_err(|error| Refusal::internal(format!("the rules cannot be explained: {error}")))
}

fn explanation(told: &Told, sequence: u64, judging: &Judging) -> Explanation {
    let (rules, recorded) = (&*judging.rules, &told.recorded);
    let mut explanation = Explanation {
        verdict: None,
        recorded: recorded.verdict.as_deref().map(|verdict| tell::verdict(sequence, verdict)),
        operation: None,
        reasons: Vec::new(),
        rules: Vec::new(),
        rules_omitted: rules.rules.len() as u64,
        default: rules.default,
        version: rules.version.to_string(),
        rules_changed: sequence <= judging.judged_otherwise,
    };
    if let Some(why) = not_judged(told) {
        explanation.reasons.push(why.into());
        return explanation;
    }
    let from = recorded.direction.sender();
    let speaker = Speaker { client: told.client.clone(), revision: told.revision.clone(), ..Speaker::default() };
    let (annotations, message) = (judging.annotations, &told.message);
    let server = judging.server.as_deref();
    let explained = explained(rules, &Case { message, from, speaker: &speaker, annotations, server, is_whole: true });
    explanation.operation = explained.operation.map(|operation| operation.name().to_owned());
    explanation.reasons = reasons(told, &explained);
    explanation.verdict = verdict(told, rules, &explained);
    explanation.rules = listed(rules, &explained, judging);
    explanation.rules_omitted -= explanation.rules.len() as u64;
    explanation
}

/// Why rules are not asked about a message as it is, if they are not.
fn not_judged(told: &Told) -> Option<&'static str> {
    if told.recorded.from_proxy && told.recorded.direction == Direction::ServerToClient {
        return Some("the proxy made it, and is not judged by rules");
    }
    match told.kind {
        MessageKind::Request | MessageKind::Notification => None,
        MessageKind::Response | MessageKind::Error => {
            Some("it is an answer: rules judge what is asked for, also within an answer that asks for more")
        }
        MessageKind::Batch => Some("it is a batch: rules judge each message in it by itself"),
        MessageKind::OtherJson | MessageKind::NotJson => Some("it is no JSON-RPC message, which rules let nobody send"),
        MessageKind::Noise | MessageKind::Event => Some("it is no message"),
    }
}

/// How the message got its class, and what else counted.
fn reasons(told: &Told, explained: &Explained) -> Vec<String> {
    let mut reasons = Vec::new();
    match (&explained.classified, explained.operation) {
        (Some(classified), _) => reasons.push(classified.reason.to_string()),
        (None, Some(_)) => reasons.push("what its method does".to_owned()),
        (None, None) if explained.is_plumbing => {
            reasons.push("it is needed to talk at all, so only rules count that name its method".to_owned());
        }
        (None, None) => {}
    }
    reasons.extend(explained.unfit.as_ref().map(|unfit| format!("it is denied whatever rules say: {unfit}")));
    if told.recorded.original_raw.is_some() {
        reasons.push("it was changed: this is about what it became".to_owned());
    }
    match told.message.subscriptions().count() {
        0 => {}
        count => reasons.push(format!("each of the resources that it names ({count}) is judged by itself, too")),
    }
    match uses_of(&told.message).len() {
        0 => {}
        count => reasons.push(format!("what it uses through a proxy tool ({count}) is judged by itself, too")),
    }
    reasons
}

fn verdict(told: &Told, rules: &Rules, explained: &Explained) -> Option<VerdictKind> {
    let is_judged_in_parts = told.message.subscriptions().next().is_some() || !uses_of(&told.message).is_empty();
    match (&explained.unfit, explained.deciding.first()) {
        (Some(_), _) => Some(VerdictKind::Deny),
        (None, _) if is_judged_in_parts => None,
        (None, Some(at)) => Some(rules.rules[*at].verdict),
        (None, None) => explained.default.map(VerdictKind::from),
    }
}

/// The first rules, and the one that decides.
fn listed(rules: &Rules, explained: &Explained, judging: &Judging) -> Vec<ExplainedRule> {
    let deciding = explained.deciding.first().copied().filter(|_| explained.unfit.is_none());
    let first = rules.rules.len().min(LISTED_MAX);
    let places = (0..first).chain(deciding.filter(|at| *at >= first));
    let each = places.map(|at| {
        let (rule, matches) = (&rules.rules[at], explained.matches[at] == Certainty::Yes);
        let note = match deciding {
            Some(deciding) if at == deciding => decided(rule, judging),
            _ if !matches => None,
            Some(deciding) if at > deciding => Some("a rule before it decides".to_owned()),
            _ if rule.verdict == VerdictKind::Observe => Some("it only notes that it matches".to_owned()),
            _ => None,
        };
        let (name, filter) = (rule.name.to_string(), rule.filter.to_string());
        let verdict = rule.verdict;
        ExplainedRule { name, filter, verdict, matches, decides: deciding == Some(at), note }
    });
    each.collect()
}

/// What else to know of the rule that decides.
fn decided(rule: &Rule, judging: &Judging) -> Option<String> {
    if rule.verdict != VerdictKind::Ask {
        return rule.message.as_deref().map(str::to_owned);
    }
    let answered = judging.answers.iter().find(|answered| answered.rule == rule.name);
    let answered = answered
        .map(|answered| format!("{} answered {}, which still counts", answered.by, answered.permission.as_str()));
    let in_time = || Some(format!("{} if nobody answers within {:?}", rule.on_timeout.as_str(), rule.timeout?));
    answered.or_else(in_time)
}
