//! The messages of the window, in the order of their sequences and without their contents.

use std::cell::OnceCell;
use std::collections::VecDeque;

use mcp_control::api::Message;

use super::arguments;

/// Rows of the list in memory, without their contents; with a kilobyte each that is 4 MB. Others are fetched page
/// by page.
const ROWS_MAX: usize = 4_000;

#[derive(Debug)]
pub(crate) struct Row {
    /// Without its content.
    pub message: Message,
    /// The answer, if it is a request that has one.
    pub answered: Option<Answered>,
    /// Its arguments in short, from the first drawing that had room for them and the content at hand.
    arguments: OnceCell<String>,
}

impl Row {
    /// The arguments in short; `content` is the whole message, if that is at hand.
    pub(crate) fn arguments(&self, content: Option<&Message>) -> &str {
        if let (None, Some(content)) = (self.arguments.get(), content) {
            let _ = self.arguments.set(arguments::of(content));
        }
        self.arguments.get().map_or("", String::as_str)
    }

    /// It left otherwise than it came.
    pub(crate) fn forget_arguments(&mut self) {
        self.arguments.take();
    }
}

/// What is known of a request's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub sequence: u64,
    pub status: Option<String>,
    pub code: Option<i64>,
    pub duration_ns: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: VecDeque<Row>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn at(&self, at: usize) -> Option<&Row> {
        self.rows.get(at)
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Row> {
        self.rows.iter()
    }

    pub(crate) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = &Row> {
        self.rows.range(range)
    }

    pub(crate) fn first_sequence(&self) -> Option<u64> {
        self.rows.front().map(|row| row.message.sequence)
    }

    pub(crate) fn last_sequence(&self) -> Option<u64> {
        self.rows.back().map(|row| row.message.sequence)
    }

    /// The first row that is not before a sequence.
    pub(crate) fn lower_bound(&self, sequence: u64) -> usize {
        self.rows.partition_point(|row| row.message.sequence < sequence)
    }

    pub(crate) fn position(&self, sequence: u64) -> Option<usize> {
        let at = self.lower_bound(sequence);
        self.at(at).filter(|row| row.message.sequence == sequence).map(|_| at)
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<&Row> {
        self.at(self.position(sequence)?)
    }

    pub(crate) fn get_mut(&mut self, sequence: u64) -> Option<&mut Row> {
        let at = self.position(sequence)?;
        self.rows.get_mut(at)
    }

    /// The sequence of the row that is nearest.
    pub(crate) fn nearest(&self, sequence: u64) -> Option<u64> {
        let at = self.lower_bound(sequence).min(self.len().saturating_sub(1));
        self.at(at).map(|row| row.message.sequence)
    }

    pub(crate) fn replace(&mut self, messages: Vec<Message>) {
        self.rows.clear();
        self.append_all(messages);
    }

    /// Returns whether rows at the beginning had to go.
    pub(crate) fn append(&mut self, message: Message) -> bool {
        if self.last_sequence().is_some_and(|last| last >= message.sequence) {
            return false;
        }
        self.tell_request(&message);
        self.rows.push_back(row(message));
        let is_full = self.len() > ROWS_MAX;
        if is_full {
            self.rows.pop_front();
        }
        is_full
    }

    /// The same for several.
    pub(crate) fn append_all(&mut self, messages: Vec<Message>) -> bool {
        messages.into_iter().fold(false, |is_full, message| self.append(message) | is_full)
    }

    /// Puts earlier messages in front. Returns whether rows at the end had to go.
    pub(crate) fn prepend(&mut self, messages: Vec<Message>) -> bool {
        let first = self.first_sequence().unwrap_or(u64::MAX);
        for message in messages.into_iter().rev().filter(|message| message.sequence < first) {
            let mut row = row(message);
            row.answered = self.answer_of(row.message.sequence);
            self.rows.push_front(row);
        }
        let is_full = self.len() > ROWS_MAX;
        self.rows.truncate(ROWS_MAX);
        is_full
    }

    fn tell_request(&mut self, answer: &Message) {
        let Some(request) = answer.answers else { return };
        let answered = answered(answer);
        if let Some(row) = self.get_mut(request) {
            row.answered = Some(answered);
        }
    }

    /// Looks a little way on: answers come soon after what they answer.
    fn answer_of(&self, request: u64) -> Option<Answered> {
        /// Rows searched for the answer of a request: answers come soon after it.
        const NEAR: usize = 200;
        let answer = self.rows.iter().take(NEAR).find(|row| row.message.answers == Some(request))?;
        Some(answered(&answer.message))
    }
}

fn answered(answer: &Message) -> Answered {
    Answered {
        sequence: answer.sequence,
        status: answer.status.clone(),
        code: answer.code,
        duration_ns: answer.duration_ns,
    }
}

fn row(message: Message) -> Row {
    let message = Message { raw: None, original_raw: None, raw_base64: None, ..message };
    Row { message, answered: None, arguments: OnceCell::new() }
}
