//! A line to type into: filters, notes, names of files. Filters are checked as they are typed.

use std::ops::Range;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use mcp_filter::Filter;
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use crate::key::Key;

/// Earlier lines kept per kind of prompt.
const HISTORY_MAX: usize = 100;
/// A longer line is no line: the longest filter is as long.
const LINE_BYTES_MAX: usize = mcp_filter::EXPRESSION_BYTES_MAX;

/// What a line is typed for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asking {
    Filter,
    /// Hold what this matches; in place of the named breakpoint, if one is.
    Breakpoint(Option<String>),
    /// Beside this message.
    Note(u64),
    Save,
    Load,
    /// The file of an export in this format.
    Export(String),
    /// Words to look for in all sessions.
    Search,
    /// Words to look for in the message.
    Find,
    /// Which decisions the audit shows.
    AuditFilter,
    /// Words that what a server offers is narrowed to.
    ToolFilter,
    /// Paths that a comparison leaves out.
    Ignore,
    /// What whoever sent this message is told.
    DropWords(u64),
    DenyWords(u64),
}

impl Asking {
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Filter => "Filter",
            Self::Breakpoint(None) => "Hold what matches",
            Self::Breakpoint(Some(_)) => "Hold what matches instead",
            Self::Note(_) => "Note",
            Self::Save => "Save session to",
            Self::Load => "Open session file",
            Self::Export(_) => "Export to",
            Self::Search => "Search all sessions for",
            Self::Find => "Find in this message",
            Self::AuditFilter => "Filter decisions",
            Self::ToolFilter => "Show only what has the words",
            Self::Ignore => "Leave out, paths with blanks between",
            Self::DropWords(_) => "Drop, and tell the sender",
            Self::DenyWords(_) => "Deny, and tell the sender",
        }
    }

    pub(crate) fn is_filter(&self) -> bool {
        matches!(self, Self::Filter | Self::AuditFilter | Self::Breakpoint(_))
    }
}

pub(crate) struct Prompt {
    pub asking: Asking,
    input: Input,
    /// How far back in the history, counted from its end.
    back: usize,
    /// What is wrong with a filter, in a line, and which bytes of it.
    pub fault: Option<(String, Range<usize>)>,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Nothing,
    /// The text is another.
    Changed,
    Given(String),
    Left,
}

impl Prompt {
    pub(crate) fn new(asking: Asking, text: &str) -> Self {
        let mut prompt = Self { asking, input: Input::new(text.to_owned()), back: 0, fault: None };
        prompt.check();
        prompt
    }

    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    /// Where the cursor is, in letters.
    pub(crate) fn cursor(&self) -> usize {
        self.input.cursor()
    }

    pub(crate) fn key(&mut self, key: Key, history: &History) -> Typed {
        match key {
            Key { code: KeyCode::Esc, .. } => return Typed::Left,
            Key { code: KeyCode::Char('c'), ctrl: true, .. } => return Typed::Left,
            Key { code: KeyCode::Enter, .. } => {
                return if self.fault.is_none() { Typed::Given(self.text().trim().to_owned()) } else { Typed::Nothing };
            }
            Key { code: KeyCode::Up, .. } => return self.recall(self.back + 1, history),
            Key { code: KeyCode::Down, .. } => return self.recall(self.back.saturating_sub(1), history),
            _ => {}
        }
        if self.text().len() >= LINE_BYTES_MAX && key.typed().is_some() {
            return Typed::Nothing;
        }
        let changed = self.input.handle_event(&Event::Key(event(key))).is_some_and(|change| change.value);
        self.check();
        if changed { Typed::Changed } else { Typed::Nothing }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Typed {
        let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let room = LINE_BYTES_MAX.saturating_sub(self.text().len());
        for letter in line[..line.floor_char_boundary(room)].chars() {
            self.input.handle(tui_input::InputRequest::InsertChar(letter));
        }
        self.check();
        Typed::Changed
    }

    fn recall(&mut self, back: usize, history: &History) -> Typed {
        let Some(text) = (if back == 0 { Some("") } else { history.back(back) }) else { return Typed::Nothing };
        self.back = back;
        self.input = Input::new(text.to_owned());
        self.check();
        Typed::Changed
    }

    fn check(&mut self) {
        self.fault = None;
        if self.asking.is_filter() {
            self.fault = Filter::parse(self.text()).err().map(|error| {
                let words = [Some(error.what()), error.help()].into_iter().flatten().collect::<Vec<_>>().join(", ");
                (words, error.span())
            });
        }
    }
}

/// A key as the widgets know it.
pub(crate) fn event(key: Key) -> KeyEvent {
    let mut modifiers = KeyModifiers::NONE;
    modifiers.set(KeyModifiers::CONTROL, key.ctrl);
    modifiers.set(KeyModifiers::ALT, key.alt);
    KeyEvent::new(key.code, modifiers)
}

/// Lines that were given before, each once, the newest last.
#[derive(Default)]
pub(crate) struct History(Vec<String>);

impl History {
    pub(crate) fn add(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        self.0.retain(|other| other != line);
        self.0.push(line.to_owned());
        if self.0.len() > HISTORY_MAX {
            self.0.remove(0);
        }
    }

    fn back(&self, back: usize) -> Option<&str> {
        self.0.len().checked_sub(back).map(|at| self.0[at].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn type_into(prompt: &mut Prompt, text: &str) {
        for letter in text.chars() {
            prompt.key(Key::char(letter), &History::default());
        }
    }

    #[test]
    fn a_wrong_filter_is_told_at_once_and_not_given() {
        let mut prompt = Prompt::new(Asking::Filter, "");
        type_into(&mut prompt, "tol:x");
        assert!(prompt.fault.as_ref().unwrap().0.contains("did you mean `tool`?"), "{:?}", prompt.fault);
        assert_eq!(prompt.key(Key::plain(KeyCode::Enter), &History::default()), Typed::Nothing);
        prompt.key(Key::plain(KeyCode::Home), &History::default());
        type_into(&mut prompt, "not ");
        assert_eq!(prompt.text(), "not tol:x");
    }

    #[test]
    fn earlier_lines_come_back() {
        let mut history = History::default();
        ["tool:a", "tool:b", "tool:a"].into_iter().for_each(|line| history.add(line));
        let mut prompt = Prompt::new(Asking::Filter, "");
        let up = Key::plain(KeyCode::Up);
        assert_eq!(prompt.key(up, &history), Typed::Changed);
        assert_eq!(prompt.text(), "tool:a");
        prompt.key(up, &history);
        assert_eq!(prompt.text(), "tool:b");
        assert_eq!(prompt.key(up, &history), Typed::Nothing);
        prompt.key(Key::plain(KeyCode::Down), &history);
        prompt.key(Key::plain(KeyCode::Down), &history);
        assert_eq!(prompt.text(), "");
    }

    #[test]
    fn what_is_pasted_stays_one_line() {
        let mut prompt = Prompt::new(Asking::Note(3), "");
        prompt.paste("two\nlines\x1b[31m");
        assert_eq!(prompt.text(), "two lines [31m");
    }
}
