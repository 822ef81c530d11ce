//! A short list of choices, each with its letter.

use crossterm::event::KeyCode;
use mcp_control::api::Lasting;

use crate::key::Key;

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    CopyJson,
    /// The JSON path of what is selected in the tree.
    CopyPath,
    CopyCurl,
    CopyShell,
    /// What names the message elsewhere.
    CopyId,
    DropSilently(u64),
    DropWithError(u64),
    AnswerWithResult(u64),
    AnswerWithError(u64),
    Approve(u64, Lasting),
    Deny(u64, Lasting),
    DenyWithWords(u64),
    RestartServer(String),
    DisableServer(String),
    Export(&'static str),
    Quit,
    EndProxy,
}

pub(crate) struct Menu {
    pub title: String,
    pub choices: Vec<(char, String, Choice)>,
    pub selected: usize,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Nothing,
    It(Choice),
    Left,
}

impl Menu {
    pub(crate) fn new(title: impl Into<String>, choices: impl IntoIterator<Item = (char, String, Choice)>) -> Self {
        Self { title: title.into(), choices: choices.into_iter().collect(), selected: 0 }
    }

    pub(crate) fn key(&mut self, key: Key) -> Chosen {
        let last = self.choices.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') if !self.has(key) => return Chosen::Left,
            KeyCode::Char('c') if key.ctrl => return Chosen::Left,
            KeyCode::Down | KeyCode::Char('j') if !self.has(key) => self.selected = (self.selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') if !self.has(key) => self.selected = self.selected.saturating_sub(1),
            KeyCode::Enter => return self.choose(self.selected),
            KeyCode::Char(letter) => {
                if let Some(at) = self.choices.iter().position(|(other, ..)| *other == letter) {
                    return self.choose(at);
                }
            }
            _ => {}
        }
        Chosen::Nothing
    }

    fn has(&self, key: Key) -> bool {
        self.choices.iter().any(|(letter, ..)| key.typed() == Some(*letter))
    }

    pub(crate) fn choose(&self, at: usize) -> Chosen {
        self.choices.get(at).map_or(Chosen::Left, |(.., choice)| Chosen::It(choice.clone()))
    }
}
