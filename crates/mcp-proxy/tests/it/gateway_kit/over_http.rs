//! A client of Streamable HTTP with a session and one connection, or without a session in the newest revision.

use serde_json::{Value, json};

use super::{initialize, modern};
use crate::bridge_kit::LEGACY;
use crate::http_kit::{Client, Listening, Response, post};

pub struct HttpClient {
    connection: Client,
    pub headers: Vec<String>,
    is_modern: bool,
}

impl HttpClient {
    #[track_caller]
    pub fn open(gateway: &Listening) -> Self {
        Self::open_with(gateway, &[], json!({}))
    }

    #[track_caller]
    pub fn open_with(gateway: &Listening, headers: &[&str], capabilities: Value) -> Self {
        let mut client = Self {
            connection: gateway.client(),
            headers: headers.iter().map(|&header| header.to_owned()).collect(),
            is_modern: false,
        };
        let opened = client.post(&initialize(1, LEGACY, capabilities));
        assert_eq!(opened.status(), 200, "{opened:?}");
        assert_eq!(messages_in(&opened)[0]["result"]["protocolVersion"], LEGACY, "{opened:?}");
        let session = opened.head.get("mcp-session-id").expect("a session begins");
        client.headers.push(format!("Mcp-Session-Id: {session}"));
        client.headers.push(format!("MCP-Protocol-Version: {LEGACY}"));
        let told = client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(told.status(), 202, "{told:?}");
        client
    }

    pub fn modern(gateway: &Listening) -> Self {
        let headers = vec!["MCP-Protocol-Version: 2026-07-28".to_owned()];
        Self { connection: gateway.client(), headers, is_modern: true }
    }

    /// The same client on a connection of its own.
    pub fn beside(&self, gateway: &Listening) -> Self {
        Self { connection: gateway.client(), headers: self.headers.clone(), is_modern: self.is_modern }
    }

    /// Posts a message and waits for nothing.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> &mut Client {
        let mut headers: Vec<String> = self.headers.clone();
        if self.is_modern {
            headers.push(format!("Mcp-Method: {}", message["method"].as_str().unwrap_or_default()));
            let params = &message["params"];
            headers.extend(params["name"].as_str().or(params["uri"].as_str()).map(|name| format!("Mcp-Name: {name}")));
        }
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        self.connection.send(&post("/mcp", &headers, message.to_string()));
        &mut self.connection
    }

    /// What is left of it once its stream is all that is read.
    pub fn into_connection(self) -> Client {
        self.connection
    }

    #[track_caller]
    pub fn post(&mut self, message: &Value) -> Response {
        self.send(message).response()
    }

    /// Everything that comes as the answer to a request that was sent.
    #[track_caller]
    pub fn answers(&mut self) -> Vec<Value> {
        messages_in(&self.connection.response())
    }

    /// Sends a request, and returns everything that comes of it.
    #[track_caller]
    pub fn exchange(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Vec<Value> {
        let message = self.message(id, method, params);
        self.send(&message);
        self.answers()
    }

    pub fn message(&self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        match self.is_modern {
            true => modern(id, method, params, json!({})),
            false => json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }),
        }
    }

    /// The same, of which only the answer is of interest.
    #[track_caller]
    pub fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        let id = id.into();
        let all = self.exchange(id.clone(), method, params);
        let answer = all.iter().find(|message| message["id"] == id && message.get("method").is_none());
        answer.unwrap_or_else(|| panic!("no answer: {all:?}")).clone()
    }

    #[track_caller]
    pub fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }
}

/// The messages of an answer, whichever of its two forms it has.
#[track_caller]
pub fn messages_in(response: &Response) -> Vec<Value> {
    let text = String::from_utf8_lossy(&response.body);
    if response.head.get("content-type").as_deref() != Some("text/event-stream") {
        return vec![response.json()];
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap()).collect()
}
