//! The protocol's methods, in all its revisions, and what their parameters must have for a rule to
//! know what they are about.

use crate::fold::skeleton;

/// What a method is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// `params.name`, with `params.arguments`
    Name,
    /// `params.uri`
    Uri,
    /// `params.taskId`
    Task,
    /// `params.ref`
    Reference,
    /// `params.notifications`
    Subscriptions,
    /// Nothing that it must have.
    Any,
}

const METHODS: &[(&str, About)] = &[
    ("tools/call", About::Name),
    ("prompts/get", About::Name),
    ("resources/read", About::Uri),
    ("resources/subscribe", About::Uri),
    ("resources/unsubscribe", About::Uri),
    ("completion/complete", About::Reference),
    ("tasks/get", About::Task),
    ("tasks/result", About::Task),
    ("tasks/update", About::Task),
    ("tasks/cancel", About::Task),
    ("tasks/list", About::Any),
    ("initialize", About::Any),
    ("ping", About::Any),
    ("server/discover", About::Any),
    ("subscriptions/listen", About::Subscriptions),
    ("tools/list", About::Any),
    ("prompts/list", About::Any),
    ("resources/list", About::Any),
    ("resources/templates/list", About::Any),
    ("logging/setLevel", About::Any),
    ("roots/list", About::Any),
    ("sampling/createMessage", About::Any),
    ("elicitation/create", About::Any),
    ("notifications/initialized", About::Any),
    ("notifications/cancelled", About::Any),
    ("notifications/progress", About::Any),
    ("notifications/message", About::Any),
    ("notifications/roots/list_changed", About::Any),
    ("notifications/tools/list_changed", About::Any),
    ("notifications/prompts/list_changed", About::Any),
    ("notifications/resources/list_changed", About::Any),
    ("notifications/resources/updated", About::Any),
    ("notifications/subscriptions/acknowledged", About::Any),
    ("notifications/elicitation/complete", About::Any),
    ("notifications/tasks", About::Any),
    ("notifications/tasks/status", About::Any),
];

const NOTIFICATIONS: &str = "notifications/";

pub(super) fn is_notification(method: &str) -> bool {
    method.starts_with(NOTIFICATIONS)
}

/// What a method of the protocol is about; `None` of a method that it does not have.
pub(super) fn about(method: &str) -> Option<About> {
    METHODS.iter().find(|(name, _)| *name == method).map(|(_, about)| *about)
}

/// Whether somebody could take a method that is none of the protocol's for one.
pub(super) fn is_look_alike(method: &str) -> bool {
    let form = skeleton(method);
    METHODS.iter().any(|(name, _)| skeleton(name) == form)
        || (form.starts_with(NOTIFICATIONS) && !is_notification(method))
}

/// Characters that methods are made of, the protocol's and those of others.
pub(super) fn is_plain(method: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$./:-".contains(&byte);
    !method.is_empty() && method.bytes().all(plain)
}
