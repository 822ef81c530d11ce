//! One message in full: as a tree, as text, before and after an edit, with its headers and its verdict.
//! What is shown is made when it is drawn: a list that follows would otherwise read every message.

mod shown;

use mcp_control::api::{Exchange, Explanation};

pub(crate) use shown::{Shown, bytes};

use super::common::Common;
use super::prompt::Asking;
use crate::command::Command;
use crate::news::Effect;
use crate::text;

/// A view of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum View {
    /// Highlighted JSON.
    #[default]
    Json,
    Tree,
    /// The bytes as they came.
    Raw,
    /// What it was, against what was sent; or two messages.
    Diff,
    Headers,
    Policy,
    /// The request or the answer that belongs to it.
    Pair,
}

impl View {
    pub(crate) const ALL: [Self; 7] =
        [Self::Json, Self::Tree, Self::Raw, Self::Diff, Self::Headers, Self::Policy, Self::Pair];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Tree => "Tree",
            Self::Raw => "Raw",
            Self::Diff => "Diff",
            Self::Headers => "Headers",
            Self::Policy => "Policy",
            Self::Pair => "Pair",
        }
    }

    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|view| *view == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

#[derive(Default)]
pub(crate) struct Detail {
    /// Keys go here and not to the list.
    pub has_keys: bool,
    pub is_zoomed: bool,
    pub view: View,
    /// The message that is shown.
    pub of: Option<u64>,
    pub pair: Option<u64>,
    /// The message that it is compared with.
    pub other: Option<u64>,
    /// The first line that is shown, and in the tree the line that is selected.
    pub scroll: usize,
    pub cursor: usize,
    /// Lines that were drawn last, and lines there are.
    pub height: usize,
    pub lines: usize,
    pub shown: Shown,
    pub exchange: Option<Result<Exchange, String>>,
    pub explanation: Option<Result<Explanation, String>>,
    /// Why a message could not be fetched.
    pub trouble: Option<(u64, String)>,
    /// The words that were looked for last.
    sought: String,
    asked: Vec<u64>,
}

/// Messages that are fetched at once.
const ASKED_MAX: usize = 8;

impl Detail {
    /// Shows a message, and fetches of it what is not there.
    pub(crate) fn look_at(&mut self, of: Option<u64>, pair: Option<u64>, common: &mut Common) {
        if self.of != of {
            self.of = of;
            (self.scroll, self.cursor, self.other) = (0, 0, None);
            (self.exchange, self.explanation) = (None, None);
            self.fetch_beside(common);
        }
        self.pair = pair;
        let of_pair = pair.filter(|_| self.view == View::Pair);
        [of, of_pair, self.other].into_iter().flatten().for_each(|sequence| self.fetch(sequence, common));
    }

    fn fetch(&mut self, sequence: u64, common: &mut Common) {
        let is_troubled = self.trouble.as_ref().is_some_and(|(of, _)| *of == sequence);
        if common.messages.get(sequence).is_none() && !self.asked.contains(&sequence) && !is_troubled {
            if self.asked.len() >= ASKED_MAX {
                self.asked.remove(0);
            }
            self.asked.push(sequence);
            common.wish(Effect::Message { sequence });
        }
    }

    /// Fetches what only some views show.
    fn fetch_beside(&mut self, common: &mut Common) {
        let Some(sequence) = self.of else { return };
        match self.view {
            View::Headers if self.exchange.is_none() => common.wish(Effect::Exchange { sequence }),
            View::Policy if self.explanation.is_none() => common.wish(Effect::Explain { sequence }),
            _ => {}
        }
    }

    pub(crate) fn came(&mut self, sequence: u64, _common: &mut Common) {
        self.asked.retain(|asked| *asked != sequence);
        self.trouble.take_if(|(of, _)| *of == sequence);
        self.shown.forget(sequence);
    }

    pub(crate) fn failed(&mut self, sequence: u64, words: String) {
        self.asked.retain(|asked| *asked != sequence);
        self.trouble = Some((sequence, words));
    }

    /// A message is not any more what it was.
    pub(crate) fn changed(&mut self, sequence: u64, common: &mut Common) {
        if self.of == Some(sequence) {
            self.fetch(sequence, common);
        }
    }

    pub(crate) fn exchange(&mut self, sequence: u64, exchange: Result<Exchange, String>) {
        if self.of == Some(sequence) {
            self.exchange = Some(exchange);
        }
    }

    pub(crate) fn explanation(&mut self, sequence: u64, explanation: Result<Explanation, String>) {
        if self.of == Some(sequence) {
            self.explanation = Some(explanation);
        }
    }

    pub(crate) fn compare_with(&mut self, other: u64, common: &mut Common) {
        self.other = Some(other);
        self.show(View::Diff, common);
        self.fetch(other, common);
    }

    pub(crate) fn show(&mut self, view: View, common: &mut Common) {
        if self.view != view {
            self.view = view;
            (self.scroll, self.cursor) = (0, 0);
        }
        self.fetch_beside(common);
    }

