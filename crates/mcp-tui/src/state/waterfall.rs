//! Operations over time: a request with its answer, or all rounds of one that asks back. Made of the
//! newest messages, and of what passes while somebody looks.

mod operation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use mcp_control::api::{Message, MessageKind, Outcome, Page, PageQuery, Verdict};

pub(crate) use operation::{Ending, Operation, Round, Waits};

use super::common::Common;
use super::cursor::Cursor;
use crate::command::Command;
use crate::news::{Asker, Effect, Ticket};
use crate::percentile::{Percentiles, percentiles};

/// Operations that are kept; the oldest goes.
const OPERATIONS_MAX: usize = 2_000;
/// Messages that it begins with, in as many pages as they come in.
const MESSAGES_MAX: usize = 1_000;
const PAGES_MAX: usize = 20;

pub(crate) struct Waterfall {
    /// By the sequence of their first request.
    operations: BTreeMap<u64, Operation>,
    selected: Option<u64>,
    cursor: Cursor,
    /// The selection stays on what comes last.
    follows: bool,
    filter: Option<String>,
    /// Somebody has looked, so that what passes is noted.
    is_on: bool,
    asked: Option<Ticket>,
    /// Pages and messages that came since it was entered.
    read: (usize, usize),
    /// When the newest message came, in its own time, and when that was by ours, in milliseconds.
    newest_us: i64,
    newest_at: u64,
    now: u64,
    pub trouble: Option<String>,
}

impl Default for Waterfall {
    fn default() -> Self {
        Self {
            operations: BTreeMap::new(),
            selected: None,
            cursor: Cursor::default(),
            follows: true,
            filter: None,
            is_on: false,
            asked: None,
            read: (0, 0),
            newest_us: i64::MIN,
            newest_at: 0,
            now: 0,
            trouble: None,
        }
    }
}

/// What all operations together come to.
pub(crate) struct Sum {
    pub operations: usize,
    pub times: Option<Percentiles>,
    pub errors: usize,
    pub denied: usize,
}

impl Waterfall {
    /// The screen is shown.
    pub(crate) fn enter(&mut self, filter: Option<String>, common: &mut Common) {
        if self.filter != filter {
            *self = Self { filter, ..Self::default() };
        }
        (self.is_on, self.read, self.trouble) = (true, (0, 0), None);
        self.ask(None, common);
    }

    fn ask(&mut self, before: Option<u64>, common: &mut Common) {
        let ticket = common.ticket(Asker::Waterfall);
        self.asked = Some(ticket);
        let (limit, filter) = (Some(MESSAGES_MAX as u32), self.filter.clone());
        common.wish(Effect::Page { ticket, query: PageQuery { before, limit, filter, after: None } });
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.asked.is_some()
    }

