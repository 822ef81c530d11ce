//! Which key does what. The table of commands has the keys to begin with; a file of the user's changes
//! some: one `command = "key key"` a line, and `#` begins a remark.

use std::collections::HashMap;

use crate::command::{COMMANDS, Command, Entry, Screen};
use crate::key::Key;

#[derive(Clone, Debug)]
pub struct Keymap {
    keys: HashMap<Command, Vec<Key>>,
}

impl Default for Keymap {
    fn default() -> Self {
        let keys = COMMANDS.iter().map(|entry| (entry.command, default_keys(entry))).collect();
        Self { keys }
    }
}

fn default_keys(entry: &Entry) -> Vec<Key> {
    entry.keys.split(' ').map(|key| key.parse().expect("the table has keys")).collect()
}

impl Keymap {
    /// The keys of the table with those of a file in their place. Every mistake is an error that names
    /// its line.
    pub fn with(file: &str) -> Result<Self, String> {
        let mut map = Self::default();
        for (number, line) in (1..).zip(file.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') || line == "[keys]" {
                continue;
            }
            let (command, keys) = read(line).map_err(|what| format!("line {number}: {what}"))?;
            map.keys.insert(command, keys);
        }
        map.check()?;
        Ok(map)
    }

    /// Two commands on one key where both count, or no way out, is an error.
    fn check(&self) -> Result<(), String> {
        for (at, one) in COMMANDS.iter().enumerate() {
            for other in &COMMANDS[at + 1..] {
                let shared = self.keys_of(one.command).iter().find(|key| self.keys_of(other.command).contains(key));
                if let (Some(key), true) = (shared, one.scope.meets(other.scope)) {
                    return Err(format!("`{key}` is the key of both `{}` and `{}`", one.name, other.name));
                }
            }
        }
        let leaves = |command| !self.keys_of(command).is_empty();
        if !leaves(Command::Quit) && !leaves(Command::Detach) {
            return Err("neither `quit` nor `detach` has a key".into());
        }
        Ok(())
    }

    pub fn keys_of(&self, command: Command) -> &[Key] {
        self.keys.get(&command).map_or(&[], Vec::as_slice)
    }

    /// The first key of a command, as it is shown.
    pub fn shown(&self, command: Command) -> String {
        self.keys_of(command).first().map(Key::to_string).unwrap_or_default()
    }

    pub fn command(&self, screen: Screen, key: Key) -> Option<Command> {
        let does = |entry: &&Entry| entry.scope.has(screen) && self.keys_of(entry.command).contains(&key);
        COMMANDS.iter().find(does).map(|entry| entry.command)
    }
}

fn read(line: &str) -> Result<(Command, Vec<Key>), String> {
    let (name, keys) = line.split_once('=').ok_or("expected `command = \"key\"`")?;
    let name = name.trim();
    let entry = COMMANDS.iter().find(|entry| entry.name == name).ok_or_else(|| unknown(name))?;
    let keys = keys.split('#').next().filter(|_| !keys.contains("\"#")).unwrap_or(keys).trim().trim_matches('"');
    let keys: Result<Vec<Key>, String> = keys.split_whitespace().map(str::parse).collect();
    Ok((entry.command, keys?))
}

fn unknown(name: &str) -> String {
    match mcp_filter::nearest(name, COMMANDS.iter().map(|entry| entry.name)) {
        Some(near) => format!("there is no command `{name}`; did you mean `{near}`?"),
        None => format!("there is no command `{name}`"),
    }
}

/// The table of keys as Markdown, for the documentation.
pub fn reference() -> String {
    let mut text = String::from("| key | command | does | where |\n|---|---|---|---|\n");
    for entry in COMMANDS {
        let keys: Vec<String> = entry.keys.split(' ').map(|key| format!("`{key}`")).collect();
        let place = match entry.scope {
            crate::command::Scope::Everywhere => "everywhere".to_owned(),
            crate::command::Scope::On(screens) => {
                screens.iter().map(|screen| screen.title()).collect::<Vec<_>>().join(", ")
            }
        };
        text += &format!("| {} | `{}` | {} | {place} |\n", keys.join(" "), entry.name, entry.does);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_no_conflict() {
        assert_eq!(Keymap::default().check(), Ok(()));
    }

    /// `UPDATE_DOCS=1 cargo test -p mcp-tui` writes the table.
    #[test]
    fn the_documentation_has_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tui.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once("<!-- keys -->\n").unwrap();
        let (table, after) = rest.split_once("<!-- /keys -->").unwrap();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, format!("{before}<!-- keys -->\n{}<!-- /keys -->{after}", reference())).unwrap();
        } else {
            assert!(table == reference(), "docs/tui.md is not what the table of commands says");
        }
    }

    #[test]
    fn a_file_changes_keys() {
        let map = Keymap::with("# mine\n[keys]\nforward = \"ctrl-o F5\"\n\nfilter = \"/\" # as in vi\n").unwrap();
        assert_eq!(map.command(Screen::Traffic, "ctrl-o".parse().unwrap()), Some(Command::Forward));
        assert_eq!(map.command(Screen::Traffic, Key::char('f')), None);
        assert_eq!(map.command(Screen::Traffic, Key::char('/')), Some(Command::Filter));
    }

    #[track_caller]
    fn refused(file: &str, words: &str) {
        let error = Keymap::with(file).unwrap_err();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn mistakes_in_a_file_are_named() {
        refused("forwad = \"f\"", "line 1: there is no command `forwad`; did you mean `forward`?");
        refused("\nforward = \"hyper-f\"", "line 2: `hyper-f` is no key");
        refused("forward", "line 1: expected");
        refused("forward = \"d\"", "`d` is the key of both `forward` and `drop`");
        refused("quit = \"\"\ndetach = \"\"", "neither `quit` nor `detach` has a key");
    }

    #[test]
    fn screens_may_use_a_key_differently() {
        let map = Keymap::default();
        assert_eq!(map.command(Screen::Traffic, Key::char('d')), Some(Command::Drop));
        assert_eq!(map.command(Screen::Breakpoints, Key::char('d')), Some(Command::Remove));
        assert_eq!(map.command(Screen::Repeater, Key::char('x')), Some(Command::Ignore));
    }
}
