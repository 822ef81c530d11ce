//! What the protocol's objects have, as far as readers check it. Members that are not named here are let be.

pub(super) type Shape = &'static [Part];

pub(super) struct Part {
    pub name: &'static str,
    pub need: Need,
    pub is: Is,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Without it the object is nothing.
    Must,
    /// It may be missing; if it is there and wrong, the object would mean something else without it.
    Kept,
    /// It may be missing, and is dropped where it is wrong.
    May,
}

#[derive(Clone, Copy)]
pub(super) enum Is {
    Text,
    Flag,
    Whole,
    /// From 0 to 1.
    Share,
    Address,
    OneOf(&'static [&'static str]),
    Object,
    A(Shape),
    Items(&'static Is),
    InputSchema,
    OutputSchema,
    /// What an output schema is of.
    Output,
    /// A block of content, of whatever kind.
    Content,
    /// What a resource holds.
    Contents,
}

const fn must(name: &'static str, is: Is) -> Part {
    Part { name, need: Need::Must, is }
}

const fn kept(name: &'static str, is: Is) -> Part {
    Part { name, need: Need::Kept, is }
}

const fn may(name: &'static str, is: Is) -> Part {
    Part { name, need: Need::May, is }
}

const ROLES: Is = Is::OneOf(&["user", "assistant"]);
const TEXTS: Is = Is::Items(&Is::Text);
const ICONS: Is = Is::Items(&Is::A(&[
    must("src", Is::Text),
    may("mimeType", Is::Text),
    may("sizes", TEXTS),
    may("theme", Is::OneOf(&["light", "dark"])),
]));
const ANNOTATIONS: Is =
    Is::A(&[may("audience", Is::Items(&ROLES)), may("priority", Is::Share), may("lastModified", Is::Text)]);
const TOOL_ANNOTATIONS: Is = Is::A(&[
    may("title", Is::Text),
    may("readOnlyHint", Is::Flag),
    may("destructiveHint", Is::Flag),
    may("idempotentHint", Is::Flag),
    may("openWorldHint", Is::Flag),
]);

pub(super) const TOOL: Shape = &[
    must("name", Is::Text),
    must("inputSchema", Is::InputSchema),
    may("title", Is::Text),
    may("description", Is::Text),
    may("outputSchema", Is::OutputSchema),
    may("annotations", TOOL_ANNOTATIONS),
    may("execution", Is::A(&[may("taskSupport", Is::OneOf(&["forbidden", "optional", "required"]))])),
    may("icons", ICONS),
    may("_meta", Is::Object),
];

pub(super) const INPUT_SCHEMA: Shape =
    &[kept("type", Is::OneOf(&["object"])), kept("properties", Is::Object), kept("required", TEXTS)];

pub(super) const PROMPT: Shape = &[
    must("name", Is::Text),
    may("title", Is::Text),
    may("description", Is::Text),
    kept("arguments", Is::Items(&Is::A(ARGUMENT))),
    may("icons", ICONS),
    may("_meta", Is::Object),
];

const ARGUMENT: Shape =
    &[must("name", Is::Text), may("title", Is::Text), may("description", Is::Text), may("required", Is::Flag)];

pub(super) const RESOURCE: Shape = &[
    must("uri", Is::Address),
    must("name", Is::Text),
    may("title", Is::Text),
    may("description", Is::Text),
    may("mimeType", Is::Text),
    may("size", Is::Whole),
    may("annotations", ANNOTATIONS),
    may("icons", ICONS),
    may("_meta", Is::Object),
];

pub(super) const TEMPLATE: Shape = &[
    must("uriTemplate", Is::Text),
    must("name", Is::Text),
    may("title", Is::Text),
    may("description", Is::Text),
    may("mimeType", Is::Text),
    may("annotations", ANNOTATIONS),
    may("icons", ICONS),
    may("_meta", Is::Object),
];

pub(super) const CALL_RESULT: Shape = &[
    must("content", Is::Items(&Is::Content)),
    may("structuredContent", Is::Output),
    may("isError", Is::Flag),
    may("_meta", Is::Object),
];

pub(super) const READ_RESULT: Shape = &[must("contents", Is::Items(&Is::Contents)), may("_meta", Is::Object)];

pub(super) const PROMPT_RESULT: Shape =
    &[must("messages", Is::Items(&Is::A(MESSAGE))), may("description", Is::Text), may("_meta", Is::Object)];

const MESSAGE: Shape = &[must("role", ROLES), must("content", Is::Content)];

pub(super) const TEXT_CONTENTS: Shape = &[
    must("uri", Is::Text),
    must("text", Is::Text),
    may("blob", Is::Text),
    may("mimeType", Is::Text),
    may("_meta", Is::Object),
];
pub(super) const BLOB_CONTENTS: Shape = &[
    must("uri", Is::Text),
    must("blob", Is::Text),
    may("text", Is::Text),
    may("mimeType", Is::Text),
    may("_meta", Is::Object),
];

/// Blocks of content, by their `type`.
pub(super) const CONTENT: &[(&str, Shape)] = &[
    ("text", &[must("text", Is::Text), may("annotations", ANNOTATIONS), may("_meta", Is::Object)]),
    ("image", BINARY),
    ("audio", BINARY),
    ("resource", &[must("resource", Is::Contents), may("annotations", ANNOTATIONS), may("_meta", Is::Object)]),
    ("resource_link", RESOURCE),
];

const BINARY: Shape =
    &[must("data", Is::Text), must("mimeType", Is::Text), may("annotations", ANNOTATIONS), may("_meta", Is::Object)];
