//! `replay --live`: a message of a running instance's client is sent to its server once more, and the
//! answer is printed.

use std::process::ExitCode;
use std::time::Duration;

use mcp_control::api::{Event, EventsQuery, Kind, Message, Replay};
use mcp_store::StateDir;
use mcp_wire::visible::visible;

use super::decide::say_done;
use super::modify::parsed;
use super::which::sequence;
use super::{Face, show};
use crate::edit::Assignment;
use crate::failure::{Failure, exit};
use crate::inspect::{lines::Lines, payload};
use crate::report::{ColorChoice, Page};

/// What is asked for.
pub struct Live<'a> {
    /// `[INSTANCE] MESSAGE`
    pub words: Vec<&'a str>,
    pub set: &'a [Assignment],
    pub timeout: Duration,
}

pub fn replay(live: &Live<'_>, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let (instance, word) = match live.words.as_slice() {
        [message] => (None, *message),
        [instance, message] => (Some(*instance), *message),
        _ => return Err(Failure::usage("--live needs the number of a message, after the instance if several run")),
    };
    let wanted = sequence(word)?;
    let face = Face::attach(state, instance, false)?;
    let original = face.ask(face.client.message(wanted))?;
    let replay = changed(&original, live.set)?;
    if original.kind == Kind::Notification {
        let sent = face.ask(face.client.replay(wanted, &replay))?.sequence;
        say_done(&format!("sent once more, as #{sent:03}; a notification has no answer"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = face.wait(async {
        let answer = tokio::time::timeout(live.timeout, answer_to(&face, wanted, &replay));
        answer.await.unwrap_or_else(|_| {
            let what = format!("no answer came within {} s", live.timeout.as_secs_f64());
            Err(Failure::new(exit::NEGATIVE, what)
                .hint("--timeout gives it longer; `mcp-proxy tail` shows what passes"))
        })
    })?;
    print(&answer, color)
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
fn print(answer: &Message, color: ColorChoice) -> Result<ExitCode, Failure> {
    let told = show::told(answer);
    let mut page = Page::new(color);
    page.line(&Lines::default().line(&page, &told))?;
    payload::print(&mut page, &told.recorded, &[])?;
    page.end()?;
    let is_err = told.status().is_some_and(|status| status.is_err());
    Ok(if is_err { ExitCode::from(exit::NEGATIVE) } else { ExitCode::SUCCESS })
}
