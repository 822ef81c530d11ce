//! Calls as a shell script that makes them again: with `curl` where the server has an address, as a
//! pipeline into its command where it has one. The handshake of each conversation goes before its
//! calls.

mod script;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;

use super::{Ending, Exporter, counted};
use crate::exchange::{Headers, OpenExchanges, SessionEntry};
use crate::recorded::Direction;
use crate::session::Summary;
use crate::story::{MessageKind, Told};
use script::Script;

/// Calls, and bytes, of a script: enough to reproduce anything, and few enough for a person to read before running
/// it.
const CALLS_MAX: usize = 1_000;
const SCRIPT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Conversations whose handshake is remembered in case a call of theirs is chosen, and its bytes.
const CONVERSATIONS_MAX: usize = 1_024;
const HANDSHAKE_BYTES_MAX: usize = 64 * 1024;

#[derive(Default)]
pub(super) struct Curl {
    session: Option<Summary>,
    conversations: BTreeMap<u32, Talk>,
    /// The heads of open requests that post something.
    posts: OpenExchanges<Option<Arc<Headers>>>,
    calls: usize,
    bytes: usize,
    too_many: u64,
    /// Answers to the server's own requests, which nobody will ask for again.
    answers: u64,
    /// Calls that somebody kept from the server.
    kept_back: u64,
    /// What a gateway made of its clients' calls. It does so again if those are made again.
    to_servers: u64,
}

/// One client's part of the script.
#[derive(Default)]
struct Talk {
    /// What its requests to the server came with, where the client itself spoke no HTTP.
    headers: Option<Arc<Headers>>,
    handshake: Vec<Call>,
    calls: Vec<Call>,
    is_chosen: bool,
}

/// A message of the client's.
struct Call {
    sequence: u64,
    what: String,
    raw: Bytes,
    headers: Option<Arc<Headers>>,
    revision: Option<Arc<str>>,
    is_initialize: bool,
}

impl Call {
    fn of(message: &Told) -> Self {
        let method = message.method().unwrap_or_default();
        let what = match message.subject() {
            Some(subject) => format!("{method} [{subject}]"),
            None if method.is_empty() => message.kind.as_str().to_owned(),
            None => method.clone().into_owned(),
        };
        Self {
            sequence: message.recorded.sequence,
            what,
            raw: message.recorded.raw.clone(),
            headers: message.headers.clone(),
            revision: message.revision.clone(),
            is_initialize: method == "initialize",
        }
    }
}

impl Exporter for Curl {
    fn begin(&mut self, _out: &mut dyn Write, session: &Summary) -> io::Result<()> {
        self.session = Some(session.clone());
        Ok(())
    }

    fn exchange(&mut self, _out: &mut dyn Write, entry: &SessionEntry) -> io::Result<()> {
        match entry {
            SessionEntry::Request(mark, head) if head.method == "POST" => {
                let headers = Arc::new(head.headers.clone());
                *self.posts.keep(mark.exchange, &head.headers) = Some(Arc::clone(&headers));
                if let Some(talk) = self.talk(mark.conversation) {
                    talk.headers.get_or_insert(headers);
                }
            }
            SessionEntry::End(mark, _) => drop(self.posts.remove(mark.exchange)),
            _ => {}
        }
        while self.posts.pop_excess().is_some() {}
        Ok(())
    }

    fn message(&mut self, _out: &mut dyn Write, message: &Told) -> io::Result<()> {
        let is_answer = matches!(message.kind, MessageKind::Response | MessageKind::Error);
        let is_clients = message.recorded.direction == Direction::ClientToServer && message.kind != MessageKind::Event;
        if !is_clients || is_answer {
            self.answers += u64::from(is_clients);
            self.learn_headers(message);
            return Ok(());
        }
        if message.recorded.upstream.is_some() {
            self.to_servers += 1;
        } else if !message.recorded.went_on() {
            self.kept_back += 1;
        } else if is_handshake(message) {
            self.remember(message, true);
        } else if self.calls >= CALLS_MAX || self.bytes + message.recorded.raw.len() > SCRIPT_BYTES_MAX {
            self.too_many += 1;
        } else {
            self.calls += 1;
            self.bytes += message.recorded.raw.len();
            let talk = self.conversations.entry(message.recorded.conversation).or_default();
            talk.is_chosen = true;
            talk.calls.push(Call::of(message));
        }
        Ok(())
    }

