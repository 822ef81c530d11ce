//! `replay --live`: a message of a running instance's client is sent to its server once more, and the
//! answer is printed.

use std::process::ExitCode;
use std::time::Duration;

use mcp_control::api::{Event, EventsQuery, Kind, Message, Replay};
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::change::parsed;
use super::decide::say_done;
use super::which::Acting;
use super::{Face, show};
use crate::edit::Assignment;
use crate::failure::{Failure, exit};
use crate::inspect::{json, lines::Lines, payload};
use crate::report::{ColorChoice, Page};

/// What is asked for.
pub struct Live<'a> {
    /// `[INSTANCE] MESSAGE`
    pub words: Vec<String>,
    pub acting: Acting,
    pub set: &'a [Assignment],
    pub timeout: Duration,
    pub json: bool,
}

pub fn replay(live: &Live<'_>, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let (face, wanted) = live.acting.attach_to_message(&live.words, state)?;
    let original = face.ask(face.client.message(wanted))?;
    let replay = changed(&original, live.set)?;
    if original.kind == Kind::Notification {
        let sent = face.ask(face.client.replay(wanted, &replay))?;
        say_done(&match live.json {
            true => serde_json::to_string(&sent).expect("plain data always serialises"),
            false => format!("sent once more, as #{:03}; a notification has no answer", sent.sequence),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = face.wait(async {
        let answer = tokio::time::timeout(live.timeout, answer_to(&face, wanted, &replay));
        answer.await.unwrap_or_else(|_| {
            let what = format!("no answer came within {} s", live.timeout.as_secs_f64());
            Err(Failure::new(exit::NEGATIVE, what)
                .hint(format!("--timeout gives it longer; `mcp-proxy tail{}` shows what passes", face.which())))
        })
    })?;
    print(&answer, live.json, color)
}

/// The message with what `--set` changes of it.
fn changed(original: &Message, set: &[Assignment]) -> Result<Replay, Failure> {
    if set.is_empty() {
        return Ok(Replay::default());
    }
    let mut bytes = show::bytes(original).unwrap_or_default();
    for assignment in set {
        if assignment.put(&mut bytes) == 0 {
            let path = assignment.to_string();
            return Err(Failure::usage(format!("#{:03} has no place for {}", original.sequence, visible(&path))));
        }
    }
    Ok(Replay { raw: Some(parsed(&bytes)?) })
}

/// Sends the message, having opened an ear for the answer before.
async fn answer_to(face: &Face, wanted: u64, replay: &Replay) -> Result<Message, Failure> {
    let mut events = face.client.events(&EventsQuery::default()).await?;
    let sent = face.client.replay(wanted, replay).await?.sequence;
    while let Some(event) = events.next().await? {
        match event {
            Event::Message(message) if message.answers == Some(sent) && message.raw_omitted => {
                return Ok(face.client.message(message.sequence).await?);
            }
            Event::Message(message) if message.answers == Some(sent) => return Ok(*message),
            _ => {}
        }
    }
    Err(Failure::new(exit::CANNOT_RUN, "the instance ended before an answer came"))
}

/// An answer that tells of an error is a negative one.
fn print(answer: &Message, as_json: bool, color: ColorChoice) -> Result<ExitCode, Failure> {
    let told = show::told(answer);
    let mut page = Page::new(color);
    if as_json {
        page.line(&json::object(&told))?;
    } else {
        page.line(&Lines::default().line(&page, &told))?;
        payload::print(&mut page, &told.recorded, &[])?;
    }
    page.end()?;
    let is_err = told.status().is_some_and(|status| status.is_err());
    Ok(if is_err { ExitCode::from(exit::NEGATIVE) } else { ExitCode::SUCCESS })
}
