//! The tool that reaches everything. What it calls is asked for as its client would ask for it by itself, so that
//! it is recorded, judged, held and written down under its own name; what comes of that is shaped on its way back.

mod batch;
mod inner;
mod look_up;
pub(crate) mod unwrapping;

use std::rc::Rc;

use crate::router::rewrite::Item;
use crate::router::{ListKind, era};
use bytes::Bytes;
use mcp_proxy_tool::arguments::{self, Call, Mistake, Operation, Request};
use mcp_proxy_tool::definition::definition;
use mcp_proxy_tool::{Type, shape};
use mcp_wire::reply;
use mcp_wire::revision::Era;
use mcp_wire::{Id, Message, scan};

use crate::client::GatewayClient;
use crate::settings::ProxyToolMode;
use crate::upstream::UpstreamConnection;

pub(crate) use inner::Inners;
pub(crate) use look_up::Indexes;

/// A use of the tool, as far as all that comes of it has to know.
struct Outer {
    /// Of the client's request.
    id: Id,
    era: Era,
    sequence: u64,
    /// What its `params` say beside the tool and its arguments: as good for what is called as for the tool.
    rest: Vec<(String, Bytes)>,
}

impl Outer {
    fn of(message: &Message, era: Era, sequence: u64) -> Option<Self> {
        let bytes = message.bytes();
        let params = scan::member_at(bytes, ["params"]).map(|span| bytes.slice(span.range())).unwrap_or_default();
        let is_rest = |name: &str| !matches!(name, "name" | "uri" | "arguments");
        let rest = scan::object_members(&params)
            .filter(|(name, _)| is_rest(name))
            .map(|(name, value)| (name.into_owned(), params.slice(value.range())))
            .collect();
        Some(Self { id: message.id()?, era, sequence, rest })
    }
}

impl GatewayClient {
    /// Whether a `tools/call` means the tool.
    pub(crate) fn means_proxy_tool(&self, message: &Message) -> bool {
        let tool = self.gateway.settings.proxy_tool.as_ref();
        tool.is_some_and(|tool| message.name().is_some_and(|name| name == tool.name))
    }

    /// Whether it is all that the client is shown.
    pub(crate) fn sees_only_the_tool(&self) -> bool {
        let tool = self.gateway.settings.proxy_tool.as_ref();
        tool.is_some_and(|tool| tool.mode == ProxyToolMode::Instead)
    }

    /// The tool as an item of the list that it belongs to.
    pub(crate) fn own_tool(&self, kind: ListKind, era: Era) -> Option<Item> {
        let tool = self.gateway.settings.proxy_tool.as_ref().filter(|_| kind == ListKind::Tools)?;
        let takes_tasks =
            |connection: &Rc<UpstreamConnection>| connection.declares(&["tasks", "requests", "tools", "call"]);
        let takes_tasks = era == Era::Legacy && self.open_connections().iter().any(takes_tasks);
        let bytes = definition(&tool.name, takes_tasks);
        Some(Item { original: tool.name.clone(), given: tool.name.clone(), bytes })
    }

    pub(crate) fn use_proxy_tool(&self, message: &Message, era: Era, sequence: u64) {
        let Some(outer) = Outer::of(message, era, sequence) else { return };
        let outer = Rc::new(outer);
        let given = scan::member_at(message.bytes(), ["params", "arguments"]);
        let request = arguments::parse(given.map(|span| &message.bytes()[span.range()]));
        // What is called is counted where it goes.
        if !matches!(request, Ok(Request::One(Operation::Call(_))))
            && let Err(refusal) = self.may_ask()
        {
            return self.answer_with(&outer.id, &refusal);
        }
        match request {
            Ok(Request::One(Operation::Call(call))) => match self.left_open(&call) {
                Some(mistake) => self.say_of_tool(&outer, &shape::mistake(&mistake)),
                None => self.call_alone(&outer, call),
            },
            Ok(Request::One(operation)) => self.look_up(&outer, operation),
            Ok(Request::Batch(operations)) => self.begin_batch(&outer, operations),
            Err(mistake) => self.say_of_tool(&outer, &shape::mistake(&mistake)),
        }
    }

