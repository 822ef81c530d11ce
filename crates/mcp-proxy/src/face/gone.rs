//! What became of a message that is held no longer, in words.

use mcp_control::api::Message;
use mcp_engine::pipeline::{NOBODY, TIMEOUT};
use mcp_store::OutcomeKind;
use mcp_wire::visible::visible;

/// `it was dropped by command line (ada)`; nothing if it was never held, or still is.
pub(super) fn became(message: &Message) -> Option<String> {
    let outcome = OutcomeKind::from_name(message.outcome.as_deref()?)?;
    let what = match outcome {
        OutcomeKind::Forwarded => "it was forwarded",
        OutcomeKind::Modified => "it went on, modified",
        OutcomeKind::Dropped => "it was dropped",
        OutcomeKind::Refused => "it was refused with an error",
        OutcomeKind::Answered => "it was answered in its place",
        OutcomeKind::Cancelled => "its sender took it back",
        OutcomeKind::Released => "it went on, because nobody decided in time or holding was ended",
        OutcomeKind::Discarded => "there was nobody left to send it to",
    };
    // A rule asked, and nobody answered.
    Some(match (outcome, message.decided_by.as_deref()) {
        (OutcomeKind::Forwarded, Some(TIMEOUT)) => "it went on, because nobody answered in time".to_owned(),
        (_, Some(TIMEOUT)) => "it was denied, because nobody answered in time".to_owned(),
        (_, Some(NOBODY)) => "it was denied, because nobody was there to answer".to_owned(),
        (_, None | Some("")) => what.to_owned(),
        (_, Some(by)) => format!("{what} by {}", visible(by)),
    })
}
