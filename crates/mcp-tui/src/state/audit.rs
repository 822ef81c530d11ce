//! What was decided, by rules and by people.

#[cfg(test)]
mod tests;

use super::common::Common;
use super::cursor::{Cursor, Scroll};
use super::prompt::Asking;
use crate::command::{Command, Screen};
use crate::library::{Decision, Trouble};
use crate::news::Effect;

/// From one answer to the next question, in milliseconds. Each reads what the logs grew by.
const LOOK_EVERY: u64 = 2_000;

#[derive(Default)]
pub(crate) struct Audit {
    /// The newest first; absent until they came.
    pub decisions: Option<Vec<Decision>>,
    pub is_loading: bool,
    pub trouble: Option<Trouble>,
    pub filter: Option<String>,
    pub cursor: Cursor,
    /// Keys go to the record and not to the list.
    pub is_on_record: bool,
    pub record: Scroll,
    /// When to look again; absent while an answer is awaited.
    due: Option<u64>,
}

impl Audit {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, common: &mut Common) {
        self.is_loading = true;
        self.look(common);
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, common: &mut Common) {
        if common.screen == Screen::Audit && self.due.is_some_and(|due| due <= common.now) {
            self.look(common);
        }
    }

    fn look(&mut self, common: &mut Common) {
        self.due = None;
        common.wish(Effect::Audit { filter: self.filter.clone() });
    }

    pub(crate) fn set_filter(&mut self, filter: Option<String>, common: &mut Common) {
        self.filter = filter;
        self.cursor = Cursor::default();
        self.enter(common);
    }

    pub(crate) fn selected(&self) -> Option<&Decision> {
        self.decisions.as_ref()?.get(self.cursor.at)
    }

    /// A line was clicked.
    pub(crate) fn select(&mut self, line: usize) {
        (self.cursor.at, self.record, self.is_on_record) = (line, Scroll::default(), false);
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        let len = self.decisions.as_ref().map_or(0, Vec::len);
        if self.is_on_record && self.record.motion(command) {
            return true;
        }
        if self.cursor.motion(command, len) {
            self.record = Scroll::default();
            return true;
        }
        match command {
            Command::Filter => common.prompt(Asking::AuditFilter, self.filter.as_deref().unwrap_or_default()),
            Command::NextPane | Command::PreviousPane => self.is_on_record = !self.is_on_record,
            Command::Open | Command::Pair => self.go_to_message(common),
            Command::Back if common.job.is_some() => return false,
            Command::Back if self.is_on_record => self.is_on_record = false,
            Command::Back if self.filter.is_some() => self.set_filter(None, common),
            _ => return false,
        }
        true
    }

    fn go_to_message(&self, common: &mut Common) {
        let Some(decision) = self.selected() else { return };
        match (&decision.session, decision.sequence) {
            (Some(session), Some(sequence)) => common.open_at(session, sequence),
            _ => common.say("no recorded message belongs to this decision"),
        }
    }

    pub(crate) fn list(&mut self, filter: Option<&str>, decisions: Result<Vec<Decision>, Trouble>, common: &Common) {
        if filter != self.filter.as_deref() {
            return;
        }
        self.is_loading = false;
        self.due = Some(common.now + LOOK_EVERY);
        match decisions {
            Ok(decisions) => {
                let selected = self.selected().map(|decision| decision.audit_id.clone());
                let at = selected.and_then(|id| decisions.iter().position(|decision| decision.audit_id == id));
                // Whoever looks at the newest goes on to do so.
                self.cursor.at = at.filter(|_| self.cursor.at > 0).unwrap_or(0);
                (self.decisions, self.trouble) = (Some(decisions), None);
            }
            Err(words) => self.trouble = Some(words),
        }
    }
}
