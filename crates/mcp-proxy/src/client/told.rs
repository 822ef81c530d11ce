//! What people are told when nothing came of a request, and what the command ends with.

use std::collections::BTreeSet;

use mcp_client::{ClientError, Listing, RpcError};
use mcp_wire::inert::inert;
use mcp_wire::reply;

use super::show::shown;
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, Page};

pub(super) fn failure(error: &ClientError) -> Failure {
    match error {
        ClientError::Rpc(answered) => of_answer(answered).with_answer(written(answered)),
        ClientError::NotOpened(inner) => {
            let Failure { code, .. } = failure(inner);
            // Who cannot be opened cannot be asked; only a rule says no.
            let code = if is_denied(inner) { code } else { exit::CANNOT_RUN };
            Failure::new(code, "the server did not introduce itself").because(failure(inner).what())
        }
        ClientError::Refused(_) | ClientError::Unanswered { .. } => Failure::caused_by(exit::NEGATIVE, error),
        ClientError::NoSuch { .. } => Failure::caused_by(exit::USAGE, error),
        ClientError::NoProxyTool => {
            Failure::caused_by(exit::USAGE, error).hint("`mcp-proxy list --no-proxy-tool` shows the tools that it has")
        }
        ClientError::Timeout { .. } => {
            Failure::caused_by(exit::CANNOT_RUN, error).hint("give it longer with --timeout SECONDS")
        }
        _ => Failure::caused_by(exit::CANNOT_RUN, error),
    }
}

/// A server ended as it began.
pub(super) fn ended(status: &str) -> Failure {
    Failure::new(exit::CANNOT_RUN, "the server did not introduce itself")
        .because(&format!("the server ended before it answered ({status})"))
}

/// The servers whose capabilities are missing in lists, if there are any.
pub(super) fn absent<'a>(lists: impl IntoIterator<Item = &'a Listing>) -> Option<String> {
    let absent: BTreeSet<&str> = lists.into_iter().flat_map(|list| &list.absent).map(String::as_str).collect();
    (!absent.is_empty()).then(|| absent.into_iter().map(shown).collect::<Vec<_>>().join(", "))
}

/// A server that turns everybody away has another address, as far as can be told.
pub(super) fn turned_away(status: u16) -> Failure {
    Failure::new(exit::CANNOT_RUN, format!("the server answered with HTTP status {status}"))
        .hint("is the path of the address right? try /mcp")
}

/// What came of a request as scripts read it, where the server answered with an error.
pub(super) fn json(failure: &Failure) -> std::io::Result<()> {
    let Some(error) = failure.answer() else { return Ok(()) };
    let mut page = Page::new(ColorChoice::Never);
    page.line(&inert(&format!("{{\"error\":{error}}}")))?;
    page.end()
}

/// An error of the protocol as it was written, but for members that it does not know.
fn written(RpcError { code, message, data }: &RpcError) -> String {
    let data = data.as_ref().map(|data| format!(",\"data\":{data}")).unwrap_or_default();
    format!("{{\"code\":{code},\"message\":{}{data}}}", serde_json::Value::from(message.as_str()))
}

fn of_answer(RpcError { code, message, data }: &RpcError) -> Failure {
    if reply::is_own_failure(*code) || reply::is_status(*code) {
        // What the proxy says itself needs no more words.
        return Failure::new(exit::CANNOT_RUN, message.strip_prefix("mcp-proxy: ").unwrap_or(message));
    }
    if *code == reply::DENIED {
        return Failure::new(exit::NEGATIVE, message);
    }
    let data = data.as_ref().map_or("", |data| data.get());
    Failure::new(exit::NEGATIVE, format!("the server answered with error {code}: {message}"))
        .evidence("what it says besides", data)
}

fn is_denied(error: &ClientError) -> bool {
    error.rpc().is_some_and(|answered| answered.code == reply::DENIED)
}
