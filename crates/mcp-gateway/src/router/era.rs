//! From one era to the other: what every modern request says of its client, and what answers of one era have
//! that the other does not know. Questions in the middle of a call are not carried over.

use std::ops::Range;

use bytes::Bytes;
use mcp_wire::{Era, Kind, Message, Revision, Span, reply, scan, splice};

use super::ListKind;
use super::place::{
    Edits, at_path, composed, cut_members, is_object, is_sound, members, quoted, set_members, set_members_and_meta,
    whole_object,
};

/// What begins the protocol's own keys in `_meta`.
const PROTOCOL: &str = "io.modelcontextprotocol/";
const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// What a client has said of itself: once in `initialize`, or with the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientFacts {
    pub revision: Revision,
    /// `clientInfo`, as it came.
    pub info: Bytes,
    /// Its capabilities, as they came.
    pub capabilities: Bytes,
    pub log_level: Option<String>,
}

impl ClientFacts {
    /// What is said for nobody in particular.
    pub fn plain() -> Self {
        Self {
            revision: Revision::NEWEST_LEGACY,
            info: concat!("{\"name\":\"mcp-proxy\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").into(),
            capabilities: Bytes::from_static(b"{}"),
            log_level: None,
        }
    }
}

/// What an `initialize` request says. A client that asks for a revision nobody knows is taken for one of the
/// newest that has a handshake, since that is what it is offered.
pub fn facts_of_initialize(message: &Message) -> Option<ClientFacts> {
    if message.method()? != "initialize" {
        return None;
    }
    let bytes = message.bytes();
    let revision = scan::member_at(bytes, ["params", "protocolVersion"]);
    let revision = revision.and_then(|span| scan::decode_string(message.slice(span)));
    let revision = revision.and_then(|text| Revision::parse(text.as_bytes()));
    Some(ClientFacts {
        revision: revision.filter(|it| it.era() == Era::Legacy).unwrap_or(Revision::NEWEST_LEGACY),
        info: object_at(bytes, &["params", "clientInfo"]),
        capabilities: object_at(bytes, &["params", "capabilities"]),
        log_level: None,
    })
}

/// What a modern request says. `None` if it is none, or of a revision that is not known.
pub fn facts_of_modern(message: &Message) -> Option<ClientFacts> {
    let revision = Revision::parse(message.protocol_version()?.as_bytes())?;
    let bytes = message.bytes();
    let level = scan::member_at(bytes, ["params", "_meta", LOG_LEVEL]);
    let level = level.and_then(|span| scan::decode_string(message.slice(span)));
    (revision.era() == Era::Modern).then(|| ClientFacts {
        revision,
        info: object_at(bytes, &["params", "_meta", CLIENT_INFO]),
        capabilities: object_at(bytes, &["params", "_meta", CLIENT_CAPABILITIES]),
        log_level: level.map(Into::into),
    })
}

/// The object at the end of a path, or an empty one.
fn object_at(bytes: &Bytes, path: &[&str]) -> Bytes {
    let there = scan::member_at(bytes, path.iter().copied()).map(|span| bytes.slice(span.range()));
    there.filter(|json| json.starts_with(b"{") && is_sound(json)).unwrap_or(Bytes::from_static(b"{}"))
}

/// A legacy client's request, as one to a modern server. Other messages say nothing of their sender. What the
/// request itself says under the protocol's keys is not believed: they are the gateway's to set.
pub fn to_modern(message: &Bytes, facts: &ClientFacts) -> Bytes {
    if scan::glance(message).kind != Kind::Request {
        return message.clone();
    }
    let message = &to_legacy(message);
    let Some(whole) = whole_object(message) else { return message.clone() };
    let keys = modern_keys(facts);
    let mut edits = Edits::new();
    let params: Vec<_> = members(message, whole.clone(), "params").collect();
    if params.is_empty() {
        set_members(message, whole, &[("params", composed(&[("_meta", composed(&keys))]))], &mut edits);
    }
    for params in params {
        match is_object(message, &params) {
            true => set_members_and_meta(message, params, &[], &keys, &mut edits),
            false => {
                let made = composed(&[("_meta", composed(&keys))]);
                edits.push((Span::new(params), made));
            }
        }
    }
    splice::splice_all(message, &mut edits)
}

fn modern_keys(facts: &ClientFacts) -> Vec<(&'static str, Bytes)> {
    let mut keys =
        vec![(PROTOCOL_VERSION, quoted(Revision::NEWEST.as_str())), (CLIENT_CAPABILITIES, declared_to_modern(facts))];
    // One that has no name is not worth telling, and no modern server may be told so.
    let is_named = |key| scan::member_at(&facts.info, [key]).is_some_and(|v| facts.info[v.range()].starts_with(b"\""));
    if is_named("name") && is_named("version") {
        keys.push((CLIENT_INFO, facts.info.clone()));
    }
    keys.extend(facts.log_level.as_deref().map(|level| (LOG_LEVEL, quoted(level))));
    keys
}

