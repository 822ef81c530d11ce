//! Why rules judge a message as they do.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::event::Verdict;
use crate::api::policy::{Permission, VerdictKind};

/// What the rules that count now make of a message, rule by rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// What these rules decide about it; absent if it is nothing that rules decide about, such as an
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<VerdictKind>,
    /// What was decided when it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Verdict>,
    /// The class of operation: `read`, `write`, `delete`, `execute` or `admin`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// How it got that class, and what else there is to know, each in plain words.
    pub reasons: Vec<String>,
    /// The first 200 rules in their order, and the one that decides.
    pub rules: Vec<ExplainedRule>,
    /// How many rules are not listed.
    pub rules_omitted: u64,
    /// What counts where no rule decides.
    pub default: Permission,
    /// The version of these rules.
    pub version: String,
    /// These rules count only since after the message: it was judged by others.
    pub rules_changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRule {
    pub name: String,
    /// An expression of the filter language.
    pub filter: String,
    pub verdict: VerdictKind,
    pub matches: bool,
    /// It is the one that counts.
    pub decides: bool,
    /// What else there is to know of it, in plain words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
