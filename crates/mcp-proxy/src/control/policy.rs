//! The rules that messages are judged by, and what people answered to those that ask, in the words of
//! the control API.

use axum::extract::State;
use mcp_control::api::{self, ApiError};
use mcp_engine::Pipeline;
use mcp_engine::intercept::Held;
use mcp_engine::pipeline::Status;
use mcp_engine::policy::rules::{Rule, Rules, VerdictKind};
use mcp_engine::policy::{Answered, Answers};

use super::reply::{Answer, Json, Refusal};
use super::shared::Shared;
use super::tell;

/// The rules, and the answers to those that ask
#[utoipa::path(get, path = "/v1/policy", tag = "look", responses((status = 200, body = api::Policy), (status = "default", body = ApiError)))]
pub(super) async fn policy(State(shared): State<Shared>) -> Answer<api::Policy> {
    let work = |pipeline: &mut Pipeline| {
        pipeline.governance.rules().cloned().map(|rules| (rules, pipeline.governance.answers().clone()))
    };
    let (rules, answers) = shared.order(work).await?.ok_or_else(no_rules)?;
    Ok(Json(api::Policy {
        version: rules.version.to_string(),
        file: shared.rules_file.as_ref().map(|file| file.display().to_string()),
        server: rules.server.as_deref().map(str::to_owned),
        default: rules.default,
        hide_denied: rules.hide_denied,
        audit_required: rules.audit_required,
        rules: rules.rules.iter().map(rule).collect(),
        answers: answered(&rules, &answers),
    }))
}

pub(super) fn no_rules() -> Refusal {
    Refusal::not_found("there are no rules: messages are not judged")
}

/// The rules in a few words.
pub(super) fn governed(status: &Status) -> Option<api::Governed> {
    let rules = status.rules.as_deref()?;
    Some(api::Governed {
        version: rules.version.to_string(),
        rules: rules.rules.len() as u64,
        default: rules.default,
        hide_denied: rules.hide_denied,
        unwritten: status.is_unwritten,
    })
}

/// What a rule asks about a held message, if one does.
pub(super) fn question(held: &Held) -> Option<api::Question> {
    let ruling = held.asks.as_ref()?;
    Some(api::Question {
        rule: ruling.name().to_owned(),
        message: ruling.message.as_deref().map(str::to_owned),
        method: held.message.method().map(Into::into),
        tool: held.message.subject().map(Into::into),
        operation: ruling.operation.map(|operation| operation.name().to_owned()),
        timeout_ms: ruling.timeout.map(tell::millis),
        on_timeout: ruling.on_timeout,
        in_client: held.in_client,
    })
}

fn rule(rule: &Rule) -> api::Rule {
    api::Rule {
        name: rule.name.to_string(),
        filter: rule.filter.to_string(),
        verdict: rule.verdict,
        message: rule.message.as_deref().map(str::to_owned),
        timeout_ms: rule.timeout.map(tell::millis),
        on_timeout: (rule.verdict == VerdictKind::Ask).then_some(rule.on_timeout),
    }
}

/// What is written first, then what was said for this run.
fn answered(rules: &Rules, answers: &Answers) -> Vec<api::Answered> {
    let asks = |name: &str| rules.rules.iter().any(|rule| *rule.name == *name && rule.verdict == VerdictKind::Ask);
    let is_new = |answer: &Answered, newer: &[Answered]| !newer.iter().any(|newer| newer.is_about_the_same(answer));
    let told = |answer: &Answered, lasting, is_newest: bool| api::Answered {
        rule: answer.rule.to_string(),
        method: answer.method.to_string(),
        subject: answer.subject.as_deref().map(str::to_owned),
        server: answer.server.as_deref().map(str::to_owned),
        permission: answer.permission,
        by: answer.by.to_string(),
        lasting,
        counts: is_newest && asks(&answer.rule),
    };
    let written = answers.written().iter().enumerate().map(|(at, answer)| {
        let is_newest = is_new(answer, answers.said()) && is_new(answer, &answers.written()[at + 1..]);
        told(answer, api::Lasting::Rule, is_newest)
    });
    let said = answers.said().iter().map(|answer| told(answer, api::Lasting::Session, true));
    written.chain(said).collect()
}
