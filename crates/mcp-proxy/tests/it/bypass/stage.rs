//! A proxy with rules, a client that attacks and a server that keeps every byte it gets.

use std::sync::{Arc, Mutex};

use mcp_wire::{Message, mirror};
use serde_json::Value;

use super::attacks::harmless;
use super::readings::{Denied, denied_calls};
use super::{Era, rules_in};
use crate::http_kit::{Call, Head, Listening, MODERN, Origin, Serving, accepted, answer, json, post};
use crate::kit::{Running, Sandbox};

pub struct Stage {
    sandbox: Sandbox,
    era: Era,
    client: Client,
    server: Server,
    /// How much of what the server got was looked at.
    looked_at: usize,
}

enum Client {
    Pipes(Running),
    Http { proxy: Listening, session: Option<String> },
}

enum Server {
    /// Its journals lie in the sandbox.
    Process,
    Http {
        seen: Seen,
        _serving: Serving,
    },
}

/// What reached an HTTP server.
pub type Seen = Arc<Mutex<Vec<(Head, Vec<u8>)>>>;

/// How a client begins that shakes hands.
pub const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"eve","version":"1"}}}"#;
/// Where a server that is a process writes down what it gets.
pub const JOURNAL: &str = "journal";
const NAME: &str = "github";

impl Stage {
    pub fn pipes(era: Era, rules: &str) -> Self {
        let sandbox = Sandbox::new();
        let rules = rules_in(&sandbox, rules);
        let journal = sandbox.path(JOURNAL);
        let flags = ["--quiet", "--rules", &rules, "--name", NAME];
        let running = sandbox.run(&flags, &["puppet", journal.to_str().unwrap()]);
        Self::begin(sandbox, era, Client::Pipes(running), Server::Process)
    }

    /// A gateway of one server, with the proxy tool.
    pub fn tool(era: Era, rules: &str) -> Self {
        let sandbox = Sandbox::new();
        let rules = rules_in(&sandbox, rules);
        let journal = sandbox.path(JOURNAL);
        let flags = ["--quiet", "--rules", &rules, "--name", NAME, "--proxy-tool"];
        let running = sandbox.run(&flags, &["puppet", journal.to_str().unwrap()]);
        Self::begin(sandbox, era, Client::Pipes(running), Server::Process)
    }

    pub fn http(era: Era, rules: &str) -> Self {
        let sandbox = Sandbox::new();
        let rules = rules_in(&sandbox, rules);
        let (server, url) = http_server();
        let proxy = sandbox.listen_to("streamable-http", &url, &["--quiet", "--rules", &rules, "--name", NAME]);
        Self::begin(sandbox, era, Client::Http { proxy, session: None }, server)
    }

    pub fn http_onto_pipes(era: Era, rules: &str) -> Self {
        let sandbox = Sandbox::new();
        let rules = rules_in(&sandbox, rules);
        let journal = sandbox.path(JOURNAL);
        let fixture = ["puppet", journal.to_str().unwrap()];
        let proxy = sandbox.listen_to_fixture(&fixture, &["--quiet", "--rules", &rules, "--name", NAME]);
        Self::begin(sandbox, era, Client::Http { proxy, session: None }, Server::Process)
    }

    pub fn pipes_onto_http(era: Era, rules: &str) -> Self {
        let sandbox = Sandbox::new();
        let rules = rules_in(&sandbox, rules);
        let (server, url) = http_server();
        let running = sandbox.run_to("streamable-http", &url, &["--quiet", "--rules", &rules, "--name", NAME]);
        Self::begin(sandbox, era, Client::Pipes(running), server)
    }

    fn begin(sandbox: Sandbox, era: Era, client: Client, server: Server) -> Self {
        let mut stage = Self { sandbox, era, client, server, looked_at: 0 };
        if let Some(revision) = era.handshake() {
            stage.shake_hands(revision);
        }
        stage.works(0);
        stage
    }

    pub fn era(&self) -> Era {
        self.era
    }

    fn shake_hands(&mut self, revision: &str) {
        let hello = HANDSHAKE.replace("2025-11-25", revision);
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match &mut self.client {
            Client::Pipes(running) => {
                running.send(format!("{hello}\n").as_bytes());
                assert_eq!(running.json()["id"], 0);
                running.send(format!("{ready}\n").as_bytes());
            }
            Client::Http { proxy, session } => {
                let response = proxy.client().ask(&post("/mcp", &[], &hello));
                assert_eq!(response.json()["id"], 0);
                *session = response.head.get("mcp-session-id");
                let request = post("/mcp", &self.headers(ready.as_bytes()), ready);
                assert_eq!(self.client_port().ask(&request).status(), 202);
            }
        }
    }

    fn client_port(&self) -> crate::http_kit::Client {
        match &self.client {
            Client::Http { proxy, .. } => proxy.client(),
            Client::Pipes(_) => panic!("it has pipes"),
        }
    }

