//! A session in the formats that people and other tools read. One pass over the session, one file a
//! format: an [`Exporter`] is told what is in the session and writes what it makes of it.
//!
//! An exporter never sees a secret: what it is told has been redacted before, unless the caller asks for
//! the evidence with a [`Redactor`] that is off.

mod chosen;
mod curl;
mod har;
mod html;
mod json;
mod markdown;
mod ndjson;
mod shell;

use std::io::{self, Write};

use crate::StoreError;
use crate::exchange::{AnswerHead, Headers, RequestHead, SessionEntry};
use crate::recorded::Recorded;
use crate::redact::Redactor;
use crate::segment::Verdict;
use crate::session::{Session, Summary};
use crate::story::{Story, Told};

pub use chosen::{Chosen, Picked};

/// The formats there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    Ndjson,
    Har,
    Markdown,
    Html,
    Curl,
}

impl Format {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Har => "har",
            Self::Markdown => "md",
            Self::Html => "html",
            Self::Curl => "curl",
        }
    }

    /// Whether a request and its answer are one thing in it, so that whoever wants one gets both.
    pub fn shows_calls(self) -> bool {
        !matches!(self, Self::Json | Self::Ndjson)
    }

    fn exporter(self, chosen: &Chosen) -> Box<dyn Exporter> {
        match self {
            Self::Json => Box::<json::Json>::default(),
            Self::Ndjson => Box::<ndjson::Ndjson>::default(),
            Self::Har => Box::<har::Har>::default(),
            Self::Markdown => Box::new(markdown::Markdown::new(chosen.picked.is_some())),
            Self::Html => Box::<html::Html>::default(),
            Self::Curl => Box::<curl::Curl>::default(),
        }
    }
}

/// Writes a session in one format, as it is told of it. What it writes is whole once `end` was called,
/// however little came before.
trait Exporter {
    fn begin(&mut self, out: &mut dyn Write, session: &Summary) -> io::Result<()>;

    /// What HTTP said, in its place between the messages.
    fn exchange(&mut self, _out: &mut dyn Write, _entry: &SessionEntry) -> io::Result<()> {
        Ok(())
    }

    fn message(&mut self, out: &mut dyn Write, message: &Told) -> io::Result<()>;

    /// A message that was not chosen. It may still be needed to understand those that were.
    fn pass_over(&mut self, _message: &Told) {}

    fn end(&mut self, out: &mut dyn Write, ending: &Ending) -> io::Result<()>;

    /// What does not stand in the export though it was chosen, in words.
    fn left_out(&self) -> Option<String> {
        None
    }
}

/// What is known once everything has been told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ending {
    /// Messages that were chosen, and all there are.
    chosen: u64,
    all: u64,
    masked: u64,
    is_redacted: bool,
    /// It was stopped before the end of the session.
    is_partial: bool,
}

/// What became of an export.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub messages: u64,
    pub masked: u64,
    /// It was stopped; what stands there is whole in itself, and not all that was asked for.
    pub is_partial: bool,
    pub left_out: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot write the export")]
    Io(#[from] io::Error),
}

