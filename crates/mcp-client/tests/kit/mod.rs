//! A server in memory that answers as a test says, and remembers what it was asked.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::sync::{Arc, Mutex};

use mcp_client::{Options, ProxyClient};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

pub(crate) const MODERN: &str = "2026-07-28";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

pub(crate) enum Answer {
    Result(Value),
    Error(i64, &'static str),
    /// Whole messages in its place; `"$id"` stands for the id of the request.
    Say(Vec<Value>),
    Nothing,
    HangUp,
}

pub(crate) use Answer::{Error, HangUp, Nothing, Result, Say};

/// Everything that came, in order.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<Value>>>);

impl Seen {
    pub(crate) fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn methods(&self) -> Vec<String> {
        self.all().iter().filter_map(|message| Some(message["method"].as_str()?.to_owned())).collect()
    }

    /// The params of every request of this method.
    pub(crate) fn params(&self, method: &str) -> Vec<Value> {
        let all = self.all().into_iter();
        all.filter(|message| message["method"] == method).map(|message| message["params"].clone()).collect()
    }
}

/// Which eras a server knows, and what it says that it has.
#[derive(Clone, Copy)]
pub(crate) struct Knows {
    pub modern: bool,
    pub legacy: bool,
    pub capabilities: &'static [&'static str],
}

pub(crate) const ALL: &[&str] = &["tools", "resources", "prompts"];
pub(crate) const LEGACY: Knows = Knows { modern: false, legacy: true, capabilities: ALL };
pub(crate) const MODERN_ONLY: Knows = Knows { modern: true, legacy: false, capabilities: ALL };
/// One with nothing but tools.
pub(crate) const TOOLS: Knows = Knows { modern: false, legacy: true, capabilities: &["tools"] };

pub(crate) fn client(knows: Knows, answer: impl FnMut(&str, &Value) -> Answer + Send + 'static) -> (ProxyClient, Seen) {
    client_with(Options::default(), knows, answer)
}

/// A client of such a server. The opening is the server's own business; the rest is for `answer`.
pub(crate) fn client_with(
    options: Options,
    knows: Knows,
    mut answer: impl FnMut(&str, &Value) -> Answer + Send + 'static,
) -> (ProxyClient, Seen) {
    let (reader, writer, seen) = raw(move |message| {
        opening(knows, message)
            .unwrap_or_else(|| answer(message["method"].as_str().unwrap_or_default(), &message["params"]))
    });
    (ProxyClient::over(reader, writer, options), seen)
}

/// The client's ends of a connection to a server that answers by itself even how it is opened.
pub(crate) fn raw(
    mut answer: impl FnMut(&Value) -> Answer + Send + 'static,
) -> (tokio::io::ReadHalf<DuplexStream>, tokio::io::WriteHalf<DuplexStream>, Seen) {
    let (ours, theirs) = duplex(64 * 1024);
    let seen = Seen::default();
    let remembered = seen.clone();
    tokio::spawn(async move {
        let (reader, mut writer) = split(theirs);
        let mut lines = BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).expect("a client sends JSON");
            remembered.0.lock().unwrap().push(message.clone());
            if message.get("method").is_none() || message.get("id").is_none() {
                continue;
            }
            let id = message["id"].clone();
            let said = match answer(&message) {
                Result(result) => vec![json!({ "jsonrpc": "2.0", "id": id, "result": result })],
                Error(code, text) => {
                    vec![json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })]
                }
                Say(messages) => messages,
                Nothing => continue,
                HangUp => return,
            };
            for message in said {
                let line = format!("{}\n", message.to_string().replace("\"$id\"", &id.to_string()));
                if writer.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    });
    let (reader, writer) = split(ours);
    (reader, writer, seen)
}

fn opening(knows: Knows, message: &Value) -> Option<Answer> {
    let capabilities: Value = knows.capabilities.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    let is_modern = message["params"]["_meta"][VERSION] == MODERN;
    match message["method"].as_str()? {
        "server/discover" if knows.modern => Some(Result(
            json!({ "resultType": "complete", "supportedVersions": [MODERN], "capabilities": capabilities }),
        )),
        "initialize" if knows.legacy => Some(Result(json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": { "name": "scripted", "version": "1" },
        }))),
        "server/discover" | "initialize" => Some(Error(-32601, "Method not found")),
        _ if is_modern && !knows.modern || !is_modern && !knows.legacy => Some(Error(-32022, "Unsupported version")),
        _ => None,
    }
}

pub(crate) fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).expect("a raw value is JSON")
}

pub(crate) fn raw_value(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).expect("a value is JSON")
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}
