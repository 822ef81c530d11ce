//! Who the client of a conversation is, and which revision is spoken, as the two have said.

use std::sync::Arc;

use mcp_wire::{Message, Revision, elicit, scan};

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
    /// It said in the handshake that it shows forms to whoever uses it.
    pub shows_forms: bool,
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
        let capabilities = scan::member_at(request.bytes(), ["params", "capabilities"]).filter(|_| is_handshake);
        self.shows_forms = capabilities.is_some_and(|span| elicit::shows_forms(request.slice(span)));
        is_handshake
    }

    /// Learns from the answer to `initialize`.
    pub(crate) fn agree(&mut self, answer: &Message) {
        if let Some(revision) = word_at(answer, &["result", "protocolVersion"]) {
            self.revision = Some(revision);
        }
        let revision = self.revision.as_ref().and_then(|revision| Revision::parse(revision.as_bytes()));
        self.shows_forms &= revision.is_some_and(Revision::has_elicitation);
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