    fn pass_over(&mut self, message: &Told) {
        let is_clients = message.recorded.direction == Direction::ClientToServer && message.recorded.went_on();
        let is_clients = is_clients && message.recorded.upstream.is_none();
        if is_clients && is_handshake(message) {
            self.remember(message, false);
        }
        self.learn_headers(message);
    }

    fn end(&mut self, out: &mut dyn Write, ending: &Ending) -> io::Result<()> {
        let Some(session) = self.session.take() else { return Ok(()) };
        for talk in self.conversations.values_mut() {
            for call in talk.handshake.iter_mut().chain(&mut talk.calls) {
                let of_others = || talk.headers.as_ref().map(|headers| Arc::new(common(headers)));
                call.headers = call.headers.take().or_else(of_others);
            }
        }
        let script = Script::new(&session, self.conversations.values().filter(|talk| talk.is_chosen));
        script.write(out, ending, self.left_out())
    }

    fn left_out(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.too_many > 0 {
            parts.push(format!(
                "{}, because a script holds {CALLS_MAX} or 32 MiB of them",
                counted(self.too_many, "call")
            ));
        }
        if self.answers > 0 {
            parts.push(format!("{} of the client to requests of the server", counted(self.answers, "answer")));
        }
        if self.kept_back > 0 {
            parts.push(format!("{} that never reached the server", counted(self.kept_back, "call")));
        }
        if self.to_servers > 0 {
            parts.push(format!("{} of a gateway to its servers", counted(self.to_servers, "message")));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

impl Curl {
    /// A conversation, new if need be; `None` if there are too many.
    fn talk(&mut self, conversation: u32) -> Option<&mut Talk> {
        if self.conversations.len() >= CONVERSATIONS_MAX && !self.conversations.contains_key(&conversation) {
            return None;
        }
        Some(self.conversations.entry(conversation).or_default())
    }

    /// An answer that came in an exchange of its own tells with which headers its request went.
    fn learn_headers(&mut self, answer: &Told) {
        let (Some(sequence), Some(exchange)) = (answer.answers, answer.recorded.exchange) else { return };
        let Some(Some(headers)) = self.posts.get(exchange) else { return };
        let Some(talk) = self.conversations.get_mut(&answer.recorded.conversation) else { return };
        let mut calls = talk.handshake.iter_mut().chain(talk.calls.iter_mut().rev());
        if let Some(call) = calls.find(|call| call.sequence == sequence) {
            call.headers.get_or_insert_with(|| Arc::clone(headers));
        }
    }

    fn remember(&mut self, message: &Told, is_chosen: bool) {
        if message.recorded.raw.len() > HANDSHAKE_BYTES_MAX {
            return;
        }
        let Some(talk) = self.talk(message.recorded.conversation) else { return };
        let call = Call::of(message);
        if call.is_initialize {
            // A client that was turned away asks again; the last time is the one that worked.
            talk.handshake.clear();
        }
        talk.handshake.truncate(1);
        talk.handshake.push(call);
        talk.is_chosen |= is_chosen;
    }
}

/// Headers of one message that another would have too: not those that speak of the message.
fn common(Headers(headers): &Headers) -> Headers {
    let is_common = |name: &str| !name.to_ascii_lowercase().starts_with("mcp-");
    Headers(headers.iter().filter(|(name, _)| is_common(name)).cloned().collect())
}

fn is_handshake(message: &Told) -> bool {
    let is_message = matches!(message.kind, MessageKind::Request | MessageKind::Notification);
    is_message && message.method().is_some_and(|method| matches!(&*method, "initialize" | "notifications/initialized"))
}
