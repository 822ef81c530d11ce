//! Whether a message says the same to every reader: to parsers that take the first of two equal
//! keys or the last, that ignore case, that stop at a NUL, that mend what is broken. Rules go by
//! what a message says; one that fails here says several things, and is not to be let through.
//!
//! Batches are for the caller: it checks their items one by one.

mod keys;
mod methods;
mod print;
mod siblings;
mod walk;

use std::borrow::Cow;
use std::fmt;

pub use keys::JudgedKeys;
use methods::About;
use walk::{Reference, Shape, Walk, has_nul};

use crate::fold::plain_uri;
use crate::id::Id;
use crate::message::Message;
use crate::scan::{self, Ambiguity, Kind, Span};

/// Why a message cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    Ambiguous(Ambiguity),
    Batch,
    /// JSON, but neither a request nor a notification nor an answer.
    NotAMessage,
    /// `jsonrpc` is missing, or not `"2.0"`.
    Version,
    /// The id is neither text nor an integer.
    Id,
    /// `params` is no object.
    Params,
    /// `result` or `error` is no object.
    Answer,
    /// An answer that has neither.
    NoAnswer,
    /// `error.code` is no integer.
    ErrorCode,
    /// `error.message` is no text.
    ErrorMessage,
    /// The method has characters that no method has.
    Method,
    /// The method reads like one of the protocol's, but is not.
    LookAlikeMethod,
    /// It asks for something and has no id, so that nobody hears what became of it.
    CallWithoutId,
    NotificationWithId,
    /// What it is about (`name`, `uri`, `taskId`, `ref`) is missing or no plain text.
    Subject,
    /// `arguments` is no object.
    Arguments,
    /// A NUL in a text that a rule looks at.
    Nul,
    /// A number that is too large for most readers.
    Number,
    /// One of its lines is a message of its own, to whoever reads lines.
    MessageInLine,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ambiguous(ambiguity) => return ambiguity.fmt(f),
            Self::Batch => "a batch",
            Self::NotAMessage => "neither a request nor a notification nor an answer",
            Self::Version => "`jsonrpc` is not \"2.0\"",
            Self::Id => "the id is neither text nor an integer",
            Self::Params => "`params` is not an object",
            Self::Answer => "`result` or `error` is not an object",
            Self::NoAnswer => "neither `result` nor `error`",
            Self::ErrorCode => "`error.code` is not an integer",
            Self::ErrorMessage => "`error.message` is not text",
            Self::Method => "a method with characters that no method has",
            Self::LookAlikeMethod => "a method that reads like another",
            Self::CallWithoutId => "a call without an id",
            Self::NotificationWithId => "a notification with an id",
            Self::Subject => "what it is about is missing or not plain text",
            Self::Arguments => "`arguments` is not an object",
            Self::Nul => "a NUL in a text that a rule looks at",
            Self::Number => "a number that is too large for most readers",
            Self::MessageInLine => "a line of it is a message of its own",
        })
    }
}

/// What was noticed about a message that says the same to everybody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fit {
    /// One of its arguments is called `action`, or so to some reader: it may be a call of a proxy tool.
    pub has_action: bool,
}

/// Checks the whole of a message. `keys` are the members that rules look at.
pub fn check(message: &Message, keys: &JudgedKeys) -> Result<Fit, Unfit> {
    let peek = message.peek();
    if let Some(ambiguity) = peek.ambiguity {
        return Err(ambiguity.into());
    }
    match peek.kind {
        Kind::Request | Kind::Notification | Kind::Response | Kind::Error => {}
        Kind::Batch => return Err(Unfit::Batch),
        Kind::OtherJson | Kind::NotJson => return Err(Unfit::NotAMessage),
    }
    if peek.texture.has_controls && has_message_in_line(message.bytes()) {
        return Err(Unfit::MessageInLine);
    }
    let mut walk = Walk::new(message.bytes(), peek.texture, keys);
    walk.message()?;
    envelope(message, &walk.shape)?;
    Ok(Fit { has_action: walk.shape.has_action })
}

