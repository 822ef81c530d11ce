//! The demo as a transcript.

use mcp_store::{Direction, Session, StateDir, Story};
use serde_json::json;

use super::broken;
use super::client::ScriptedClient;
use crate::failure::Failure;
use crate::inspect::Lines;
use crate::report::{ColorChoice, Page, Style};

pub(super) fn demo(color: ColorChoice) -> Result<(), Failure> {
    let home = tempfile::tempdir()?;
    let state_dir = home.path().join("state");
    let mut client = ScriptedClient::start(&state_dir, &[])?;
    let steps = play(&mut client)?;
    client.end()?;
    let state = StateDir::find(Some(&state_dir)).ok_or_else(|| broken("its recording is lost"))?;
    let segment = state.segments()?.into_iter().next().ok_or_else(|| broken("nothing was recorded"))?;
    show(&Session::open_segment(&segment)?, &steps, color)
}

/// A step of the story, and how many messages the client had sent before it.
struct Step {
    title: &'static str,
    begins_at: usize,
}

fn play(client: &mut ScriptedClient) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    steps.push(Step { title: "They introduce themselves.", begins_at: client.sent });
    let capabilities = json!({ "elicitation": {} });
    let info = json!({ "name": "scripted-client", "version": "1.0" });
    client.ask(
        "initialize",
        json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info }),
    )?;
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;

    steps.push(Step { title: "The client asks what the server can do, and uses it.", begins_at: client.sent });
    client.ask("tools/list", json!({}))?;
    client.call("add", json!({ "a": 2, "b": 40 }))?;

    steps.push(Step { title: "A slow call reports its progress.", begins_at: client.sent });
    let meta = json!({ "progressToken": "count" });
    client.ask("tools/call", json!({ "name": "count", "arguments": { "to": 3 }, "_meta": meta }))?;

    steps.push(Step { title: "The server has a question of its own while a call is open.", begins_at: client.sent });
    client.call("book_trip", json!({ "to": "Lisbon" }))?;

    steps.push(Step { title: "A call fails. The answer says so, and so does the transcript.", begins_at: client.sent });
    client.call("divide", json!({ "a": 1, "b": 0 }))?;

    steps.push(Step {
        title: "The server prints where only messages may stand. The client never sees it.",
        begins_at: client.sent,
    });
    client.call("chatter", json!({}))?;

    steps.push(Step {
        title: "In the newest revision there is no handshake, and a question is a round of its own.",
        begins_at: client.sent,
    });
    let version = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    client.ask("server/discover", json!({ "_meta": version }))?;
    let asked =
        client.ask("tools/call", json!({ "name": "book_trip", "arguments": { "to": "Oslo" }, "_meta": version }))?;
    let answers = json!({ "when": { "action": "accept", "content": { "when": "tomorrow" } } });
    let state = asked["result"]["requestState"].clone();
    client.ask("tools/call", json!({ "name": "book_trip", "arguments": { "to": "Oslo" }, "inputResponses": answers, "requestState": state, "_meta": version }))?;

    steps.push(Step {
        title: "The server dies in the middle of a call. The client gets an answer all the same.",
        begins_at: client.sent,
    });
    client.call("crash", json!({}))?;
    Ok(steps)
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