/// What may be declared to a modern server in the name of a client: nothing that its own revision lacks, and
/// nothing that the newest has no more.
fn declared_to_modern(facts: &ClientFacts) -> Bytes {
    let bytes = &facts.capabilities;
    let mut edits = Edits::new();
    let has_elicitation = facts.revision.has_elicitation();
    let is_cut = |name: &str| name == "tasks" || (name == "elicitation" && !has_elicitation);
    cut_members(bytes, 0..bytes.len(), is_cut, &mut edits);
    for roots in members(bytes, 0..bytes.len(), "roots") {
        cut_members(bytes, roots, |name| name == "listChanged", &mut edits);
    }
    if has_elicitation && !facts.revision.has_elicitation_by_url() {
        for elicitation in members(bytes, 0..bytes.len(), "elicitation") {
            cut_members(bytes, elicitation, |name| name == "url", &mut edits);
        }
    }
    splice::splice_all(bytes, &mut edits)
}

/// What may be declared to a legacy server in the name of a client. One of the newest revision is asked in answers to its
/// calls, which no legacy server does.
pub fn declared_to_legacy(facts: &ClientFacts) -> Bytes {
    let bytes = &facts.capabilities;
    let mut edits = Edits::new();
    if facts.revision.era() == Era::Modern {
        let is_asked = |name: &str| matches!(name, "sampling" | "elicitation" | "roots" | "tasks");
        cut_members(bytes, 0..bytes.len(), is_asked, &mut edits);
    }
    if edits.is_empty() { bytes.clone() } else { splice::splice_all(bytes, &mut edits) }
}

/// A modern client's request, as one to a legacy server: without what the protocol has it say of itself.
pub fn to_legacy(message: &Bytes) -> Bytes {
    let mut edits = Edits::new();
    for meta in at_path(message, &["params", "_meta"]) {
        cut_members(message, meta, |key| key.starts_with(PROTOCOL), &mut edits);
    }
    if edits.is_empty() { message.clone() } else { splice::splice_all(message, &mut edits) }
}

/// An answer of a modern server, for a legacy client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Crossed {
    Answer(Bytes),
    /// It is a question to the client.
    Asks,
    /// It is of a kind that nobody asked for; such an answer means nothing.
    Unknown,
}

pub fn answer_to_legacy(method: &str, answer: Bytes) -> Crossed {
    let mut edits = Edits::new();
    for result in members(&answer, 0..answer.len(), "result") {
        for kind in members(&answer, result.clone(), "resultType") {
            match scan::decode_string(&answer[kind]).as_deref() {
                Some("complete") => {}
                Some("input_required") => return Crossed::Asks,
                _ => return Crossed::Unknown,
            }
        }
        // A handshake's revisions know no structured content but an object.
        let is_object = |value: Range<usize>| is_object(&answer, &value);
        let is_other = method == "tools/call" && !members(&answer, result.clone(), "structuredContent").all(is_object);
        let is_cut = |name: &str| {
            matches!(name, "resultType" | "ttlMs" | "cacheScope") || (is_other && name == "structuredContent")
        };
        cut_members(&answer, result, is_cut, &mut edits);
    }
    change_code(&answer, |code| reply::legacy_code(method, code), &mut edits);
    Crossed::Answer(if edits.is_empty() { answer } else { splice::splice_all(&answer, &mut edits) })
}

/// An answer of a legacy server, for a modern client.
pub fn answer_to_modern(method: &str, answer: Bytes, server_info: Option<&[u8]>) -> Bytes {
    let mut wanted = vec![("resultType", quoted("complete"))];
    if method == "resources/read" || ListKind::from_method(method).is_some() {
        wanted.push(("ttlMs", Bytes::from_static(b"0")));
        wanted.push(("cacheScope", quoted("private")));
    }
    let info: Vec<_> = server_info.map(|info| (SERVER_INFO, Bytes::copy_from_slice(info))).into_iter().collect();
    let mut edits = Edits::new();
    for result in members(&answer, 0..answer.len(), "result").filter(|result| is_object(&answer, result)) {
        set_members_and_meta(&answer, result, &wanted, &info, &mut edits);
    }
    change_code(&answer, |code| reply::modern_code(method, code), &mut edits);
    if edits.is_empty() { answer } else { splice::splice_all(&answer, &mut edits) }
}

fn change_code(answer: &[u8], change: impl Fn(&[u8]) -> Option<&'static str>, edits: &mut Edits) {
    for code in at_path(answer, &["error", "code"]) {
        if let Some(changed) = change(&answer[code.clone()]) {
            edits.push((Span::new(code), Bytes::from_static(changed.as_bytes())));
        }
    }
}

#[cfg(test)]
mod tests;