/// Checks the envelope of an answer, as every client reads it: JSON that reads one way, `jsonrpc`, and either a result or
/// an error with its code and text. After the scan of the message this costs a look at the first members of an error.
pub fn check_answer(message: &Message) -> Result<(), Unfit> {
    let peek = message.peek();
    if let Some(ambiguity) = peek.ambiguity {
        return Err(ambiguity.into());
    }
    let Some(answer) = peek.answer.filter(|_| peek.kind.is_response()) else { return Err(Unfit::NoAnswer) };
    let answer = &message.bytes()[answer.get() as usize..];
    if peek.version.is_none_or(|span| message.slice(span) != b"\"2.0\"") {
        return Err(Unfit::Version);
    }
    if answer[0] != b'{' {
        return Err(Unfit::Answer);
    }
    if peek.kind == Kind::Error { check_error(answer) } else { Ok(()) }
}

/// `json` begins with the error object.
fn check_error(json: &[u8]) -> Result<(), Unfit> {
    let (mut has_code, mut has_text) = (false, false);
    for (name, value) in scan::object_members(json) {
        let value = &json[value.range()];
        match &*name {
            "code" if !is_integer(value) => return Err(Unfit::ErrorCode),
            "message" if value[0] != b'"' => return Err(Unfit::ErrorMessage),
            "code" => has_code = true,
            "message" => has_text = true,
            _ => {}
        }
        if has_code && has_text {
            return Ok(());
        }
    }
    Err(if has_code { Unfit::ErrorMessage } else { Unfit::ErrorCode })
}

fn is_integer(json: &[u8]) -> bool {
    let digits = json.strip_prefix(b"-").unwrap_or(json);
    digits.iter().all(u8::is_ascii_digit)
}

/// Whether a line of several reads as a message, or could. A JSON document may have line breaks
/// between its parts; but a server that reads line by line, or takes a CR for the end of one, would
/// find in it what was meant as an argument.
fn has_message_in_line(bytes: &[u8]) -> bool {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let bytes = bytes.trim_ascii();
    bytes.iter().any(is_break) && bytes.split(is_break).any(reads_as_message)
}

fn reads_as_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    // Whoever mends what is broken may start with the comma.
    let line = line.strip_suffix(b",").unwrap_or(line);
    if !matches!(line.first(), Some(b'{' | b'[')) {
        return false;
    }
    let peek = scan::scan(line);
    match peek.kind {
        Kind::NotJson => false,
        Kind::OtherJson => peek.is_opaque(),
        Kind::Batch => scan::batch_items(line).any(|item| scan::scan(&line[item.range()]).kind != Kind::OtherJson),
        _ => true,
    }
}

fn envelope(message: &Message, shape: &Shape) -> Result<(), Unfit> {
    let is_object = |span: Span| message.slice(span)[0] == b'{';
    if shape.version.is_none_or(|span| message.slice(span) != b"\"2.0\"") {
        return Err(Unfit::Version);
    }
    if shape.params.is_some_and(|span| !is_object(span)) {
        return Err(Unfit::Params);
    }
    if [shape.result, shape.error].into_iter().flatten().any(|span| !is_object(span)) {
        return Err(Unfit::Answer);
    }
    id(message)?;
    match message.method() {
        Some(method) => call(message, shape, &method),
        None => Ok(()),
    }
}

fn id(message: &Message) -> Result<(), Unfit> {
    let peek = message.peek();
    let fits = match peek.id.map(|span| message.slice(span)) {
        None => true,
        // Who could not read what was asked does not know its id.
        Some(b"null") => peek.kind == Kind::Error,
        Some(json @ [b'"', ..]) => !has_nul(json),
        Some(json) => matches!(Id::from_json(json), Id::Integer(_)),
    };
    if fits { Ok(()) } else { Err(Unfit::Id) }
}

