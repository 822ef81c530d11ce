//! A text that is edited in place: a message to be sent on, an answer, arguments.

use crossterm::event::KeyCode;
use ratatui_textarea::{CursorMove, TextArea};
use serde_json::value::RawValue;

use super::prompt::event;
use crate::diff::{Diff, diff_json};
use crate::key::Key;
use crate::news::Editing;

/// A longer text is for `$EDITOR`: here every key would cost a copy of it.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;
/// A longer text is not compared with the original at every key.
const COMPARED_BYTES_MAX: usize = 64 << 10;

pub(crate) struct Editor {
    pub why: Editing,
    pub area: TextArea<'static>,
    /// What is wrong with it as JSON, in a line.
    pub fault: Option<String>,
    /// What a schema says of it, in a line; good or bad.
    pub schema: Option<(bool, String)>,
    /// It was asked whether to send what is no message any more.
    pub is_confirming: bool,
    /// It was asked whether to throw away what was written.
    pub is_leaving: bool,
    /// Why the text as it stands was not sent. The status line with it is below the editor.
    pub refused: Option<String>,
    /// How often it was changed, and what it was against what it is, as of one of those.
    changes: u64,
    compared: Option<(u64, Diff)>,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrote {
    Nothing,
    Changed,
    /// Done; send it.
    Given(String),
    /// Go on in `$EDITOR`.
    Elsewhere(String),
    Left,
}

impl Editor {
    pub(crate) fn new(why: Editing, text: &str) -> Self {
        let mut area = TextArea::from(text.lines());
        area.set_max_histories(200);
        area.move_cursor(CursorMove::Top);
        let mut editor = Self {
            why,
            area,
            fault: None,
            schema: None,
            is_confirming: false,
            is_leaving: false,
            refused: None,
            changes: 0,
            compared: None,
        };
        editor.check();
        editor
    }

    /// The text was written before, and it was not sent.
    pub(crate) fn refuse(&mut self, words: &str) {
        self.refused = Some(words.to_owned());
        self.changes += 1;
    }

    pub(crate) fn is_changed(&self) -> bool {
        self.changes > 0
    }

    pub(crate) fn text(&self) -> String {
        self.area.lines().join("\n")
    }

    pub(crate) fn title(&self) -> &'static str {
        match self.why {
            Editing::Modify(_) => "Edit, then ctrl-s sends it on",
            Editing::Answer(_) => "Write the answer, then ctrl-s gives it",
            Editing::Request(_) => "Edit the request, then ctrl-s keeps it",
            Editing::Arguments(_) => "Arguments; ctrl-s calls the tool",
        }
    }

    pub(crate) fn key(&mut self, key: Key) -> Wrote {
        match key {
            // What was written is not thrown away by one key.
            Key { code: KeyCode::Esc, .. } | Key { code: KeyCode::Char('c'), ctrl: true, .. } => {
                match self.is_changed() && !std::mem::replace(&mut self.is_leaving, true) {
                    true => Wrote::Nothing,
                    false => Wrote::Left,
                }
            }
            Key { code: KeyCode::Char('s'), ctrl: true, .. } => match &self.fault {
                None => Wrote::Given(self.text()),
                Some(_) => Wrote::Nothing,
            },
            Key { code: KeyCode::Char('e'), ctrl: true, .. } => Wrote::Elsewhere(self.text()),
            Key { code: KeyCode::Char('z'), ctrl: true, .. } => {
                self.area.undo();
                self.changed()
            }
            key => match self.area.input(event(key)) {
                true => self.changed(),
                false => Wrote::Nothing,
            },
        }
    }

    pub(crate) fn paste(&mut self, text: &str) -> Wrote {
        // Terminals send what ends a line as the key that does.
        let lines = text.replace("\r\n", "\n").replace('\r', "\n");
        let room = TEXT_BYTES_MAX.saturating_sub(self.area.lines().iter().map(String::len).sum());
        self.area.insert_str(&lines[..lines.floor_char_boundary(room)]);
        self.changed()
    }

    /// What differs from a text, if neither is long. What is no JSON for a moment is not compared: every
    /// line of it would differ.
    pub(crate) fn compare(&mut self, original: &str) -> Option<&Diff> {
        let is_due = self.compared.as_ref().is_none_or(|(as_of, _)| *as_of != self.changes && self.fault.is_none());
        if is_due {
            let text = self.text();
            if original.len().max(text.len()) > COMPARED_BYTES_MAX {
                return None;
            }
            self.compared = Some((self.changes, diff_json(original, &text, &[])));
        }
        self.compared.as_ref().map(|(_, diff)| diff)
    }

    fn changed(&mut self) -> Wrote {
        self.changes += 1;
        self.check();
        (self.is_confirming, self.is_leaving, self.refused) = (false, false, None);
        Wrote::Changed
    }

    fn check(&mut self) {
        let text = self.text();
        self.fault = serde_json::from_str::<&RawValue>(&text).err().map(|error| match text.trim().is_empty() {
            true => "nothing is written".to_owned(),
            false => format!("not JSON: {error}"),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_is_given() {
        let mut editor = Editor::new(Editing::Modify(1), "{\"a\": 1}");
        let save = Key { code: KeyCode::Char('s'), ctrl: true, alt: false };
        assert_eq!(editor.key(save), Wrote::Given("{\"a\": 1}".into()));
        editor.key(Key::char('x'));
        assert_eq!(editor.key(save), Wrote::Nothing);
        assert!(editor.fault.as_ref().unwrap().starts_with("not JSON"));
        editor.key(Key { code: KeyCode::Char('z'), ctrl: true, alt: false });
        assert_eq!(editor.fault, None);
    }

    #[test]
    fn numbers_and_order_survive() {
        let text = "{\n  \"b\": 1.000e2,\n  \"a\": 0.10\n}";
        assert_eq!(Editor::new(Editing::Answer(1), text).text(), text);
    }
}