/// Writes `session` to `out`. `go_on` is told how many messages were read before each entry; once it
/// says no, what was written is brought to a proper end.
pub fn export(
    session: &Session,
    format: Format,
    chosen: &Chosen,
    redactor: &mut Redactor,
    out: &mut dyn Write,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Outcome, ExportError> {
    let mut exporter = format.exporter(chosen);
    let mut ending = Ending { is_redacted: !redactor.is_off(), ..Ending::default() };
    let summary = redacted_summary(session.summary(), redactor);
    exporter.begin(out, &summary)?;
    let mut story = Story::of(&summary.header);
    let read = session.for_each_entry(|entry| -> Result<(), Stopped> {
        if !go_on(ending.all) {
            return Err(Stopped::Asked);
        }
        // About a message that could not be read.
        if matches!(entry, SessionEntry::Amendment(_)) {
            return Ok(());
        }
        if !matches!(entry, SessionEntry::Message(_)) {
            let entry = redacted(entry, redactor);
            if chosen.takes_exchange(&entry) {
                exporter.exchange(out, &entry)?;
            }
            drop(story.hear(entry));
            return Ok(());
        }
        let place = ending.all;
        ending.all += 1;
        let Some(told) = story.hear(redacted(entry, redactor)) else { return Ok(()) };
        if chosen.takes(place, &told) {
            ending.chosen += 1;
            exporter.message(out, &told)?;
        } else {
            exporter.pass_over(&told);
        }
        Ok(())
    });
    match read {
        Ok(()) => {}
        Err(Stopped::Asked) => ending.is_partial = true,
        Err(Stopped::Failed(error)) => return Err(error),
    }
    ending.masked = redactor.masked();
    exporter.end(out, &ending)?;
    out.flush()?;
    Ok(Outcome {
        messages: ending.chosen,
        masked: ending.masked,
        is_partial: ending.is_partial,
        left_out: exporter.left_out(),
    })
}

enum Stopped {
    Asked,
    Failed(ExportError),
}

impl<E: Into<ExportError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

fn redacted_summary(summary: &Summary, redactor: &mut Redactor) -> Summary {
    let mut summary = summary.clone();
    let header = &mut summary.header;
    for text in [&mut header.server_command, &mut header.server_url, &mut header.name].into_iter().flatten() {
        *text = redactor.text(text).into_owned();
    }
    for (name, value) in summary.notes.iter_mut().chain(&mut header.notes) {
        *value = redactor.named(name, value).into_owned();
    }
    if let Some(end) = &mut summary.end {
        end.last_words = redactor.text(&end.last_words).into_owned();
    }
    summary
}

fn redacted(entry: SessionEntry, redactor: &mut Redactor) -> SessionEntry {
    if redactor.is_off() {
        return entry;
    }
    match entry {
        SessionEntry::Message(message) => SessionEntry::Message(Recorded {
            raw: redactor.message(&message.raw),
            decided_by: redacted_text(message.decided_by, redactor),
            why: redacted_text(message.why, redactor),
            verdict: message.verdict.map(|verdict| redacted_verdict(*verdict, redactor).into()),
            mark: redacted_text(message.mark, redactor),
            note: redacted_text(message.note, redactor),
            original_raw: message.original_raw.map(|raw| redactor.message(&raw)),
            event: redacted_text(message.event, redactor),
            event_id: redacted_text(message.event_id, redactor),
            ..message
        }),
        SessionEntry::Request(mark, head) => {
            let target = redactor.text(&head.target).into_owned();
            let headers = redacted_headers(head.headers, redactor);
            SessionEntry::Request(mark, RequestHead { target, headers, ..head })
        }
        SessionEntry::Answer(mark, head) => {
            let headers = redacted_headers(head.headers, redactor);
            SessionEntry::Answer(mark, AnswerHead { headers, ..head })
        }
        SessionEntry::End(mark, how) => SessionEntry::End(mark, redacted_text(how, redactor)),
        SessionEntry::Amendment(_) => entry,
    }
}

fn redacted_text(text: Option<String>, redactor: &mut Redactor) -> Option<String> {
    text.map(|text| redactor.text(&text).into_owned())
}

fn redacted_verdict(verdict: Verdict, redactor: &mut Redactor) -> Verdict {
    Verdict { rule: verdict.rule.map(|rule| redactor.text(&rule).into()), ..verdict }
}

fn redacted_headers(headers: Headers, redactor: &mut Redactor) -> Headers {
    let masked = headers.0.into_iter().map(|(name, value)| {
        let value = redactor.named(&name, &value).into_owned();
        (name, value)
    });
    Headers(masked.collect())
}

/// `1 call`, `2 calls`
fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests;