fn call(message: &Message, shape: &Shape, method: &str) -> Result<(), Unfit> {
    let known = methods::about(method);
    if known.is_none() {
        unknown_method(method)?;
    }
    match (message.kind(), methods::is_notification(method)) {
        (Kind::Notification, false) => return Err(Unfit::CallWithoutId),
        (Kind::Request, true) => return Err(Unfit::NotificationWithId),
        _ => {}
    }
    if known == Some(About::Name) && shape.arguments.is_some_and(|span| !matches!(message.slice(span)[0], b'{' | b'n'))
    {
        return Err(Unfit::Arguments);
    }
    if is_about_something(message, shape, known.unwrap_or(About::Any)) { Ok(()) } else { Err(Unfit::Subject) }
}

fn unknown_method(method: &str) -> Result<(), Unfit> {
    match () {
        () if methods::is_look_alike(method) => Err(Unfit::LookAlikeMethod),
        () if !methods::is_plain(method) => Err(Unfit::Method),
        () => Ok(()),
    }
}

/// Whether a call says what it is about, in plain text.
fn is_about_something(message: &Message, shape: &Shape, about: About) -> bool {
    let peek = message.peek();
    match about {
        About::Name => named(message, peek.name) == Some(true),
        About::Uri => addressed(message, peek.uri) == Some(true),
        About::Task => named(message, peek.task_id) == Some(true),
        About::Reference => refers(message, &shape.reference),
        About::Subscriptions => subscribes(message, shape),
        About::Any => true,
    }
}

/// Whether a completion says which prompt or resource it is for, and only one.
fn refers(message: &Message, reference: &Reference) -> bool {
    let kind = reference.kind.and_then(|span| text(message, span));
    let (name, uri) = (named(message, reference.name), addressed(message, reference.uri));
    match kind.as_deref() {
        Some("ref/prompt") => name == Some(true) && uri.is_none(),
        Some("ref/resource") => uri == Some(true) && name.is_none(),
        _ => false,
    }
}

/// Resources that one `subscriptions/listen` may name where rules judge: each is judged by itself.
const SUBSCRIPTIONS_MAX: usize = 1_024;

/// Whether a listen request says in plain text what it wants to be told of.
fn subscribes(message: &Message, shape: &Shape) -> bool {
    let begins_with = |span: Option<Span>, byte| span.is_none_or(|span| message.slice(span)[0] == byte);
    if !begins_with(shape.notifications, b'{') || !begins_with(shape.subscriptions, b'[') {
        return false;
    }
    let Some(list) = shape.subscriptions else { return true };
    let addresses = scan::batch_items(message.slice(list)).map(|item| item.shifted(list.range().start));
    let mut left = SUBSCRIPTIONS_MAX;
    addresses.into_iter().all(|address| {
        left = left.saturating_sub(1);
        left > 0 && addressed(message, Some(address)) == Some(true)
    })
}

/// Whether a name is plain text; `None` if there is none.
fn named(message: &Message, span: Option<Span>) -> Option<bool> {
    let span = span?;
    // Nearly every name needs no decoding to be seen to be plain.
    if let [b'"', name @ .., b'"'] = message.slice(span)
        && !name.is_empty()
        && name.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\')
    {
        return Some(true);
    }
    let name = text(message, span);
    Some(name.is_some_and(|name| !name.is_empty() && !name.chars().any(char::is_control)))
}

fn addressed(message: &Message, span: Option<Span>) -> Option<bool> {
    let fits = named(message, span)?;
    // A file system stops at a NUL, however it was written.
    let has_nul = || text(message, span?).filter(|uri| uri.contains('%')).map(|uri| plain_uri(&uri).contains('\0'));
    Some(fits && has_nul() != Some(true))
}

fn text(message: &Message, span: Span) -> Option<Cow<'_, str>> {
    scan::decode_string(message.slice(span))
}

#[cfg(test)]
mod tests;
