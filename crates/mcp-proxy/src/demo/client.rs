//! A client that does as it is told, in front of a proxy of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::{SERVER_WORD, broken};
use crate::failure::Failure;

/// Wait of the demo's client for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Lines of the demo's server that wait to be read.
const WAITING_MAX: usize = 64;

pub(super) struct ScriptedClient {
    proxy: Child,
    to_proxy: ChildStdin,
    /// What the proxy says, line by line.
    from_proxy: Receiver<String>,
    /// How many messages it has sent.
    pub sent: usize,
    next_id: u64,
}

impl ScriptedClient {
    /// Starts a proxy with these flags, and the bundled server behind it.
    pub(super) fn start(state_dir: &Path, flags: &[&str]) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut proxy = Command::new(&program)
            .args(["run", "--quiet", "--name", "demo", "--state-dir"])
            .arg(state_dir)
            .args(flags)
            .arg("--")
            .arg(&program)
            .arg(SERVER_WORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (Some(to_proxy), Some(from_proxy)) = (proxy.stdin.take(), proxy.stdout.take()) else {
            return Err(broken("the proxy has no pipes"));
        };
        Ok(Self { proxy, to_proxy, from_proxy: listen(from_proxy)?, sent: 0, next_id: 1 })
    }

    /// The number of the proxy's process.
    pub(super) fn proxy_id(&self) -> u32 {
        self.proxy.id()
    }

    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a request and reads up to its answer; what the server asks meanwhile is answered. Null if nobody
    /// answers: whoever sits at the terminal may have dropped it.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = match self.from_proxy.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) => return Ok(Value::Null),
                Err(RecvTimeoutError::Disconnected) => return Err(broken("the proxy ended early")),
            };
            let message: Value = serde_json::from_str(&line).map_err(|error| broken(&error.to_string()))?;
            if message["method"] == "elicitation/create" {
                let answer = json!({ "action": "accept", "content": { "when": "tomorrow" } });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }))?;
            } else if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    pub(super) fn send(&mut self, message: &Value) -> Result<(), Failure> {
        self.sent += 1;
        writeln!(self.to_proxy, "{message}")?;
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<(), Failure> {
        drop(self.to_proxy);
        self.proxy.wait()?;
        Ok(())
    }
}

/// Reads on a thread of its own, so that waiting can have an end.
fn listen(from_proxy: ChildStdout) -> Result<Receiver<String>, Failure> {
    let (lines, heard) = sync_channel(WAITING_MAX);
    std::thread::Builder::new().name("heard".into()).spawn(move || {
        for line in BufReader::new(from_proxy).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                return;
            }
        }
    })?;
    Ok(heard)
}
