//! The list of messages: a window into what may be millions. What is live is appended; what is further
//! away is fetched page by page when somebody goes there. A filter is applied by whoever has the messages.

mod arguments;
mod links;
mod rows;
#[cfg(test)]
mod tests;

use mcp_control::api::{Marked, Message, Outcome, Page, PageQuery, Verdict};

pub(crate) use rows::{Row, Rows};

use super::common::Common;
use crate::command::Command;
use crate::news::{Asker, Effect, Ticket};

/// Messages of one page: a screen or two.
const PAGE: u32 = 300;
/// Rows before the edge of the window at which the next page is fetched.
const NEAR: usize = 60;
/// Interval between two fetches of the newest page where more happens than is reported, in milliseconds.
const CATCH_UP_EVERY: u64 = 250;
/// Interval between two counts of the messages while a filter is set, in milliseconds.
const COUNT_EVERY: u64 = 1_000;
/// Messages that wait for the page they come behind.
const EARLY_MAX: usize = 2_000;

pub(crate) struct Traffic {
    pub rows: Rows,
    /// The message that is looked at.
    pub selected: Option<u64>,
    /// The selection stays on what comes last.
    pub follows: bool,
    /// The filter that counts.
    pub filter: Option<String>,
    /// The filter that counted last, for going from match to match.
    pub last_filter: Option<String>,
    /// The newest message there is, whether or not it matches.
    pub newest: u64,
    /// How far back a filter has looked, while it looks.
    pub looking: Option<u64>,
    /// The first line that is shown.
    top: u64,
    /// How many lines there were at the last drawing.
    height: usize,
    /// The window reaches what is live.
    is_at_end: bool,
    older: Option<u64>,
    newer: Option<u64>,
    asked: Option<(Ticket, Load)>,
    finding: Option<Ticket>,
    /// Something was missed; when the newest page was last fetched.
    is_torn: bool,
    caught_up_at: u64,
    counted_at: u64,
    /// The newest message that was told of as it passed, and the newest up to which nothing is missing.
    heard: u64,
    covered: u64,
    /// What passed while the newest page was on its way.
    early: Vec<Message>,
    /// What is told still goes by another filter.
    awaits_stream: bool,
}

/// Which part of the list is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Newest,
    /// Further back, because a filter left too few.
    Back,
    Oldest,
    Older,
    Newer,
    Around(u64),
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            rows: Rows::default(),
            selected: None,
            follows: true,
            filter: None,
            last_filter: None,
            newest: 0,
            looking: None,
            top: 0,
            height: 0,
            is_at_end: true,
            older: None,
            newer: None,
            asked: None,
            finding: None,
            is_torn: false,
            caught_up_at: 0,
            counted_at: 0,
            heard: 0,
            covered: 0,
            early: Vec::new(),
            awaits_stream: false,
        }
    }
}

impl Traffic {
    /// Begins anew with the newest messages.
    pub(crate) fn begin(&mut self, common: &mut Common) {
        self.ask(Load::Newest, common);
    }

    /// Everything is forgotten but the filter: another instance or recording is shown.
    pub(crate) fn reset(&mut self, common: &mut Common) {
        *self = Self { filter: self.filter.take(), last_filter: self.last_filter.take(), ..Self::default() };
        common.messages.clear();
        self.begin(common);
    }

    pub(crate) fn is_loading(&self) -> bool {
        self.asked.is_some()
    }

    /// The window reaches what is live, so that nothing more is below it.
    pub(crate) fn reaches_end(&self) -> bool {
        self.is_at_end
    }

    pub(crate) fn set_filter(&mut self, filter: Option<String>, common: &mut Common) {
        if self.filter == filter {
            return;
        }
        if filter.is_some() {
            self.last_filter.clone_from(&filter);
        }
        self.filter = filter;
        if common.recording.is_none() {
            self.awaits_stream = true;
            common.wish(Effect::Watch { filter: self.filter.clone() });
        }
        // Whoever takes a filter away wants to see what is around the one message.
        match self.selected {
            Some(selected) if self.filter.is_none() && !self.follows => self.ask(Load::Around(selected), common),
            _ => self.ask(Load::Newest, common),
        }
    }