    /// What stands around a body, as a client that is honest about it would have it.
    fn headers(&self, body: &[u8]) -> Vec<&'static str> {
        let mut headers: Vec<String> = Vec::new();
        if let Client::Http { session: Some(session), .. } = &self.client {
            let revision = self.era.handshake().unwrap_or_default();
            headers.extend([format!("Mcp-Session-Id: {session}"), format!("MCP-Protocol-Version: {revision}")]);
        }
        if self.era == Era::Modern {
            let mirrored = mirror::derive(&Message::new(body.to_vec().into()));
            let (method, name) = (mirrored.method, mirrored.name);
            headers.push(MODERN.into());
            headers.push(format!("Mcp-Method: {}", method.as_deref().unwrap_or("tools/call")));
            if method.is_none_or(|method| method == "tools/call") || name.is_some() {
                headers.push(format!("Mcp-Name: {}", name.as_deref().unwrap_or("delete_repo")));
            }
        }
        headers.into_iter().map(|header| &*header.leak()).collect()
    }

    /// Sends an attack. What the client gets for it comes back, as far as it is there by now.
    pub fn attack(&mut self, bytes: &[u8]) -> Vec<String> {
        match &mut self.client {
            Client::Pipes(running) => {
                running.send(&[bytes, b"\n"].concat());
                // Answers are read with those to the next call.
                Vec::new()
            }
            Client::Http { .. } => {
                let request = post("/mcp", &self.headers(bytes), bytes);
                let mut client = self.client_port();
                let _ = client.try_send(&request);
                let response = client.try_response();
                response.map(|response| String::from_utf8_lossy(&response.body).into_owned()).into_iter().collect()
            }
        }
    }

    /// An ordinary call is answered. Answers to others that come before it are no results.
    #[track_caller]
    pub fn works(&mut self, number: u64) {
        let id = 1 + number;
        let call = harmless_with(self.era, id);
        match &mut self.client {
            Client::Pipes(running) => {
                running.send(format!("{call}\n").as_bytes());
                loop {
                    let answer = running.json();
                    if answer["id"] == id {
                        assert!(answer.get("result").is_some(), "{answer}");
                        return;
                    }
                    assert!(!has_result(&answer), "the client got {answer}");
                }
            }
            Client::Http { .. } => {
                let response = self.client_port().ask(&post("/mcp", &self.headers(call.as_bytes()), &call));
                let answer = response.json();
                assert!(answer["id"] == id && answer.get("result").is_some(), "{answer}");
            }
        }
    }

    /// The denied calls in what reached the server since they were looked for.
    pub fn denied_calls(&mut self, denied: Denied) -> Vec<String> {
        match &self.server {
            Server::Process => {
                let received = journals_in(&self.sandbox);
                let found = denied_calls(&received[self.looked_at..], denied);
                self.looked_at = received.len();
                found
            }
            Server::Http { seen, .. } => {
                let seen = seen.lock().unwrap();
                let found =
                    seen[self.looked_at..].iter().flat_map(|(head, body)| denied_in_request(head, body, denied));
                let found = found.collect();
                self.looked_at = seen.len();
                found
            }
        }
    }

    pub fn proxy(&self) -> &Listening {
        match &self.client {
            Client::Http { proxy, .. } => proxy,
            Client::Pipes(_) => panic!("it has pipes"),
        }
    }

    pub fn running(&mut self) -> &mut Running {
        match &mut self.client {
            Client::Pipes(running) => running,
            Client::Http { .. } => panic!("it listens"),
        }
    }

    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub fn headers_of(&self, body: &str) -> Vec<&'static str> {
        self.headers(body.as_bytes())
    }

    pub fn end(self) {
        match self.client {
            Client::Pipes(running) => {
                let (status, said) = running.end();
                assert!(status.success() && !said.contains("panicked"), "{status}: {said}");
            }
            Client::Http { proxy, .. } => drop(proxy.end()),
        }
    }
}

/// Everything that the processes of the server in a sandbox got.
pub fn journals_in(sandbox: &Sandbox) -> Vec<u8> {
    let directory = sandbox.path(JOURNAL);
    let files = std::fs::read_dir(directory.parent().unwrap()).unwrap().flatten();
    let mut journals: Vec<_> =
        files.filter(|file| file.file_name().to_string_lossy().starts_with(JOURNAL)).map(|file| file.path()).collect();
    journals.sort();
    journals.iter().flat_map(|path| std::fs::read(path).unwrap()).collect()
}

/// A harmless call under this id.
pub fn harmless_with(era: Era, id: u64) -> String {
    harmless(era, id - 1)
}

fn has_result(answer: &Value) -> bool {
    match answer {
        Value::Array(items) => items.iter().any(has_result),
        answer => answer.get("result").is_some(),
    }
}

/// What of a request a server could take for a denied call.
pub fn denied_in_request(head: &Head, body: &[u8], denied: Denied) -> Vec<String> {
    let mut found = denied_calls(body, denied);
    let named = head.all("mcp-name").into_iter().filter_map(|name| {
        let name = mirror::decode_value(name.as_bytes())?.into_owned();
        (name == "delete_repo").then(|| format!("the header Mcp-Name says {name}"))
    });
    found.extend(named);
    let types = head.all("content-type").into_iter().map(|value| value.to_ascii_lowercase());
    found.extend(types.filter(|value| value.contains("charset") && !value.contains("utf-8")));
    found.extend(head.get("content-encoding"));
    if !body.is_empty() && !head.start().starts_with("POST ") {
        found.push(format!("a body with {}", head.start()));
    }
    found
}

fn http_server() -> (Server, String) {
    let seen = Seen::default();
    let origin = Origin::start();
    let url = origin.url("/mcp");
    let keep = Arc::clone(&seen);
    let serving = origin.serve(move |call| {
        keep.lock().unwrap().push((call.head.clone(), call.body.clone()));
        let answer = answer_to(call);
        call.send(answer);
    });
    (Server::Http { seen, _serving: serving }, url)
}

fn answer_to(call: &Call) -> Vec<u8> {
    let message: Value = serde_json::from_slice(&call.body).unwrap_or_default();
    if call.head.start().starts_with("GET") {
        return answer("405 Method Not Allowed", &["Allow: POST"], "");
    }
    let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { return accepted() };
    if method == "initialize" {
        let revision = &message["params"]["protocolVersion"];
        let result = format!(
            r#"{{"protocolVersion":{revision},"capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}"#
        );
        let headers = ["Content-Type: application/json", "Mcp-Session-Id: s-1"];
        return answer("200 OK", &headers, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    }
    json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"method":"{method}"}}}}"#))
}
