//! A client on pipes, which keeps what it did not wait for.

use std::collections::VecDeque;
use std::process::ExitStatus;

use serde_json::{Value, json};

use super::{Fake, initialize, modern, text_of};
use crate::bridge_kit::LEGACY;
use crate::kit::{Running, Sandbox};

pub struct StdioClient {
    pub proxy: Running,
    /// What came while something else was waited for.
    kept: VecDeque<Value>,
    last: u64,
    /// Whether each request says who sends it.
    is_modern: bool,
    capabilities: Value,
}

impl StdioClient {
    /// A client that has introduced itself, and can do nothing in particular.
    #[track_caller]
    pub fn open(sandbox: &Sandbox, fakes: &[Fake], top: Value) -> Self {
        Self::open_with(sandbox.serve(fakes, top), json!({})).0
    }

    /// The same with what it can do, and what it was told of the gateway.
    #[track_caller]
    pub fn open_with(proxy: Running, capabilities: Value) -> (Self, Value) {
        let mut client = Self::new(proxy, false, capabilities);
        client.send(&initialize("init", LEGACY, client.capabilities.clone()));
        let opened = client.answer(&json!("init"));
        assert_eq!(opened["result"]["protocolVersion"], LEGACY, "{opened}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        (client, opened)
    }

    /// One that calls itself so.
    #[track_caller]
    pub fn named(proxy: Running, name: &str) -> Self {
        let mut client = Self::new(proxy, false, json!({}));
        let mut introduction = initialize("init", LEGACY, json!({}));
        introduction["params"]["clientInfo"]["name"] = name.into();
        client.send(&introduction);
        client.answer(&json!("init"));
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    /// A client of the newest revision.
    pub fn modern(proxy: Running) -> Self {
        Self::modern_with(proxy, json!({}))
    }

    /// The same with what it can do.
    pub fn modern_with(proxy: Running, capabilities: Value) -> Self {
        Self::new(proxy, true, capabilities)
    }

    fn new(proxy: Running, is_modern: bool, capabilities: Value) -> Self {
        Self { proxy, kept: VecDeque::new(), last: 0, is_modern, capabilities }
    }

    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        self.proxy.send(format!("{message}\n").as_bytes());
    }

    /// Sends a request and waits for nothing.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let message = match self.is_modern {
            true => modern(self.last, method, params, self.capabilities.clone()),
            false => json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }),
        };
        self.send(&message);
        message["id"].clone()
    }

    #[track_caller]
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// The answer to a request; what comes before it is kept.
    #[track_caller]
    pub fn answer(&mut self, id: &Value) -> Value {
        self.wait_for(|message| message["id"] == *id && message.get("method").is_none())
    }

    /// The next message with this method.
    #[track_caller]
    pub fn heard(&mut self, method: &str) -> Value {
        self.wait_for(|message| message["method"] == method)
    }

    #[track_caller]
    fn wait_for(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&is_it) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let message = self.proxy.json();
            if is_it(&message) {
                return message;
            }
            self.kept.push_back(message);
        }
    }

    /// Takes what was kept so far.
    pub fn take_kept(&mut self) -> Vec<Value> {
        self.kept.drain(..).collect()
    }

    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(&id)
    }

    /// Begins a call of a tool.
    #[track_caller]
    pub fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(&id)
    }

    /// Has a server take steps, of which one answers.
    #[track_caller]
    pub fn steps(&mut self, tool: &str, steps: Value) -> Value {
        self.call(tool, super::steps(steps))
    }

    #[track_caller]
    pub fn says(&mut self, tool: &str, text: &str) -> String {
        text_of(&self.call(tool, json!({ "text": text })))
    }

    /// Closes its side, and expects everything to end well.
    #[track_caller]
    pub fn end(self) -> String {
        let (status, said) = self.end_somehow();
        assert!(status.success(), "{status}: {said}");
        said
    }

    /// Asks the proxy to end, and expects it to do so in order, whatever is open.
    #[track_caller]
    pub fn stop(self) -> String {
        self.proxy.terminate();
        self.end()
    }

    #[track_caller]
    pub fn end_somehow(self) -> (ExitStatus, String) {
        let (status, said) = self.proxy.end();
        assert!(!said.contains("panicked"), "{said}");
        (status, said)
    }
}