    fn ask(&mut self, load: Load, common: &mut Common) {
        let mut query = PageQuery { limit: Some(PAGE), filter: self.filter.clone(), ..PageQuery::default() };
        match load {
            Load::Newest => {
                self.is_torn = false;
                self.early.clear();
            }
            Load::Back | Load::Older => query.before = self.older,
            Load::Oldest => query.after = Some(0),
            Load::Newer => query.after = self.newer,
            Load::Around(sequence) => query.after = Some(sequence.saturating_sub(u64::from(PAGE / 2))),
        }
        let ticket = common.ticket(Asker::Traffic);
        self.asked = Some((ticket, load));
        common.wish(Effect::Page { ticket, query });
    }

    pub(crate) fn page(&mut self, ticket: Ticket, page: Result<Page, String>, common: &mut Common) {
        let Some((_, load)) = self.asked.take_if(|(asked, _)| *asked == ticket) else { return };
        let page = match page {
            Ok(page) => page,
            Err(words) => {
                self.looking = None;
                return common.complain(words);
            }
        };
        page.messages.iter().for_each(|message| common.messages.see(message));
        self.newest = self.newest.max(page.last_sequence);
        self.take(load, page);
        self.settle(load);
        self.go_on(common);
    }

    fn take(&mut self, load: Load, page: Page) {
        let is_all = page.newer.is_none_or(|newer| newer >= page.last_sequence);
        // What was told meanwhile is not on the page, and was not kept.
        let reaches_end = is_all && page.last_sequence >= self.heard;
        match load {
            Load::Newest => {
                self.rows.replace(page.messages);
                (self.older, self.newer, self.is_at_end) = (page.older, page.newer, true);
                self.covered = self.covered.max(page.last_sequence);
                let early = std::mem::take(&mut self.early).into_iter();
                self.rows.append_all(early.filter(|message| message.sequence > page.last_sequence).collect());
            }
            Load::Back | Load::Older => {
                self.older = page.older;
                if self.rows.prepend(page.messages) {
                    (self.is_at_end, self.newer) = (false, self.rows.last_sequence());
                }
            }
            Load::Oldest | Load::Around(_) => {
                let before = page.messages.first().map(|message| message.sequence).filter(|first| *first > 1);
                self.rows.replace(page.messages);
                self.older = before.filter(|_| load != Load::Oldest).or(page.older.filter(|_| load != Load::Oldest));
                (self.newer, self.is_at_end) = (page.newer, reaches_end);
            }
            Load::Newer => {
                (self.newer, self.is_at_end) = (page.newer, reaches_end);
                if self.rows.append_all(page.messages) {
                    self.older = self.rows.first_sequence();
                }
            }
        }
        // A filter that matches little is looked for further back, page by page.
        let has_little = self.rows.len() < self.height.max(NEAR);
        let goes_back = matches!(load, Load::Newest | Load::Back) && self.filter.is_some();
        self.looking = self.older.filter(|_| has_little && goes_back);
    }

    fn settle(&mut self, load: Load) {
        match load {
            Load::Newest | Load::Back if self.follows => self.selected = self.rows.last_sequence(),
            Load::Oldest => self.selected = self.rows.first_sequence(),
            Load::Around(sequence) => self.selected = self.rows.nearest(sequence),
            _ => {}
        }
        if self.selected.is_none_or(|selected| self.rows.get(selected).is_none()) {
            self.selected =
                self.selected.and_then(|selected| self.rows.nearest(selected)).or(self.rows.last_sequence());
        }
    }

    /// Asks for what is still missing around the selection.
    fn go_on(&mut self, common: &mut Common) {
        if self.asked.is_some() {
            return;
        }
        if self.looking.is_some() {
            return self.ask(Load::Back, common);
        }
        let Some(at) = self.selected.and_then(|selected| self.rows.position(selected)) else { return };
        if at < NEAR && self.older.is_some() && !self.follows {
            self.ask(Load::Older, common);
        } else if !self.is_at_end && at + NEAR > self.rows.len() {
            self.ask(Load::Newer, common);
        }
    }

