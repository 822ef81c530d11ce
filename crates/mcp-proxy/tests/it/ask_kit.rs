//! What the tests of rules that ask share: a governed proxy on every way that clients come, servers that
//! write down what reached them, and somebody who watches.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use mcp_control::api::{Instance, Policy};
use mcp_control::{Address, Client as Control, Instances};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bridge_kit::{LEGACY, Session, SseClient, initialize, modern};
use crate::hold_kit::call;
use crate::http_kit::{Client, Listening, MODERN, post};
use crate::kit::{Running, Sandbox, signal, until, wait};

/// Rules in a file of the sandbox, by the members of each.
pub fn write_rules(sandbox: &Sandbox, rules: &[Value]) -> PathBuf {
    let path = sandbox.path("rules.json");
    std::fs::write(&path, json!({ "policy": { "rules": rules } }).to_string()).unwrap();
    path
}

/// A rule that asks about what writes.
pub fn asks(more: Value) -> Value {
    let mut rule = json!({ "name": "writes", "match": "op:write", "verdict": "ask" });
    rule.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    rule
}

/// One that waits for an answer, whoever is there; longer than any test.
pub fn patient() -> Value {
    asks(json!({ "message": "Writing needs a yes.", "timeout": "10m" }))
}

/// Whoever calls tools.
pub trait Caller {
    fn call(&mut self, id: u64, tool: &str, text: &str);
    /// The answer to a call, when it comes.
    fn answer(&mut self, id: u64) -> Value;
}

struct Pipe {
    proxy: Running,
    is_modern: bool,
    answers: HashMap<u64, Value>,
}

impl Caller for Pipe {
    fn call(&mut self, id: u64, tool: &str, text: &str) {
        let message = if self.is_modern { modern_call(id, tool, text) } else { call(id, tool, text).to_string() };
        self.proxy.send(format!("{message}\n").as_bytes());
    }

    fn answer(&mut self, id: u64) -> Value {
        while !self.answers.contains_key(&id) {
            let answer = self.proxy.json();
            self.answers.insert(answer["id"].as_u64().unwrap_or_default(), answer);
        }
        self.answers.remove(&id).unwrap()
    }
}

struct Http<'a> {
    proxy: &'a Listening,
    session: Option<Session<'a>>,
    open: HashMap<u64, Client>,
}

impl Caller for Http<'_> {
    fn call(&mut self, id: u64, tool: &str, text: &str) {
        let client = match &self.session {
            Some(session) => session.send(call(id, tool, text).to_string()),
            None => {
                let headers = [MODERN, "Mcp-Method: tools/call", &format!("Mcp-Name: {tool}")];
                let mut client = self.proxy.client();
                client.send(&post("/mcp", &headers, modern_call(id, tool, text)));
                client
            }
        };
        self.open.insert(id, client);
    }

    fn answer(&mut self, id: u64) -> Value {
        self.open.remove(&id).unwrap().response().json()
    }
}

impl Caller for SseClient<'_> {
    fn call(&mut self, id: u64, tool: &str, text: &str) {
        self.tell(call(id, tool, text).to_string());
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let answer = self.json();
            if answer["id"] == id {
                return answer;
            }
        }
    }
}

fn modern_call(id: u64, tool: &str, text: &str) -> String {
    modern(&id.to_string(), "tools/call", json!({ "name": tool, "arguments": { "text": text } }))
}

/// Plays a scene with clients on pipes, over Streamable HTTP and SSE, of both eras.
pub fn on_every_way(rules: &[Value], more: &[&str], scene: impl Fn(&Sandbox, &mut dyn Caller)) {
    for is_modern in [false, true] {
        on_a_pipe(is_modern, rules, more, &scene);
    }
    over_http(rules, more, |sandbox, proxy| {
        scene(sandbox, &mut Http { proxy, session: Some(Session::open(proxy)), open: HashMap::new() });
    });
    over_http(rules, more, |sandbox, proxy| {
        scene(sandbox, &mut Http { proxy, session: None, open: HashMap::new() });
    });
    over_http(rules, more, |sandbox, proxy| {
        let mut client = SseClient::open(proxy);
        client.tell(initialize(LEGACY));
        assert_eq!(client.json()["id"], "init");
        scene(sandbox, &mut client);
    });
}

