//! What the tests of asking share: rules that ask, what clients can do, and how they answer.

use serde_json::{Value, json};

use crate::kit::{Running, Sandbox};

pub const ALLOW: &str = "allow once";
pub const ALLOW_SESSION: &str = "allow for this session";
pub const DENY: &str = "deny";

impl Sandbox {
    /// The flags that put a rule in front of a server which asks about calls that write.
    pub fn asking(&self, more: Value) -> [String; 3] {
        let mut rule = json!({ "name": "careful", "match": "tool:write_*", "verdict": "ask", "message": "Really?" });
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let file = self.path("rules.json");
        std::fs::write(&file, json!({ "policy": { "rules": [rule] } }).to_string()).unwrap();
        ["--quiet".into(), "--rules".into(), file.to_str().unwrap().into()]
    }

    /// What was decided, and by whom, in the order of the audit.
    pub fn decided(&self) -> Vec<(String, String)> {
        let files = std::fs::read_dir(self.path(".local/state/mcp-proxy/audit")).unwrap();
        let text: String = files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let word = |line: &Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
        lines
            .filter(|line| line["kind"] == "decision" && line["rule"] == "careful")
            .map(|line| (word(&line, "verdict"), word(&line, "actor")))
            .collect()
    }
}

/// A client's hello, with what it can do.
pub fn hello(capabilities: &Value) -> String {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params }).to_string()
}

/// The same of one whose user can be asked.
pub fn hello_with_forms() -> String {
    hello(&json!({ "elicitation": {} }))
}

pub fn write_file(id: u64) -> String {
    let params = json!({ "name": "write_file", "arguments": { "path": "/tmp/x" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// What whoever uses a client says in a form.
pub fn accept(decision: &str) -> Value {
    json!({ "action": "accept", "content": { "decision": decision } })
}

/// The answer to a question of the proxy's, as a client of the older revisions sends it.
#[track_caller]
pub fn answer(question: &Value, result: &Value) -> String {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let id = question["id"].as_str().unwrap();
    assert!(id.starts_with("mcp-proxy-ask-"), "{id}");
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains("careful") && text.contains("Really?") && text.contains("write_file"), "{text}");
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

/// A call of the newest revision, and the same with an answer to what `asked` asks.
pub fn modern_call(id: u64, asked: Option<(&Value, &Value)>) -> String {
    let mut params = json!({
        "name": "write_file",
        "arguments": { "path": "/tmp/x" },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    if let Some((asked, said)) = asked {
        params["inputResponses"] = json!({ "mcp-proxy-ask": said });
        params["requestState"] = asked["result"]["requestState"].clone();
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// What a call of the newest revision is answered with where its user is asked.
#[track_caller]
pub fn is_question(answer: &Value, id: u64) {
    assert_eq!((&answer["id"], &answer["result"]["resultType"]), (&id.into(), &"input_required".into()), "{answer}");
    let form = &answer["result"]["inputRequests"]["mcp-proxy-ask"];
    assert_eq!(form["method"], "elicitation/create");
    assert!(form["params"]["message"].as_str().unwrap().contains("careful"));
}

#[track_caller]
pub fn is_denied(answer: &Value, id: u64, why: &str) {
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(answer["id"] == id && answer["error"]["code"] == -32000 && text.contains(why), "{answer}");
}

#[track_caller]
pub fn is_taken_back(message: &Value, question: &Value) {
    assert_eq!(message["method"], "notifications/cancelled", "{message}");
    assert_eq!(message["params"]["requestId"], question["id"]);
}

/// A client on pipes whose server is a puppet.
pub struct OnPipes {
    pub sandbox: Sandbox,
    pub proxy: Running,
}

impl OnPipes {
    pub fn begin(more: Value) -> Self {
        let sandbox = Sandbox::new();
        let flags = sandbox.asking(more);
        let proxy = sandbox.run(&flags.each_ref().map(String::as_str), &["puppet"]);
        Self { sandbox, proxy }
    }

    /// The same after a handshake with forms.
    pub fn connected(more: Value) -> Self {
        let mut client = Self::begin(more);
        client.send(&hello_with_forms());
        assert_eq!(client.proxy.json()["id"], "init");
        client
    }

    #[track_caller]
    pub fn send(&mut self, message: &str) {
        self.proxy.send(format!("{message}\n").as_bytes());
    }

    /// Calls the tool, and what whoever uses the client is asked comes back.
    #[track_caller]
    pub fn calls(&mut self, id: u64) -> Value {
        self.send(&write_file(id));
        self.proxy.json()
    }

    /// The lines that the server saw after the handshake.
    #[track_caller]
    pub fn seen(&mut self) -> Vec<String> {
        self.proxy.request(9_999, "seen");
        let answer = self.proxy.json();
        assert_eq!(answer["id"], 9_999, "{answer}");
        let lines: Vec<String> = serde_json::from_value(answer["result"]["lines"].clone()).unwrap();
        lines.into_iter().filter(|line| !line.contains("\"initialize\"")).collect()
    }
}
