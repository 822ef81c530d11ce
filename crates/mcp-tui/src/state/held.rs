//! What waits for a decision. The queue is the instance's; here is where one is in it.

use super::common::Common;
use super::cursor::{Cursor, Scroll};
use super::detail::Shown;
use crate::command::{Command, Screen};
use crate::news::Effect;

#[derive(Default)]
pub(crate) struct HeldScreen {
    /// The message that is looked at, even if it is held no longer.
    selected: Option<u64>,
    pub cursor: Cursor,
    /// Keys go to the message and not to the queue.
    pub is_on_message: bool,
    /// The pane that has the keys is as large as the screen.
    pub is_zoomed: bool,
    pub scroll: Scroll,
    pub shown: Shown,
    pub fit: Option<Fit>,
    /// A message that is on its way.
    asked: Option<u64>,
    /// Why one could not be fetched.
    pub trouble: Option<(u64, String)>,
}

/// What the schema of its tool says of a message, by the catalogue of one version.
pub(crate) struct Fit {
    pub of: u64,
    pub version: u64,
    /// Good or bad, in a line; nothing if there is no schema.
    pub said: Option<(bool, String)>,
}

impl HeldScreen {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        self.trouble = None;
        self.settle(common);
    }

    /// The held message that commands are about. In place of one that is gone, the next of the queue is.
    pub(crate) fn selected(&self, common: &Common) -> Option<u64> {
        let held = common.held();
        let after = |selected: u64| held.iter().find(|held| held.sequence >= selected).or(held.last());
        match self.selected {
            Some(selected) if common.held_message(selected).is_some() => Some(selected),
            Some(selected) => after(selected).map(|held| held.sequence),
            None => held.first().map(|held| held.sequence),
        }
    }

    /// The queue may be another now.
    pub(crate) fn settle(&mut self, common: &mut Common) {
        let selected = self.selected(common);
        if selected != self.selected {
            self.look_at(selected);
        }
        let Some(selected) = selected.filter(|_| common.screen == Screen::Held) else { return };
        let is_troubled = self.trouble.as_ref().is_some_and(|(of, _)| *of == selected);
        if common.messages.get(selected).is_none() && self.asked != Some(selected) && !is_troubled {
            self.asked = Some(selected);
            common.wish(Effect::Message { sequence: selected });
        }
    }

    fn look_at(&mut self, selected: Option<u64>) {
        self.selected = selected;
        self.scroll = Scroll::default();
        self.is_on_message &= selected.is_some();
    }

    /// Where in the queue the selected one is.
    pub(crate) fn place(&self, common: &Common) -> usize {
        let selected = self.selected(common);
        common.held().iter().position(|held| Some(held.sequence) == selected).unwrap_or(0)
    }

    /// A whole message came.
    pub(crate) fn came(&mut self, sequence: u64) {
        self.asked.take_if(|asked| *asked == sequence);
        self.trouble.take_if(|(of, _)| *of == sequence);
        self.shown.forget(sequence);
        self.fit = None;
    }

    pub(crate) fn failed(&mut self, sequence: u64, words: &str) {
        if self.asked.take_if(|asked| *asked == sequence).is_some() {
            self.trouble = Some((sequence, words.to_owned()));
        }
    }

    pub(crate) fn select_line(&mut self, line: usize, common: &mut Common) {
        self.is_on_message = false;
        if let Some(held) = common.held().get(line) {
            self.look_at(Some(held.sequence));
        }
        self.settle(common);
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        match command {
            Command::NextPane | Command::PreviousPane => self.is_on_message = !self.is_on_message,
            Command::Open => self.is_on_message = true,
            Command::Zoom => self.is_zoomed = !self.is_zoomed,
            Command::Back if self.is_zoomed => self.is_zoomed = false,
            Command::Back if self.is_on_message => self.is_on_message = false,
            command if self.is_on_message => return self.scroll.motion(command),
            command => return self.motion(command, common),
        }
        true
    }

    fn motion(&mut self, command: Command, common: &mut Common) -> bool {
        self.cursor.at = self.place(common);
        if !self.cursor.motion(command, common.held().len()) {
            return false;
        }
        let selected = common.held().get(self.cursor.at).map(|held| held.sequence);
        if selected != self.selected {
            self.look_at(selected);
        }
        self.settle(common);
        true
    }
}

#[cfg(test)]
mod tests;