    /// A message passed.
    pub(crate) fn see(&mut self, message: Message, common: &mut Common) {
        common.messages.see(&message);
        self.newest = self.newest.max(message.sequence);
        if self.awaits_stream {
            return;
        }
        self.heard = self.heard.max(message.sequence);
        self.covered = self.covered.max(message.sequence);
        if matches!(self.asked, Some((_, Load::Newest))) {
            if self.early.len() < EARLY_MAX {
                self.early.push(message);
            } else {
                self.is_torn = true;
            }
            return;
        }
        if !self.is_at_end {
            return;
        }
        if self.rows.append(message) {
            self.older = self.rows.first_sequence();
        }
        if self.follows || self.selected.is_none() {
            self.selected = self.rows.last_sequence();
        }
    }

    /// A stream of events begins, with the filter that counts; so many messages have passed before it.
    pub(crate) fn stream_begins(&mut self, last_sequence: u64) {
        self.awaits_stream = false;
        if last_sequence > self.covered {
            self.miss();
        }
    }

    /// Some were not told. They are in the history: whoever follows is shown the newest of it.
    pub(crate) fn miss(&mut self) {
        if self.follows {
            self.is_torn = true;
        } else if self.is_at_end {
            (self.is_at_end, self.newer) = (false, self.rows.last_sequence());
        }
    }

    pub(crate) fn tick(&mut self, common: &mut Common) {
        if self.is_torn && self.asked.is_none() && common.now >= self.caught_up_at + CATCH_UP_EVERY {
            self.caught_up_at = common.now;
            self.ask(Load::Newest, common);
        }
        // What does not match is not told of.
        if self.filter.is_some() && common.recording.is_none() && common.now >= self.counted_at + COUNT_EVERY {
            self.counted_at = common.now;
            let (ticket, query) = (common.ticket(Asker::Count), PageQuery { limit: Some(1), ..PageQuery::default() });
            common.wish(Effect::Page { ticket, query });
        }
    }

    pub(crate) fn counted(&mut self, page: Result<Page, String>) {
        self.newest = page.map_or(self.newest, |page| self.newest.max(page.last_sequence));
    }

    pub(crate) fn decide(&mut self, outcome: &Outcome, common: &mut Common) {
        // It may have left otherwise than it came.
        common.messages.forget(outcome.sequence);
        if let Some(row) = self.rows.get_mut(outcome.sequence) {
            row.message.outcome = Some(outcome.what.as_str().to_owned());
            row.message.decided_by = Some(outcome.by.clone());
            row.message.held_ns = Some(outcome.held_ns);
            row.message.modified |= outcome.edited;
            row.forget_arguments();
        }
    }

    pub(crate) fn judge(&mut self, verdict: Verdict, common: &mut Common) {
        common.messages.forget(verdict.sequence);
        if let Some(row) = self.rows.get_mut(verdict.sequence) {
            row.message.verdict = Some(verdict.verdict);
            (row.message.rule, row.message.op) = (verdict.rule, verdict.op);
            row.message.audit_id = verdict.audit_id;
        }
    }

    pub(crate) fn mark(&mut self, marked: Marked, common: &mut Common) {
        common.messages.forget(marked.sequence);
        if let Some(row) = self.rows.get_mut(marked.sequence) {
            (row.message.mark, row.message.note) = (marked.mark, marked.note);
        }
    }

    pub(crate) fn selected_row(&self) -> Option<&Row> {
        self.rows.get(self.selected?)
    }