    /// Whether a call would read a template whose variables nobody filled in.
    fn left_open(&self, call: &Call) -> Option<Mistake> {
        let is_template = call.kind == Type::Resource && self.gateway.names.borrow().is_template(&call.path);
        let text = "`path` is a template: `args` must have what it needs, or `path` has to be a whole URI";
        is_template.then(|| Mistake(text.into()))
    }

    /// Answers a use of the tool with a result of our own.
    fn say_of_tool(&self, outer: &Outer, result: &[u8]) {
        let answer = reply::answer_with_result(&outer.id, result);
        self.say(match outer.era {
            Era::Legacy => answer,
            Era::Modern => era::answer_to_modern(Type::Tool.method(), answer, Some(&self.gateway.own().info())),
        });
    }

    /// Uses a capability the way that the client would without the tool, under an id of ours.
    fn use_natively(&self, outer: &Outer, id: &Id, call: &Call, rest: &[(String, Bytes)]) {
        let message = native(id, call, rest);
        let method = call.kind.method();
        match call.kind {
            Type::Tool => self.route(&message, method, outer.era, outer.sequence, |names, message| {
                message.name().map(|name| names.tool(&name))
            }),
            Type::Prompt => self.route(&message, method, outer.era, outer.sequence, |names, message| {
                message.name().map(|name| names.prompt(&name))
            }),
            Type::Resource => self.route(&message, method, outer.era, outer.sequence, |names, message| {
                message.uri().map(|uri| names.uri(&uri))
            }),
        }
    }
}

/// The request that uses a capability by itself.
fn native(id: &Id, call: &Call, rest: &[(String, Bytes)]) -> Message {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let subject = if call.kind == Type::Resource { "uri" } else { "name" };
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{}\",\"params\":{{", call.kind.method());
    text.push_str(&format!("\"{subject}\":{}", quoted(&call.path)));
    let mut bytes = text.into_bytes();
    let args = call.args.as_ref().filter(|_| call.kind != Type::Resource);
    for (name, value) in args.map(|args| ("arguments", args)).into_iter().chain(rest.iter().map(|(n, v)| (&**n, v))) {
        bytes.extend_from_slice(format!(",{}:", quoted(name)).as_bytes());
        bytes.extend_from_slice(value);
    }
    bytes.extend_from_slice(b"}}");
    Message::new(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outer(message: &'static str) -> Outer {
        Outer::of(&Message::new(message.into()), Era::Legacy, 7).expect("it has an id")
    }

    #[test]
    fn what_is_called_says_what_the_tools_caller_said_beside_it() {
        let outer = outer(
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":9},"name":"proxy","arguments":{"action":"call"},"uri":"x","task":{"ttl":1e3}}}"#,
        );
        let args = Some(Bytes::from_static(br#"{"a":1.0}"#));
        let call = Call { kind: Type::Tool, path: "a\"b".into(), args, objectify: true };
        let message = native(&Id::Text("k:1".into()), &call, &outer.rest);
        let expected = r#"{"jsonrpc":"2.0","id":"k:1","method":"tools/call","params":{"name":"a\"b","arguments":{"a":1.0},"_meta":{"progressToken":9},"task":{"ttl":1e3}}}"#;
        assert_eq!(message.bytes(), expected);
    }

    #[test]
    fn a_resource_is_read_by_its_address_alone() {
        let outer = outer(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"proxy"}}"#);
        let call = Call { kind: Type::Resource, path: "a://b".into(), args: Some("{}".into()), objectify: true };
        let message = native(&Id::Integer(1), &call, &outer.rest);
        assert_eq!(message.bytes(), r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"a://b"}}"#);
    }
}
