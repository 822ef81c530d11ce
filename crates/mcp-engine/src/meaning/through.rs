//! The uses that a call of a proxy tool stands for, each as the request that it would be without the tool.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_wire::proxied::unquoted;
use mcp_wire::{Message, scan, strict};

use super::KEYS;

/// Uses of one call of a proxy tool: each is judged and recorded.
const USES_MAX: usize = 1_000;
/// Batches within batches, and proxy tools that are called by others.
const DEPTH_MAX: usize = 4;

/// What is used of a server, and how.
struct Way {
    kind: &'static str,
    method: &'static str,
    /// What `path` is there.
    subject: &'static str,
    list: &'static str,
}

const WAYS: [Way; 3] = [
    Way { kind: "tool", method: "tools/call", subject: "name", list: "tools/list" },
    Way { kind: "resource", method: "resources/read", subject: "uri", list: "resources/list" },
    Way { kind: "prompt", method: "prompts/get", subject: "name", list: "prompts/list" },
];

/// The uses, in their order. `with_lists`: also those that only list and describe.
pub(super) fn uses(said: &Message, arguments: &[u8], with_lists: bool) -> Result<Vec<Message>, String> {
    let mut found = Found { said, with_lists, uses: Vec::new() };
    found.add(arguments, 0)?;
    Ok(found.uses)
}

struct Found<'a> {
    said: &'a Message,
    with_lists: bool,
    uses: Vec<Message>,
}

impl Found<'_> {
    fn add(&mut self, arguments: &[u8], depth: usize) -> Result<(), String> {
        let action = text(arguments, "action").unwrap_or_default();
        let is = |name: &str| action.trim().eq_ignore_ascii_case(name);
        let way = match text(arguments, "type") {
            Some(kind) => WAYS.iter().find(|way| kind.trim().eq_ignore_ascii_case(way.kind)),
            // Where nothing is said, somebody may take it for a tool.
            None => WAYS.first(),
        };
        match way {
            _ if is("batch") => self.add_each(arguments, depth),
            Some(way) if is("call") => match member(arguments, "path").filter(|path| path.starts_with(b"\"")) {
                Some(path) => {
                    self.keep(use_of(self.said, way, path, arguments))?;
                    self.add_within(arguments, depth)
                }
                None => Ok(()),
            },
            Some(way) if self.with_lists && (is("list") || is("info")) => self.keep(request(self.said, way.list, b"")),
            _ => Ok(()),
        }
    }

    /// What is called may be a proxy tool as well.
    fn add_within(&mut self, arguments: &[u8], depth: usize) -> Result<(), String> {
        let Some(given) = member(arguments, "args") else { return Ok(()) };
        let args = unquoted(given);
        if !args.trim_ascii().starts_with(b"{") || text(&args, "action").is_none() {
            return Ok(());
        }
        if depth == DEPTH_MAX {
            return Err("proxy tools that call each other".into());
        }
        if given.starts_with(b"\"") {
            self.check(&args)?;
        }
        self.add(&args, depth + 1)
    }

    /// What a text holds was not read with the message.
    fn check(&self, held: &[u8]) -> Result<(), String> {
        let whole = request(self.said, "tools/call", &[br#""name":"x","arguments":{"x":"#, held, b"}"].concat());
        strict::check(&whole, &KEYS).map(drop).map_err(|unfit| unfit.to_string())
    }

    fn add_each(&mut self, arguments: &[u8], depth: usize) -> Result<(), String> {
        if depth == DEPTH_MAX {
            return Err("batches within batches".into());
        }
        let Some(operations) = member(arguments, "operations") else { return Ok(()) };
        let is_quoted = operations.starts_with(b"\"");
        let operations = unquoted(operations);
        if is_quoted {
            self.check(&operations)?;
        }
        for span in scan::batch_items(&operations) {
            self.add(&operations[span.range()], depth + 1)?;
        }
        Ok(())
    }

    fn keep(&mut self, request: Message) -> Result<(), String> {
        if self.uses.len() == USES_MAX {
            return Err("too many operations at once".into());
        }
        self.uses.push(request);
        Ok(())
    }
}

fn use_of(said: &Message, way: &Way, path: &[u8], arguments: &[u8]) -> Message {
    let mut params = [b"\"", way.subject.as_bytes(), b"\":", path].concat();
    if let Some(args) = member(arguments, "args").map(unquoted)
        && args.trim_ascii().starts_with(b"{")
        && way.subject == "name"
    {
        params.extend_from_slice(b",\"arguments\":");
        params.extend_from_slice(&args);
    }
    request(said, way.method, &params)
}

/// A request with the id of `said`, and with what that says of itself beside what it wants.
fn request(said: &Message, method: &str, params: &[u8]) -> Message {
    let id = said.glance().id.map_or(&b"0"[..], |span| said.slice(span));
    let meta = scan::member_at(said.bytes(), ["params", "_meta"]).map(|span| said.slice(span));
    let mut bytes = [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"method\":\"", method.as_bytes(), b"\""].concat();
    bytes.extend_from_slice(b",\"params\":{");
    bytes.extend_from_slice(params);
    if let Some(meta) = meta {
        bytes.extend_from_slice(if params.is_empty() { b"\"_meta\":" } else { b",\"_meta\":" });
        bytes.extend_from_slice(meta);
    }
    bytes.extend_from_slice(b"}}");
    Message::scanned(Bytes::from(bytes))
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    scan::object_members(object).filter(|(key, _)| key == name).last().map(|(_, span)| &object[span.range()])
}

fn text<'a>(object: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    scan::decode_string(member(object, name)?)
}
