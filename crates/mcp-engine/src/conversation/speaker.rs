//! Who the client of a conversation is, and which revision is spoken, as the two have said.

use std::sync::Arc;

use mcp_wire::{Message, scan};

/// A name that a client gives itself, or a revision, is kept up to here.
const WORD_BYTES_MAX: usize = 256;
/// Where every request says who sends it, since there is no handshake any more.
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speaker {
    /// What the client calls itself.
    pub client: Option<Arc<str>>,
    /// The revision that is spoken, as a date.
    pub revision: Option<Arc<str>>,
}

impl Speaker {
    /// Learns from the first request of a client. Returns whether its answer has more to say.
    pub(crate) fn introduce(&mut self, request: &Message) -> bool {
        let is_handshake = request.method().as_deref() == Some("initialize");
        let (client, revision): (&[&str], &[&str]) = match is_handshake {
            true => (&["params", "clientInfo", "name"], &["params", "protocolVersion"]),
            false => (
                &["params", "_meta", CLIENT_INFO, "name"],
                &["params", "_meta", "io.modelcontextprotocol/protocolVersion"],
            ),
        };
        self.client = word_at(request, client);
        self.revision = word_at(request, revision);
        is_handshake
    }

    /// Learns from the answer to `initialize`.
    pub(crate) fn agree(&mut self, answer: &Message) {
        if let Some(revision) = word_at(answer, &["result", "protocolVersion"]) {
            self.revision = Some(revision);
        }
    }
}

fn word_at(message: &Message, path: &[&str]) -> Option<Arc<str>> {
    let span = scan::member_at(message.bytes(), path.iter().copied())?;
    let word = scan::decode_string(message.slice(span))?;
    let mut end = word.len().min(WORD_BYTES_MAX);
    while !word.is_char_boundary(end) {
        end -= 1;
    }
    Some(word[..end].into())
}
