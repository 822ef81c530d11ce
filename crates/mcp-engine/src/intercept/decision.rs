//! What somebody decided about a parked message, and whether that can be done.

use bytes::Bytes;
use mcp_wire::{Id, Kind, Lasting, Message, reply};

#[derive(Clone, Debug)]
pub enum Decision {
    /// It goes on as it came.
    Forward,
    /// It goes on like this.
    Modify {
        raw: Bytes,
        /// Headers that repeat parts of the body stay as they came, though they no longer agree.
        raw_headers: bool,
        /// It may be something else than JSON-RPC.
        not_json_rpc: bool,
    },
    /// It goes nowhere. Whoever waits for an answer gets this error, or nothing.
    Drop { error: Option<(i64, String)> },
    /// It goes nowhere, and is answered in the place of whom it was for.
    Answer(Answer),
    /// It goes on, though a rule asks about it; as it came, or like this.
    Approve { lasting: Lasting, edited: Option<Bytes> },
    /// It goes nowhere, because a rule asks about it and this is the answer.
    Deny { lasting: Lasting, message: Option<String> },
}

/// What an answer says; whom it answers is known.
#[derive(Clone, Debug)]
pub enum Answer {
    Result(Bytes),
    Error(Bytes),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecideError {
    #[error("#{0} is not held")]
    NotHeld(u64),
    #[error("only a request can be answered, and #{0} is none; edit it, or drop it")]
    NotARequest(u64),
    #[error("nobody waits for an answer to #{0}, so it can only be dropped silently")]
    NobodyWaits(u64),
    #[error("rule \"{1}\" asks about #{0}: approve or deny it")]
    IsAsked(u64, String),
    #[error("no rule asks about #{0}; forward or drop it")]
    NotAsked(u64),
    #[error("#{0} can only be answered once: {1}")]
    OnlyOnce(u64, &'static str),
    #[error("#{0} waits in its client, which sends it again; approve it as it is, or deny it")]
    InClient(u64),
    #[error("this may not be sent: {0}")]
    Denied(String),
    #[error("this is not JSON: {0}")]
    NotJson(String),
    #[error("this is JSON, but no JSON-RPC message; say that this is what you want, and it is sent")]
    NotJsonRpc,
}

/// The message that `raw` is to be sent as. Line ends in it would end the message on a pipe; in JSON
/// they stand between values only, where a blank does as well.
pub(crate) fn edited(raw: &Bytes, not_json_rpc: bool) -> Result<Message, DecideError> {
    let fault = serde_json::from_slice::<serde::de::IgnoredAny>(raw).err();
    if let Some(fault) = fault {
        return Err(DecideError::NotJson(fault.to_string()));
    }
    let has_line_ends = raw.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    let message = Message::new(match has_line_ends {
        true => {
            let on_one_line = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
            raw.trim_ascii().iter().map(on_one_line).collect::<Vec<u8>>().into()
        }
        false => raw.clone(),
    });
    match message.kind() {
        Kind::OtherJson | Kind::NotJson if !not_json_rpc => Err(DecideError::NotJsonRpc),
        _ => Ok(message),
    }
}

/// An answer to `id` that says what `answer` does.
pub(crate) fn compose_answer(id: &Id, answer: &Answer) -> Result<Bytes, DecideError> {
    let (is_error, body) = match answer {
        Answer::Result(body) => (false, body),
        Answer::Error(body) => (true, body),
    };
    let composed = if is_error { reply::answer_with_error(id, body) } else { reply::answer_with_result(id, body) };
    Ok(edited(&composed, false)?.bytes().clone())
}
