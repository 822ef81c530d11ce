//! A client of the fixture's `tools`, on pipes, and recordings of what it does.

use std::process::Output;

use serde_json::{Value, json};

use crate::kit::{Running, Sandbox, fixture_program};

const MODERN: &str = "2026-07-28";

/// A client that asks one thing at a time and answers what it is asked with a word.
pub struct Asker {
    pub peer: Running,
    next_id: u64,
    is_modern: bool,
    /// What came that was no answer, by method.
    pub heard: Vec<Value>,
}

impl Asker {
    pub fn new(peer: Running) -> Self {
        Self { peer, next_id: 1, is_modern: false, heard: Vec::new() }
    }

    /// One of the newest revision, which needs no handshake.
    pub fn modern(peer: Running) -> Self {
        Self { is_modern: true, ..Self::new(peer) }
    }

    #[track_caller]
    pub fn opened(peer: Running) -> Self {
        let mut asker = Self::new(peer);
        let client = json!({ "name": "asker", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} }, "clientInfo": client });
        assert!(asker.ask("initialize", params)["result"].is_object());
        asker.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        asker
    }

    pub fn send(&mut self, message: &Value) {
        self.peer.send(format!("{message}\n").as_bytes());
    }

    pub fn start(&mut self, method: &str, mut params: Value) -> u64 {
        if self.is_modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "asker", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({ "elicitation": {} });
        }
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The answer to `id`. What the server asks meanwhile is answered.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.peer.json();
            if message.get("method").is_none() && message["id"] == id {
                return message;
            }
            if message["method"] == "elicitation/create" {
                let content = json!({ "action": "accept", "content": { "word": "please" } });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": content }));
            }
            self.heard.push(message);
        }
    }

    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.start(method, params);
        self.answer(id)
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// The text that a call results in.
    #[track_caller]
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(tool, arguments);
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Both pages of the list.
    #[track_caller]
    pub fn list(&mut self) -> Vec<Value> {
        let first = self.ask("tools/list", json!({}));
        let second = self.ask("tools/list", json!({ "cursor": first["result"]["nextCursor"] }));
        vec![first["result"]["tools"].clone(), second["result"]["tools"].clone()]
    }

    /// A call whose server wants a word first, in a round of its own.
    #[track_caller]
    pub fn ask_in_rounds(&mut self) -> String {
        let first = self.call("ask", json!({ "text": "say" }));
        assert_eq!(first["result"]["resultType"], "input_required", "{first}");
        let word = json!({ "word": { "action": "accept", "content": { "word": "please" } } });
        let state = &first["result"]["requestState"];
        let params =
            json!({ "name": "ask", "arguments": { "text": "say" }, "inputResponses": word, "requestState": state });
        let second = self.ask("tools/call", params);
        second["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{second}")).to_owned()
    }

    #[track_caller]
    pub fn end(self) -> String {
        let (status, said) = self.peer.end();
        assert!(!said.contains("panicked"), "{status}: {said}");
        said
    }
}

/// `-- FIXTURE tools VARIANT`
pub fn tools(variant: &str) -> Vec<String> {
    ["--".into(), fixture_program().to_str().expect("a path is text").to_owned(), "tools".into(), variant.into()].into()
}

impl Sandbox {
    /// Records what `act` does with the tools, under a name.
    #[track_caller]
    pub fn record(&self, name: &str, act: impl FnOnce(&mut Asker)) {
        self.record_of(name, "", Asker::opened, act);
    }

    #[track_caller]
    pub fn record_of(&self, name: &str, variant: &str, open: fn(Running) -> Asker, act: impl FnOnce(&mut Asker)) {
        let mut asker = open(self.run(&["--quiet", "--name", name], &["tools", variant]));
        act(&mut asker);
        asker.end();
    }

    /// `mcp-proxy replay ARGS -- FIXTURE tools VARIANT`
    #[track_caller]
    pub fn replay(&self, args: &[&str], variant: &str) -> Replayed {
        let tools = tools(variant);
        self.replay_with(args.iter().copied().chain(tools.iter().map(String::as_str)))
    }

    #[track_caller]
    pub fn replay_with<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Replayed {
        let Output { status, stdout, stderr } = self.output(["replay"].into_iter().chain(args));
        let said = String::from_utf8_lossy(&stderr).into_owned();
        assert!(!said.contains("panicked"), "{said}");
        Replayed { code: status.code(), shown: String::from_utf8(stdout).expect("what people read is text"), said }
    }
}

/// What a replay said.
#[derive(Debug)]
pub struct Replayed {
    pub code: Option<i32>,
    pub shown: String,
    pub said: String,
}

impl Replayed {
    #[track_caller]
    pub fn expect(&self, code: i32, shown: &[&str]) -> &Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        for piece in shown {
            assert!(self.shown.contains(piece), "no `{piece}` in {self:?}");
        }
        self
    }

    #[track_caller]
    pub fn expect_failure(&self, code: i32, said: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for piece in said {
            assert!(self.said.contains(piece), "no `{piece}` in {self:?}");
        }
    }
}
