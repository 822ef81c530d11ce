//! What the tests of holding share: a client whose calls are held, and the commands of somebody else.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::kit::{Running, Sandbox, until};

/// A proxy with a client before it and a server that remembers what it saw.
pub struct Scene {
    pub sandbox: Sandbox,
    pub proxy: Running,
}

impl Sandbox {
    /// Waits until the proxy can be found: it says where it is on a thread of its own.
    #[track_caller]
    pub fn until_found(&self) {
        until("the proxy is found", || !self.stdout(["ps", "--json"]).is_empty());
    }

    /// Has the proxy hold what matches, once it is found.
    #[track_caller]
    pub fn breaks(&self, filter: &str) {
        self.until_found();
        self.stdout(["break", "add", filter]);
    }

    /// What is held, once it is this much.
    #[track_caller]
    pub fn held(&self, count: usize) -> Vec<Value> {
        let mut held = Vec::new();
        until(&format!("{count} are held"), || {
            let lines = self.stdout(["held", "--json"]);
            held = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            held.len() == count
        });
        held
    }

    /// The number of the only held message, as people type it.
    #[track_caller]
    pub fn held_number(&self) -> String {
        format!("#{}", self.held(1)[0]["sequence"])
    }
}

impl Scene {
    pub fn begin(flags: &[&str]) -> Self {
        Self::begin_in(Sandbox::new(), flags)
    }

    pub fn begin_in(sandbox: Sandbox, flags: &[&str]) -> Self {
        let mut proxy = sandbox.run(&[&["--quiet"], flags].concat(), &["puppet"]);
        proxy.ask(1, "hello");
        sandbox.until_found();
        Self { sandbox, proxy }
    }

    /// `mcp-proxy ARGS`, which must do what it says.
    #[track_caller]
    pub fn does(&self, args: &[&str]) -> String {
        self.sandbox.stdout(args)
    }

    /// `mcp-proxy ARGS`, which must say no with this code.
    #[track_caller]
    pub fn refuses(&self, code: i32, args: &[&str]) -> String {
        let output = self.sandbox.output(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
        errors
    }

    /// The same with something on its standard input.
    #[track_caller]
    pub fn does_with_input(&self, args: &[&str], input: &str) -> String {
        let mut command = self.sandbox.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The client calls a tool, which the server answers with what it was called with.
    pub fn call(&mut self, id: u64, tool: &str, text: &str) {
        self.proxy.send(format!("{}\n", call(id, tool, text)).as_bytes());
    }

    #[track_caller]
    pub fn held(&self, count: usize) -> Vec<Value> {
        self.sandbox.held(count)
    }

    #[track_caller]
    pub fn held_number(&self) -> String {
        self.sandbox.held_number()
    }

    /// The lines that the server has seen so far, save this question.
    #[track_caller]
    pub fn seen(&mut self) -> Vec<Value> {
        self.proxy.request(9_999, "seen");
        let answer = self.proxy.json();
        assert_eq!(answer["id"], 9_999, "{answer}");
        let lines = answer["result"]["lines"].as_array().unwrap();
        lines.iter().map(|line| serde_json::from_str(line.as_str().unwrap()).unwrap()).collect()
    }

    /// Ends the session and reads it.
    #[track_caller]
    pub fn recorded(self) -> Vec<Value> {
        let (status, errors) = self.proxy.end();
        assert!(status.success(), "{errors}");
        let id = self.sandbox.segments()[0].file_stem().unwrap().to_string_lossy().into_owned();
        let lines = self.sandbox.stdout(["inspect", "--json", &id]);
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub fn call(id: u64, tool: &str, text: &str) -> Value {
    let params = json!({ "name": tool, "arguments": { "text": text } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}