/// The same with one client on a pipe.
pub fn on_a_pipe(is_modern: bool, rules: &[Value], more: &[&str], scene: impl Fn(&Sandbox, &mut dyn Caller)) {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, rules);
    let mut pipe = pipe(&sandbox, is_modern, more);
    scene(&sandbox, &mut pipe);
    pipe.proxy.kill();
}

fn pipe(sandbox: &Sandbox, is_modern: bool, more: &[&str]) -> Pipe {
    let flags = [&["--quiet", "--rules", "rules.json"], more].concat();
    let mut proxy = sandbox.run(&flags, &["puppet", "saw"]);
    if !is_modern {
        proxy.send(format!("{}\n", initialize(LEGACY)).as_bytes());
        assert_eq!(proxy.json()["id"], "init");
    }
    sandbox.until_found();
    Pipe { proxy, is_modern, answers: HashMap::new() }
}

/// A client on a pipe of a proxy that can be ended and begun again.
pub fn piped<R>(sandbox: &Sandbox, more: &[&str], scene: impl FnOnce(&mut dyn Caller) -> R) -> R {
    let mut pipe = pipe(sandbox, false, more);
    let done = scene(&mut pipe);
    let (status, errors) = pipe.proxy.end();
    assert!(status.success(), "{errors}");
    done
}

fn over_http(rules: &[Value], more: &[&str], scene: impl FnOnce(&Sandbox, &Listening)) {
    let sandbox = Sandbox::new();
    write_rules(&sandbox, rules);
    let flags = [&["--quiet", "--rules", "rules.json"], more].concat();
    let proxy = sandbox.listen_to_fixture(&["puppet", "saw"], &flags);
    sandbox.until_found();
    scene(&sandbox, &proxy);
}

impl Sandbox {
    /// Everything that reached a server of this sandbox.
    pub fn saw(&self) -> String {
        let dir = std::fs::read_dir(self.path(".")).unwrap().map(|entry| entry.unwrap().path());
        let saw = dir.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("saw."));
        saw.map(|path| std::fs::read_to_string(path).unwrap()).collect()
    }

    /// The only instance, to be asked.
    pub fn control(&self) -> Control {
        let running = Instances::below(self.state().root()).find(None).unwrap();
        Control::new(Address::Socket(running.socket))
    }

    pub fn instance(&self) -> Instance {
        waited(self.control().instance())
    }

    pub fn policy(&self) -> Policy {
        waited(self.control().policy())
    }

    /// `mcp-proxy ARGS`, which must say no with this code.
    #[track_caller]
    pub fn refused(&self, code: i32, args: &[&str]) -> String {
        let output = self.output(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        errors
    }

    /// Somebody who watches with `tail`, once that is known to the proxy.
    #[track_caller]
    pub fn watcher(&self) -> Watcher {
        let before = self.instance().faces;
        let mut command = self.command(["tail"]);
        let shown = self.path("tail");
        command.stdin(Stdio::null()).stdout(std::fs::File::create(shown).unwrap()).stderr(Stdio::null());
        let watcher = Watcher { process: Some(command.spawn().unwrap()) };
        until("somebody watches", || self.instance().faces > before);
        watcher
    }
}

pub fn waited<R>(answer: impl Future<Output = Result<R, mcp_control::ClientError>>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(answer).unwrap()
}

pub struct Watcher {
    process: Option<Child>,
}

impl Watcher {
    /// With no chance to say goodbye.
    pub fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(process) = self.process.take() {
            signal(process.id(), Signal::KILL);
            wait(process);
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end();
    }
}

/// That a call was refused, and what its caller was told.
#[track_caller]
pub fn denial(answer: &Value) -> String {
    assert_eq!(answer["error"]["code"], -32000, "{answer}");
    let said = answer["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.starts_with("Permission denied"), "{said}");
    assert_eq!(answer["error"]["data"]["rule"], "writes", "{answer}");
    said
}

#[track_caller]
pub fn is_result(answer: &Value) {
    assert_eq!(answer["result"]["method"], "tools/call", "{answer}");
}
