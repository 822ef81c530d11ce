//! `replay --live`: a message of a running instance's client is sent to its server once more, and the
//! answer is printed.

use std::future::pending;
use std::process::ExitCode;
use std::time::Duration;

use mcp_control::api::{Event, EventsQuery, Message, MessageKind, Replay};
use mcp_store::StateDir;
use mcp_wire::visible::visible;
use tokio::time::{Instant, sleep_until};

use super::change::parsed;
use super::decide::say_done;
use super::which::Acting;
use super::{Face, show};
use crate::edit::Assignment;
use crate::failure::{Failure, exit};
use crate::inspect::{json, lines::Lines, payload};
use crate::report::{ColorChoice, Page};

/// What is asked for.
pub(crate) struct Live<'a> {
    /// `[INSTANCE] MESSAGE`
    pub words: Vec<String>,
    pub acting: Acting,
    pub set: &'a [Assignment],
    pub timeout: Duration,
    pub json: bool,
}

pub(crate) fn replay(live: &Live<'_>, state: &StateDir, color: ColorChoice) -> Result<ExitCode, Failure> {
    let (face, wanted) = live.acting.attach_to_message(&live.words, state)?;
    let original = face.ask(face.client.message(wanted))?;
    let replay = changed(&original, live.set)?;
    if original.kind == MessageKind::Notification {
        let sent = face.ask(face.client.replay(wanted, &replay))?;
        say_done(&match live.json {
            true => serde_json::to_string(&sent).expect("plain data always serialises"),
            false => format!("sent once more, as #{:03}; a notification has no answer", sent.sequence),
        })?;
        return Ok(ExitCode::SUCCESS);
    }
    let answer = face.wait(async {
        answer_to(&face, wanted, &replay, live.timeout).await?.ok_or_else(|| {
            let what = format!("no answer came within {} s", live.timeout.as_secs_f64());
            Failure::new(exit::NEGATIVE, what)
                .hint(format!("--timeout gives it longer; `mcp-proxy tail{}` shows what passes", face.which()))
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

/// Sends the message, having opened an ear for the answer before. No answer if none comes in time.
async fn answer_to(face: &Face, wanted: u64, replay: &Replay, timeout: Duration) -> Result<Option<Message>, Failure> {
    let mut events = face.client.events(&EventsQuery::default()).await?;
    let sent = face.client.replay(wanted, replay).await?.sequence;
    let mut patience = Patience::new(timeout, Instant::now());
    loop {
        let event = tokio::select! {
            event = events.next() => event?,
            () = patience.over() => return Ok(None),
        };
        match event {
            Some(Event::Message(message)) if message.answers == Some(sent) && message.raw_omitted => {
                return Ok(Some(face.client.message(message.sequence).await?));
            }
            Some(Event::Message(message)) if message.answers == Some(sent) => return Ok(Some(*message)),
            Some(event) => patience.hear(&event, sent, Instant::now()),
            None => return Err(Failure::new(exit::CANNOT_RUN, "the instance ended before an answer came")),
        }
    }
}

/// The time that an answer may take. It stands still while the message is held.
struct Patience {
    left: Duration,
    /// Since when it runs down, unless the message is held.
    since: Option<Instant>,
}

impl Patience {
    fn new(left: Duration, now: Instant) -> Self {
        Self { left, since: Some(now) }
    }

    /// Takes note of whether the message `sent` is held.
    fn hear(&mut self, event: &Event, sent: u64, now: Instant) {
        match event {
            Event::Held(held) if held.sequence == sent => self.stop(now),
            Event::Outcome(outcome) if outcome.sequence == sent => self.go_on(now),
            Event::Snapshot(snapshot) if snapshot.held.iter().any(|held| held.sequence == sent) => self.stop(now),
            Event::Snapshot(_) => self.go_on(now),
            _ => {}
        }
    }

    fn stop(&mut self, now: Instant) {
        if let Some(since) = self.since.take() {
            self.left = self.left.saturating_sub(now.saturating_duration_since(since));
        }
    }

    fn go_on(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// When it has run down; never, if it stands still.
    fn until(&self) -> Option<Instant> {
        self.since.map(|since| since + self.left)
    }

    async fn over(&self) {
        match self.until() {
            Some(until) => sleep_until(until).await,
            None => pending().await,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_control::api::{Outcome, OutcomeKind};

    #[test]
    fn patience_stands_still_while_the_message_is_held() {
        let begun = Instant::now();
        let after = |seconds| begun + Duration::from_secs(seconds);
        let went_on = |sequence| {
            Event::Outcome(Outcome {
                sequence,
                what: OutcomeKind::Forwarded,
                by: String::new(),
                held_ns: 0,
                edited: false,
            })
        };
        let mut patience = Patience::new(Duration::from_secs(10), begun);
        assert_eq!(patience.until(), Some(after(10)));
        patience.stop(after(4));
        patience.stop(after(5));
        assert_eq!(patience.until(), None);
        patience.hear(&went_on(6), 7, after(100));
        assert_eq!(patience.until(), None, "another message went on");
        patience.hear(&went_on(7), 7, after(100));
        patience.hear(&went_on(7), 7, after(101));
        assert_eq!(patience.until(), Some(after(106)));
    }
}
