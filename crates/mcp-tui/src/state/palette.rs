//! Every command, found by a few of its letters.

use std::cmp::Reverse;

use crossterm::event::{Event, KeyCode};
use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler;

use super::prompt::event;
use crate::command::{COMMANDS, Command, Entry, Screen};
use crate::key::Key;

pub(crate) struct Palette {
    input: Input,
    pub found: Vec<&'static Entry>,
    pub selected: usize,
    screen: Screen,
}

/// What came of a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    Nothing,
    It(Command),
    Left,
}

impl Palette {
    pub(crate) fn new(screen: Screen) -> Self {
        let mut palette = Self { input: Input::default(), found: Vec::new(), selected: 0, screen };
        palette.search();
        palette
    }

    pub(crate) fn text(&self) -> &str {
        self.input.value()
    }

    pub(crate) fn key(&mut self, key: Key) -> Picked {
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

    /// Commands that count on this screen, the best match first: names before descriptions, words before
    /// scattered letters.
    fn search(&mut self) {
        let typed = self.text().trim().to_lowercase();
        let pattern = Pattern::parse(&typed, CaseMatching::Ignore, Normalization::Smart);
        let mut matcher = Matcher::new(Config::DEFAULT);
        let mut letters = Vec::new();
        let mut score = |text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
        let mut ranked: Vec<(Rank, Reverse<u32>, &Entry)> = COMMANDS
            .iter()
            .filter(|entry| entry.scope.has(self.screen) && entry.command != Command::Palette)
            .filter_map(|entry| {
                let both = score(&format!("{} {}", entry.name, entry.does))?;
                let named = score(entry.name);
                Some((Rank::of(entry, &typed, named.is_some()), Reverse(named.unwrap_or(both)), entry))
            })
            .collect();
        ranked.sort_by_key(|(rank, score, _)| (*rank, *score));
        self.found = ranked.into_iter().map(|(.., entry)| entry).collect();
        self.selected = 0;
    }
}

/// How a command is found, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Name,
    NameStart,
    NameWordStart,
    InName,
    InDescription,
    LettersOfName,
    Letters,
}

impl Rank {
    fn of(entry: &Entry, typed: &str, has_letters: bool) -> Self {
        let has = |text: &str| typed.split_whitespace().all(|word| text.contains(word));
        match entry.name {
            name if name == typed => Self::Name,
            name if name.starts_with(typed) => Self::NameStart,
            name if name.split('-').any(|word| word.starts_with(typed)) => Self::NameWordStart,
            name if has(name) => Self::InName,
            _ if has(&entry.does.to_lowercase()) => Self::InDescription,
            _ if has_letters => Self::LettersOfName,
            _ => Self::Letters,
        }
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

    #[track_caller]
    fn first(screen: Screen, typed: &str, expected: Command) {
        let mut palette = Palette::new(screen);
        typed.chars().for_each(|letter| {
            palette.key(Key::char(letter));
        });
        let found: Vec<_> = palette.found.iter().take(5).map(|entry| entry.name).collect();
        assert_eq!(palette.key(Key::plain(KeyCode::Enter)), Picked::It(expected), "{typed}: {found:?}");
    }

    #[test]
    fn names_come_before_descriptions() {
        first(Screen::Traffic, "serv", Command::ToServers);
        first(Screen::Servers, "serv", Command::ToServers);
        first(Screen::Traffic, "for", Command::Forward);
        first(Screen::Traffic, "all", Command::UnfoldAll);
        first(Screen::Traffic, "he", Command::Help);
        first(Screen::Traffic, "held", Command::ToHeld);
        first(Screen::Traffic, "rec", Command::ToSessions);
        first(Screen::Traffic, "curl", Command::Copy);
        first(Screen::Traffic, "whole tree", Command::UnfoldAll);
        first(Screen::Traffic, "QUIT", Command::Quit);
    }

    #[test]
    fn only_what_counts_here_is_offered() {
        let palette = Palette::new(Screen::Sessions);
        assert!(palette.found.iter().all(|entry| entry.command != Command::Forward));
    }
}
