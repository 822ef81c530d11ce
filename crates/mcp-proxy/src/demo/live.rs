//! The demo on a terminal: the scripted client talks on and on, and whoever sits there works the
//! traffic.

use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use mcp_control::instances::Running;
use mcp_control::{Address, Instances};
use mcp_store::StateDir;
use mcp_tui::{Left, Options, Source, Stage};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::broken;
use super::client::ScriptedClient;
use crate::failure::{Failure, exit};
use crate::report::{ColorChoice, say};
use crate::{screen, shelf};

/// Between two messages, so that a person can follow.
const PAUSE: Duration = Duration::from_millis(900);
/// Wait for the demo's proxy to start.
const START_WITHIN: Duration = Duration::from_secs(10);
/// One rule: nothing is deleted unless somebody says so.
const RULES: &str = r#"[[policy.rules]]
name = "ask-before-deleting"
match = "op:delete"
verdict = "ask"
message = "The demo's client wants to delete a note."
timeout = "120s"
"#;

pub(super) fn demo(ascii: bool, color: ColorChoice) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let state_dir = home.path().join("state");
    let rules = home.path().join("rules.toml");
    fs::write(&rules, RULES)?;
    let client = ScriptedClient::start(&state_dir, &["--rules", &rules.to_string_lossy()])?;
    let proxy = Pid::from_raw(client.proxy_id() as i32);
    let (stage, (ended, is_ended)) = (Stage::default(), sync_channel(0));
    let talking = std::thread::Builder::new().name("client".into()).spawn({
        let stage = stage.clone();
        move || talk(client, &stage, &is_ended)
    })?;
    let left = show(&state_dir, stage, ascii, color);
    // A client that waits for a held answer learns of the end by the end of its proxy.
    drop::<SyncSender<()>>(ended);
    if let Some(proxy) = proxy {
        let _ = kill_process(proxy, Signal::TERM);
    }
    let _ = talking.join();
    left?;
    say("Put your own server behind it, in your client's config:  mcp-proxy run -- YOUR-SERVER ITS ARGUMENTS");
    say("and watch it from any terminal:                          mcp-proxy attach");
    Ok(())
}

fn show(state_dir: &Path, stage: Stage, ascii: bool, color: ColorChoice) -> Result<Left, Failure> {
    let state = StateDir::find(Some(state_dir)).ok_or_else(|| broken("its state is lost"))?;
    let running = find(&state)?;
    let options = Options { ascii, coach: Some(stage), ..screen::options(color, Vec::new()) };
    let source = Source::Instance(Address::Socket(running.socket));
    mcp_tui::run(source, shelf::library(&state), options).map_err(|error| Failure::caused_by(exit::CANNOT_RUN, &error))
}

/// The proxy, once it is there.
fn find(state: &StateDir) -> Result<Running, Failure> {
    let (instances, until) = (Instances::below(state.root()), Instant::now() + START_WITHIN);
    loop {
        match instances.find(None) {
            Ok(running) if running.socket.exists() => return Ok(running),
            _ if Instant::now() > until => return Err(broken("the proxy did not start")),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Talks until the terminal is closed, or the proxy ends.
fn talk(mut client: ScriptedClient, stage: &Stage, ended: &Receiver<()>) {
    let _ = introduce(&mut client);
    let mut round = 0;
    while pause(ended).is_ok() && turn(&mut client, round, stage).is_ok() {
        round += 1;
    }
    let _ = client.end();
}

/// Waits a moment; an error if it is over.
fn pause(ended: &Receiver<()>) -> Result<(), ()> {
    match ended.recv_timeout(PAUSE) {
        Err(RecvTimeoutError::Timeout) => Ok(()),
        _ => Err(()),
    }
}

fn introduce(client: &mut ScriptedClient) -> Result<(), Failure> {
    let info = json!({ "name": "scripted-client", "version": "1.0" });
    client.ask("initialize", json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info }))?;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
    client.ask("tools/list", json!({}))?;
    Ok(())
}

/// One call; they come round again.
fn turn(client: &mut ScriptedClient, round: u64, stage: &Stage) -> Result<Value, Failure> {
    if stage.wants_a_question() {
        return client.call("delete_note", json!({ "title": "shopping" }));
    }
    let add = |client: &mut ScriptedClient| client.call("add", json!({ "a": round, "b": 40 }));
    if stage.wants_numbers() {
        return add(client);
    }
    match round % 6 {
        0 | 3 => add(client),
        1 => client.call("write_note", json!({ "title": "shopping", "text": "bread, cheese", "token": "sk-demo-0123456789abcdef0123456789abcdef" })),
        2 => {
            let meta = json!({ "progressToken": format!("count-{round}") });
            client.ask("tools/call", json!({ "name": "count", "arguments": { "to": 3 }, "_meta": meta }))
        }
        4 => client.call("divide", json!({ "a": 1, "b": round % 4 })),
        _ => client.call("chatter", json!({})),
    }
}