    /// The JSON path of what is selected in the tree.
    pub(crate) fn path(&self) -> Option<String> {
        let tree = self.shown.tree.as_ref()?;
        tree.node_at(self.cursor).map(|node| tree.path(node))
    }

    pub(crate) fn command(&mut self, command: Command, common: &mut Common) -> bool {
        let page = self.height.saturating_sub(1).max(1);
        match command {
            Command::NextView => self.show(self.view.step(1), common),
            Command::PreviousView => self.show(self.view.step(View::ALL.len() - 1), common),
            Command::Down => self.scroll_to(self.place() + 1),
            Command::Up => self.scroll_to(self.place().saturating_sub(1)),
            Command::PageDown => self.scroll_to(self.place() + page),
            Command::PageUp => self.scroll_to(self.place().saturating_sub(page)),
            Command::First => self.scroll_to(0),
            Command::Last => self.scroll_to(usize::MAX),
            Command::Left => self.fold(),
            Command::Right => self.unfold(),
            Command::Open => self.toggle(),
            Command::UnfoldAll => self.fold_all(false),
            Command::FoldAll => self.fold_all(true),
            Command::Filter => common.prompt(Asking::Find, &self.sought.clone()),
            Command::NextMatch => self.go_to_match(true, common),
            Command::PreviousMatch => self.go_to_match(false, common),
            _ => return false,
        }
        true
    }

    fn place(&self) -> usize {
        if self.view == View::Tree { self.cursor } else { self.scroll }
    }

    fn scroll_to(&mut self, place: usize) {
        match self.view {
            View::Tree => self.cursor = place.min(self.lines.saturating_sub(1)),
            _ => self.scroll = place.min(self.lines.saturating_sub(self.height)),
        }
    }

    /// Where drawing begins, in so many lines.
    pub(crate) fn top(&mut self, height: usize, lines: usize) -> usize {
        (self.height, self.lines) = (height, lines);
        if self.view == View::Tree {
            self.cursor = self.cursor.min(lines.saturating_sub(1));
            self.scroll = self.scroll.min(self.cursor).max((self.cursor + 1).saturating_sub(height));
        }
        self.scroll = self.scroll.min(lines.saturating_sub(height));
        self.scroll
    }

    fn fold(&mut self) {
        if self.view != View::Tree {
            return;
        }
        let Some(tree) = &mut self.shown.tree else { return };
        let Some(node) = tree.node_at(self.cursor) else { return };
        if tree.is_open(node) {
            tree.toggle(node);
        } else if let Some(above) = tree.parent(node) {
            self.cursor = tree.row_of(above).unwrap_or(self.cursor);
        }
    }

    fn unfold(&mut self) {
        let Some(tree) = &mut self.shown.tree else { return };
        if let Some(node) = tree.node_at(self.cursor).filter(|node| !tree.is_open(*node)) {
            tree.toggle(node);
        }
    }

    fn toggle(&mut self) {
        match (self.view, &mut self.shown.tree) {
            (View::Tree, Some(tree)) => {
                if let Some(node) = tree.node_at(self.cursor) {
                    tree.toggle(node);
                }
            }
            _ => self.is_zoomed = !self.is_zoomed,
        }
    }

    fn fold_all(&mut self, is_folded: bool) {
        match (&mut self.shown.tree, is_folded) {
            (Some(tree), true) => tree.close_all(),
            (Some(tree), false) => tree.open_all(),
            (None, _) => {}
        }
    }

    /// Looks for words in the message, in its keys and its values; the tree shows where they are.
    pub(crate) fn find(&mut self, words: &str, common: &mut Common) {
        self.sought = words.to_owned();
        self.show(View::Tree, common);
        if let Some(message) = self.of.and_then(|of| common.messages.get(of)).cloned() {
            self.shown.tree(&message);
        }
        self.go_to_match(true, common);
    }

    /// To the next place that has the words, round and round.
    fn go_to_match(&mut self, is_forward: bool, common: &mut Common) {
        let Some(tree) = &mut self.shown.tree else { return };
        let found = tree.find(&self.sought);
        let here = tree.node_at(self.cursor).unwrap_or(0);
        let next = match is_forward {
            true => found.iter().find(|node| **node > here).or(found.first()),
            false => found.iter().rev().find(|node| **node < here).or(found.last()),
        };
        let Some(node) = next.copied() else {
            return common.say(format!("{} is not in this message", text::fit(&self.sought, 40, common.ascii)));
        };
        self.cursor = tree.reveal(node);
        self.lines = tree.len();
    }

    /// A line was clicked.
    pub(crate) fn click(&mut self, line: usize, _common: &mut Common) {
        if self.view != View::Tree {
            return;
        }
        let at = self.scroll + line;
        if at == self.cursor {
            self.toggle();
        }
        self.cursor = at.min(self.lines.saturating_sub(1));
    }
}
