//! Keys as people name them: `ctrl-p`, `F5`, `space`, `G`.

use std::fmt;
use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// A key with what is held down beside it. Shift is part of the letter: `G`, not `shift-g`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd)]
pub struct Key {
    pub code: KeyCode,
    pub ctrl: bool,
    pub alt: bool,
}

/// Keys that have a name instead of a letter.
const NAMED: [(&str, KeyCode); 17] = [
    ("space", KeyCode::Char(' ')),
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("del", KeyCode::Delete),
    ("ins", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("null", KeyCode::Null),
];

impl Key {
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false }
    }

    pub const fn char(letter: char) -> Self {
        Self::plain(KeyCode::Char(letter))
    }

    /// A letter that is typed, if it is one and nothing is held down with it.
    pub fn typed(self) -> Option<char> {
        match self {
            Self { code: KeyCode::Char(letter), ctrl: false, alt: false } => Some(letter),
            _ => None,
        }
    }
}

impl From<KeyEvent> for Key {
    fn from(event: KeyEvent) -> Self {
        let ctrl = event.modifiers.contains(KeyModifiers::CONTROL);
        let shifted = event.modifiers.contains(KeyModifiers::SHIFT);
        // Some terminals tell the letter and the shift apart.
        let code = match event.code {
            KeyCode::Char(letter) if shifted && letter.is_ascii_lowercase() => {
                KeyCode::Char(letter.to_ascii_uppercase())
            }
            KeyCode::Char(letter) if ctrl => KeyCode::Char(letter.to_ascii_lowercase()),
            KeyCode::Tab if shifted => KeyCode::BackTab,
            code => code,
        };
        Self { code, ctrl, alt: event.modifiers.contains(KeyModifiers::ALT) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ctrl {
            f.write_str("ctrl-")?;
        }
        if self.alt {
            f.write_str("alt-")?;
        }
        match (self.code, NAMED.iter().find(|(_, code)| *code == self.code)) {
            (_, Some((name, _))) => f.write_str(name),
            (KeyCode::Char(letter), None) => write!(f, "{letter}"),
            (KeyCode::F(number), None) => write!(f, "F{number}"),
            (_, None) => f.write_str("?"),
        }
    }
}

impl FromStr for Key {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut key = Self::plain(KeyCode::Null);
        let mut rest = text;
        loop {
            if let Some(after) = rest.strip_prefix("ctrl-").filter(|after| !after.is_empty()) {
                (key.ctrl, rest) = (true, after);
            } else if let Some(after) = rest.strip_prefix("alt-").filter(|after| !after.is_empty()) {
                (key.alt, rest) = (true, after);
            } else {
                break;
            }
        }
        key.code = code(rest).ok_or_else(|| format!("`{text}` is no key; write `x`, `ctrl-x`, `F5` or `space`"))?;
        Ok(key)
    }
}

fn code(name: &str) -> Option<KeyCode> {
    if let Some((_, code)) = NAMED.iter().find(|(named, _)| named.eq_ignore_ascii_case(name)) {
        return Some(*code);
    }
    let mut letters = name.chars();
    match (letters.next(), letters.as_str()) {
        (Some(letter), "") if !letter.is_control() => Some(KeyCode::Char(letter)),
        (Some('F' | 'f'), number) => number.parse().ok().filter(|number| (1..=24).contains(number)).map(KeyCode::F),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str) {
        let key: Key = name.parse().unwrap();
        assert_eq!(key.to_string(), name);
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        ["x", "G", "F5", "F12", "ctrl-p", "alt-enter", "ctrl-alt-del", "space", "/", "-", "ctrl--", ";", "é"]
            .into_iter()
            .for_each(check);
    }

    #[test]
    fn what_is_no_key_is_an_error() {
        for name in ["", "F0", "F25", "word", "shift-x", "ctrl-", "\u{1b}"] {
            assert!(name.parse::<Key>().is_err(), "{name}");
        }
    }

    #[test]
    fn a_shifted_letter_is_that_letter() {
        let event = KeyEvent::new(KeyCode::Char('g'), KeyModifiers::SHIFT);
        assert_eq!(Key::from(event), Key::char('G'));
        let event = KeyEvent::new(KeyCode::Char('P'), KeyModifiers::CONTROL | KeyModifiers::SHIFT);
        assert_eq!(Key::from(event).to_string(), "ctrl-p");
    }
}
