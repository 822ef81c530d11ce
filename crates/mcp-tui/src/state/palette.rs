//! Every command, found by a few of its letters.

use crossterm::event::{Event, KeyCode};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::prompt::event;
use crate::command::{COMMANDS, Command, Entry, Screen};
use crate::key::Key;

pub struct Palette {
    input: Input,
    pub found: Vec<&'static Entry>,
    pub selected: usize,
    screen: Screen,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Picked {
    Nothing,
    It(Command),
    Left,
}

impl Palette {
    pub fn new(screen: Screen) -> Self {
        let mut palette = Self { input: Input::default(), found: Vec::new(), selected: 0, screen };
        palette.search();
        palette
    }

    pub fn text(&self) -> &str {
        self.input.value()
    }

    pub fn key(&mut self, key: Key) -> Picked {
        match key {
            Key { code: KeyCode::Esc, .. } | Key { code: KeyCode::Char('c'), ctrl: true, .. } => return Picked::Left,
            Key { code: KeyCode::Enter, .. } => {
                return self.found.get(self.selected).map_or(Picked::Nothing, |entry| Picked::It(entry.command));
            }
            Key { code: KeyCode::Down, .. } | Key { code: KeyCode::Char('n'), ctrl: true, .. } => {
                self.selected = (self.selected + 1).min(self.found.len().saturating_sub(1));
            }
            Key { code: KeyCode::Up, .. } | Key { code: KeyCode::Char('p'), ctrl: true, .. } => {
                self.selected = self.selected.saturating_sub(1);
            }
            _ => {
                self.input.handle_event(&Event::Key(event(key)));
                self.search();
            }
        }
        Picked::Nothing
    }

    /// Commands that count on this screen, the best match first.
    fn search(&mut self) {
        let pattern = Pattern::parse(self.text(), CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut letters = Vec::new();
        let mut scored: Vec<(u32, &Entry)> = COMMANDS
            .iter()
            .filter(|entry| entry.scope.has(self.screen) && entry.command != Command::Palette)
            .filter_map(|entry| {
                let text = format!("{} {}", entry.name, entry.does);
                let score = pattern.score(Utf32Str::new(&text, &mut letters), &mut matcher)?;
                Some((score, entry))
            })
            .collect();
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        self.found = scored.into_iter().map(|(_, entry)| entry).collect();
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_letters_find_a_command() {
        let mut palette = Palette::new(Screen::Traffic);
        assert!(palette.found.len() > 30);
        "fwdall".chars().for_each(|letter| {
            palette.key(Key::char(letter));
        });
        assert_eq!(palette.key(Key::plain(KeyCode::Enter)), Picked::It(Command::ForwardAll));
    }

    #[test]
    fn only_what_counts_here_is_offered() {
        let palette = Palette::new(Screen::Sessions);
        assert!(palette.found.iter().all(|entry| entry.command != Command::Forward));
    }
}
