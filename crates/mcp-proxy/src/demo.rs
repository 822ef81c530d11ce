//! The whole story, offline: a scripted client talks to a bundled server through the real proxy, in
//! processes of their own, and the recording is shown with a word to each step.

pub mod server;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use clap::Args;
use mcp_store::{Direction, Session, StateDir, Story};
use serde_json::{Value, json};

use crate::failure::{Failure, exit};
use crate::inspect::Lines;
use crate::report::{ColorChoice, Page, Style};

/// The word that makes this program the bundled server instead.
pub const SERVER_WORD: &str = "__demo-server";

#[derive(Args)]
pub struct DemoArgs {
    /// Print an annotated transcript
    #[arg(long)]
    plain: bool,
}

pub fn demo(_args: &DemoArgs, color: ColorChoice) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let state_dir = home.path().join("state");
    let mut client = ScriptedClient::start(&state_dir)?;
    client.play()?;
    let steps = client.end()?;
    let state = StateDir::find(Some(&state_dir)).ok_or_else(|| broken("its recording is lost"))?;
    let segment = state.segments()?.into_iter().next().ok_or_else(|| broken("nothing was recorded"))?;
    show(&Session::open_segment(&segment)?, &steps, color)
}

fn broken(what: &str) -> Failure {
    Failure::new(exit::CANNOT_RUN, format!("the demo did not go as it should: {what}")).hint("mcp-proxy doctor")
}

fn show(session: &Session, steps: &[Step], color: ColorChoice) -> Result<(), Failure> {
    let mut page = Page::new(color);
    page.line("A client, a server, and mcp-proxy between them. Neither knows it is there.")?;
    let (lines, mut story) = (Lines::default(), Story::default());
    let (mut sent, mut shown, mut passed) = (0, 0, 0);
    session.for_each(|message| -> Result<(), Failure> {
        if message.direction == Direction::ClientToServer {
            if let Some(step) = steps.get(shown).filter(|step| step.begins_at == sent) {
                shown += 1;
                page.line("")?;
                page.line(&page.styled(Style::Heading, &format!("{shown}. {}", step.title)))?;
            }
            sent += 1;
        }
        passed += usize::from(!message.noise && !message.from_proxy);
        page.line(&format!("   {}", lines.line(&page, &story.tell(message))))?;
        Ok(())
    })?;
    page.line("")?;
    page.line(&format!(
        "{passed} messages passed, byte for byte. All of the above is from the recording, which is gone with the demo."
    ))?;
    page.line("Put your own server behind it:  mcp-proxy run -- YOUR-SERVER ITS ARGUMENTS")?;
    page.line("Then look at what it said:      mcp-proxy sessions list")?;
    Ok(page.end()?)
}

/// A step of the story, and how many messages the client had sent before it.
struct Step {
    title: &'static str,
    begins_at: usize,
}

struct ScriptedClient {
    proxy: Child,
    to_proxy: ChildStdin,
    from_proxy: BufReader<ChildStdout>,
    sent: usize,
    next_id: u64,
    steps: Vec<Step>,
}

impl ScriptedClient {
    fn start(state_dir: &std::path::Path) -> Result<Self, Failure> {
        let program = std::env::current_exe()?;
        let mut proxy = Command::new(&program)
            .args(["run", "--quiet", "--name", "demo", "--state-dir"])
            .arg(state_dir)
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
        Ok(Self { proxy, to_proxy, from_proxy: BufReader::new(from_proxy), sent: 0, next_id: 1, steps: Vec::new() })
    }

    fn play(&mut self) -> Result<(), Failure> {
        self.step("They introduce themselves.");
        let capabilities = json!({ "elicitation": {} });
        let client = json!({ "name": "scripted-client", "version": "1.0" });
        self.ask(
            "initialize",
            json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client }),
        )?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;

        self.step("The client asks what the server can do, and uses it.");
        self.ask("tools/list", json!({}))?;
        self.call("add", json!({ "a": 2, "b": 40 }))?;

        self.step("A slow call reports its progress.");
        let meta = json!({ "progressToken": "count" });
        self.ask("tools/call", json!({ "name": "count", "arguments": { "to": 3 }, "_meta": meta }))?;

        self.step("The server has a question of its own while a call is open.");
        self.call("book_trip", json!({ "to": "Lisbon" }))?;

        self.step("A call fails. The answer says so, and so does the transcript.");
        self.call("divide", json!({ "a": 1, "b": 0 }))?;

        self.step("The server prints where only messages may stand. The client never sees it.");
        self.call("chatter", json!({}))?;

        self.step("In the newest revision there is no handshake, and a question is a round of its own.");
        let version = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
        self.ask("server/discover", json!({ "_meta": version }))?;
        let asked =
            self.ask("tools/call", json!({ "name": "book_trip", "arguments": { "to": "Oslo" }, "_meta": version }))?;
        let answers = json!({ "when": { "action": "accept", "content": { "when": "tomorrow" } } });
        let state = asked["result"]["requestState"].clone();
        self.ask("tools/call", json!({ "name": "book_trip", "arguments": { "to": "Oslo" }, "inputResponses": answers, "requestState": state, "_meta": version }))?;

        self.step("The server dies in the middle of a call. The client gets an answer all the same.");
        self.call("crash", json!({}))?;
        Ok(())
    }

    fn step(&mut self, title: &'static str) {
        self.steps.push(Step { title, begins_at: self.sent });
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Sends a request and reads up to its answer; what the server asks meanwhile is answered.
    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let mut line = String::new();
            if self.from_proxy.read_line(&mut line)? == 0 {
                return Err(broken("the proxy ended early"));
            }
            let message: Value = serde_json::from_str(&line).map_err(|error| broken(&error.to_string()))?;
            if message["method"] == "elicitation/create" {
                let answer = json!({ "action": "accept", "content": { "when": "tomorrow" } });
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer }))?;
            } else if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        self.sent += 1;
        writeln!(self.to_proxy, "{message}")?;
        Ok(())
    }

    fn end(mut self) -> Result<Vec<Step>, Failure> {
        drop(self.to_proxy);
        self.proxy.wait()?;
        Ok(self.steps)
    }
}
