//! What the tests of the gateway share: servers that follow a script, a configuration of them, and clients on
//! pipes and over HTTP.

mod over_http;
mod over_stdio;

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

pub use over_http::HttpClient;
pub use over_stdio::StdioClient;

use crate::http_kit::Listening;
use crate::kit::{Running, Sandbox, fixture_program, marked_processes, until};

/// A server that follows a script, and what the configuration says of it.
#[derive(Clone)]
pub struct Fake {
    pub name: String,
    script: Value,
    entry: Value,
}

/// One with the tools `x` and `do`.
pub fn fake(name: &str) -> Fake {
    let script = json!({ "name": name, "lists": { "tools": ["x", "do"] } });
    Fake { name: name.to_owned(), script, entry: json!({}) }
}

impl Fake {
    /// Something of its script; see `tests/fixture/upstream.rs`.
    pub fn script(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.script[key] = value.into();
        self
    }

    /// What it lists, by the member of the result.
    pub fn list(mut self, kind: &str, items: impl Into<Value>) -> Self {
        self.script["lists"][kind] = items.into();
        self
    }

    pub fn tools(self, names: &[&str]) -> Self {
        self.list("tools", json!(names))
    }

    pub fn modern(self) -> Self {
        self.script("eras", "modern")
    }

    /// Something of its configuration.
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.entry[key] = value.into();
        self
    }
}

impl Sandbox {
    /// A configuration of these servers, and of whatever else `top` says.
    pub fn gateway_config(&self, fakes: &[Fake], top: &Value) -> PathBuf {
        let servers: Vec<Value> = fakes.iter().map(|fake| self.server_entry(fake)).collect();
        let mut config = top.clone();
        config["servers"] = servers.into();
        let path = self.path("gateway.json");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    fn server_entry(&self, fake: &Fake) -> Value {
        let path = self.path(&format!("{}.script", fake.name));
        let mut script = fake.script.clone();
        script["journal"] = self.path(&format!("{}.journal", fake.name)).to_str().into();
        std::fs::write(&path, script.to_string()).unwrap();
        let mut entry = fake.entry.clone();
        entry["id"] = fake.name.as_str().into();
        if entry.get("command").is_none() && entry.get("url").is_none() {
            entry["command"] = json!([fixture_program().to_str(), "upstream", path.to_str()]);
        }
        if entry.get("command").is_some() {
            entry["env"] = json!({ "OF_TEST": self.path("").to_str() });
        }
        entry
    }

    /// `mcp-proxy serve --config FILE ARGS`
    pub fn serve_command(&self, fakes: &[Fake], top: &Value, args: &[&str]) -> Command {
        let config = self.gateway_config(fakes, top);
        let mut command = self.command(["serve", "--config"]);
        command.arg(config).args(args);
        command
    }

    pub fn serve(&self, fakes: &[Fake], top: Value) -> Running {
        Running::start(self.serve_command(fakes, &top, &[]))
    }

    #[track_caller]
    pub fn serve_http(&self, fakes: &[Fake], top: Value) -> Listening {
        Listening::start(self.serve_command(fakes, &top, &["--listen", "0"]))
    }

    /// What a server wrote down: process ids, and what happened to it.
    pub fn journal(&self, name: &str) -> Vec<(u32, String)> {
        let text = std::fs::read_to_string(self.path(&format!("{name}.journal"))).unwrap_or_default();
        let line = |line: &str| {
            let (pid, what) = line.split_once(' ')?;
            Some((pid.parse().ok()?, what.to_owned()))
        };
        // What is being written just now has no end yet.
        let whole = text.rsplit_once('\n').map(|(whole, _)| whole).unwrap_or_default();
        whole.lines().filter_map(line).collect()
    }

    /// The messages with this method that reached a server.
    pub fn seen(&self, name: &str, method: &str) -> Vec<Value> {
        let messages = self.journal(name).into_iter().filter_map(|(_, line)| serde_json::from_str(&line).ok());
        messages.filter(|message: &Value| message["method"] == method).collect()
    }

    #[track_caller]
    pub fn until_seen(&self, name: &str, method: &str, count: usize) -> Vec<Value> {
        until(&format!("{name} gets {count} {method}"), || self.seen(name, method).len() >= count);
        self.seen(name, method)
    }

    /// The processes that a server was, in the order of their starts.
    pub fn starts(&self, name: &str) -> Vec<u32> {
        self.journal(name).into_iter().filter(|(_, what)| what == "start").map(|(pid, _)| pid).collect()
    }

    /// What there still is of servers' processes.
    pub fn left_over(&self) -> Vec<u32> {
        marked_processes(&format!("OF_TEST={}", self.path("").display()))
    }

    /// Once the proxy has ended, so has everything that it started.
    #[track_caller]
    pub fn nothing_is_left(&self) {
        let left = self.left_over();
        assert!(left.is_empty(), "still there: {left:?}");
    }

    /// A pipe with a name, at which a server waits for [`Sandbox::open_gate`].
    pub fn gate(&self) -> String {
        let path = self.path("gate");
        let (dir, mode) = (rustix::fs::CWD, rustix::fs::Mode::from_raw_mode(0o600));
        rustix::fs::mknodat(dir, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub fn open_gate(&self) {
        std::fs::write(self.path("gate"), "").unwrap();
    }
}

/// What a client says of itself first.
pub fn initialize(id: impl Into<Value>, revision: &str, capabilities: Value) -> Value {
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": revision, "capabilities": capabilities, "clientInfo": info });
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "initialize", "params": params })
}

/// The text of a tool's result.
#[track_caller]
pub fn text_of(answer: &Value) -> String {
    let text = answer["result"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {answer}")).to_owned()
}

#[track_caller]
pub fn code_of(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}

/// The names of what a list lists.
#[track_caller]
pub fn names_in(answer: &Value, kind: &str, key: &str) -> Vec<String> {
    let items = answer["result"][kind].as_array().unwrap_or_else(|| panic!("no {kind}: {answer}"));
    items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
}

/// Arguments that have a server take steps.
pub fn steps(steps: Value) -> Value {
    json!({ "steps": steps })
}

/// A request of the newest revision, which says everything in each.
pub fn modern(id: impl Into<Value>, method: &str, params: Value, capabilities: Value) -> Value {
    let mut params = params;
    for (key, value) in [
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28")),
        ("io.modelcontextprotocol/clientInfo", json!({ "name": "test", "version": "1" })),
        ("io.modelcontextprotocol/clientCapabilities", capabilities),
    ] {
        params["_meta"][key] = value;
    }
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}