    /// The rows to show in so many lines, with the selected one among them.
    pub(crate) fn visible(&mut self, height: usize) -> std::ops::Range<usize> {
        self.height = height;
        let len = self.rows.len();
        let selected = self.selected.and_then(|selected| self.rows.position(selected)).unwrap_or(0);
        let mut top = self.rows.lower_bound(self.top).min(len.saturating_sub(height));
        if self.follows {
            top = len.saturating_sub(height);
        }
        top = top.min(selected).max((selected + 1).saturating_sub(height));
        self.top = self.rows.at(top).map_or(0, |row| row.message.sequence);
        top..(top + height).min(len)
    }

    /// The row that is shown on such a line.
    pub(crate) fn on_line(&self, line: usize) -> Option<u64> {
        self.rows.at(self.rows.lower_bound(self.top) + line).map(|row| row.message.sequence)
    }

    pub(crate) fn select(&mut self, sequence: u64, common: &mut Common) {
        self.selected = Some(sequence);
        self.follows = self.is_at_end && self.rows.last_sequence() == Some(sequence);
        self.go_on(common);
    }

    /// To a message wherever it is, past the filter if need be.
    pub(crate) fn go_to(&mut self, sequence: u64, common: &mut Common) {
        if self.rows.get(sequence).is_some() {
            return self.select(sequence, common);
        }
        if self.filter.take().is_some() && common.recording.is_none() {
            common.wish(Effect::Watch { filter: None });
        }
        self.follows = false;
        self.ask(Load::Around(sequence), common);
    }

    pub(crate) fn step(&mut self, by: isize, common: &mut Common) {
        let Some(at) = self.selected.and_then(|selected| self.rows.position(selected)) else { return };
        let to = at.saturating_add_signed(by).min(self.rows.len().saturating_sub(1));
        if let Some(sequence) = self.rows.at(to).map(|row| row.message.sequence) {
            self.select(sequence, common);
        }
    }

    /// Moves, if the command says so.
    pub(crate) fn motion(&mut self, command: Command, common: &mut Common) -> bool {
        let page = self.height.saturating_sub(1).max(1) as isize;
        match command {
            Command::Down => self.step(1, common),
            Command::Up => self.step(-1, common),
            Command::PageDown => self.step(page, common),
            Command::PageUp => self.step(-page, common),
            Command::First => self.go_first(common),
            Command::Last => self.go_last(common),
            _ => return false,
        }
        true
    }

    fn go_first(&mut self, common: &mut Common) {
        self.follows = false;
        match self.older {
            Some(_) => self.ask(Load::Oldest, common),
            None if self.rows.is_empty() => self.ask(Load::Oldest, common),
            None => self.selected = self.rows.first_sequence(),
        }
    }

    fn go_last(&mut self, common: &mut Common) {
        self.follows = true;
        match self.is_at_end {
            true => self.selected = self.rows.last_sequence(),
            false => self.ask(Load::Newest, common),
        }
    }

    /// Looks for the next message that the last filter matches, or the one before.
    pub(crate) fn find(&mut self, is_forward: bool, common: &mut Common) {
        let Some(filter) = self.last_filter.clone() else {
            return common.complain("there is no filter yet; `/` makes one");
        };
        let Some(selected) = self.selected else { return };
        let mut query = PageQuery { limit: Some(1), filter: Some(filter), ..PageQuery::default() };
        match is_forward {
            true => query.after = Some(selected),
            false => query.before = Some(selected),
        }
        let ticket = common.ticket(Asker::Find);
        self.finding = Some(ticket);
        common.wish(Effect::Page { ticket, query });
    }

    pub(crate) fn found(&mut self, ticket: Ticket, page: Result<Page, String>, common: &mut Common) {
        if self.finding.take_if(|asked| *asked == ticket).is_none() {
            return;
        }
        match page {
            Ok(page) => match page.messages.last() {
                Some(message) => self.go_to(message.sequence, common),
                None => common.say("no further message matches"),
            },
            Err(words) => common.complain(words),
        }
    }

    /// The message that belongs to the selected one: its request, or its answer.
    pub(crate) fn pair(&self) -> Option<u64> {
        let row = self.selected_row()?;
        row.message.answers.or(row.answered.as_ref().map(|answered| answered.sequence))
    }
}
