//! Everything that can be asked of a message: one table, from which expressions are checked and the
//! reference is written.

use crate::numbers::Measure;
use crate::syntax::Op;

/// A field of the language.
#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    /// What it asks, in a sentence.
    pub about: &'static str,
    pub example: &'static str,
    pub values: Values,
    pub(crate) asks: Asks,
}

/// What a field can be compared with.
#[derive(Clone, Copy, Debug)]
pub enum Values {
    /// One of these words.
    Words(&'static [Choice]),
    /// The same, in order: the least comes first.
    Ranks(&'static [Choice]),
    /// Text, with `*` for any part of it.
    Text,
    /// One of these words, or text.
    WordsOrText(&'static [Choice]),
    Number(Measure),
    /// `yes` or `no`.
    Flag,
    /// Text that stands anywhere in the message.
    Search,
    /// The name of a header; with `header.NAME`, its value.
    Header,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    pub word: &'static str,
    pub also: &'static [&'static str],
}

/// Which answer of a subject a field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    Direction,
    Kind,
    Method,
    Tool,
    Server,
    Client,
    Status,
    Code,
    Id,
    Operation,
    Hint,
    Duration,
    Size,
    Sequence,
    Text,
    Header,
    Revision,
    Rule,
    Verdict,
    Held,
    Edited,
    Mark,
    Noise,
    Replay,
    Origin,
}

const fn word(word: &'static str) -> Choice {
    Choice { word, also: &[] }
}

const WAYS: &[Choice] = &[
    Choice { word: "client_to_server", also: &["c2s", "up", ">", "→"] },
    Choice { word: "server_to_client", also: &["s2c", "down", "<", "←"] },
];
const KINDS: &[Choice] = &[
    word("request"),
    word("response"),
    word("error"),
    word("notification"),
    word("batch"),
    word("json"),
    word("bytes"),
    word("noise"),
    word("event"),
];
const STATUSES: &[Choice] = &[
    word("ok"),
    Choice { word: "err", also: &["error"] },
    Choice { word: "input_required", also: &["input"] },
    // What the audit says of calls that have no answer.
    word("lost"),
    word("stopped"),
    word("replaced"),
    word("answered"),
    word("dropped"),
    word("cancelled"),
];
const OPERATIONS: &[Choice] = &[word("read"), word("write"), word("delete"), word("execute"), word("admin")];
pub(crate) const HINTS: &[Choice] = &[
    Choice { word: "readonly", also: &["readOnlyHint"] },
    Choice { word: "destructive", also: &["destructiveHint"] },
    Choice { word: "idempotent", also: &["idempotentHint"] },
    Choice { word: "openworld", also: &["openWorldHint"] },
    word(UNLISTED),
];
/// Not a hint of the server, so `hint:*` leaves it out.
pub(crate) const UNLISTED: &str = "unknown";
/// Who began an exchange. What a proxy asks servers of its own accord lists leave out.
pub(crate) const OWN: &str = "proxy";
const ORIGINS: &[Choice] = &[word("client"), word("server"), word(OWN)];
const VERDICTS: &[Choice] = &[word("allow"), word("deny"), word("ask"), word("observe")];
pub(crate) const LEGACY: &str = "legacy";
pub(crate) const MODERN: &str = "modern";
const ERAS: &[Choice] = &[word(LEGACY), word(MODERN)];
pub(crate) const FLAGS: &[Choice] =
    &[Choice { word: "yes", also: &["true", "on"] }, Choice { word: "no", also: &["false", "off"] }];

const fn field(asks: Asks, name: &'static str, values: Values, example: &'static str, about: &'static str) -> Field {
    Field { name, about, example, values, asks }
}

pub const FIELDS: &[Field] = &[
    field(
        Asks::Direction,
        "dir",
        Values::Words(WAYS),
        "dir:client_to_server",
        "Which way the message goes. `>` and `<` alone say the same.",
    ),
    field(
        Asks::Kind,
        "kind",
        Values::Words(KINDS),
        "kind:request,notification",
        "What kind of message it is. `response` is any answer, `error` one that carries a JSON-RPC error.",
    ),
    field(
        Asks::Method,
        "method",
        Values::Text,
        "method:tools/*",
        "The method. An answer has that of the request it answers.",
    ),
    field(
        Asks::Tool,
        "tool",
        Values::Text,
        "tool:write_*,delete_*",
        "The tool, prompt or resource that a message is about: `params.name`, or else `params.uri`. An answer has that of the request it answers.",
    ),
    field(
        Asks::Server,
        "server",
        Values::Text,
        "server:github",
        "What the server is called, or else its command or address; of a gateway, the id of the server that it is for or from.",
    ),
    field(Asks::Client, "client", Values::Text, "client:*code*", "What the client calls itself."),
    field(
        Asks::Status,
        "status",
        Values::Words(STATUSES),
        "status:err",
        "How it went, of an answer. `err` is a JSON-RPC error, or a tool's result that says `isError`. The words behind `input_required` are those of the audit.",
    ),
    field(Asks::Code, "code", Values::Number(Measure::Whole), "code:-32602", "The code of a JSON-RPC error."),
    field(
        Asks::Id,
        "id",
        Values::Text,
        "id:7",
        "The JSON-RPC id, as it is spelled or as the text it says: `id:7` is 7 and \"7\".",
    ),
    field(
        Asks::Operation,
        "op",
        Values::Ranks(OPERATIONS),
        "op>=write",
        "The class of operation that a call is. `op>=write` is that and what can do more, in the order of the words. A recorded message has it if rules judged it.",
    ),
    field(
        Asks::Hint,
        "hint",
        Values::Words(HINTS),
        "hint:destructive",
        "What the server says of the tool in its annotations, if it says yes. `unknown` is a tool that no list has named yet. Only rules know it.",
    ),
    field(
        Asks::Duration,
        "dur",
        Values::Number(Measure::Duration),
        "dur>1s",
        "From the request to this answer. Units: ns, us, ms, s, m, h.",
    ),
    field(
        Asks::Size,
        "size",
        Values::Number(Measure::Size),
        "size>=10k",
        "The size of the message in bytes. k, M and G are 1024 of the one before.",
    ),
    field(
        Asks::Sequence,
        "seq",
        Values::Number(Measure::Whole),
        "seq:100..200",
        "The number of the message in its session.",
    ),
    field(Asks::Text, "text", Values::Search, "text:\"disk full\"", "Text anywhere in the message, whatever its case."),
    field(
        Asks::Header,
        "header",
        Values::Header,
        "header.user-agent:*curl*",
        "An HTTP header that the message came with: `header:NAME` asks whether it is there, `header.NAME` compares its value.",
    ),
    field(
        Asks::Revision,
        "era",
        Values::WordsOrText(ERAS),
        "era:modern",
        "The revision of the protocol that is spoken: `legacy`, `modern`, or a date such as `2025-*`.",
    ),
    field(Asks::Rule, "rule", Values::Text, "rule:no-deletes", "The rule that decided about the message."),
    field(
        Asks::Verdict,
        "verdict",
        Values::Words(VERDICTS),
        "verdict:deny",
        "What rules decided about the message: `observe` if none did, but one took note of it.",
    ),
    field(Asks::Held, "held", Values::Flag, "held:yes", "Whether it was held for somebody to look at."),
    field(Asks::Edited, "edited", Values::Flag, "edited:yes", "Whether it left otherwise than it came."),
    field(Asks::Mark, "mark", Values::Text, "mark:*", "What somebody marked the message with."),
    field(
        Asks::Noise,
        "noise",
        Values::Flag,
        "noise:no",
        "Whether it is a line of a server's output that was no message.",
    ),
    field(
        Asks::Origin,
        "origin",
        Values::Words(ORIGINS),
        "origin:proxy",
        "Who began it, of a recorded message; an answer has the origin of its request. `proxy` is a gateway's own health checks and discovery, which lists leave out unless the filter names the origin; `origin:*` takes everything.",
    ),
    field(Asks::Replay, "replay", Values::Flag, "replay:yes", "Whether it was sent by a replay."),
];

impl Field {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        FIELDS.iter().find(|field| field.name == name)
    }

    /// The operators that make sense with it.
    pub(crate) fn ops(&self) -> &'static [Op] {
        use Op::*;
        match self.values {
            Values::Words(_) | Values::Flag => &[Has, Equal, NotEqual],
            Values::Ranks(_) => &[Has, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual],
            Values::Text | Values::WordsOrText(_) | Values::Header => &[Has, Equal, NotEqual, Like, Begins],
            Values::Number(_) => &[Has, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual],
            Values::Search => &[Has, Like],
        }
    }
}

/// The word that `written` is, by its name or another one.
pub(crate) fn choice(choices: &'static [Choice], written: &str) -> Option<&'static str> {
    let is = |choice: &&Choice| choice.word == written || choice.also.contains(&written);
    choices.iter().find(is).map(|choice| choice.word)
}