    pub(crate) fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// Does what the command says, if that is this screen's to do.
    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        self.cursor.at = self.position();
        if self.cursor.motion(command, self.operations.len()) {
            self.select(self.cursor.at);
            self.follows |= command == Command::Last;
            return true;
        }
        match command {
            Command::Open | Command::Pair => common.go_to = self.selected(),
            _ => return false,
        }
        true
    }

    /// The message that stands for the selected operation.
    pub(crate) fn selected(&self) -> Option<u64> {
        let operation = self.operations.get(&self.selected?)?;
        operation.rounds.first().map(Round::known_message)
    }

    /// Selects an operation by its place.
    pub(crate) fn select(&mut self, at: usize) {
        self.selected = self.operations.keys().nth(at).copied();
        self.follows = at + 1 >= self.operations.len();
    }

    fn position(&self) -> usize {
        let Some(selected) = self.selected else { return 0 };
        self.operations.range(..selected).count()
    }

    /// The operations to show in so many lines, the place of the first, and the selected one's place.
    pub(crate) fn visible(&mut self, height: usize) -> (usize, Vec<&Operation>, usize) {
        self.cursor.at = self.position();
        let visible = self.cursor.visible(height, self.operations.len());
        (visible.start, self.operations.values().skip(visible.start).take(visible.len()).collect(), self.cursor.at)
    }

    pub(crate) fn see(&mut self, message: &Message) {
        if self.is_on {
            self.note(message);
        }
    }

    pub(crate) fn page(&mut self, ticket: Ticket, page: Result<Page, String>, common: &mut Common) {
        if self.asked.take_if(|asked| *asked == ticket).is_none() {
            return;
        }
        let page = match page {
            Ok(page) => page,
            Err(words) => return self.trouble = Some(words),
        };
        page.messages.iter().for_each(|message| self.note(message));
        self.read = (self.read.0 + 1, self.read.1 + page.messages.len());
        // A page may be short where messages are large or few match.
        let has_room = self.read.0 < PAGES_MAX && self.read.1 < MESSAGES_MAX;
        if let Some(older) = page.older.filter(|_| has_room) {
            self.ask(Some(older), common);
        }
    }

    fn note(&mut self, message: &Message) {
        let Some(at) = operation::microseconds(&message.timestamp) else { return };
        if at > self.newest_us {
            (self.newest_us, self.newest_at) = (at, self.now);
        }
        match (message.kind, message.answers) {
            (MessageKind::Request, _) => self.operation(message.operation.unwrap_or(message.sequence)).ask(message, at),
            (MessageKind::Response | MessageKind::Error, Some(request)) => {
                self.operation(message.operation.unwrap_or(request)).answer(message, request, at);
            }
            (MessageKind::Notification, _) if message.method.as_deref() == Some("notifications/progress") => {
                self.progress(message.conversation, at);
            }
            _ => return,
        }
        while self.operations.len() > OPERATIONS_MAX {
            self.operations.pop_first();
        }
        if self.follows || self.selected.is_none_or(|selected| !self.operations.contains_key(&selected)) {
            self.selected = self.operations.last_key_value().map(|(first, _)| *first);
        }
    }

    fn operation(&mut self, first: u64) -> &mut Operation {
        self.operations.entry(first).or_default()
    }

    /// Whose progress it is only its token tells; where one operation alone is open there is no doubt.
    fn progress(&mut self, conversation: u32, at: i64) {
        let mut open = self.operations.values_mut().filter(|one| one.conversation == conversation && one.is_open());
        if let (Some(operation), None) = (open.next(), open.next()) {
            operation.step(at);
        }
    }

    /// A held message went on, or did not.
    pub(crate) fn decide(&mut self, outcome: &Outcome) {
        self.operations.values_mut().for_each(|operation| operation.decide(outcome));
    }

    pub(crate) fn judge(&mut self, verdict: &Verdict) {
        if let Some(operation) = self.operations.get_mut(&verdict.sequence) {
            operation.is_denied = verdict.verdict == "deny";
        }
    }

    pub(crate) fn tick(&mut self, common: &mut Common) {
        self.now = common.now;
    }

    pub(crate) fn has_open(&self) -> bool {
        self.operations.values().any(Operation::is_open)
    }

    /// The time by the clock that messages are stamped with. That of a recording stands still.
    pub(crate) fn now_us(&self, common: &Common) -> i64 {
        let since = if common.recording.is_some() { 0 } else { common.now.saturating_sub(self.newest_at) };
        self.newest_us.saturating_add(since.saturating_mul(1000).try_into().unwrap_or(i64::MAX))
    }

    pub(crate) fn sum(&self) -> Sum {
        let times: Vec<u64> = self.operations.values().filter_map(Operation::duration_ns).collect();
        let ends = |ending: Ending| self.operations.values().filter(|one| one.ending() == ending).count();
        Sum {
            operations: self.operations.len(),
            times: percentiles(&times),
            errors: ends(Ending::Bad),
            denied: ends(Ending::Denied),
        }
    }
}
