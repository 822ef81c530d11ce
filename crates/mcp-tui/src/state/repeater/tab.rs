//! A request that is sent again and again, and what came of it each time.

use std::collections::VecDeque;
use std::sync::Arc;

use mcp_control::api::Message;

use crate::json::Document;
use crate::state::common::Repeat;
use crate::state::cursor::Scroll;
use crate::state::detail::bytes;
use crate::view::words;

/// Runs of one request; the oldest goes.
pub(super) const RUNS_MAX: usize = 100;
/// Between two looks for an answer, in milliseconds; the first comes sooner.
const LOOK_AFTER: u64 = 300;
pub(super) const LOOK_EVERY: u64 = 500;

/// The id of an answer: each run has one of its own.
pub(super) const ID: &str = "$.id";

pub(crate) struct Tab {
    pub id: u64,
    /// A request of the client in whose place it is sent.
    pub sequence: u64,
    pub title: String,
    /// What was taken over, and what is sent now.
    pub taken: Arc<str>,
    pub text: Arc<str>,
    /// What was taken over is what the client sent.
    pub is_as_sent: bool,
    /// How often the text was edited.
    pub edition: u64,
    pub runs: VecDeque<Run>,
    runs_so_far: u64,
    /// The run that is looked at, by its place.
    pub shown: usize,
    pub against: Against,
    /// The run that somebody marked, by its number.
    pub marked: Option<u64>,
    /// Paths that comparisons leave out, and whether somebody said so.
    pub ignored: Vec<String>,
    pub is_ignored_said: bool,
    pub original: Original,
    pub request_scroll: Scroll,
    pub answer_scroll: Scroll,
}

/// What the answer of a run is compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Against {
    #[default]
    Nothing,
    RunBefore,
    /// The run that somebody marked.
    Marked,
    /// What the client was answered.
    Original,
}

/// The answer that the client got.
pub(crate) enum Original {
    Unknown,
    /// Looked for behind this sequence, in so many pages so far.
    Looking {
        after: u64,
        pages: u32,
    },
    Known(Answer),
    NotFound,
}

pub(crate) struct Run {
    pub id: u64,
    /// From 1.
    pub number: u64,
    /// Which edition of the text was sent.
    pub edition: u64,
    pub became: Became,
}

pub(crate) enum Became {
    Sending,
    Waiting(Waiting),
    /// It was a notification: nothing answers it.
    Told {
        sequence: u64,
    },
    Refused(String),
    Answered(Answer),
}

pub(crate) struct Waiting {
    pub sequence: u64,
    /// Since when, in milliseconds.
    pub since: u64,
    /// What comes after this was not looked through yet, and when it will be.
    pub after: u64,
    pub next: u64,
    pub is_given_up: bool,
}

pub(crate) struct Answer {
    pub sequence: u64,
    /// In a word or two, and clean.
    pub status: String,
    pub is_bad: bool,
    pub duration_ns: Option<u64>,
    pub size: u64,
    pub content: Content,
}

pub(crate) enum Content {
    /// It was too long for a list.
    Coming,
    Here(Arc<str>),
    /// It had to make room for others.
    Gone,
    Missing(String),
}

impl Answer {
    pub(crate) fn of(message: &Message) -> Self {
        let content = match message.raw_omitted {
            true => Content::Coming,
            false => Content::Here(bytes(message).into()),
        };
        Self {
            sequence: message.sequence,
            status: words::status(message),
            is_bad: words::is_bad(message),
            duration_ns: message.duration_ns,
            size: message.size,
            content,
        }
    }

    pub(crate) fn text(&self) -> Option<&Arc<str>> {
        match &self.content {
            Content::Here(text) => Some(text),
            _ => None,
        }
    }
}

impl Run {
    pub(crate) fn answer(&self) -> Option<&Answer> {
        match &self.became {
            Became::Answered(answer) => Some(answer),
            _ => None,
        }
    }

    /// The message to look at: the answer, or what was sent.
    pub(crate) fn sequence(&self) -> Option<u64> {
        match &self.became {
            Became::Answered(answer) => Some(answer.sequence),
            Became::Waiting(waiting) => Some(waiting.sequence),
            Became::Told { sequence } => Some(*sequence),
            Became::Sending | Became::Refused(_) => None,
        }
    }
}

impl Tab {
    pub(crate) fn new(id: u64, repeat: Repeat, is_as_sent: bool) -> Self {
        let text: Arc<str> = repeat.raw.into();
        Self {
            id,
            sequence: repeat.sequence,
            title: repeat.title,
            taken: Arc::clone(&text),
            text,
            is_as_sent,
            edition: 0,
            runs: VecDeque::new(),
            runs_so_far: 0,
            shown: 0,
            against: Against::Nothing,
            marked: None,
            ignored: vec![ID.to_owned()],
            is_ignored_said: false,
            original: Original::Unknown,
            request_scroll: Scroll::default(),
            answer_scroll: Scroll::default(),
        }
    }

    pub(crate) fn is_edited(&self) -> bool {
        self.text != self.taken
    }

    /// A new run, which is looked at from now on.
    pub(crate) fn begin(&mut self, id: u64) {
        self.runs_so_far += 1;
        let run = Run { id, number: self.runs_so_far, edition: self.edition, became: Became::Sending };
        self.runs.push_back(run);
        if self.runs.len() > RUNS_MAX {
            self.runs.pop_front();
        }
        self.show(self.runs.len() - 1);
    }

    pub(crate) fn show(&mut self, run: usize) {
        if self.shown != run {
            self.answer_scroll = Scroll::default();
        }
        self.shown = run.min(self.runs.len().saturating_sub(1));
    }

    pub(crate) fn shown_run(&self) -> Option<&Run> {
        self.runs.get(self.shown)
    }

    /// The last run before the shown one that has an answer.
    pub(crate) fn run_before(&self) -> Option<&Run> {
        self.runs.iter().take(self.shown).rev().find(|run| run.answer().is_some())
    }

    /// The run that somebody marked, if it is another.
    pub(crate) fn marked_run(&self) -> Option<&Run> {
        let shown = self.shown_run().map(|run| run.number);
        self.runs.iter().find(|run| Some(run.number) == self.marked && shown != self.marked)
    }

    /// Marks the run that is looked at, or takes its mark away.
    pub(crate) fn mark(&mut self) {
        let shown = self.shown_run().map(|run| run.number);
        self.marked = shown.filter(|_| self.marked != shown);
    }

    /// A run was sent as this message.
    pub(crate) fn sent(&mut self, run: u64, sequence: u64, now: u64) {
        let has_id = Document::parse(Arc::clone(&self.text)).is_ok_and(|document| document.member(0, "id").is_some());
        let Some(run) = self.runs.iter_mut().find(|other| other.id == run) else { return };
        run.became = match has_id {
            true => {
                let next = now + LOOK_AFTER;
                Became::Waiting(Waiting { sequence, since: now, after: sequence, next, is_given_up: false })
            }
            false => Became::Told { sequence },
        };
    }

    /// Answers to the text as it is now, the newest first.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &Arc<str>> {
        let runs = self.runs.iter().rev().filter(|run| run.edition == self.edition);
        runs.filter_map(|run| run.answer()?.text())
    }

    pub(crate) fn all_answers(&mut self) -> impl Iterator<Item = &mut Answer> {
        let original = match &mut self.original {
            Original::Known(answer) => Some(answer),
            _ => None,
        };
        let of_runs = self.runs.iter_mut().filter_map(|run| match &mut run.became {
            Became::Answered(answer) => Some(answer),
            _ => None,
        });
        original.into_iter().chain(of_runs)
    }
}
