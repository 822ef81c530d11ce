//! What an answer says: how it went, and whether its server wants something before it goes on. It is
//! found by scanning; nothing here takes a message apart as a whole.

use std::borrow::Cow;
use std::sync::LazyLock;

use mcp_wire::Message;
use mcp_wire::scan::{self, Word};

use super::MessageKind;

/// How a request went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    /// The server asks for something and will be asked again.
    InputRequired,
    Err(Fault),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A JSON-RPC error. The code is as it was spelled if it is no integer.
    Error { code: Option<Result<i64, Box<str>>>, message: Option<Box<str>> },
    /// A result that says `isError: true`.
    Tool,
}

static IS_ERROR: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"isError\""));
static INPUT_REQUIRED: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"input_required\""));
static REQUEST_STATE: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"requestState\""));
static INPUT_RESPONSES: LazyLock<Word> = LazyLock::new(|| Word::new(b"\"inputResponses\""));

impl Status {
    pub(super) fn of(kind: MessageKind, message: &Message) -> Option<Self> {
        match kind {
            MessageKind::Error => Some(Self::Err(error(message))),
            MessageKind::Response if is_tool_error(message) => Some(Self::Err(Fault::Tool)),
            MessageKind::Response if is_input_required(message) => Some(Self::InputRequired),
            MessageKind::Response => Some(Self::Ok),
            _ => None,
        }
    }

    /// What a message says of the request that it answers, if it answers one.
    pub fn of_answer(message: &Message) -> Option<Self> {
        Self::of(message.kind().into(), message)
    }

    pub fn is_err(&self) -> bool {
        matches!(self, Self::Err(_))
    }

    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::InputRequired => "input_required",
            Self::Err(_) => "err",
        }
    }

    /// The code of a JSON-RPC error.
    pub fn code(&self) -> Option<i64> {
        match self {
            Self::Err(Fault::Error { code: Some(Ok(code)), .. }) => Some(*code),
            _ => None,
        }
    }
}

fn error(message: &Message) -> Fault {
    let bytes = message.bytes();
    let code = scan::member_at(bytes, ["error", "code"]).map(|span| {
        let text = String::from_utf8_lossy(message.slice(span));
        text.parse().map_err(|_| text.into())
    });
    Fault::Error { code, message: text_at(message, &["error", "message"]).map(Into::into) }
}

fn is_tool_error(message: &Message) -> bool {
    // Most answers of tools say that it is false.
    scan::may_say(message.bytes(), &IS_ERROR, b"true") && value_at(message, &["result", "isError"]) == Some(b"true")
}

fn is_input_required(message: &Message) -> bool {
    scan::mentions(message.bytes(), &INPUT_REQUIRED)
        && text_at(message, &["result", "resultType"]).is_some_and(|kind| kind == "input_required")
}

/// What ties a retry to the answer that asked for it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum RoundLink {
    /// The server's own state, which comes back as it was.
    State(String),
    /// Without one: the names of what was asked for, in order.
    Asked(Vec<String>),
}

/// Whether an answer wants to be asked again, and how that will be told.
pub(super) fn asks_for_more(message: &Message) -> Option<RoundLink> {
    is_input_required(message).then(|| link(message, "result", "inputRequests"))
}

/// Whether a request brings what an earlier answer asked for.
pub(super) fn brings_more(message: &Message) -> Option<RoundLink> {
    let bytes = message.bytes();
    if !scan::mentions(bytes, &REQUEST_STATE) && !scan::mentions(bytes, &INPUT_RESPONSES) {
        return None;
    }
    let has = |name| scan::member_at(bytes, ["params", name]).is_some();
    (has("requestState") || has("inputResponses")).then(|| link(message, "params", "inputResponses"))
}

fn link(message: &Message, part: &str, inputs: &str) -> RoundLink {
    if let Some(state) = text_at(message, &[part, "requestState"]) {
        return RoundLink::State(state.into_owned());
    }
    let asked = scan::member_at(message.bytes(), [part, inputs]).map(|span| message.slice(span));
    let mut names: Vec<_> =
        asked.into_iter().flat_map(scan::object_members).map(|(name, _)| name.into_owned()).collect();
    names.sort_unstable();
    RoundLink::Asked(names)
}

pub(super) fn text_at<'a>(message: &'a Message, path: &[&str]) -> Option<Cow<'a, str>> {
    scan::decode_string(value_at(message, path)?)
}

fn value_at<'a>(message: &'a Message, path: &[&str]) -> Option<&'a [u8]> {
    scan::member_at(message.bytes(), path.iter().copied()).map(|span| message.slice(span))
}
